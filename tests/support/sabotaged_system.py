"""A small system over real text that works, and twelve ways in which it stops working.

The text is documentation that others wrote, cut into chunks; a bundled embedder makes the vectors,
the nearest chunks are the hits, and a reader takes the sentence of the first five that shares most
words with the question, or refuses. Each fault changes the system where it happens in life (the
ingestion, the index, the filter, the reranker, the reader); what it logs follows from that.
"""

from __future__ import annotations

import importlib
import inspect
import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ragauge.embed.embedders.hashing import features
from ragauge.embed.measure import open_embedder

Row = dict[str, Any]
Matrix = NDArray[np.float32]

K = 12
"""How many hits the system asks its index for; it logs all of them."""
READ = 5
"""How many hits the reader sees."""
SEEDS = (1, 2)


class TextChunk(Struct, frozen=True, kw_only=True):
    """A chunk as the index holds it: its place in the document, and the text that was embedded."""

    id: str
    doc: str
    section: str
    start: int
    end: int
    text: str
    embedded: str


class RealQuestion(Struct, frozen=True, kw_only=True):
    """A question in one or more wordings; `evidence` are ids of chunks, none where it must refuse.

    `answer` is a piece of the evidence's text that a right answer contains.
    """

    qid: str
    wordings: tuple[str, ...]
    evidence: tuple[str, ...]
    answer: str = ""


class RealCorpus(NamedTuple):
    """Chunks and the questions about them."""

    chunks: list[TextChunk]
    questions: list[RealQuestion]

    def gold(self) -> list[Row]:
        """The gold set: evidence with its place, and the neighbours of it as hard negatives."""
        by_id = {chunk.id: place for place, chunk in enumerate(self.chunks)}
        rows: list[Row] = []
        for question in self.questions:
            row: Row = {"qid": question.qid, "paraphrases": list(question.wordings)}
            chunks = [self.chunks[by_id[name]] for name in question.evidence]
            row["answerable"] = bool(chunks)
            if chunks:
                row["relevant"] = [
                    {"id": chunk.id, "doc": chunk.doc, "start": chunk.start, "end": chunk.end}
                    for chunk in chunks
                ]
                row["anchor_section"] = f"{chunks[0].doc}#{chunks[0].section}"
                row["negatives"] = self._neighbours([by_id[name] for name in question.evidence])
                row["gold_claim_substr"] = [question.answer]
            rows.append(row)
        return rows

    def _neighbours(self, places: Sequence[int]) -> list[str]:
        beside = [near for place in places for near in (place - 1, place + 1) if near not in places]
        return [
            self.chunks[near].id
            for near in beside
            if 0 <= near < len(self.chunks) and self.chunks[near].doc == self.chunks[places[0]].doc
        ]


def numpy_corpus(modules: Sequence[str], *, questions: int, seed: int = 0) -> RealCorpus:
    """The docstrings of numpy: a module is a document, a function a section of it.

    The first sentence of a docstring is the question, and what follows it, up to three chunks, the
    evidence; the sentence is not in the index. The second wording has the name of the function and
    half the words.
    """
    chunks: list[TextChunk] = []
    asked: list[RealQuestion] = []
    seen: set[str] = set()
    for module_name in modules:
        module = importlib.import_module(module_name)
        offset = 0
        for name in sorted(dir(module)):
            value = getattr(module, name)
            text = inspect.getdoc(value) or ""
            if name.startswith("_") or inspect.ismodule(value) or text in seen:
                continue
            parts = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
            if parts and parts[0].startswith(f"{name}("):
                parts = parts[1:]  # the signature of a function in C
            if len(parts) < 3 or len(text) < 500:
                continue
            seen.add(text)
            summary = " ".join(parts[0].split())
            body = _merged(parts[1:], 700)
            first = len(chunks)
            for number, part in enumerate(body):
                size = len(part.encode())
                chunks.append(
                    TextChunk(
                        id=f"{module_name}/{name}#{number}", doc=f"{module_name}.txt", section=name,
                        start=offset, end=offset + size, text=part, embedded=f"{name}\n{part}",
                    )
                )  # fmt: skip
                offset += size + 2
            words = summary.split()
            if len(words) < 5 or not summary.isascii():
                continue
            sentence = max(_sentences(chunks[first].text), key=len)
            asked.append(
                RealQuestion(
                    qid=f"{module_name}.{name}",
                    wordings=(summary, f"{name.replace('_', ' ')}: {' '.join(words[::2])}"),
                    evidence=tuple(chunk.id for chunk in chunks[first : first + 3]),
                    answer=" ".join(sentence.split()[:4]),
                )
            )
    drawn = random.Random(seed).sample(asked, questions)
    return RealCorpus(chunks, [*sorted(drawn, key=lambda each: each.qid), *UNANSWERABLE])


