"""A metric over many runs: is the newest value beyond the noise, is there a trend, a change?

All three tests look at ranks only, so that neither the metric's scale nor the shape of its noise
matters. They assume that, as long as nothing changes, any order of the values is as likely as any
other; then each is wrong in at most 5 % of histories at p <= 0.05, however short these are. The
price is that few values cannot show anything: `FEWEST` says how many are needed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.stats.resampling import SEED

LEVEL = 0.05
FEWEST_BEFORE = 19
"""With 19 values before it, the newest is the worst of 20 by chance in 1 of 20 histories."""
FEWEST_TREND = 5
"""All of 5 values in order: 2 of their 120 orders; with 4 it is 2 of 24, more than 5 %."""
EXACT_TREND = 60
PERMUTATIONS = 9_999

Better = Literal["higher", "lower"]


class NewestTest(Struct, frozen=True, kw_only=True):
    """Whether the newest value is worse than those before it by more than their noise.

    p is one-sided; None where there are too few values before it. `rank` says how many of them are
    as bad or worse.
    """

    n: int
    rank: int
    p: float | None
    worst: float | None
    median: float | None


class TrendTest(Struct, frozen=True, kw_only=True):
    """Mann and Kendall's test: whether later values tend to be larger, or smaller.

    `tau` is the share of ordered pairs that rise minus that which fall; `slope` the median of all
    slopes, from one run to the next (Theil and Sen).
    """

    n: int
    s: int
    tau: float | None
    slope: float | None
    p: float | None


class ChangeTest(Struct, frozen=True, kw_only=True):
    """Pettitt's test: whether the values changed level, and at which place.

    `place` is that of the first value after the change; `before` and `after` are the medians.
    """

    n: int
    place: int | None
    k: float
    before: float | None
    after: float | None
    p: float | None


def newest_test(values: Sequence[float], better: Better, *, last: int = 20) -> NewestTest:
    """Compare the newest value with at most `last` before it.

    If nothing changed, each of them is as likely to be the worst: p is the share of all values,
    with the newest, that are as bad as it or worse. Exact, and ties only make it larger.
    """
    newest, before = values[-1], list(values[-1 - last : -1])
    sign = 1 if better == "higher" else -1
    rank = sum(sign * value <= sign * newest for value in before)
    n = len(before)
    p = (1 + rank) / (1 + n) if n >= FEWEST_BEFORE else None
    worst = None if not before else (min(before) if better == "higher" else max(before))
    return NewestTest(n=n, rank=rank, p=p, worst=worst, median=_median(before))


def trend_test(values: Sequence[float]) -> TrendTest:
    """Mann (1945) and Kendall: count the pairs that rise and those that fall.

    p is two-sided and exact, ties or not, up to 60 values: all orders of the values are counted, by
    their inversions. Beyond that it is normal, with the variance for ties.
    """
    n = len(values)
    s = ties = 0
    slopes = []
    for later in range(n):
        for earlier in range(later):
            rise = values[later] - values[earlier]
            s += (rise > 0) - (rise < 0)
            ties += rise == 0
            slopes.append(rise / (later - earlier))
    pairs = n * (n - 1) // 2 - ties
    if n < FEWEST_TREND:
        return TrendTest(n=n, s=s, tau=None, slope=None, p=None)
    sizes = [list(values).count(value) for value in set(values)]
    if pairs == 0:
        p = 1.0
    elif n <= EXACT_TREND:
        p = _exact_trend(sorted(sizes), abs(s), pairs)
    else:
        variance = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in sizes)) / 18
        z = max(0, abs(s) - 1) / math.sqrt(variance)  # s moves in steps of two: half a step off
        p = math.erfc(z / math.sqrt(2))
    tau = s / pairs if pairs else 0.0
    return TrendTest(n=n, s=s, tau=tau, slope=_median(slopes), p=p)


def _exact_trend(sizes: Sequence[int], s: int, pairs: int) -> float:
    """The share of orders in which |S| is at least as large.

    S is the number of pairs without ties minus twice the inversions, and orders of a list with
    groups of equal values have as many inversions as the q-multinomial coefficient says: it is
    built up group by group, each as a q-binomial.
    """
    counts = [1]
    placed = 0
    for size in sizes:
        for k in range(1, size + 1):
            counts = _divided(_multiplied(counts, placed + k), k)
        placed += size
    assert len(counts) == pairs + 1
    far = sum(count for inversions, count in enumerate(counts) if abs(pairs - 2 * inversions) >= s)
    return far / sum(counts)


def _multiplied(counts: list[int], power: int) -> list[int]:
    """Times 1 - q**power."""
    product = counts + [0] * power
    for place, count in enumerate(counts):
        product[place + power] -= count
    return product


def _divided(counts: list[int], power: int) -> list[int]:
    """Divided by 1 - q**power, which leaves nothing over."""
    quotient = list(counts)
    for place in range(power, len(quotient)):
        quotient[place] += quotient[place - power]
    assert not any(quotient[len(quotient) - power :])
    return quotient[: len(quotient) - power]


def change_test(values: Sequence[float], *, permutations: int = PERMUTATIONS) -> ChangeTest:
    """Pettitt (1979): the place that parts the values into the most different halves, by ranks.

    His formula for p is rough below some hundred values, so it is computed by permutations, whose
    seed is fixed: (1 + those at least as far) / (1 + all).
    """
    n = len(values)
    if n < FEWEST_TREND:
        return ChangeTest(n=n, place=None, k=0.0, before=None, after=None, p=None)
    ranks = _midranks(values)
    centred = ranks - (n + 1) / 2
    parted = np.abs(2 * np.cumsum(centred))[:-1]
    k = float(parted.max())
    if k == 0:
        return ChangeTest(n=n, place=None, k=0.0, before=None, after=None, p=1.0)
    words = np.random.SFC64(SEED).random_raw(permutations * n).reshape(permutations, n)
    orders = np.argsort(words, axis=1, kind="stable")
    far = np.abs(2 * np.cumsum(centred[orders], axis=1))[:, :-1].max(axis=1) >= k
    place = int(parted.argmax()) + 1
    return ChangeTest(
        n=n,
        place=place,
        k=k,
        before=_median(values[:place]),
        after=_median(values[place:]),
        p=(1 + int(np.count_nonzero(far))) / (1 + permutations),
    )


def _midranks(values: Sequence[float]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs, which is a whole number of halves."""
    ordered = sorted(values)
    first = {value: place for place, value in reversed(list(enumerate(ordered, 1)))}
    last = {value: place for place, value in enumerate(ordered, 1)}
    return np.array([(first[value] + last[value]) / 2 for value in values])


def _median(values: Sequence[float]) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
