"""Ids of runs: one grammar, whoever chooses the id."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from ragauge.errors import RagaugeError
from ragauge.store.runs import keep_run, opened_store
from tests.support.command import GOLD, TRACES, Folder

REFUSED = [
    "", "-", "-x", "_x", ".x", "a b", " a", "a/b", "a\\b", "../a", "a\nb", "a\x1b[2J",
    "a\u202eb", "latest", "baseline", "a.json", "a.jsonl", "a.html", "a.htm", "a.gz", "a" * 201,
]  # fmt: skip
TAKEN = [
    "a",
    "7",
    "monday",
    "2026-11-16T10:00:00Z",
    "v1.2",
    "a.b_c-d:e+f=g@h",
    "prüfung",
    "x" * 200,
]


@pytest.fixture
def files(folder: Folder) -> Folder:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    folder.write("rag.py", "def ask(question, k):\n    return []\n")
    done = folder.run("score", "gold.jsonl", "trace.jsonl", "--store", "--run-id", "first")
    assert done.exit_code == 0, done.err
    assert folder.run("runs", "export", "first", "-o", "first.jsonl").exit_code == 0
    return folder


def renamed(exported: Path, run_id: str) -> bytes:
    """An exported run whose writer had called it otherwise."""
    head, *middle, last = exported.read_bytes().splitlines(keepends=True)
    lines = [json.dumps({**json.loads(head), "run_id": run_id}).encode() + b"\n", *middle]
    end = {**json.loads(last), "sha256": sha256(b"".join(lines)).hexdigest()}
    return b"".join([*lines, json.dumps(end).encode() + b"\n"])


def stored_ids(store: str = "sqlite:///ragauge.db") -> list[str]:
    with opened_store(store, create=True) as opened:
        return [run.run_id for run in opened.runs()]


@pytest.mark.parametrize("run_id", REFUSED)
def test_an_id_that_could_not_be_named_later_is_refused_by_all(files: Folder, run_id: str) -> None:
    """By `score` and `run`, by an import under a new id and under its own, and in Python."""
    files.write("other.jsonl", renamed(files.path / "first.jsonl", run_id))
    option = f"--run-id={run_id}"
    for command in (
        ("score", "gold.jsonl", "trace.jsonl", "--store", option),
        ("run", "--gold", "gold.jsonl", "--target", "python:rag:ask", option),
        ("runs", "import", "first.jsonl", option),
    ):
        outcome = files.run(*command)
        assert (outcome.exit_code, outcome.codes) == (2, {"usage"}), (command, outcome.err)
        assert "cannot be the id of a run" in outcome.err
    outcome = files.run("runs", "import", "other.jsonl")
    assert (outcome.exit_code, outcome.codes) == (3, {"bad-export"})
    assert "cannot be the id of a run" in outcome.err
    assert outcome.problems[0].where == "other.jsonl:1"
    with (
        opened_store("sqlite:///ragauge.db") as store,
        pytest.raises(RagaugeError, match="cannot be the id of a run"),
    ):
        keep_run(store, "gold.jsonl", "trace.jsonl", run_id=run_id)
    assert stored_ids() == ["first"]


def test_a_run_with_an_odd_id_is_imported_under_another(files: Folder) -> None:
    files.write("other.jsonl", renamed(files.path / "first.jsonl", "a/b"))
    assert files.run("runs", "import", "other.jsonl", "--run-id", "second").exit_code == 0
    assert stored_ids() == ["first", "second"]


@pytest.mark.parametrize("run_id", TAKEN)
def test_any_other_id_is_taken_by_all(files: Folder, run_id: str) -> None:
    files.write("other.jsonl", renamed(files.path / "first.jsonl", run_id))
    with opened_store("sqlite:///api.db", create=True) as store:
        keep_run(store, "gold.jsonl", "trace.jsonl", run_id=run_id)
    score = ("score", "gold.jsonl", "trace.jsonl", "--run-id", run_id)
    assert files.run(*score, "--store=sqlite:///cli.db").exit_code == 0
    imported = ("runs", "import", "other.jsonl", "--store", "sqlite:///import.db")
    assert files.run(*imported).exit_code == 0
    for name in ("api", "cli", "import"):
        assert stored_ids(f"sqlite:///{name}.db") == [run_id]
        shown = files.run("runs", "show", run_id, "--store", f"sqlite:///{name}.db")
        assert shown.exit_code == 0
