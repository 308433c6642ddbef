"""What counts as a fault of a command: one planted fault of each kind is found."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from ragauge.cli import main
from ragauge.codes import CODES, ExitCode
from tests.fuzz.case import Case
from tests.fuzz.examine import examine
from tests.support.command import GOLD, TRACES, lines_of

FILES = {"gold.jsonl": lines_of(GOLD), "trace.jsonl": lines_of(TRACES)}
SCORE = ("score", "gold.jsonl", "trace.jsonl")


@pytest.fixture(autouse=True)
def _unchanged_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`examine` is for a process of its own: it changes folder and environment."""
    folder, environment, temporary = os.getcwd(), dict(os.environ), tempfile.tempdir
    yield
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = temporary
    monkeypatch.undo()


def kinds(case: Case, folder: Path) -> set[str]:
    return {finding.kind for finding in examine(case, folder / "case")}


def test_a_good_run_is_no_finding(tmp_path: Path) -> None:
    assert kinds(Case("x", FILES, (*SCORE, "-o", "out.html")), tmp_path) == set()


def test_bad_input_that_is_refused_well_is_no_finding(tmp_path: Path) -> None:
    case = Case("x", {**FILES, "trace.jsonl": b'{"qid": \n'}, SCORE)
    assert kinds(case, tmp_path) == set()


def _say(text: str, code: int) -> int:
    print(text, file=sys.stderr)
    return code


def _print(text: str, code: int = 0) -> int:
    print(text)
    return code


def _write(path: str, code: int = 0) -> int:
    Path(path).write_text("x", "utf-8")
    return code


def _leave_temporary_file() -> int:
    handle, _ = tempfile.mkstemp()
    os.close(handle)
    return 0


def _connect() -> int:
    with socket.socket() as connection:
        try:
            connection.connect(("192.0.2.1", 80))
        except OSError:
            return 0
    return 1


def _warn() -> int:
    warnings.warn("an overflow", RuntimeWarning, stacklevel=1)
    return 0


_BAD_INPUT = next(name for name, code in CODES.items() if code.exit == ExitCode.BAD_INPUT)
_NUMBERS = count()


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("bug", lambda: _say("error[bug]: KeyError: 'x' (join.py:5)\n  hint: x", 70)),
        ("exit-code", lambda: 9),
        ("exception", lambda: 1 // 0),
        ("exception", _warn),
        ("traceback", lambda: _say("Traceback (most recent call last)\nValueError: x", 0)),
        ("no-error", lambda: 3),
        ("no-hint", lambda: _say("error[usage]: what?", 2)),
        ("no-place", lambda: _say(f"error[{_BAD_INPUT}]: it is bad\n  hint: fix it", 3)),
        ("unknown-code", lambda: _say("error[nosuch-code]: it is bad\n  hint: fix it", 3)),
        ("left-behind", _leave_temporary_file),
        ("left-behind", lambda: _write("surprise.txt")),
        ("left-behind", lambda: _write("out.json.tmp")),
        ("left-behind", lambda: _write("out.json", 70)),  # the first half of an output
        ("input-changed", lambda: _write("gold.jsonl")),
        ("input-changed", lambda: os.unlink("gold.jsonl")),
        ("differs", lambda: _print(f"run {next(_NUMBERS)}")),
        ("differs", lambda: _say(f"run {next(_NUMBERS)}", 0)),
        ("differs", lambda: next(_NUMBERS) % 2),
        ("network", _connect),
    ],
)
def test_a_fault_is_found(
    kind: str, command: Callable[[], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "run", lambda _: command() or 0)
    assert kind in kinds(Case("x", FILES, SCORE), tmp_path)


def test_lines_that_a_score_skips_without_a_word_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case("x", {**FILES, "trace.jsonl": FILES["trace.jsonl"] + b"{\n"}, SCORE)
    monkeypatch.setattr(main, "run", lambda _: _print("PASS"))
    assert kinds(case, tmp_path) == {"not-counted"}
    monkeypatch.setattr(main, "run", lambda _: _print("PASS, 1 line skipped"))
    assert kinds(case, tmp_path) == set()
