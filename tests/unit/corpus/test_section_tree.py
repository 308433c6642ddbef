"""The title tree has no gaps, and sections have the spans, anchors and blocks that are theirs."""

from __future__ import annotations

from hashlib import sha256

import pytest

from ragauge import ids
from ragauge.corpus.blocks import build_blocks, fingerprint, reading_order
from ragauge.corpus.parsers import markdown
from ragauge.corpus.section_tree import build_sections, check_parsed, section_at
from ragauge.model.corpus import Block, Heading, Parsed, Piece, Section
from tests.support.cases import cases


def leveled(*levels: int) -> tuple[Section, ...]:
    """The sections of headings of these levels, three bytes each."""
    text = b"#\n\n" * len(levels)
    headings = tuple(
        Heading(level=level, title="t", span=(3 * i, 3 * i + 1)) for i, level in enumerate(levels)
    )
    return build_sections("d", Parsed(text=text, headings=headings, pieces=()))


def sections_of(source: str) -> tuple[Section, ...]:
    return build_sections("d.md", markdown.parse(source.encode()))


def blocks_of(source: str, doc: str = "d.md") -> tuple[Block, ...]:
    parsed = markdown.parse(source.encode())
    return build_blocks(doc, parsed, build_sections(doc, parsed))


@cases(
    ("levels", "expected"),
    [
        ((1, 2, 2, 1, 2), "S.1 S.1.1 S.1.2 S.2 S.2.1"),
        ((1, 3, 3, 2, 3), "S.1 S.1.1 S.1.2 S.1.3 S.1.3.1"),  # an h3 under an h1 has depth 2
        ((3, 2, 1), "S.1 S.2 S.3"),
        ((2, 4, 6, 4, 2), "S.1 S.1.1 S.1.1.1 S.1.2 S.2"),
        ((1, 2, 3, 4, 5, 6, 7, 8, 6, 2),
         "S.1 S.1.1 S.1.1.1 S.1.1.1.1 S.1.1.1.1.1 S.1.1.1.1.1.1 S.1.1.1.1.1.2 S.1.1.1.1.1.3 "
         "S.1.1.1.1.1.4 S.1.2"),
        ((), ""),
    ],
)  # fmt: skip
def test_ids_are_places_in_a_tree_without_gaps(levels: tuple[int, ...], expected: str) -> None:
    sections = leveled(*levels)
    assert [section.id for section in sections] == expected.split()
    for section in sections:
        assert section.depth == section.id.count(".")
        above = section.id.rpartition(".")[0]
        assert section.parent == (None if above == "S" else above)


def test_a_body_ends_at_any_heading_and_a_subtree_at_its_own() -> None:
    one, below, deeper, two = leveled(1, 2, 3, 1)  # headings at 0, 3, 6 and 9 of 12 bytes
    assert (one.heading, one.body, one.subtree) == ((0, 1), (1, 3), (0, 9))
    assert (below.body, below.subtree) == ((4, 6), (3, 9))
    assert (deeper.body, deeper.subtree) == ((7, 9), (6, 9))
    assert (two.body, two.subtree) == ((10, 12), (9, 12))


def test_text_before_the_first_heading_is_section_0() -> None:
    preamble, first = sections_of("hello\n\n# T\n")
    assert (preamble.id, preamble.title, preamble.heading) == ("S.0", "", None)
    assert preamble.body == preamble.subtree == (0, 7)
    assert preamble.parent is None
    assert first.id == "S.1"
    assert [section.id for section in sections_of("only text\n")] == ["S.0"]
    assert [section.id for section in sections_of("\n\n# T\n")] == ["S.1"]
    assert sections_of("\n \n") == ()


def test_equal_and_empty_titles_are_sections_of_their_own() -> None:
    sections = sections_of("# A\n\n## X\n\n## X\n\n#\n")
    assert [(section.id, section.title) for section in sections] == [
        ("S.1", "A"), ("S.1.1", "X"), ("S.1.2", "X"), ("S.2", ""),
    ]  # fmt: skip


def test_the_section_of_a_byte() -> None:
    sections = sections_of("pre\n\n# A\n\na\n\n## B\n\nb\n")
    holders = [section_at(sections, byte) for byte in (0, 4, 5, 8, 10, 12, 13, 18)]
    assert [section.id for section in holders if section] == [
        "S.0", "S.0", "S.1", "S.1", "S.1", "S.1", "S.1.1", "S.1.1",
    ]  # fmt: skip
    assert section_at(sections_of("\n# A\n"), 0) is None