def _rows(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def speech_corpus(folder: Path, *, questions: int | None = None) -> RealCorpus:
    """A speech in chunks of some 800 characters, and questions of others with the bytes they want.

    Eight parts of the speech are its documents. The second wording lacks every third word.
    """
    (document,) = (folder / "corpus").iterdir()
    text = document.read_bytes()
    rows = _rows(folder / "chunks.R200-0.jsonl")
    chunks = []
    for number, row in enumerate(rows):
        part = text[row["start_byte"] : row["end_byte"]].decode()
        name = f"part-{number * 8 // len(rows)}"
        chunks.append(
            TextChunk(
                id=f"speech/{number:03}", doc=f"{name}.txt", section=f"S.{number // 3}",
                start=row["start_byte"], end=row["end_byte"], text=part, embedded=part,
            )
        )  # fmt: skip
    asked = []
    for row in _rows(folder / "gold.jsonl")[:questions]:
        spans = [(span["start_byte"], span["end_byte"]) for span in row["gold_spans"]]
        evidence = [
            chunk
            for chunk in chunks
            if any(chunk.start < end and start < chunk.end for start, end in spans)
        ]
        words = row["question"].split()
        shorter = [word for place, word in enumerate(words) if place % 3 != 2]
        asked.append(
            RealQuestion(
                qid=row["qid"],
                wordings=(row["question"], " ".join(shorter)),
                evidence=tuple(chunk.id for chunk in evidence),
                answer=row["gold_spans"][0]["text"][:30],
            )
        )
    return RealCorpus(chunks, [*asked, *UNANSWERABLE])


UNANSWERABLE = [
    RealQuestion(qid=f"no.{number}", wordings=wordings, evidence=())
    for number, wordings in enumerate(
        (
            ("Who won the football cup in Lisbon?", "Lisbon football cup"),
            ("How long must rye bread bake?", "rye bread, time in the oven"),
            ("Which vaccine do puppies need?", "puppies and their vaccine"),
        )
    )
]


def _merged(parts: Sequence[str], size: int) -> list[str]:
    """Paragraphs put together until they have about this size."""
    merged: list[str] = []
    for part in parts:
        if merged and len(merged[-1]) + len(part) < size:
            merged[-1] += "\n\n" + part
        else:
            merged.append(part)
    return merged


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])\s+|\n\n", text) if part.strip()]


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z]{3,}", text.lower()) if word not in _COMMON}


_COMMON = {"the", "and", "for", "with", "that", "this", "are", "from", "which", "not", "its"}


class Hit(NamedTuple):
    """A chunk that was found, and its score."""

    chunk: TextChunk
    score: float


class System(Struct, frozen=True, kw_only=True):
    """Each field is a part of the system; a fault replaces one of them."""

    name: str
    corpus: RealCorpus
    embed: Callable[[Sequence[str]], Matrix]
    ingest: Callable[[list[TextChunk]], list[TextChunk]] = lambda chunks: chunks
    embed_query: Callable[[Sequence[str]], Matrix] | None = None
    nearest_first: bool = True
    keep: Callable[[TextChunk], bool] = lambda _: True
    rerank: Callable[[list[Hit], random.Random], list[Hit]] = lambda hits, _: hits
    least: float = 0.2
    cite: Callable[[Hit, random.Random], list[Row]] = lambda hit, _: [cited(hit.chunk)]

    def traces(self) -> list[Row]:
        """What it logs for every wording of every question, with every seed."""
        chunks = self.ingest(list(self.corpus.chunks))
        index = self.embed([chunk.embedded for chunk in chunks])
        asked = [
            (question, number, wording)
            for question in self.corpus.questions
            for number, wording in enumerate(question.wordings)
        ]
        queries = (self.embed_query or self.embed)([wording for *_, wording in asked])
        rows = []
        similar = np.round(queries @ index.T, 6)
        for (question, number, wording), scores in zip(asked, similar, strict=True):
            order = np.argsort(-scores if self.nearest_first else scores, kind="stable")[:K]
            found = [Hit(chunks[place], float(scores[place])) for place in order.tolist()]
            for seed in SEEDS:
                chance = random.Random(f"{question.qid}/{number}/{seed}")
                hits = [hit for hit in self.rerank(list(found), chance) if self.keep(hit.chunk)]
                rows.append(
                    {
                        "qid": question.qid, "query": wording, "seed": seed,
                        "topk": [_logged(hit) for hit in hits],
                        **self._answer(wording, hits, chance),
                    }
                )  # fmt: skip
        return rows

    def _answer(self, wording: str, hits: Sequence[Hit], chance: random.Random) -> Row:
        """The reader: the sentence that shares most of the question's words, and what it cites."""
        wanted = _words(wording)
        best: tuple[float, Hit, str] | None = None
        for rank, hit in enumerate(hits[:READ]):
            words = _words(hit.chunk.embedded)
            share = len(wanted & words) / max(1, len(wanted)) - 0.1 * rank
            if best is None or share > best[0]:
                best = share, hit, hit.chunk.text
        if best is None or best[0] < self.least:
            return {"answer_json": {"claim": "not in context", "citations": []}}
        _, hit, text = best
        return {"answer_json": {"claim": text, "citations": self.cite(hit, chance)}}


