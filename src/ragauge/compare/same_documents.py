"""Same documents: whether two runs mean the same by the name of a document or by a chunk id.

Equal ids prove nothing by themselves. Many indexes number their chunks by position (`guide#12`), so
a new chunker gives the old ids to other texts: believed, they turn a harmless change into a
collapse, or hide a regression behind an id that happens to be retrieved. So ids are held against
all that both runs know: recorded chunkers, content hashes, texts, places (decision 0016).

`KnownDocuments` is what one run knows of documents and chunks, by all their names; `SameDocuments`
holds two of these against each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from typing import Literal, NamedTuple

import numpy as np

from ragauge.metrics.columns import Bools
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import IdFacts
from ragauge.model.evidence import Carries, ChunkFacts, DocFacts, Evidence, SketchRow
from ragauge.model.payloads import id_number, number_of
from ragauge.quotes import normalised
from ragauge.spans import Span, of_unit
from ragauge.text import text_hash

Content = Literal["same", "differs", "unsure"]
_ALL = int(Carries.SPANS | Carries.DOCS | Carries.TEXTS)


_FEWEST_IDS = 20
"""Ids that both runs must show before it counts that they share none. The same chunking, asked by
another retriever, shared at least 43 % of them."""
_FEWEST_IDS_OF_DOCUMENT = 10


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
        self.find = cache(self._find)
        self._normalised_texts: dict[str, str] = {}
        self._quoted_in: dict[str, tuple[str, ...]] = {}

    @cached_property
    def is_empty(self) -> bool:
        """Whether the run has not shown a single chunk: it can contradict nothing.

        A hit that says its id alone leaves nothing in the evidence, but its question carries less.
        """
        evidence = self.evidence
        if any(carried & _ALL != _ALL for carried in self.carries.values()):
            return False
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

    def _find(self, name: str) -> KnownDocument | None:
        """The document of that id or path; several ids of one path are versions of it."""
        if not self.knows(name):
            return None
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


class DocumentPair(NamedTuple):
    """A name, and the document it is in both runs; None where a run knows nothing of the kind.

    `named_a` and `named_b`: that run knows the document by this very name.
    """

    name: str
    a: KnownDocument | None
    b: KnownDocument | None
    named_a: bool
    named_b: bool
    content: Content

    @property
    def names(self) -> tuple[str, str]:
        """What the runs call it."""
        return (
            self.name if self.a is None else self.a.name,
            self.name if self.b is None else self.b.name,
        )

    @property
    def renamed(self) -> bool:
        """Whether the runs call it by different names."""
        name_a, name_b = self.names
        return name_a != name_b

    @property
    def moved(self) -> bool:
        """Whether it has another path too, where it has one: not only its id is new."""
        if self.a is None or self.b is None or not self.renamed:
            return False
        return self.a.path is None or self.a.path != self.b.path


class SameDocuments:
    """What two runs have in common.

    contradicted   ids that both runs know and that mean something else in the other run
    reused_id      an id that differs although nothing says that the chunking changed: equal
                   chunker versions cannot be believed then; mostly None
    other_chunker  the configurations of the runs name two chunkers
    one_run        a run is compared with itself, and its ids are its ids
    """

    def __init__(
        self,
        a: KnownDocuments,
        b: KnownDocuments,
        *,
        other_chunker: bool = False,
        one_run: bool = False,
    ) -> None:
        self.a, self.b = a, b
        self.other_chunker = other_chunker
        self.one_run = one_run
        # Asked again and again, for every piece of every question.
        self.pair = cache(self._pair)
        self.trusts_ids = cache(self._trusts_ids)
        self.proves_ids = cache(self._proves_ids)
        self.is_recut = cache(self._is_recut)
        self.contradicted: set[str] = set()
        self.reused_id: str | None = None
        # In order, so that the notes name the same id every time.
        for chunk_id in sorted(self._differing_ids()):
            self.contradicted.add(chunk_id)
            if self.reused_id is None and not self._explained(chunk_id):
                self.reused_id = chunk_id
        reused_in_sketches = self._reused_in_sketches()
        if self.reused_id is None and reused_in_sketches:
            self.reused_id = self._id_of_number(reused_in_sketches[0])
        unexplained = {id_number(name) for name in self.contradicted if not self._explained(name)}
        self.reused = len(unexplained.union(reused_in_sketches))

    # --- chunk ids ---

    @cached_property
    def all_ids_agree(self) -> bool:
        """Whether every id means the same in both runs: no document has to be looked at."""
        return (
            self.reused_id is None
            and not self.contradicted
            and not self.no_common_ids
            and not self.refuted
            and not self._recut_documents
            and self._listed_alike()
            and self.trusts_ids(None)
            and all(map(self.trusts_ids, self._unequal_documents()))
        )

    def _listed_alike(self) -> bool:
        a, b = self.a.chunks, self.b.chunks
        return not a or not b or a is b or a.keys() == b.keys()

    def _unequal_documents(self) -> Iterator[str]:
        """The names of documents that the runs do not say the very same of."""
        a, b = self.a, self.b
        no_texts = not (a.texts or b.texts)
        if no_texts and a.chunks == b.chunks and a.evidence == b.evidence:
            return
        for one, other in ((a, b), (b, a)):
            for name, facts in one.docs.items():
                alike = facts is not None and facts == other.docs.get(name)
                if not (alike and no_texts and one.hashes.get(name) == other.hashes.get(name)):
                    yield name
            for path, ids in one.paths.items():
                if path in one.docs or path in other.docs or ids != other.paths.get(path):
                    yield path

    def _trusts_ids(self, doc: str | None) -> bool:
        """Whether equal ids in a document are equal chunks, because the chunking is the same."""
        if self.a.is_empty or self.b.is_empty:
            return True  # a run without a hit misses everything, under any chunking
        pair = self.pair(doc)
        return (
            self.reused_id is None
            and pair.content != "differs"
            and not pair.renamed
            and self.same_chunking(pair.a, pair.b)
        )

    def same_chunking(self, a: KnownDocument | None, b: KnownDocument | None) -> bool:
        """Whether two documents went through the same chunker, as far as the runs say.

        A document without hits is judged by the chunkers of its whole run. These may be several,
        so one in common is enough; documents that both runs saw must agree in all. Recorded in
        one run only is not the same.
        """
        a = a if a is not None and a.seen else None
        b = b if b is not None and b.seen else None
        one, other = a or self.a, b or self.b
        for of_a, of_b in ((one.chunkers, other.chunkers), (one.policies, other.policies)):
            if of_a == of_b:
                continue
            if (a is not None and b is not None) or set(of_a).isdisjoint(of_b):
                return False
        return True

    def chunker_recorded(self, doc: str | None) -> bool:
        """Whether a run says at all what chunker a document, or the whole run, went through."""
        pair = self.pair(doc)
        for document, run in ((pair.a, self.a), (pair.b, self.b)):
            source = run if document is None or not document.seen else document
            if source.chunkers or source.policies:
                return True
        return False

    def doubts_ids(self, doc: str | None) -> bool:
        """Whether no run says how a document was chunked, and the runs share no chunk id."""
        return self.no_common_ids and not self.chunker_recorded(doc)

    @cached_property
    def no_common_ids(self) -> bool:
        """Whether both runs show chunks, and no id is the same: as if they had been cut anew.

        A run that shows none contradicts nothing. Ids of a list count as shown.
        """
        a, b = self.a, self.b
        if not a.sketched_ids or not b.sketched_ids:
            return False
        if not a.sketched_ids.isdisjoint(b.sketched_ids):
            return False
        if not a.chunks.keys().isdisjoint(b.chunks.keys()):
            return False
        return not (a.lists_any(b.sketched_ids) or b.lists_any(a.sketched_ids))

    @cached_property
    def refuted(self) -> bool:
        """Whether no id of one run can be a chunk of the other, whatever it is called.

        The configurations name two chunkers, or both runs show many ids and no id is the same. Runs
        that show few may share none by chance.
        """
        few = min(len(self.a.sketched_ids), len(self.b.sketched_ids)) < _FEWEST_IDS
        return self.other_chunker or (self.no_common_ids and not few)

    @cached_property
    def _recut_documents(self) -> frozenset[int]:
        """The documents of which both runs show some ids, and none that is the same."""
        ids_a, ids_b = (_ids_by_document(run.evidence) for run in (self.a, self.b))
        return frozenset(
            doc
            for doc in ids_a.keys() & ids_b.keys()
            if min(len(ids_a[doc]), len(ids_b[doc])) >= _FEWEST_IDS_OF_DOCUMENT
            and ids_a[doc].isdisjoint(ids_b[doc])
        )

    def _is_recut(self, doc: str | None) -> bool:
        """Whether a document was cut anew: its ids are all different."""
        if doc is None or not self._recut_documents:
            return False
        return any(number_of(name) in self._recut_documents for name in self.pair(doc).names)

    def _proves_ids(self, doc: str) -> bool:
        """Whether equal ids in a document are proved to be equal chunks.

        Both runs say that the same chunker cut it by the same policy, and that it is the same text.
        """
        pair = self.pair(doc)
        if pair.a is None or pair.b is None or self.refuted or not self.trusts_ids(doc):
            return False
        for one, other in (
            (pair.a.chunkers, pair.b.chunkers),
            (pair.a.policies, pair.b.policies),
            (pair.a.hashes, pair.b.hashes),
        ):
            if not one or one != other:
                return False
        return True

    @cached_property
    def homes(self) -> tuple[bool, bool]:
        """Which run has the chunks that gold names; neither, where both show such ids.

        The ids of one of them are other chunks then, and nobody says of which.
        """
        a, b = (bool(run.evidence.expected) for run in (self.a, self.b))
        return a and not b, b and not a

    def ids(self, *, proved: bool) -> IdFacts:
        """How many ids the runs show and share, and what follows from that."""
        ids_a, ids_b = self.a.sketched_ids, self.b.sketched_ids
        proof = "proved" if proved else "unproven"
        if self.reused_id is not None:
            proof = "reused-ids"
        elif self.other_chunker or not self.same_chunking(None, None):
            proof = "other-chunker"
        elif self.refuted:
            proof = "no-common-ids"
        elif self._recut_documents:
            proof = "recut-documents"
        return IdFacts(
            common=len(ids_a & ids_b),
            distinct_a=len(ids_a),
            distinct_b=len(ids_b),
            reused=self.reused,
            proof=proof,
        )

    def same_chunk(self, chunk_id: str) -> bool:
        """Whether both runs know a chunk id, and know that its content is the same."""
        of_a, of_b = self.a.chunk_facts(chunk_id), self.b.chunk_facts(chunk_id)
        if of_a is None or of_b is None:
            return False
        same_text = _same_text(of_a, of_b)
        if same_text is None:
            return self._same_place(of_a, of_b) is True
        return same_text

    # --- documents ---

    def _pair(self, name: str | None) -> DocumentPair:
        """Find a document in both runs: by its id, else its path, else its content."""
        if name is None:
            return DocumentPair("", None, None, False, False, "same")
        a, b = self.a.find(name), self.b.find(name)
        named_a, named_b = a is not None, b is not None
        if a is not None and b is None:
            b = _counterpart(a, self.b, self.a)
        elif b is not None and a is None:
            a = _counterpart(b, self.a, self.b)
        content = _content(a, b)
        if content == "same" and (a is None) != (b is None):
            # A run that knows the texts of its documents, and not this one, may well lack it.
            lacking = self.a if a is None else self.b
            content = "unsure" if lacking.texts else content
        return DocumentPair(name, a, b, named_a, named_b, content)

    def _same_place(self, of_a: ChunkFacts, of_b: ChunkFacts) -> bool | None:
        """Whether two runs place a chunk alike in the same text; None if they do not say."""
        if not of_a.spans or not of_b.spans:
            return None
        doc_a, doc_b = of_a.doc or of_a.path, of_b.doc or of_b.path
        if _extents(of_a.spans) != _extents(of_b.spans):
            return False
        if doc_a is None or doc_b is None:
            return None
        if not self._same_document(doc_a, doc_b):
            return False
        return True if self._contents(doc_a, doc_b) == {"same"} else None

    def _same_document(self, doc_a: str | None, doc_b: str | None) -> bool:
        """Whether a name of the first run and one of the second mean the same document."""
        if doc_a is None or doc_b is None or doc_a == doc_b:
            return doc_a == doc_b
        there, here = self.pair(doc_a).b, self.pair(doc_b).a
        return (there is not None and doc_b in (there.name, there.path, *there.ids)) or (
            here is not None and doc_a in (here.name, here.path, *here.ids)
        )

    def _contents(self, doc_a: str | None, doc_b: str | None) -> set[Content]:
        """What is known of the content of a document that the runs call by these names."""
        return {self.pair(doc_a).content, self.pair(doc_b).content}

    # --- ids that mean something else in the other run ---

    def _differing_ids(self) -> Iterator[str]:
        """The ids that both runs know by name, and know to differ."""
        a, b = self.a, self.b
        named_a, named_b = a.named, b.named
        in_hits = named_a.keys() & named_b.keys()
        yield from (
            chunk_id for chunk_id in in_hits if self._differ(named_a[chunk_id], named_b[chunk_id])
        )
        to_check: set[str] = set()
        if a.chunks and b.chunks and a.chunks is not b.chunks:
            listed = a.chunks.keys() & b.chunks.keys()
            # Most of two long lists is equal: compare before facts are put together.
            to_check = {name for name in listed if a.chunks[name] != b.chunks[name]}
        to_check |= (named_a.keys() & b.chunks.keys()) | (named_b.keys() & a.chunks.keys())
        for chunk_id in to_check - in_hits:
            of_a, of_b = a.chunk_facts(chunk_id), b.chunk_facts(chunk_id)
            if of_a is not None and of_b is not None and self._differ(of_a, of_b):
                yield chunk_id

    def _differ(self, of_a: ChunkFacts, of_b: ChunkFacts) -> bool:
        """Whether two chunks are known to differ: by text, or by place where a text is unknown."""
        if of_a == of_b:
            return False
        same_text = _same_text(of_a, of_b)
        return self._same_place(of_a, of_b) is False if same_text is None else not same_text

    def _explained(self, chunk_id: str) -> bool:
        """Whether a chunk differs because its document was edited, or is said to be cut anew."""
        of_a, of_b = self.a.chunk_facts(chunk_id), self.b.chunk_facts(chunk_id)
        if of_a is None or of_b is None:
            return False
        if (of_a.chunker_version, of_a.policy_hash) != (of_b.chunker_version, of_b.policy_hash):
            return True
        doc_a, doc_b = of_a.doc or of_a.path, of_b.doc or of_b.path
        return self._same_document(doc_a, doc_b) and self._changed(doc_a, doc_b)

    def _changed(self, doc_a: str | None, doc_b: str | None) -> bool:
        """Whether a document was edited, or says that it was cut by another chunker."""
        if "differs" in self._contents(doc_a, doc_b):
            return True
        names = {name for name in (doc_a, doc_b) if name is not None}
        pairs = [self.pair(name) for name in names]
        return any(not self.same_chunking(pair.a, pair.b) for pair in pairs)

    def _reused_in_sketches(self) -> list[int]:
        """The ids in both sketches that differ, and whose document was neither edited nor recut.

        Sketches hold ids that gold does not name. They show a policy that was changed without a
        new version even where no expected chunk was retrieved in both runs.
        """
        rows_a, rows_b = _differing_rows(self.a.evidence, self.b.evidence)
        if not rows_a:
            return []
        reused = []
        names = {
            number_of(name): name
            for run in (self.a, self.b)
            for docs in (run.docs, run.paths)
            for name in docs
        }
        bare_places = self.a.evidence.bare_places
        for row_a, row_b in zip(rows_a, rows_b, strict=True):
            doc_a, doc_b = names.get(row_a.doc), names.get(row_b.doc)
            if doc_a is not None and self._same_document(doc_a, doc_b):
                # Without texts, a new name of the document is no other chunk. In runs of an earlier
                # version the number of a place is made with that name, and tells no more.
                by_place = doc_a != doc_b and not (row_a.text and row_b.text)
                renamed = by_place and (row_a.place == row_b.place or not bare_places)
                if renamed or self._changed(doc_a, doc_b):
                    continue
            reused.append(row_a.id)
        return reused

    def _id_of_number(self, number: int) -> str:
        """The id behind a number, to be shown; a sketch has numbers only."""
        for run in (self.a, self.b):
            for ids in (run.evidence.expected, run.evidence.negatives, run.chunks):
                for chunk_id in ids:
                    if id_number(chunk_id) == number:
                        return chunk_id
        return f"number {number:016x}"


def _ids_by_document(evidence: Evidence) -> dict[int, set[int]]:
    """The numbers of the ids that a run shows of each document, by its number."""
    ids: dict[int, set[int]] = {}
    for row in evidence.sketch:
        if row.doc:
            ids.setdefault(row.doc, set()).add(row.id)
    return ids


def _counterpart(
    doc: KnownDocument, other: KnownDocuments, own: KnownDocuments
) -> KnownDocument | None:
    """The same document under another name: by id, else by path, else by content."""
    for name in (*doc.ids, *([doc.path] if doc.path is not None else [])):
        there = other.find(name)
        if there is not None:
            return there
    return other.find_by_content(doc, own)


def _content(a: KnownDocument | None, b: KnownDocument | None) -> Content:
    """Hashes tell first; where they do not agree, the texts may: a hash is of one kind or another.

    Known in neither run counts as the same, in one run only it does not.
    """
    hashes_a, hashes_b = a.hashes if a is not None else (), b.hashes if b is not None else ()
    if hashes_a and hashes_a == hashes_b:
        return "same"
    if a is not None and b is not None and a.text is not None and b.text is not None:
        if a.text == b.text:
            return "same"
        if (hashes_a and hashes_b) or not _compatible(a.text, b.text):
            return "differs"
    elif hashes_a and hashes_b:
        return "differs"
    return "unsure" if hashes_a or hashes_b else "same"


def _compatible(text_a: str, text_b: str) -> bool:
    """Whether two texts may be of one document: a blank may stand for what a run does not know.

    Texts put together from chunks have blanks where no chunk lies, byte for byte.
    """
    a, b = (np.frombuffer(text.encode(), np.uint8) for text in (text_a, text_b))
    shorter = min(len(a), len(b))
    a, b = a[:shorter], b[:shorter]
    blank = ord(" ")
    return bool(((a == b) | (a == blank) | (b == blank)).all())


def _same_text(of_a: ChunkFacts, of_b: ChunkFacts) -> bool | None:
    """Whether two chunks have the same text; None if a run does not know it all.

    The hash of one run may be its own and that of the other made here: then the text decides.
    """
    hash_a, hash_b = of_a.text_hash, of_b.text_hash
    if hash_a is None or hash_b is None:
        return None
    return (
        hash_a == hash_b
        or (of_a.text is not None and text_hash(of_a.text) == hash_b)
        or (of_b.text is not None and text_hash(of_b.text) == hash_a)
    )


def _extents(spans: tuple[Span, ...]) -> dict[str, list[tuple[int, int]]]:
    """Spans as merged extents by unit: the same place may be written in several parts."""
    return {unit: of_unit(spans, unit) for unit in sorted({span.unit for span in spans})}


def _differing_rows(
    evidence_a: Evidence, evidence_b: Evidence
) -> tuple[list[SketchRow], list[SketchRow]]:
    """The rows of ids that two sketches share and tell different things of.

    Texts decide where both rows have one, places only where a text is missing: an edit earlier in
    a document moves all places behind it. Equal offsets in two documents are two places.
    """
    sketch_a, sketch_b = evidence_a.sketch, evidence_b.sketch
    if not sketch_a or not sketch_b or sketch_a == sketch_b:
        return [], []
    a, b = np.array(sketch_a, np.uint64), np.array(sketch_b, np.uint64)
    _, in_a, in_b = np.intersect1d(a[:, 0], b[:, 0], return_indices=True)
    a, b = a[in_a], b[in_b]
    texts: Bools = (a[:, 1] != 0) & (b[:, 1] != 0)
    differ: Bools = texts & (a[:, 1] != b[:, 1])
    if evidence_a.bare_places == evidence_b.bare_places:
        places: Bools = (a[:, 2] != 0) & (b[:, 2] != 0) & ~texts
        docs: Bools = (a[:, 3] != 0) & (b[:, 3] != 0) & (a[:, 3] != b[:, 3])
        differ |= places & ((a[:, 2] != b[:, 2]) | docs)
    return (
        [SketchRow(*row) for row in a[differ].tolist()],
        [SketchRow(*row) for row in b[differ].tolist()],
    )


def _union(parts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """All entries in one order; mostly there is one part with at most one entry."""
    if len(parts) == 1 and len(parts[0]) < 2:
        return parts[0]
    return tuple(sorted({entry for part in parts for entry in part}))
