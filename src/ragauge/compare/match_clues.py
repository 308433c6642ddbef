"""Leads: what is known of an expected piece, and what it falls back to on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ragauge.compare.known_documents import Document, Library
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import Rung
from ragauge.model.gold import Anchor
from ragauge.spans import Span, of_unit


class Lead(NamedTuple):
    """What is known of a piece from one source: gold itself, or what a side knows of the chunk.

    `later`: the second side says so, of its own version of the document. `text_hash` is of the
    whole chunk.
    """

    doc: str | None
    spans: tuple[Span, ...] = ()
    quote: str | None = None
    section: str | None = None
    later: bool = False
    text_hash: str | None = None

    @property
    def unit(self) -> str | None:
        """The unit of its spans; None if it has none, or none of any length."""
        if len(self.spans) == 1:
            only = self.spans[0]
            return only.unit if only.end > only.start else None
        units = {span.unit for span in self.spans}
        return min(units) if len(units) == 1 and of_unit(self.spans, min(units)) else None


def together(leads: Sequence[Lead]) -> Lead:
    """One lead of several: of each thing what the first that knows it says."""
    first = leads[0]
    for lead in leads[1:]:
        first = Lead(
            first.doc or lead.doc,
            first.spans or lead.spans,
            first.quote or lead.quote,
            first.section or lead.section,
            first.later,
            first.text_hash or lead.text_hash,
        )
    return first


class Fallen(NamedTuple):
    """A piece that is not exact: its rung, and what stands for it on each side."""

    rung: Rung
    anchors: tuple[Anchor | None, Anchor | None] = (None, None)


def fallen_to(
    rung: Rung,
    docs: tuple[str, str],
    name: str,
    lead: Lead,
    *,
    spans: tuple[Span, ...] = (),
    quote: str | None = None,
) -> Fallen:
    """The piece as both sides call it: a place, a quote, or a whole document."""
    here, there = docs
    one = Anchor(doc=here, spans=spans, id=name, section=lead.section, quote=quote)
    other = one if here == there else replace(one, doc=there)
    return Fallen(rung, (one, other))


def moved_to(name: str, lead: Lead, doc: str, new: tuple[str, tuple[Span, ...]]) -> Fallen:
    """The piece at its old place, as the first side calls its document, and at its new one."""
    one = Anchor(doc=doc, spans=lead.spans, id=name, section=lead.section)
    return Fallen("doc_span", (one, replace(one, doc=new[0], spans=new[1])))


def stands_at(name: str, lead: Lead, places: tuple[Chunk, Chunk]) -> Fallen:
    """The piece where both sides have the very chunk, in documents that are not the same."""
    one, other = (
        Anchor(doc=each.doc, spans=each.spans, id=name, section=lead.section) for each in places
    )
    return Fallen("quote", (one, other))


def stays(member: str | Anchor, found: Fallen) -> bool:
    """Whether a piece is recognised on both sides by the very place that gold gives."""
    if isinstance(member, str) or member.id is not None or found.rung != "doc_span":
        return False
    return all(
        each is not None and (each.doc, each.spans) == (member.doc, member.spans)
        for each in found.anchors
    )


def quoted_in(doc: Document | None, library: Library, quote: str) -> str | None:
    """The document in which a side must quote; `""` for any, None if it cannot be told."""
    if doc is not None:
        return doc.name if library.has(doc, quote) else None
    if not library.side.texts:
        return ""
    names = library.quoting(quote)
    return names[0] if len(names) == 1 else None
