"""What a question expects, piece by piece, as a reader wants to see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat

from ragauge.ids import doc_of
from ragauge.model.comparison import Rung
from ragauge.model.drilldown import Expected
from ragauge.model.gold import Anchor, GoldItem
from ragauge.pieces import Chunk
from ragauge.spans import in_words, place_name
from ragauge.standins import expected_of


def expected_pieces(
    item: GoldItem, chunks: Mapping[str, Chunk], rungs: Sequence[Rung] = ()
) -> tuple[Expected, ...]:
    """The pieces of an item's evidence, then its documents and its section.

    `rungs` go with the pieces, or with the documents where there are no pieces.
    """
    members = expected_of(item)
    told = chain(rungs, repeat(None)) if members else repeat(None)
    known = {place.id: place for place in item.places}
    found = [
        _piece(member, item, known, chunks, rung)
        for member, rung in zip(members, told, strict=False)
    ]
    told = chain(rungs, repeat(None)) if not members else repeat(None)
    docs = dict.fromkeys(item.relevant_docs or ())
    found += [
        Expected(name=doc, doc=doc, where="the document", rung=rung)
        for doc, rung in zip(docs, told, strict=False)
    ]
    if item.anchor_section is not None:
        found.append(Expected(name=item.anchor_section, where="the section"))
    return tuple(found)


def _piece(
    member: str | Anchor, item: GoldItem, known: Mapping[str | None, Anchor],
    chunks: Mapping[str, Chunk], rung: Rung | None,
) -> Expected:  # fmt: skip
    if isinstance(member, Anchor):
        name = member.id or (place_name(member.doc, member.spans) if member.spans else member.doc)
        return Expected(
            name=name, doc=member.doc or None, quote=member.quote,
            where=in_words(member.spans) if member.spans else None,
            grade=item.grades.get(member.id or ""), rung=rung,
        )  # fmt: skip
    place = known.get(member)
    chunk = chunks.get(member)
    doc = place.doc if place is not None else chunk.doc if chunk is not None else doc_of(member)
    spans = place.spans if place is not None else chunk.spans if chunk is not None else ()
    return Expected(
        name=member, doc=doc, quote=None if place is None else place.quote,
        where=in_words(spans) if spans else None, grade=item.grades.get(member), rung=rung,
    )  # fmt: skip


def negatives_of(item: GoldItem) -> tuple[str, ...]:
    """The passages that are known to be wrong, and the section of a decoy."""
    decoy = () if item.decoy_section is None else (f"section {item.decoy_section}",)
    return (*item.negatives, *decoy)
