"""What the pages read: rows of the live tables, of one tenant, as frozen values.

Every query is answered by the first columns of a key, so that it takes as long with 90 days of
traffic as with one. SQL is what SQLite and PostgreSQL both understand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.live.database import LiveDatabase
from ragauge.live.windows import at_minute

PAGE_OF_WINDOWS = 2000
"""Windows that are read at a time: a quarter of a year has some 26,000 of each series."""


class WindowValue(Struct, frozen=True):
    """One metric of a window, as `score` would give it for the traces of that window."""

    value: float | None = None
    n: int = 0
    interval: tuple[float | None, float | None] | None = None
    version: int | None = None
    reason: str | None = None
    unrounded: tuple[float | None, ...] | None = None

    @property
    def exact_value(self) -> float | None:
        """The value as it is judged: unrounded, where the aggregate has that."""
        return self.unrounded[0] if self.unrounded else self.value

    @property
    def exact_interval(self) -> tuple[float | None, float | None] | None:
        """The interval as it is judged: 0.69996 is shown as 0.7000, and is below it."""
        if self.interval is None or self.unrounded is None or len(self.unrounded) < 3:
            return self.interval
        return self.unrounded[1], self.unrounded[2]


class _Aggregate(Struct, frozen=True):
    metrics: dict[str, WindowValue] = {}


class LiveWindow(Struct, frozen=True, kw_only=True):
    """A window that has ended, with its metrics by id."""

    number: int
    app: str
    build: str
    index_hash: str
    question_type: str
    begins_at: str
    ends_at: str
    state: str
    samples: int
    sample_rate: float
    metrics: Mapping[str, WindowValue]

    @property
    def is_total(self) -> bool:
        """Whether it is over all builds, indexes and types of its app."""
        return not (self.build or self.index_hash or self.question_type)

    @property
    def dimension(self) -> str:
        """What it is a part by: `build`, `index` or `type` alone, or `several` together."""
        named = {"build": self.build, "index": self.index_hash, "type": self.question_type}
        parts = [name for name, value in named.items() if value]
        return parts[0] if len(parts) == 1 else "several" if parts else "total"

    @property
    def is_closed(self) -> bool:
        """Whether it got the samples that it needs; else it ended by its age."""
        return self.state == "closed"


class AlertFacts(Struct, frozen=True):
    """What an alert rests on, as far as its record says."""

    metric: str = ""
    measured: WindowValue = WindowValue()
    threshold: float | None = None
    direction: str = "above"
    was_firing: bool = False
    window: int | None = None
    details: dict[str, dict[str, int]] = {}

    @property
    def limit(self) -> str:
        """The good side of the threshold."""
        if self.threshold is None:
            return "–"
        return f"{'≥' if self.direction == 'below' else '<'} {self.threshold:.4g}"


class AlertRow(Struct, frozen=True, kw_only=True):
    """The state of a rule for one series, and what it rests on."""

    app: str
    rule: str
    series: str
    state: str
    since: int
    seen: int
    facts: AlertFacts

    @property
    def is_unresolved(self) -> bool:
        """Whether it fires, or did when data ended: silence resolves nothing."""
        return self.state == "firing" or (
            self.facts.was_firing and self.state in ("no-data", "too-little-data")
        )


class AlertEvent(Struct, frozen=True, kw_only=True):
    """A rule that went from one state to another."""

    number: int
    app: str
    rule: str
    series: str
    at: int
    before: str
    after: str
    facts: AlertFacts


class DecisionRow(Struct, frozen=True, kw_only=True):
    """A decision about a shadow, as it was stored."""

    number: int
    created_at: str
    app: str
    live: str
    shadow: str
    begins_at: str | None
    ends_at: str | None
    decision: str
    ragauge_version: str
    config_hash: str
    record_hash: str
    record: Mapping[str, Any]


class ListedTrace(Struct, frozen=True, kw_only=True):
    """A sampled trace; its body is packed, and may have gone by its age."""

    trace_id: str
    app: str
    build: str
    index_hash: str
    question_type: str
    arrived: int
    minute: int
    state: str
    skewed: int
    question_key: str | None
    gold_id: str | None
    sample_rate: float
    body: bytes | None


class PairRow(Struct, frozen=True, kw_only=True):
    """A question that a second system was asked."""

    trace_id: str
    role: str
    app: str
    live: str
    shadow: str
    asked: int
    state: str
    body: bytes | None
    measured: bytes | None
    live_body: bytes | None
    """The live trace, packed: what live did."""


class GoldCandidate(Struct, frozen=True, kw_only=True):
    """A question of live traffic that somebody wants in the gold set, with its item as JSON."""

    trace_id: str
    created: int
    item_json: str


class MinuteTraffic(Struct, frozen=True):
    """The samples of one minute."""

    minute: int
    samples: int


class OutcomeCount(Struct, frozen=True):
    """How many spans and traces met one end."""

    outcome: str
    spans: int
    traces: int
    last_minute: int


_aggregate = msgspec.json.Decoder(_Aggregate, strict=False).decode

_WINDOW = (
    "number, app, build, index_hash, question_type, begins_at, ends_at, state, samples, sample_rate"
)
_TOTAL = "build = '' AND index_hash = '' AND question_type = ''"
_DECISION = (
    "number, created_at, app, live, shadow, begins_at, ends_at, decision, ragauge_version,"
    " config_hash, record_hash"
)
_TRACE = (
    "trace_id, app, build, index_hash, question_type, arrived, minute, state, skewed,"
    " question_key, gold_id, sample_rate, body"
)


def _record(text: str) -> Mapping[str, Any]:
    """A stored object of JSON; what is none has nothing to show."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _facts(text: str) -> AlertFacts:
    """What an alert rests on; nothing where its record cannot be read."""
    try:
        return msgspec.json.decode(text, type=AlertFacts, strict=False)
    except msgspec.DecodeError:
        return AlertFacts()


