"""Rows that stand one level deeper are named, and never scored as one row without fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.formats.load import load_gold, load_traces

ROWS = [{"qid": f"Q{n}", "question": "q?", "hits": ["a"], "answer": "x"} for n in range(3)]


def problem(path: Path, document: Any, **layout: Any) -> tuple[str, str]:
    path.write_text(json.dumps(document, **layout), encoding="utf-8")
    with pytest.raises(RagaugeError) as caught:
        load_traces(path)
    (found,) = caught.value.problems
    assert found.code == "not-a-row"
    return found.message.partition("` ")[2], found.hint


@pytest.mark.parametrize("indent", [None, 2])
def test_rows_in_a_list_of_one_object(tmp_path: Path, indent: int | None) -> None:
    document = {"run": "x", "notes": [{"by": "me"}], "results": ROWS}
    message, hint = problem(tmp_path / "t.json", document, indent=indent)
    assert message == "is one object, and its rows stand in `results`"
    assert hint == "take them out: jq -c '.[\"results\"][]' FILE > rows.jsonl"


def test_a_list_of_what_is_not_known_is_named_too(tmp_path: Path) -> None:
    """The export of Jaeger, say."""
    message, _ = problem(tmp_path / "t.json", {"data": [{"traceID": "a", "spans": []}]})
    assert message == "is one object, and its rows stand in `data`"


def test_rows_by_their_ids(tmp_path: Path) -> None:
    message, _ = problem(tmp_path / "t.json", {row["qid"]: row for row in ROWS})
    assert message == "is one object with a row under each name, such as `Q0`"


def test_columns_of_a_data_frame(tmp_path: Path) -> None:
    columns = {name: {str(n): row[name] for n, row in enumerate(ROWS)} for name in ROWS[0]}
    message, hint = problem(tmp_path / "t.json", columns)
    assert message == "has a column under each name, as `DataFrame.to_json` writes it"
    assert "lines=True" in hint


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
