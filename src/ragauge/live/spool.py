"""The spool: what was accepted and not yet scored, in one SQLite file that survives a crash.

The web process writes, in one thread that commits many bodies at once; the worker process reads and
deletes. A body is decoded, sampled and redacted before it comes here. Its key, a hash of what was
received, stays for a while after the body is gone, so that a client that sends again stores nothing
twice.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.files.lock_file import HeldError, held
from ragauge.formats.imports.span import NO_ATTRIBUTES, TraceSpan
from ragauge.live.settings import LiveSettings

FILE_NAME = "spool.db"
KEYS_KEPT_MS = 15 * 60_000
"""How long a body sent again is recognised; the collector of OpenTelemetry tries for 5 minutes."""

PATIENCE = 5.0
"""Seconds to wait for the worker's lock: a client gives up after 10."""

_GROUP_BODIES = 512
_GROUP_BYTES = 32 * 2**20
_ROWS_AT_ONCE = 128  # of 7 values: old SQLite takes 999
_IDLE = 0.25
_FREE_PAGES = 4096  # of 8 KiB; above, an idle spool gives space back to the disk
_PAGES_AT_ONCE = 512
_KEYS_AT_ONCE = 2000
_RAISED_AT_MOST = 2000
_STOP = None

_SCHEMA = """
CREATE TABLE IF NOT EXISTS bodies (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    key BLOB NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('spans', 'rows')),
    received INTEGER NOT NULL,
    rate REAL NOT NULL,
    known_from INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS keys (
    tenant TEXT NOT NULL,
    key BLOB NOT NULL,
    received INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS keys_by_time ON keys (received);
"""

BodyKind = Literal["spans", "rows"]


class SpoolUnavailableError(Exception):
    """Nothing can be written now: the disk is full, or another process holds the file."""


class SpooledBody(Struct, frozen=True):
    """What one request left: spans, or native rows as JSON lines, all sampled at one rate.

    `known_from`: see `trace_sampler`.
    """

    number: int
    tenant: str
    key: bytes
    kind: BodyKind
    received: int
    rate: float
    known_from: int
    body: bytes


class SpoolState(Struct, frozen=True):
    """How full the spool is: bodies that wait, bytes on disk, and when the oldest came."""

    bodies: int
    bytes: int
    oldest: int | None


def spool_folder(settings: LiveSettings, store_url: str) -> Path:
    """The folder of the spool: as set, beside the file of the store, or in the current folder."""
    if settings.spool is not None:
        return Path(settings.spool)
    scheme, _, path = store_url.partition(":///")
    return Path(f"{path if scheme == 'sqlite' else 'ragauge-live'}.spool")


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def create_spool(folder: Path) -> Path:
    """Make the folder and the file where they are not there yet; only their owner reads them."""
    path = folder / FILE_NAME
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        with closing(_connect(path)) as connection:
            connection.execute("PRAGMA page_size = 8192")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
    except (OSError, sqlite3.Error) as error:
        message = f"the spool `{path}` cannot be made: {getattr(error, 'strerror', None) or error}"
        hint = "make room, check who may write there, or set `spool` in [live]"
        raise RagaugeError.of("store-unavailable", message, hint=hint) from error
    return path


@contextmanager
def hold_spool(folder: Path) -> Iterator[None]:
    """Hold a spool for one server: two would score what is in it twice."""
    create_spool(folder)
    with ExitStack() as stack:
        try:
            stack.enter_context(held(folder / "server.lock"))
        except HeldError as error:
            message = f"another server has the spool `{folder}`"
            hint = "end it first; or give this one a store or a `spool` of its own"
            raise RagaugeError.of("run-held", message, hint=hint) from error
        yield


_BodyRow = tuple[str, bytes, str, int, float, int, bytes]
"""Tenant, key, kind, when it was received, rate, `known_from`, body."""


class _Waiting(Struct, frozen=True, gc=False):
    """A body on its way to the disk, and who waits for it."""

    row: _BodyRow
    done: Future[bool]


