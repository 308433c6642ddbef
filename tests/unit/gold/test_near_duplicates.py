"""Texts that resemble each other are found exactly, however many there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.gold.lint import near_duplicates
from ragauge.gold.lint.near_duplicates import (
    NEAR_SHARE,
    group_near_duplicates,
    normalised,
    similarity,
)
from tests.support.cases import cases

WORDS = st.sampled_from(
    ["what", "port", "does", "the", "cache", "use", "2021", "2022", "数据", "é"]
)
TEXTS = st.lists(st.lists(WORDS, max_size=7).map(" ".join), max_size=14)


@cases(
    ("text", "expected"),
    [
        ("  What is IT?\n", "what is it"),
        ("“Quoted”, (really)!", "quoted really"),
        ("C++ or C#?", "c++ or c#"),  # signs of a name are no punctuation
        ("v3.11", "v3.11"),
        ("ﬁle", "file"),
        ("?!", ""),
    ],
)
def test_a_text_is_compared_without_case_and_punctuation(text: str, expected: str) -> None:
    assert normalised(text) == expected


def test_likeness_is_the_share_of_runs_of_four_characters() -> None:
    # "  abcd ": "  ab", " abc", "abcd", "bcd "; "  abce ": "  ab", " abc", "abce", "bce "
    assert similarity("abcd", "abce") == pytest.approx(2 / 6)
    assert similarity("abcd", "abcd") == 1


def test_texts_that_name_other_numbers_are_not_alike() -> None:
    one, other = (
        "what was the revenue of the group in 2021",
        "what was the revenue of the group in ",
    )
    assert similarity(one, f"{other}2022") == 0
    assert similarity(one, one.replace("the group", "the groups")) >= NEAR_SHARE


def test_a_family_holds_all_who_are_near_a_member() -> None:
    base = "how is the index of the second shard rebuilt after a crash of the node"
    texts = [base, "who pays", base + "s", "", base + "s x", ""]
    assert group_near_duplicates([normalised(text) for text in texts], [0, 1, 2, 3, 4, 5]) == [
        [0, 2, 4]
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # 16 runs, all of them among the 20 of the other: 16/20
        ("abcdefg hijklmno", "abcdefg hijklmno pqr"),
        # 18 runs each, and the last letter is in 2 of them: 16/20
        ("abcdefghijklmnopqr", "abcdefghijklmnopqs"),
    ],
)
def test_texts_that_share_as_much_as_is_needed_and_no_more_are_found(one: str, other: str) -> None:
    """The first common run is as far back among the rarest as it can be."""
    assert similarity(one, other) == NEAR_SHARE
    assert (
        group_near_duplicates([one, other], [0, 1])
        == group_near_duplicates([other, one], [0, 1])
        == [[0, 1]]
    )
    assert group_near_duplicates([one, f"{other}t"], [0, 1]) == []


def test_texts_of_one_owner_make_no_family() -> None:
    assert group_near_duplicates(["who pays", "who pays"], [0, 0]) == []
    assert group_near_duplicates(["who pays", "who pays", "who pays"], [0, 0, 1]) == [[0, 1]]
    assert group_near_duplicates([], []) == []


def by_hand(texts: list[str]) -> list[list[int]]:
    """Every pair, one by one."""
    family = list(range(len(texts)))
    for one, other in itertools.combinations(range(len(texts)), 2):
        if texts[one] and texts[other] and similarity(texts[one], texts[other]) >= NEAR_SHARE:
            old, new = family[other], family[one]
            family = [new if label == old else label for label in family]
    families: dict[int, list[int]] = {}
    for member, label in enumerate(family):
        families.setdefault(label, []).append(member)
    return [members for members in families.values() if len(members) > 1]


@given(TEXTS, st.sampled_from([1, 3, 1 << 20]))
def test_the_search_finds_what_comparing_all_pairs_finds(texts: list[str], pairs: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_duplicates, "_PAIRS", pairs)
        assert sorted(group_near_duplicates(texts, list(range(len(texts))))) == sorted(
            by_hand(texts)
        )


@given(st.lists(TEXTS, max_size=6), st.sampled_from([4, 1 << 13]))
def test_groups_without_near_texts_are_told_and_no_others(
    groups: list[list[str]], at_once: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_duplicates, "_AT_ONCE", at_once)
        flags = near_duplicates.may_be_near(groups)
    for group, maybe in zip(groups, flags, strict=True):
        filled = [text for text in group if text]
        if any(similarity(a, b) >= NEAR_SHARE for a, b in itertools.combinations(filled, 2)):
            assert maybe


def test_most_groups_need_no_closer_look() -> None:
    group = ["how is the index of a shard rebuilt", "who pays for the second licence", ""]
    groups = [group, [*group, "who pays for the second licences"], []]
    assert near_duplicates.may_be_near(groups) == [False, True, False]


def test_a_set_with_more_letters_than_a_script_is_searched_too() -> None:
    """Four letters of 40,000 do not fit into one number as they are."""
    letters = "".join(chr(code) for code in range(0x3400, 0x3400 + 40_000) if chr(code).isalpha())
    pieces = [letters[at : at + 30] for at in range(0, len(letters), 30)]
    texts = [*pieces, pieces[7] + "a"]
    assert group_near_duplicates(texts, list(range(len(texts)))) == [[7, len(pieces)]]


def test_bits_are_counted_without_a_new_numpy_too(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.array([0, 1, 0xFF, (1 << 64) - 1, 0x8000000000000001], np.uint64)
    monkeypatch.delattr(np, "bitwise_count", raising=False)
    assert near_duplicates.count_bits(words).tolist() == [0, 1, 8, 64, 2]
