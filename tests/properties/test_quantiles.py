"""Quantiles against plain numpy, and the weights of resamples against their definition."""

from __future__ import annotations

import math
import random
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from ragauge.stats import resampling
from ragauge.stats.intervals import quantile, quantile_interval
from ragauge.stats.resampling import POISSON_FROM, SEED
from tests.support.cases import cases

Floats = NDArray[np.float64]
SHARES = (0.5, 0.9, 0.95)

SOME = 150  # resamples: two whole blocks of 64 and a part of one


def plain_weights(n: int, resamples: int, seed: int = SEED) -> NDArray[np.int64]:
    """The weights by their definition, one resample at a time."""
    rows = []
    for number in range(resamples):
        index, within = divmod(number, 64)
        raw = np.random.SFC64(np.random.SeedSequence([seed, index]))
        if n < 1_000:
            words = raw.random_raw((within + 1) * n).tolist()[-n:]
            rows.append(np.bincount([(word >> 32) * n >> 32 for word in words], minlength=n))
        else:
            stream = b"".join(
                word.to_bytes(8, "little")
                for word in raw.random_raw(-(-(within + 1) * n // 8)).tolist()
            )
            drawn = np.frombuffer(stream, np.uint8)[within * n : (within + 1) * n]
            rows.append(np.searchsorted([94, 189, 235, 251, 255], drawn, side="right"))
    return np.array(rows)


@cases("n", [1, 2, POISSON_FROM - 1, POISSON_FROM + 203])
def test_weights_are_drawn_as_defined(n: int) -> None:
    """A resample depends on seed, block and place in it alone; fewer are the first of more."""
    expected = plain_weights(n, SOME, 7)
    for resamples in (SOME, 65, 64, 3):
        found = resampling.in_blocks(partial(resampling.weigh, n=n), resamples, 7)
        assert np.array_equal(found, expected[:resamples])


@cases(
    ("values", "share", "expected"),
    [
        ([3.0], 0.95, 3.0),
        ([1.0, 2.0, 4.0, 8.0], 0.5, 3.0),  # place 0.5 × 3 = 1.5, halfway from 2 to 4
        ([8.0, 1.0, 4.0], 0.5, 4.0),
        ([0.0, 100.0], 0.95, 95.0),  # place 0.95 × 1
        (list(range(1, 12)), 0.9, 10.0),  # place 0.9 × 10 = 9, the tenth of eleven
        ([-2.0, -1.0, 0.0, 1.0, 6.0], 0.9, 4.0),  # place 3.6: 1 + 0.6 × 5
        ([5.0, 7.0, 9.0], 0.0, 5.0),
        ([5.0, 7.0, 9.0], 1.0, 9.0),
    ],
)
def test_quantiles_by_hand(values: list[float], share: float, expected: float) -> None:
    assert quantile(np.array(values, np.float64), share) == pytest.approx(expected, rel=1e-15)


@cases("seed", range(40))
def test_quantile_is_numpys_in_any_order(seed: int) -> None:
    """The same number as np.quantile, to the last bits, and the same bits however shuffled."""
    rng = random.Random(seed)
    pool = [0.0, -0.0, 1 / 3, 0.7, -2.5, 1e7, rng.random(), rng.gauss(0, 1e4)]
    values = [rng.choice(pool) for _ in range(rng.randrange(1, 30))]
    for share in (*SHARES, 0.0, 1.0, rng.random()):
        found = quantile(np.array(values), share)
        assert found is not None
        assert found == pytest.approx(float(np.quantile(values, share)), rel=1e-12, abs=1e-9)
        assert min(values) <= found <= max(values)
        moved = quantile(np.array(rng.sample(values, len(values))), share)
        assert moved is not None
        assert moved.hex() == found.hex()


def test_no_values_have_no_quantile() -> None:
    assert quantile(np.zeros(0), 0.5) is None
    assert quantile_interval(np.zeros(0), 0.5) == (None, None)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_are_refused(bad: float) -> None:
    """A NaN would sort last and pass for the slowest question."""
    with pytest.raises(ValueError, match="finite"):
        quantile(np.array([1.0, bad]), 0.5)
