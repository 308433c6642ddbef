"""Phoenix: spans as its client exports them, to JSON or as a data frame to Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat, Row
from ragauge.formats.imports.json_file import hex_id, json_objects, nanoseconds
from ragauge.formats.imports.payload import decoded
from ragauge.formats.imports.span import TraceSpan, first_line
from ragauge.formats.imports.trace_assembler import span_reader

_ATTRIBUTES = "attributes."
_LISTS = ("retrieval.documents", "reranker.output_documents", "reranker.input_documents")
_METADATA = "metadata."
_MESSAGES = "llm.output_messages"


def _first(file: ForeignFile) -> Row:
    row = file.first_row
    listed = row.get("data")
    return listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else row


def _recognise(file: ForeignFile) -> bool:
    row = _first(file)
    context = row.get("context")
    is_object = isinstance(context, dict) and "span_id" in context and "span_kind" in row
    return is_object or ("context.span_id" in row and "context.trace_id" in row)


def _spans(files: Sequence[ForeignFile], coverage: Coverage) -> Iterator[TraceSpan]:
    for file in files:
        for row in json_objects(file, "data"):
            span = _span(row)
            if span is None:
                coverage.note("rows that are no spans (passed over)")
            else:
                yield span


def _span(row: Mapping[str, Any]) -> TraceSpan | None:
    context = row.get("context")
    context = context if isinstance(context, dict) else {}
    trace_id = hex_id(context.get("trace_id") or row.get("context.trace_id"))
    span_id = hex_id(context.get("span_id") or row.get("context.span_id"))
    if trace_id is None or span_id is None:
        return None
    attributes = row.get("attributes")
    if not isinstance(attributes, dict):  # the columns of a data frame
        attributes = {
            name.removeprefix(_ATTRIBUTES): value
            for name, value in row.items()
            if name.startswith(_ATTRIBUTES) and value is not None
        }
    attributes = _flat(attributes)
    kind = row.get("span_kind")
    if isinstance(kind, str):
        attributes["openinference.span.kind"] = kind
    error = None
    if row.get("status_code") == "ERROR":
        message = row.get("status_message")
        error = (first_line(message) if isinstance(message, str) else "") or "error"
    return TraceSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=hex_id(row.get("parent_id")),
        name=str(row.get("name") or ""),
        start=nanoseconds(row.get("start_time")),
        end=nanoseconds(row.get("end_time")),
        attributes=attributes,
        error=error,
    )


def _flat(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with the names of OpenInference, where lists of objects have been made of them."""
    flat: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for name, value in attributes.items():
        if name in _LISTS or name == _MESSAGES:
            entries = decoded(value)
            if isinstance(entries, list):
                for rank, entry in enumerate(entries):
                    _flatten(f"{name}.{rank}", entry, flat, 0)
                continue
        if name in ("retrieval", "reranker", "openinference", "input", "output") and isinstance(
            value, dict
        ):  # attributes as a tree
            flat.update(_flat({f"{name}.{inner}": part for inner, part in value.items()}))
            continue
        if name.startswith(_METADATA):  # the server takes JSON apart
            metadata[name.removeprefix(_METADATA)] = value
        else:
            flat[name] = value
    if metadata:
        flat["metadata"] = metadata
    return flat


def _flatten(name: str, value: Any, flat: dict[str, Any], depth: int) -> None:
    if isinstance(value, dict) and depth < 8 and not name.endswith(".metadata"):
        for inner, part in value.items():
            _flatten(f"{name}.{inner}", part, flat, depth + 1)
    elif value is not None:
        flat[name] = value


FORMAT = ForeignFormat(
    name="phoenix",
    title="Phoenix spans",
    source="arize-phoenix 20.26, arize-phoenix-client 3.5",
    recognise=_recognise,
    read_traces=span_reader(_spans),
)
