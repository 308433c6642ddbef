"""Stored runs with real processes: a kill, an interrupt, a full disk, two writers, two stores."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.process import COMMAND, GOLD, TRACES, WRONG, environment, run, write
from tests.support.postgres import own_schema, server_url

MANY = 40_000
FIXED = {"SOURCE_DATE_EPOCH": "1794733200"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a stored run `good`, and a trace file that takes a while to store."""
    write(tmp_path / "gold.jsonl", GOLD)
    write(tmp_path / "good.jsonl", TRACES)
    write(tmp_path / "wrong.jsonl", WRONG)
    done = run(tmp_path, "score", "gold.jsonl", "good.jsonl", "--run-id", "good", "--store")
    assert done.returncode == 0, done.stderr
    return tmp_path


def many(folder: Path) -> Path:
    rows = [{**TRACES[0], "seed": number} for number in range(MANY)]
    return write(folder / "many.jsonl", rows)


def statuses(folder: Path) -> dict[str, str]:
    with closing(sqlite3.connect(folder / "ragauge.db")) as database:
        return dict(database.execute("SELECT run_id, status FROM eval_runs"))


def stored_rows(folder: Path, run_id: str) -> int:
    with closing(sqlite3.connect(folder / "ragauge.db")) as database:
        query = "SELECT count(*) FROM eval_query_results WHERE run_id = ?"
        return int(database.execute(query, (run_id,)).fetchone()[0])


def started(folder: Path, *arguments: str, largest: int | None = None) -> subprocess.Popen[str]:
    """Start the command; with `largest`, no file may grow beyond so many bytes."""
    command: list[str] = [*COMMAND, *arguments]
    if largest is not None:
        limits = f"({largest}, {largest})"
        script = (
            f"import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, {limits}); "
            "os.execv(sys.argv[1], sys.argv[1:])"
        )
        command = [sys.executable, "-c", script, *command]
    return subprocess.Popen(
        command, cwd=folder, env=environment(), text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def wait_for_rows(folder: Path, run_id: str, process: subprocess.Popen[str]) -> None:
    for _ in range(6000):
        if stored_rows(folder, run_id):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    raise AssertionError("nothing was stored")


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_stopped_stays_incomplete_and_harms_nothing(
    folder: Path, how: signal.Signals
) -> None:
    many(folder)
    process = started(
        folder, "score", "gold.jsonl", "many.jsonl", "--run-id", "half", "--store", "--workers",
        "1", "--profile", "all", "--no-intervals",
    )  # fmt: skip
    wait_for_rows(folder, "half", process)
    os.killpg(process.pid, how)
    process.communicate(timeout=60)
    assert statuses(folder) == {"good": "complete", "half": "incomplete"}
    assert 0 < stored_rows(folder, "half") < MANY
    refused = run(folder, "gate", "half")
    assert (refused.returncode, "incomplete-run" in refused.stderr) == (4, True)
    assert run(folder, "compare", "good", "half").returncode == 4
    assert run(folder, "baseline", "set", "half").returncode == 4
    assert run(folder, "compare", "good", "good").returncode == 0
    again = run(folder, "score", "gold.jsonl", "wrong.jsonl", "--run-id", "next", "--store")
    assert again.returncode == 1  # its gates fail, and it is stored
    assert run(folder, "runs", "delete", "--incomplete", "--yes").returncode == 0
    assert statuses(folder) == {"good": "complete", "next": "complete"}
    assert stored_rows(folder, "half") == 0


@pytest.mark.slow
def test_a_full_disk_is_said_and_older_runs_are_whole(folder: Path) -> None:
    many(folder)
    size = (folder / "ragauge.db").stat().st_size
    process = started(
        folder, "score", "gold.jsonl", "many.jsonl", "--run-id", "big", "--store", "--profile",
        "all", "--no-intervals", largest=size + 2_000_000,
    )  # fmt: skip
    out, err = process.communicate(timeout=120)
    assert (process.returncode, "error[store-unavailable]" in err) == (2, True), err
    assert out == ""
    assert statuses(folder) == {"good": "complete", "big": "incomplete"}
    assert run(folder, "compare", "good", "good", "--format", "json").returncode == 0
    assert run(folder, "rescore", "good").returncode == 0


@pytest.mark.slow
def test_two_processes_store_into_one_file(folder: Path) -> None:
    many(folder)
    names = ("one", "two", "three")
    processes = [
        started(
            folder, "score", "gold.jsonl", "many.jsonl", "--run-id", name, "--store", "--workers",
            "1", "--profile", "all", "--no-intervals",
        )
        for name in names
    ]  # fmt: skip
    for process in processes:
        _, err = process.communicate(timeout=240)
        assert process.returncode == 0, err
    assert statuses(folder) == {"good": "complete", **dict.fromkeys(names, "complete")}
    assert {stored_rows(folder, name) for name in names} == {MANY}


def test_one_name_is_taken_once(folder: Path) -> None:
    again = run(folder, "score", "gold.jsonl", "wrong.jsonl", "--run-id", "good", "--store")
    assert (again.returncode, "run-exists" in again.stderr) == (2, True)
    assert stored_rows(folder, "good") == len(TRACES)


def walk(folder: Path, store: str) -> list[Any]:
    """Everything that can be done with stored runs, on one store; what is printed as JSON."""
    for name in ("good", "wrong"):
        done = run(
            folder, "score", "gold.jsonl", f"{name}.jsonl", "--run-id", name, f"--store={store}",
            env=FIXED,
        )  # fmt: skip
        assert done.returncode == (0 if name == "good" else 1), done.stderr
    found = []
    for words, code in (
        (("baseline", "set", "good"), 0),
        (("compare", "baseline", "wrong", "--format", "json"), 0),
        (("compare", "good", "wrong", "--fail-on", "regression", "--format", "json"), 1),
        (("gate", "wrong", "--format", "json"), 1),
        (("history", "precision", "--format", "json"), 0),
        (("rescore", "--all", "--format", "json"), 0),
        (("runs", "export", "wrong", "-o", "run.jsonl"), 0),
        (("runs", "delete", "wrong", "--yes"), 0),
        (("runs", "import", "run.jsonl"), 0),
        (("compare", "good", "wrong", "--format", "json"), 0),
    ):
        done = run(folder, *words, "--store", store, env=FIXED)
        assert done.returncode == code, (words, done.stderr)
        if "json" in words:
            found.append(json.loads(done.stdout))
    return found


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_both_databases_tell_the_same(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    for name, rows in (("gold", GOLD), ("good", TRACES), ("wrong", WRONG)):
        write(tmp_path / f"{name}.jsonl", rows)
    sqlite = walk(tmp_path, "sqlite:///walk.db")
    with own_schema(server_url(request.config)) as url:
        postgres = walk(tmp_path, url)
    assert sqlite == postgres
    assert sqlite[0]["kinds"]["answer"]["regression"] == 1


def test_no_driver_is_needed_for_sqlite(tmp_path: Path) -> None:
    for name, rows in (("gold", GOLD), ("good", TRACES)):
        write(tmp_path / f"{name}.jsonl", rows)
    script = (
        "import sys\nsys.modules['psycopg'] = None\nfrom ragauge.cli.main import run\n"
        "code = run(['score', 'gold.jsonl', 'good.jsonl', '--store', '--run-id', 'a'])\n"
        "sys.exit(code or run(['compare', 'a', 'a']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment(), capture_output=True,
        text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
