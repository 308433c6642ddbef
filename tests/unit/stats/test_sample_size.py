"""The smallest detectable change is that of the formulas, to six digits."""

from __future__ import annotations

import numpy as np
import pytest

from ragauge.stats.intervals import group_sums
from ragauge.stats.sample_size import Size, detectable_change, detectable_drop
from tests.support.cases import cases

DIGITS = 5e-7
THIRD = 1 / 3


@cases(
    ("values", "expected"),
    [
        ([1] * 5, 0.676130),
        ([1] * 11 + [0], 0.413141),
        ([1] * 28 + [0] * 2, 0.219445),
        ([1] * 30, 0.175060),
        ([1] * 95 + [0] * 5, 0.094600),
        ([1] * 180 + [0] * 20, 0.069846),
        ([1] * 196 + [0] * 4, 0.047423),
        ([1] * 900 + [0] * 100, 0.029434),
        ([1] * 7 + [2 / 3, 0.5, 0], 0.387240),
    ],
)
def test_levels(values: list[float], expected: float) -> None:
    sums = group_sums(np.array(values, np.float64))
    change = detectable_change(sums, higher_is_better=True)
    assert change is not None
    assert abs(change - expected) < DIGITS
    mirrored = group_sums(1 - np.array(values, np.float64))
    assert detectable_change(mirrored, higher_is_better=False) == pytest.approx(change)


def test_nothing_lies_below_an_interval_that_reaches_0() -> None:
    assert detectable_change(group_sums(np.zeros(5)), higher_is_better=True) is None


@cases(
    ("n", "moved", "plain", "beyond_2_points"),
    [
        (30, [], 0.212901, 0.249857),
        (50, [], 0.152827, 0.175250),
        (200, [], 0.039025, 0.067423),
        (200, [-1] * 10 + [1] * 2, 0.055951, 0.084089),
        (200, [-1] * 5 + [1] * 5, 0.068965, 0.095142),
        (1000, [-1] * 40 + [1] * 20, 0.022266, 0.045898),
        (10, [-THIRD, -0.5, 1], 0.555858, 0.575864),
    ],
)
def test_drops(n: int, moved: list[float], plain: float, beyond_2_points: float) -> None:
    differences = np.array(moved + [0] * (n - len(moved)), np.float64)
    for max_drop, expected in ((0.0, plain), (0.02, beyond_2_points)):
        drop = detectable_drop(differences, max_drop=max_drop)
        assert drop is not None
        assert abs(drop - expected) < DIGITS
        assert detectable_drop(-differences, max_drop=max_drop) == drop


@pytest.mark.parametrize("differences", [[], [0.0], [0.5, -1.0]])
def test_too_few_questions_show_no_drop(differences: list[float]) -> None:
    assert detectable_drop(np.array(differences, np.float64)) is None


def test_more_questions_show_smaller_changes() -> None:
    sizes = [Size(n).detectable or 0 for n in (10, 30, 100, 1000)]
    assert sizes == sorted(sizes, reverse=True)
    needed = Size.needed(0.05)
    assert (Size(needed).detectable or 1) <= 0.05 < (Size(needed - 1).detectable or 1)
    assert Size(0).half_width is None
    assert Size(0).detectable is None