class Spool:
    """The writer's side. `put` may be called from any thread."""

    def __init__(self, folder: Path, *, most_bytes: int) -> None:
        self.path = create_spool(folder)
        self.most_bytes = most_bytes
        self.waiting_bytes = 0
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._connection = _connect(self.path)
        self._disk_bytes = self._measure()
        self.last_error: str | None = None
        self._thread = threading.Thread(target=self._write_forever, name="spool", daemon=True)
        self._thread.start()

    def put(
        self,
        tenant: str,
        key: bytes,
        kind: BodyKind,
        received: int,
        body: bytes,
        rate: float,
        *,
        known_from: int = 0,
    ) -> Future[bool]:
        """Write a body; done when it is on disk: True, or False where its key was there before.

        The future raises `SpoolUnavailableError` where it cannot be written.
        """
        done: Future[bool] = Future()
        with self._lock:
            self.waiting_bytes += len(body)
        self._queue.put(_Waiting((tenant, key, kind, received, rate, known_from, body), done))
        return done

    @property
    def is_full(self) -> bool:
        """Whether what waits is over the high-water mark."""
        return self._disk_bytes + self.waiting_bytes >= self.most_bytes

    @property
    def bytes(self) -> int:
        """The bytes that bodies take, on disk and on their way to it."""
        return self._disk_bytes + self.waiting_bytes

    def close(self) -> None:
        """Write what was put before, then end."""
        self._queue.put(_STOP)
        self._thread.join(timeout=30)
        with suppress(sqlite3.Error):
            self._connection.close()

    def _write_forever(self) -> None:
        while True:
            try:
                first = self._queue.get(timeout=_IDLE)
            except queue.Empty:
                self._tidy()
                continue
            if first is None:
                return
            group, is_last = self._group(first)
            self._write(group)
            if is_last:
                return

    def _group(self, first: _Waiting) -> tuple[list[_Waiting], bool]:
        """All that has come meanwhile, so that one fsync is for many."""
        group, size = [first], len(first.row[-1])
        while len(group) < _GROUP_BODIES and size < _GROUP_BYTES:
            try:
                entry = self._queue.get_nowait()
            except queue.Empty:
                break
            if entry is None:
                return group, True
            group.append(entry)
            size += len(entry.row[-1])
        return group, False

    def _write(self, group: Sequence[_Waiting]) -> None:
        # Who has gone meanwhile is not told, but what was sent is written.
        heard = [entry.done.set_running_or_notify_cancel() for entry in group]
        failure: Exception | None = None
        stored: list[bool] = []
        try:
            stored = self._commit(group)
            self._disk_bytes = self._measure()
            self.last_error = None
        except Exception as error:  # whatever it is, this thread goes on
            self.last_error = str(error)
            failure = SpoolUnavailableError(str(error))
        with self._lock:
            self.waiting_bytes -= sum(len(entry.row[-1]) for entry in group)
        for place, entry in enumerate(group):
            if failure is not None and heard[place]:
                entry.done.set_exception(failure)
            elif heard[place]:
                entry.done.set_result(stored[place])

    def _commit(self, group: Sequence[_Waiting]) -> list[bool]:
        stored: list[bool] = []
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            for start in range(0, len(group), _ROWS_AT_ONCE):
                stored += self._insert(
                    [entry.row for entry in group[start : start + _ROWS_AT_ONCE]]
                )
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # a full disk ends it by itself
                self._connection.execute("ROLLBACK")
            raise
        return stored

    def _insert(self, rows: Sequence[_BodyRow]) -> list[bool]:
        """Insert the bodies whose keys are new; for each body whether its key is.

        Few statements of many rows: for each one this thread lets go of the interpreter, and may
        wait for milliseconds until whoever reads a request gives it back.
        """
        execute = self._connection.execute
        marks = ", ".join(["(?, ?)"] * len(rows))
        known = set(
            execute(
                f"SELECT tenant, key FROM keys WHERE (tenant, key) IN (VALUES {marks})",
                [part for row in rows for part in row[:2]],
            ).fetchall()
        )
        stored: list[bool] = []
        keys: list[object] = []
        bodies: list[object] = []
        for row in rows:
            tenant, key, _, received, *_ = row
            is_new = (tenant, key) not in known
            stored.append(is_new)
            if is_new:
                known.add((tenant, key))
                keys += (tenant, key, received)
                bodies += row
        if count := sum(stored):
            execute(f"INSERT INTO keys VALUES {', '.join(['(?, ?, ?)'] * count)}", keys)
            execute(
                "INSERT INTO bodies (tenant, key, kind, received, rate, known_from, body) "
                f"VALUES {', '.join(['(?, ?, ?, ?, ?, ?, ?)'] * count)}",
                bodies,
            )
        return stored

    def _measure(self) -> int:
        return _used_bytes(self._connection)

    def _tidy(self) -> None:
        """What can wait for a quiet moment: old keys, space that is free, and how full it is."""
        with suppress(sqlite3.Error, OSError):
            execute = self._connection.execute
            end = int(time.time() * 1000) - KEYS_KEPT_MS
            (old,) = execute("SELECT min(received) FROM keys").fetchone()
            if old is not None and old < end:
                execute(
                    "DELETE FROM keys WHERE (tenant, key) IN "
                    "(SELECT tenant, key FROM keys WHERE received < ? LIMIT ?)",
                    (end, _KEYS_AT_ONCE),
                )
            if execute("PRAGMA freelist_count").fetchone()[0] > _FREE_PAGES:
                execute(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})").fetchall()
            self._disk_bytes = self._measure()


