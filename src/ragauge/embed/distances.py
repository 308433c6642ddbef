"""ΔS of two vectors: 1 - cos, the same bits wherever the vectors are the same."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray


class Direction:
    """A vector that distances are taken from; `square` is the square of its length."""

    __slots__ = ("square", "values")

    def __init__(self, vector: NDArray[np.float32]) -> None:
        # Products of two single-precision numbers are exact in double precision.
        self.values = vector.astype(np.float64)
        self.square = _dot(self.values, self.values)


def delta_s(one: Direction | None, other: Direction | None) -> float | None:
    """1 - cos of two vectors, from 0 to 2; None where one of them has no direction."""
    if one is None or other is None or not one.square or not other.square:
        return None
    dot = _dot(one.values, other.values)
    return min(2.0, max(0.0, 1.0 - dot / sqrt(one.square * other.square)))


def direction(vector: NDArray[np.float32]) -> Direction | None:
    """The direction of a vector; None for one of zeros, which a text without words has."""
    return Direction(vector) if vector.any() else None


def _dot(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Add the products up in numpy's fixed order: a linear algebra library has one of its own."""
    return float((one * other).sum())
