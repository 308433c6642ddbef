"""Placing hits: where a hit stands in the corpus, by its id, its offsets or its text.

Systems name documents by the path that they were loaded from, count characters, or give a text and
nothing else. What is found is written into the hit, so that all that follows sees a place in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ragauge.corpus.place_index import PlaceIndex
from ragauge.ids import doc_of
from ragauge.model.chunk import Chunk
from ragauge.model.trace import Hit, Trace
from ragauge.quotes import normalised
from ragauge.spans import EXACT_UNITS, Span

_MOST_CACHED = 1 << 15
"""Hits that are remembered: a chunk that comes often is looked up once."""


class HitPlacer:
    """Places the hits of traces.

    `texts`: hits that have a place and no text get the one at their place, to be held against
    quotes.
    """

    def __init__(
        self, index: PlaceIndex, chunks: Mapping[str, Chunk], *, texts: bool = False
    ) -> None:
        self.index = index
        self.chunks = chunks
        self.texts = texts
        self._placed: dict[tuple[object, ...], Hit] = {}

    def trace(self, trace: Trace) -> Trace:
        """The trace with its hits placed."""
        hits = tuple([self.hit(hit) for hit in trace.hits])
        return trace if hits == trace.hits else replace(trace, hits=hits)

    def hit(self, hit: Hit) -> Hit:
        """The hit with its place, or with the reason why it has none."""
        if hit.placement is not None:
            return hit
        # Neither a score nor ΔS says where a hit is, and both differ from question to question.
        key = (hit.id, hit.doc, hit.path, hit.spans, hit.text, hit.section)
        placed = self._placed.get(key)
        if placed is None:
            placed = self._place(hit)
            if self.texts and placed.text is None:
                placed = replace(placed, text=self._text(placed))
            if len(self._placed) >= _MOST_CACHED:
                self._placed.clear()
            self._placed[key] = placed
        return replace(
            hit,
            doc=placed.doc,
            path=placed.path,
            text=placed.text,
            spans=placed.spans,
            placement=placed.placement,
        )

    def _place(self, hit: Hit) -> Hit:
        chunk = self.chunks.get(hit.id)
        if chunk is not None and chunk.spans:
            return self._by_id(hit, chunk)
        doc, reason = self._document(hit)
        if doc is not None:
            hit = _in_document(hit, doc)
        if hit.spans and doc is not None:
            if any(span.unit not in EXACT_UNITS for span in hit.spans):
                return replace(hit, placement="offsets")
            spans = self._spans(hit, doc)
            if spans:
                return replace(hit, spans=spans, placement="offsets")
            reason = "offsets-elsewhere"
        if hit.text is not None and hit.text.strip():
            # The text decides where offsets are of another version of the document.
            match = self.index.find(hit.text, doc)
            if match.place is not None:
                place = match.place
                return replace(
                    _in_document(hit, place.doc),
                    spans=(Span(place.start, place.end),),
                    placement="text" if match.whole else "part",
                )
            reason = "ambiguous" if match.ambiguous or reason == "ambiguous" else "text-not-found"
        if doc is None and reason != "ambiguous" and (hit.doc or hit.path):
            # A document that the corpus lacks is a document: gold may name it.
            reason = reason if reason == "text-not-found" else "unknown-document"
            return replace(hit, placement=reason)
        return replace(hit, spans=(), placement=reason or "no-text")

    def _text(self, hit: Hit) -> str | None:
        """The text at the place of a hit; None where it has none in bytes."""
        if hit.doc not in self.index or any(span.unit != "byte" for span in hit.spans):
            return None
        doc = hit.doc or ""
        parts = [self.index.text(doc, span.start, span.end) for span in hit.spans]
        return "\n".join(parts) or None

    def _by_id(self, hit: Hit, chunk: Chunk) -> Hit:
        """A hit whose chunk is known; it may say itself which part of the chunk it is."""
        own = hit.spans if hit.doc in (None, chunk.doc) else ()
        if not own or any(span.unit != "byte" for span in own):
            own = chunk.spans
        return replace(_in_document(hit, chunk.doc), spans=own, placement="id")

    def _document(self, hit: Hit) -> tuple[str | None, str | None]:
        """The document that a hit names, or the reason why there is none."""
        ambiguous = False
        for name in _names(hit):
            match = self.index.names.match(name)
            if match.doc is not None:
                return match.doc, None
            ambiguous = ambiguous or match.ambiguous
        return None, "ambiguous" if ambiguous else None

    def _spans(self, hit: Hit, doc: str) -> tuple[Span, ...]:
        """The offsets of a hit in bytes; none where the document does not have its text there.

        Without a text the unit is believed. With one, what fits it counts: many systems count
        characters and do not say so.
        """
        unit = hit.spans[0].unit
        for counted in dict.fromkeys((unit, *EXACT_UNITS)):
            extents = self._extents(hit.spans, counted, doc)
            if extents is None:
                continue
            if hit.text is None or hit.snippet or not hit.text.strip():
                return tuple(Span(start, end) for start, end in extents) if counted == unit else ()
            text = " ".join(self.index.text(doc, start, end) for start, end in extents)
            if normalised(text) == normalised(hit.text):
                return tuple(Span(start, end) for start, end in extents)
        return ()

    def _extents(self, spans: Sequence[Span], unit: str, doc: str) -> list[tuple[int, int]] | None:
        extents = []
        for span in spans:
            extent: tuple[int, int] | None = (span.start, span.end)
            if unit == "char":
                extent = self.index.to_bytes(doc, span.start, span.end)
            if extent is None or extent[1] > self.index.size(doc):
                return None
            extents.append(extent)
        return extents


def _names(hit: Hit) -> Iterator[str]:
    """Every name that a hit may give its document, the plainest first."""
    for name in (hit.doc, hit.path):
        if name:
            yield name
    if not hit.doc and not hit.path and (doc := doc_of(hit.id)) is not None:
        yield doc


def _in_document(hit: Hit, doc: str) -> Hit:
    """The hit under the corpus's name of its document; its own name stays beside it."""
    if hit.doc == doc:
        return hit
    path = hit.path if hit.doc is None or hit.path == doc else hit.doc
    return replace(hit, doc=doc, path=None if path == doc else path)
