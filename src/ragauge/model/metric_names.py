"""What metrics are called beside their ids: labels for people, and former ids."""

from __future__ import annotations

METRIC_LABELS = {
    "citation.hit_rate": "citation hit rate",
    "refusal.over": "over-refusal",
    "refusal.under": "under-refusal",
    # Not a recall: a question counts only if everything that it expects is among the first k.
    "retrieval.recall_all": "all evidence",
}
"""What tables and pages call a metric; every other one goes by its id."""

FORMER_IDS = {
    "stability.lambda_→": "stability.convergent",
    "stability.lambda_convergent": "stability.convergent",
    "stability.lambda_←": "stability.lambda_divergent",
    "stability.lambda_<>": "stability.lambda_recursive",
    "stability.lambda_×": "stability.lambda_chaotic",
}
"""Old id to new id. An entry is never removed: stored runs and committed gates may name it."""

JOINED_IDS = frozenset({"stability.lambda_→", "stability.lambda_convergent"})
"""Old ids of a metric that stood beside the one that they mean now."""

_BY_DOCUMENT = {
    "retrieval.hit": "retrieval.hit_doc",
    "retrieval.mrr": "retrieval.mrr_doc",
    "retrieval.recall": "retrieval.recall_doc",
}
"""What a metric of the evidence is called where it is taken of documents."""

MAX_K = 999_999_999
"""The largest cut-off: ranks are counted in 32 bits, and no list of hits comes near it."""


def metric_label(metric_id: str) -> str:
    """What people read for a reported id: `all evidence@5`, or the id where it has no label."""
    base, at, cut = metric_id.partition("@")
    return f"{METRIC_LABELS.get(base, base)}{at}{cut}"


def current_id(metric_id: str) -> str:
    """The id of today for one that may be old, with its cut-off if it has one."""
    base, at, cut = metric_id.partition("@")
    return f"{FORMER_IDS.get(base, base)}{at}{cut}"


def by_document(metric_id: str) -> str | None:
    """The id of the same metric over documents, with its cut-off; None where there is none."""
    base, at, cut = metric_id.partition("@")
    return f"{_BY_DOCUMENT[base]}{at}{cut}" if base in _BY_DOCUMENT else None


def labelled_id(name: str) -> str:
    """The id whose label this is, without a cut-off; any other name as it is."""
    base = name.partition("@")[0]
    return next((base_id for base_id, label in METRIC_LABELS.items() if label == base), name)
