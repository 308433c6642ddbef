"""Runs to hold components against: an empty one, an ordinary one, and random ones of any shape."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from ragauge import score
from ragauge.model.aggregate import Scores

Row = dict[str, Any]

ORDINARY_GOLD: list[Row] = [
    {"qid": "a1", "q": "What is X?", "answerable": True, "gold_ids": ["p1", "p2"],
     "gold_claim": "X is a mapping."},
    {"qid": "a2", "q": "How | why?", "answerable": True, "gold_ids": ["p3"], "gold_claim": "So."},
    {"qid": "u1", "q": "Where is Y?", "answerable": False, "gold_ids": []},
    {"qid": "x1", "q": "Who?", "gold_ids": []},
    {"qid": "m1", "q": "When?", "answerable": True, "gold_ids": ["p4"]},
]  # fmt: skip
ORDINARY_TRACE: list[Row] = [
    {"qid": "a1", "q": "What is X?", "chunks": [{"id": "p1"}, {"id": "p2"}, {"id": "p2"}],
     "answer": "X is a mapping.", "citations": ["p1"]},
    {"qid": "a2", "q": "How | why?", "chunks": [], "answer": "not in context", "citations": []},
    {"qid": "a2", "q": "How | why?", "chunks": [], "answer": "Because.", "citations": ["p9"]},
    {"qid": "u1", "q": "Where is Y?", "chunks": [{"id": "p1"}], "answer": "There."},
    {"qid": "x1", "q": "Who?", "chunks": [], "error": "timeout"},
    {"qid": "zz", "q": "Which?", "chunks": [], "answer": "That."},
]  # fmt: skip
"""Rows that every profile can read, with something of everything that can go wrong."""


def write(path: Path, rows: list[Row]) -> Path:
    """Write rows as JSON Lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def scored(folder: Path, gold: list[Row], trace: list[Row], **options: Any) -> Scores:
    """Score rows by way of files, all metrics."""
    options = {"metrics": ["*"], **options}
    gold_path, trace_path = write(folder / "gold.jsonl", gold), write(folder / "trace.jsonl", trace)
    return score(gold_path, trace_path, **options)


def random_rows(seed: int) -> tuple[list[Row], list[Row]]:
    """Gold and traces in every state: refused, errored, missing, answerless, unlabelled, odd."""
    rng = random.Random(seed)
    ids = ["p1", "p2", "p3", "p4"]

    def some() -> list[str]:
        return rng.choices(ids, k=rng.randrange(4))

    gold: list[Row] = []
    for number in range(rng.randrange(1, 9)):
        row: Row = {"qid": f"q{number}", "q": f"question {number}", "relevant": some()}
        if rng.random() < 0.8:
            row["answerable"] = rng.random() < 0.6
        if rng.random() < 0.7:
            row["claims_any"] = rng.choices(["right", "left", "up"], k=rng.randrange(3))
        if rng.random() < 0.5:
            row["constraints"] = ["Be brief."]
        gold.append(row)
    trace: list[Row] = []
    for _ in range(rng.randrange(16)):
        number = rng.randrange(10)
        row = {"qid": f"q{number}", "q": f"question {number}", "hits": some()}
        row["seed"] = rng.randrange(3)
        if rng.random() < 0.7:
            row["answer"] = rng.choice(["right", "the left one", "not in context", ""])
        if rng.random() < 0.7:
            row["citations"] = some()
        if rng.random() < 0.2:
            row[rng.choice(["refused", "grounded"])] = rng.random() < 0.5
        if rng.random() < 0.1:
            row["error"] = "late"
        if rng.random() < 0.4:
            row["constraints_echo"] = rng.choice([[], ["Be brief."], [" Be brief. ", "Be exact."]])
        trace.append(row)
    return gold, trace
