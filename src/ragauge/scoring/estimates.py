"""Estimates: how well a number is known from its questions, by the kind of number it is."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ragauge.metrics.columns import Floats, Ints
from ragauge.metrics.metric import SHARES, Metric, Quantile
from ragauge.stats.exact_sums import UNIT
from ragauge.stats.intervals import (
    FEWEST_UNBOUNDED,
    TAIL,
    Interval,
    by_group,
    delta_interval,
    group_sums,
    quantile,
    quantile_delta_interval,
    quantile_interval,
    questions_to_bound,
    score_interval,
    unbounded_interval,
)
from ragauge.stats.sample_size import detectable_change, detectable_drop


class Estimate(Struct, frozen=True):
    """How well a number is known: its 95 % interval, and the smallest change that would show.

    `reason` says what kept a bound, or the interval, from being known.
    """

    interval: Interval | None = None
    detectable: float | None = None
    reason: str | None = None

    @property
    def closed(self) -> tuple[float, float] | None:
        """The interval where both of its bounds are known, as those of differences always are."""
        if self.interval is None or self.interval[0] is None or self.interval[1] is None:
            return None
        return self.interval[0], self.interval[1]

    def scaled(self, low: float, high: float) -> Estimate:
        """The same of values that run from low to high, not from 0 to 1."""
        if self.interval is None or (low, high) == (0.0, 1.0):
            return self
        lower, upper = (
            None if bound is None else low + (high - low) * bound for bound in self.interval
        )
        change = None if self.detectable is None else (high - low) * self.detectable
        return Estimate((lower, upper), change, self.reason)


class PopulationSums(Struct, frozen=True):
    """Numerator and denominator of one metric for each question of its population.

    `records` counts the records of each; `groups` numbers the conversation of each, None where each
    question stands alone. `by_row`: the metric is a mean over records, not over questions.
    """

    tops: Floats
    bottoms: Floats
    records: Ints
    groups: Ints | None
    by_row: bool


def level_estimate(metric: Metric, population: PopulationSums) -> Estimate:
    """How well the number of a metric is known."""
    tops, bottoms, groups = population.tops, population.bottoms, population.groups
    if len(tops) == 0 or metric.sums:  # a sum is counted, and not a sample of anything
        return Estimate()
    if metric.quantile is not None:
        return _quantile_estimate(metric.quantile, tops / bottoms, groups)
    if metric.f1:
        return _f1_estimate(metric, population)
    if metric.ratio is not None:
        if groups is not None:
            return Estimate(None, None, "a ratio of sums over conversations")
        interval = unbounded_interval(tops, bottoms)
        return Estimate(interval, None, None if interval is not None else _FEW)
    values, sizes = tops, None
    if population.by_row:
        sizes = population.records
        values = tops / bottoms * sizes
    if not metric.bounded:
        interval = unbounded_interval(*_grouped(values, sizes, groups, metric.unit))
        return Estimate(interval, None, None if interval is not None else _FEW)
    low, high = metric.range
    if (low, high) != (0.0, 1.0):
        values = (values - low * (1 if sizes is None else sizes)) / (high - low)
    return _mean_estimate(metric, *_grouped(values, sizes, groups)).scaled(low, high)


def delta_estimate(
    metric: Metric,
    a: Floats,
    b: Floats,
    groups: Ints | None,
    *,
    max_drop: float = 0.0,
    looks: int = 1,
) -> Estimate:
    """How well the difference b - a of two runs is known; place i is the same question in both.

    What is detectable is a drop that is surely more than `max_drop`. Where the difference is the
    largest of so many `looks`, the interval holds for all of them at once.
    """
    tail = TAIL / looks
    if metric.quantile is not None:
        share = SHARES[metric.quantile]
        first, second = quantile(a, share), quantile(b, share)
        assert first is not None and second is not None
        of_a, of_b = (quantile_interval(values, share, groups, tail=tail) for values in (a, b))
        interval = quantile_delta_interval(first, second, of_a, of_b)
        reason = None if interval is not None else _open_bound(metric.quantile, len(a), of_a)
        return Estimate(interval, None, reason)
    if not metric.bounded:
        interval = unbounded_interval(*_grouped(b - a, None, groups, metric.unit), tail=tail)
        return Estimate(interval, None, None if interval is not None else _FEW)
    width = metric.range[1] - metric.range[0]
    sums, sizes = _grouped((b - a) / width, None, groups)
    means = sums if sizes is None else sums / sizes
    change = detectable_drop(means, max_drop=max_drop / width, tail=tail)
    interval = delta_interval(group_sums(sums, sizes), tail=tail)
    return Estimate(interval, change).scaled(0.0, width)


_MOST_SHARES = 5_040
_FEW = f"unbounded mean, n < {FEWEST_UNBOUNDED}"


def _grouped(
    sums: Floats, sizes: Ints | None, groups: Ints | None, unit: int = UNIT
) -> tuple[Floats, Ints | None]:
    """Sums and sizes of questions, put together by conversation where there are any."""
    if groups is None:
        return sums, sizes
    together, turns = by_group(sums, groups, unit)
    if sizes is None:
        return together, turns
    return together, np.rint(by_group(sizes.astype(np.float64), groups, 1)[0]).astype(np.int64)


def _mean_estimate(metric: Metric, sums: Floats, sizes: Ints | None) -> Estimate:
    groups = group_sums(sums, sizes)
    change = detectable_change(groups, higher_is_better=metric.better == "higher")
    return Estimate(score_interval(groups), change)


def _f1_estimate(metric: Metric, population: PopulationSums) -> Estimate:
    """F1 = 2J / (1 + J), and J = TP / (TP + FP + FN) is a rate of those that count in it.

    A question has twice its true positives above, and these with its false ones below; where it has
    several slots, the share of slots. In whole numbers of that share, as only the sizes of groups
    beside each other matter.
    """
    whole = min(int(np.lcm.reduce(np.unique(population.records))), _MOST_SHARES)
    scale = 1 / metric.unit if population.by_row else whole
    counted = np.rint((population.bottoms - population.tops / 2) * scale).astype(np.int64)
    inside = counted > 0
    if not inside.any():
        return Estimate()
    groups = population.groups
    sums, sizes = _grouped(
        population.tops[inside] / 2 * scale,
        counted[inside],
        None if groups is None else groups[inside],
        unit=1,
    )
    of_rate = _mean_estimate(metric, sums, sizes)
    assert of_rate.interval is not None and sizes is not None
    lower, upper = (None if bound is None else _f1(bound) for bound in of_rate.interval)
    change = None
    if of_rate.detectable is not None:
        rate = group_sums(sums, sizes).mean
        change = _f1(rate) - _f1(rate - of_rate.detectable)
    return Estimate((lower, upper), change)


def _f1(rate: float) -> float:
    return 2 * rate / (1 + rate)


def quantile_estimate(metric: Metric, values: Floats, groups: Ints) -> Estimate:
    """How well a quantile over records is known; those of one group share its luck."""
    assert metric.quantile is not None
    several = len(np.unique(groups)) < len(groups)
    return _quantile_estimate(metric.quantile, values, groups if several else None)


def _quantile_estimate(name: Quantile, values: Floats, groups: Ints | None) -> Estimate:
    interval = quantile_interval(values, SHARES[name], groups)
    reason = _open_bound(name, len(values), interval)
    return Estimate(None if interval == (None, None) else interval, None, reason)


def _open_bound(name: Quantile, n: int, interval: Interval) -> str | None:
    """Why a bound of a quantile is not known; None if both are."""
    if None not in interval:
        return None
    side = "from above" if interval[0] is not None else "from below"
    if interval == (None, None):
        side = "from either side"
    needed = questions_to_bound(SHARES[name])
    return f"n = {n} cannot bound {name} {side} ({needed} needed)"
