"""reStructuredText keeps its bytes; docutils and the indentation say where its blocks are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.corpus.parsers.rst import PARSER
from ragauge.errors import RagaugeError
from ragauge.files.fields import FieldError
from ragauge.model.corpus import Parsed
from tests.support.cases import cases
from tests.support.parser_checks import attrs, checked, shown, text_at, titles


def parsed(source: str) -> Parsed:
    return checked(PARSER, source.encode())


def test_sections_nest_by_the_order_of_their_lines() -> None:
    document = parsed(
        "=====\nTop é\n=====\n\nOne\n---\ntext\n\n"
        "Two ``x`` :ref:`y <z>`\n----------------------\n\nDeep\n~~~~\n\nThree\n-----\n"
    )
    assert titles(document) == [(1, "Top é"), (2, "One"), (2, "Two x y"), (3, "Deep"), (2, "Three")]
    assert text_at(document, document.headings[0].span) == "=====\nTop é\n====="
    assert text_at(document, document.headings[1].span) == "One\n---"
    assert shown(document) == [("prose", "text")]
    # "=====\nTop é\n=====\n\n" is 6 + 7 + 6 + 1 = 20 bytes, é being two of them
    assert document.headings[1].span == (20, 27)
    assert document.title == "Top é"


@cases(
    ("source", "spans"),
    [
        ("One\n===\nTwo\n===\ntext\n", ["One\n===", "Two\n==="]),
        ("===\nOne\n===\nTwo\n===\n", ["===\nOne\n===", "Two\n==="]),
        ("One\n===\n===\nTwo\n===\n", ["One\n===", "===\nTwo\n==="]),
        ("**\n**\n.", ["**\n**"]),
    ],
)
def test_a_line_under_one_title_is_not_the_line_over_the_next(
    source: str, spans: list[str]
) -> None:
    document = parsed(source)
    assert [text_at(document, heading.span) for heading in document.headings] == spans


def test_a_table_that_docutils_places_on_a_heading_is_prose() -> None:
    """It has no blank line behind it, and docutils says that it stands in the first line."""
    table = "+--+--+\n|a |b |\n+--+--+\n|"
    document = parsed(f"Title\n-----\n{table}")
    assert titles(document) == [(1, "Title")]
    assert "".join(text for _, text in shown(document)).count("|a |b |") == 1


def test_every_kind_of_block() -> None:
    document = parsed(
        "Para one\nline two.\n\n- a\n\n  b\n- c\n\nterm\n  meaning\n\nExample::\n\n    x = 1\n\n"
        "    y = 2\n\n>>> 1\n1\n\n  quoted\n  text\n\n| verse\n| lines\n\n----\n\nlast\n"
    )
    assert shown(document) == [
        ("prose", "Para one\nline two."),
        ("prose", "- a\n\n  b\n- c"),
        ("prose", "term\n  meaning"),
        ("prose", "Example::"),
        ("code", "    x = 1\n\n    y = 2"),
        ("code", ">>> 1\n1"),
        ("prose", "quoted\n  text"),
        ("prose", "| verse\n| lines"),
        ("prose", "last"),
    ]
    assert document.pieces[5].attrs == {"language": "pycon"}


def test_code_directives_have_a_language_even_with_options_of_sphinx() -> None:
    source = ".. code-block:: Python\n   :linenos:\n   :emphasize-lines: 1\n\n   x = 1\n\n   y = 2"
    document = parsed(f"a\n\n{source}\n\nb\n\n.. code::\n\n   z\n")
    assert shown(document) == [
        ("prose", "a"), ("code", source), ("prose", "b"), ("code", ".. code::\n\n   z"),
    ]  # fmt: skip
    assert attrs(document) == [{}, {"language": "python"}, {}, {}]


def test_literal_blocks_have_the_language_that_is_highlighted() -> None:
    document = parsed("a::\n\n  x\n\n.. highlight:: c\n\nb::\n\n  y\n")
    assert attrs(document) == [{}, {}, {}, {"language": "c"}]


def test_tables() -> None:
    grid = "+---+---+\n| a | b |\n+===+===+\n| c | d |\n+---+---+\n| e | f |\n+---+---+"
    simple = "== == ==\na  b  c\n== == ==\n1  2  3\n== == =="
    listed = "   :header-rows: 1\n\n   * - a\n     - b\n   * - c\n     - d"
    csv = "   a,b,c\n   1,2,3"
    document = parsed(
        f"{grid}\n\n{simple}\n\n.. list-table:: Cap é\n{listed}\n\n.. csv-table::\n\n{csv}\n"
    )
    assert shown(document) == [
        ("table", grid),
        ("table", simple),
        ("caption", "Cap é"),
        ("table", listed.strip()),
        ("table", f".. csv-table::\n\n{csv}"),
    ]
    assert attrs(document) == [
        {"rows": 3, "columns": 2},
        {"rows": 2, "columns": 3},
        {"of": 3},
        {"rows": 2, "columns": 2},
        {"rows": 2, "columns": 3},
    ]


def test_figures_captions_and_legends() -> None:
    document = parsed(
        ".. image:: a.png\n   :alt: An image\n\n"
        ".. figure:: b.png\n   :alt: A figure\n\n   The caption\n   goes on.\n\n   Legend.\n"
    )
    assert shown(document) == [
        ("figure", ".. image:: a.png\n   :alt: An image"),
        ("figure", ".. figure:: b.png\n   :alt: A figure"),
        ("caption", "The caption\n   goes on."),
        ("prose", "Legend."),
    ]
    assert attrs(document) == [{"alt": "An image"}, {"alt": "A figure"}, {"of": 1}, {}]


def test_what_docutils_does_not_know_stays_prose(capsys: pytest.CaptureFixture[str]) -> None:
    directive = ".. versionadded:: 1.0\n   New é.\n\n   More."
    document = parsed(f"See :py:func:`f` and |x|_.\n\n{directive}\n\nbroken ``literal\n")
    assert shown(document) == [
        ("prose", "See :py:func:`f` and |x|_."),
        ("prose", directive),
        ("prose", "broken ``literal"),
    ]
    assert capsys.readouterr() == ("", "")


def test_comments_targets_and_lists_of_contents_are_no_pieces() -> None:
    document = parsed(
        ".. _target:\n\n.. a comment\n   goes on\n\n.. toctree::\n\n   one\n   two\n\n"
        ".. |x| replace:: y\n\n.. Contents::\n\ntext\n\n.. [1] A note.\n"
    )
    assert shown(document) == [("prose", "text"), ("prose", ".. [1] A note.")]


def test_nothing_is_included(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("Secret\n======\n\nsecret text\n")
    document = parsed(
        f"a\n\n.. include:: {secret}\n\n.. raw:: html\n   :file: {secret}\n\n"
        f".. csv-table::\n   :file: {secret}\n\n.. literalinclude:: {secret}\n"
    )
    assert titles(document) == []
    assert shown(document)[0] == ("prose", "a")
    assert b"secret text" not in document.text


def test_damaged_titles_and_tables_lose_no_text() -> None:
    document = parsed("A\n===\n\nB\n---\n\nC\n===\n\nD\n~~~\n\ntext\n\n+---+\n| x\n+--\n\nend\n")
    all_text = " ".join(text for _, text in shown(document)) + str(titles(document))
    for word in ("A", "B", "C", "D", "text", "| x", "end"):
        assert word in all_text


def test_roles_of_one_file_are_unknown_in_the_next() -> None:
    source = b":mine:`a`\n=========\n"
    before = PARSER.parse(source)
    PARSER.parse(b".. role:: mine\n\nx\n")
    assert PARSER.parse(source) == before


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_a_bom(end: str) -> None:
    text = end.join(["T\u2028x", "=====", "", "a\x0cb\x85", "c", "", "- d", ""])
    document = checked(PARSER, b"\xef\xbb\xbf" + text.encode())
    assert document.text == text.encode()
    assert titles(document) == [(1, "T\u2028x")]
    assert shown(document) == [("prose", f"a\x0cb\x85{end}c"), ("prose", "- d")]


@cases("source", [b"", b"\xef\xbb\xbf", b"\r\n \n", b"..\n", b".. x"])
def test_nothing_gives_no_pieces(source: bytes) -> None:
    document = checked(PARSER, source)
    assert (document.pieces, document.headings, document.title) == ((), (), None)


def test_bytes_that_are_not_utf8_are_an_error() -> None:
    with pytest.raises(FieldError, match="offset 2") as error:
        PARSER.parse(b"a \xe9")
    assert error.value.code == "bad-encoding"


def test_without_docutils_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docutils.frontend", None)
    with pytest.raises(RagaugeError, match=r"ragauge\[corpus\]") as error:
        PARSER.parse(b"a")
    assert error.value.code == "missing-extra"


@pytest.mark.slow
def test_blocks_that_are_nested_too_deeply_are_an_error() -> None:
    with pytest.raises(FieldError) as error:
        PARSER.parse(b"- " * 2000 + b"a")
    assert error.value.code == "too-deep"


_PARTS = st.sampled_from(
    (".. ", "::", "\n", "\n\n", "   ", "- ", "1. ", "=====", "-----", "~~~", "word", "é", "`x`",
     "``", "|", "+---+", "=== ===", "| a |", ":f:", ".. note::", ".. code-block:: py",
     ".. list-table:: t", ".. csv-table:: x", ">>> 1", "__ ", ".. _x:", ".. [1] x", ".. figure:: a",
     "\t", "\u2028", "\x0c", "..", ".. include:: x", ".. math::", ".. class:: x", ".. role:: x")
)  # fmt: skip


def test_a_title_between_two_lines_may_look_like_a_directive() -> None:
    found = parsed("=====\n.. .. \n=====\n\nText.\n")
    assert [heading.title for heading in found.headings] == [".. .."]
    assert [found.text[slice(*piece.span)] for piece in found.pieces] == [b"Text."]


@given(st.lists(_PARTS, max_size=30).map("".join))
def test_anything_gives_pieces_in_order(source: str) -> None:
    assert parsed(source).text == source.encode()
