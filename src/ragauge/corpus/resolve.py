"""Resolving: whether the ids and places of gold items, traces and chunks are in a corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ragauge.corpus.hit_placer import HitPlacer
from ragauge.corpus.lookup import CorpusSpot, Lookup, is_hash_of
from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.fields import FieldError
from ragauge.model.chunk import Chunk
from ragauge.model.corpus import Extent
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.trace import Citation, Hit, Trace
from ragauge.quotes import is_quote, normalised
from ragauge.spans import EXACT_UNITS, Span
from ragauge.text import text_hash

_MAX_CACHED = 1 << 18
_UNREPORTED = FieldError("unresolved", "one of many", "only the first problems are told")
_FOREIGN = "if it is a chunk of another chunker, say where those lie with --chunks"


class ResolveReport(Struct, kw_only=True):
    """What was looked up in a corpus so far: how much, and what was not there.

    The first problems are kept, all are counted.
    """

    ids: int = 0
    places: int = 0
    quotes: int = 0
    problems: list[Problem] = []
    problem_count: int = 0

    @property
    def is_full(self) -> bool:
        """Whether further problems are only counted, so that their texts need not be made."""
        return len(self.problems) >= MAX_REPORTED

    def note(self, error: FieldError, place: Place) -> None:
        """Count a problem, and keep it if it is one of the first."""
        self.problem_count += 1
        if not self.is_full:
            self.problems.append(Problem(error.code, error.message, error.hint, place))

    def summary(self) -> str:
        """The counts in words."""
        quotes = f", quotes {self.quotes:,}" if self.quotes else ""
        missing = f"{self.problem_count:,} not found" if self.problem_count else "all found"
        return f"ids {self.ids:,}, places {self.places:,}{quotes}, {missing}"


class _ReferenceCounts(NamedTuple):
    """What a hit or citation adds to the counts; cached, since traces repeat the same hits."""

    ids: int
    places: int
    problems: int


class Resolver:
    """Looks things up in a corpus and, if there is one, in the list of chunks of an index."""

    def __init__(self, lookup: Lookup, chunks: Mapping[str, Chunk] | None) -> None:
        self.lookup = lookup
        self.chunks = chunks
        self.known = frozenset(lookup.blocks) | frozenset(lookup.documents)
        if chunks is not None:
            self.known |= chunks.keys()
        self.seen: dict[object, _ReferenceCounts] = {}
        self.placer: HitPlacer | None = None

    def item(self, item: GoldItem, report: ResolveReport) -> Iterator[FieldError]:
        """What of a gold item is not there; what is looked up is counted."""
        members = [member for group in item.groups for member in group]
        named = [member for member in members if isinstance(member, str)]
        anchors = [member for member in members if isinstance(member, Anchor)]
        yield from self.names((*item.relevant, *item.grades, *named, *item.negatives), report)
        for anchor in dict.fromkeys((*item.anchors, *item.places, *anchors, *item.negative_places)):
            report.places += 1
            report.quotes += anchor.quote is not None
            if anchor.doc:  # else it is found by the words of hits
                yield from _errors_of(self._anchor, anchor, report.is_full)
        for doc in dict.fromkeys(item.relevant_docs or ()):
            report.ids += 1
            yield from _errors_of(self.lookup.document, doc)
        for section in (item.anchor_section, item.decoy_section):
            if section is not None:
                report.ids += 1
                yield from _errors_of(self.lookup.section, section, self._doc_of(item))

    def names(self, names: Iterable[str], report: ResolveReport) -> Iterator[FieldError]:
        """Which of some ids are not there; one that is named twice is looked up once."""
        for name in dict.fromkeys(names):
            report.ids += 1
            yield from _errors_of(self._name, name, report.is_full)

    def _doc_of(self, item: GoldItem) -> str | None:
        """The only document of an item's evidence, in which a section without one is meant."""
        docs = {*(item.relevant_docs or ()), *self._docs_of(item.relevant)}
        docs |= {anchor.doc for anchor in (*item.anchors, *item.places)}
        return next(iter(docs)) if len(docs) == 1 else None

    def _docs_of(self, names: Iterable[str]) -> tuple[str, ...]:
        """The documents that ids are in, or are, as far as they are known."""
        chunks, documents = self.chunks or {}, self.lookup.documents
        blocks = self.lookup.blocks
        entries = (blocks.get(name) or chunks.get(name) or documents.get(name) for name in names)
        return tuple(entry.doc for entry in entries if entry is not None)

    def trace(self, trace: Trace, report: ResolveReport) -> Iterator[FieldError]:
        """What of a trace is not there; an id that stands there twice is two ids."""
        for hit in trace.hits:
            key = (hit.id, hit.doc, hit.path, hit.section, hit.spans, hit.doc_hash, hit.text)
            counts = self.seen.get(key)
            if counts is None or (counts.problems and not report.is_full):
                docs = tuple(doc for doc in (hit.doc, hit.path) if doc is not None)
                counts, errors = self._reference(hit, docs, report.is_full, hashed=hit.doc_hash)
                if errors and self._is_placed(hit):
                    counts, errors = _ReferenceCounts(0, 1, 0), []
                if len(self.seen) >= _MAX_CACHED:
                    self.seen.clear()
                self.seen[key] = counts
            else:
                errors = [_UNREPORTED] * counts.problems
            report.ids += counts.ids
            report.places += counts.places
            yield from errors
        if trace.answer is not None:
            named = {hit.id for hit in trace.hits}
            for cited in trace.answer.listed:
                # What is wrong with a hit is reported there.
                bare = not cited.spans and cited.doc is None and cited.section is None
                if cited.id in named and bare:
                    report.ids += 1
                    continue
                docs = () if cited.doc is None else (cited.doc,)
                counts, errors = self._reference(cited, docs, report.is_full, placed=cited.placed)
                report.ids += counts.ids
                report.places += counts.places
                yield from errors

    def _is_placed(self, hit: Hit) -> bool:
        """Whether a hit that names nothing of the corpus is found there otherwise."""
        if self.placer is None:
            return False
        placement = self.placer.hit(hit).placement
        renamed = hit.doc is not None and hit.doc not in self.lookup.documents
        return placement in ("text", "part") or (placement == "offsets" and renamed)

    def _reference(
        self,
        reference: Hit | Citation,
        docs: tuple[str, ...],
        brief: bool,
        *,
        hashed: str | None = None,
        placed: bool = False,
    ) -> tuple[_ReferenceCounts, list[FieldError]]:
        """Look up a hit or citation by its id, its place, or both, which must fit together."""
        # An index may name its chunks as it likes, if it says where they lie.
        by_place = placed or (self.chunks is None and bool(docs) and bool(reference.spans))
        errors: list[FieldError] = []
        if not by_place or reference.id in self.lookup.blocks:
            errors += _errors_of(self._named, reference.id, docs, brief)
        if docs or reference.spans or reference.section is not None or hashed is not None:
            where = docs or self._docs_of((reference.id,))
            if where:
                errors += _errors_of(self._fits, reference, where, hashed, brief, not errors)
        return _ReferenceCounts(int(not by_place), int(bool(reference.spans)), len(errors)), errors

    def _name(self, name: str, brief: bool) -> None:
        """An id must be a block, a document or a chunk of the list."""
        if name in self.known:
            return
        if brief:
            raise _UNREPORTED
        try:
            self.lookup.block(name)
        except FieldError as error:
            message, hint = f"neither the corpus nor the list of chunks has `{name}`", error.hint
            if self.chunks is None:
                message = error.message
                hint = hint if hint.startswith("did you mean") else _FOREIGN
            raise FieldError(error.code, message, hint) from None

    def _named(self, name: str, docs: tuple[str, ...], brief: bool) -> None:
        """An id must be there, and in the document that is named beside it."""
        self._name(name, brief)
        block = self.lookup.blocks.get(name)
        if block is not None and docs and block.doc not in docs:
            message = f"`{name}` is said to be in `{docs[0]}`, and is in `{block.doc}`"
            hint = "leave the document out, or name the block of that document"
            raise FieldError("unresolved", message, hint)

    def _placed(
        self, docs: tuple[str, ...], spans: Iterable[Span], hashed: str | None, brief: bool
    ) -> list[CorpusSpot]:
        """A document must be there, with its bytes and its hash; it may have a second name."""
        known_docs = [doc for doc in docs if doc in self.lookup.documents]
        if brief and not known_docs:
            raise _UNREPORTED
        doc = self.lookup.document(known_docs[0] if known_docs else docs[0]).doc
        if hashed is not None:
            self.check_hash(doc, hashed)
        return [self.lookup.spot(doc, *self.lookup.in_bytes(doc, span)) for span in spans]

    def _fits(
        self,
        reference: Hit | Citation,
        docs: tuple[str, ...],
        hashed: str | None,
        brief: bool,
        id_is_good: bool,
    ) -> None:
        """A place must be there, in the block that is named beside it and in its section.

        `known`: nothing is wrong with the id, so it may be held against the place.
        """
        spots = self._placed(docs, reference.spans, hashed, brief)
        listed = None if self.chunks is None else self.chunks.get(reference.id)
        block = self.lookup.blocks.get(reference.id)
        own: list[CorpusSpot] = []
        if listed is not None:
            own = self._placed((listed.doc,), listed.spans, None, brief)
        elif block is not None:
            own = [self.lookup.spot_of(block)]
        if id_is_good and own and spots:
            _refuse_elsewhere(reference.id, own, spots, "keep the one that is meant")
        section_of_list = None if listed is None else listed.section
        if reference.section is not None and reference.section != section_of_list:
            doc = next((doc for doc in docs if doc in self.lookup.documents), None)
            self._in_section(reference.section, doc, spots or own)

    def _in_section(self, name: str, doc: str | None, spots: Sequence[CorpusSpot]) -> None:
        """A section must be there, and have some of the text: itself, or in one below it."""
        section = self.lookup.section(name, doc)
        if spots and not any(_shares(section.doc, section.subtree, spot) for spot in spots):
            raise FieldError(
                "unresolved",
                f"the section `{section.doc}#{section.id}` has none of the bytes "
                f"{spots[0].start} to {spots[-1].end} of `{spots[0].doc}`",
                f"they are in `{spots[0].section}`",
            )

    def _anchor(self, anchor: Anchor, brief: bool) -> None:
        """The place of evidence must be there, in its section and with its quote.

        Its id may be of a chunking that is long gone; one of a block must be of that very text.
        """
        spots = self._placed((anchor.doc,), anchor.spans, None, brief)
        block = self.lookup.blocks.get(anchor.id or "")
        if block is not None:
            hint = "keep the one that is meant; `gold pin --repin` follows a quote"
            _refuse_elsewhere(block.id, [self.lookup.spot_of(block)], spots, hint)
        if anchor.section is not None:
            self._in_section(anchor.section, anchor.doc, spots)
        exact = all(span.unit in EXACT_UNITS for span in anchor.spans)
        if anchor.quote is not None and spots and not self._says(spots, anchor.quote, exact=exact):
            if brief:
                raise _UNREPORTED
            self.lookup.check_quote(spots[0], anchor.quote)

    def _says(self, spots: Sequence[CorpusSpot], quote: str, *, exact: bool) -> bool:
        text = " ".join(map(self.lookup.quote, spots))
        return is_quote(text, quote) if exact else normalised(text) == normalised(quote)

    def check_quote(self, anchor: Anchor) -> None:
        """The words of a quote must stand at its place; a blank too many changes no score."""
        spots = self._placed((anchor.doc,), anchor.spans, None, brief=False)
        if anchor.quote is not None and not self._says(spots, anchor.quote, exact=False):
            self.lookup.check_quote(spots[0], anchor.quote, exact=False)

    def check_hash(self, doc: str, digest: str) -> None:
        """Refuse the hash of another text; a hash may be cut short, and be of the source file."""
        document = self.lookup.document(doc)
        if not is_hash_of(document, digest):
            raise FieldError(
                "unresolved",
                f"`{doc}` has the hash {document.hash[:16]}... in the corpus, not `{digest}`",
                "the document is another version, or its hash was made otherwise (sha256 of "
                "the text)",
            )

    def chunk(self, name: str, chunk: Chunk) -> Chunk:
        """A chunk of a list with its section and type; its place must be in the corpus."""
        spots = self._placed((chunk.doc,), chunk.spans, chunk.doc_hash, False)
        block = self.lookup.blocks.get(name)
        if block is not None and [(spot.start, spot.end) for spot in spots] != [block.span]:
            raise FieldError(
                "unresolved",
                f"the corpus has the block `{name}` at {block.span[0]} to {block.span[1]}, and "
                "not where the list has it",
                "the list was made from another version of the document: make it again",
            )
        if any(span.unit == "char" for span in chunk.spans):
            chunk = replace(chunk, spans=tuple(Span(spot.start, spot.end) for spot in spots))
        if not spots or (chunk.section is not None and chunk.type is not None):
            return chunk
        first = spots[0]
        return replace(
            chunk,
            section=chunk.section or self.lookup.section_with_most(spots),
            type=chunk.type or self.lookup.type_at(first.doc, first.start, first.end),
        )


