"""95 % intervals in closed form: nothing is drawn, so there is no seed and nothing to repeat.

Which method for which number was chosen by simulated coverage (decision 0050): a number near 0 or 1
is where decisions are made, and there a bootstrap of a few questions that agree has no width at
all. Sums are exact whole numbers, so that the order of questions cannot matter; what follows is
only + - × ÷ and √, which every platform rounds alike.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.stats import exact_sums
from ragauge.stats.exact_sums import UNIT

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Interval = tuple[float | None, float | None]
"""Lower and upper bound; None where that many questions cannot bound the number on that side."""

Z95 = 1.959963984540054
"""The normal quantile of 0.975: the two-sided 95 % interval."""
Z80 = 0.8416212335729143
"""The normal quantile of 0.80: four runs of five."""
TAIL = 0.025
"""What an interval of 95 % leaves out on either side."""
FEWEST_UNBOUNDED = 100
"""Groups from which a mean of values without an upper end has an interval: with fewer, one value
that is far out, and was not seen yet, can move it anywhere."""
_ROUNDING = 1e-9  # of a count that is whole but for the last bits


def normal_quantile(tail: float) -> float:
    """How many standard errors leave so much out on one side."""
    if tail == TAIL:
        return Z95
    from statistics import NormalDist  # slow to import, and mostly not needed

    return NormalDist().inv_cdf(1 - tail)


class GroupSums(Struct, frozen=True):
    """Exact sums of values in 0 to 1 over groups: all that an interval of their mean needs.

    A group is a conversation, or else one question; for a mean over rows it is the question and its
    size the number of rows. `total` and `products` (of sum and size) are in steps of 1 / UNIT,
    `squares` in steps of their square.
    """

    groups: int
    n: int  # sum of sizes
    sizes_squared: int
    sizes_fourth: int
    total: int
    squares: int
    products: int

    @property
    def mean(self) -> float:
        """The sum of all values over the number of all values."""
        return self.total / (self.n * UNIT)

    @property
    def equal_groups(self) -> float:
        """How many groups these are worth, as if all were of one size."""
        return self.n * self.n / self.sizes_squared

    @property
    def variance_groups(self) -> float:
        """How many groups the variance is learned from."""
        return self.sizes_squared * self.sizes_squared / self.sizes_fourth

    @property
    def spread(self) -> int:
        """The sum of (group sum - mean × group size)², times (n × UNIT)²."""
        n, total = self.n, self.total
        return (
            self.squares * n * n
            - 2 * total * self.products * n
            + total * total * self.sizes_squared
        )

    @property
    def variance(self) -> float:
        """The variance between groups."""
        return self.spread / (self.n * self.n * self.sizes_squared * UNIT * UNIT)

    @property
    def effective_n(self) -> float:
        """How many questions with values of 0 or 1 would say as much.

        mean × (1 - mean) is the largest variance that values in 0 to 1 can have; fewer than all of
        it means that each value says more. The 1 that is added is one unit of variance that was
        not seen: where all values agree, they still say no more than their number supports.
        """
        seen = self.variance_groups * self.variance + 1
        possible = self.variance_groups * self.mean * (1 - self.mean) + 1
        return self.equal_groups / min(1.0, seen / possible)

    @property
    def is_rate(self) -> bool:
        """Whether every group is one question and every value 0 or 1."""
        return self.groups == self.n == self.sizes_squared and self.squares == self.total * UNIT


def group_sums(values: Floats, sizes: Ints | None = None) -> GroupSums:
    """Sum groups: the sum of values (of any sign) of each group, and how many they are of."""
    units = np.rint(values * UNIT).astype(np.int64)
    total, squares = exact_sums.total(units), exact_sums.sum_of_products(units, units)
    if sizes is None:
        n = len(units)
        return GroupSums(n, n, n, n, total, squares, total)
    squared = sizes * sizes
    return GroupSums(
        groups=len(sizes),
        n=exact_sums.total(sizes),
        sizes_squared=exact_sums.total(squared),
        sizes_fourth=exact_sums.sum_of_products(squared, squared),
        total=total,
        squares=squares,
        products=exact_sums.sum_of_products(units, sizes),
    )


def wilson_lower(rate: float, n: float, z: float = Z95) -> float:
    """Wilson's lower bound (1927) of a rate seen in n; 0 at 0."""
    if rate <= 0:
        return 0.0
    root = z * math.sqrt(max(0.0, n * rate * (1 - rate)) + z * z / 4)
    return max(0.0, (rate * n + z * z / 2 - root) / (n + z * z))


def score_interval(sums: GroupSums) -> tuple[float, float]:
    """The interval of a rate, or of a mean of values in 0 to 1.

    Wilson's with the effective number of questions, and with half a count off towards the nearer
    end: at 9 of 10 Wilson's upper bound is 0.982, which misses a true 0.99 in 10 % of runs. It
    always has a width, and always holds the mean.
    """
    return score_bounds(sums.mean, sums.effective_n)


def score_bounds(mean: float, n: float) -> tuple[float, float]:
    """The same of a mean that is worth n questions with values of 0 or 1."""
    half = min(0.5, abs(2 * mean - 1)) / n
    lower = wilson_lower(mean - half if mean < 0.5 else mean, n)
    upper = 1 - wilson_lower(1 - mean - half if mean > 0.5 else 1 - mean, n)
    return min(lower, mean), max(upper, mean)


