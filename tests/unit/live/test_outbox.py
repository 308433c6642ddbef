"""Webhooks: signed, retried from the store, and in nobody's way."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.live.database import LiveDatabase, open_database
from ragauge.live.outbox import (
    GIVE_UP_AFTER,
    Message,
    Outbox,
    queue_messages,
    signature,
    webhook_name,
)
from ragauge.live.settings import Alerts, Webhook
from tests.support.live_windows import NOON
from tests.support.web_servers import Request, Server, http, serving

SECRET = "whsec_" + base64.b64encode(b"32 bytes that nobody else knows!").decode()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[LiveDatabase]:
    store = open_database(f"sqlite:///{tmp_path}/store.db")
    yield store
    store.close()


class Post:
    """An outbox over a store, with messages and a clock."""

    def __init__(self, database: LiveDatabase, *webhooks: Webhook, timeout: float = 5.0) -> None:
        self.database = database
        self.webhooks = webhooks
        self.alerts = Alerts(webhooks=webhooks)
        self.outbox = Outbox(self.alerts, database, environment={"HOOK": SECRET}, timeout=timeout)
        self.now = NOON

    def tell(self, key: str, **payload: Any) -> None:
        with self.database.transaction() as execute:
            messages = [Message("", key, {"key": key, **payload})]
            queue_messages(execute, self.webhooks, messages, self.now)

    def step(self, seconds: float = 0) -> None:
        self.now += round(seconds * 1000)
        self.outbox.step(self.now)

    def until(self, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not is_so():
            assert time.monotonic() < end, self.rows()
            self.outbox.step(self.now)
            time.sleep(0.005)

    def rows(self) -> list[Any]:
        return self.database.read(
            "SELECT state, tries, next_try, last_error FROM live_outbox ORDER BY number"
        )

    def states(self) -> list[str]:
        return [row[0] for row in self.rows()]


@pytest.fixture
def posts(database: LiveDatabase) -> Iterator[Callable[..., Post]]:
    made: list[Post] = []

    def post(*webhooks: Webhook, **options: Any) -> Post:
        made.append(Post(database, *webhooks, **options))
        return made[-1]

    yield post
    for one in made:
        one.outbox.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(lambda _request: http(b"ok")) as running:
        yield running


def test_a_message_is_posted_and_signed(posts: Callable[..., Post], server: Server) -> None:
    post = posts(Webhook(url=f"{server.url}/hook", secret_variable="HOOK"))
    post.tell("one", text="coverage is 0.5")
    post.until(lambda: post.states() == ["sent"])
    (request,) = server.requests
    assert request.line.startswith("POST /hook ")
    assert request.json == {"key": "one", "text": "coverage is 0.5"}
    assert request.headers["content-type"] == "application/json"
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 60
    # As the specification says: base64 of HMAC-SHA256 of `id.timestamp.body`.
    signed = b".".join(
        (
            request.headers["webhook-id"].encode(),
            request.headers["webhook-timestamp"].encode(),
            request.body,
        )
    )
    digest = hmac.new(b"32 bytes that nobody else knows!", signed, hashlib.sha256).digest()
    assert request.headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"


def test_the_signature_of_the_specification() -> None:
    """The example of standardwebhooks.com, as its libraries have it in their tests."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    told = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert told == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_plain_secret_is_taken_as_its_bytes() -> None:
    digest = hmac.new(b"plain", b"id.1.{}", hashlib.sha256).digest()
    assert signature("plain", "id", 1, b"{}") == f"v1,{base64.b64encode(digest).decode()}"


def test_a_secret_that_is_not_set_is_an_error(database: LiveDatabase) -> None:
    alerts = Alerts(webhooks=(Webhook(url="http://h/", secret_variable="HOOK"),))
    with pytest.raises(RagaugeError, match="the variable `HOOK` is not set"):
        Outbox(alerts, database, environment={})
    with pytest.raises(RagaugeError, match="is not base64") as caught:
        Outbox(alerts, database, environment={"HOOK": "whsec_???"})
    assert "???" not in str(caught.value)


