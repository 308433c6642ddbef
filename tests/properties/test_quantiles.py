"""Quantiles, their bootstrap, and the bootstrap of values of any size, against plain numpy.

A resample belongs to the places of the questions: a bootstrap bound may change with their order,
so callers sort by id. The quantile itself does not depend on order, and that is tested.
"""

from __future__ import annotations

import math
import operator
import random
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from ragauge.stats import intervals, resampling
from ragauge.stats.intervals import bootstrap, bootstrap_quantile, quantile
from ragauge.stats.resampling import POISSON_FROM, SEED

Floats = NDArray[np.float64]
SHARES = (0.5, 0.9, 0.95)
SIZES = (1, 2, 7, 40, POISSON_FROM - 1, POISSON_FROM, POISSON_FROM + 203)
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


def latencies(n: int, seed: int) -> Floats:
    """Milliseconds with a long tail, some of them equal."""
    rng = random.Random(seed)
    return np.array([round(rng.lognormvariate(6, 1), rng.choice((0, 3))) for _ in range(n)])


@pytest.mark.parametrize("n", [1, 2, POISSON_FROM - 1, POISSON_FROM + 203])
def test_weights_are_drawn_as_defined(n: int) -> None:
    """A resample depends on seed, block and place in it alone; fewer are the first of more."""
    expected = plain_weights(n, SOME, 7)
    for resamples in (SOME, 65, 64, 3):
        found = resampling.in_blocks(partial(resampling.weigh, n=n), resamples, 7)
        assert np.array_equal(found, expected[:resamples])


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("seed", range(40))
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
    assert bootstrap_quantile(np.zeros(0), 0.5) is None


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_no_numbers_are_refused(bad: float) -> None:
    """A NaN would sort last and pass for the slowest question."""
    values = np.array([1.0, bad])
    with pytest.raises(ValueError, match="finite"):
        quantile(values, 0.5)
    with pytest.raises(ValueError, match="finite"):
        bootstrap_quantile(values, 0.5)
    with pytest.raises(ValueError, match="finite"):
        bootstrap(values[:, None], np.ones((2, 1)))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("share", SHARES)
def test_each_resample_is_a_multiset(n: int, share: float) -> None:
    """The bounds are those of np.quantile over values that stand as often as their weight says."""
    values = latencies(n, n)
    weights = plain_weights(n, SOME)
    estimates = [np.quantile(np.repeat(values, row), share) for row in weights]
    expected = np.quantile(estimates, [0.025, 0.975])
    found = bootstrap_quantile(values, share, resamples=SOME)
    assert found == pytest.approx(tuple(expected), rel=1e-12)


def test_a_resample_without_questions_is_left_out() -> None:
    """Poisson weights of few questions may all be 0: that row has no quantile, the others stay."""
    draws = np.array([[0, 2, 0], [0, 0, 0], [1, 0, 3], [0, 0, 0]])
    values = np.array([5.0, 1.0, 9.0])
    order = np.argsort(values)
    found = intervals._quantiles(draws, order, values[order], 0.5)
    assert found.tolist() == [1.0, 9.0]  # the medians of {1, 1} and of {5, 9, 9, 9}
    assert intervals._quantiles(draws[1:2], order, values[order], 0.5).tolist() == []


def test_two_questions_have_three_medians() -> None:
    """Of 0 and 10, a resample has the median 0, 5 or 10 with chances 1/4, 1/2 and 1/4."""
    assert bootstrap_quantile(np.array([10.0, 0.0]), 0.5) == (0.0, 10.0)
    weights = plain_weights(2, SOME)
    medians = [np.median(np.repeat([10.0, 0.0], row)) for row in weights]
    assert sorted(set(medians)) == [0.0, 5.0, 10.0]


@pytest.mark.parametrize("n", [1, 40, POISSON_FROM + 1])
@pytest.mark.parametrize("value", [0.0, 1 / 3, -7.25, 1e7])
def test_equal_values_leave_no_doubt(n: int, value: float) -> None:
    assert bootstrap_quantile(np.full(n, value), 0.95, resamples=200) == (value, value)


