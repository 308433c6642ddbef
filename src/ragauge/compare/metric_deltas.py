"""Metric deltas: the difference of each metric between two runs, over the questions they share.

Every difference is paired by question. Intervals are closed forms (decision 0050); p is exact
(McNemar) where all values are 0 or 1, and by flips of signs otherwise (decision 0017).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.gates.drops import (
    common_questions,
    conversations_of,
    incomparable,
    numbered,
    sum_by_conversation,
)
from ragauge.gates.lost_results import FilledResults, LostResults, fill_worst, lost_results
from ragauge.metrics.columns import Bools, Floats, Ints
from ragauge.metrics.metric import SHARES, Metric
from ragauge.model.comparison import ComparedSlice, Delta, SliceDelta
from ragauge.model.phrases import count
from ragauge.model.scores import MetricResult, Scores
from ragauge.scoring.estimates import Estimate, delta_estimate
from ragauge.stats import exact_sums
from ragauge.stats.intervals import quantile
from ragauge.stats.paired import permutation, quantile_permutation
from ragauge.stats.significance import holm, mcnemar


class QuestionPairs(Struct, frozen=True):
    """The questions that two runs have in common: their places on either side, in one order.

    `a` and `b` say what each side lacks of them, and of the slots that the other has.
    """

    mine: Ints
    theirs: Ints
    a: LostResults
    b: LostResults
    conversations: Ints | None

    def notes(self) -> list[str]:
        """What a reader should know of slots that one side lacks."""
        notes = []
        for name, side in (("a", self.a), ("b", self.b)):
            slots, questions = int(side.slots.sum()), int(np.count_nonzero(side.slots))
            if slots and side.counted:
                lost = f"{count(slots, 'slot')} of {count(questions, 'question')}"
                notes.append(f"run {name} has no result for {lost}: counted as the worst there")
        return notes

    def only(self, chosen: Bools) -> QuestionPairs:
        """Some of the questions."""
        conversations = None
        if self.conversations is not None:
            conversations = numbered(self.conversations[chosen])
        return QuestionPairs(
            self.mine[chosen],
            self.theirs[chosen],
            self.a.only(chosen),
            self.b.only(chosen),
            conversations,
        )


def pair(a: Scores, b: Scores) -> QuestionPairs:
    """Find the questions that two runs have in common."""
    assert a.per_question is not None and b.per_question is not None
    mine, theirs, _ = common_questions(a.per_question, b.per_question)
    lost_a = lost_results(a, mine, beside=b, there=theirs)
    lost_b = lost_results(b, theirs, beside=a, there=mine)
    conversations = None
    if any(turn is not None for turn in a.per_question.turns):
        conversations = conversations_of(a.per_question, mine)
    return QuestionPairs(mine, theirs, lost_a, lost_b, conversations)


class _MetricColumn(Struct):
    """One metric on the common questions, before its delta is known."""

    name: str
    metric: Metric
    a: Floats
    b: Floats
    inside: Bools
    filled: FilledResults


def deltas(a: Scores, b: Scores, pairs: QuestionPairs, gated: Set[str]) -> tuple[Delta, ...]:
    """The difference of each metric, with interval and p-value over the common questions.

    p-values are corrected over the gated metrics, or over those of the profile where there are
    none: what a headline may call a change. Others only inform.
    """
    names = [*a.metrics, *(name for name in b.metrics if name not in a.metrics)]
    by_name: dict[str, Delta] = {}
    means: list[_MetricColumn] = []
    for name in names:
        trouble = column = None
        values = _value(a.metrics.get(name)), _value(b.metrics.get(name))
        if _by_question(name) and values != (None, None):
            trouble = incomparable(name, b, a)
            column = _column(name, a, b, pairs) if trouble is None else None
        if column is None or not column.inside.any():
            by_name[name] = _without(name, a, b, trouble, column)
        elif column.metric.aggregate == "mean":
            means.append(column)
        else:
            by_name[name] = _quantile_delta(column, pairs)
    by_name.update(zip([column.name for column in means], _mean_deltas(means, pairs), strict=True))
    marked = [replace(by_name[name], gated=name in gated) for name in names]
    return corrected(marked, b)


def corrected(marked: Sequence[Delta], b: Scores) -> tuple[Delta, ...]:
    """Differences with their p-values corrected, over the gated metrics or those of the profile."""
    names = {delta.metric for delta in marked}
    gated = {delta.metric for delta in marked if delta.gated}
    family = gated or _profile_metrics(b) & names or names
    # Metrics alone that decide: a table of sixty that only inform would make every p meaningless.
    adjusted = iter(holm([delta.p for delta in marked if delta.metric in family]))
    return tuple(
        replace(delta, p_holm=next(adjusted)) if delta.metric in family else delta
        for delta in marked
    )


def _profile_metrics(scores: Scores) -> set[str]:
    """The metrics of the profile that a run was scored by."""
    profile = registry.profiles().get(scores.profile)
    if profile is None:  # of another version, or of somebody's own
        return set()
    return {chosen.id for chosen in registry.select(profile.metrics, scores.k)}


MOST_PARTS = 200
"""Of a dimension with more parts, such as documents, the largest are compared."""


def slice_deltas(
    a: Scores, b: Scores, pairs: QuestionPairs, metrics: Sequence[str]
) -> dict[str, dict[str, ComparedSlice]]:
    """The changes of some metrics over each slice, with intervals.

    A slice with fewer questions than `min_n` has no values, as in scores.
    """
    assert b.per_question is not None
    place_of = {place: number for number, place in enumerate(pairs.theirs.tolist())}
    columns = [
        _column(name, a, b, pairs)
        for name in metrics
        if _by_question(name) and name in a.metrics and incomparable(name, b, a) is None
    ]
    slices: dict[str, dict[str, ComparedSlice]] = {}
    for dimension, parts in b.per_question.slices.items():
        chosen = {
            name: [place_of[place] for place in places.tolist() if place in place_of]
            for name, places in parts.items()
        }
        largest = sorted(chosen, key=lambda name: (-len(chosen[name]), name))[:MOST_PARTS]
        compared = {
            name: ComparedSlice(
                n=len(chosen[name]),
                deltas=_slice(columns, pairs, chosen[name], b.options.min_n),
            )
            for name in sorted(largest)
            if chosen[name]
        }
        if compared:
            slices[dimension] = compared
    return slices


def parts_of_questions(scores: Scores) -> dict[tuple[str, int | None], tuple[str, ...]]:
    """The slices that each question is in, as `type=table`."""
    values = scores.per_question
    assert values is not None
    names: list[list[str]] = [[] for _ in values.qids]
    for dimension, parts in values.slices.items():
        for part, places in parts.items():
            for place in places.tolist():
                names[place].append(f"{dimension}={part}")
    keys = zip(values.qids, values.turns, strict=True)
    return {key: tuple(own) for key, own in zip(keys, names, strict=True)}


def _slice(
    columns: Sequence[_MetricColumn], pairs: QuestionPairs, places: Sequence[int], min_n: int
) -> tuple[SliceDelta, ...]:
    deltas = []
    inside = np.zeros(len(pairs.mine), np.bool_)
    inside[list(places)] = True
    for column in columns:
        part = _MetricColumn(
            column.name, column.metric, column.a, column.b, column.inside & inside, column.filled
        )
        n = int(np.count_nonzero(part.inside))
        if n < max(1, min_n):
            continue
        share = SHARES.get(column.metric.aggregate)
        first, second = (
            exact_sums.mean(side[part.inside])
            if share is None
            else quantile(side[part.inside], share)
            for side in (part.a, part.b)
        )
        assert first is not None and second is not None
        deltas.append(
            SliceDelta(
                metric=column.name,
                better=column.metric.better,
                a=first,
                b=second,
                delta=second - first + 0.0,
                n=n,
                interval=_estimate(part, pairs).closed,
            )
        )
    return tuple(deltas)


def _by_question(name: str) -> bool:
    metric = registry.metrics().get(name.partition("@")[0])
    return metric is None or metric.aggregate not in ("ratio", "share", "sum")


def _column(name: str, a: Scores, b: Scores, pairs: QuestionPairs) -> _MetricColumn:
    assert a.per_question is not None and b.per_question is not None
    metric = registry.metrics()[name.partition("@")[0]]
    one, other = a.per_question.of(name)[pairs.mine], b.per_question.of(name)[pairs.theirs]
    filled = fill_worst(metric, (one, other), (pairs.a, pairs.b))
    return _MetricColumn(name, metric, one, other, ~np.isnan(one) & ~np.isnan(other), filled)


def _without(
    name: str, a: Scores, b: Scores, trouble: str | None, column: _MetricColumn | None
) -> Delta:
    """The difference of what is not made of values of questions, or of what has no value."""
    one, other = a.metrics.get(name), b.metrics.get(name)
    either = one or other
    assert either is not None
    first, second = _value(one), _value(other)
    defined = first is not None and second is not None and trouble is None
    reason = trouble
    if not defined and reason is None:
        reason = "no question has a value in both runs"
        if column is not None and column.filled.note:
            reason += f"; {column.filled.note}"
    elif defined:
        reason = "not made of values of questions: no interval"
    return Delta(
        metric=name,
        better=either.better,
        a=first,
        b=second,
        delta=second - first if defined and second is not None and first is not None else None,
        n=min(one.n if one is not None else 0, other.n if other is not None else 0),
        reason=reason,
    )


def _value(result: MetricResult | None) -> float | None:
    return None if result is None else result.value


def _mean_deltas(columns: Sequence[_MetricColumn], pairs: QuestionPairs) -> list[Delta]:
    """All means at once: every flip of signs is drawn once for all metrics.

    Where values are 0 or 1 the exact test of McNemar stands for all flips of signs; where nothing
    differs there is nothing to draw.
    """
    if not columns:
        return []
    differences = np.stack(
        [np.where(column.inside, column.b - column.a, 0.0) for column in columns], axis=1
    )
    inside = np.stack([column.inside for column in columns], axis=1).astype(np.float64)
    # McNemar counts questions one by one, and turns of a conversation are not independent.
    binary = [pairs.conversations is None and _binary(column) for column in columns]
    moved = [
        (int(np.count_nonzero(changes > 0)), int(np.count_nonzero(changes < 0)))
        for changes in differences.T
    ]
    if pairs.conversations is not None:
        differences, inside = (
            np.concatenate([sum_by_conversation(each, pairs.conversations) for each in array.T], 1)
            for array in (differences, inside)
        )
    changed = [place for place, (up, down) in enumerate(moved) if up or down]
    ps: dict[int, float | None] = {
        place: mcnemar(*moved[place]) for place in range(len(columns)) if binary[place]
    }
    not_binary = [place for place in changed if not binary[place]]
    if not_binary:
        flipped = permutation(differences[:, not_binary], inside=inside[:, not_binary] > 0)
        ps |= dict(zip(not_binary, flipped, strict=True))
    mean_deltas = []
    for place, column in enumerate(columns):
        mean_deltas.append(
            _delta(
                column,
                exact_sums.mean(column.a[column.inside]),
                exact_sums.mean(column.b[column.inside]),
                _estimate(column, pairs),
                ps.get(place, 1.0),
                "mcnemar" if binary[place] else "permutation",
            )
        )
    return mean_deltas


def _binary(column: _MetricColumn) -> bool:
    both = np.concatenate([column.a[column.inside], column.b[column.inside]])
    return bool(((both == 0) | (both == 1)).all())


def _quantile_delta(column: _MetricColumn, pairs: QuestionPairs) -> Delta:
    share = SHARES[column.metric.aggregate]
    one, other = column.a[column.inside], column.b[column.inside]
    p = quantile_permutation(one, other, share, cluster=_talks(column, pairs))
    first, second = quantile(one, share), quantile(other, share)
    return _delta(column, first, second, _estimate(column, pairs), p, "permutation")


def _estimate(column: _MetricColumn, pairs: QuestionPairs) -> Estimate:
    one, other = column.a[column.inside], column.b[column.inside]
    return delta_estimate(column.metric, one, other, _talks(column, pairs))


def _talks(column: _MetricColumn, pairs: QuestionPairs) -> Ints | None:
    """The conversation of each question of a column; None where each is its own."""
    if pairs.conversations is None:
        return None
    return numbered(pairs.conversations[column.inside])


def _delta(
    column: _MetricColumn,
    first: float | None,
    second: float | None,
    estimate: Estimate,
    p: float | None,
    test: Literal["mcnemar", "permutation"],
) -> Delta:
    assert first is not None and second is not None
    return Delta(
        metric=column.name,
        better=column.metric.better,
        a=first,
        b=second,
        delta=second - first + 0.0,
        n=int(np.count_nonzero(column.inside)),
        interval=estimate.closed,
        p=p,
        test=test if p is not None else None,
        detectable=estimate.detectable,
        reason=column.filled.note,
        lost=column.filled != FilledResults(),
    )
