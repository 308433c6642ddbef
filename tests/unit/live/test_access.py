"""Access: a token lets in its tenant with its scopes, and nobody else comes in by any way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from ragauge.errors import RagaugeError
from ragauge.live import access
from ragauge.live.access import (
    ADMIN,
    COOKIE,
    INGEST,
    READ,
    SESSION_MS,
    AccessControl,
    AccessDeniedError,
    create_token,
    list_tokens,
    require,
    revoke_token,
)
from ragauge.live.database import open_database
from ragauge.live.server_state import DatabasePool
from tests.support.cases import cases
from tests.support.live_server import PROTOBUF, live_client, otlp_request

START = 1_800_000_000_000


class Monitor:
    """A store, a clock that stands, and who is let in."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.time = START
        self.pool = DatabasePool(f"sqlite:///{folder / 'live.db'}")
        self.access = AccessControl(
            self.pool, now=lambda: self.time, **{"per_second": 1000, **options}
        )

    def token(self, *scopes: str, **options: Any) -> str:
        with self.pool() as database:
            return create_token(database, scopes, now=self.time, **options).text

    def revoke(self, text: str) -> bool:
        with self.pool() as database:
            return revoke_token(database, text.split("_")[1], now=self.time)


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Monitor]:
    made = Monitor(tmp_path)
    yield made
    made.pool.close()


def client_of(monitor: Monitor, base: str = "http://localhost:4319") -> TestClient:
    async def answer(request: Request) -> Response:
        scope = {"/ingest": INGEST, "/read": READ, "/admin": ADMIN}[request.url.path]
        try:
            caller = await require(request, scope)
        except AccessDeniedError as error:
            return JSONResponse(error.reason, error.status)
        return JSONResponse({"tenant": caller.tenant, "csrf": caller.csrf})

    methods = ["GET", "POST"]
    app = Starlette(routes=[Route(f"/{name}", answer, methods=methods) for name in
                            ("ingest", "read", "admin")])  # fmt: skip
    app.state.live = monitor
    return TestClient(app, base_url=base)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_a_token_has_its_tenant_and_its_scopes(monitor: Monitor) -> None:
    token = monitor.token(INGEST, tenant="shop")
    client = client_of(monitor)
    assert client.post("/ingest", headers=bearer(token)).json()["tenant"] == "shop"
    assert client.get("/read", headers=bearer(token)).status_code == 403
    admin = monitor.token(ADMIN)
    statuses = [client.get(f"/{n}", headers=bearer(admin)).status_code for n in
                ("admin", "read", "ingest")]  # fmt: skip
    assert statuses == [200, 200, 403]  # who may change things may see them, but sends nothing


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1] + ("0" if token[-1] != "0" else "1"),
        lambda token: token.rpartition("_")[0] + "_",
        lambda token: token.replace("rgk_", "rgk_x"),
        lambda token: token.removeprefix("rgk_"),
        lambda _: "",
        lambda _: "rgk_" + "a" * 5000,
        lambda token: token + "\u00e9",
    ],
)
def test_any_other_token_is_refused(monitor: Monitor, change: Any) -> None:
    headers = {"authorization": f"Bearer {change(monitor.token(READ))}".encode("latin-1")}
    response = client_of(monitor).get("/read", headers=headers)  # type: ignore[arg-type]
    assert response.status_code == 401


def test_only_the_hash_of_a_secret_is_stored(monitor: Monitor, tmp_path: Path) -> None:
    secret = monitor.token(READ).rpartition("_")[2]
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert len(secret) == 64
    assert secret.encode() not in stored


def test_a_revoked_or_expired_token_ends_within_5_seconds(monitor: Monitor) -> None:
    client = client_of(monitor)
    token, short = monitor.token(READ), monitor.token(READ, expires=START + 1000)
    assert client.get("/read", headers=bearer(token)).status_code == 200
    assert client.get("/read", headers=bearer(short)).status_code == 200
    assert monitor.revoke(token)
    assert not monitor.revoke(token)
    monitor.time += 1000
    assert client.get("/read", headers=bearer(short)).status_code == 401
    monitor.time += 4001
    assert client.get("/read", headers=bearer(token)).status_code == 401


