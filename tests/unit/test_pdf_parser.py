"""PDF: reading order, running lines, paragraphs, headings and code, found from boxes and sizes."""

from __future__ import annotations

import sys

import pytest

from ragauge.errors import RagaugeError
from ragauge.fields import FieldError
from ragauge.model.corpus import Parsed
from ragauge.parsers.pdf import PARSER
from ragauge.pdfblocks import matching
from tests.parsed import checked, shown, text_at, titles
from tests.pdfs import Shown, pdf

ENCRYPTED = (
    f"/Encrypt << /Filter /Standard /V 1 /R 2 /O <{'01' * 32}> /U <{'02' * 32}> /P -4 >> "
    "/ID [<00> <00>]"
)


def parsed(*pages: list[Shown], **more: object) -> Parsed:
    return checked(PARSER, pdf(pages, **more))  # type: ignore[arg-type]


def column(x: float, top: float, *lines: str, size: float = 10, font: str = "body") -> list[Shown]:
    """Lines below each other, 12 points apart."""
    return [(x, top - 12 * number, size, line, font) for number, line in enumerate(lines)]


def test_paragraphs_by_gaps_and_headings_by_size() -> None:
    found = parsed(
        [
            (72, 760, 20, "The Title"),
            (72, 720, 14, "1 Part"),
            *column(72, 700, "First line of a paragraph", "goes on (here) é."),
            *column(72, 660, "Second paragraph."),
            (72, 630, 14, "2 Other"),
            *column(72, 612, "Third."),
        ]
    )
    assert found.text.decode() == (
        "The Title\n\n1 Part\n\nFirst line of a paragraph goes on (here) é.\n\n"
        "Second paragraph.\n\n2 Other\n\nThird."
    )
    assert titles(found) == [(1, "The Title"), (2, "1 Part"), (2, "2 Other")]
    assert [text_at(found, each.span) for each in found.headings] == [
        "The Title", "1 Part", "2 Other",
    ]  # fmt: skip
    assert shown(found) == [
        ("prose", "First line of a paragraph goes on (here) é."),
        ("prose", "Second paragraph."),
        ("prose", "Third."),
    ]
    # é is two bytes: 19 + 44 + 2 = 65
    assert [piece.span for piece in found.pieces] == [(19, 63), (65, 82), (93, 99)]
    assert found.title == "The Title"


def test_two_columns_are_read_one_after_the_other_below_a_title_that_crosses_them() -> None:
    left = [f"Left line {number} is about this wide." for number in range(5)]
    right = [f"Right line {number} is about as wide." for number in range(5)]
    below = "A line below both columns that is as wide as the page itself, and then some more."
    found = parsed(
        [
            (72, 760, 18, "A title over both of the columns of the page"),
            *[each for pair in zip(column(72, 720, *left), column(310, 718, *right), strict=True)
              for each in pair],
            (72, 600, 10, below),
        ]
    )  # fmt: skip
    assert titles(found) == [(1, "A title over both of the columns of the page")]
    assert shown(found) == [
        ("prose", " ".join(left)),
        ("prose", " ".join(right)),
        ("prose", below),
    ]


def test_a_paragraph_goes_on_in_the_next_column() -> None:
    left = ["The first column of this page", "has three lines, and its last", "sentence does not"]
    right = ["end there but in the second", "column. There is one more of", "these sentences here."]
    found = parsed([*column(72, 700, *left), *column(310, 700, *right)])
    assert shown(found) == [("prose", " ".join(left + right))]


def test_three_columns() -> None:
    columns = [[f"{name} {number} is a line of a column." for number in range(4)] for name in "XYZ"]
    found = parsed(
        [
            each
            for place, lines in enumerate(columns)
            for each in column(40 + 150 * place, 700, *lines)
        ]
    )
    assert shown(found) == [("prose", " ".join(lines)) for lines in columns]


