"""HTML becomes blocks of visible text, however it is written."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turbohtml import Token, TokenType, tokenize

from ragauge.corpus.parsers.html import PARSER, Chars, tokens
from ragauge.errors import RagaugeError
from ragauge.files.fields import FieldError
from ragauge.model.corpus import Parsed
from tests.support.cases import cases
from tests.support.parser_checks import attrs, checked, shown, text_at, titles


def parsed(source: str) -> Parsed:
    return checked(PARSER, source.encode())


def test_blocks_are_separated_by_blank_lines_and_white_space_is_collapsed() -> None:
    document = parsed("<h1>Top</h1><p>One\n  two <b>three</b></p> loose <div>four</div>")
    assert document.text == b"Top\n\nOne two three\n\nloose\n\nfour"
    assert titles(document) == [(1, "Top")]
    assert document.headings[0].span == (0, 3)
    assert shown(document) == [("prose", "One two three"), ("prose", "loose"), ("prose", "four")]
    assert document.pieces[0].span == (5, 18)


def test_offsets_are_bytes() -> None:
    document = parsed("<p>é</p><p>日本</p><h2>ü</h2>")
    # é is 2 bytes, a blank line 2 more; 日本 is 6
    assert [piece.span for piece in document.pieces] == [(0, 2), (4, 10)]
    assert document.headings[0].span == (12, 14)


@cases(
    ("source", "expected"),
    [
        ("<p>a<p>b", ["a", "b"]),
        ("<p>a<ul><li>b<li>c</ul>d", ["a", "b\nc", "d"]),
        ("<p>a</div></span></td></p>b", ["a", "b"]),
        ("<div><p>a</div>b", ["a", "b"]),
        ("a<br>b<br/><br>c", ["a\nb\nc"]),
        ("a<!-- <p>no</p> -->b", ["ab"]),
        ("a<!-- never closed <p>no", ["a"]),
        ("a < b <3", ["a < b <3"]),
        ("a<p", ["a"]),
        ("a</>b</ >c", ["abc"]),
        ("a<>b", ["a<>b"]),
        ("<p title='a>b'>c</p>", ["c"]),
        ('a<p title="never closed>c</p>', ["a"]),
        ("a<p title='x' title>b", ["a", "b"]),
        ("<table>lost<tr><td>a</table>", ["lost\na"]),
        ("<td>a<tr>b</div><li>c", ["a", "b", "c"]),
        ("<b><p>a</b>b</p>c", ["ab", "c"]),
        ("<script>a</scr</script>b<style>c", ["b"]),
        ("&amp;lt; &eacute; &#233; &#xE9; &nosuch; &copy", ["&lt; é é é &nosuch; ©"]),
        ("&notit; &ampx &#0; &#x80; &; & &#;", ["¬it; &x \ufffd € &; & &#;"]),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", ["a\nb\nc\nd"]),
        ("<blockquote><p>a<p>b</blockquote>", ["a\nb"]),
        ("<ul><li>a<ul><li>b</ul><li>c</ul>", ["a\nb\nc"]),
        ("<p>&nbsp;</p><p>a</p>", ["a"]),
        ("<DIV>a</DIV><Script>no</sCRIPT >b", ["a", "b"]),
        ("a<![CDATA[ no ]]>b<?php no ?>c", ["abc"]),
        ("<header>a</header><footer>b</footer><aside>c</aside>", ["a", "b", "c"]),
    ],
)
def test_malformed_and_unusual(source: str, expected: list[str]) -> None:
    assert [text for _, text in shown(parsed(source))] == expected


@cases(
    "left_out",
    [
        "<script>if (a<b) document.write('<p>no</p>')</script>",
        "<style>p > a {}</style>",
        "<template><p>no</p></template>",
        "<noscript><p>no</p></noscript>",
        "<nav><ul><li>no<li>no</ul></nav>",
        "<div role=navigation><div>no</div>no</div>",
        "<svg><title>no</title><text>no</text></svg>",
        "<span role='navigation'><span>no</span>no</span>",
        "<head><meta name=x content=no><title>no</title></head>",
        "<textarea><p>no</textarea>",
    ],
)
def test_what_is_not_content_is_left_out(left_out: str) -> None:
    assert shown(parsed(f"<p>a</p>{left_out}<p>b</p>")) == [("prose", "a"), ("prose", "b")]


def test_navigation_is_counted_in_a_note() -> None:
    assert parsed("<nav><nav>a</nav></nav><nav>b</nav>c").notes == ("navigation left out: 2",)


def test_an_open_head_ends_where_content_begins() -> None:
    document = parsed("<html><head><title>A &amp; B</title><meta charset=utf-8><p>text")
    assert document.title == "A & B"
    assert shown(document) == [("prose", "text")]
    assert shown(parsed("<head><title>x</title>text")) == [("prose", "text")]


def test_the_first_heading_is_the_title_of_a_page_without_one() -> None:
    assert parsed("<h2>a</h2><h1>b <i>c</i></h1>").title == "b c"
    assert parsed("<p>a").title is None


def test_headings() -> None:
    source = (
        "<h1>A<h2>B</h3><h2>C<p>text</p>"
        "<h3>D<a class='headerlink' href='#d'>¶</a></h3><h4></h4><h6>E<br>F</h6>"
    )
    document = parsed(source)
    assert titles(document) == [(1, "A"), (2, "B"), (2, "C"), (3, "D"), (6, "E F")]
    assert [text_at(document, heading.span) for heading in document.headings] == [
        "A", "B", "C", "D", "E F",
    ]  # fmt: skip
    assert shown(document) == [("prose", "text")]


def test_a_heading_inside_a_list_is_part_of_the_list() -> None:
    document = parsed("<ul><li><h3>a</h3>b</ul>")
    assert titles(document) == []
    assert shown(document) == [("prose", "a\nb")]


@cases(
    ("source", "kind"),
    [
        ("<table><tr><td><h1>a</h1><td>b</table>", "table"),
        ("<pre><h2>a</h2></pre>", "code"),
        ("<pre># a</pre>", "code"),
        ("<blockquote><h2>a</h2></blockquote>", "prose"),
        ("<dl><dt><h2>a</h2><dd>b</dl>", "prose"),
        ("<table><caption><h2>a</h2></caption><tr><td>b</table>", "caption"),
    ],
)
def test_headings_of_code_tables_lists_and_quotes_are_none(source: str, kind: str) -> None:
    document = parsed(source)
    assert titles(document) == []
    assert document.pieces[0].type == kind


@cases(
    ("source", "language"),
    [
        ('<pre><code class="language-python">', "python"),
        ('<pre class="lang-JS">', "js"),
        ('<div class="highlight-c++ notranslate"><div class="highlight"><pre>', "c++"),
        ('<div class="highlight highlight-source-shell"><pre>', "shell"),
        ('<div class="highlight-default"><pre>', None),
        ("<pre>", None),
    ],
)
def test_code_keeps_its_lines_and_knows_its_language(source: str, language: str | None) -> None:
    document = parsed(f"<p>a</p>{source}\r\n\n  if a &lt; b:\r\n      <b>c</b>()  \n\n</pre>")
    assert shown(document) == [("prose", "a"), ("code", "  if a < b:\n      c()")]
    assert document.pieces[1].attrs == ({"language": language} if language else {})


def test_code_inside_a_list_keeps_its_lines() -> None:
    assert shown(parsed("<ol><li>do<pre>a\n  b\n</pre>then</ol>")) == [
        ("prose", "do\na\n  b\nthen")
    ]


def test_tables() -> None:
    document = parsed(
        "a<table><caption>Cap <b>tion</b></caption><thead><tr><th>x<th>y<tbody>"
        "<tr><td>1<br>2<td><table><tr><td>i<td>j</table><tr><td><td>"
        "<tr><td></td><td>  5</td><td>6</td></tr></table>b"
    )
    assert shown(document) == [
        ("prose", "a"),
        ("caption", "Cap tion"),
        ("table", "x | y\n1 2 | i j\n | 5 | 6"),
        ("prose", "b"),
    ]
    # a row without any text is no row: header, two rows; the widest has 3 cells
    assert attrs(document)[1:3] == [{"of": 2}, {"rows": 3, "columns": 3}]


@cases(
    ("cell", "text"),
    [
        ("<p>a</p><p>b</p>", "a b"),
        ("<div>a</div>b", "a b"),
        ("<ul><li>a<li>b</ul>", "a b"),
        ("<h3>a</h3><pre>b</pre>", "a b"),
        ("a<table><tr><td>b</table>", "a b"),
    ],
)
def test_blocks_in_a_cell_are_part_of_it(cell: str, text: str) -> None:
    document = parsed(f"<table><tr><td>{cell}</td><td>c</td></tr><tr><td>1<td>{cell}</table>")
    assert shown(document) == [("table", f"{text} | c\n1 | {text}")]
    assert attrs(document) == [{"rows": 2, "columns": 2}]


def test_a_table_for_layout_is_no_table() -> None:
    document = parsed("<table role=presentation><tr><td><h1>A</h1><td>b</table>")
    assert titles(document) == [(1, "A")]
    assert shown(document) == [("prose", "b")]


def test_text_between_cells_is_kept() -> None:
    assert shown(parsed("<table>lost<tr><td>a</table>")) == [("table", "lost\na")]


@cases(
    ("source", "note"),
    [
        ("a\n<p class='x", "a tag or comment in line 2 never ends: 11 characters left out"),
        ("a<!-- b <p>c", "a tag or comment in line 1 never ends: 11 characters left out"),
        ("a</p", "a tag or comment in line 1 never ends: 3 characters left out"),
        ("a<!doctype html", "a tag or comment in line 1 never ends: 14 characters left out"),
    ],
)
def test_markup_that_never_ends_is_noted(source: str, note: str) -> None:
    document = parsed(source)
    assert shown(document) == [("prose", "a")]
    assert document.notes == (note,)


@cases("source", ["a", "a</>", "a<", "a<!-- b -->", "a</p>", "a &am", "a\r\n"])
def test_whole_markup_is_not_noted(source: str) -> None:
    assert parsed(source).notes == ()


def test_without_turbohtml_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "turbohtml", None)
    with pytest.raises(RagaugeError, match=r"ragauge\[corpus\]") as error:
        PARSER.parse(b"<p>a")
    assert error.value.code == "missing-extra"


def test_figures_and_captions() -> None:
    document = parsed(
        "<p><img src=a.png alt='A &amp; B'></p><p>See <img alt=icon> here <img src=x></p>"
        "<figure><figcaption>First</figcaption><img alt=pic></figure>"
        "<figure><pre>code</pre><figcaption>Second</figcaption></figure>"
        "<figure><svg></svg><figcaption>Third</figcaption></figure>"
        "<figcaption>stray</figcaption><p><img src=no-alt.png></p>"
    )
    assert shown(document) == [
        ("figure", "A & B"),
        ("prose", "See icon here"),
        ("caption", "First"),
        ("figure", "pic"),
        ("code", "code"),
        ("caption", "Second"),
        ("caption", "Third"),
        ("prose", "stray"),
    ]
    assert attrs(document) == [
        {"alt": "A & B"},
        {},
        {"of": 3},
        {"alt": "pic"},
        {},
        {"of": 4},
        {},
        {},
    ]


def test_origins_lead_from_bytes_of_the_text_to_characters_of_the_source() -> None:
    source = "<p>é  b&amp;c <b>d</b>"
    document = parsed(source)
    assert document.text.decode() == "é b&c d"
    # "é " from 3 (3 bytes); "b&" from 6; "c " from 12; "d" from 17
    assert document.origins == ((0, 3, 3), (3, 6, 2), (5, 12, 2), (7, 17, 1))
    assert [source[at] for _, at, _ in document.origins] == ["é", "b", "c", "d"]


@cases(
    ("source", "text", "origins"),
    [
        # line ends of the source count as they are: "a" at 3, "b" at 6
        ("<p>a\r\nb", "a b", ((0, 3, 2), (2, 6, 1))),
        ("<p\r\n>\r\na", "a", ((0, 7, 1),)),
        ("<pre>a\r\n\r\nb</pre>", "a\n\nb", ((0, 5, 2), (2, 8, 1), (3, 10, 1))),
        ("a</>b", "ab", ((0, 0, 1), (1, 4, 1))),
        ("😀<b>😀</b>", "😀😀", ((0, 0, 4), (4, 4, 4))),
        # "¬" at 0, and the "it" behind it at 4
        ("&notit", "¬it", ((0, 0, 2), (2, 4, 2))),
        ("<img alt='x&amp;y'>", "x&y", ((0, 10, 2), (2, 16, 1))),
        ("<img src=a ALT=xy>", "xy", ((0, 15, 2),)),
        ('<img alt="a&copy=b">', "a&copy=b", ((0, 10, 8),)),
        ("<img\r\nalt = 'a\r\n b'>", "a b", ((0, 13, 2), (2, 17, 1))),
        ("<script>a</>\r\nb</script>c", "c", ((0, 24, 1),)),
        ("<pre>a &lt;\r\n</pre>", "a <", ((0, 5, 3),)),
    ],
)
def test_origins_of_what_is_not_written_as_it_reads(
    source: str, text: str, origins: tuple[tuple[int, int, int], ...]
) -> None:
    document = parsed(source)
    assert document.text.decode() == text
    assert document.origins == origins


@cases(
    ("source", "text", "notes"),
    [
        (b"\xef\xbb\xbf<p>\xc3\xa9", "é", ()),
        (b"<meta charset=utf-8><p>\xc3\xa9", "é", ()),
        (
            b"<meta charset='iso-8859-1'><p>\xe9\x80",
            "é€",
            ("decoded as cp1252, as its charset says",),
        ),
        (
            b'<meta http-equiv=Content-Type content="text/html; charset=Shift_JIS"><p>\x93\xfa',
            "日",
            ("decoded as shift_jis, as its charset says",),
        ),
        (
            "<p>é".encode("utf-16"),
            "é",
            ("decoded as utf-16, as its byte order mark says",),
        ),
        (
            b"<meta charset=klingon><p>\xc3\xa9",
            "é",
            ("its charset `klingon` is unknown; decoded as UTF-8",),
        ),
        (b"<p>a\x00b", "a\ufffdb", ()),
    ],
)  # fmt: skip
def test_charsets(source: bytes, text: str, notes: tuple[str, ...]) -> None:
    document = checked(PARSER, source)
    assert document.text.decode() == text
    assert document.notes == notes


@cases(
    "source",
    [
        b"<p>\xe9",
        b"<meta charset=klingon>\xe9",
        b"<meta charset=utf-8>\xe9",
        b"<meta charset=shift_jis>\x93",
        b"<meta charset=base64>\xe9",
        b"\xff\xfea",
    ],
)
def test_bytes_that_cannot_be_decoded_are_an_error(source: bytes) -> None:
    with pytest.raises(FieldError) as error:
        PARSER.parse(source)
    assert error.value.code == "bad-encoding"


@cases("source", [b"", b"\xef\xbb\xbf", b" \r\n", b"<html></html>", b"<p><td>"])
def test_nothing_gives_nothing(source: bytes) -> None:
    document = checked(PARSER, source)
    assert (document.text, document.pieces, document.headings, document.title) == (
        b"",
        (),
        (),
        None,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "repeated",
    [
        "<a",
        '<a b="',
        "<!--",
        "<div>",
        "</div>",
        "<table><td>",
        "&",
        "<p>x",
        "<title>",
        "<![CDATA[",
        "</>",
        "</>\r\n",
        "<img alt='",
        "<img alt=x>",
        "&#",
        "<b><p>",
        "<?",
        "<pre>\r\n",
    ],
)
def test_hostile_input_ends(repeated: str) -> None:
    checked(PARSER, (repeated * 20_000).encode())


@pytest.mark.slow
def test_a_large_page_is_read_to_its_end() -> None:
    part = "<h2>Title é</h2><p>Some text with <b>words</b> &amp; more.<ul><li>a<li>b</ul>"
    count = 5_000_000 // len(part) + 1
    document = PARSER.parse((part * count).encode())
    assert len(document.headings) == count
    assert len(document.pieces) == 2 * count


_PARTS = st.sampled_from(
    ("<p>", "</p>", "<div>", "</div>", "<table>", "</table>", "<tr>", "<td>", "</td>", "<ul>",
     "<li>", "</ul>", "<pre>", "</pre>", "<h1>", "</h1>", "<h2>", "<figure>", "</figure>",
     "<figcaption>", '<img alt="é">', "<br>", "<nav>", "</nav>", "<caption>", "<blockquote>",
     "</blockquote>", "&amp;", "é", "日本", "word", "<script>", "</script>", "<!--", "-->",
     "<head>", "</head>", "<title>", "</title>", "<", ">", '"', "'", "=", " ", "\r\n", "\t")
)  # fmt: skip


@given(st.lists(_PARTS, max_size=40).map("".join))
def test_anything_gives_pieces_in_order(source: str) -> None:
    document = parsed(source)
    for at, origin, length in document.origins:
        text = document.text[at : at + length].decode()
        assert 0 <= origin < len(source)
        if text[0] not in " \n&":
            assert source[origin] in (text[0], "&")


@given(st.lists(_PARTS | st.sampled_from(("</>", "&notit", "\r", "\n", "😀")), max_size=30))
def test_no_character_is_lost_or_made_up(parts: list[str]) -> None:
    """What is read with places is what turbohtml reads without them."""
    source = "".join(parts)
    chars = [token for token in tokens(source) if isinstance(token, Chars)]
    read = "".join(token.text.replace("\r\n", "\n").replace("\r", "\n") for token in chars)
    assert read == "".join(token.data or "" for token in tokenize(source) if _is_text(token))
    for token in chars:
        assert source.startswith(token.text, token.start) or source[token.start] == "&"


def _is_text(token: Token) -> bool:
    return token.type in (TokenType.TEXT, TokenType.CHARACTER_REFERENCE)
