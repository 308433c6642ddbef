"""A parser that fails takes down neither `corpus build` nor the files beside the bad one.

The parser is that of a plugin, so that worker processes find it too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ragauge.corpus.manifest import read_corpus
from tests.e2e.process import run, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="ends by signal are told otherwise"),
]

PLUGIN = """
import ctypes, os, signal, sys
from ragauge.model.corpus import Parsed, Parser

def recurse(): recurse()

FAULTS = {
    "raise": lambda: {}["key"],
    "recurse": recurse,
    "memory": lambda: bytearray(1 << 60),
    "segfault": lambda: ctypes.string_at(0),
    "abort": os.abort,
    "exit": lambda: os._exit(7),
    "print": lambda: print("in the way of the answers"),
}

def parse(data):
    FAULTS[data.decode()]()
    return Parsed(text=data, headings=(), pieces=())

NATIVE = Parser(
    name="native", title="native files", suffixes=(".native",), parse=parse, native=True
)
PLAIN = Parser(name="plain", title="plain files", suffixes=(".plain",), parse=parse)
"""
POINTS = "[ragauge.parsers]\nnative = faulty_parsers:NATIVE\nplain = faulty_parsers:PLAIN\n"
METADATA = "Metadata-Version: 2.1\nName: faulty-parsers\nVersion: 1\n"


@pytest.fixture
def plugin(tmp_path: Path) -> dict[str, str]:
    """The environment in which the plugin is installed."""
    place = tmp_path / "plugin"
    write(place / "faulty_parsers.py", PLUGIN)
    write(place / "faulty_parsers-1.dist-info" / "METADATA", METADATA)
    write(place / "faulty_parsers-1.dist-info" / "entry_points.txt", POINTS)
    path = os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path}


ENDS = {
    "segfault": "its process ended with signal SIGSEGV",
    "abort": "its process ended with signal SIGABRT",
    "exit": "its process ended with status 7",
}
RAISES = {
    "raise": "KeyError: 'key'",
    "recurse": "it is nested too deeply",
    "memory": "there is not enough memory for it",
}


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("fault", [*RAISES, *ENDS])
def test_a_fault_names_its_file_and_spares_the_others(
    tmp_path: Path, plugin: dict[str, str], fault: str, workers: str
) -> None:
    for number in range(4):
        write(tmp_path / f"docs/{number}.md", "# A\n")
    write(tmp_path / "docs/2-bad.native", fault)
    write(tmp_path / "docs/3-good.native", "print")
    build = ["corpus", "build", "docs", "-o", "out", "--workers", workers]
    done = run(tmp_path, *build, env=plugin)
    assert done.returncode == 3, done.stderr
    reason = RAISES.get(fault) or ENDS[fault]
    assert f"error[parser-failed]: the parser for native files failed: {reason}" in done.stderr
    assert "--> docs/2-bad.native\n" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    done = run(tmp_path, *build, "--on-bad-file", "skip", env={**plugin, "RAGAUGE_DEBUG": "1"})
    assert done.returncode == 0, done.stderr
    assert "skipped    1" in done.stdout
    assert "skipped: docs/2-bad.native: the parser for native files failed: " in done.stderr
    names = [document.doc for document in read_corpus(tmp_path / "out").documents]
    assert names == ["0.md", "1.md", "2.md", "3-good.native", "3.md"]
    if fault in RAISES:
        assert "Traceback (most recent call last)" in done.stderr
        assert 'faulty_parsers.py", line ' in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_every_file_may_end_its_process(
    tmp_path: Path, plugin: dict[str, str], workers: str
) -> None:
    for number in range(5):
        write(tmp_path / f"docs/{number}.native", "segfault")
    build = ["corpus", "build", "docs", "-o", "out", "--on-bad-file", "skip", "--workers", workers]
    done = run(tmp_path, *build, env=plugin)
    assert done.returncode == 5, done.stderr
    assert "none of the 5 files could be read" in done.stderr
    assert done.stderr.count("error[parser-failed]") == 5


def test_a_plain_parser_is_told_with_its_traceback(tmp_path: Path, plugin: dict[str, str]) -> None:
    """In this process, without any worker."""
    write(tmp_path / "bad.plain", "raise")
    done = run(
        tmp_path, "corpus", "build", "bad.plain", "-o", "out", env={**plugin, "RAGAUGE_DEBUG": "1"}
    )
    assert done.returncode == 3
    assert "KeyError: 'key'" in done.stderr
    assert 'faulty_parsers.py", line ' in done.stderr
    assert "error[parser-failed]" in done.stderr
