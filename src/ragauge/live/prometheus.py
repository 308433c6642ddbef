"""`/metrics`: what came in, how full the spool is, and the newest windows, as Prometheus reads it.

Labels come from traffic, so there is a limit of series. What is over it is counted, and its samples
go to the series `other`; values are not put together. Ids of traces, questions and indexes are
never labels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ragauge.errors import RagaugeError
from ragauge.live.access import READ, require
from ragauge.live.alerts import milliseconds_of
from ragauge.live.dashboard.queries import apps
from ragauge.live.database import LiveDatabase
from ragauge.live.server_state import LiveState
from ragauge.live.traffic import quarantine_path
from ragauge.live.windows import at_minute

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LONGEST = 120
OTHER = "other"
_NEWEST = """SELECT build, question_type, max(number) FROM eval_live_windows
WHERE tenant = ? AND app = ? AND begins_at >= ? AND index_hash = '' GROUP BY build, question_type"""
_WINDOW = """SELECT samples, state, ends_at, CAST(aggregate_json AS TEXT) FROM eval_live_windows
WHERE number = ?"""
_ALERTS = "SELECT app, rule, state, count(*) FROM live_alerts WHERE tenant = ? GROUP BY 1, 2, 3"

Labels = tuple[tuple[str, str], ...]


async def metrics(request: Request) -> Response:
    """`GET /metrics` of the tenant that asks."""
    caller = await require(request, READ)
    state: LiveState = request.app.state.live
    text = await run_in_threadpool(metrics_text, state, caller.tenant)
    return Response(text.encode(), media_type=MEDIA_TYPE)


ROUTES = [Route("/metrics", metrics, methods=["GET"])]


def metrics_text(state: LiveState, tenant: str) -> str:
    """All families as text."""
    families = _Families(state.settings.limits.series)
    _add_ingest(families, state, tenant)
    _add_spool(families, state)
    store_up = 1
    try:
        with state.databases() as database:
            _add_windows(families, database, tenant, _oldest(state))
            _add_alerts(families, database, tenant)
            _add_quarantine(families, state, tenant)
    except RagaugeError:
        store_up = 0
    families.add("ragauge_store_up", "gauge", "Whether the store answers.", store_up)
    families.add(
        "ragauge_series_omitted",
        "gauge",
        "Series over [live.limits] series, whose samples are in `other`.",
        families.omitted,
    )
    return families.text()


def _add_ingest(families: _Families, state: LiveState, tenant: str) -> None:
    totals = state.counts.totals(tenant)
    for outcome, counts in totals.items():
        labels = {"outcome": outcome}
        families.add(
            "ragauge_ingest_requests_total", "counter", "Requests, or parts of them, by their end.",
            counts.requests, labels,
        )  # fmt: skip
        families.add(
            "ragauge_ingest_spans_total", "counter", "Spans and native rows by their end.",
            counts.spans, labels,
        )  # fmt: skip
        families.add(
            "ragauge_ingest_traces_total", "counter", "Traces by their end.", counts.traces, labels
        )
    for part, count in sorted(state.faults.items()):
        families.add(
            "ragauge_faults_total", "counter", "Faults of the server itself.", count, {"part": part}
        )
    rate = state.settings.sampling.rate
    families.add("ragauge_sampling_rate", "gauge", "The share of traces that is kept.", rate)
    if state.filling_rate is not None:
        families.add(
            "ragauge_sampling_rate_advised", "gauge", "The share that fills a window an hour.",
            state.filling_rate,
        )  # fmt: skip
    if state.counts.last_accepted is not None:
        families.add(
            "ragauge_ingest_last_accepted_timestamp_seconds", "gauge",
            "When something was accepted last.", state.counts.last_accepted / 1000,
        )  # fmt: skip


def _add_spool(families: _Families, state: LiveState) -> None:
    spool = state.spool_state()
    age = 0.0 if spool.oldest is None else max(0, state.now() - spool.oldest) / 1000
    limit = state.settings.limits.spool_bytes
    families.add("ragauge_spool_bodies", "gauge", "Bodies that wait to be scored.", spool.bodies)
    families.add("ragauge_spool_bytes", "gauge", "Bytes that they take.", spool.bytes)
    families.add("ragauge_spool_limit_bytes", "gauge", "Above, senders get 429.", limit)
    families.add("ragauge_spool_oldest_age_seconds", "gauge", "How long the oldest waits.", age)
    if state.worker_state is not None:
        worker = state.worker_state()
        up, restarts = int(worker["running"]), worker["restarts"]
        families.add("ragauge_worker_up", "gauge", "Whether the worker runs.", up)
        families.add("ragauge_worker_restarts_total", "counter", "Times it died.", restarts)


def _oldest(state: LiveState) -> str:
    """When a window must have begun to be told: a build that nobody serves any more is not."""
    hours = 2 * state.settings.window.longest_hours
    return at_minute(max(0, state.now() // 60_000 - hours * 60))


def _add_windows(families: _Families, database: LiveDatabase, tenant: str, oldest: str) -> None:
    newest = [
        (int(number), app, build, question_type)
        for app in apps(database, tenant)
        for build, question_type, number in database.read(_NEWEST, (tenant, app, oldest))
    ]
    for number, app, build, question_type in sorted(newest, reverse=True):
        samples, window_state, ends_at, aggregate = database.read(_WINDOW, (number,))[0]
        own = {"app": app, "build": build, "slice": question_type}
        text = "Samples of the newest window."
        families.add("ragauge_window_samples", "gauge", text, samples, own, is_sum=True)
        text = "Whether it has enough samples; 0 is too little traffic."
        closed = int(window_state == "closed")
        families.add("ragauge_window_closed", "gauge", text, closed, own)
        ended = milliseconds_of(ends_at) / 1000
        text = "When it ended."
        families.add("ragauge_window_end_timestamp_seconds", "gauge", text, ended, own)
        document = json.loads(aggregate)
        for metric, estimate in sorted(document.get("metrics", {}).items()):
            labels = {"metric": metric, **own}
            n, value = estimate.get("n") or 0, estimate.get("value")
            families.add(
                "ragauge_window_n", "gauge", "Results that a value is taken over.", n, labels,
                is_sum=True,
            )  # fmt: skip
            if value is None:
                continue
            text = "A metric of the newest window."
            families.add("ragauge_window_value", "gauge", text, value, labels)
            low, high = estimate.get("interval") or (None, None)
            if low is not None and high is not None:
                text = "The lower end of its interval."
                families.add("ragauge_window_value_low", "gauge", text, low, labels)
                text = "The upper end of its interval."
                families.add("ragauge_window_value_high", "gauge", text, high, labels)


def _add_quarantine(families: _Families, state: LiveState, tenant: str) -> None:
    put_aside = len(list(state.spool_folder.glob(quarantine_path("*", tenant, "*"))))
    families.add(
        "ragauge_quarantined_bodies", "gauge", "Bodies put aside, which are not scored.", put_aside
    )


def _add_alerts(families: _Families, database: LiveDatabase, tenant: str) -> None:
    for app, rule, name, count in sorted(database.read(_ALERTS, (tenant,))):
        families.add(
            "ragauge_alerts", "gauge", "Series of a rule by their state.", count,
            {"app": app, "rule": rule, "state": name}, is_sum=True,
        )  # fmt: skip


class _Families:
    """Families of series in the order in which they came, up to a number of series."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0
        self.omitted = 0
        self._heads: dict[str, tuple[str, str]] = {}
        self._series: dict[str, dict[Labels, float]] = {}

    def add(
        self,
        name: str,
        kind: str,
        text: str,
        value: float,
        labels: Mapping[str, str] | None = None,
        *,
        is_sum: bool = False,
    ) -> None:
        """Add a series; over the limit, a number that can be summed goes to `other`."""
        self._heads.setdefault(name, (kind, text))
        series = self._series.setdefault(name, {})
        pairs = tuple((key, _short(str(own))) for key, own in (labels or {}).items())
        # What has no label of the traffic is always there: the limit is for what grows.
        grows = len(pairs) > 1
        if not grows or self.count < self.most:
            self.count += grows
            series[pairs] = value
            return
        self.omitted += 1
        if is_sum:
            rest = tuple((key, own if key == "metric" else OTHER) for key, own in pairs)
            series[rest] = series.get(rest, 0) + value

    def text(self) -> str:
        lines: list[str] = []
        for name, series in self._series.items():
            kind, text = self._heads[name]
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{_labels(pairs)} {value!r}" for pairs, value in series.items()]
        return "\n".join(lines) + "\n"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _labels(pairs: Sequence[tuple[str, str]]) -> str:
    inside = ",".join(f'{key}="{_escaped(value)}"' for key, value in pairs)
    return f"{{{inside}}}" if inside else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n").replace("\r", " ")
