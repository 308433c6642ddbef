"""`ragauge run` as a real process: killed, interrupted, against bad services and programs."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from ragauge.model.payloads import thaw
from tests.e2e.process import COMMAND, environment, run, write
from tests.support.effort import seeds
from tests.support.postgres import own_schema, server_url
from tests.support.web_servers import Request, http, serving

FIXED = {"SOURCE_DATE_EPOCH": "1794733200"}
KILLS = seeds(2)  # `make slow-fuzz` kills 40
QUESTIONS = 2000

# Answers from the question alone, in a little while; some questions fail, always in the same way.
SYSTEM = """
import pathlib, time, zlib

def answer(question, qid, seed, history):
    number = zlib.crc32(f"{question} {seed} {history}".encode())
    time.sleep(number % 7 / 2000)
    if number % 50 == 0:
        raise ValueError(f"no answer to {qid}")
    hits = [{"id": f"d{(number + n) % 97}#1", "score": 1 / (n + 1)} for n in range(10)]
    return {"hits": hits, "answer": f"It is {number}.", "citations": [hits[0]["id"]]}

def hangs(question, qid):
    pathlib.Path("reached").touch()
    if qid.endswith("3"):
        time.sleep(600)
    return [qid]

def talks(question, turn, history):
    if turn == 1 and pathlib.Path("down").exists():
        raise ValueError("down")
    if turn == 2 and pathlib.Path("hangs").exists():
        pathlib.Path("reached").touch()
        time.sleep(600)
    said = [each["answer"] for each in history]
    return {"hits": [question], "answer": f"turn {turn} after {said}"}

def hangs_once(question, qid, seed, history):
    if qid == "Q25" and not pathlib.Path("reached").exists():
        pathlib.Path("reached").touch()
        time.sleep(600)
    return answer(question, qid, seed, history)
"""


def gold(folder: Path, count: int) -> Path:
    """Questions, some of them turns of conversations."""
    rows: list[dict[str, Any]] = []
    for number in range(count):
        row: dict[str, Any] = {"question": f"What is {number}?", "relevant": [f"d{number % 97}#1"]}
        if number % 10 < 3:
            row |= {"qid": f"C{number // 10}", "turn": number % 10 + 1}
        else:
            row |= {"qid": f"Q{number}"}
        rows.append(row)
    return write(folder / "gold.jsonl", rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "system.py", SYSTEM)
    gold(tmp_path, 30)
    return tmp_path


def arguments(run_id: str, target: str = "python:system:answer", *more: str) -> list[str]:
    return ["run", "--gold", "gold.jsonl", "--target", target, "--profile", "all", "--run-id",
            run_id, "--no-timing", "--retries", "0", *more]  # fmt: skip


def started(folder: Path, command: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *command], cwd=folder, env=environment(**FIXED), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def asked(folder: Path, sql: str, run_id: str) -> list[Any]:
    with closing(sqlite3.connect(folder / "ragauge.db", timeout=30)) as database:
        return database.execute(sql, (run_id,)).fetchall()


def count(folder: Path, run_id: str) -> int:
    with suppress(sqlite3.OperationalError):  # the tables are not there yet
        sql = "SELECT count(*) FROM eval_query_results WHERE run_id = ?"
        return int(asked(folder, sql, run_id)[0][0])
    return 0


def wait_for(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.005)


def contents(folder: Path, run_id: str) -> dict[str, list[Any]]:
    """All that is stored of a run, but its name."""
    return {
        "run": asked(
            folder,
            "SELECT suite, profile, created_at, config_snapshot_json, aggregate_json, gold_hash,"
            " gold_key, status, results, evidence FROM eval_runs WHERE run_id = ?", run_id,
        ),
        "results": asked(
            folder,
            "SELECT ordinal, query_id, paraphrase, seed, turn, hit_rank, carries, outcome, delta_s,"
            " latency_ms, metric_values, result_json FROM eval_query_results WHERE run_id = ?"
            " ORDER BY ordinal", run_id,
        ),
        "scorings": asked(
            folder,
            "SELECT number, created_at, aggregate_json, questions FROM eval_scorings"
            " WHERE run_id = ?", run_id,
        ),
        "values": asked(
            folder,
            "SELECT position, metric, version, payload FROM eval_metric_values WHERE run_id = ?"
            " ORDER BY position", run_id,
        ),
    }  # fmt: skip


def errors(folder: Path, run_id: str) -> dict[str, str]:
    rows = asked(
        folder, "SELECT result_json FROM eval_query_results WHERE run_id = ? ORDER BY ordinal",
        run_id,
    )  # fmt: skip
    traces = [json.loads(thaw(row[0])) for row in rows]
    return {trace["qid"]: trace["error"] for trace in traces if "error" in trace}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that holds a whole run `whole`."""
    folder = tmp_path_factory.mktemp("whole")
    write(folder / "system.py", SYSTEM)
    gold(folder, QUESTIONS)
    done = run(folder, *arguments("whole"), "--concurrency", "16", "--allow-errored", env=FIXED)
    assert done.returncode == 0, done.stderr
    assert count(folder, "whole") == QUESTIONS
    return folder


