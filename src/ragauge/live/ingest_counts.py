"""Counts of what came in and what became of it, in memory and by minute in the store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal, NamedTuple

from ragauge.errors import RagaugeError
from ragauge.live.database import LiveDatabase

Outcome = Literal[
    "accepted", "sampled-out", "duplicate", "rejected", "refused", "unavailable", "undecodable",
    "too-large", "unsupported", "denied",
]  # fmt: skip
"""What can become of a request. Spans are counted where the body was read; the rest are requests.

accepted, sampled-out, duplicate, rejected   spans of a body that was read
refused          429: the spool or the server is full
unavailable      503: the disk is full, or the store is down
undecodable, too-large, unsupported, denied  400 and 408, 413, 415, and 401 or 403
"""

_ADD = """INSERT INTO live_counts (tenant, minute, outcome, spans, traces) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, minute, outcome) DO UPDATE SET
    spans = live_counts.spans + excluded.spans, traces = live_counts.traces + excluded.traces"""


class OutcomeCounts(NamedTuple):
    """How much met one end."""

    requests: int
    spans: int
    traces: int


class IngestCounts:
    """Counts of one server; `totals` are since its start, the store has them by minute."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, int, str], tuple[int, int]] = {}
        self._totals: dict[tuple[str, str], OutcomeCounts] = {}
        self.last_accepted: int | None = None

    def add(self, tenant: str, outcome: Outcome, spans: int = 0, traces: int = 0) -> None:
        """Count one request, or the part of one that met this end."""
        now = self._now()
        with self._lock:
            before = self._totals.get((tenant, outcome), OutcomeCounts(0, 0, 0))
            self._totals[tenant, outcome] = OutcomeCounts(
                before.requests + 1, before.spans + spans, before.traces + traces
            )
            if outcome == "accepted":
                self.last_accepted = now
            self._add(tenant, now // 60_000, outcome, spans, traces)

    def totals(self, tenant: str) -> dict[str, OutcomeCounts]:
        """What a tenant sent since the start of the server, by outcome."""
        with self._lock:
            own = [
                (outcome, counts)
                for (name, outcome), counts in self._totals.items()
                if name == tenant
            ]
        return dict(sorted(own))

    def _add(self, tenant: str, minute: int, outcome: str, spans: int, traces: int) -> None:
        key = tenant, minute, outcome
        before = self._waiting.get(key, (0, 0))
        self._waiting[key] = before[0] + spans, before[1] + traces

    def write(self, database: LiveDatabase) -> None:
        """Add what was counted since the last time to the store; kept where that fails."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        if not waiting:
            return
        try:
            with database.transaction():
                # Sorted, so that servers that share a store lock rows in one order.
                database.execute_many(_ADD, [(*key, *waiting[key]) for key in sorted(waiting)])
        except RagaugeError:
            with self._lock:
                for key, counts in waiting.items():
                    self._add(*key, *counts)
            raise


def traces_an_hour(database: LiveDatabase, now: int) -> float | None:
    """How many traces came in an hour, by the counts of the last day; None where there are none."""
    last = now // 60_000
    rows = database.read(
        "SELECT coalesce(sum(traces), 0), min(minute) FROM live_counts "
        "WHERE minute > ? AND outcome IN ('accepted', 'sampled-out')",
        (last - 1440,),
    )
    traces, first = rows[0]
    if not traces:
        return None
    return float(traces) * 60 / max(1, last - int(first) + 1)
