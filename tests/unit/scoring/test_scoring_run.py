"""Reasons of errors: counted for the traces that count, whoever reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ragauge.gates.judge import gate
from ragauge.model.scores_document import from_document, json_text, to_document
from ragauge.scoring.score import score
from tests.support.cases import cases

Row = dict[str, Any]
GOLD: list[Row] = [
    {"qid": f"Q{n}", "question": f"{n}?", "answerable": True, "relevant": ["a"]} for n in range(40)
]


def lines(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def failing(number: int, message: str) -> Row:
    return {"qid": f"Q{number}", "hits": [], "error": message}


@cases("workers", [0, 2])
@cases("profile", ["all", "ship", "kb"])
def test_reasons_add_up_to_the_traces_with_an_error(
    tmp_path: Path, workers: int, profile: str
) -> None:
    """30 of one reason, 5 of another; a trace that a later one replaces is not counted."""
    rows = [failing(39, "replaced by a later one"), failing(99, "of no gold item")]
    rows += [failing(n, f"http://127.0.0.1:{5000 + n}/: connection refused") for n in range(30)]
    rows += [failing(n, f"KeyError: 'Q{n}'") for n in range(30, 35)]
    rows += [{"qid": f"Q{n}", "hits": ["a"]} for n in range(35, 40)]
    gold, trace = lines(tmp_path / "gold.jsonl", GOLD), lines(tmp_path / "trace.jsonl", rows)
    scores = score(gold, trace, profile=profile, workers=workers)
    assert list(scores.errors.items()) == [("connection refused", 30), ("KeyError: 'Q…'", 5)]
    assert sum(scores.errors.values()) == scores.tally.errored
    sentence = "35 traces with an error: 30 × connection refused, 5 × KeyError: 'Q…'"
    assert sentence in scores.warnings
    document = json_text(to_document(scores, gate(scores), full=True))
    assert from_document(document.encode(), "saved").errors == scores.errors


def test_scores_without_errors_have_no_reasons(tmp_path: Path) -> None:
    gold = lines(tmp_path / "gold.jsonl", GOLD)
    trace = lines(tmp_path / "trace.jsonl", [{"qid": "Q1", "hits": ["a"]}])
    scores = score(gold, trace, profile="all")
    assert scores.errors == {}
    assert "errors" not in to_document(scores, gate(scores), full=True)
