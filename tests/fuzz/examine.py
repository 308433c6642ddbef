"""Runs a case twice in a folder of its own, and says what is wrong with what it did."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import socket
import sys
import tempfile
import traceback
import warnings
import webbrowser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragauge.cli import main
from ragauge.codes import CODES, ExitCode
from tests.fuzz.case import Case, Finding
from tests.fuzz.collect import COMMAND as COLLECT
from tests.fuzz.collect import collect

_EXITS = {int(code) for code in ExitCode} - {int(ExitCode.BUG)}
_PROBLEM = re.compile(r"^error\[(?P<code>[^\]]*)\]: .*(?:\n(?!error\[).*)*", re.MULTILINE)
# What is wrong inside a store has the name of a run and no line.
_PLACED = {name for name, code in CODES.items() if code.exit == ExitCode.BAD_INPUT} - {"bad-store"}
_BUG_PLACE = re.compile(r"\(([\w.]+\.py:\d+)\)$", re.MULTILINE)
# Made of the time where none is given; tokens of a live monitor are random.
_MADE_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]+|rgk_[0-9a-f]+_[0-9a-f]+|revoke [0-9a-f]{12}")
_MADE_TOKEN = re.compile(rb"rgk_[0-9a-f]+_[0-9a-f]+")
_SIDE_FILES = ("-journal", "-wal", "-shm", ".tmp")


@dataclass(frozen=True)
class Outcome:
    """What one run of a command did."""

    exit_code: int | None  # None: an exception came out of it
    out: bytes
    err: str
    files: dict[str, bytes]  # all that is in its folder afterwards
    left: tuple[str, ...]  # in the folder for temporary files
    connected: tuple[str, ...]
    place: str = ""  # of the exception


def isolate() -> None:
    """Make this process fit for any input: no browser, no width or colour of a terminal."""
    for name in [name for name in os.environ if name.startswith(("RAGAUGE", "GITHUB", "CI_"))]:
        del os.environ[name]
    os.environ.update(COLUMNS="80", NO_COLOR="1", OPENBLAS_NUM_THREADS="1", TZ="UTC")
    webbrowser.open = lambda *_, **__: True


def run_case(case: Case, folder: Path) -> Outcome:
    """Write the files of a case, and run its command inside this process."""
    shutil.rmtree(folder, ignore_errors=True)
    work, temporary, home = (folder / name for name in ("work", "tmp", "home"))
    for path in (work, temporary, home):
        path.mkdir(parents=True)
    for name, content in case.files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_bytes(content)
    os.environ.update(HOME=str(home), XDG_CACHE_HOME=str(home), XDG_CONFIG_HOME=str(home),
                      TMPDIR=str(temporary))  # fmt: skip
    tempfile.tempdir = str(temporary)
    os.chdir(work)
    out, err = io.BytesIO(), io.BytesIO()
    streams = [
        io.TextIOWrapper(stream, "utf-8", errors="backslashreplace", write_through=True)
        for stream in (out, err)
    ]
    place = ""
    exit_code: int | None = None
    before = sys.stdin, sys.stdout, sys.stderr
    with _no_network() as connected, warnings.catch_warnings():
        # Python would print them among our own words.
        for category in (RuntimeWarning, SyntaxWarning, FutureWarning):
            warnings.simplefilter("error", category)
        sys.stdin = io.TextIOWrapper(io.BytesIO(), "utf-8")
        sys.stdout, sys.stderr = streams
        try:
            first, *rest = case.arguments or ("",)
            exit_code = collect(rest) if first == COLLECT else main.run(list(case.arguments))
        except BaseException as error:  # anything that is not an exit code is a finding
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{type(error).__name__} {Path(frame.filename).name}:{frame.lineno}"
        finally:
            sys.stdin, sys.stdout, sys.stderr = before
    return Outcome(
        exit_code=exit_code,
        out=out.getvalue(),
        err=err.getvalue().decode("utf-8", "replace"),
        files=dict(_contents(work)),
        left=tuple(sorted(path.name for path in temporary.iterdir())),
        connected=tuple(connected),
        place=place,
    )


@contextlib.contextmanager
def _no_network() -> Iterator[list[str]]:
    connected: list[str] = []

    def refuse(_: object, address: object) -> None:
        connected.append(str(address))
        raise ConnectionRefusedError("no network in a campaign")

    before = socket.socket.connect
    socket.socket.connect = refuse  # type: ignore[method-assign]
    try:
        yield connected
    finally:
        socket.socket.connect = before  # type: ignore[method-assign]


def _contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield path.relative_to(folder).as_posix(), path.read_bytes()


def examine(case: Case, folder: Path) -> list[Finding]:
    """Run a case twice, and collect everything that must not be."""
    first = run_case(case, folder)
    findings = list(_wrong(case, first))
    if not findings:
        findings = list(_different(first, run_case(case, folder)))
    return findings


def _wrong(case: Case, outcome: Outcome) -> Iterator[Finding]:
    code = outcome.exit_code
    if code is None:
        yield Finding("exception", outcome.place, f"{outcome.place} came out of the command")
    elif code == ExitCode.BUG:
        place = _BUG_PLACE.search(outcome.err)
        yield Finding("bug", place[1] if place else "", _line(outcome.err, "error[bug]"))
    elif code not in _EXITS:
        yield Finding("exit-code", str(code), f"exit code {code}")
    if "Traceback (most recent call last)" in outcome.err:
        last = outcome.err.rstrip().splitlines()[-1]
        yield Finding("traceback", last.partition(":")[0], last)
    if code in (ExitCode.USAGE, ExitCode.BAD_INPUT):
        yield from _bad_errors(code, outcome, list(case.files))
    yield from _bad_files(case, outcome)
    if outcome.connected:
        yield Finding("network", "", f"connected to {outcome.connected[0]}")
    if code in _EXITS - {2, 3} and _silently_skipped(case, outcome):
        yield Finding("not-counted", case.arguments[0], "bad lines were skipped without a count")


def _bad_errors(code: int, outcome: Outcome, names: Sequence[str]) -> Iterator[Finding]:
    """An error has a known code, how to fix it and, of a file, its place or at least its name."""
    problems = list(_PROBLEM.finditer(outcome.err))
    # `validate`, `gold lint` and others print what is wrong as their result.
    if not problems and not outcome.out:
        yield Finding("no-error", str(code), f"exit code {code} and not a word why")
    for problem in problems:
        name, first = problem["code"], problem[0].partition("\n")[0]
        if name not in CODES:
            yield Finding("unknown-code", name, first)
        if "\n  hint: " not in problem[0]:
            yield Finding("no-hint", name, first)
        bad_input = name in _PLACED
        if bad_input and "\n  --> " not in problem[0] and not any(map(first.__contains__, names)):
            yield Finding("no-place", name, first)


def _bad_files(case: Case, outcome: Outcome) -> Iterator[Finding]:
    command = " ".join(case.arguments[:2])
    if outcome.left:
        yield Finding("left-behind", case.arguments[0], f"a temporary file {outcome.left[0]}")
    if case.arguments[0] in ("demo", "init"):
        return  # they write into a folder that is named, and over files if they are told to
    for name, content in case.files.items():
        spared = name not in case.changes and not _is_output_only(name, case.arguments)
        if spared and outcome.files.get(name) != content:
            yield Finding("input-changed", case.arguments[0], f"`{command}` changed {name}")
    failed = outcome.exit_code in (None, ExitCode.USAGE, ExitCode.BAD_INPUT, ExitCode.BUG)
    asked_for = tuple(_asked_for(case.arguments))
    for name in sorted(outcome.files.keys() - case.files.keys()):
        # A store or a cache that was begun is whole after every step, and no half of anything.
        unfinished = failed and not outcome.files[name].startswith(b"SQLite format 3")
        if name.endswith(_SIDE_FILES) or not name.startswith(asked_for) or unfinished:
            yield Finding("left-behind", case.arguments[0], f"`{command}` left {name}")
            break


def _asked_for(arguments: Sequence[str]) -> Iterator[str]:
    """With what the names of files may begin that a command line asks for."""
    yield from ("out", "ragauge.db", "ragauge-live.db")  # the stores where none is named
    if "--write-report" in arguments:
        yield "runs/"
    yield from (path for word in arguments for path in _paths(word) if path not in (".", ".."))


def _paths(word: str) -> tuple[str, ...]:
    """The file that a word of the command line may name, as in FILE, `json:FILE`, `x:///FILE`."""
    texts = (word, word.partition(":")[2])
    return tuple(os.path.normpath(text).lstrip("/") for text in texts if text)


def _is_output_only(name: str, arguments: Sequence[str]) -> bool:
    """Whether somebody asked to write over a file that the command has no other reason to touch."""
    named = [place for place, word in enumerate(arguments) if name in _paths(word)]
    return bool(named) and all(arguments[place - 1] in ("-o", "--embed-cache") for place in named)


def _silently_skipped(case: Case, outcome: Outcome) -> bool:
    """Whether traces of broken JSON were left out of a score, and nothing says so."""
    if case.arguments[0] != "score" or "trace.jsonl" not in case.arguments:
        return False
    bad = 0
    for line in case.files["trace.jsonl"].split(b"\n"):
        if line.strip():
            try:
                bad += not isinstance(json.loads(line), dict)
            except (ValueError, RecursionError):
                bad += 1
    return bad > 0 and "skipped" not in outcome.err and b"skipped" not in outcome.out


def _different(first: Outcome, second: Outcome) -> Iterator[Finding]:
    if first.exit_code != second.exit_code:
        codes = f"{first.exit_code} and {second.exit_code}"
        yield Finding("differs", "exit code", f"two runs exit with {codes}")
    if _MADE_ID.sub("ID", first.err) != _MADE_ID.sub("ID", second.err):
        yield Finding("differs", "stderr", "two runs say different things")
    if _MADE_TOKEN.sub(b"ID", first.out) != _MADE_TOKEN.sub(b"ID", second.out):
        yield Finding("differs", "stdout", "two runs print different results")
    for name in sorted(first.files.keys() | second.files.keys()):
        contents = [outcome.files.get(name, b"") for outcome in (first, second)]
        # A store has the time of each run in it.
        if contents[0] != contents[1] and not contents[0].startswith(b"SQLite format 3"):
            yield Finding("differs", Path(name).suffix, f"two runs write different {name}")


def _line(text: str, beginning: str) -> str:
    return next((line for line in text.splitlines() if line.startswith(beginning)), "")
