"""The pages: what each reads, and the template that shows it. They need no script to be read."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, wraps
from hashlib import sha256
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlencode

import msgspec
from jinja2 import Environment, FunctionLoader
from msgspec import Struct
from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from ragauge import __version__
from ragauge.errors import RagaugeError
from ragauge.live.access import (
    ADMIN,
    COOKIE,
    FORM_COOKIE,
    READ,
    SESSION_MS,
    AccessDeniedError,
    Caller,
    check_form,
    require,
)
from ragauge.live.dashboard import charts, gold_form, queries
from ragauge.live.dashboard.charts import ChartPoint, TimeLine
from ragauge.live.dashboard.events import EventFeed
from ragauge.live.dashboard.tiles import (
    ALERT_TONES,
    StatusLine,
    Threshold,
    headline,
    metric_tiles,
    thresholds_of,
)
from ragauge.live.dashboard.trace_view import (
    pair_facts,
    question_of,
    shown_trace,
    side_by_side,
)
from ragauge.live.database import LiveDatabase
from ragauge.live.metric_hours import MetricHour, read_hours
from ragauge.live.settings import LiveSettings
from ragauge.live.traffic import QUARANTINE, quarantine_path
from ragauge.live.worst_traces import worst_traces
from ragauge.report.html import page as report_page
from ragauge.report.html.markup import environment, package_text

HEADERS = {"Cache-Control": "no-store", "Referrer-Policy": "same-origin"}
"""Beside what every answer has. With no referrer a browser sends `Origin: null` for a form."""
SPARKS = 48
"""Windows that a tile remembers."""
TRAFFIC_MINUTES = 180
PAGE_ROWS = 50
BEHIND_MS = 5 * 60_000
"""Later than this, what is shown is not what happens: the overview says so."""
RANGES = {"6h": 6, "24h": 24, "7d": 168, "30d": 720, "90d": 2160}
"""Ranges of the page of a metric, in hours."""
PARTS = {"total": "all", "build": "build", "index": "index", "type": "question type"}
MOST_WINDOW_HOURS = 168
"""Ranges up to this are drawn of windows; longer ones of hours."""
BUCKETS = 360
"""Points of one line: more windows than that are drawn as their least, last and most."""
TROUBLES = frozenset(
    (
        "rejected", "refused", "unavailable", "undecodable", "too-large", "unsupported", "denied",
        "quarantined", "unusable", "conflict", "incomplete",
    )
)  # fmt: skip
"""Outcomes that somebody should look at."""
DECISION_TONES = {"promote": "good", "hold": "warn", "roll-back": "bad"}
CRITERION_TONES = {"pass": "good", "fail": "bad"}
ROLES = {"shadow": "the shadow", "again": "the shadow once more", "self": "live once more"}
STATE_TONES = {
    "scored": "quiet", "errored": "bad", "unusable": "warn", "answered": "quiet",
    "timed-out": "warn", "skipped": "quiet", "asking": "quiet",
}  # fmt: skip
_STATIC = {
    "dashboard.css": "text/css; charset=utf-8",
    "dashboard.js": "text/javascript; charset=utf-8",
}
_LINKS = (
    ("Overview", "/"), ("Metrics", "/metric"), ("Alerts", "/alerts"), ("Decisions", "/decisions"),
    ("Pairs", "/pairs"), ("Traces", "/traces"), ("Gold", "/gold"), ("Ingest", "/ingest"),
    ("Runs", "/runs"),
)  # fmt: skip


# --- text ---


def moment(at: int) -> str:
    """A time in UTC for people."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def time_ms(text: str | None) -> int | None:
    """Milliseconds of a time that is stored as text."""
    try:
        return round(datetime.fromisoformat(text or "").timestamp() * 1000)
    except ValueError:
        return None


