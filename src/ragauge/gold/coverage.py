"""What the evidence of gold items reaches: documents, sections and types, with a corpus or without.

Without a corpus only what ids and anchors say of themselves is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import Struct

from ragauge.corpus.lookup import Lookup
from ragauge.files.fields import FieldError
from ragauge.ids import parts_of, split_section
from ragauge.model.chunk import Chunk
from ragauge.model.gold import Anchor, GoldItem
from ragauge.spans import Span, share_half

SectionRef = tuple[str | None, str | None]
"""A document and a section in it, as far as they are known."""

COVERAGE = 0.80
"""The share of a corpus's sections that questions should reach; only those with blocks count."""


class Reach(Struct, frozen=True, kw_only=True):
    """What one item reaches; `places` are the bytes of its evidence by document."""

    sections: tuple[SectionRef, ...] = ()
    docs: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    places: tuple[tuple[str, Span], ...] = ()


class SectionCoverage(Struct, frozen=True, kw_only=True):
    """How much of a corpus the questions reach; only sections that have text are counted."""

    sections: int
    sections_reached: int
    docs: int
    docs_reached: int
    blocks: dict[str, int]

    @property
    def share(self) -> float | None:
        """The share of sections that are reached."""
        return self.sections_reached / self.sections if self.sections else None


class ReachFinder:
    """Finds what items reach in a corpus and a list of chunks, as far as there are any."""

    def __init__(self, lookup: Lookup | None, chunks: Mapping[str, Chunk]) -> None:
        self.lookup = lookup
        self.chunks = chunks

    def reach(self, item: GoldItem) -> Reach:
        """What an item reaches. What cannot be found reaches nothing; other rules report it."""
        sections: dict[SectionRef, None] = {}
        types: dict[str, None] = {}
        places: dict[tuple[str, Span], None] = {}
        for entry in (*evidence_of(item), *item.places):
            name = entry if isinstance(entry, str) else entry.id
            for doc, span in self.spots(entry):
                assert self.lookup is not None  # there are no spots without it
                places[doc, span] = None
                for block in self.lookup.touched(doc, span.start, span.end):
                    sections[doc, block.section] = None
                    types[block.type] = None
            section, kind_named = self._own_ref(entry)
            covered = any(_covers_ref(other, section) for other in sections)
            if section != (None, None) and not covered:
                sections[section] = None
            if kind_named is not None and (self.lookup is None or name not in self.lookup.blocks):
                types[kind_named] = None
        docs = {doc: None for doc, _ in sections if doc is not None}
        docs.update(dict.fromkeys(item.relevant_docs or ()))
        if item.anchor_section is not None:
            section = self._section(item.anchor_section, docs)
            sections = {section: None, **sections}
            if section[0] is not None:
                docs[section[0]] = None
        return Reach(
            sections=tuple(sections),
            docs=tuple(docs),
            types=(item.type,) if item.type is not None else tuple(types),
            places=tuple(places),
        )

    def section_ref(self, name: str) -> SectionRef:
        """Where an id lies: by the corpus, the list of chunks, or its grammar."""
        return self._own_ref(name)[0]

    def spots(self, entry: str | Anchor) -> Iterable[tuple[str, Span]]:
        """The bytes of an id or an anchor in the corpus; none where it is not there."""
        if self.lookup is None:
            return []
        if isinstance(entry, str):
            if entry in self.lookup.blocks:
                block = self.lookup.blocks[entry]
                return [(block.doc, Span(*block.span))]
            if entry not in self.chunks:
                return []
            doc, spans = self.chunks[entry].doc, self.chunks[entry].spans
        else:
            doc, spans = entry.doc, entry.spans
        places = []
        for span in spans:
            try:
                start, end = self.lookup.in_bytes(doc, span)
                self.lookup.spot(doc, start, end)
            except FieldError:
                continue
            places.append((doc, Span(start, end)))
        return places

    def _own_ref(self, entry: str | Anchor) -> tuple[SectionRef, str | None]:
        """The section and type that an id or an anchor states itself, without the corpus text."""
        name = entry if isinstance(entry, str) else entry.id
        doc = section = kind = None
        if name is not None:
            doc, section, kind = parts_of(name)
            if self.lookup is not None and name in self.lookup.blocks:
                block = self.lookup.blocks[name]
                doc, section, kind = block.doc, block.section, block.type
            elif self.lookup is not None and name in self.lookup.documents:
                doc, section = name, None
            elif name in self.chunks:
                chunk = self.chunks[name]
                doc, section = chunk.doc, chunk.section or section
                kind = chunk.type or kind
        if isinstance(entry, Anchor):
            doc, section = entry.doc, entry.section or section
        return (doc, section), kind

    def _section(self, name: str, docs: Iterable[str]) -> SectionRef:
        """The section of that name, in the only document that the item is about."""
        doc, section = split_section(name)
        doc_names = list(docs)
        if doc is None and len(doc_names) == 1:
            doc = doc_names[0]
        if self.lookup is not None:
            with suppress(FieldError):
                match = self.lookup.section(section, doc)
                return match.doc, match.id
        return doc, section


def evidence_of(item: GoldItem) -> Iterator[str | Anchor]:
    """All that an item names as evidence: ids and places."""
    yield from item.relevant
    yield from item.anchors
    for group in item.groups:
        yield from group
    yield from (name for name, grade in item.grades.items() if grade > 0)


def coverage_of(lookup: Lookup, reaches: Iterable[Reach]) -> SectionCoverage:
    """How much of a corpus some items reach together."""
    sections = {(block.doc, block.section) for block in lookup.corpus.blocks}
    blocks = Counter(block.type for block in lookup.corpus.blocks)
    reached: set[SectionRef] = set()
    docs: set[str] = set()
    for reach in reaches:
        reached.update(reach.sections)
        docs.update(reach.docs)
    return SectionCoverage(
        sections=len(sections),
        sections_reached=sum(section in reached for section in sections),
        docs=len(lookup.documents),
        docs_reached=sum(doc in docs for doc in lookup.documents),
        blocks=dict(sorted(blocks.items())),
    )


def coverage_json(coverage: SectionCoverage | None) -> dict[str, Any] | None:
    """The coverage as a document."""
    if coverage is None:
        return None
    return {
        "sections": coverage.sections,
        "sections_reached": coverage.sections_reached,
        "share": None if coverage.share is None else round(coverage.share, 4),
        "target": COVERAGE,
        "documents": coverage.docs,
        "documents_reached": coverage.docs_reached,
    }


def same_place(one: Iterable[tuple[str, Span]], other: Iterable[tuple[str, Span]]) -> bool:
    """Whether two places share half of the shorter."""
    theirs = list(other)
    return any(doc == also and share_half([a], [b]) for doc, a in one for also, b in theirs)


def _covers_ref(full: SectionRef, partial: SectionRef) -> bool:
    """Whether one reference says all that a partial one says, and nothing else."""
    return partial[0] in (None, full[0]) and partial[1] in (None, full[1])
