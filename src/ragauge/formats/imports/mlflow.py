"""MLflow traces: what `Trace.to_json` writes, one trace an object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat
from ragauge.formats.imports.json_file import hex_id, json_objects, nanoseconds
from ragauge.formats.imports.span import TraceSpan, first_line
from ragauge.formats.imports.trace_assembler import span_reader


def _recognise(file: ForeignFile) -> bool:
    row = file.first_row
    info, data = row.get("info"), row.get("data")
    has_ids = isinstance(info, dict) and ("trace_id" in info or "request_id" in info)
    return has_ids and isinstance(data, dict) and "spans" in data


def _spans(files: Sequence[ForeignFile], coverage: Coverage) -> Iterator[TraceSpan]:
    for file in files:
        for trace in json_objects(file, "traces"):
            info, data = trace.get("info"), trace.get("data")
            spans = data.get("spans") if isinstance(data, dict) else None
            if not isinstance(info, dict) or not isinstance(spans, list):
                coverage.note("rows that are no traces (passed over)")
                continue
            tags = _tags(info)
            for span in spans:
                if isinstance(span, dict):
                    yield _span(span, info, tags)


def _tags(info: Mapping[str, Any]) -> dict[str, Any]:
    tags: dict[str, Any] = {}
    for name in ("trace_metadata", "request_metadata", "tags"):
        if isinstance(info.get(name), dict):
            tags.update(info[name])
    if "qid" not in tags and isinstance(info.get("client_request_id"), str):
        tags["qid"] = info["client_request_id"]
    return tags


def _span(span: Mapping[str, Any], info: Mapping[str, Any], tags: dict[str, Any]) -> TraceSpan:
    context = span.get("context")  # of MLflow 2
    context = context if isinstance(context, dict) else {}
    ids = (span.get("trace_id"), context.get("trace_id"), info.get("request_id"))
    trace_id = next((one for value in ids if (one := hex_id(value))), "")
    status = span.get("status")
    code, message = span.get("status_code"), span.get("status_message")
    if isinstance(status, dict):
        code, message = status.get("code"), status.get("message")
    error = None
    if isinstance(code, str) and code.endswith("ERROR"):
        error = (first_line(message) if isinstance(message, str) else "") or "error"
    attributes = span.get("attributes")
    return TraceSpan(
        trace_id=trace_id,
        span_id=hex_id(span.get("span_id") or context.get("span_id")) or "",
        parent_id=hex_id(span.get("parent_span_id") or span.get("parent_id")),
        name=str(span.get("name") or ""),
        start=nanoseconds(span.get("start_time_unix_nano") or span.get("start_time")),
        end=nanoseconds(span.get("end_time_unix_nano") or span.get("end_time")),
        attributes=attributes if isinstance(attributes, dict) else {},
        error=error,
        resource=tags,
    )


FORMAT = ForeignFormat(
    name="mlflow",
    title="MLflow traces",
    source="mlflow 3.17",
    recognise=_recognise,
    read_traces=span_reader(_spans),
)
