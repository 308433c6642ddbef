"""TruLens: `ai.observability.*`, with the retrieved texts and no ids or scores."""

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

_P = "ai.observability."
_TYPE = f"{_P}span_type"
_ROLES = {
    "retrieval": RETRIEVER, "reranking": RERANKER, "generation": MODEL, "embedding": OTHER,
    "tool": OTHER, "eval": OTHER, "eval_root": OTHER,
}  # fmt: skip


def _read(span: TraceSpan) -> SpanFacts:
    attributes = span.attributes
    notes: list[str] = []
    role = _ROLES.get(str(attributes[_TYPE]), CHAIN)
    facts = SpanFacts(role, qid=payload.unquoted_text(attributes.get(f"{_P}input_id")))
    version = attributes.get(f"{_P}app_version")
    facts.index = {"build": version} if isinstance(version, str) and version else None
    if role in (RETRIEVER, RERANKER):
        # A retrieval has `retrieval.query_text`, a reranking `reranking.query_text`.
        kind = attributes[_TYPE]
        query = attributes.get(f"{_P}{kind}.query_text")
        facts.question = query if isinstance(query, str) else None
        names = (
            f"{_P}retrieval.retrieved_contexts",
            f"{_P}reranking.output_context_texts",
            f"{_P}call.return",
        )
        contexts = documents.first(attributes, names)
        facts.hits = documents.hits_of(contexts, notes)
        if span.dropped:
            facts.lost = f"{span.dropped} attributes were dropped"
    elif role == MODEL:
        facts.output = attributes.get(f"{_P}call.return")
    elif role == CHAIN:
        facts.input = attributes.get(f"{_P}record_root.input")
        facts.output = attributes.get(f"{_P}record_root.output")
    facts.notes = notes or None
    return facts


VOCABULARY = Vocabulary(name="trulens", title="TruLens", marks=(_TYPE,), read=_read)
