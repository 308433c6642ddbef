"""Intervals and exact sums, against closed formulas and against slow plain Python."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ragauge.stats.exact_sums import UNIT, mean, to_units
from ragauge.stats.intervals import Z95, bootstrap, wilson
from ragauge.stats.resampling import POISSON_FROM
from tests.properties.datasets import Data, Row, scored
from tests.support.effort import examples

Floats = NDArray[np.float64]

# The bounds solve (rate - p)² = z² p (1 - p) / n, with z² = 3.8415:
#   0 of 10: p = 0 and p = z² / (10 + z²) = 3.8415 / 13.8415
#   5 of 10: 0.5 ± z √(0.25 / 10 + z² / 400) / (1 + z² / 10) = 0.5 ± 0.26341
# The others are in print: Newcombe 1998, Statistics in Medicine 17, table I, method 3.
WILSON = [
    (0, 10, 0.0, 0.277533),
    (10, 10, 0.722467, 1.0),
    (5, 10, 0.236593, 0.763407),
    (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
    (0, 20, 0.0, 0.1611),
    (1, 29, 0.0061, 0.1718),
]


@pytest.mark.parametrize(("successes", "n", "low", "high"), WILSON)
def test_wilson_at_known_points(successes: int, n: int, low: float, high: float) -> None:
    """Wilson's interval has the bounds that the formula and the literature give."""
    decimals = 4 if n not in (10,) else 6
    found = wilson(successes, n)
    assert [round(bound, decimals) for bound in found] == [low, high]


@examples(50)
@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_inverts_the_score_test(drawn: tuple[int, int]) -> None:
    """Each bound is the rate at which the score test is just met; the rate lies inside."""
    successes, n = drawn
    low, high = wilson(successes, n)
    rate = successes / n
    assert 0 <= low <= rate <= high <= 1
    for bound in (low, high):
        if 0 < bound < 1:
            assert (rate - bound) ** 2 == pytest.approx(Z95**2 * bound * (1 - bound) / n, rel=1e-6)
    mirrored = wilson(n - successes, n)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-12)
    assert (low == 0) == (successes == 0)
    assert (high == 1) == (successes == n)


def _shares(seed: int, n: int) -> tuple[Floats, Floats]:
    """Three metrics: a rate, a mean of slots, and a rate over half of the questions."""
    rng = random.Random(seed)
    tops, bottoms = np.zeros((n, 3)), np.ones((n, 3))
    for i in range(n):
        tops[i, 0] = rng.random() < 0.8
        tops[i, 1] = rng.randrange(6) / 5
        bottoms[i, 2] = rng.random() < 0.5
        tops[i, 2] = bottoms[i, 2] * (rng.random() < 0.3)
    return tops, bottoms


def _slow_bootstrap(tops: Floats, bottoms: Floats, column: int, draws: int) -> tuple[float, float]:
    """Resample questions one by one, and take the 2.5th and the 97.5th percentile."""
    rng = random.Random(column)
    pairs = list(zip(tops[:, column].tolist(), bottoms[:, column].tolist(), strict=True))
    found = []
    for _ in range(draws):
        drawn = rng.choices(pairs, k=len(pairs))
        total = sum(bottom for _, bottom in drawn)
        found.append(sum(top for top, _ in drawn) / total)
    found.sort()
    return found[round(0.025 * (draws - 1))], found[round(0.975 * (draws - 1))]


