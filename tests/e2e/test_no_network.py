"""Nothing is sent anywhere: the commands and the API work where every socket is refused."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

import ragauge

# Python runs a `sitecustomize` that it finds on the path, also in the worker processes. The audit
# events come from the C code, so that no way around the `socket` module is left.
REFUSE_SOCKETS = """
import os, pathlib, sys

def refuse(event, arguments):
    if event.startswith("socket."):
        raise RuntimeError("a socket was asked for: " + event)

sys.addaudithook(refuse)
pathlib.Path(__file__).with_name(f"{os.getpid()}.refused").touch()
"""
GOLD = [
    {
        "qid": "A1",
        "question": "Does X support null keys?",
        "answerable": True,
        "gold_claim_substr": ["rejects null keys"],
        "gold_citations": ["p1#2"],
    },
    {
        "qid": "A2",
        "question": "Explain Z.",
        "answerable": False,
        "gold_claim_substr": [],
        "gold_citations": [],
    },
]
TRACES = [
    {
        "qid": "A1",
        "q": "Does X support null keys?",
        "retrieved_ids": ["p1#1", "p1#2"],
        "answer_json": {"claim": "X rejects null keys.", "citations": ["p1#2"]},
    },
    {
        "qid": "A2",
        "q": "Explain Z.",
        "retrieved_ids": ["p1#1"],
        "answer_json": {"claim": "not in context", "citations": []},
    },
]
MANY = 30_000  # times two rows of 260 bytes together: several ranges, so that workers are started


def write_rows(path: Path, rows: list[dict[str, Any]], *, times: int = 1) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows) * times, encoding="utf-8")
    return path


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "gold.jsonl", GOLD)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "trace.jsonl", TRACES)


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that is refused every socket, and so are its children."""
    folder = tmp_path / "refuse-sockets"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(REFUSE_SOCKETS, encoding="utf-8")
    source = Path(ragauge.__file__).resolve().parents[1]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(source)])}


def run(
    environment: dict[str, str], folder: Path, *arguments: str | Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=environment,
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "attempt", ["socket.socket()", "socket.create_connection(('127.0.0.1', 9))", "_socket.socket()"]
)
def test_the_refusal_itself_works(tmp_path: Path, offline: dict[str, str], attempt: str) -> None:
    done = run(offline, tmp_path, "-c", f"import _socket, socket; {attempt}")
    assert done.returncode == 1
    assert "a socket was asked for" in done.stderr


def test_score_opens_no_socket(
    tmp_path: Path, offline: dict[str, str], gold: Path, trace: Path
) -> None:
    done = run(
        offline, tmp_path, "-m", "ragauge", "score", "--gold", gold, "--trace", trace,
        "--profile", "ship", "--format", "json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["precision"] == 1.0  # A1 is right, A2 is rightly refused


def test_a_failed_gate_opens_no_socket(tmp_path: Path, offline: dict[str, str], gold: Path) -> None:
    refused = {**TRACES[0], "answer_json": {"claim": "not in context", "citations": []}}
    trace = write_rows(tmp_path / "refused.jsonl", [refused, TRACES[1]])
    done = run(
        offline, tmp_path, "-m", "ragauge", "score", "--gold", gold, "--trace", trace,
        "--profile", "ship", "--format", "json",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["over_refusal"] == 1.0  # 1 of 1 answerable was refused


def test_worker_processes_open_no_socket(
    tmp_path: Path, offline: dict[str, str], gold: Path
) -> None:
    trace = write_rows(tmp_path / "many.jsonl", TRACES, times=MANY)
    done = run(
        offline, tmp_path, "-m", "ragauge", "score", "--gold", gold, "--trace", trace,
        "--profile", "all", "--format", "json", "--workers", "2",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["traces"] == 2 * MANY
    refused = list(Path(offline["PYTHONPATH"].partition(os.pathsep)[0]).glob("*.refused"))
    assert len(refused) == 3  # the command and its two workers


def test_demo_opens_no_socket(tmp_path: Path, offline: dict[str, str]) -> None:
    done = run(offline, tmp_path, "-m", "ragauge", "demo")
    assert done.returncode == 0, done.stderr
    assert "FAIL" in done.stdout  # the sample has one gate that fails


def test_the_api_opens_no_socket(monkeypatch: pytest.MonkeyPatch, gold: Path, trace: Path) -> None:
    def refuse(*_arguments: object, **_options: object) -> NoReturn:
        raise RuntimeError("a socket was asked for")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    scores = ragauge.score(gold, trace, profile="ship")
    assert ragauge.gate(scores).exit_code == 0
    loaded = ragauge.score(ragauge.load_gold(gold), ragauge.load_traces(trace), profile="ship")
    assert loaded.metrics == scores.metrics
