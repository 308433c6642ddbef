"""A trace whose offsets have another unit than the gold's is a bad line, and leaves nothing behind.

Rows are reduced from the last to the first, so the next record after a bad line is the one above.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge import RagaugeError, score

PLACE = {"doc": "d.md", "start": 0, "end": 10}
GOLD = [
    {"qid": qid, "question": f"{qid}?", "answerable": True, "relevant": [PLACE]} for qid in "ab"
]
ANSWER = {"claim": "c", "citations": ["x"]}
GOOD: dict[str, Any] = {
    "topk": [{"id": "x", "doc": "d.md", "span": [0, 10]}],
    "answer_json": ANSWER,
}
IN_CHARACTERS: dict[str, Any] = {
    "topk": [{"id": "x", "doc": "d.md", "start_char": 0, "end_char": 10, "delta_s": 0.9}],
    "answer_json": ANSWER,
    "embed_model": "other",
    "latency_ms": 1000,
}


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return written(tmp_path / "gold.jsonl", GOLD)


def test_it_is_an_error_on_the_first_line_too(gold: Path, tmp_path: Path) -> None:
    rows = [{"qid": "b", **IN_CHARACTERS}, {"qid": "a", **GOOD}]
    with pytest.raises(RagaugeError) as failure:
        score(gold, written(tmp_path / "traces.jsonl", rows), profile="all")
    assert [problem.code for problem in failure.value.problems] == ["mixed-units"]


@pytest.mark.parametrize("bad_first", [True, False])
def test_what_it_recorded_is_no_other_trace_s(gold: Path, tmp_path: Path, bad_first: bool) -> None:
    rows = [{"qid": "a", **GOOD}, {"qid": "b", **IN_CHARACTERS}]
    traces = written(tmp_path / "traces.jsonl", rows[::-1] if bad_first else rows)
    scores = score(gold, traces, profile="all", on_bad_line="skip")
    assert scores.metrics["latency.total_ms"].value is None
    assert scores.metrics["semantic.delta_s_cited"].value is None
    assert scores.tally.scored == 1
    assert not any("other" in warning for warning in scores.warnings)


def test_under_ship_the_trace_above_it_counts(gold: Path, tmp_path: Path) -> None:
    rows = [{"qid": "a", **GOOD}, {"qid": "b", **GOOD}, {"qid": "b", **IN_CHARACTERS}]
    traces = written(tmp_path / "traces.jsonl", rows)
    scores = score(gold, traces, profile="ship", dialect="native", on_bad_line="skip")
    assert scores.tally.missing == 0
    assert not any("replaced" in warning for warning in scores.warnings)