def test_a_key_is_told_once(posts: Callable[..., Post], server: Server) -> None:
    post = posts(Webhook(url=f"{server.url}/a"), Webhook(url=f"{server.url}/b"))
    for _ in range(3):
        post.tell("same")
    post.until(lambda: post.states() == ["sent", "sent"])
    assert sorted(request.line.split()[1] for request in server.requests) == ["/a", "/b"]
    ids = {request.headers["webhook-id"] for request in server.requests}
    assert len(ids) == 2


def test_what_fails_is_tried_again_later_and_later(posts: Callable[..., Post]) -> None:
    with serving(lambda _request: http(b"", "503 Busy")) as busy:
        post = posts(Webhook(url=busy.url))
        post.tell("one")
        waits = []

        def is_tried(tries: int) -> bool:
            return bool(post.rows()[0][1] == tries)

        for tries in range(1, 6):
            post.until(partial(is_tried, tries))
            waits.append((post.rows()[0][2] - post.now) / 1000)
            sent = len(busy.requests)
            post.step(waits[-1] - 1)
            assert len(busy.requests) == sent  # not before its time
            post.step(1)
        assert waits == [5, 10, 20, 40, 80]
        assert post.states() == ["waiting"]
        assert "status 503" in post.rows()[0][3]
        ids = {request.headers["webhook-id"] for request in busy.requests}
        assert len(ids) == 1  # a receiver can tell that it is the same


def test_a_receiver_may_ask_for_a_longer_wait(posts: Callable[..., Post]) -> None:
    with serving(lambda _request: http(b"", "429 Slow", Retry_After="90")) as busy:
        post = posts(Webhook(url=busy.url))
        post.tell("one")
        post.until(lambda: post.rows()[0][1] == 1)
        assert post.rows()[0][2] - post.now == 90_000


def test_a_message_is_given_up_after_a_day_or_when_the_receiver_is_gone(
    posts: Callable[..., Post], caplog: pytest.LogCaptureFixture
) -> None:
    statuses = {"/gone": "410 Gone", "/busy": "500 No"}
    with serving(lambda request: http(b"", statuses[request.line.split()[1]])) as server:
        post = posts(Webhook(url=f"{server.url}/gone"), Webhook(url=f"{server.url}/busy"))
        post.tell("one")
        with caplog.at_level(logging.WARNING, "ragauge.live"):
            post.until(lambda: post.states() == ["given-up", "waiting"])
            post.step(GIVE_UP_AFTER / 1000)
            post.until(lambda: post.states() == ["given-up", "given-up"])
    assert "is given-up" in caplog.text


def test_messages_to_a_webhook_that_is_gone_from_the_settings_are_given_up(
    posts: Callable[..., Post], server: Server
) -> None:
    old = posts(Webhook(url=f"{server.url}/old"))
    old.tell("one")
    new = posts(Webhook(url=f"{server.url}/new"))
    new.step()
    assert new.rows()[0][0] == "given-up"
    assert "no longer in the settings" in new.rows()[0][3]
    assert server.requests == []


def test_a_hanging_receiver_holds_up_nobody(posts: Callable[..., Post], server: Server) -> None:
    """Steps of the worker take no time, the other webhook is told, and the message waits."""
    release = threading.Event()

    def hang(_request: Request) -> bytes:
        release.wait(20)
        return http(b"late")

    with serving(hang) as hanging:
        post = posts(Webhook(url=hanging.url), Webhook(url=server.url), timeout=1.0)
        for number in range(3):
            post.tell(f"message {number}")
        begin = time.monotonic()
        longest = 0.0
        while len(server.requests) < 3:
            before = time.monotonic()
            assert before - begin < 10
            post.step()
            longest = max(longest, time.monotonic() - before)
            time.sleep(0.005)
        assert longest < 0.5  # half of one timeout, and far from three
        post.until(lambda: any("no answer" in (row[3] or "") for row in post.rows()))
        release.set()


