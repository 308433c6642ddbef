"""95 % intervals: Wilson for rates of few questions, the question-level bootstrap otherwise."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
SEED = 20_150_827
Z95 = 1.959963984540054
WILSON_BELOW = 30
POISSON_FROM = 1_000
_BLOCK = 64
_FINE = 1 << 20
_EXACT_SINGLE = float(1 << 24)

Floats = NDArray[np.float64]
Weights = NDArray[np.float64] | NDArray[np.float32]


def wilson(successes: float, n: int) -> tuple[float, float]:
    """Wilson's score interval for a rate of `successes` in `n` (n > 0)."""
    rate = successes / n
    spread = Z95 * Z95 / n
    middle = (rate + spread / 2) / (1 + spread)
    half = Z95 / (1 + spread) * math.sqrt(rate * (1 - rate) / n + spread / (4 * n))
    low = 0.0 if successes == 0 else max(0.0, middle - half)
    high = 1.0 if successes == n else min(1.0, middle + half)
    return low, high


def bootstrap(
    numerators: Floats, denominators: Floats, *, resamples: int = RESAMPLES, seed: int = SEED
) -> list[tuple[float, float] | None]:
    """Percentile intervals of Σ numerators / Σ denominators, questions resampled together.

    Both arrays are (questions, metrics), numerators at most as large as denominators; a question
    outside a metric's population has 0 in both. All metrics share the resamples, so they stay
    comparable. Numerators are taken in small fixed steps: whole numbers, whose sums are exact in
    any order, so the result does not depend on threads or on the linear algebra library.
    """
    questions, metrics = numerators.shape
    if questions == 0:
        return [None] * metrics
    # Counts need no steps, and their sums fit single precision, which is twice as fast.
    counts = bool((numerators == np.rint(numerators)).all())
    single = counts and 2 * float(denominators.sum(axis=0).max(initial=0.0)) < _EXACT_SINGLE
    steps = 1 if counts else _FINE
    columns: Weights = np.concatenate([np.rint(numerators * steps), denominators], axis=1)
    if single:
        columns = columns.astype(np.float32)
    sums = _resample(columns, resamples, seed)
    return [_percentiles(sums[:, i], sums[:, metrics + i], steps) for i in range(metrics)]


def _resample(columns: Weights, resamples: int, seed: int) -> Floats:
    """The sums of all columns in every resample: (resamples, columns)."""
    distinct: dict[bytes, int] = {}
    place = [distinct.setdefault(column.tobytes(), len(distinct)) for column in columns.T]
    first = [place.index(i) for i in range(len(distinct))]
    kept = np.ascontiguousarray(columns[:, first])
    questions = len(kept)
    weigh = _poisson_weights if questions >= POISSON_FROM else _multinomial_weights

    def block(index: int) -> Weights:
        size = min(_BLOCK, resamples - index * _BLOCK)
        raw = np.random.SFC64(np.random.SeedSequence([seed, index]))
        sums: Weights = weigh(raw, size, questions).astype(kept.dtype, copy=False) @ kept
        return sums

    with ThreadPoolExecutor(2) as threads:
        sums = np.concatenate(list(threads.map(block, range(-(-resamples // _BLOCK)))))
    return sums.astype(np.float64)[:, place]


def _percentiles(tops: Floats, bottoms: Floats, steps: int) -> tuple[float, float] | None:
    drawn = bottoms > 0
    if not drawn.any():
        return None
    ratios = np.sort(tops[drawn] / bottoms[drawn] / steps)
    return _quantile(ratios, 0.025), _quantile(ratios, 0.975)


def _quantile(ordered: Floats, share: float) -> float:
    """Linear interpolation between order statistics."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    low, high = float(ordered[below]), float(ordered[above])
    return low + (high - low) * (place - below)


def _multinomial_weights(raw: np.random.SFC64, rows: int, n: int) -> NDArray[np.int64]:
    """How often each question is drawn when n are drawn with replacement, `rows` times."""
    draws = raw.random_raw(rows * n) >> np.uint64(32)
    picks = ((draws * np.uint64(n)) >> np.uint64(32)).astype(np.int64).reshape(rows, n)
    picks += np.arange(rows)[:, None] * n
    return np.bincount(picks.ravel(), minlength=rows * n).reshape(rows, n)


# How many of 256 equally likely bytes are below each weight from 1 to 5: Poisson(1) in 256ths.
# The shares 94, 95, 46, 16, 4 and 1 have the mean 1 and the variance 1 exactly.
_BELOW = (94, 189, 235, 251, 255)


def _poisson_weights(raw: np.random.SFC64, rows: int, n: int) -> NDArray[np.uint8]:
    """Independent Poisson(1) weights: from a thousand questions on the same, at a fraction."""
    words = raw.random_raw(-(-rows * n // 8))
    draws = words.astype("<u8", copy=False).view(np.uint8)[: rows * n]
    weights = np.zeros(rows * n, np.uint8)
    for below in _BELOW:  # comparisons run many bytes at a time; a table would not
        weights += draws >= below
    return weights.reshape(rows, n)
