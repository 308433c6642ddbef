"""Folders that a test may read and not write to, also for root: then as another user."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOBODY = 65534


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user can reach, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="ragauge-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def another_user() -> Iterator[None]:
    """Be another user than root for a while; the rights of files mean nothing to root."""
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if was_root:
            os.seteuid(0)


@contextmanager
def read_only(folder: Path, *, files: bool = True) -> Iterator[None]:
    """Take the right to write to a folder, and to its files if asked for; it comes back."""
    listed = [folder, *(folder.iterdir() if files else ())]
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in listed}
    for path, mode in modes.items():
        path.chmod(mode & ~0o222 | 0o444)
    try:
        with another_user():
            assert not os.access(folder, os.W_OK, effective_ids=True)
            yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)
