"""A store in a PostgreSQL database: opening and migrating it, and every method of a store on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ragauge.errors import RagaugeError
from ragauge.files import redaction
from ragauge.model.run import (
    GoldRow,
    ResultRow,
    RunRecord,
    Scoring,
    Store,
    StoreKind,
    ValueColumn,
)
from ragauge.store.databases import schema_versions, store_errors
from ragauge.store.databases.queries import FACTS, REOPENED, RUN, StoreQueries, run_row

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

PATIENCE = "60s"
"""How long to wait for another process that holds a lock."""

AT_ONCE = 2000
"""Rows that a stream takes from the server at a time."""

MIGRATING, ADDING, HOLDING = 7246283, 7246284, 7246285
"""Advisory locks: around migrations, around one gold set or list of chunks, and on a run."""

FACT_TYPES = ("int8", "text", "int8", "text", "int8", "int8", "int8", "text", "float8", "float8")


class _Address:
    """A URL that was understood: its name for messages, its parameters, and its secrets."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.name = redaction.without_password(url)
        try:
            from psycopg import ProgrammingError
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            raise RagaugeError.of(
                "missing-extra",
                "a PostgreSQL store needs the package `psycopg`",
                hint="pip install 'ragauge[postgres]'",
            ) from error
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

        connection = psycopg.connect(autocommit=True, prepare_threshold=None, **self.parameters)
        connection.execute(f"SET lock_timeout = '{PATIENCE}'")
        return connection

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turn what the server says into errors that a user can mend."""
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
    version, newest = int(rows[0][0]), schema_versions.newest("postgres")
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
        for statement in schema_versions.steps("postgres", version, goal):
            cursor.execute(statement)
        if goal:
            cursor.execute("UPDATE eval_schema SET version = %s", (goal,))
        else:
            cursor.execute("DROP TABLE IF EXISTS eval_schema")


def _opened(address: _Address, *, create: bool, goal: int) -> Connection[Any]:
    """A connection to a store that stands at a version."""
    with address.translated():
        connection = address.connect()
        try:
            version = _version(connection.cursor(), address.name)
            if version == 0 and not create:
                raise store_errors.nothing_stored(address.name)
            if version != goal:
                _migrate(connection, address.name, goal)
        except BaseException:
            connection.close()
            raise
    return connection


def migrate_to(url: str, version: int) -> None:
    """Lead a store to a version, also back to an older one; what only the newer has is dropped."""
    schema_versions.check_goal("postgres", version)
    _opened(_Address(url), create=False, goal=version).close()


def open_store(url: str, *, create: bool = True) -> Store:
    """Open the store in a database, whose tables are made or migrated if need be."""
    address = _Address(url)
    connection = _opened(address, create=create, goal=schema_versions.newest("postgres"))
    return PostgresStore(address, connection)


class PostgresStore(StoreQueries):
    """A store in a database. It may be handed to another thread, but not used by two at once.

    What streams has a connection of its own, so that other methods may be called meanwhile.
    """

    mark = "%s"
    json_text = "::text"
    no_bytes = "''::bytea"
    tags = "ARRAY(SELECT tag FROM eval_tags WHERE eval_tags.run_id = eval_runs.run_id ORDER BY tag)"

    def __init__(self, address: _Address, connection: Connection[Any]) -> None:
        self.name = address.name
        self.url = address.url
        self._address = address
        self._connection = connection

    @contextmanager
    def _writing(self, run_id: str | None = None) -> Iterator[Cursor[Any]]:
        """One transaction, for a run that must be there if one is named, and that stays there."""
        with self._address.translated(), self._connection.transaction():
            cursor = self._connection.cursor()
            if run_id is not None:
                sql = "SELECT 1 FROM eval_runs WHERE run_id = %s FOR KEY SHARE"
                if cursor.execute(sql, (run_id,)).fetchone() is None:
                    raise store_errors.unknown_run(self.name, run_id)
            yield cursor

    def _copy(
        self, cursor: Cursor[Any], table: str, types: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        with cursor.copy(f"COPY {table} FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(types)
            for row in rows:
                copy.write_row(row)

    def _read(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        with self._address.translated():
            cursor = self._connection.cursor(binary=True)
            return cursor.execute(sql, parameters).fetchall()

    def _stream(self, sql: str, key: str) -> Iterator[Any]:
        with (
            self._address.translated(),
            closing(self._address.connect()) as own,
            own.transaction(),
            own.cursor("streaming", binary=True) as cursor,
        ):
            cursor.itersize = AT_ONCE
            yield from cursor.execute(sql, (key,))

    def begin(self, run: RunRecord) -> None:
        """Add a run as incomplete; `run-exists` if its id is taken."""
        with self._writing() as cursor:
            row = run_row(run)
            cursor.execute(
                f"INSERT INTO eval_runs ({RUN}, evidence)"
                f" VALUES ({', '.join(['%s'] * len(row))}) ON CONFLICT (run_id) DO NOTHING",
                row,
            )
            if not cursor.rowcount:
                raise store_errors.run_exists(self.name, run.run_id)

    @contextmanager
    def hold(self, run_id: str) -> Iterator[None]:
        """Hold a run while it is asked for and scored; `run-held` if another process holds it.

        The lock is one of the connection that writes: if that is lost, nothing is written either.
        """
        key = "%s, hashtext(current_schema() || '/' || %s)"
        if not self._read(f"SELECT pg_try_advisory_lock({key})", (HOLDING, run_id))[0][0]:
            raise store_errors.run_held(run_id)
        try:
            yield
        finally:
            with suppress(RagaugeError):  # a connection that is lost holds nothing
                self._read(f"SELECT pg_advisory_unlock({key})", (HOLDING, run_id))

    def _add(
        self,
        table: str,
        column: str,
        key: str,
        types: Sequence[str],
        rows: Iterable[Sequence[Any]],
    ) -> None:
        """Add rows under a key, which one process at a time may do; what is there stays."""
        with self._writing() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (ADDING, key))
            cursor.execute(f"SELECT 1 FROM {table} WHERE {column} = %s LIMIT 1", (key,))
            if cursor.fetchone() is None:
                self._copy(cursor, table, ("text", *types), ((key, *row) for row in rows))

    def add_gold(self, gold_key: str, rows: Iterable[GoldRow]) -> None:
        """Add a gold set under its key, all of it or nothing; one that is there stays as it is."""
        types = ("int8", "text", "int8", "text", "bytea")
        self._add("eval_gold_items", "gold_key", gold_key, types, rows)

    def add_chunks(self, digest: str, blocks: Iterable[bytes]) -> None:
        """Add a list of chunks under its digest, likewise."""
        self._add("eval_chunks", "digest", digest, ("int8", "bytea"), enumerate(blocks))

    def add_results(self, run_id: str, rows: Sequence[ResultRow]) -> None:
        """Add a batch of results; when it returns, they are safe on disk."""
        with self._writing(run_id) as cursor:
            self._put_results(cursor, run_id, rows)

    def replace_results(self, run_id: str, rows: Sequence[ResultRow]) -> None:
        """Put results in the place of those that have the same ordinals, all or none."""
        with self._writing(run_id) as cursor:
            self._drop_results(cursor, run_id, [row.facts.ordinal for row in rows])
            self._put_results(cursor, run_id, rows)

    def _drop_results(self, cursor: Cursor[Any], run_id: str, ordinals: Sequence[int]) -> None:
        sql = "DELETE FROM eval_query_results WHERE run_id = %s AND ordinal = ANY(%s)"
        cursor.execute(sql, (run_id, list(ordinals)))

    def _put_results(self, cursor: Cursor[Any], run_id: str, rows: Sequence[ResultRow]) -> None:
        table = f"eval_query_results (run_id, {FACTS}, result_json, metric_values)"
        whole = ((run_id, *facts, payload, values) for facts, payload, values in rows)
        self._copy(cursor, table, ("text", *FACT_TYPES, "bytea", "text"), whole)

    def set_values(self, run_id: str, values: Sequence[tuple[int, str | None]]) -> None:
        """Set what was measured of some results, each named by its ordinal."""
        with self._writing(run_id) as cursor:
            cursor.execute(
                "UPDATE eval_query_results AS result SET metric_values = given.measured"
                " FROM unnest(%s::int8[], %s::text[]) AS given (place, measured)"
                " WHERE result.run_id = %s AND result.ordinal = given.place",
                ([ordinal for ordinal, _ in values], [text for _, text in values], run_id),
            )

    def reopen(self, run_id: str, *, dropping: Sequence[int] = ()) -> None:
        """Make a run incomplete again: its scorings go, its results stay but for `dropping`."""
        with self._writing(run_id) as cursor:
            self._drop_results(cursor, run_id, dropping)
            cursor.execute("DELETE FROM eval_scorings WHERE run_id = %s", (run_id,))
            sql = f"UPDATE eval_runs SET {REOPENED}%s WHERE run_id = %s"
            cursor.execute(sql, (b"", run_id))

    def finish(
        self,
        run_id: str,
        *,
        results: int,
        evidence: bytes,
        scoring: Scoring,
        values: Iterable[ValueColumn],
    ) -> None:
        """Add the first scoring, fill in the rest of the run, and mark it complete."""
        with self._writing(run_id) as cursor:
            sql = "UPDATE eval_runs SET status = 'complete', results = %s, evidence = %s"
            cursor.execute(f"{sql} WHERE run_id = %s", (results, evidence, run_id))
            self._score(cursor, run_id, scoring, values)

    def add_scoring(self, run_id: str, scoring: Scoring, values: Iterable[ValueColumn]) -> None:
        """Add a further scoring, and make its aggregate that of the run."""
        with self._writing(run_id) as cursor:
            self._score(cursor, run_id, scoring, values)

    def _score(
        self, cursor: Cursor[Any], run_id: str, scoring: Scoring, values: Iterable[ValueColumn]
    ) -> None:
        cursor.execute(
            "INSERT INTO eval_scorings VALUES (%s, %s, %s, %s, %s, %s)",
            (
                run_id,
                scoring.number,
                scoring.created_at,
                scoring.ragauge_version,
                scoring.aggregate,
                scoring.questions,
            ),
        )
        rows = ((run_id, scoring.number, place, *value) for place, value in enumerate(values))
        types = ("text", "int4", "int4", "text", "int4", "bytea")
        self._copy(cursor, "eval_metric_values", types, rows)
        sql = "UPDATE eval_runs SET aggregate_json = %s WHERE run_id = %s"
        cursor.execute(sql, (scoring.aggregate, run_id))

    def tag(self, tag: str, run_id: str) -> None:
        """Let a tag name a run; it leaves the run that it named before."""
        with self._writing(run_id) as cursor:
            cursor.execute(
                "INSERT INTO eval_tags VALUES (%s, %s)"
                " ON CONFLICT (tag) DO UPDATE SET run_id = EXCLUDED.run_id",
                (tag, run_id),
            )

    def untag(self, tag: str) -> None:
        """Remove a tag, if it is there."""
        with self._writing() as cursor:
            cursor.execute("DELETE FROM eval_tags WHERE tag = %s", (tag,))

    def delete(self, run_id: str) -> None:
        """Remove a run with all that belongs to it, and gold sets and lists that no run needs."""
        with self._writing() as cursor:
            sql = "DELETE FROM eval_runs WHERE run_id = %s RETURNING gold_key, chunks"
            deleted = cursor.execute(sql, (run_id,)).fetchone()
            if deleted is None:
                raise store_errors.unknown_run(self.name, run_id)
            cursor.execute("DELETE FROM eval_query_results WHERE run_id = %s", (run_id,))
            for table, key, column, name in (
                ("eval_gold_items", "gold_key", "gold_key", deleted[0]),
                ("eval_chunks", "digest", "chunks", deleted[1]),
            ):
                # Who began a run and finds its gold set here must not see it vanish.
                cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (ADDING, name))
                cursor.execute(
                    f"DELETE FROM {table} WHERE {key} = %s"
                    f" AND NOT EXISTS (SELECT 1 FROM eval_runs WHERE {column} = %s)",
                    (name, name),
                )

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()


STORE = StoreKind(
    name="postgres",
    title="a PostgreSQL database",
    schemes=("postgresql", "postgres"),
    open=open_store,
)
