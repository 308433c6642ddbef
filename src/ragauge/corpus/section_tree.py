"""The title tree: headings become sections without skipped levels, at most six deep.

A section's id is its place in the tree of its document: `S.1.2` is the second section of the first.
Its depth is the length of that path, whatever the level of the heading: an h3 right below an h1 has
depth 2. Headings deeper than six become siblings at depth 6. Text before the first heading is the
section `S.0`, which is there only if there is such text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec.msgpack
from msgspec.structs import replace

from ragauge.corpus.anchors import anchor_of
from ragauge.model.corpus import Extent, Heading, Parsed, Section

DEEPEST = 6
PREAMBLE = "S.0"


def check_parsed(parsed: Parsed) -> None:
    """Hold a parser to its promises: spans in order, apart, inside the text, on whole characters.

    And what it says must be text that can be written.

    Raises:
        ValueError: a parser broke its promise, which is a fault of the parser and not of the file.
    """
    titles = [heading.title for heading in parsed.headings]
    attrs = [piece.attrs for piece in parsed.pieces]
    msgspec.msgpack.encode((titles, attrs, parsed.title, parsed.notes))
    text = parsed.text
    headings = [heading.span for heading in parsed.headings]
    pieces = [piece.span for piece in parsed.pieces]
    at = 0
    for start, end in sorted(headings + pieces):
        if not at <= start <= end <= len(text):
            raise ValueError(f"the span ({start}, {end}) is outside the text or overlaps another")
        for edge in (start, end):
            if edge < len(text) and text[edge] & 0xC0 == 0x80:
                raise ValueError(f"byte {edge} is inside a character")
        at = end
    if headings != sorted(headings) or pieces != sorted(pieces):
        raise ValueError("headings or pieces are not in reading order")


def build_sections(doc: str, parsed: Parsed) -> tuple[Section, ...]:
    """Build the sections of a document, in reading order."""
    headings = parsed.headings
    size = len(parsed.text)
    paths = _paths(headings)
    starts = [heading.span[0] for heading in headings]
    ends = _subtree_ends(paths, starts, size)
    sections = []
    first = starts[0] if starts else size
    if parsed.text[:first].strip() or any(piece.span[0] < first for piece in parsed.pieces[:1]):
        sections.append(
            Section(id=PREAMBLE, doc=doc, title="", depth=1, body=(0, first), subtree=(0, first))
        )
    following = [*starts[1:], size]
    sections += [
        Section(
            id=_id(path),
            doc=doc,
            title=heading.title,
            depth=len(path),
            body=(heading.span[1], next_start),
            subtree=(heading.span[0], end),
            heading=heading.span,
            parent=_id(path[:-1]) if len(path) > 1 else None,
        )
        for heading, path, next_start, end in zip(headings, paths, following, ends, strict=False)
    ]
    return _anchored(sections, parsed)


def section_at(sections: Sequence[Section], byte: int) -> Section | None:
    """The section whose heading or body holds a byte; None before the first one."""
    position = bisect_right(sections, byte, key=lambda section: section.subtree[0]) - 1
    return sections[position] if position >= 0 else None


def _id(path: Sequence[int]) -> str:
    return ".".join(["S", *map(str, path)])


def _paths(headings: Sequence[Heading]) -> list[tuple[int, ...]]:
    """The place of each heading in the tree, counted from 1 at every depth."""
    open_levels: list[int] = []
    counts: list[int] = [0]
    paths = []
    for heading in headings:
        while open_levels and open_levels[-1] >= heading.level:
            open_levels.pop()
        del open_levels[DEEPEST - 1 :]
        depth = len(open_levels) + 1
        del counts[depth:]
        if len(counts) < depth:
            counts.append(0)
        counts[-1] += 1
        open_levels.append(heading.level)
        paths.append(tuple(counts))
    return paths


def _subtree_ends(paths: Sequence[tuple[int, ...]], starts: Sequence[int], size: int) -> list[int]:
    """Where the next heading of the same or a smaller depth begins, for each heading."""
    ends = [size] * len(paths)
    waiting: list[int] = []
    for position, path in enumerate(paths):
        while waiting and len(paths[waiting[-1]]) >= len(path):
            ends[waiting.pop()] = starts[position]
        waiting.append(position)
    return ends


def _anchored(sections: Sequence[Section], parsed: Parsed) -> tuple[Section, ...]:
    """Give each section the anchor of its first block of prose that has one."""
    anchors: dict[str, Extent] = {}
    for piece in parsed.pieces:
        if piece.type == "prose":
            section = section_at(sections, piece.span[0])
            if section is not None and section.id not in anchors:
                anchor = anchor_of(parsed.text, piece)
                if anchor is not None:
                    anchors[section.id] = anchor
    return tuple(replace(section, anchor=anchors.get(section.id)) for section in sections)