def test_an_anchor_is_of_the_first_prose_of_the_body() -> None:
    source = (
        "# A\n\n<!-- a comment -->\n\n```\ncode.\n```\n\nNo. The rule. More.\n\n"
        "## B\n\n![i](j)\n\n# C\n"
    )
    one, two, three = sections_of(source)
    assert one.anchor is not None
    assert source[slice(*one.anchor)] == "The rule."
    assert two.anchor is None
    assert three.anchor is None


def test_blocks_are_numbered_within_their_section() -> None:
    source = "p\n\n# A\n\na\n\n```\nb\n```\n\n![c](d)\n\nFigure 1: e\n\n| f |\n|---|\n\n## B\n\ng\n"
    blocks = blocks_of(source, "guide/a#b.md")
    assert [block.id for block in blocks] == [
        "guide/a#b.md#S.0.p.Bk001",
        "guide/a#b.md#S.1.p.Bk001",
        "guide/a#b.md#S.1.c.Bk002",
        "guide/a#b.md#S.1.f.Bk003",
        "guide/a#b.md#S.1.x.Bk004",
        "guide/a#b.md#S.1.t.Bk005",
        "guide/a#b.md#S.1.1.p.Bk001",
    ]
    assert blocks[4].attrs == {"of": "guide/a#b.md#S.1.f.Bk003"}


def test_ids_say_document_section_and_type() -> None:
    for block in blocks_of("a\n\n# A\n\n```\nb\n```\n\n### C\n\n![c](d)\n\n*e*\n\n| f |\n|---|\n"):
        assert ids.doc_of(block.id) == block.doc
        assert ids.section_of(block.id) == block.section
        assert ids.type_of(block.id) == block.type


def test_reading_order_is_not_the_order_of_the_text() -> None:
    source = "".join(f"# {n}\n\na\n\n```\nb\n```\n\n" for n in range(11)) + "p\n\n" * 1_100
    names = [block.id for block in blocks_of(source)]
    assert names != sorted(names)
    assert names == sorted(sorted(names), key=reading_order)
    assert names[-1] == "d.md#S.11.p.Bk1102"
    with pytest.raises(ValueError, match="not the id of a block"):
        reading_order("p1#2")


def test_equal_blocks_have_equal_fingerprints() -> None:
    assert fingerprint("Caf\u00e9  au\r\nlait ") == fingerprint("CAFE\u0301 au lait")
    assert fingerprint("a b") != fingerprint("ab")


@pytest.mark.parametrize("between", [" ", "\n", "  \t "])
def test_a_long_text_has_the_fingerprint_of_its_words(between: str) -> None:
    """It is hashed in portions of a mebibyte; the ΟΔΟΣ ends in a sigma whose form depends on it."""
    words = ["Ünd", "ΟΔΟΣ", "abcdefg"] * 100_000
    text = " ".join(words).lower()
    assert len(text) > 1 << 20
    assert fingerprint(between.join(words)) == sha256(text.encode()).hexdigest()[:32]
    assert fingerprint("x" * (3 << 20)) == sha256(b"x" * (3 << 20)).hexdigest()[:32]


def test_pages_come_from_the_parser() -> None:
    parsed = Parsed(
        text=b"aa bb cc",
        headings=(),
        pieces=(
            Piece(type="prose", span=(0, 2)),
            Piece(type="prose", span=(3, 5)),
            Piece(type="prose", span=(6, 8), page=9),
        ),
        pages=(0, 3),
    )
    assert [block.page for block in build_blocks("d", parsed, build_sections("d", parsed))] == [
        1,
        2,
        9,
    ]


@cases(
    "spans",
    [[(0, 3), (2, 4)], [(3, 4), (0, 2)], [(0, 99)], [(2, 1)], [(0, 6)], [(6, 7)]],
    ids=["overlap", "order", "outside", "backwards", "half a character", "starts in one"],
)
def test_a_parser_is_held_to_its_promises(spans: list[tuple[int, int]]) -> None:
    """The text is `abcdeä`: byte 6 is the second half of the last character."""
    pieces = tuple(Piece(type="prose", span=span) for span in spans)
    with pytest.raises(ValueError, match=r"span|byte|order"):
        check_parsed(Parsed(text="abcdeä".encode(), headings=(), pieces=pieces))


def test_a_heading_inside_a_piece_is_noticed() -> None:
    heading = Heading(level=1, title="t", span=(2, 3))
    piece = Piece(type="prose", span=(0, 5))
    with pytest.raises(ValueError, match="overlaps"):
        check_parsed(Parsed(text=b"abcdef", headings=(heading,), pieces=(piece,)))
