"""Spans of Phoenix: JSON of its client and its server, and the columns of a data frame."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from ragauge.files.open import unpacked
from ragauge.formats.imports.convert import native_rows, recognise
from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ForeignFile, Row
from tests.support.spans import imported

ROOT: dict[str, Any] = {
    "id": "U3BhbjoxMDc=",
    "name": "query",
    "context": {"trace_id": "1fddc8046b5060b855df64b04a19eaeb", "span_id": "f632cc0a29f87c57"},
    "span_kind": "CHAIN",
    "parent_id": None,
    "start_time": "2026-11-16T03:35:25.182772+00:00",
    "end_time": "2026-11-16T03:35:25.186372+00:00",
    "status_code": "OK",
    "status_message": "",
    "attributes": {"input.value": "How hot?", "output.value": "Hot. [b]", "metadata.qid": "Q1"},
    "events": [],
}
RETRIEVER: dict[str, Any] = {
    **ROOT,
    "context": {"trace_id": ROOT["context"]["trace_id"], "span_id": "49f8760867f66afe"},
    "span_kind": "RETRIEVER",
    "parent_id": ROOT["context"]["span_id"],
    "end_time": "2026-11-16T03:35:25.183772+00:00",
    "attributes": {
        "input.value": "How hot?",
        "retrieval.documents.0.document.id": "a",
        "retrieval.documents.0.document.score": 0.5,
        "retrieval.documents.0.document.metadata.file": "a.md",
        "retrieval.documents.1.document.id": "b",
        "retrieval.documents.1.document.content": "text",
    },
}
EXPECTED = {
    "qid": "Q1",
    "question": "How hot?",
    "hits": [{"id": "a", "doc": "a.md", "score": 0.5}, {"id": "b", "text": "text"}],
    "answer": "Hot. [b]",
    "citations": ["b"],
    "latency_ms": 3.6,
    "perf": {"t_retrieve_ms": 1.0},
    "ts": "2026-11-16T03:35:25.182772Z",
    "trace_id": "1fddc8046b5060b855df64b04a19eaeb",
    "span_id": "f632cc0a29f87c57",
}


@pytest.mark.parametrize("wrapped", [False, True])
def test_spans_of_the_client_and_of_the_server(tmp_path: Path, wrapped: bool) -> None:
    spans = [RETRIEVER, ROOT]
    path = tmp_path / "spans.json"
    text = json.dumps({"data": spans, "next_cursor": None} if wrapped else spans)
    path.write_text(text, encoding="utf-8")
    assert imported(path) == [EXPECTED]


def test_the_columns_of_a_data_frame(tmp_path: Path) -> None:
    """As `get_spans_dataframe` names them: lists of objects, JSON as objects, times as times."""

    def row(span: dict[str, Any], **attributes: Any) -> dict[str, Any]:
        columns = {name: span[name] for name in ("name", "span_kind", "parent_id", "status_code")}
        times = {
            name: datetime.fromisoformat(span[name]).astimezone(UTC)
            for name in ("start_time", "end_time")
        }
        ids = {f"context.{name}": value for name, value in span["context"].items()}
        named = {f"attributes.{name}": value for name, value in attributes.items()}
        return {**columns, **times, **ids, **named}

    documents = [
        {"document.id": "a", "document.score": 0.5, "document.metadata": {"file": "a.md"}},
        {"document.id": "b", "document.content": "text"},
    ]
    rows = [
        row(
            ROOT,
            **{"input.value": "How hot?", "output.value": "Hot. [b]", "metadata": {"qid": "Q1"}},
        ),
        row(RETRIEVER, **{"input.value": "How hot?", "retrieval.documents": documents}),
    ]
    names = dict.fromkeys(name for one in rows for name in one)
    table = pyarrow.table({name: [one.get(name) for one in rows] for name in names})
    path = tmp_path / "spans.parquet"
    parquet.write_table(table, path)
    with unpacked(path) as file:
        foreign = ForeignFile(file)
        form = recognise(foreign)
        assert form is not None
        assert form.name == "phoenix"
        traces: list[Row] = list(native_rows(form, [foreign], "traces", coverage=Coverage()))
    assert traces == [{"imported_from": "phoenix", **EXPECTED}]
