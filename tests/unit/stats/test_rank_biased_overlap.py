"""Rank-biased overlap: hand-computed vectors, and what holds for any two lists."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.stats.rank_biased_overlap import rank_biased_overlap
from tests.support.cases import cases

# The last four agree with the package `rbo` 0.1.3 (rbo_ext, p = 0.9).
VECTORS = [
    ("abc", "abc", 1.0),
    ("abc", "xyz", 0.0),
    # shares 0/1, then 2/2 for ever: 1 less the weight of the first depth, 1 - 0.9
    ("ab", "ba", 0.9),
    # depth 1: 1, depth 2: 1/2, and 1/2 beyond: (0.9 + 0.81/2) / 9 + 0.81/2
    ("ab", "ac", 0.55),
    # a list that is the beginning of the other is taken to go on like it
    ("ab", "abcd", 1.0),
    # 1, 1, 2/3, then (2 + 2·1/3) / 4 = 2/3 and (2 + 2·2/3) / 5 = 2/3 for ever:
    # (0.9 + 0.81 + 2/3 · (0.729 + 0.6561 + 0.59049)) / 9 + 2/3 · 0.59049
    ("abc", "abxyz", 0.73),
    ("abcde", "abced", 0.981775),
    ("ab", "cdab", 0.3915),
    ("abcdefghij", "jihgfedcba", 0.5116075656428573),
]


@cases(("one", "other", "value"), VECTORS)
def test_the_overlap_of_two_lists(one: str, other: str, value: float) -> None:
    assert rank_biased_overlap(one, other) == pytest.approx(value, abs=1e-12)


def test_two_empty_lists_have_no_overlap_and_one_has_none() -> None:
    assert rank_biased_overlap("", "") is None
    assert rank_biased_overlap("a", "") == 0.0


def test_a_repeated_entry_counts_at_its_first_place() -> None:
    assert rank_biased_overlap("aab", "ab") == 1.0


def test_the_first_places_weigh_most() -> None:
    top, bottom = rank_biased_overlap("abcde", "xbcde"), rank_biased_overlap("abcde", "abcdx")
    assert top is not None
    assert bottom is not None
    assert top < bottom


lists = st.lists(st.sampled_from("abcdefghijkl"), min_size=1, max_size=12, unique=True)


def by_definition(one: list[str], other: list[str], p: float) -> float:
    """Formula 32, each depth by itself."""
    short, long = sorted((one, other), key=len)
    s, size = len(short), len(long)
    shared = [len(set(long[:d]) & set(short[:d])) for d in range(size + 1)]
    total = sum(shared[d] / d * p**d for d in range(1, size + 1))
    total += sum(shared[s] * (d - s) / (s * d) * p**d for d in range(s + 1, size + 1))
    rest = (shared[size] - shared[s]) / size + shared[s] / s
    return (1 - p) / p * total + rest * p**size


@given(lists, lists, st.sampled_from([0.5, 0.9, 0.98]))
def test_it_agrees_with_the_formula(one: list[str], other: list[str], p: float) -> None:
    found = rank_biased_overlap(one, other, p)
    assert found == pytest.approx(by_definition(one, other, p), abs=1e-12)


@given(lists, lists)
def test_it_is_symmetric_and_between_0_and_1(one: list[str], other: list[str]) -> None:
    found = rank_biased_overlap(one, other)
    assert found == rank_biased_overlap(other, one)
    assert found is not None
    assert 0.0 <= found <= 1.0
    assert (found == 0.0) == (not set(one) & set(other))


@given(lists)
def test_a_list_agrees_with_itself(one: list[str]) -> None:
    assert rank_biased_overlap(one, one) == pytest.approx(1.0)
