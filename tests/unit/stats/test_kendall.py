"""Kendall's tau-b of ranks and of lists of ids."""

from __future__ import annotations

import math
import random
from itertools import permutations

import pytest

from ragauge.stats.kendall import tau_b, tau_of_lists


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 3, 4], [2, 1, 3, 4], 4 / 6),  # 5 pairs agree, 1 is opposed
        ([1, 2, 3], [3, 1, 2], -1 / 3),  # 1 agrees, 2 are opposed
        ([1, 1, 2], [1, 2, 3], 2 / math.sqrt(2 * 3)),  # 2 agree; 2 of 3 ordered in a, 3 in b
        ([1, 1, 2, 2], [1, 1, 2, 2], 1.0),  # ties in both at once are no disagreement
        ([1, 1, 2], [1, 2, 2], 1 / 2),  # 1 agrees; 2 of 3 ordered on either side
        ([0.5, math.inf], [1e-300, 2e-300], 1.0),
    ],
)
def test_values_counted_by_hand(a: list[float], b: list[float], expected: float) -> None:
    """(agreeing - opposed) / √(pairs ordered in a · pairs ordered in b), the same both ways."""
    assert tau_b(a, b) == tau_b(b, a) == expected


@pytest.mark.parametrize(
    ("a", "b"), [([], []), ([1], [1]), ([1, 1, 1], [1, 2, 3]), ([1, 2], [5, 5]), ([1, 1], [2, 2])]
)
def test_without_order_there_is_no_value(a: list[float], b: list[float]) -> None:
    """Fewer than two entries, or one side all ties."""
    assert tau_b(a, b) is None
    assert tau_b(b, a) is None


def test_unequal_lengths_are_a_mistake() -> None:
    """No entry is dropped in silence."""
    with pytest.raises(ValueError, match="argument 2"):
        tau_b([1, 2, 3], [1, 2])


def test_values_stay_in_range() -> None:
    """Rounding does not lead beyond 1."""
    dice = random.Random(1)
    for _ in range(300):
        n = dice.randint(2, 12)
        value = tau_b(dice.choices(range(5), k=n), dice.choices(range(5), k=n))
        assert value is None or -1.0 <= value <= 1.0


@pytest.mark.parametrize(
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


def test_lists_give_what_their_ranks_give() -> None:
    """The short cut for lists without ties is tau-b itself, to the last bit."""
    ids = "abcde"
    for order in permutations(range(5)):
        other = [ids[i] for i in order]
        assert tau_of_lists(ids, other) == tau_b(range(5), [other.index(entry) for entry in ids])
