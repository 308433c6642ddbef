"""Error rates of gates: against exact sums, published tables and simulation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from ragauge.stats.error_rates import (
    DropNoise,
    Policy,
    chance_against_best,
    drop_chances,
    drop_noise,
    level_chances,
    perfect_passes_from,
    questions_worth,
    unchanged_passes_from,
)
from ragauge.stats.intervals import delta_interval, group_sums, score_interval
from tests.support.cases import cases

POLICIES: tuple[Policy, ...] = ("point", "confident-pass", "confident-fail")


@cases(
    ("threshold", "n"),
    [(0.95, 73), (0.9, 35), (0.8, 16), (0.5, 4), (0.99, 381), (1.0, None), (0.0, 1)],
)
def test_a_perfect_score_passes_from_some_n_on(threshold: float, n: int | None) -> None:
    """n / (n + z²) >= T, that is n >= z² T / (1 - T); at 0.95: 3.8415 × 19 = 72.99."""
    assert perfect_passes_from(threshold) == n
    if n is not None and n > 1:
        for questions, passes in ((n, True), (n - 1, False)):
            lower, _ = score_interval(group_sums(np.ones(questions)))
            assert (lower >= threshold) is passes


@cases(("most", "n"), [(0.02, 137), (0.05, 54), (0.01, 276), (0.0, None), (-0.1, None)])
def test_no_change_passes_from_some_n_on(most: float, n: int | None) -> None:
    """z √2 / (n + 2) <= D; at 0.02: 2.7718 / 0.02 - 2 = 136.6."""
    assert unchanged_passes_from(most) == n
    if n is not None:
        for questions, passes in ((n, True), (n - 1, False)):
            _, upper = delta_interval(group_sums(np.zeros(questions)))
            assert (upper <= most) is passes


@cases("values", [[1.0] * 30, [1.0] * 190 + [0.0] * 10, [0.4] * 20, [1, 0.5, 1 / 3, 0, 1]])
def test_an_interval_tells_how_many_questions_it_is_worth(values: list[float]) -> None:
    sums = group_sums(np.array(values, np.float64))
    lower, upper = score_interval(sums)
    assert questions_worth(sums.mean, lower, upper) == pytest.approx(sums.effective_n, rel=1e-6)


@cases("policy", POLICIES)
@cases(("n", "true", "threshold"), [(12, 0.9, 0.8), (30, 0.7, 0.75), (50, 0.95, 0.9)])
def test_chances_of_a_rate_are_those_of_all_its_outcomes(
    policy: Policy, n: int, true: float, threshold: float
) -> None:
    """By judging every number of successes, each as likely as the binomial says."""
    sums = dict.fromkeys(("pass", "review", "fail"), 0.0)
    for right in range(n + 1):
        values = np.array([1.0] * right + [0.0] * (n - right))
        lower, upper = score_interval(group_sums(values))
        met = Fraction(right, n) >= Fraction(str(threshold))
        if policy == "confident-pass":
            status = "pass" if lower >= threshold else "fail"
        elif policy == "confident-fail":
            status = "pass" if met else "fail" if upper < threshold else "review"
        else:
            status = "pass" if met else "fail"
        sums[status] += math.comb(n, right) * true**right * (1 - true) ** (n - right)
    chances = level_chances(true, n, threshold, policy)
    assert (chances.passes, chances.reviews, chances.fails) == pytest.approx(
        (sums["pass"], sums["review"], sums["fail"]), abs=1e-9
    )


# n = 200, the share of questions whose result is a coin flip in both runs, P(fail) by
# confident-fail at max_drop 0 with a true drop of 0, 0.02, 0.05 and 0.10, and by the point at 0.02:
# 6,000 simulated runs each (the table that the policies were chosen by).
TABLE = {
    0.05: (0.005, 0.164, 0.747, 0.995, 0.03),
    0.10: (0.012, 0.146, 0.612, 0.978, 0.08),
    0.15: (0.016, 0.133, 0.520, 0.957, 0.12),
    0.20: (0.020, 0.118, 0.451, 0.924, 0.15),
    0.25: (0.023, 0.105, 0.405, 0.890, 0.18),
}


@cases("unstable", TABLE)
def test_chances_of_a_drop_are_those_that_were_simulated(unstable: float) -> None:
    noise = DropNoise(200, 1.0, unstable / 2)
    *expected, by_point = TABLE[unstable]
    computed = [
        drop_chances(noise, drop, 0.0, "confident-fail").fails for drop in (0, 0.02, 0.05, 0.10)
    ]
    assert computed == pytest.approx(expected, abs=0.035)
    assert drop_chances(noise, 0.0, 0.02, "point").fails == pytest.approx(by_point, abs=0.012)


@pytest.mark.slow
@cases("most", [0.0, 0.01, 0.02])
@cases("unstable", [0.0, 0.05, 0.15, 0.25])
def test_confident_fail_rarely_fails_what_did_not_change(unstable: float, most: float) -> None:
    """At most 5 % of A/A comparisons at n = 200, simulated with the interval that decides."""
    draw = np.random.default_rng(16)
    runs, n = 2000, 200
    stable = draw.random((runs, n)) < 0.8
    flips = draw.random((runs, n)) < unstable
    coins = draw.random((2, runs, n)) < 0.5
    a, b = (np.where(flips, coin, stable).astype(np.float64) for coin in coins)
    fails = sum(delta_interval(group_sums(one))[1] < -most for one in b - a)
    assert fails / runs <= 0.05


def test_noise_is_what_moved_against_the_trend() -> None:
    """Ten got worse and two better: four moves are noise, and one that was not seen is added."""
    differences = np.array([-1.0] * 10 + [1.0] * 2 + [0.0] * 188)
    noise = drop_noise(differences)
    assert (noise.n, noise.size) == (200, 1.0)
    assert noise.churn == pytest.approx(5 / 201)
    assert drop_noise(np.zeros(30)) == DropNoise(30, 1.0, 1 / 31)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_normal_curve_goes_on_where_counting_ends(policy: Policy) -> None:
    few, many = DropNoise(9_900, 1.0, 0.2), DropNoise(10_100, 1.0, 0.2)
    one, other = (drop_chances(noise, 0.005, 0.01, policy) for noise in (few, many))
    assert other.fails == pytest.approx(one.fails, abs=0.02)
    assert other.passes == pytest.approx(one.passes, abs=0.02)


@cases(
    ("against_one", "against_best"),
    # docs/explanation/drift-and-noise.md: max_drop 0.02, point, the newest and the best of ten.
    [(0.105, 0.403), (0.288, 0.746), (0.02, 0.111), (0.189, 0.574), (0.034, 0.169)],
)
def test_the_best_of_ten_runs_lets_gates_fail_as_often_as_was_simulated(
    against_one: float, against_best: float
) -> None:
    assert chance_against_best(against_one, 10) == pytest.approx(against_best, abs=0.03)


@cases("chance", [0.0, 1e-17, 1e-9, 0.01, 0.5, 0.999, 1 - 1e-16, 1.0])
def test_the_best_of_runs_is_between_one_run_and_all_of_them(chance: float) -> None:
    assert chance_against_best(chance, 1) == chance
    for runs in (2, 10, 9999):
        assert chance <= chance_against_best(chance, runs) <= min(1.0, runs * chance + 1e-12)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_baseline_that_was_chosen_from_some_has_wider_bounds(policy: Policy) -> None:
    noise = DropNoise(200, 1.0, 0.1)
    one, ten = (drop_chances(noise, 0.05, 0.02, policy, chosen_from=n) for n in (1, 10))
    assert ten.passes < one.passes
    assert (ten.passes + ten.reviews + ten.fails) == pytest.approx(1.0)
    assert unchanged_passes_from(0.02, tail=0.0025) == 197  # 2.807034·√2 / .02 - 2 = 196.49
