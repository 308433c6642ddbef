"""A store in one SQLite file: opening and migrating it, and every method of a store on it."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from ragauge.errors import RagaugeError
from ragauge.files import redaction
from ragauge.files.lock import HeldError, held
from ragauge.model.run import Store, StoreKind
from ragauge.store.databases import schema_versions, store_errors
from ragauge.store.databases.queries import Execute, StoreQueries

PATIENCE = 60.0
"""Seconds to wait for another process that writes."""

OLDEST = (3, 37, 0)  # the first SQLite with STRICT tables
PAGE = 8192  # a tenth faster than 4096 with results of 600 bytes
FORM = "write sqlite:///FILE for a path relative to the current folder, sqlite:////FILE for others"

LATER = "other processes have been writing for too long; try again when they are done"
RIGHTS = "check the path, and who may write to the file and to its folder"
HINTS = {
    sqlite3.SQLITE_FULL: "make room on the disk; a run that was being stored is incomplete",
    sqlite3.SQLITE_IOERR: "make room, or check the disk; a run that was being stored is incomplete",
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL), LATER),
    **dict.fromkeys(
        (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN), RIGHTS
    ),
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
    sqlite3.SQLITE_TOOBIG: "one trace or list of chunks is larger than SQLite takes",
}
"""What may help, by the code of the database; any other code means that the file is damaged."""


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """Turn what the database and the disk say into errors that a user can fix."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise store_errors.clash(name, str(error)) from error
    except (sqlite3.InterfaceError, sqlite3.ProgrammingError):
        raise  # ours, not the user's
    except sqlite3.DatabaseError as error:
        hint = HINTS.get(getattr(error, "sqlite_errorcode", -1) & 0xFF)
        if hint is None:
            raise store_errors.not_ours(name, str(error)) from error
        raise store_errors.unavailable(name, str(error), hint) from error


def _path(url: str) -> Path:
    """The file that a URL names, as written: nothing in it is decoded."""
    scheme, _, path = url.partition(":///")
    if scheme != "sqlite" or not path or "?" in path or "\0" in path:
        shown = redaction.without_password(url)
        raise RagaugeError.of("bad-store-url", f"`{shown}` names no file", hint=FORM)
    if path.startswith(":memory:"):
        gone = f"`{url}` would be gone when the command ends"
        raise RagaugeError.of("bad-store-url", gone, hint=FORM)
    return Path(path)


def _connect(path: Path, *, mode: str = "rw") -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA foreign_keys = ON")
    # A store may come from anybody: what its views and triggers call must be harmless.
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


@contextmanager
def _transaction(connection: sqlite3.Connection, *, sync: str = "NORMAL") -> Iterator[None]:
    """One transaction that writes, from its beginning: no reader's lock has to be raised later.

    With NORMAL a batch outlives the process; with FULL it and all before it outlive a power cut.
    """
    connection.execute(f"PRAGMA synchronous = {sync}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk ends it by itself
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, name: str) -> int:
    """The version of the tables; 0 for a new file. What is newer or not ours is refused."""
    # One statement: another process may make the tables between two.
    names = "(SELECT json_group_array(name) FROM sqlite_master)"
    asked = connection.execute(f"SELECT user_version, {names} FROM pragma_user_version")
    version, tables = asked.fetchone()
    if version == 0 and tables == "[]":
        return 0
    if version <= 0 or "eval_runs" not in json.loads(tables):
        raise store_errors.not_ours(name, "its tables are not those of ragauge")
    newest = schema_versions.newest("sqlite")
    if version > newest:
        raise store_errors.newer_store(name, version, newest)
    return int(version)


def _migrate(connection: sqlite3.Connection, path: Path, name: str, goal: int) -> None:
    """Migrate the tables in one transaction; a copy of the old file stays beside it."""
    with _transaction(connection, sync="FULL"):
        version = _version(connection, name)  # another process may have been quicker
        if version not in (0, goal):
            _back_up(path, name, version)
        for statement in schema_versions.steps("sqlite", version, goal):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {goal}")


