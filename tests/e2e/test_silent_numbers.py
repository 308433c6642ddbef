"""Real processes: what is said before any number, and files that are cut among workers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.process import COMMAND, TIMEOUT, environment, run, write

pytestmark = pytest.mark.slow

COUNT = 200


def in_order(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit code, and both streams in the order in which they were written."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A gold set, and traces whose every name has a slip but that of the id."""
    gold = [
        {
            "qid": f"Q{n}",
            "question": f"How long may the warranty of model{n:03} last?",
            "answerable": True,
            "gold_citations": [f"p{n}#1"],
        }
        for n in range(COUNT)
    ]
    slips = [
        {
            "qid": f"Q{n}",
            "querry": "x",
            "retreived_ids": [f"p{n}#1"],
            "anwser_json": {"claim": "x", "citations": [f"p{n}#1"]},
        }
        for n in range(COUNT)
    ]
    write(tmp_path / "gold.jsonl", gold)
    write(tmp_path / "slips.jsonl", slips)
    return tmp_path


def test_slips_are_named_before_any_number(folder: Path) -> None:
    code, text = in_order(folder, "score", "gold.jsonl", "slips.jsonl")
    assert code == 5
    first = text.index("0.0000")
    for name in ("retrieved_ids", "answer_json", "query"):
        assert text.index(f"did you mean `{name}`?") < first
    assert text.index("warning: nothing-measured: ") < first
    assert "PASS" not in text


def test_validate_and_compare_are_not_ok_either(folder: Path) -> None:
    done = run(folder, "validate", "gold.jsonl", "slips.jsonl")
    assert (done.returncode, done.stdout.endswith("ok\n")) == (5, False)
    done = run(folder, "compare", "slips.jsonl", "slips.jsonl", "--gold", "gold.jsonl")
    assert (done.returncode, done.stdout) == (5, "")


def test_workers_say_what_one_process_says(folder: Path) -> None:
    """Some 4 MB, so that each of two workers has several ranges; ids of another index."""
    text = "word " * 3000
    rows = [
        {"qid": f"Q{n}", "q": "Reset my password", "hits": [{"id": f"c-{n}", "text": text}]}
        for n in range(COUNT)
    ]
    write(folder / "large.jsonl", [{**row, "host": "x"} for row in rows])
    arguments = ("score", "gold.jsonl", "large.jsonl", "--profile", "all", "--format", "json")
    one = run(folder, *arguments, "--workers", "1")
    two = run(folder, *arguments, "--workers", "2")
    assert (one.returncode, one.stdout, one.stderr) == (two.returncode, two.stdout, two.stderr)
    blocks = [block["code"] for block in json.loads(one.stdout)["blocks"]]
    assert (one.returncode, blocks) == (4, ["ids-never-match", "foreign-traces"])
    assert "1 other field is not read" in one.stderr
