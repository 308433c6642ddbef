"""Quotes: what of a quote a text covers, wherever chunks were cut."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from ragauge.quotes import border, common_runs, covered, least_overlap, normalised, shares_half
from tests.support.cases import cases

QUOTE = "The lock is taken before the first write and given back after the last."
# 71 characters: an overlap counts from 12 of them on.


@cases(
    ("text", "expected"),
    [
        ("  two \n\t words ", "two words"),
        ("no\u00a0break", "no break"),
        ("cafe\u0301", "caf\u00e9"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_texts_are_normalised(text: str, expected: str) -> None:
    """NFC, one blank for whitespace, none at the ends."""
    assert normalised(text) == expected


@cases(
    ("text", "expected"),
    [
        (QUOTE, [(0, 71)]),
        (f"Before. {QUOTE} After.", [(0, 71)]),
        (QUOTE[:30], [(0, 30)]),
        (QUOTE[20:50], [(20, 50)]),
        (f"Before. {QUOTE[:30]}", [(0, 30)]),
        (f"{QUOTE[40:]} After.", [(40, 71)]),
        (f"{QUOTE[50:]} and once more {QUOTE[:20]}", [(0, 20), (50, 71)]),
        (f"Before. {QUOTE[:12]}", [(0, 12)]),
        (f"Before. {QUOTE[:11]}", []),  # eleven characters may be shared by chance
        (QUOTE[20:31], []),
        ("Nothing of the kind.", []),
        ("", []),
    ],
)
def test_what_a_text_covers(text: str, expected: list[tuple[int, int]]) -> None:
    """All of it, a part inside, its beginning at the end of a chunk, or its end at the start."""
    assert covered(QUOTE, text) == expected


def test_nothing_covers_an_empty_quote() -> None:
    assert covered("", "text") == []
    assert not shares_half("", "text")
    assert not shares_half("", "")


def test_a_short_quote_needs_a_fifth() -> None:
    """Of 20 characters 4 are enough; of 71 not even 11 are."""
    quote = "abcdefghijklmnopqrst"
    assert least_overlap(quote) == 4
    assert covered(quote, "... abcd") == [(0, 4)]
    assert covered(quote, "... abc") == []


def test_repeated_words_are_counted_one_by_one() -> None:
    """The second chunk of the same words is their second occurrence; a third adds nothing."""
    words = "row after row, "
    quote = (words * 2 + "and the end").strip()
    text = words.strip()
    first = covered(quote, text)
    assert first == [(0, 14)]
    second = covered(quote, text, first)
    assert second == [(15, 29)]
    assert covered(quote, text, [(0, 14), (15, 29)]) == [(0, 14)]


def test_a_place_that_is_covered_in_part_is_still_open() -> None:
    """The first occurrence lacks its last character, so it is the one that is meant."""
    quote = "one two three, one two three, end"
    assert covered(quote, "one two three", [(0, 12)]) == [(0, 13)]


@cases(
    ("text", "relevant"),
    [
        (QUOTE[:20], True),  # all of the shorter, which is the text
        (QUOTE[:20] + "x" * 20, False),  # at its beginning: no end of the text begins the quote
        ("x" * 20 + QUOTE[:20], True),  # 20 of 40
        ("x" * 21 + QUOTE[:20], False),  # 20 of 41
        ("x" * 100 + QUOTE[:36], True),  # the quote is the shorter: 36 of 71
        ("x" * 100 + QUOTE[:35], False),
        ("other words", False),
    ],
)
def test_half_of_the_shorter_is_relevant(text: str, relevant: bool) -> None:
    """In whole numbers, as for places."""
    assert shares_half(QUOTE, text) is relevant


def _slow_border(left: str, right: str, least: int) -> int:
    for length in range(min(len(left), len(right)), least - 1, -1):
        if left.endswith(right[:length]):
            return length
    return 0


def test_borders_are_the_longest() -> None:
    """Against trying every length, with alphabets so small that everything repeats."""
    draw = random.Random(7)
    for _ in range(4000):
        letters = draw.choice(("a", "ab", "abc"))
        left, right = (
            "".join(draw.choice(letters) for _ in range(draw.randrange(0, 60))) for _ in range(2)
        )
        least = draw.randrange(1, 6)
        assert border(left, right, least) == _slow_border(left, right, least), (left, right, least)


def test_texts_that_repeat_themselves_end() -> None:
    """Every place is a candidate here, and none but the last few fit."""
    left, right = "a" * 40_000 + "b", "a" * 40_000
    assert border(left, right, 12) == 0
    assert border("b" + right, right + "b", 12) == 40_000
    assert covered("ab" * 20_000 + "c", "c" + "ab" * 15_000) == [(0, 30_000)]


@cases(
    ("quote", "text", "expected"),
    [
        ("one two three four five six seven", "zero one two three four five six X", [(0, 28)]),
        ("one two three four five six seven", "two three four", []),  # 14 characters
        ("a" * 100, "b" + "a" * 30 + "b", [(0, 30)]),  # one run in many places counts once
        ("", "text", []),
        ("quote", "", []),
    ],
)
def test_runs_that_a_quote_and_a_text_have_in_common(
    quote: str, text: str, expected: list[tuple[int, int]]
) -> None:
    assert common_runs(quote, text) == expected


@given(st.text("ab ", max_size=60), st.text("ab ", max_size=60))
def test_a_text_covers_no_more_of_a_quote_than_it_has(quote: str, text: str) -> None:
    assert sum(end - start for start, end in common_runs(quote, text)) <= len(text)