def _logged(hit: Hit) -> Row:
    chunk = hit.chunk
    return {
        "id": chunk.id, "doc": chunk.doc, "section": f"{chunk.doc}#{chunk.section}",
        "score": hit.score, "offsets": [chunk.start, chunk.end], "text": chunk.text,
    }  # fmt: skip


def cited(chunk: TextChunk) -> Row:
    """A chunk as an answer cites it."""
    return {"id": chunk.id, "doc": chunk.doc, "offsets": [chunk.start, chunk.end]}


def unit_vectors(name: str) -> Callable[[Sequence[str]], Matrix]:
    """Vectors of a bundled embedder, each text once."""
    embedder = open_embedder(name)
    vectors: dict[str, Any] = {}

    def embed(texts: Sequence[str]) -> Matrix:
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        if missing:
            vectors.update(zip(missing, embedder.embed(missing, "document").vectors, strict=True))
        return np.array([vectors[text] for text in texts], np.float32)

    return embed


def healthy(corpus: RealCorpus, embed: Callable[[Sequence[str]], Matrix]) -> System:
    """The system as it should be."""
    return System(name="healthy", corpus=corpus, embed=embed)


def perfect_traces(corpus: RealCorpus) -> list[Row]:
    """What a system logs that knows the gold set: evidence first, cited, and refusals in place."""
    by_id = {chunk.id: chunk for chunk in corpus.chunks}
    rows: list[Row] = []
    for place, question in enumerate(corpus.questions):
        evidence = [by_id[name] for name in question.evidence]
        others = [
            corpus.chunks[(place * 37 + step * 11) % len(corpus.chunks)] for step in range(12)
        ]
        near = {*question.evidence, *corpus.gold()[place].get("negatives", ())}
        others = [chunk for chunk in others if chunk.id not in near]
        listed = [*evidence, *dict.fromkeys(others)]
        for wording in question.wordings:
            for seed in SEEDS:
                answer: Row = {"claim": "not in context", "citations": []}
                if evidence:
                    answer = {"claim": evidence[0].text, "citations": [*map(cited, evidence)]}
                rows.append({
                    "qid": question.qid, "query": wording, "seed": seed,
                    "topk": [_logged(Hit(one, 1 - rank / 50)) for rank, one in enumerate(listed)],
                    "answer_json": answer,
                })  # fmt: skip
    return rows


# The twelve faults. Each takes the healthy system and returns one in which one thing is broken.


def stale_offsets(system: System) -> System:
    """A document was edited near its top; the index kept its ids and its old offsets."""

    def ingest(chunks: list[TextChunk]) -> list[TextChunk]:
        docs = sorted({chunk.doc for chunk in chunks})
        moved = {doc: 180 + 45 * number for number, doc in enumerate(docs)}
        return [
            replace(chunk, start=chunk.start + moved[chunk.doc], end=chunk.end + moved[chunk.doc])
            for chunk in chunks
        ]

    return replace(system, name="stale offsets", ingest=ingest)


def evidence_low(system: System) -> System:
    """A reranker that was trained on something else: it puts the shortest candidates first."""
    return replace(
        system,
        name="right chunk low",
        rerank=lambda hits, _: sorted(
            hits, key=lambda hit: (len(hit.chunk.text) % 97, hit.chunk.id)
        ),
    )


