"""The pages as a browser gets them: what they say, to whom, and that nothing in them is obeyed."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from ragauge.live.access import create_token
from ragauge.live.dashboard import charts, pages, queries
from ragauge.live.dashboard.charts import ChartPoint, TimeLine
from ragauge.live.dashboard.tiles import ALERT_TONES
from ragauge.live.database import LiveDatabase
from ragauge.live.metric_hours import MetricHours
from ragauge.live.traffic import quarantine_path
from tests.support import live_rows as rows
from tests.support.cases import cases
from tests.support.live_rows import MINUTE, NOW
from tests.support.live_server import live_client

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}</textarea></title>"
    "\u202e\u2066\x1b[31m" + "w" * 600
)
PAGES = (
    "/", "/metric", "/metric?by=build&range=7d", "/metric?by=type&range=90d", "/alerts",
    "/worst?rule=worse", "/decisions", "/decision?number=1", "/pairs", "/pair?id=t1", "/traces",
    "/trace?id=t1", "/gold", "/ingest", "/runs",
)  # fmt: skip
RULES = {"coverage": {"metric": "live.coverage", "below": 0.7}}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with live_client(
        tmp_path, clock=lambda: NOW, alerts={"defaults": False, "rules": RULES}
    ) as opened:
        opened.follow_redirects = False
        yield opened


ORIGIN = {"Origin": "http://localhost:4319"}


def csrf_of(client: TestClient, page: str) -> str:
    """What the forms of a page must repeat."""
    (csrf,) = set(re.findall(r'name="csrf" value="([^"]+)"', client.get(page).text))
    return str(csrf)


def add(client: TestClient, *, text: str = "plain", tenant: str = "", app: str = "shop") -> None:
    """A row of everything, with a text in every field that takes one."""
    state: Any = client.app
    with state.state.live.databases() as database:
        fill(database, text, tenant, app)


def fill(database: LiveDatabase, text: str, tenant: str, app: str) -> None:
    parts: tuple[dict[str, Any], ...]
    parts = ({}, {"build": text}, {"index_hash": text}, {"question_type": text})
    metrics = {"live.coverage": rows.metric(0.9), text: {**rows.metric(0.5), "reason": text}}
    rows.add_windows(
        database,
        [
            rows.window_row(NOW - at * MINUTE, metrics, app=app, tenant=tenant, **part)
            for at in (10, 5, 0)
            for part in parts
        ],
    )
    rows.add_minutes(database, [(tenant, app, NOW // MINUTE - 1, "", "", "", 12)])
    rows.add_counts(database, [(tenant, NOW // MINUTE, text, 3, 2)])
    body = rows.trace_body(
        text, [rows.hit(text, text, section=text, score=0.5), rows.hit("h2", text)], text,
        [text, f"stray {text}"],
    )  # fmt: skip
    body["error"] = text
    body["index"] = {"embed_model": text}
    rows.add_trace(
        database, "t1", body, tenant=tenant, app=app, build=text, index_hash=text,
        question_type=text, gold_id=text, arrived=NOW - 1000,
    )  # fmt: skip
    rows.add_pair(database, "t1", body, tenant=tenant, app=app, live=text, shadow=text)
    record = {"metric": text, "details": {text: {text: 1}}, "threshold": 0.5}
    rows.add_alert(
        database, text, "firing", tenant=tenant, app=app, series=text, record=record,
        before="pending",
    )  # fmt: skip
    worse = {"metric": "live.coverage", "window": 9, "measured": {"value": 0.2, "n": 9}}
    rows.add_alert(database, "worse", "firing", tenant=tenant, app=app, record=worse)
    with database.transaction() as execute:  # an answer without a citation
        uncited = {"hits": [], "answer": {"text": text}}
        execute("UPDATE live_traces SET measured = ?", (rows.packed(uncited),))
    criteria = [{"name": text, "status": text, "words": text, "value": 0.5, "interval": [0, 1]}]
    decided = {"criteria": criteria, "reasons": [text]}
    rows.add_decision(database, "hold", decided, tenant=tenant, app=app, live=text, shadow=text)


class Tags(HTMLParser):
    """The elements of a page, and what would run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.bad: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.bad.append(f"{tag} {name}")
            if name in ("href", "src", "action") and not (value or "").startswith(("/", "#")):
                self.bad.append(f"{tag} {name}={value}")
        if tag == "script" and not dict(attrs).get("src"):
            self.bad.append("inline script")


