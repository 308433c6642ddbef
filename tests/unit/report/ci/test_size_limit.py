"""Cutting a page to size: rows go first, and what goes is told."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragauge.report.markdown import MarkdownSection, lines_within, size

LETTERS = st.text("aé中😀", max_size=40)
SECTIONS = st.lists(
    st.builds(
        MarkdownSection,
        title=LETTERS,
        head=st.lists(LETTERS, max_size=3).map(tuple),
        rows=st.lists(LETTERS, max_size=30).map(tuple),
        foot=st.lists(LETTERS, max_size=2).map(tuple),
    ),
    max_size=8,
)


def test_what_fits_stays_as_it_is() -> None:
    sections = [MarkdownSection(title="a", head=("h",), rows=("1", "2"), foot=("f",))]
    assert lines_within(sections, 8) == ["h", "1", "2", "f"]  # four lines of two bytes


def test_rows_go_from_the_end_and_are_counted() -> None:
    """Of 1,000 bytes 600 are kept for the note: head and foot take 4, a row 101: 3 rows fit."""
    rows = tuple("x" * 100 for _ in range(20))
    lines = lines_within(
        [MarkdownSection(title="the rows", head=("h",), rows=rows, foot=("f",))], 1000
    )
    assert lines[:-1] == ["h", *rows[:3], "f"]
    assert lines[-1] == (
        "Left out, because this page may not be larger: 17 of 20 rows of the rows."
    )


def test_a_section_without_room_goes_and_a_small_one_behind_it_stays() -> None:
    large = MarkdownSection(title="large", head=("x" * 5000,), rows=("r",))
    none = MarkdownSection(title="rows only", rows=("y" * 5000,))
    small = MarkdownSection(title="small", head=("s",))
    assert lines_within([large, none, small], 700) == [
        "s",
        "Left out, because this page may not be larger: all of large; all of rows only.",
    ]


def test_many_cuts_are_counted() -> None:
    sections = [MarkdownSection(title=f"s{n}", head=("x" * 5000,)) for n in range(9)]
    (note,) = lines_within(sections, 700)
    assert note.endswith("all of s5; and 3 more sections.")


@given(SECTIONS, st.integers(700, 3000))
def test_the_limit_holds_and_nothing_is_lost_without_a_word(
    sections: list[MarkdownSection], most: int
) -> None:
    whole = [line for each in sections for line in (*each.head, *each.rows, *each.foot)]
    lines = lines_within(sections, most)
    assert size(lines) <= most
    if lines != whole:
        assert lines[-1].startswith("Left out")
        assert size(whole) > most
