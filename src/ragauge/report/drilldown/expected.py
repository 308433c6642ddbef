"""What a question expects, piece by piece, as a reader wants to see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple

from ragauge.compare.effective_gold import expected_pieces as expected_of
from ragauge.ids import doc_of
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import MatchLevel
from ragauge.model.drilldown import Expected
from ragauge.model.evidence import ChunkFacts
from ragauge.model.gold import Anchor, GoldItem
from ragauge.spans import Span, in_words, place_name


class ExpectedPiece(NamedTuple):
    """One piece of evidence: its name, where it lies, and its words where somebody has them.

    `text` is what the list of chunks or a hit says of it; `quote` is the gold item's own.
    """

    name: str
    doc: str | None = None
    spans: tuple[Span, ...] = ()
    quote: str | None = None
    text: str | None = None
    section: str | None = None
    type: str | None = None
    doc_hash: str | None = None
    grade: float | None = None


def pieces_with_text(
    item: GoldItem, chunks: Mapping[str, Chunk], seen: Mapping[str, ChunkFacts]
) -> list[ExpectedPiece]:
    """The pieces of an item's evidence; `seen` is what the hits of the run say of ids.

    Gold itself says best where an id lies, then the list of chunks, then the hits that have it.
    """
    place_of = {place.id: place for place in item.places}
    return [
        _anchored(member, item)
        if isinstance(member, Anchor)
        else _named(member, item, place_of.get(member), chunks.get(member), seen.get(member))
        for member in expected_of(item)
    ]


def _anchored(anchor: Anchor, item: GoldItem) -> ExpectedPiece:
    name = anchor.id or (place_name(anchor.doc, anchor.spans) if anchor.spans else anchor.doc)
    return ExpectedPiece(
        name,
        anchor.doc or None,
        anchor.spans,
        anchor.quote,
        section=anchor.section,
        grade=item.grades.get(anchor.id or ""),
    )


def _named(
    name: str, item: GoldItem, place: Anchor | None, chunk: Chunk | None, facts: ChunkFacts | None
) -> ExpectedPiece:
    grade = item.grades.get(name)
    if place is not None:
        return ExpectedPiece(
            name, place.doc, place.spans, place.quote, section=place.section, grade=grade
        )
    if chunk is not None:
        return ExpectedPiece(
            name,
            chunk.doc,
            chunk.spans,
            None,
            chunk.text,
            chunk.section,
            chunk.type,
            chunk.doc_hash,
            grade,
        )
    if facts is not None:
        doc = facts.doc or facts.path or doc_of(name)
        return ExpectedPiece(name, doc, facts.spans, text=facts.text, grade=grade)
    return ExpectedPiece(name, doc_of(name), grade=grade)


def expected_pieces(
    item: GoldItem, pieces: Sequence[ExpectedPiece], rungs: Sequence[MatchLevel] = ()
) -> tuple[Expected, ...]:
    """The pieces of an item's evidence, then its documents and its section.

    `rungs` go with the pieces, or with the documents where there are no pieces.
    """
    rung_of = chain(rungs, repeat(None)) if pieces else repeat(None)
    expected = [
        Expected(
            name=piece.name,
            doc=piece.doc,
            quote=piece.quote,
            grade=piece.grade,
            rung=rung,
            where=in_words(piece.spans) if piece.spans else None,
        )
        for piece, rung in zip(pieces, rung_of, strict=False)
    ]
    rung_of = chain(rungs, repeat(None)) if not pieces else repeat(None)
    docs = dict.fromkeys(item.relevant_docs or ())
    expected += [
        Expected(name=doc, doc=doc, where="the document", rung=rung)
        for doc, rung in zip(docs, rung_of, strict=False)
    ]
    if item.anchor_section is not None:
        expected.append(Expected(name=item.anchor_section, where="the section"))
    return tuple(expected)


def negatives_of(item: GoldItem) -> tuple[str, ...]:
    """The passages that are known to be wrong, and the section of a decoy."""
    decoy = () if item.decoy_section is None else (f"section {item.decoy_section}",)
    places = [
        place.id or ", ".join(filter(None, [place.doc, in_words(place.spans) or place.quote]))
        for place in item.negative_places
    ]
    return (*item.negatives, *places, *decoy)