def parsed(text: str) -> Tags:
    tags = Tags()
    tags.feed(text)
    return tags


@pytest.mark.parametrize("page", PAGES)
def test_hostile_text_is_shown_and_never_obeyed(client: TestClient, page: str) -> None:
    add(client, text=HOSTILE, app=HOSTILE)
    answer = client.get(page)
    assert answer.status_code == 200
    tags = parsed(answer.text)
    assert tags.bad == []
    assert "img" not in tags.names
    assert tags.names.count("script") == 1
    for control in ("\u202e", "\u2066", "\x1b"):
        assert control not in answer.text
    if page not in ("/ingest", "/gold", "/runs"):
        assert html.escape("<script>alert(1)</script>") in answer.text
    policy = answer.headers.get_list("content-security-policy")
    assert len(policy) == 1
    assert "default-src 'self'" in policy[0]
    assert "unsafe" not in policy[0]


def test_the_overview_says_what_is_known(client: TestClient) -> None:
    assert "Nothing was measured yet" in client.get("/").text
    state: Any = client.app
    with state.state.live.databases() as database:
        metrics = {"live.coverage": rows.metric(0.9, 200, 0.05)}
        rows.add_windows(database, [rows.window_row(NOW - MINUTE, metrics)])
        assert "No data: the last trace came 60 s ago" not in client.get("/").text
        rows.add_trace(database, "t1", None, arrived=NOW - 1000)
        text = client.get("/").text
        assert 'class="banner good"' in text
        assert "Nothing is firing; all is within its threshold" in text
        for part in ("0.9000", "0.8500 to 0.9500", "≥ 0.7", "✓", "within", "200"):
            assert part in text
        rows.add_alert(database, "coverage", "firing", record={"metric": "live.coverage"})
        text = client.get("/").text
    assert 'class="banner bad"' in text
    assert "1 alert is firing: coverage" in text
    assert 'class="card bad is-firing"' in text


def test_old_data_is_not_green(client: TestClient) -> None:
    """The last trace came 61 minutes ago, and `no_data_minutes` is 60."""
    state: Any = client.app
    with state.state.live.databases() as database:
        metrics = {"live.coverage": rows.metric(0.9, 200, 0.05)}
        rows.add_windows(database, [rows.window_row(NOW - 61 * MINUTE, metrics)])
        rows.add_trace(database, "t1", None, arrived=NOW - 61 * MINUTE)
    text = client.get("/").text
    assert 'class="banner quiet"' in text
    assert "No data: the last trace came 61 min ago" in text


def test_a_spool_that_is_not_worked_off_is_told(client: TestClient) -> None:
    add(client)
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    live.spool.put("", b"key", "rows", NOW - 11 * MINUTE, b"{}", 1.0).result(10)
    with live.databases() as database, database.transaction() as execute:
        execute("UPDATE live_alerts SET state = 'inactive'", ())
    assert "Scoring is 11 min behind" in client.get("/").text
    text = client.get("/ingest").text
    assert re.search(r"<dt>lag</dt><dd>11 min</dd>", text)
    assert re.search(r"<dt>waiting in the spool</dt><dd>1</dd>", text)


def test_bodies_that_are_gone_are_told(client: TestClient) -> None:
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    with live.databases() as database:
        rows.add_trace(database, "t1", None)
        rows.add_pair(database, "t1", None)
    for page in ("/trace?id=t1", "/pair?id=t1"):
        answer = client.get(page)
        assert answer.status_code == 200
        assert "deleted by their age" in answer.text
    assert "Make this question a gold item" not in client.get("/trace?id=t1").text


