"""The engines of this machine: one works in this process, one in worker processes.

Workers are plain subprocesses that import no numpy: they get a task and then ranges, over a pipe,
and share no more than files that they read. So the calling script needs no `__main__` guard and
nothing is forked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TypeVar

import msgspec

from ragauge.concurrency import WorkerProcesses, paused_collector
from ragauge.files.ranges import Range
from ragauge.scoring.engines.worker_process import JOB, RANGE, WORK
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.task import RangeTask, Worker

Result = TypeVar("Result")

_SERVE = "from ragauge.scoring.engines.worker_process import serve; serve()"
_AHEAD = 3
"""Results of a worker that may wait for their turn: enough to keep it busy while others lag."""


class InProcess:
    """Does tasks in this process, one range after another, when their results are taken."""

    def __init__(self) -> None:
        self._worker = Worker()

    def map(self, task: RangeTask[Result], ranges: Sequence[Range]) -> Iterator[Result]:
        """The result of each range, in the order of the ranges."""
        if task.job is not None:
            self._worker.take(task.job)
        do = task.work.begin(self._worker)
        for part in ranges:
            with paused_collector():
                result = do(part)
            yield result


class Subprocesses:
    """Does tasks in worker processes; they are started at once and import while others prepare."""

    def __init__(self, workers: int) -> None:
        self._processes = WorkerProcesses(workers, "-c", _SERVE)
        self._stack = ExitStack()
        self._job: Job | None = None
        self._setup: tuple[bytes, ...] = ()

    def __enter__(self) -> Subprocesses:
        return self

    def __exit__(self, *failure: object) -> None:
        with self._stack:
            self._processes.close()

    def map(self, task: RangeTask[Result], ranges: Sequence[Range]) -> Iterator[Result]:
        """The result of each range, in the order of the ranges; work begins at once.

        Every worker takes ranges in that order too: those of `Reduce` descend for each of them.
        """
        if task.job is not None and task.job is not self._job:
            task.job.keys.block.share(self._stack)
            self._job, self._setup = task.job, (JOB + msgspec.msgpack.encode(task.job),)
        job = self._setup if task.job is not None else ()
        setup = (*job, WORK + msgspec.msgpack.encode(task.work))
        messages = (RANGE + msgspec.msgpack.encode(part) for part in ranges)
        replies = self._processes.map(messages, setup=setup, ahead=_AHEAD)
        decode = msgspec.msgpack.Decoder(task.work.result).decode
        return map(decode, replies)