@pytest.mark.slow
@pytest.mark.xdist_group("killed runs")
@pytest.mark.parametrize("repetition", KILLS)
def test_a_run_that_was_killed_and_resumed_is_one_that_was_not(
    uninterrupted: Path, repetition: int
) -> None:
    chance = random.Random(repetition)
    name = f"killed{repetition}"
    command = arguments(name, "python:system:answer", "--concurrency", "16")
    kills = 0
    for _ in range(3):
        before = count(uninterrupted, name)
        if before == QUESTIONS:
            break
        process = started(uninterrupted, command)
        goal = before + chance.randrange(1, (QUESTIONS - before) // 2 + 2)
        wait_for(lambda: count(uninterrupted, name) >= goal, process)  # noqa: B023
        time.sleep(chance.random() / 50)
        process.kill()
        process.communicate(timeout=30)
        kills += process.returncode == -signal.SIGKILL
        command = ["run", "--resume", name, "--retries", "0", "--concurrency", "16"]
    assert kills >= 1
    status = asked(uninterrupted, "SELECT status FROM eval_runs WHERE run_id = ?", name)
    assert status == [("incomplete",)]
    again = run(uninterrupted, "run", "--resume", name, "--retries", "0", env=FIXED)
    assert again.returncode == 0, again.stderr
    assert contents(uninterrupted, name) == contents(uninterrupted, "whole")


@pytest.mark.parametrize("more", [(), ("--retry-errors",)], ids=["plainly", "errors again"])
@pytest.mark.parametrize("stopping", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_stopped_while_errors_were_asked_again_has_no_turn_of_before(
    folder: Path, stopping: signal.Signals, more: tuple[str, ...]
) -> None:
    rows = [{"qid": "C", "turn": turn, "question": f"{turn}?"} for turn in (1, 2, 3)]
    write(folder / "gold.jsonl", rows)
    command = arguments("one", "python:system:talks", "--allow-errored", "--timeout", "600")
    (folder / "down").touch()
    done = run(folder, *command, env=FIXED)
    assert done.returncode == 0, done.stderr
    assert errors(folder, "one") == {"C": "ValueError: down"}
    (folder / "down").unlink()
    (folder / "hangs").touch()
    process = started(folder, ["run", "--resume", "one", "--retry-errors", "--timeout", "600"])
    try:
        wait_for((folder / "reached").exists, process)
        # What was answered before turn 2 was asked may still be on its way to the store.
        wait_for(lambda: count(folder, "one") == 1, process)
        os.kill(process.pid, stopping)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == (130 if stopping == signal.SIGINT else -stopping)
    status = asked(folder, "SELECT status FROM eval_runs WHERE run_id = ?", "one")
    assert (status, errors(folder, "one")) == ([("incomplete",)], {})
    (folder / "hangs").unlink()
    again = run(folder, "run", "--resume", "one", "--retries", "0", *more, env=FIXED)
    assert again.returncode == 0, again.stderr
    command[command.index("one")] = "clean"
    clean = run(folder, *command, env=FIXED)
    assert clean.returncode == 0, clean.stderr
    assert contents(folder, "one") == contents(folder, "clean")


@pytest.mark.slow
def test_a_second_interrupt_ends_at_once_and_harms_nothing(folder: Path) -> None:
    gold(folder, 400)
    process = started(folder, arguments("one", "python:system:answer", "--rate", "200/s"))
    wait_for(lambda: count(folder, "one") >= 20, process)
    for _ in range(2):
        os.killpg(process.pid, signal.SIGINT)
        time.sleep(0.001)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert err.startswith("interrupted")
    assert "Traceback" not in err
    again = run(folder, "run", "--resume", "one", "--retries", "0", env=FIXED)
    assert again.returncode == 0, again.stderr
    assert count(folder, "one") == 400


@pytest.mark.slow
def test_a_full_disk_leaves_a_run_that_goes_on(folder: Path) -> None:
    gold(folder, 400)
    largest = 500_000  # bytes that any file may grow to
    script = (
        f"import resource, os, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({largest},) * 2); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", script, *COMMAND, *arguments("one")]
    full = subprocess.run(
        command, cwd=folder, env=environment(**FIXED), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert full.returncode == 2
    assert full.stderr.startswith("error[store-unavailable]: ")
    assert 0 < count(folder, "one") < 400
    again = run(folder, "run", "--resume", "one", "--retries", "0", env=FIXED)
    assert again.returncode == 0, again.stderr
    run(folder, *arguments("two"), env=FIXED)
    assert contents(folder, "one") == contents(folder, "two")


def test_progress_is_shown_on_a_terminal_only(folder: Path) -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    command = arguments("one", "python:system:answer", "--rate", "30/s")
    with subprocess.Popen(
        [*COMMAND, *command], cwd=folder, env=environment(), stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        shown = b""
        with suppress(OSError):
            while part := os.read(ours, 4096):
                shown += part
        os.close(ours)
    assert process.returncode == 0
    assert b"/30  " in shown
    assert b" left  " in shown
    assert b"% found" in shown
    assert shown.endswith(b"\r\x1b[Kstored 30 results as one in sqlite:///ragauge.db"
                          + shown.partition(b"ragauge.db")[2])  # fmt: skip
    quiet = run(folder, *arguments("two"))
    assert "/30" not in quiet.stderr


@pytest.mark.slow
def test_an_interrupt_leaves_a_run_that_goes_on(folder: Path) -> None:
    gold(folder, 400)
    process = started(folder, arguments("one", "python:system:answer", "--rate", "100/s"))
    wait_for(lambda: count(folder, "one") >= 20, process)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    stored = count(folder, "one")
    assert err.startswith(f"interrupted: {stored} results were stored, {400 - stored} are left\n")
    assert "  hint: go on with `ragauge run --resume one --store sqlite:///ragauge.db`" in err
    assert 20 <= stored < 400
    listed = run(folder, "runs", "list", "--format", "json")
    assert json.loads(listed.stdout)["runs"][0]["status"] == "incomplete"
    refused = run(folder, "gate", "one")
    assert (refused.returncode, "incomplete-run" in refused.stderr) == (4, True)
    again = run(folder, "run", "--resume", "one", "--retries", "0", env=FIXED)
    assert again.returncode == 0, again.stderr
    assert count(folder, "one") == 400


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_calls_that_hang_do_not_hold_an_interrupt_up(folder: Path, times: int) -> None:
    write(folder / "gold.jsonl", [{"qid": f"H{n}3", "question": "?"} for n in range(20)])
    process = started(folder, arguments("one", "python:system:hangs"))
    wait_for((folder / "reached").exists, process)
    for _ in range(times):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.3)
    process.communicate(timeout=120)  # far below what the calls take
    assert process.returncode == 130
    assert count(folder, "one") == 0


def test_a_program_that_misbehaves_costs_its_questions_and_no_more(folder: Path) -> None:
    write(
        folder / "program.py",
        "import json, os, sys, time\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    what = asked['question']\n"
        "    if what == 'die': print('out of memory', file=sys.stderr); os._exit(1)\n"
        "    if what == 'hang': time.sleep(600)\n"
        "    if what == 'garbage': print('Loading...'); sys.stdout.flush(); continue\n"
        "    if what == 'other': asked['qid'] = 'Z'\n"
        "    hits = 3 if what == 'shape' else [what]\n"
        "    print(json.dumps({'qid': asked['qid'], 'hits': hits}), flush=True)\n",
    )
    texts = ["ok", "die", "garbage", "ok", "other", "shape", "ok", "hang", "ok"]
    rows = [{"qid": f"Q{n}", "question": text, "relevant": ["ok"]} for n, text in enumerate(texts)]
    write(folder / "gold.jsonl", rows)
    done = run(
        folder, *arguments("one", f"command:{sys.executable} program.py"), "--timeout", "6",
        "--concurrency", "2",
    )  # fmt: skip
    assert "stored 9 results as one in sqlite:///ragauge.db, 5 of them errors" in done.stderr
    found = errors(folder, "one")
    assert found == {
        "Q1": "the process ended with exit code 1; it said: out of memory",
        "Q2": "a line of the output is no JSON (JSON is malformed: invalid character (byte 0)): "
        "Loading...",
        "Q4": "the answer is for `Z`, and `Q4` was asked",
        "Q5": "the answer cannot be read: `hits` must be a list, got 3 (bad-field)",
        "Q7": "no answer within 6 s",
    }


def faults(request: Request) -> bytes | None:
    """A service that fails as the question says."""
    what = request.json["question"]
    answers: dict[str, bytes | None] = {
        "500": http({"detail": "no index"}, "500 Error"),
        "404": http({}, "404 None"),
        "redirect": http({}, "301 Moved", Location="/other"),
        "html": http(b"<html>"),
        "closed": None,
        "cut": b"HTTP/1.1 200 OK\r\nContent-Le",
        "nonsense": b"hello\r\n\r\n",
        "shape": http({"hits": "a"}),
        "large": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
    }
    return answers[what] if what in answers else http({"hits": [{"id": what}]})


def test_a_service_that_misbehaves_costs_its_questions_and_no_more(folder: Path) -> None:
    texts = [
        "a", "500", "404", "b", "redirect", "html", "closed", "c", "cut", "nonsense", "shape",
        "large", "d",
    ]  # fmt: skip
    rows = [{"qid": text, "question": text, "relevant": [text]} for text in texts]
    write(folder / "gold.jsonl", rows)
    with serving(faults) as server:
        done = run(folder, *arguments("one", f"{server.url}/ask"), "--timeout", "10")
        at = f"{server.url}/ask"
    assert "stored 13 results" in done.stderr
    assert done.returncode == 0, done.stderr
    found = errors(folder, "one")
    assert found == {
        "500": f'{at} answered 500: {{"detail": "no index"}}',
        "404": f"{at} answered 404: {{}}",
        "redirect": f"{at} answered 301, to /other: write that address",
        "html": f"{at} answered no JSON: <html>",
        "closed": f"{at} closed the connection",
        "cut": f"{at}: a line has no end",
        "nonsense": f"{at}: no HTTP was answered: the answer begins with b'hello\\r\\n'",
        "shape": 'the answer cannot be read: `hits` must be a list, got "a" (bad-field)',
        "large": f"{at}: the answer is larger than 67,108,864 bytes",
    }


def test_a_service_that_is_busy_is_asked_again_when_it_says(folder: Path) -> None:
    times: dict[str, list[float]] = {}

    def busy(request: Request) -> bytes:
        seen = times.setdefault(request.json["qid"], [])
        seen.append(time.monotonic())
        if len(seen) == 1:
            return http({}, "429 Slow", Retry_After="1")
        return http({"hits": ["a"]})

    write(folder / "gold.jsonl", [{"qid": "Q", "question": "?", "relevant": ["a"]}])
    command = ["run", "--gold", "gold.jsonl", "--run-id", "one", "--profile", "all"]
    with serving(busy) as server:
        done = run(folder, *command, "--target", server.url, "--retries", "1")
    assert done.returncode == 0, done.stderr
    assert errors(folder, "one") == {}
    assert times["Q"][1] - times["Q"][0] >= 1.0


def test_a_service_with_little_room_loses_no_question(folder: Path) -> None:
    """It has room for 8 and is asked 32 at once. Of 100 questions 28 were lost here before."""
    places = threading.Semaphore(8)
    refused = 0

    def small(_: Request) -> bytes:
        nonlocal refused
        if not places.acquire(blocking=False):
            refused += 1
            if refused % 2:
                return http({}, "429 Too Many Requests", Retry_After="1")
            now = time.time()
            times = {"Date": formatdate(now, usegmt=True)}
            return http({}, "503 Busy", Retry_After=formatdate(now + 1, usegmt=True), **times)
        try:
            time.sleep(0.02)
            return http({"hits": ["d7#1"]})
        finally:
            places.release()

    gold(folder, 100)
    with serving(small) as server:
        done = run(
            folder, "run", "--gold", "gold.jsonl", "--run-id", "one", "--profile", "all",
            "--target", server.url, "--concurrency", "32",
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (errors(folder, "one"), count(folder, "one")) == ({}, 100)
    assert 0 < refused < 100  # it is not asked over and over, either


def test_what_a_system_prints_does_not_spoil_the_report(folder: Path) -> None:
    write(
        folder / "loud.py", "print('imported')\ndef ask(q):\n    print('asked')\n    return [q]\n"
    )
    done = run(folder, *arguments("one", "python:loud:ask", "--format", "json"))
    assert json.loads(done.stdout)["counts"]["traces"] == 30
    assert "imported\n" in done.stderr


@pytest.mark.xdist_group("postgres")
def test_a_run_goes_on_in_postgresql_too(folder: Path, request: pytest.FixtureRequest) -> None:
    with own_schema(server_url(request.config)) as url:
        once = arguments("one", "python:system:hangs_once", "--concurrency", "1")
        process = started(folder, [*once, "--store", url])
        wait_for((folder / "reached").exists, process)
        process.kill()
        process.communicate(timeout=30)
        again = run(folder, "run", "--resume", "one", "--store", url, "--retries", "0", env=FIXED)
        assert again.returncode == 0, again.stderr
        done = run(folder, *once, env=FIXED)
        assert done.returncode == 0, done.stderr
        exported = []
        for name, each in (("a.jsonl", url), ("b.jsonl", "sqlite:///ragauge.db")):
            done = run(folder, "runs", "export", "one", "--store", each, "-o", name)
            assert done.returncode == 0, done.stderr
            exported.append((folder / name).read_text("utf-8"))
        assert exported[0] == exported[1]
        assert exported[0].count("\n") > 30


PLUGIN = """
from ragauge.model.target import TargetError, TargetKind

class Parrot:
    def __init__(self, address, options):
        self.about = {"parrot": address, "k": options.k}

    def ask(self, question):
        if question.qid == "Q5":
            raise TargetError("it does not talk")
        return {"hits": ["d7#1", question.text], "answer": question.text}

    def close(self):
        open("closed", "w").close()

TARGET = TargetKind(name="parrot", title="a parrot", schemes=("parrot",), open=Parrot)
"""


def test_an_installed_package_brings_a_target(folder: Path) -> None:
    installed = folder / "site"
    write(installed / "parrot.py", PLUGIN)
    about = installed / "parrot-1.0.dist-info"
    write(about / "METADATA", "Metadata-Version: 2.1\nName: parrot\nVersion: 1.0\n")
    write(about / "entry_points.txt", "[ragauge.targets]\nparrot = parrot:TARGET\n")
    here = {**FIXED, "PYTHONPATH": str(installed)}
    done = run(folder, *arguments("one", "parrot:polly"), "--allow-errored", env=here)
    assert done.returncode == 0, done.stderr
    assert errors(folder, "one") == {"Q5": "it does not talk"}
    assert count(folder, "one") == 30
    assert (folder / "closed").exists()
    (stored,) = contents(folder, "one")["run"]
    assert json.loads(stored[3])["system"]["target"]["parrot"] == "polly"
    refused = run(folder, *arguments("two", "parrot:polly"), env=FIXED)
    assert (refused.returncode, "bad-target" in refused.stderr) == (2, True), refused.stderr
    write(installed / "parrot.py", "import not_there")
    broken = run(folder, *arguments("two", "parrot:polly"), env=here)
    assert "bad-plugin" in broken.stderr
    assert "not_there" in broken.stderr
