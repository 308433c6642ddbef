"""Intervals are those of the formulas, to six digits, and have the properties they promise.

The numbers were worked out apart from this code: they are the vectors of the design.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.stats.intervals import (
    GroupSums,
    Interval,
    by_group,
    delta_interval,
    group_sums,
    quantile,
    quantile_delta_interval,
    quantile_interval,
    quantile_ranks,
    questions_to_bound,
    score_interval,
    unbounded_interval,
)
from tests.support.cases import cases

DIGITS = 5e-7
THIRD, SIXTH = 1 / 3, 1 / 6
Groups = list[list[float]]


def sums_of(groups: Groups) -> GroupSums:
    return group_sums(
        np.array([sum(group) for group in groups], np.float64),
        np.array([len(group) for group in groups], np.int64),
    )


def rate(successes: int, n: int) -> GroupSums:
    return group_sums(np.array([1.0] * successes + [0.0] * (n - successes)))


def close(one: Interval | None, other: Interval) -> bool:
    assert one is not None
    return all(
        a is not None and b is not None and abs(a - b) < DIGITS
        for a, b in zip(one, other, strict=True)
    )


@cases(
    ("successes", "n", "expected"),
    [
        (5, 5, (0.565518, 1)),
        (4, 5, (0.375535, 0.989470)),
        (9, 10, (0.595850, 0.994758)),
        (11, 12, (0.646120, 0.995635)),
        (15, 30, (0.331541, 0.668459)),
        (30, 30, (0.886487, 1)),
        (98, 100, (0.929988, 0.996528)),
        (190, 200, (0.910422, 0.974392)),
        (990, 1000, (0.981691, 0.994910)),
    ],
)
def test_rates(successes: int, n: int, expected: tuple[float, float]) -> None:
    assert close(score_interval(rate(successes, n)), expected)
    low, high = expected
    assert close(score_interval(rate(n - successes, n)), (1 - high, 1 - low))


@cases(
    ("values", "worth", "expected"),
    [
        ([1] * 5, 5, (0.565518, 1)),
        ([1] * 4 + [0.5], 6.041667, (0.501307, 0.999556)),
        ([1] * 7 + [2 / 3, 0.5, 0], 12.331962, (0.538429, 0.962816)),
        ([1, 0.5, THIRD, 0, 1], 6.344937, (0.236181, 0.858709)),
        ([1] * 28 + [2 / 3, THIRD], 38.759124, (0.856201, 0.996944)),
        ([0.4] * 20, 116, (0.313829, 0.490974)),
        ([0.2] * 10 + [0.6] * 10, 64.444444, (0.286509, 0.521957)),
        ([1] * 6 + [5 * SIXTH, 5 * SIXTH, 0.5, 0], 12.679831, (0.542452, 0.961715)),
    ],
)
def test_means(values: list[float], worth: float, expected: tuple[float, float]) -> None:
    sums = group_sums(np.array(values, np.float64))
    assert abs(sums.effective_n - worth) < DIGITS
    assert close(score_interval(sums), expected)


@cases(
    ("groups", "equal", "learned", "worth", "expected"),
    [
        (["1111"] * 3, 3, 3, 3, (0.438503, 1)),
        (["111111"] * 10, 10, 10, 10, (0.722467, 1)),
        (["11110"] * 10, 10, 10, 26, (0.612761, 0.922194)),
        (["1111", "1110", "0000", "11"], 3.769231, 3.448980, 4.169218, (0.235541, 0.939765)),
        (["11", "101", "1111", "001", "111110"], 4.378378, 3.165318, 6.006189,
         (0.388058, 0.978092)),
        (["1"] * 7 + ["0", "1111", "0000"], 6.4, 3.076923, 6.4, (0.324713, 0.935880)),
        ([[1, 0.5], [0.5, 0.5, 1], [1, 1]], 2.882353, 2.557522, 3.936185, (0.323548, 0.993305)),
    ],
)  # fmt: skip
def test_conversations(
    groups: list[str] | Groups, equal: float, learned: float, worth: float,
    expected: tuple[float, float],
) -> None:  # fmt: skip
    sums = sums_of([[float(value) for value in group] for group in groups])
    assert abs(sums.equal_groups - equal) < DIGITS
    assert abs(sums.variance_groups - learned) < DIGITS
    assert abs(sums.effective_n - worth) < DIGITS
    assert close(score_interval(sums), expected)


@cases(
    ("n", "median", "p90", "p95"),
    [
        (5, (None, None), (3, None), (4, None)),
        (6, (1, 6), (4, None), (4, None)),
        (10, (2, 9), (7, None), (8, None)),
        (30, (10, 21), (23, None), (26, None)),
        (36, (12, 25), (29, 36), (31, None)),
        (72, (28, 45), (59, 70), (64, 72)),
        (100, (40, 61), (84, 96), (90, 100)),
        (200, (86, 115), (171, 189), (184, 197)),
        (1000, (469, 532), (881, 919), (936, 964)),
        (100_000, (49690, 50311), (89814, 90187), (94864, 95136)),
    ],
)
def test_ranks_of_quantiles(n: int, median: Interval, p90: Interval, p95: Interval) -> None:
    assert [quantile_ranks(n, share) for share in (0.5, 0.9, 0.95)] == [median, p90, p95]


@pytest.mark.parametrize("share", [0.9, 0.95])
def test_fewer_questions_than_needed_leave_the_bound_open(share: float) -> None:
    needed = questions_to_bound(share)
    assert needed == {0.9: 36, 0.95: 72}[share]
    assert quantile_ranks(needed, share)[1] is not None
    assert quantile_ranks(needed - 1, share)[1] is None


def test_turns_that_are_alike_say_less_of_a_median() -> None:
    """Twelve conversations of three turns: neighbours together, then spread."""
    values = np.arange(1.0, 37.0)
    together, spread = np.repeat(np.arange(12), 3), np.tile(np.arange(12), 3)
    assert quantile_interval(values, 0.5, together) == (7, 30)
    assert quantile_interval(values, 0.5, spread) == (12, 25)
    assert quantile_interval(values, 0.5) == (12, 25)


@given(st.integers(6, 60), st.randoms(use_true_random=False))
def test_a_quantile_lies_in_its_interval(n: int, random: object) -> None:
    values = np.array([getattr(random, "random")() for _ in range(n)])  # noqa: B009
    low, high = quantile_interval(values, 0.5)
    middle = quantile(values, 0.5)
    assert low is not None
    assert high is not None
    assert middle is not None
    assert low <= middle <= high


def test_quantiles_of_two_runs() -> None:
    assert quantile_delta_interval(10, 12, (7, 14), (9, 15)) == (2 - 5, 2 + 18**0.5)
    assert quantile_delta_interval(10, 12, (7, None), (9, 15)) is None


@cases(
    ("n", "moved", "expected"),
    [
        (5, [], (-0.395973, 0.395973)),
        (30, [], (-0.086619, 0.086619)),
        (200, [], (-0.013722, 0.013722)),
        (200, [-1] * 10, (-0.082416, -0.016594)),
        (200, [-1] * 10 + [1] * 2, (-0.075495, -0.003713)),
        (200, [-1] * 5 + [1] * 5, (-0.033611, 0.033611)),
        (50, [-1] * 3, (-0.140502, 0.025117)),
        (10, [-THIRD, -0.5, 1], (-0.285447, 0.313225)),
        (5, [-1] * 5, (-1, -0.195836)),
        (1000, [-1] * 40 + [1] * 20, (-0.035312, -0.004608)),
    ],
)
def test_differences(n: int, moved: list[float], expected: tuple[float, float]) -> None:
    values = np.array(moved + [0] * (n - len(moved)), np.float64)
    assert close(delta_interval(group_sums(values)), expected)


def test_differences_of_conversations() -> None:
    groups: Groups = [[0, 0, -1], [0, 0], [0, -1, -1, 0], [1, 0]]
    assert close(delta_interval(sums_of(groups)), (-0.665596, 0.430302))


def test_a_mean_without_an_upper_end_needs_a_hundred() -> None:
    values = np.arange(100, dtype=np.float64)
    # mean 49.5, standard deviation 29.011492, over √100
    assert close(unbounded_interval(values), (49.5 - 5.686148, 49.5 + 5.686148))
    assert unbounded_interval(values[:99]) is None


# --- what always holds ---

VALUES = st.lists(st.sampled_from([0.0, 0.2, THIRD, 0.5, 0.75, 1.0]), min_size=1, max_size=40)
TALKS = st.lists(
    st.lists(st.sampled_from([0.0, THIRD, 0.5, 1.0]), min_size=1, max_size=6),
    min_size=1,
    max_size=12,
)


@given(TALKS)
def test_the_mean_lies_inside_and_the_interval_has_a_width(talks: Groups) -> None:
    sums = sums_of(talks)
    low, high = score_interval(sums)
    assert 0 <= low <= sums.mean <= high <= 1
    assert high - low > 1e-3


@given(TALKS)
def test_the_mirror_image_has_the_mirrored_interval(talks: Groups) -> None:
    mirrored = [[1 - value for value in talk] for talk in talks]
    low, high = score_interval(sums_of(talks))
    other_low, other_high = score_interval(sums_of(mirrored))
    assert abs(low - (1 - other_high)) < 1e-9
    assert abs(high - (1 - other_low)) < 1e-9


@given(TALKS, st.randoms(use_true_random=False))
def test_order_changes_no_bit(talks: Groups, random: object) -> None:
    shuffled = list(talks)
    getattr(random, "shuffle")(shuffled)  # noqa: B009
    assert sums_of(shuffled) == sums_of(talks)


@given(VALUES)
def test_one_turn_a_conversation_is_no_conversation(values: list[float]) -> None:
    assert sums_of([[value] for value in values]) == group_sums(np.array(values))


@given(TALKS)
def test_sums_are_those_of_fractions(talks: Groups) -> None:
    """Mean and variance by the definition, in fractions of the very values."""
    sums = sums_of(talks)
    sizes = [len(talk) for talk in talks]
    totals = [Fraction(round(sum(talk) * 720_720), 720_720) for talk in talks]
    mean = sum(totals) / sum(sizes)
    off = sum((total - mean * size) ** 2 for total, size in zip(totals, sizes, strict=True))
    variance = off / sum(size * size for size in sizes)
    assert abs(sums.mean - mean) < 1e-9
    assert abs(sums.variance - variance) < 1e-9


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, THIRD, 1.0]), min_size=1, max_size=40))
def test_a_difference_lies_inside_and_swapping_mirrors(values: list[float]) -> None:
    low, high = delta_interval(group_sums(np.array(values)))
    assert -1 <= low <= sum(values) / len(values) + 1e-12
    assert sum(values) / len(values) - 1e-12 <= high <= 1
    assert high > low
    swapped = delta_interval(group_sums(-np.array(values)))
    assert abs(swapped[0] + high) < 1e-12
    assert abs(swapped[1] + low) < 1e-12


def test_values_are_put_together_by_group() -> None:
    sums, sizes = by_group(np.array([1.0, THIRD, THIRD, THIRD]), np.array([2, 0, 0, 0]))
    assert sums.tolist() == [1.0, 1.0]
    assert sizes.tolist() == [3, 1]