def _metrics(text: str) -> Mapping[str, WindowValue]:
    """The metrics of a window; a damaged one has none, and is drawn as a gap."""
    try:
        return _aggregate(text).metrics
    except msgspec.DecodeError:
        return {}


def _window(row: Sequence[Any], read: Callable[[str], Mapping[str, WindowValue]]) -> LiveWindow:
    *columns, text = row
    named = zip(LiveWindow.__struct_fields__, (*columns, read(text)), strict=True)
    return LiveWindow(**dict(named))


def _reader_of(metric: str) -> Callable[[str], Mapping[str, WindowValue]]:
    """What reads one metric of an aggregate and passes over the others: a tenth of the time."""
    one = msgspec.defstruct(
        "OneMetric", [("value", WindowValue | None, None)], rename={"value": metric}
    )
    whole = msgspec.defstruct("OneAggregate", [("metrics", one | None, None)])
    decode = msgspec.json.Decoder(whole, strict=False).decode

    def read(text: str) -> Mapping[str, WindowValue]:
        try:
            metrics = getattr(decode(text), "metrics")  # noqa: B009  (a type made here)
        except msgspec.DecodeError:
            return {}
        value = None if metrics is None else metrics.value
        return {} if value is None else {metric: value}

    return read


def apps(database: LiveDatabase, tenant: str) -> list[str]:
    """The apps that have sent something, by name; each is found by one step in an index."""
    names: set[str] = set()
    for table in ("eval_live_windows", "eval_live_minutes", "live_traces", "live_pairs"):
        sql = f"SELECT min(app) FROM {table} WHERE tenant = ? AND app > ?"
        first = database.read(f"SELECT min(app) FROM {table} WHERE tenant = ?", (tenant,))[0][0]
        name = first
        while name is not None:
            names.add(name)
            name = database.read(sql, (tenant, name))[0][0]
    return sorted(names)


def newest_windows(
    database: LiveDatabase, tenant: str, app: str, *, limit: int, closed: bool = False
) -> list[LiveWindow]:
    """The last windows over all of an app, the newest first."""
    state = " AND state = 'closed'" if closed else ""
    rows = database.read(
        f"SELECT {_WINDOW}, CAST(aggregate_json AS TEXT) FROM eval_live_windows"
        f" WHERE tenant = ? AND app = ? AND {_TOTAL}{state} ORDER BY begins_at DESC LIMIT ?",
        (tenant, app, limit),
    )
    return [_window(row, _metrics) for row in rows]


