"""Markdown and plain text become headings and pieces with the right bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.corpus.parsers import markdown, text
from ragauge.files.fields import FieldError
from ragauge.model.corpus import Parsed
from tests.support.cases import cases
from tests.support.parser_checks import checked


def pieces(parsed: Parsed) -> list[tuple[str, str]]:
    """Type and text of each piece."""
    return [(piece.type, parsed.text[slice(*piece.span)].decode()) for piece in parsed.pieces]


def titles(parsed: Parsed) -> list[tuple[int, str, str]]:
    """Level, title and text of each heading."""
    return [
        (heading.level, heading.title, parsed.text[slice(*heading.span)].decode())
        for heading in parsed.headings
    ]


def attrs(source: str) -> list[dict[str, Any]]:
    return [piece.attrs for piece in markdown.parse(source.encode()).pieces]


def types(source: str) -> list[str]:
    return [piece.type for piece in markdown.parse(source.encode()).pieces]


def test_both_kinds_of_headings_are_found() -> None:
    parsed = markdown.parse(b"# One #\n\na\n\nTwo\n===\n\nThree\nlines\n---\n### *Four* `x`\n#\n")
    assert titles(parsed) == [
        (1, "One", "# One #"),
        (1, "Two", "Two\n==="),
        (2, "Three lines", "Three\nlines\n---"),
        (3, "Four x", "### *Four* `x`"),
        (1, "", "#"),
    ]
    assert pieces(parsed) == [("prose", "a")]
    assert parsed.title == "One"


@cases(
    "source",
    [
        "- # in a list\n  - ## deeper\n",
        "> # in a quote\n",
        "```\n# in a fence\n```\n",
        "    # in indented code\n",
        "| # in | a table |\n|---|---|\n| # x | y |\n",
        "<div>\n# in html\n</div>\n",
        "#no blank\n",
        "####### seven\n",
        "\\# escaped\n",
    ],
)
def test_what_is_no_heading_at_the_top(source: str) -> None:
    parsed = markdown.parse(source.encode())
    assert parsed.headings == ()
    assert len(parsed.pieces) == 1


def test_a_title_is_what_a_reader_sees() -> None:
    source = (
        "# See [the *docs*](x.md), `a|b` &amp; <b>c</b> ![logo](l.png)\n\n[r]: y\n\n## [A][r]\n"
    )
    assert [title for _, title, _ in titles(markdown.parse(source.encode()))] == [
        "See the docs, a|b & c logo",
        "A",
    ]


def test_windows_line_ends_and_a_mark_keep_the_bytes() -> None:
    parsed = markdown.parse(b"\xef\xbb\xbf# \xc3\x84\r\n\r\none\r\ntwo\r\n\r\n- x\r")
    assert parsed.text == b"# \xc3\x84\r\n\r\none\r\ntwo\r\n\r\n- x\r"
    assert titles(parsed) == [(1, "Ä", "# Ä")]
    assert pieces(parsed) == [("prose", "one\r\ntwo"), ("prose", "- x")]
    assert parsed.origins == ((0, 3, len(parsed.text)),)


@cases("odd", ["\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\x1c", "\0"])
def test_only_real_line_ends_end_lines(odd: str) -> None:
    """`str.splitlines` would count one line more, and everything behind would be misplaced."""
    parsed = markdown.parse(f"a{odd}b\n\n# T\n\nc\n".encode())
    assert pieces(parsed) == [("prose", f"a{odd}b"), ("prose", "c")]
    assert titles(parsed) == [(1, "T", "# T")]


@cases("parse", [markdown.parse, text.parse])
@cases("data", [b"ok \xff", b"\xef\xbb\xbfok\n\xc3", b"\xed\xa0\x80"])
def test_bytes_that_are_not_utf8_are_refused(parse: Any, data: bytes) -> None:
    with pytest.raises(FieldError, match="not UTF-8") as caught:
        parse(data)
    assert caught.value.code == "bad-encoding"


def test_the_place_of_bad_bytes_counts_the_mark() -> None:
    with pytest.raises(FieldError, match="from 5 on"):
        markdown.parse(b"\xef\xbb\xbfok\xff")


def test_front_matter_is_a_piece_of_its_own() -> None:
    parsed = markdown.parse(b'---\r\n# note\r\ntitle: "The guide"\r\n---\r\n# H\r\n\r\ntext\r\n')
    assert pieces(parsed) == [
        ("code", '---\r\n# note\r\ntitle: "The guide"\r\n---'),
        ("prose", "text"),
    ]
    assert parsed.pieces[0].attrs == {"language": "yaml", "role": "front-matter"}
    assert titles(parsed) == [(1, "H", "# H")]
    assert parsed.title == "The guide"


def test_front_matter_of_toml() -> None:
    source = '+++\n[menu]\ntitle = "not this"\n+++\n\n# H\n'
    assert attrs(source) == [{"language": "toml", "role": "front-matter"}]
    assert markdown.parse(source.encode()).title == "H"
    parsed = markdown.parse(b"+++\r\ntitle = 'The *guide*'\r\n# no\r\n+++ \r\ntext\r\n")
    assert pieces(parsed) == [
        ("code", "+++\r\ntitle = 'The *guide*'\r\n# no\r\n+++"),
        ("prose", "text"),
    ]
    assert parsed.title == "The *guide*"
    assert parsed.headings == ()


def test_front_matter_that_is_damaged_names_no_title() -> None:
    parsed = markdown.parse(b"+++\ntitle = \n+++\n\n# H\n")
    assert parsed.title == "H"
    assert parsed.pieces[0].attrs["role"] == "front-matter"


@pytest.mark.parametrize("mark", ["---", "+++"])
def test_headings_and_fences_in_front_matter_are_nothing(mark: str) -> None:
    key = "a: 1" if mark == "---" else "a = 1"
    parsed = markdown.parse(f"{mark}\n{key}\n# comment\n```\n{mark}\n# T\n".encode())
    assert titles(parsed) == [(1, "T", "# T")]
    assert [piece.type for piece in parsed.pieces] == ["code"]


def test_front_matter_may_be_all_there_is() -> None:
    assert pieces(markdown.parse(b"---\na: 1\n---")) == [("code", "---\na: 1\n---")]


@cases(
    "source",
    [
        "---\n\na: 1\n\n---\n",
        "---\njust words\n\n---\n",
        "---\na: 1\n",
        "text\n\n---\na: 1\n\n---\n",
        "+++\njust words\n+++\n",
        "+++\na = 1\n",
        "---\na = 1\n\n+++\n",
    ],
)
def test_rules_are_no_front_matter(source: str) -> None:
    assert "code" not in types(source)


def test_code_has_its_language() -> None:
    source = "```python title=x\na\n\n# b\n```\n\n~~~\nc\n~~~\n\n    d\n\n    e\n\n```{r}\nf\n```\n"
    assert attrs(source) == [{"language": "python"}, {}, {}, {"language": "r"}]
    assert pieces(markdown.parse(source.encode()))[:3] == [
        ("code", "```python title=x\na\n\n# b\n```"),
        ("code", "~~~\nc\n~~~"),
        ("code", "    d\n\n    e"),
    ]


def test_a_fence_that_never_closes_reaches_the_end() -> None:
    assert types("```\na\n\n# b\n\n- c\n") == ["code"]


def test_tables_have_rows_and_columns() -> None:
    """Header and two rows are three rows; pipes in code spans make no columns."""
    source = "| a | `b \\| c` |\n|---|:-:|\n| `x | y` | 2 |\n| 3 |\n\ntext\n"
    assert attrs(source) == [{"rows": 3, "columns": 2}, {}]
    assert types(source) == ["table", "prose"]


def test_a_table_in_a_list_belongs_to_the_list() -> None:
    assert types("- x\n\n  | a |\n  |---|\n  | b |\n") == ["prose"]


def test_images_alone_are_a_figure() -> None:
    source = (
        "![one *x*](a.png)\n\n![two](b.png)\n![](c.png)\n\n[![badge](d.svg)](e)\n\n"
        "![r][ref]\n\n![four](f.png) and words\n\n![no such][nowhere]\n\n[ref]: g.png\n"
    )
    assert types(source) == ["figure", "figure", "figure", "figure", "prose", "prose"]
    assert attrs(source)[:4] == [
        {"alt": "one *x*"}, {"alt": "two"}, {"alt": "badge"}, {"alt": "r"},
    ]  # fmt: skip


def test_html_is_prose_but_for_figures() -> None:
    source = (
        "<figure>\n<img src='a' alt='A b'>\n<figcaption>c</figcaption>\n</figure>\n\n"
        '<p align="center"><img alt="logo" src="b"></p>\n\n<div>words</div>\n\n<!-- hidden -->\n'
    )
    assert types(source) == ["figure", "figure", "prose", "prose"]
    assert attrs(source) == [{"alt": "A b"}, {"alt": "logo"}, {}, {"role": "comment"}]


@cases(
    "caption",
    [
        "Figure 1: The parts.", "Fig. 2. Parts", "fig 3", "Table 4", "Abbildung 5: Teile",
        "**Figure 6.** The parts", "*The parts of it.*", "_The **parts** of it._", "**All bold**",
        "Figure 7 The parts",
    ],
)  # fmt: skip
@cases("above", ["![a](b.png)", "| a |\n|---|\n| b |"])
def test_what_stands_behind_a_figure_or_table_can_be_a_caption(above: str, caption: str) -> None:
    parsed = markdown.parse(f"intro\n\n{above}\n\n{caption}\n\n{caption}\n".encode())
    assert [piece.type for piece in parsed.pieces][2:] == ["caption", "prose"]
    assert parsed.pieces[2].attrs == {"of": 1}


@cases(
    "words",
    ["Figure 1 shows the parts.", "Abbildung 1 zeigt Teile.", "Figures are good.",
     "*One* and *two*", "Then Figure 1: x", "*", "__"],
)  # fmt: skip
def test_running_text_behind_a_figure_is_prose(words: str) -> None:
    assert types(f"![a](b.png)\n\n{words}\n") == ["figure", "prose"]


@cases("between", ["# H", "---", "text", "<!-- x -->"])
def test_a_caption_stands_directly_behind(between: str) -> None:
    assert "caption" not in types(f"![a](b.png)\n\n{between}\n\nFigure 1: parts\n")


def test_a_caption_may_share_the_paragraph_of_its_image() -> None:
    parsed = markdown.parse(b"x\n\n![a](b.png)\n*The parts*\n\nFigure 2: no\n")
    assert pieces(parsed) == [
        ("prose", "x"),
        ("figure", "![a](b.png)"),
        ("caption", "*The parts*"),
        ("prose", "Figure 2: no"),
    ]
    assert parsed.pieces[2].attrs == {"of": 1}


def test_lists_and_quotes_are_one_piece_each() -> None:
    nested = "- a\n  - b\n\n    ```\n    # c\n    ```\n\n- d"
    source = f"{nested}\n\n1. e\n2. f\n\n> g\nlazy\n>\n> - h\n\nlast\n"
    parsed = markdown.parse(source.encode())
    assert [kind for kind, _ in pieces(parsed)] == ["prose"] * 4
    assert pieces(parsed)[0][1] == nested
    assert pieces(parsed)[2][1] == "> g\nlazy\n>\n> - h"


def test_rules_and_link_definitions_are_no_pieces() -> None:
    assert types("a\n\n***\n\n[b]: c 'd'\n\ne\n") == ["prose", "prose"]


@cases("parse", [markdown.parse, text.parse])
@cases("data", [b"", b"\n", b" \r\n\t\n", b"\xef\xbb\xbf"])
def test_nothing_gives_nothing(parse: Any, data: bytes) -> None:
    parsed = parse(data)
    assert parsed.pieces == ()
    assert parsed.headings == ()


def deep_list(depth: int) -> bytes:
    return b"".join(b" " * (2 * level) + b"- a\n" for level in range(depth))


@cases("depth", [51, 120])
@cases("then", ["", "- b\n  - c\n"])
def test_deep_lists_end_where_they_do(depth: int, then: str) -> None:
    nested = deep_list(depth) + then.encode()
    parsed = markdown.parse(nested + b"\n# end\n\nlast\n")
    assert titles(parsed) == [(1, "end", "# end")]
    assert pieces(parsed) == [("prose", nested.decode().rstrip()), ("prose", "last")]
    assert parsed.notes == ()


@cases("depth", [90, 240])
@cases("lines", [1, 30])
def test_deep_quotes_end_where_they_do(depth: int, lines: int) -> None:
    quote = b"\n".join([b">" * depth + b" x"] * lines)
    parsed = markdown.parse(quote + b"\n\n# end\n\nlast\n")
    assert titles(parsed) == [(1, "end", "# end")]
    assert pieces(parsed) == [("prose", quote.decode()), ("prose", "last")]
    assert parsed.notes == ()


@cases(
    "nested",
    [
        deep_list(300) + b"- b\n",
        deep_list(300) + b"\n  still in the first item\n",
        b">" * 3_000 + b" x\n",
        b"- " * 3_000 + b"x\n",
        b"> - " * 300 + b"x\n",
    ],
    ids=["list", "list goes on", "quote", "one line", "mixed"],
)
def test_nesting_beyond_all_measure_is_noted_and_what_follows_is_not_lost(nested: bytes) -> None:
    parsed = markdown.parse(nested + b"\n# end\n\nlast\n")
    assert titles(parsed) == [(1, "end", "# end")]
    assert pieces(parsed) == [("prose", nested.decode().rstrip()), ("prose", "last")]
    assert parsed.notes == ("lists or quotes are nested too deep: what is in them was not parsed",)


def test_links_may_be_defined_behind_the_image_that_uses_them() -> None:
    assert types("![a][r]\n\n- x\n\n[r]: y.png\n") == ["figure", "prose"]


@pytest.mark.parametrize("parse", [markdown.parse, text.parse])
def test_a_file_of_one_line(parse: Any) -> None:
    parsed = parse(b"word " * 100_000)
    assert [piece.span for piece in parsed.pieces] == [(0, 499_999)]  # but for the last blank


def test_skipped_levels_and_equal_titles_are_told_as_they_are() -> None:
    parsed = markdown.parse(b"# A\n\n#### B\n\n## B\n\nB\n-\n")
    assert [(level, title) for level, title, _ in titles(parsed)] == [
        (1, "A"), (4, "B"), (2, "B"), (2, "B"),
    ]  # fmt: skip


def test_multi_byte_text_keeps_its_bytes() -> None:
    # 日本 is 6 bytes, ä 2, the emoji 4
    parsed = markdown.parse("# 日本\n\n😀ä\n\n```\nß\n```\n".encode())
    assert parsed.headings[0].span == (0, 8)
    assert [piece.span for piece in parsed.pieces] == [(10, 16), (18, 28)]


_LINES = st.sampled_from(
    ("# T", "T", "===", "---", "- a", "  - b", "    c", "> q", "> - r", "```", "~~~", "|a|b|",
     "|-|-|", "|`x|y`|2|", "![i](j)", "*cap*", "[r]: u", "![i][r]", "<div>", "</div>",
     "<!-- c", "-->", "", "", "+++", "k: v", "1. n", "\t日本", "    ä")
)  # fmt: skip


@given(st.lists(_LINES, max_size=30), st.sampled_from(("\n", "\r\n", "\r")))
def test_line_ends_do_not_change_the_blocks(lines: list[str], end: str) -> None:
    plain = checked(markdown.PARSER, "\n".join(lines).encode())
    other = checked(markdown.PARSER, end.join(lines).encode())
    assert [(kind, text.replace(end, "\n")) for kind, text in pieces(other)] == pieces(plain)
    assert [title for _, title, _ in titles(other)] == [title for _, title, _ in titles(plain)]
    assert [piece.attrs for piece in other.pieces] == [piece.attrs for piece in plain.pieces]


@given(st.lists(_LINES, max_size=30))
def test_every_line_that_says_something_is_in_a_piece_or_a_heading(lines: list[str]) -> None:
    parsed = markdown.parse("\n".join(lines).encode())
    spans = [piece.span for piece in parsed.pieces] + [heading.span for heading in parsed.headings]
    outside = bytearray(parsed.text)
    for start, stop in spans:
        outside[start:stop] = b" " * (stop - start)
    left = {line.strip() for line in outside.decode().split("\n") if line.strip()}
    # Rules and link definitions are no pieces.
    assert left <= {"---", "[r]: u"}


def test_plain_text_has_paragraphs_and_nothing_else() -> None:
    parsed = text.parse(b"\r\n# one \r\n  two \r\n \t\r\nTitle\r=====\r\rlast\x0bline")
    assert parsed.headings == ()
    assert pieces(parsed) == [
        ("prose", "# one \r\n  two"),
        ("prose", "Title\r====="),
        ("prose", "last\x0bline"),
    ]
