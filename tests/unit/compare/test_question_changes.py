"""Kinds of questions: by all that is expected, found within k."""

from __future__ import annotations

from itertools import product

from ragauge.compare.question_changes import UnitChange, change_of_units, in_order_of
from ragauge.model.unit_ranks import UnitFindings, UnitRanks
from tests.support.cases import cases


def side(*ranks: int | None, slots: int = 1) -> UnitFindings:
    """One slot: the rank of each unit, None where it was not found."""
    return UnitFindings(slots, tuple(() if rank is None else (rank,) for rank in ranks))


def kind(a: UnitFindings, b: UnitFindings, k: int = 10, tolerance: float = 0.0) -> str:
    return change_of_units(a, b, k=k, tolerance=tolerance).kind


@cases(
    ("a", "b", "expected"),
    [
        (side(1, 2), side(1, None), "regression"),  # 2 found, then 1
        (side(1, 2, None), side(None, None, 3), "regression"),  # 2, then 1 other one
        (side(1, None), side(None, 1), "mixed"),  # 1 and 1, but another one
        (side(1, None, None), side(None, 2, 3), "mixed"),  # 1, then 2: more, but the first is lost
        (side(1, None), side(3, 9), "win"),  # one gained, although the other fell from 1 to 3
        (side(None), side(10), "win"),
        (side(None), side(11), "draw"),  # beyond k = 10 is not found
        (side(10), side(11), "regression"),
        (side(2, 3), side(3, 2), "draw"),  # 1/2 + 1/3 = 1/3 + 1/2
        (side(2, 3), side(1, 4), "win"),  # 5/6 < 5/4
        (side(1, 4), side(2, 3), "loss"),
        (side(None, None), side(None, 12), "draw"),
        (side(12), side(None), "draw"),
    ],
)
def test_kinds_of_one_slot(a: UnitFindings, b: UnitFindings, expected: str) -> None:
    """The definitions of the five kinds, each on ranks that tell it from its neighbours."""
    assert kind(a, b) == expected


def test_the_cut_off_decides_what_is_found() -> None:
    """Rank 7 is found within 10 and not within 5."""
    assert kind(side(3), side(7), k=10) == "loss"
    assert kind(side(3), side(7), k=5) == "regression"


@cases(
    ("a", "b", "expected"),
    [
        # Found in 2 of 2 slots, then in 1 of 2: 1 unit, then 0.5.
        (UnitFindings(2, ((1, 1),)), UnitFindings(2, ((1,),)), "regression"),
        # Unit 1 in 2 of 2 then 1 of 2, unit 2 in 1 of 2 then 2 of 2: 1.5 and 1.5.
        (UnitFindings(2, ((1, 1), (2,))), UnitFindings(2, ((1,), (2, 2))), "mixed"),
        # 1 of 2 slots and 2 of 4 slots are as many; so is the mean reciprocal rank: 1/2.
        (UnitFindings(2, ((1,),)), UnitFindings(4, ((1, 1),)), "draw"),
        # (1 + 1/3) / 2 = 2/3 against (1/2 + 1/2) / 2 = 1/2.
        (UnitFindings(2, ((2, 2),)), UnitFindings(2, ((1, 3),)), "win"),
    ],
)
def test_slots_count_by_their_mean(a: UnitFindings, b: UnitFindings, expected: str) -> None:
    """Each slot has the same weight, however many a side has."""
    assert kind(a, b) == expected


def test_more_units_than_k_are_judged_by_recall() -> None:
    """Of 4 units at k = 3 at most 3 can be found: which ones is not asked."""
    before = side(1, 2, None, None)
    assert kind(before, side(None, None, 1, 2), k=3) == "draw"
    assert kind(before, side(None, None, 1, 3), k=3) == "loss"
    assert kind(before, side(None, None, None, 2), k=3) == "regression"  # 2/4, then 1/4
    assert kind(before, side(1, 2, 3, None), k=3) == "win"
    # A fall of 1/4 is within a tolerance of 25 %: then the ranks decide.
    assert kind(before, side(None, None, None, 2), k=3, tolerance=0.25) == "loss"
    assert kind(before, side(None, None, None, 2), k=3, tolerance=0.24) == "regression"


def test_a_tolerance_is_for_many_units_only() -> None:
    """Of two pieces, one that is lost is lost."""
    assert kind(side(1, 2), side(1, None), tolerance=0.5) == "regression"


def test_lost_and_gained_units_are_named_by_their_places() -> None:
    """Also where the question as a whole is a win."""
    change = change_of_units(side(1, None, 4), side(None, 2, 5), k=10, tolerance=0.0)
    assert change == UnitChange("mixed", lost=(0,), gained=(1,), a=2.0, b=2.0)


def test_units_are_paired_by_name() -> None:
    """A list of chunks may put the pieces of an item in another order in one of the runs."""
    b = in_order_of(("x", "y"), ("y", "x"), side(1, None))
    assert b == side(None, 1)  # y at 1, x not found
    assert in_order_of(("x", "y"), ("x", "y2"), side(1, 2)) == side(1, 2)  # y was renamed
    assert in_order_of((), (), side(1, 2)) == side(1, 2)
    assert in_order_of(("x", "y"), ("z",), side(3)) == side(3)  # judged by recall then


def test_another_number_of_units_is_judged_by_recall() -> None:
    """Two old chunks that are one new chunk: 2 of 2 found is as much as 1 of 1."""
    assert kind(side(1, 1), side(1)) == "draw"
    assert kind(side(1, None), side(1)) == "win"
    assert kind(side(1, 2), side(None)) == "regression"


RANKS = (None, 1, 2, 7)


def test_the_other_way_round() -> None:
    """Exchanging the runs turns win and loss around, and never a regression into a loss."""
    mirrored = {"draw": {"draw"}, "loss": {"win"}, "mixed": {"mixed", "regression"},
                "win": {"loss", "regression"}, "regression": {"win", "mixed"}}  # fmt: skip
    for ranks in product(RANKS, repeat=4):
        a, b = side(*ranks[:2]), side(*ranks[2:])
        assert kind(b, a, k=5) in mirrored[kind(a, b, k=5)], ranks


def test_columns_and_back() -> None:
    """What is stored is what was found."""
    questions = [side(1, None), UnitFindings(3, ()), UnitFindings(2, ((1, 4), (), (2,)))]
    assert UnitRanks.of(questions).findings() == questions
