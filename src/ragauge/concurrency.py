"""Own processes and threads: messages over pipes, one background thread, the paused collector."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar


def started(*arguments: str) -> subprocess.Popen[bytes]:
    """Start a Python process that imports this very package and is spoken to over its pipes."""
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # An interrupt from the keyboard is for the parent, which then closes the pipes.
        start_new_session=os.name == "posix",
        env={**os.environ, "PYTHONPATH": path},
    )


def write_message(stream: IO[bytes], payload: bytes) -> None:
    """Write one message: its length in 8 bytes, then its bytes."""
    stream.write(len(payload).to_bytes(8, "big"))
    stream.write(payload)
    stream.flush()


def read_message(stream: IO[bytes]) -> bytes | None:
    """Read one message; None at the end of the stream."""
    head = stream.read(8)
    if len(head) < 8:
        return None
    size = int.from_bytes(head, "big")
    payload = stream.read(size)
    return payload if len(payload) == size else None


@contextmanager
def uncollected() -> Iterator[None]:
    """Work without the garbage collector: rows and items are trees, and are freed by count."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


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
