"""Damage: which questions made a gate fail, and how much of it each is to blame for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ragauge import gate, score
from ragauge.model.scores import Scores, SliceResult
from ragauge.model.verdict import GateResult

GOLD: list[dict[str, Any]] = [
    {"qid": "q1", "question": "one?", "relevant": ["p1", "p2"], "lang": "de"},
    {"qid": "q2", "question": "two?", "relevant": ["p3"], "lang": "de"},
    {"qid": "q3", "question": "three?", "relevant": ["p4", "p5", "p6", "p7"], "lang": "en"},
    {"qid": "q4", "question": "four?", "relevant": ["p8"], "lang": "en"},
]


def scores(*hits: list[str]) -> Scores:
    traces = [{"qid": f"q{i}", "topk": ids} for i, ids in enumerate(hits, 1)]
    runs: list[Scores] = []
    score(GOLD, traces, profile="all", keep=lambda run: runs.append(run.scores))
    return runs[0]


BEFORE = scores(["p1", "p2"], ["p3"], ["p4", "p5", "p6"], ["z"])
AFTER = scores(["p2", "z"], ["z"], ["p4", "p5", "z"], ["p8"])


_LANGUAGE = {
    name: SliceResult(n=2, metrics=AFTER.metrics) for name in ("de", "en")
}  # two questions are too few for a value of their own
SLICED = replace(AFTER, slices={"language": _LANGUAGE})


def judged(table: dict[str, Any], now: Scores = AFTER, before: Scores = BEFORE) -> GateResult:
    (result,) = gate(now, {"retrieval.recall@5": {"min_n": 1, **table}}, baseline=before).gates
    return result


def test_a_drop_is_made_of_the_questions_that_lost() -> None:
    """1/2 of q1, all of q2 and 1/4 of q3 are lost; what q4 gained makes up for none of it."""
    damage = judged({"max_drop": 0.02}).damage
    assert [(one.query_id, one.before, one.value, one.damage) for one in damage] == [
        ("q2", 1.0, 0.0, 1.0), ("q1", 1.0, 0.5, 0.5), ("q3", 0.75, 0.5, 0.25),
    ]  # fmt: skip
    assert [one.share for one in damage] == pytest.approx([4 / 7, 2 / 7, 1 / 7])
    assert [one.lost for one in damage] == [("p3",), ("p1",), ("p6",)]


def test_a_gate_that_holds_has_no_damage() -> None:
    assert judged({"max_drop": 0.5}).damage == ()


def test_a_level_is_made_of_what_lies_below_the_best() -> None:
    """recall 1/2, 0, 1/2 and 1: what is missing is 1/2, 1 and 1/2."""
    result = judged({"threshold": 0.9})
    assert [(one.query_id, one.damage, one.before) for one in result.damage] == [
        ("q2", 1.0, None), ("q1", 0.5, None), ("q3", 0.5, None),
    ]  # fmt: skip
    assert sum(one.share for one in result.damage) == pytest.approx(1)


def test_less_is_better_is_turned_around() -> None:
    """Empty results: every question of the later run has none."""
    empty = scores([], [], [], [])
    (result,) = gate(
        empty,
        {"retrieval.empty": {"max_drop": 0.1, "min_n": 1}},
        baseline=BEFORE,
        allow_missing=True,
    ).gates
    assert [one.query_id for one in result.damage] == ["q1", "q2", "q3", "q4"]
    assert {one.share for one in result.damage} == {0.25}


@pytest.mark.parametrize(
    ("part", "status", "value", "questions"),
    [
        ("language=de", "fail", 0.75, ["q2", "q1"]),  # 1 and 1, then 1/2 and 0
        ("lang=de", "fail", 0.75, ["q2", "q1"]),
        ("lang=en", "pass", -0.375, []),  # 3/4 and 0, then 1/2 and 1
    ],
)
def test_a_drop_may_be_gated_on_a_slice(
    part: str, status: str, value: float, questions: list[str]
) -> None:
    """Only the questions of the slice are judged, and named."""
    result = judged({"max_drop": 0.02, "slice": part})
    assert (result.status, result.n) == (status, 2)
    assert result.value == pytest.approx(value)
    assert [one.query_id for one in result.damage] == questions


def test_a_slice_without_questions_is_not_evaluable() -> None:
    result = judged({"max_drop": 0.02, "slice": "lang=fr"})
    assert (result.status, result.code) == ("not-evaluable", "incomparable")
    assert "language=fr" in (result.reason or "")


def test_of_a_slice_whose_questions_are_not_known_none_is_named() -> None:
    """A file of an older version says what the slice came to, and not which questions are in it."""
    assert AFTER.per_question is not None
    old = replace(AFTER, per_question=replace(AFTER.per_question, slices={}))
    few = {"threshold": 0.9, "slice": "lang=de"}
    known, unknown = (judged(few, now) for now in (SLICED, replace(old, slices=SLICED.slices)))
    assert (known.status, [one.query_id for one in known.damage]) == ("fail", ["q2", "q1"])
    assert (unknown.status, unknown.damage) == ("fail", ())
