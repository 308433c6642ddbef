"""Pieces of evidence: what of a gold item has a rank, what counts as relevant, and its gain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragauge.errors import Place, RagaugeError
from ragauge.ids import doc_of, split_section
from ragauge.model.chunk import Chunks
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.options import Options
from ragauge.quotes import normalised
from ragauge.spans import merged, size
from ragauge.text import fold

EFFECTIVE_PREFIX = "\0expected#"
"""What the id of an effective place begins with; a chunk id does not begin with a NUL.

An effective place (decision 0016) replaces an id of the gold set in a comparison. It is evidence
wherever the item names it: among the relevant ids, in grades and in groups. The rest of the name is
an id, so that section and type can still be read from its grammar.
"""

NEGATIVE_PREFIX = "\0negative#"
"""The same for a hard negative: a place of an item that is no evidence."""


class EvidencePieces(Struct, frozen=True, kw_only=True):
    """The pieces of one item: first those known by id alone, then those with a place.

    `relevant` and `gains` go with the pieces; a group lists places of its members among them.
    """

    ids: tuple[str, ...]
    anchors: tuple[Anchor, ...]
    relevant: tuple[bool, ...]
    gains: tuple[float, ...]
    groups: tuple[tuple[int, ...], ...]


class GoldDetails(Struct, frozen=True, kw_only=True):
    """What must be known of an item whose evidence is more than ids.

    `doc` is the only document that the item names; `scope` are the documents in which the anchor
    section is meant, none for any; `decoy_doc` is that of the decoy section, None for any. `places`
    have spans; `wrong` are the negatives that are known by a place or a quote. `judged` are the
    graded ids that are not relevant, false for those with a grade outside the scale from 0 to the
    level, which trec_eval takes for not judged. `quoted` says that some anchor has a quote and no
    spans; it is normalised here. `somewhere`: some anchor is a chunk, and its evidence may stand
    anywhere in it.
    """

    ids: tuple[str, ...] = ()
    anchors: tuple[Anchor, ...] = ()
    counted: tuple[bool, ...] = ()
    places: tuple[Anchor, ...] = ()
    docs: tuple[str, ...] = ()
    doc: str | None = None
    section: str | None = None
    scope: tuple[str, ...] = ()
    negatives: tuple[str, ...] = ()
    wrong: tuple[Anchor, ...] = ()
    decoy: str | None = None
    decoy_doc: str | None = None
    must_contain: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    quoted: bool = False
    judged: dict[str, bool] = {}
    references: tuple[str, ...] = ()
    somewhere: bool = False

    @property
    def nonrelevant_count(self) -> int:
        """How many things are known to be not relevant: judged so, or hard negatives."""
        wrong = {*self.negatives, *(anchor.id for anchor in self.wrong)} - {None}
        unnamed = sum(anchor.id is None for anchor in self.wrong)
        named = {name for name, counts in self.judged.items() if counts} | wrong
        return len(named) + unnamed


def pieces_of(item: GoldItem, chunks: Chunks, options: Options) -> EvidencePieces:
    """Find the pieces of an item; ids that a chunker's list places become anchors."""
    anchor_of = _stand_ins(item) if item.places else {}
    if not (chunks or item.anchors or item.grades or item.groups or anchor_of):
        ids = tuple(dict.fromkeys(item.relevant))
        count = len(ids)
        return EvidencePieces(
            ids=ids, anchors=(), relevant=(True,) * count, gains=(1.0,) * count, groups=()
        )
    if not (item.anchors or item.grades or item.groups):
        return _named(item.relevant, chunks, anchor_of)
    # An id that gold itself places lies there, whatever a list of chunks says of it.
    anchor_of |= {anchor.id: anchor for anchor in item.anchors if anchor.id is not None}
    stated: list[str | Anchor] = [*item.relevant, *item.anchors]
    level = options.relevance_level
    graded = [name for name, grade in item.grades.items() if grade > 0 or grade >= level]
    if stated:
        counted = stated
    elif item.grades:
        counted = [name for name in graded if item.grades[name] >= level]
    else:
        counted = [member for group in item.groups for member in group]
    order: dict[str | Anchor, bool] = {}
    for member in counted:
        order[_placed(member, chunks, anchor_of)] = True
    for member in [*graded, *(one for group in item.groups for one in group)]:
        order.setdefault(_placed(member, chunks, anchor_of), False)
    anchored = {piece.id for piece in order if isinstance(piece, Anchor) and piece.id is not None}
    plain = [piece for piece in order if isinstance(piece, str) and piece not in anchored]
    anchors = [piece for piece in order if isinstance(piece, Anchor)]
    lost = {piece for piece in order if isinstance(piece, str) and piece in anchored}
    by_id = {anchor.id: anchor for anchor in anchors if anchor.id is not None}
    pieces: list[str | Anchor] = [*plain, *anchors]
    relevant = [
        order[piece] or (isinstance(piece, Anchor) and piece.id in lost and order[piece.id or ""])
        for piece in pieces
    ]
    place = {piece: i for i, piece in enumerate(pieces)}

    def where(member: str | Anchor) -> int:
        piece = _placed(member, chunks, anchor_of)
        return place[by_id[piece] if isinstance(piece, str) and piece in lost else piece]

    gains = [_gain(piece, item, hit) for piece, hit in zip(pieces, relevant, strict=True)]
    groups = tuple(tuple(where(member) for member in group) for group in item.groups)
    return EvidencePieces(
        ids=tuple(plain),
        anchors=tuple(anchors),
        relevant=tuple(relevant),
        gains=tuple(gains),
        groups=groups,
    )


