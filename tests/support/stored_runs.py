"""Stored runs for tests: a store in the current folder, and runs put into it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ragauge.model.run import Store
from ragauge.scoring import score
from ragauge.scoring.inputs import ScoredRun
from ragauge.scoring.tasks.pack import SerialisedRows
from ragauge.store import runs as run_store
from tests.support.command import GOLD, TRACES, Row, lines_of

URL = "sqlite:///ragauge.db"

# A2 should be refused, and here it is answered.
WRONG: list[Row] = [
    TRACES[0],
    {**TRACES[1], "answer_json": {"claim": "Z is a city.", "citations": ["p1#1"]}},
    TRACES[2],
]
MORE_GOLD: list[Row] = [
    *GOLD,
    {"qid": "A4", "question": "?", "answerable": True, "gold_citations": ["q#1"]},
]


def put(
    store: Store,
    run_id: str,
    traces: Sequence[Row] = TRACES,
    *,
    gold: Sequence[Row] = GOLD,
    day: int = 1,
    profile: str | None = None,
    chunks: Path | None = None,
    on_bad_line: Any = "stop",
    **wanted: Any,
) -> None:
    """Score traces and store the run, as `score --store` does."""
    Path("gold.jsonl").write_bytes(lines_of(gold))
    Path("trace.jsonl").write_bytes(lines_of(traces))
    told = run_store.RunDescription(
        run_id=run_id, created_at=f"2026-01-{day:02}T00:00:00Z", **wanted
    )
    score.score(
        "gold.jsonl", "trace.jsonl", profile=profile, chunks=chunks, on_bad_line=on_bad_line,
        keep=lambda kept: _keep(store, kept, told),
    )  # fmt: skip


def _keep(store: Store, kept: ScoredRun, told: run_store.RunDescription) -> None:
    run_store.store_run(store, kept, told)


class StoppedError(Exception):
    """Storing was stopped."""


def put_half(store: Store, run_id: str, *, day: int = 1) -> None:
    """Store a run up to its results, and stop there."""
    Path("gold.jsonl").write_bytes(lines_of(GOLD))
    Path("trace.jsonl").write_bytes(lines_of(TRACES))
    told = run_store.RunDescription(run_id=run_id, created_at=f"2026-01-{day:02}T00:00:00Z")

    def rows(kept: ScoredRun) -> Iterator[SerialisedRows]:
        yield next(iter(kept.rows))
        raise StoppedError

    def keep(kept: ScoredRun) -> None:
        _keep(store, msgspec.structs.replace(kept, rows=rows(kept)), told)

    try:
        score.score("gold.jsonl", "trace.jsonl", keep=keep)
    except StoppedError:
        return
    raise AssertionError("it was not stopped")


def change(sql: str, *values: object, file: str = "ragauge.db") -> None:
    """Change something behind the back of a store."""
    connection = sqlite3.connect(file)
    with connection:
        assert connection.execute(sql, values).rowcount > 0
    connection.close()