def test_without_any_token_this_machine_comes_in(monitor: Monitor) -> None:
    assert client_of(monitor).get("/admin").json()["tenant"] == ""


def test_a_store_that_had_a_token_never_opens_again(monitor: Monitor) -> None:
    client = client_of(monitor)
    assert client.get("/read").status_code == 200
    token = monitor.token(READ)
    monitor.time += 5001
    assert client.get("/read").status_code == 401
    monitor.revoke(token)
    monitor.time += 5001
    assert client.get("/read").status_code == 401


def test_another_address_is_not_open(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, is_local=False)
    assert client_of(monitor, "http://10.0.0.1:4319").get("/read").status_code == 401


@pytest.mark.parametrize(
    ("headers", "method", "status"),
    [
        ({}, "POST", 200),
        ({"origin": "http://localhost:4319"}, "POST", 200),
        ({"origin": "http://localhost:9999"}, "POST", 403),
        ({"origin": "https://evil.example"}, "POST", 403),
        ({"origin": "null"}, "POST", 403),
        ({"origin": "https://evil.example"}, "GET", 403),
        ({"sec-fetch-site": "cross-site"}, "POST", 403),
        ({"sec-fetch-site": "cross-site"}, "GET", 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, "GET", 200),  # a link
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, "POST", 403),  # a form
        ({"host": "evil.example"}, "GET", 403),  # DNS rebinding
        ({"host": "evil.example:4319", "origin": "http://evil.example:4319"}, "POST", 403),
        ({"host": "127.0.0.1:4319"}, "GET", 200),
        ({"host": "[::1]:4319"}, "GET", 200),
        ({"host": "localhost.evil.example"}, "GET", 403),
        ({"host": ""}, "GET", 403),
    ],
)
def test_pages_of_other_sites_are_refused(
    monitor: Monitor, headers: dict[str, str], method: str, status: int
) -> None:
    client = client_of(monitor)
    assert client.request(method, "/read", headers=headers).status_code == status


@pytest.mark.parametrize(
    "query", ["token=x", "access_token=x", "q=rgk_1_2", "rgk_1_2", "API_KEY=1", "q=%72gk_1_2"]
)
def test_a_token_in_an_address_is_refused(monitor: Monitor, query: str) -> None:
    """Also with a good token in the header: the one in the address is in somebody's log by now."""
    token = monitor.token(READ)
    response = client_of(monitor).get(f"/read?{query}", headers=bearer(token))
    assert response.status_code == 400
    assert "revoke" in response.text


def test_a_session_needs_its_csrf_token_to_change_anything(monitor: Monitor) -> None:
    session = monitor.access.start_session(monitor.token(ADMIN, tenant="shop"))
    client = client_of(monitor)
    client.cookies.set(COOKIE, session)
    answer = client.get("/read").json()
    assert answer["tenant"] == "shop"
    assert client.post("/admin").status_code == 403
    assert client.post("/admin", headers={"x-csrf-token": "no"}).status_code == 403
    assert client.post("/admin", headers={"x-csrf-token": answer["csrf"]}).status_code == 200
    assert client.post("/admin", data={"csrf": answer["csrf"]}).status_code == 200
    foreign = {"x-csrf-token": answer["csrf"], "origin": "https://evil.example"}
    assert client.post("/admin", headers=foreign).status_code == 403
    monitor.access.end_session(session)
    assert client.get("/read").status_code == 401


def test_a_session_ends_with_its_time_or_its_token(monitor: Monitor) -> None:
    token = monitor.token(READ)
    session = monitor.access.start_session(token)
    assert monitor.access.caller_of_session(session) is not None
    monitor.time += SESSION_MS + 1
    assert monitor.access.caller_of_session(session) is None
    another = monitor.access.start_session(token)
    monitor.revoke(token)
    assert monitor.access.caller_of_session(another) is None


