"""ΔS: how far the question is from what was retrieved and cited, as the traces record it."""

from __future__ import annotations

from functools import partial

import numpy as np

from ragauge.metrics.batch import NEVER, Batch
from ragauge.metrics.columns import Floats
from ragauge.metrics.metric import Example, Metric
from ragauge.metrics.populations import CITED_WITH_DELTA_S, TRACED

_GOLD = {"qid": "A1", "question": "What is SCU?", "relevant": ["S.4.2.p.Bk011a"]}
_TRACE = {
    "qid": "A1",
    "topk": ["S.4.2.p.Bk011a", "S.4.1.p.Bk010", "S.4.3.p.Bk014"],
    "ΔS": [0.31, 0.59, 0.62],
    "answer_citations": [{"id": "S.4.1.p.Bk010"}, {"id": "S.4.2.p.Bk011a"}],
}
_example = partial(Example, _GOLD, _TRACE)
_CITED = "ΔS(question, cited snippet) of the first citation that has one: the answer's own, the "
_CITED += "citation's, or that of the hit with the same id"
_BANDS = (
    "ΔS is 1 - cos. Bands of the source: stable below 0.40, transitional to 0.60, risk from there. "
    "They belong to one embedder and mean nothing for another."
)

_distance = partial(Metric, binary=False, range=(0.0, 2.0), better="lower")


def _hits(share: float, batch: Batch, k: int) -> Floats:
    cut = k or NEVER
    quantiles = batch.quantile_of("delta_s", share, cut)
    return np.where(batch.listed_in("delta_s", cut), quantiles, np.nan)


METRICS = (
    _distance(
        id="semantic.delta_s_cited",
        version=2,
        quantile="median",
        title="Distance of the cited snippet from the question, median",
        formula=f"{_CITED}; the median over questions",
        over=CITED_WITH_DELTA_S,
        source="WFGY chunking eval page (ΔS of the cited snippet)",
        value=lambda b, k: b.single("delta_s_cited"),
        elsewhere=_BANDS,
        example=_example(0.59, "the first citation is the second hit, whose ΔS is 0.59."),
    ),
    _distance(
        id="semantic.delta_s_cited_p90",
        version=2,
        quantile="p90",
        title="Distance of the cited snippet from the question, 90th percentile",
        formula=f"{_CITED}; the 90th percentile over questions, interpolated linearly",
        over=CITED_WITH_DELTA_S,
        source="WFGY chunking eval page (ΔS of the cited snippet)",
        value=lambda b, k: b.single("delta_s_cited"),
        example=_example(0.59, "one question: its value, 0.59, is every percentile."),
    ),
    _distance(
        id="semantic.delta_s_hits",
        may_cut=True,
        quantile="median",
        title="Distance of the hits from the question, median of medians",
        formula="the median over the hits (at @k over the first k) of ΔS(question, hit); the "
        "median over questions",
        over=TRACED,
        undefined="no-delta-s",
        source="WFGY chunking eval page (pseudocode)",
        value=lambda b, k: _hits(0.5, b, k),
        elsewhere=_BANDS,
        example=_example(0.59, "the median of 0.31, 0.59 and 0.62 is 0.59."),
    ),
    _distance(
        id="semantic.delta_s_hits_p90",
        may_cut=True,
        quantile="median",
        title="Distance of the hits from the question, median of 90th percentiles",
        formula="the 90th percentile over the hits (at @k over the first k) of ΔS(question, hit), "
        "interpolated linearly; the median over questions",
        over=TRACED,
        undefined="no-delta-s",
        source="WFGY chunking eval page (pseudocode)",
        value=lambda b, k: _hits(0.9, b, k),
        example=_example(0.614, "at 0.9 · 2 = 1.8 between 0.59 and 0.62: 0.59 + 0.8 · 0.03."),
    ),
)
