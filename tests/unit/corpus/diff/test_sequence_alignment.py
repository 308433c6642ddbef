"""Aligning: what two sequences have in common, in order, and matches that are lost in changes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.corpus.diff import sequence_alignment
from ragauge.corpus.diff.sequence_alignment import Match, align, drop_islands, slide_gaps
from tests.support.cases import cases

SEQUENCE = st.text("abcd", max_size=24)


def longest(one: str, other: str) -> int:
    """The length of a longest common subsequence, by the textbook."""
    row = [0] * (len(other) + 1)
    for a in one:
        before = 0
        for j, b in enumerate(other):
            before, row[j + 1] = row[j + 1], before + 1 if a == b else max(row[j], row[j + 1])
    return row[-1]


def check(one: str, other: str, matches: list[Match]) -> None:
    """Matches are equal on both sides, in order, apart, and as long as they can be."""
    i = j = 0
    for left, low, length in matches:
        assert length > 0
        assert left >= i
        assert low >= j
        assert one[left : left + length] == other[low : low + length]
        i, j = left + length, low + length


@cases(
    ("one", "other", "found"),
    [
        ("", "abc", []),
        ("abc", "abc", [(0, 0, 3)]),
        ("abc", "xyz", []),
        ("abxcd", "abycd", [(0, 0, 2), (3, 3, 2)]),
        ("abcd", "abxxcd", [(0, 0, 2), (2, 4, 2)]),  # put in
        ("abxxcd", "abcd", [(0, 0, 2), (4, 2, 2)]),  # taken out
        ("xabcy", "uabcv", [(1, 1, 3)]),
    ],
)
def test_what_is_common_is_found(one: str, other: str, found: list[Match]) -> None:
    assert align(one, other) == found


@given(SEQUENCE, SEQUENCE)
def test_short_sequences_are_aligned_as_well_as_can_be(one: str, other: str) -> None:
    matches = align(one, other)
    check(one, other, matches)
    assert sum(length for _, _, length in matches) == longest(one, other)


@given(SEQUENCE, SEQUENCE)
def test_matches_are_right_without_the_exact_table(one: str, other: str) -> None:
    """The path of long sequences: rare stretches first, here with little left to the table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence_alignment, "_SMALL_TABLE", 0)
        patch.setattr(sequence_alignment, "_LARGEST_TABLE", 9)
        matches = align(one, other)
    check(one, other, matches)
    assert sum(length for _, _, length in matches) <= longest(one, other)


def test_long_sequences_are_aligned_by_what_is_rare() -> None:
    """20,000 elements, one in a hundred replaced: all others are matched."""
    chance = random.Random(5)
    one = [chance.randrange(2_000) for _ in range(20_000)]
    other = list(one)
    replaced = range(50, 20_000, 100)
    for place in replaced:
        other[place] = -place
    matches = align(one, other)
    assert sum(length for _, _, length in matches) == 20_000 - len(replaced)


def test_a_long_sequence_in_which_nothing_is_rare_ends_somewhere() -> None:
    """Two elements in a muddle of 9,000: there is no answer in time, and no wrong one either."""
    chance = random.Random(6)
    one = [chance.randrange(2) for _ in range(9_000)]
    other = [chance.randrange(2) for _ in range(9_000)]
    for left, low, length in align(one, other):
        assert one[left : left + length] == other[low : low + length]


def test_a_match_between_larger_changes_is_left_out() -> None:
    """The word in the middle has 3 bytes, and 10 changed on either side of it."""
    match = [(1, 1, 1)]
    assert drop_islands(match, [10, 3, 10], [10, 3, 10]) == []
    assert drop_islands(match, [10, 3, 2], [10, 3, 2]) == match  # 3 > 2: held from behind
    assert drop_islands(match, [2, 3, 10], [2, 3, 10]) == match
    assert drop_islands(match, [0, 3, 10], [0, 3, 10]) == match  # at the edge


def test_a_match_of_four_words_stays_whatever_is_around() -> None:
    sizes = [100, 4, 4, 4, 4, 100]
    assert drop_islands([(1, 1, 4)], sizes, sizes) == [(1, 1, 4)]
    small = [100, 3, 4, 4, 4, 100]  # 15 bytes are too few
    assert drop_islands([(1, 1, 4)], small, small) == []


def test_what_hung_on_a_dropped_match_goes_with_it() -> None:
    """The first match (3 bytes, between 6 and 3) goes; then 6 + 3 + 3 bytes are before the next."""
    sizes = [6, 3, 3, 4, 6]
    held = [6, 3, 2, 4, 6]  # with 2 bytes between them, 3 > 2 and 4 > 2 hold each other
    matches = [(1, 1, 1), (3, 3, 1)]
    assert drop_islands(matches, sizes, sizes) == []
    assert drop_islands(matches, held, held) == matches


@cases(
    ("one", "other", "matches", "expected"),
    [
        # `b.` is gone; a paragraph begins at each letter, so the stop before it stays
        ("a.b.c.", "a.c.", [(0, 0, 1), (3, 1, 3)], [(0, 0, 2), (4, 2, 2)]),
        ("a.b.c.", "a.c.", [(0, 0, 2), (4, 2, 2)], [(0, 0, 2), (4, 2, 2)]),
        # the last one is gone: its stop is not the one that stayed
        ("a.b.", "a.", [(0, 0, 1), (3, 1, 1)], [(0, 0, 2)]),
        # the first one is gone
        ("a.b.", "b.", [(2, 0, 2)], [(2, 0, 2)]),
        # put in instead of taken out
        ("a.c.", "a.b.c.", [(0, 0, 1), (1, 3, 3)], [(0, 0, 2), (2, 4, 2)]),
        # replaced: nothing can slide
        ("a.b.", "a,b.", [(0, 0, 1), (2, 2, 2)], [(0, 0, 1), (2, 2, 2)]),
        # nothing begins inside: it stays as it is
        ("xaay", "xay", [(0, 0, 1), (2, 1, 2)], [(0, 0, 1), (2, 1, 2)]),
    ],
)
def test_what_came_or_went_slides_to_where_a_paragraph_begins(
    one: str, other: str, matches: list[Match], expected: list[Match]
) -> None:
    starts, others = ({i for i, c in enumerate(text) if c in "abc"} for text in (one, other))
    if one.startswith("x"):
        starts, others = {0}, {0}
    assert slide_gaps(matches, one, other, starts, others) == expected


@given(SEQUENCE, SEQUENCE, st.sets(st.integers(0, 24)), st.sets(st.integers(0, 24)))
def test_sliding_keeps_matches_right_and_loses_none(
    one: str, other: str, starts: set[int], others: set[int]
) -> None:
    matches = align(one, other)
    moved = slide_gaps(matches, one, other, starts, others)
    check(one, other, moved)
    assert sum(length for _, _, length in moved) == sum(length for _, _, length in matches)
