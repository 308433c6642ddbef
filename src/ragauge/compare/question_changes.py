"""Question changes: how each question fared in two runs, by retrieval and by its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ragauge.compare.metric_deltas import QuestionPairs
from ragauge.gates.lost_results import LostResults
from ragauge.metrics.columns import Floats
from ragauge.model.comparison import KINDS, AnswerChange, Kind, MatchLevel, QueryComparison
from ragauge.model.labels import ABSENT, GOOD
from ragauge.model.scores import Scores
from ragauge.scoring.results import reciprocals

_REFUSED = ("OVER_REFUSAL", "REFUSAL_OK")
_CITING = ("citation.hit_rate", "citation.hit_rate_answerable", "answer.coverage")
"""Metrics that tell whether an answer cites the evidence; the first that was measured is asked."""
_SILENT = ("UNLABELLED", "NO_ANSWER")


class _Slots(NamedTuple):
    """The labels of the slots of a question on one side, the worst of them, and their number.

    `cause` is what refines the label. Slots that only the other side has are in the number.
    """

    label: str
    labels: Mapping[str, int]
    number: int
    cause: str | None = None


class _Sides(NamedTuple):
    """All that decides what is said of a question; the same for many of them."""

    one: _Slots
    other: _Slots
    gone: tuple[bool, bool]
    reciprocals: tuple[float, float]
    expected: bool
    cited: tuple[float, float]
    levels: tuple[MatchLevel, ...]
    lost: tuple[int, int]


def questions(
    a: Scores,
    b: Scores,
    pairs: QuestionPairs,
    *,
    levels: Mapping[tuple[str, int | None], tuple[MatchLevel, ...]],
    why: str | None,
) -> tuple[QueryComparison, ...]:
    """How each common question changed, by retrieval and by its answer, ordered by id."""
    assert a.per_question is not None and b.per_question is not None
    first = reciprocals(a.per_question)[pairs.mine]
    second = reciprocals(b.per_question)[pairs.theirs]
    expected = (~(np.isnan(first) & np.isnan(second))).tolist()
    first, second = _over_all(first, pairs.a), _over_all(second, pairs.b)
    qids, turns = a.per_question.qids, a.per_question.turns
    slots = _slots_of(a), _slots_of(b)
    # Nothing but the key decides what is said, and most questions share one: word each key once.
    worded: dict[tuple[object, ...], QueryComparison] = {}
    changes = []
    for place, (mine, theirs, gone, ranks, cited, lost, fewer) in enumerate(
        zip(
            pairs.mine.tolist(),
            pairs.theirs.tolist(),
            zip(pairs.a.absent.tolist(), pairs.b.absent.tolist(), strict=True),
            zip(np.nan_to_num(first).tolist(), np.nan_to_num(second).tolist(), strict=True),
            zip(_cited(a)[pairs.mine].tolist(), _cited(b)[pairs.theirs].tolist(), strict=True),
            zip(pairs.a.slots.tolist(), pairs.b.slots.tolist(), strict=True),
            zip(pairs.a.missing.tolist(), pairs.b.missing.tolist(), strict=True),
            strict=True,
        )
    ):
        qid, turn = qids[mine], turns[mine]
        match_levels = levels.get((qid, turn), ())
        one, other = slots[0](mine, fewer[0]), slots[1](theirs, fewer[1])
        key = (id(one), id(other), gone, ranks, expected[place], cited, match_levels, lost)
        template = worded.get(key)
        if template is None:
            sides = _Sides(one, other, gone, ranks, expected[place], cited, match_levels, lost)
            template = worded[key] = _worded(sides, why)
        changes.append(replace(template, query_id=qid, turn=turn, rungs=match_levels))
    return tuple(changes)


def _over_all(values: Floats, lost: LostResults) -> Floats:
    """Means over the slots of a question as means over those that are missing, too."""
    if not lost.missing.any():
        return values
    here = lost.there + lost.errored
    over_all: Floats = values * here / np.maximum(here + lost.missing, 1)
    return np.where(lost.missing > 0, over_all, values)


def _slots_of(scores: Scores) -> Callable[[int, int], _Slots]:
    """The labels of each question; the very same object for questions with the same labels."""
    labels, counts = scores.questions.labels, scores.questions.counts
    causes = scores.questions.causes
    by_labels: dict[object, _Slots] = {}

    def slots(place: int, fewer: int) -> _Slots:
        several = counts(place)
        label, cause = labels[place], causes[place]
        key = label, cause, fewer, None if several is None else tuple(sorted(several.items()))
        same_labels = by_labels.get(key)
        if same_labels is None:
            label_counts = {label: 1} if several is None else several
            number = sum(label_counts.values()) + fewer
            same_labels = by_labels[key] = _Slots(label, label_counts, number, cause)
        return same_labels

    return slots


def _worded(sides: _Sides, why: str | None) -> QueryComparison:
    first, second = sides.reciprocals
    kind = _kind(first, second, sides) if sides.expected else None
    ranks = _rank(first, sides.one), _rank(second, sides.other)
    return QueryComparison(
        query_id="",
        kind=kind,
        a_hit_rank=ranks[0] if sides.expected else None,
        b_hit_rank=ranks[1] if sides.expected else None,
        a_reciprocal=first if sides.expected else None,
        b_reciprocal=second if sides.expected else None,
        note=_note(kind, ranks, sides, why),
        answer=_answer(sides),
    )


def _kind(first: float, second: float, sides: _Sides) -> Kind | None:
    """Win, loss, draw or regression; a question without a result is worse than a miss.

    So is a slot without one.
    """
    gone, lost = sides.gone, sides.lost
    if all(gone):
        return None
    if first > 0 and second == 0:
        return "regression"
    if first == second:
        if any(gone):
            return "loss" if gone[1] else "win"
        return "draw" if lost[0] == lost[1] else "loss" if lost[1] > lost[0] else "win"
    return "win" if second > first else "loss"


def _rank(reciprocal: float, slots: _Slots) -> int | None:
    """The rank behind a reciprocal, where it is of one slot."""
    if reciprocal <= 0 or slots.number != 1:
        return None
    return round(1 / reciprocal)


def _note(
    kind: Kind | None, ranks: tuple[int | None, int | None], sides: _Sides, why: str | None
) -> str | None:
    parts = []
    gone = sides.gone
    if all(gone):
        parts.append("no result in either run")
    elif any(gone):
        parts.append(f"no result in run {'a' if gone[0] else 'b'}")
    for run, slots, lost in zip("ab", (sides.one, sides.other), sides.lost, strict=True):
        if lost:
            parts.append(f"{lost} of {slots.number} slots without a result in run {run}")
    first, second = sides.reciprocals
    if first > 0 and second == 0:
        parts.append("hit→miss")
    elif first == 0 and second > 0:
        parts.append("miss→hit")
    elif first != second and None not in ranks:
        parts.append(f"rank {ranks[0]}→{ranks[1]}")
    elif first != second:
        parts.append(f"mean reciprocal rank {first:.4f}→{second:.4f}")
    lower = sorted({level for level in sides.levels if level != "exact"})
    if lower:
        parts.append(f"matched by {', '.join(lower)}")
    if kind in ("loss", "regression") and why is not None:
        parts.append(f"known differences: {why}")
    return "; ".join(parts) or None


def _cited(scores: Scores) -> Floats:
    """How much of the evidence the answer to each question cites; -1 where that was not asked."""
    values = scores.per_question
    assert values is not None
    name = next((name for name in _CITING if name in values.metrics), None)
    if name is None:
        return np.full(len(values.qids), -1.0)
    return np.nan_to_num(values.of(name), nan=-1.0)


def _answer(sides: _Sides) -> AnswerChange | None:
    """How the answer changed; None where neither run answers at all."""
    one, other, gone, cited = sides.one, sides.other, sides.gone, sides.cited
    answers = [bool(slots.labels.keys() - {*_SILENT, *ABSENT}) for slots in (one, other)]
    if not any(answers):
        return None
    kind: Kind | None = None
    comparable = all(answered or absent for answered, absent in zip(answers, gone, strict=True))
    if comparable:
        kind = _kind(_share(one, GOOD), _share(other, GOOD), sides)
    before, after = _share(one, _REFUSED), _share(other, _REFUSED)
    refusal = None
    if comparable and before != after and not any(gone):
        refusal = "answered → refused" if after > before else "refused → answered"
    citations = None
    if cited[0] > 0 and cited[1] == 0:
        citations = "hit → miss"
    elif cited[0] == 0 and cited[1] > 0:
        citations = "miss → hit"
    return AnswerChange(
        kind=kind,
        a_label=one.label,
        b_label=other.label,
        refusal=refusal,
        citations=citations,
        a_cause=one.cause,
        b_cause=other.cause,
    )


def _share(slots: _Slots, labels: Sequence[str]) -> float:
    if not slots.number:
        return 0.0
    return sum(slots.labels.get(label, 0) for label in labels) / slots.number


def counts(kinds: Sequence[Kind | None]) -> dict[Kind, int]:
    """How many questions there are of each kind."""
    return {kind: sum(one == kind for one in kinds) for kind in KINDS}