def test_a_token_that_only_sends_opens_no_session(monitor: Monitor) -> None:
    with pytest.raises(AccessDeniedError) as error:
        monitor.access.start_session(monitor.token(INGEST))
    assert error.value.status == 403


def test_a_token_has_so_many_requests_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = [100.0]
    monkeypatch.setattr("ragauge.live.access.time.monotonic", lambda: moment[0])
    monitor = Monitor(tmp_path, per_second=3)
    client, one, other = client_of(monitor), monitor.token(READ), monitor.token(READ)
    statuses = [client.get("/read", headers=bearer(one)).status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    assert client.get("/read", headers=bearer(other)).status_code == 200
    moment[0] += 0.4  # 3 a second: 1.2 requests more
    statuses = [client.get("/read", headers=bearer(one)).status_code for _ in range(2)]
    assert statuses == [200, 429]


def test_while_the_store_is_down_a_known_token_counts_for_a_minute(monitor: Monitor) -> None:
    token = monitor.token(READ)
    assert monitor.access.caller_of_token(token).tenant == ""

    @contextmanager
    def down() -> Iterator[Any]:
        raise RagaugeError.of("store-unavailable", "it is down", hint="wait")
        yield

    monitor.access._databases = down
    monitor.time += 59_000
    assert monitor.access.caller_of_token(token).tenant == ""
    monitor.time += 2000
    with pytest.raises(RagaugeError):
        monitor.access.caller_of_token(token)


def test_the_collector_answers_503_while_nobody_can_be_known(tmp_path: Path) -> None:
    with live_client(tmp_path) as client:
        state = client.app.state.live  # type: ignore[attr-defined]
        with state.databases() as database:
            token = create_token(database, [INGEST], now=state.now()).text

        def down() -> Any:
            raise RagaugeError.of("store-unavailable", "it is down", hint="wait")

        state.access._databases = down
        headers = {**PROTOBUF, **bearer(token)}
        response = client.post(
            "/v1/traces", content=otlp_request().SerializeToString(), headers=headers
        )
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")


def test_tenants_are_told_apart_in_the_spool(tmp_path: Path) -> None:
    """The same body of two tenants is two traces."""
    with live_client(tmp_path) as client:
        state = client.app.state.live  # type: ignore[attr-defined]
        with state.databases() as database:
            tokens = [
                create_token(database, [INGEST], now=state.now(), tenant=name).text
                for name in ("a", "b")
            ]
        state.access._open = None
        body = otlp_request().SerializeToString()
        for token in tokens * 2:
            headers = {**PROTOBUF, **bearer(token)}
            assert client.post("/v1/traces", content=body, headers=headers).status_code == 200
        assert client.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 401
        from tests.support.live_server import spooled

        assert [entry.tenant for entry in spooled(state)] == ["a", "b"]


@cases(
    ("host", "refused"),
    [("127.0.0.1", False), ("::1", False), ("localhost", False), ("0.0.0.0", True), ("::", True),
     ("10.1.2.3", True), ("myhost", True)],
)  # fmt: skip
def test_other_addresses_need_a_token(tmp_path: Path, host: str, refused: bool) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'live.db'}")
    if refused:
        with pytest.raises(RagaugeError, match="no token"):
            access.check_address(host, list_tokens(database), now=START)
    token = create_token(database, [INGEST], now=START, expires=START + 10)
    access.check_address(host, list_tokens(database), now=START)
    if refused:
        with pytest.raises(RagaugeError):  # it has expired
            access.check_address(host, list_tokens(database), now=START + 10)
        revoke_token(database, token.token_id, now=START)
        with pytest.raises(RagaugeError):
            access.check_address(host, list_tokens(database), now=START)
    database.close()
