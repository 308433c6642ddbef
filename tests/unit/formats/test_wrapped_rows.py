"""Rows that stand one level deeper are named, and never scored as one row without fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.formats import wrapped_rows
from ragauge.formats.load import load_gold, load_traces

ROWS = [{"qid": f"Q{n}", "question": "q?", "hits": ["a"], "answer": "x"} for n in range(3)]


def read(path: Path, document: Any, **layout: Any) -> list[str | None]:
    path.write_text(json.dumps(document, **layout), encoding="utf-8")
    return [trace.qid for trace in load_traces(path).traces]


def problem(path: Path, document: Any) -> tuple[str, str]:
    with pytest.raises(RagaugeError) as caught:
        read(path, document)
    (found,) = caught.value.problems
    assert found.code == "not-a-row"
    return found.message.partition("` ")[2], found.hint


@pytest.mark.parametrize("indent", [None, 2])
def test_rows_in_a_list_of_one_object(tmp_path: Path, indent: int | None) -> None:
    document = {"run": "x", "notes": [{"by": "me"}], "results": ROWS}
    assert read(tmp_path / "t.json", document, indent=indent) == ["Q0", "Q1", "Q2"]


def test_rows_with_own_names_in_a_list_of_one_object(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    rows = [{"case": f"Q{n}", "reply": "x\ny"} for n in range(3)]
    path.write_text(json.dumps({"run": "x", "rows": rows}, indent=1), encoding="utf-8")
    traces = load_traces(path, fields={"qid": "case", "answer": "reply"}).traces
    assert [trace.qid for trace in traces] == ["Q0", "Q1", "Q2"]


def test_two_lists_that_may_be_the_rows_are_refused(tmp_path: Path) -> None:
    message, hint = problem(tmp_path / "t.json", {"train": ROWS, "test": ROWS})
    assert message == "is one object, and its rows stand in `train`"
    assert hint == "take them out: jq -c '.[\"train\"][]' FILE > rows.jsonl"


def test_a_list_of_what_is_not_known_is_refused(tmp_path: Path) -> None:
    """The export of Jaeger, say."""
    message, _ = problem(tmp_path / "t.json", {"data": [{"traceID": "a", "spans": []}]})
    assert message == "is one object, and its rows stand in `data`"


def test_rows_by_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    bare = {row["qid"]: {"hits": row["hits"]} for row in ROWS}
    assert read(path, {row["qid"]: row for row in ROWS}) == ["Q0", "Q1", "Q2"]
    assert read(path, bare, indent=2) == ["Q0", "Q1", "Q2"]


def test_columns_of_a_data_frame(tmp_path: Path) -> None:
    columns = {name: {str(n): row[name] for n, row in enumerate(ROWS)} for name in ROWS[0]}
    assert read(tmp_path / "t.json", columns) == ["Q0", "Q1", "Q2"]


def test_a_document_that_is_cut_is_no_shorter_set(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"results": ROWS})[:-30], encoding="utf-8")
    with pytest.raises(RagaugeError) as caught:
        load_traces(path)
    assert caught.value.problems[0].code == "bad-json"


def test_a_document_too_large_to_be_taken_apart_says_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wrapped_rows, "_LARGEST", 100)
    _, hint = problem(tmp_path / "t.json", {"results": ROWS})
    assert "jq -c" in hint


@pytest.mark.parametrize("indent", [None, 2])
def test_one_row_is_a_row(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps(ROWS[0], indent=indent), encoding="utf-8")
    assert len(load_traces(path).traces) == 1
    path.write_text(json.dumps({"qid": "Q1", "question": "q?", "relevant": ["a"]}), "utf-8")
    assert len(load_gold(path).items) == 1


def test_lines_with_names_of_their_own_stay_lines(tmp_path: Path) -> None:
    """What is not read of them is said elsewhere; `[fields]` maps it."""
    path = tmp_path / "t.jsonl"
    path.write_text('{"found": [{"chunk": "a"}]}\n' * 2, encoding="utf-8")
    assert len(load_traces(path).traces) == 2
