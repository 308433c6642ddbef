"""OpenInference: documents as numbered attributes, `openinference.span.kind` says what a span is.

Written by the instrumentors of Arize, as for LangChain and LlamaIndex, and exported by Phoenix.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.formats.imports import payload
from ragauge.formats.imports.documents import (
    NumberedDocuments,
    make_hit,
    metadata_doc,
    metadata_id,
    metadata_of,
    metadata_score,
)
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
    "CHAIN": CHAIN, "RETRIEVER": RETRIEVER, "RERANKER": RERANKER, "LLM": MODEL, "EMBEDDING": OTHER,
    "TOOL": OTHER, "PROMPT": OTHER, "GUARDRAIL": OTHER, "EVALUATOR": OTHER,
}  # fmt: skip
_FLAT = "metadata."


def _read(span: TraceSpan) -> SpanFacts:
    attributes = span.attributes
    kind = attributes.get(_KIND)
    role = _ROLES.get(kind) if isinstance(kind, str) else None
    if role is None:
        role = _role_of(kind, attributes)
    metadata, session = attributes.get("metadata"), attributes.get("session.id")
    qid = index = None
    if isinstance(metadata, str):
        qid, index = _metadata_facts(metadata)
    elif isinstance(metadata, dict):
        qid, index = payload.qid_in(metadata), payload.index_in(metadata)
    session = session if isinstance(session, str) else None
    facts = SpanFacts(role, qid=qid, session=session, index=index)
    if role == CHAIN:
        facts.input = attributes.get("input.value")
        facts.output = attributes.get("output.value")
    elif role in (RETRIEVER, RERANKER):
        notes: list[str] = []
        prefix = _RETRIEVED if role == RETRIEVER else _RERANKED
        facts.hits, facts.lost = _hits(span, prefix, notes)
        facts.question = payload.question_in(attributes.get("input.value"))
        if role == RERANKER:
            facts.candidates, _ = _hits(span, "reranker.input_documents.", notes)
            query = attributes.get("reranker.query")
            facts.question = query if isinstance(query, str) else facts.question
        facts.notes = notes or None
    elif role == MODEL:
        facts.output = attributes.get("llm.output_messages.0.message.content")
        if facts.output is None:
            facts.output = attributes.get("output.value")
    return facts


def _role_of(kind: Any, attributes: dict[str, Any]) -> str:
    """The role of a kind that is written in another way, or was dropped."""
    if kind is not None:
        return _ROLES.get(str(kind).upper(), CHAIN)
    return RERANKER if any(key.startswith(_RERANKED) for key in attributes) else RETRIEVER


def _hits(
    span: TraceSpan, prefix: str, notes: list[str]
) -> tuple[list[dict[str, Any]], str | None]:
    listed = NumberedDocuments(span.attributes, prefix)
    entries = listed.ordered()
    hits = []
    written: list[_Document] | None = None
    for rank, fields in enumerate(entries):
        get = fields.get
        stated, text = get("metadata"), get("content")
        metadata = _flat_metadata(fields) if stated is None else metadata_of(stated, notes)
        hit_id, score, doc = get("id"), get("score"), None
        if metadata:
            hit_id = metadata_id(metadata) if hit_id is None else hit_id
            score = metadata_score(metadata) if score is None else score
            doc = metadata_doc(metadata)
        if hit_id is None or hit_id == "":
            # The instrumentor of LangChain writes ids into the output alone.
            if written is None:
                written = _written(span.attributes.get("output.value"), len(entries))
            if written and written[rank].page_content == text:
                hit_id = written[rank].id
        hits.append(make_hit(notes, hit_id, doc, score, text, metadata))
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


def _written(output: Any, count: int) -> list[_Document]:
    """The documents that a retriever gave back, as JSON; none where they are not so many."""
    if not isinstance(output, str):
        return []
    try:
        is_list = output.startswith("[")
        listed = _decode_documents(output) if is_list else _decode_output(output).documents
    except (msgspec.DecodeError, RecursionError):
        return []
    return listed if len(listed) == count else []


@lru_cache(256)  # every span of a trace has the same
def _metadata_facts(text: str) -> tuple[str | None, dict[str, str] | None]:
    metadata = metadata_of(text, [])
    return payload.qid_in(metadata), payload.index_in(metadata)


VOCABULARY = Vocabulary(
    name="openinference",
    title="OpenInference",
    marks=(_KIND,),
    prefixes=(_RETRIEVED, _RERANKED),
    read=_read,
)
