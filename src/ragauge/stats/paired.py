"""Two runs over the same questions: whether their difference may be chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragauge.stats.exact_sums import UNIT
from ragauge.stats.intervals import quantile
from ragauge.stats.resampling import (
    EXACT,
    FINEST,
    SEED,
    Floats,
    flip,
    in_blocks,
    sum_bits,
    weighted_sums,
)

PERMUTATIONS = 10_000
"""Random signs a test: the smallest p is 1e-4, and one near 0.05 is known to within 0.004."""
_FEWEST_REPEATS = 400
_QUANTILE_CELLS = 20_000_000  # values partitioned in all, so that time does not grow with n
_DIVISIBLE = UNIT >> 20  # by every number up to 16


def permutation(
    differences: Floats,
    *,
    inside: NDArray[np.bool_] | None = None,
    permutations: int = PERMUTATIONS,
    seed: int = SEED,
) -> list[float | None]:
    """Two-sided p-values of Σ differences, if each might as well have the other sign.

    Fisher's randomisation test, which Smucker, Allan and Carterette (2007) advise for comparing
    retrieval systems: it assumes nothing of how differences are distributed.

    `differences` is (questions, metrics), and so is `inside`, which tells the questions of a
    metric's population; what stands elsewhere is not looked at. With few differences other than 0
    all their signs are tried, and p is the share of sums at least as far from 0 as the observed
    one. Otherwise p is (1 + hits) / (1 + permutations) of random signs, which all metrics share,
    and which belong to the places of the questions, so the caller sorts them. 1.0 where nothing
    differs, None where there are no questions.

    Sums are whole numbers of steps that halves, thirds and all fractions down to sixteenths are
    made of, so that equal sums are equal however they come about.
    """
    questions, metrics = differences.shape
    if questions == 0:
        return [None] * metrics
    if inside is None:
        inside = np.ones(differences.shape, np.bool_)
    columns = _in_steps(np.where(inside, differences, 0.0))
    p_values: list[float | None] = [None] * metrics
    many: list[int] = []
    for i in np.flatnonzero(inside.any(axis=0)).tolist():
        other = columns[columns[:, i] != 0, i]
        if 2 ** len(other) <= permutations:
            p_values[i] = _every_sign(other)
        else:
            many.append(i)
    if many:
        tested = np.ascontiguousarray(columns[:, many])
        moved = np.flatnonzero(tested.any(axis=1))  # a sign of 0 changes nothing

        def block(raw: np.random.SFC64, rows: int) -> Floats:
            signs = flip(raw, rows, questions)
            if 2 * len(moved) < questions:
                return weighted_sums(np.take(signs, moved, axis=1), tested[moved])
            return weighted_sums(signs, tested)

        flipped: Floats = in_blocks(block, permutations, seed)
        for i, hits in zip(many, _hits(tested, flipped).tolist(), strict=True):
            # Plus one: the order that was observed is one of the possible ones, and p is never 0.
            p_values[i] = (1 + hits) / (1 + permutations)
    return p_values


def _in_steps(differences: Floats) -> Floats:
    """Whole numbers whose sums are exact; in 1/720720 or its halves unless they are large.

    Where sums are so large that this would not fit, in the smallest power of two that does.
    """
    steps = []
    for bits in sum_bits(differences, most=1):
        power = EXACT - bits
        fine = power - _DIVISIBLE.bit_length()
        steps.append(_DIVISIBLE * 2.0 ** min(FINEST, fine) if fine >= 0 else 2.0**power)
    stepped: Floats = np.rint(differences * np.array(steps))
    return stepped


def _every_sign(column: Floats) -> float:
    """The share of all 2**n choices of signs."""
    flipped = np.zeros(1)
    for value in column:
        flipped = np.concatenate([flipped, flipped + value])
    return int(_hits(column[:, None], flipped[:, None])[0]) / len(flipped)


def _hits(columns: Floats, flipped: Floats) -> NDArray[np.int64]:
    """How often the sum is at least as far from 0 as it was, given what was flipped in it."""
    totals = columns.sum(axis=0)
    far = np.abs(totals - 2 * flipped) >= np.abs(totals)
    hits: NDArray[np.int64] = np.count_nonzero(far, axis=0)
    return hits


def quantile_permutation(
    a: Floats,
    b: Floats,
    share: float,
    *,
    cluster: NDArray[np.int64] | None = None,
    seed: int = SEED,
) -> float | None:
    """Two-sided p-value of `quantile(b) - quantile(a)`, row i the same question.

    The two values of a question (or of all questions of a cluster) change sides with equal chance:
    p is (1 + hits) / (1 + repeats). With many questions there are fewer repeats, down to 400,
    because each has to sort out all values.
    """
    n = len(a)
    if n == 0:
        return None
    repeats = max(_FEWEST_REPEATS, min(PERMUTATIONS, _QUANTILE_CELLS // n))
    units = n if cluster is None else int(cluster.max()) + 1
    observed = abs(_at(b, share) - _at(a, share))

    def block(raw: np.random.SFC64, rows: int) -> NDArray[np.bool_]:
        far = []
        for row in flip(raw, rows, units):
            swapped = row if cluster is None else row[cluster]
            one, other = np.where(swapped, b, a), np.where(swapped, a, b)
            # A difference of two sums may be off by its last bit; an equal one is as far.
            far.append(abs(_at(other, share) - _at(one, share)) >= observed - 1e-12)
        return np.array(far, np.bool_)

    hits = int(np.count_nonzero(in_blocks(block, repeats, seed)))
    return (1 + hits) / (1 + repeats)


def _at(values: Floats, share: float) -> float:
    value = quantile(values, share)
    assert value is not None
    return value
