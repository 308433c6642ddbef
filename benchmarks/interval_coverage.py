"""Owns the simulation of the statistics: does a 95 % interval hold the truth in 95 % of runs?

Rates and quantiles are summed exactly; means, conversations and differences are drawn from families
whose true value is known. Used by `make slow-stats` (all of it) and by a test (a small part).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ragauge.stats.exact_sums import UNIT
from ragauge.stats.intervals import (
    GroupSums,
    delta_interval,
    group_sums,
    quantile_ranks,
    score_interval,
)

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, float, int, int], Floats]
"""A family: generator, true mean, runs and questions give values as (runs, questions)."""

LEAST = 0.93
STRESS = ("rare 0",)
LEAST_STRESS = 0.90
"""What no closed form of a few sums can know: how much of the loss sits in values not seen yet."""
SIZES = (5, 10, 30, 100, 200, 1_000)
RATES = (0.5, 0.9, 0.95, 0.98, 0.99)
TALKS = (3, 5, 10, 30, 100)
CORRELATIONS = (0.8, 0.5, 0.05)
CHANGED = (0.02, 0.1, 0.3)  # shares of questions that differ between two runs
DROPS = (0.0, 0.02, 0.1)


class Cell(NamedTuple):
    """The share of runs of one kind whose interval holds the truth, and its mean width."""

    kind: str
    n: int
    truth: float
    coverage: float
    width: float


def least(cell: Cell) -> float:
    """The coverage below which a cell is a fault."""
    return LEAST_STRESS if cell.kind in STRESS else LEAST


def rates(sizes: Sequence[int] = SIZES, truths: Sequence[float] = RATES) -> Iterator[Cell]:
    """Rates, exactly: every number of successes by its probability."""
    for n in sizes:
        intervals = [score_interval(_rate(n, successes)) for successes in range(n + 1)]
        for truth in truths:
            chances = _binomial(n, truth)
            held = sum(
                chance
                for chance, (low, high) in zip(chances, intervals, strict=True)
                if low <= truth <= high
            )
            width = sum(
                chance * (high - low)
                for chance, (low, high) in zip(chances, intervals, strict=True)
            )
            yield Cell("rate", n, truth, held, width)


def quantiles(sizes: Sequence[int] = SIZES) -> Iterator[Cell]:
    """Medians and percentiles, exactly: a quantile lies between two ranks as a binomial says."""
    for n in sizes:
        for share in (0.5, 0.9, 0.95):
            lower, upper = quantile_ranks(n, share)
            chances = _binomial(n, share)
            held = math.fsum(chances[lower or 0 : n + 1 if upper is None else upper])
            yield Cell("quantile", n, share, held, math.nan)


def means(
    runs: int,
    families: Sequence[str] | None = None,
    sizes: Sequence[int] = SIZES,
    truths: Sequence[float] = RATES,
) -> Iterator[Cell]:
    """Means of values in 0 to 1, of families as retrieval metrics have them."""
    rng = np.random.default_rng(1)
    for name in FAMILIES if families is None else families:
        for n in sizes:
            for truth in truths:
                values = FAMILIES[name](rng, truth, runs, n)
                yield _covered(name, n, truth, [group_sums(row) for row in values])


def conversations(
    runs: int,
    correlations: Sequence[float] = CORRELATIONS,
    sizes: Sequence[int] = TALKS,
    truths: Sequence[float] = RATES,
) -> Iterator[Cell]:
    """Rates over turns of conversations, which resemble each other."""
    rng = np.random.default_rng(2)
    for correlation in correlations:
        for n in sizes:
            for truth in truths:
                lengths = rng.integers(2, 9, (runs, n))
                right = rng.binomial(lengths, _latent(rng, truth, correlation, (runs, n)))
                sums = [
                    group_sums(sums.astype(np.float64), sizes)
                    for sums, sizes in zip(right, lengths, strict=True)
                ]
                yield _covered(f"conversations, correlation {correlation:g}", n, truth, sums)


def differences(
    runs: int, sizes: Sequence[int] = SIZES, changed: Sequence[float] = CHANGED
) -> Iterator[Cell]:
    """Hits and misses of two runs over the same questions, with and without a true drop."""
    rng = np.random.default_rng(3)
    for share in changed:
        for drop in (drop for drop in DROPS if drop <= share):
            chances = ((share + drop) / 2, 1 - share, (share - drop) / 2)
            for n in sizes:
                counts = rng.multinomial(n, chances, runs)
                held, width = 0, 0.0
                for down, _, up in counts.tolist():
                    total, squares = (up - down) * UNIT, (up + down) * UNIT * UNIT
                    low, high = delta_interval(GroupSums(n, n, n, n, total, squares, total))
                    held += low <= -drop <= high
                    width += high - low
                name = f"difference, {share:g} of questions changed"
                yield Cell(name, n, -drop, held / runs, width / runs)


def _covered(kind: str, n: int, truth: float, runs: Sequence[GroupSums]) -> Cell:
    intervals = np.array([score_interval(sums) for sums in runs])
    held = (intervals[:, 0] <= truth) & (truth <= intervals[:, 1])
    return Cell(kind, n, truth, float(held.mean()), float(np.diff(intervals).mean()))


def _rate(n: int, successes: int) -> GroupSums:
    units = successes * UNIT
    return GroupSums(n, n, n, n, units, units * UNIT, units)


def _binomial(n: int, share: float) -> list[float]:
    return [
        math.exp(
            math.lgamma(n + 1)
            - math.lgamma(k + 1)
            - math.lgamma(n - k + 1)
            + k * math.log(share)
            + (n - k) * math.log1p(-share)
        )
        for k in range(n + 1)
    ]


# --- families of values with a known mean ---


def _latent(
    rng: np.random.Generator, mean: float, correlation: float, shape: tuple[int, int]
) -> Floats:
    """How likely each question is to be right; two tries of one question correlate so much."""
    weight = 1 / correlation - 1
    return rng.beta(mean * weight, (1 - mean) * weight, shape)


def _recall(rng: np.random.Generator, mean: float, runs: int, n: int) -> Floats:
    """One to three pieces of evidence, each found by itself."""
    pieces = rng.integers(1, 4, (runs, n))
    return rng.binomial(pieces, mean) / pieces


def _polarised(rng: np.random.Generator, mean: float, runs: int, n: int) -> Floats:
    """One to three pieces, most questions all found or all lost."""
    pieces = rng.integers(1, 4, (runs, n))
    return rng.binomial(pieces, _latent(rng, mean, 2 / 3, (runs, n))) / pieces


def _reciprocal_rank(rng: np.random.Generator, mean: float, runs: int, n: int) -> Floats:
    """Mostly the first rank; otherwise the second, third or fifth, or none."""
    later = np.array([1 / 2, 1 / 3, 1 / 5, 0.0])
    first = (mean - later.mean()) / (1 - later.mean())
    return np.where(rng.random((runs, n)) < first, 1.0, rng.choice(later, (runs, n)))


def _gain(rng: np.random.Generator, mean: float, runs: int, n: int) -> Floats:
    """Values all over the range, as those of ndcg."""
    return rng.beta(4 * mean, 4 * (1 - mean), (runs, n))


def _precision(rng: np.random.Generator, mean: float, runs: int, n: int) -> Floats:
    """Of five hits some."""
    return rng.binomial(5, mean, (runs, n)) / 5


def _rare_zero(rng: np.random.Generator, mean: float, runs: int, n: int) -> Floats:
    """Values just below 1, and rarely a 0."""
    below = (1 - mean) / 2
    values = rng.uniform(1 - 2 * below, 1, (runs, n))
    return np.where(rng.random((runs, n)) < mean / (1 - below), values, 0.0)


def _slots(correlation: float) -> Draw:
    """Six slots a question, whose results correlate so much."""

    def draw(rng: np.random.Generator, mean: float, runs: int, n: int) -> Floats:
        return rng.binomial(6, _latent(rng, mean, correlation, (runs, n))) / 6

    return draw


FAMILIES: dict[str, Draw] = {
    "recall": _recall,
    "recall, polarised": _polarised,
    "reciprocal rank": _reciprocal_rank,
    "gain": _gain,
    "precision@5": _precision,
    "rare 0": _rare_zero,
    "6 slots, correlation 0.8": _slots(0.8),
    "6 slots, correlation 0.5": _slots(0.5),
    "6 slots, correlation 0.2": _slots(0.2),
}
