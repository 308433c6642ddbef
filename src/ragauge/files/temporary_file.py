"""Temporary files that leave nothing behind, however a process ends."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple, cast


class TemporaryFile(NamedTuple):
    """An open file, and a path by which this process and its workers can open it again."""

    file: BinaryIO
    path: str


@contextmanager
def temporary_file() -> Iterator[TemporaryFile]:
    """Yield an empty file in the folder for temporary files; it is gone when this ends.

    Where the system has `/proc` the file has no name in the folder, so that even a killed process
    leaves nothing: the space is free as soon as nobody has the file open. Elsewhere it has a name,
    which is removed at the end.
    """
    file = cast("BinaryIO", tempfile.TemporaryFile(prefix="ragauge-"))  # noqa: SIM115
    # By the number of the process, not by `self`: workers open it too.
    path = f"/proc/{os.getpid()}/fd/{file.fileno()}"
    if _is_same(path, file):
        with file:
            yield TemporaryFile(file, path)
        return
    file.close()
    handle, path = tempfile.mkstemp(prefix="ragauge-")
    try:
        with os.fdopen(handle, "w+b") as named:
            yield TemporaryFile(named, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _is_same(path: str, file: BinaryIO) -> bool:
    """Whether a path leads to an open file: `/proc` may be missing, or tell of other processes."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except OSError:
        return False
