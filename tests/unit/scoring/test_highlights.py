"""Which characters of a passage are evidence: by offsets, and by quotes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragauge.model.gold import Anchor
from ragauge.scoring.highlights import highlights, quoted
from ragauge.spans import Span, in_words
from tests.support.cases import cases


def lying(*spans: Span, quote: str | None = None) -> Anchor:
    return Anchor(doc="d", spans=spans, quote=quote)


def lit(text: str, found: tuple[tuple[int, int], ...]) -> list[str]:
    return [text[start:end] for start, end in found]


@cases(
    ("gold", "expected"),
    [
        ((100, 104), ["0123"]),
        ((103, 107), ["3456"]),
        ((90, 103), ["012"]),  # it begins before the passage
        ((108, 200), ["89"]),  # and ends behind it
        ((0, 500), ["0123456789"]),
        ((0, 100), []),  # up to where the passage begins
        ((110, 120), []),
    ],
)
def test_the_shared_bytes_are_lit(gold: tuple[int, int], expected: list[str]) -> None:
    text = "0123456789"
    found = highlights(text, [Span(100, 110)], [lying(Span(*gold))])
    assert lit(text, found) == expected


def test_bytes_of_other_scripts_become_characters() -> None:
    text = "aé€😀z"  # 1 + 2 + 3 + 4 + 1 bytes: a at 0, é at 1, € at 3, the face at 6, z at 10
    place = [Span(50, 61)]
    assert highlights(text, place, [lying(Span(51, 53))]) == ((1, 2),)
    assert highlights(text, place, [lying(Span(53, 60))]) == ((2, 4),)
    assert highlights(text, place, [lying(Span(60, 61))]) == ((4, 5),)
    # From the middle of € to the middle of the face: both are lit as a whole.
    assert highlights(text, place, [lying(Span(54, 58))]) == ((2, 4),)


def test_a_passage_of_two_pieces_is_lit_in_both() -> None:
    text = "abcdefgh"  # bytes 10-14 and 40-44
    place = [Span(10, 14), Span(40, 44)]
    found = highlights(text, place, [lying(Span(12, 14), Span(40, 41)), lying(Span(43, 60))])
    assert lit(text, found) == ["cde", "h"]  # what touches is one


def test_a_text_of_another_length_than_its_place_is_not_measured_by_offsets() -> None:
    text = "two words"
    assert highlights(text, [Span(0, 20)], [lying(Span(0, 3))]) == ()
    found = highlights(text, [Span(0, 20)], [lying(Span(0, 3), quote="words")])
    assert lit(text, found) == ["words"]


def test_a_place_without_length_lights_nothing() -> None:
    """Nor where it points into a character of two bytes."""
    assert highlights("é", [Span(0, 2)], [lying(Span(1, 1))]) == ()


def test_other_units() -> None:
    text = "één\ntwee\ndrie\n"
    assert highlights(text, [Span(0, 14, "char")], [lying(Span(4, 8, "char"))]) == ((4, 8),)
    assert highlights(text, [Span(7, 10, "line")], [lying(Span(8, 9, "line"))]) == ((4, 9),)
    assert highlights(text, [Span(7, 10, "line")], [lying(Span(1, 99, "line"))]) == ((0, 14),)
    assert highlights(text, [Span(0, 14)], [lying(Span(0, 14, "char"))]) == ()  # not comparable
    assert highlights(text, [Span(1, 2, "page")], [lying(Span(1, 2, "page"))]) == ()


@cases(
    ("text", "quote", "expected"),
    [
        ("It rejects null keys.", "rejects null", ["rejects null"]),
        ("It  rejects\n  null keys.", "rejects null", ["rejects\n  null"]),
        ("null, null", "null", ["null"]),  # the first one only
        ("It says nothing.", "rejects null keys", []),
        # A quote that goes on in the next chunk, and one that began in the chunk before.
        ("Here it ends: the table reje", "the table rejects null keys", ["the table reje"]),
        ("ects null  keys. And more.", "the table rejects null keys", ["ects null  keys"]),
        # A chunk that lies inside the quote.
        (" rejects null ", "the table rejects null keys", ["rejects null"]),
        ("", "x", []),
        ("x", "", []),
    ],
)
def test_quotes_are_found_whatever_the_whitespace(
    text: str, quote: str, expected: list[str]
) -> None:
    assert [text[start:end] for start, end in quoted(text, quote)] == expected


def test_a_composed_quote_is_found_in_a_decomposed_text() -> None:
    text = "un cafe\u0301 noir"  # e and an accent of its own
    ((start, end),) = quoted(text, "caf\u00e9 noir")
    assert text[start:end] == "cafe\u0301 noir"


@given(
    st.text(st.sampled_from("aé€😀 \n"), min_size=1, max_size=12),
    st.integers(0, 40), st.integers(0, 40), st.integers(0, 30),
)  # fmt: skip
def test_what_is_lit_is_what_has_a_byte_inside(text: str, start: int, size: int, at: int) -> None:
    """Each character is asked by itself whether any of its bytes lies in the evidence."""
    place = Span(at, at + len(text.encode()))
    gold = Span(start, start + size)
    found = highlights(text, [place], [lying(gold)])
    lit_up = {character for begin, end in found for character in range(begin, end)}
    offset = at
    for number, character in enumerate(text):
        end = offset + len(character.encode())
        inside = max(offset, gold.start) < min(end, gold.end)
        assert (number in lit_up) == inside
        offset = end


@cases(
    ("spans", "words"),
    [
        ([Span(120, 240)], "bytes 120-240"),
        ([Span(1, 2), Span(7, 9)], "bytes 1-2, 7-9"),
        ([Span(3, 4, "char")], "characters 3-4"),
        ([Span(3, 4, "line")], "line 3"),  # lines are counted with the last one in
        ([Span(3, 8, "line")], "lines 3-7"),
        ([Span(2, 3, "page"), Span(5, 7, "page")], "page 2, pages 5-6"),
        ([Span(0, 1500, "ms")], "ms 0-1500"),
    ],
)
def test_places_in_words(spans: list[Span], words: str) -> None:
    assert in_words(spans) == words
