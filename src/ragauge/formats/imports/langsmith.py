"""LangSmith runs: what `list_runs` and the bulk export give, and the batches that its SDK posts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat, Row
from ragauge.formats.imports.json_file import json_objects, nanoseconds
from ragauge.formats.imports.payload import decoded
from ragauge.formats.imports.span import TraceSpan, first_line
from ragauge.formats.imports.trace_assembler import span_reader

_LISTS = ("post", "patch", "runs")


def _recognise(file: ForeignFile) -> bool:
    row = file.first_row
    for name in _LISTS:
        listed = row.get(name)
        if isinstance(listed, list) and listed and isinstance(listed[0], dict):
            row = listed[0]
            break
    return "run_type" in row and ("trace_id" in row or "dotted_order" in row or "inputs" in row)


def _spans(files: Sequence[ForeignFile], coverage: Coverage) -> Iterator[TraceSpan]:
    for file in files:
        for run in json_objects(file, *_LISTS):
            span = _span(run)
            if span is None:
                coverage.note("rows that are no runs (passed over)")
            else:
                yield span


def _span(run: Row) -> TraceSpan | None:
    run_id = run.get("id")
    if not isinstance(run_id, str):
        return None
    parent = run.get("parent_run_id")
    trace_id = run.get("trace_id")
    if not isinstance(trace_id, str):
        ids = run.get("parent_run_ids")
        trace_id = ids[0] if isinstance(ids, list) and ids else parent or run_id
    attributes: dict[str, Any] = {"langsmith.run_type": run.get("run_type", "chain")}
    for name in ("inputs", "outputs", "extra", "metadata", "reference_example_id"):
        if run.get(name) is not None:
            attributes[name] = decoded(run[name])
    error = run.get("error")
    return TraceSpan(
        trace_id=str(trace_id),
        span_id=run_id,
        parent_id=parent if isinstance(parent, str) and parent else None,
        name=str(run.get("name") or ""),
        start=nanoseconds(run.get("start_time")),
        end=nanoseconds(run.get("end_time")),
        attributes=attributes,
        error=(first_line(error) or "error") if isinstance(error, str) and error else None,
    )


FORMAT = ForeignFormat(
    name="langsmith",
    title="LangSmith runs",
    source="langsmith 0.14.17",
    recognise=_recognise,
    read_traces=span_reader(_spans),
)
