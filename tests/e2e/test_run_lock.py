"""One process at a time writes a run: the second one says so, and nothing comes to harm.

Nothing here depends on who is quicker: the target of the first process waits for a file.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import COMMAND, environment, run, write
from tests.support.postgres import own_schema, server_url

FIXED = {"SOURCE_DATE_EPOCH": "1794733200"}
KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]

# Q3 is answered when there is a file `go`; until then a file `waiting` says where it stands.
SYSTEM = """
import pathlib, time

def answer(question, qid):
    with open("asked", "a") as file:
        file.write(qid + "\\n")
    if qid == "Q3":
        pathlib.Path("waiting").touch()
        while not pathlib.Path("go").exists():
            time.sleep(0.005)
    if qid == "Q1" and not pathlib.Path("repaired").exists():
        raise ValueError("no index")
    return {"hits": [qid], "answer": f"It is {qid}."}
"""
ASK = ("--no-timing", "--retries", "0", "--concurrency", "1", "--timeout", "600")


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a store that nothing was stored in."""
    if request.param == "sqlite":
        yield "sqlite:///runs.db"
        return
    with own_schema(server_url(request.config)) as url:
        yield url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "system.py", SYSTEM)
    rows = [{"qid": f"Q{n}", "question": "?", "relevant": [f"Q{n}"]} for n in range(6)]
    write(tmp_path / "gold.jsonl", rows)
    return tmp_path


def begun(store: str, run_id: str = "one") -> list[str]:
    return ["run", "--gold", "gold.jsonl", "--target", "python:system:answer", "--run-id", run_id,
            "--store", store, "--profile", "all", "--allow-errored", *ASK]  # fmt: skip


def resumed(store: str, *more: str) -> list[str]:
    return ["run", "--resume", "one", "--store", store, "--allow-errored", *ASK[1:], *more]


@pytest.fixture
def waiting(folder: Path) -> Iterator[Any]:
    """Starts a process and comes back when its target waits at Q3; none outlives the test."""
    processes: list[subprocess.Popen[str]] = []

    def start(command: list[str]) -> subprocess.Popen[str]:
        (folder / "waiting").unlink(missing_ok=True)
        process = subprocess.Popen(
            [*COMMAND, *command], cwd=folder, env=environment(**FIXED), text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        processes.append(process)
        end = time.monotonic() + 120
        while not (folder / "waiting").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < end
            time.sleep(0.005)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def exported(folder: Path, store: str, run_id: str = "one") -> list[Any]:
    """All that is stored of a run, but its name and its own hash."""
    done = run(folder, "runs", "export", run_id, "--store", store, "-o", "run.jsonl")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (folder / "run.jsonl").read_text("utf-8").splitlines()]
    return [{k: v for k, v in row.items() if k not in ("run_id", "sha256")} for row in rows]


def assert_refused(folder: Path, command: list[str]) -> None:
    asked = (folder / "asked").read_text("utf-8")
    done = run(folder, *command, env=FIXED)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[run-held]: another process is writing the run `one`" in done.stderr
    assert "  hint: wait until it ends; `ragauge run --resume one` then goes on" in done.stderr
    assert (folder / "asked").read_text("utf-8") == asked


def finish(folder: Path, process: subprocess.Popen[str]) -> None:
    (folder / "go").touch()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err


def test_a_run_that_is_still_asked_is_not_resumed(folder: Path, store: str, waiting: Any) -> None:
    process = waiting(begun(store))
    assert_refused(folder, resumed(store))
    finish(folder, process)
    assert (folder / "asked").read_text("utf-8").split() == [f"Q{n}" for n in range(6)]
    assert run(folder, *begun(store, "two"), env=FIXED).returncode == 0
    assert exported(folder, store) == exported(folder, store, "two")


def test_a_run_is_resumed_by_one_process_at_a_time(folder: Path, store: str, waiting: Any) -> None:
    """Also while errors are asked again; what was killed before holds nothing."""
    waiting(begun(store)).kill()
    second = waiting(resumed(store))
    assert_refused(folder, resumed(store))
    assert_refused(folder, resumed(store, "--retry-errors"))
    finish(folder, second)
    (folder / "go").unlink()
    (folder / "asked").unlink()
    (folder / "repaired").touch()
    done = run(folder, *resumed(store, "--retry-errors"), env=FIXED)
    assert done.returncode == 0, done.stderr
    assert (folder / "asked").read_text("utf-8") == "Q1\n"
    (folder / "go").touch()
    assert run(folder, *begun(store, "two"), env=FIXED).returncode == 0
    assert exported(folder, store) == exported(folder, store, "two")


def test_other_runs_and_readers_are_not_held_up(folder: Path, waiting: Any) -> None:
    store = "sqlite:///runs.db"
    process = waiting(begun(store))
    write(folder / "trace.jsonl", [{"qid": "Q0", "hits": ["Q0"]}])
    files = ("gold.jsonl", "trace.jsonl", "--profile", "all", "--allow-missing")
    done = run(folder, "score", *files, "--store", store, "--run-id", "other")
    assert done.returncode == 0, done.stderr
    assert run(folder, "runs", "list", "--store", store).returncode == 0
    finish(folder, process)
    assert sorted(path.name for path in folder.glob("*runs.db*")) == ["runs.db"]
    assert list(folder.glob(".*")) == []
