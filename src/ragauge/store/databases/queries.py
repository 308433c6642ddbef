"""Queries: the SQL that all databases share, as `StoreQueries.runs` for `ragauge runs list`.

Rows become the frozen nouns of `model.run` here. How a database connects, begins a transaction
and takes many rows at once is in `sqlite` and `postgres`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from msgspec.structs import astuple, replace

from ragauge.model.run import GoldRow, ResultFacts, ResultRow, RunRecord, Scoring, ValueColumn
from ragauge.store.databases import store_errors

Execute = Callable[[str, Sequence[object]], Any]
"""Runs one statement in a transaction, and returns its cursor."""

RUN_COLUMNS = (
    "run_id", "suite", "profile", "created_at", "commit_hash", "gold_hash", "gold_key", "chunks",
    "config_snapshot_json", "aggregate_json", "status", "schema_version", "results", "branch",
    "author", "dirty",
)  # fmt: skip
"""The columns of a run in the order of its fields, up to `evidence` and `tags`."""

TABLES = (
    "eval_runs", "eval_query_results", "eval_gold_items", "eval_chunks", "eval_tags",
    "eval_scorings", "eval_metric_values", "eval_decisions", "eval_live_minutes",
    "eval_live_windows", "live_traces", "live_counts", "live_tokens", "live_sessions",
    "live_alerts", "live_alert_events", "live_outbox", "live_pairs", "live_gold_candidates",
    "live_keys", "live_actions", "live_marks", "live_gold", "live_deletions", "live_metric_hours",
)  # fmt: skip

FACTS = ", ".join(ResultFacts._fields)
RUN = ", ".join(RUN_COLUMNS)
STORED = """CASE status WHEN 'complete' THEN results ELSE
    (SELECT count(*) FROM eval_query_results WHERE eval_query_results.run_id = eval_runs.run_id)
    END"""
"""How many results a run has; the column is filled in when it is finished."""


SCORING = "number, created_at, ragauge_version, aggregate_json, questions, slices"
"""The columns of a scoring in the order of its fields."""

RESULT = f"eval_query_results (run_id, {FACTS}, result_json, metric_values)"
FACT_TYPES = ("int8", "text", "int8", "text", "int8", "int8", "int8", "text", "float8", "float8")


class StoreQueries(ABC):
    """A store but for its connection. A database says how it runs SQL, and what it words otherwise.

    Parameters are marked by `?` in all SQL here.

    json_text  makes text of a JSON column; the driver would parse it
    no_bytes   is an empty value of bytes
    row_lock   keeps a row that was selected from being deleted
    key_lock   holds a key to the end of the transaction; empty where that locks the whole store
    tags       selects the tags of a run, as a JSON list or as a list
    """

    name: str
    json_text = ""
    no_bytes = "x''"
    row_lock = key_lock = ""
    tags = """(SELECT json_group_array(tag) FROM
        (SELECT tag FROM eval_tags WHERE eval_tags.run_id = eval_runs.run_id ORDER BY tag))"""

    @abstractmethod
    def _read(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        """All rows of a query that has few."""

    @abstractmethod
    def _stream(self, sql: str, key: str) -> Iterator[Any]:
        """The rows of a query that may have many, one by one."""

    @abstractmethod
    def _transaction(self, *, durable: bool) -> AbstractContextManager[Execute]:
        """One transaction that writes; a `durable` one outlives a power cut, with all before it."""

    @abstractmethod
    def _insert(self, table: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert many rows, within a transaction; `types` are those of their columns."""

    @abstractmethod
    def _execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each row of parameters, within a transaction."""

    def read(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        """All rows of a query on the tables of live traffic, whose SQL is in `live`."""
        return self._read(sql, parameters)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        """One durable transaction on those tables."""
        with self._transaction(durable=True) as execute:
            yield execute

    def execute_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each row, within such a transaction."""
        self._execute_many(sql, rows)

    def _lock_key(self, execute: Execute, key: str | None) -> None:
        """Let no other process add or delete what has a key."""
        if self.key_lock:
            execute(self.key_lock, (key,))

    # --- reading ---

    def _runs(self, evidence: str, clauses: str, *parameters: object) -> list[RunRecord]:
        columns = RUN.replace("_json", f"_json{self.json_text}").replace("results", STORED)
        sql = f"SELECT {columns}, {evidence}, {self.tags} FROM eval_runs {clauses}"
        runs = []
        for *fields, tags in self._read(sql, parameters):
            names = json.loads(tags) if isinstance(tags, str) else tags
            values = zip(RunRecord.__struct_fields__, (*fields, tuple(names)), strict=True)
            run = RunRecord(**dict(values))
            # SQLite has no booleans: there it is 0 or 1.
            dirty = None if run.dirty is None else bool(run.dirty)
            runs.append(replace(run, dirty=dirty))
        return runs

    def runs(self, *, suite: str | None = None) -> list[RunRecord]:
        """All runs, the oldest first, with their tags and without their evidence: `runs list`.

        Evidence is most of a row, and a list of runs shows none of it.
        """
        order = "ORDER BY created_at, run_id"
        if suite is None:
            return self._runs(self.no_bytes, order)
        return self._runs(self.no_bytes, f"WHERE suite = ? {order}", suite)

    def run(self, run_id: str) -> RunRecord | None:
        """One run with its evidence and tags; None if there is none of that id."""
        runs = self._runs("evidence", "WHERE run_id = ?", run_id)
        return runs[0] if runs else None

    def gold(self, gold_key: str) -> Iterator[GoldRow]:
        """The items of a stored gold set, in their order."""
        sql = (
            "SELECT ordinal, query_id, turn, item_hash, item_json FROM eval_gold_items"
            " WHERE gold_key = ? ORDER BY ordinal"
        )
        return map(GoldRow._make, self._stream(sql, gold_key))

    def chunks(self, digest: str) -> Iterator[bytes]:
        """The blocks of a stored list of chunks, in their order."""
        sql = "SELECT payload FROM eval_chunks WHERE digest = ? ORDER BY ordinal"
        return (row[0] for row in self._stream(sql, digest))

    def facts(self, run_id: str) -> Iterator[ResultFacts]:
        """The narrow part of all results, by ordinal; streams."""
        sql = f"SELECT {FACTS} FROM eval_query_results WHERE run_id = ? ORDER BY ordinal"
        return map(ResultFacts._make, self._stream(sql, run_id))

    def outcomes(self, run_id: str) -> Iterator[tuple[int, str]]:
        """The ordinals and outcomes of all results and nothing else, by ordinal; streams."""
        sql = "SELECT ordinal, outcome FROM eval_query_results WHERE run_id = ? ORDER BY ordinal"
        return self._stream(sql, run_id)

    def carried(self, run_id: str) -> Iterator[tuple[str, int | None, int]]:
        """Question, turn and what the hits carry, of all results without an error; streams."""
        sql = "SELECT query_id, turn, carries FROM eval_query_results WHERE run_id = ?"
        return self._stream(f"{sql} AND outcome = 'ok' ORDER BY ordinal", run_id)

    def payloads(self, run_id: str) -> Iterator[tuple[int, bytes]]:
        """The ordinals and payloads of all results and nothing else, by ordinal; streams."""
        sql = "SELECT ordinal, result_json FROM eval_query_results WHERE run_id = ?"
        return self._stream(f"{sql} ORDER BY ordinal", run_id)

    def results(self, run_id: str, *, values: bool = False) -> Iterator[ResultRow]:
        """All results, by ordinal, with their values if asked for.

        It streams, so that memory does not grow with the run.
        """
        measured = "metric_values" if values else "NULL"
        rows = self._stream(
            f"SELECT result_json, {measured}, {FACTS} FROM eval_query_results"
            " WHERE run_id = ? ORDER BY ordinal",
            run_id,
        )
        return (ResultRow(ResultFacts._make(row[2:]), row[0], row[1]) for row in rows)

    def scorings(self, run_id: str) -> list[Scoring]:
        """All scorings of a run, the first one first."""
        rows = self._read(
            f"SELECT {SCORING.replace('_json', f'_json{self.json_text}')} FROM eval_scorings"
            " WHERE run_id = ? ORDER BY number",
            (run_id,),
        )
        return [Scoring(**dict(zip(Scoring.__struct_fields__, row, strict=True))) for row in rows]

    def values(
        self, run_id: str, number: int, metrics: Sequence[str] | None = None
    ) -> list[ValueColumn]:
        """The values of one scoring, in the order they were added; of some metrics if named."""
        rows = self._read(
            "SELECT metric, version, payload FROM eval_metric_values"
            " WHERE run_id = ? AND number = ? ORDER BY position",
            (run_id, number),
        )
        columns = [ValueColumn._make(row) for row in rows]
        if metrics is None:
            return columns
        return [column for column in columns if column.metric in metrics]

    # --- writing ---

    @contextmanager
    def _writing(self, run_id: str | None = None, *, durable: bool = False) -> Iterator[Execute]:
        """One transaction, for a run that must be there if one is named, and that stays there."""
        with self._transaction(durable=durable) as execute:
            if run_id is not None:
                sql = f"SELECT 1 FROM eval_runs WHERE run_id = ?{self.row_lock}"
                if execute(sql, (run_id,)).fetchone() is None:
                    raise store_errors.unknown_run(self.name, run_id)
            yield execute

    def begin(
        self, run: RunRecord, *, gold: Iterable[GoldRow] = (), chunks: Iterable[bytes] = ()
    ) -> None:
        """Add a run as incomplete, with its gold set and chunks; `run-exists` if its id is taken.

        All of it or nothing: a run without its gold set would be resumed as one that asks nothing.
        """
        row = astuple(replace(run, status="incomplete"))[:-1]  # tags have a table of their own
        sql = f"INSERT INTO eval_runs ({RUN}, evidence) VALUES ({', '.join('?' * len(row))})"
        with self._writing() as execute:
            if not execute(f"{sql} ON CONFLICT (run_id) DO NOTHING", row).rowcount:
                raise store_errors.run_exists(self.name, run.run_id)
            self._add_gold(execute, run.gold_key, gold)
            if run.chunks is not None:
                self._add_chunks(execute, run.chunks, chunks)

    def add_gold(self, gold_key: str, rows: Iterable[GoldRow]) -> None:
        """Add a gold set under its key, all of it or nothing; one that is there stays as it is."""
        with self._writing() as execute:
            self._add_gold(execute, gold_key, rows)

    def add_chunks(self, digest: str, blocks: Iterable[bytes]) -> None:
        """Add a list of chunks under its digest, likewise."""
        with self._writing() as execute:
            self._add_chunks(execute, digest, blocks)

    def _add_gold(self, execute: Execute, gold_key: str, rows: Iterable[GoldRow]) -> None:
        types = ("int8", "text", "int8", "text", "bytea")
        self._add(execute, "eval_gold_items", "gold_key", gold_key, types, rows)

    def _add_chunks(self, execute: Execute, digest: str, blocks: Iterable[bytes]) -> None:
        types = ("int8", "bytea")
        self._add(execute, "eval_chunks", "digest", digest, types, enumerate(blocks))

    def _add(
        self,
        execute: Execute,
        table: str,
        column: str,
        key: str,
        types: Sequence[str],
        rows: Iterable[Sequence[Any]],
    ) -> None:
        self._lock_key(execute, key)
        there = execute(f"SELECT 1 FROM {table} WHERE {column} = ? LIMIT 1", (key,)).fetchone()
        if there is None:
            self._insert(table, ("text", *types), ((key, *row) for row in rows))

    def add_results(self, run_id: str, rows: Sequence[ResultRow]) -> None:
        """Add a batch of results; when it returns, the end of the process cannot undo it."""
        with self._writing(run_id):
            self._add_results(run_id, rows)

    def replace_results(self, run_id: str, rows: Sequence[ResultRow]) -> None:
        """Put results in the place of those that have the same ordinals, all or none."""
        with self._writing(run_id):
            self._drop_results(run_id, [row.facts.ordinal for row in rows])
            self._add_results(run_id, rows)

    def _add_results(self, run_id: str, rows: Sequence[ResultRow]) -> None:
        whole = ((run_id, *facts, payload, values) for facts, payload, values in rows)
        self._insert(RESULT, ("text", *FACT_TYPES, "bytea", "text"), whole)

    def _drop_results(self, run_id: str, ordinals: Iterable[int]) -> None:
        sql = "DELETE FROM eval_query_results WHERE run_id = ? AND ordinal = ?"
        self._execute_many(sql, ((run_id, ordinal) for ordinal in ordinals))

    def set_values(self, run_id: str, values: Sequence[tuple[int, str | None]]) -> None:
        """Set what was measured of some results, each named by its ordinal."""
        sql = "UPDATE eval_query_results SET metric_values = ? WHERE run_id = ? AND ordinal = ?"
        with self._writing(run_id):
            self._execute_many(sql, ((text, run_id, ordinal) for ordinal, text in values))

    def reopen(self, run_id: str, *, dropping: Sequence[int] = ()) -> None:
        """Make a run incomplete again: its scorings go, its results stay but for `dropping`."""
        fields = "status = 'incomplete', results = 0, aggregate_json = '{}', evidence = ?"
        with self._writing(run_id, durable=True) as execute:
            self._drop_results(run_id, dropping)
            execute("DELETE FROM eval_scorings WHERE run_id = ?", (run_id,))
            execute(f"UPDATE eval_runs SET {fields} WHERE run_id = ?", (b"", run_id))

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
        fields = "status = 'complete', results = ?, evidence = ?"
        with self._writing(run_id, durable=True) as execute:
            sql = f"UPDATE eval_runs SET {fields} WHERE run_id = ?"
            execute(sql, (results, evidence, run_id))
            self._score(execute, run_id, scoring, values)

    def add_scoring(self, run_id: str, scoring: Scoring, values: Iterable[ValueColumn]) -> None:
        """Add a further scoring, and make its aggregate that of the run."""
        with self._writing(run_id, durable=True) as execute:
            self._score(execute, run_id, scoring, values)

    def _score(
        self, execute: Execute, run_id: str, scoring: Scoring, values: Iterable[ValueColumn]
    ) -> None:
        row = (run_id, *astuple(scoring))
        marks = ", ".join("?" * len(row))
        execute(f"INSERT INTO eval_scorings (run_id, {SCORING}) VALUES ({marks})", row)
        rows = ((run_id, scoring.number, place, *value) for place, value in enumerate(values))
        types = ("text", "int4", "int4", "text", "int4", "bytea")
        self._insert("eval_metric_values", types, rows)
        sql = "UPDATE eval_runs SET aggregate_json = ? WHERE run_id = ?"
        execute(sql, (scoring.aggregate, run_id))

    def tag(self, tag: str, run_id: str) -> None:
        """Let a tag name a run; it leaves the run that it named before."""
        sql = "INSERT INTO eval_tags VALUES (?, ?) ON CONFLICT (tag)"
        with self._writing(run_id, durable=True) as execute:
            execute(f"{sql} DO UPDATE SET run_id = EXCLUDED.run_id", (tag, run_id))

    def untag(self, tag: str) -> None:
        """Remove a tag, if it is there."""
        with self._writing(durable=True) as execute:
            execute("DELETE FROM eval_tags WHERE tag = ?", (tag,))

    def delete(self, run_id: str) -> None:
        """Remove a run with all that belongs to it, and gold sets and lists that no run needs."""
        with self._writing(durable=True) as execute:
            sql = "DELETE FROM eval_runs WHERE run_id = ? RETURNING gold_key, chunks"
            deleted = execute(sql, (run_id,)).fetchall()
            if not deleted:
                raise store_errors.unknown_run(self.name, run_id)
            execute("DELETE FROM eval_query_results WHERE run_id = ?", (run_id,))
            ((gold_key, chunks),) = deleted
            for table, key, column, name in (
                ("eval_gold_items", "gold_key", "gold_key", gold_key),
                ("eval_chunks", "digest", "chunks", chunks),
            ):
                # Who began a run and finds its gold set here must not see it vanish.
                self._lock_key(execute, name)
                execute(
                    f"DELETE FROM {table} WHERE {key} = ?"
                    f" AND NOT EXISTS (SELECT 1 FROM eval_runs WHERE {column} = ?)",
                    (name, name),
                )
