"""What every result of a parser must hold, and short views of it for tests."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from ragauge.model.corpus import Parsed, Parser


def checked(parser: Parser, source: bytes) -> Parsed:
    """Parse, and check what holds for every file: order, no overlap, whole characters, twice."""
    found = parser.parse(source)
    assert found == parser.parse(source)
    found.text.decode("utf-8")
    spans = [piece.span for piece in found.pieces]
    assert spans == sorted(spans)
    headings = [heading.span for heading in found.headings]
    assert headings == sorted(headings)
    last = 0
    for start, end in sorted(spans + headings):
        assert last <= start < end <= len(found.text)
        found.text[start:end].decode("utf-8")
        last = end
    for place, piece in enumerate(found.pieces):
        if "of" in piece.attrs:
            assert piece.type == "caption"
            assert piece.attrs["of"] != place
            assert found.pieces[piece.attrs["of"]].type in ("figure", "table", "code")
    runs = found.origins
    assert all(one[0] + one[2] <= other[0] for one, other in pairwise(runs))
    return found


def shown(found: Parsed) -> list[tuple[str, str]]:
    """The pieces as (type, text)."""
    return [(piece.type, text_at(found, piece.span)) for piece in found.pieces]


def titles(found: Parsed) -> list[tuple[int, str]]:
    """The headings as (level, title)."""
    return [(heading.level, heading.title) for heading in found.headings]


def attrs(found: Parsed) -> list[dict[str, Any]]:
    """The attrs of all pieces."""
    return [piece.attrs for piece in found.pieces]


def text_at(found: Parsed, span: tuple[int, int]) -> str:
    """The text of a span."""
    return found.text[span[0] : span[1]].decode("utf-8")
