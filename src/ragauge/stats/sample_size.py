"""What a number of questions can show: how well a rate is known, and the least change seen.

The smallest detectable change is the true change that four runs of five show (power 0.80).
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.stats import exact_sums
from ragauge.stats.exact_sums import UNIT
from ragauge.stats.intervals import (
    TAIL,
    Z80,
    GroupSums,
    delta_interval,
    normal_quantile,
    score_interval,
    wilson_lower,
)

_MOST = 1 << 24
_HALVINGS = 60  # as many as a number between 0 and 1 has bits, and some


class Size(Struct, frozen=True):
    """A set of n questions, judged by a rate of one half, where least is known."""

    n: int

    @property
    def half_width(self) -> float | None:
        """How far the 95 % interval goes to each side."""
        if not self.n:
            return None
        return 0.5 - wilson_lower(0.5, self.n)

    @property
    def detectable(self) -> float | None:
        """The smallest change that a run would show in four cases of five."""
        if not self.n:
            return None
        return 0.5 - wilson_lower(wilson_lower(0.5, self.n), self.n, Z80)

    @staticmethod
    def needed(change: float) -> int:
        """The fewest questions that show a change of this much."""
        few, enough = 0, _MOST
        while enough - few > 1:
            middle = (few + enough) // 2
            if (Size(middle).detectable or 1.0) <= change:
                enough = middle
            else:
                few = middle
        return enough


def detectable_change(sums: GroupSums, *, higher_is_better: bool) -> float | None:
    """How much worse a system must be for four runs of five to fall below the present interval.

    None where no result would: one of one question cannot be told from none of one.
    """
    lower, upper = score_interval(sums)
    value, bound = (sums.mean, lower) if higher_is_better else (1 - sums.mean, 1 - upper)
    if sums.is_rate:
        # The most successes that still lie below the bound; half a count, as counts are whole.
        successes = math.ceil(sums.n * bound - 1e-9) - 1
        if successes < 0:
            return None
        return value - wilson_lower((successes + 0.5) / sums.n, sums.n, Z80)
    n, variance = sums.equal_groups, sums.variance
    if variance > 0:
        n *= value * (1 - value) / variance
    return value - wilson_lower(bound, n, Z80)


def detectable_drop(
    differences: NDArray[np.float64], *, max_drop: float = 0.0, tail: float = TAIL
) -> float | None:
    """The true drop that four comparisons of five show: the interval wholly beyond `max_drop`.

    `differences` are those of the questions, in -1 to 1 and of either sign (for conversations the
    means of each). What moved against the trend is taken for noise that will be there next time.
    None where no drop would be shown. `tail` is what the interval leaves out at either end.
    """
    n = len(differences)
    if n == 0:
        return None
    units = np.rint(differences * UNIT).astype(np.int64)
    squares, sizes = exact_sums.sum_of_products(units, units), exact_sums.total(np.abs(units))
    trend = abs(exact_sums.total(units))
    if squares == sizes * UNIT and sizes == trend:  # whole questions, all in one direction
        return _whole_drops(n, max_drop, tail)
    moved = squares / (sizes * UNIT)  # how far a question moves that moves at all
    noise = max(0.0, (squares / UNIT - moved * trend) / UNIT / n)

    z = normal_quantile(tail)

    def excess(drop: float) -> float:
        """How far a drop is beyond the one that is just seen; it rises with the drop."""
        spread = n * (noise + moved * drop)
        bound = z * math.sqrt(max(0.0, spread + 2 - (n * drop) ** 2 / (n + 2)))
        luck = Z80 * math.sqrt(max(0.0, spread - n * drop * drop))
        return n * drop - max_drop * (n + 2) - bound - luck

    if excess(1.0) < 0:
        return None
    low, high = max_drop, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) >= 0 else (middle, high)
    return (low + high) / 2


def _whole_drops(n: int, max_drop: float, tail: float) -> float | None:
    """The drop that shows where questions are lost whole and nothing else moves."""

    def shows(lost: int) -> bool:
        steps = lost * UNIT
        sums = GroupSums(n, n, n, n, -steps, steps * UNIT, -steps)
        upper = delta_interval(sums, tail=tail)[1]
        return upper < -max_drop

    if not shows(n):
        return None
    few, enough = 0, n
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if shows(middle) else (middle, enough)
    return 1 - wilson_lower(1 - (enough - 0.5) / n, n, Z80)
