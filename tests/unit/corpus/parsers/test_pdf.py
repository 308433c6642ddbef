"""PDF: reading order, running lines, paragraphs, headings and code, found from boxes and sizes."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from ragauge.corpus.parsers import pdf as pdf_parser
from ragauge.corpus.parsers.pdf import PARSER
from ragauge.corpus.parsers.pdf_blocks import count_words, is_compound, title_key
from ragauge.errors import RagaugeError
from ragauge.files.fields import FieldError
from ragauge.model.corpus import Parsed
from tests.support.cases import cases
from tests.support.parser_checks import attrs, checked, shown, text_at, titles
from tests.support.pdf_files import Shown, pdf, ruled

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
    document = parsed(
        [
            (72, 760, 20, "The Title"),
            (72, 720, 14, "1 Part"),
            *column(72, 700, "First line of a paragraph", "goes on (here) é."),
            *column(72, 660, "Second paragraph."),
            (72, 630, 14, "2 Other"),
            *column(72, 612, "Third."),
        ]
    )
    assert document.text.decode() == (
        "The Title\n\n1 Part\n\nFirst line of a paragraph goes on (here) é.\n\n"
        "Second paragraph.\n\n2 Other\n\nThird."
    )
    assert titles(document) == [(1, "The Title"), (2, "1 Part"), (2, "2 Other")]
    assert [text_at(document, heading.span) for heading in document.headings] == [
        "The Title", "1 Part", "2 Other",
    ]  # fmt: skip
    assert shown(document) == [
        ("prose", "First line of a paragraph goes on (here) é."),
        ("prose", "Second paragraph."),
        ("prose", "Third."),
    ]
    # é is two bytes: 19 + 44 + 2 = 65
    assert [piece.span for piece in document.pieces] == [(19, 63), (65, 82), (93, 99)]
    assert document.title == "The Title"


def test_two_columns_are_read_one_after_the_other_below_a_title_that_crosses_them() -> None:
    left = [f"Left line {number} is about this wide." for number in range(5)]
    right = [f"Right line {number} is about as wide." for number in range(5)]
    below = "A line below both columns that is as wide as the page itself, and then some more."
    document = parsed(
        [
            (72, 760, 18, "A title over both of the columns of the page"),
            *[line for pair in zip(column(72, 720, *left), column(310, 718, *right), strict=True)
              for line in pair],
            (72, 600, 10, below),
        ]
    )  # fmt: skip
    assert titles(document) == [(1, "A title over both of the columns of the page")]
    assert shown(document) == [
        ("prose", " ".join(left)),
        ("prose", " ".join(right)),
        ("prose", below),
    ]


def test_a_paragraph_goes_on_in_the_next_column() -> None:
    left = ["The first column of this page", "has three lines, and its last", "sentence does not"]
    right = ["end there but in the second", "column. There is one more of", "these sentences here."]
    document = parsed([*column(72, 700, *left), *column(310, 700, *right)])
    assert shown(document) == [("prose", " ".join(left + right))]


def test_three_columns() -> None:
    columns = [[f"{name} {number} is a line of a column." for number in range(4)] for name in "XYZ"]
    document = parsed(
        [
            line
            for place, lines in enumerate(columns)
            for line in column(40 + 150 * place, 700, *lines)
        ]
    )
    assert shown(document) == [("prose", " ".join(lines)) for lines in columns]


NUMBERS = ("one", "two", "three")
PROSE = "A line of text that is as wide as a whole page of one column is."
PRICES = [("item", "price"), ("a small thing", "10.00"), ("one", "7.50"), ("more", "112.25")]


def cells(
    rows: Sequence[Sequence[str]], xs: Sequence[float], top: float = 670, step: float = 12
) -> list[Shown]:
    """The cells of a table; an empty one is not shown."""
    return [
        (x, top - step * number, 10, cell)
        for number, row in enumerate(rows)
        for x, cell in zip(xs, row, strict=True)
        if cell
    ]


def test_cells_that_stand_in_line_are_a_table() -> None:
    document = parsed(
        [*column(72, 700, PROSE), *cells(PRICES, (72, 330)), *column(72, 600, "Text again.")]
    )
    assert shown(document) == [
        ("prose", PROSE),
        ("table", "item | price\na small thing | 10.00\none | 7.50\nmore | 112.25"),
        ("prose", "Text again."),
    ]
    assert attrs(document) == [{}, {"rows": 4, "columns": 2}, {}]
    # PROSE has 64 characters, a blank line is 2: the table begins at 66, on the same page
    assert (document.pieces[1].span[0], document.pieces[1].page) == (66, 1)
    assert document.origins[1][:2] == (66, 66)


def test_numbers_may_stand_in_line_at_their_right() -> None:
    # a digit of this font is 5.56 points wide at 10 points, a stop 2.78
    rights = [(400 - 5.56 * len(text), text) for text in ("5", "12", "1234", "77")]
    document = parsed(
        [
            *column(72, 700, PROSE),
            *[(72, 670 - 12 * n, 10, f"row {'abcd'[n]}") for n in range(4)],
            *[(x, 670 - 12 * n, 10, text) for n, (x, text) in enumerate(rights)],
        ]
    )
    assert shown(document)[1] == ("table", "row a | 5\nrow b | 12\nrow c | 1234\nrow d | 77")


@cases(
    ("name", "lines"),
    [
        ("two rows are too few", cells(PRICES[:2], (72, 330))),
        ("not in line", [(72 + 9 * n, 670 - 12 * n, 10, "aaa") for n in range(4)]
         + [(330 - 7 * n, 670 - 12 * n, 10, "bbb" + "c" * n) for n in range(4)]),
        ("bullets", cells([("-", "first thing"), ("-", "second"), ("-", "third")], (72, 100))),
        ("numbers of a list", cells([(f"{n}.", "some words") for n in range(1, 5)], (72, 100))),
        ("code", [(x, 670 - 12 * n, 10, cell, "mono") for n, row in enumerate(PRICES)
                  for x, cell in zip((72, 330), row, strict=True)]),
        ("contents", cells([(f"2.{n}", f"Title {'. ' * 20}{n}") for n in range(1, 5)], (72, 110))),
        ("far apart", cells(PRICES, (72, 330), step=40)),
        ("four columns of text",
         cells([[f"{name} is a line of a narrow"] * 4 for name in "abcdefg"], (40, 175, 310, 445))),
    ],
)  # fmt: skip
def test_what_may_be_no_table_is_none(name: str, lines: list[Shown]) -> None:
    document = parsed([*column(40, 720, PROSE * 2), *lines])
    assert "table" not in [piece.type for piece in document.pieces], name


def test_a_table_of_rules_has_its_cells_even_if_they_are_long() -> None:
    """Cells have several lines, and one is empty; hyphens in them are repaired."""
    document = parsed(
        [
            *column(72, 720, PROSE),
            (76, 688, 10, "name"), (206, 688, 10, "what it is for, and what"),
            (206, 676, 10, "else there is to be under-"), (206, 664, 10, "stood of it"),
            (76, 648, 10, "second name"),
            (76, 628, 10, "third"), (206, 628, 10, "nothing"),
            *column(72, 590, "Text again."),
        ],
        drawn=ruled((700, 660, 640, 620), (72, 200, 400)),
    )  # fmt: skip
    assert shown(document) == [
        ("prose", PROSE),
        (
            "table",
            "name | what it is for, and what else there is to be understood of it\n"
            "second name | \nthird | nothing",
        ),
        ("prose", "Text again."),
    ]
    assert attrs(document)[1] == {"rows": 3, "columns": 2}


@pytest.mark.parametrize("box", [
    "{x} {y} {w} {h} re S", "{x} {y} {w} {h} re f",
    "{x} {y} m {right} {y} l {right} {top} l {x} {top} l h S",
])  # fmt: skip
def test_boxes_of_cells_are_rules_and_a_missing_one_makes_a_wide_cell(box: str) -> None:
    boxes = [(72, 680, 200, 20), (72, 660, 100, 20), (172, 660, 100, 20),
             (72, 640, 100, 20), (172, 640, 100, 20)]  # fmt: skip
    document = parsed(
        [
            (110, 686, 10, "both of the columns"),
            # 11 letters of 8.33 points end at 168, too near to 176 to be a gap between columns
            *cells([("m" * 11, "b"), ("c", "d")], (76, 176), top=666, step=20),
        ],
        drawn=" ".join(
            box.format(x=x, y=y, w=w, h=h, right=x + w, top=y + h) for x, y, w, h in boxes
        ),
    )
    assert shown(document) == [("table", f"both of the columns\n{'m' * 11} | b\nc | d")]
    assert attrs(document) == [{"rows": 3, "columns": 2}]


def test_level_rules_with_clear_columns_are_a_table() -> None:
    rows = [("method", "score", "time"), ("one", "0.5", "10 s"), ("two", "0.75", "")]
    document = parsed(
        [
            *column(72, 720, PROSE),
            *cells(rows, (80, 250, 400), top=688),
            (80, 652, 10, "three"), (250, 652, 10, "goes on"), (250, 640, 10, "below"),
            *column(72, 600, "Text between the tables."),
            *cells(rows[:2], (80, 250, 400), top=568),
        ],
        drawn=ruled((700, 684, 632, 580, 564, 550)),
    )  # fmt: skip
    assert shown(document) == [
        ("prose", PROSE),
        (
            "table",
            "method | score | time\none | 0.5 | 10 s\ntwo | 0.75 | \nthree | goes on below | ",
        ),
        ("prose", "Text between the tables."),
        ("table", "method | score | time\none | 0.5 | 10 s"),
    ]


def test_text_between_rules_is_no_table() -> None:
    left = [f"Left line {number} is about this wide." for number in range(5)]
    right = [f"Right line {number} is about as wide." for number in range(5)]
    document = parsed(
        [*column(72, 690, *left), *column(310, 690, *right)], drawn=ruled((710, 600), ())
    )
    assert shown(document) == [("prose", " ".join(left)), ("prose", " ".join(right))]
    framed = parsed(column(80, 690, PROSE, PROSE), drawn=ruled((710, 600), (72, 500)))
    assert shown(framed) == [("prose", f"{PROSE} {PROSE}")]


def test_the_grid_of_a_drawing_is_no_table() -> None:
    document = parsed(
        [
            *column(72, 500, "0"), *column(72, 250, PROSE),
            *cells([("a", "b"), ("c", "a label")], (95, 195), top=310, step=-100),
        ],
        drawn=ruled(range(300, 500, 20), range(90, 400, 20)),
    )  # fmt: skip
    assert "table" not in [piece.type for piece in document.pieces]
    assert b"a label" in document.text


@pytest.mark.parametrize("caption_at", [715, 580])
def test_the_caption_of_a_table_is_tied_to_it(caption_at: float) -> None:
    document = parsed(
        [
            *column(72, 760, PROSE),
            *column(72, caption_at, "Table 1: The prices."),
            *cells(PRICES, (76, 276), top=688, step=20),
        ],
        drawn=ruled((700, 680, 660, 640, 620), (72, 272, 400)),
    )
    place = next(n for n, piece in enumerate(document.pieces) if piece.type == "table")
    (caption,) = [piece for piece in document.pieces if piece.type == "caption"]
    assert caption.attrs == {"of": place}


def test_a_table_in_one_column_of_two() -> None:
    left = [f"Left line {number} is about this wide." for number in range(6)]
    right = [f"Right line {number} is about as wide." for number in range(12)]
    document = parsed(
        [
            *column(72, 720, *left),
            *cells(PRICES, (76, 180), top=628, step=20),
            *column(310, 720, *right),
        ],
        drawn=ruled((640, 620, 600, 580, 560), (72, 176, 260)),
    )
    assert shown(document) == [
        ("prose", " ".join(left)),
        ("table", "item | price\na small thing | 10.00\none | 7.50\nmore | 112.25"),
        ("prose", " ".join(right)),
    ]


SMALL = cells(PRICES[:2], (76, 276), top=688, step=20)
SMALL_RULES = ruled((700, 680, 660), (72, 272, 400))


def test_a_table_on_a_page_that_is_turned() -> None:
    document = checked(PARSER, pdf([SMALL], drawn=SMALL_RULES))
    assert [piece.type for piece in document.pieces] == ["table"]
    # Turned by a quarter: (x, y) is at (-y, x), moved back onto the page.
    turn = "q 0 1 -1 0 800 0 cm"
    content = _content(pdf([SMALL]))
    turned = pdf([[]], rotate=90, drawn=f"{turn} {SMALL_RULES} Q {turn} {content} Q")
    again = checked(PARSER, turned)
    assert (again.text, again.pieces) == (document.text, document.pieces)


def test_rules_that_are_not_painted_make_no_table() -> None:
    assert "table" in dict(shown(parsed(SMALL, drawn=SMALL_RULES)))
    assert "table" not in dict(shown(parsed(SMALL, drawn=SMALL_RULES.replace(" S", " n"))))


def _content(source: bytes) -> str:
    return source.split(b"stream\n")[3].split(b"endstream")[0].decode("cp1252")


@pytest.mark.slow
def test_a_page_with_very_much_drawn_on_it_is_read_without_its_rules() -> None:
    many = " ".join(f"{n % 500} {n % 800} m {n % 500 + 3} {n % 800} l S" for n in range(21_000))
    document = parsed(SMALL, drawn=f"{SMALL_RULES} {many}")
    assert "table" not in dict(shown(document))


def test_three_pages_with_a_running_header_and_numbers() -> None:
    def page(number: int) -> list[Shown]:
        return [
            (72, 805, 9, "The Annual Report"),
            (480, 805, 9, "Chapter One"),
            *column(72, 700, f"Page {NUMBERS[number - 1]} says this."),
            *column(72, 660, "Figures follow below."),
            (295, 36, 9, str(number)),
        ]

    document = parsed(*[page(number) for number in (1, 2, 3)])
    assert shown(document) == [
        (kind, text)
        for word in NUMBERS
        for kind, text in (("prose", f"Page {word} says this."), ("prose", "Figures follow below."))
    ]
    assert [piece.page for piece in document.pieces] == [1, 1, 2, 2, 3, 3]


def test_a_two_column_page_with_a_full_width_title_and_sections() -> None:
    words = "is a line of a column of this page."
    left = [f"Left {number} {words}" for number in range(4)]
    right = [f"Right {number} {words}" for number in range(4)]
    document = parsed(
        [
            (72, 780, 20, "A study of columns that goes over both"),
            *column(72, 750, "By two authors who have a line of their own that is as wide as both"),
            (72, 710, 13, "1 First"),
            *column(72, 690, *left),
            (310, 710, 13, "2 Second"),
            *column(310, 690, *right),
        ]
    )
    assert titles(document) == [
        (1, "A study of columns that goes over both"), (2, "1 First"), (2, "2 Second"),
    ]  # fmt: skip
    assert [text for _, text in shown(document)][1:] == [" ".join(left), " ".join(right)]
    order = [b"A study", b"By two", b"1 First", b"Left 0", b"Left 3", b"2 Second", b"Right 0"]
    assert [document.text.index(part) for part in order] == sorted(map(document.text.index, order))


def test_columns_below_short_lines_are_columns() -> None:
    items = [f"- item {name}" for name in "abcdefgh"]
    left = [f"Left line {number} is about this wide." for number in range(4)]
    right = [f"Right line {number} is about as wide." for number in range(4)]
    document = parsed(
        [
            *column(72, 800, PROSE),
            *column(72, 770, *items),
            *column(72, 640, *left),
            *column(310, 635, *right),  # between the lines on the left
        ]
    )
    assert shown(document)[1:] == [
        ("prose", "\n".join(items)),
        ("prose", " ".join(left)),
        ("prose", " ".join(right)),
    ]


def test_running_headers_and_footers_are_removed() -> None:
    def page(number: int) -> list[Shown]:
        return [
            (72, 810, 9, f"Report 2026, chapter {number}"),
            *column(72, 700, f"Text of page {number}."),
            (290, 30, 9, f"{number} of 4"),
        ]

    document = parsed(*[page(number) for number in range(1, 5)])
    assert document.text == b"Text of page 1.\fText of page 2.\fText of page 3.\fText of page 4."
    assert document.pages == (0, 16, 32, 48)
    assert [piece.page for piece in document.pieces] == [1, 2, 3, 4]


@cases(
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
    document = parsed(
        [(72, 810, 10, "Once"), (72, 400, 10, "Middle")],
        [(72, 790, 10, "Twice"), (72, 400, 10, "Middle")],
        [(72, 770, 10, "Twice"), (72, 400, 10, "Middle")],
        [(72, 400, 10, "Middle")],
    )
    assert document.text == b"Once\n\nMiddle\fTwice\n\nMiddle\fTwice\n\nMiddle\fMiddle"


def test_hyphens_are_repaired_in_prose_only() -> None:
    document = parsed(
        [
            *column(72, 700, "This is an exam-", "ple of 5-", "fold, of Anglo-", "Saxon -", "so"),
            *column(72, 630, "x = a-", "b", font="mono"),
        ]
    )
    assert shown(document) == [
        ("prose", "This is an example of 5-fold, of Anglo-Saxon - so"),
        ("code", "x = a-\nb"),
    ]


@cases(
    ("elsewhere", "kept"),
    [
        ("", "wellknown"),  # nothing tells: most words that end a line with a hyphen are divided
        ("Well-known terms are here.", "well-known"),
        ("Wellknown terms are here.", "wellknown"),
        ("A well-known and a well-known, a wellknown.", "well-known"),
        ("A well-known, a wellknown and a wellknown.", "wellknown"),
        ("All is well and known to us.", "well-known"),
        ("All is well with us.", "wellknown"),
        ("All is known.", "wellknown"),
    ],
)
def test_the_document_tells_which_hyphens_are_its_own(elsewhere: str, kept: str) -> None:
    document = parsed(
        [
            *column(72, 700, "This is a well-", "known term."),
            *column(72, 600, elsewhere or "No more."),
        ]
    )
    assert shown(document)[0] == ("prose", f"This is a {kept} term.")


@cases(
    ("before", "after", "words", "expected"),
    [
        # in and come are words of almost any text, and income is none of their making.
        ("an in", "come of", ("in", "come"), False),
        ("the state-of-the", "art form", ("the", "art"), True),
        ("the state-of-the", "art form", ("the",), False),
        ("the state-of", "the-art form", ("state-of-the-art",), True),
        ("5", "fold", ("fold",), False),
        ("ein lang", "lebiges Kabel", ("langlebiges", "lang"), False),
    ],
)
def test_a_compound_is_told_by_its_words(
    before: str, after: str, words: tuple[str, ...], expected: bool
) -> None:
    assert is_compound(before, after, dict.fromkeys(words, 1)) is expected


def test_divided_words_are_no_words() -> None:
    """The halves of one divided word do not prove that another one has a hyphen."""
    counts = count_words(["We met a long-", "term and a well-", "known plan-", "ner of Well-Being"])
    assert counts == {"we": 1, "met": 1, "a": 2, "and": 1, "of": 1, "well-being": 1, "well": 1,
                     "being": 1}  # fmt: skip


def test_ligatures_are_letters_of_one_word() -> None:
    # pdfium gives both letters the box of the whole, which is more than half as wide as high
    document = parsed(column(72, 700, "the \x1erst de\x1enition", font="bold"))
    assert document.text == b"the first definition"


def test_code_keeps_its_indentation_and_blank_lines() -> None:
    document = parsed(
        [
            *column(72, 700, "Some prose before the code, long enough to be the body."),
            (72, 670, 10, "def f(x):", "mono"),
            (96, 658, 10, "return  x", "mono"),  # 24 points are 4 letters of 6
            (72, 634, 10, "f(1)", "mono"),
            *column(72, 610, "And some prose after it."),
        ]
    )
    assert shown(document)[1] == ("code", "def f(x):\n    return  x\n\nf(1)")
    assert [piece.type for piece in document.pieces] == ["prose", "code", "prose"]


def test_a_typewritten_document_is_prose() -> None:
    document = parsed(column(72, 700, "All of it is set", "in one font.", font="mono"))
    assert shown(document) == [("prose", "All of it is set in one font.")]


def test_lists_keep_their_lines_and_indented_lines_begin_paragraphs() -> None:
    document = parsed(
        [
            *column(72, 700, "Things:", "- one", "- two", "1. three"),
            *column(72, 640, "A paragraph ends here."),
            *column(92, 628, "Another begins with a line set in,"),
            *column(72, 616, "and goes on."),
        ]
    )
    assert shown(document) == [
        ("prose", "Things:\n- one\n- two\n1. three"),
        ("prose", "A paragraph ends here."),
        ("prose", "Another begins with a line set in, and goes on."),
    ]


def test_captions_and_lines_of_contents() -> None:
    document = parsed(
        [
            (72, 740, 16, "1 Introduction . . . . . . . . 3"),
            *column(72, 700, "Text of the body that is long enough.", "Figure 1: A caption."),
        ]
    )
    assert titles(document) == []
    assert [piece.type for piece in document.pieces] == ["prose", "prose", "caption"]


def test_the_outline_names_headings_that_are_not_larger() -> None:
    document = parsed(
        column(72, 700, "1. First part", "Text of the first part.", "More of it."),
        column(72, 700, "2. Second", "Text."),
        outline=[("First part", 0), ("Second", 1), ("Nowhere", 1)],
    )
    assert titles(document) == [(1, "1. First part"), (1, "2. Second")]
    assert shown(document) == [("prose", "Text of the first part. More of it."), ("prose", "Text.")]


def test_half_a_pair_of_utf_16_in_a_title_is_replaced() -> None:
    """pypdfium2 would decode it strictly; a file of any size would be lost for it."""
    source = pdf(
        [column(72, 700, "1. First part", "Text of it."), column(72, 700, "Second", "Text.")],
        outline=[("Halved", 0), ("Second", 1)],
        title="Named",
    )
    halved = source.replace(b"/Title (Halved)", b"/Title <FEFFD83D>").replace(
        b"/Title (Named)", b"/Title <FEFF0041DC00>"
    )
    assert len(halved.split(b"/Title <FEFF")) == 3
    document = checked(PARSER, halved)
    assert titles(document) == [(1, "Second")]
    named = source.replace(b"/Title (Named)", b"/Title <FEFF0041DC00>")
    without_outline = named.replace(b"/Outlines ", b"/Nothing ")
    assert checked(PARSER, without_outline).title == "A\N{REPLACEMENT CHARACTER}"


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
    document = checked(PARSER, source.replace(b"1 0 0 1 20 300 Tm", b"0 1 -1 0 20 300 Tm"))
    assert document.text == b"Upright text."
    assert document.notes == ("letters that do not stand upright left out: 5",)


def test_origins_give_the_first_character_of_each_block_on_its_page() -> None:
    document = parsed(
        [*column(72, 700, "One."), *column(72, 650, "Two.")], column(72, 700, "Three.")
    )
    # pdfium counts "One." and its line end: 4 + 2 characters
    assert document.origins == ((0, 0, 4), (6, 6, 4), (11, 0, 6))


@cases("count", [1, 2, 3, 4])
def test_upright_rules_without_level_ones_hold_no_table(count: int) -> None:
    """Bars in the margin, or an axis of a figure, beside a level rule that they do not meet."""
    upright = " ".join(f"{500 + 20 * n} 100 m {500 + 20 * n} 300 l S" for n in range(count))
    drawn = f"72 690 m 300 690 l S {upright}"
    document = parsed(column(72, 700, "Text above a rule."), drawn=drawn)
    assert shown(document) == [("prose", "Text above a rule.")]
    assert document.notes == ()


@pytest.mark.parametrize("finder", ["with_ruled_tables", "with_aligned_tables"])
def test_a_page_whose_tables_cannot_be_read_is_prose(
    monkeypatch: pytest.MonkeyPatch, finder: str
) -> None:
    real = getattr(pdf_parser, finder)

    def fail_on_second(page: object, **more: object) -> object:
        if "Second" in str(page):
            raise ValueError("min() arg is an empty sequence")
        return real(page, **more)

    rows = [[*column(72, 700, f"{name} a", "c"), *column(200, 700, "b", "d")]
            for name in ("First", "Second")]  # fmt: skip
    lines = ruled([712, 696, 684], [70, 180, 300])
    assert [kind for kind, _ in shown(parsed(*rows, drawn=lines))] == ["table", "table"]
    monkeypatch.setattr(pdf_parser, finder, fail_on_second)
    document = PARSER.parse(pdf(rows, drawn=lines))
    kinds = [kind for kind, _ in shown(document)]
    assert kinds == (["table", "prose"] if finder == "with_ruled_tables" else ["table", "table"])
    assert "Second a" in document.text.decode()
    assert document.notes == ("pages whose tables could not be read, and are prose: 2",)
    (traceback,) = document.tracebacks
    assert "min() arg is an empty sequence" in traceback
    assert "fail_on_second" in traceback


def test_a_text_layer_that_is_not_words_is_noted() -> None:
    """The second page has the numbers of its glyphs: each letter's code less 29."""
    words = "This page is set in a font that does not say which letter a glyph stands for. " * 3
    lines = [words[at : at + 60] for at in range(0, len(words), 60)]
    shifted = [
        "".join(chr(ord(letter) - 29) if letter > "=" else letter for letter in line)
        for line in lines
    ]
    assert shifted[0].startswith("7KLV SDJH")
    document = parsed(column(72, 700, *lines), column(72, 700, *shifted))
    note = "pages whose text layer is not words (recognise their letters, OCR): 2"
    assert document.notes == (note,)
    assert b"7KLV SDJH" in document.text  # it is noted, never repaired


