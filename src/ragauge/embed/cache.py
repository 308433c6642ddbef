"""The cache of vectors: one SQLite file that several processes may share.

A vector is stored under the id of its embedder, its role and a hash of its text, with a checksum.
What comes out is bit by bit what went in, or it is computed again: a damaged row is found by its
checksum, and beside a damaged file another one is begun.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ragauge.errors import RagaugeError
from ragauge.files.cache_dir import cache_folder
from ragauge.model.embedder import Role, Vectors

IN_MEMORY = ":memory:"
APPLICATION = 0x52474156  # what marks the file as ours
_TABLE = (
    "CREATE TABLE IF NOT EXISTS vectors (key BLOB NOT NULL UNIQUE, truncated INTEGER NOT NULL, "
    "vector BLOB NOT NULL, sum BLOB NOT NULL)"
)
_AT_ONCE = 500
_MOST_BESIDE = 9  # files beside a damaged one
_WAIT = 30.0
_Damaged = sqlite3.DatabaseError


class Cached(NamedTuple):
    """A vector as it was computed, and whether its text was cut off."""

    vector: Vectors
    truncated: bool


def default_path() -> Path:
    """Where the cache lies unless another place is named: in the user's folder for caches."""
    return cache_folder() / "vectors.db"


def key_of(embedder: str, role: Role, text: str) -> bytes:
    """The key of a text: two embedders or roles never share one."""
    content = "\0".join((embedder, role, text))
    return blake2b(content.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class VectorCache:
    """An open cache. `notes` say what was wrong with it, if anything was."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.notes: list[str] = []
        self.damaged = 0
        self.chosen_path = self.path = os.fspath(path)
        self.connection = self._open(0)

    def _open(self, first: int) -> sqlite3.Connection:
        """Open the file, or beside it the first one from that number on that is not damaged."""
        if self.chosen_path == IN_MEMORY:
            return _prepared(IN_MEMORY)
        for number in range(first, _MOST_BESIDE + 1):
            self.path = f"{self.chosen_path}.{number}" if number else self.chosen_path
            self.number = number
            try:
                os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
                return _prepared(self.path)
            except (sqlite3.OperationalError, OSError) as error:
                return self._in_memory(error)
            except _Damaged as error:
                self._note_damage(error)
        return self._in_memory("too many damaged files")

    def _in_memory(self, reason: object) -> sqlite3.Connection:
        note = f"the cache `{self.path}` cannot be used ({reason}): vectors are not kept"
        self.notes.append(note)
        self.chosen_path = self.path = IN_MEMORY
        return _prepared(IN_MEMORY)

    def _note_damage(self, error: Exception) -> None:
        self.notes.append(f"the cache `{self.path}` is damaged ({error}): another is kept beside")

    def __enter__(self) -> VectorCache:
        return self

    def __exit__(self, *failure: object) -> None:
        self.connection.close()

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Cached]:
        """The vectors of those keys that are stored undamaged."""
        whole: dict[bytes, Cached] = {}
        try:
            for start in range(0, len(keys), _AT_ONCE):
                part = keys[start : start + _AT_ONCE]
                marks = ",".join("?" * len(part))
                rows = self.connection.execute(
                    f"SELECT key, truncated, vector, sum FROM vectors WHERE key IN ({marks})", part
                )
                for key, truncated, data, checksum in rows:
                    if _is_whole(key, truncated, data, checksum):
                        vector = np.frombuffer(data, "<f4").astype(np.float32)
                        whole[key] = Cached(vector, bool(truncated))
                    else:
                        self.damaged += 1
        except sqlite3.OperationalError as error:
            self._give_up(error)
        except _Damaged as error:
            self._elsewhere(error)
            return {}
        return whole

    def add(self, vectors: dict[bytes, Cached]) -> None:
        """Store vectors; a row that is there already is replaced only if it is damaged."""
        rows = []
        for key, cached in vectors.items():
            data = np.ascontiguousarray(cached.vector, "<f4").tobytes()
            rows.append((key, int(cached.truncated), data, _sum(key, cached.truncated, data)))
        verb = "REPLACE" if self.damaged else "IGNORE"
        try:
            with self.connection:
                self.connection.executemany(
                    f"INSERT OR {verb} INTO vectors VALUES (?, ?, ?, ?)", rows
                )
        except sqlite3.OperationalError as error:
            self._give_up(error)
        except _Damaged as error:
            self._elsewhere(error)

    def _give_up(self, error: Exception) -> None:
        self.connection.close()
        self.connection = self._in_memory(error)

    def _elsewhere(self, error: Exception) -> None:
        """Go on beside a file whose damage showed only when it was read."""
        self._note_damage(error)
        self.connection.close()
        self.connection = self._open(self.number + 1)


def _prepared(name: str) -> sqlite3.Connection:
    """Open a file and make it ours; a database of something else is refused."""
    connection = sqlite3.connect(name, timeout=_WAIT, check_same_thread=False)
    try:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        if tables and application != APPLICATION:
            message = f"`{name}` is a database of something else, not a cache of vectors"
            raise RagaugeError.of("usage", message, hint="name a new file with --embed-cache")
        if name != IN_MEMORY:
            # Where another process is changing the mode at this moment, it changes it for all.
            with suppress(sqlite3.OperationalError):
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
        if "vectors" not in tables:
            with connection:
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute(_TABLE)
        connection.execute("SELECT key, truncated, vector, sum FROM vectors LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _sum(key: bytes, truncated: bool, data: bytes) -> bytes:
    return blake2b(key + bytes([bool(truncated)]) + data, digest_size=8).digest()


def _is_whole(key: object, truncated: object, data: object, checksum: object) -> bool:
    return (
        isinstance(key, bytes)
        and isinstance(data, bytes)
        and len(data) % 4 == 0
        and checksum == _sum(key, bool(truncated), data)
    )
