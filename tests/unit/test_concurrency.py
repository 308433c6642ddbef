"""Threads and worker processes give their results in order, and what goes wrong is raised."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import pytest

from ragauge.concurrency import WorkerEndedError, WorkerProcesses, map_in_threads

ECHO = """
import sys
from ragauge.concurrency import read_message, write_message
heard = b""
while (message := read_message(sys.stdin.buffer)) is not None:
    if message.startswith(b"set"):
        heard += message + b" "
    elif message == b"end":
        raise SystemExit(3)
    else:
        write_message(sys.stdout.buffer, heard + message)
"""


def test_messages_are_answered_in_order() -> None:
    with WorkerProcesses(2, "-c", ECHO) as workers:
        numbers = [str(number).encode() for number in range(50)]
        assert list(workers.map(numbers, ahead=3)) == numbers


def test_a_process_is_sent_the_part_of_a_setup_that_it_has_not_seen() -> None:
    """The job is sent once; each kind of work is sent once behind it."""
    job, first, second = b"set job", b"set first", b"set second"
    with WorkerProcesses(1, "-c", ECHO) as workers:
        replies = [
            workers.submit(b"a", setup=(job, first)),
            workers.submit(b"b", setup=(job, first)),
            workers.submit(b"c", setup=(job, second)),
        ]
        assert [reply.result() for reply in replies] == [
            b"set job set first a",
            b"set job set first b",
            b"set job set first set second c",
        ]


def test_messages_are_not_far_ahead_of_who_takes_the_answers() -> None:
    """Two processes with three each; every answer that is taken makes room for one more."""
    asked: list[int] = []

    def messages() -> Iterator[bytes]:
        for number in range(1000):
            asked.append(number)
            yield str(number).encode()

    with WorkerProcesses(2, "-c", ECHO) as workers:
        answers = workers.map(messages(), ahead=3)
        assert len(asked) == 2 * 3  # work begins before anything is taken
        assert next(answers) == b"0"
        assert len(asked) == 2 * 3 + 1


def test_a_process_that_ends_is_an_error_for_who_waits_and_is_replaced() -> None:
    """The new process has seen nothing yet, so it is sent the setup again."""
    setup = (b"set job",)
    with WorkerProcesses(1, "-c", ECHO) as workers:
        assert workers.submit(b"a", setup=setup).result() == b"set job a"
        with pytest.raises(WorkerEndedError, match=r"a worker ended early \(status 3\)") as ended:
            workers.submit(b"end", setup=setup).result()
        assert (ended.value.status, ended.value.reason) == (3, "status 3")
        assert workers.submit(b"b", setup=setup).result() == b"set job b"


def test_a_process_that_cannot_be_replaced_fails_the_messages_behind_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with WorkerProcesses(1, "-c", ECHO) as workers:
        assert workers.submit(b"a").result() == b"a"
        monkeypatch.setattr(sys, "executable", "/nowhere/python")
        replies = [workers.submit(b"end"), workers.submit(b"b"), workers.submit(b"c")]
        for reply in replies:
            assert isinstance(reply.exception(timeout=30), WorkerEndedError)


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_the_signal_that_ended_a_process_is_named() -> None:
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"
    with WorkerProcesses(1, "-c", kill) as workers:
        ended = workers.submit(b"a").exception(timeout=30)
    assert isinstance(ended, WorkerEndedError)
    assert ended.reason == "signal SIGSEGV"


def test_nobody_waits_for_processes_that_were_closed() -> None:
    workers = WorkerProcesses(1, "-c", "import time; time.sleep(600)")
    replies = [workers.submit(b"a"), workers.submit(b"b")]
    workers.close()
    for reply in replies:
        assert reply.exception(timeout=10) is not None
    with pytest.raises(RuntimeError, match="have ended"):
        workers.submit(b"c")


@pytest.mark.parametrize("cores", [1, 3])
def test_work_beside_comes_back_in_order(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr("ragauge.concurrency.cores", lambda: cores)
    assert list(map_in_threads(str, range(100))) == [str(each) for each in range(100)]


@pytest.mark.parametrize("cores", [1, 3])
def test_work_beside_is_not_far_ahead_and_may_be_left(
    monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    """Three threads and eight pieces each, and the next that is asked for."""
    monkeypatch.setattr("ragauge.concurrency.cores", lambda: cores)
    asked: list[int] = []

    def given() -> Iterator[int]:
        for each in range(1000):
            asked.append(each)
            yield each

    made = map_in_threads(str, given())
    assert next(made) == "0"
    assert len(asked) <= 3 * 8 + 1
    made.close()  # type: ignore[attr-defined]


def test_what_goes_wrong_beside_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragauge.concurrency.cores", lambda: 2)
    words: Sequence[str] = ["1", "2", "x", "4"]
    with pytest.raises(ValueError, match="x"):
        list(map_in_threads(int, words))
