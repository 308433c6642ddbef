"""Runs that this user began: their targets are asked again without a word when they are resumed.

A store is a file like any other, and may come from anybody: a checkout can hold a run whose target
is `command:...`. So what `--resume` takes from a store is compared with what this user began. That
is remembered as a hash, in the user's folder for caches; where it is gone, the target is named
again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from ragauge.files.cache_dir import cache_folder

_FILE_NAME = "begun-runs"


def remember_run(run_id: str, asked: bytes) -> None:
    """Remember that this user began a run; `asked` is all that its target was opened with."""
    with suppress(OSError, RuntimeError):  # without a home nothing can be remembered
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("ab") as file:  # one short write: processes do not get between each other
            file.write(_line(run_id, asked))


def is_own_run(run_id: str, asked: bytes) -> bool:
    """Whether this user began the run, with exactly that."""
    with suppress(OSError, RuntimeError), _path().open("rb") as file:
        wanted = _line(run_id, asked)
        return any(line == wanted for line in file)
    return False


def _path() -> Path:
    return cache_folder() / _FILE_NAME


def _line(run_id: str, asked: bytes) -> bytes:
    return sha256(os.fsencode(run_id) + b"\0" + asked).hexdigest().encode() + b"\n"
