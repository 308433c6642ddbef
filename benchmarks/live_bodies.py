"""Bodies for load on a collector: OTLP requests of RAG traces, the same for every server.

A trace is in the words of OpenInference: by hand, with four spans (a chain, an embedding, a
retriever with five documents and a model), or with the seven spans that LangChain's instrumentor
makes of a chain of retriever, prompt, model and parser, which hold the documents seven times over
and much of it as JSON. Trace ids follow from the seed and the number, so that what was acknowledged
can be looked for afterwards.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

_SENTENCE = (
    "the refund of an order is paid within five days after the parcel has come back to the "
    "warehouse and was checked by our staff who will write to you when it is done or ask for more"
)
_WORDS = _SENTENCE.split()


class Shape(NamedTuple):
    """What a body is made of: spans of a trace, traces of a body, words of a document."""

    name: str
    spans: int
    traces: int
    words: int
    add: Callable[[Any, bytes, int, random.Random, int], None]

    @property
    def spans_a_body(self) -> int:
        return self.spans * self.traces


def trace_id(seed: int, number: int) -> str:
    """The id of a trace, in hex."""
    return blake2b(f"{seed}:{number}".encode(), digest_size=16).hexdigest()


def request(
    seed: int, first: int, traces: int, *, app: str = "load", shape: Shape | None = None
) -> Any:
    """An ExportTraceServiceRequest with the traces of some numbers."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    shape = shape or BY_HAND
    chance = random.Random(f"{seed}:{first}")
    message = ExportTraceServiceRequest()
    resource = message.resource_spans.add()
    _set(resource.resource, {"service.name": app, "service.version": "build-1"})
    spans = resource.scope_spans.add().spans
    for number in range(first, first + traces):
        name = bytes.fromhex(trace_id(seed, number))
        shape.add(spans, name, number, chance, shape.words)
    return message


def body(
    seed: int,
    first: int,
    traces: int,
    *,
    packed: bool = False,
    app: str = "load",
    shape: Shape | None = None,
) -> bytes:
    """The same as bytes, packed with gzip if asked for."""
    data: bytes = request(seed, first, traces, app=app, shape=shape).SerializeToString()
    if not packed:
        return data
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


class Bodies:
    """Bodies that are made when they are asked for, of a few that were made before.

    Only the ids of traces differ, so that many minutes of load need little memory and time.
    """

    def __init__(self, count: int, *, seed: int, shape: Shape) -> None:
        self.count, self.seed, self.shape = count, seed, shape
        self._made = [
            body(seed, self._first(place), shape.traces, shape=shape) for place in range(20)
        ]

    def _first(self, number: int) -> int:
        return number * self.shape.traces

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> bytes:
        place = number % len(self._made)
        data = self._made[place]
        for trace in range(self.shape.traces if number >= len(self._made) else 0):
            old = trace_id(self.seed, self._first(place) + trace)
            new = trace_id(self.seed, self._first(number) + trace)
            data = data.replace(bytes.fromhex(old), bytes.fromhex(new))
        return data


def _add_by_hand(spans: Any, name: bytes, number: int, chance: random.Random, words: int) -> None:
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
        attributes[f"{prefix}.content"] = _text(chance, words)
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


def _add_langchain(spans: Any, name: bytes, number: int, chance: random.Random, words: int) -> None:
    """What LangChain's instrumentor writes at its default settings, as version 0.1.80 does."""
    question = f"question {number % 1000} about {_text(chance, 6)}"
    answer = f"{_text(chance, 40)} [1]"
    start = 1_700_000_000_000_000_000 + number * 1_000_000
    found = [
        {
            "id": f"chunk-{chance.randrange(5000)}",
            "metadata": {"source": f"doc-{chance.randrange(300)}.md"},
            "page_content": _text(chance, words),
            "type": "Document",
        }
        for _ in range(5)
    ]
    shown = [
        f"Document(id={document['id']!r}, metadata={document['metadata']!r}, "
        f"page_content={document['page_content']!r})"
        for document in found
    ]
    prompt = f"Context: [{', '.join(shown)}] Question: {question}"
    run = f"lc_run--{name.hex()}-0"
    said = {"content": answer, "type": "ai", "id": run, "tool_calls": [], "invalid_tool_calls": []}
    asked = {"content": prompt, "type": "human"}
    schema = ["langchain", "schema", "messages"]
    retrieved = {"output.value": json.dumps({"documents": found})}
    for rank, document in enumerate(found):
        prefix = f"retrieval.documents.{rank}.document"
        retrieved[f"{prefix}.content"] = str(document["page_content"])
        retrieved[f"{prefix}.metadata"] = json.dumps(document["metadata"])
    retrieved["metadata"] = json.dumps({"ls_retriever_name": "vectorstore"})
    human = {"lc": 1, "type": "constructor", "id": [*schema, "HumanMessage"], "kwargs": asked}
    ai = {"lc": 1, "type": "constructor", "id": [*schema, "AIMessage"], "kwargs": said}
    generation = {"text": answer, "type": "ChatGeneration", "message": ai}
    parsed = {"type": "ai", "data": said}
    inputs = {"context": found, "question": question}
    both = {"input.mime_type": "application/json", "output.mime_type": "application/json"}
    made = (
        (3, 2, "VectorStoreRetriever", "RETRIEVER", retrieved),
        (4, 2, "RunnablePassthrough", "CHAIN", {"output.value": question}),
        (2, 1, "RunnableParallel<context,question>", "CHAIN", {"output.value": json.dumps(inputs)}),
        (
            5,
            1,
            "ChatPromptTemplate",
            "PROMPT",
            {
                **both,
                "input.value": json.dumps(inputs),
                "output.value": json.dumps({"messages": [asked]}),
                "llm.prompt_template.template": "Context: {context} Question: {question}",
                "llm.prompt_template.variables": json.dumps(
                    {"context": shown, "question": question}
                ),
            },
        ),
        (
            6,
            1,
            "ChatModel",
            "LLM",
            {
                **both,
                "input.value": json.dumps({"messages": [[human]]}),
                "output.value": json.dumps({"generations": [[generation]]}),
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": prompt,
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": answer,
                "llm.invocation_parameters": '{"_type": "chat", "stop": null}',
                "metadata": '{"ls_provider": "chat", "ls_model_type": "chat"}',
            },
        ),
        (
            7,
            1,
            "StrOutputParser",
            "CHAIN",
            {"input.value": json.dumps(parsed), "output.value": answer},
        ),
        (1, 0, "RunnableSequence", "CHAIN", {"output.value": answer}),
    )
    for own, parent, title, kind, attributes in made:
        span = _span(spans, name, own, parent, title, start + own, 900 - 100 * bool(parent))
        _set(span, {"input.value": question, **attributes, "openinference.span.kind": kind})


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


BY_HAND = Shape("by hand, documents of 60 words", 4, 25, 60, _add_by_hand)
LANGCHAIN = tuple(
    Shape(f"LangChain, documents of {words} words", 7, 14, words, _add_langchain)
    for words in (20, 60, 200, 600)
)