def _used_bytes(connection: sqlite3.Connection) -> int:
    """The pages that hold something."""
    pages, free, size = connection.execute(
        "SELECT page_count, freelist_count, page_size "
        "FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
    ).fetchone()
    return int((pages - free) * size)


class SpoolReader:
    """The worker's side; used by one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self.path = create_spool(folder)
        self._connection = _connect(self.path)

    def batch(self, after: int = 0, limit: int = 100) -> list[SpooledBody]:
        """The next bodies behind a number, in the order in which they came."""
        rows = self._connection.execute(
            "SELECT number, tenant, key, kind, received, rate, known_from, body FROM bodies "
            "WHERE number > ? ORDER BY number LIMIT ?",
            (after, limit),
        )
        return [SpooledBody(*row) for row in rows]

    def raised(self, rate: float, after: int) -> list[SpooledBody]:
        """The spans since a time that came in by a higher rate than this one."""
        rows = self._connection.execute(
            "SELECT number, tenant, key, kind, received, rate, known_from, body FROM bodies "
            "WHERE kind = 'spans' AND rate > ? AND received > ? ORDER BY number DESC LIMIT ?",
            (rate, after, _RAISED_AT_MOST),
        )
        return [SpooledBody(*row) for row in rows]

    def delete(self, numbers: Iterable[int]) -> None:
        """Delete bodies whose results are stored."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            rows = ((number,) for number in numbers)
            self._connection.executemany("DELETE FROM bodies WHERE number = ?", rows)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def replace(self, number: int, body: bytes | None) -> None:
        """Put another body in the place of one, from which something was deleted; None for none."""
        if body is None:
            self.delete((number,))
        else:
            self._connection.execute("UPDATE bodies SET body = ? WHERE number = ?", (body, number))

    def depth(self) -> int:
        """How many bodies wait."""
        return int(self._connection.execute("SELECT count(*) FROM bodies").fetchone()[0])

    def bytes(self) -> int:
        """The bytes that they take."""
        return _used_bytes(self._connection)

    def oldest(self) -> int | None:
        """When the oldest of them was received."""
        rows = self._connection.execute("SELECT received FROM bodies ORDER BY number LIMIT 1")
        row = rows.fetchone()
        return None if row is None else int(row[0])

    def state(self) -> SpoolState:
        """All three at once."""
        return SpoolState(self.depth(), self.bytes(), self.oldest())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class _PackedSpan(Struct, array_like=True, gc=False):
    """A span without its resource, which many share."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start: int
    end: int
    attributes: dict[str, Any]
    error: str | None
    dropped: int


class _PackedGroup(Struct, array_like=True, gc=False):
    resource: dict[str, Any]
    spans: list[_PackedSpan]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_PackedGroup]).decode
_LARGEST = 2**63 - 1


def encode_spans(spans: Iterable[TraceSpan]) -> bytes:
    """Spans as the body of a spool row; a resource that follows itself is written once."""
    groups: list[_PackedGroup] = []
    resource: dict[str, Any] | None = None
    for span in spans:
        if span.resource is not resource:
            resource = span.resource
            groups.append(_PackedGroup(resource, []))
        groups[-1].spans.append(
            _PackedSpan(
                span.trace_id, span.span_id, span.parent_id, span.name, span.start, span.end,
                span.attributes, span.error, span.dropped,
            )
        )  # fmt: skip
    try:
        return _encode(groups)
    except OverflowError:  # a number that no format but JSON can hold
        return _encode(_small(msgspec.to_builtins(groups)))


def decode_spans(body: bytes) -> list[TraceSpan]:
    """The spans of a body of the kind `spans`."""
    spans = []
    for group in _decode(body):
        resource = group.resource or NO_ATTRIBUTES
        for span in group.spans:
            spans.append(
                TraceSpan(
                    span.trace_id, span.span_id, span.parent_id, span.name, span.start, span.end,
                    span.attributes, span.error, span.dropped, resource,
                )
            )  # fmt: skip
    return spans


def _small(value: Any, depth: int = 0) -> Any:
    """Numbers of more than 64 bits: a time, which stands at depth 4, is cut, others are text."""
    if isinstance(value, dict):
        return {name: _small(entry, 9) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_small(entry, depth + 1) for entry in value]
    if isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
        return str(value) if depth > 4 else max(-_LARGEST, min(value, _LARGEST))
    return value
