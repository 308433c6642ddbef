"""Windows of live traffic: minutes are sealed, and windows close when they have seen enough.

A window of a series closes when it has both enough samples and enough minutes; one that is open for
a day has too little traffic, which is a state of its own. A series is all traffic of an app, or the
part of it with one build, index or type. A minute that was sealed takes no more traces: what comes
late counts in the first open one, so a window never changes after it has closed.

Sealing is one short transaction. What follows may be done again after a crash, by any server: the
traces of sealed minutes are the same then, and so is every row that is written.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from ragauge import __version__
from ragauge.errors import RagaugeError
from ragauge.live.database import Execute, LiveDatabase
from ragauge.live.settings import WindowRule
from ragauge.live.trace_values import LiveGold
from ragauge.live.window_scores import StoredTrace, WindowScores, score_traces
from ragauge.model.options import Options

MINUTE = 60_000
SETTLE = 5_000
"""Milliseconds that a minute stays open behind its end, beside what a trace waits for its spans."""

_LOCK_MARK = """INSERT INTO live_marks (name, minute) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET minute = live_marks.minute RETURNING minute"""
_RAISE_MARK = """INSERT INTO live_marks (name, minute) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET minute = excluded.minute
WHERE excluded.minute > live_marks.minute"""
_HOLD = "live-windows"
_BEFORE_ALL = -1


class Series(Struct, frozen=True, order=True):
    """Traffic that windows are made of; an empty part stands for all."""

    tenant: str
    app: str
    build: str = ""
    index_hash: str = ""
    question_type: str = ""

    def holds(self, cell: Series) -> bool:
        """Whether a part of the traffic belongs to this series."""
        return (
            self.tenant == cell.tenant
            and self.app == cell.app
            and self.build in ("", cell.build)
            and self.index_hash in ("", cell.index_hash)
            and self.question_type in ("", cell.question_type)
        )

    @property
    def is_total(self) -> bool:
        """Whether it is all traffic of its app."""
        return not (self.build or self.index_hash or self.question_type)


def series_of(cell: Series) -> list[Series]:
    """The series that the traffic of a cell counts in: all, each part by itself, and the cell."""
    build, index, kind = cell.build, cell.index_hash, cell.question_type
    parts = [("", "", ""), (build, "", ""), ("", index, ""), ("", "", kind), (build, index, "")]
    parts.append((build, index, kind))
    return [Series(cell.tenant, cell.app, *part) for part in dict.fromkeys(parts)]


def sealed_until(execute: Execute) -> int:
    """The last sealed minute; until the transaction ends, none is sealed behind it."""
    return int(execute(_LOCK_MARK, ("sealed", _BEFORE_ALL)).fetchone()[0])


def at_minute(minute: int) -> str:
    """A minute as tables of the store have it: when it begins, in UTC."""
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def minute_at(text: str) -> int:
    """The minute that begins at a time."""
    return int(datetime.fromisoformat(text).timestamp()) // 60


class MinuteCell(Struct, frozen=True):
    """How many traces a part of the traffic had in a minute, and at which rates they were kept."""

    minute: int
    samples: int
    weight: float
    """How many traces they stand for."""

    @property
    def rate(self) -> float:
        """The share of the traffic that was kept."""
        return self.samples / self.weight if self.weight else 1.0


class OpenWindow(Struct, frozen=True):
    """A window that has not closed: its first minute, and what it has seen since."""

    begins: int
    cells: tuple[MinuteCell, ...] = ()

    @property
    def samples(self) -> int:
        """The traces so far."""
        return sum(cell.samples for cell in self.cells)

    def end(self, rule: WindowRule, until: int) -> int | None:
        """The minute behind its last, if it closes by the end of minute `until`."""
        longest = self.begins + rule.longest_hours * 60
        samples = 0
        for cell in self.cells:
            if cell.minute >= longest:
                break
            samples += cell.samples
            if samples >= rule.samples:
                end = max(cell.minute + 1, self.begins + rule.minutes)
                return end if end <= until + 1 else None
        return longest if longest <= until + 1 else None

    def closed(self, end: int) -> OpenWindow:
        """The part before a minute."""
        return OpenWindow(self.begins, tuple(cell for cell in self.cells if cell.minute < end))

    def rest(self, end: int) -> OpenWindow:
        """The window that follows."""
        return OpenWindow(end, tuple(cell for cell in self.cells if cell.minute >= end))


class _Scored(Struct, frozen=True):
    """A window that was scored in this step."""

    series: Series
    begins: int
    end: int
    samples: int
    scores: WindowScores


class Windows:
    """Seals minutes, sums them up, and closes windows."""

    name = "windows"

    def __init__(
        self,
        database: LiveDatabase,
        rule: WindowRule,
        gold: LiveGold,
        *,
        options: Options = Options(),  # noqa: B008  (frozen)
        wait: int = SETTLE,
    ) -> None:
        self.database = database
        self.rule = rule
        self.gold = gold
        self.options = options
        self.wait = wait
        self._aggregated: int | None = None
        self._open: dict[Series, OpenWindow] = {}

    def step(self, now: int, *, read_until: int | None = None) -> None:
        """Seal the minutes that are over, and close what ends with them.

        `read_until`: the spool has been read up to that time, and holds what came later.
        """
        limit = (min(now, now if read_until is None else read_until) - self.wait) // MINUTE - 1
        rows = self.database.read("SELECT name, minute FROM live_marks")
        marks = {name: int(minute) for name, minute in rows}
        if marks.get("sealed", _BEFORE_ALL) < limit:
            with self.database.transaction() as execute:
                execute(_RAISE_MARK, ("sealed", limit))
            marks["sealed"] = limit
        if marks.get("aggregated", _BEFORE_ALL) >= marks.get("sealed", _BEFORE_ALL):
            return
        try:
            with self.database.hold(_HOLD):
                self._aggregate()
        except RagaugeError as error:
            if not any(problem.code == "run-held" for problem in error.problems):
                raise  # else another server is at it

    def _aggregate(self) -> None:
        with self.database.transaction() as execute:
            sealed = sealed_until(execute)
            execute(
                "INSERT INTO live_gold (digest, body) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (self.gold.digest, self.gold.packed),
            )
        rows = self.database.read("SELECT minute FROM live_marks WHERE name = 'aggregated'")
        done = int(rows[0][0]) if rows else _BEFORE_ALL
        if self._aggregated != done or self._aggregated is None:
            self._load(done)
        cells = self._cells(done, sealed)
        for minute in sorted({minute for minute, _ in cells}):
            self._sum_minute(minute, {cell: c for (at, cell), c in cells.items() if at == minute})
        self._note(cells)
        self._close(sealed)
        with self.database.transaction() as execute:
            execute(_RAISE_MARK, ("aggregated", sealed))
        self._aggregated = sealed

    def _cells(self, after: int, until: int) -> dict[tuple[int, Series], MinuteCell]:
        rows = self.database.read(
            "SELECT minute, tenant, app, build, index_hash, question_type, count(*), "
            "sum(1.0 / sample_rate) FROM live_traces "
            "WHERE minute > ? AND minute <= ? AND state <> 'unusable' "
            "GROUP BY minute, tenant, app, build, index_hash, question_type",
            (after, until),
        )
        return {
            (int(minute), Series(*names)): MinuteCell(int(minute), int(samples), float(weight))
            for minute, *names, samples, weight in rows
        }

    def _load(self, until: int) -> None:
        """Read which windows are open, as of a minute."""
        self._open = {}
        longest = self.rule.longest_hours * 60
        rows = self.database.read(
            "SELECT tenant, app, build, index_hash, question_type, max(ends_at) "
            "FROM eval_live_windows WHERE ends_at >= ? AND samples > 0 "
            "GROUP BY tenant, app, build, index_hash, question_type",
            (at_minute(max(0, until + 1 - 2 * longest)),),
        )
        for *names, ends_at in rows:
            self._open[Series(*names)] = OpenWindow(minute_at(ends_at))
        rows = self.database.read(
            "SELECT minute, tenant, app, build, index_hash, question_type, samples, sample_rate "
            "FROM eval_live_minutes WHERE minute > ? AND minute <= ? ORDER BY minute",
            (until - 2 * longest, until),
        )
        cells = {
            (int(minute), Series(*names)): MinuteCell(int(minute), int(samples), samples / rate)
            for minute, *names, samples, rate in rows
        }
        self._note(cells)
        # Only all traffic of an app goes on where nothing came: silence is said of it alone.
        self._open = {
            series: window
            for series, window in self._open.items()
            if window.cells or series.is_total
        }

    def _note(self, cells: Mapping[tuple[int, Series], MinuteCell]) -> None:
        """Add minutes to the open windows of their series."""
        added: dict[Series, dict[int, MinuteCell]] = {}
        for (minute, cell), count in sorted(cells.items()):
            for series in series_of(cell):
                minutes = added.setdefault(series, {})
                before = minutes.get(minute, MinuteCell(minute, 0, 0.0))
                samples, weight = before.samples + count.samples, before.weight + count.weight
                minutes[minute] = MinuteCell(minute, samples, weight)
        for series, minutes in added.items():
            window = self._open.get(series) or OpenWindow(min(minutes))
            seen = tuple(cell for at, cell in sorted(minutes.items()) if at >= window.begins)
            if not window.cells and not series.is_total and seen:
                window = OpenWindow(max(window.begins, seen[0].minute))
            self._open[series] = OpenWindow(window.begins, (*window.cells, *seen))

    def _sum_minute(self, minute: int, cells: Mapping[Series, MinuteCell]) -> None:
        """Store the sums of each part of the traffic of a minute."""
        rows = []
        for cell, count in sorted(cells.items()):
            traces = stored_traces(self.database, cell, minute, minute + 1, exact=True)
            scores = score_traces(traces, self.gold, self.options, sums_only=True)
            rows.append(
                (
                    cell.tenant, cell.app, minute, cell.build, cell.index_hash, cell.question_type,
                    count.samples, count.rate, minute_partials(scores),
                )
            )  # fmt: skip
        with self.database.transaction():
            self.database.execute_many(
                "INSERT INTO eval_live_minutes (tenant, app, minute, build, index_hash, "
                "question_type, samples, sample_rate, partials) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                rows,
            )

    def _close(self, until: int) -> None:
        """Store the windows that end by a minute.

        All traffic of an app that falls silent has one more window, which says so. Any other series
        begins again with its next trace.
        """
        scored: list[_Scored] = []
        for series in sorted(self._open):
            window: OpenWindow | None = self._open[series]
            while window is not None and (end := window.end(self.rule, until)) is not None:
                closed = window.closed(end)
                self._store(series, closed, end, self._scores(series, closed, end, scored))
                goes_on = series.is_total and closed.cells
                window = window.rest(end)
                if not window.cells and not goes_on:
                    window = None
                elif not goes_on:
                    window = OpenWindow(window.cells[0].minute, window.cells)
            if window is None:
                del self._open[series]
            else:
                self._open[series] = window

    def _scores(
        self, series: Series, window: OpenWindow, end: int, scored: list[_Scored]
    ) -> WindowScores:
        """Score a window, unless a series that holds this one had as many traces: the same ones."""
        for other in scored:
            same = (window.begins, end, window.samples) == (other.begins, other.end, other.samples)
            if same and other.series.holds(series):
                return other.scores
        scores = self.score(series, window.begins, end)
        scored.append(_Scored(series, window.begins, end, window.samples, scores))
        return scores

    def score(self, series: Series, begins: int, end: int) -> WindowScores:
        """Score the traces of a series from one minute to before another."""
        traces = stored_traces(self.database, series, begins, end)
        return score_traces(traces, self.gold, self.options)

    def _store(self, series: Series, window: OpenWindow, end: int, scores: WindowScores) -> None:
        state = "closed" if window.samples >= self.rule.samples else "too-little-traffic"
        weight = sum(cell.weight for cell in window.cells)
        aggregate = {
            "metrics": scores.metrics,
            "counts": msgspec.to_builtins(scores.scores.tally),
            "estimated_traces": weight,
            "gold": {"digest": self.gold.digest, "matched": scores.gold_matched},
            "documents": scores.documents if series.is_total or series.index_hash else {},
        }
        with self.database.transaction() as execute:
            execute(
                "INSERT INTO eval_live_windows (tenant, app, build, index_hash, question_type, "
                "begins_at, ends_at, state, samples, sample_rate, ragauge_version, aggregate_json) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (
                    series.tenant, series.app, series.build, series.index_hash,
                    series.question_type, at_minute(window.begins), at_minute(end), state,
                    window.samples, window.samples / weight if weight else 1.0, __version__,
                    msgspec.json.encode(aggregate).decode(),
                ),
            )  # fmt: skip


def stored_traces(
    database: LiveDatabase,
    series: Series,
    begins: int,
    end: int,
    *,
    exact: bool = False,
    column: str = "measured",
) -> Iterator[StoredTrace]:
    """The traces of a series from one minute to before another, by arrival, minute by minute.

    With `exact` an empty part of the series means traces without it, and not all.
    """
    where, names = "tenant = ? AND app = ?", [series.tenant, series.app]
    for name in ("build", "index_hash", "question_type"):
        part = getattr(series, name)
        if part or exact:
            where += f" AND {name} = ?"
            names.append(part)
    for minute in _minutes(database, where, names, begins, end):
        rows = database.read(
            f"SELECT trace_id, question_key, gold_id, {column} FROM live_traces "
            f"WHERE {where} AND minute = ? AND state <> 'unusable' AND {column} IS NOT NULL "
            "ORDER BY arrived, trace_id",
            (*names, minute),
        )
        for trace_id, question_key, gold_id, packed in rows:
            yield StoredTrace(trace_id, question_key, gold_id, bytes(packed))


def _minutes(
    database: LiveDatabase, where: str, names: Sequence[object], begins: int, end: int
) -> list[int]:
    rows = database.read(
        f"SELECT DISTINCT minute FROM live_traces WHERE {where} AND minute >= ? AND minute < ? "
        "ORDER BY minute",
        (*names, begins, end),
    )
    return [int(row[0]) for row in rows]


def minute_partials(scores: WindowScores) -> bytes:
    """The sums of a minute, packed JSON: by metric the sum of its values and how many there are.

    Sums are whole numbers of the metric's unit, so those of any minutes can be added.
    """
    sums: dict[str, Any] = {}
    for chosen in scores.selected:
        result = scores.scores.metrics[chosen.id]
        metric = chosen.metric
        if result.value is None or metric.quantile is not None or metric.of_question is not None:
            continue
        unit = 1 if metric.binary else metric.unit
        sums[chosen.id] = [round(result.value * result.records * unit), result.records, unit]
    partials = {
        "sums": sums,
        "values": scores.values,
        "counts": msgspec.to_builtins(scores.scores.tally),
    }
    return zlib.compress(msgspec.json.encode(partials), 1)


def unpacked_partials(partials: bytes) -> dict[str, Any]:
    """The sums of a minute."""
    unpacked: dict[str, Any] = msgspec.json.decode(zlib.decompress(partials))
    return unpacked


def exact_numbers(metric: Mapping[str, Any]) -> tuple[float | None, list[float | None] | None]:
    """The value of a metric of a window and its interval, neither of them rounded."""
    numbers = metric.get("unrounded")
    if not numbers:
        return None, None
    interval = metric.get("interval")
    return numbers[0], None if interval is None else list(numbers[1:3])


def summed(parts: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The mean of each metric over some minutes, from their sums."""
    totals: dict[str, list[int]] = {}
    for part in parts:
        for name, (total, records, unit) in part["sums"].items():
            before = totals.setdefault(name, [0, 0, unit])
            before[0] += total
            before[1] += records
    return {name: total / (n * unit) for name, (total, n, unit) in totals.items() if n}
