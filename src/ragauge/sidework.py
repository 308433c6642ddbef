"""Work beside the main thread that lets others go on meanwhile, in the order it was given."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")
_AHEAD = 8
"""Pieces of work that a thread may be ahead of who takes the results: memory stays small."""
_MOST_THREADS = 4


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def beside(work: Callable[[Given], Made], given: Iterable[Given]) -> Iterator[Made]:
    """What `work` makes of each, in order; it runs in threads while the next ones are prepared.

    That gains time only where `work` is done outside of Python, as packing is.
    """
    threads = min(_cores(), _MOST_THREADS)
    if threads == 1:
        yield from map(work, given)
        return
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for each in given:
                waiting.append(pool.submit(work, each))
                if len(waiting) > threads * _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:  # whoever stopped listening waits for nobody
                future.cancel()