def parts_of_window(
    database: LiveDatabase, tenant: str, app: str, since: str, *, limit: int = 500
) -> list[LiveWindow]:
    """The windows of builds, indexes and types that began at a time or later, the newest first."""
    rows = database.read(
        f"SELECT {_WINDOW}, CAST(aggregate_json AS TEXT) FROM eval_live_windows"
        f" WHERE tenant = ? AND app = ? AND begins_at >= ? AND NOT ({_TOTAL})"
        " ORDER BY begins_at DESC, number LIMIT ?",
        (tenant, app, since, limit),
    )
    return [_window(row, _metrics) for row in rows]


SERIES = {
    "total": _TOTAL,
    "build": "build <> '' AND index_hash = '' AND question_type = ''",
    "index": "build = '' AND index_hash <> '' AND question_type = ''",
    "type": "build = '' AND index_hash = '' AND question_type <> ''",
}
"""The series of all traffic, and of its parts by one name."""


def newest_of_series(
    database: LiveDatabase, tenant: str, app: str, by: str, *, metric: str, limit: int
) -> list[LiveWindow]:
    """The last windows of the series by one name, with one metric, the newest first."""
    rows = database.read(
        f"SELECT {_WINDOW}, CAST(aggregate_json AS TEXT) FROM eval_live_windows"
        f" WHERE tenant = ? AND app = ? AND {SERIES[by]}"
        " ORDER BY begins_at DESC, number DESC LIMIT ?",
        (tenant, app, limit),
    )
    read = _reader_of(metric)
    return [_window(row, read) for row in rows]


def windows_since(
    database: LiveDatabase, tenant: str, app: str, since: str, *, metric: str, by: str
) -> Iterator[LiveWindow]:
    """One metric of the windows from a time on, in the order of their begin.

    They come in pages: the JSON of a quarter of a year does not have to fit into memory.
    """
    after, number = since, -1
    read = _reader_of(metric)
    while True:
        rows = database.read(
            f"SELECT {_WINDOW}, CAST(aggregate_json AS TEXT) FROM eval_live_windows"
            " WHERE tenant = ? AND app = ? AND begins_at >= ? AND (begins_at > ? OR number > ?)"
            f" AND {SERIES[by]} ORDER BY begins_at, number LIMIT ?",
            (tenant, app, after, after, number, PAGE_OF_WINDOWS),
        )
        for row in rows:
            yield _window(row, read)
        if len(rows) < PAGE_OF_WINDOWS:
            return
        number, after = rows[-1][0], rows[-1][5]


def window(database: LiveDatabase, tenant: str, number: int) -> LiveWindow | None:
    """One window by its number."""
    rows = database.read(
        f"SELECT {_WINDOW}, CAST(aggregate_json AS TEXT) FROM eval_live_windows"
        " WHERE number = ? AND tenant = ?",
        (number, tenant),
    )
    return _window(rows[0], _metrics) if rows else None


def window_of_minute(
    database: LiveDatabase, tenant: str, app: str, minute: int
) -> LiveWindow | None:
    """The window over all of an app that a minute is in; None while that is open."""
    at = at_minute(minute)
    rows = database.read(
        f"SELECT {_WINDOW}, CAST(aggregate_json AS TEXT) FROM eval_live_windows"
        f" WHERE tenant = ? AND app = ? AND begins_at <= ? AND ends_at > ? AND {_TOTAL}"
        " ORDER BY begins_at DESC LIMIT 1",
        (tenant, app, at, at),
    )
    return _window(rows[0], _metrics) if rows else None


def traffic(database: LiveDatabase, tenant: str, app: str, since: int) -> list[MinuteTraffic]:
    """The samples of each minute from one on, over all parts; minutes without any are not there."""
    rows = database.read(
        "SELECT minute, CAST(sum(samples) AS BIGINT) FROM eval_live_minutes"
        f" WHERE tenant = ? AND app = ? AND minute >= ? AND {_TOTAL}"
        " GROUP BY minute ORDER BY minute",
        (tenant, app, since),
    )
    if not rows:  # totals may not be kept by the minute: then the parts are the traffic
        rows = database.read(
            "SELECT minute, CAST(sum(samples) AS BIGINT) FROM eval_live_minutes"
            " WHERE tenant = ? AND app = ? AND minute >= ? GROUP BY minute ORDER BY minute",
            (tenant, app, since),
        )
    return [MinuteTraffic(*row) for row in rows]


