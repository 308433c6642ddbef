"""Tests of a metric over many runs: worked numbers, scipy beside them, and how often they err."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from ragauge.stats.series import (
    FEWEST_BEFORE,
    LEVEL,
    change_test,
    newest_test,
    trend_test,
)

STEADY = [0.80 + 0.001 * (7 * place % 20) for place in range(20)]  # 0.800 to 0.819, mixed


# --- the newest value ---


def test_the_worst_of_twenty_one_is_beyond_the_noise() -> None:
    """Nothing of 20 is as bad: 1 of 21 = 0.0476; one as bad makes it 2 of 21 = 0.0952."""
    assert newest_test([*STEADY, 0.799], "higher").p == 1 / 21
    assert newest_test([*STEADY, 0.800], "higher").p == 2 / 21
    assert newest_test([*STEADY, 0.900], "higher").p == 1.0
    assert newest_test([*STEADY, 0.900], "lower").p == 1 / 21


def test_only_the_last_values_count_and_few_tell_nothing() -> None:
    old = [0.5] * 5
    tested = newest_test([*old, *STEADY, 0.7], "higher", last=20)
    assert (tested.n, tested.rank, tested.p) == (20, 0, 1 / 21)
    assert tested.worst == min(STEADY)
    few = newest_test([*STEADY[: FEWEST_BEFORE - 1], 0.1], "higher")
    assert (few.p, few.n, few.rank) == (None, 18, 0)
    just = newest_test([*STEADY[:FEWEST_BEFORE], 0.1], "higher")
    assert just.p == 1 / 20 <= LEVEL
    alone = newest_test([0.5], "higher")
    assert (alone.n, alone.p, alone.worst) == (0, None, None)


# --- the trend ---


def test_a_trend_of_five() -> None:
    """1 2 3 5 4: 9 pairs rise, 1 falls, S = 8; 1 + 4 of 120 orders are as high: p = 2 × 5/120."""
    tested = trend_test([1, 2, 3, 5, 4])
    assert (tested.s, tested.tau) == (8, 0.8)
    assert tested.p == pytest.approx(10 / 120)
    assert trend_test([5, 4, 3, 2, 1]).p == pytest.approx(2 / 120)
    assert trend_test([0.5] * 6).p == 1.0
    assert trend_test([1, 2, 3, 4]).p is None
    assert trend_test([0.90, 0.88, 0.86, 0.84, 0.82]).slope == pytest.approx(-0.02)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 8, 13, 20, 40])
def test_trends_agree_with_scipy(n: int) -> None:
    """Without ties its exact p of Kendall's tau against time is the same test."""
    from scipy import stats as scipy_stats  # type: ignore[import-untyped]  # a second to load

    chance = random.Random(n)
    for _ in range(20):
        values = [chance.random() for _ in range(n)]
        theirs = scipy_stats.kendalltau(range(n), values, method="exact")
        ours = trend_test(values)
        assert ours.tau == pytest.approx(theirs.statistic)
        assert ours.p == pytest.approx(theirs.pvalue)
        slope = scipy_stats.theilslopes(values).slope
        assert ours.slope == pytest.approx(slope)


@pytest.mark.parametrize("values", [(1, 1, 2, 2, 3), (1, 1, 1, 2, 2, 3), (1, 2, 2, 2, 2, 2, 3)])
def test_ties_are_counted_exactly(values: tuple[int, ...]) -> None:
    """All orders, one by one, are the distribution."""

    def s_of(order: tuple[int, ...]) -> int:
        return sum((b > a) - (b < a) for a, b in itertools.combinations(order, 2))

    every = [abs(s_of(order)) for order in itertools.permutations(values)]
    for order in set(itertools.permutations(values)):
        expected = sum(s >= abs(s_of(order)) for s in every) / len(every)
        assert trend_test(order).p == pytest.approx(expected)


@pytest.mark.slow
def test_long_series_are_normal_with_ties() -> None:
    """Beyond 60 values, as scipy's asymptotic test, but for the half step that we take off."""
    from scipy import stats as scipy_stats

    chance = random.Random(1)
    values = [chance.randint(0, 9) + place / 30 for place in range(61)]
    values = [float(math.floor(value)) for value in values]
    ours = trend_test(values)
    theirs = scipy_stats.kendalltau(range(61), values, method="asymptotic")
    assert ours.p is not None
    assert ours.p == pytest.approx(theirs.pvalue, rel=0.05)
    assert ours.p > theirs.pvalue


# --- the change ---


def test_a_step_is_found_at_its_place() -> None:
    """Ranks 9 to 16 before 1 to 8: U after 8 = 2 × (9 + ... + 16) - 8 × 17 = 64 = 8 × 8."""
    values = [0.9 + 0.001 * place for place in range(8)] + [
        0.8 + 0.001 * place for place in range(8)
    ]
    tested = change_test(values)
    assert (tested.place, tested.k) == (8, 64.0)
    assert tested.before == pytest.approx(0.9035)
    assert tested.after == pytest.approx(0.8035)
    assert tested.p is not None
    assert tested.p < 0.01
    assert change_test([0.5] * 9).p == 1.0
    assert change_test([1.0, 2.0, 3.0, 4.0]).p is None


def test_changes_agree_with_all_permutations() -> None:
    values = (0.9, 0.91, 0.92, 0.8, 0.81, 0.82, 0.83)
    observed = change_test(values)

    def k_of(order: tuple[float, ...]) -> float:
        return max(
            abs(sum((a > b) - (a < b) for a in order[:t] for b in order[t:]))
            for t in range(1, len(order))
        )

    assert observed.k == k_of(values)
    every = [k_of(order) for order in itertools.permutations(values)]
    exact = sum(k >= observed.k for k in every) / len(every)
    assert observed.p == pytest.approx(exact, abs=0.01)  # 9,999 of them are drawn


def test_equal_histories_have_equal_answers() -> None:
    assert change_test(STEADY) == change_test(list(STEADY))


# --- how often they are wrong ---


@pytest.mark.slow
@pytest.mark.parametrize("questions", [30, 200])
def test_unchanged_systems_raise_few_alarms(questions: int) -> None:
    """Recall of questions that flip by chance, run after run: each test errs in at most 5 %."""
    chance = random.Random(questions)
    histories = 400
    alarms = {"newest": 0, "trend": 0, "change": 0}
    for _ in range(histories):
        values = [
            sum(chance.random() < 0.8 for _ in range(questions)) / questions for _ in range(21)
        ]
        tested = {
            "newest": newest_test(values, "higher").p,
            "trend": trend_test(values).p,
            "change": change_test(values, permutations=499).p,
        }
        for name, p in tested.items():
            assert p is not None
            alarms[name] += p <= LEVEL
    # 5 % of 400 are 20; more than 32 come in fewer than 1 of 200 simulations of a test at 5 %.
    assert max(alarms.values()) <= 32, alarms
