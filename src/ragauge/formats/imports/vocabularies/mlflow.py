"""MLflow: every attribute is JSON in a string, and `mlflow.spanType` says what a span is."""

from __future__ import annotations

from ragauge.formats.imports import documents, payload
from ragauge.formats.imports.span import (
    CHAIN,
    MODEL,
    OTHER,
    RERANKER,
    RETRIEVER,
    SpanFacts,
    TraceSpan,
)
from ragauge.formats.imports.vocabulary import Vocabulary

_TYPE, _INPUTS, _OUTPUTS = "mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs"
_ROLES = {
    "RETRIEVER": RETRIEVER, "RERANKER": RERANKER, "LLM": MODEL, "CHAT_MODEL": MODEL,
    "EMBEDDING": OTHER, "TOOL": OTHER, "PARSER": OTHER,
}  # fmt: skip


def _read(span: TraceSpan) -> SpanFacts:
    attributes = span.attributes
    notes: list[str] = []
    role = _ROLES.get(str(payload.unquoted(attributes.get(_TYPE))).upper(), CHAIN)
    facts = SpanFacts(role)
    tags = span.resource
    facts.qid, facts.index = payload.qid_in(tags), payload.index_in(tags)
    outputs = attributes.get(_OUTPUTS)
    if role in (RETRIEVER, RERANKER):
        facts.question = payload.question_in(attributes.get(_INPUTS))
        facts.hits, facts.lost = documents.hits_and_loss(outputs, span.dropped, notes)
    elif role == MODEL:
        facts.output = payload.unquoted(outputs)
    elif role == CHAIN:
        facts.input = payload.unquoted(attributes.get(_INPUTS))
        facts.output = payload.unquoted(outputs)
        if facts.qid is None and span.parent_id is None and isinstance(facts.input, dict):
            facts.qid = payload.qid_in(facts.input)
    facts.notes = notes or None
    return facts


VOCABULARY = Vocabulary(
    name="mlflow",
    title="MLflow",
    marks=(_TYPE, _INPUTS, _OUTPUTS),
    read=_read,
)
