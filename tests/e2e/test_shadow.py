"""`ragauge shadow` as a real process that is interrupted while it asks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from tests.e2e.process import COMMAND, environment, run, write

GOLD = [
    {"qid": f"q{n}", "question": f"{n}?", "relevant": [f"d{n}#1"], "answerable": True}
    for n in range(6)
]  # fmt: skip

# The shadow index answers two questions and hangs at the third, the first time that it is asked.
SYSTEM = """
import pathlib, time

def live(qid):
    return {"hits": [f"d{qid[1:]}#1"], "answer": "Yes.", "citations": [f"d{qid[1:]}#1"]}

def shadow(qid):
    if qid == "q2" and not pathlib.Path("reached").exists():
        pathlib.Path("reached").touch()
        time.sleep(600)
    return live(qid)
"""


def test_an_interrupt_tells_which_run_goes_on_and_how(tmp_path: Path) -> None:
    """The live run is whole by then; the shadow run is resumed, and both are judged by name."""
    write(tmp_path / "gold.jsonl", GOLD)
    write(tmp_path / "system.py", SYSTEM)
    judging = ("--profile", "all", "--gates", "retrieval.recall@5=1")
    process = subprocess.Popen(
        [
            *COMMAND, "shadow", "--live", "python:system:live", "--shadow", "python:system:shadow",
            "--gold", "gold.jsonl", "--concurrency", "1", *judging,
        ],
        cwd=tmp_path, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not (tmp_path / "reached").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    stored = re.search(r"stored live: 6 results as (\S+)\n", err)
    told = re.search(
        r"interrupted: 2 results of the shadow index were stored, 4 are left\n"
        r"  hint: go on with `ragauge run --resume (\S+) --store sqlite:///ragauge.db`, "
        r"then judge it as --shadow (\S+)\n",
        err,
    )
    assert stored is not None, err
    assert told is not None, err
    live, shadow = stored[1], told[1]
    assert told[2] == shadow != live
    again = run(tmp_path, "run", "--resume", shadow, "--store", "sqlite:///ragauge.db")
    assert "stored 6 results" in again.stderr, again.stderr
    judged = run(tmp_path, "shadow", "--live", live, "--shadow", shadow, *judging)
    assert judged.returncode == 0, judged.stdout + judged.stderr