def test_a_receiver_that_answers_byte_by_byte_is_cut_off(posts: Callable[..., Post]) -> None:
    def endless(_request: Request) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx"

    with serving(endless) as slow:
        post = posts(Webhook(url=slow.url), timeout=0.5)
        post.tell("one")
        post.until(lambda: post.rows()[0][1] == 1)
        assert post.states() == ["waiting"]


def test_no_more_than_the_cap_a_minute(posts: Callable[..., Post], server: Server) -> None:
    post = posts(Webhook(url=server.url, per_minute=3))
    for number in range(7):
        post.tell(f"message {number}")
    post.until(lambda: post.states().count("sent") == 3)
    post.step(59)
    assert post.states().count("sent") == 3
    post.step(1)
    post.until(lambda: post.states().count("sent") == 6)
    post.step(60)
    post.until(lambda: post.states() == ["sent"] * 7)
    assert [request.json["key"] for request in server.requests] == [
        f"message {number}" for number in range(7)
    ]


def test_two_servers_send_a_message_once(
    posts: Callable[..., Post], server: Server, database: LiveDatabase
) -> None:
    one, two = posts(Webhook(url=server.url)), posts(Webhook(url=server.url))
    two.outbox.database = other = open_database(database.url)
    try:
        for number in range(10):
            one.tell(f"message {number}")
        for _ in range(100):
            one.step()
            two.step()
            time.sleep(0.005)
        one.until(lambda: one.states() == ["sent"] * 10)
        assert len(server.requests) == 10
    finally:
        other.close()


def test_of_two_servers_that_see_a_message_at_once_one_takes_it(
    posts: Callable[..., Post], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one claims it between the first one's look and its claim."""
    one, two = posts(Webhook(url=server.url)), posts(Webhook(url=server.url))
    one.tell("one")
    name = webhook_name(one.webhooks[0])
    read = one.database.read
    taken: list[Any] = []

    def read_slowly(sql: str, parameters: Any = ()) -> list[Any]:
        rows = read(sql, parameters)
        monkeypatch.undo()
        taken.extend(two.outbox._claimed(name, 1, one.now))
        return rows

    monkeypatch.setattr(one.database, "read", read_slowly)
    assert one.outbox._claimed(name, 1, one.now) == []
    assert len(taken) == 1


def test_what_a_server_took_and_never_sent_is_sent_by_the_next(
    posts: Callable[..., Post], server: Server
) -> None:
    """As after kill -9: the claim runs out, and the message is still there."""
    post = posts(Webhook(url=server.url))
    post.tell("one")
    name = webhook_name(post.webhooks[0])
    assert len(post.outbox._claimed(name, 1, post.now)) == 1
    post.step(119)
    assert server.requests == []
    post.step(1)
    post.until(lambda: post.states() == ["sent"])


def test_neither_log_nor_store_has_the_url_or_the_secret(
    posts: Callable[..., Post], database: LiveDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """The path of a webhook often is its secret, as with Slack."""
    with serving(lambda _request: None) as rude:
        url = f"{rude.url.replace('127.0.0.1', 'user:pass-word@127.0.0.1')}/T0/B1/path-secret?k=v1"
        post = posts(Webhook(url=url, secret_variable="HOOK"))
        post.tell("one")
        with caplog.at_level(logging.DEBUG):
            post.until(lambda: post.rows()[0][1] == 1)
    stored = json.dumps([list(map(str, row)) for row in database.read("SELECT * FROM live_outbox")])
    for text in (stored, caplog.text):
        assert "127.0.0.1#" in text
        for secret in ("path-secret", "pass-word", "k=v1", SECRET, "/T0"):
            assert secret not in text


@pytest.mark.parametrize("url", ["ftp://host/path", "host/secret", "https:/host/secret", ""])
def test_a_url_that_nothing_can_be_sent_to_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match=r"`url` must be http://HOST/PATH") as error:
        Webhook(url=url)
    assert "secret" not in str(error.value)
