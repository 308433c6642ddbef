"""Text that must fit: sections are cut between their rows, and what was cut is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

_ROOM_FOR_NOTE = 600
_NAMED = 6


class Section(Struct, frozen=True, kw_only=True):
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


def fitted(sections: Sequence[Section], most: int) -> list[str]:
    """The lines of sections within so many bytes, and behind them what was left out.

    A section that does not fit loses its last rows, or goes as a whole; a later one that is small
    enough still gets its place.
    """
    if sum(size((*each.head, *each.rows, *each.foot)) for each in sections) <= most:
        return [line for each in sections for line in (*each.head, *each.rows, *each.foot)]
    left = most - _ROOM_FOR_NOTE
    lines: list[str] = []
    cut: list[str] = []
    for each in sections:
        room = left - size((*each.head, *each.foot))
        kept = _kept(each.rows, room)
        if room < 0 or (each.rows and not kept):
            cut.append(f"all of {each.title[:60]}")
            continue
        if kept < len(each.rows):
            cut.append(f"{len(each.rows) - kept} of {len(each.rows)} rows of {each.title[:60]}")
        found = (*each.head, *each.rows[:kept], *each.foot)
        left -= size(found)
        lines += found
    return [*lines, f"Left out, because this page may not be larger: {_listed(cut)}."]


def _kept(rows: Sequence[str], room: int) -> int:
    """How many rows fit, from the first on."""
    for place, row in enumerate(rows):
        room -= size([row])
        if room < 0:
            return place
    return len(rows)


def _listed(cut: Sequence[str]) -> str:
    more = len(cut) - _NAMED
    told = "; ".join(cut[:_NAMED])
    return f"{told}; and {more} more sections" if more > 0 else told
