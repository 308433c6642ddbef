"""Every block has a part to recognise it by, inside of its span."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.corpus.anchors import anchor_of, sentence_in
from ragauge.corpus.blocks import build_blocks
from ragauge.corpus.parsers import html, markdown, rst, text
from ragauge.corpus.section_tree import build_sections
from ragauge.model.corpus import BlockType, Parsed, Piece
from tests.support.cases import cases


def anchor(kind: BlockType, content: str, **attrs: Any) -> str | None:
    """The anchor of a block behind a character of two bytes, and before one."""
    source = f"ä {content}ü".encode()
    span = (3, len(source) - 2)
    extent = anchor_of(source, Piece(type=kind, span=span, attrs=attrs))
    if extent is None:
        return None
    assert span[0] <= extent[0] < extent[1] <= span[1]
    return source[slice(*extent)].decode()


@cases(
    ("prose", "sentence"),
    [
        ("One thing. Another.", "One thing."),
        ("One\nthing! Another.", "One\nthing!"),
        ("See e.g. Fig. 3 of Dr. A. Smith et al. for it. Next.",
         "See e.g. Fig. 3 of Dr. A. Smith et al. for it."),
        ("Version 1.2.3 is out. Get it.", "Version 1.2.3 is out."),
        ("Am 3. Mai war es so. Dann nicht.", "Am 3. Mai war es so."),
        ('He said "no." Then left.', 'He said "no."'),
        ("**Bold one.** Then more.", "**Bold one.**"),
        ("これは短い文章です。次の文。", "これは短い文章です。"),
        ("no stop at all", "no stop at all"),
        ("- first item\n- second item", "first item"),
        ("1. the first. Item\n2. second", "the first."),
        ("> quoted words. More.", "quoted words."),
        ("> > - nested marks\n> > - more", "nested marks"),
        # Sentences of less than eight characters are passed over.
        ("Why? Because it rained.", "Because it rained."),
        ("- a\n- b c\n- d e f g h\n- later on", "d e f g h"),
        ("- a\n\n  Behind a blank line. C", "Behind a blank line."),
        ("1234567", None),
        ("12345678", "12345678"),
        ("a\n\n\n\nb     c\n", None),  # white space does not make it longer
        ("...", None),
        ("-", None),
        ("", None),
    ],
)  # fmt: skip
def test_of_prose_it_is_the_first_sentence_that_says_something(
    prose: str, sentence: str | None
) -> None:
    assert anchor("prose", prose) == sentence


def test_a_comment_says_nothing() -> None:
    assert anchor("prose", "<!-- Nobody sees this. -->", role="comment") is None


@cases(
    ("code", "line"),
    [
        ("def f(x):\n    return x", "def f(x):"),
        ("\n   \n  x = 1  \ny = 2", "x = 1"),
        ("```python\n\n  import os\n```", "import os"),
        ("~~~ sh\r\nmake all\r\n~~~", "make all"),
        ("```\n```", None),
        ("---\ntitle: x\n---", "title: x"),
        ("+++\ntitle = 1\n+++", "title = 1"),
        (".. code-block:: python\n   :linenos:\n\n   x = 1", "x = 1"),
        ("x", "x"),
        ("{'a': b}", "{'a': b}"),
        ("x\n```", "x"),
    ],
)
def test_of_code_it_is_the_first_line(code: str, line: str | None) -> None:
    assert anchor("code", code) == line


@cases(
    ("table", "row"),
    [
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "| a | b |"),
        ("a | b\n1 | 2", "a | b"),
        (" | 5\n1 | 2", "| 5"),
        ("+---+---+\n| a | b |\n| c | d |\n+===+===+\n| 1 | 2 |\n+---+---+",
         "| a | b |\n| c | d |"),
        ("===  ===\na    b\n===  ===\n1    2\n===  ===", "a    b"),
        (".. csv-table:: T\n   :widths: 1, 2\n   :header: x, y\n\n   1, 2", ":header: x, y"),
        (".. csv-table:: T\n   :widths: 1, 2\n\n   1, 2\n   3, 4", "1, 2"),
        (".. list-table::\n\n   * - a\n     - b\n   * - c\n     - d", "* - a\n     - b"),
        ("|---|\n", None),
    ],
)  # fmt: skip
def test_of_a_table_it_is_the_header_row(table: str, row: str | None) -> None:
    assert anchor("table", table) == row


@pytest.mark.parametrize("kind", ["figure", "caption"])
def test_figures_and_captions_are_their_own(kind: BlockType) -> None:
    assert anchor(kind, "Fig. 1: It. Is.") == "Fig. 1: It. Is."


def test_a_sentence_without_end_is_cut_on_a_whole_character() -> None:
    source = ("x" + "ä" * 5_000).encode()
    # 1 + 2 * 2047: byte 4096 would be half a character
    assert sentence_in(source, (0, len(source))) == (0, 4_095)


def test_a_long_list_of_nothing_has_no_anchor() -> None:
    """Only the first part of a block is looked at, so that time does not depend on its length."""
    source = b"- a\n" * 200_000 + b"- a sentence at last.\n"
    assert sentence_in(source, (0, len(source))) is None


def test_blocks_and_sections_have_anchors() -> None:
    source = "# A\n\nNo. The rule is this. More.\n\n```sh\nmake\n```\n\n![pic](p.png)\n\n- x\n"
    parsed = markdown.parse(source.encode())
    (section,) = sections = build_sections("d.md", parsed)
    blocks = build_blocks("d.md", parsed, sections)
    anchors = [block.anchor_span for block in blocks]
    assert [anchor_span and source[slice(*anchor_span)] for anchor_span in anchors] == [
        "The rule is this.", "make", "![pic](p.png)", None,
    ]  # fmt: skip
    assert section.anchor == anchors[0]


def test_of_a_caption_only_a_part_is_in_the_block_that_it_is_of() -> None:
    parsed = html.parse(b"<table><caption>The sizes</caption><tr><th>a<th>b<tr><td>1<td>2</table>")
    blocks = build_blocks("d", parsed, build_sections("d", parsed))
    anchors = [block.anchor_span for block in blocks]
    assert [anchor_span and parsed.text[slice(*anchor_span)] for anchor_span in anchors] == [
        b"The sizes",
        b"a | b",
    ]


_WORDS = st.text(alphabet="ab .!?\n\r\t->*|`+=:ä日0", max_size=60)


@given(_WORDS, st.sampled_from(("prose", "code", "table", "figure", "caption")))
def test_an_anchor_is_inside_its_block_and_not_blank(content: str, kind: BlockType) -> None:
    if content.strip():
        extent = anchor(kind, content)
        assert extent is None or kind in ("figure", "caption") or extent == extent.strip(" \t\r\n")


@given(_WORDS, st.sampled_from((markdown.parse, html.parse, text.parse, rst.parse)))
def test_every_parser_gives_blocks_with_anchors_on_whole_characters(
    content: str, parse: Any
) -> None:
    parsed: Parsed = parse(content.encode())
    for block in build_blocks("d", parsed, build_sections("d", parsed)):
        if block.anchor_span is not None:
            start, end = block.anchor_span
            assert block.span[0] <= start < end <= block.span[1]
            assert parsed.text[start:end].decode()
