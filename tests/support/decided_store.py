"""Stores with windows, pairs and alerts of live traffic, about which decisions can be made."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from ragauge.live.database import LiveDatabase
from ragauge.live.decisions import Decisions
from ragauge.live.mirror import AskedSystem
from ragauge.live.pairs import PairValues, SideValues
from ragauge.live.settings import LiveSettings, MirrorRule

NOW = 1_790_000_040_000  # 2026-09-21T13:34:00Z
MINUTE = 60_000
HOUR = 60 * MINUTE
TARGET = "http://shadow.invalid/ask"


def settings_of(**more: Any) -> LiveSettings:
    return LiveSettings(shadow=MirrorRule(target=TARGET, live="http://live.invalid/ask", **more))


def shadow_name(settings: LiveSettings) -> str:
    assert settings.shadow is not None
    return AskedSystem(TARGET, settings, settings.shadow, settings.shadow.options).name


def time_text(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def add_window(
    database: LiveDatabase,
    ends: int = NOW,
    *,
    tenant: str = "",
    app: str = "shop",
    build: str = "",
    minutes: int = 5,
) -> None:
    row = (
        tenant, app, build, "", "", time_text(ends - minutes * MINUTE), time_text(ends), "closed",
        200, 1.0, "0.0.0", "{}",
    )  # fmt: skip
    columns = (
        "tenant, app, build, index_hash, question_type, begins_at, ends_at, state, samples, "
        "sample_rate, ragauge_version, aggregate_json"
    )
    with database.transaction() as execute:
        execute(
            f"INSERT INTO eval_live_windows ({columns}) VALUES ({', '.join('?' * len(row))})", row
        )


def values(outcome: str = "cited", found: int = 5, index: str | None = "i2") -> PairValues:
    return PairValues(
        live=SideValues(outcome="cited", ms=100.0),
        other=SideValues(outcome=outcome, delta_s=0.3, ms=110.0, index=index),  # type: ignore[arg-type]
        found=found,
        expected=5,
        rung="exact",
    )


def pair_row(
    number: int, role: str, measured: Any, *, asked: int, settings: LiveSettings, **columns: Any
) -> tuple[object, ...]:
    row = {
        "tenant": "", "trace_id": f"t{number:05d}", "role": role, "app": "shop", "live": "i1",
        "shadow": shadow_name(settings), "question_key": f"q{number}", "asked": asked,
        "minute": asked // MINUTE, "state": "answered",
        "measured": None if measured is None else msgspec.json.encode(measured), **columns,
    }  # fmt: skip
    return tuple(row.values())


def add_pairs(
    database: LiveDatabase,
    settings: LiveSettings,
    *,
    n: int = 600,
    hours: float = 30,
    ends: int = NOW,
    measured: PairValues | None = None,
    first: int = 0,
    **columns: Any,
) -> None:
    """As many pairs over some hours; every third question is asked once more of both systems."""
    rows = []
    step = round(hours * HOUR / n)
    for number in range(n):
        asked = ends - 1 - (n - 1 - number) * step
        roles = ("shadow", "again", "self") if number % 3 == 0 else ("shadow",)
        rows += [
            pair_row(
                first + number,
                role,
                measured or values(),
                asked=asked,
                settings=settings,
                **columns,
            )
            for role in roles
        ]
    insert_pairs(database, rows)


def insert_pairs(database: LiveDatabase, rows: Iterable[tuple[object, ...]]) -> None:
    names = (
        "tenant, trace_id, role, app, live, shadow, question_key, asked, minute, state, measured"
    )
    marks = ", ".join("?" * 11)
    with database.transaction():
        database.execute_many(f"INSERT INTO live_pairs ({names}) VALUES ({marks})", rows)


def add_alert(
    database: LiveDatabase, at: int, before: str, after: str, *, rule: str = "coverage"
) -> None:
    with database.transaction() as execute:
        execute(
            "INSERT INTO live_alert_events (tenant, app, rule, series, at, before, after,"
            " record_json) VALUES ('', 'shop', ?, '', ?, ?, ?, '{}')",
            (rule, at, before, after),
        )


def decide_now(database: LiveDatabase, settings: LiveSettings, now: int = NOW) -> Decisions:
    """Decide about the windows that have closed by a time, without the pause before it."""
    decisions = Decisions(settings, database, settle=0)
    decisions.step(now)
    return decisions


def promoted(database: LiveDatabase) -> LiveSettings:
    """Make a store with one decision: promote."""
    settings = settings_of()
    add_window(database)
    add_pairs(database, settings)
    decide_now(database, settings)
    return settings
