"""`score` of gold that names chunks against a count of every place, one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ragauge.scoring.score import score
from tests.oracles import places_oracle as oracle
from tests.support.effort import seeds

K = (1, 3, 5)
NAMES = ("hit", "recall", "mrr", "ndcg", "map", "precision", "span_recall", "span_precision",
         "span_iou")  # fmt: skip


def _case(seed: int, pieces: int) -> tuple[list[oracle.Extent], list[oracle.Extent | None]]:
    """Chunks apart from each other in one document, and hits that are cut otherwise."""
    draw = random.Random(seed)
    longest = 110 if pieces == 1 else 90
    at, chunks = draw.randrange(50), []
    for _ in range(pieces):
        length = draw.randint(20, longest)
        chunks.append((at, at + length))
        at += length + draw.randint(0, 90)
    hits: list[oracle.Extent | None] = []
    for _ in range(draw.randint(0, 6)):
        start = draw.randrange(at)
        hits.append(None if draw.random() < 0.25 else (start, start + draw.randint(5, longest)))
    return chunks, hits


def _scored(chunks: list[oracle.Extent], hits: list[oracle.Extent | None]) -> Any:
    relevant = [
        {"id": f"g{n}", "doc": "d.md", "start": start, "end": end}
        for n, (start, end) in enumerate(chunks)
    ]
    topk = [
        {"id": f"h{n}", "doc": "d.md", "start": hit[0], "end": hit[1]}
        if hit is not None
        else {"id": f"h{n}", "doc": f"x{n}.md", "start": 0, "end": 10}
        for n, hit in enumerate(hits)
    ]
    gold = [{"qid": "q", "question": "what?", "relevant": relevant}]
    traces = [{"qid": "q", "question": "what?", "topk": topk}]
    metrics = [f"retrieval.{name}" for name in NAMES]
    return score(gold, traces, profile="all", k=K, metrics=metrics, intervals=False).metrics


def _is_untouched(chunk: oracle.Extent, hits: list[oracle.Extent | None]) -> bool:
    """Whether no hit has a byte of a chunk, or only such as are the very chunk."""
    return all(
        hit is None or hit == chunk or hit[0] >= chunk[1] or hit[1] <= chunk[0] for hit in hits
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(60))
def test_one_chunk(seed: int) -> None:
    """Every metric has the very ends that enumerating gives.

    Which hits are relevant may change anywhere, and not only where hits end: precision has ends
    between those over places and those over all bytes.
    """
    chunks, hits = _case(seed, 1)
    if _is_untouched(chunks[0], hits):
        hits.append((chunks[0][0], chunks[0][0] + 15))
    metrics = _scored(chunks, hits)
    for k in K:
        for name, (low, high) in oracle.bands(chunks, hits, k).items():
            result = metrics[f"{name}@{k}"]
            band = result.band or (result.value, result.value)
            if name == "retrieval.precision":
                least, most = oracle.precision_at_places(chunks[0], hits, k)
                assert low - 1e-9 <= band[0] <= least + 1e-9
                assert most - 1e-9 <= band[1] <= high + 1e-9
                continue
            assert band == pytest.approx((low, high), abs=1e-9), (name, k)
            assert (result.value is None) == (low != pytest.approx(high, abs=1e-12)), (name, k)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(25))
def test_two_chunks(seed: int) -> None:
    """Metrics of ranks have the very ends; those of text have ends that hold all of them."""
    chunks, hits = _case(seed + 10_000, 2)
    if any(_is_untouched(chunk, hits) for chunk in chunks):
        hits += [(start, start + 15) for start, _ in chunks]
    metrics = _scored(chunks, hits)
    for k in K:
        for name, (low, high) in oracle.bands(chunks, hits, k, step=15).items():
            result = metrics[f"{name}@{k}"]
            band = result.band or (result.value, result.value)
            if name.partition(".")[2] in ("hit", "recall", "mrr", "ndcg", "map"):
                assert band == pytest.approx((low, high), abs=1e-9), (name, k)
            elif name != "retrieval.precision":
                assert band[0] <= low + 1e-9, (name, k)
                assert band[1] >= high - 1e-9, (name, k)
