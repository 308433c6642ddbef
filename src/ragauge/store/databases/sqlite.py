"""A store in one SQLite file: opening and migrating it, and every method of a store on it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ragauge.errors import RagaugeError
from ragauge.files import redaction
from ragauge.files.lock_file import HeldError, held
from ragauge.model.run import CompactedStore, Store, StoreKind
from ragauge.store.databases import migration_steps, store_errors
from ragauge.store.databases.queries import Execute, StoreQueries

PATIENCE = 60.0
"""Seconds to wait for another process that writes."""

CLOSING = 5.0
"""Seconds to wait for a thread that writes when the store is closed."""

OLDEST = (3, 37, 0)  # the first SQLite with STRICT tables
PAGE = 8192  # a tenth faster than 4096 with results of 600 bytes
INCREMENTAL = 2  # the value of PRAGMA auto_vacuum for files that can give pages back one by one
PAGES_AT_ONCE = 4096  # pages to give back before the log is emptied: 32 MiB on a full disk
IMMUTABLE = "mode=ro&immutable=1"
FORM = "write sqlite:///FILE for a path relative to the current folder, sqlite:////FILE for others"

LATER = "other processes have been writing for too long; try again when they are done"
RIGHTS = "check the path, and who may write to the file and to its folder"
COPY = (
    "copy it to where you may write and name the copy with --store, or let someone who may write "
    "to it run `ragauge runs list` on it once, with this version"
)
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
    except UnicodeDecodeError as error:  # SQLite gives texts as they lie in the file
        raise store_errors.not_ours(name, "a text in it is not UTF-8: it is damaged") from error
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


def _connect(path: Path, access: str = "mode=rw") -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{access}",
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
    newest = migration_steps.newest("sqlite")
    if version > newest:
        raise store_errors.newer_store(name, version, newest)
    return int(version)


def _migrate(connection: sqlite3.Connection, path: Path, name: str, goal: int) -> None:
    """Migrate the tables in one transaction; a copy of the old file stays beside it."""
    with _transaction(connection, sync="FULL"):
        version = _version(connection, name)  # another process may have been quicker
        if version not in (0, goal):
            _back_up(path, name, version)
        migration_steps.take_steps(
            connection.execute, migration_steps.steps("sqlite", version, goal)
        )
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


class _Opened(NamedTuple):
    """A connection, and how to make another one: the file to open, and the way to."""

    connection: sqlite3.Connection
    path: Path
    access: str = "mode=rw"


def _opened(url: str, *, create: bool, goal: int) -> _Opened:
    """A connection to a store that is at a version."""
    path = _path(url)
    with _translated(url):
        if not create and not path.exists():
            raise store_errors.nothing_stored(url)
        if not path.parent.is_dir():
            missing = f"there is no folder `{path.parent}`"
            raise store_errors.unavailable(url, missing, "make the folder first, or check the path")
        connection = _connect(path, "mode=rwc" if create else "mode=rw")
        try:
            version = _version(connection, url)
            if version == 0 and not create:
                raise store_errors.nothing_stored(url)
            if version == 0:
                connection.execute(f"PRAGMA page_size = {PAGE}")
                connection.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
            if version != goal:
                _migrate(connection, path, url, goal)
            _write_ahead(connection)
        except BaseException:
            connection.close()
            raise
    return _Opened(connection, path)


def _may_write(path: Path) -> bool:
    """Whether this process may write to a file, and make the files beside it that SQLite needs."""
    real = path.resolve()
    effective = os.access in os.supports_effective_ids
    return all(os.access(each, os.W_OK, effective_ids=effective) for each in (real, real.parent))


def _opened_to_read(url: str, stack: ExitStack) -> _Opened:
    """A connection to a store on a disk that is not to be written to; the stack closes it.

    SQLite reads a file in WAL mode with the help of two files beside it. Where they are there,
    another process may be writing, and they are used. Where there are none, the file is all there
    is, and reading it as one that does not change makes none. What a writer that was killed has
    left behind belongs to the store and can only be read by writing: it is read in a copy.
    """
    path = _path(url)
    real = path.resolve()
    with _translated(url):
        log, memory, journal = (Path(f"{real}{end}") for end in ("-wal", "-shm", "-journal"))
        rest = [file for file in (log, journal) if file.exists() and file.stat().st_size]
        opened = None
        if log.exists() and memory.exists():
            with suppress(sqlite3.OperationalError):  # nobody has it open, and nobody may begin
                opened = _checked(url, real, "mode=ro")
        if opened is None and rest:
            opened = _checked(url, _copied(url, stack, [real, *rest]), "mode=rw")
        opened = opened or _checked(url, real, IMMUTABLE)
    stack.callback(opened.connection.close)
    return opened


def _copied(url: str, stack: ExitStack, files: Sequence[Path]) -> Path:
    """The first of some files, copied with the others to a folder that the stack removes."""
    try:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ragauge-")))
        for file in files:
            shutil.copyfile(file, folder / file.name)
    except OSError as error:
        words = f"what a writer left beside it cannot be read: {error.strerror or error}"
        hint = "make room for a temporary copy of it, or check who may read the files beside it"
        raise store_errors.unavailable(url, words, hint) from error
    return folder / files[0].name


def _checked(url: str, path: Path, access: str) -> _Opened:
    """A connection to a file that is not to be migrated."""
    connection = _connect(path, access)
    try:
        version, newest = _version(connection, url), migration_steps.newest("sqlite")
        if version == 0:
            raise store_errors.nothing_stored(url)
        if version != newest:
            raise store_errors.old_and_read_only(url, version, newest, COPY)
    except BaseException:
        connection.close()
        raise
    return _Opened(connection, path, access)


def migrate_to(url: str, version: int) -> None:
    """Migrate a store to a version, also back to an older one; a copy of it stays beside it."""
    migration_steps.check_goal("sqlite", version)
    _opened(url, create=False, goal=version).connection.close()


def open_store(url: str, *, create: bool = True) -> Store:
    """Open the store in a file, which is made or migrated if need be.

    Where nothing can be written, a store that is there is opened to be read.
    """
    path = _path(url)
    if sqlite3.sqlite_version_info < OLDEST:
        has = f"this Python has SQLite {sqlite3.sqlite_version}"
        raise store_errors.unavailable(url, has, "SQLite 3.37 or newer is needed")
    with ExitStack() as stack:
        read_only = path.is_file() and not _may_write(path)
        if read_only and create:
            raise store_errors.read_only(url, RIGHTS)
        if read_only:
            opened = _opened_to_read(url, stack)
        else:
            opened = _opened(url, create=create, goal=migration_steps.newest("sqlite"))
            stack.callback(opened.connection.close)
        return SqliteStore(url, path, opened, stack.pop_all(), read_only=read_only)


class SqliteStore(StoreQueries):
    """A store in one file. It may be handed to another thread, but not used by two at once.

    What streams has a connection of its own: it reads one state of the store to its end, and
    stands in nobody's way.
    """

    def __init__(
        self, name: str, path: Path, opened: _Opened, stack: ExitStack, *, read_only: bool
    ) -> None:
        self.name = name
        self._path = path.absolute()  # the current folder may change
        self.url = f"sqlite:///{self._path}"
        self._connection = opened.connection
        self._writing_lock = threading.Lock()
        self._opened = opened._replace(path=opened.path.absolute())
        self._stack = stack
        self._read_only = read_only
        self._state = self._state_of_file()

    def _state_of_file(self) -> tuple[int, ...]:
        """What changes when another process writes to the file; nothing where SQLite sees it."""
        if self._opened.access != IMMUTABLE:
            return ()
        try:
            facts = self._opened.path.stat()
        except OSError:  # it is gone: that is a change too
            return ()
        return facts.st_ino, facts.st_size, facts.st_mtime_ns

    def _check_unchanged(self) -> None:
        """Raise if a file that is read as one that does not change has changed."""
        if self._state_of_file() != self._state:
            words = "another process wrote to it while it was being read"
            raise store_errors.unavailable(self.name, words, "try again")

    @contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[Execute]:
        if self._read_only:
            raise store_errors.read_only(self.name, RIGHTS)
        sync = "FULL" if durable else "NORMAL"
        transaction = _transaction(self._connection, sync=sync)
        with self._writing_lock, _translated(self.name), transaction:
            yield self._connection.execute

    def _insert(self, table: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(types))
        self._execute_many(f"INSERT INTO {table} VALUES ({marks})", rows)

    def _execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        self._connection.executemany(sql, rows)

    def _read(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        with _translated(self.name):
            rows = self._connection.execute(sql, parameters).fetchall()
        self._check_unchanged()
        return rows

    def _stream(self, sql: str, key: str) -> Iterator[Any]:
        _, path, access = self._opened
        with _translated(self.name), closing(_connect(path, access)) as own:
            yield from own.execute(sql, (key,))
        self._check_unchanged()

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

    def reuse_deleted(self) -> None:
        """Do nothing: pages that became free are the first to be written to."""

    def compact(self) -> CompactedStore:
        """Return the space of what was deleted; other processes wait for it meanwhile.

        A file that this version made gives its free pages back in place, also on a full disk. An
        older one is written anew once, which takes as much space again, and then can do that too.
        """
        if self._read_only:
            raise store_errors.read_only(self.name, RIGHTS)
        connection = self._connection
        with _translated(self.name):
            self._empty_log()
            before = self._path.stat().st_size
            if self._pragma("auto_vacuum") == INCREMENTAL:
                left = self._pragma("freelist_count")
                while left:
                    connection.execute(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})").fetchall()
                    self._empty_log()
                    left, free = self._pragma("freelist_count"), left
                    if left >= free:  # another process deletes as fast
                        break
            else:
                connection.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
                connection.execute("VACUUM")
                self._empty_log()
            return CompactedStore(before, self._path.stat().st_size)

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    def _empty_log(self) -> None:
        """Bring what was written into the file itself, which takes its new length with that."""
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Let go of the connection, and of a copy that was read instead.

        Not under a thread that still writes, SQLite would crash: a run that is interrupted twice
        ends while its last batch is being stored.
        """
        if self._writing_lock.acquire(timeout=CLOSING):
            try:
                self._stack.close()
            finally:
                self._writing_lock.release()


STORE = StoreKind(
    name="sqlite",
    title="one SQLite file",
    schemes=("sqlite",),
    open=open_store,
    reaches=lambda _: (),
)