def test_a_table_is_read_by_rows() -> None:
    rows = [(f"key{number}", f"value{number}") for number in range(5)]
    found = parsed(
        [
            *column(72, 700, "A line of text that is as wide as a whole page of one column is."),
            *[
                (x, 670 - 12 * number, 10, cell)
                for number, row in enumerate(rows)
                for x, cell in zip((72, 330), row, strict=True)
            ],
        ]
    )
    assert shown(found)[1] == ("prose", " ".join(f"{key} {value}" for key, value in rows))


def test_running_headers_and_footers_are_removed() -> None:
    def page(number: int) -> list[Shown]:
        return [
            (72, 810, 9, f"Report 2026, chapter {number}"),
            *column(72, 700, f"Text of page {number}."),
            (290, 30, 9, f"{number} of 4"),
        ]

    found = parsed(*[page(number) for number in range(1, 5)])
    assert found.text == b"Text of page 1.\fText of page 2.\fText of page 3.\fText of page 4."
    assert found.pages == (0, 16, 32, 48)
    assert [piece.page for piece in found.pieces] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("pages", "repeated", "stays"),
    [
        (7, 3, False),  # three pages are enough in a document of any length
        (7, 2, True),
        (4, 2, False),  # half of the pages
        (2, 1, True),  # half of the pages, but nothing is repeated
    ],
)
def test_how_often_a_running_line_repeats(pages: int, repeated: int, stays: bool) -> None:
    body = [column(72, 500, f"Text {'abcdefg'[number]}") for number in range(pages)]
    for number in range(repeated):
        body[number].append((72, 800, 10, f"Header {number}"))
    assert (b"Header" in parsed(*body).text) is stays


def test_lines_that_do_not_repeat_at_one_height_near_an_edge_stay() -> None:
    found = parsed(
        [(72, 810, 10, "Once"), (72, 400, 10, "Middle")],
        [(72, 790, 10, "Twice"), (72, 400, 10, "Middle")],
        [(72, 770, 10, "Twice"), (72, 400, 10, "Middle")],
        [(72, 400, 10, "Middle")],
    )
    assert found.text == b"Once\n\nMiddle\fTwice\n\nMiddle\fTwice\n\nMiddle\fMiddle"


def test_hyphens_are_repaired_in_prose_only() -> None:
    found = parsed(
        [
            *column(72, 700, "This is an exam-", "ple of 5-", "fold, of Anglo-", "Saxon -", "so"),
            *column(72, 630, "x = a-", "b", font="mono"),
        ]
    )
    assert shown(found) == [
        ("prose", "This is an example of 5-fold, of Anglo-Saxon - so"),
        ("code", "x = a-\nb"),
    ]


def test_ligatures_are_letters_of_one_word() -> None:
    # pdfium gives both letters the box of the whole, which is more than half as wide as high
    found = parsed(column(72, 700, "the \x1erst de\x1enition", font="bold"))
    assert found.text == b"the first definition"


def test_code_keeps_its_indentation_and_blank_lines() -> None:
    found = parsed(
        [
            *column(72, 700, "Some prose before the code, long enough to be the body."),
            (72, 670, 10, "def f(x):", "mono"),
            (96, 658, 10, "return  x", "mono"),  # 24 points are 4 letters of 6
            (72, 634, 10, "f(1)", "mono"),
            *column(72, 610, "And some prose after it."),
        ]
    )
    assert shown(found)[1] == ("code", "def f(x):\n    return  x\n\nf(1)")
    assert [piece.type for piece in found.pieces] == ["prose", "code", "prose"]


def test_a_typewritten_document_is_prose() -> None:
    found = parsed(column(72, 700, "All of it is set", "in one font.", font="mono"))
    assert shown(found) == [("prose", "All of it is set in one font.")]


def test_lists_keep_their_lines_and_indented_lines_begin_paragraphs() -> None:
    found = parsed(
        [
            *column(72, 700, "Things:", "- one", "- two", "1. three"),
            *column(72, 640, "A paragraph ends here."),
            *column(92, 628, "Another begins with a line set in,"),
            *column(72, 616, "and goes on."),
        ]
    )
    assert shown(found) == [
        ("prose", "Things:\n- one\n- two\n1. three"),
        ("prose", "A paragraph ends here."),
        ("prose", "Another begins with a line set in, and goes on."),
    ]


