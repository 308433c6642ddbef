"""Passages: the chunks of a corpus as something to search, their texts and places, and rankings.

Texts are not held in memory: they are read from the corpus on demand, through a small cache.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Protocol

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ragauge.corpus.chunk_list import load_chunks
from ragauge.corpus.chunking import CHUNKER, ChunkPolicy
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.manifest import read_corpus
from ragauge.corpus.resolve import Resolver, block_chunks
from ragauge.files.open import opened
from ragauge.model.chunk import Chunk
from ragauge.model.target import TargetOptions, TargetQuestion
from ragauge.spans import Span
from ragauge.targets.shared.address import TargetSettings, refused, split_address

Order = NDArray[np.int64]
"""The place of each passage among the sorted ids."""


class Ranked(Struct, frozen=True):
    """A passage by its number, and its score."""

    number: int
    score: float


class Passages:
    """The chunks of a corpus: its blocks, or those of a list; known by their number.

    They are numbered by document, place and id, so that the order of a list does not show. `order`
    is the place of each one among the sorted ids, by which ties are broken.
    """

    def __init__(self, folder: str, chunks: str | None = None) -> None:
        lookup = Lookup(read_corpus(folder))
        self.revision = lookup.corpus.manifest.revision
        listed = _blocks(lookup) if chunks is None else _listed(lookup, chunks)
        ordered = sorted(
            listed.items(), key=lambda entry: (entry[1].doc, entry[1].spans[0], entry[0])
        )
        self.ids = [name for name, _ in ordered]
        self.chunks = [chunk for _, chunk in ordered]
        self.hashes = {document.doc: document.hash for document in lookup.corpus.documents}
        # Blocks and sections are known of every chunk by now; what is left reads texts.
        self._lookup = Lookup(replace(lookup.corpus, blocks=(), sections=()))
        self._lock = threading.Lock()
        by_id = sorted(range(len(self.ids)), key=self.ids.__getitem__)
        self.order: NDArray[np.int64] = np.empty(len(by_id), np.int64)
        self.order[by_id] = np.arange(len(by_id))

    def __len__(self) -> int:
        return len(self.ids)

    def text(self, number: int) -> str:
        """The text of a passage: what the list says of it, else what stands at its place."""
        chunk = self.chunks[number]
        if chunk.text is not None:
            return chunk.text
        with self._lock:  # the lookup and its cache are not made for threads
            whole = self._lookup.text(chunk.doc)
        return "\n".join(whole[span.start : span.end].decode() for span in chunk.spans)

    def texts(self) -> Iterator[str]:
        """All texts, in the order of their numbers."""
        return (self.text(number) for number in range(len(self)))

    @property
    def digest(self) -> str:
        """A name for what is searched: the corpus, and how it is cut into passages."""
        hasher = sha256(self.revision.encode())
        for name, chunk in zip(self.ids, self.chunks, strict=True):
            hasher.update(msgspec.json.encode([name, chunk.doc, chunk.spans, chunk.text_hash]))
        return hasher.hexdigest()

    def hit(self, number: int, score: float) -> dict[str, Any]:
        """A passage as the hit of a trace row."""
        chunk = self.chunks[number]
        row: dict[str, Any] = {
            "id": self.ids[number],
            "doc": chunk.doc,
            "section": chunk.section,
            "type": chunk.type,
            "score": score,
            "text": self.text(number),
            "doc_hash": self.hashes[chunk.doc],
            "chunker_version": chunk.chunker_version,
            "policy_hash": chunk.policy_hash,
        }
        spans = [[span.start, span.end] for span in chunk.spans]
        row |= {"offsets": spans[0]} if len(spans) == 1 else {"source_spans": spans}
        return {name: value for name, value in row.items() if value is not None}


def _blocks(lookup: Lookup) -> dict[str, Chunk]:
    """The blocks that hold text, which are what `corpus chunk --by block` writes."""
    policy = ChunkPolicy(by="block").hash
    return {
        name: replace(chunk, chunker_version=CHUNKER, policy_hash=policy)
        for name, chunk in block_chunks(lookup).items()
        if chunk.spans[0].length
    }


def _listed(lookup: Lookup, chunks: str) -> dict[str, Chunk]:
    """The chunks of a list, each at its place in bytes."""
    resolver = Resolver(lookup, None)

    def placed(name: str, chunk: Chunk) -> Chunk:
        resolved = resolver.chunk(name, chunk)
        spans = tuple(Span(*lookup.in_bytes(resolved.doc, span)) for span in resolved.spans)
        return resolved if spans == resolved.spans else replace(resolved, spans=spans)

    with opened(chunks) as source:
        return load_chunks(source, check=placed)


def open_corpus_target(
    address: str,
    options: TargetOptions,
    names: Iterable[str],
    make_index: Callable[[Passages, TargetSettings, TargetOptions], PassageIndex],
) -> CorpusTarget:
    """A target over the corpus that an address or the options name; `names` are its settings."""
    place, settings = split_address(address, options, ("chunks", *names))
    folder = place or options.corpus
    if not folder:
        raise refused("the target names no corpus", "write bm25:DIR, or give --corpus DIR")
    passages = Passages(folder, settings.text("chunks", options.chunks))
    if not len(passages):
        raise refused(f"there is nothing to search in `{folder}`", "build a corpus with text in it")
    return CorpusTarget(passages, make_index(passages, settings, options), options.k)


def best(scores: NDArray[Any], numbers: NDArray[np.int64], order: Order, k: int) -> list[Ranked]:
    """The k best of some passages: by falling score, then by id. Scores go with the numbers."""
    # A full sort of all scores would take most of the time of a question.
    if len(numbers) > k > 0:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        candidates = scores >= least  # all that tie with the last one
        scores, numbers = scores[candidates], numbers[candidates]
    ranks = np.lexsort((order[numbers], -scores))[:k]
    return [Ranked(int(numbers[rank]), float(scores[rank])) for rank in ranks]


def fused(
    rankings: Sequence[Sequence[Ranked]], order: Order, k: int, constant: float
) -> list[Ranked]:
    """Reciprocal rank fusion: a passage scores the sum of 1 / (constant + its rank), from 1.

    Ranks are taken from the lists alone, so that scores of different kinds need no common scale.
    """
    total: dict[int, float] = {}
    for ranking in rankings:
        for rank, ranked in enumerate(ranking, 1):
            total[ranked.number] = total.get(ranked.number, 0.0) + 1.0 / (constant + rank)
    # Rounded, so that the order in which rankings are added does not show.
    numbers = np.array(sorted(total), np.int64)
    scores = np.round(np.array([total[number] for number in sorted(total)], np.float64), 9)
    return best(scores, numbers, order, k)


class PassageIndex(Protocol):
    """A way to search passages."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """How it searches: all that its results depend on, besides the passages."""
        ...

    @property
    def names(self) -> Mapping[str, str]:
        """What a trace row says of it, by the names of the fields."""
        ...

    def search(self, text: str, k: int) -> Sequence[Ranked]:
        """The best passages for a question, the best first; ties by id."""
        ...

    def close(self) -> None:
        """Let go of files."""
        ...


class CorpusTarget:
    """Answers with the passages that an index finds. The index is complete and only read."""

    def __init__(self, passages: Passages, index: PassageIndex, k: int) -> None:
        self.passages = passages
        self.index = index
        self.k = k
        identity = msgspec.json.encode([passages.digest, dict(index.facts)], order="deterministic")
        self.hash = sha256(identity).hexdigest()[:32]

    @property
    def about(self) -> Mapping[str, Any]:
        """The corpus and the settings of the index."""
        return {
            "index_hash": self.hash,
            "corpus_revision": self.passages.revision,
            "passages": len(self.passages),
            "k": self.k,
            **self.index.facts,
        }

    def ask(self, question: TargetQuestion) -> Mapping[str, Any]:
        """Search for one question."""
        ranking = self.index.search(question.text, self.k)
        return {
            "hits": [self.passages.hit(ranked.number, ranked.score) for ranked in ranking],
            "index_hash": self.hash,
            "k": self.k,
            **self.index.names,
        }

    def close(self) -> None:
        """Let go of what the index has open."""
        self.index.close()