def test_a_trace_shows_hits_citations_and_strays(client: TestClient) -> None:
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    body = rows.trace_body(
        "Which port?", [rows.hit("a", "port 80", score=0.5), rows.hit("b")], "80.", ["b", "zz"]
    )
    other = rows.trace_body("Which port?", [rows.hit("b"), rows.hit("c")], "81.", ["b"])
    with live.databases() as database:
        rows.add_trace(database, "t1", body)
        rows.add_pair(database, "t1", other)
    text = client.get("/trace?id=t1").text
    cited = re.findall(r'passage( gold)?">\s*<div class="line"><span class="rank">(\d)', text)
    assert cited == [("", "1"), (" gold", "2")]
    assert "Cited, and not among the hits: <code>zz</code>" in text
    text = client.get("/pair?id=t1").text
    assert "! not in shadow" in text  # a
    assert "! not in live" in text  # c
    assert "shadow: rank 1" in text  # b is second in live, first in the shadow
    assert "live: rank 2" in text


@pytest.mark.parametrize(
    "page", ["/trace?id=no", "/pair?id=no", "/decision?number=9", "/decision?number=x", "/trace"]
)
def test_what_is_not_there_is_404(client: TestClient, page: str) -> None:
    assert client.get(page).status_code == 404


def test_an_alert_leads_to_the_worst_traces_of_its_window(client: TestClient) -> None:
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    with live.databases() as database:
        rows.add_windows(database, [rows.window_row(NOW, {"live.coverage": rows.metric(0.5)})])
        for name, citations in (("cites", ["h1"]), ("stopped", []), ("invents", ["h1", "no"])):
            body = rows.trace_body(f"{name}?", [rows.hit("h1")], "So.", citations)
            answer = {"text": "So.", "citations": citations}
            measured = {"hits": [{"id": "h1"}], "answer": answer}
            rows.add_trace(database, name, body, measured=measured, arrived=NOW - 2 * MINUTE)
        record = {"metric": "live.coverage", "window": 1, "threshold": 0.7}
        rows.add_alert(database, "coverage", "firing", record=record)
    address = "/worst?app=shop&amp;rule=coverage&amp;series="
    assert address in client.get("/").text
    assert address in client.get("/alerts").text
    text = client.get(html.unescape(address)).text
    assert re.findall(r'href="/trace\?id=(\w+)">(\w+\?)', text) == [
        ("stopped", "stopped?"), ("invents", "invents?"),
    ]  # fmt: skip
    assert client.get("/worst?rule=other").status_code == 404
    assert f"1, ended {pages.moment(NOW)}" in client.get("/trace?id=stopped").text


