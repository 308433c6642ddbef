"""Bodies for load on a collector: OTLP requests of RAG traces, the same for every server.

A trace has four spans in the words of OpenInference: a chain, an embedding, a retriever with five
documents and a model; 11 attributes and some 900 bytes a span on average. Trace ids follow from the
seed and the number, so that what was acknowledged can be looked for afterwards.
"""

from __future__ import annotations

import random
import zlib
from hashlib import blake2b
from typing import Any

SPANS_A_TRACE = 4
_SENTENCE = (
    "the refund of an order is paid within five days after the parcel has come back to the "
    "warehouse and was checked by our staff who will write to you when it is done or ask for more"
)
_WORDS = _SENTENCE.split()


def trace_id(seed: int, number: int) -> str:
    """The id of a trace, in hex."""
    return blake2b(f"{seed}:{number}".encode(), digest_size=16).hexdigest()


def request(seed: int, first: int, traces: int, *, app: str = "load") -> Any:
    """An ExportTraceServiceRequest with the traces of some numbers."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    chance = random.Random(f"{seed}:{first}")
    message = ExportTraceServiceRequest()
    resource = message.resource_spans.add()
    _set(resource.resource, {"service.name": app, "service.version": "build-1"})
    spans = resource.scope_spans.add().spans
    for number in range(first, first + traces):
        _add_trace(spans, bytes.fromhex(trace_id(seed, number)), number, chance)
    return message


def body(seed: int, first: int, traces: int, *, packed: bool = False, app: str = "load") -> bytes:
    """The same as bytes, packed with gzip if asked for."""
    data: bytes = request(seed, first, traces, app=app).SerializeToString()
    if not packed:
        return data
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def _add_trace(spans: Any, name: bytes, number: int, chance: random.Random) -> None:
    question = f"question {number % 1000} about {_text(chance, 6)}"
    answer = f"{_text(chance, 40)} [1]"
    start = 1_700_000_000_000_000_000 + number * 1_000_000
    root = _span(spans, name, 1, 0, "rag", start, 900)
    _set(
        root,
        {
            "openinference.span.kind": "CHAIN",
            "input.value": question,
            "output.value": answer,
            "session.id": f"session-{number % 97}",
            "metadata": f'{{"qid": "Q{number % 1000}", "index_hash": "i1", "build": "build-1"}}',
        },
    )
    embedding = _span(spans, name, 2, 1, "embed", start, 20)
    _set(
        embedding,
        {
            "openinference.span.kind": "EMBEDDING",
            "embedding.model_name": "minilm",
            "embedding.embeddings.0.embedding.text": question,
        },
    )
    retriever = _span(spans, name, 3, 1, "retrieve", start + 20_000_000, 80)
    attributes = {"openinference.span.kind": "RETRIEVER", "input.value": question}
    for rank in range(5):
        prefix = f"retrieval.documents.{rank}.document"
        attributes[f"{prefix}.id"] = f"chunk-{chance.randrange(5000)}"
        attributes[f"{prefix}.content"] = _text(chance, 60)
        attributes[f"{prefix}.metadata"] = f'{{"source": "doc-{chance.randrange(300)}.md"}}'
    _set(retriever, attributes)
    for rank in range(5):
        pair = retriever.attributes.add(key=f"retrieval.documents.{rank}.document.score")
        pair.value.double_value = 1 / (rank + 1)
    model = _span(spans, name, 4, 1, "llm", start + 110_000_000, 700)
    _set(
        model,
        {
            "openinference.span.kind": "LLM",
            "llm.model_name": "small",
            "input.value": f"Answer from the context. {question} {_text(chance, 120)}",
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": answer,
            "output.value": answer,
        },
    )
    for name_, count in (("prompt", 900), ("completion", 60), ("total", 960)):
        model.attributes.add(key=f"llm.token_count.{name_}").value.int_value = count


def _span(
    spans: Any, trace: bytes, number: int, parent: int, name: str, start: int, milliseconds: int
) -> Any:
    span = spans.add(
        trace_id=trace,
        span_id=trace[:7] + bytes([number]),
        name=name,
        start_time_unix_nano=start,
        end_time_unix_nano=start + milliseconds * 1_000_000,
    )
    if parent:
        span.parent_span_id = trace[:7] + bytes([parent])
    return span


def _set(message: Any, attributes: dict[str, str]) -> None:
    for key, value in attributes.items():
        message.attributes.add(key=key).value.string_value = value


def _text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words))
