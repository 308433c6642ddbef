"""Retention: what is older than its class allows goes, a few rows at a time.

Bodies go first, then the traces with their values, then minutes and windows. Deleting in small
steps lets those who write in between; the space goes back to the disk page by page. In PostgreSQL
minutes lie in one partition a month, made ahead and dropped as a whole.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from ragauge.errors import RagaugeError
from ragauge.live.database import LiveDatabase
from ragauge.live.settings import Retention
from ragauge.live.traffic import PUT_ASIDE
from ragauge.live.windows import at_minute

DAY = 24 * 60
"""Minutes of a day."""
AT_ONCE = 500
EVERY = 60_000
STEPS = 20
"""Deletions in one step of the worker, at most."""
AHEAD = 2
"""Months for which partitions are made, beside the present one."""

log = logging.getLogger("ragauge.live")


class RetentionPart:
    """Deletes what is too old."""

    name = "retention"

    def __init__(self, database: LiveDatabase, rule: Retention, folder: Path | None = None) -> None:
        self.database = database
        self.rule = rule
        self.folder = folder
        self.due = 0
        self.has_partitions = database.url.startswith("postgres")
        self.made: set[str] = set()

    def step(self, now: int) -> None:
        """Delete some of what is too old, once a minute."""
        if now < self.due:
            return
        minute = now // 60_000
        if self.has_partitions:
            self._make_partitions(minute)
            self._drop_partitions(minute - self.rule.windows * DAY)
        is_done = [self._delete(*deletion) for deletion in self._deletions(minute)]
        self._remove_files(now)
        self.due = now + EVERY if all(is_done) else now

    def _deletions(self, minute: int) -> Sequence[tuple[str, str, int]]:
        """For each class of data what finds the rows that go, and what becomes of them."""
        bodies, traces, windows = (
            minute - days * DAY for days in (self.rule.bodies, self.rule.traces, self.rule.windows)
        )
        return (
            ("live_traces", "body", bodies),
            ("live_pairs", "body", bodies),
            ("live_traces", "", traces),
            ("live_pairs", "", traces),
            ("live_outbox", "", traces),  # messages name traces
            ("live_deletions", "", minute - DAY),
            ("live_counts", "", windows),
            ("live_alert_events", "", windows),
            ("live_metric_hours", "", windows),
            ("eval_live_minutes", "", windows),
            ("eval_live_windows", "", windows),
        )

    def _delete(self, table: str, column: str, before: int) -> bool:
        """Delete rows, or empty a column of them; False where there may be more."""
        keys = {
            "live_traces": "tenant, trace_id",
            "live_pairs": "tenant, trace_id, role",
            "live_deletions": "tenant, kind, name",
            "live_counts": "tenant, minute, outcome",
            "eval_live_minutes": "tenant, app, minute, build, index_hash, question_type",
            "eval_live_windows": "number",
            "live_outbox": "number",
            "live_alert_events": "number",
            "live_metric_hours": "tenant, app, metric, hour, build, index_hash, question_type",
        }[table]
        where = "minute < ?"
        end: object = before
        if table == "eval_live_windows":
            where, end = "ends_at < ?", at_minute(max(0, before))
        elif table == "live_deletions":
            where, end = "deleted < ?", before * 60_000
        elif table == "live_alert_events":
            where, end = "at < ?", before * 60_000
        elif table == "live_outbox":
            where, end = "created < ? AND state <> 'waiting'", before * 60_000
        elif table == "live_metric_hours":
            where, end = "hour < ?", before // 60
        verb = f"DELETE FROM {table}"
        if column:
            verb, where = f"UPDATE {table} SET {column} = NULL", f"{where} AND {column} IS NOT NULL"
        sql = f"{verb} WHERE ({keys}) IN (SELECT {keys} FROM {table} WHERE {where} LIMIT ?)"
        for _ in range(STEPS):
            with self.database.transaction() as execute:
                count = execute(sql, (end, AT_ONCE)).rowcount
            if count < AT_ONCE:
                return True
        return False

    def _make_partitions(self, minute: int) -> None:
        """Make the partitions of this month and of those to come."""
        month = datetime.fromtimestamp(minute * 60, UTC).replace(day=1, hour=0, minute=0, second=0)
        for _ in range(AHEAD + 1):
            following = month.replace(
                year=month.year + month.month // 12, month=month.month % 12 + 1
            )
            name = f"eval_live_minutes_{month:%Y_%m}"
            first, last = (int(each.timestamp()) // 60 for each in (month, following))
            month = following
            if name in self.made:
                continue
            # Rows of that month may lie in the partition for all others, if nobody was here before.
            try:
                with self.database.transaction() as execute:
                    execute(
                        f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF eval_live_minutes "
                        f"FOR VALUES FROM ({first}) TO ({last})",
                        (),
                    )
            except RagaugeError as error:
                log.info("%s is not made: %s", name, error)
            self.made.add(name)

    def _drop_partitions(self, before: int) -> None:
        """Drop the partitions whose minutes are all too old."""
        rows = self.database.read(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "JOIN pg_class p ON p.oid = i.inhparent WHERE p.relname = 'eval_live_minutes'"
        )
        limit = datetime.fromtimestamp(max(0, before) * 60, UTC)
        for (name,) in rows:
            year, _, month = str(name).removeprefix("eval_live_minutes_").partition("_")
            if not (year.isdecimal() and month.isdecimal()):
                continue
            if (int(year), int(month)) < (limit.year, limit.month):
                with self.database.transaction() as execute:
                    execute(f"DROP TABLE {name}", ())
                self.made.discard(str(name))

    def _remove_files(self, now: int) -> None:
        """Remove bodies that were put aside, when they are as old as bodies may be."""
        if self.folder is None:
            return
        oldest = now / 1000 - self.rule.bodies * DAY * 60
        with suppress(OSError):
            for path in self.folder.iterdir():
                if path.suffix in PUT_ASIDE and path.stat().st_mtime < oldest:
                    path.unlink()