def alerts(database: LiveDatabase, tenant: str) -> list[AlertRow]:
    """The state of every rule, by app and name."""
    rows = database.read(
        "SELECT app, rule, series, state, since, seen, CAST(record_json AS TEXT) FROM live_alerts"
        " WHERE tenant = ? ORDER BY app, rule, series",
        (tenant,),
    )
    return [
        AlertRow(
            app=row[0], rule=row[1], series=row[2], state=row[3], since=row[4], seen=row[5],
            facts=_facts(row[6]),
        )
        for row in rows
    ]  # fmt: skip


def alert_events(
    database: LiveDatabase, tenant: str, *, before: int | None = None, limit: int = 100
) -> list[AlertEvent]:
    """The last changes of alerts, the newest first."""
    rows = database.read(
        "SELECT number, app, rule, series, at, before, after, CAST(record_json AS TEXT)"
        " FROM live_alert_events WHERE tenant = ? AND number < ? ORDER BY number DESC LIMIT ?",
        (tenant, 2**62 if before is None else before, limit),
    )
    return [
        AlertEvent(
            number=row[0], app=row[1], rule=row[2], series=row[3], at=row[4], before=row[5],
            after=row[6], facts=_facts(row[7]),
        )
        for row in rows
    ]  # fmt: skip


def _decision(row: Sequence[Any]) -> DecisionRow:
    *columns, text = row
    named = zip(DecisionRow.__struct_fields__, (*columns, _record(text)), strict=True)
    return DecisionRow(**dict(named))


def decisions(
    database: LiveDatabase, tenant: str, *, before: int | None = None, limit: int = 50
) -> list[DecisionRow]:
    """The last decisions, the newest first."""
    rows = database.read(
        f"SELECT {_DECISION}, CAST(record_json AS TEXT) FROM eval_decisions"
        " WHERE tenant = ? AND number < ? ORDER BY number DESC LIMIT ?",
        (tenant, 2**62 if before is None else before, limit),
    )
    return [_decision(row) for row in rows]


def decision(database: LiveDatabase, tenant: str, number: int) -> DecisionRow | None:
    """One decision by its number."""
    rows = database.read(
        f"SELECT {_DECISION}, CAST(record_json AS TEXT) FROM eval_decisions"
        " WHERE number = ? AND tenant = ?",
        (number, tenant),
    )
    return _decision(rows[0]) if rows else None


def _trace_row(row: Sequence[Any]) -> ListedTrace:
    return ListedTrace(**dict(zip(ListedTrace.__struct_fields__, row, strict=True)))