def _named(names: Sequence[str], chunks: Chunks, anchor_of: Mapping[str, Anchor]) -> EvidencePieces:
    """The pieces of an item that names chunks and nothing else: all count, and all alike."""
    ids: list[str] = []
    anchors: list[Anchor] = []
    for name in dict.fromkeys(names):
        piece = _placed(name, chunks, anchor_of)
        if isinstance(piece, str):
            ids.append(piece)
        else:
            anchors.append(piece)
    count = len(ids) + len(anchors)
    return EvidencePieces(
        ids=tuple(ids),
        anchors=tuple(anchors),
        relevant=(True,) * count,
        gains=(1.0,) * count,
        groups=(),
    )


def _stand_ins(item: GoldItem) -> dict[str, Anchor]:
    return {place.id: place for place in item.places if place.id and is_effective(place)}


def is_effective(place: Anchor, head: str = EFFECTIVE_PREFIX) -> bool:
    """Whether a place of an item is the effective place of something named elsewhere in it."""
    return place.id is not None and place.id.startswith(head)


def is_somewhere(anchor: Anchor) -> bool:
    """Whether an anchor is a chunk of known extent, in which the evidence may stand anywhere.

    In a comparison it may be one of which no more is known than its document, or not even that. A
    quote with an id is the evidence itself unless the gold set says otherwise.
    """
    if is_effective(anchor):
        return anchor.grain == "chunk"
    if anchor.spans:
        return anchor.is_chunk
    return anchor.grain == "chunk" and anchor.quote is not None


def _placed(member: str | Anchor, chunks: Chunks, anchor_of: Mapping[str, Anchor]) -> str | Anchor:
    if not isinstance(member, str):
        return member
    if member in anchor_of:
        return anchor_of[member]
    if member in chunks and chunks[member].spans:
        chunk = chunks[member]
        return Anchor(
            doc=chunk.doc, spans=chunk.spans, id=member, section=chunk.section, grain="chunk"
        )
    return member


def _gain(piece: str | Anchor, item: GoldItem, relevant: bool) -> float:
    name = piece if isinstance(piece, str) else piece.id
    if name is not None and name in item.grades:
        return max(0.0, item.grades[name])
    return 1.0 if relevant else 0.0


