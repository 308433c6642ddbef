"""Which slots a gold set has, how they are numbered, and which go together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.errors import RagaugeError
from ragauge.model.gold import GoldItem
from ragauge.run.slots import (
    GoldSlots,
    choose_items,
    read_seeds,
    refuse_without_question,
    with_later_turns,
    with_turns_before,
)
from tests.support.cases import cases


def item(qid: str, turn: int | None = None, *paraphrases: str, **more: object) -> GoldItem:
    return GoldItem(
        qid=qid, turn=turn, question=f"{qid}?", paraphrases=paraphrases, **more  # type: ignore[arg-type]
    )  # fmt: skip


def asked(slots: GoldSlots) -> list[tuple[int, str, str, int | None, int | None, int | None]]:
    found = [slot for sequence in slots.sequences() for slot in sequence.slots]
    return [
        (slot.number, each.qid, each.text, each.paraphrase, each.seed, each.turn)
        for slot in found
        for each in [slot.question]
    ]


def test_slots_are_paraphrases_times_seeds_in_gold_order() -> None:
    slots = GoldSlots([item("A"), item("B", None, "b1", "b2")], (7, 3))
    assert slots.count == 6  # 1 × 2 + 2 × 2
    assert asked(slots) == [
        (0, "A", "A?", None, 7, None), (1, "A", "A?", None, 3, None),
        (2, "B", "b1", 0, 7, None), (3, "B", "b1", 0, 3, None),
        (4, "B", "b2", 1, 7, None), (5, "B", "b2", 1, 3, None),
    ]  # fmt: skip


def test_turns_of_a_conversation_make_a_sequence_for_each_seed() -> None:
    items = [item("C", 2), item("A"), item("C", 1, "c1", "c2")]
    slots = GoldSlots(items, (0, 1))
    sequences = [[slot.number for slot in sequence.slots] for sequence in slots.sequences()]
    # C2 has 0 and 1, A has 2 and 3, C1 has 4 to 7 (two paraphrases, two seeds each)
    assert sequences == [[4, 6, 0], [5, 7, 1], [2], [3]]


def test_sequences_without_a_wanted_slot_are_excluded() -> None:
    slots = GoldSlots([item("A"), item("C", 1), item("C", 2), item("B")])
    wanted = [
        [slot.number for slot in sequence.slots]
        for sequence in slots.sequences({2, 3}.__contains__)
    ]
    assert wanted == [[1, 2], [3]]


@given(
    st.lists(
        st.tuples(st.sampled_from("ABC"), st.sampled_from([None, 1, 2]), st.integers(0, 3)),
        max_size=8, unique_by=lambda each: each[:2],
    ),
    st.sampled_from([(), (0,), (0, 1, 2)]),
)  # fmt: skip
def test_every_number_is_asked_once(
    shapes: list[tuple[str, int | None, int]], seeds: tuple[int, ...]
) -> None:
    items = [item(qid, turn, *map(str, range(count))) for qid, turn, count in shapes]
    slots = GoldSlots(items, seeds)
    assert sorted(slot.number for sequence in slots.sequences() for slot in sequence.slots) == list(
        range(slots.count)
    )


ITEMS = [
    item("alpha", type="code", tags=("x", "y"), lang="de"),
    item("beta", type="prose", tags=("x",), difficulty="hard"),
    item("gamma", group="g"),
]


@cases(
    ("filters", "limit", "qids"),
    [
        ([], None, ["alpha", "beta", "gamma"]),
        (["type=code"], None, ["alpha"]),
        (["tag=x"], None, ["alpha", "beta"]),
        (["tag=x", "difficulty=hard"], None, ["beta"]),
        (["qid~^[ab]"], None, ["alpha", "beta"]),
        (["qid~^[ab]"], 1, ["alpha"]),
        (["lang=de"], None, ["alpha"]),
        (["group~."], None, ["gamma"]),
        (["type="], None, []),
        ([], 2, ["alpha", "beta"]),
    ],
)
def test_filters_choose_items(filters: list[str], limit: int | None, qids: list[str]) -> None:
    assert [each.qid for each in choose_items(ITEMS, filters, limit)] == qids


TALKS = [
    item("D", 2, tags=("x",)), item("C", 1), item("A", tags=("x",)), item("C", 3, tags=("x",)),
    item("D", 1), item("C", 2), item("C", 4), item("B"),
]  # fmt: skip


@cases(
    ("filters", "limit", "asked_for"),
    [
        (["tag=x"], None, ["D2", "C1", "A", "C3", "D1", "C2"]),
        ([], 1, ["D2", "D1"]),
        ([], 4, ["D2", "C1", "A", "C3", "D1", "C2"]),
        (["qid=A"], None, ["A"]),
        (["qid=C"], 1, ["C1"]),
        ([], None, ["D2", "C1", "A", "C3", "D1", "C2", "C4", "B"]),
        (["tag=none"], None, []),
    ],
)
def test_turns_are_asked_with_those_before_them(
    filters: list[str], limit: int | None, asked_for: list[str]
) -> None:
    found = with_turns_before(TALKS, choose_items(TALKS, filters, limit))
    assert [f"{each.qid}{each.turn or ''}" for each in found] == asked_for


def test_what_follows_a_turn_is_the_rest_of_its_sequence() -> None:
    slots = GoldSlots([item("C", 2), item("A"), item("C", 1), item("C", 3)], (0, 1))
    # C2 has 0 and 1, A has 2 and 3, C1 has 4 and 5, C3 has 6 and 7
    assert [slot.number for slot in with_later_turns(slots, {1, 2})] == [1, 7, 2]
    assert [slot.number for slot in with_later_turns(slots, {4})] == [4, 0, 6]
    assert list(with_later_turns(slots, set())) == []


@cases("text", ["color=red", "type", "qid~(", "=x", "~"])
def test_filters_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(RagaugeError) as caught:
        choose_items(ITEMS, [text], None)
    assert caught.value.code == "usage"


def test_items_without_a_question_are_named() -> None:
    items = [item("A"), GoldItem(qid="B", line=2), GoldItem(qid="C", question=" ", line=3)]
    with pytest.raises(RagaugeError) as caught:
        refuse_without_question(items, "gold.jsonl")
    assert [str(each.place) for each in caught.value.problems] == [
        "gold.jsonl:2  (qid B)", "gold.jsonl:3  (qid C)",
    ]  # fmt: skip


def test_seeds_are_whole_numbers_each_once() -> None:
    assert read_seeds(None) == ()
    assert read_seeds("3,-1, 0") == (3, -1, 0)
    for text in ("a", "1,1", "", f"{2**63}"):
        with pytest.raises(RagaugeError):
            read_seeds(text)
