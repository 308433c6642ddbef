"""Spans for tests: small trees of them as OTLP, in JSON and in protobuf."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ragauge.files.open import UnpackedFile
from ragauge.formats.imports.convert import native_rows, recognise
from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ImportOptions, Row

START = 1_700_000_000_000_000_000


def span(
    number: int,
    attributes: dict[str, Any] | None = None,
    *,
    parent: int | None = None,
    trace: int = 1,
    **fields: Any,
) -> dict[str, Any]:
    """A span of OTLP as JSON: number n begins n microseconds in, and inner spans end earlier."""
    values = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}
    pairs = []
    for key, value in (attributes or {}).items():
        name = values.get(type(value))
        pairs.append({"key": key, "value": {name: value} if name else value})
    made = {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        "name": f"span {number}",
        "startTimeUnixNano": str(START + trace * 10**9 + number * 1000),
        "endTimeUnixNano": str(START + trace * 10**9 + 900_000 - number * 1000),
        "attributes": pairs,
        **fields,
    }
    if parent is not None:
        made["parentSpanId"] = f"{parent:016x}"
    return made


def chain(number: int, question: Any = None, answer: Any = None, **more: Any) -> dict[str, Any]:
    """A span of OpenInference that holds others together."""
    attributes = {"openinference.span.kind": "CHAIN"}
    if question is not None:
        attributes["input.value"] = question
    if answer is not None:
        attributes["output.value"] = answer
    return span(number, {**attributes, **more.pop("attributes", {})}, **more)


def retriever(
    number: int, ids: Sequence[str] | None, query: str | None = None, **more: Any
) -> dict[str, Any]:
    """A span of OpenInference that found documents."""
    attributes: dict[str, Any] = {"openinference.span.kind": "RETRIEVER"}
    if query is not None:
        attributes["input.value"] = query
    attributes |= numbered("retrieval.documents", ids or ())
    return span(number, {**attributes, **more.pop("attributes", {})}, **more)


def reranker(number: int, ids: Sequence[str], **more: Any) -> dict[str, Any]:
    """A span of OpenInference that put documents in another order."""
    attributes: dict[str, Any] = {"openinference.span.kind": "RERANKER"}
    attributes |= numbered("reranker.output_documents", ids)
    return span(number, attributes, **more)


def numbered(prefix: str, ids: Sequence[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for rank, name in enumerate(ids):
        fields[f"{prefix}.{rank}.document.id"] = name
        fields[f"{prefix}.{rank}.document.content"] = f"text of {name}"
    return fields


def body(*spans: dict[str, Any], resource: dict[str, str] | None = None) -> dict[str, Any]:
    """A request with spans."""
    pairs = [{"key": key, "value": {"stringValue": v}} for key, v in (resource or {}).items()]
    scope = {"scope": {"name": "tests"}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {"attributes": pairs}, "scopeSpans": [scope]}]}


def protobuf(request: dict[str, Any]) -> bytes:
    """The same request as protobuf, by protobuf's own reader of JSON."""
    pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    import base64
    import copy

    from google.protobuf import json_format
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    request = copy.deepcopy(request)
    for part in request["resourceSpans"]:
        for scope in part["scopeSpans"]:
            for one in scope["spans"]:  # OTLP writes ids as hex, JSON of protobuf as base64
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in one:
                        one[name] = base64.b64encode(bytes.fromhex(one[name])).decode()
    data: bytes = json_format.ParseDict(request, TracesData()).SerializeToString()
    return data


def imported(path: Any, *more: Any, coverage: Coverage | None = None, **options: Any) -> list[Row]:
    """The traces in files, as an import reads them."""
    files = [ForeignFile(UnpackedFile(str(one), str(one), False)) for one in (path, *more)]
    form = recognise(files[0])
    assert form is not None, "no format recognised the file"
    counts = Coverage() if coverage is None else coverage
    asked = ImportOptions(**options)
    rows = list(native_rows(form, files, "traces", coverage=counts, options=asked))
    for row in rows:
        row.pop("imported_from")
    return rows


def written(path: Any, *spans: dict[str, Any]) -> Any:
    """Write spans as one request of JSON."""
    path.write_text(json.dumps(body(*spans)), encoding="utf-8")
    return path
