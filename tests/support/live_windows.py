"""Windows and traces of live traffic for tests of alerts: written to the tables as serve does."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ragauge.live.alerts import iso_time
from ragauge.live.database import LiveDatabase
from ragauge.stats.intervals import score_bounds

MINUTE = 60_000
NOON = 1_799_841_600_000
"""A full minute of a day that is not near any change of clocks."""

_numbers = itertools.count(1)


def rate(value: float, n: int = 200) -> dict[str, Any]:
    """A rate as the aggregate of a window has it."""
    return {"value": value, "n": n, "interval": score_bounds(value, n), "version": 1}


def add_window(
    database: LiveDatabase,
    ends: int,
    metrics: Mapping[str, Any],
    *,
    minutes: int = 5,
    app: str = "shop",
    build: str = "",
    tenant: str = "",
    state: str = "closed",
) -> None:
    """Write a window that ends at a time."""
    with database.transaction() as execute:
        execute(
            "INSERT INTO eval_live_windows (tenant, app, build, index_hash, question_type,"
            " begins_at, ends_at, state, samples, sample_rate, ragauge_version, aggregate_json)"
            " VALUES (?, ?, ?, '', '', ?, ?, ?, 200, 1.0, '0', ?)",
            (
                tenant,
                app,
                build,
                iso_time(ends - minutes * MINUTE),
                iso_time(ends),
                state,
                msgspec.json.encode({"metrics": metrics}).decode(),
            ),
        )


def add_trace(
    database: LiveDatabase,
    arrived: int,
    *,
    trace_id: str | None = None,
    app: str = "shop",
    build: str = "1.0",
    index_hash: str = "i1",
    facts: Mapping[str, str] = {},
    hits: Sequence[str] = ("a#1",),
    question: str = "q",
    tenant: str = "",
    **trace: Any,
) -> str:
    """Write a trace that was sampled; returns its id."""
    name = trace_id or f"t{next(_numbers)}"
    row = {"hits": [{"id": hit, "doc": hit.partition("#")[0]} for hit in hits], **trace}
    with database.transaction() as execute:
        execute(
            "INSERT INTO live_traces (tenant, trace_id, app, build, index_hash, question_type,"
            " arrived, minute, state, question_key, sample_rate, index_facts, measured)"
            " VALUES (?, ?, ?, ?, ?, '', ?, ?, 'scored', ?, 1.0, ?, ?)",
            (
                tenant,
                name,
                app,
                build,
                index_hash,
                arrived,
                arrived // MINUTE,
                question,
                msgspec.json.encode(dict(facts)).decode(),
                zlib.compress(msgspec.json.encode(row)),
            ),
        )
    return name
