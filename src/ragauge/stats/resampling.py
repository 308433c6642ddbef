"""Owns what is random in the statistics: weights and signs a question, drawn in seeded blocks.

And what keeps it repeatable: whole numbers, whose sums are exact in any order, so that neither
threads nor the linear algebra library can change a bit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
"""A bound of a 95 % interval is the 250th resample from its end, and another seed would move it by
less than a hundredth of the interval. With fewer it is shakier, and bounds decide gates."""
SEED = 20_150_827
POISSON_FROM = 1_000
"""Questions from which independent Poisson(1) weights stand for draws with replacement.

They are three times as fast to make. The size of such a resample varies by sqrt(n), and with fewer
questions that shows: bounds moved by up to 0.008 at 100, and by 0.0006 at 1,000 (decision 0006)."""
BLOCK = 64  # part of the definition, as the seed is: another size draws other resamples
THREADS = 2
FINEST = 20  # the finest step is 2**-20, about one millionth
EXACT = 52  # bits that a sum may need: one below double precision, for what rounding adds
_EXACT_SINGLE = 24
_PRODUCTS = 1 << 18  # in one multiplication of matrices: above, OpenBLAS takes threads
_FEWEST = 16  # questions in one, however many columns there are
_SCALE = 30

Floats = NDArray[np.float64]
Columns = NDArray[np.float64] | NDArray[np.float32]
Draws = NDArray[np.integer[Any]]


_WEIGHTS = 1 << 25  # weights that stand in memory at a time, for each thread
_CONVERTED = 1 << 26  # bytes of columns up to which they are converted for all resamples at once


class Whole(NamedTuple):
    """Columns as whole numbers of steps, and how many steps make 1 in each column."""

    columns: Columns
    steps: Floats


def in_blocks(
    work: Callable[[np.random.SFC64, int], NDArray[Any]], repeats: int, seed: int
) -> NDArray[Any]:
    """Do `work(generator, rows)` until there are `repeats` rows, which are the same in any split.

    Every block has a generator of its own, seeded by its number, so threads cannot change a row;
    and a row depends only on those before it in its block, so fewer repeats are the first of more.
    """

    def block(index: int) -> NDArray[Any]:
        raw = np.random.SFC64(np.random.SeedSequence([seed, index]))
        return work(raw, min(BLOCK, repeats - index * BLOCK))

    with ThreadPoolExecutor(THREADS) as threads:
        return np.concatenate(list(threads.map(block, range(-(-repeats // BLOCK)))))


def weigh(raw: np.random.SFC64, rows: int, n: int) -> Draws:
    """How often each of n questions stands in each of `rows` resamples."""
    return _poisson(raw, rows, n) if n >= POISSON_FROM else _multinomial(raw, rows, n)


def flip(raw: np.random.SFC64, rows: int, n: int) -> NDArray[np.uint8]:
    """Whether each of n questions is flipped, 0 or 1 with equal chance, `rows` times."""
    words = _words(raw, -(-rows * n // 64)).astype("<u8", copy=False)
    return np.unpackbits(words.view(np.uint8), count=rows * n).reshape(rows, n)


def weighted_sums(draws: Draws, columns: NDArray[Any], dtype: Any = None) -> Floats:
    """The sums of all columns under each row of weights: (rows, columns).

    `dtype` is the one to multiply in; that of the columns if not given.

    A few questions at a time, as sums are exact in parts too. Then little stands in memory, and the
    linear algebra library does not start threads of its own: on a busy machine those take
    three to six times as long, waiting for each other and for ours.
    """
    rows, width = len(draws), columns.shape[1]
    dtype = columns.dtype if dtype is None else dtype
    sums: NDArray[Any] = np.zeros((rows, width), dtype)
    some = max(_FEWEST, _PRODUCTS // (rows * max(1, width)))
    for start in range(0, len(columns), some):
        part: NDArray[Any] = draws[:, start : start + some].astype(dtype)
        sums += part @ columns[start : start + some].astype(dtype, copy=False)
    return sums.astype(np.float64)


def resample(columns: Columns, resamples: int, seed: int) -> Floats:
    """The sums of all columns in every resample: (resamples, columns)."""
    chosen = WholeColumns()
    for column in columns.T:
        chosen.add_whole(column)
    return chosen.resample(resamples, seed)


class WholeColumns:
    """Columns to resample, each as whole numbers of its own steps.

    Metrics often have equal columns (one population, one hit or miss): each is there once. A column
    takes as few bytes as its numbers need, and is multiplied in single precision where that is
    exact: with a million questions and a hundred metrics all others would be gigabytes.
    """

    def __init__(self) -> None:
        self.steps: list[float] = []
        self._places: list[tuple[ColumnKind, int]] = []
        self._distinct: dict[bytes, tuple[ColumnKind, int]] = {}
        self._columns: dict[ColumnKind, list[NDArray[Any]]] = {}

    def add(self, column: Floats) -> None:
        """Add a column of finite values."""
        stepped, steps = whole(column[:, None])
        self.steps.append(float(steps[0]))
        self.add_whole(stepped[:, 0])

    def add_whole(self, column: NDArray[Any]) -> None:
        """Add a column of whole numbers, in the precision in which its sums are exact."""
        column = np.ascontiguousarray(column)
        key = column.dtype.char.encode() + blake2b(column.data).digest()
        if key not in self._distinct:
            kind = ColumnKind(_smallest(column), column.dtype.type)
            alike = self._columns.setdefault(kind, [])
            self._distinct[key] = kind, len(alike)
            alike.append(column.astype(kind.stored))
        self._places.append(self._distinct[key])

    def resample(self, resamples: int, seed: int) -> Floats:
        """The sums of all columns in every resample; the columns are gone after that."""
        groups = {}
        for kind in list(self._columns):
            alike = np.stack(self._columns.pop(kind), axis=1)
            if alike.size * np.dtype(kind.summed).itemsize <= _CONVERTED:
                alike = alike.astype(kind.summed)
            groups[kind] = alike
        n = len(next(iter(groups.values())))
        # A multiple of 8 rows takes whole words of the generator, and leaves it where all would.
        some = BLOCK if n < POISSON_FROM else min(BLOCK, max(8, _WEIGHTS // n // 8 * 8))

        def sums_of(draws: Draws) -> Floats:
            sums = [weighted_sums(draws, alike, kind.summed) for kind, alike in groups.items()]
            return np.concatenate(sums, axis=1)

        def block(raw: np.random.SFC64, rows: int) -> Floats:
            parts = range(0, rows, some)
            return np.concatenate(
                [sums_of(weigh(raw, min(some, rows - start), n)) for start in parts]
            )

        first, starts = 0, {}
        for kind, alike in groups.items():
            starts[kind] = first
            first += alike.shape[1]
        sums: Floats = in_blocks(block, resamples, seed)
        return sums[:, [starts[kind] + place for kind, place in self._places]]


class ColumnKind(NamedTuple):
    """How the numbers of a column are stored, and in which precision they are summed."""

    stored: Any
    summed: Any


def _smallest(column: NDArray[Any]) -> Any:
    """The smallest type that holds the whole numbers of a column."""
    least, most = column.min(initial=0), column.max(initial=0)
    for stored in (np.uint8, np.int32):
        limits = np.iinfo(stored)
        if limits.min <= least and most <= limits.max:
            return stored
    return column.dtype.type


def whole(columns: Floats) -> Whole:
    """Express each column in steps so small, and so large, that every weighted sum is exact.

    A step is 2**-20, or the smallest larger power of two with which the largest sum that the
    weights allow stays below 2**53: with 10,000 questions that is 2**-20 up to a mean of 85,000,
    and for latencies near 1e7 ms 2**-13 ms. A value is off by half a step at most. Columns of
    whole numbers have the step 1 and nothing is rounded; where those of all columns are small,
    their sums fit single precision, which is twice as fast.
    """
    n = len(columns)
    bits = np.array(sum_bits(columns, most=len(_BELOW) if n >= POISSON_FROM else None), np.int64)
    powers = np.minimum(FINEST, EXACT - bits)
    counts = (columns == np.rint(columns)).all(axis=0)
    powers = np.where(counts & (powers > 0), 0, powers)
    steps = np.ldexp(1.0, powers)
    stepped: Columns = np.rint(columns * steps)
    if counts.all() and (bits <= _EXACT_SINGLE).all():
        stepped = stepped.astype(np.float32)
    return Whole(stepped, steps)


def sum_bits(columns: Floats, *, most: int | None) -> list[int]:
    """For each column a b such that no weighted sum is beyond ±2**b.

    With `most`, any weight may be as large as that; without, the weights of n values add up to n.
    Computed in integers, so that the order of the values cannot matter here either.
    """
    if not np.isfinite(columns).all():
        raise ValueError("resampling needs finite values; leave questions without a value out")
    sizes = np.abs(columns)
    peaks = sizes.max(axis=0, initial=0.0)
    exponents = np.frexp(peaks)[1].astype(np.int64)
    if most is None:
        totals = len(columns) * _units(peaks, exponents)
    else:
        totals = most * _units(sizes, exponents).sum(axis=0)
    return [
        max(total - 1, 0).bit_length() + exponent - _SCALE
        for total, exponent in zip(totals.tolist(), exponents.tolist(), strict=True)
    ]


def _units(sizes: Floats, exponents: NDArray[np.int64]) -> NDArray[np.int64]:
    """Round up to 30 bits, counted from the largest of each column."""
    return np.ceil(np.ldexp(sizes, _SCALE - exponents)).astype(np.int64)


def _words(raw: np.random.SFC64, n: int) -> NDArray[np.uint64]:
    """The next words of a generator.

    `random_raw` promises them, and holds up all other threads; `integers` of the whole range gives
    the same ones beside them. Where it did not, the promise would count.
    """
    if _is_raw():
        return np.random.Generator(raw).integers(0, 1 << 64, n, np.uint64)
    return raw.random_raw(n)


@cache
def _is_raw() -> bool:
    """Whether `integers` gives the raw words in this version of numpy."""
    one, other = np.random.SFC64(SEED), np.random.SFC64(SEED)
    whole_range = np.random.Generator(one).integers(0, 1 << 64, 64, np.uint64)
    return bool((whole_range == other.random_raw(64)).all())


def _multinomial(raw: np.random.SFC64, rows: int, n: int) -> NDArray[np.int64]:
    """How often each question is drawn when n are drawn with replacement, `rows` times."""
    # The upper 32 bits times n, shifted: a number below n without a division (Lemire 2019). Its
    # bias is below n / 2**32, which no interval of four decimals shows.
    draws = _words(raw, rows * n) >> np.uint64(32)
    picks = ((draws * np.uint64(n)) >> np.uint64(32)).astype(np.int64).reshape(rows, n)
    picks += np.arange(rows)[:, None] * n
    return np.bincount(picks.ravel(), minlength=rows * n).reshape(rows, n)


# How many of 256 equally likely bytes are below each weight from 1 to 5: Poisson(1) in 256ths.
# The shares 94, 95, 46, 16, 4 and 1 have the mean 1 and the variance 1 exactly.
_BELOW = (94, 189, 235, 251, 255)
_AT_ONCE = 1 << 20  # weights that are made while they stay in the cache


def _poisson(raw: np.random.SFC64, rows: int, n: int) -> NDArray[np.uint8]:
    """Independent Poisson(1) weights: from a thousand questions on the same, at a fraction."""
    words = _words(raw, -(-rows * n // 8))
    weights = words.astype("<u8", copy=False).view(np.uint8)[: rows * n]
    at_least, above = np.empty((2, _AT_ONCE), np.bool_)
    for start in range(0, rows * n, _AT_ONCE):
        drawn = weights[start : start + _AT_ONCE]
        counted, more = at_least[: len(drawn)].view(np.uint8), above[: len(drawn)]
        np.greater_equal(drawn, _BELOW[0], out=counted.view(np.bool_))
        for below in _BELOW[1:]:  # comparisons run many bytes at a time; a table would not
            np.greater_equal(drawn, below, out=more)
            np.add(counted, more.view(np.uint8), out=counted)
        drawn[:] = counted  # a weight takes the place of the byte that it is drawn by
    return weights.reshape(rows, n)
