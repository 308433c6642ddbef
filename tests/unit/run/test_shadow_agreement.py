"""Agreement of two runs: by id, by place, and where slots are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.model.chunk import Chunk
from ragauge.model.trace import Answer, Citation, Hit, Trace
from ragauge.run.shadow_agreement import (
    ItemLocation,
    SlotContent,
    SlotKey,
    agree,
    paired,
    renamed,
    slot_content,
)
from ragauge.spans import Span
from tests.support.cases import cases


def spot(name: str, start: int | None = None, end: int = 0, doc: str = "d") -> ItemLocation:
    return ItemLocation(name) if start is None else ItemLocation(name, (doc,), (Span(start, end),))


def run(
    slots: Mapping[str, tuple[Sequence[ItemLocation] | str, Sequence[ItemLocation] | str | None]],
) -> dict[SlotKey, SlotContent]:
    """One slot a question: hits and citations; letters stand for ids without a place."""

    def spots(given: Sequence[ItemLocation] | str) -> tuple[ItemLocation, ...]:
        return tuple(ItemLocation(each) if isinstance(each, str) else each for each in given)

    return {
        (qid, None, None, None): SlotContent(spots(hits), None if cites is None else spots(cites))
        for qid, (hits, cites) in slots.items()
    }


def test_the_same_run_agrees_with_itself() -> None:
    one = run({"p": ("abc", "a"), "q": ("ba", "")})
    found = agree(one, one, "id")
    assert (found.citations.value, found.rbo.value, found.tau.value) == (1.0, 1.0, 1.0)
    # nobody cites anything for q: it says nothing of citations
    assert (found.citations.questions, found.rbo.questions) == (1, 2)
    assert found.meets_target is True
    assert found.differing == ()


def test_figures_are_means_over_questions_of_means_over_slots() -> None:
    """p has two slots, of which one agrees: 1/2; q has one that does: (1/2 + 1) / 2."""
    one = run({"q": ("a", "a")}) | {
        ("p", 0, None, None): SlotContent((ItemLocation("a"),), (ItemLocation("a"),)),
        ("p", 1, None, None): SlotContent((ItemLocation("a"),), (ItemLocation("a"),)),
    }
    other = one | {("p", 1, None, None): SlotContent((ItemLocation("b"),), (ItemLocation("b"),))}
    found = agree(one, other, "id")
    assert found.citations.value == found.rbo.value == 0.75
    assert (found.citations.questions, found.citations.slots) == (2, 3)
    assert [(each.qid, each.paraphrase) for each in found.differing] == [("p", 1)]
    assert (found.differing[0].lost, found.differing[0].gained) == (("a",), ("b",))
    assert found.meets_target is False


def test_a_turn_is_a_question_of_its_own() -> None:
    """The turns of c agree, do not, and do; q does: 3 of 4, and not (2/3 + 1) / 2."""
    same, other = (
        SlotContent((ItemLocation("a"),), (ItemLocation("a"),)),
        SlotContent((ItemLocation("b"),), (ItemLocation("b"),)),
    )
    turns: dict[SlotKey, SlotContent] = {("c", None, None, turn): same for turn in (1, 2, 3)}
    one = run({"q": ("a", "a")}) | turns
    found = agree(one, one | {("c", None, None, 2): other}, "id")
    assert found.citations.value == found.rbo.value == 0.75
    assert (found.citations.questions, found.citations.slots) == (4, 4)


REPEATING = [*"aaaaaaaaa", "b", "c", "d"]


@pytest.mark.parametrize(
    ("second", "tau"),
    [
        # c and d stand at ranks 11 and 12 of the first: a and b are common, in the same order
        ("abdc", 1.0),
        ("badc", -1.0),
        # at rank 10 of the second there is a again: b is not among its first ten
        ("aaaaaaaaaab", None),
    ],
)
def test_an_id_that_repeats_does_not_shift_the_ranks_behind_it(
    second: str, tau: float | None
) -> None:
    name: SlotKey = ("q", None, None, None)
    one, other = (
        {name: slot_content(Trace(qid="q", hits=tuple(map(Hit, ids))), {})}
        for ids in (REPEATING, second)
    )
    assert agree(one, other, "id").tau.value == tau
    assert agree(other, one, "id").tau.value == tau


def test_by_place_an_id_that_repeats_keeps_its_name() -> None:
    """x is the text of a wherever it stands, and y that of b."""
    a, b, x, y = spot("a", 0, 100), spot("b", 100, 200), spot("x", 0, 90), spot("y", 110, 200)
    assert renamed([a, b], [x, y, x], "place") == ["a", "b", "a"]
    assert renamed([a, a, b], [y, x], "place") == ["b", "a"]


def test_slots_of_one_side_are_counted_and_not_compared() -> None:
    found = agree(run({"p": ("a", None), "q": ("a", None)}), run({"q": ("a", None)}), "id")
    assert (found.slots, found.only_a, found.only_b) == (1, 1, 0)
    assert found.citations.value is None
    assert found.meets_target is None


def test_another_id_of_the_same_text_is_a_replacement() -> None:
    """By id the slot cites otherwise, and what was cited is still there under its new name."""
    one = run({"q": ("", [spot("old", 0, 100), spot("gone", 300, 400)])})
    other = run({"q": ("", [spot("new", 20, 100), spot("far", 900, 950)])})
    found = agree(one, other, "id").differing[0]
    assert found.replaced == (("old", "new"),)
    assert (found.lost, found.gained) == (("gone",), ("far",))
    assert not found.mapped


def test_by_place_the_new_name_of_the_same_text_is_the_same() -> None:
    one = run({"q": ([spot("a", 0, 100), spot("b", 100, 200)], [spot("a", 0, 100)])})
    other = run({"q": ([spot("x", 0, 90), spot("y", 110, 200)], [spot("x", 0, 90)])})
    found = agree(one, other, "place")
    assert (found.citations.value, found.rbo.value, found.tau.value) == (1.0, 1.0, 1.0)
    assert agree(one, other, "id").citations.value == 0.0


def test_by_place_an_id_that_means_other_text_is_another() -> None:
    """Both call something `a`, at different ends of the document."""
    one, other = [spot("a", 0, 100)], [spot("a", 500, 600)]
    assert paired(one, other) == []
    assert renamed(one, other, "place") != ["a"]
    assert renamed(one, other, "id") == ["a"]


@cases(
    ("first", "second", "pairs"),
    [
        ([(0, 100)], [(50, 150)], [(0, 0)]),  # half of either
        ([(0, 100)], [(51, 151)], []),
        ([(0, 100)], [(90, 100)], [(0, 0)]),  # all of the shorter
        # one old chunk, two new ones: the one that shares more is it
        ([(0, 100)], [(0, 40), (40, 100)], [(0, 1)]),
        ([(0, 100), (100, 200)], [(100, 200), (0, 100)], [(0, 1), (1, 0)]),
    ],
)
def test_places_that_share_half_of_the_shorter_are_paired(
    first: list[tuple[int, int]], second: list[tuple[int, int]], pairs: list[tuple[int, int]]
) -> None:
    one = [spot(f"a{n}", *each) for n, each in enumerate(first)]
    other = [spot(f"b{n}", *each) for n, each in enumerate(second)]
    assert paired(one, other) == pairs


def test_text_of_another_document_is_never_the_same() -> None:
    assert paired([spot("a", 0, 9, "d")], [spot("b", 0, 9, "e")]) == []


def test_what_has_no_place_on_either_side_is_known_by_its_id() -> None:
    assert paired([spot("a")], [spot("a")]) == [(0, 0)]
    assert paired([spot("a")], [spot("a", 0, 9)]) == []


def test_a_citation_lies_where_it_says_or_where_its_hit_or_chunk_does() -> None:
    trace = Trace(
        qid="q",
        hits=(Hit("h", doc="d", spans=(Span(0, 9),)), Hit("h"), Hit("k")),
        answer=Answer(
            citations=("h", "h", "own", "k"),
            cited=(
                Citation("h"), Citation("h"), Citation("own", doc="e", spans=(Span(5, 6),)),
                Citation("k"),
            ),
        ),
    )  # fmt: skip
    found = slot_content(trace, {"k": Chunk("c", (Span(1, 2),))})
    assert found.hits == (spot("h", 0, 9), spot("h", 0, 9), spot("k", 1, 2, "c"))
    assert found.cites == (spot("h", 0, 9), spot("own", 5, 6, "e"), spot("k", 1, 2, "c"))
    assert slot_content(Trace(qid="q"), {}).cites is None


lists = st.lists(st.sampled_from("abcdefgh"), max_size=12).map("".join)


@given(st.dictionaries(st.sampled_from("pqr"), st.tuples(lists, lists, lists, lists)))
def test_the_figures_do_not_depend_on_which_run_comes_first(
    slots: dict[str, tuple[str, str, str, str]],
) -> None:
    one = run({qid: (each[0], each[2]) for qid, each in slots.items()})
    other = run({qid: (each[1], each[3]) for qid, each in slots.items()})
    there, back = agree(one, other, "id"), agree(other, one, "id")
    assert (there.citations, there.rbo, there.tau) == (back.citations, back.rbo, back.tau)
    for figure, least in ((there.citations, 0.0), (there.rbo, 0.0), (there.tau, -1.0)):
        assert figure.value is None or least <= figure.value <= 1.0
    assert len(there.differing) == len(back.differing)
