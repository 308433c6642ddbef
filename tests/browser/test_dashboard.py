"""The dashboard as a person uses it: `ragauge serve` as a process, and a real Chromium."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import ragauge
from ragauge.live.database import LiveDatabase, open_database
from ragauge.store.runs import opened_store
from tests.browser.chromium import NEEDS_CHROMIUM
from tests.support import live_rows as rows
from tests.support.fast_clock import fast_environment
from tests.support.stored_runs import WRONG, put

pytestmark = [
    *NEEDS_CHROMIUM,
    pytest.mark.skipif(sys.platform == "win32", reason="the server is ended by a signal"),
]
expect = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not there: pip install playwright"
).expect
PATIENCE = 20_000  # milliseconds
SETTINGS = """
[live]
assemble_after = 0.2
[live.sampling]
rate = 1.0
[live.window]
samples = 20
minutes = 1
[live.alerts]
defaults = false
[live.alerts.rules.coverage]
metric = "live.citation_validity"
below = 0.7
for_minutes = 0
"""
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}</textarea></title>"
    "\u202e\u2066\x1b[31m" + "w" * 400
)
PAGES = (
    "/", "/metric", "/metric?by=build&range=7d", "/metric?range=90d", "/alerts",
    "/worst?rule=worse", "/decisions", "/decision?number=1", "/pairs", "/pair?id=t1", "/traces",
    "/trace?id=t1", "/gold", "/ingest", "/runs", "/login",
)  # fmt: skip


class Served:
    """`ragauge serve` in a folder; it can be ended and started again on the same port."""

    def __init__(self, folder: Path, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        source = str(Path(ragauge.__file__).resolve().parents[1])
        self.environment = environment or {
            **os.environ, "PYTHONPATH": source, "PYTHONUTF8": "1",
        }  # fmt: skip
        self.port = 0
        self.url = ""
        self.process: subprocess.Popen[str] | None = None
        (folder / "ragauge.toml").write_text(SETTINGS, "utf-8")

    def start(self) -> None:
        log = (self.folder / "server.log").open("a", encoding="utf-8")
        with closing(log):
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "ragauge", "serve", "--port", str(self.port),
                    "--store", "sqlite:///live.db",
                ],
                cwd=self.folder, stdout=log, stderr=log, encoding="utf-8",
                env=self.environment,
            )  # fmt: skip
        end = time.monotonic() + 30
        while True:
            text = (self.folder / "server.log").read_text("utf-8")
            found = re.findall(r"listening on (http://127\.0\.0\.1:(\d+))", text)
            started = len(found) and self._answers(found[-1][0])
            if started:
                self.url, self.port = found[-1][0], int(found[-1][1])
                return
            assert self.process.poll() is None, text
            assert time.monotonic() < end, text
            time.sleep(0.05)

    def _answers(self, url: str) -> bool:
        try:
            with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> float:
        """End it, and tell how many seconds that took."""
        assert self.process is not None
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, (self.folder / "server.log").read_text("utf-8")
        self.process = None
        return time.monotonic() - begin

    @contextmanager
    def database(self) -> Iterator[LiveDatabase]:
        with closing(open_database(f"sqlite:///{self.folder / 'live.db'}")) as opened:
            yield opened

    def post(self, lines: str) -> None:
        request = urllib.request.Request(
            f"{self.url}/api/traces", lines.encode(), {"Content-Type": "application/x-ndjson"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.status == 200


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    server = Served(tmp_path)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None:
            server.stop()


@pytest.fixture
def hurried(tmp_path: Path) -> Iterator[Served]:
    """A server whose minutes take three seconds, so that windows close while one waits."""
    server = Served(tmp_path, fast_environment(tmp_path / "clock"))
    server.start()
    try:
        yield server
    finally:
        server.stop()


class OpenedPage:
    """A page in a browser, with all that it complained of and asked for."""

    def __init__(self, chromium: Any, url: str, **more: Any) -> None:
        self.said: list[str] = []
        self.asked: list[str] = []
        self.url = url
        self.context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **more})
        self.context.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            " (event) => console.error(`policy ${event.violatedDirective}`));"
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog {dialog.message}"))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def close(self, *allowed: str) -> None:
        self.context.close()
        assert [text for text in self.said if not any(one in text for one in allowed)] == []
        assert all(address.startswith(self.url) for address in self.asked)


@contextmanager
def browsing(
    chromium: Any, url: str, *, allowed: tuple[str, ...] = (), **more: Any
) -> Iterator[Any]:
    opened = OpenedPage(chromium, url, **more)
    yield opened.page
    opened.close(*allowed)


def now() -> int:
    return time.time_ns() // 1_000_000


def add_window(served: Served, value: float, *, at: int | None = None, **more: Any) -> None:
    """A window that ends now; each has a minute of its own."""
    metrics = {"live.citation_validity": rows.metric(value), "live.empty": rows.metric(0.004)}
    with served.database() as database:
        rows.add_windows(database, [rows.window_row(now() if at is None else at, metrics, **more)])


def fill(served: Served, text: str) -> None:
    """A row of everything with a text in every field."""
    with served.database() as database:
        metrics = {"live.citation_validity": rows.metric(0.9), text: rows.metric(0.5)}
        parts: tuple[dict[str, Any], ...] = (
            {},
            {"build": text},
            {"index_hash": text},
            {"question_type": text},
        )
        rows.add_windows(
            database,
            [
                rows.window_row(now() - at * rows.MINUTE, metrics, app=text, **part)
                for at in (9, 6, 3)
                for part in parts
            ],
        )
        rows.add_counts(database, [("", now() // rows.MINUTE, text, 3, 2)])
        hits = [rows.hit(text, text, section=text, score=0.5), rows.hit("h2", text)]
        body = {**rows.trace_body(text, hits, text, [text, f"stray {text}"]), "error": text}
        rows.add_trace(
            database, "t1", body, app=text, build=text, index_hash=text, question_type=text,
            gold_id=text, arrived=now(),
        )  # fmt: skip
        rows.add_pair(database, "t1", body, app=text, live=text, shadow=text, asked=now())
        rows.add_alert(
            database, text, "firing", app=text, series=text, since=now(),
            record={"metric": text, "details": {text: {text: 1}}},
        )  # fmt: skip
        rows.add_alert(database, "worse", "firing", app=text, record={"metric": text, "window": 1})
        criteria = [{"name": text, "status": text, "words": text}]
        rows.add_decision(
            database, "hold", {"criteria": criteria, "reasons": [text]}, app=text, live=text,
            shadow=text,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), (420, "dark")], ids=["wide", "phone in the dark"]
)
def test_hostile_text_breaks_no_page(
    chromium: Any, served: Served, width: int, scheme: str
) -> None:
    """Every field holds markup, controls and a word of 400 letters; nothing runs or sticks out."""
    fill(served, HOSTILE)
    size = {"width": width, "height": 900}
    with browsing(chromium, served.url, viewport=size, color_scheme=scheme) as page:
        for address in PAGES:
            page.goto(served.url + address)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            assert page.locator("main img, main script").count() == 0
            ink, paper = page.evaluate(
                "() => { const style = getComputedStyle(document.body);"
                " return [style.color, style.backgroundColor]; }"
            )
            dark = [sum(map(int, re.findall(r"\d+", color))) < 380 for color in (ink, paper)]
            assert dark == [scheme == "light", scheme == "dark"]
            headings = page.locator("h1").count()
            assert headings == 1, address


def test_a_closed_window_appears_without_a_reload(chromium: Any, served: Served) -> None:
    add_window(served, 0.9, at=now() - 3 * rows.MINUTE)
    with browsing(chromium, served.url) as page:
        page.goto(served.url)
        expect(page.locator("#stream")).to_have_text("live")
        card = page.locator(".card", has_text="live.citation_validity")
        expect(card.locator(".card-value")).to_have_text("0.9000")
        expect(card).to_have_class(re.compile("good"))
        page.evaluate("window.mark = 1")
        card.locator("a").focus()
        begin = time.monotonic()
        add_window(served, 0.5)
        expect(card.locator(".card-value")).to_have_text("0.5000")
        took = time.monotonic() - begin
        expect(card).to_have_class(re.compile("bad"))
        assert page.evaluate("window.mark") == 1  # the same document
        # Whoever was on the card with the keyboard still is.
        assert (
            page.evaluate("document.activeElement.textContent.trim()") == "live.citation_validity"
        )
    assert took < 8  # a second of looking, and the rest of a busy machine


def test_a_server_that_was_restarted_is_found_again(chromium: Any, served: Served) -> None:
    add_window(served, 0.9, at=now() - 3 * rows.MINUTE)
    lost = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_EMPTY", "ERR_CONNECTION_RESET")
    with browsing(chromium, served.url, allowed=lost) as page:
        page.goto(served.url)
        expect(page.locator("#stream")).to_have_text("live")
        assert served.stop() < 6  # an open stream does not hold it up
        expect(page.locator("#stream")).to_have_text("reconnecting")
        add_window(served, 0.8)  # while nobody listens
        served.start()
        expect(page.locator("#stream")).to_have_text("live")
        card = page.locator(".card", has_text="live.citation_validity")
        expect(card.locator(".card-value")).to_have_text("0.8000")


def test_the_keyboard_is_enough(chromium: Any, served: Served) -> None:
    add_window(served, 0.9)
    with browsing(chromium, served.url) as page:
        page.goto(served.url)
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        first = page.locator(".card a").first
        expect(first).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/metric"))
        week = page.locator(".picker a", has_text="7d")
        week.focus()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("range=7d"))
        expect(page.locator(".picker [aria-current]").first).to_have_text("7d")


def test_pages_are_read_without_scripts(chromium: Any, served: Served) -> None:
    add_window(served, 0.9)
    with browsing(chromium, served.url, java_script_enabled=False) as page:
        page.goto(served.url)
        assert "0.9000" in page.locator(".cards").inner_text()
        page.goto(f"{served.url}/metric?name=live.citation_validity")
        assert page.locator("svg.onwide").count() == 1
        assert page.locator("tbody tr").count() == 1


def test_the_theme_is_kept(chromium: Any, served: Served) -> None:
    with browsing(chromium, served.url, color_scheme="light") as page:
        page.goto(served.url)
        page.get_by_role("button", name="Theme").click()
        page.goto(f"{served.url}/alerts")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_question_becomes_a_gold_item(chromium: Any, served: Served) -> None:
    hits = [rows.hit("guide.md#1", "text"), rows.hit("guide.md#2", "port 8080")]
    with served.database() as database:
        rows.add_trace(
            database, "t1", rows.trace_body("Which port?", hits, "8080", ["guide.md#2"]),
            arrived=now(),
        )  # fmt: skip
    with browsing(chromium, served.url, allowed=("400",)) as page:
        page.goto(f"{served.url}/traces")
        page.locator("tbody a").click()
        page.get_by_label("Yes: these hits hold the answer").check()
        page.get_by_role("button", name="Add to the candidates").click()
        expect(page.get_by_role("alert")).to_have_text(re.compile("choose at least one hit"))
        page.get_by_label("Yes: these hits hold the answer").check()
        page.get_by_label(re.compile("guide.md#2")).check()
        page.get_by_role("button", name="Add to the candidates").click()
        page.wait_for_url(re.compile("/gold$"))
        with page.expect_download() as download:
            page.get_by_role("link", name=re.compile("Download 1")).click()
        text = Path(download.value.path()).read_text("utf-8")
    assert text == (
        '{"qid":"live-t1","question":"Which port?","answerable":true,"relevant":["guide.md#2"]}\n'
    )


def test_stored_runs_open_with_their_own_policy(
    chromium: Any, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page of a run carries its style and script: both must be let through by their hash."""
    monkeypatch.chdir(tmp_path)
    with opened_store(f"sqlite:///{tmp_path / 'live.db'}") as store:
        put(store, "first", day=1)
        put(store, "second", WRONG, day=2)
    with browsing(chromium, served.url) as page:
        page.goto(f"{served.url}/runs")
        page.get_by_role("link", name="second").click()
        expect(page.locator("#table tbody tr").first).to_be_visible()  # made by its script
        page.goto(f"{served.url}/runs")
        page.get_by_role("button", name="Compare").click()
        expect(page.locator("#table tbody tr").first).to_be_visible()
        assert sorted(page.url.partition("?")[2].split("&")) == ["a=first", "b=second"]


