"""The JSON object of the scorer of the WFGY eval page; with --full the scores document follows."""

from __future__ import annotations

import json
from typing import Any

from ragauge.model.report import Report, View
from ragauge.model.scores_document import json_text, rounded, rounded_pair, to_document

_KEYS = {
    "precision": "answer.grounded_precision",
    "chr": "citation.hit_rate",
    "under_refusal": "refusal.under",
    "over_refusal": "refusal.over",
    "recall@k": "retrieval.recall_all",
}


def _text(view: View) -> str:
    scores = view.scores
    k = scores.k[0]
    document: dict[str, Any] = {
        "answered": scores.tally.answered,
        "refused": scores.tally.refused,
        "answerable": scores.tally.answerable,
        "unanswerable": scores.tally.unanswerable,
    }
    bands: dict[str, Any] = {}
    for key, metric in _KEYS.items():
        name = f"{metric}@{k}" if metric.startswith("retrieval.") else metric
        document[key] = rounded(scores.metrics[name].shown) if name in scores.metrics else None
        if name in scores.metrics and scores.metrics[name].band is not None:
            bands[key] = rounded_pair(scores.metrics[name].band)
    document["k"] = k
    if bands:  # beyond the source, which knows no places
        document["bands"] = bands
    document["gates"] = {result.gate.name: result.gate.given for result in view.verdict.gates}
    document["pass"] = view.verdict.gates_pass
    if not view.full:
        return json.dumps(document, indent=2) + "\n"
    for key, value in to_document(scores, view.verdict, full=True).items():
        document.setdefault(key, value)
    return json_text(document)


REPORT = Report(
    name="ship", title="the JSON of the WFGY eval page, key by key", syntax="json", content=_text
)
