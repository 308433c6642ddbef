"""Documents cut in several ways, searched by BM25, with evidence whose bytes are known.

The truth of a comparison is computed here by bytes, and shares no code with what is tested.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ragauge.corpus.bm25 import Bm25Index
from ragauge.scoring.score import score
from tests.support.command import Folder

Extent = tuple[int, int]

CHUNKINGS = ("fixed800", "fixed400", "recursive800", "sentences")
K = 10


class Question(NamedTuple):
    """A question and the bytes of its evidence, all in one document."""

    qid: str
    text: str
    doc: str
    spans: tuple[Extent, ...]


class TextSet(NamedTuple):
    """Documents by name, as bytes, and questions about them."""

    docs: Mapping[str, bytes]
    questions: Sequence[Question]


class TextChunk(NamedTuple):
    """A chunk of a document."""

    id: str
    doc: str
    start: int
    end: int


def read_sotu(folder: Path) -> TextSet:
    """The speech of a public benchmark on chunking, with its references by bytes."""
    text = (folder / "corpus" / "state_of_the_union.md").read_bytes()
    rows = [json.loads(line) for line in (folder / "gold.jsonl").read_text().splitlines()]
    questions = [
        Question(
            row["qid"],
            row["question"],
            "state_of_the_union.md",
            tuple((span["start_byte"], span["end_byte"]) for span in row["gold_spans"]),
        )
        for row in rows
    ]
    return TextSet({"state_of_the_union.md": text}, questions)


def generated(*, documents: int, questions: int, seed: int) -> TextSet:
    """Documents of made-up sentences, and questions with some words of one or two of them."""
    draw = random.Random(seed)
    words = ["".join(draw.choices("abdeiklmnoprstuv", k=draw.randint(3, 9))) for _ in range(900)]
    docs: dict[str, bytes] = {}
    sentences: dict[str, list[Extent]] = {}
    for number in range(documents):
        text, extents = "", []
        for _ in range(draw.randint(60, 120)):
            sentence = " ".join(draw.choices(words, k=draw.randint(6, 22))).capitalize() + "."
            extents.append((len(text), len(text) + len(sentence)))
            text += sentence + ("\n\n" if draw.random() < 0.2 else " ")
        docs[f"d{number}.txt"] = text.encode()
        sentences[f"d{number}.txt"] = extents
    asked = []
    for number in range(questions):
        doc = draw.choice(sorted(docs))
        chosen = draw.sample(sentences[doc], k=draw.choice((1, 1, 1, 2)))
        told = [word for start, end in chosen for word in docs[doc][start:end].decode().split()]
        query = " ".join(draw.sample(told, k=max(2, len(told) // 3)) + draw.choices(words, k=6))
        asked.append(Question(f"g{number:04d}", query, doc, tuple(sorted(chosen))))
    return TextSet(docs, asked)


def chunked(texts: TextSet, chunking: str) -> list[TextChunk]:
    """All documents cut in one way; ids have the name of the chunking, as those of an index do."""
    cut = {
        "fixed800": lambda text: _fixed(text, 800),
        "fixed400": lambda text: _fixed(text, 400),
        "recursive800": lambda text: _recursive(text, 800),
        "sentences": _sentences,
    }[chunking]
    chunks = []
    for doc, text in sorted(texts.docs.items()):
        for number, (start, end) in enumerate(cut(text.decode())):
            begin = len(text.decode()[:start].encode())
            stop = begin + len(text.decode()[start:end].encode())
            chunks.append(TextChunk(f"{chunking}/{doc}/{number:05d}", doc, begin, stop))
    return chunks


def _fixed(text: str, size: int) -> list[Extent]:
    return [(at, min(at + size, len(text))) for at in range(0, len(text), size)]


def _sentences(text: str) -> list[Extent]:
    pattern = re.compile(r"\S.*?(?:[.!?]+(?=\s)|$)", re.MULTILINE)
    return [(found.start(), found.end()) for found in pattern.finditer(text)]


def _recursive(text: str, size: int) -> list[Extent]:
    """Paragraphs, else sentences, put together while they fit."""
    cuts = [found.end() for found in re.finditer(r"\n\n+|(?<=[.!?])\s+", text)] + [len(text)]
    extents, start, last = [], 0, 0
    for cut in cuts:
        if cut - start > size and last > start:
            extents.append((start, last))
            start = last
        while cut - start > size:
            extents.append((start, start + size))
            start += size
        last = cut
    if start < len(text):
        extents.append((start, len(text)))
    return extents


class SearchedChunks:
    """A BM25 index of chunks."""

    def __init__(self, texts: TextSet, chunks: Sequence[TextChunk]) -> None:
        self.texts, self.chunks = texts, chunks
        self.index = Bm25Index([self.text(chunk) for chunk in chunks], k1=1.5, b=0.75, lucene=True)

    def text(self, chunk: TextChunk) -> str:
        return self.texts.docs[chunk.doc][chunk.start : chunk.end].decode(errors="replace")

    def search(self, query: str, k: int = K) -> list[TextChunk]:
        scores = self.index.scores(query)
        order = np.lexsort((np.arange(len(scores)), -scores))[:k]
        return [self.chunks[place] for place in order.tolist() if scores[place] > 0]

    def searched(self, *, weakened: bool = False, k: int = K) -> dict[str, list[TextChunk]]:
        """The hits of every question; a weakened search loses six words of ten."""
        hits = {}
        for question in self.texts.questions:
            query = question.text
            if weakened:
                draw = random.Random(question.qid)
                kept = [word for word in query.split() if draw.random() > 0.6]
                query = " ".join(kept or query.split()[:1])
            hits[question.qid] = self.search(query, k)
        return hits


# --- the truth ---


def true_ranks(question: Question, hits: Sequence[TextChunk]) -> list[int | None]:
    """The rank from 1 at which half of each span is covered by the hits so far, byte by byte."""
    ranks: list[int | None] = []
    for start, end in question.spans:
        seen: set[int] = set()
        rank_found = None
        for rank, hit in enumerate(hits, 1):
            if hit.doc == question.doc:
                seen.update(range(max(start, hit.start), min(end, hit.end)))
            if 2 * len(seen) >= end - start:
                rank_found = rank
                break
        ranks.append(rank_found)
    return ranks


def true_kind(a: Sequence[int | None], b: Sequence[int | None]) -> str:
    """The kind of a question by all its pieces within ten hits."""
    lost = any(one is not None and other is None for one, other in zip(a, b, strict=True))
    gained = any(one is None and other is not None for one, other in zip(a, b, strict=True))
    before, after = sum(rank is not None for rank in a), sum(rank is not None for rank in b)
    if after < before:
        return "regression"
    if lost:
        return "mixed"
    if gained:
        return "win"
    mean_a, mean_b = (sum(1 / rank for rank in side if rank is not None) for side in (a, b))
    if abs(mean_a - mean_b) < 1e-12:
        return "draw"
    return "win" if mean_b > mean_a else "loss"


def holding(question: Question, chunks: Sequence[TextChunk]) -> list[str]:
    """The chunk that holds most of each span: what chunk-id gold names."""
    named = []
    for start, end in question.spans:
        shared = [
            max(0, min(end, chunk.end) - max(start, chunk.start))
            if chunk.doc == question.doc
            else 0
            for chunk in chunks
        ]
        named.append(chunks[int(np.argmax(shared))].id)
    return list(dict.fromkeys(named))


# --- files ---


def id_gold(texts: TextSet, chunks: Sequence[TextChunk]) -> list[dict[str, Any]]:
    """Gold that names chunks."""
    return [
        {"qid": each.qid, "question": each.text, "relevant": holding(each, chunks)}
        for each in texts.questions
    ]


def chunk_gold(texts: TextSet, chunks: Sequence[TextChunk]) -> list[dict[str, Any]]:
    """Gold that names chunks, with their places: what `gold pin` makes of ids."""
    by_id = {chunk.id: chunk for chunk in chunks}
    rows = id_gold(texts, chunks)
    for row in rows:
        row["relevant"] = [
            {
                "id": name,
                "doc": by_id[name].doc,
                "start": by_id[name].start,
                "end": by_id[name].end,
                "grain": "chunk",
            }
            for name in row["relevant"]
        ]
    return rows


LEAST = 40


def is_whole(question: Question, chunks: Sequence[TextChunk]) -> bool:
    """Whether each span has a chunk of its own that holds all of it, and the least of bytes.

    Places promise nothing of evidence that is cut by a border or shorter than they are.
    """
    return len(holding(question, chunks)) == len(question.spans) and all(
        end - start >= LEAST
        and any(
            chunk.doc == question.doc and chunk.start <= start and end <= chunk.end
            for chunk in chunks
        )
        for start, end in question.spans
    )


MEASURED = (
    *("hit", "recall", "mrr", "ndcg", "map", "precision", "precision_at_cutoff"),
    *("span_recall", "span_precision", "span_iou"),
)
CUTOFFS = (1, 3, 10)


class HeldValues(NamedTuple):
    """How often the true value of a question lies outside its band, by metric and how many."""

    outside: Counter[str]
    values: Counter[str]
    width: dict[str, float]
    means_outside: int


def held_values(
    texts: TextSet, chunks: Sequence[TextChunk], hits: Mapping[str, Sequence[TextChunk]]
) -> HeldValues:
    """Score hits by chunks and by the bytes themselves: is the truth within the band?"""
    rows = list(traces(texts, hits))
    metrics = [f"retrieval.{name}" for name in MEASURED]
    by_chunk, by_bytes = (
        score(gold, rows, profile="all", k=CUTOFFS, metrics=metrics, intervals=False)
        for gold in (chunk_gold(texts, chunks), evidence_gold(texts))
    )
    values, truth = by_chunk.per_question, by_bytes.per_question
    assert values is not None
    assert truth is not None
    whole = np.array([is_whole(question, chunks) for question in texts.questions], np.bool_)
    held = HeldValues(Counter(), Counter(), defaultdict(float), 0)
    means_outside = 0
    for row, name in enumerate(values.metrics):
        low = high = values.values[row]
        if values.ends is not None:
            low, high = values.ends.low[row], values.ends.high[row]
        true = truth.of(name)
        known = ~np.isnan(true) & whole
        base = name.partition("@")[0]
        missed = (true < low - 1e-9) | (true > high + 1e-9) | np.isnan(low)
        held.outside[base] += int(np.count_nonzero(missed & known))
        held.values[base] += int(np.count_nonzero(known))
        held.width[base] += float(np.nansum((high - low)[known]))
        if known.any():
            mean = float(true[known].mean())
            inside = low[known].mean() - 1e-9 <= mean <= high[known].mean() + 1e-9
            means_outside += not inside
    return held._replace(means_outside=means_outside)


def evidence_gold(texts: TextSet) -> list[dict[str, Any]]:
    """Gold that names bytes."""
    return [
        {
            "qid": each.qid,
            "question": each.text,
            "relevant": [
                {"doc": each.doc, "start": start, "end": end, "grain": "evidence"}
                for start, end in each.spans
            ],
        }
        for each in texts.questions
    ]


def traces(
    texts: TextSet,
    hits: Mapping[str, Sequence[TextChunk]],
    *,
    kept: Sequence[str] = ("doc", "spans"),
) -> Iterator[dict[str, Any]]:
    """Trace rows; `kept` says what they tell of their hits beside ids."""
    for question in texts.questions:
        rows = []
        for hit in hits[question.qid]:
            row: dict[str, Any] = {"id": hit.id}
            if "doc" in kept:
                row["doc"] = hit.doc
            if "spans" in kept:
                row |= {"start": hit.start, "end": hit.end}
            if "text" in kept:
                row["text"] = texts.docs[hit.doc][hit.start : hit.end].decode(errors="replace")
            rows.append(row)
        yield {"qid": question.qid, "question": question.text, "topk": rows}


def compared(folder: Folder, *options: str, code: int | None = None) -> dict[str, Any]:
    """The comparison of a.jsonl and b.jsonl by gold.jsonl, as JSON."""
    arguments = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--format", "json", *options)
    outcome = folder.run("compare", *arguments)
    assert code is None or outcome.exit_code == code, (outcome.exit_code, outcome.err, outcome.out)
    document: dict[str, Any] = json.loads(outcome.out)
    return document