def traffic(first: int, cited: str) -> str:
    """Forty rows about forty questions; each cites one id, and retrieved `a` and `b`."""
    answer = {"text": "It is 8080.", "citations": [cited]}
    return "".join(
        json.dumps({
            "app": "toy", "build": "v1", "question": f"Which port has server {number}?",
            "hits": [{"id": "a", "text": "port 8080"}, {"id": "b", "text": "port 80"}],
            "answer": answer,
        }) + "\n"
        for number in range(first, first + 40)
    )  # fmt: skip


def test_real_traffic_is_measured_fires_and_is_seen(chromium: Any, hurried: Served) -> None:
    """What is posted becomes a window, an alert and a page, without a reload."""
    with browsing(chromium, hurried.url) as page:
        page.set_default_timeout(3 * PATIENCE)
        page.goto(hurried.url)
        expect(page.locator("#hero")).to_contain_text("Nothing was measured yet")
        hurried.post(traffic(0, "a"))
        card = page.locator(".card", has_text="live.citation_validity")
        expect(card).to_have_class(re.compile("is-within"), timeout=3 * PATIENCE)
        expect(card.locator(".card-value")).to_have_text("1.0000")
        expect(card.locator(".card-facts")).to_contain_text("40")
        for first in (100, 200):
            hurried.post(traffic(first, "nowhere"))
        expect(page.locator("#hero")).to_contain_text("firing: coverage", timeout=3 * PATIENCE)
        expect(card.locator(".card-value")).to_have_text("0.0000")
        page.goto(f"{hurried.url}/traces")
        page.locator("tbody a").first.click()
        expect(page.locator("main")).to_contain_text("Cited, and not among the hits: nowhere")
        page.goto(f"{hurried.url}/ingest")
        expect(page.locator("main")).to_contain_text("accepted")
