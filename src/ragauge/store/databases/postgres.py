"""A store in a PostgreSQL database: opening and migrating it, and every method of a store on it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ragauge.errors import RagaugeError
from ragauge.files import redaction
from ragauge.files.connections import announce, postgres_hosts
from ragauge.model.access import Access
from ragauge.model.run import CompactedStore, Store, StoreKind
from ragauge.store.databases import migration_steps, store_errors
from ragauge.store.databases.queries import TABLES, Execute, StoreQueries

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

PATIENCE = "60s"
"""How long to wait for another process that holds a lock."""

AT_ONCE = 2000
"""Rows that a stream takes from the server at a time."""

WRITER = "name another server, or a user who may write: a standby can only be read"
OWNER = "let the owner of its tables run `ragauge runs list` on it once, with this version"

MIGRATING, ADDING, HOLDING = 7246283, 7246284, 7246285
"""Advisory locks: around migrations, around one gold set or list of chunks, and on a run."""


class _Address:
    """A URL that was understood: its name for messages, its parameters, and its secrets."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = redaction.without_password(url)
        try:
            from psycopg import ProgrammingError
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            message = "a PostgreSQL store needs the package `psycopg`"
            hint = "pip install 'ragauge[postgres]'"
            raise RagaugeError.of("missing-extra", message, hint=hint) from error
        try:
            parts = conninfo_to_dict(url)
        except ProgrammingError:
            parts = {"port": "?"}
        ports = str(parts.get("port") or "").replace(",", "")
        person = url.partition("://")[2].partition("?")[0].rpartition("@")[0]
        if (ports and not ports.isdecimal()) or "/" in person or "@" in person:
            # With a bare / or @ the driver takes a part of the password for a host, and says it.
            raise RagaugeError.of(
                "bad-store-url",
                f"`{self.name}` cannot be read as a URL",
                hint="write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with / as %2F and @ as "
                "%40 in a name or a password",
            )
        self.secrets = [str(parts[name]) for name in redaction.SECRET if parts.get(name)]
        usual = {"connect_timeout": 15, "application_name": "ragauge"}
        self.parameters: dict[str, Any] = {**usual, **parts, "client_encoding": "utf8"}

    def connect(self) -> Connection[Any]:
        """A connection on which every statement is a transaction, unless one is begun."""
        import psycopg

        for host, port in postgres_hosts(self.parameters):
            announce(host, port)
        connection = psycopg.connect(autocommit=True, prepare_threshold=None, **self.parameters)
        connection.execute(f"SET lock_timeout = '{PATIENCE}'")
        return connection

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn what the server says into errors that a user can fix."""
        import psycopg

        damaged = (
            psycopg.errors.UndefinedTable,
            psycopg.errors.UndefinedColumn,
            psycopg.errors.DatatypeMismatch,
            psycopg.errors.DataCorrupted,
            psycopg.errors.IndexCorrupted,
        )
        try:
            yield
        except damaged as error:
            raise store_errors.not_ours(self.name, self._words(error)) from error
        except psycopg.IntegrityError as error:
            raise store_errors.clash(self.name, self._words(error)) from error
        except psycopg.DataError as error:
            hint = "a store in an SQLite file takes every text"
            raise store_errors.unavailable(self.name, self._words(error), hint) from error
        except psycopg.errors.DiskFull as error:
            hint = "make room on the server; a run that was being stored is incomplete"
            raise store_errors.unavailable(self.name, self._words(error), hint) from error
        except psycopg.errors.InsufficientPrivilege as error:
            hint = "the user of the URL must be allowed to make tables and to write to them"
            raise store_errors.unavailable(self.name, self._words(error), hint) from error
        except psycopg.errors.ReadOnlySqlTransaction as error:
            raise store_errors.read_only(self.name, WRITER) from error
        except (psycopg.OperationalError, psycopg.InternalError) as error:
            hint = "check the URL, and that the server runs; then try again"
            raise store_errors.unavailable(self.name, self._words(error), hint) from error

    def _words(self, error: Exception) -> str:
        """What the server said, on one line, without details and without secrets."""
        primary = getattr(getattr(error, "diag", None), "message_primary", None)
        words = " ".join((primary or str(error)).split())
        for secret in self.secrets:
            words = words.replace(secret, "***")
        return words


def _reaches(url: str) -> list[Access]:
    """The servers that a URL names, or that the environment does where it names none."""
    parts = _Address(url).parameters
    if parts.get("service") or parts.get("servicefile"):
        return [Access(code="a PostgreSQL server that a service file names", keys=("store",))]
    sent = () if parts.get("password") or not os.environ.get("PGPASSWORD") else ("PGPASSWORD",)
    return [
        Access(host=host, port=port, keys=("store",), variables=sent)
        for host, port in postgres_hosts(parts)
    ]


def _version(cursor: Cursor[Any], name: str) -> int:
    """The version of the tables; 0 if there are none. What is newer or not ours is refused."""
    # Asked of pg_class: to_regclass() may answer from before the wait for a lock.
    cursor.execute(
        "SELECT relname FROM pg_class"
        " WHERE relname IN ('eval_schema', 'eval_runs') AND pg_table_is_visible(oid)"
    )
    tables = {row[0] for row in cursor.fetchall()}
    if not tables:
        return 0
    rows = cursor.execute("SELECT version FROM eval_schema").fetchall() if len(tables) > 1 else []
    if len(rows) != 1:
        raise store_errors.not_ours(name, "its tables are not those of ragauge")
    version, newest = int(rows[0][0]), migration_steps.newest("postgres")
    if version > newest:
        raise store_errors.newer_store(name, version, newest)
    return version


def _migrate(connection: Connection[Any], name: str, goal: int) -> None:
    """Lead the tables to a version, in one transaction and by one process at a time."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATING,))
        version = _version(cursor, name)  # another process may have been quicker
        if version == 0 != goal:
            cursor.execute("CREATE TABLE eval_schema (version INTEGER NOT NULL)")
            cursor.execute("INSERT INTO eval_schema VALUES (0)")
        migration_steps.take_steps(
            lambda sql, parameters: cursor.execute(_marked(sql), parameters),
            migration_steps.steps("postgres", version, goal),
        )
        if goal:
            cursor.execute("UPDATE eval_schema SET version = %s", (goal,))
        else:
            cursor.execute("DROP TABLE IF EXISTS eval_schema")


