"""The compact JSON of the scoring prompt of the WFGY chunking eval page, key by key."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from ragauge.model.report import Report, View
from ragauge.model.scores import MetricResult, PerQuestion, Scores
from ragauge.model.scores_document import rounded

_RISK = 0.60
_K = 5
_OVER = {
    "P@5": f"retrieval.precision@{_K}",
    "R@5": f"retrieval.recall@{_K}",
    "coverage": "answer.coverage",
}
_CITED = ("semantic.delta_s_cited", "semantic.delta_s_cited_p90")
_HITS = (f"semantic.delta_s_hits@{_K}", f"semantic.delta_s_hits_p90@{_K}")

NEEDS = (*_OVER.values(), "citation.accuracy", *_CITED, *_HITS)
"""The metrics that this report prints."""


def _text(view: View) -> str:
    scores = view.scores
    median, p90 = _CITED if scores.cites else _HITS
    document: dict[str, Any] = {key: _value(scores.metrics, name) for key, name in _OVER.items()}
    document["citation_accuracy"] = _value(scores.metrics, "citation.accuracy")
    document["ΔS_med"] = _value(scores.metrics, median)
    document["ΔS_p90"] = _value(scores.metrics, p90)
    document["bad_qids"] = _bad(scores, median)
    document["by_type"] = {
        name: {"n": part.n, **{key: _value(part.metrics, metric) for key, metric in _OVER.items()}}
        for name, part in scores.slices.get("type", {}).items()
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _value(metrics: dict[str, MetricResult], name: str) -> float | None:
    return rounded(metrics[name].value) if name in metrics else None


def _bad(scores: Scores, distance: str) -> list[str]:
    """The questions that nothing covers, and those whose snippet is far away."""
    values = scores.per_question
    if values is None:
        return []
    bad = _of(values, "answer.coverage") == 0
    risk = _RISK if scores.semantic is None else scores.semantic.bands.risk
    bad |= _of(values, distance) > risk  # nan is neither
    return sorted({values.qids[place] for place in np.flatnonzero(bad).tolist()})


def _of(values: PerQuestion, metric: str) -> Any:
    if metric not in values.metrics:
        return np.full(len(values.qids), np.nan)
    return values.of(metric)


REPORT = Report(
    name="compact",
    title="the short JSON of the WFGY chunking eval page's prompt",
    syntax="json",
    content=_text,
    needs=NEEDS,
    public=True,
)