def test_pages_without_text_are_noted() -> None:
    document = parsed(column(72, 700, "Text."), [])
    assert (document.text, document.pages, document.notes) == (
        b"Text.\f",
        (0, 6),
        ("pages without text: 2",),
    )
    document = parsed([], [])
    assert (document.text, document.pieces, document.headings) == (b"\f", (), ())
    assert document.notes == ("no text layer: recognise its letters first (OCR)",)


@cases(
    ("source", "said"),
    [
        (b"", "damaged"),
        (b"not a PDF", "damaged"),
        (pdf([column(72, 700, "Text.")])[:60], "damaged"),
        (pdf([column(72, 700, "Text.")], trailer=ENCRYPTED), "encrypted"),
    ],
)
def test_what_cannot_be_opened_is_an_error(source: bytes, said: str) -> None:
    with pytest.raises(FieldError, match=said) as error:
        PARSER.parse(source)
    assert error.value.code == "bad-document"


def test_without_pypdfium2_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    with pytest.raises(RagaugeError, match=r"ragauge\[corpus\]") as error:
        PARSER.parse(b"%PDF-1.4")
    assert error.value.code == "missing-extra"


def test_titles_are_compared_without_their_numbers() -> None:
    assert title_key("2.1  First Part!") == title_key("First  part") == "firstpart"
    assert title_key("IV. End") == "end"
    assert title_key("Civil rights") == "civilrights"
