"""Stores of older versions for tests: rows that an older ragauge wrote, in either database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from ragauge.store.databases import migration_steps

_DUMP = Path(__file__).with_name("store_v3.sql")
_TABLES = ("eval_runs", "eval_gold_items", "eval_chunks", "eval_query_results",
                   "eval_scorings", "eval_metric_values", "eval_tags")  # fmt: skip


def make_store_v3(url: str) -> None:
    """Make the store of version 3 behind a URL where there is none."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            connection.executescript(_DUMP.read_text("utf-8"))
            connection.execute("PRAGMA journal_mode = WAL")
        return
    import psycopg

    with closing(sqlite3.connect(":memory:")) as source, psycopg.connect(url) as target:
        source.executescript(_DUMP.read_text("utf-8"))
        for migration in migration_steps.migrations("postgres")[:3]:
            for statement in migration.up:
                assert isinstance(statement, str)
                target.execute(statement)
        target.execute("CREATE TABLE eval_schema (version INTEGER NOT NULL)")
        target.execute("INSERT INTO eval_schema VALUES (3)")
        for table in _TABLES:
            cursor = source.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            marks = ", ".join(["%s"] * len(names))
            insert = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})"
            target.cursor().executemany(insert, cursor.fetchall())


def rows_of_v3(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All that the tables of a store hold in the columns of version 3; JSON as text."""
    with closing(sqlite3.connect(":memory:")) as dump:
        dump.executescript(_DUMP.read_text("utf-8"))
        columns = {
            table: [row[1] for row in dump.execute(f"PRAGMA table_info({table})")]
            for table in _TABLES
        }
    rows = {}
    for table, names in columns.items():
        listed = ", ".join(
            f"CAST({name} AS TEXT)" if name in ("aggregate_json", "config_snapshot_json") else name
            for name in names
        )
        rows[table] = sorted(_read(url, f"SELECT {listed} FROM {table}"), key=repr)
    return rows


def _read(url: str, sql: str) -> list[tuple[Any, ...]]:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            return connection.execute(sql).fetchall()
    import psycopg

    with psycopg.connect(url) as connection:
        return connection.execute(sql).fetchall()
