"""Markdown that must fit: sections are cut between rows, and a last line says what was cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

_ROOM_FOR_NOTE = 600  # six titles of 60 characters, with counts and the words between
_NAMED = 6


class MarkdownSection(Struct, frozen=True, kw_only=True):
    """A part of a page: its lines, of which only `rows` may be left out.

    `title` is what the note about a cut calls it.
    """

    title: str
    head: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()
    foot: tuple[str, ...] = ()


def size(lines: Iterable[str]) -> int:
    """The bytes of lines in UTF-8, line ends included."""
    return sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)


def text_within(sections: Sequence[MarkdownSection], most: int) -> str:
    """A page of sections within so many bytes."""
    return "\n".join(lines_within(sections, most)).rstrip() + "\n"


def lines_within(sections: Sequence[MarkdownSection], most: int) -> list[str]:
    """The lines of sections within so many bytes, and behind them what was left out.

    A section that does not fit loses its last rows, or goes as a whole; a later one that is small
    enough still gets its place.
    """
    if sum(size((*section.head, *section.rows, *section.foot)) for section in sections) <= most:
        return [
            line for section in sections for line in (*section.head, *section.rows, *section.foot)
        ]
    left = most - _ROOM_FOR_NOTE
    lines: list[str] = []
    cut: list[str] = []
    for section in sections:
        room = left - size((*section.head, *section.foot))
        row_count = _rows_within(section.rows, room)
        if room < 0 or (section.rows and not row_count):
            cut.append(f"all of {section.title[:60]}")
            continue
        if row_count < len(section.rows):
            total = len(section.rows)
            cut.append(f"{total - row_count} of {total} rows of {section.title[:60]}")
        section_lines = (*section.head, *section.rows[:row_count], *section.foot)
        left -= size(section_lines)
        lines += section_lines
    return [*lines, f"Left out, because this page may not be larger: {_listed(cut)}."]


def _rows_within(rows: Sequence[str], room: int) -> int:
    """How many rows fit, from the first on."""
    for place, row in enumerate(rows):
        room -= size([row])
        if room < 0:
            return place
    return len(rows)


def _listed(cut: Sequence[str]) -> str:
    more = len(cut) - _NAMED
    named = "; ".join(cut[:_NAMED])
    return f"{named}; and {more} more sections" if more > 0 else named
