"""Parquet, YAML and zstd: the rows are those of JSON Lines, and a fault is named with its line."""

from __future__ import annotations

import codecs
import datetime as dt
import gzip
import json
import math
import random
import sys
import tracemalloc
import uuid
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragauge.codes import CODES
from ragauge.errors import Problem, RagaugeError
from ragauge.files import parquet_reader, yaml_reader
from ragauge.files.open import opened
from ragauge.files.ranges import plan, read_rows
from tests.support.command import GOLD, TRACES, Folder, lines_of

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
yaml = pytest.importorskip("yaml")
zstandard = pytest.importorskip("zstandard")

MOMENT = dt.datetime(2024, 1, 5, 10, 30, 0, 123456)


@pytest.fixture(autouse=True)
def spool(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The folder for temporary files is empty after every test, whatever went wrong in it."""
    folder = tmp_path_factory.mktemp("spool")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def numbered(path: Path) -> list[tuple[int, Any]]:
    """Every row of a file with its line, through the same steps as any other file."""
    found = []
    with opened(path) as source:
        line = 1
        for part in plan(source, range_bytes=100):
            rows = read_rows(source, part)
            found += [
                (line + rows.line(i), json.loads(row)) for i, row in enumerate(rows.data) if row
            ]
            line += rows.newlines
    return found


def refused(path: Path) -> Problem:
    """The one problem for which a file is refused."""
    with pytest.raises(RagaugeError) as caught, opened(path):
        pass
    (problem,) = caught.value.problems
    assert problem.hint
    assert CODES[problem.code].exit in (2, 3)
    return problem


def parquet_of(table: Any, path: Path, **options: Any) -> Path:
    pq.write_table(table, path, **options)
    return path


def yaml_rows(folder: Path, text: str | bytes, name: str = "gold.yaml") -> list[tuple[int, Any]]:
    return numbered(write(folder, text, name))


def write(folder: Path, text: str | bytes, name: str = "gold.yaml") -> Path:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder / name


# --- Parquet ---

COLUMNS: dict[str, tuple[Any, list[Any]]] = {
    "text": (pa.array(["한국어 😀\n", None]), ["한국어 😀\n", None]),
    "whole numbers": (pa.array([2**64 - 1, 0], pa.uint64()), [2**64 - 1, 0]),
    "numbers": (pa.array([0.1, None]), [0.1, None]),
    "half numbers": (pa.array(np.array([1.5, -2.0], np.float16)), [1.5, -2.0]),
    "truth values": (pa.array([True, None]), [True, None]),
    "nothing": (pa.nulls(2), [None, None]),
    "decimals": (pa.array([Decimal("0.25"), None]), [0.25, None]),
    "bytes": (pa.array(["é".encode(), None]), ["é", None]),
    "bytes of one length": (pa.array([b"ab", None], pa.binary(2)), ["ab", None]),
    "days": (pa.array([MOMENT.date(), None]), ["2024-01-05", None]),
    "times": (pa.array([MOMENT.time(), None], pa.time64("ns")), ["10:30:00.123456", None]),
    "moments": (
        pa.array([MOMENT, None], pa.timestamp("us")),
        ["2024-01-05T10:30:00.123456", None],
    ),
    "nanoseconds": (
        pa.array([1_704_450_600_000_000_789, None], pa.timestamp("ns")),
        ["2024-01-05T10:30:00", None],
    ),
    "moments of a zone": (
        pa.array([MOMENT, None], pa.timestamp("ns", "Asia/Seoul")),
        ["2024-01-05T10:30:00.123456Z", None],
    ),
    "moments of no known zone": (
        pa.array([MOMENT, None], pa.timestamp("s", "Mars/Olympus")),
        ["2024-01-05T10:30:00Z", None],
    ),
    "lists": (pa.array([["a", None], []]), [["a", None], []]),
    "lists of numbers": (pa.array([[0.5, None], None]), [[0.5, None], None]),
    "lists of one length": (
        pa.array([[1.0, 2.0], [3.0, None]], pa.list_(pa.float64(), 2)),
        [[1.0, 2.0], [3.0, None]],
    ),
    "structs": (
        pa.array([{"claim": "x", "seen": {"at": MOMENT, "score": [1.5]}}, None]),
        [{"claim": "x", "seen": {"at": "2024-01-05T10:30:00.123456", "score": [1.5]}}, None],
    ),
    "maps": (
        pa.array([[("a", 1.5), ("b", None)], []], pa.map_(pa.string(), pa.float64())),
        [{"a": 1.5, "b": None}, {}],
    ),
    "maps of numbers": (
        pa.array([[(7, ["x"])], None], pa.map_(pa.int32(), pa.list_(pa.string()))),
        [{"7": ["x"]}, None],
    ),
    "nanoseconds deep inside": (
        pa.array([[{"t": 1001}], None], pa.list_(pa.struct([("t", pa.timestamp("ns"))]))),
        [[{"t": "1970-01-01T00:00:00.000001"}], None],
    ),
    "dictionaries": (pa.array(["x", "x"]).dictionary_encode(), ["x", "x"]),
    "large text": (pa.array(["x", None], pa.large_string()), ["x", None]),
}


@pytest.mark.parametrize(("column", "expected"), COLUMNS.values(), ids=COLUMNS.keys())
def test_each_type_has_its_json(tmp_path: Path, column: Any, expected: list[Any]) -> None:
    """Nulls stay null; row i is line i."""
    table = pa.table({"qid": ["a", "b"], "value": column})
    rows = numbered(parquet_of(table, tmp_path / "rows.parquet"))
    assert rows == [
        (1, {"qid": "a", "value": expected[0]}),
        (2, {"qid": "b", "value": expected[1]}),
    ]


def test_a_uuid_is_written_as_one_writes_it(tmp_path: Path) -> None:
    if not hasattr(pa, "uuid"):
        pytest.skip("this release of pyarrow has no type for it")
    one = uuid.UUID(int=7)
    path = parquet_of(pa.table({"qid": pa.array([one.bytes], pa.uuid())}), tmp_path / "rows")
    assert numbered(path) == [(1, {"qid": str(one)})]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([1.0] * 9 + [math.nan] + [1.0]), "nan is not a number"),
        (pa.array([1.0] * 9 + [-math.inf, math.nan]), "-inf is not a number"),
        (pa.array([[{"score": 0.5}]] * 9 + [[{"score": math.nan}], None]), "nan is not a number"),
        (pa.array([b"x"] * 9 + [b"\xff", b"x"]), "invalid start byte"),
        (pa.array([0] * 9 + [2**62, 0], pa.timestamp("ms")), ""),
    ],
    ids=["NaN", "infinity", "NaN inside", "bytes", "a year that no calendar has"],
)
def test_a_value_without_json_is_named_by_its_row(
    tmp_path: Path, column: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted through all batches before."""
    monkeypatch.setattr(parquet_reader, "_BATCH_ROWS", 4)
    table = pa.table({"qid": [str(i) for i in range(11)], "value": column})
    problem = refused(parquet_of(table, tmp_path / "rows.parquet"))
    assert (problem.code, str(problem.place)) == ("bad-parquet", f"{tmp_path}/rows.parquet:10")
    assert problem.message.startswith("column `value` of row 10 cannot be read: ")
    assert reason in problem.message


def test_a_parquet_file_may_be_empty_but_not_without_columns(tmp_path: Path) -> None:
    none = pa.table({"qid": pa.array([], pa.string())})
    assert numbered(parquet_of(none, tmp_path / "none")) == []
    assert "no columns" in refused(parquet_of(pa.table({}), tmp_path / "bare")).message


def test_a_parquet_file_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    """Whatever its name is, and packed too."""
    table = pa.table({"qid": ["a"]})
    data = parquet_of(table, tmp_path / "rows.yaml").read_bytes()
    assert numbered(tmp_path / "rows.yaml") == [(1, {"qid": "a"})]
    assert numbered(write(tmp_path, gzip.compress(data), "rows.gz")) == [(1, {"qid": "a"})]


def whole_file(folder: Path, **options: Any) -> bytes:
    rows = range(1000)
    table = pa.table(
        {"qid": [str(i) for i in rows], "topk": [[{"id": f"p{i}", "score": i / 7}] for i in rows]}
    )
    return parquet_of(table, folder / "whole", **options).read_bytes()


@pytest.mark.parametrize("cut", [4, 5, 100, 0.5, -1, -5, -8, -40])
def test_a_cut_parquet_file_is_refused(tmp_path: Path, cut: float) -> None:
    """Its table of contents is at the end, so no row can be trusted."""
    data = whole_file(tmp_path)
    end = int(len(data) * cut) if isinstance(cut, float) else cut
    problem = refused(write(tmp_path, data[:end], "rows"))
    assert problem.code == "bad-parquet"
    assert "make it again" in problem.hint


@pytest.mark.slow
@pytest.mark.parametrize("checksums", [True, False])
def test_a_damaged_parquet_file_is_refused_or_read(tmp_path: Path, checksums: bool) -> None:
    """Never anything but our own error; with checksums no changed page goes unnoticed."""
    data = whole_file(tmp_path, write_page_checksum=checksums)
    change = random.Random(5)
    codes = Counter[str]()
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(3):
            damaged[change.randrange(4, len(damaged))] ^= change.randrange(1, 256)
        path = write(tmp_path, bytes(damaged), "rows")
        try:
            with opened(path):
                codes["read"] += 1
        except RagaugeError as error:
            codes[error.code] += 1
    assert codes.keys() <= {"read", "bad-parquet"}
    assert codes["read"] <= (3 if checksums else 150)


@pytest.mark.slow
def test_a_long_parquet_file_is_streamed(tmp_path: Path) -> None:
    """100,000 rows in one row group take the memory of one batch, not of the file."""
    path = tmp_path / "rows.parquet"
    count = 100_000
    text = [f"answer {i} " * 20 for i in range(count)]
    parquet_of(pa.table({"qid": list(map(str, range(count))), "answer": text}), path)
    del text
    before = pa.total_allocated_bytes()
    size = lines = most = 0
    tracemalloc.start()
    with path.open("rb") as file:
        for chunk in parquet_reader.parquet_lines(file, "rows.parquet"):
            size += len(chunk)
            lines += chunk.count(b"\n")
            most = max(most, pa.total_allocated_bytes() - before)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert lines == count
    assert size > 22_000_000
    assert peak < 8_000_000
    assert most < 22_000_000  # the ids are few bytes, and are all held as a dictionary


def test_wide_rows_are_held_in_small_batches(tmp_path: Path) -> None:
    """A row of a megabyte is held with a few others, not with thousands."""
    text = [random.Random(i).randbytes(300_000).hex() for i in range(12)]
    path = parquet_of(pa.table({"text": text}), tmp_path / "rows", use_dictionary=False)
    with path.open("rb") as file:
        chunks = list(parquet_reader.parquet_lines(file, "rows"))
    assert len(chunks) >= 2
    assert [json.loads(row)["text"] for row in b"".join(chunks).splitlines()] == text


# --- YAML ---


def test_items_stand_on_their_lines(tmp_path: Path) -> None:
    """In block style; comments, blank lines and long texts between them do not matter."""
    text = (
        "# golden set\n\n- qid: A1  # one\n  question: |\n    지원하나요? 😀\n\n    예.\n"
        "  day: 2024-01-05\n\n-\n  qid: A2\n- {qid: A3, refused: yes, score: .5}\n"
    )
    expected = [
        (3, {"qid": "A1", "question": "지원하나요? 😀\n\n예.\n", "day": "2024-01-05"}),
        (11, {"qid": "A2"}),
        (12, {"qid": "A3", "refused": True, "score": 0.5}),
    ]
    assert yaml_rows(tmp_path, text) == expected
    assert yaml_rows(tmp_path, text.replace("\n", "\r\n")) == expected
    assert yaml_rows(tmp_path, codecs.BOM_UTF8 + text.encode()) == expected
    assert yaml_rows(tmp_path, gzip.compress(text.encode()), "gold.yaml.gz") == expected
    assert yaml_rows(tmp_path, zstandard.compress(text.encode()), "GOLD.YML.zst") == expected


def test_items_on_one_line_follow_each_other(tmp_path: Path) -> None:
    """From there on, until the file has caught up."""
    text = "[{a: 1}, {a: 2}, {a: 3},\n {a: 4},\n\n\n\n {a: 5}]"
    lines = [line for line, _ in yaml_rows(tmp_path, text)]
    assert lines == [1, 2, 3, 4, 6]


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\r"])
@pytest.mark.parametrize("pure", [False, True], ids=["libyaml", "Python"])
def test_only_newlines_count_as_line_ends(
    tmp_path: Path, odd: str, pure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YAML has more of them; editors and all our other readers do not."""
    if pure:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    long = "한" * 5000
    item = f"- a: 'x{odd}y{odd}z'\r\n  b: {long}\r\n"
    rows = yaml_rows(tmp_path, item * 20 + "- end\n")
    assert [line for line, _ in rows] == [*range(1, 40, 2), 41]
    assert rows[3][1]["b"] == long


@pytest.mark.parametrize("key", yaml_reader.ROW_KEYS)
def test_the_list_may_stand_under_a_name(tmp_path: Path, key: str) -> None:
    text = f"version: 2\nnotes: [a, {{b: c}}]\n{key}:\n  - qid: A1\n  - qid: A2\nowner: x\n"
    assert yaml_rows(tmp_path, text) == [(4, {"qid": "A1"}), (5, {"qid": "A2"})]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "[]", "queries: []", "---\n...\n"])
def test_a_yaml_file_may_be_empty(tmp_path: Path, text: str) -> None:
    assert yaml_rows(tmp_path, text) == []


def test_anchors_aliases_and_merges_are_written_out(tmp_path: Path) -> None:
    """Own keys win over merged ones wherever they stand, and the first merged over the next."""
    text = (
        "- &one {a: 1, b: &list [x, y]}\n- {b: *list}\n- *one\n- {a: 2, <<: *one}\n"
        "- {<<: [{a: 3}, *one], c: 4}\n- {'<<': 5}\n"
    )
    assert [row for _, row in yaml_rows(tmp_path, text)] == [
        {"a": 1, "b": ["x", "y"]},
        {"b": ["x", "y"]},
        {"a": 1, "b": ["x", "y"]},
        {"a": 2, "b": ["x", "y"]},
        {"a": 3, "b": ["x", "y"], "c": 4},
        {"<<": 5},
    ]


def test_of_duplicate_keys_the_last_wins(tmp_path: Path) -> None:
    """As in JSON; at the top of an item and inside."""
    text = "- qid: A1\n  qid: A2\n  more: {x: 1, x: 2}\n"
    assert yaml_rows(tmp_path, text) == [(1, {"qid": "A2", "more": {"x": 2}})]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", True), ("OFF", False), ("~", None), ("", None), ("null", None),
        ("7", 7), ("-7", -7), ("1.5", 1.5), (".5", 0.5), ("1.0e-3", 0.001), (str(10**30), 10**30),
        ("'7'", "7"), ('"\\u00e9\\n"', "é\n"), ("!!str 7", "7"), ("!!int '7'", 7),
        ("0123", "0123"), ("12:30", "12:30"), ("1_000", "1_000"), ("0x1F", "0x1F"),
        ("2024-01-05", "2024-01-05"), ("2024-01-05 10:30:00Z", "2024-01-05T10:30:00+00:00"),
        ("!!binary aGk=", "hi"), ("=", "="), ("1.2.3", "1.2.3"), ("p1#2", "p1#2"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pure", [False, True], ids=["libyaml", "Python"])
def test_scalars_are_what_they_look_like(
    tmp_path: Path, written: str, value: Any, pure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only YAML 1.1 takes for a number stays text: it is more likely to be an id."""
    if pure:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    assert yaml_rows(tmp_path, f"- a: {written}\n") == [(1, {"a": value})]


def test_keys_are_text_as_it_is_written(tmp_path: Path) -> None:
    text = "- {1: a, on: b, 2024-01-05: c, 1.50: d, ~: e}\n"
    row = {"1": "a", "on": "b", "2024-01-05": "c", "1.50": "d", "~": "e"}
    assert yaml_rows(tmp_path, text) == [(1, row)]


BOMB = "- a: &a0 [lol, lol]\n" + "".join(
    f"- a: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 30)
)
MERGES = "- &a0 {k: v}\n" + "".join(
    f"- &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}], k{i}: v}}\n" for i in range(1, 30)
)
FAULTS: dict[str, tuple[str | bytes, str, int | None, str, str]] = {
    "tab": ("- a: 1\n- a: 2\n\tb: 3\n", "bad-yaml", 3, "", "spaces"),
    "colon": ("- a: 1\n- a: b: c\n", "bad-yaml", 2, "mapping values", "quotes"),
    "open bracket": ("- a: 1\n- a: [b\n", "bad-yaml", 3, "", "closed"),
    "open quote": ("- a: 'b\n", "bad-yaml", 2, "", "closed"),
    "NaN": ("- a: 1\n- a:\n    b: .nan\n", "bad-yaml", 3, "`.nan`", "null"),
    "infinity": ("- a: -.INF\n", "bad-yaml", 1, "`-.INF`", "null"),
    "no such day": ("- a: 1\n- a: 2024-02-30\n", "bad-yaml", 2, "`2024-02-30`", "quotes"),
    "a number of any length": (f"- a: {'9' * 5000}\n", "bad-yaml", 1, "digits", ""),
    "not that type": ("- a: !!int x\n", "bad-yaml", 1, "`x`", ""),
    "not a truth value": ("- a: !!bool x\n", "bad-yaml", 1, "`x`", ""),
    "not base64": ("- a: !!binary x\n", "bad-yaml", 1, "`x`", ""),
    "bytes": ("- a: !!binary /w==\n", "bad-yaml", 1, "`/w==`", ""),
    "a Python object": ("- a: !!python/name:os.system ''\n", "bad-yaml", 1, "is not known", "tag"),
    "a call": ("- a: !!python/object/apply:os.getcwd []\n", "bad-yaml", 1, "is not known", "tag"),
    "a tag of one's own": ("- a: !foo {}\n", "bad-yaml", 1, "`!foo`", "tag"),
    "two documents": ("- a: 1\n---\n- a: 2\n", "bad-yaml", 2, "more than one document", ""),
    "text": ("\njust text\n", "bad-yaml", 2, "no list", "- "),
    "no list": ("a: 1\nqueries: {}\n", "bad-yaml", 1, "`queries`", "- "),
    "two lists": ("items: [{a: 1}]\nqueries:\n- b: 1\n", "bad-yaml", 2, "both", "one of them"),
    "alias of nothing": ("- a: 1\n- a: *b\n", "bad-yaml", 2, "`*b` stands for nothing", ""),
    "alias of itself": ("- a: &b\n  - 1\n  - *b\n", "bad-yaml", 3, "`*b` is inside", ""),
    "merge of a number": ("- {<<: 7}\n", "bad-yaml", 1, "`<<`", ""),
    "a list as key": ("- ? [a]\n  : 1\n", "bad-yaml", 1, "key", ""),
    "alias bomb": (BOMB, "bad-yaml", None, "more than 64 MiB", ""),
    "merge bomb": (MERGES, "bad-yaml", None, "more than 64 MiB", ""),
    "deep": ("- 1\n- " + "[" * 100_000, "too-deep", 2, "200", "flat"),
    "deep, closed": ("- " + "{a: " * 201 + "1" + "}" * 201, "too-deep", 1, "200", "flat"),
    "deep by aliases": (
        "- &a0 []\n" + "".join(f"- &a{i} [*a{i - 1}]\n" for i in range(1, 250)),
        "too-deep", 201, "200", "flat",
    ),
    "not UTF-8": (b"- a: 1\n- b: caf\xe9\n", "bad-encoding", 2, "byte 8", "UTF-8"),
    "cut in a character": ("- a: 1\n- b: é".encode()[:-1], "bad-encoding", 2, "byte 5", "UTF-8"),
    "UTF-16": ("- a: 1\n".encode("utf-16"), "bad-encoding", 1, "", "UTF-8"),
    "control character": ("- a: 1\n- a: \x01\n", "bad-yaml", 2, "not allowed", "control"),
    "NUL": ("- a: 1\n- a: \0\n", "bad-yaml", 2, "", ""),
}  # fmt: skip


@pytest.mark.parametrize("pure", [False, True], ids=["libyaml", "Python"])
@pytest.mark.parametrize("kind", FAULTS)
def test_a_yaml_file_is_refused_with_the_line(
    tmp_path: Path, kind: str, pure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever parser is there. A bomb is counted: written out, no memory would hold it."""
    if pure:
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    text, code, line, message, hint = FAULTS[kind]
    problem = refused(write(tmp_path, text))
    assert problem.code == code
    assert problem.place is not None
    assert problem.place.line == line or line is None
    assert message in problem.message
    assert hint in problem.hint


def test_nesting_is_read_down_to_the_limit(tmp_path: Path) -> None:
    depth = yaml_reader.MAX_DEPTH
    ((_, row),) = yaml_rows(tmp_path, "- " + "[" * depth + "]" * depth)
    assert json.dumps(row) == "[" * depth + "]" * depth


@pytest.mark.slow
def test_a_long_list_takes_the_memory_of_an_item(tmp_path: Path) -> None:
    """Each item is forgotten when it is written."""
    count = 3000
    path = write(tmp_path, "".join(f"- qid: A{i}\n  text: {'x' * 500}\n" for i in range(count)))
    tracemalloc.start()
    with path.open("rb") as file:
        size = sum(len(chunk) for chunk in yaml_reader.yaml_lines(file, "gold.yaml"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > count * 500
    assert peak < 1_000_000


# --- zstd ---


@pytest.mark.parametrize("data", [b"", b'{"a": 1}\n', b'{"a": 1}\n' * 100_000])
def test_a_zstd_file_is_read_as_what_is_in_it(tmp_path: Path, data: bytes) -> None:
    """Whatever its name, of one frame or of several, with or without its size at the head."""
    once = zstandard.compress(data)
    unsized = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True).compress(data)
    for packed, times in ((once, 1), (unsized, 1), (once + unsized + once, 3)):
        with opened(write(tmp_path, packed, "rows")) as source:
            assert Path(source.path).read_bytes() == data * times


@pytest.mark.parametrize("damage", ["cut", "cut in the head", "changed", "tail"])
def test_a_damaged_zstd_file_is_refused(tmp_path: Path, damage: str) -> None:
    data = random.Random(1).randbytes(50_000)
    packed = zstandard.ZstdCompressor(write_checksum=True).compress(data)
    changed = packed[:-6] + b"zz" + packed[-4:]
    kinds = {
        "cut": packed[:-9], "cut in the head": packed[:5], "changed": changed,
        "tail": packed + b"and more",
    }  # fmt: skip
    problem = refused(write(tmp_path, kinds[damage], "rows.zst"))
    assert problem.code == "bad-zstd"
    assert "make it again" in problem.hint


# --- packages that are not there ---


@pytest.mark.parametrize(
    ("hidden", "name", "data", "extra"),
    [
        (["pyarrow"], "rows.parquet", b"PAR1", "parquet"),
        (["yaml"], "gold.yaml", b"- a: 1\n", "yaml"),
        (["zstandard", "compression.zstd"], "rows.zst", zstandard.compress(b"{}"), "zstd"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hidden: list[str],
    name: str,
    data: bytes,
    extra: str,
) -> None:
    """It is a matter of the command line (2), not of the file."""
    for module in hidden:
        monkeypatch.setitem(sys.modules, module, None)
    problem = refused(write(tmp_path, data, name))
    assert (problem.code, int(CODES[problem.code].exit)) == ("missing-extra", 2)
    assert problem.hint == f'pip install "ragauge[{extra}]"'


# --- the whole way ---


def test_scores_are_the_same_from_any_kind_of_file(folder: Folder) -> None:
    """Gold as YAML, traces as Parquet, and both packed."""
    plain = folder.score(None, "--full", "--format", "json")
    gold = yaml.safe_dump(GOLD, allow_unicode=True)
    parquet_of(pa.Table.from_pylist(TRACES), folder.path / "trace.parquet")
    packed = zstandard.compress(lines_of(TRACES))
    for gold_name, gold_data in (
        ("g.yaml", gold.encode()),
        ("g.yml.gz", gzip.compress(gold.encode())),
    ):
        folder.write(gold_name, gold_data)
        folder.write("trace.zst", packed)
        for trace_name in ("trace.parquet", "trace.zst"):
            outcome = folder.run("score", gold_name, trace_name, "--full", "--format", "json")
            assert outcome.exit_code == plain.exit_code == 0, outcome.err
            found, expected = json.loads(outcome.out), json.loads(plain.out)
            assert found["metrics"] == expected["metrics"]


def test_a_bad_row_is_found_on_its_line_of_the_yaml_file(folder: Folder) -> None:
    """The reader of rows speaks of the file that was named, and of its lines."""
    text = "# gold\n- qid: A1\n  question: x\n\n- 17\n- qid: A3\n  gold_citations: 5\n"
    outcome = folder.score(gold=text, gold_name="gold.yaml")
    assert outcome.exit_code == 3
    found = [(problem.code, problem.where) for problem in outcome.problems]
    assert found == [("not-a-row", "gold.yaml:5"), ("bad-field", "gold.yaml:6")]


def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read through a copy says so, and leaves nothing."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    path = write(tmp_path, "- a: 1\n")
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    problem = refused(path)
    assert problem.code == "file-unreadable"
    assert "No space left on device" in problem.message
    assert "TMPDIR" in problem.hint
