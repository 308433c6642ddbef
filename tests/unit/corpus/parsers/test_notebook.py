"""Notebooks are their cells in order; Markdown cells are read as Markdown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.corpus.parsers.notebook import PARSER
from ragauge.files.fields import FieldError
from ragauge.model.corpus import Parsed
from tests.support.cases import cases
from tests.support.parser_checks import attrs, checked, shown, text_at, titles

PYTHON = {"language_info": {"name": "Python"}}


def parsed(*cells: dict[str, Any], metadata: Any = None, **more: Any) -> Parsed:
    notebook = {"cells": cells, "metadata": metadata or {}, "nbformat": 4, **more}
    return checked(PARSER, json.dumps(notebook).encode())


def markdown(source: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "source": source}


def code(source: Any, **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "outputs": [], **more}


def test_cells_in_order_with_offsets_in_bytes() -> None:
    document = parsed(
        markdown(["# Title é\n", "\n", "Text."]),
        code("x = 1\n\ny = 2\n"),
        markdown("## Part\n\n- a\n- b"),
        metadata=PYTHON,
    )
    assert document.text.decode() == "# Title é\n\nText.\n\nx = 1\n\ny = 2\n\n## Part\n\n- a\n- b"
    assert titles(document) == [(1, "Title é"), (2, "Part")]
    assert text_at(document, document.headings[1].span) == "## Part"
    assert shown(document) == [
        ("prose", "Text."),
        ("code", "x = 1\n\ny = 2"),
        ("prose", "- a\n- b"),
    ]
    # "# Title é\n\n" is 12 bytes, "Text." 5 and a blank line 2: code begins at 19
    assert document.pieces[1].span == (19, 31)
    assert document.pieces[1].attrs == {"language": "python"}
    assert document.title == "Title é"


def test_a_caption_in_a_later_cell_points_at_its_own_figure() -> None:
    document = parsed(code("a"), markdown("![pic](p.png)\n\nFigure 1: A picture."))
    assert [piece.type for piece in document.pieces] == ["code", "figure", "caption"]
    assert document.pieces[2].attrs["of"] == 1


def test_the_language_comes_from_the_metadata_or_a_magic() -> None:
    kernel = {"kernelspec": {"language": "julia"}}
    document = parsed(code("a"), code("%%bash\nls"), code("%%time\nb"), metadata=kernel)
    assert attrs(document) == [{"language": "julia"}, {"language": "bash"}, {"language": "julia"}]
    assert attrs(parsed(code("a"))) == [{}]
    assert attrs(parsed(code("a"), metadata={"language_info": 7})) == [{}]
    halved = parsed(code("a"), metadata={"kernelspec": {"language": "\ud83d"}})
    assert attrs(halved) == [{"language": "\N{REPLACEMENT CHARACTER}"}]


def test_outputs_and_attachments_are_left_out_and_counted() -> None:
    output = {"output_type": "stream", "text": ["printed"]}
    document = parsed(
        code("a", outputs=[output, output]),
        code("b", outputs=[output]),
        {**markdown("c"), "attachments": {"x.png": {}}},
    )
    assert document.text == b"a\n\nb\n\nc"
    assert document.notes == ("outputs left out: 3", "attachments left out: 1")


def test_empty_cells_and_raw_cells() -> None:
    document = parsed(
        code(""), markdown(" \n"), {"cell_type": "raw", "source": "raw text"}, code([])
    )
    assert shown(document) == [("prose", "raw text")]


def test_format_3() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old\n", "title"]},
        {"cell_type": "code", "input": ["x"], "language": "python", "outputs": []},
    ]
    source = json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}).encode()
    document = checked(PARSER, source)
    assert titles(document) == [(2, "Old title")]
    assert shown(document) == [("code", "x")]
    assert attrs(document) == [{"language": "python"}]


def test_line_ends_and_lone_surrogates() -> None:
    document = parsed(code("a\r\nb\rc"), code("\ud800x"), code("\ud83d\ude00"))
    assert [text for _, text in shown(document)] == ["a\nb\nc", "\ufffdx", "😀"]


def test_a_bom_and_crlf_in_the_file() -> None:
    source = b"\xef\xbb\xbf" + json.dumps({"cells": [code("a")]}, indent=1).encode()
    assert checked(PARSER, source.replace(b"\n", b"\r\n")).text == b"a"


@cases("source", [b"", b"\xef\xbb\xbf", b"\n", b'{"cells": []}'])
def test_nothing_gives_nothing(source: bytes) -> None:
    document = checked(PARSER, source)
    assert (document.text, document.pieces, document.headings, document.title) == (
        b"",
        (),
        (),
        None,
    )


@cases(
    ("source", "code", "said"),
    [
        (b"{", "bad-document", "not JSON"),
        (b"\xe9", "bad-encoding", "offset 0"),
        (b"[]", "bad-document", "`notebook`"),
        (b"{}", "bad-document", "`cells`"),
        (b'{"cells": 1}', "bad-document", "`cells`"),
        (b'{"cells": [1]}', "bad-document", r"`cells\[0\]`"),
        (b'{"cells": [{}]}', "bad-document", r"`cells\[0\].cell_type`"),
        (b'{"cells": [{"cell_type": "code", "source": 1}]}', "bad-document", r"\[0\].source`"),
        (b'{"cells": [{"cell_type": "code", "source": [1]}]}', "bad-document", r"source\[0\]`"),
        (b'{"cells": ' + b"[" * 100_000, "too-deep", "deeply"),
    ],
)
def test_what_is_no_notebook_is_an_error(source: bytes, code: str, said: str) -> None:
    with pytest.raises(FieldError, match=said) as error:
        PARSER.parse(source)
    assert error.value.code == code


def test_origins_lead_to_the_characters_of_the_file() -> None:
    cell = r'{"cell_type": "markdown", "source": ["Größe\n", "a\tb \ud83d\ude00 c"]}'
    source = f'{{"cells": [{cell}]}}'
    document = checked(PARSER, source.encode())
    assert document.text.decode() == "Größe\na\tb 😀 c"
    # G is a character of the file, and so are a, b and c; \n, \t and the emoji are escaped there
    starts = [source.index(part) for part in ("Größe", "a\\t", "b \\u", " c")]
    # "Größe" is 7 bytes and \n one; a \t "b " are 4, the emoji 4: " c" begins at 16
    assert document.origins == (
        (0, starts[0], 7), (8, starts[1], 1), (10, starts[2], 2), (16, starts[3], 2),
    )  # fmt: skip


def test_a_byte_order_mark_is_not_counted() -> None:
    source = json.dumps({"cells": [markdown("Text.")]})
    document = checked(PARSER, b"\xef\xbb\xbf" + source.encode())
    assert document.origins == ((0, source.index("Text."), 5),)


def test_empty_lines_around_a_cell_and_returns_in_it_shift_its_origins() -> None:
    source = r'{"cells": [{"cell_type": "code", "source": "\r\n\nx\r\ny\rz\n"}]}'
    document = checked(PARSER, source.encode())
    assert document.text == b"x\ny\nz"
    assert [source[at] for _, at, _ in document.origins] == ["x", "y", "z"]
    assert [at for at, _, _ in document.origins] == [0, 2, 4]


_TEXTS = st.text(
    st.sampled_from('ab é日😀\n\r\t"\\/#\u2028\u0085\ud800\udc00\ufeff')
    | st.characters(max_codepoint=0x17F),
    max_size=20,
)


@given(
    st.lists(_TEXTS | st.lists(_TEXTS, max_size=3), max_size=4), st.booleans(),
    st.sampled_from(["code", "raw"]),
)  # fmt: skip
def test_every_origin_is_the_text_that_it_leads_to(
    sources: list[str | list[str]], ascii_only: bool, kind: str
) -> None:
    """What origins say is alike is alike, and what they leave out is escaped in the file."""
    cells = [{"cell_type": kind, "source": cell_text, "outputs": []} for cell_text in sources]
    source = json.dumps({"cells": cells}, ensure_ascii=ascii_only)
    source = source.encode("utf-8", "replace").decode()
    document = checked(PARSER, source.encode())
    inside = bytearray(document.text)
    for at, origin, length in document.origins:
        text = document.text[at : at + length].decode()
        assert source[origin : origin + len(text)] == text
        inside[at : at + length] = b"\n" * length
    # What has no origin is an escape or the blank line between two cells.
    left = set(bytes(inside).decode("utf-8", "replace")) - {"\n"}
    assert all(letter not in source or letter in '"\\/\t' or ascii_only for letter in left), left