def _back_up(path: Path, name: str, version: int) -> None:
    """Copy the store as it was last written; the caller holds the lock that writers need."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        with closing(_connect(path)) as source, closing(_connect(Path(temporary))) as target:
            source.backup(target)
        os.chmod(temporary, path.stat().st_mode & 0o777)
        number = 1
        while (backup := Path(f"{path}.v{version}{f'.{number}' * (number > 1)}.bak")).exists():
            number += 1
        os.replace(temporary, backup)
    except OSError as error:
        words = f"the old form cannot be kept beside it: {error.strerror or error}"
        raise store_errors.unavailable(name, words, HINTS[sqlite3.SQLITE_FULL]) from error
    finally:
        Path(temporary).unlink(missing_ok=True)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Let readers and a writer work side by side, where the file system can do it."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            # This one lock is not waited for by SQLite itself.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)


def _opened(url: str, *, create: bool, goal: int) -> tuple[sqlite3.Connection, Path]:
    """A connection to a store that is at a version."""
    path = _path(url)
    with _translated(url):
        if sqlite3.sqlite_version_info < OLDEST:
            has = f"this Python has SQLite {sqlite3.sqlite_version}"
            raise store_errors.unavailable(url, has, "SQLite 3.37 or newer is needed")
        if not create and not path.exists():
            raise store_errors.nothing_stored(url)
        if not path.parent.is_dir():
            missing = f"there is no folder `{path.parent}`"
            raise store_errors.unavailable(url, missing, "make the folder first, or check the path")
        connection = _connect(path, mode="rwc" if create else "rw")
        try:
            version = _version(connection, url)
            if version == 0 and not create:
                raise store_errors.nothing_stored(url)
            if version == 0:
                connection.execute(f"PRAGMA page_size = {PAGE}")
            if version != goal:
                _migrate(connection, path, url, goal)
            _write_ahead(connection)
        except BaseException:
            connection.close()
            raise
    return connection, path


def migrate_to(url: str, version: int) -> None:
    """Migrate a store to a version, also back to an older one; a copy of it stays beside it."""
    schema_versions.check_goal("sqlite", version)
    connection, _ = _opened(url, create=False, goal=version)
    connection.close()


def open_store(url: str, *, create: bool = True) -> Store:
    """Open the store in a file, which is made or migrated if need be."""
    connection, path = _opened(url, create=create, goal=schema_versions.newest("sqlite"))
    return SqliteStore(url, path, connection)


class SqliteStore(StoreQueries):
    """A store in one file. It may be handed to another thread, but not used by two at once.

    What streams has a connection of its own: it reads one state of the store to its end, and
    stands in nobody's way.
    """

    def __init__(self, name: str, path: Path, connection: sqlite3.Connection) -> None:
        self.name = name
        self._path = path.absolute()  # the current folder may change
        self.url = f"sqlite:///{self._path}"
        self._connection = connection

    @contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[Execute]:
        sync = "FULL" if durable else "NORMAL"
        with _translated(self.name), _transaction(self._connection, sync=sync):
            yield self._connection.execute

    def _insert(self, table: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(types))
        self._execute_many(f"INSERT INTO {table} VALUES ({marks})", rows)

    def _execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        self._connection.executemany(sql, rows)

    def _read(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        with _translated(self.name):
            return self._connection.execute(sql, parameters).fetchall()

    def _stream(self, sql: str, key: str) -> Iterator[Any]:
        with _translated(self.name), closing(_connect(self._path)) as own:
            yield from own.execute(sql, (key,))

    @contextmanager
    def hold(self, run_id: str) -> Iterator[None]:
        """Hold a run while it is asked for and scored; `run-held` if another process holds it.

        SQLite has locks on whole files and for moments, so a lock file beside the store says it.
        """
        file = self._path.resolve()
        name = f".{file.name}.{sha256(run_id.encode()).hexdigest()[:16]}.lock"
        with ExitStack() as stack:
            try:
                stack.enter_context(held(file.parent / name))
            except HeldError as error:
                raise store_errors.run_held(run_id) from error
            yield

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


STORE = StoreKind(
    name="sqlite",
    title="one SQLite file",
    schemes=("sqlite",),
    open=open_store,
    reaches=lambda _: (),
)
