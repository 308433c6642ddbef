"""Langfuse exports: observations and traces of its API, its blob storage and its pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat, Row
from ragauge.formats.imports.json_file import json_objects, nanoseconds
from ragauge.formats.imports.payload import decoded, unquoted_text
from ragauge.formats.imports.span import TraceSpan, first_line
from ragauge.formats.imports.trace_assembler import span_reader

_TYPES = frozenset(
    (
        "SPAN", "GENERATION", "EVENT", "RETRIEVER", "AGENT", "TOOL", "CHAIN", "EMBEDDING",
        "EVALUATOR", "GUARDRAIL",
    )
)  # fmt: skip
_EMPTY = "observations without input and output (export the field group `io` too)"


def _first(file: ForeignFile) -> Row:
    row = file.first_row
    listed = row.get("data")
    return listed[0] if isinstance(listed, list) and listed and isinstance(listed[0], dict) else row


def _is_observation(row: Mapping[str, Any]) -> bool:
    has_trace = "traceId" in row or "trace_id" in row
    return has_trace and str(row.get("type", "")).upper() in _TYPES


def _is_trace(row: Mapping[str, Any]) -> bool:
    """Whether a row is a trace: it has what a trace of Langfuse has and nothing else does."""
    if isinstance(row.get("observations"), list) and "id" in row:
        return True
    session = "sessionId" in row or "session_id" in row
    project = "projectId" in row or "project_id" in row or "htmlPath" in row
    return session and project and "timestamp" in row and "id" in row


def _recognise(file: ForeignFile) -> bool:
    row = _first(file)
    return _is_observation(row) or _is_trace(row)


def _spans(files: Sequence[ForeignFile], coverage: Coverage) -> Iterator[TraceSpan]:
    for file in files:
        for row in json_objects(file, "data"):
            if _is_observation(row):
                if row.get("input") is None and row.get("output") is None:
                    coverage.note(_EMPTY)
                yield _observation(row)
            elif _is_trace(row):
                trace_id = str(row["id"])
                yield _trace(row, trace_id)
                for observation in row.get("observations") or ():
                    if isinstance(observation, dict):  # those of some pages are ids alone
                        yield _observation({"traceId": trace_id, **observation})
            else:
                coverage.note("rows that are no observations (passed over)")


def _named(row: Mapping[str, Any], *names: str) -> Any:
    """A value under the name of the API (`traceId`) or of the exports (`trace_id`)."""
    return next((row[name] for name in names if row.get(name) is not None), None)


def _attributes(row: Mapping[str, Any], kind: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {"langfuse.observation.type": kind}
    for name in ("input", "output"):
        if row.get(name) is not None:
            attributes[f"langfuse.observation.{name}"] = decoded(row[name])
    metadata = decoded(row.get("metadata"))
    if isinstance(metadata, dict):
        attributes |= {f"langfuse.observation.metadata.{name}": metadata[name] for name in metadata}
        nested = metadata.get("attributes")  # what came by OTLP is kept below it
        if isinstance(nested, dict):
            attributes |= {name: nested[name] for name in nested if name.startswith("langfuse.")}
    session = unquoted_text(_named(row, "sessionId", "session_id"))
    if session is not None:
        attributes["session.id"] = session
    version = _named(row, "version", "release")
    if isinstance(version, str) and version:
        attributes["langfuse.observation.metadata.build"] = version
    item = _named(row, "datasetItemId", "dataset_item_id", "experimentItemId", "experiment_item_id")
    if item is not None:
        attributes["langfuse.experiment.item.id"] = item
    return attributes


def _observation(row: Mapping[str, Any]) -> TraceSpan:
    error = None
    if row.get("level") == "ERROR":
        message = _named(row, "statusMessage", "status_message")
        error = (first_line(message) if isinstance(message, str) else "") or "error"
    parent = _named(row, "parentObservationId", "parent_observation_id")
    return TraceSpan(
        trace_id=str(_named(row, "traceId", "trace_id")),
        span_id=str(row.get("id") or ""),
        parent_id=str(parent) if parent else None,
        name=str(row.get("name") or ""),
        start=nanoseconds(_named(row, "startTime", "start_time")),
        end=nanoseconds(_named(row, "endTime", "end_time")),
        attributes=_attributes(row, str(row.get("type")).lower()),
        error=error,
    )


def _trace(row: Mapping[str, Any], trace_id: str) -> TraceSpan:
    """The span that a trace is: above its observations, though none of them names it."""
    start = nanoseconds(row.get("timestamp"))
    latency = row.get("latency")
    seconds = latency if isinstance(latency, int | float) and 0 <= latency < 1e7 else 0
    return TraceSpan(
        trace_id=trace_id,
        span_id=f"trace {trace_id}",
        parent_id=None,
        name=str(row.get("name") or ""),
        start=start,
        end=start + int(seconds * 1e9),
        attributes=_attributes(row, "trace"),
    )


FORMAT = ForeignFormat(
    name="langfuse",
    title="Langfuse observations",
    source="langfuse 5.0, its public API and its blob storage export",
    recognise=_recognise,
    read_traces=span_reader(_spans),
)
