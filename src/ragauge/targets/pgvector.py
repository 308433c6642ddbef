"""The target `pgvector:postgresql://...?table=NAME`: a table of PostgreSQL that holds vectors."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from ragauge.files import redaction
from ragauge.files.connections import announce, postgres_hosts
from ragauge.model.embedder import Vectors
from ragauge.model.target import TargetError, TargetKind, TargetOptions
from ragauge.targets.shared.address import library, refused, split_address
from ragauge.targets.shared.foreign_hits import FIELD_NAMES, HitMaker, flat
from ragauge.targets.shared.vector_index import NAMES, NearestTarget, Vectoriser

OPERATORS = {"cosine": "<=>", "l2": "<->", "ip": "<#>"}
"""How pgvector compares; all of them are lower for what is nearer."""

_COLUMNS = """
SELECT attname, format_type(atttypid, NULL), atttypmod
FROM pg_attribute WHERE attrelid = %s::oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
_VECTORS = ("vector", "halfvec")
_ORDERED_BY = ("chunk_id", "id")


class PgvectorTarget(NearestTarget):
    """Asks a table for the rows whose vectors are nearest; every thread has its own connection."""

    def __init__(self, address: str, options: TargetOptions) -> None:
        names = (*FIELD_NAMES, *NAMES, "table", "vector", "metric")
        self.url, settings = split_address(address, options, names, keep_unknown=True)
        self.shown = redaction.without_password(self.url)
        self.psycopg = library("psycopg", "pgvector")
        self.sql = library("psycopg.sql", "pgvector")
        self.table = settings.needed("table", "pgvector:postgresql://USER@HOST/DB?table=chunks")
        self.metric = settings.one_of("metric", OPERATORS) or "cosine"
        self.k = options.k
        facts = {"database": self.shown, "table": self.table, "metric": self.metric, "k": self.k}
        self.facts = facts
        self.timeout = options.timeout
        self.hits = HitMaker(settings, options)
        self.local = threading.local()
        self.open: list[Any] = []
        self.lock = threading.Lock()
        try:
            self._describe_table(settings.text("vector"), settings.text("id"))
            self.vectoriser = Vectoriser(settings, options)
        except BaseException:
            self._disconnect()
            raise
        try:
            if self.size is not None:
                self.vectoriser.refuse_other_length(self.table, self.size)
        except BaseException:
            self.close()
            raise

    def _connection(self) -> Any:
        """The connection of this thread, on which nothing can be written."""
        connection = getattr(self.local, "connection", None)
        if connection is None or connection.closed:
            parameters = library("psycopg.conninfo", "pgvector").conninfo_to_dict(self.url)
            for host, port in postgres_hosts(parameters):
                announce(host, port)
            connection = self.psycopg.connect(
                self.url,
                autocommit=True,
                connect_timeout=max(2, int(self.timeout)),
                application_name="ragauge",
            )
            self.local.connection = connection
            with self.lock:
                self.open.append(connection)
            # The table is the user's own: nothing that we run may change it.
            connection.execute("SET default_transaction_read_only = on")
            connection.execute(f"SET statement_timeout = {max(1, int(self.timeout * 1000))}")
        return connection

    def _describe_table(self, vector: str | None, name: str | None) -> None:
        """Find the table and its columns, and build the query."""
        try:
            connection = self._connection()
            table = connection.execute(
                "SELECT to_regclass(%s)::oid", [self._table().as_string(None)]
            ).fetchone()
            columns = [] if table[0] is None else connection.execute(_COLUMNS, table).fetchall()
        except self.psycopg.Error as error:
            raise refused(
                f"{self.shown} cannot be asked: {self._server_message(error)}", "check the URL"
            ) from error
        if not columns:
            raise refused(f"{self.shown} has no table `{self.table}`", "check the name")
        vectors = {
            column: (kind, size) for column, kind, size in columns if kind.endswith(_VECTORS)
        }
        if vector is None and len(vectors) == 1:
            vector = next(iter(vectors))
        if vector is None or vector not in vectors:
            raise refused(
                f"`{self.table}` has the vectors {', '.join(vectors) or 'none'}",
                "say which column holds them with --option vector=COLUMN",
            )
        kind, size = vectors[vector]
        self.size = size if size > 0 else None  # a column may take vectors of any length
        self.columns = [column for column, _, _ in columns if column not in vectors]
        self.query = self._query(vector, kind, name)

    def _table(self) -> Any:
        return self.sql.Identifier(*self.table.split("."))

    def _query(self, vector: str, kind: str, name: str | None) -> Any:
        """The k nearest rows; those that are equally near by id, where there is one."""
        identifier = self.sql.Identifier
        ties = (
            [name]
            if name in self.columns
            else [column for column in _ORDERED_BY if column in self.columns][:1]
        )
        return self.sql.SQL(
            "SELECT {columns}, {vector} {operator} %s::{kind} AS distance FROM {table} "
            "WHERE {vector} IS NOT NULL ORDER BY {order} LIMIT %s"
        ).format(
            columns=self.sql.SQL(", ").join(identifier(column) for column in self.columns),
            vector=identifier(vector),
            kind=self.sql.SQL(kind),
            operator=self.sql.SQL(OPERATORS[self.metric]),
            table=self._table(),
            order=self.sql.SQL(", ").join(
                [self.sql.SQL("distance"), *(identifier(column) for column in ties)]
            ),
        )

    def nearest(self, vector: Vectors) -> Iterable[dict[str, Any]]:
        """The nearest rows."""
        # As text, so that the package pgvector for Python is not needed.
        vector_text = "[" + ",".join(repr(float(number)) for number in vector) + "]"
        try:
            rows = self._connection().execute(self.query, [vector_text, self.k]).fetchall()
        except self.psycopg.Error as error:
            passing = isinstance(error, self.psycopg.OperationalError)
            raise TargetError(self._server_message(error), transient=passing) from error
        for row in rows:
            distance = float(row[-1])
            score = 1.0 - distance if self.metric == "cosine" else -distance
            fields = flat(dict(zip(self.columns, row, strict=False)))
            yield self.hits.hit(fields, score=round(score, 6))

    def _server_message(self, error: Exception) -> str:
        """What the server said, on one line; the driver may repeat the URL in it."""
        primary = getattr(getattr(error, "diag", None), "message_primary", None)
        message = " ".join((primary or str(error)).split())
        return message.replace(self.url, self.shown)

    def _disconnect(self) -> None:
        with self.lock:
            for connection in self.open:
                with suppress(self.psycopg.Error):
                    connection.close()
            self.open.clear()

    def close(self) -> None:
        """Close the connections and the cache of vectors."""
        self._disconnect()
        self.vectoriser.close()


TARGET = TargetKind(
    name="pgvector",
    title="a table of PostgreSQL with vectors: pgvector:postgresql://HOST/DB?table=NAME",
    schemes=("pgvector",),
    open=PgvectorTarget,
)
