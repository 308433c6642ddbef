"""Calls that were abandoned and are still in native code: the process ends as it should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.process import COMMAND, environment, run, write

# Each goes in and out of native code for far longer than the process lives.
SYSTEM = '''
import ctypes, sqlite3, time

def tokens(question):
    """Python called by Rust, which does not let a thread be ended below it."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    class Slow:
        def pre_tokenize(self, text):
            text.split(lambda _, part: (time.sleep(0.001), [part])[1])

    open("reached", "w").close()
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.PreTokenizer.custom(Slow())
    while True:
        tokenizer.encode("a b c d")

def vectors(question):
    import numpy as np

    np.frompyfunc(lambda _: time.sleep(0.001), 1, 1)(np.arange(10**6))

def database(question):
    connection = sqlite3.connect(":memory:")
    connection.create_function("slow", 1, lambda n: time.sleep(0.001) or n)
    numbers = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) "
    connection.execute(numbers + "SELECT sum(slow(n)) FROM t").fetchall()

def sleeps(question):
    while True:
        ctypes.CDLL(None).usleep(1000)
'''
GOLD = [{"qid": f"Q{n}", "question": f"{n}?", "relevant": ["a"]} for n in range(3)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "gold.jsonl", GOLD)
    write(tmp_path / "system.py", SYSTEM)
    return tmp_path


@pytest.mark.parametrize("function", ["tokens", "vectors", "database", "sleeps"])
def test_calls_in_native_code_do_not_change_how_a_run_ends(folder: Path, function: str) -> None:
    """Where the interpreter ended them, the process died with 134 (SIGABRT) under `tokens`."""
    done = run(
        folder, "run", "--gold", "gold.jsonl", "--target", f"python:system:{function}",
        "--run-id", "one", "--timeout", "0.2", "--retries", "0", "--profile", "all",
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    assert "every question ended in an error: 3 × no answer within 0.2 s" in done.stderr
    assert done.stdout.startswith("profile all, 3 questions")


def test_what_is_registered_for_the_end_still_happens(folder: Path) -> None:
    """The user's system may have something to put away."""
    ending = "import atexit\natexit.register(lambda: open('ended', 'w').close())\n"
    write(folder / "system.py", f"{ending}{SYSTEM}")
    run(
        folder, "run", "--gold", "gold.jsonl", "--target", "python:system:sleeps",
        "--timeout", "0.2", "--retries", "0", "--profile", "all",
    )  # fmt: skip
    assert (folder / "ended").exists()


WRITES = """
import os, signal, sqlite3, sys, threading, time
from ragauge.store.databases.sqlite import open_store
from ragauge.model.run import ResultFacts, ResultRow, RunRecord

def write(store, run_id):
    number = 0
    while True:
        facts = [ResultFacts(number + i, "q", None, None, None, None, 0, "ok", None, None)
                 for i in range(200)]
        store.add_results(run_id, [ResultRow(fact, b"x" * 500) for fact in facts])
        number += 200

for attempt in range(40):
    store = open_store("sqlite:///store.db")
    run_id = f"r{attempt}"
    store.begin(RunRecord(run_id=run_id, suite="s", profile="all", created_at="2026",
                          commit_hash=None, gold_hash="g", gold_key="g"))
    threading.excepthook = lambda _: None  # the store is closed: that is what it is told
    threading.Thread(target=write, args=(store, run_id), daemon=True).start()
    time.sleep(0.004 + attempt / 10_000)
    store.close()
print("closed")
os._exit(0)
"""


def test_a_store_is_not_closed_under_a_thread_that_writes(tmp_path: Path) -> None:
    """A second interrupt does so; SQLite then crashed with -11 (SIGSEGV), now and then."""
    done = subprocess.run(
        [sys.executable, "-c", WRITES],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "closed\n"), done.stderr


def test_an_order_to_end_is_obeyed_while_calls_hang(folder: Path) -> None:
    """The exit code is that of the signal, not that of a crash."""
    with subprocess.Popen(
        [*COMMAND, "run", "--gold", "gold.jsonl", "--target", "python:system:tokens",
         "--timeout", "600", "--profile", "all"],
        cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        while process.poll() is None and not (folder / "reached").exists():
            time.sleep(0.01)
        for _ in range(2):  # the first lets calls come back, for a while
            os.kill(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "interrupted" in err
