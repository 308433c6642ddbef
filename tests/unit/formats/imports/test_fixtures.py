"""Real exports become exactly the traces that were looked at once and written down."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragauge
from ragauge.formats.imports.import_files import import_files
from tests.support.cases import cases

FIXTURES = Path(__file__).parents[3] / "fixtures" / "imports"
NAMES = sorted(
    path.name
    for path in FIXTURES.iterdir()
    if path.suffix in (".pb", ".json", ".jsonl") and path.name != "gold.jsonl"
)


def fixture(name: str) -> Path:
    if name.endswith(".pb"):
        pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    return FIXTURES / name


@cases("name", NAMES)
def test_an_export_becomes_the_traces_that_are_written_down(name: str, tmp_path: Path) -> None:
    out = tmp_path / "traces.jsonl"
    import_files([str(fixture(name))], str(out), "traces")
    expected = FIXTURES / "expected" / f"{name}.jsonl"
    assert out.read_text("utf-8") == expected.read_text("utf-8")


@pytest.mark.parametrize("name", ["openinference-llamaindex.pb", "langsmith.jsonl", "mlflow.jsonl"])
def test_an_export_is_scored_as_it_is(name: str) -> None:
    """F1 and F2 found first and cited, F3 refused; joined by id, or by the question's text."""
    scores = ragauge.score(FIXTURES / "gold.jsonl", fixture(name), k=1)
    values = {metric: (one.value, one.n) for metric, one in scores.metrics.items()}
    assert values["retrieval.recall@1"] == (1.0, 2)
    assert values["citation.hit_rate"] == (1.0, 2)
    assert values["refusal.under"] == (0.0, 1)