def refusals(system: System) -> System:
    """A prompt that became too careful: it refuses unless nearly every word is in the context."""
    return replace(system, name="refusals", least=0.75)


def strict_filter(system: System) -> System:
    """A filter on metadata that half of the functions lack is applied to what was found."""
    return replace(system, name="filter", keep=lambda chunk: sum(map(ord, chunk.section)) % 2 == 0)


def negative_preferred(system: System) -> System:
    """The chunker cuts too late: a chunk has the beginning of the next one, which lacks it."""

    def ingest(chunks: list[TextChunk]) -> list[TextChunk]:
        late = []
        for place, chunk in enumerate(chunks):
            after = chunks[place + 1] if place + 1 < len(chunks) else None
            kept = chunk.embedded[len(chunk.embedded) * 4 // 5 :]
            bled = after.embedded[: len(after.embedded) * 4 // 5] if after is not None else ""
            late.append(replace(chunk, embedded=f"{kept}\n{bled}"))
        return late

    return replace(system, name="hard negative preferred", ingest=ingest)


def other_query_embedder(system: System) -> System:
    """Queries are embedded by another model, whose vectors happen to have the same length."""

    def embed_query(texts: Sequence[str]) -> Matrix:
        size = system.embed(["size"]).shape[1]
        rows = np.zeros((len(texts), size), np.float32)
        for place, text in enumerate(texts):
            for (gram, weight), count in features(text).items():
                chance = np.random.default_rng(sum(map(ord, gram)) * 7919 + len(gram))
                rows[place] += weight * count * chance.standard_normal(size)
        rows /= np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        return rows

    return replace(system, name="other query embedder", embed_query=embed_query)


def sign_flip(system: System) -> System:
    """A similarity is sorted as if it were a distance: the smallest first."""
    return replace(system, name="sign flip", nearest_first=False)


def invented_citations(system: System) -> System:
    """The model writes ids from memory: sometimes beside the right one, sometimes instead."""

    def cite(hit: Hit, chance: random.Random) -> list[Row]:
        invented = {"id": hit.chunk.id.partition("#")[0] + f"#{chance.randint(40, 99)}"}
        return [invented] if chance.random() < 0.5 else [cited(hit.chunk), invented]

    return replace(system, name="invented citations", cite=cite)


def shuffled_order(system: System) -> System:
    """Shards answer in the order in which they are done, and nobody sorts what came back."""

    def rerank(hits: list[Hit], chance: random.Random) -> list[Hit]:
        chance.shuffle(hits)
        return hits

    return replace(system, name="shuffled order", rerank=rerank)


def documents_missing(system: System) -> System:
    """The ingestion failed on some documents, and nobody read its log."""
    docs = sorted({chunk.doc for chunk in system.corpus.chunks})
    lost = set(docs[1::3])
    return replace(
        system,
        name="documents missing",
        ingest=lambda chunks: [chunk for chunk in chunks if chunk.doc not in lost],
    )


def chunks_cut(system: System) -> System:
    """A field of the database holds 120 bytes; what is longer is cut off without a word."""

    def ingest(chunks: list[TextChunk]) -> list[TextChunk]:
        return [
            replace(
                chunk, text=chunk.text[:120], embedded=chunk.embedded[:120],
                end=chunk.start + len(chunk.text[:120].encode()),
            )
            for chunk in chunks
        ]  # fmt: skip

    return replace(system, name="chunks cut", ingest=ingest)


def not_normalised(system: System) -> System:
    """The index compares by dot product, and the vectors are sums over tokens, not unit vectors."""

    def embed(texts: Sequence[str]) -> Matrix:
        lengths = np.array([max(1, len(text.split())) for text in texts], np.float32)
        return system.embed(texts) * np.sqrt(lengths)[:, None]

    return replace(system, name="not normalised", embed=embed)


FAULTS: Mapping[str, Callable[[System], System]] = {
    "offsets-drift": stale_offsets,
    "ordering": evidence_low,
    "over-refusal": refusals,
    "filter-too-strict": strict_filter,
    "boundaries-bleed": negative_preferred,
    "metric-mismatch": other_query_embedder,
    "reversed-order": sign_flip,
    "unretrieved-citations": invented_citations,
    "order-flips": shuffled_order,
    "documents-missing": documents_missing,
    "chunks-cut": chunks_cut,
    "vectors-not-normalised": not_normalised,
}
"""The id of the cause that a diagnosis has to name, and the fault."""
