"""Resampled sums are exact, however the columns are stored and the weights are drawn in parts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ragauge.stats import resampling
from ragauge.stats.resampling import POISSON_FROM, SEED, WholeColumns, in_blocks, weigh

REPEATS = 150  # two blocks and a part of one


def columns_of(n: int) -> list[NDArray[np.float64]]:
    """Columns of every kind: 0 or 1, counts, fractions, negative, large, and one that is equal."""
    random = np.random.default_rng(7)
    flags = random.integers(0, 2, n).astype(np.float64)
    return [
        flags,
        random.integers(0, 900, n).astype(np.float64),
        random.random(n),
        -random.random(n),
        flags.copy(),
        random.random(n) * 1e7,
        np.zeros(n),
    ]


@pytest.mark.parametrize("n", [1, 40, POISSON_FROM, POISSON_FROM + 3])
@pytest.mark.parametrize(("weights", "converted"), [(1 << 25, 1 << 26), (1, 0)])
def test_sums_are_those_of_whole_numbers(
    monkeypatch: pytest.MonkeyPatch, n: int, weights: int, converted: int
) -> None:
    """With the smallest limits weights come 8 rows at a time, and columns stay in few bytes."""
    monkeypatch.setattr(resampling, "_WEIGHTS", weights)
    monkeypatch.setattr(resampling, "_CONVERTED", converted)
    columns = columns_of(n)
    added = WholeColumns()
    for column in columns:
        added.add(column)
    steps = added.steps
    sums = added.resample(REPEATS, SEED)
    drawn: NDArray[Any] = in_blocks(lambda raw, rows: weigh(raw, rows, n), REPEATS, SEED)
    for place, column in enumerate(columns):
        # Python's own integers: no rounding anywhere.
        stepped = [round(value * steps[place]) for value in column.tolist()]
        for row in (0, 63, 64, REPEATS - 1):
            expected = sum(map(int.__mul__, drawn[row].tolist(), stepped))
            assert sums[row, place] == expected, (place, row)


def test_columns_take_few_bytes_and_are_there_once() -> None:
    added = WholeColumns()
    for column in columns_of(POISSON_FROM):
        added.add(column)
    stored = Counter(kind.stored for kind, alike in added._columns.items() for _ in alike)
    # 0 or 1, of which one is equal to another, and zeros; fractions and counts beyond 255; the
    # large ones need more than 32 bits in steps of 2**-20.
    assert stored == {np.uint8: 2, np.int32: 3, np.float64: 1}
