"""Sums that do not depend on order: values as whole numbers of a fixed small unit.

Workers and batches add in another order from run to run, and floating-point sums would then differ
in their last bit, which is enough to flip a gate (decision 0005).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

# 720720 is the least common multiple of 1..16: fractions with such denominators stay exact, so a
# recall of 4/5 is 0.8 and not a hair below it. The power of two keeps the rest within 7e-13.
UNIT = 720_720 * 2**20


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
