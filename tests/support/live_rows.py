"""Rows of the live tables as tests and benchmarks need them: windows, traces, alerts, pairs."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from ragauge.live.database import LiveDatabase

NOW = 1_790_000_040_000  # 2026-09-21T13:34:00Z
MINUTE = 60_000


def time_text(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def metric(value: float | None, n: int = 200, half: float | None = 0.02) -> dict[str, Any]:
    """A metric of an aggregate, with an interval of `half` to each side."""
    bounds = None if value is None or half is None else [value - half, value + half]
    return {"value": value, "n": n, "interval": bounds, "version": 1}


def window_row(
    ends: int,
    metrics: dict[str, Any],
    *,
    tenant: str = "",
    app: str = "shop",
    build: str = "",
    index_hash: str = "",
    question_type: str = "",
    state: str = "closed",
    samples: int = 200,
    minutes: int = 5,
    rate: float = 1.0,
) -> tuple[object, ...]:
    return (
        tenant, app, build, index_hash, question_type, time_text(ends - minutes * MINUTE),
        time_text(ends), state, samples, rate, "0.0.0",
        json.dumps({"metrics": metrics, "counts": {}, "gold": {"digest": "", "matched": 0}}),
    )  # fmt: skip


def _insert(
    database: LiveDatabase, table: str, columns: str, rows: Iterable[Sequence[Any]]
) -> None:
    marks = ", ".join("?" * len(columns.split(",")))
    with database.transaction():
        database.execute_many(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)


def add_windows(database: LiveDatabase, rows: Iterable[Sequence[Any]]) -> None:
    columns = (
        "tenant, app, build, index_hash, question_type, begins_at, ends_at, state, samples,"
        " sample_rate, ragauge_version, aggregate_json"
    )
    _insert(database, "eval_live_windows", columns, rows)


def add_minutes(database: LiveDatabase, rows: Iterable[Sequence[Any]]) -> None:
    """Rows of tenant, app, minute, build, index_hash, question_type, samples."""
    columns = (
        "tenant, app, minute, build, index_hash, question_type, samples, sample_rate, partials"
    )
    _insert(database, "eval_live_minutes", columns, ((*row, 1.0, b"x") for row in rows))


def add_counts(database: LiveDatabase, rows: Iterable[Sequence[Any]]) -> None:
    _insert(database, "live_counts", "tenant, minute, outcome, spans, traces", rows)


def packed(row: dict[str, Any]) -> bytes:
    return zlib.compress(json.dumps(row).encode())


def add_trace(
    database: LiveDatabase,
    trace_id: str,
    body: dict[str, Any] | None,
    *,
    tenant: str = "",
    app: str = "shop",
    build: str = "b1",
    index_hash: str = "i1",
    question_type: str = "",
    arrived: int = NOW - 5000,
    state: str = "scored",
    skewed: int = 0,
    gold_id: str | None = None,
    measured: dict[str, Any] | None = None,
) -> None:
    columns = (
        "tenant, trace_id, app, build, index_hash, question_type, arrived, minute, state, skewed,"
        " gold_id, sample_rate, index_facts, body, measured"
    )
    row = (
        tenant, trace_id, app, build, index_hash, question_type, arrived, arrived // MINUTE, state,
        skewed, gold_id, 1.0, "{}", None if body is None else packed(body),
        None if measured is None else packed(measured),
    )  # fmt: skip
    _insert(database, "live_traces", columns, [row])


def add_pair(
    database: LiveDatabase,
    trace_id: str,
    body: dict[str, Any] | None,
    *,
    tenant: str = "",
    app: str = "shop",
    role: str = "shadow",
    live: str = "i1",
    shadow: str = "i2",
    asked: int = NOW - 4000,
    state: str = "answered",
) -> None:
    columns = "tenant, trace_id, role, app, live, shadow, asked, minute, state, body"
    row = (
        tenant, trace_id, role, app, live, shadow, asked, asked // MINUTE, state,
        None if body is None else packed(body),
    )  # fmt: skip
    _insert(database, "live_pairs", columns, [row])


def add_alert(
    database: LiveDatabase,
    rule: str,
    state: str,
    *,
    tenant: str = "",
    app: str = "shop",
    series: str = "",
    record: dict[str, Any] | None = None,
    since: int = NOW - 600_000,
    before: str = "inactive",
) -> None:
    """The state of a rule, and the change that led to it."""
    text = json.dumps(record or {})
    _insert(
        database, "live_alerts", "tenant, app, rule, series, state, since, seen, record_json",
        [(tenant, app, rule, series, state, since, NOW - 20_000, text)],
    )  # fmt: skip
    _insert(
        database, "live_alert_events", "tenant, app, rule, series, at, before, after, record_json",
        [(tenant, app, rule, series, since, before, state, text)],
    )  # fmt: skip


def add_decision(
    database: LiveDatabase,
    decision: str,
    record: dict[str, Any],
    *,
    tenant: str = "",
    app: str = "shop",
    live: str = "i1",
    shadow: str = "i2",
    ends: int = NOW,
) -> None:
    columns = (
        "created_at, tenant, app, live, shadow, begins_at, ends_at, decision, ragauge_version,"
        " config_hash, record_json, record_hash, evidence"
    )
    row = (
        time_text(ends), tenant, app, live, shadow, time_text(ends - 86_400_000), time_text(ends),
        decision, "0.0.0", "c0ffee", json.dumps(record), "ab12", b"x",
    )  # fmt: skip
    _insert(database, "eval_decisions", columns, [row])


def hit(name: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {"id": name, "doc": f"{name}.md", "text": text, **more}


def trace_body(
    question: str, hits: Sequence[dict[str, Any]], answer: str, citations: Sequence[str]
) -> dict[str, Any]:
    return {
        "qid": None, "question": question, "hits": list(hits),
        "answer": {"text": answer, "citations": list(citations)},
    }  # fmt: skip
