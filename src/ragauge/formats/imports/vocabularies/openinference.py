"""OpenInference: documents as numbered attributes, `openinference.span.kind` says what a span is.

Written by the instrumentors of Arize, as for LangChain and LlamaIndex, and exported by Phoenix.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.formats.imports import payload
from ragauge.formats.imports.documents import (
    make_hit,
    metadata_facts,
    metadata_of,
    numbered_documents,
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
_NO_METADATA: Mapping[str, Any] = {}
_RETRIEVED, _RERANKED = "retrieval.documents.", "reranker.output_documents."
_ROLES = {
    "CHAIN": CHAIN, "RETRIEVER": RETRIEVER, "RERANKER": RERANKER, "LLM": MODEL, "EMBEDDING": OTHER,
    "TOOL": OTHER, "PROMPT": OTHER, "GUARDRAIL": OTHER, "EVALUATOR": OTHER,
}  # fmt: skip


def _read(span: TraceSpan) -> SpanFacts:
    get = span.attributes.get
    kind, metadata, session = get(_KIND), get("metadata"), get("session.id")
    role = _ROLES.get(kind) if isinstance(kind, str) else None
    if role is None:
        role = _role_of(kind, span.attributes)
    qid = index = None
    if isinstance(metadata, str):
        qid, index = _question_facts(metadata)
    elif isinstance(metadata, dict):
        qid, index = payload.qid_in(metadata), payload.index_in(metadata)
    facts = SpanFacts(role, qid=qid, index=index)
    if isinstance(session, str):
        facts.session = session
    if role == CHAIN:
        facts.input = get("input.value")
        facts.output = get("output.value")
    elif role in (RETRIEVER, RERANKER):
        notes: list[str] = []
        prefix = _RETRIEVED if role == RETRIEVER else _RERANKED
        facts.hits, facts.lost = _hits(span, prefix, notes)
        facts.question = payload.question_in(get("input.value"))
        if role == RERANKER:
            facts.candidates, _ = _hits(span, "reranker.input_documents.", notes)
            query = get("reranker.query")
            facts.question = query if isinstance(query, str) else facts.question
        facts.notes = notes or None
    elif role == MODEL:
        facts.output = get("llm.output_messages.0.message.content")
        if facts.output is None:
            facts.output = get("output.value")
    return facts


def _role_of(kind: Any, attributes: dict[str, Any]) -> str:
    """The role of a kind that is written in another way, or was dropped."""
    if kind is not None:
        return _ROLES.get(str(kind).upper(), CHAIN)
    return RERANKER if any(key.startswith(_RERANKED) for key in attributes) else RETRIEVER


def _hits(
    span: TraceSpan, prefix: str, notes: list[str]
) -> tuple[list[dict[str, Any]], str | None]:
    attributes: Mapping[str | None, Any] = span.attributes  # type: ignore[assignment]
    get = attributes.get  # under None, for a field that a document lacks, there is nothing
    documents, lost = numbered_documents(span.attributes, prefix)
    hits: list[dict[str, Any]] = []
    written: list[_Document] | None = None
    for id_key, score_key, text_key, metadata_key, flat in documents:
        hit_id, score, text, doc = get(id_key), get(score_key), get(text_key), None
        stated = get(metadata_key)
        metadata: Mapping[str, Any]
        if stated is None:
            metadata = {name: get(key) for name, key in flat} if flat else _NO_METADATA
        else:
            metadata = metadata_of(stated, notes)
        if metadata:
            own_id, doc, own_score = metadata_facts(metadata)
            hit_id = own_id if hit_id is None else hit_id
            score = own_score if score is None else score
        if hit_id is None or hit_id == "":
            # The instrumentor of LangChain writes ids into the output alone.
            if written is None:
                written = _written(get("output.value"), len(documents))
            if written and written[len(hits)].page_content == text:
                hit_id = written[len(hits)].id
        hits.append(make_hit(notes, hit_id, doc, score, text, metadata))
    if span.dropped:
        lost = lost or "perhaps some of the documents"
        lost = f"{lost} ({span.dropped} attributes were dropped)"
    return hits, lost


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
def _question_facts(text: str) -> tuple[str | None, dict[str, str] | None]:
    metadata = metadata_of(text, [])
    return payload.qid_in(metadata), payload.index_in(metadata)


VOCABULARY = Vocabulary(
    name="openinference",
    title="OpenInference",
    marks=(_KIND,),
    prefixes=(_RETRIEVED, _RERANKED),
    read=_read,
)
