"""LangSmith: runs with a type, inputs, outputs and metadata, as its reader hands them on."""

from __future__ import annotations

from typing import Any

from ragauge.formats.imports import documents, payload
from ragauge.formats.imports.span import CHAIN, MODEL, OTHER, RETRIEVER, SpanFacts, TraceSpan
from ragauge.formats.imports.vocabulary import Vocabulary

_TYPE = "langsmith.run_type"
_ROLES = {
    "retriever": RETRIEVER, "llm": MODEL, "embedding": OTHER, "tool": OTHER, "prompt": OTHER,
    "parser": OTHER,
}  # fmt: skip


def _read(span: TraceSpan) -> SpanFacts:
    run = span.attributes
    notes: list[str] = []
    role = _ROLES.get(str(run[_TYPE]).lower(), CHAIN)
    extra = run.get("extra")
    metadata: Any = extra.get("metadata") if isinstance(extra, dict) else run.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    facts = SpanFacts(role, qid=payload.qid_in(metadata), index=payload.index_in(metadata))
    if facts.qid is None:
        facts.qid = payload.unquoted_text(run.get("reference_example_id"))
    session = metadata.get("session_id", metadata.get("thread_id"))
    facts.session = session if isinstance(session, str) else None
    outputs = run.get("outputs")
    if role == RETRIEVER:
        facts.question = payload.question_in(run.get("inputs"))
        facts.hits = documents.hits_of(outputs, notes)
    elif role == MODEL:
        facts.output = outputs
    elif role == CHAIN:
        facts.input, facts.output = run.get("inputs"), outputs
    facts.notes = notes or None
    return facts


VOCABULARY = Vocabulary(name="langsmith", title="LangSmith", marks=(_TYPE,), read=_read)
