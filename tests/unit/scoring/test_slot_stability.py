"""Which questions and slots are compared, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

from ragauge.model.trace import SlotKey
from ragauge.scoring.slot_stability import (
    MOST_SLOTS,
    PAIRS,
    ComparedSlot,
    compare,
    drawing_order,
    slot_order,
    to_compare,
)


def test_all_questions_of_a_usual_run_are_compared() -> None:
    """Three wordings and two seeds of 2,000 questions are 30,000 pairs: just what fits."""
    slots = np.full(PAIRS // 15, 6)
    assert to_compare(slots, drawing_order([f"q{n}" for n in range(len(slots))])).all()


def test_a_question_with_one_slot_has_nothing_to_compare() -> None:
    """Nor has one without any."""
    assert to_compare(np.array([1, 0, 2]), drawing_order(["a", "b", "c"])).tolist() == [
        False,
        False,
        True,
    ]


def test_of_a_large_run_as_many_are_compared_as_fit() -> None:
    """Each question takes 15 pairs; one more question makes the run too large, and one is left."""
    slots = np.full(PAIRS // 15 + 1, 6)
    chosen = to_compare(slots, drawing_order([f"q{n}" for n in range(len(slots))]))
    assert int(chosen.sum()) == PAIRS // 15


def test_the_choice_depends_on_names_alone() -> None:
    """Whatever the order of the questions, the same ones are compared."""
    names = [f"q{n}" for n in range(5000)]
    slots = np.full(len(names), 6)
    first = {
        name
        for name, yes in zip(names, to_compare(slots, drawing_order(names)), strict=True)
        if yes
    }
    names.reverse()
    again = {
        name
        for name, yes in zip(names, to_compare(slots, drawing_order(names)), strict=True)
        if yes
    }
    assert first == again
    assert 0 < len(first) < len(names)


def test_a_question_with_many_slots_takes_as_many_pairs_as_are_used() -> None:
    """Of a hundred slots twelve are used, 66 pairs, so 454 questions fit."""
    slots = np.full(1000, 100)
    chosen = to_compare(slots, drawing_order([str(n) for n in range(1000)]))
    assert int(chosen.sum()) == PAIRS // (MOST_SLOTS * (MOST_SLOTS - 1) // 2) == 454


def test_slots_have_an_order_of_their_own() -> None:
    """Nothing first, then numbers by size, then texts."""
    keys: list[SlotKey] = [
        (1, "b", None),
        (None, 10, None),
        (None, 9, 2),
        (0, None, None),
        (None, None, 1),
    ]
    assert sorted(keys, key=slot_order) == [
        (None, None, 1), (None, 9, 2), (None, 10, None), (0, None, None), (1, "b", None)
    ]  # fmt: skip


def test_comparison_by_hand() -> None:
    """Citations 1 of 2; claims ab, abc and nothing: 1/3; lists in opposite order: -1."""
    slots = [
        ComparedSlot(frozenset({"p"}), "ab", ("x", "y")),
        ComparedSlot(frozenset({"p", "q"}), "abc", ("y", "x")),
        ComparedSlot(frozenset({"p"}), None, ()),
    ]
    found = compare(2, {1: slots})
    assert found["citation_jaccard"][1] == 0.5
    assert found["claim_distance"][1] == pytest.approx(1 / 3)
    assert found["rank_tau"][1] == -1.0
    assert all(np.isnan(column[0]) for column in found.values())


def test_two_empty_claims_are_no_pair() -> None:
    """Their distance would be 0/0; one empty claim is as far as can be."""
    empty = ComparedSlot(frozenset(), "", ())
    assert np.isnan(compare(1, {0: [empty, empty]})["claim_distance"][0])
    assert compare(1, {0: [empty, ComparedSlot(frozenset(), "ab", ())]})["claim_distance"][0] == 1.0


def test_more_slots_never_let_a_question_in() -> None:
    """So a question that does not fit now can be forgotten at once."""
    rng = np.random.default_rng(1)
    order = drawing_order([str(n) for n in range(3000)])
    slots = np.zeros(3000, np.int64)
    before = np.ones(3000, np.bool_)
    for _ in range(20):
        slots += rng.integers(0, 2, 3000)
        fits = to_compare(slots, order) | (slots <= 1)
        assert not (fits & ~before).any()
        before = fits
