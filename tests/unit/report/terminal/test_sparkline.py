"""Sparklines: a character for each value."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import cases

from ragauge.report.terminal.sparkline import BLOCKS, MISSING, PLAIN, PLAIN_MISSING, sparkline

numbers = st.floats(allow_nan=False, allow_infinity=False)


def test_the_levels_are_eight_blocks() -> None:
    assert [ord(each) for each in BLOCKS] == list(range(0x2581, 0x2589))
    assert len(PLAIN) == len(BLOCKS)
    assert PLAIN.isascii()


@cases(
    ("values", "expected"),
    [
        ([], ""),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([7, 0], "█▁"),
        ([0.0, 0.5, 1.0], "▁▅█"),  # 0.5 × 8 = 4: the fifth level
        ([1, None, 3], "▁·█"),
        ([0.8, 0.8, 0.8], "▄▄▄"),  # all equal: the middle
        ([0.8, None], "▄·"),
        ([None, None], "··"),
        ([1.0, math.nan, 2.0], "▁·█"),
        ([-math.inf, 1, 2, math.inf], "▁▁██"),  # the scale is that of the finite ones
        ([-1.7e308, 0, 1.7e308], "▁▅█"),
    ],
)
def test_lines_by_hand(values: list[float | None], expected: str) -> None:
    assert sparkline(values) == expected


def test_the_scale_may_be_given() -> None:
    assert sparkline([0.5, 0.75], low=0, high=1) == "▅▇"  # 4 and 6 eighths
    assert sparkline([-3, 0.5, 9], low=0, high=1) == "▁▅█"  # what is beyond is at the end
    assert sparkline([0.5, 0.5], low=0) == "██"  # from 0 to the largest
    assert sparkline([0.5, 0.5], high=1) == "▁▁"  # from the smallest to 1
    assert sparkline([0.2, 0.2], low=0.5) == "▁▁"  # all below the scale
    assert sparkline([0.8, 0.8], high=0.5) == "██"
    assert sparkline([0.2, 0.5, 0.8], low=0.5, high=0.5) == "▁▄█"
    assert sparkline([None], low=0, high=1) == "·"
    with pytest.raises(ValueError, match="from 1 down to 0"):
        sparkline([0.5], low=1, high=0)


def test_plain_text() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7, None], ascii=True) == "_.-=+*%# "
    assert sparkline([2, 2], ascii=True) == "=="


def test_the_smallest_numbers_and_the_largest_are_drawn() -> None:
    assert sparkline([0.0, 5e-324]) == BLOCKS[0] + BLOCKS[-1]
    assert sparkline([-1.7e308, 1.7e308]) == BLOCKS[0] + BLOCKS[-1]


@given(st.lists(st.none() | numbers), st.none() | numbers, st.none() | numbers)
def test_higher_is_never_drawn_lower(
    values: list[float | None], low: float | None, high: float | None
) -> None:
    """One character a value, in order of size; both alphabets draw the same line."""
    if low is not None and high is not None and low > high:
        low, high = high, low
    line = sparkline(values, low=low, high=high)
    assert len(line) == len(values)
    known = sorted(
        (value, BLOCKS.index(drawn))
        for value, drawn in zip(values, line, strict=True)
        if value is not None
    )
    assert [level for _, level in known] == sorted(level for _, level in known)
    assert all(
        (drawn == MISSING) == (value is None) for value, drawn in zip(values, line, strict=True)
    )
    table = str.maketrans(BLOCKS + MISSING, PLAIN + PLAIN_MISSING)
    assert sparkline(values, low=low, high=high, ascii=True) == line.translate(table)
