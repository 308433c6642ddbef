"""A lock file: one process at a time holds it, and none once that process has ended, however."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


class HeldError(Exception):
    """Somebody else holds it."""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a lock file that is made here and gone at the end; `HeldError` if another holds it.

    Where the file cannot be made or the file system knows no locks, nothing is held.
    """
    stream = _taken(path)
    try:
        yield
    finally:
        if stream is not None:
            with suppress(OSError):
                path.unlink()  # before it is let go: what comes next makes one of its own
            stream.close()


def _taken(path: Path) -> IO[bytes] | None:
    while True:
        try:
            stream = path.open("ab")
        except OSError:
            return None
        # A child that was forked would hold it on when this process is gone.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=stream.close)
        try:
            hold(stream)
            if os.path.samestat(os.fstat(stream.fileno()), path.stat()):
                return stream
        except BlockingIOError as error:
            stream.close()
            raise HeldError from error
        except FileNotFoundError:
            pass  # who held it before has removed it meanwhile: this one holds nothing
        except OSError:
            stream.close()
            return None
        stream.close()


def hold(stream: IO[bytes]) -> None:
    """Hold a file until it is closed or its process ends; an error if another one holds it."""
    try:
        import fcntl
    except ImportError:  # Windows, where an open file cannot be removed anyway
        return
    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
