"""Langfuse: scores of traces, as `POST /api/public/scores` takes them.

A score that is sent again with the same id and the same time replaces the one that is there, so
both are made of the trace.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import msgspec

from ragauge.files.http_client import Response
from ragauge.formats.imports.json_file import iso_time
from ragauge.report.annotations.annotation import (
    IDENTIFIER,
    AnnotatedTrace,
    Annotator,
    Entry,
    Taken,
    needed,
    stable_id,
)


class _BatchResults(msgspec.Struct):
    """The answer to a list of which not all was accepted (207)."""

    accepted: int
    rejected: int
    errors: list[dict[str, object]] = []


def _entries(trace: AnnotatedTrace) -> list[Entry]:
    time = {} if trace.start is None else {"timestamp": iso_time(trace.start)}
    entries: list[Entry] = []
    for annotation in trace.annotations:
        is_label = annotation.score is None
        entry: Entry = {
            "id": f"{IDENTIFIER}-{stable_id(trace.trace_id, annotation.name)}",
            "traceId": trace.trace_id,
            "name": annotation.name,
            "value": annotation.label if is_label else annotation.score,
            "dataType": "CATEGORICAL" if is_label else "NUMERIC",
            "metadata": trace.metadata,
            **time,
        }
        if annotation.explanation is not None:
            entry["comment"] = annotation.explanation
        entries.append(entry)
    return entries


def _taken(response: Response, sent: int) -> Taken:
    if response.status != 207:
        return Taken(sent)
    results = msgspec.json.decode(response.body, type=_BatchResults)
    reasons = tuple(str(error.get("message", "no reason given")) for error in results.errors)
    return Taken(sent - results.rejected, results.rejected, reasons)


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    keys = needed(environment, "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
    pair = base64.b64encode(":".join(keys).encode()).decode()
    return {"authorization": f"Basic {pair}"}


ANNOTATOR = Annotator(
    name="langfuse",
    title="scores of traces in Langfuse",
    entries=_entries,
    path="/api/public/scores",
    body=list,
    single_body=lambda entry: entry,  # servers before the list was taken
    taken=_taken,
    headers=_headers,
    host_variables=("LANGFUSE_BASE_URL", "LANGFUSE_HOST"),
)
