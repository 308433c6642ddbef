"""Traffic becomes rows: spooled bodies are read, scored, stored, and only then deleted.

What is stored is decided by the spool alone, and a trace is stored once, so a crash at any moment
means that some bodies are read again and the same rows come out. A body that makes the worker crash
again and again is put aside.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.files.fields import FieldError
from ragauge.live.assemble import AssembledTrace, Assembler, PendingTrace, rows_of
from ragauge.live.database import Execute, LiveDatabase
from ragauge.live.settings import LiveSettings
from ragauge.live.spool import SpooledBody, SpoolReader, encode_spans
from ragauge.live.trace_sampler import hash_share
from ragauge.live.trace_values import TraceReader, TraceValues, decoded_row, fallback_id
from ragauge.live.windows import MINUTE, sealed_until

BODIES = 64
"""Bodies that are read at once."""
TRACES = 500
"""Traces that are stored in one transaction, at most."""
MOST_CRASHES = 3
MARKER = "reading.json"
QUARANTINE = "quarantine"
PUT_ASIDE = (".spans", ".rows")
"""How files in that folder end."""

log = logging.getLogger("ragauge.live")

_COLUMNS = (
    "tenant", "trace_id", "app", "build", "index_hash", "question_type", "arrived", "minute",
    "state", "skewed", "user_key", "question_key", "gold_id", "sample_rate", "index_facts", "body",
    "measured",
)  # fmt: skip
_INSERT = (
    f"INSERT INTO live_traces ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))}) "
    "ON CONFLICT DO NOTHING"
)
_COUNT = """INSERT INTO live_counts (tenant, minute, outcome, spans, traces) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, minute, outcome) DO UPDATE SET
    spans = live_counts.spans + excluded.spans, traces = live_counts.traces + excluded.traces"""


class LiveTrace(Struct, frozen=True):
    """A trace that is ready to be stored, and the bodies that it came in."""

    tenant: str
    arrived: int
    rate: float
    values: TraceValues
    bodies: frozenset[int]
    spans: int = 0
    conflicts: int = 0
    skewed: bool = False
    incomplete: bool = False


class Marker:
    """Notes in a file which bodies are being read, so that a crash shows who caused it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / MARKER
        self.crashes: dict[int, int] = {}
        if self.path.exists():
            try:
                reading, crashes = msgspec.json.decode(
                    self.path.read_bytes(), type=tuple[list[int], dict[int, int]]
                )
            except msgspec.DecodeError:  # the machine went down while it was written
                reading, crashes = [], {}
            self.crashes = crashes
            for number in reading:
                self.crashes[number] = self.crashes.get(number, 0) + 1

    def write(self, reading: Iterable[int]) -> None:
        """Note what is read now; nothing where all went well."""
        temporary = self.path.with_suffix(".new")
        temporary.write_bytes(msgspec.json.encode((sorted(reading), self.crashes)))
        os.replace(temporary, self.path)