def gold_details_of(
    item: GoldItem, pieces: EvidencePieces, chunks: Chunks, options: Options, gold_name: str
) -> GoldDetails | None:
    """What must be known of an item beyond the ids of its evidence; None where that is nothing."""
    negatives = item.negatives
    decoy_doc, decoy = (
        split_section(item.decoy_section) if item.decoy_section is not None else (None, None)
    )
    counted = pieces.relevant[len(pieces.ids) :]
    places = tuple(
        a for a, counts in zip(pieces.anchors, counted, strict=True) if counts and a.spans
    )
    wrong = _wrong_places(item, chunks)
    if item.places:
        for place in item.places:
            if is_effective(place, NEGATIVE_PREFIX):
                wrong += (_comparable(place),)
            elif place.spans and not is_effective(place):
                places += (place,)
    anchors = tuple(map(_comparable, pieces.anchors))
    units = {span.unit for anchor in (*places, *pieces.anchors, *wrong) for span in anchor.spans}
    if len(units) > 1:
        raise RagaugeError.of(
            "mixed-units",
            f"the places of the evidence mix {' and '.join(sorted(units))} offsets",
            hint="use one unit in the gold set and in the list of chunks: bytes",
            place=Place(gold_name, item.line, item.qid),
        )
    section_doc, section = (
        split_section(item.anchor_section) if item.anchor_section is not None else (None, None)
    )
    docs = tuple(dict.fromkeys(item.relevant_docs or ()))
    judged = _judged(item, pieces, options) if item.grades else {}
    named = documents_of(item, pieces, chunks)
    if not (
        pieces.anchors
        or places
        or docs
        or section
        or negatives
        or wrong
        or decoy
        or item.must_contain
        or item.forbidden
        or item.references
        or judged
    ):
        return None
    return GoldDetails(
        ids=tuple(name for name, counts in zip(pieces.ids, pieces.relevant, strict=False) if counts)
        if pieces.ids
        else (),
        anchors=anchors,
        counted=counted,
        places=places,
        docs=docs,
        doc=named[0] if len(named) == 1 else None,
        section=section,
        scope=(section_doc,) if section_doc is not None else named,
        negatives=negatives,
        wrong=wrong,
        decoy=decoy,
        decoy_doc=decoy_doc,
        must_contain=_folded(item.must_contain, options),
        forbidden=_folded(item.forbidden, options),
        judged=judged,
        references=item.references,
        quoted=any(not anchor.spans and anchor.quote is not None for anchor in (*anchors, *wrong)),
        somewhere=any(is_somewhere(anchor) for anchor in anchors),
    )


def _judged(item: GoldItem, pieces: EvidencePieces, options: Options) -> dict[str, bool]:
    """The graded ids that are no evidence, and whether their grade is one of the scale."""
    names = (*pieces.ids, *(anchor.id for anchor in pieces.anchors))
    relevant = {name for name, counts in zip(names, pieces.relevant, strict=True) if counts}
    return {
        name: 0 <= grade < options.relevance_level
        for name, grade in item.grades.items()
        if name not in relevant
    }


def _wrong_places(item: GoldItem, chunks: Chunks) -> tuple[Anchor, ...]:
    """The hard negatives that have a place or a quote; ids that the list of chunks places too.

    Like evidence, so that another chunking is measured by the same text.
    """
    if not item.negatives and not item.negative_places:
        return ()
    listed = [_placed(name, chunks, {}) for name in dict.fromkeys(item.negatives)]
    placed = [place for place in listed if isinstance(place, Anchor)]
    return tuple(dict.fromkeys(map(_comparable, (*item.negative_places, *placed))))


def _folded(texts: Sequence[str], options: Options) -> tuple[str, ...]:
    return tuple(fold(text, ignore_case=options.ignore_case) for text in texts) if texts else ()


def _comparable(anchor: Anchor) -> Anchor:
    """An anchor that is a quote with the quote normalised; any other as it is."""
    if anchor.spans or anchor.quote is None:
        return anchor
    return replace(anchor, quote=normalised(anchor.quote))


def documents_of(item: GoldItem, pieces: EvidencePieces, chunks: Chunks) -> tuple[str, ...]:
    """The documents that an item names: outright, by places, or by the grammar of its ids."""
    docs: dict[str, None] = dict.fromkeys(item.relevant_docs or ())
    for anchor in (*pieces.anchors, *item.places):
        if anchor.doc and not is_effective(anchor, NEGATIVE_PREFIX):
            docs[anchor.doc] = None
    for name in pieces.ids:
        doc = chunks[name].doc if name in chunks else doc_of(name)
        if doc is not None:
            docs[doc] = None
    if item.anchor_section is not None:
        doc = split_section(item.anchor_section)[0]
        if doc is not None:
            docs[doc] = None
    return tuple(docs)


def gold_bytes(places: Sequence[Anchor]) -> int:
    """How much the places cover, each document by itself."""
    if len(places) == 1 and len(places[0].spans) == 1:
        return places[0].spans[0].length
    by_doc: dict[str, list[tuple[int, int]]] = {}
    for anchor in places:
        by_doc.setdefault(anchor.doc, []).extend((span.start, span.end) for span in anchor.spans)
    return sum(size(merged(spans)) for spans in by_doc.values())
