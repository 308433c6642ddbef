"""Known documents: what one run of a comparison knows of documents and chunks, by all their names.

Nothing here looks at the other run; `same_documents` holds two of these against each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from typing import NamedTuple

from ragauge.model.chunk import Chunk
from ragauge.model.evidence import ChunkFacts, DocFacts, Evidence
from ragauge.model.payloads import id_number
from ragauge.quotes import normalised


class KnownDocument(NamedTuple):
    """A document as one run knows it. `name` is what its hits call it, by id or by path.

    `seen`: hits of it were seen, so that its chunkers are known, or known to be unrecorded.
    """

    name: str
    ids: tuple[str, ...]
    path: str | None
    hashes: tuple[str, ...]
    text: str | None
    chunkers: tuple[str, ...]
    policies: tuple[str, ...]
    seen: bool


class KnownDocuments:
    """What a run knows, from the evidence that is stored with it and from its list of chunks.

    carries   bits of `Carries` that all results of a question have; a question without results is
              absent
    chunks    the run's list of chunks
    texts     the full text of documents, where the run knows it; blanks may stand for what it
              does not know
    """

    def __init__(
        self,
        evidence: Evidence,
        carries: Mapping[tuple[str, int | None], int] | None = None,
        chunks: Mapping[str, Chunk] | None = None,
        texts: Mapping[str, str] | None = None,
    ) -> None:
        self.evidence = evidence
        self.carries = carries or {}
        self.chunks = chunks or {}
        self.texts = texts or {}
        self.chunkers = evidence.chunkers
        self.policies = evidence.policies
        # Evidence wins where gold names a chunk as both: it was gathered with more care.
        self.named = evidence.expected
        if evidence.negatives:
            self.named = {**evidence.negatives, **evidence.expected}
        self._by_name: dict[str, KnownDocument | None] = {}
        self._normalised_texts: dict[str, str] = {}
        self._quoted_in: dict[str, tuple[str, ...]] = {}

    @cached_property
    def is_empty(self) -> bool:
        """Whether the run has not shown a single chunk: it can contradict nothing."""
        evidence = self.evidence
        return not (
            self.named
            or evidence.docs
            or evidence.chunkers
            or evidence.policies
            or evidence.units
            or evidence.sketch
            or self.chunks
            or self.texts
        )

    # --- documents ---

    @cached_property
    def docs(self) -> dict[str, DocFacts | None]:
        """What hits tell of each document, by its id; None where only its name is known."""
        docs: dict[str, DocFacts | None] = dict.fromkeys(self.texts)
        docs.update(dict.fromkeys(chunk.doc for chunk in self.chunks.values()))
        for facts in self.named.values():
            name = facts.doc or facts.path
            if name is not None:
                docs[name] = None
        docs.update(self.evidence.docs)  # last: the only source that says more than a name
        return docs

    @cached_property
    def paths(self) -> dict[str, tuple[str, ...]]:
        """The ids of each path that is no id itself."""
        ids_by_path: dict[str, tuple[str, ...]] = {}
        located = [(name, facts.path) for name, facts in self.evidence.docs.items()]
        located += [(facts.doc or "", facts.path) for facts in self.named.values()]
        for name, path in located:
            if path is not None and name and path != name:
                ids = ids_by_path.get(path)
                if ids is None:
                    ids_by_path[path] = (name,)
                elif name not in ids:
                    ids_by_path[path] = tuple(sorted((*ids, name)))
        return ids_by_path

    @cached_property
    def hashes(self) -> dict[str, tuple[str, ...]]:
        """The hashes of each document, by its id."""
        docs = self.evidence.docs
        hashes = {name: facts.hashes for name, facts in docs.items() if facts.hashes}
        for chunk in self.chunks.values():
            if chunk.doc_hash is not None:
                of_doc = hashes.get(chunk.doc, ())
                if chunk.doc_hash not in of_doc:
                    hashes[chunk.doc] = tuple(sorted((*of_doc, chunk.doc_hash)))
        return hashes

    def knows(self, name: str) -> bool:
        """Whether a document has this name here."""
        return name in self.docs or name in self.paths

    def find(self, name: str) -> KnownDocument | None:
        """The document of that id or path; several ids of one path are versions of it."""
        if name not in self._by_name:
            self._by_name[name] = self._document(name) if self.knows(name) else None
        return self._by_name[name]

    def _document(self, name: str) -> KnownDocument:
        ids = self.paths.get(name, ())
        if name in self.docs and name not in ids:
            ids = (name, *ids)
        facts_of_ids = [facts for doc_id in ids if (facts := self.docs.get(doc_id)) is not None]
        paths = sorted({facts.path for facts in facts_of_ids if facts.path is not None})
        with_text = [alias for alias in (name, *ids, *paths) if alias in self.texts]
        return KnownDocument(
            name=name,
            ids=ids,
            path=paths[0] if paths else (name if name in self.paths else None),
            hashes=_union([self.hashes.get(doc_id, ()) for doc_id in ids]),
            text=self.texts[with_text[0]] if with_text else None,
            chunkers=_union([facts.chunkers for facts in facts_of_ids]),
            policies=_union([facts.policies for facts in facts_of_ids]),
            seen=bool(facts_of_ids),
        )

    @cached_property
    def _names_by_content(self) -> dict[str, set[str]]:
        """The ids of documents by each of their hashes, and by their whole text."""
        names: dict[str, set[str]] = {}
        for name, hashes in self.hashes.items():
            for content_hash in hashes:
                names.setdefault(f"hash {content_hash}", set()).add(name)
        for name, text in self.texts.items():
            names.setdefault(f"text {text}", set()).add(name)
        return names

    def find_by_content(self, theirs: KnownDocument, other: KnownDocuments) -> KnownDocument | None:
        """The only document with the content of one of the other run's, under a new name.

        A name that the other run knows as well is another document there: a copy, not this one
        renamed. Two candidates are copies of each other, and neither can be preferred.
        """
        contents = [f"hash {content_hash}" for content_hash in theirs.hashes]
        contents += [f"text {theirs.text}"] if theirs.text else []
        names = {
            name
            for content in contents
            for name in self._names_by_content.get(content, ())
            if not other.knows(name)
        }
        return self.find(names.pop()) if len(names) == 1 else None

    # --- quotes ---

    def may_quote(self, doc: KnownDocument, quote: str) -> bool:
        """Whether a quote stands in a document; it may where the text is not known."""
        if doc.text is None:
            return True
        if doc.name not in self._normalised_texts:
            self._normalised_texts[doc.name] = normalised(doc.text)
        return quote in self._normalised_texts[doc.name]

    def quoted_in(self, doc: KnownDocument | None, quote: str) -> str | None:
        """The document to look for a quote in; `""` for any, None if it cannot be told."""
        if doc is not None:
            return doc.name if self.may_quote(doc, quote) else None
        if not self.texts:
            return ""
        names = self._documents_quoting(quote)
        return names[0] if len(names) == 1 else None

    def _documents_quoting(self, quote: str) -> tuple[str, ...]:
        """The names of the documents that are known to hold a quote."""
        if quote not in self._quoted_in:
            self._quoted_in[quote] = tuple(
                name
                for name in sorted(self.texts)
                if (doc := self.find(name)) is not None and self.may_quote(doc, quote)
            )
        return self._quoted_in[quote]

    # --- chunks ---

    def chunk_facts(self, chunk_id: str) -> ChunkFacts | None:
        """What is known of a chunk, from hits and from the list of chunks; hits come first."""
        facts = self.named.get(chunk_id)
        chunk = self.chunks.get(chunk_id) if self.chunks else None
        if chunk is None:
            return facts
        facts = facts or ChunkFacts()
        return ChunkFacts(
            doc=facts.doc or chunk.doc,
            path=facts.path,
            spans=facts.spans or chunk.spans,
            text=chunk.text if facts.text is None else facts.text,
            text_hash=facts.text_hash or chunk.text_hash,
        )

    @cached_property
    def units(self) -> frozenset[str]:
        """The units of the hits' spans; of the list of chunks where no hit has any."""
        listed = (span.unit for chunk in self.chunks.values() for span in chunk.spans)
        return frozenset(self.evidence.units or listed)

    def measures(self, unit: str) -> bool:
        """Whether spans of a unit can be compared with those of the hits here.

        Bytes and characters look alike: where hits have both, neither is safe.
        """
        return unit in self.units and not (
            unit in ("byte", "char") and {"byte", "char"} <= self.units
        )

    @cached_property
    def sketched_ids(self) -> frozenset[int]:
        """The numbers of the chunk ids that the run shows with a place or a text: a fair sample."""
        return frozenset(row.id for row in self.evidence.sketch)

    def lists_any(self, numbers: Set[int]) -> bool:
        """Whether the list of chunks has an id of one of these numbers."""
        return any(id_number(chunk_id) in numbers for chunk_id in self.chunks)

    @cached_property
    def _chunks_by_text_hash(self) -> dict[str, list[Chunk]]:
        chunks: dict[str, list[Chunk]] = {}
        for chunk in self.chunks.values():
            if chunk.text_hash is not None:
                chunks.setdefault(chunk.text_hash, []).append(chunk)
        return chunks

    def only_chunk_with(self, text_hash: str, doc: KnownDocument | None) -> Chunk | None:
        """The only listed chunk with a text, in a document or else in any; None if there are more.

        The same words at two places may be either, so neither can be taken.
        """
        chunks = self._chunks_by_text_hash.get(text_hash, [])
        if doc is not None:
            names = {doc.name, doc.path, *doc.ids}
            chunks = [chunk for chunk in chunks if chunk.doc in names]
        return chunks[0] if len(chunks) == 1 else None


def _union(parts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """All entries in one order; mostly there is one part with at most one entry."""
    if len(parts) == 1 and len(parts[0]) < 2:
        return parts[0]
    return tuple(sorted({entry for part in parts for entry in part}))
