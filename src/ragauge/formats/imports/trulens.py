"""TruLens: the rows of its table of events, one span each; or its records, without contexts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat, ImportOptions, Row
from ragauge.formats.imports.json_file import json_objects, nanoseconds
from ragauge.formats.imports.payload import decoded
from ragauge.formats.imports.span import TraceSpan, first_line
from ragauge.formats.imports.trace_assembler import traces_of


def _recognise(file: ForeignFile) -> bool:
    row = file.first_row
    is_event = "record_attributes" in row and "trace" in row
    return is_event or {"app_id", "record_id", "input", "output"} <= row.keys()


def _read_traces(
    files: Sequence[ForeignFile], options: ImportOptions, coverage: Coverage
) -> Iterator[Row]:
    records: list[Row] = []
    yield from traces_of(_spans(files, records, coverage), options, coverage)
    yield from records


def _spans(
    files: Sequence[ForeignFile], records: list[Row], coverage: Coverage
) -> Iterator[TraceSpan]:
    """The spans of all events; rows of the other table go into `records`."""
    for file in files:
        for row in json_objects(file):
            if "record_attributes" in row:
                span = _span(row)
                if span is not None:
                    yield span
                    continue
            elif "record_id" in row:
                records.append(_record(row))
                coverage.note("records without retrieved contexts (export the events for them)")
                continue
            coverage.note("rows that are no events (passed over)")


def _span(row: Row) -> TraceSpan | None:
    trace, record = decoded(row.get("trace")), decoded(row.get("record"))
    attributes, resource = (
        decoded(row.get("record_attributes")),
        decoded(row.get("resource_attributes")),
    )
    if not isinstance(trace, dict) or not isinstance(attributes, dict):
        return None
    record = record if isinstance(record, dict) else {}
    status = record.get("status")
    error = None
    if isinstance(status, str) and status.endswith("ERROR"):
        message = attributes.get("ai.observability.call.error")
        error = (first_line(message) if isinstance(message, str) else "") or "error"
    return TraceSpan(
        trace_id=_id(trace.get("trace_id"), 32) or "",
        span_id=_id(trace.get("span_id"), 16) or "",
        parent_id=_id(trace.get("parent_id"), 16),
        name=str(record.get("name") or ""),
        start=nanoseconds(row.get("start_timestamp")),
        end=nanoseconds(row.get("timestamp")),
        attributes=attributes,
        error=error,
        resource=_without_version(resource),
    )


def _without_version(resource: Any) -> dict[str, Any]:
    """The resource, but for `service.version`: it is that of TruLens, and of no index."""
    if not isinstance(resource, dict):
        return {}
    return {name: value for name, value in resource.items() if name != "service.version"}


def _id(value: Any, digits: int) -> str | None:
    """An id in hex; TruLens writes it as a decimal number."""
    if isinstance(value, int):
        value = str(value)
    if not isinstance(value, str) or not value:
        return None
    if value.isascii() and value.isdecimal() and len(value) < 40:
        return f"{int(value):0{digits}x}"
    return value


def _record(row: Row) -> Row:
    native: Row = {}
    for name, field, kind in (
        ("input_id", "qid", str),
        ("input", "question", str),
        ("output", "answer", str),
        ("record_id", "trace_id", str),
    ):
        value = row.get(name)
        if isinstance(value, kind) and value:
            native[field] = value
    latency = row.get("latency")
    if isinstance(latency, int | float) and latency >= 0:
        native["latency_ms"] = latency * 1000
    return native


FORMAT = ForeignFormat(
    name="trulens",
    title="TruLens events",
    source="trulens-core 2.16",
    recognise=_recognise,
    read_traces=_read_traces,
)
