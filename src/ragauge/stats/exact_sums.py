"""Sums that do not depend on order: values as whole numbers of a fixed small unit.

Workers and batches add in another order from run to run, and floating-point sums would then differ
in their last bit, which is enough to flip a gate (decision 0005).
"""

from __future__ import annotations

import math
from operator import mul

import numpy as np
from numpy.typing import NDArray

# 720720 is the least common multiple of 1..16: fractions with such denominators stay exact, so a
# recall of 4/5 is 0.8 and not a hair below it. The power of two keeps the rest within 7e-13.
UNIT = 720_720 * 2**20
_CUT = 20  # half of the bits of a value of 1
_ROOM = 62  # bits that a sum may need, one below those of a whole number and its sign


def to_units(values: NDArray[np.float64], unit: int = UNIT) -> NDArray[np.int64]:
    """Express values as whole numbers of 1/unit.

    With UNIT the sum of a million values up to 12 fits; larger values take a coarser unit.
    """
    return np.rint(values * unit).astype(np.int64)


def mean(values: NDArray[np.float64]) -> float | None:
    """Mean by an exactly rounded sum, the same for any order; None for no values."""
    if len(values) == 0:
        return None
    return math.fsum(values.tolist()) / len(values)


def total(numbers: NDArray[np.int64]) -> int:
    """The sum of whole numbers, however large it is."""
    if _bits(numbers) + len(numbers).bit_length() <= _ROOM:
        return int(numbers.sum())
    return sum(numbers.tolist())


def sum_of_products(one: NDArray[np.int64], other: NDArray[np.int64]) -> int:
    """The exact sum of products of whole numbers, place by place.

    Where products do not fit 64 bits each number is cut in two, and sums of products of the parts
    do for millions of numbers; where even those might not, Python adds them up.
    """
    first, second, count = _bits(one), _bits(other), len(one).bit_length()
    if first + second + count <= _ROOM:
        return int(np.dot(one, other))
    longest = max(_CUT, first - _CUT) + max(_CUT, second - _CUT) + count
    if longest > _ROOM:
        return sum(map(mul, one.tolist(), other.tolist()))
    parts = [(number >> _CUT, number & ((1 << _CUT) - 1)) for number in (one, other)]
    (high, low), (other_high, other_low) = parts
    return (
        (int(np.dot(high, other_high)) << 2 * _CUT)
        + ((int(np.dot(high, other_low)) + int(np.dot(low, other_high))) << _CUT)
        + int(np.dot(low, other_low))
    )


def _bits(numbers: NDArray[np.int64]) -> int:
    return int(np.abs(numbers).max(initial=0)).bit_length()
