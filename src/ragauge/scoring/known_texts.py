"""Known texts: what stands in hits, chunks, citations and evidence, and where that lies.

A text is the one that a trace or a gold item has with it, that of the list of chunks, or what the
corpus has at the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from ragauge.corpus.chunk_list import load_chunks
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.corpus.resolve import block_chunks
from ragauge.files.fields import FieldError
from ragauge.files.open import opened
from ragauge.ids import doc_of, section_of
from ragauge.model.chunk import Chunk
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.options import Options
from ragauge.model.trace import Citation, Hit, Trace
from ragauge.scoring.evidence_pieces import EvidencePieces, pieces_of
from ragauge.spans import Span

TextOfId = Callable[[str], str | None]
"""Gives the text of an id."""


class ChunkPlace(NamedTuple):
    """Where a chunk lies, as far as it is known: its document may have several names."""

    docs: tuple[str, ...] = ()
    section: str | None = None
    spans: tuple[Span, ...] = ()


class TextFinder:
    """Finds the text of a hit, a citation or a place: its own, a chunk's, or the corpus's."""

    def __init__(self, chunks: Mapping[str, Chunk], lookup: Lookup | None) -> None:
        self.chunks = chunks
        self.lookup = lookup

    def of_hit(self, hit: Hit) -> str | None:
        """The text of a hit."""
        if hit.text is not None:
            return hit.text
        text = self.of_id(hit.id)
        return text if text is not None else self.at(spot_of_hit(hit))

    def of_id(self, name: str) -> str | None:
        """The text of a chunk."""
        chunk = self.chunks.get(name)
        if chunk is None:
            return None
        return (
            chunk.text
            if chunk.text is not None
            else self.at(ChunkPlace((chunk.doc,), None, chunk.spans))
        )

    def of_citation(self, cited: Citation) -> str | None:
        """The text of a citation that is no hit: of the chunk that it names, or at its place."""
        text = self.of_id(cited.id)
        docs = _known_names(cited.doc, doc_of(cited.id))
        return text if text is not None else self.at(ChunkPlace(docs, None, cited.spans))

    def of_evidence(self, item: GoldItem, named: TextOfId) -> list[str | None]:
        """The text of each piece of an item's evidence, None for one that has none.

        Where no piece has a text, the known places of the evidence are taken.
        """
        pieces = evidence_of(item)
        every: list[str | Anchor] = [*pieces.ids, *pieces.anchors]
        counted = zip(every, pieces.relevant, strict=True)
        texts = [self.of_piece(piece, named) for piece, counts in counted if counts]
        if any(texts) or not item.places:
            return texts
        return [self.of_piece(place, named) for place in item.places]

    def of_piece(self, piece: str | Anchor, named: TextOfId) -> str | None:
        """The text of a piece: of its id, its quote, or what the corpus has at its place."""
        if isinstance(piece, str):
            return named(piece)
        if piece.quote is not None and piece.quote.strip():
            return piece.quote
        text = self.at(ChunkPlace((piece.doc,), None, piece.spans))
        return named(piece.id) if text is None and piece.id is not None else text

    def at(self, spot: ChunkPlace) -> str | None:
        """What the corpus has at a place; None where it does not have all of it."""
        lookup = self.lookup
        doc = self._document(spot.docs)
        if lookup is None or doc is None or not spot.spans:
            return None
        text = lookup.text(doc)
        try:
            extents = [lookup.in_bytes(doc, span) for span in spot.spans]
        except FieldError:
            return None
        if any(end > len(text) for _, end in extents):
            return None
        return "\n".join(text[start:end].decode("utf-8", "ignore") for start, end in extents)

    def in_bytes(self, spot: ChunkPlace) -> ChunkPlace:
        """The same place in bytes, where the corpus can tell them."""
        lookup, doc = self.lookup, self._document(spot.docs)
        if lookup is None or doc is None:
            return spot
        try:
            extents = [lookup.in_bytes(doc, span) for span in spot.spans]
        except FieldError:
            return spot
        return spot._replace(spans=tuple(Span(start, end) for start, end in extents))

    def _document(self, docs: Iterable[str]) -> str | None:
        if self.lookup is None:
            return None
        return next((doc for doc in docs if doc in self.lookup.documents), None)


class TextsById:
    """The texts that are known by id: of hits, of the list of chunks, and of the corpus."""

    def __init__(self, texts: TextFinder, traces: Iterable[Trace]) -> None:
        self.texts = texts
        self.seen: dict[str, Hit] = {}
        for trace in traces:
            for hit in trace.hits:
                if hit.text is not None and hit.text.strip():
                    self.seen.setdefault(hit.id, hit)

    def of(self, name: str) -> str | None:
        """The text of an id, None if it is not known or empty."""
        hit = self.seen.get(name)
        return _said(self.texts.of_id(name) if hit is None else hit.text)

    def of_hit(self, hit: Hit) -> str | None:
        """The text of a hit: its own, that of its id, or that of its place."""
        return _said(hit.text) or self.of(hit.id) or _said(self.texts.of_hit(hit))

    def evidence(self, item: GoldItem) -> list[str | None]:
        """The text of each piece of an item's evidence, None for one that has none."""
        return [_said(text) for text in self.texts.of_evidence(item, self.of)]

    def negatives(self, item: GoldItem) -> list[str | None]:
        """The text of each hard negative of an item, None for one that has none."""
        every: tuple[str | Anchor, ...] = (*item.negatives, *item.negative_places)
        return [_said(self.texts.of_piece(piece, self.of)) for piece in every]

    def names(self) -> list[str]:
        """All ids that may have a text, in order."""
        return sorted({*self.seen, *self.texts.chunks})

    def spot(self, name: str) -> ChunkPlace:
        """Where the chunk of an id lies, in bytes where the corpus can tell them."""
        chunk, hit = self.texts.chunks.get(name), self.seen.get(name)
        if chunk is not None:
            place = ChunkPlace(
                _known_names(chunk.doc), chunk.section or section_of(name), chunk.spans
            )
        elif hit is not None:
            place = spot_of_hit(hit)
        else:
            place = ChunkPlace(_known_names(doc_of(name)), section_of(name))
        return self.texts.in_bytes(place)


def spot_of_hit(hit: Hit) -> ChunkPlace:
    """Where a hit says that it lies."""
    docs = _known_names(hit.doc, hit.path) or _known_names(doc_of(hit.id))
    return ChunkPlace(docs, hit.section or section_of(hit.id), hit.spans)


def _known_names(*docs: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(doc for doc in docs if doc))


def _said(text: str | None) -> str | None:
    return text if text is not None and text.strip() else None


def evidence_of(item: GoldItem) -> EvidencePieces:
    """The pieces of an item's evidence as it names them, by id or by place."""
    return pieces_of(item, {}, Options())


def known_texts(stack: ExitStack, chunks: str | None, corpus: str | None) -> TextFinder:
    """The texts of a list of chunks and of a corpus, where they are named."""
    lookup = None if corpus is None else Lookup(read_corpus(corpus))
    listed = {} if lookup is None else block_chunks(lookup)
    if chunks is not None:
        listed |= load_chunks(stack.enter_context(opened(chunks)))
    return TextFinder(listed, lookup)


def first_of(texts: Sequence[str | None]) -> str | None:
    """The first text that there is."""
    return next((text for text in texts if text), None)