def test_the_overview_says_loudly_what_is_in_no_number(client: TestClient) -> None:
    """Green numbers over half of the traffic are no green numbers."""
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    with live.databases() as database:
        rows.add_windows(database, [rows.window_row(NOW, {"live.coverage": rows.metric(0.9)})])
        rows.add_trace(database, "t1", None, arrived=NOW - 7000)
    text = client.get("/").text
    assert "all is within its threshold" in text
    assert 'role="alert"' not in text
    assert re.search(r'id="lag">Last accepted .*never.* last scored .*7 s ago.*nothing waits', text)
    with live.databases() as database:
        rows.add_counts(database, [("", NOW // MINUTE - 9, "quarantined", 0, 2)])
    text = client.get("/").text
    assert "2 bodies were put aside in `quarantine/`" in text
    assert "Some of what came is in no number below" in text
    assert "all is within its threshold" not in text
    assert "2 bodies were put aside" in client.get("/ingest").text
    with live.databases() as database, database.transaction() as execute:
        execute("DELETE FROM live_counts", ())
    folder = live.spool_folder / "quarantine"
    folder.mkdir()
    (live.spool_folder / quarantine_path("7", "", "rows")).write_bytes(b"old")
    (live.spool_folder / quarantine_path("8", "other", "rows")).write_bytes(b"of somebody else")
    assert "1 body was put aside" in client.get("/").text  # whenever that was
    live.worker_state = lambda: {"running": False, "restarts": 3}
    assert "The worker does not run: nothing is scored." in client.get("/").text


def test_the_overview_says_how_long_what_was_accepted_waits(client: TestClient) -> None:
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    live.counts.add("", "accepted", 3, 1)
    live.spool.put("", b"k" * 16, "rows", NOW - 20_000, b"{}", 1.0).result(10)
    assert re.search(
        r"Last accepted .*0 s ago.* last scored .*never.* 1 body waits, the oldest for 20 s",
        client.get("/").text,
    )


def test_a_quarter_of_a_year_is_drawn_of_hours(client: TestClient) -> None:
    """A spike of one window in 40 days is in the drawing, and the table has the newest windows."""
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    ends = [NOW - at * 6 * 60 * MINUTE for at in range(160)]
    with live.databases() as database:
        rows.add_windows(
            database,
            [
                rows.window_row(at, {"live.coverage": rows.metric(0.2 if at == ends[77] else 0.9)})
                for at in ends
            ],
        )
        assert "No window of the last 90d" in client.get("/metric?range=90d").text
        for _ in range(3):
            MetricHours(database).step(NOW)
    text = client.get("/metric?range=90d").text
    assert "the last value of several windows" in text
    assert "The last 50 of 160 windows" in text
    assert "0.2000" not in text.split("<tbody>")[1]  # it is not among the newest 50
    figure = text.split("<figure")[1].split("</figure>")[0]
    ticks = re.findall(r'text-anchor="end"[^>]*>([0-9.]+)<', figure)
    assert min(map(float, ticks)) <= 0.2  # the axis reaches down to it


@cases(("table", "column"), [("live_pairs", "state"), ("live_traces", "state"),
                             ("live_alerts", "state"), ("eval_decisions", "decision")])  # fmt: skip
def test_every_state_that_a_row_may_have_is_shown(table: str, column: str) -> None:
    """What the store allows: a question that is being asked has a row too."""
    migrations = Path(pages.__file__).parents[2] / "store" / "databases" / "migrations" / "sqlite"
    text = "\n".join(path.read_text("utf-8") for path in sorted(migrations.glob("*_*.sql")))
    created = text.split(f"CREATE TABLE {table} (")[1].split("STRICT")[0]
    (allowed,) = re.findall(rf"\b{column} TEXT NOT NULL CHECK \({column} IN\s*\(([^)]*)\)", created)
    tones = {
        "live_alerts": ALERT_TONES, "eval_decisions": pages.DECISION_TONES,
    }.get(table, pages.STATE_TONES)  # fmt: skip
    assert set(re.findall(r"'([\w-]+)'", allowed)) <= set(tones)


def test_tenants_see_nothing_of_each_other(client: TestClient) -> None:
    add(client, text="ours", tenant="one", app="ours")
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    with live.databases() as database:
        tokens = {
            name: create_token(database, ["admin"], now=NOW, tenant=name).text
            for name in ("one", "two")
        }
        reader = create_token(database, ["read"], now=NOW, tenant="one").text
    mine = {"Authorization": f"Bearer {tokens['one']}"}
    other = {"Authorization": f"Bearer {tokens['two']}"}
    for page in PAGES:
        assert client.get(page, headers=mine).status_code == 200
        answer = client.get(page, headers=other)
        assert "ours" not in answer.text
        assert answer.status_code == (
            404 if page.startswith(("/trace?", "/pair?", "/decision?", "/worst?")) else 200
        )
        assert client.get(page).status_code == 401
    form = {"id": "t1", "question": "q", "expect": "refuse"}
    assert client.post("/gold/add", data=form, headers=other).status_code == 404
    assert client.post("/gold/add", data=form, headers=mine).status_code == 303
    only_reads = {"Authorization": f"Bearer {reader}"}
    assert client.post("/gold/add", data=form, headers=only_reads).status_code == 403
    assert client.post("/gold/remove", data=form, headers=only_reads).status_code == 403
    assert "/gold/add" not in client.get("/trace?id=t1", headers=only_reads).text
    assert client.get("/gold/candidates.jsonl", headers=other).text == ""


def test_runs_are_the_owners(client: TestClient) -> None:
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    with live.databases() as database:
        token = create_token(database, ["read"], now=NOW, tenant="one").text
    headers = {"Authorization": f"Bearer {token}"}
    assert "does not see them" in client.get("/runs", headers=headers).text
    assert client.get("/run?id=latest", headers=headers).status_code == 404
    assert client.get("/compare?a=x&b=y", headers=headers).status_code == 404


def test_runs_and_comparisons_of_the_store_are_shown(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragauge.store.runs import opened_store
    from tests.support.stored_runs import WRONG, put, put_half

    monkeypatch.chdir(tmp_path)
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    with opened_store(live.store_url) as store:
        put(store, "first", day=1)
        put(store, "second", WRONG, day=2)
        put_half(store, "stopped", day=3)
    text = client.get("/runs").text
    assert re.findall(r'href="/run\?id=(\w+)"', text) == ["second", "first"]  # not the half one
    answer = client.get("/run?id=second")
    assert answer.status_code == 200
    assert "under-refusal" in answer.text
    (policy,) = answer.headers.get_list("content-security-policy")
    assert "default-src 'none'; style-src 'sha256-" in policy
    assert "unsafe" not in policy
    answer = client.get("/compare?a=first&b=second")
    assert answer.status_code == 200
    assert "first → second" in answer.text
    for page in ("/run?id=nothing", "/run?id=stopped", "/compare?a=first&b=nothing"):
        answer = client.get(page)
        assert answer.status_code == 400
        assert "Not possible" in answer.text


def test_a_session_is_a_cookie_and_forms_carry_its_token(client: TestClient) -> None:
    add(client, text="ours")
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    with live.databases() as database:
        token = create_token(database, ["admin"], now=NOW).text
    assert client.get("/").status_code == 401
    assert "Log in" in client.get("/").text
    good = {"token": token, "csrf": csrf_of(client, "/login")}
    # Another site may not log a browser in: not with its own origin, nor with a form of its own.
    for form, headers in (
        (good, {"Origin": "https://elsewhere.example"}),
        (good, {**ORIGIN, "Sec-Fetch-Site": "same-site"}),
        (good, {"Sec-Fetch-Site": "cross-site"}),
        (good, {"Origin": "null"}),
        (good, {}),
        ({"token": token}, ORIGIN),
        ({**good, "csrf": "guessed"}, ORIGIN),
        ({**good, "csrf": ""}, ORIGIN),
    ):
        assert client.post("/login", data=form, headers=headers).status_code == 403
    wrong = {**good, "token": "rgk_no_no"}
    assert client.post("/login", data=wrong, headers=ORIGIN).status_code == 401
    answer = client.post("/login", data=good, headers=ORIGIN)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert token not in cookie
    csrf = csrf_of(client, "/trace?id=t1")
    assert csrf != good["csrf"]
    refuse_foreign_forms(client, csrf)
    form = {"id": "t1", "question": "q", "expect": "refuse", "csrf": csrf}
    assert client.post("/gold/add", data=form, headers=ORIGIN).status_code == 303
    assert client.post("/logout", data={"csrf": csrf}, headers=ORIGIN).status_code == 303
    assert client.get("/").status_code == 401


def test_forms_of_an_open_server_are_its_own(client: TestClient) -> None:
    """Where nobody logs in, a page of another site could send forms as whoever reads it."""
    add(client, text="ours")
    csrf = csrf_of(client, "/trace?id=t1")
    assert csrf_of(client, "/trace?id=t1") == csrf  # a second tab does not end the first one
    assert "Log out" not in client.get("/").text
    refuse_foreign_forms(client, csrf)
    form = {"id": "t1", "question": "q", "expect": "refuse", "csrf": csrf}
    same = {"Sec-Fetch-Site": "same-origin"}
    assert client.post("/gold/add", data=form, headers=same).status_code == 303
    assert client.post("/gold/remove", data=form, headers=ORIGIN).status_code == 303


def refuse_foreign_forms(client: TestClient, csrf: str) -> None:
    """Every address that takes a form refuses one without its token, and one of another site."""
    form = {"id": "t1", "question": "q", "expect": "refuse"}
    foreign = {"Origin": "http://evil.example"}
    posts = [route.path for route in pages.ROUTES if "POST" in (route.methods or ())]
    assert sorted(posts) == ["/gold/add", "/gold/remove", "/login", "/logout"]
    for page in posts:
        for fields, headers in (
            (form, ORIGIN),
            ({**form, "csrf": "x"}, ORIGIN),
            ({**form, "csrf": csrf}, foreign),
            ({**form, "csrf": csrf}, {"Sec-Fetch-Site": "cross-site"}),
            ({**form, "csrf": csrf}, {}),
        ):
            assert client.post(page, data=fields, headers=headers).status_code == 403, page


def test_a_question_becomes_a_gold_item_that_lint_takes(client: TestClient, tmp_path: Path) -> None:
    from ragauge.formats.load import load_gold

    live: Any = client.app.state.live  # type: ignore[attr-defined]
    hits = [rows.hit("guide.md#1"), rows.hit("guide.md#2")]
    with live.databases() as database:
        rows.add_trace(database, "t1", rows.trace_body("Which port?", hits, "80.", []))
        rows.add_trace(database, "t2", rows.trace_body("Who?", hits, "80.", []))
    form = {
        "id": "t1", "question": " Which port? ", "expect": "answer", "relevant": "guide.md#2",
        "csrf": csrf_of(client, "/trace?id=t1"),
    }  # fmt: skip
    for missing, words in (
        ({"question": " "}, "the question is empty"),
        ({"expect": ""}, "say whether the question can be answered"),
        ({"relevant": []}, "choose at least one hit"),
    ):
        answer = client.post("/gold/add", data={**form, **missing}, headers=ORIGIN)
        assert answer.status_code == 400
        assert words in answer.text
    assert client.post("/gold/add", data=form, headers=ORIGIN).headers["location"] == "/gold"
    other = {**form, "id": "t2", "question": "Who?", "expect": "refuse"}
    client.post("/gold/add", data=other, headers=ORIGIN)
    assert "Which port?" in client.get("/gold").text
    answer = client.get("/gold/candidates.jsonl")
    assert "attachment" in answer.headers["content-disposition"]
    path = tmp_path / "gold.jsonl"
    path.write_bytes(answer.content)
    one, two = load_gold(path).items
    assert (one.qid, one.question, one.relevant, one.expect) == (
        "live-t1", "Which port?", ("guide.md#2",), "answer",
    )  # fmt: skip
    assert (two.qid, two.relevant, two.expect) == ("live-t2", (), "refuse")
    assert client.post("/gold/remove", data=form, headers=ORIGIN).status_code == 303
    assert [
        json.loads(line)["qid"]
        for line in client.get("/gold/candidates.jsonl").text.split("\n")
        if line
    ] == ["live-t2"]


def test_a_store_that_is_down_is_503(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragauge.errors import RagaugeError

    def fails(*_: Any) -> Any:
        raise RagaugeError.of("store-unavailable", "away", hint="wait")

    monkeypatch.setattr(queries, "apps", fails)
    answer = client.get("/")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"


def test_style_and_script_may_be_kept(client: TestClient) -> None:
    text = client.get("/").text
    for name in ("dashboard.css", "dashboard.js"):
        (address,) = re.findall(rf'"(/static/{name}\?v=[0-9a-f]+)"', text)
        answer = client.get(address)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert "http" not in re.sub(r"http://www\.w3\.org/\S+", "", answer.text)
    assert client.get("/static/pages.py").status_code == 404


# --- charts ---


def test_axes_hold_the_values_in_round_steps() -> None:
    assert charts.nice_range([0.72, 0.93]) == pytest.approx((0.7, 1.0, 0.1))
    assert charts.nice_range([0.5, 0.5])[0] < 0.5 < charts.nice_range([0.5, 0.5])[1]
    low, high, step = charts.nice_range([120.0, 900.0])
    assert (low, high, step) == (0.0, 1000.0, 500.0)
    assert charts.nice_range([0.0, 1.0])[:2] == (0.0, 1.0)  # a share has no room beyond


def test_a_gap_breaks_the_line() -> None:
    """Five points: one without a value, and a silence longer than the gap."""
    times = [0, 1000, 2000, 3000, 9000]
    values = [0.1, 0.2, None, 0.4, 0.5]
    line = TimeLine(
        "a", tuple(ChartPoint(at, value) for at, value in zip(times, values, strict=True))
    )
    drawn = charts.time_chart("m", [line], begin=0, end=10_000, gap=5000)
    assert drawn is not None
    assert str(drawn).count('class="stroke"') == 2 * 3  # wide and narrow: 2 points, 1, 1
    assert charts.time_chart("m", [TimeLine("a", ())], begin=0, end=1, gap=1) is None


def test_many_windows_are_drawn_with_their_least_and_most() -> None:
    """More windows than points: each point says the last, the least and the most."""
    from ragauge.live.dashboard.queries import LiveWindow, WindowValue

    windows = [
        LiveWindow(
            number=at, app="a", build="", index_hash="", question_type="", begins_at="",
            ends_at=rows.time_text(at * MINUTE), state="closed", samples=1, sample_rate=1.0,
            metrics={"m": WindowValue((at % 10) / 10, 9, (0.0, 1.0))},
        )
        for at in range(3600)
    ]  # fmt: skip
    line = pages._time_line("a", windows, "m", 0, 3600 * MINUTE)
    assert len(line.points) == 360
    assert {(point.low, point.value, point.high) for point in line.points} == {(0.0, 0.9, 0.9)}


def test_a_metric_is_drawn_by_the_dimension_that_is_asked_for(client: TestClient) -> None:
    """The worker keeps all, each part by itself, and parts together: no line is of two kinds."""
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    parts: tuple[dict[str, Any], ...] = (
        {}, {"build": "b1"}, {"build": "b2"}, {"index_hash": "i1"}, {"question_type": "how"},
        {"build": "b1", "index_hash": "i1"},
    )  # fmt: skip
    with live.databases() as database:
        metrics = {"live.coverage": rows.metric(0.9)}
        rows.add_windows(database, [rows.window_row(NOW, metrics, **part) for part in parts])
    names = {
        by: re.findall(r'class="swatch" aria-hidden="true"></span>(.+?)</span>', text)
        for by in ("total", "build", "index", "type")
        if (text := client.get(f"/metric?name=live.coverage&by={by}").text)
    }
    assert names == {"total": ["all"], "build": ["b2", "b1"], "index": ["i1"], "type": ["how"]}


def test_a_page_says_where_the_stream_was_when_it_was_made(client: TestClient) -> None:
    """What closes between the page and its stream would else be missed."""
    assert 'data-position="0.0.0.0"' in client.get("/").text
    add(client)
    live: Any = client.app.state.live  # type: ignore[attr-defined]
    with live.databases() as database:
        position = queries.feed_position(database, "", NOW // MINUTE).text
    assert position != "0.0.0.0"
    assert f'data-position="{position}"' in client.get("/").text
