"""Spans: how much of the evidence's text came back, whatever the chunks are."""

from __future__ import annotations

from functools import partial

import numpy as np

from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Floats
from ragauge.metrics.metric import Example, Metric
from ragauge.metrics.populations import SPAN_LABELLED

_GOLD = {
    "qid": "A1",
    "question": "Which keys are refused?",
    "relevant": [{"doc": "guide.md", "start": 100, "end": 200}],
}
_TRACE = {
    "qid": "A1",
    "topk": [
        {"id": "c1", "doc": "guide.md", "offsets": [50, 150]},
        {"id": "c2", "doc": "guide.md", "offsets": [120, 170]},
        {"id": "c3", "doc": "api.md", "offsets": [0, 80]},
    ],
}
_example = partial(Example, _GOLD, _TRACE)

_span_share = partial(
    Metric,
    at_k=True,
    binary=False,
    better="higher",
    source="own, after Chroma's chunking evaluation",
)


def _covered(batch: Batch, k: int) -> Floats:
    return batch.detail("span_covered").total(batch.size, k)


def _union(batch: Batch, k: int) -> Floats:
    return batch.detail("span_union").total(batch.size, k)


def _precision(batch: Batch, k: int) -> Floats:
    union = _union(batch, k)
    nothing = np.full(batch.size, np.nan)
    share: Floats = np.divide(_covered(batch, k), union, out=nothing, where=union > 0)
    return share


def _iou(batch: Batch, k: int) -> Floats:
    covered = _covered(batch, k)
    return covered / np.maximum(1, batch.span_bytes + _union(batch, k) - covered)


METRICS = (
    _span_share(
        id="retrieval.span_recall",
        version=2,
        reads_bytes=True,
        title="Share of the evidence's text that the first k hits cover",
        formula="bytes of gold spans covered by the union of the first k hits / bytes of gold "
        "spans (unions on both sides, each document by itself)",
        over=SPAN_LABELLED,
        value=lambda b, k: _covered(b, k) / np.maximum(1, b.span_bytes),
        elsewhere="Chroma's recall is the same in characters. Overlapping chunks count once, so "
        "the value never exceeds 1.",
        example=_example(
            0.7, "hits cover bytes 50–170 of guide.md, so 100–170 of 100–200: 70 / 100."
        ),
    ),
    _span_share(
        id="retrieval.span_precision",
        version=2,
        reads_bytes=True,
        title="Share of the retrieved text that is evidence",
        formula="bytes of gold spans covered by the union of the first k hits / bytes of that "
        "union; null where no bytes were retrieved",
        over=SPAN_LABELLED,
        undefined="no-retrieved-bytes",
        value=_precision,
        elsewhere="Chroma's plain precision counts overlapping chunks twice; its precision-omega "
        "is retrieval.span_iou, taken over all chunks that touch the gold.",
        example=_example(0.35, "the union is 120 bytes of guide.md and 80 of api.md: 70 / 200."),
    ),
    _span_share(
        id="retrieval.span_iou",
        version=2,
        reads_bytes=True,
        title="Overlap of retrieved text and evidence over their union",
        formula="bytes in both / bytes in either, of the gold spans and the union of the first k "
        "hits",
        over=SPAN_LABELLED,
        value=_iou,
        elsewhere="Chroma's precision-omega is this over all chunks that touch the gold: it also "
        "divides by gold that no chunk covers.",
        example=_example(70 / 230, "70 bytes in both; 100 + 200 - 70 = 230 in either: 70 / 230."),
    ),
)