def _is_read_only(connection: Connection[Any]) -> bool:
    """Whether nothing can be written: on a standby, or by a user who may only read."""
    asked = "SELECT current_setting('transaction_read_only') = 'on' OR NOT"
    owner = "pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'eval_runs'::regclass"
    row = connection.execute(f"{asked} {owner}").fetchone()
    return row is not None and bool(row[0])


def _opened(address: _Address, *, create: bool, goal: int) -> Connection[Any]:
    """A connection to a store that stands at a version."""
    with address.translated():
        connection = address.connect()
        try:
            version = _version(connection.cursor(), address.name)
            if version == 0 and not create:
                raise store_errors.nothing_stored(address.name)
            if version != goal and version and _is_read_only(connection):
                raise store_errors.old_and_read_only(address.name, version, goal, OWNER)
            if version != goal:
                _migrate(connection, address.name, goal)
        except BaseException:
            connection.close()
            raise
    return connection


def migrate_to(url: str, version: int) -> None:
    """Lead a store to a version, also back to an older one; what only the newer has is dropped."""
    migration_steps.check_goal("postgres", version)
    _opened(_Address(url), create=False, goal=version).close()


def open_store(url: str, *, create: bool = True) -> Store:
    """Open the store in a database, whose tables are made or migrated if need be."""
    address = _Address(url)
    connection = _opened(address, create=create, goal=migration_steps.newest("postgres"))
    return PostgresStore(address, connection)


def _marked(sql: str) -> str:
    """SQL with the driver's mark for a parameter; no statement has a `?` or a `%` in it."""
    return sql.replace("?", "%s")


