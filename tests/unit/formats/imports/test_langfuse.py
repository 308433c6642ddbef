"""Exports of Langfuse: of its API, with names in camel case, and of its blob storage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.formats.imports.coverage import Coverage
from tests.support.spans import imported

TRACE: dict[str, Any] = {
    "id": "t1",
    "timestamp": "2026-11-16T10:00:00.000Z",
    "name": "rag",
    "input": {"question": "How hot?"},
    "output": "Hot. [b]",
    "sessionId": "s-1",
    "release": "v7",
    "metadata": {"qid": "Q1", "index_hash": "h"},
    "projectId": "p",
    "latency": 1.5,
}
RETRIEVER: dict[str, Any] = {
    "id": "o1",
    "traceId": "t1",
    "type": "RETRIEVER",
    "name": "search",
    "startTime": "2026-11-16T10:00:00.100Z",
    "endTime": "2026-11-16T10:00:00.300Z",
    "parentObservationId": None,
    "level": "DEFAULT",
    "input": "How hot?",
    "output": [{"id": "a", "score": 0.5, "text": "x"}, {"id": "b", "metadata": {"score": 0.25}}],
}
EXPECTED = {
    "qid": "Q1",
    "question": "How hot?",
    "hits": [{"id": "a", "score": 0.5, "text": "x"}, {"id": "b", "score": 0.25}],
    "answer": "Hot. [b]",
    "citations": ["b"],
    "latency_ms": 1500.0,
    "perf": {"t_retrieve_ms": 200.0},
    "session": "s-1",
    "build": "v7",
    "index_hash": "h",
    "ts": "2026-11-16T10:00:00Z",
    "trace_id": "t1",
}


def read(folder: Path, *contents: Any, coverage: Coverage | None = None) -> list[Any]:
    paths = []
    for number, content in enumerate(contents):
        path = folder / f"{number}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        paths.append(path)
    return imported(*paths, coverage=coverage)


def test_a_trace_with_its_observations(tmp_path: Path) -> None:
    assert read(tmp_path, {**TRACE, "observations": [RETRIEVER]}) == [EXPECTED]


def test_a_page_of_the_api(tmp_path: Path) -> None:
    page = {"data": [{**TRACE, "observations": [RETRIEVER]}], "meta": {"page": 1}}
    assert read(tmp_path, page) == [EXPECTED]


def test_observations_and_traces_in_two_files(tmp_path: Path) -> None:
    assert read(tmp_path, {"data": [RETRIEVER]}, [TRACE]) == [EXPECTED]


def test_rows_of_the_blob_storage(tmp_path: Path) -> None:
    """Names with underscores, times without a zone, JSON in strings."""
    root = {
        "id": "o0",
        "trace_id": "t1",
        "type": "SPAN",
        "start_time": "2026-11-16 10:00:00.000000",
        "end_time": "2026-11-16 10:00:01.500000",
        "parent_observation_id": "",
        "input": '{"question": "How hot?"}',
        "output": "Hot. [b]",
        "metadata": '{"qid": "Q1", "index_hash": "h"}',
        "session_id": "s-1",
        "release": "v7",
    }
    retriever = {
        "id": "o1",
        "trace_id": "t1",
        "type": "RETRIEVER",
        "start_time": "2026-11-16 10:00:00.100000",
        "end_time": "2026-11-16 10:00:00.300000",
        "parent_observation_id": "o0",
        "input": "How hot?",
        "output": json.dumps(RETRIEVER["output"]),
    }
    assert read(tmp_path, [retriever, root]) == [{**EXPECTED, "span_id": "o0"}]


def test_an_export_without_inputs_and_outputs_says_so(tmp_path: Path) -> None:
    counts = Coverage()
    empty = {**RETRIEVER, "input": None, "output": None}
    read(tmp_path, [empty, {**TRACE, "input": None, "output": None}], coverage=counts)
    assert counts.sentences() == [
        "1 observation without input and output (export the field group `io` too)"
    ]


@pytest.mark.parametrize("message", ["index is down\nTraceback …", None])
def test_an_observation_of_the_level_error_is_an_error(tmp_path: Path, message: str | None) -> None:
    failed = {**RETRIEVER, "output": None, "level": "ERROR", "statusMessage": message}
    (row,) = read(tmp_path, [failed])
    assert row["error"] == ("index is down" if message else "error")
