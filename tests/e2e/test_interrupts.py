"""What is left behind when a run is stopped: no file, no process, and an honest exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.process import COMMAND, GOLD, TRACES, environment, lines_of, write

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc"),
    pytest.mark.xdist_group("large trace file"),
]
SIZE = 320_000_000  # about two seconds of work: on a busy machine an interrupt comes late


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trace file that takes a while to read."""
    folder = tmp_path_factory.mktemp("large")
    write(folder / "gold.jsonl", GOLD)
    block = lines_of([{**row, "note": "x" * 300, "seed": i} for i in range(700) for row in TRACES])
    with (folder / "trace.jsonl").open("wb") as file:
        for _ in range(SIZE // len(block) + 1):
            file.write(block)
    return folder


def children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []


def runs(pid: int) -> bool:
    """Whether a process is there and not merely waiting to be buried."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def has_copy(pid: int, folder: Path) -> bool:
    """Whether a process has a file open that is in a folder and has no name there."""
    try:
        links = [os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return False
    return any(link.startswith(f"{folder}/") and link.endswith(" (deleted)") for link in links)


def wait_for(holds: Callable[[], bool], *, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.005)
    return False


@contextmanager
def started(large: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """A run on the large file with two workers, and the workers' process ids."""
    with subprocess.Popen(
        [*COMMAND, "score", str(large / "gold.jsonl"), str(large / "trace.jsonl"),
         "--profile", "all", "--workers", "2", *arguments],
        env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            assert wait_for(lambda: len(children(process.pid)) == 2), "no workers were started"
            yield process, children(process.pid)
        finally:
            process.kill()


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("to_all", [True, False], ids=["Ctrl-C", "the command alone"])
def test_an_interrupt_leaves_no_file_and_no_process(
    large: Path, tmp_path: Path, delay: float, to_all: bool
) -> None:
    """Exit code 130, one line of talk, no half of a report."""
    target = write(tmp_path / "old.md", b"old\n")
    outputs = ("-o", str(tmp_path / "scores.json"), "-o", str(target))
    with started(large, *outputs) as (process, workers):
        time.sleep(delay)
        if to_all:
            os.killpg(process.pid, signal.SIGINT)
        else:
            os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
    assert "interrupted" in err
    assert [path.name for path in tmp_path.iterdir()] == ["old.md"]
    assert target.read_bytes() == b"old\n"
    assert wait_for(lambda: not any(map(runs, workers)))


def test_workers_end_when_the_command_is_killed(large: Path) -> None:
    """Nobody else would stop them."""
    with started(large) as (process, workers):
        process.kill()
        process.communicate(timeout=20)
        assert wait_for(lambda: not any(map(runs, workers)))


def test_a_killed_worker_fails_the_run(large: Path, tmp_path: Path) -> None:
    """Exit code 70 instead of a wait for ever, or of numbers from a part of the file."""
    with started(large, "-o", str(tmp_path / "scores.json")) as (process, workers):
        os.kill(workers[0], signal.SIGKILL)
        out, err = process.communicate(timeout=20)
        assert process.returncode == 70
        assert out == ""
        assert err.startswith("error[bug]: ")
        assert "Traceback" not in err
        assert list(tmp_path.iterdir()) == []
        assert wait_for(lambda: not any(map(runs, workers)))


def test_an_interrupt_removes_the_copy_of_standard_input(large: Path, tmp_path: Path) -> None:
    """What was spooled is gone, also when the input has not ended."""
    with subprocess.Popen(
        [*COMMAND, "score", str(large / "gold.jsonl"), "-", "--profile", "all"],
        env=environment(TMPDIR=str(tmp_path)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdin is not None
            process.stdin.write(lines_of(TRACES))
            process.stdin.flush()
            assert wait_for(lambda: has_copy(process.pid, tmp_path)), "nothing was spooled"
            time.sleep(0.05)  # it waits for more input now
            os.kill(process.pid, signal.SIGINT)
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()
    assert list(tmp_path.glob("ragauge-*")) == []


def test_an_interrupt_has_its_exit_code_where_nobody_listens(large: Path) -> None:
    """With standard error closed there is nothing to flush, and 1 would mean that a gate failed."""
    script = "import os, sys; os.close(2); os.execv(sys.argv[1], sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", script, *COMMAND, "score", str(large / "gold.jsonl"), "-"],
        env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            time.sleep(1)  # it waits for its input by now
            os.kill(process.pid, signal.SIGINT)
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()


def test_a_killed_command_leaves_no_copy(large: Path, tmp_path: Path) -> None:
    """Nobody could remove it, so it never has a name; workers that read it end too."""
    traces = [*COMMAND, "score", str(large / "gold.jsonl"), "-", "--profile", "all"]
    with (large / "trace.jsonl").open("rb") as stdin, subprocess.Popen(
        [*traces, "--workers", "2"], env=environment(TMPDIR=str(tmp_path)), stdin=stdin,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            assert wait_for(lambda: has_copy(process.pid, tmp_path)), "nothing was spooled"
            assert list(tmp_path.iterdir()) == []
            assert wait_for(lambda: len(children(process.pid)) == 2), "no workers were started"
            workers = children(process.pid)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    assert wait_for(lambda: not any(map(runs, workers)))
    assert list(tmp_path.iterdir()) == []


def test_an_order_to_end_leaves_nothing_of_a_page(large: Path, tmp_path: Path) -> None:
    """Traces in standard input are copied to a temporary file, which the page reads again."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    page = tmp_path / "page.html"
    with (large / "trace.jsonl").open("rb") as traces, subprocess.Popen(
        [*COMMAND, "score", str(large / "gold.jsonl"), "-", "--profile", "all", "--no-intervals",
         "-o", str(page)],
        env=environment(TMPDIR=str(folder)), stdin=traces, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert wait_for(lambda: has_copy(process.pid, folder))
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 143
    assert not page.exists()
    assert list(folder.iterdir()) == []
