"""OpenInference: documents as numbered attributes, `openinference.span.kind` says what a span is.

Written by the instrumentors of Arize, as for LangChain and LlamaIndex, and exported by Phoenix.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.formats.imports import documents, payload
from ragauge.formats.imports.documents import NumberedDocuments
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

_KIND = "openinference.span.kind"
_RETRIEVED, _RERANKED = "retrieval.documents.", "reranker.output_documents."
_ROLES = {
    "RETRIEVER": RETRIEVER, "RERANKER": RERANKER, "LLM": MODEL, "EMBEDDING": OTHER, "TOOL": OTHER,
    "PROMPT": OTHER, "GUARDRAIL": OTHER, "EVALUATOR": OTHER,
}  # fmt: skip
_FLAT = "metadata."


def _read(span: TraceSpan) -> SpanFacts:
    attributes = span.attributes
    kind = attributes.get(_KIND)
    if kind is None:
        is_reranker = any(key.startswith(_RERANKED) for key in attributes)
        kind = "RERANKER" if is_reranker else "RETRIEVER"
    role = _ROLES.get(str(kind).upper(), CHAIN)
    notes: list[str] = []
    facts = SpanFacts(role)
    metadata = attributes.get("metadata")
    if isinstance(metadata, str):
        facts.qid, facts.index = _metadata_facts(metadata)
    elif isinstance(metadata, dict):
        facts.qid, facts.index = payload.qid_in(metadata), payload.index_in(metadata)
    session = attributes.get("session.id")
    facts.session = session if isinstance(session, str) else None
    if role in (RETRIEVER, RERANKER):
        prefix = _RETRIEVED if role == RETRIEVER else _RERANKED
        facts.hits, facts.lost = _hits(span, prefix, notes)
        facts.question = payload.question_in(attributes.get("input.value"))
        if role == RERANKER:
            facts.candidates, _ = _hits(span, "reranker.input_documents.", notes)
            query = attributes.get("reranker.query")
            facts.question = query if isinstance(query, str) else facts.question
    elif role == MODEL:
        facts.output = attributes.get("llm.output_messages.0.message.content")
        if facts.output is None:
            facts.output = attributes.get("output.value")
    elif role == CHAIN:
        facts.input = attributes.get("input.value")
        facts.output = attributes.get("output.value")
    facts.notes = notes or None
    return facts


def _hits(
    span: TraceSpan, prefix: str, notes: list[str]
) -> tuple[list[dict[str, Any]], str | None]:
    listed = NumberedDocuments(span.attributes, prefix)
    entries = listed.ordered()
    hits = []
    missing_id = False
    for fields in entries:
        stated = fields.get("metadata")
        if stated is not None:
            metadata = documents.metadata_of(stated, notes)
        else:
            metadata = _flat_metadata(fields)
        hit_id, score = fields.get("id"), fields.get("score")
        if hit_id is None and metadata:
            hit_id = documents.metadata_id(metadata)
        if score is None and metadata:
            score = documents.metadata_score(metadata)
        hit = documents.make_hit(
            notes,
            id=hit_id,
            doc=documents.metadata_doc(metadata) if metadata else None,
            score=score,
            text=fields.get("content"),
            places=(metadata,) if metadata else (),
        )
        missing_id = missing_id or "id" not in hit
        hits.append(hit)
    if missing_id:
        # The instrumentor of LangChain writes ids into the output alone.
        output = _written(span.attributes.get("output.value"))
        if len(output) == len(hits):
            for rank, (hit, document) in enumerate(zip(hits, output, strict=True)):
                if "id" not in hit and document.id and document.page_content == hit.get("text"):
                    hits[rank] = {"id": str(document.id), **hit}
    lost = listed.lost
    if span.dropped:
        lost = lost or "perhaps some of the documents"
        lost = f"{lost} ({span.dropped} attributes were dropped)"
    return hits, lost


def _flat_metadata(fields: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a document that Phoenix took apart."""
    return {
        name.removeprefix(_FLAT): value for name, value in fields.items() if name.startswith(_FLAT)
    }


class _Document(Struct, gc=False):
    """What is looked for in a document of LangChain."""

    id: str | int | None = None
    page_content: str | None = None


class _Output(Struct, gc=False):
    documents: list[_Document] = []


_decode_output = msgspec.json.Decoder(_Output).decode
_decode_documents = msgspec.json.Decoder(list[_Document]).decode


def _written(output: Any) -> list[_Document]:
    """The documents that a retriever gave back, as JSON."""
    if not isinstance(output, str):
        return []
    try:
        if output.startswith("["):
            return _decode_documents(output)
        return _decode_output(output).documents
    except (msgspec.DecodeError, RecursionError):
        return []


@lru_cache(256)  # every span of a trace has the same
def _metadata_facts(text: str) -> tuple[str | None, dict[str, str] | None]:
    metadata = documents.metadata_of(text, [])
    return payload.qid_in(metadata), payload.index_in(metadata)


VOCABULARY = Vocabulary(
    name="openinference",
    title="OpenInference",
    marks=(_KIND,),
    prefixes=(_RETRIEVED, _RERANKED),
    read=_read,
)
