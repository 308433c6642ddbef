"""BEIR folders: how they are recognised, which judgements are meant, and what the questions say."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from ragauge.errors import MAX_REPORTED, RagaugeError
from ragauge.formats.load import queries
from ragauge.formats.trec.beir import is_beir, qrels_file
from tests.support.cases import cases

HEADER = "query-id\tcorpus-id\tscore\n"


def beir(folder: Path, *splits: str, lines: bytes | None = None) -> Path:
    (folder / "qrels").mkdir()
    for split in splits:
        (folder / "qrels" / f"{split}.tsv").write_text(HEADER + "1\td1\t1\n", "utf-8")
    if lines is not None:
        (folder / "queries.jsonl").write_bytes(lines)
    return folder


def test_a_folder_with_judgements_is_one(tmp_path: Path) -> None:
    """Nothing else makes it one: not a file, not an empty folder, not other files in `qrels`."""
    assert not is_beir(tmp_path)
    assert not is_beir(tmp_path / "absent")
    folder = beir(tmp_path)
    (folder / "qrels" / "readme.md").touch()
    (folder / "qrels" / "folder.tsv").mkdir()
    assert not is_beir(folder)
    (folder / "qrels" / "dev.tsv").touch()
    assert is_beir(folder)
    assert is_beir(str(folder))
    assert not is_beir(folder / "qrels" / "dev.tsv")


@pytest.mark.parametrize(
    ("splits", "found"), [(["test"], "test"), (["dev", "test", "train"], "test"), (["dev"], "dev")]
)
def test_the_split_is_test_or_the_only_one(tmp_path: Path, splits: list[str], found: str) -> None:
    folder = beir(tmp_path, *splits)
    assert qrels_file(folder) == folder / "qrels" / f"{found}.tsv"


def test_where_no_split_can_be_told_they_are_listed(tmp_path: Path) -> None:
    """None is chosen by chance; the hint is to name the file."""
    with pytest.raises(RagaugeError) as caught:
        qrels_file(beir(tmp_path, "train", "dev"))
    (problem,) = caught.value.problems
    assert problem.code == "file-not-found"
    assert problem.message.endswith("has no split `test`, but `dev`, `train`")
    assert str(tmp_path / "qrels" / "dev.tsv") in problem.hint


def test_questions_are_read_by_id(tmp_path: Path) -> None:
    """Other fields are passed over, an id may be a number, and of two the last counts."""
    rows = [
        {"_id": "q1", "text": "지원하나요? 😀", "metadata": {"url": "x", "n": [1]}},
        {"_id": 2, "text": "two"},
        {"_id": "q3", "text": "old"},
        {"text": "new", "_id": "q3"},
    ]
    lines = "\r\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    expected = {"q1": "지원하나요? 😀", "2": "two", "q3": "new"}
    assert queries(beir(tmp_path, "test", lines=lines)) == expected
    (tmp_path / "queries.jsonl").write_bytes(gzip.compress(lines))
    assert queries(tmp_path) == expected


def test_questions_may_be_absent(tmp_path: Path) -> None:
    assert queries(beir(tmp_path, "test")) == {}
    (tmp_path / "queries.jsonl").touch()
    assert queries(tmp_path) == {}


@cases(
    ("line", "code", "message"),
    [
        (b'{"_id": "a"}', "missing-field", "`text` is missing"),
        (b'{"text": "a"}', "missing-field", "`_id` is missing"),
        (b'{"_id": "a", "text": 7}', "bad-field", "`text` must be text, got 7"),
        (b'{"_id": true, "text": "a"}', "bad-field", "`_id` must be text, got true"),
        (b'{"_id": "a", "text": }', "bad-json", ""),
        (b'{"_id": "a", "text": "\xff"}', "bad-encoding", ""),
        (b"17", "not-a-row", ""),
        (b'{"_id": "a", "te', "truncated-line", ""),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, code: str, message: str) -> None:
    data = b'{"_id": "q1", "text": "one"}\n\n' + line
    with pytest.raises(RagaugeError) as caught:
        queries(beir(tmp_path, "test", lines=data))
    (problem,) = caught.value.problems
    assert (problem.code, str(problem.place)) == (code, f"{tmp_path / 'queries.jsonl'}:3")
    assert message in problem.message
    assert problem.hint


def test_many_bad_lines_are_counted(tmp_path: Path) -> None:
    with pytest.raises(RagaugeError) as caught:
        queries(beir(tmp_path, "test", lines=b"17\n" * (MAX_REPORTED + 5)))
    assert (len(caught.value.problems), caught.value.total) == (MAX_REPORTED, MAX_REPORTED + 5)