def unbounded_interval(
    values: Floats, sizes: NDArray[Any] | None = None, *, tail: float = TAIL
) -> tuple[float, float] | None:
    """The normal interval of a mean of values without an upper end; None for few groups."""
    groups = len(values)
    if groups < FEWEST_UNBOUNDED:
        return None
    counts: NDArray[Any] = np.ones(groups) if sizes is None else sizes.astype(np.float64)
    n = math.fsum(counts.tolist())
    mean = math.fsum(values.tolist()) / n
    off = values - mean * counts
    error = math.sqrt(math.fsum((off * off).tolist()) * groups / (groups - 1)) / n
    half = normal_quantile(tail) * error
    return mean - half, mean + half


# --- quantiles ---


def quantile(values: Floats, share: float) -> float | None:
    """Interpolate linearly between order statistics, as numpy does; None for no values.

    This is type 7 of Hyndman and Fan (1996), "Sample quantiles in statistical packages": the
    smallest value is at 0, the largest at 1, and the others are evenly spaced between them. The
    order of the values does not matter.
    """
    if not np.isfinite(values).all():
        raise ValueError("a quantile needs finite values; leave questions without a value out")
    if len(values) == 0:
        return None
    place = exact_sums.as_fraction(share) * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    ordered = np.partition(values, [below, above])
    low, high = float(ordered[below]), float(ordered[above])
    if low == high or place == below:
        return low + 0.0  # the sum turns -0.0 into 0.0
    # In fractions: halfway between 0.38 and 0.42 is 0.40, and not the double beside it.
    low_end, high_end = exact_sums.as_fraction(low), exact_sums.as_fraction(high)
    return float(low_end + (high_end - low_end) * (place - below))


def quantile_interval(
    values: Floats, share: float, groups: Ints | None = None, *, tail: float = TAIL
) -> Interval:
    """Order statistics that hold the quantile; None for a bound that n cannot give.

    `groups` numbers the conversation of each value: turns of one conversation share its luck, so
    the ranks are those of as many questions as the turns are worth.
    """
    n = len(values)
    if n == 0:
        return None, None
    worth = n
    if groups is not None:
        sample = quantile(values, share)
        assert sample is not None
        sums = _grouped((values <= sample).astype(np.float64), groups)
        worth = max(1, math.floor(min(sums.effective_n, n) + _ROUNDING))
    lower, upper = quantile_ranks(worth, share, tail)
    ordered = np.sort(values)
    return (
        None if lower is None else float(ordered[(lower - 1) * n // worth]) + 0.0,
        None if upper is None else float(ordered[min(n, -(-upper * n // worth)) - 1]) + 0.0,
    )


@lru_cache(4096)
def quantile_ranks(n: int, share: float, tail: float = TAIL) -> tuple[int | None, int | None]:
    """The ranks, from 1, of the order statistics between which a quantile lies in 95 % of samples.

    How many of n values lie below the quantile is binomial; a rank is as far in as 2.5 % allow, or
    another tail.
    """
    lower = _rank_below(n, share, tail)
    mirrored = _rank_below(n, 1 - share, tail)
    return lower, None if mirrored is None else n + 1 - mirrored


def _rank_below(n: int, share: float, tail: float) -> int | None:
    """The largest rank that at most this share of samples has above the quantile."""
    # Ten standard deviations out nothing is left to sum, and a sum takes √n steps.
    k = max(0, math.floor(n * share - 10 * math.sqrt(n * share * (1 - share))) - 1)
    below = 0.0
    while (below := below + _binomial(n, k, share)) <= tail:
        k += 1
    return k or None


def _binomial(n: int, k: int, share: float) -> float:
    choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(choices + k * math.log(share) + (n - k) * math.log1p(-share))


def questions_to_bound(share: float) -> int:
    """The fewest questions that bound a quantile from above."""
    return math.ceil(math.log(TAIL) / math.log(share))


# --- two runs over the same questions ---


def delta_interval(sums: GroupSums, *, tail: float = TAIL) -> tuple[float, float]:
    """The interval of a mean of differences in -1 to 1, of either sign.

    Bonett and Price's (2012) interval for paired proportions, carried over to fractions and groups:
    one question that got better and one that got worse are added to those that were seen. So it
    has a width where nothing differs; it always holds the plain mean, and swapping the runs mirrors
    it.
    """
    unit = sums.sizes_squared / sums.n  # the size of an added group
    n = sums.n + 2 * unit
    centre = sums.total / UNIT / n
    squares, products = sums.squares / (UNIT * UNIT), sums.products / UNIT
    off = squares - 2 * centre * products + centre * centre * sums.sizes_squared
    z = normal_quantile(tail)
    half = z * math.sqrt(max(0.0, off) + 2 * unit * unit * (1 + centre * centre)) / n
    return max(-1.0, centre - half), min(1.0, centre + half)


def quantile_delta_interval(
    a: float, b: float, of_a: Interval, of_b: Interval
) -> tuple[float, float] | None:
    """The interval of b - a, two quantiles with their own intervals; None where one is open."""
    if of_a[0] is None or of_a[1] is None or of_b[0] is None or of_b[1] is None:
        return None
    delta = b - a
    return (
        delta - math.hypot(b - of_b[0], of_a[1] - a),
        delta + math.hypot(of_b[1] - b, a - of_a[0]),
    )


def _grouped(values: Floats, groups: Ints) -> GroupSums:
    sums, sizes = by_group(values, groups)
    return group_sums(sums, sizes)


def by_group(values: Floats, groups: Ints, unit: int = UNIT) -> tuple[Floats, Ints]:
    """The sum of values of each group, and their number; groups are numbered, some may be empty.

    Values are taken as whole numbers of 1 / unit, so that their order plays no part.
    """
    units = np.rint(values * unit).astype(np.int64)
    sizes = np.bincount(groups).astype(np.int64)
    sums = np.zeros(len(sizes), np.int64)
    np.add.at(sums, groups, units)
    filled = sizes > 0
    return sums[filled] / unit, sizes[filled]
