"""Redirects: where an id, a section, a document or bytes of a corpus are in its next version."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from ragauge.ids import section_path
from ragauge.model.corpus import Extent
from ragauge.model.migration import MapRow, MigrationMap, NewPlace

_TOUCHING = 4  # bytes that may come between two blocks that follow each other: two line ends


class NewSpan(Struct, frozen=True):
    """Bytes of the new corpus, and the block that they lie in, if they lie in one."""

    doc: str
    span: Extent
    block: str | None = None


class Redirected(Struct, frozen=True):
    """Where bytes went: in reading order, how much of them is there, and whether nothing changed.

    `share` is of the bytes that are in blocks and headings; what is between them is no text.
    """

    places: tuple[NewSpan, ...]
    share: float
    exact: bool


class _Piece(Struct, frozen=True):
    """Old bytes and new ones: the same (`exact`), the same letters (`kept`), or a replacement."""

    old: Extent
    new: Extent
    doc: str
    block: str | None
    exact: bool
    kept: bool = True


class Redirects:
    """A migration map with its rows by id, and the pieces of a document in order once asked for."""

    def __init__(self, migration: MigrationMap) -> None:
        self.header = migration.header
        self.blocks: dict[str, MapRow] = {}
        self.sections: dict[str, MapRow] = {}
        self.documents: dict[str, MapRow] = {}
        tables = {"block": self.blocks, "section": self.sections, "document": self.documents}
        self._rows: dict[str, list[MapRow]] = {}
        for row in migration.rows:
            tables[row.of][row.old.id] = row
            if row.of != "document":
                self._rows.setdefault(row.old.doc, []).append(row)
        self._pieces: dict[str, tuple[list[_Piece], list[Extent]]] = {}

    def find(self, name: str) -> MapRow | None:
        """The row of a block, a section (`doc#S.1.2`) or a document, by its old id."""
        return self.blocks.get(name) or self.sections.get(name) or self.documents.get(name)

    def section(self, doc: str, section: str) -> MapRow | None:
        """The row of a section, whether it is written `S.1.2` or `1.2`."""
        steps = section_path(section)
        return self.sections.get(f"{doc}#{'.'.join(['S', *map(str, steps)])}")

    def unchanged(self, doc: str) -> str | None:
        """The new name of a document whose text is the same to the byte, or None."""
        row = self.documents.get(doc)
        if row is None or len(row.new) != 1 or row.new[0].hash != row.old.hash:
            return None
        return row.new[0].doc

    def span(self, doc: str, start: int, end: int) -> Redirected | None:
        """Where the bytes of a document went; None if no row is about the document."""
        row = self.documents.get(doc)
        if row is None:
            return None
        name = self.unchanged(doc)
        if name is not None:
            return Redirected((NewSpan(name, (start, end)),), 1.0, exact=True)
        pieces, texts = self._pieces_of(doc)
        whole = sum(_shared(extent, (start, end)) for extent in _meeting(texts, start, end))
        met = [
            piece
            for piece in pieces[_first(pieces, start) :]
            if _shared(piece.old, (start, end)) and piece.old[0] < end
        ]
        kept_bytes = sum(_shared(piece.old, (start, end)) for piece in met if piece.kept)
        if not kept_bytes:
            return Redirected((), 0.0, exact=False)
        places = _join_neighbours([(_clip(piece, start, end), piece) for piece in met], end - start)
        exact = len(met) == 1 and met[0].exact and kept_bytes == end - start
        # Pieces end with their blocks, so text over a heading is never one exact piece. The row of
        # the document knows what went on unchanged over headings and blocks.
        unbroken = None if exact else _unbroken(row, start, end)
        if unbroken is not None:
            block = places[0].block if len(places) == 1 else None
            return Redirected((replace(unbroken, block=block),), 1.0, exact=True)
        return Redirected(tuple(places), min(1.0, kept_bytes / whole) if whole else 0.0, exact)

    def held(self, row: MapRow, place: NewPlace) -> Redirected:
        """Which bytes of one of its new blocks are those of an old block.

        A block that others were merged into holds their text as well, which is not meant.
        """
        start, end = row.old.span
        pieces = sorted(_pieces(row.old.span, place), key=lambda piece: (piece.old, piece.new))
        places = _join_neighbours([(piece.new, piece) for piece in pieces], end - start)
        exact = len(pieces) == 1 and pieces[0].exact and pieces[0].old == row.old.span
        kept_bytes = sum(piece.old[1] - piece.old[0] for piece in pieces if piece.kept)
        return Redirected(tuple(places), min(1.0, kept_bytes / max(1, end - start)), exact)

    def _pieces_of(self, doc: str) -> tuple[list[_Piece], list[Extent]]:
        """The kept pieces of a document and its text, both in order."""
        if doc not in self._pieces:
            pieces: list[_Piece] = []
            texts: list[Extent] = []
            for row in self._rows.get(doc, []):
                if row.of == "block":
                    texts.append(row.old.span)
                    for place in row.new:
                        pieces += _pieces(row.old.span, place)
                elif row.old.heading is not None:
                    old, there = row.old.heading, row.new[0] if row.new else None
                    texts.append(old)
                    if there is not None and there.heading is not None:
                        pieces.append(_Piece(old, there.heading, there.doc, None, exact=False))
            pieces.sort(key=lambda piece: (piece.old, piece.doc, piece.new))
            self._pieces[doc] = pieces, sorted(texts)
        return self._pieces[doc]


def _unbroken(row: MapRow, start: int, end: int) -> NewSpan | None:
    """The bytes of a document where all of them stand as they stood, whatever they cross."""
    for place in row.new:
        runs = place.runs or ()
        position = bisect_right(runs, start, key=lambda run: run[0]) - 1
        if position >= 0 and len(runs[position]) == 3:
            first, there, size = runs[position]
            if end <= first + size:
                return NewSpan(place.doc, (start - first + there, end - first + there))
    return None


def _pieces(old: Extent, place: NewPlace) -> Iterable[_Piece]:
    start, size = place.span[0], old[1] - old[0]
    for run in ((old[0], start, size),) if place.runs is None else place.runs:
        if len(run) == 3:
            before, after = (run[0], run[0] + run[2]), (run[1], run[1] + run[2])
        else:
            before, after = (run[0], run[1]), (run[2], run[3])
        yield _Piece(before, after, place.doc, place.id, len(run) == 3, len(run) < 5)


def _first(pieces: list[_Piece], start: int) -> int:
    """The first piece that may meet a span; the same old bytes may be in several pieces."""
    position = bisect_right(pieces, start, key=lambda piece: piece.old[0])
    while position and pieces[position - 1].old[1] > start:
        position -= 1
    return position


def _meeting(texts: list[Extent], start: int, end: int) -> Iterable[Extent]:
    position = max(0, bisect_right(texts, start, key=lambda text: text[0]) - 1)
    while position < len(texts) and texts[position][0] < end:
        yield texts[position]
        position += 1


def _shared(one: Extent, other: Extent) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def _clip(piece: _Piece, start: int, end: int) -> Extent:
    """The new bytes of the part of a piece that lies in a span; of other letters all of them."""
    if not piece.exact:
        return piece.new  # which of its letters are meant cannot be counted off
    before, behind = max(0, start - piece.old[0]), max(0, piece.old[1] - end)
    return piece.new[0] + before, piece.new[1] - behind


def _join_neighbours(parts: list[tuple[Extent, _Piece]], length: int) -> list[NewSpan]:
    """Make one span of neighbours in order, unless much that is new is between them.

    In one block the text between two kept pieces is what replaced the old text there; it may be
    longer by as much as the whole span was long. Two blocks are joined where they still follow
    each other.
    """
    places: list[NewSpan] = []
    last: _Piece | None = None
    for span, piece in parts:
        if last is not None and piece.doc == last.doc:
            gap, before = span[0] - places[-1].span[1], max(0, piece.old[0] - last.old[1])
            within = piece.block is not None and piece.block == last.block
            if 0 <= gap <= before + (length if within else _TOUCHING):
                block = places[-1].block if piece.block == places[-1].block else None
                places[-1] = NewSpan(piece.doc, (places[-1].span[0], span[1]), block)
                last = piece
                continue
        places.append(NewSpan(piece.doc, span, piece.block))
        last = piece
    return places
