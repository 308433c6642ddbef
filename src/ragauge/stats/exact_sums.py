"""Sums that do not depend on order: values as whole numbers of a fixed small unit.

Workers and batches add in another order from run to run, and floating-point sums would then differ
in their last bit, which is enough to flip a gate (decision 0005).

Most values are fractions: pieces found over pieces expected, one over a rank, and means of these
over slots. 0.7 three times has the mean 0.7, but doubles give 0.6999999999999998; so fractions are
added as fractions, and the sum is rounded once (decision 0055).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from operator import mul

import numpy as np
from numpy.typing import NDArray

# 720720 is the least common multiple of 1..16: fractions with such denominators stay exact, so a
# recall of 4/5 is 0.8 and not a hair below it. The power of two keeps the rest within 7e-13.
UNIT = 720_720 * 2**20
_CUT = 20  # half of the bits of a value of 1
_ROOM = 62  # bits that a sum may need, one below those of a whole number and its sign
_BETWEEN = (1 << 16) - 1  # bits that a fraction with a denominator up to 16, or few times it, lacks
_LARGEST_VALUE = 12  # above are times and counts of bytes, which nobody writes as fractions
_MOST_FRACTIONS = 4096  # values that differ; more are no shares of a few pieces
# A double is within 2**-53 of the fraction that it stands for, relatively, and one that was rounded
# to 1 / UNIT before within half of that. As close as that is but one fraction that is so simple.
_DENOMINATOR, _COARSE_DENOMINATOR = 1 << 23, 10_000
_LAST_BITS = Fraction(1, 1 << 51)


def to_units(values: NDArray[np.float64], unit: int = UNIT) -> NDArray[np.int64]:
    """Express values as whole numbers of 1/unit.

    With UNIT the sum of a million values up to 12 fits; larger values take a coarser unit.
    """
    return np.rint(values * unit).astype(np.int64)


def mean(values: NDArray[np.float64]) -> float | None:
    """Mean of the fractions that values stand for, rounded once; None for no values."""
    if len(values) == 0:
        return None
    return float(fraction_total(values) / len(values))


def fraction_total(values: NDArray[np.float64]) -> Fraction:
    """The sum of the fractions that values stand for, the same for any order.

    Of values that are none, such as nDCG, it is their exactly rounded sum.
    """
    if float(np.abs(values).max(initial=0.0)) <= _LARGEST_VALUE:
        units = to_units(values)
        if not (units & _BETWEEN).any() and (units / UNIT == values).all():
            return Fraction(total(units), UNIT)
        different, counts = np.unique(values, return_counts=True)
        if len(different) <= _MOST_FRACTIONS:
            pairs = zip(different.tolist(), counts.tolist(), strict=True)
            return sum((as_fraction(value) * times for value, times in pairs), Fraction())
    return Fraction(math.fsum(values.tolist()))


@lru_cache(1 << 14)
def as_fraction(value: float) -> Fraction:
    """The fraction that a double stands for: the simple one beside it, or else itself."""
    exact = Fraction(value)
    simple = exact.limit_denominator(_DENOMINATOR)
    if abs(simple - exact) <= abs(exact) * _LAST_BITS:
        return simple
    if round(exact * UNIT) / UNIT != value:
        return exact
    simple = exact.limit_denominator(_COARSE_DENOMINATOR)
    return simple if abs(simple - exact) <= Fraction(1, UNIT) else exact


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
