"""Contrast: two runs of the same questions, metric by metric and question by question."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.gates.drops import common, incomparable, together
from ragauge.gates.lost_results import Filling, Lost, fill, lost
from ragauge.metrics.columns import Bools, Floats, Ints
from ragauge.metrics.metric import SHARES, Metric
from ragauge.model.comparison import (
    Delta,
)
from ragauge.model.phrases import count
from ragauge.model.scores import MetricResult, Scores
from ragauge.stats import exact_sums
from ragauge.stats.intervals import bootstrap, quantile
from ragauge.stats.paired import paired_quantiles, permutation
from ragauge.stats.sample_size import detectable
from ragauge.stats.significance import holm, mcnemar


class Pairs(Struct, frozen=True):
    """The questions that two runs have in common: their places on either side, in one order.

    `a` and `b` say what each side lacks of them, and of the slots that the other has.
    """

    mine: Ints
    theirs: Ints
    a: Lost
    b: Lost
    talks: Ints | None

    def notes(self) -> list[str]:
        """What a reader should know of slots that one side lacks."""
        found = []
        for name, side in (("a", self.a), ("b", self.b)):
            slots, questions = int(side.slots.sum()), int(np.count_nonzero(side.slots))
            if slots and side.counted:
                told = f"{count(slots, 'slot')} of {count(questions, 'question')}"
                found.append(f"run {name} has no result for {told}: counted as the worst there")
        return found

    def only(self, chosen: Bools) -> Pairs:
        """Some of the questions."""
        talks = None
        if self.talks is not None:
            talks = np.unique(self.talks[chosen], return_inverse=True)[1].astype(np.int64)
        return Pairs(
            self.mine[chosen], self.theirs[chosen], self.a.only(chosen), self.b.only(chosen), talks
        )


def pair(a: Scores, b: Scores) -> Pairs:
    """Find the questions that two runs have in common."""
    assert a.per_question is not None and b.per_question is not None
    mine, theirs, _ = common(a.per_question, b.per_question)
    one = lost(a, mine, beside=b, there=theirs)
    other = lost(b, theirs, beside=a, there=mine)
    talks = None
    if any(turn is not None for turn in a.per_question.turns):
        names = np.array([a.per_question.qids[place] for place in mine.tolist()])
        talks = np.unique(names, return_inverse=True)[1].astype(np.int64)
    return Pairs(mine, theirs, one, other, talks)


class _Column(Struct):
    """One metric on the common questions, before its delta is known."""

    name: str
    metric: Metric
    a: Floats
    b: Floats
    inside: Bools
    filled: Filling


def deltas(a: Scores, b: Scores, pairs: Pairs, gated: Set[str]) -> tuple[Delta, ...]:
    """The difference of each metric, with interval and p-value over the common questions."""
    names = [*a.metrics, *(name for name in b.metrics if name not in a.metrics)]
    found: dict[str, Delta] = {}
    means: list[_Column] = []
    for name in names:
        trouble = column = None
        if _by_question(name) and (_valued(a, name) or _valued(b, name)):
            trouble = incomparable(name, b, a)
            column = _column(name, a, b, pairs) if trouble is None else None
        if column is None or not column.inside.any():
            found[name] = _without(name, a, b, trouble, column)
        elif column.metric.aggregate == "mean":
            means.append(column)
        else:
            found[name] = _quantile_delta(column, pairs)
    found.update(zip([each.name for each in means], _mean_deltas(means, pairs), strict=True))
    marked = [replace(found[name], gated=name in gated) for name in names]
    corrected = iter(holm([each.p for each in marked if each.gated]))
    return tuple(replace(each, p_holm=next(corrected)) if each.gated else each for each in marked)


def _valued(scores: Scores, name: str) -> bool:
    return _value(scores.metrics.get(name)) is not None


def _by_question(name: str) -> bool:
    metric = registry.metrics().get(name.partition("@")[0])
    return metric is None or metric.aggregate not in ("ratio", "share")


def _column(name: str, a: Scores, b: Scores, pairs: Pairs) -> _Column:
    assert a.per_question is not None and b.per_question is not None
    metric = registry.metrics()[name.partition("@")[0]]
    one, other = a.per_question.of(name)[pairs.mine], b.per_question.of(name)[pairs.theirs]
    filled = fill(metric, (one, other), (pairs.a, pairs.b))
    return _Column(name, metric, one, other, ~np.isnan(one) & ~np.isnan(other), filled)


def _without(name: str, a: Scores, b: Scores, trouble: str | None, column: _Column | None) -> Delta:
    """The difference of what is not made of values of questions, or of what has no value."""
    one, other = a.metrics.get(name), b.metrics.get(name)
    given = one or other
    assert given is not None
    first, second = _value(one), _value(other)
    known = first is not None and second is not None and trouble is None
    reason = trouble
    if not known and reason is None:
        reason = "no question has a value in both runs"
        if column is not None and column.filled.told:
            reason += f"; {column.filled.told}"
    elif known:
        reason = "not made of values of questions: no interval"
    return Delta(
        metric=name,
        better=given.better,
        a=first,
        b=second,
        delta=second - first if known and second is not None and first is not None else None,
        n=min(one.n if one is not None else 0, other.n if other is not None else 0),
        reason=reason,
    )


def _value(result: MetricResult | None) -> float | None:
    return None if result is None else result.value


def _mean_deltas(columns: Sequence[_Column], pairs: Pairs) -> list[Delta]:
    """All means at once: every resample and every flip of signs is drawn once for all metrics.

    Where values are 0 or 1 the exact test of McNemar stands for all flips of signs; where nothing
    differs there is nothing to draw.
    """
    if not columns:
        return []
    differences = np.stack([np.where(each.inside, each.b - each.a, 0.0) for each in columns], 1)
    inside = np.stack([each.inside for each in columns], axis=1).astype(np.float64)
    binary = [pairs.talks is None and _binary(each) for each in columns]
    moved = [
        (int(np.count_nonzero(column > 0)), int(np.count_nonzero(column < 0)))
        for column in differences.T
    ]
    if pairs.talks is not None:
        differences = np.concatenate([together(each, pairs.talks) for each in differences.T], 1)
        inside = np.concatenate([together(each, pairs.talks) for each in inside.T], axis=1)
    intervals: dict[int, tuple[float, float] | None] = {}
    some = [place for place, each in enumerate(moved) if any(each)]
    if some and len(inside) > 1:
        found = bootstrap(differences[:, some], inside[:, some])
        intervals = dict(zip(some, found, strict=True))
    ps: dict[int, float | None] = {
        place: mcnemar(*moved[place]) for place in range(len(columns)) if binary[place]
    }
    others = [place for place in some if not binary[place]]
    if others:
        flipped = permutation(differences[:, others], inside=inside[:, others] > 0)
        ps |= dict(zip(others, flipped, strict=True))
    made = []
    for place, each in enumerate(columns):
        interval = None
        if np.count_nonzero(inside[:, place]) > 1:
            interval = intervals.get(place, (0.0, 0.0))
        made.append(
            _delta(
                each,
                exact_sums.mean(each.a[each.inside]),
                exact_sums.mean(each.b[each.inside]),
                interval,
                ps.get(place, 1.0),
                "mcnemar" if binary[place] else "permutation",
            )
        )
    return made


def _binary(column: _Column) -> bool:
    both = np.concatenate([column.a[column.inside], column.b[column.inside]])
    return bool(((both == 0) | (both == 1)).all())


def _quantile_delta(column: _Column, pairs: Pairs) -> Delta:
    share = SHARES[column.metric.aggregate]
    one, other = column.a[column.inside], column.b[column.inside]
    cluster = None
    if pairs.talks is not None:
        numbers = np.unique(pairs.talks[column.inside], return_inverse=True)[1]
        cluster = numbers.astype(np.int64)
    interval, p = paired_quantiles(one, other, share, cluster=cluster)
    first, second = quantile(one, share), quantile(other, share)
    return _delta(column, first, second, interval if len(one) > 1 else None, p, "permutation")


def _delta(
    column: _Column,
    first: float | None,
    second: float | None,
    interval: tuple[float, float] | None,
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
        interval=interval,
        p=p,
        test=test if p is not None else None,
        detectable=detectable(interval),
        reason=column.filled.told,
        lost=column.filled != Filling(),
    )
