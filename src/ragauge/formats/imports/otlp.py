"""OTLP: spans of OpenTelemetry, as protobuf or as JSON, in the words of any vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, ForeignFormat, ImportOptions, Row
from ragauge.formats.imports.otlp_json import json_spans
from ragauge.formats.imports.otlp_protobuf import looks_like_protobuf, protobuf_spans
from ragauge.formats.imports.span import TraceSpan
from ragauge.formats.imports.trace_assembler import traces_of

_LISTS = ("resourceSpans", "batches")
_OTHER_SIGNALS = ("resourceMetrics", "resourceLogs")


def _recognise(file: ForeignFile) -> bool:
    row = file.first_row
    if any(isinstance(row.get(name), list) for name in (*_LISTS, *_OTHER_SIGNALS)):
        return True
    return looks_like_protobuf(file)


def _read_traces(
    files: Sequence[ForeignFile], options: ImportOptions, coverage: Coverage
) -> Iterator[Row]:
    for file in files:
        if not any(name in file.first_row for name in _LISTS) and not looks_like_protobuf(file):
            coverage.note("files of metrics or logs, without spans at their start")
    yield from traces_of(chain.from_iterable(map(_spans, files)), options, coverage)


def _spans(file: ForeignFile) -> Iterator[TraceSpan]:
    return protobuf_spans(file) if looks_like_protobuf(file) else json_spans(file)


FORMAT = ForeignFormat(
    name="otlp",
    title="OTLP spans",
    source="OpenTelemetry SDKs 1.45, opentelemetry-exporter-otlp-json-http 0.66b1",
    recognise=_recognise,
    read_traces=_read_traces,
)
