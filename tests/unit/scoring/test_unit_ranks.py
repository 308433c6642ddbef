"""Unit ranks: where every expected thing is found, whatever way the records came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge import score
from ragauge.codes import ExitCode
from ragauge.files.ranges import plan
from ragauge.model.scores import Scores
from ragauge.model.scores_document import from_document, json_text, to_document
from ragauge.model.unit_ranks import UnitFindings
from ragauge.model.verdict import Verdict
from ragauge.scoring import inputs
from ragauge.scoring.engines import choose
from ragauge.store.stored_scores import deserialise_scores, serialise_scores

GOLD: list[dict[str, Any]] = [
    {"qid": "pieces", "question": "one?", "relevant": ["p1", "p2", "p3"]},
    {"qid": "groups", "question": "two?", "groups": [["p1", "p2"], ["p4"]]},
    {"qid": "docs", "question": "three?", "expected_doc_ids": ["x.md", "y.md"]},
    {"qid": "graded", "question": "four?", "grades": {"p1": 0, "p2": 2, "p3": 1}},
    {"qid": "places", "question": "five?",
     "relevant": ["p9", {"doc": "x.md", "start": 0, "end": 10}]},
    {"qid": "nothing", "question": "six?", "answerable": False},
    {"qid": "missing", "question": "seven?", "relevant": ["p1"]},
]  # fmt: skip
TRACES: list[dict[str, Any]] = [
    {"qid": "pieces", "seed": 0, "topk": ["p3", "z", "p1"]},
    {"qid": "pieces", "seed": 1, "topk": ["z", "p3", "p3"]},
    {"qid": "groups", "topk": ["z", "p2", "p1"]},
    {"qid": "docs", "topk": [{"id": "c1", "doc": "z.md"}, {"id": "c2", "doc": "y.md"}]},
    {"qid": "graded", "topk": ["p1", "p3", "p2"]},
    {"qid": "places", "topk": [{"id": "c7", "doc": "x.md", "start": 0, "end": 4},
                               {"id": "c8", "doc": "x.md", "start": 4, "end": 8}]},
    {"qid": "nothing", "topk": ["z"]},
]  # fmt: skip
FOUND = [
    UnitFindings(2, ((3,), (), (1, 2))),
    UnitFindings(1, ((2,), ())),
    UnitFindings(1, ((), (2,))),
    UnitFindings(1, ((3,), (2,))),  # p1 has the grade 0
    UnitFindings(1, ((), (2,))),  # 4 of 10 bytes at rank 1, 8 of 10 at rank 2
    UnitFindings(1, ()),
    UnitFindings(1, ((),)),  # without a trace: a record that found nothing
]
NAMES = [
    ("p1", "p2", "p3"), ("p1 | p2", "p4"), ("x.md", "y.md"), ("p2", "p3"), ("p9", "x.md:0-10"),
    (), ("p1",),
]  # fmt: skip


def scored(gold: Any = GOLD, traces: Any = TRACES, **options: Any) -> Scores:
    runs: list[Scores] = []
    score(gold, traces, profile="all", keep=lambda run: runs.append(run.scores), **options)
    return runs[0]


def units(scores: Scores) -> tuple[list[UnitFindings], list[tuple[str, ...]]]:
    assert scores.per_question is not None
    assert scores.per_question.units is not None
    return scores.per_question.units.findings(), list(scores.per_question.units.names)


def test_units_are_groups_else_pieces_else_documents() -> None:
    """Each with the ranks of the slots that found it, and a name."""
    assert units(scored()) == (FOUND, NAMES)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ranges_and_workers_do_not_matter(
    tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A range a row, read from the last to the first, in this process or in others."""
    monkeypatch.setattr(choose, "RANGE_BYTES", 64)
    monkeypatch.setattr(inputs, "plan", lambda given: plan(given, range_bytes=64))
    monkeypatch.setattr(choose, "_worker_count", lambda *_: workers)
    files = []
    for name, rows in (("gold.jsonl", GOLD), ("trace.jsonl", TRACES)):
        files.append(tmp_path / name)
        files[-1].write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    assert units(scored(*files, workers=workers)) == (FOUND, NAMES)


def slots(scores: Scores) -> tuple[list[int], ...]:
    """Of each slot: found within 2, its wording, whether its label is good."""
    assert scores.per_question is not None
    columns = scores.per_question.units
    assert columns is not None
    assert columns.has_slots
    return columns.by_slot(2)[0].tolist(), columns.wording.tolist(), columns.good.tolist()


REPEATS = [
    {"qid": "p", "paraphrase": wording, "seed": seed, "topk": hits}
    for wording, seed, hits in [
        (1, 7, ["x", "y"]), (0, 8, ["z", "x"]), (0, 7, ["x", "y"]), (1, 8, ["z", "z", "x"]),
    ]
]  # fmt: skip


@pytest.mark.parametrize("turned", [False, True])
def test_repeats_of_a_wording_are_told_apart(turned: bool) -> None:
    """Slots are in the order of paraphrase and seed, however the traces stand."""
    gold = [{"qid": "p", "question": "one?", "paraphrases": ["one?", "1?"], "relevant": ["x", "y"]}]
    scores = scored(gold, REPEATS[::-1] if turned else REPEATS)
    assert slots(scores) == ([2, 1, 2, 0], [0, 0, 1, 1], [0, 0, 0, 0])
    verdict = Verdict(status="pass", exit_code=ExitCode.PASS, gates=(), blocks=())
    text = json_text(to_document(scores, verdict, full=True))
    assert slots(from_document(text.encode(), "file")) == slots(scores)
    scoring, columns = serialise_scores(scores, number=1, created_at="")
    assert slots(deserialise_scores(scoring, columns, "run")) == slots(scores)


def test_they_come_back_from_a_file_and_from_a_store() -> None:
    """Both keep names and ranks as they were."""
    scores = scored()
    verdict = Verdict(status="pass", exit_code=ExitCode.PASS, gates=(), blocks=())
    text = json_text(to_document(scores, verdict, full=True))
    assert units(from_document(text.encode(), "file")) == (FOUND, NAMES)
    scoring, columns = serialise_scores(scores, number=1, created_at="")
    assert units(deserialise_scores(scoring, columns, "run")) == (FOUND, NAMES)


def test_a_run_that_is_not_to_be_compared_does_not_collect_them() -> None:
    """Each finding takes memory that grows with the traces."""
    scores = score(GOLD, TRACES, profile="all", hashes=False)
    assert scores.per_question is not None
    assert scores.per_question.units is None
