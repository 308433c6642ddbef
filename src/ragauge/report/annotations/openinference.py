"""OpenInference: evaluations of traces as attributes of a span of their own, as OTLP takes them.

A span that has ended cannot be changed. So each trace gets one more span, an evaluator below its
first one, with the form of the attributes that is for the whole trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import msgspec

from ragauge.files.http_client import Response
from ragauge.report.annotations.annotation import (
    IDENTIFIER,
    AnnotatedTrace,
    Annotator,
    Entry,
    Taken,
    stable_id,
)

_HEX = frozenset("0123456789abcdef")
_INTERNAL = 1


class _PartialSuccess(msgspec.Struct):
    rejected_spans: int | str = msgspec.field(default=0, name="rejectedSpans")
    error_message: str = msgspec.field(default="", name="errorMessage")


class _ExportResponse(msgspec.Struct):
    partial_success: _PartialSuccess | None = msgspec.field(default=None, name="partialSuccess")


def _entries(trace: AnnotatedTrace) -> list[Entry]:
    attributes: list[Any] = [
        _attribute("openinference.span.kind", "EVALUATOR"),
        _attribute("metadata", _json(trace.metadata)),
    ]
    for number, annotation in enumerate(trace.annotations):
        fields = {
            "name": annotation.name,
            "score": annotation.score,
            "label": annotation.label,
            "explanation": annotation.explanation,
            "annotator_kind": "CODE",
            "identifier": IDENTIFIER,
        }
        attributes += [
            _attribute(f"trace.evaluations.{number}.evaluation.{field}", value)
            for field, value in fields.items()
            if value is not None
        ]
    moment = str(trace.end if trace.end is not None else trace.start)
    span = {
        "traceId": trace.trace_id,
        "spanId": stable_id(trace.trace_id, IDENTIFIER)[:16],
        "name": IDENTIFIER,
        "kind": _INTERNAL,
        "startTimeUnixNano": moment,
        "endTimeUnixNano": moment,
        "attributes": attributes,
        "status": {},
    }
    if trace.span_id is not None and _is_hex(trace.span_id, 16):
        span["parentSpanId"] = trace.span_id
    return [_request([span])]


def _attribute(key: str, value: str | float) -> dict[str, Any]:
    kind = "stringValue" if isinstance(value, str) else "doubleValue"
    return {"key": key, "value": {kind: value}}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _request(spans: Sequence[Any]) -> Entry:
    """A request with some spans, which is also a line that file exporters write."""
    scope = {"scope": {"name": IDENTIFIER}, "spans": list(spans)}
    resource = {"attributes": [_attribute("service.name", IDENTIFIER)]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _body(entries: Sequence[Entry]) -> Entry:
    return _request(
        [
            span
            for entry in entries
            for resource in entry["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]
    )


def _lacks(trace: AnnotatedTrace) -> str | None:
    if not _is_hex(trace.trace_id, 32):
        return "a trace id of 32 hexadecimal digits"
    return "a time (`ts`)" if trace.start is None else None


def _is_hex(text: str, digits: int) -> bool:
    return len(text) == digits and _HEX.issuperset(text)


def _taken(response: Response, sent: int) -> Taken:
    if not response.body.strip():
        return Taken(sent)
    partial = msgspec.json.decode(response.body, type=_ExportResponse).partial_success
    rejected = 0 if partial is None else int(partial.rejected_spans)
    reasons = (partial.error_message or "no reason given",) if partial and rejected else ()
    return Taken(sent - rejected, rejected, reasons)


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    names = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
    text = next((environment[name] for name in names if environment.get(name)), "")
    pairs = (pair.partition("=") for pair in text.split(",") if pair.strip())
    return {name.strip().lower(): unquote(value.strip()) for name, _, value in pairs}


ANNOTATOR = Annotator(
    name="openinference",
    title="evaluation attributes of OpenInference, as spans in OTLP JSON",
    entries=_entries,
    lacks=_lacks,
    path="/v1/traces",
    body=_body,
    taken=_taken,
    headers=_headers,
    host_variables=("OTEL_EXPORTER_OTLP_ENDPOINT",),
)