class PostgresStore(StoreQueries):
    """A store in a database. It may be handed to another thread, but not used by two at once.

    What streams has a connection of its own, so that other methods may be called meanwhile.
    """

    json_text = "::text"
    no_bytes = "''::bytea"
    row_lock = " FOR KEY SHARE"
    key_lock = f"SELECT pg_advisory_xact_lock({ADDING}, hashtext(?))"
    tags = "ARRAY(SELECT tag FROM eval_tags WHERE eval_tags.run_id = eval_runs.run_id ORDER BY tag)"

    def __init__(self, address: _Address, connection: Connection[Any]) -> None:
        self.name = address.name
        self.url = address.url
        self._address = address
        self._connection = connection

    @contextmanager
    def _transaction(self, *, durable: bool) -> Iterator[Execute]:  # noqa: ARG002  (always)
        with self._address.translated(), self._connection.transaction():
            cursor = self._connection.cursor()
            yield lambda sql, parameters: cursor.execute(_marked(sql), parameters)

    def _insert(self, table: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        cursor = self._connection.cursor()
        with cursor.copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def _execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        self._connection.cursor().executemany(_marked(sql), rows)

    def _read(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        with self._address.translated():
            cursor = self._connection.cursor(binary=True)
            return cursor.execute(_marked(sql), parameters).fetchall()

    def _stream(self, sql: str, key: str) -> Iterator[Any]:
        with (
            self._address.translated(),
            closing(self._address.connect()) as own,
            own.transaction(),
            own.cursor("streaming", binary=True) as cursor,
        ):
            cursor.itersize = AT_ONCE
            yield from cursor.execute(_marked(sql), (key,))

    @contextmanager
    def hold(self, run_id: str) -> Iterator[None]:
        """Hold a run while it is asked for and scored; `run-held` if another process holds it.

        The lock is one of the connection that writes: if that is lost, nothing is written either.
        """
        key = "?, hashtext(current_schema() || '/' || ?)"
        if not self._read(f"SELECT pg_try_advisory_lock({key})", (HOLDING, run_id))[0][0]:
            raise store_errors.run_held(run_id)
        try:
            yield
        finally:
            with suppress(RagaugeError):  # a connection that is lost holds nothing
                self._read(f"SELECT pg_advisory_unlock({key})", (HOLDING, run_id))

    def set_values(self, run_id: str, values: Sequence[tuple[int, str | None]]) -> None:
        """Set what was measured of some results, in one statement: rows by rows takes too long."""
        with self._writing(run_id) as execute:
            execute(
                "UPDATE eval_query_results AS result SET metric_values = given.measured"
                " FROM unnest(?::int8[], ?::text[]) AS given (place, measured)"
                " WHERE result.run_id = ? AND result.ordinal = given.place",
                ([ordinal for ordinal, _ in values], [text for _, text in values], run_id),
            )

    def reuse_deleted(self) -> None:
        """Let what is stored next take the space of what was deleted, at once.

        The server would do it by itself, minutes later. A table that another process works on is
        left to it.
        """
        with self._address.translated():
            self._connection.execute(f"VACUUM (SKIP_LOCKED) {', '.join(TABLES)}")

    def compact(self) -> CompactedStore:
        """Return the space of what was deleted; other processes wait for it meanwhile."""
        before = self._size()
        with self._address.translated():
            self._connection.execute(f"VACUUM (FULL, ANALYZE) {', '.join(TABLES)}")
        return CompactedStore(before, self._size())

    def _size(self) -> int:
        """The bytes of all tables with their indexes."""
        # Partitions are tables of their own, and are not counted with the table they belong to.
        tables = " + ".join(f"pg_total_relation_size('{table}')" for table in TABLES)
        parts = "SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0) FROM pg_inherits"
        parent = "WHERE inhparent = 'eval_live_minutes'::regclass"
        return int(self._read(f"SELECT {tables} + ({parts} {parent})")[0][0])

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


STORE = StoreKind(
    name="postgres",
    title="a PostgreSQL database",
    schemes=("postgresql", "postgres"),
    open=open_store,
    reaches=_reaches,
)