def time_text(at: int) -> str:
    """A time as windows have it; such texts sort as their times do."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def age(milliseconds: int) -> str:
    """How long ago something was, in one unit."""
    seconds = max(milliseconds, 0) // 1000
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {name}"
    return f"{seconds} s"


def short_hash(text: str) -> str:
    """The beginning of a long hash; a short name as it is."""
    return text if len(text) <= 12 else f"{text[:10]}…"


def interval_text(bounds: tuple[float | None, float | None] | None) -> str:
    """An interval in the digits of a value."""
    low, high = bounds or (None, None)
    if low is None and high is None:
        return "–"
    if high is None:
        return f"{charts.value_text(low)} or more"
    if low is None:
        return f"{charts.value_text(high)} or less"
    return f"{charts.value_text(low)} to {charts.value_text(high)}"


def pretty(value: object) -> str:
    """A stored object as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def bytes_text(count: int) -> str:
    """A number of bytes in its unit."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"


def part_name(build: str, index_hash: str, question_type: str) -> str:
    """What a series is called."""
    names = (build, short_hash(index_hash), question_type)
    return " · ".join(filter(None, names)) or "all"


@cache
def _static_text(name: str) -> str:
    text = (files("ragauge.live.dashboard") / name).read_text("utf-8").replace("\r\n", "\n")
    return package_text("report.css") + text if name == "dashboard.css" else text


@cache
def _static_address(name: str) -> str:
    digest = sha256(_static_text(name).encode()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"


def _template(name: str) -> str:
    if name.startswith("report/"):
        return package_text(f"templates/{name.removeprefix('report/')}")
    path = files("ragauge.live.dashboard") / "templates" / name
    return path.read_text("utf-8").replace("\r\n", "\n")


@cache
def _environment() -> Environment:
    """The templates of reports, with our own: everything is escaped, controls are made visible."""
    jinja = environment().overlay(loader=FunctionLoader(_template))
    jinja.filters = {
        **jinja.filters,
        "moment": moment, "age": age, "hash": short_hash, "value": charts.value_text,
        "interval": interval_text, "stored_time": time_ms, "pretty": pretty, "bytes": bytes_text,
    }  # fmt: skip
    jinja.globals = {
        **jinja.globals,
        "static": _static_address, "LINKS": _LINKS, "ALERT_TONES": ALERT_TONES,
        "DECISION_TONES": DECISION_TONES, "STATE_TONES": STATE_TONES, "version": __version__,
        "CRITERION_TONES": CRITERION_TONES, "ROLES": ROLES,
        "part_name": part_name, "spark_line": charts.spark_line,
        "interval_strip": charts.interval_strip, "query": _query,
    }  # fmt: skip
    return jinja


def _query(**fields: object) -> str:
    """The query of an address; what is None is left out."""
    chosen = {name: str(value) for name, value in fields.items() if value is not None}
    return f"?{urlencode(chosen, errors='replace')}" if chosen else ""


# --- requests ---


class PageRequest(Struct, frozen=True, kw_only=True):
    """What a page is made of: who asks, the connection, the clock, and what the address says."""

    request: Request
    caller: Caller
    database: LiveDatabase
    settings: LiveSettings
    now: int
    apps: tuple[str, ...]
    app: str
    position: str
    """Where the stream of events was before anything was read: the page asks on from there."""

    def asked(self, name: str) -> str | None:
        """A part of the query; None where it is empty."""
        return self.request.query_params.get(name) or None

    def number(self, name: str) -> int | None:
        """A whole number of the query; None where it is none."""
        text = self.asked(name) or ""
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None

    def html(self, template: str, *, title: str, status: int = 200, **context: Any) -> Response:
        """The page."""
        text = (
            _environment()
            .get_template(template)
            .render(
                title=title,
                path=self.request.url.path,
                visitor=self.caller,
                position=self.position,
                apps=self.apps,
                app=self.app,
                now=self.now,
                **context,
            )
        )
        return HTMLResponse(text, status, headers=HEADERS)

    def missing(self, what: str) -> Response:
        """The page of something that is not there, or is another tenant's."""
        return self.html("message.html", title="Not found", status=404, message=what)


Page = Callable[[PageRequest], Response]


def _plain_page(
    status: int, title: str, message: str, *, headers: Mapping[str, str] = {}
) -> Response:
    """A page for whom nothing else may be shown."""
    text = _environment().get_template("plain.html").render(title=title, message=message)
    return HTMLResponse(text, status, headers={**HEADERS, **headers})


def _login_page(
    request: Request, status: int, message: str = "", *, headers: Mapping[str, str] = {}
) -> Response:
    """The page for who is not known: the form that logs in."""
    csrf = request.cookies.get(FORM_COOKIE) or secrets.token_urlsafe(24)
    template = _environment().get_template("login.html")
    text = template.render(title="Log in", message=message, csrf=csrf)
    response = HTMLResponse(text, status, headers={**HEADERS, **headers})
    _set_cookie(request, response, FORM_COOKIE, csrf)
    return response


def _set_cookie(request: Request, response: Response, name: str, value: str) -> None:
    """Leave a cookie that no script reads and no other site has sent."""
    forwarded = request.headers.get("x-forwarded-proto", "")
    response.set_cookie(
        name, value, max_age=SESSION_MS // 1000, httponly=True, samesite="strict",
        secure="https" in (request.url.scheme, forwarded),
    )  # fmt: skip


def _refusal(request: Request, error: AccessDeniedError) -> Response:
    """The page for a request that is not let in."""
    if error.status == 401:
        return _login_page(request, 401, error.reason, headers={"WWW-Authenticate": "Bearer"})
    headers = {"Retry-After": "1"} if error.status == 429 else {}
    return _plain_page(error.status, "Not allowed", error.reason, headers=headers)


