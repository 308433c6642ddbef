"""Choosing an engine: in this process, or so many worker processes for so many bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Protocol, TypeVar

from ragauge.concurrency import cores
from ragauge.files.ranges import RANGE_BYTES, Range, Source
from ragauge.scoring.engines.local import InProcess, Subprocesses
from ragauge.scoring.tasks.task import RangeTask

Result = TypeVar("Result")

WORKERS_FROM_BYTES = 16 * 1024 * 1024
"""Below this size one process is as fast: workers take some 70 ms to start (decision 0003)."""

MOST_WORKERS = 8
_STORED_BYTES = 1024  # of a stored trace, roughly: most have ten hits


class Engine(Protocol):
    """Does tasks on ranges, in this process or elsewhere."""

    def map(self, task: RangeTask[Result], ranges: Sequence[Range]) -> Iterator[Result]:
        """The result of each range, in the order of the ranges.

        The results of one task are taken before the next one is given.
        """
        ...


def stored_engine(stack: ExitStack, results: int, workers: int | None) -> Engine:
    """The engine for stored runs of so many results, whose traces are not unpacked yet."""
    return _engine(stack, results * _STORED_BYTES, workers)


def file_engine(stack: ExitStack, source: Source, workers: int | None) -> Engine:
    """The engine for a file of rows."""
    return _engine(stack, source.size, workers)


def side_engines(stack: ExitStack, results: Sequence[int], workers: int | None) -> list[Engine]:
    """An engine for each of some stored runs, which share the workers that one would have."""
    count = _worker_count(workers, max(results) * _STORED_BYTES)
    if count < len(results):
        return [InProcess() for _ in results]
    return [stack.enter_context(Subprocesses(count // len(results))) for _ in results]


def _engine(stack: ExitStack, size: int, workers: int | None) -> Engine:
    count = _worker_count(workers, size)
    return InProcess() if count <= 1 else stack.enter_context(Subprocesses(count))


def _worker_count(workers: int | None, size: int) -> int:
    if workers is None:
        if size < WORKERS_FROM_BYTES:
            return 1
        workers = min(cores(), MOST_WORKERS)
    # A worker without a range would be started for nothing.
    return max(1, min(workers, -(-size // RANGE_BYTES)))
