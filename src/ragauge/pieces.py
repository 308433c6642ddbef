"""Pieces of evidence: what of a gold item has a rank, what counts as relevant, and its gain."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ragauge.errors import Place, RagaugeError
from ragauge.ids import doc_of, split_section
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.options import Options
from ragauge.spans import Span, merged, size


class Chunk(Struct, frozen=True):
    """A chunk of some chunker: where it lies."""

    doc: str
    spans: tuple[Span, ...]
    section: str | None = None
    type: str | None = None


Chunks = Mapping[str, Chunk]


class Pieces(Struct, frozen=True, kw_only=True):
    """The pieces of one item: first those known by id alone, then those with a place.

    `relevant` and `gains` go with the pieces; a group lists places of its members among them.
    """

    ids: tuple[str, ...]
    anchors: tuple[Anchor, ...]
    relevant: tuple[bool, ...]
    gains: tuple[float, ...]
    groups: tuple[tuple[int, ...], ...]


class Rich(Struct, frozen=True, kw_only=True):
    """What must be known of an item whose evidence is more than ids.

    `doc` is the only document that the item names; `scope` are the documents in which the anchor
    section is meant, none for any.
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
    decoy: str | None = None
    must_contain: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()


def pieces_of(item: GoldItem, chunks: Chunks, options: Options) -> Pieces:
    """Find the pieces of an item; ids that a chunker's list places become anchors."""
    if not (chunks or item.anchors or item.grades or item.groups):
        ids = tuple(dict.fromkeys(item.relevant))
        count = len(ids)
        return Pieces(
            ids=ids, anchors=(), relevant=(True,) * count, gains=(1.0,) * count, groups=()
        )
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
        order[_placed(member, chunks)] = True
    for member in [*graded, *(each for group in item.groups for each in group)]:
        order.setdefault(_placed(member, chunks), False)
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
        found = _placed(member, chunks)
        return place[by_id[found] if isinstance(found, str) and found in lost else found]

    gains = [_gain(piece, item, hit) for piece, hit in zip(pieces, relevant, strict=True)]
    groups = tuple(tuple(where(member) for member in group) for group in item.groups)
    return Pieces(
        ids=tuple(plain), anchors=tuple(anchors), relevant=tuple(relevant), gains=tuple(gains),
        groups=groups,
    )  # fmt: skip


def _placed(member: str | Anchor, chunks: Chunks) -> str | Anchor:
    if isinstance(member, str) and member in chunks and chunks[member].spans:
        chunk = chunks[member]
        return Anchor(doc=chunk.doc, spans=chunk.spans, id=member, section=chunk.section)
    return member


def _gain(piece: str | Anchor, item: GoldItem, relevant: bool) -> float:
    name = piece if isinstance(piece, str) else piece.id
    if name is not None and name in item.grades:
        return max(0.0, item.grades[name])
    return 1.0 if relevant else 0.0


def rich_of(
    item: GoldItem, pieces: Pieces, chunks: Chunks, options: Options, gold_name: str
) -> Rich | None:
    """What must be known of an item beyond the ids of its evidence; None where that is nothing."""
    negatives, decoy = item.negatives, item.decoy_section
    counted = pieces.relevant[len(pieces.ids) :]
    places = (
        *(anchor for anchor, each in zip(pieces.anchors, counted, strict=True) if each),
        *item.places,
    )
    units = {span.unit for anchor in (*places, *pieces.anchors) for span in anchor.spans}
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
    named = documents_of(item, pieces, chunks)
    if not (pieces.anchors or places or docs or section or negatives or decoy
            or item.must_contain or item.forbidden):  # fmt: skip
        return None
    return Rich(
        ids=tuple(name for name, each in zip(pieces.ids, pieces.relevant, strict=False) if each),
        anchors=pieces.anchors,
        counted=counted,
        places=places,
        docs=docs,
        doc=named[0] if len(named) == 1 else None,
        section=section,
        scope=(section_doc,) if section_doc is not None else named,
        negatives=negatives,
        decoy=decoy,
        must_contain=tuple(fold(each, options) for each in item.must_contain),
        forbidden=tuple(fold(each, options) for each in item.forbidden),
    )


def documents_of(item: GoldItem, pieces: Pieces, chunks: Chunks) -> tuple[str, ...]:
    """The documents that an item names: outright, by places, or by the grammar of its ids."""
    found: dict[str, None] = dict.fromkeys(item.relevant_docs or ())
    found.update(dict.fromkeys(anchor.doc for anchor in (*pieces.anchors, *item.places)))
    for name in pieces.ids:
        doc = chunks[name].doc if name in chunks else doc_of(name)
        if doc is not None:
            found[doc] = None
    if item.anchor_section is not None:
        doc = split_section(item.anchor_section)[0]
        if doc is not None:
            found[doc] = None
    return tuple(found)


def fold(text: str, options: Options) -> str:
    """A text as it is compared with the strings that it must, or must not, contain."""
    composed = unicodedata.normalize("NFC", text)
    return composed.casefold() if options.ignore_case else composed


def gold_bytes(places: Sequence[Anchor]) -> int:
    """How much the places cover, each document by itself."""
    by_doc: dict[str, list[tuple[int, int]]] = {}
    for anchor in places:
        by_doc.setdefault(anchor.doc, []).extend((span.start, span.end) for span in anchor.spans)
    return sum(size(merged(spans)) for spans in by_doc.values())