def _made_by(page: Page, *, scope: str = READ) -> Callable[[Request], Awaitable[Response]]:
    """A page as Starlette calls it: who asks is checked, and a connection borrowed."""

    @wraps(page)
    async def endpoint(request: Request) -> Response:
        try:
            caller = await require(request, scope)
            if request.method == "POST":
                await check_form(request, caller.csrf)
                await request.body()
            is_new = caller.token_id is None and caller.csrf is None
            if is_new:
                caller = replace(caller, csrf=secrets.token_urlsafe(24))
            response = await run_in_threadpool(_answer, page, request, caller)
            if is_new and caller.csrf is not None:
                _set_cookie(request, response, FORM_COOKIE, caller.csrf)
            return response
        except AccessDeniedError as error:
            return _refusal(request, error)
        except RagaugeError as error:
            if error.problems[0].code in _OF_THE_CALLER:
                problem = error.problems[0]
                return _plain_page(400, "Not possible", f"{problem.message}: {problem.hint}")
            return _plain_page(
                503,
                "The store does not answer",
                "Try again in a moment.",
                headers={"Retry-After": "1"},
            )

    return endpoint


_OF_THE_CALLER = ("bad-field", "unknown-run", "incomplete-run", "bad-store", "not-comparable")


def _answer(page: Page, request: Request, caller: Caller) -> Response:
    live = request.app.state.live
    with live.databases() as database:
        now = live.now()
        position = queries.feed_position(database, caller.tenant, now // 60_000).text
        names = tuple(queries.apps(database, caller.tenant))
        app = request.query_params.get("app") or (names[0] if names else live.settings.app)
        return page(
            PageRequest(
                request=request, caller=caller, database=database, settings=live.settings,
                now=now, apps=names, app=app, position=position,
            )
        )  # fmt: skip


# --- pages ---


def overview(asked: PageRequest) -> Response:
    """How the app does now: one line, a tile a metric, traffic, alerts, the last decision."""
    database, tenant, app = asked.database, asked.caller.tenant, asked.app
    windows = queries.newest_windows(database, tenant, app, limit=SPARKS)
    alerts = [alert for alert in queries.alerts(database, tenant) if alert.app == app]
    thresholds = thresholds_of(asked.settings, app, alerts)
    tiles = metric_tiles(windows, thresholds, alerts)
    arrived = queries.last_arrival(database, tenant, app)
    end = asked.now // 60_000 + 1
    begin = end - TRAFFIC_MINUTES
    minutes = queries.traffic(database, tenant, app, begin)
    last = windows[0] if windows else None
    begins = last.begins_at if last is not None else time_text(asked.now)
    parts = [
        part
        for part in queries.parts_of_window(database, tenant, app, begins, limit=200)
        if part.dimension != "several"
    ]
    decisions = [one for one in queries.decisions(database, tenant, limit=20) if one.app == app]
    troubles = _troubles(asked)
    return asked.html(
        "overview.html",
        title=f"{app} · overview",
        hero=_hero(asked, tiles, alerts, last, arrived, troubles),
        troubles=troubles,
        lag=_lag(asked, arrived),
        server=asked.request.app.state.live,
        tiles=[tile for tile in tiles if tile.was_measured],
        unmeasured=[tile for tile in tiles if not tile.was_measured],
        window=last,
        parts=parts,
        part_metrics=_part_metrics(parts, thresholds),
        traffic=charts.traffic_bars(minutes, begin, end),
        sampled=sum(minute.samples for minute in minutes),
        traffic_minutes=TRAFFIC_MINUTES,
        active=[alert for alert in alerts if alert.is_unresolved or alert.state == "pending"],
        watched=len(alerts),
        decision=decisions[0] if decisions else None,
        arrived=arrived,
        rule=asked.settings.window,
    )


def _hero(
    asked: PageRequest,
    tiles: Sequence[Any],
    alerts: Sequence[queries.AlertRow],
    last: queries.LiveWindow | None,
    arrived: int | None,
    troubles: Sequence[str],
) -> StatusLine:
    """The first line; an old window says nothing of today."""
    stale = behind = None
    limit = asked.settings.alerts.no_data_minutes * 60_000
    ended = time_ms(last.ends_at) if last is not None else None
    if last is None:
        stale = "Nothing was measured yet"
        if arrived is not None:
            samples = asked.settings.window.samples
            stale = f"Nothing was measured yet: a window closes after {samples} samples"
    elif asked.now - (newest := max(arrived or 0, ended or 0)) > limit:
        stale = f"No data: the last trace came {age(asked.now - newest)} ago"
    waiting = _oldest_waiting(asked.request)
    if waiting is not None and asked.now - waiting > BEHIND_MS:
        behind = f"Scoring is {age(asked.now - waiting)} behind: what follows is not what happens"
    return headline(tiles, alerts, stale=stale, behind=behind, troubles=troubles)


def _troubles(asked: PageRequest) -> list[str]:
    """Why some of what came is in no number: it must be seen before any of them."""
    troubles = []
    live, tenant = asked.request.app.state.live, asked.caller.tenant
    if live.worker_state is not None and not live.worker_state()["running"]:
        troubles.append("The worker does not run: nothing is scored.")
    day = {one.outcome: one for one in queries.outcomes(asked.database, tenant, _day(asked.now))}
    put_aside = len(list(live.spool_folder.glob(quarantine_path("*", tenant, "*"))))
    if "quarantined" in day:
        put_aside = max(put_aside, day["quarantined"].traces)
    if put_aside:
        bodies = "1 body was" if put_aside == 1 else f"{put_aside:,} bodies were"
        troubles.append(
            f"{bodies} put aside in `{QUARANTINE}/` because reading failed: what came in "
            f"{'it' if put_aside == 1 else 'them'} is not scored."
        )
    refused = sum(day[name].spans or 1 for name in ("refused", "unavailable") if name in day)
    if refused:
        troubles.append(
            "In the last day senders were told to wait (429 or 503): the spool was full, or the "
            "disk or the store was away."
        )
    return troubles


def _day(now: int) -> int:
    """The first minute of the last day."""
    return now // 60_000 - 1439


class _Lag(Struct, frozen=True):
    """When something was last accepted and scored, and what waits in between."""

    accepted: int | None
    scored: int | None
    bodies: int
    oldest: int | None


def _lag(asked: PageRequest, scored: int | None) -> _Lag:
    minute = queries.last_accepted(asked.database, asked.caller.tenant)
    accepted = None if minute is None else minute * 60_000
    own = asked.request.app.state.live.counts.last_accepted
    if own is not None and not asked.caller.tenant:  # to the second, where it is our own
        accepted = max(own, accepted or 0)
    spool = _spool_state(asked.request)
    return _Lag(
        accepted,
        scored,
        0 if spool is None else spool.bodies,
        None if spool is None else spool.oldest,
    )


def _oldest_waiting(request: Request) -> int | None:
    """When the oldest body came that still waits in the spool."""
    state = _spool_state(request)
    return None if state is None else state.oldest


def _spool_state(request: Request) -> Any:
    spool_state = getattr(request.app.state.live, "spool_state", None)
    return None if spool_state is None else spool_state()


def _part_metrics(
    parts: Sequence[queries.LiveWindow], thresholds: Mapping[str, Threshold]
) -> list[str]:
    """The watched metrics that any part has, in the order of their names."""
    measured = {
        name
        for part in parts
        for name, value in part.metrics.items()
        if value.value is not None and name in thresholds
    }
    return sorted(measured)[:6]


def metric(asked: PageRequest) -> Response:
    """One metric over time: over all, or by build and index, or by type."""
    database, tenant, app = asked.database, asked.caller.tenant, asked.app
    newest = queries.newest_windows(database, tenant, app, limit=1)
    names = sorted(newest[0].metrics) if newest else []
    states = [alert for alert in queries.alerts(database, tenant) if alert.app == app]
    thresholds = thresholds_of(asked.settings, app, states)
    measured = [name for name in names if newest[0].metrics[name].value is not None]
    watched = [name for name in measured if name in thresholds]
    name = asked.asked("name") or (watched or measured or names or [""])[0]
    spelt = asked.asked("range")
    chosen = spelt if spelt in RANGES else "24h"
    parted = asked.asked("by")
    by = parted if parted in PARTS else "total"
    end = asked.now
    begin = end - RANGES[chosen] * 3_600_000
    if RANGES[chosen] > MOST_WINDOW_HOURS:
        drawn = _lines_of_hours(asked, name, by, begin, end)
    else:
        drawn = _lines_of_windows(asked, name, by, begin, end)
    threshold = thresholds.get(name)
    edges = [] if threshold is None else threshold.edges
    return asked.html(
        "metric.html",
        title=f"{app} · {name}",
        metric=name,
        names=sorted({*names, *thresholds}),
        ranges=list(RANGES),
        range=chosen,
        parts=PARTS,
        by=by,
        threshold=threshold,
        chart=charts.time_chart(
            f"{name} of {app}", drawn.lines, begin=begin, end=end, edges=edges,
            gap=max(3_600_000, 3 * (end - begin) // BUCKETS),
        ),
        lines=[line.name for line in drawn.lines[: charts.MOST_LINES]],
        hidden_lines=max(len(drawn.lines) - charts.MOST_LINES, 0),
        windows=drawn.newest,
        count=drawn.count,
        is_thinned=drawn.is_thinned,
    )  # fmt: skip


class _Drawn(Struct, frozen=True):
    """What the page of a metric shows: lines, the newest windows, and how many there are.

    Lines that were seen last come first: an index that is gone is of less interest.
    """

    lines: list[TimeLine]
    newest: Sequence[queries.LiveWindow]
    count: int
    is_thinned: bool


def _lines_of_windows(asked: PageRequest, metric: str, by: str, begin: int, end: int) -> _Drawn:
    """The lines of a range that is short enough to read all its windows."""
    windows = list(
        queries.windows_since(
            asked.database, asked.caller.tenant, asked.app, time_text(begin), metric=metric, by=by
        )
    )
    series: dict[str, list[queries.LiveWindow]] = {}
    for window in windows:
        key = part_name(window.build, window.index_hash, window.question_type)
        series.setdefault(key, []).append(window)
    order = sorted(series, key=lambda key: (series[key][-1].begins_at, key), reverse=True)
    return _Drawn(
        [_time_line(key, series[key], metric, begin, end) for key in order],
        windows[: -PAGE_ROWS - 1 : -1],
        len(windows),
        any(len(found) > BUCKETS for found in series.values()),
    )


def _lines_of_hours(asked: PageRequest, metric: str, by: str, begin: int, end: int) -> _Drawn:
    """The lines of a long range: the last value of some hours, with the least and the most."""
    database, tenant, app = asked.database, asked.caller.tenant, asked.app
    hours = read_hours(database, tenant, app, metric, begin, queries.SERIES[by])
    width = max((end - begin) // BUCKETS, 1)
    series: dict[str, dict[int, list[MetricHour]]] = {}
    for hour in hours:
        key = part_name(hour.build, hour.index_hash, hour.question_type)
        series.setdefault(key, {}).setdefault(hour.ended // width, []).append(hour)
    lines = [
        TimeLine(key, tuple(_point_of_hours(key, found) for found in buckets.values()))
        for key, buckets in series.items()
    ]
    lines.sort(key=lambda line: (line.points[-1].at, line.name), reverse=True)
    newest = queries.newest_of_series(database, tenant, app, by, metric=metric, limit=PAGE_ROWS)
    return _Drawn(lines, newest, sum(hour.windows for hour in hours), is_thinned=True)


def _point_of_hours(key: str, hours: Sequence[MetricHour]) -> ChartPoint:
    last = hours[-1]
    windows = sum(hour.windows for hour in hours)
    low, high = min(hour.least for hour in hours), max(hour.most for hour in hours)
    label = f"{key}, {windows} windows up to {moment(last.ended)} UTC"
    return ChartPoint(last.ended, last.last, low, high, label)


def _time_line(
    key: str, windows: Sequence[queries.LiveWindow], metric: str, begin: int, end: int
) -> TimeLine:
    """The line of a series: a point a window, or the least, last and most of each bucket."""
    buckets: dict[int, list[queries.LiveWindow]] = {}
    width = 1 if len(windows) <= BUCKETS else max((end - begin) // BUCKETS, 1)
    for window in windows:
        at = time_ms(window.ends_at)
        if at is not None:
            buckets.setdefault(at // width, []).append(window)
    points = []
    for bucket in sorted(buckets):
        found = buckets[bucket]
        values = [
            value
            for window in found
            if (value := window.metrics.get(metric)) is not None and value.value is not None
        ]
        at = time_ms(found[-1].ends_at) or 0
        if not values:
            points.append(ChartPoint(at, None))
            continue
        last = values[-1]
        if len(found) == 1:
            low, high = last.interval or (None, None)
            label = f"{key}, {moment(at)} UTC: {charts.value_text(last.value)}, n {last.n}"
        else:
            numbers = [value.value for value in values if value.value is not None]
            low, high = min(numbers), max(numbers)
            label = f"{key}, {len(found)} windows up to {moment(at)} UTC"
        points.append(ChartPoint(at, last.value, low, high, label))
    return TimeLine(key, tuple(points))


def alerts(asked: PageRequest) -> Response:
    """Every rule with its state, and the changes of late."""
    database, tenant = asked.database, asked.caller.tenant
    order = ("firing", "pending", "resolved", "too-little-data", "no-data", "inactive")
    rows = sorted(
        queries.alerts(database, tenant),
        key=lambda row: (order.index(row.state), row.app, row.rule, row.series),
    )
    events = queries.alert_events(
        database, tenant, before=asked.number("before"), limit=PAGE_ROWS + 1
    )
    return asked.html(
        "alerts.html",
        title="Alerts",
        alerts=rows,
        events=events[:PAGE_ROWS],
        more=events[PAGE_ROWS - 1].number if len(events) > PAGE_ROWS else None,
        outbox=queries.outbox(database, tenant),
        rules=thresholds_of(asked.settings, asked.app),
    )


def worst(asked: PageRequest) -> Response:
    """The worst traces of the window that an alert rests on: where whoever was paged begins."""
    database, tenant = asked.database, asked.caller.tenant
    wanted = asked.app, asked.asked("rule") or "", asked.asked("series") or ""
    found = [
        row for row in queries.alerts(database, tenant) if (row.app, row.rule, row.series) == wanted
    ]
    if not found:
        return asked.missing("There is no such alert.")
    alert = found[0]
    number = alert.facts.window
    window = None if number is None else queries.window(database, tenant, number)
    ids: list[str] = []
    if window is not None:
        times = time_ms(window.begins_at) or 0, time_ms(window.ends_at) or 0
        build = window.build or None
        ids = worst_traces(database, tenant, asked.app, build, times, alert.facts.metric)
    traces = [row for name in ids if (row := queries.trace(database, tenant, name)) is not None]
    return asked.html(
        "worst.html",
        title=f"{alert.rule} · worst traces",
        alert=alert,
        window=window,
        traces=[(row, question_of(row.body)) for row in traces],
    )


def decisions(asked: PageRequest) -> Response:
    """The decisions about shadows, the newest first."""
    rows = queries.decisions(
        asked.database, asked.caller.tenant, before=asked.number("before"), limit=PAGE_ROWS + 1
    )
    return asked.html(
        "decisions.html",
        title="Decisions",
        decisions=rows[:PAGE_ROWS],
        more=rows[PAGE_ROWS - 1].number if len(rows) > PAGE_ROWS else None,
    )


def decision(asked: PageRequest) -> Response:
    """One decision with what it rests on."""
    number = asked.number("number")
    row = None
    if number is not None:
        row = queries.decision(asked.database, asked.caller.tenant, number)
    if row is None:
        return asked.missing("There is no such decision.")
    return asked.html(
        "decision.html",
        title=f"Decision {row.number}",
        decision=row,
        criteria=_criteria(row.record),
        reasons=_reasons(row.record),
        agreement=_agreement(row.record),
    )


AGREEMENT = {
    "kendall_tau": "Kendall's tau of the first ten hits",
    "self_kendall_tau": "the same, of live asked twice",
    "same_citations": "same citations",
    "self_same_citations": "the same, of live asked twice",
    "cite_first": "answers of the shadow that cite",
}
"""What a record says of agreement beside its criteria."""


def _agreement(record: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    listed = record.get("agreement")
    if not isinstance(listed, Mapping):
        return []
    found = [(words, listed.get(name)) for name, words in AGREEMENT.items()]
    return [(words, one) for words, one in found if isinstance(one, Mapping)]


def _criteria(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The criteria of a decision as rows."""
    listed = record.get("criteria")
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def _reasons(record: Mapping[str, Any]) -> list[str]:
    listed = record.get("reasons")
    return [str(reason) for reason in listed] if isinstance(listed, list) else []


def pairs(asked: PageRequest) -> Response:
    """The questions that a second system was asked, the newest first."""
    rows = queries.pairs(
        asked.database, asked.caller.tenant, asked.app, before=asked.number("before"),
        limit=PAGE_ROWS + 1,
    )  # fmt: skip
    return asked.html(
        "pairs.html",
        title="Shadow pairs",
        pairs=[
            (row, question_of(row.body) or question_of(row.live_body), pair_facts(row.measured))
            for row in rows[:PAGE_ROWS]
        ],
        more=rows[PAGE_ROWS - 1].asked if len(rows) > PAGE_ROWS else None,
        shadow=asked.settings.shadow,
    )


def pair(asked: PageRequest) -> Response:
    """One question with the hits of live and of the shadow side by side."""
    trace_id, role = asked.asked("id") or "", asked.asked("role") or "shadow"
    found = [
        row
        for row in queries.pairs_of_trace(asked.database, asked.caller.tenant, trace_id)
        if row.role == role
    ]
    if not found:
        return asked.missing("There is no such pair.")
    content = queries.trace_content(asked.database, asked.caller.tenant, trace_id)
    live, shadow = side_by_side(
        shown_trace(None if content is None else content.body), shown_trace(found[0].body)
    )
    return asked.html(
        "pair.html",
        title="Shadow pair",
        pair=found[0],
        facts=pair_facts(found[0].measured),
        live=live,
        shadow=shadow,
    )


def traces(asked: PageRequest) -> Response:
    """The traces that were sampled, the newest first."""
    state = asked.asked("state")
    chosen = state if state in ("scored", "errored", "unusable") else None
    rows = queries.traces(
        asked.database, asked.caller.tenant, asked.app, state=chosen,
        before=asked.number("before"), limit=PAGE_ROWS + 1,
    )  # fmt: skip
    return asked.html(
        "traces.html",
        title="Traces",
        traces=[(row, question_of(row.body)) for row in rows[:PAGE_ROWS]],
        state=chosen,
        more=rows[PAGE_ROWS - 1].arrived if len(rows) > PAGE_ROWS else None,
    )


def trace(asked: PageRequest) -> Response:
    """One trace with its hits and citations, its pairs, and the form for a gold item."""
    return _trace_page(asked, asked.asked("id") or "")


def _trace_page(asked: PageRequest, trace_id: str, *, problem: str | None = None) -> Response:
    tenant = asked.caller.tenant
    row = queries.trace(asked.database, tenant, trace_id)
    content = queries.trace_content(asked.database, tenant, trace_id)
    if row is None or content is None:
        return asked.missing("There is no such trace, or it was deleted.")
    candidates = queries.gold_candidates(asked.database, tenant)
    return asked.html(
        "trace.html",
        title="Trace",
        status=200 if problem is None else 400,
        row=row,
        window=queries.window_of_minute(asked.database, tenant, row.app, row.minute),
        trace=shown_trace(content.body),
        pairs=queries.pairs_of_trace(asked.database, tenant, trace_id),
        is_candidate=any(one.trace_id == trace_id for one in candidates),
        problem=problem,
    )


def ingest(asked: PageRequest) -> Response:
    """How what comes in is dealt with: lag, what was refused, what waits."""
    tenant, now = asked.caller.tenant, asked.now
    minute = now // 60_000
    spans = {"hour": minute - 59, "day": _day(now)}
    counts = {
        name: queries.outcomes(asked.database, tenant, begin) for name, begin in spans.items()
    }
    scored = [queries.last_arrival(asked.database, tenant, app) for app in asked.apps]
    lag = _lag(asked, max((at for at in scored if at is not None), default=None))
    return asked.html(
        "ingest.html",
        title="Ingest",
        counts=counts,
        outcomes=sorted({one.outcome for found in counts.values() for one in found}),
        accepted=lag.accepted,
        scored=lag.scored,
        spool=_spool_state(asked.request) if tenant == "" else None,
        limits=asked.settings.limits,
        sampling=asked.settings.sampling,
        behind_ms=BEHIND_MS,
        troubles=TROUBLES,
        notices=_troubles(asked),
        outbox=queries.outbox(asked.database, tenant),
    )


def runs(asked: PageRequest) -> Response:
    """The runs of the store, for those who share it with its owner."""
    from ragauge.live.dashboard import stored_runs  # what compares runs takes long to load

    owner = asked.caller.tenant == ""
    rows = stored_runs.list_runs(asked.database) if owner else []
    return asked.html("runs.html", title="Runs", runs=rows, owner=owner)


def run(asked: PageRequest) -> Response:
    """A run as `ragauge view` shows it."""
    if asked.caller.tenant:
        return asked.missing("There is no such run.")
    from ragauge.live.dashboard import stored_runs

    name = asked.asked("id") or ""
    return _report(lambda: stored_runs.page_of_run(asked.database, name), asked)


def comparison(asked: PageRequest) -> Response:
    """Two runs as `ragauge view --against` shows them."""
    if asked.caller.tenant:
        return asked.missing("There is no such run.")
    from ragauge.live.dashboard import stored_runs

    a, b = asked.asked("a") or "", asked.asked("b") or ""
    return _report(lambda: stored_runs.page_of_comparison(asked.database, a, b), asked)


def _report(make: Callable[[], str], asked: PageRequest) -> Response:
    try:
        text = make()
    except RagaugeError as error:
        problem = error.problems[0]
        text = f"{problem.message}: {problem.hint}"
        return asked.html("message.html", title="Not possible", status=400, message=text)
    # The page carries its style and script, which its policy names by their hashes.
    policy = f"{report_page.policy()}; frame-ancestors 'none'"
    return HTMLResponse(text, headers={**HEADERS, "Content-Security-Policy": policy})


def gold(asked: PageRequest) -> Response:
    """The candidates for the gold set."""
    rows = queries.gold_candidates(asked.database, asked.caller.tenant)
    return asked.html(
        "gold.html",
        title="Gold candidates",
        candidates=[(row, queries.item_of(row)) for row in rows],
    )


def gold_file(asked: PageRequest) -> Response:
    """The candidates as a file of gold items."""
    rows = queries.gold_candidates(asked.database, asked.caller.tenant)
    headers = {**HEADERS, "Content-Disposition": 'attachment; filename="gold-candidates.jsonl"'}
    text = gold_form.candidate_lines(rows)
    return Response(text, media_type="application/jsonl; charset=utf-8", headers=headers)


def _fields(request: Request) -> dict[str, list[str]]:
    """The fields of a form; its body was read when the caller was checked."""
    body: bytes = request._body
    return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=1000)


def add_gold(asked: PageRequest) -> Response:
    """Take a question as a gold item."""
    fields = _fields(asked.request)
    trace_id = fields.get("id", [""])[0]
    row = queries.trace(asked.database, asked.caller.tenant, trace_id)
    if row is None:
        return asked.missing("There is no such trace, or it was deleted.")
    try:
        made = gold_form.candidate(
            trace_id, fields, question_type=row.question_type, created=asked.now
        )
    except RagaugeError as error:
        return _trace_page(asked, trace_id, problem=error.problems[0].message)
    queries.put_gold_candidate(asked.database, asked.caller.tenant, made)
    return RedirectResponse("/gold", 303, headers=HEADERS)


def remove_gold(asked: PageRequest) -> Response:
    """Take a candidate back."""
    trace_id = _fields(asked.request).get("id", [""])[0]
    queries.remove_gold_candidate(asked.database, asked.caller.tenant, trace_id)
    return RedirectResponse("/gold", 303, headers=HEADERS)


async def events(request: Request) -> Response:
    """The stream of events."""
    try:
        caller = await require(request, READ)
    except AccessDeniedError as error:
        return Response(error.reason, error.status, media_type="text/plain")
    return feed(request).response(request, caller.tenant)


def feed(request: Request) -> EventFeed:
    """The feed of this server, made when it is first asked for."""
    state = request.app.state
    if not hasattr(state, "event_feed"):
        state.event_feed = EventFeed(state.live.databases, state.live.now)
    found: EventFeed = state.event_feed
    return found


def stop_streams(app: Any) -> None:
    """End the streams of an application that is told to stop."""
    feed_of_app = getattr(app.state, "event_feed", None)
    if feed_of_app is not None:
        feed_of_app.stop()


async def login(request: Request) -> Response:
    """Take a token once, and leave a cookie: the token itself is never in an address."""
    if request.method != "POST":
        return _login_page(request, 200)
    try:  # else a page of another site could log a browser in under a token of its own
        await check_form(request, request.cookies.get(FORM_COOKIE))
    except AccessDeniedError as error:
        return _refusal(request, error)
    body = await request.body()
    fields = parse_qs(body[:10_000].decode("utf-8", "replace"))
    token = fields.get("token", [""])[0].strip()
    access = request.app.state.live.access
    try:
        session = await run_in_threadpool(access.start_session, token)
    except AccessDeniedError as error:
        return _login_page(request, 401, error.reason)
    response = RedirectResponse("/", 303, headers=HEADERS)
    _set_cookie(request, response, COOKIE, session)
    response.delete_cookie(FORM_COOKIE)
    return response


async def logout(request: Request) -> Response:
    """End the session."""
    try:
        caller = await require(request, READ)
        await check_form(request, caller.csrf)
    except AccessDeniedError as error:
        return _refusal(request, error)
    session = request.cookies.get(COOKIE)
    if session:
        await run_in_threadpool(request.app.state.live.access.end_session, session)
    response = RedirectResponse("/login", 303, headers=HEADERS)
    response.delete_cookie(COOKIE)
    return response


async def static(request: Request) -> Response:
    """The style and the script; their addresses have a hash of them, so that they may be kept."""
    name = request.path_params["name"]
    kind = _STATIC.get(name)
    if kind is None:
        return Response("there is no such file", 404, media_type="text/plain")
    headers = {**HEADERS, "Cache-Control": "public, max-age=31536000, immutable"}
    return Response(_static_text(name), media_type=kind, headers=headers)


async def icon(request: Request) -> Response:  # noqa: ARG001
    """No icon: a browser asks for one whatever the page says."""
    return Response(status_code=204, headers=HEADERS)


ROUTES = [
    Route("/", _made_by(overview)),
    Route("/metric", _made_by(metric)),
    Route("/alerts", _made_by(alerts)),
    Route("/worst", _made_by(worst)),
    Route("/decisions", _made_by(decisions)),
    Route("/decision", _made_by(decision)),
    Route("/pairs", _made_by(pairs)),
    Route("/pair", _made_by(pair)),
    Route("/traces", _made_by(traces)),
    Route("/trace", _made_by(trace)),
    Route("/ingest", _made_by(ingest)),
    Route("/runs", _made_by(runs)),
    Route("/run", _made_by(run)),
    Route("/compare", _made_by(comparison)),
    Route("/gold", _made_by(gold)),
    Route("/gold/candidates.jsonl", _made_by(gold_file)),
    Route("/gold/add", _made_by(add_gold, scope=ADMIN), methods=["POST"]),
    Route("/gold/remove", _made_by(remove_gold, scope=ADMIN), methods=["POST"]),
    Route("/events", events),
    Route("/login", login, methods=["GET", "POST"]),
    Route("/logout", logout, methods=["POST"]),
    Route("/static/{name}", static),
    Route("/favicon.ico", icon),
]
"""The routes of the dashboard, for `live/web.py`."""
