"""Queries: the SQL that all databases share, as `StoreQueries.runs` for `ragauge runs list`.

Rows become the frozen nouns of `model.run` here. What writes is in `sqlite` and `postgres`.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from ragauge.model.run import (
    GoldRow,
    ResultFacts,
    ResultRow,
    RunRecord,
    Scoring,
    ValueColumn,
)

RUN_COLUMNS = (
    "run_id", "suite", "profile", "created_at", "commit_hash", "gold_hash", "gold_key", "chunks",
    "config_snapshot_json", "aggregate_json", "status", "schema_version", "results",
)  # fmt: skip
"""The columns of a run in the order of its fields, up to `evidence` and `tags`."""

REOPENED = "status = 'incomplete', results = 0, aggregate_json = '{}', evidence = "
"""What a run that is incomplete again has; the empty evidence follows."""

FACTS = ", ".join(ResultFacts._fields)
RUN = ", ".join(RUN_COLUMNS)
STORED = """CASE status WHEN 'complete' THEN results ELSE
    (SELECT count(*) FROM eval_query_results WHERE eval_query_results.run_id = eval_runs.run_id)
    END"""
"""How many results a run has; the column is filled in when it is finished."""


class StoreQueries(ABC):
    """The reading half of a store. A database says how it reads, and what it words differently.

    mark       stands for a parameter
    json_text  makes text of a JSON column; the driver would parse it
    no_bytes   is an empty value of bytes
    tags       selects the tags of a run, as a JSON list or as a list
    """

    mark = "?"
    json_text = ""
    no_bytes = "x''"
    tags = """(SELECT json_group_array(tag) FROM
        (SELECT tag FROM eval_tags WHERE eval_tags.run_id = eval_runs.run_id ORDER BY tag))"""

    @abstractmethod
    def _read(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        """All rows of a query that has few."""

    @abstractmethod
    def _stream(self, sql: str, key: str) -> Iterator[Any]:
        """The rows of a query that may have many, one by one."""

    def _runs(self, evidence: str, clauses: str, *parameters: object) -> list[RunRecord]:
        columns = RUN.replace("_json", f"_json{self.json_text}").replace("results", STORED)
        sql = f"SELECT {columns}, {evidence}, {self.tags} FROM eval_runs {clauses}"
        return [
            _run_record(row[:-1], json.loads(row[-1]) if isinstance(row[-1], str) else row[-1])
            for row in self._read(sql, parameters)
        ]

    def runs(self, *, suite: str | None = None) -> list[RunRecord]:
        """All runs, the oldest first, with their tags and without their evidence: `runs list`.

        Evidence is most of a row, and a list of runs shows none of it.
        """
        order = "ORDER BY created_at, run_id"
        if suite is None:
            return self._runs(self.no_bytes, order)
        return self._runs(self.no_bytes, f"WHERE suite = {self.mark} {order}", suite)

    def run(self, run_id: str) -> RunRecord | None:
        """One run with its evidence and tags; None if there is none of that id."""
        runs = self._runs("evidence", f"WHERE run_id = {self.mark}", run_id)
        return runs[0] if runs else None

    def gold(self, gold_key: str) -> Iterator[GoldRow]:
        """The items of a stored gold set, in their order."""
        sql = (
            "SELECT ordinal, query_id, turn, item_hash, item_json FROM eval_gold_items"
            f" WHERE gold_key = {self.mark} ORDER BY ordinal"
        )
        return map(GoldRow._make, self._stream(sql, gold_key))

    def chunks(self, digest: str) -> Iterator[bytes]:
        """The blocks of a stored list of chunks, in their order."""
        sql = f"SELECT payload FROM eval_chunks WHERE digest = {self.mark} ORDER BY ordinal"
        return (row[0] for row in self._stream(sql, digest))

    def facts(self, run_id: str) -> Iterator[ResultFacts]:
        """The narrow part of all results, by ordinal; streams."""
        sql = f"SELECT {FACTS} FROM eval_query_results WHERE run_id = {self.mark} ORDER BY ordinal"
        return map(ResultFacts._make, self._stream(sql, run_id))

    def outcomes(self, run_id: str) -> Iterator[tuple[int, str]]:
        """The ordinals and outcomes of all results and nothing else, by ordinal; streams."""
        sql = f"SELECT ordinal, outcome FROM eval_query_results WHERE run_id = {self.mark}"
        return self._stream(f"{sql} ORDER BY ordinal", run_id)

    def carried(self, run_id: str) -> Iterator[tuple[str, int | None, int]]:
        """Question, turn and what the hits carry, of all results without an error; streams."""
        sql = f"SELECT query_id, turn, carries FROM eval_query_results WHERE run_id = {self.mark}"
        return self._stream(f"{sql} AND outcome = 'ok' ORDER BY ordinal", run_id)

    def payloads(self, run_id: str) -> Iterator[tuple[int, bytes]]:
        """The ordinals and payloads of all results and nothing else, by ordinal; streams."""
        sql = f"SELECT ordinal, result_json FROM eval_query_results WHERE run_id = {self.mark}"
        return self._stream(f"{sql} ORDER BY ordinal", run_id)

    def results(self, run_id: str, *, values: bool = False) -> Iterator[ResultRow]:
        """All results, by ordinal, with their values if asked for.

        It streams, so that memory does not grow with the run.
        """
        measured = "metric_values" if values else "NULL"
        rows = self._stream(
            f"SELECT result_json, {measured}, {FACTS} FROM eval_query_results"
            f" WHERE run_id = {self.mark} ORDER BY ordinal",
            run_id,
        )
        return (ResultRow(ResultFacts._make(row[2:]), row[0], row[1]) for row in rows)

    def scorings(self, run_id: str) -> list[Scoring]:
        """All scorings of a run, the first one first."""
        rows = self._read(
            f"SELECT number, created_at, ragauge_version, aggregate_json{self.json_text}, questions"
            f" FROM eval_scorings WHERE run_id = {self.mark} ORDER BY number",
            (run_id,),
        )
        return [_scoring(row) for row in rows]

    def values(
        self, run_id: str, number: int, metrics: Sequence[str] | None = None
    ) -> list[ValueColumn]:
        """The values of one scoring, in the order they were added; of some metrics if named."""
        rows = self._read(
            "SELECT metric, version, payload FROM eval_metric_values"
            f" WHERE run_id = {self.mark} AND number = {self.mark} ORDER BY position",
            (run_id, number),
        )
        columns = [ValueColumn._make(row) for row in rows]
        if metrics is None:
            return columns
        return [column for column in columns if column.metric in metrics]


def run_row(run: RunRecord) -> list[object]:
    """What `RUN_COLUMNS` and `evidence` hold for a run that begins."""
    begun = replace(run, status="incomplete")
    return [getattr(begun, field) for field in RunRecord.__struct_fields__[:-1]]


def _run_record(row: Sequence[Any], tags: Iterable[str]) -> RunRecord:
    """Build a run from a row that has its fields in their order, and its tags."""
    fields = zip(RunRecord.__struct_fields__, (*row, tuple(tags)), strict=True)
    return RunRecord(**dict(fields))


def _scoring(row: Sequence[Any]) -> Scoring:
    """Build a scoring from a row that has its fields in their order."""
    return Scoring(**dict(zip(Scoring.__struct_fields__, row, strict=True)))