def traces(
    database: LiveDatabase,
    tenant: str,
    app: str,
    *,
    state: str | None = None,
    before: int | None = None,
    limit: int = 50,
) -> list[ListedTrace]:
    """The last traces of an app, the newest first; `before` is the time of the last one seen."""
    end = 2**62 if before is None else before
    chosen = "" if state is None else " AND state = ?"
    rows = database.read(
        f"SELECT {_TRACE} FROM live_traces WHERE tenant = ? AND app = ? AND minute <= ?"
        f" AND arrived < ?{chosen} ORDER BY minute DESC, arrived DESC, trace_id LIMIT ?",
        (tenant, app, end // 60000, end, *(() if state is None else (state,)), limit),
    )
    return [_trace_row(row) for row in rows]


def trace(database: LiveDatabase, tenant: str, trace_id: str) -> ListedTrace | None:
    """One trace by its id."""
    rows = database.read(
        f"SELECT {_TRACE} FROM live_traces WHERE tenant = ? AND trace_id = ?", (tenant, trace_id)
    )
    return _trace_row(rows[0]) if rows else None


class TraceContent(Struct, frozen=True):
    """The packed parts of a trace; either may have been deleted by its age."""

    body: bytes | None
    measured: bytes | None
    index_facts: str


def trace_content(database: LiveDatabase, tenant: str, trace_id: str) -> TraceContent | None:
    """What is kept of a trace beside its row."""
    rows = database.read(
        "SELECT body, measured, index_facts FROM live_traces WHERE tenant = ? AND trace_id = ?",
        (tenant, trace_id),
    )
    return TraceContent(*rows[0]) if rows else None


_PAIR = (
    "p.trace_id, role, p.app, live, shadow, asked, p.state, p.body, p.measured, t.body"
    " FROM live_pairs p LEFT JOIN live_traces t"
    " ON t.tenant = p.tenant AND t.trace_id = p.trace_id"
)


def _pair(row: Sequence[Any]) -> PairRow:
    return PairRow(**dict(zip(PairRow.__struct_fields__, row, strict=True)))


def pairs(
    database: LiveDatabase, tenant: str, app: str, *, before: int | None = None, limit: int = 50
) -> list[PairRow]:
    """The last pairs of an app, the newest first."""
    end = 2**62 if before is None else before
    rows = database.read(
        f"SELECT {_PAIR} WHERE p.tenant = ? AND p.app = ? AND p.minute <= ?"
        " AND asked < ? ORDER BY p.minute DESC, asked DESC, p.trace_id, role LIMIT ?",
        (tenant, app, end // 60000, end, limit),
    )
    return [_pair(row) for row in rows]


def pairs_of_trace(database: LiveDatabase, tenant: str, trace_id: str) -> list[PairRow]:
    """What other systems were asked with the question of a trace."""
    rows = database.read(
        f"SELECT {_PAIR} WHERE p.tenant = ? AND p.trace_id = ? ORDER BY role DESC",
        (tenant, trace_id),
    )
    return [_pair(row) for row in rows]


def outcomes(database: LiveDatabase, tenant: str, since: int) -> list[OutcomeCount]:
    """How many spans and traces met which end from a minute on, and when the last ones did."""
    rows = database.read(
        "SELECT outcome, CAST(sum(spans) AS BIGINT), CAST(sum(traces) AS BIGINT), max(minute)"
        " FROM live_counts WHERE tenant = ? AND minute >= ? GROUP BY outcome ORDER BY outcome",
        (tenant, since),
    )
    return [OutcomeCount(*row) for row in rows]


def last_accepted(database: LiveDatabase, tenant: str) -> int | None:
    """The last minute in which something was accepted."""
    rows = database.read(
        "SELECT minute FROM live_counts WHERE tenant = ? AND outcome = 'accepted'"
        " ORDER BY minute DESC LIMIT 1",
        (tenant,),
    )
    return int(rows[0][0]) if rows else None


def last_arrival(database: LiveDatabase, tenant: str, app: str) -> int | None:
    """When the newest trace that was scored arrived."""
    rows = database.read(
        "SELECT max(arrived) FROM live_traces WHERE tenant = ? AND app = ? AND minute ="
        " (SELECT max(minute) FROM live_traces WHERE tenant = ? AND app = ?)",
        (tenant, app, tenant, app),
    )
    value = rows[0][0]
    return None if value is None else int(value)


def outbox(database: LiveDatabase, tenant: str) -> dict[str, int]:
    """How many messages to webhooks wait, were sent, or were given up."""
    rows = database.read(
        "SELECT state, count(*) FROM live_outbox WHERE tenant = ? GROUP BY state", (tenant,)
    )
    return {state: int(count) for state, count in rows}


def gold_candidates(database: LiveDatabase, tenant: str) -> list[GoldCandidate]:
    """The candidates for the gold set, the first one first."""
    rows = database.read(
        "SELECT trace_id, created, item_json FROM live_gold_candidates WHERE tenant = ?"
        " ORDER BY created, trace_id",
        (tenant,),
    )
    return [GoldCandidate(trace_id=row[0], created=row[1], item_json=row[2]) for row in rows]


def item_of(candidate: GoldCandidate) -> Mapping[str, Any]:
    """The gold item of a candidate."""
    return _record(candidate.item_json)


def put_gold_candidate(database: LiveDatabase, tenant: str, candidate: GoldCandidate) -> None:
    """Add a candidate; the one of the same trace is replaced."""
    with database.transaction() as execute:
        execute(
            "INSERT INTO live_gold_candidates (tenant, trace_id, created, item_json, user_key)"
            " VALUES (?, ?, ?, ?, (SELECT user_key FROM live_traces"
            " WHERE tenant = ? AND trace_id = ?)) ON CONFLICT (tenant, trace_id)"
            " DO UPDATE SET created = excluded.created, item_json = excluded.item_json",
            (
                *(tenant, candidate.trace_id, candidate.created, candidate.item_json),
                *(tenant, candidate.trace_id),
            ),
        )


def remove_gold_candidate(database: LiveDatabase, tenant: str, trace_id: str) -> None:
    """Take a candidate away."""
    with database.transaction() as execute:
        execute(
            "DELETE FROM live_gold_candidates WHERE tenant = ? AND trace_id = ?",
            (tenant, trace_id),
        )


class FeedPosition(Struct, frozen=True):
    """How far the stream of events has come: the last window, change of an alert, decision, minute.

    As text it is the id of an event, so that a browser that comes back says where it was.
    """

    window: int = 0
    alert: int = 0
    decision: int = 0
    minute: int = 0

    @property
    def text(self) -> str:
        """The position as the id of an event."""
        return f"{self.window}.{self.alert}.{self.decision}.{self.minute}"

    @classmethod
    def parse(cls, text: str | None) -> FeedPosition | None:
        """The position that an id says; None if it says none."""
        parts = (text or "").split(".")
        if len(parts) != 4 or not all(part.isascii() and part.isdecimal() for part in parts):
            return None
        numbers = [int(part) for part in parts]
        return cls(*numbers) if max(numbers) < 2**62 else None


def feed_position(database: LiveDatabase, tenant: str, minute: int) -> FeedPosition:
    """The end of the stream; the present minute is not closed yet."""
    numbers = [
        database.read(
            f"SELECT number FROM {table} WHERE tenant = ? ORDER BY number DESC LIMIT 1", (tenant,)
        )
        for table in ("eval_live_windows", "live_alert_events", "eval_decisions")
    ]
    closed = database.read(
        "SELECT minute FROM live_counts WHERE tenant = ? AND minute < ?"
        " ORDER BY minute DESC LIMIT 1",
        (tenant, minute),
    )
    return FeedPosition(*(int(rows[0][0]) if rows else 0 for rows in (*numbers, closed)))


class FeedEvent(Struct, frozen=True):
    """Something that happened, by the kind of row that tells it."""

    kind: str
    number: int
    facts: Mapping[str, Any]


def feed_events(
    database: LiveDatabase, tenant: str, after: FeedPosition, minute: int, *, limit: int = 200
) -> list[FeedEvent]:
    """What came behind a position: windows, changes of alerts, decisions and closed minutes.

    Where more came than fits, the oldest are left out: a page that was away for long is drawn anew.
    """
    events: list[FeedEvent] = []
    kinds = (
        ("window", "eval_live_windows", after.window,
         "app, build, index_hash, question_type, state, samples"),
        ("alert", "live_alert_events", after.alert, "app, rule, series, before, after"),
        ("decision", "eval_decisions", after.decision, "app, live, shadow, decision"),
    )  # fmt: skip
    for kind, table, last, columns in kinds:
        rows = database.read(
            f"SELECT number, {columns} FROM {table} WHERE tenant = ? AND number > ?"
            " ORDER BY number DESC LIMIT ?",
            (tenant, last, limit),
        )
        names = columns.split(", ")
        events += [
            FeedEvent(kind, int(number), dict(zip(names, values, strict=True)))
            for number, *values in reversed(rows)
        ]
    minutes = database.read(
        "SELECT minute, CAST(sum(traces) AS BIGINT) FROM live_counts WHERE tenant = ?"
        " AND minute > ? AND minute < ? GROUP BY minute ORDER BY minute DESC LIMIT ?",
        (tenant, after.minute, minute, limit),
    )
    events += [
        FeedEvent("minute", int(minute), {"traces": int(count)})
        for minute, count in reversed(minutes)
    ]
    return events
