"""Hours of metrics: the last, the least and the most of each metric of each series.

A quarter of a year has 26,000 windows of a series, each with all its metrics. A chart has room for
some hundred points, so for long ranges the page of a metric reads hours. They follow from the
windows alone, by their numbers: windows of a store that had no hours yet are caught up with.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec import Struct

from ragauge.live.alerts import milliseconds_of
from ragauge.live.database import LiveDatabase

HOUR = 3_600_000
WINDOWS = 100
"""Windows that are added in one transaction."""
STEPS = 5
"""Transactions in one step of the worker, at most."""
_MARK = "hours"
"""The mark of the last window that was added: its number stands in the column `minute`."""

_LOCK_MARK = """INSERT INTO live_marks (name, minute) VALUES (?, 0)
ON CONFLICT (name) DO UPDATE SET minute = live_marks.minute RETURNING minute"""
_WINDOWS = """SELECT number, tenant, app, build, index_hash, question_type, ends_at,
CAST(aggregate_json AS TEXT) FROM eval_live_windows WHERE number > ? ORDER BY number LIMIT ?"""
_ADD = """INSERT INTO live_metric_hours (tenant, app, metric, hour, build, index_hash,
question_type, windows, ended, last, least, most) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, app, metric, hour, build, index_hash, question_type) DO UPDATE SET
windows = live_metric_hours.windows + excluded.windows,
last = CASE WHEN excluded.ended >= live_metric_hours.ended THEN excluded.last
    ELSE live_metric_hours.last END,
ended = CASE WHEN excluded.ended >= live_metric_hours.ended THEN excluded.ended
    ELSE live_metric_hours.ended END,
least = CASE WHEN excluded.least < live_metric_hours.least THEN excluded.least
    ELSE live_metric_hours.least END,
most = CASE WHEN excluded.most > live_metric_hours.most THEN excluded.most
    ELSE live_metric_hours.most END"""


class _Value(Struct):
    value: float | None = None


class _Aggregate(Struct):
    metrics: dict[str, _Value] = {}


_decode = msgspec.json.Decoder(_Aggregate, strict=False).decode


class MetricHour(NamedTuple):
    """What a metric of a series was like in the windows that ended in an hour."""

    build: str
    index_hash: str
    question_type: str
    windows: int
    ended: int
    last: float
    least: float
    most: float


class MetricHours:
    """The part of the worker that adds windows to their hours."""

    name = "hours"

    def __init__(self, database: LiveDatabase) -> None:
        self.database = database

    def step(self, now: int) -> None:  # noqa: ARG002
        """Add the windows that are new, some hundred of them at most."""
        for _ in range(STEPS):
            if not self._is_behind() or self._add() < WINDOWS:
                return

    def _is_behind(self) -> bool:
        """Whether there is a window to be added; most steps find none, and write nothing."""
        sql = "SELECT minute FROM live_marks WHERE name = ?"
        rows = self.database.read(sql, (_MARK,))
        after = int(rows[0][0]) if rows else 0
        sql = "SELECT 1 FROM eval_live_windows WHERE number > ? LIMIT 1"
        return bool(self.database.read(sql, (after,)))

    def _add(self) -> int:
        """Add the next windows, together with the mark that says so."""
        hours: dict[tuple[object, ...], MetricHour] = {}
        with self.database.transaction() as execute:
            after = int(execute(_LOCK_MARK, (_MARK,)).fetchone()[0])
            rows = execute(_WINDOWS, (after, WINDOWS)).fetchall()
            for _, tenant, app, *series, ends_at, text in rows:
                ended = milliseconds_of(ends_at)
                for metric, value in _metrics(text).items():
                    if value.value is None:
                        continue
                    key = tenant, app, metric, ended // HOUR, *series
                    own = value.value
                    one = MetricHour(series[0], series[1], series[2], 1, ended, own, own, own)
                    hours[key] = _together(hours.get(key), one)
            self.database.execute_many(
                _ADD, [(*key, *hours[key][3:]) for key in sorted(hours, key=repr)]
            )
            if rows:
                sql = "UPDATE live_marks SET minute = ? WHERE name = ?"
                execute(sql, (int(rows[-1][0]), _MARK))
        return len(rows)


def _metrics(text: str) -> dict[str, _Value]:
    """The metrics of a window; a damaged one has none."""
    try:
        return _decode(text).metrics
    except msgspec.DecodeError:
        return {}


def _together(before: MetricHour | None, one: MetricHour) -> MetricHour:
    """Two parts of an hour as one."""
    if before is None:
        return one
    newest = one if one.ended >= before.ended else before
    return newest._replace(
        windows=before.windows + one.windows,
        least=min(before.least, one.least),
        most=max(before.most, one.most),
    )


def read_hours(
    database: LiveDatabase, tenant: str, app: str, metric: str, since: int, where: str
) -> list[MetricHour]:
    """The hours of a metric from one on, the oldest first; `where` says of which series."""
    rows = database.read(
        "SELECT build, index_hash, question_type, windows, ended, last, least, most"
        " FROM live_metric_hours WHERE tenant = ? AND app = ? AND metric = ? AND hour >= ?"
        f" AND {where} ORDER BY hour, build, index_hash, question_type",
        (tenant, app, metric, since // HOUR),
    )
    return [MetricHour(*row) for row in rows]
