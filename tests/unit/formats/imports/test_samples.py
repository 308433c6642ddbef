"""Real exports of real libraries carry what was measured of them, and score as they should.

The files lie outside this repository; where they are not, these tests are skipped. Those of our own
are in `fixtures`, with the script that makes them.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ragauge
from ragauge.formats.imports.coverage import Coverage
from tests.support.cases import cases
from tests.support.spans import imported

SAMPLES = Path(__file__).parents[5] / "shared" / "samples" / "imports"
pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not there")

# Traces, then those with an id, a question, an answer and an error; hits, then those with an id, a
# text and a score.
CARRIED = {
    "otlp/openinference-langchain.pb": (5, 5, 5, 4, 1, 12, 12, 12, 12),
    "otlp/openinference-langchain-python-json-exporter.json": (5, 5, 5, 4, 1, 12, 12, 12, 12),
    "otlp/openinference-llamaindex.pb": (5, 4, 5, 4, 1, 16, 16, 16, 16),
    "otlp/otel-genai-langchain.pb": (5, 0, 5, 0, 1, 12, 12, 0, 12),
    "otlp/openllmetry-langchain.pb": (5, 5, 5, 4, 1, 12, 0, 12, 12),
    "langfuse/sdk-otlp.pb": (6, 6, 6, 5, 1, 15, 15, 15, 15),
    "phoenix/spans.json": (15, 9, 15, 8, 3, 40, 40, 28, 40),
    "langsmith/runs-batch.json": (5, 5, 5, 4, 1, 12, 12, 12, 12),
    "mlflow/traces.jsonl": (5, 5, 5, 4, 1, 12, 12, 12, 12),
    "trulens/events.json": (4, 0, 4, 4, 0, 12, 0, 12, 0),
}


def sample(name: str) -> Path:
    if name.endswith(".pb"):
        pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    return SAMPLES / name


@cases("name", CARRIED)
def test_an_export_carries_what_was_measured(name: str) -> None:
    counts = Coverage()
    imported(sample(name), coverage=counts)
    assert CARRIED[name] == (
        counts.rows,
        counts.qids,
        counts.questions,
        counts.answers,
        counts.errors,
        counts.hits,
        counts.hit_ids,
        counts.hit_texts,
        counts.hit_scores,
    )


@cases(
    "name",
    [name for name, counts in CARRIED.items() if counts[5] == counts[6] and "phoenix" not in name],
)
def test_an_export_scores_as_the_questions_were_answered(name: str) -> None:
    scores = ragauge.score(SAMPLES / "gold.jsonl", sample(name), k=1)
    values = {name: (one.value, one.n) for name, one in scores.metrics.items()}
    assert values["retrieval.recall@1"] == (1.0, 3)
    assert values["retrieval.mrr@1"] == (1.0, 3)
    if CARRIED[name][3]:
        assert values["citation.hit_rate"] == (1.0, 3)
        assert values["refusal.under"] == (0.0, 1)


def test_protobuf_and_json_of_one_chain_differ_in_ids_and_times_only() -> None:
    """The two exporters were run one after the other."""
    names = list(CARRIED)[:2]
    both = [imported(sample(name)) for name in names]
    for rows in both:
        for row in rows:
            del row["trace_id"], row["span_id"], row["ts"], row["latency_ms"]
            row.pop("perf", None)
    assert both[0] == both[1]


def test_lost_top_ranks_are_an_error() -> None:
    first = sample("otlp/attribute-limit-001_v1_traces.pb")
    (row,) = imported(first, sample("otlp/attribute-limit-002_v1_traces.pb"))
    assert row["question"] == "fifty documents?"
    assert row["hits"] == []
    assert row["error"] == (
        "truncated: the first 18 of 50 documents are missing (76 attributes were dropped)"
    )


def test_no_setting_of_the_environment_comes_along() -> None:
    """The SDK of LangSmith exports the values of LANGSMITH_* as metadata."""
    text = json.dumps(imported(sample("langsmith/runs-batch.json")))
    assert "LANGSMITH" not in text
    assert "127.0.0.1" not in text
    assert "Traceback" not in text
