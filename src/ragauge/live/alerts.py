"""Alerts: the state of each rule for each series, moved by closed windows and by time.

inactive → pending → firing → resolved, as Prometheus has it with `for` and `keep_firing_for`, and
`no-data` and `too-little-data`, as Grafana has them. Two things differ, so that noise pages nobody
(decision 0064): a rule fires when disjoint windows together are as unlikely as one false alarm in
30 days allows, and it is resolved when the value itself is back, not when its bound is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragauge import __version__
from ragauge.errors import RagaugeError
from ragauge.live import index_drift
from ragauge.live.alert_rules import (
    DOCUMENT_PSI,
    INDEX_DRIFT,
    MOST_REFERENCES,
    REFERENCE_DAYS,
    BaselineLevel,
    Measurement,
    Reading,
    read_window,
    reference_of,
    rules_of,
)
from ragauge.live.database import Execute, LiveDatabase
from ragauge.live.outbox import Message, queue_messages
from ragauge.live.settings import AlertRule, LiveSettings
from ragauge.live.worst_traces import worst_traces

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
EVERY = 5_000
"""Milliseconds between two evaluations."""

ALARM_FREE = 30 * DAY
CAUTION = 2.0
"""How much rarer than once in 30 days a false alarm is meant to be: windows of real traffic have
more in common with each other than an interval knows."""

SHIFTS = (1.0, 3.0)
"""The shifts, in standard errors, that windows are tested for: one that only many windows show, and
one that every window shows."""

CROSSED = -math.log(0.025)
"""The evidence at which the windows of a series together have crossed a 95 % bound."""

REFERENCE_GAP = 60 * MINUTE
"""A reference ends so long before a window: a change is not compared with its own beginning."""

RESOLVED_STAYS = 15 * MINUTE  # as in Prometheus
LATE_NUMBERS = 256  # a window of another server may become visible after one with a larger number
LOCK = "live-alerts"
WORST = 5

INDEX_RULE = AlertRule(
    metric="distinct values", above=2, for_minutes=0, keep_minutes=5, policy="point", least=1
)

StateName: TypeAlias = Literal[
    "inactive", "pending", "firing", "resolved", "no-data", "too-little-data"
]


class AlertRecord(Struct, frozen=True, kw_only=True):
    """The state of a rule for a series, and what it rests on. Times are milliseconds."""

    state: StateName = "inactive"
    since: int = 0
    seen: int = 0  # the end of the last window that measured the metric
    window: int | None = None
    pending_since: int = 0
    good_since: int | None = None  # while firing
    sums: tuple[float, float] = (0.0, 0.0)  # evidence for each shift, of disjoint windows
    needed: float = 0.0
    counted_until: int = 0
    was_firing: bool = False  # before there was no data
    metric: str = ""
    measured: Measurement = Measurement()
    threshold: float | None = None
    direction: Literal["below", "above"] = "above"
    reference: BaselineLevel | None = None
    details: dict[str, dict[str, int]] = {}

    @property
    def evidence(self) -> float:
        """The log of how much likelier what was seen is with a shift than without one."""
        return max(self.sums)


class ClosedWindow(Struct, frozen=True, kw_only=True):
    """A window of the table, as far as rules look at it."""

    number: int
    tenant: str
    app: str
    build: str
    index_hash: str
    question_type: str
    begins: int
    ends: int
    state: str
    samples: int
    metrics: dict[str, Measurement]


class _Aggregate(Struct):
    metrics: dict[str, Measurement] = {}


class AlertKey(Struct, frozen=True, order=True):
    """What an alert is about; the series is empty for a whole app."""

    tenant: str
    app: str
    rule: str
    series: str


class AlertChange(Struct, frozen=True, kw_only=True):
    """An alert that has come from one state to another."""

    key: AlertKey
    at: int
    before: AlertRecord
    after: AlertRecord

    @property
    def is_told(self) -> bool:
        """Whether webhooks are told: who pages wants no step in between."""
        states = (self.before.state, self.after.state)
        return "firing" in states or "no-data" in states or self.after.state == "resolved"


# --- the states ---


def needed_evidence(rule: AlertRule, length: int) -> float:
    """The evidence from which a rule fires, by the length of a window in milliseconds.

    The more windows 30 days have, the rarer must be what makes one of them an alarm. With evidence
    of ln(a), a series at its threshold gets there once in more than `a` windows.
    """
    if rule.policy == "point":
        return 0.0
    return math.log(CAUTION * max(1.0, ALARM_FREE / max(1, length)))


def after_window(
    record: AlertRecord, rule: AlertRule, reading: Reading, window: tuple[int, int]
) -> AlertRecord:
    """The record after a window, of which the beginning and the end are given."""
    begins, ends = window
    record = replace(
        record,
        seen=ends,
        metric=rule.metric,
        measured=reading.measured,
        threshold=reading.threshold,
        direction="below" if rule.below is not None else "above",
        needed=needed_evidence(rule, ends - begins),
    )
    if reading.outcome == "too-little":
        if record.state in ("firing", "too-little-data"):
            return record
        return replace(record, state="too-little-data", since=ends)
    if record.state == "firing" or record.was_firing:
        if reading.outcome != "good":
            return _firing(record, ends)
        if record.was_firing:
            return _resolved(record, ends)
        return replace(record, good_since=record.good_since or ends)
    if begins >= record.counted_until:
        # Page's cumulative sums of the log-likelihood ratio: they forget what is long over.
        small, large = (
            max(0.0, total + shift * reading.z - shift * shift / 2)
            for total, shift in zip(record.sums, SHIFTS, strict=True)
        )
        record = replace(record, sums=(small, large), counted_until=ends)
    if reading.outcome == "breach" or record.evidence >= CROSSED:
        if record.state != "pending":
            record = replace(record, state="pending", since=ends, pending_since=ends)
        return _fired_if_due(record, rule, ends)
    if record.state == "resolved" and ends - record.since < RESOLVED_STAYS:
        return record
    return _inactive(record, ends)


def after_time(record: AlertRecord, rule: AlertRule, now: int) -> AlertRecord:
    """The record when time has gone by without another window."""
    if record.state == "pending":
        return _fired_if_due(record, rule, now)
    if record.state == "firing" and record.good_since is not None:
        ended = now - record.good_since >= rule.keep_minutes * MINUTE
        return _resolved(record, now) if ended else record
    return record


def without_data(record: AlertRecord, now: int) -> AlertRecord:
    """The record when nothing was measured for too long: silence resolves nothing."""
    if record.state == "no-data":
        return record
    was_firing = record.was_firing or record.state == "firing"
    return replace(
        record, state="no-data", since=now, was_firing=was_firing, good_since=None, sums=(0.0, 0.0)
    )


def _fired_if_due(record: AlertRecord, rule: AlertRule, now: int) -> AlertRecord:
    long_enough = now - record.pending_since >= rule.for_minutes * MINUTE
    due = long_enough and record.evidence >= record.needed
    return _firing(record, now) if due else record


def _firing(record: AlertRecord, now: int) -> AlertRecord:
    since = record.since if record.state == "firing" else now
    return replace(record, state="firing", since=since, good_since=None, was_firing=False)


def _resolved(record: AlertRecord, now: int) -> AlertRecord:
    record = replace(record, state="resolved", since=now, good_since=None, was_firing=False)
    return replace(record, sums=(0.0, 0.0), reference=None)


def _inactive(record: AlertRecord, now: int) -> AlertRecord:
    if record.state == "inactive":
        return record
    return replace(record, state="inactive", since=now)


# --- evaluating the rules ---


def series_of(rule: AlertRule, window: ClosedWindow) -> str | None:
    """The series that a window belongs to under a rule; None for windows of other slices."""
    if window.index_hash or window.question_type or rule.app not in (None, window.app):
        return None
    if rule.by == "app":
        return None if window.build else ""
    return f"build={window.build}" if window.build else None


class AlertEvaluator:
    """The part of the worker that evaluates the rules; one of all servers on a store does.

    Everything is read from the store and written back with its events and messages in one
    transaction: a server that ends or takes over goes on where the last one was.
    """

    name = "alerts"

    def __init__(self, settings: LiveSettings, database: LiveDatabase) -> None:
        self.settings = settings
        self.database = database
        self.rules = rules_of(settings.alerts)
        self.config_hash = config_hash(settings)
        self._documents = index_drift.DocumentDrift(database)
        self._next = 0
        self._evaluated: set[int] = set()  # numbers of windows

    def step(self, now: int) -> None:
        """Evaluate all rules, if it is time and no other server does."""
        if now < self._next:
            return
        self._next = now + EVERY
        try:
            with self.database.hold(LOCK):
                self._evaluate(now)
        except RagaugeError as error:
            if error.problems[0].code != "run-held":
                raise

    def _evaluate(self, now: int) -> None:
        book = _AlertBook(read_alerts(self.database))
        windows = self._new_windows(book)
        for window in windows:
            self._judge_window(book, window)
        apps = index_drift.apps_with_traces(self.database)
        if self.settings.alerts.defaults and INDEX_DRIFT not in self.settings.alerts.off:
            for tenant, app in apps:
                self._judge_index(book, tenant, app, now)
        self._pass_time(book, now)
        messages = self._messages(book.changes)
        if book.is_changed:
            with self.database.transaction() as execute:
                book.write(execute)
                queue_messages(execute, self.settings.alerts.webhooks, messages, now)
        # Only now: what raised before is read again.
        self._evaluated.update(window.number for window in windows)

    def _new_windows(self, book: _AlertBook) -> list[ClosedWindow]:
        newest = max((record.window or 0 for record in book.records.values()), default=0)
        oldest = newest - LATE_NUMBERS
        self._evaluated = {number for number in self._evaluated if number > oldest}
        sql = (
            "SELECT number FROM eval_live_windows"
            " WHERE number > ? AND index_hash = '' AND question_type = '' ORDER BY number"
        )
        rows = self.database.read(sql, (oldest,))
        numbers = [int(number) for (number,) in rows if int(number) not in self._evaluated]
        rows_read = [read_window_row(self.database, number) for number in numbers]
        windows = [window for window in rows_read if window is not None]
        return sorted(windows, key=lambda window: (window.ends, window.number))

    def _judge_window(self, book: _AlertBook, window: ClosedWindow) -> None:
        for name, rule in self.rules.items():
            series = series_of(rule, window)
            if series is None:
                continue
            key = AlertKey(window.tenant, window.app, name, series)
            record = book.records.get(key)
            if record is not None and window.ends <= record.seen:
                continue
            measured = self._measured(rule, window)
            if measured is None or measured.n == 0:
                # A metric that was never there is no alert; one that is gone has no data.
                if record is not None and self._is_silent(window.ends - record.seen):
                    book.put(key, without_data(record, window.ends), window.ends)
                continue
            record = record or AlertRecord(since=window.ends)
            if rule.rise is not None and record.state not in ("pending", "firing"):
                # While it is bad, the reference is the one from before.
                record = replace(record, reference=self._reference(rule, window))
            reading = read_window(rule, measured, record.reference)
            if window.state != "closed" and reading.outcome in ("good", "unclear"):
                reading = replace(reading, outcome="too-little")
            record = replace(record, window=window.number)
            after = after_window(record, rule, reading, (window.begins, window.ends))
            book.put(key, after, window.ends)

    def _measured(self, rule: AlertRule, window: ClosedWindow) -> Measurement | None:
        if rule.metric == DOCUMENT_PSI:
            return self._documents.measure(window.tenant, window.app, window.begins, window.ends)
        return window.metrics.get(rule.metric)

    def _reference(self, rule: AlertRule, window: ClosedWindow) -> BaselineLevel | None:
        """What windows of the same series say that ended an hour before, or earlier."""
        rows = self.database.read(
            "SELECT CAST(aggregate_json AS TEXT) FROM eval_live_windows"
            " WHERE tenant = ? AND app = ? AND begins_at >= ? AND begins_at < ? AND ends_at <= ?"
            " AND build = ? AND index_hash = '' AND question_type = '' AND state = 'closed'"
            " ORDER BY begins_at DESC LIMIT ?",
            (
                window.tenant,
                window.app,
                iso_time(window.begins - REFERENCE_DAYS * DAY),
                iso_time(window.begins),
                iso_time(window.begins - REFERENCE_GAP),
                window.build,
                MOST_REFERENCES,
            ),
        )
        measured = [
            msgspec.json.decode(row[0], type=_Aggregate).metrics.get(rule.metric) for row in rows
        ]
        values = [one.value for one in measured if one is not None and one.value is not None]
        return reference_of(values)

    def _judge_index(self, book: _AlertBook, tenant: str, app: str, now: int) -> None:
        """Two values of one fact under one build fire at once."""
        seen = index_drift.facts_seen(self.database, tenant, app, now)
        by_series = {f"build={one.build} {one.fact}": one for one in seen}
        open_series = {
            key.series
            for key, record in book.records.items()
            if (key.tenant, key.app, key.rule) == (tenant, app, INDEX_DRIFT)
            and record.state != "inactive"
        }
        if not seen:
            return  # without traffic nothing has changed
        begins = now - index_drift.DRIFT_MINUTES * MINUTE
        for series in sorted(open_series | set(by_series)):
            facts = by_series.get(series)
            values = {} if facts is None else facts.values
            if len(values) < 2 and series not in open_series:
                continue
            key = AlertKey(tenant, app, INDEX_DRIFT, series)
            record = book.records.get(key) or AlertRecord(since=now)
            if len(values) > 1:
                record = replace(record, details={"" if facts is None else facts.fact: values})
            measured = Measurement(float(len(values)), sum(values.values()))
            reading = read_window(INDEX_RULE, measured)
            book.put(key, after_window(record, INDEX_RULE, reading, (begins, now)), now)

    def _pass_time(self, book: _AlertBook, now: int) -> None:
        traffic: dict[tuple[str, str], int] = {}
        for key, record in sorted(book.records.items()):
            rule = INDEX_RULE if key.rule == INDEX_DRIFT else self.rules.get(key.rule)
            if rule is None:
                if record.state != "inactive":  # the rule is gone from the settings
                    book.put(key, replace(AlertRecord(since=now), seen=record.seen), now)
                continue
            app = (key.tenant, key.app)
            if app not in traffic:
                traffic[app] = index_drift.last_traffic(self.database, *app) or 0
            if self._is_silent(now - max(traffic[app], record.seen)):
                # An index that nobody asks does not drift.
                if key.rule != INDEX_DRIFT or record.state == "firing":
                    book.put(key, without_data(record, now), now)
            elif rule.by == "build" and self._is_silent(now - record.seen):
                if self._is_retired(key, now):
                    book.put(key, replace(AlertRecord(since=now), seen=record.seen), now)
            else:
                book.put(key, after_time(record, rule, now), now)

    def _is_retired(self, key: AlertKey, now: int) -> bool:
        """Whether a build has no traffic any more; asked while its app has some."""
        since = now // MINUTE - self.settings.alerts.no_data_minutes
        sql = (
            "SELECT 1 FROM live_traces WHERE tenant = ? AND app = ? AND minute >= ? AND build = ?"
            " LIMIT 1"
        )
        build = key.series.removeprefix("build=")
        return not self.database.read(sql, (key.tenant, key.app, since, build))

    def _is_silent(self, milliseconds: int) -> bool:
        return milliseconds >= self.settings.alerts.no_data_minutes * MINUTE

    # --- telling ---

    def _messages(self, changes: Sequence[AlertChange]) -> list[Message]:
        """One message for each app: what changes together is told together."""
        by_app: dict[tuple[str, str], list[AlertChange]] = {}
        for change in changes:
            if change.is_told:
                by_app.setdefault((change.key.tenant, change.key.app), []).append(change)
        return [self._message(tenant, app, by_app[tenant, app]) for tenant, app in sorted(by_app)]

    def _message(self, tenant: str, app: str, changes: Sequence[AlertChange]) -> Message:
        parts = [
            f"{change.key.rule} {change.key.series} {change.at} {change.after.state}"
            for change in changes
        ]
        entries = [self._entry(change) for change in changes]
        payload = {
            "schema": "ragauge.alerts/1",
            "tenant": tenant,
            "app": app,
            "text": "\n".join(sentence(change) for change in changes),
            "config_hash": self.config_hash,
            "ragauge_version": __version__,
            "alerts": entries,
        }
        return Message(tenant, "\0".join(["alerts", tenant, app, *parts]), payload)

    def _entry(self, change: AlertChange) -> dict[str, Any]:
        """A change as a webhook is told it: enough to repeat what was measured."""
        key, after = change.key, change.after
        begins, ends = self._times(after, change.at)
        build = key.series.removeprefix("build=").partition(" ")[0] if key.series else None
        return {
            "rule": key.rule,
            "series": key.series,
            "state": after.state,
            "before": change.before.state,
            "at": iso_time(change.at),
            "metric": after.metric,
            "value": after.measured.value,
            "n": after.measured.n,
            "interval": after.measured.interval,
            "threshold": after.threshold,
            "direction": after.direction,
            "reference": after.reference,
            "details": after.details,
            "window": {"number": after.window, "begins": iso_time(begins), "ends": iso_time(ends)},
            "indexes": self._indexes(key, build, begins, ends),
            "worst_traces": worst_traces(
                self.database, key.tenant, key.app, build, (begins, ends), after.metric
            ),
        }

    def _times(self, record: AlertRecord, at: int) -> tuple[int, int]:
        if record.window is not None:
            window = read_window_row(self.database, record.window)
            if window is not None:
                return window.begins, window.ends
        return at - index_drift.DRIFT_MINUTES * MINUTE, at

    def _indexes(
        self, key: AlertKey, build: str | None, begins: int, ends: int
    ) -> list[dict[str, Any]]:
        """The builds and indexes that answered within a window, the most used first."""
        rows = self.database.read(
            "SELECT build, index_hash, index_facts, count(*) AS traces FROM live_traces"
            " WHERE tenant = ? AND app = ? AND minute >= ? AND minute <= ?"
            " AND arrived >= ? AND arrived < ?"
            " GROUP BY build, index_hash, index_facts ORDER BY traces DESC, build, index_hash",
            (key.tenant, key.app, begins // MINUTE, ends // MINUTE, begins, ends + 1),
        )
        return [
            {
                "build": row[0],
                "index_hash": row[1],
                "facts": msgspec.json.decode(row[2]),
                "traces": int(row[3]),
            }
            for row in rows
            if build is None or row[0] == build
        ][:WORST]


class _AlertBook:
    """The records during one evaluation, and how they have changed."""

    def __init__(self, records: dict[AlertKey, AlertRecord]) -> None:
        self.records = records
        self.changes: list[AlertChange] = []
        self._touched: set[AlertKey] = set()

    @property
    def is_changed(self) -> bool:
        return bool(self._touched)

    def put(self, key: AlertKey, record: AlertRecord, at: int) -> None:
        """Take over a record; a new state is a change."""
        before = self.records.get(key, AlertRecord(since=at))
        if record == self.records.get(key):
            return
        if record.state != before.state:
            self.changes.append(AlertChange(key=key, at=at, before=before, after=record))
        self.records[key] = record
        self._touched.add(key)

    def write(self, execute: Execute) -> None:
        """Write the records and their events, within a transaction."""
        for key in sorted(self._touched):
            record = self.records[key]
            text = msgspec.json.encode(record).decode()
            execute(
                "INSERT INTO live_alerts"
                " (tenant, app, rule, series, state, since, seen, record_json)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (tenant, app, rule, series) DO UPDATE SET state = excluded.state,"
                " since = excluded.since, seen = excluded.seen, record_json = excluded.record_json",
                (*_columns(key), record.state, record.since, record.seen, text),
            )
        for change in self.changes:
            text = msgspec.json.encode(change.after).decode()
            execute(
                "INSERT INTO live_alert_events"
                " (tenant, app, rule, series, at, before, after, record_json)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *_columns(change.key),
                    change.at,
                    change.before.state,
                    change.after.state,
                    text,
                ),
            )


def _columns(key: AlertKey) -> tuple[str, str, str, str]:
    return key.tenant, key.app, key.rule, key.series


def sentence(change: AlertChange) -> str:
    """A change in one line, as a person reads it in a chat."""
    key, after = change.key, change.after
    where = f"{key.app} {key.series}".strip()
    if key.rule == INDEX_DRIFT:
        values = "; ".join(f"{fact}: {', '.join(values)}" for fact, values in after.details.items())
        return f"{after.state}: {key.rule} in {where}: {values}"
    measured = after.measured
    value = "no value" if measured.value is None else f"{measured.value:.4g}"
    interval = ""
    if measured.interval is not None:
        low, high = ("…" if side is None else f"{side:.4g}" for side in measured.interval)
        interval = f", 95 % {low} to {high}"
    limit = "" if after.threshold is None else f", threshold {after.threshold:.4g}"
    return (
        f"{after.state}: {key.rule} in {where}: {after.metric} is {value}"
        f" (n {measured.n}{interval}{limit})"
    )


# --- the tables ---


def read_alerts(
    database: LiveDatabase, *, tenant: str | None = None
) -> dict[AlertKey, AlertRecord]:
    """All alerts of a store, or those of one tenant, by what they are about."""
    sql = "SELECT tenant, app, rule, series, record_json FROM live_alerts"
    rows = (
        database.read(sql)
        if tenant is None
        else database.read(f"{sql} WHERE tenant = ?", (tenant,))
    )
    return {
        AlertKey(*row[:4]): msgspec.json.decode(row[4], type=AlertRecord) for row in sorted(rows)
    }


def read_window_row(database: LiveDatabase, number: int) -> ClosedWindow | None:
    """A window by its number; None if it was deleted."""
    rows = database.read(
        "SELECT number, tenant, app, build, index_hash, question_type, begins_at, ends_at, state,"
        " samples, CAST(aggregate_json AS TEXT) FROM eval_live_windows WHERE number = ?",
        (number,),
    )
    if not rows:
        return None
    row = rows[0]
    return ClosedWindow(
        number=int(row[0]),
        tenant=row[1],
        app=row[2],
        build=row[3],
        index_hash=row[4],
        question_type=row[5],
        begins=milliseconds_of(row[6]),
        ends=milliseconds_of(row[7]),
        state=row[8],
        samples=int(row[9]),
        metrics=msgspec.json.decode(row[10], type=_Aggregate).metrics,
    )


def iso_time(milliseconds: int) -> str:
    """A time as the tables of windows have it."""
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def milliseconds_of(text: str) -> int:
    """The time that a text of those tables stands for."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def config_hash(settings: LiveSettings) -> str:
    """A hash of the settings in force, by which a message can be told from one under others."""
    return blake2b(msgspec.json.encode(settings, order="deterministic"), digest_size=16).hexdigest()
