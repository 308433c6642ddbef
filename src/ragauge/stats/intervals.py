"""95 % intervals: Wilson for rates of few questions, the question-level bootstrap otherwise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ragauge.stats.resampling import (
    RESAMPLES,
    SEED,
    Draws,
    Floats,
    WholeColumns,
    in_blocks,
    weigh,
)

Z95 = 1.959963984540054
"""The normal quantile of 0.975: the two-sided 95 % interval."""
WILSON_BELOW = 30
"""Questions below which a rate has Wilson's interval: with so few, all may be 0 or all 1, and every
resample is then the same, so that a bootstrap would claim an interval without width."""
_CELLS = 1 << 17  # running sums at a time: half a megabyte stays in the cache


def wilson(successes: float, n: int) -> tuple[float, float]:
    """Wilson's score interval (1927) for a rate of `successes` in `n` (n > 0).

    It stays within 0 and 1, and has width even at 0 of n, where the interval of the normal
    approximation around the rate has none.
    """
    rate = successes / n
    spread = Z95 * Z95 / n
    middle = (rate + spread / 2) / (1 + spread)
    half = Z95 / (1 + spread) * math.sqrt(rate * (1 - rate) / n + spread / (4 * n))
    # The exact ends at 0 and n: rounding would leave them a hair off.
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return low, high


def bootstrap(
    numerators: Floats, denominators: Floats, *, resamples: int = RESAMPLES, seed: int = SEED
) -> list[tuple[float, float] | None]:
    """Percentile intervals of Σ numerators / Σ denominators, questions resampled together.

    Both arrays are (questions, metrics) of finite values: numerators of any sign and size,
    denominators not negative; a question outside a metric's population has 0 in both. All metrics
    share the resamples, so they stay comparable; a resample belongs to the places of the
    questions, so the caller sorts them. Values are taken in small steps (see `resampling.whole`),
    so the result does not depend on threads or on the linear algebra library.
    """
    ratios = ResampledRatios()
    for tops, bottoms in zip(numerators.T, denominators.T, strict=True):
        ratios.add(tops, bottoms)
    return ratios.intervals(resamples=resamples, seed=seed)


class ResampledRatios:
    """The ratios of sums that `bootstrap` is given as a whole, added metric by metric.

    What is kept of a metric is much smaller than its two columns of floating-point numbers.
    """

    def __init__(self) -> None:
        self._columns = WholeColumns()
        self._sizes: list[int] = []

    def __len__(self) -> int:
        return len(self._sizes)

    def add(self, numerators: Floats, denominators: Floats) -> None:
        """Add a metric; all have as many questions."""
        self._sizes.append(len(numerators))
        if len(numerators):
            self._columns.add(numerators)
            self._columns.add(denominators)

    def intervals(
        self, *, resamples: int = RESAMPLES, seed: int = SEED
    ) -> list[tuple[float, float] | None]:
        """The interval of each metric, in the order in which they were added."""
        if not any(self._sizes):
            return [None] * len(self._sizes)
        steps = self._columns.steps
        sums = self._columns.resample(resamples, seed)
        intervals: list[tuple[float, float] | None] = []
        for top in range(0, len(steps), 2):
            bottom = top + 1
            drawn = sums[:, bottom] > 0  # a resample without the metric's population is 0/0
            ratios = sums[drawn, top] / sums[drawn, bottom] / (steps[top] / steps[bottom])
            intervals.append(percentiles(ratios))
        return intervals


def bootstrap_quantile(
    values: Floats,
    share: float,
    *,
    cluster: NDArray[np.int64] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> tuple[float, float] | None:
    """Percentile interval of `quantile(values, share)`; None for no values."""
    if len(values) == 0:
        return None
    drawn = resampled_quantiles(values, share, cluster=cluster, resamples=resamples, seed=seed)
    return percentiles(drawn)


def resampled_quantiles(
    values: Floats,
    share: float,
    *,
    cluster: NDArray[np.int64] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Floats:
    """The quantile of each resample that draws a question at all.

    The questions have the weights that `bootstrap` gives to as many. A resample is the multiset in
    which each value stands as often as its weight says, so that nothing is rounded: a bound
    lies on or between two values. As there, a resample belongs to the places of the questions, so
    those of two columns of equal length go together, one by one.
    Questions of one `cluster` (numbered from 0) are drawn together.
    """
    _check_finite(values)
    n = len(values)
    units = n if cluster is None else int(cluster.max()) + 1
    order = np.argsort(values, kind="stable")
    ordered = values[order]

    def block(raw: np.random.SFC64, rows: int) -> Floats:
        draws, some = weigh(raw, rows, units), max(1, _CELLS // n)
        if cluster is not None:
            draws = np.take(draws, cluster, axis=1)
        parts = (draws[start : start + some] for start in range(0, rows, some))
        return np.concatenate([_quantiles(part, order, ordered, share) for part in parts])

    estimates: Floats = in_blocks(block, resamples, seed)
    return estimates


def quantile(values: Floats, share: float) -> float | None:
    """Interpolate linearly between order statistics, as numpy does; None for no values.

    This is type 7 of Hyndman and Fan (1996), "Sample quantiles in statistical packages": the
    smallest value is at 0, the largest at 1, and the others are evenly spaced between them. The
    order of the values does not matter.
    """
    _check_finite(values)
    return _between(np.sort(values), share) if len(values) else None


def percentiles(estimates: Floats) -> tuple[float, float] | None:
    """The middle 95 % of the estimates from all resamples; None if there are none."""
    if len(estimates) == 0:
        return None
    ordered = np.sort(estimates)
    return _between(ordered, 0.025), _between(ordered, 0.975)


def _between(ordered: Floats, share: float) -> float:
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    low, high = float(ordered[below]), float(ordered[above])
    return low + (high - low) * (place - below)  # the sum turns -0.0 into 0.0 as well


def _quantiles(draws: Draws, order: Draws, ordered: Floats, share: float) -> Floats:
    """The quantile of each resample that draws a question at all.

    The running sum of the weights in the order of the values goes on from row to row: a value of
    rank r in its row is the first whose sum is more than r beyond the end of the row before.
    """
    running = np.take(draws, order, axis=1).cumsum(dtype=np.int32)
    ends = running[len(order) - 1 :: len(order)].astype(np.int64)
    starts = np.concatenate([[0], ends[:-1]])
    drawn = ends > starts
    starts, last = starts[drawn], (ends - starts)[drawn] - 1
    places = share * last
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, last)
    ranks = (np.stack([below, above]) + starts).astype(np.int32)
    cells = np.searchsorted(running, ranks, side="right")
    low, high = ordered[cells - np.flatnonzero(drawn) * len(order)]
    middle: Floats = low + (high - low) * (places - below)
    return middle


def _check_finite(values: Floats) -> None:
    if not np.isfinite(values).all():
        raise ValueError("a quantile needs finite values; leave questions without a value out")
