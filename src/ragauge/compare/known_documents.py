"""Knowing: what one side of a comparison knows of documents and chunks, under all their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from ragauge.model.chunk import Chunk
from ragauge.model.evidence import ChunkFacts, DocFacts, Evidence
from ragauge.model.payloads import id_number
from ragauge.quotes import normalised


class Side(Struct, frozen=True):
    """One of two runs, as far as it tells what it means by its names.

    carries   bits of `Carries` that all results of a question have; one without any is absent
    chunks    the run's list of chunks
    texts     the full text of documents, where the run knows it; blanks may stand for what it
              does not know
    """

    evidence: Evidence
    carries: Mapping[tuple[str, int | None], int] = {}
    chunks: Mapping[str, Chunk] = {}
    texts: Mapping[str, str] = {}


class Document(NamedTuple):
    """A document as one side knows it. `name` is what its hits call it, by id or by path.

    `seen`: what chunkers it went through is known, or known to be unknown.
    """

    name: str
    ids: tuple[str, ...]
    path: str | None
    hashes: tuple[str, ...]
    text: str | None
    chunkers: tuple[str, ...]
    policies: tuple[str, ...]
    seen: bool


class Library:
    """The documents that one side knows, by every name that it has for them."""

    def __init__(self, side: Side) -> None:
        self.side = side
        self.named, self._chunks = side.evidence.expected, side.chunks
        if side.evidence.negatives:
            self.named = {**side.evidence.negatives, **self.named}
        self.chunkers = side.evidence.chunkers
        self.policies = side.evidence.policies
        self._found: dict[str, Document | None] = {}
        self._texts: dict[str, str] = {}
        self._quoting: dict[str, tuple[str, ...]] = {}

    @cached_property
    def docs(self) -> dict[str, DocFacts | None]:
        """What hits tell of each document, by its id; nothing where only its name is known."""
        found: dict[str, DocFacts | None] = dict.fromkeys(self.side.texts)
        found.update(dict.fromkeys(chunk.doc for chunk in self.side.chunks.values()))
        for facts in self.named.values():
            name = facts.doc or facts.path
            if name is not None:
                found[name] = None
        found.update(self.side.evidence.docs)
        return found

    @cached_property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """The ids of each path that is no id itself."""
        found: dict[str, tuple[str, ...]] = {}
        told = [(name, facts.path) for name, facts in self.side.evidence.docs.items()]
        told += [(facts.doc or "", facts.path) for facts in self.named.values()]
        for name, path in told:
            if path is not None and name and path != name:
                known = found.get(path)
                if known is None:
                    found[path] = (name,)
                elif name not in known:
                    found[path] = tuple(sorted((*known, name)))
        return found

    @cached_property
    def hashes(self) -> dict[str, tuple[str, ...]]:
        """The hashes of each document, by its id."""
        docs = self.side.evidence.docs
        found = {name: facts.hashes for name, facts in docs.items() if facts.hashes}
        for chunk in self.side.chunks.values():
            if chunk.doc_hash is not None:
                known = found.get(chunk.doc, ())
                if chunk.doc_hash not in known:
                    found[chunk.doc] = tuple(sorted((*known, chunk.doc_hash)))
        return found

    def knows(self, name: str) -> bool:
        """Whether a document has this name here."""
        return name in self.docs or name in self.paths

    def find(self, name: str) -> Document | None:
        """The document of that id or path; several ids of one path are versions of it."""
        if name not in self._found:
            self._found[name] = self._make(name) if self.knows(name) else None
        return self._found[name]

    def _make(self, name: str) -> Document:
        ids = self.paths.get(name, ())
        if name in self.docs and name not in ids:
            ids = (name, *ids)
        facts = [found for each in ids if (found := self.docs.get(each)) is not None]
        paths = sorted({found.path for found in facts if found.path is not None})
        texts = self.side.texts
        named = [each for each in (name, *ids, *paths) if each in texts] if texts else []
        return Document(
            name=name,
            ids=ids,
            path=paths[0] if paths else (name if name in self.paths else None),
            hashes=_union([self.hashes.get(each, ()) for each in ids]),
            text=texts[named[0]] if named else None,
            chunkers=_union([found.chunkers for found in facts]),
            policies=_union([found.policies for found in facts]),
            seen=bool(facts),
        )

    @cached_property
    def by_content(self) -> dict[str, set[str]]:
        """The ids of documents by each of their hashes, and by their whole text."""
        found: dict[str, set[str]] = {}
        for name, hashes in self.hashes.items():
            for each in hashes:
                found.setdefault(f"hash {each}", set()).add(name)
        for name, text in self.side.texts.items():
            found.setdefault(f"text {text}", set()).add(name)
        return found

    def like(self, other: Document, elsewhere: Library) -> Document | None:
        """The only document with the content of another side's, and a name that is new there."""
        keys = [f"hash {each}" for each in other.hashes]
        keys += [f"text {other.text}"] if other.text else []
        names = {
            name
            for key in keys
            for name in self.by_content.get(key, ())
            if not elsewhere.knows(name)
        }
        return self.find(names.pop()) if len(names) == 1 else None

    def has(self, doc: Document, quote: str) -> bool:
        """Whether a quote stands in a document; it may where the text is not known."""
        if doc.text is None:
            return True
        if doc.name not in self._texts:
            self._texts[doc.name] = normalised(doc.text)
        return quote in self._texts[doc.name]

    def quoting(self, quote: str) -> tuple[str, ...]:
        """The names of the documents that are known to hold a quote."""
        if quote not in self._quoting:
            self._quoting[quote] = tuple(
                name
                for name in sorted(self.side.texts)
                if (found := self.find(name)) is not None and self.has(found, quote)
            )
        return self._quoting[quote]

    def measures(self, unit: str) -> bool:
        """Whether spans of a unit can be compared with those of the hits here.

        Bytes and characters look alike: where hits have both, neither is safe.
        """
        return unit in self.units and not (
            unit in ("byte", "char") and {"byte", "char"} <= self.units
        )

    @cached_property
    def is_blank(self) -> bool:
        """Whether the run has not shown a single chunk: it can contradict nothing."""
        known, side = self.side.evidence, self.side
        return not (
            self.named
            or known.docs
            or known.chunkers
            or known.policies
            or known.units
            or known.sketch
            or side.chunks
            or side.texts
        )

    @cached_property
    def shown(self) -> frozenset[int]:
        """The numbers of the chunk ids that the run shows with a place or a text: a fair sample."""
        return frozenset(row.id for row in self.side.evidence.sketch)

    def lists_any(self, numbers: Set[int]) -> bool:
        """Whether the list of chunks has an id of one of these numbers."""
        return any(id_number(name) in numbers for name in self.side.chunks)

    @cached_property
    def _by_text(self) -> dict[str, list[Chunk]]:
        found: dict[str, list[Chunk]] = {}
        for chunk in self.side.chunks.values():
            if chunk.text_hash is not None:
                found.setdefault(chunk.text_hash, []).append(chunk)
        return found

    def standing(self, hashed: str, doc: Document | None) -> Chunk | None:
        """The only listed chunk with a text, in a document or else in any; None if there are more.

        The same words at two places may be either, so neither stands for them.
        """
        found = self._by_text.get(hashed, [])
        if doc is not None:
            names = {doc.name, doc.path, *doc.ids}
            found = [chunk for chunk in found if chunk.doc in names]
        return found[0] if len(found) == 1 else None

    @cached_property
    def units(self) -> frozenset[str]:
        """The units of the hits' spans; of the list of chunks where no hit has any."""
        listed = (span.unit for chunk in self.side.chunks.values() for span in chunk.spans)
        return frozenset(self.side.evidence.units or listed)

    def facts(self, name: str) -> ChunkFacts | None:
        """What is known of a chunk, from hits and from the list of chunks."""
        found = self.named.get(name)
        chunk = self._chunks.get(name) if self._chunks else None
        if chunk is None:
            return found
        found = found or ChunkFacts()
        return ChunkFacts(
            doc=found.doc or chunk.doc,
            path=found.path,
            spans=found.spans or chunk.spans,
            text=chunk.text if found.text is None else found.text,
            text_hash=found.text_hash or chunk.text_hash,
        )


def _union(parts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """All entries in one order; mostly there is one part with at most one entry."""
    if len(parts) == 1 and len(parts[0]) < 2:
        return parts[0]
    return tuple(sorted({each for part in parts for each in part}))