class Traffic:
    """Reads the spool, and stores a row for every trace that is complete."""

    name = "traffic"

    def __init__(
        self,
        settings: LiveSettings,
        database: LiveDatabase,
        spool: SpoolReader,
        folder: Path,
        reader: TraceReader,
    ) -> None:
        self.database = database
        self.spool = spool
        self.folder = folder
        self.reader = reader
        self.rate = settings.sampling.rate
        self.by_session = settings.sampling.by == "session"
        self.assembler = Assembler(settings)
        self.marker = Marker(folder)
        self.after = 0
        self.read_until = 0
        self.waiting: dict[int, int] = {}
        """Bodies that were read, and how many of their traces are not stored yet."""
        self.suspects = {number for number, count in self.marker.crashes.items() if count}

    def step(self, now: int) -> None:
        """Read what has come, and store the traces that are complete."""
        while True:
            limit = 1 if self.suspects else BODIES
            bodies = self.spool.batch(self.after, limit)
            if not bodies:
                self.read_until = now
                self._store_complete(now)
                return
            self._read(bodies)
            self.read_until = bodies[-1].received
            self._store_complete(self.read_until)
            if len(bodies) < limit and not self.suspects:
                self.read_until = now
                self._store_complete(now)
                return

    def _read(self, bodies: Sequence[SpooledBody]) -> None:
        self.marker.write([body.number for body in bodies])
        try:
            self._read_bodies(bodies)
        except Exception:  # a store that is away: no body is to blame, and all are read again
            self.marker.write(())
            raise
        self.marker.crashes = {
            number: count for number, count in self.marker.crashes.items() if number > self.after
        }
        self.marker.write(())

    def _read_bodies(self, bodies: Sequence[SpooledBody]) -> None:
        rows: list[LiveTrace] = []
        for body in bodies:
            self.suspects.discard(body.number)
            if self.marker.crashes.get(body.number, 0) >= MOST_CRASHES:
                self._quarantine(body)
                continue
            try:
                rows += self._rows(body)
            except Exception:  # whatever one body does, the others are scored
                log.exception("body %d cannot be read", body.number)
                self._quarantine(body)
        for start in range(0, len(rows), TRACES):
            self._store(rows[start : start + TRACES])
        self.after = bodies[-1].number
        self._delete_done()

    def _rows(self, body: SpooledBody) -> list[LiveTrace]:
        """The traces of a body of native rows; spans wait for the rest of their trace."""
        if body.kind == "spans":
            self.waiting[body.number] = self.assembler.add(body)
            return []
        rows = []
        for place, line in enumerate(body.body.split(b"\n")):
            if not line.strip():
                continue
            own_id = fallback_id(body.key, place)
            try:
                row = decoded_row(line)
            except FieldError as error:
                log.warning("body %d, row %d: %s", body.number, place + 1, error.message)
                row = {"error": f"not a row: {error.message}"}
            oversampled = self._is_oversampled(body.rate, str(row.get("trace_id") or own_id), row)
            values = self.reader.read(row, own_id, oversampled=oversampled)
            numbers = frozenset((body.number,))
            rows.append(LiveTrace(body.tenant, body.received, body.rate, values, numbers))
        self.waiting[body.number] = len(rows)
        return rows

    def _is_oversampled(self, rate: float, trace_id: str, row: Mapping[str, Any]) -> bool:
        """Whether a trace was only kept because errors or gold questions have a higher rate."""
        session = row.get("session")
        key = session if self.by_session and isinstance(session, str) else trace_id
        return rate > self.rate and hash_share(key) >= self.rate

    def _store_complete(self, read_until: int) -> None:
        complete = self.assembler.complete(read_until)
        for start in range(0, len(complete), TRACES):
            part = complete[start : start + TRACES]
            self._store(self._assembled(part))
            self.assembler.forget(part)
        if complete:
            self._delete_done()

    def _assembled(self, complete: Sequence[PendingTrace]) -> list[LiveTrace]:
        rows = []
        for assembled in self._rows_of(complete):
            trace = assembled.trace
            row = assembled.row
            oversampled = self._is_oversampled(trace.rate, trace.trace_id, row or {})
            incomplete = oversampled and trace.may_lack_spans(self.assembler.longest)
            values = (
                self.reader.unusable(trace.trace_id, trace.attribute("service.name"))
                if row is None or incomplete
                else self.reader.read(row, trace.trace_id, oversampled=oversampled)
            )
            rows.append(
                LiveTrace(
                    trace.tenant,
                    trace.last,
                    trace.rate,
                    values,
                    frozenset(trace.bodies),
                    spans=len(trace.spans),
                    conflicts=trace.conflicts,
                    skewed=trace.skewed,
                    incomplete=incomplete,
                )
            )
        return rows

    def _rows_of(self, complete: Sequence[PendingTrace]) -> list[AssembledTrace]:
        """The row of each trace; one whose spans cannot be put together is kept aside."""
        try:
            return list(rows_of(complete))
        except Exception:
            if len(complete) > 1:
                return [row for trace in complete for row in self._rows_of([trace])]
            (trace,) = complete
            log.exception("a trace cannot be put together")
            number = blake2b(trace.trace_id.encode(), digest_size=16).hexdigest()
            name = quarantine_path(number, trace.tenant, "spans")
            content = encode_spans(trace.spans.values())
            self._put_aside(name, content, trace.tenant, trace.last)
            return [AssembledTrace(trace, None)]

    def _store(self, rows: Sequence[LiveTrace]) -> None:
        """Store traces that are not there yet, and count them."""
        if not rows:
            return
        unique = {(row.tenant, row.values.trace_id): row for row in reversed(rows)}
        with self.database.transaction() as execute:
            sealed = sealed_until(execute)
            keys = list(unique)
            marks = ", ".join(["(?, ?)"] * len(keys))
            there = execute(
                "SELECT tenant, trace_id FROM live_traces "
                f"WHERE (tenant, trace_id) IN (VALUES {marks})",
                [part for key in keys for part in key],
            ).fetchall()
            for tenant, trace_id in there:
                del unique[tenant, trace_id]
            unique = self._not_deleted(execute, unique)
            counts: Counter[tuple[str, int, str, str]] = Counter()
            added = []
            for (tenant, _), row in sorted(unique.items()):
                values = row.values
                minute = max(row.arrived // MINUTE, sealed + 1)
                added.append(
                    (
                        tenant, values.trace_id, values.app, values.build, values.index_hash,
                        values.question_type, row.arrived, minute, values.state, int(row.skewed),
                        values.user_key, values.question_key, values.gold_id, row.rate,
                        values.index_facts, values.body, values.measured,
                    )
                )  # fmt: skip
                counts[tenant, minute, values.state, "spans"] += row.spans
                counts[tenant, minute, values.state, "traces"] += 1
                if row.conflicts:
                    counts[tenant, minute, "conflict", "spans"] += row.conflicts
                    counts[tenant, minute, "conflict", "traces"] += 1
                if row.incomplete:
                    counts[tenant, minute, "incomplete", "traces"] += 1
                if minute > row.arrived // MINUTE:
                    counts[tenant, minute, "late", "traces"] += 1
            self.database.execute_many(_INSERT, added)
            outcomes = sorted({key[:3] for key in counts})
            self.database.execute_many(
                _COUNT,
                [(*key, counts[(*key, "spans")], counts[(*key, "traces")]) for key in outcomes],
            )
        for row in rows:
            for number in row.bodies:
                self.waiting[number] -= 1

    @staticmethod
    def _not_deleted(
        execute: Execute, traces: dict[tuple[str, str], LiveTrace]
    ) -> dict[tuple[str, str], LiveTrace]:
        """The traces without those that were deleted on demand after they had come."""
        deletions = execute("SELECT tenant, kind, name, deleted FROM live_deletions", ()).fetchall()
        if not deletions:
            return traces
        ends = {(tenant, kind, name): deleted for tenant, kind, name, deleted in deletions}

        def is_gone(trace: LiveTrace) -> bool:
            values = trace.values
            by_id = ends.get((trace.tenant, "trace", values.trace_id), -1)
            by_user = ends.get((trace.tenant, "user", values.user_key or ""), -1)
            return trace.arrived <= int(max(by_id, by_user))

        return {key: trace for key, trace in traces.items() if not is_gone(trace)}

    def _delete_done(self) -> None:
        """Delete the bodies of which every trace is stored."""
        done = [number for number, count in self.waiting.items() if count <= 0]
        if done:
            self.spool.delete(done)
            for number in done:
                del self.waiting[number]

    def _quarantine(self, body: SpooledBody) -> None:
        """Put a body aside, which is never read again."""
        name = quarantine_path(str(body.number), body.tenant, body.kind)
        self._put_aside(name, body.body, body.tenant, body.received)
        self.waiting[body.number] = 0

    def _put_aside(self, name: str, content: bytes, tenant: str, arrived: int) -> None:
        """Write what cannot be read to a file beside the spool, and count it."""
        path = self.folder / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)
        log.error("put aside as %s", path)
        with self.database.transaction() as execute:
            execute(_COUNT, (tenant, arrived // MINUTE, "quarantined", 0, 1))


def quarantine_path(number: str, tenant: str, kind: str) -> str:
    """Where something is put aside, below the folder of the spool: the name tells its tenant."""
    digest = blake2b(tenant.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{QUARANTINE}/{number}-{digest}.{kind}"
