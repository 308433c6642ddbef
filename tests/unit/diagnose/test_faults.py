"""Twelve faults of a system over real text, each found by what rose against the healthy system."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from ragauge.diagnose.diagnose import MeasuredRun, diagnosis_of, measured_files
from ragauge.model.diagnosis import Diagnosis
from ragauge.model.embedder import Embedding
from tests.support.sabotaged_system import (
    FAULTS,
    RealCorpus,
    Row,
    healthy,
    numpy_corpus,
    perfect_traces,
    unit_vectors,
)

MODULES = (
    "numpy.fft", "numpy.linalg", "numpy.polynomial.polynomial", "numpy.testing",
)  # fmt: skip


class Lab(NamedTuple):
    """A corpus, and the measured runs of the systems over it by the name of their fault."""

    runs: Mapping[str, MeasuredRun]

    def against_healthy(self, fault: str) -> Diagnosis:
        return diagnosis_of(self.runs[fault], baseline=self.runs["healthy"])


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def built(folder: Path, corpus: RealCorpus, embedder: str) -> Lab:
    gold = write(folder / "gold.jsonl", corpus.gold())
    embed = Embedding(name="hashing", cache=str(folder / "vectors.db"))
    base = healthy(corpus, unit_vectors(embedder))
    rows = {"healthy": base.traces(), "perfect": perfect_traces(corpus)}
    rows |= {cause: fault(base).traces() for cause, fault in FAULTS.items()}
    runs = {
        name: measured_files(
            gold, write(folder / f"{name}.jsonl", traces), embed=embed, profile="canary"
        )
        for name, traces in rows.items()
    }
    return Lab(runs)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    corpus = numpy_corpus(MODULES, questions=30)
    return built(tmp_path_factory.mktemp("faults"), corpus, "hashing")


def test_there_are_twelve_faults() -> None:
    assert len(FAULTS) == 12


@pytest.mark.parametrize("cause", FAULTS)
def test_the_cause_of_a_fault_comes_first(lab: Lab, cause: str) -> None:
    findings = lab.against_healthy(cause).findings
    assert [finding.id for finding in findings[:1]] == [cause]
    assert (findings[0].rose or 0) > 0


@pytest.mark.parametrize("cause", FAULTS)
def test_a_fault_does_harm(lab: Lab, cause: str) -> None:
    """A fault that nobody would notice proves nothing: each costs something that gates are on."""
    losses = []
    for name in ("retrieval.recall@5", "answer.coverage", "citation.accuracy"):
        then, now = (lab.runs[run].scores.metrics[name].value for run in ("healthy", cause))
        losses.append((then or 0.0) - (now or 0.0))
    assert max(losses) > 0.04


def test_a_perfect_system_has_no_finding(lab: Lab) -> None:
    perfect = lab.runs["perfect"]
    assert diagnosis_of(perfect).findings == ()
    assert diagnosis_of(perfect, baseline=perfect).findings == ()
    assert lab.against_healthy("perfect").findings == ()


def test_nothing_rose_in_a_system_against_itself(lab: Lab) -> None:
    """The healthy system has faults of its own; they are named as what did not rise."""
    diagnosis = lab.against_healthy("healthy")
    assert diagnosis.findings == ()
    assert any(line.startswith("ordering") for line in diagnosis.steady)
