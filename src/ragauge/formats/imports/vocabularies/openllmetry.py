"""OpenLLMetry (Traceloop): inputs and outputs of every step as JSON in `traceloop.entity.*`."""

from __future__ import annotations

from typing import Any

from ragauge.formats.imports import documents, payload
from ragauge.formats.imports.span import CHAIN, MODEL, RETRIEVER, SpanFacts, TraceSpan
from ragauge.formats.imports.vocabulary import Vocabulary

_KIND, _INPUT, _OUTPUT = "traceloop.span.kind", "traceloop.entity.input", "traceloop.entity.output"
_PROPERTIES = "traceloop.association.properties."
_PROMPT, _COMPLETION = "gen_ai.prompt.0.content", "gen_ai.completion.0.content"


def _read(span: TraceSpan) -> SpanFacts:
    attributes = span.attributes
    notes: list[str] = []
    properties = {
        key.removeprefix(_PROPERTIES): value
        for key, value in attributes.items()
        if key.startswith(_PROPERTIES)
    }
    facts = SpanFacts(CHAIN, qid=payload.qid_in(properties), index=payload.index_in(properties))
    session = properties.get("session_id")
    facts.session = session if isinstance(session, str) else None
    output = attributes.get(_OUTPUT)
    nodes = _nodes(output)
    if attributes.get("gen_ai.operation.name") == "vector_db_retrieve" or nodes is not None:
        facts.role = RETRIEVER
        given = payload.decoded(attributes.get(_INPUT))
        facts.question = payload.question_in(given)
        if nodes is not None:
            facts.hits = documents.hits_of(nodes, notes)
        else:
            facts.hits = documents.hits_of(output, notes)
            if isinstance(output, str) and payload.decoded(output) is output:
                facts.lost = f"the list of documents was cut at {len(output)} characters"
        if span.dropped:
            facts.lost = facts.lost or f"{span.dropped} attributes were dropped"
    elif _COMPLETION in attributes or "gen_ai.output.messages" in attributes:
        facts.role = MODEL
        facts.output = attributes.get(_COMPLETION, attributes.get("gen_ai.output.messages"))
    else:
        facts.input, facts.output = attributes.get(_INPUT), output
    facts.notes = notes or None
    return facts


def _nodes(output: Any) -> list[Any] | None:
    """The nodes that a step of LlamaIndex gave back: a list of objects, or of JSON, with `node`."""
    if not (isinstance(output, str) and output[:1] == "[" and "node" in output[:40]):
        return None
    listed = payload.decoded(output)
    if not isinstance(listed, list) or not listed:
        return None
    entries = [payload.decoded(entry) for entry in listed]
    return entries if all(isinstance(e, dict) and "node" in e for e in entries) else None


VOCABULARY = Vocabulary(
    name="openllmetry",
    title="OpenLLMetry",
    marks=(_KIND, _INPUT, _OUTPUT, "traceloop.workflow.name", "traceloop.entity.name"),
    read=_read,
)
