"""The web application: the routes of all parts, headers of every answer, and how it is served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ragauge.live import collector, decision_api, health, prometheus
from ragauge.live.access import AccessDeniedError
from ragauge.live.dashboard import pages
from ragauge.live.server_state import LiveState

ROUTES = [
    *collector.ROUTES,
    *health.ROUTES,
    *prometheus.ROUTES,
    *decision_api.ROUTES,
    *pages.ROUTES,
]
"""Each part brings its own list."""

_HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; "
        b"frame-ancestors 'none'; object-src 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class SecurityHeaders:
    """Adds the headers that keep pages from running or embedding what is not theirs.

    A page that says one of them itself, as the page of a run its policy, keeps its own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; the answer gets the headers."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                names = {name.lower() for name, _ in own}
                added = [header for header in _HEADERS if header[0] not in names]
                message["headers"] = [*own, *added]
            await send(message)

        await self.app(scope, receive, send_with_headers)


async def _denied(_request: Request, error: Exception) -> Response:
    assert isinstance(error, AccessDeniedError)
    headers = {"Retry-After": "1"} if error.status == 429 else None
    return PlainTextResponse(f"{error.reason}\n", error.status, headers)


def make_app(state: LiveState) -> Starlette:
    """The application of one server."""
    app = Starlette(
        routes=ROUTES,
        middleware=[Middleware(SecurityHeaders)],
        exception_handlers={AccessDeniedError: _denied},
    )
    app.state.live = state
    return app


_HEAD_BYTES = 64 * 1024


class TimedProtocol(HttpToolsProtocol):
    """HTTP that gives a client a time to send the head of a request, and a size.

    uvicorn has a timeout between requests only: a client that sends a byte a minute would keep its
    connection for ever.
    """

    read_seconds: ClassVar[float] = 10
    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing any more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of the head."""
        super().on_message_begin()
        self._head_bytes = 0
        self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, unless there have been too many."""
        self._head_bytes += len(name) + len(value)
        if self._head_bytes > _HEAD_BYTES:
            self.transport.close()
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The head is there; the body has a time of its own."""
        self._stop_waiting()
        super().on_headers_complete()

    def _wait(self) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(self.read_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _protocol(read_seconds: float) -> type[TimedProtocol]:
    return type("ServerProtocol", (TimedProtocol,), {"read_seconds": read_seconds})


class LiveServer(uvicorn.Server):
    """Serves the application, and says where once it does."""

    def __init__(self, state: LiveState, on_ready: Callable[[str], None]) -> None:
        settings = state.settings
        super().__init__(
            uvicorn.Config(
                make_app(state),
                host=settings.host,
                port=settings.port,
                http=_protocol(settings.limits.read_seconds),
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                backlog=512,
                timeout_keep_alive=65,
                timeout_graceful_shutdown=10,
            )
        )
        self.on_ready = on_ready

    async def startup(self, sockets: Any = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            self.on_ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Take the order to end: streams of events end first, or it would wait for them."""
        pages.stop_streams(self.config.app)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: Any = None) -> None:
        """Answer what was begun, then end: an order to end is no failure."""
        await super().shutdown(sockets)
        self._captured_signals.clear()
