"""Langfuse: observations with a type, an input and an output; metadata one by one, each as JSON."""

from __future__ import annotations

from typing import Any

from ragauge.formats.imports import documents, payload
from ragauge.formats.imports.span import (
    CHAIN,
    MODEL,
    OTHER,
    RETRIEVER,
    SpanFacts,
    TraceSpan,
    first_line,
)
from ragauge.formats.imports.vocabulary import Vocabulary

_TYPE = "langfuse.observation.type"
_INPUT, _OUTPUT = "langfuse.observation.input", "langfuse.observation.output"
_METADATA = ("langfuse.observation.metadata.", "langfuse.trace.metadata.")
_ITEM = "langfuse.experiment.item.id"
_ROLES = {"retriever": RETRIEVER, "generation": MODEL, "embedding": OTHER, "tool": OTHER,
          "evaluator": OTHER, "guardrail": OTHER, "event": OTHER}  # fmt: skip


def _read(span: TraceSpan) -> SpanFacts:
    attributes = span.attributes
    notes: list[str] = []
    role = _ROLES.get(str(attributes.get(_TYPE, "span")).lower(), CHAIN)
    facts = SpanFacts(role)
    metadata: dict[str, Any] = {}
    for key, value in attributes.items():
        for prefix in _METADATA:
            if key.startswith(prefix):
                metadata.setdefault(key.removeprefix(prefix), value)
    facts.qid, facts.index = payload.qid_in(metadata), payload.index_in(metadata)
    if facts.qid is None and _ITEM in attributes:
        facts.qid = payload.unquoted_text(attributes[_ITEM])
    session = attributes.get("session.id")
    facts.session = session if isinstance(session, str) else None
    if attributes.get("langfuse.observation.level") == "ERROR" and span.error is None:
        message = attributes.get("langfuse.observation.status_message")
        facts.error = (first_line(message) if isinstance(message, str) else "") or "error"
    output = attributes.get(_OUTPUT)
    if role == RETRIEVER:
        facts.question = payload.question_in(attributes.get(_INPUT))
        facts.hits, facts.lost = documents.hits_and_loss(output, span.dropped, notes)
    elif role == MODEL:
        facts.output = output
    elif role == CHAIN:
        facts.input = attributes.get(_INPUT, attributes.get("langfuse.trace.input"))
        facts.output = attributes.get("langfuse.trace.output") if output is None else output
    facts.notes = notes or None
    return facts


VOCABULARY = Vocabulary(
    name="langfuse",
    title="Langfuse",
    marks=(_TYPE, _INPUT, _OUTPUT),
    read=_read,
)
