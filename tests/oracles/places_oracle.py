"""What a run is worth wherever the evidence stands in its chunks: every place, one byte at a time.

Nothing of the package is imported, so that the two can disagree. A chunk is a pair of bytes in one
document, a hit a pair of bytes or None for one of another document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import log2

Extent = tuple[int, int]
Hits = Sequence[Extent | None]
LEAST = 40


def places(piece: Extent) -> list[Extent]:
    """Windows of 40 bytes, each 20 behind the one before, and the last 40 bytes."""
    start, end = piece
    if end - start <= LEAST:
        return [piece]
    windows, at = [], start
    while at + LEAST < end:
        windows.append((at, at + LEAST))
        at += LEAST // 2
    return [*windows, (end - LEAST, end)]


def stretches(piece: Extent, step: int = 1) -> list[Extent]:
    """Any bytes in a row, 40 at least; `step` leaves some out."""
    start, end = piece
    if end - start <= LEAST:
        return [piece]
    ends = [at for at in range(start, end + 1) if (at - start) % step == 0 or at == end]
    return [(low, high) for low in ends for high in ends if high - low >= LEAST]


def rank(evidence: Extent, hits: Hits) -> int | None:
    """The rank from 1 at which hits together cover half of the evidence."""
    seen: set[int] = set()
    for at, hit in enumerate(hits, 1):
        if hit is not None:
            seen.update(range(max(evidence[0], hit[0]), min(evidence[1], hit[1])))
        if 2 * len(seen) >= evidence[1] - evidence[0]:
            return at
    return None


def rank_metrics(evidence: Sequence[Extent], hits: Hits, k: int) -> dict[str, float]:
    """The metrics of ranks, where the evidence of each chunk stands at one place."""
    ranks = [rank(one, hits) for one in evidence]
    near = sorted(one for one in ranks if one is not None and one <= k)
    ideal = sum(1 / log2(place + 1) for place in range(1, min(k, len(ranks)) + 1))
    precisions = [min(1.0, (place + 1) / one) for place, one in enumerate(near)]
    return {
        "retrieval.hit": float(bool(near)),
        "retrieval.recall": len(near) / len(ranks),
        "retrieval.mrr": 1 / near[0] if near else 0.0,
        "retrieval.ndcg": min(1.0, sum(1 / log2(one + 1) for one in near) / ideal),
        "retrieval.map": min(1.0, sum(precisions) / len(ranks)),
    }


def _shared(one: Extent, other: Extent) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def text_metrics(evidence: Sequence[Extent], hits: Hits, k: int) -> dict[str, float]:
    """The metrics of relevant hits and covered text; a hit elsewhere has ten bytes of its own."""
    top = hits[:k]
    relevant = sum(
        any(
            _shared(hit, one) > 0 and 2 * _shared(hit, one) >= min(hit[1] - hit[0], one[1] - one[0])
            for one in evidence
        )
        for hit in top
        if hit is not None
    )
    gold = {byte for one in evidence for byte in range(*one)}
    union = {byte for hit in top if hit is not None for byte in range(*hit)}
    elsewhere = 10 * sum(hit is None for hit in top)
    covered, bytes_back = len(gold & union), len(union) + elsewhere
    values = {
        "retrieval.precision": relevant / len(top) if top else 0.0,
        "retrieval.span_recall": covered / len(gold),
        "retrieval.span_iou": covered / (len(gold) + bytes_back - covered),
    }
    if bytes_back:
        values["retrieval.span_precision"] = covered / bytes_back
    return values


def _ends(all_values: Iterator[dict[str, float]]) -> dict[str, tuple[float, float]]:
    ends: dict[str, tuple[float, float]] = {}
    for values in all_values:
        for name, value in values.items():
            low, high = ends.get(name, (value, value))
            ends[name] = min(low, value), max(high, value)
    return ends


def bands(
    pieces: Sequence[Extent], hits: Hits, k: int, step: int = 1
) -> dict[str, tuple[float, float]]:
    """The least and the greatest value of each metric over all combinations."""
    at_places = product(*map(places, pieces))
    at_stretches = product(*(stretches(piece, step) for piece in pieces))
    return {
        **_ends(rank_metrics(one, hits, k) for one in at_places),
        **_ends(text_metrics(one, hits, k) for one in at_stretches),
    }


def precision_at_places(piece: Extent, hits: Hits, k: int) -> tuple[float, float]:
    """The ends of precision over places alone, each as short as evidence may be."""
    ends = _ends(text_metrics([place], hits, k) for place in places(piece))
    return ends["retrieval.precision"]
