"""Question changes: how each question fared in two runs, by retrieval and by its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ragauge.compare.metric_deltas import QuestionPairs
from ragauge.gates.lost_results import LostResults
from ragauge.metrics.columns import Floats
from ragauge.model.comparison import (
    DEFAULT_K,
    KINDS,
    WORSE,
    AnswerChange,
    Kind,
    MatchLevel,
    QueryComparison,
)
from ragauge.model.labels import ABSENT, GOOD
from ragauge.model.scores import Scores
from ragauge.model.unit_ranks import UnitFindings
from ragauge.scoring.results import reciprocals
from ragauge.text import some

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


class UnitChange(NamedTuple):
    """What became of the units of a question: how many are found, which were lost and gained.

    `a` and `b` are how many are found within k, the mean over slots. `lost` and `gained` are places
    of units; neither is told where only the share that is found is compared.
    """

    kind: Kind
    lost: tuple[int, ...]
    gained: tuple[int, ...]
    a: float
    b: float


def change_of_units(
    one: UnitFindings, other: UnitFindings, *, k: int, tolerance: float
) -> UnitChange:
    """The kind of a question by all its units, which stand in the same order on both sides.

    regression   fewer units are found within k than before
    mixed        as many or more, but one was lost
    win          none was lost and one gained, or the same at a better mean reciprocal rank
    loss         the same at a worse one
    draw         anything else

    Of more than k units not all can be found, and which ones are is no matter: only the share that
    is found counts, and may fall by the tolerance. So it is where the sides differ in their number
    of units, as when two chunks became one.
    """
    slots = max(1, one.slots), max(1, other.slots)
    before, after = one.within(k), other.within(k)
    found = Fraction(sum(before), slots[0]), Fraction(sum(after), slots[1])
    lost: tuple[int, ...] = ()
    gained: tuple[int, ...] = ()
    units = len(before), len(after)
    if units[0] != units[1] or units[0] > k:
        change = found[1] / max(1, units[1]) - found[0] / max(1, units[0])
        fewer, more = change < -Fraction(str(tolerance)), change > 0
    else:
        shares = [
            count_b * slots[0] - count_a * slots[1]
            for count_a, count_b in zip(before, after, strict=True)
        ]
        lost = tuple(place for place, change in enumerate(shares) if change < 0)
        gained = tuple(place for place, change in enumerate(shares) if change > 0)
        fewer, more = found[1] < found[0], bool(gained)
    kind: Kind = "draw"
    if fewer:
        kind = "regression"
    elif lost:
        kind = "mixed"
    elif more:
        kind = "win"
    else:
        means = [
            sum((Fraction(1, rank) for ranks in side.ranks for rank in ranks if rank <= k), _ZERO)
            / (number * max(1, len(side.ranks)))
            for side, number in zip((one, other), slots, strict=True)
        ]
        if means[0] != means[1]:
            kind = "win" if means[1] > means[0] else "loss"
    return UnitChange(kind, lost, gained, float(found[0]), float(found[1]))


_change = lru_cache(1 << 14)(change_of_units)
"""Many questions are found at the same ranks, and fractions are slow."""


def in_order_of(
    names: Sequence[str], other_names: Sequence[str], findings: UnitFindings
) -> UnitFindings:
    """The units of the other run in the order of the first run's.

    A list of chunks that only one run has may change their order. Units whose name the first run
    does not know are those that were renamed, and take the places that are left.
    """
    if names == other_names or len(names) != len(other_names):
        return findings
    places = {name: place for place, name in enumerate(other_names)}
    left = [place for place, name in enumerate(other_names) if name not in names]
    order = [places[name] if name in places else left.pop(0) for name in names]
    return UnitFindings(findings.slots, tuple(findings.ranks[place] for place in order))


_ZERO = Fraction(0)


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
    units: tuple[UnitFindings, UnitFindings] | None
    names: tuple[str, ...]


class Judging(NamedTuple):
    """By what questions are judged: the cut-off, and how much recall of many units may fall.

    `why` are the known differences of the runs, which a note of a question that is worse names.
    """

    k: int = DEFAULT_K
    tolerance: float = 0.0
    why: str | None = None


def questions(
    a: Scores,
    b: Scores,
    pairs: QuestionPairs,
    *,
    levels: Mapping[tuple[str, int | None], tuple[MatchLevel, ...]],
    judging: Judging,
) -> tuple[QueryComparison, ...]:
    """How each common question changed, by retrieval and by its answer, ordered by id."""
    assert a.per_question is not None and b.per_question is not None
    first = reciprocals(a.per_question)[pairs.mine]
    second = reciprocals(b.per_question)[pairs.theirs]
    expected = (~(np.isnan(first) & np.isnan(second))).tolist()
    first, second = _over_all(first, pairs.a), _over_all(second, pairs.b)
    qids, turns = a.per_question.qids, a.per_question.turns
    slots = _slots_of(a), _slots_of(b)
    units = _paired_units(a, b, pairs)
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
        both, names = units(place) if expected[place] else (None, ())
        if both is not None and names:  # they are said only of what was lost or gained
            change = _change(*both, k=judging.k, tolerance=judging.tolerance)
            names = names if change.lost or change.gained else ()
        key = (
            id(one), id(other), gone, ranks, expected[place], cited, match_levels, lost, both, names
        )  # fmt: skip
        template = worded.get(key)
        if template is None:
            sides = _Sides(
                one, other, gone, ranks, expected[place], cited, match_levels, lost, both, names
            )
            template = worded[key] = _worded(sides, judging)
        changes.append(replace(template, query_id=qid, turn=turn, rungs=match_levels))
    return tuple(changes)


_Units = tuple[tuple[UnitFindings, UnitFindings] | None, tuple[str, ...]]


def _paired_units(a: Scores, b: Scores, pairs: QuestionPairs) -> Callable[[int], _Units]:
    """The units of each pair of questions, in one order, and their names as far as they are known.

    Slots that only the other run has are slots that found nothing.
    """
    assert a.per_question is not None and b.per_question is not None
    one, other = a.per_question.units, b.per_question.units
    if one is None or other is None:
        return lambda _: (None, ())
    all_a, all_b = one.findings(), other.findings()
    mine, theirs = pairs.mine.tolist(), pairs.theirs.tolist()
    missing_a, missing_b = pairs.a.missing.tolist(), pairs.b.missing.tolist()

    def units(place: int) -> _Units:
        findings_a, findings_b = all_a[mine[place]], all_b[theirs[place]]
        names_a = one.names[mine[place]] if one.names else ()
        names_b = other.names[theirs[place]] if other.names else ()
        findings_b = in_order_of(names_a, names_b, findings_b)
        both = (
            findings_a._replace(slots=findings_a.slots + missing_a[place]),
            findings_b._replace(slots=findings_b.slots + missing_b[place]),
        )
        return both, names_a

    return units


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


def _worded(sides: _Sides, judging: Judging) -> QueryComparison:
    first, second = sides.reciprocals
    kind: Kind | None = None
    change = None
    if sides.units is not None and not all(sides.gone):
        change = _change(*sides.units, k=judging.k, tolerance=judging.tolerance)
        kind = change.kind if change.kind != "draw" else _kind(0.0, 0.0, sides)
    elif sides.expected:
        kind = _kind(first, second, sides)
    ranks = _rank(first, sides.one), _rank(second, sides.other)
    return QueryComparison(
        query_id="",
        kind=kind,
        a_hit_rank=ranks[0] if sides.expected else None,
        b_hit_rank=ranks[1] if sides.expected else None,
        a_reciprocal=first if sides.expected else None,
        b_reciprocal=second if sides.expected else None,
        units=None if sides.units is None else len(sides.units[0].ranks),
        a_units=None if change is None else change.a,
        b_units=None if change is None else change.b,
        lost=_named(() if change is None else change.lost, sides),
        gained=_named(() if change is None else change.gained, sides),
        note=_note(kind, ranks, change, sides, judging),
        answer=_answer(sides),
    )


def _named(places: Sequence[int], sides: _Sides) -> tuple[str, ...]:
    """The names of units; where there are none, their numbers."""
    assert sides.units is not None or not places
    return tuple(
        sides.names[place] if place < len(sides.names) else f"no. {place + 1}" for place in places
    )


def _kind(first: float, second: float, sides: _Sides) -> Kind | None:
    """Win, loss, draw or regression of shares; a question without a result is worse than a miss.

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
    kind: Kind | None,
    ranks: tuple[int | None, int | None],
    change: UnitChange | None,
    sides: _Sides,
    judging: Judging,
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
    if change is not None:
        parts += _unit_notes(change, sides, judging.k)
    lower = sorted({level for level in sides.levels if level != "exact"})
    if lower:
        parts.append(f"matched by {', '.join(lower)}")
    if kind in WORSE and judging.why is not None:
        parts.append(f"known differences: {judging.why}")
    return "; ".join(parts) or None


def _unit_notes(change: UnitChange, sides: _Sides, k: int) -> list[str]:
    """How many units are found, where that changed, and which were lost."""
    assert sides.units is not None
    units = len(sides.units[0].ranks)
    parts = []
    if change.a != change.b and (units > 1 or len(sides.units[1].ranks) > 1):
        parts.append(f"{change.a:.4g}→{change.b:.4g} of {units} found within {k}")
    elif change.a != change.b and all(sides.reciprocals):  # it is still there, but below
        parts.append(f"{'not ' if change.b < change.a else ''}within {k}")
    if change.lost and units > 1:
        parts.append(f"lost {some(_named(change.lost, sides))}")
    return parts


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


def with_regression(change: QueryComparison) -> QueryComparison:
    """A question of which everything is known: whether it lost something, and its only kind."""
    if change.kind is None:
        return change
    lost = change.kind == "regression" or bool(change.lost)
    return replace(change, possible=(change.kind,), regression="yes" if lost else "no")
