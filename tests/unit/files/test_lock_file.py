"""A lock file is held by one at a time, and by nobody once its process has ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ragauge.files.lock_file import HeldError, held

pytest.importorskip("fcntl")

# Holds a file and forks a child that waits for the end of standard input; both say so.
FORKS = """
import os, sys
from pathlib import Path
from ragauge.files.lock_file import held

with held(Path(sys.argv[1])):
    if os.fork() == 0:
        os.write(1, b"forked\\n")
        sys.stdin.buffer.read()
        os._exit(0)
    os.write(1, b"held\\n")
    os.waitpid(-1, 0)
"""


def test_a_file_is_held_once_and_then_again(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with held(path), pytest.raises(HeldError), held(path):
        pass
    with held(path), held(tmp_path / "b.lock"):
        assert path.exists()
    assert list(tmp_path.iterdir()) == []


def test_it_is_let_go_when_something_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), held(tmp_path / "a.lock"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_left_behind_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    path.touch()
    with held(path):
        pass
    assert not path.exists()


def test_where_no_file_can_be_made_nothing_is_held(tmp_path: Path) -> None:
    with held(tmp_path / "gone" / "a.lock"), held(tmp_path / "gone" / "a.lock"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_child_of_a_process_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with subprocess.Popen(
        [sys.executable, "-c", FORKS, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said = {process.stdout.readline(), process.stdout.readline()}
        assert said == {b"held\n", b"forked\n"}
        with pytest.raises(HeldError), held(path):
            pass
        process.kill()
        process.wait()
        with held(path):  # its child still waits
            pass
        process.stdin.close()
        assert process.stdout.read() == b""