@pytest.mark.parametrize("n", [200, POISSON_FROM + 200])
def test_bootstrap_agrees_with_a_slow_one(n: int) -> None:
    """Both ways to weigh questions give the interval of resampling them one by one."""
    tops, bottoms = _shares(n, n)
    found = bootstrap(tops, bottoms)
    near = 0.02 if n == 200 else 0.01
    for column, interval in enumerate(found):
        slow = _slow_bootstrap(tops, bottoms, column, 400_000 // n)
        assert interval == pytest.approx(slow, abs=near), column


@pytest.mark.parametrize("n", [1, 2, 40, 200, POISSON_FROM - 1, POISSON_FROM, POISSON_FROM + 200])
def test_bootstrap_is_the_same_every_time(n: int) -> None:
    """The same questions give the same bounds, and another seed gives others."""
    tops, bottoms = _shares(n, n)
    first = bootstrap(tops, bottoms)
    assert bootstrap(tops.copy(order="F"), bottoms.copy(order="F")) == first
    if n > 2:
        assert bootstrap(tops, bottoms, seed=1) != first


@pytest.mark.parametrize("n", [40, 300, POISSON_FROM + 200])
def test_bootstrap_holds_the_estimate(n: int) -> None:
    """The mean lies inside; each bound is 1.96 standard errors away, as theory has it for many."""
    tops, bottoms = _shares(n + 1, n)
    for column, interval in enumerate(bootstrap(tops, bottoms)):
        assert interval is not None
        values = tops[bottoms[:, column] > 0, column]
        low, high = interval
        assert low < values.mean() < high
        reach = Z95 * values.std() / math.sqrt(len(values))
        expected = (values.mean() - reach, values.mean() + reach)
        # A 90 % bound would be off by 0.16 of the reach.
        near = 0.1 if n > 100 else 0.4
        assert interval == pytest.approx(expected, abs=near * reach), column


@pytest.mark.parametrize("n", [40, POISSON_FROM + 200])
def test_bootstrap_does_not_depend_on_its_company(n: int) -> None:
    """A metric has the same interval alone, with others, twice, and in any place."""
    tops, bottoms = _shares(n, n)
    together = bootstrap(tops, bottoms)
    alone = [bootstrap(tops[:, [i]], bottoms[:, [i]])[0] for i in range(3)]
    assert together == alone
    order = [2, 0, 1, 0]
    assert bootstrap(tops[:, order], bottoms[:, order]) == [together[i] for i in order]


@pytest.mark.parametrize("n", [31, 300, POISSON_FROM + 1])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.5, 1 / 3, 2 / 3, 1 / 7, 0.9999])
def test_bootstrap_of_equal_values_is_that_value(n: int, value: float) -> None:
    """Where all questions have one value, so has every resample: both bounds print as it does."""
    (interval,) = bootstrap(np.full((n, 1), value), np.ones((n, 1)))
    assert interval == pytest.approx((value, value), abs=1e-5)


def test_a_value_lies_in_its_printed_interval() -> None:
    """With three seeds a question and one hit in three, 0.3333 is between its bounds."""
    gold: list[Row] = []
    trace: list[Row] = []
    for number in range(40):
        gold.append({"qid": f"q{number}", "answerable": True, "relevant": ["p1"]})
        hits = [["p1"], ["p2"], []]
        trace += [{"qid": f"q{number}", "seed": i, "hits": hits[i]} for i in range(3)]
    result = scored(Data(gold, trace), k=5).metrics["retrieval.recall_all@5"]
    assert result.value is not None
    assert result.interval is not None
    low, high = (round(bound, 4) for bound in result.interval)
    assert low <= round(result.value, 4) <= high


def test_bootstrap_of_nothing_is_none() -> None:
    """No questions, or none in the population of a metric: no interval."""
    assert bootstrap(np.zeros((0, 2)), np.zeros((0, 2))) == [None, None]
    tops, bottoms = np.zeros((50, 2)), np.zeros((50, 2))
    tops[:, 1] = bottoms[:, 1] = 1
    assert bootstrap(tops, bottoms) == [None, (1.0, 1.0)]


@pytest.mark.parametrize("denominator", range(1, 17))
def test_units_are_exact_for_small_denominators(denominator: int) -> None:
    """A fraction with a denominator up to 16 is a whole number of units, with nothing lost."""
    values = np.arange(denominator + 1, dtype=np.float64) / denominator
    for numerator, units in enumerate(to_units(values).tolist()):
        assert Fraction(units, UNIT) == Fraction(numerator, denominator)


@examples(30)
@given(st.lists(st.floats(0, 1), max_size=30), st.randoms(use_true_random=False))
def test_mean_does_not_depend_on_order(values: list[float], shuffle: random.Random) -> None:
    """The mean is the rounded exact sum over the count, in any order; None for nothing."""
    moved = shuffle.sample(values, len(values))
    found = mean(np.array(values, np.float64))
    assert found == mean(np.array(moved, np.float64))
    if not values:
        assert found is None
    else:
        exact = sum(map(Fraction, values), Fraction()) / len(values)
        assert found == pytest.approx(float(exact), rel=1e-15, abs=1e-300)


@examples(30)
@given(st.lists(st.floats(0, 1), max_size=30))
def test_units_round_to_the_nearest(values: list[float]) -> None:
    """No value is off by more than half a unit."""
    for value, units in zip(values, to_units(np.array(values, np.float64)).tolist(), strict=True):
        # The product is rounded once more before it is rounded to a whole number.
        assert abs(Fraction(value) * UNIT - units) <= Fraction(1, 2) + Fraction(1, 2**12)
