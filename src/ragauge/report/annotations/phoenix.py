"""Phoenix: annotations of the first span of a trace, as `POST /v1/span_annotations` takes them.

An annotation that has the name, the span and the identifier of another one replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ragauge.files.http_client import Response
from ragauge.report.annotations.annotation import (
    IDENTIFIER,
    AnnotatedTrace,
    Annotator,
    Entry,
    Taken,
)


class _InsertedAnnotations(msgspec.Struct):
    data: list[dict[str, str]]


def _entries(trace: AnnotatedTrace) -> list[Entry]:
    entries: list[Entry] = []
    for annotation in trace.annotations:
        result = {
            "score": annotation.score,
            "label": annotation.label,
            "explanation": annotation.explanation,
        }
        entries.append(
            {
                "span_id": trace.span_id,
                "name": annotation.name,
                "annotator_kind": "CODE",
                "result": {name: value for name, value in result.items() if value is not None},
                "metadata": trace.metadata,
                "identifier": IDENTIFIER,
            }
        )
    return entries


def _lacks(trace: AnnotatedTrace) -> str | None:
    return "a span id (`span_id`)" if trace.span_id is None else None


def _taken(response: Response, sent: int) -> Taken:
    inserted = len(msgspec.json.decode(response.body, type=_InsertedAnnotations).data)
    lost = max(0, sent - inserted)
    reasons = ("it did not say that it was stored",) if lost else ()
    return Taken(sent - lost, lost, reasons)


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    key = environment.get("PHOENIX_API_KEY")  # a server of one's own may ask for none
    return {"authorization": f"Bearer {key}"} if key else {}


ANNOTATOR = Annotator(
    name="phoenix",
    title="annotations of spans in Phoenix",
    entries=_entries,
    lacks=_lacks,
    path="/v1/span_annotations?sync=true",  # else nobody says whether the span is there
    body=lambda entries: {"data": list(entries)},
    taken=_taken,
    headers=_headers,
    host_variables=("PHOENIX_BASE_URL", "PHOENIX_COLLECTOR_ENDPOINT"),
)