def block_chunks(lookup: Lookup) -> dict[str, Chunk]:
    """The blocks of a corpus as a list of chunks; every text is read, and so is checked."""
    chunks = {}
    for document in lookup.corpus.documents:
        text = lookup.text(document.doc)
        for block in lookup.blocks_by_doc[document.doc]:
            start, end = block.span
            chunks[block.id] = Chunk(
                block.doc,
                (Span(start, end),),
                block.section,
                block.type,
                text_hash=text_hash(text[start:end].decode()),
                doc_hash=document.hash,
            )
    return chunks


def refuse_moved(lookup: Lookup, items: Iterable[GoldItem], name: str) -> None:
    """Raise where a quote of gold is not at its place in the corpus that is scored with.

    Documents that the corpus does not have are passed over: `validate` reports them.
    """
    report = ResolveReport()
    resolver = Resolver(lookup, None)
    for item in items:
        for anchor in (*item.anchors, *item.places, *item.negative_places):
            if anchor.quote is None or not anchor.spans or anchor.doc not in lookup.documents:
                continue
            for error in _errors_of(resolver.check_quote, anchor):
                report.note(error, Place(name, item.line, item.qid))
    if report.problems:
        raise RagaugeError(report.problems, total=report.problem_count)


def _refuse_elsewhere(
    name: str, own: Sequence[CorpusSpot], claimed: Sequence[CorpusSpot], hint: str
) -> None:
    """Refuse a place that has not one byte of the chunk that is named beside it."""
    if not claimed or any(
        _shares(one.doc, (one.start, one.end), other) for one in own for other in claimed
    ):
        return
    raise FieldError(
        "unresolved",
        f"`{name}` has the bytes {own[0].start} to {own[-1].end} of `{own[0].doc}`, and its place "
        f"is said to be {claimed[0].start} to {claimed[-1].end}",
        hint,
    )


def _shares(doc: str, extent: Extent, spot: CorpusSpot) -> bool:
    return doc == spot.doc and extent[0] < spot.end and spot.start < extent[1]


def _errors_of(look: Callable[..., object], *arguments: object) -> Iterator[FieldError]:
    try:
        look(*arguments)
    except FieldError as error:
        yield error