def test_captions_and_lines_of_contents() -> None:
    found = parsed(
        [
            (72, 740, 16, "1 Introduction . . . . . . . . 3"),
            *column(72, 700, "Text of the body that is long enough.", "Figure 1: A caption."),
        ]
    )
    assert titles(found) == []
    assert [piece.type for piece in found.pieces] == ["prose", "prose", "caption"]


def test_the_outline_names_headings_that_are_not_larger() -> None:
    found = parsed(
        column(72, 700, "1. First part", "Text of the first part.", "More of it."),
        column(72, 700, "2. Second", "Text."),
        outline=[("First part", 0), ("Second", 1), ("Nowhere", 1)],
    )
    assert titles(found) == [(1, "1. First part"), (1, "2. Second")]
    assert shown(found) == [("prose", "Text of the first part. More of it."), ("prose", "Text.")]


def test_the_title_of_the_file_is_used_if_there_is_no_heading() -> None:
    assert parsed(column(72, 700, "Text."), title="Named").title == "Named"
    assert parsed(column(72, 700, "Text.")).title is None


def test_a_page_that_is_turned_is_read_as_it_is_seen() -> None:
    # A line that goes up the page goes to the right once the page is turned by 90 degrees.
    upright = pdf([column(72, 700, "First words", "Second words")])
    turned = upright.replace(b"1 0 0 1 72 700 Tm", b"0 1 -1 0 100 72 Tm").replace(
        b"1 0 0 1 72 688 Tm", b"0 1 -1 0 112 72 Tm"
    )
    assert turned != upright
    seen = turned.replace(b"/Rotate 0 ", b"/Rotate 90")
    assert checked(PARSER, seen).text == b"First words Second words"
    assert checked(PARSER, turned).text == b"First words Second words"


def test_what_stands_sideways_on_an_upright_page_is_left_out_and_noted() -> None:
    source = pdf([[*column(72, 700, "Upright text."), (20, 300, 10, "Stamp")]])
    found = checked(PARSER, source.replace(b"1 0 0 1 20 300 Tm", b"0 1 -1 0 20 300 Tm"))
    assert found.text == b"Upright text."
    assert found.notes == ("letters that do not stand upright left out: 5",)


def test_origins_give_the_first_character_of_each_block_on_its_page() -> None:
    found = parsed([*column(72, 700, "One."), *column(72, 650, "Two.")], column(72, 700, "Three."))
    # pdfium counts "One." and its line end: 4 + 2 characters
    assert found.origins == ((0, 0, 4), (6, 6, 4), (11, 0, 6))


def test_pages_without_text_are_noted() -> None:
    found = parsed(column(72, 700, "Text."), [])
    assert (found.text, found.pages, found.notes) == (
        b"Text.\f",
        (0, 6),
        ("pages without text: 2",),
    )
    found = parsed([], [])
    assert (found.text, found.pieces, found.headings) == (b"\f", (), ())
    assert found.notes == ("no text layer: recognise its letters first (OCR)",)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"", "damaged"),
        (b"not a PDF", "damaged"),
        (pdf([column(72, 700, "Text.")])[:60], "damaged"),
        (pdf([column(72, 700, "Text.")], trailer=ENCRYPTED), "encrypted"),
    ],
)
def test_what_cannot_be_opened_is_an_error(source: bytes, said: str) -> None:
    with pytest.raises(FieldError, match=said):
        PARSER.parse(source)


def test_without_pypdfium2_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(RagaugeError, match=r"ragauge\[corpus\]") as error:
        PARSER.parse(b"%PDF-1.4")
    assert error.value.code == "missing-extra"


def test_titles_are_compared_without_their_numbers() -> None:
    assert matching("2.1  First Part!") == matching("First  part") == "firstpart"
    assert matching("IV. End") == "end"
    assert matching("Civil rights") == "civilrights"
