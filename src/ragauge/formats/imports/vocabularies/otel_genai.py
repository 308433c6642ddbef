"""OpenTelemetry's own conventions for generative AI: `gen_ai.operation.name` and its documents."""

from __future__ import annotations

from ragauge.formats.imports import documents
from ragauge.formats.imports.span import CHAIN, MODEL, OTHER, RETRIEVER, SpanFacts, TraceSpan
from ragauge.formats.imports.vocabulary import Vocabulary

_OPERATION, _DOCUMENTS = "gen_ai.operation.name", "gen_ai.retrieval.documents"
_ROLES = {
    "retrieval": RETRIEVER, "chat": MODEL, "text_completion": MODEL, "generate_content": MODEL,
    "embeddings": OTHER, "execute_tool": OTHER,
}  # fmt: skip


def _read(span: TraceSpan) -> SpanFacts:
    attributes = span.attributes
    notes: list[str] = []
    operation = attributes.get(_OPERATION)
    role = RETRIEVER if operation is None else _ROLES.get(str(operation), CHAIN)
    facts = SpanFacts(role)
    session = attributes.get("gen_ai.conversation.id")
    facts.session = session if isinstance(session, str) else None
    if role == RETRIEVER:
        query = attributes.get("gen_ai.retrieval.query.text")
        facts.question = query if isinstance(query, str) else None
        listed = attributes.get(_DOCUMENTS)
        facts.hits, facts.lost = documents.hits_and_loss(listed, span.dropped, notes)
        source = attributes.get("gen_ai.data_source.id")
        facts.index = {"index_hash": source} if isinstance(source, str) and source else None
    elif role in (MODEL, CHAIN):
        facts.input = attributes.get("gen_ai.input.messages")
        facts.output = attributes.get("gen_ai.output.messages")
    if span.error is None and isinstance(attributes.get("error.type"), str):
        facts.error = attributes["error.type"]
    facts.notes = notes or None
    return facts


VOCABULARY = Vocabulary(
    name="otel-genai",
    title="OpenTelemetry GenAI",
    marks=(_OPERATION, _DOCUMENTS),
    general=True,
    read=_read,
)
