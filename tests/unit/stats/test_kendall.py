"""Kendall's tau of lists of ids."""

from __future__ import annotations

from itertools import combinations, permutations

from ragauge.stats.kendall import tau_of_lists
from tests.support.cases import cases


@cases(
    ("one", "other", "top", "expected"),
    [
        (["a", "b", "c"], ["a", "b", "c"], 10, 1.0),
        (["a", "b", "c"], ["c", "b", "a"], 10, -1.0),
        (["a", "x", "b", "c"], ["b", "a", "y", "c"], 10, 1 / 3),  # of ab, ac, bc only ab is turned
        (["a", "b", "a", "c"], ["b", "c", "a"], 10, -1 / 3),  # a counts at its first place
        (["a", "a", "b"], ["a", "b", "b"], 10, 1.0),
        (["a", "b", "c"], ["c", "b", "a"], 2, None),  # ab and cb share b only
        (["a", "a", "b"], ["a", "b"], 2, None),  # a repeated id still takes a place
        (["a", "b"], ["c", "d"], 10, None),
        (["a"], ["a"], 10, None),
        ([], [], 10, None),
    ],
)
def test_lists_are_compared_on_their_shared_ids(
    one: list[str], other: list[str], top: int, expected: float | None
) -> None:
    """Only ids within both cut-offs count, and the order of the arguments does not."""
    assert tau_of_lists(one, other, top) == tau_of_lists(other, one, top) == expected


def test_ten_entries_are_compared_unless_told_otherwise() -> None:
    """What differs below the tenth place does not count."""
    head = [str(i) for i in range(10)]
    assert tau_of_lists([*head, "a", "b"], [*head, "b", "a"]) == 1.0
    assert tau_of_lists([*head, "a", "b"], [*head, "b", "a"], 12) == 64 / 66  # 1 of 66 pairs


def test_every_pair_counts_once() -> None:
    """The short cut by insertion gives (agreeing - opposed) / pairs, to the last bit."""
    ids = "abcde"
    for order in permutations(range(5)):
        other = [ids[i] for i in order]
        opposed = sum(one > later for one, later in combinations(order, 2))
        assert tau_of_lists(ids, other) == (10 - 2 * opposed) / 10
