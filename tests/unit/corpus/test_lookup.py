"""A corpus is asked for documents, blocks, sections, spans and quotes, and answers exactly."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ragauge.corpus import lookup as module
from ragauge.corpus.lookup import CorpusSpot, Lookup, places_in
from ragauge.errors import RagaugeError
from ragauge.files.fields import FieldError
from ragauge.model.corpus import Extent
from ragauge.quotes import clusters, normalised
from ragauge.spans import Span
from tests.support.cases import cases
from tests.support.corpora import CODE, FIRST, GUIDE, LAST, NOTE, looked_up
from tests.support.effort import examples


@pytest.fixture(scope="module")
def lookup(tmp_path_factory: pytest.TempPathFactory) -> Lookup:
    return looked_up(tmp_path_factory.mktemp("lookup"))


def refused(code: str, message: str = "", hint: str = "") -> pytest.RaisesExc[FieldError]:
    return pytest.RaisesExc(
        FieldError,
        check=lambda error: error.code == code and message in error.message and hint in error.hint,
    )


# --- documents, blocks and sections ---


def test_documents_and_blocks_are_found_by_their_names(lookup: Lookup) -> None:
    assert lookup.document("guide.md").bytes == 89
    assert lookup.block(CODE).span == (53, 71)
    assert [block.id for block in lookup.blocks_by_doc["guide.md"]] == [FIRST, CODE, LAST]
    assert lookup.spot_of(lookup.block(LAST)) == CorpusSpot(
        doc="guide.md", start=73, end=88, section="S.1.1", block=LAST
    )


@cases(
    ("name", "hint"),
    [
        ("docs/guide.md", "did you mean `guide.md`?"),
        ("notes.txt", "did you mean `sub/notes.txt`?"),
        ("guide.mdx", "did you mean `guide.md`?"),
        ("other.md", "check that it is the corpus"),
        ("", "check that it is the corpus"),
    ],
)
def test_a_document_that_is_not_there_gets_a_hint(lookup: Lookup, name: str, hint: str) -> None:
    with refused("unresolved", f"no document `{name}`", hint):
        lookup.document(name)


@cases(
    ("name", "hint"),
    [
        ("guide.md#S.1.p.Bk002", f"`{FIRST}`"),
        ("docs/guide.md#S.1.p.Bk001", f"did you mean `{FIRST}`?"),
        ("docs/guide.md#S.9.p.Bk001", "check that it is the corpus"),
        ("guide.md", "check that it is the corpus"),
        ("c-17", "check that it is the corpus"),
        ("#S.1.p.Bk001", "check that it is the corpus"),
    ],
)
def test_a_block_that_is_not_there_gets_a_hint(lookup: Lookup, name: str, hint: str) -> None:
    """The folder in front of the document is the usual difference."""
    with refused("unresolved", f"no block `{name}`", hint):
        lookup.block(name)


@cases(
    ("name", "doc", "title"),
    [
        ("guide.md#S.1", None, "Guide"),
        ("guide.md#S.1.1", None, "Setup"),
        ("guide.md#1.1", None, "Setup"),
        ("S.1.1", "guide.md", "Setup"),
        ("1.1", "guide.md", "Setup"),
        ("guide.md#S.1.1", "sub/notes.txt", "Setup"),  # the name's own document counts
        ("S.1.1", None, "Setup"),  # no other document has such a section
        ("S.0", None, ""),
    ],
)
def test_sections_are_found_with_and_without_document_and_letter(
    lookup: Lookup, name: str, doc: str | None, title: str
) -> None:
    assert lookup.section(name, doc).title == title


@cases(
    ("name", "doc", "message"),
    [
        ("guide.md#S.2", None, "`guide.md` has no section `S.2`"),
        ("S.7", "guide.md", "`guide.md` has no section `S.7`"),
        ("S.0", "guide.md", "`guide.md` has no section `S.0`"),
        ("S.7", None, "no document has it"),
        ("gone.md#S.1", None, "no document `gone.md`"),
        ("S.1", "gone.md", "no document `gone.md`"),
        ("Setup", None, "no document has it"),
    ],
)
def test_a_section_that_is_not_there_is_refused(
    lookup: Lookup, name: str, doc: str | None, message: str
) -> None:
    with refused("unresolved", message):
        lookup.section(name, doc)


def test_a_section_of_two_documents_needs_its_document(tmp_path: Path) -> None:
    lookup = looked_up(tmp_path, {"a.md": "# A\n\none\n", "b.md": "# B\n\ntwo\n"})
    assert lookup.section("S.1", "b.md").title == "B"
    with refused("unresolved", "it stands in 2 documents", "as in guide.md#S.4.2"):
        lookup.section("S.1")


# --- spans ---


def test_a_place_knows_its_section_and_block(lookup: Lookup) -> None:
    assert lookup.spot("guide.md", 9, 24) == CorpusSpot(
        doc="guide.md", start=9, end=24, section="S.1", block=FIRST
    )
    assert lookup.quote(lookup.spot("guide.md", 9, 24)) == "Äpfel are red."


@cases(
    ("start", "end", "section", "block"),
    [
        (0, 89, "S.1", None),  # several blocks
        (41, 53, "S.1", None),  # between two
        (43, 51, "S.1.1", None),  # a heading
        (40, 43, "S.1", None),  # out of a block
        (53, 71, "S.1.1", CODE),
        (60, 74 + 1, "S.1.1", None),  # two blocks
        (88, 89, "S.1.1", None),  # the last line end
    ],
)
def test_a_place_is_in_a_block_only_if_it_lies_in_that_one(
    lookup: Lookup, start: int, end: int, section: str, block: str | None
) -> None:
    spot = lookup.spot("guide.md", start, end)
    assert (spot.section, spot.block) == (section, block)


@cases(
    ("start", "end", "message"),
    [
        (0, 90, "the bytes 0 to 90 are not in `guide.md`, which has 89"),
        (-1, 5, "the bytes -1 to 5 are not in"),
        (5, 5, "the bytes 5 to 5 are not in"),
        (6, 5, "the bytes 6 to 5 are not in"),
        (89, 90, "the bytes 89 to 90 are not in"),
        (10, 24, "the byte 10 of `guide.md` is inside a character"),
        (9, 10, "the byte 10 of `guide.md` is inside a character"),
        (0, 74, "the byte 74 of `guide.md` is inside a character"),
    ],
)
def test_bytes_outside_the_text_or_inside_a_character_are_refused(
    lookup: Lookup, start: int, end: int, message: str
) -> None:
    with refused("unresolved", message):
        lookup.spot("guide.md", start, end)


@cases(
    ("start", "end", "expected"),
    [
        (0, 9, []),
        (0, 10, [FIRST]),
        (9, 41, [FIRST]),
        (40, 41, [FIRST]),
        (41, 53, []),
        (40, 54, [FIRST, CODE]),
        (0, 89, [FIRST, CODE, LAST]),
        (88, 89, []),
    ],
)
def test_blocks_are_touched_by_at_least_one_byte(
    lookup: Lookup, start: int, end: int, expected: list[str]
) -> None:
    assert [block.id for block in lookup.touched("guide.md", start, end)] == expected


def test_the_type_is_that_of_the_block_with_most_bytes(lookup: Lookup) -> None:
    assert lookup.type_at("guide.md", 0, 89) == "prose"  # 32 of 9-41, 18 of code
    assert lookup.type_at("guide.md", 40, 72) == "code"  # 1 of prose, 18 of code
    assert lookup.type_at("guide.md", 53, 88) == "code"  # 18 of code, 15 of prose
    assert lookup.type_at("guide.md", 70, 74 + 1) == "prose"  # 1 of code, 2 of prose
    assert lookup.type_at("guide.md", 70, 71) == "code"
    assert lookup.type_at("guide.md", 41, 53) is None
    # One byte each: the first.
    typed_spans = [("code", (0, 4)), ("prose", (4, 8))]
    blocks = tuple(
        replace(lookup.block(FIRST), id=kind, type=kind, span=span) for kind, span in typed_spans
    )
    assert Lookup(replace(lookup.corpus, blocks=blocks)).type_at("guide.md", 3, 5) == "code"


@cases(
    ("span", "expected"),
    [
        (Span(9, 24), (9, 24)),
        (Span(9, 23, "char"), (9, 24)),  # Ä is one character
        (Span(10, 23, "char"), (11, 24)),
        (Span(0, 87, "char"), (0, 89)),
        (Span(71, 85, "char"), (72, 87)),
        (Span(1, 2, "line"), (0, 8)),
        (Span(3, 4, "line"), (9, 42)),
        (Span(3, 6, "line"), (9, 52)),
        (Span(11, 12, "line"), (73, 89)),
        (Span(1, 12, "line"), (0, 89)),
    ],
)
def test_characters_and_lines_become_bytes(
    lookup: Lookup, span: Span, expected: tuple[int, int]
) -> None:
    assert lookup.in_bytes("guide.md", span) == expected


@cases(
    ("span", "message"),
    [
        (Span(0, 88, "char"), "the characters 0 to 88 are not in `guide.md`, which has 87"),
        (Span(-2, 3, "char"), "the characters -2 to 3 are not in"),
        (Span(0, 1, "line"), "has the lines 1 to 11, not 0 to 0"),
        (Span(12, 13, "line"), "has the lines 1 to 11, not 12 to 12"),
        (Span(3, 3, "line"), "not 3 to 2"),
        (Span(1, 2, "page"), "a place in pages cannot be found in `guide.md`"),
        (Span(1, 2, "token"), "a place in tokens cannot be found"),
        (Span(1, 2, "ms"), "a place in ms cannot be found"),
    ],
)
def test_what_is_not_in_the_text_has_no_bytes(lookup: Lookup, span: Span, message: str) -> None:
    with refused("unresolved", message):
        lookup.in_bytes("guide.md", span)


def test_characters_are_those_of_the_document_that_is_asked_for(lookup: Lookup) -> None:
    for _ in range(2):
        assert lookup.in_bytes("guide.md", Span(0, 10, "char")) == (0, 11)
        assert lookup.in_bytes("sub/notes.txt", Span(0, 10, "char")) == (0, 10)


def test_pages_become_bytes_where_a_document_has_pages(lookup: Lookup) -> None:
    documents = tuple(
        replace(document, pages=(0, 43)) if document.doc == "guide.md" else document
        for document in lookup.corpus.documents
    )
    paged = Lookup(replace(lookup.corpus, documents=documents))
    assert paged.in_bytes("guide.md", Span(1, 2, "page")) == (0, 43)
    assert paged.in_bytes("guide.md", Span(1, 3, "page")) == (0, 89)
    with refused("unresolved", "has the pages 1 to 2, not 3 to 3"):
        paged.in_bytes("guide.md", Span(3, 4, "page"))


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_lines_end_in_any_way(tmp_path: Path, ends: str) -> None:
    lookup = looked_up(tmp_path, {"a.txt": f"one{ends}two{ends}three"})
    start = 3 + len(ends)
    assert lookup.in_bytes("a.txt", Span(2, 3, "line")) == (start, 2 * start)
    assert lookup.in_bytes("a.txt", Span(3, 4, "line")) == (2 * start, 2 * start + 5)


@given(st.text(st.sampled_from("aäΩ🙂\n ")), st.data())
@examples(25)
def test_any_span_of_characters_is_the_same_text_in_bytes(
    tmp_path_factory: pytest.TempPathFactory, text: str, data: st.DataObject
) -> None:
    lookup = looked_up(tmp_path_factory.mktemp("chars"), {"a.txt": f"x{text}"})
    text = lookup.text("a.txt").decode()
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    first, last = lookup.in_bytes("a.txt", Span(start, end, "char"))
    assert lookup.quote(lookup.spot("a.txt", first, last)) == text[start:end]


# --- quotes ---


def test_a_quote_is_found_where_it_stands(lookup: Lookup) -> None:
    assert lookup.find_quote("guide.md", "Bananas are not.") == CorpusSpot(
        doc="guide.md", start=25, end=41, section="S.1", block=FIRST
    )
    assert lookup.find_quote("guide.md", "make\n  all").start == 59


@pytest.mark.parametrize(("occurrence", "start"), [(1, 9), (2, 73)])
def test_an_occurrence_says_which(lookup: Lookup, occurrence: int, start: int) -> None:
    assert lookup.find_quote("guide.md", "Äpfel are red.", occurrence).start == start


@cases(
    ("quote", "occurrence", "code", "message"),
    [
        ("Äpfel are red.", None, "quote-ambiguous", "stands 2 times in `guide.md`, at 9, 73"),
        ("Äpfel are red.", 3, "quote-not-found", "has the quote 2 times, not 3"),
        ("Äpfel are red.", 0, "quote-not-found", "has the quote 2 times, not 0"),
        ("Bananas are red.", None, "quote-not-found", "does not stand in `guide.md`"),
        ("bananas are not.", None, "quote-not-found", "does not stand in `guide.md`"),
        ("", None, "quote-not-found", "does not stand"),
        (" \n", 1, "quote-not-found", "does not stand"),
        ("\ud800", None, "quote-not-found", "does not stand"),
    ],
)
def test_a_quote_that_is_not_there_or_not_alone_is_refused(
    lookup: Lookup, quote: str, occurrence: int | None, code: str, message: str
) -> None:
    with refused(code, message):
        lookup.find_quote("guide.md", quote, occurrence)


def test_a_quote_of_an_unknown_document_names_the_document(lookup: Lookup) -> None:
    with refused("unresolved", "no document `gone.md`"):
        lookup.find_quote("gone.md", "Bananas")


def test_a_quote_must_stand_at_its_place(lookup: Lookup) -> None:
    spot = lookup.spot("guide.md", 9, 24)
    lookup.check_quote(spot, "Äpfel are red.")
    lookup.check_quote(spot, "A\u0308pfel\nare  red.")  # decomposed, and laid out otherwise
    with refused("quote-moved", "at 9 to 24", "it stands at 25 to 41"):
        lookup.check_quote(spot, "Bananas are not.")
    with refused("quote-moved", "at 0 to 7", "it stands at 9 to 24, 73 to 88"):
        lookup.check_quote(lookup.spot("guide.md", 0, 7), "Äpfel are red.")
    with refused("quote-moved", "", "it does not stand in the document any more"):
        lookup.check_quote(spot, "Cherries")
    with refused("quote-moved"):
        lookup.check_quote(spot, "")


@cases(
    ("extent", "quote", "message"),
    [
        ((8, 24), "Äpfel are red.", "has 1 byte of white space more at its beginning"),
        ((9, 25), "Äpfel are red.", "has 1 byte of white space more at its end than the quote"),
        ((8, 25), "Äpfel are red.", "at its beginning and 1 byte of white space more at its end"),
        ((9, 24), " Äpfel are red.", "has 1 byte of white space less at its beginning"),
        ((9, 24), "Äpfel are red.\n\n", "has 2 bytes of white space less at its end"),
        ((9, 25), "Äpfel are red.\n", "has other white space at its end"),
    ],
)
def test_a_place_that_is_off_by_a_blank_is_no_place_of_the_quote(
    lookup: Lookup, extent: Extent, quote: str, message: str
) -> None:
    """`guide.md` has a line end before byte 9, and a blank at byte 24."""
    spot = lookup.spot("guide.md", *extent)
    with refused("quote-moved", message):
        lookup.check_quote(spot, quote)
    lookup.check_quote(spot, quote, exact=False)


def test_a_long_quote_is_shown_short(lookup: Lookup) -> None:
    with refused("quote-not-found", f"`{'long ' * 11}lo...`"):
        lookup.find_quote("guide.md", "long " * 40)


@cases(
    ("text", "quote", "expected"),
    [
        ("aXbXc", "X", [(1, 2), (3, 4)]),
        ("aaa", "aa", [(0, 2), (1, 3)]),  # overlapping places are places
        ("one  two\n\nthree", "two three", [(5, 15)]),
        ("one  two", " two", [(4, 8)]),  # as it stands: with the blank
        ("one\ntwo", " two", [(4, 7)]),  # no such blank: the word
        ("cafe\u0301 au lait", "caf\u00e9 au", [(0, 9)]),  # the mark has two bytes
        ("caf\u00e9 au lait", "cafe\u0301 au", [(0, 8)]),
        ("xe\u0301y", "\u00e9", [(1, 4)]),
        ("\u1112\u1161\u11ab \uae00", "\ud55c \uae00", [(0, 13)]),  # Hangul in parts
        ("a\u0323\u0307", "a\u0307\u0323", [(0, 5)]),  # marks in another order
        ("one two", "onetwo", []),
        ("", "a", []),
        ("a", "", []),
    ],
)
def test_places_are_exact_or_else_alike(
    text: str, quote: str, expected: list[tuple[int, int]]
) -> None:
    assert places_in(text.encode(), quote) == expected


LETTERS = st.text(
    st.sampled_from("ab \n\u00a0e\u0301\u00e9\u0323\u1112\u1161\u11ab\ud55c\u09c7\u09beß🙂"),
    max_size=30,
)


@given(LETTERS, LETTERS, LETTERS)
def test_a_quote_made_otherwise_is_found_where_its_text_is(
    before: str, quote: str, after: str
) -> None:
    """Decomposed and laid out anew, a quote is found again, and what is there says the same."""
    text = f"{before} {quote} {after}"
    assert "".join(module_clusters(text)) == text
    other = "\t".join(unicodedata.normalize("NFD", quote).split())
    places = places_in(text.encode(), other)
    assert bool(places) == bool(quote.split())
    if other.encode() not in text.encode():
        for start, end in places:
            assert normalised(text.encode()[start:end].decode()) == normalised(quote)


def module_clusters(text: str) -> list[str]:
    parts = list(clusters(text))
    composed = "".join(unicodedata.normalize("NFC", part) for part in parts)
    assert composed == unicodedata.normalize("NFC", text)
    return parts


# --- texts ---


def test_texts_are_kept_up_to_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one asked for longest ago goes first, and one that is too large alone stays."""
    lookup = looked_up(tmp_path, {f"{name}.txt": name * 10 for name in "abc"})
    monkeypatch.setattr(module, "_CACHED_BYTES", 25)
    read: list[str] = []
    original = type(lookup.corpus).text

    def text(self: object, document: object) -> bytes:
        read.append(document.doc)  # type: ignore[attr-defined]
        return original(self, document)  # type: ignore[arg-type]

    monkeypatch.setattr(type(lookup.corpus), "text", text)
    for name in ("a", "b", "a", "c", "a", "b"):
        assert lookup.text(f"{name}.txt") == name.encode() * 10
    assert read == ["a.txt", "b.txt", "c.txt", "b.txt"]
    monkeypatch.setattr(module, "_CACHED_BYTES", 5)
    lookup.text("c.txt")
    lookup.text("c.txt")
    assert read[4:] == ["c.txt"]


def test_a_text_that_was_changed_is_refused(tmp_path: Path) -> None:
    lookup = looked_up(tmp_path)
    (tmp_path / "corpus" / lookup.document("guide.md").text).write_text(GUIDE + "more")
    with pytest.raises(RagaugeError) as caught:
        lookup.spot("guide.md", 0, 1)
    assert caught.value.exit_code == 3
    assert lookup.text("sub/notes.txt") == b"Plain a.\n\nPlain b.\n"
    assert lookup.block(NOTE).span == (0, 8)
