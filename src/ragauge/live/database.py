"""The database behind the live monitor: the store, opened for tables that only `live` knows.

SQL has `?` for a parameter, no `%`, and only what SQLite and PostgreSQL both understand. A
database is used by one thread at a time; each thread opens its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Protocol, cast

from ragauge import registry
from ragauge.errors import RagaugeError

DEFAULT_URL = "sqlite:///ragauge-live.db"
"""The store of a live monitor where nothing names another."""

Execute = Callable[[str, Sequence[object]], Any]


class LiveDatabase(Protocol):
    """What the parts of `live` need of a store."""

    name: str
    url: str

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        """All rows of a query."""

    def transaction(self) -> AbstractContextManager[Execute]:
        """One durable transaction; what is yielded runs a statement and returns its cursor."""

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each row, within a transaction."""

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """Hold a name that one process at a time may hold; `run-held` if another one does."""

    def close(self) -> None:
        """Close the connection."""


class SteadyDatabase:
    """A database that is opened again where it was away: a server may run for months.

    What was being done fails all the same; whoever tries again has a new connection.
    """

    def __init__(self, url: str) -> None:
        self._opened: LiveDatabase | None = open_database(url)
        self.url, self.name = self._opened.url, self._opened.name

    @contextmanager
    def _connected(self) -> Iterator[LiveDatabase]:
        if self._opened is None:
            self._opened = open_database(self.url, create=False)
        try:
            yield self._opened
        except RagaugeError as error:
            if error.code == "store-unavailable":
                self.close()
            raise

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        """All rows of a query."""
        with self._connected() as database:
            return database.read(sql, parameters)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """One durable transaction."""
        with self._connected() as database, database.transaction() as execute:
            yield execute

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each row, within a transaction."""
        with self._connected() as database:
            database.execute_many(sql, rows)

    @contextmanager
    def hold(self, run_id: str) -> Iterator[None]:
        """Hold a name that one process at a time may hold."""
        with self._connected() as database, database.hold(run_id):
            yield

    def close(self) -> None:
        """Close the connection; the next use opens another one."""
        opened, self._opened = self._opened, None
        if opened is not None:
            with suppress(RagaugeError):
                opened.close()


def open_database(url: str, *, create: bool = True) -> LiveDatabase:
    """Open a store by its URL; its tables are made or migrated if need be."""
    kind = registry.stores().get(url.partition("://")[0])
    if kind is None:
        hint = "sqlite:///FILE or postgresql://HOST/NAME"
        raise RagaugeError.of("bad-store-url", "no kind of store has such a URL", hint=hint)
    return cast(LiveDatabase, kind.open(url, create=create))
