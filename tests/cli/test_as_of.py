"""`--as-of`: the day of waivers comes from what files say, not from when they were written."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime

import pytest

from tests.support.command import Folder

HIT = "retrieval.hit@1"
GOLD = [{"qid": f"q{n}", "question": f"question {n}?", "relevant": [f"c{n}"]} for n in range(6)]
GATES = f'[gates]\n"{HIT}" = ">= 0.9"\n'
WAIVER = '[[waivers]]\ngate = "{gate}"\nreason = "known"\nexpires = "{day}"\n'
LONG_AGO = 946684800  # 2000-01-01
SCORE = ("score", "gold.jsonl", "trace.jsonl", "--profile", "all")


@pytest.fixture
def failing(folder: Folder) -> Folder:
    """A run that finds one in two."""
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", [{"qid": f"q{n}", "topk": [f"c{n // 2 * 2}"]} for n in range(6)])
    return folder


def waived_until(folder: Folder, day: str, gates: str = GATES) -> None:
    folder.write("ragauge.toml", gates + WAIVER.format(gate=HIT, day=day))


@pytest.mark.parametrize("touched", [LONG_AGO, None])
def test_the_time_of_a_file_does_not_matter(failing: Folder, touched: int | None) -> None:
    """A checkout of today and a file of the year 2000 are judged alike."""
    if touched is not None:
        os.utime(failing.path / "trace.jsonl", (touched, touched))
    waived_until(failing, "2020-01-31")
    revived = failing.run(*SCORE, "--as-of", "2020-01-01")
    assert revived.exit_code == 2
    assert "expired on 2020-01-31" in revived.err
    waived_until(failing, "2999-01-31")
    # It is valid on both days, so nothing is revived: the file may be checked out at any time.
    assert failing.run(*SCORE, "--as-of", "2020-01-01").exit_code == 0
    assert failing.run(*SCORE, "--as-of", "2999-02-01").exit_code == 1


@pytest.mark.slow
def test_standard_input_revives_no_waiver_either(failing: Folder) -> None:
    """It has no date of its own."""
    waived_until(failing, "2020-01-31")
    command = ["score", "gold.jsonl", "-", "--profile", "all", "--as-of", "2020-01-01"]
    with (failing.path / "trace.jsonl").open() as trace:
        done = subprocess.run(
            [sys.executable, "-m", "ragauge", *command],
            stdin=trace, cwd=failing.path, capture_output=True, encoding="utf-8", timeout=60,
            check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert "expired on 2020-01-31" in done.stderr


@pytest.mark.parametrize(("made", "code"), [("2020-01-15", 0), ("2020-03-01", 2)])
def test_a_run_file_says_its_own_day(
    failing: Folder, monkeypatch: pytest.MonkeyPatch, made: str, code: int
) -> None:
    """Of January it may be judged as of then, though it was written today; of March it may not."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(int(datetime.fromisoformat(made).timestamp())))
    assert failing.run(*SCORE, "--save-run", "run.jsonl.gz").exit_code == 0
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    waived_until(failing, "2020-01-31")
    assert failing.run("gate", "run.jsonl.gz", "--as-of", "2020-01-20").exit_code == code
    waived_until(failing, "2020-01-31", f'[gates]\n"{HIT}" = {{ max_drop = 0.1 }}\n')
    both = ("compare", "run.jsonl.gz", "run.jsonl.gz", "--as-of", "2020-01-20")
    assert failing.run(*both).exit_code == code