@pytest.mark.parametrize("n", [2, 40, POISSON_FROM + 203])
def test_bounds_do_not_depend_on_threads_or_chunks(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread or three, a row at a time or a block: the same bits."""
    values = latencies(n, 3)
    tops = np.stack([values, -values / 3, np.rint(values)], axis=1)
    found = set()
    for threads, cells in ((2, 1 << 17), (1, 1 << 40), (3, 1), (1, 5 * n)):
        monkeypatch.setattr(resampling, "THREADS", threads)
        monkeypatch.setattr(resampling, "_PRODUCTS", cells)
        monkeypatch.setattr(intervals, "_CELLS", cells)
        ranges = [*bootstrap(tops, np.ones_like(tops), resamples=500)]
        ranges += [bootstrap_quantile(values, share, resamples=500) for share in SHARES]
        found.add(repr(ranges))
    assert len(found) == 1


@pytest.mark.parametrize("n", [400, POISSON_FROM + 203])
def test_resamples_belong_to_places(n: int) -> None:
    """Another order draws other resamples: other bounds, no further off than another seed's."""
    values = latencies(n, 5)
    first = bootstrap_quantile(values, 0.5)
    turned = bootstrap_quantile(values[::-1].copy(), 0.5)
    reseeded = bootstrap_quantile(values, 0.5, seed=1)
    assert first is not None
    assert turned is not None
    assert reseeded is not None
    assert len({first, turned, reseeded}) == 3
    width = first[1] - first[0]
    for other in (turned, reseeded):
        assert other == pytest.approx(first, abs=0.1 * width)


@pytest.mark.parametrize("n", [40, POISSON_FROM + 203])
def test_bounds_follow_the_values(n: int) -> None:
    """Larger shares have larger bounds; values times 4 or mirrored have their bounds likewise."""
    values = latencies(n, 6)
    ranges = [bootstrap_quantile(values, share, resamples=500) for share in (0.1, *SHARES, 1.0)]
    lows, highs = zip(*(each for each in ranges if each), strict=True)
    assert list(lows) == sorted(lows)
    assert list(highs) == sorted(highs)
    low, high = bootstrap_quantile(values * 4, 0.5, resamples=500) or (0.0, 0.0)
    assert (low / 4, high / 4) == ranges[1]
    mirrored = bootstrap_quantile(-values, 0.9, resamples=500) or (0.0, 0.0)
    assert (-mirrored[1], -mirrored[0]) == pytest.approx(ranges[0], rel=1e-9)


def test_the_interval_of_a_median_covers_it() -> None:
    """Of 300 samples of 80 questions, the interval holds the true median in about 95 %.

    The standard error of the share is √(0.95 × 0.05 / 300) = 0.0126; a 90 % interval would miss.
    """
    rng = np.random.default_rng(20_261_115)
    held = 0
    for _ in range(300):
        interval = bootstrap_quantile(rng.exponential(1.0, 80), 0.5, resamples=500)
        assert interval is not None
        held += interval[0] <= math.log(2) <= interval[1]
    assert 0.92 <= held / 300 <= 0.98


# Bounds that version 0.1.0 printed, as hexadecimal floats: values from 0 to 1 keep them for ever.
KEPT = {
    40: [
        "0x1.4000000000000p-1", "0x1.ccccccccccccdp-1", "0x1.8af8b33333333p-2",
        "0x1.315f133333333p-1", "0x1.5493333dd1bb0p-2", "0x1.2247beb189a44p-1",
    ],
    1_200: [
        "0x1.85509524ec696p-1", "0x1.9cd91bc796029p-1", "0x1.001dd95efa0acp-1",
        "0x1.1304f99d256b0p-1", "0x1.d9742afaa775ep-2", "0x1.04c763f45159dp-1",
    ],
}  # fmt: skip


@pytest.mark.parametrize("n", KEPT)
def test_bounds_of_scores_stay_as_they_were(n: int) -> None:
    """A rate, a score in sevenths, and one over half of the questions: not a bit has moved."""
    rng = random.Random(n)
    tops, bottoms = np.zeros((n, 3)), np.ones((n, 3))
    for i in range(n):
        tops[i, 0] = rng.random() < 0.8
        tops[i, 1] = rng.randrange(8) / 7
        bottoms[i, 2] = rng.random() < 0.5
        tops[i, 2] = bottoms[i, 2] * rng.random()
    found = [bound.hex() for interval in bootstrap(tops, bottoms) for bound in interval or ()]
    assert found == KEPT[n]


def exact_bounds(tops: Floats, bottoms: Floats) -> tuple[float, float]:
    """Percentiles of ratios of exact sums, for the weights of `bootstrap`."""
    (top_wholes, top_unit), (bottom_wholes, bottom_unit) = map(wholes, (tops, bottoms))
    ratios = []
    for row in plain_weights(len(tops), SOME).tolist():
        top = sum(map(operator.mul, row, top_wholes))
        bottom = sum(map(operator.mul, row, bottom_wholes))
        if bottom:
            ratios.append(float(Fraction(top * bottom_unit, bottom * top_unit)))
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(low), float(high)


def wholes(values: Floats) -> tuple[list[int], int]:
    """Values as multiples of one over a common denominator, with nothing lost."""
    ratios = [value.as_integer_ratio() for value in values.tolist()]
    unit = max(bottom for _, bottom in ratios)  # all are powers of two
    return [top * (unit // bottom) for top, bottom in ratios], unit


@pytest.mark.parametrize("n", [40, POISSON_FROM + 203])
def test_bootstrap_takes_values_of_any_sign_and_size(n: int) -> None:
    """Against exact sums; the resolution is half a step of 2**-20, coarser only for large sums."""
    rng = np.random.default_rng(n)
    ones = np.ones(n)
    ranks = rng.integers(-12, 13, n).astype(np.float64)
    hits, sizes = (rng.integers(0, most, n).astype(np.float64) for most in (5, 9))
    cases: list[tuple[Floats, Floats, float]] = [
        (rng.uniform(0, 2, n), ones, 2.0**-21),
        (rng.uniform(-1, 1, n), ones, 2.0**-21),
        (ranks, ones, 0.0),
        (rng.uniform(0, 1e7, n), ones, 2.0**-12),
        (np.rint(rng.uniform(0, 1e7, n)), ones, 0.0),
        (rng.uniform(-1e300, 1e300, n), ones, 1e288),
        (2 * hits, sizes, 0.0),  # a ratio, as F1 is
        (rng.uniform(0, 3, n), rng.uniform(0, 2, n), 2.0**-19),
        (-np.zeros(n), ones, 0.0),
    ]
    tops = np.stack([top for top, _, _ in cases], axis=1)
    bottoms = np.stack([bottom for _, bottom, _ in cases], axis=1)
    together = bootstrap(tops, bottoms, resamples=SOME)
    for i, (top, bottom, near) in enumerate(cases):
        alone = bootstrap(top[:, None], bottom[:, None], resamples=SOME)
        assert repr(alone) == repr(together[i : i + 1]), i  # repr tells -0.0 from 0.0
        expected = exact_bounds(top, bottom)
        assert together[i] == pytest.approx(expected, rel=1e-14, abs=near), i


@pytest.mark.parametrize("n", [3, POISSON_FROM - 1, POISSON_FROM])
def test_every_sum_of_steps_is_exact(n: int) -> None:
    """Even if chance gave the largest weights there are, no sum of steps would reach 2**53."""
    rng = np.random.default_rng(n)
    sizes = (1e-300, 1e-3, 1.0, 2.0, 7.5, 2.0**23, 1e7, 1e15, 2.0**53, 1e300)
    columns = np.stack([rng.uniform(-size, size, n) for size in sizes], axis=1)
    columns[0] = sizes
    stepped, steps = resampling.whole(columns)
    assert (stepped == np.rint(stepped)).all()
    for i, column in enumerate(stepped.T.tolist()):
        sums = [int(abs(value)) for value in column]
        largest = 5 * sum(sums) if n >= POISSON_FROM else n * max(sums)
        assert largest < 2**53
        assert math.frexp(steps[i])[0] == 0.5  # a power of two
        assert steps[i] == 2**20 or 16 * largest > 2**53  # and no coarser than it has to be
    assert (np.abs(stepped / steps - columns) <= 0.5 / steps).all()


@pytest.mark.parametrize(("largest", "single"), [(8.0, True), (2.0**24 / 40, False)])
def test_single_precision_only_where_it_is_exact(largest: float, single: bool) -> None:
    """41 counts: a resample may be the largest of them 41 times over."""
    columns = np.ones((41, 1))
    columns[0] = np.rint(largest)
    assert (resampling.whole(columns).columns.dtype == np.float32) is single
    assert resampling.whole(columns / 3).columns.dtype == np.float64
