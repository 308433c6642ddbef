"""The file that a running app appends its traces to: one line each, whole, from many processes."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ragauge.errors import RagaugeError
from ragauge.files.open import PathLike
from ragauge.files.redaction import SecretValues, redacted

_log = logging.getLogger("ragauge")
LONGEST_ERROR = 500
"""Characters of an error that a trace holds."""


class TraceLog:
    """Appends rows as JSON Lines, without secrets.

    It is opened for each row: a file that was rotated or removed is made anew, and a process that
    was forked shares nothing. A disk that is full or a folder that may not be written to is logged
    once and counted in `failures`, and the app goes on; with `strict` it is raised.
    """

    def __init__(
        self, path: PathLike, *, strict: bool = False, secrets: SecretValues | None = None
    ) -> None:
        self.path = os.fspath(path)
        self.strict = strict
        self.secrets = secrets or SecretValues()
        self.failures = 0
        self.last_error: Exception | None = None
        self._lock = threading.Lock()

    def append(self, row: Mapping[str, Any]) -> bool:
        """Append a row; whether it was written."""
        try:
            line = encoded_row(self.secrets.hide_in(redacted(dict(row))))
            with self._lock:
                _append(self.path, line)
        except Exception as error:  # whatever is wrong with a trace, the app answers
            self.note_failure(error)
            return False
        return True

    def note_failure(self, error: Exception) -> None:
        """Count what could not be recorded, and log the first; raise it if that was asked for."""
        with self._lock:
            self.failures += 1
            is_first = self.last_error is None
            self.last_error = error
        if self.strict:
            if isinstance(error, OSError):
                message = f"`{self.path}` cannot be written: {error.strerror or error}"
                hint = "check that the folder may be written to, and that the disk has room"
                raise RagaugeError.of("file-unreadable", message, hint=hint) from error
            raise error
        if is_first:
            _log.warning("traces are not recorded in %s: %s", self.path, error)


def error_text(error: BaseException) -> str:
    """An exception as the error of a trace: its kind and what it says, in one line."""
    lines = str(error).strip().splitlines()
    said = lines[0].strip() if lines else ""
    kind = type(error).__name__
    return (f"{kind}: {said}" if said else kind)[:LONGEST_ERROR]


def encoded_row(row: Mapping[str, Any]) -> bytes:
    """A row as one line of JSON; what JSON does not know is written as text."""
    try:
        line = msgspec.json.encode(row, enc_hook=_as_text)
    except (TypeError, ValueError, OverflowError, RecursionError):
        # Halves of characters, keys that are no text, numbers beyond 64 bits.
        text = json.dumps(row, ensure_ascii=False, default=_as_text, skipkeys=True)
        line = text.encode("utf-8", "replace")
    return line + b"\n"


def _as_text(value: Any) -> Any:
    if hasattr(value, "tolist"):  # numpy: a scalar or an array
        return value.tolist()
    return dict(value) if isinstance(value, Mapping) else str(value)


def _append(path: str, line: bytes) -> None:
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        _hold(file)
        size = os.fstat(file).st_size
        if size and os.lseek(file, size - 1, os.SEEK_SET) >= 0 and os.read(file, 1) != b"\n":
            line = b"\n" + line  # whoever wrote last was stopped in the middle of it
        written = os.write(file, line)
        if written < len(line):  # the disk is full: half a line would be a bad one
            os.ftruncate(file, size)
            raise OSError(28, "no space left on the disk")
    finally:
        os.close(file)


def _hold(file: int) -> None:
    """Wait until no other process writes; given back when the file is closed."""
    try:
        import fcntl
    except ImportError:  # Windows: one process at a time, then
        return
    with suppress(OSError):  # a file system without locks; a line is still one write
        fcntl.flock(file, fcntl.LOCK_EX)
