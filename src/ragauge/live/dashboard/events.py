"""`/events`: tells open pages what was closed, fired or decided, as server-sent events.

The tables are the truth: an event says that something is new, and the page fetches itself anew. A
browser that was away says where it was (`Last-Event-ID`) and is told what it missed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from ragauge.errors import RagaugeError
from ragauge.live.dashboard.queries import FeedEvent, FeedPosition, feed_events, feed_position
from ragauge.live.database import LiveDatabase

POLL_SECONDS = 1.0
HEARTBEAT_SECONDS = 15.0
LONGEST_SECONDS = 3600.0
"""After it a stream ends and the browser comes back: rights that were taken away end with it."""
RETRY = "retry: 2000\n\n"
HEARTBEAT = ": still here\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

Borrow = Callable[[], contextlib.AbstractContextManager[LiveDatabase]]


class EventFeed:
    """The streams of one server. They end when it stops, or it would wait for them."""

    def __init__(self, borrow: Borrow, clock: Callable[[], int]) -> None:
        self._borrow = borrow
        self._clock = clock
        self._stopped = False
        self.poll_seconds = POLL_SECONDS
        self.heartbeat_seconds = HEARTBEAT_SECONDS

    def stop(self) -> None:
        """End all streams within the time of one look."""
        self._stopped = True

    def _look(
        self, tenant: str, after: FeedPosition | None
    ) -> tuple[FeedPosition, list[FeedEvent]]:
        """What is new behind a position, and the position behind that."""
        minute = self._clock() // 60_000
        with self._borrow() as database:
            if after is None:
                return feed_position(database, tenant, minute), []
            events = feed_events(database, tenant, after, minute)
        position = after
        for event in events:
            if event.number > getattr(position, event.kind):
                position = msgspec.structs.replace(position, **{event.kind: event.number})
        return position, events

    async def stream(
        self, request: Request, tenant: str, after: FeedPosition | None
    ) -> AsyncIterator[str]:
        """Events as text, from a position on; from now on where there is none."""
        begin = last = time.monotonic()
        position = after
        yield RETRY
        while not self._stopped and time.monotonic() - begin < LONGEST_SECONDS:
            try:
                before = position
                position, events = await run_in_threadpool(self._look, tenant, position)
            except RagaugeError:  # the store is away: the stream stays, and looks again
                events, before = [], position
            if before is None and position is not None:
                # So that a browser which is cut off before the first event knows where it was.
                yield f"id: {position.text}\nevent: hello\ndata: {{}}\n\n"
                last = time.monotonic()
            reached = before
            for event in events:
                reached = msgspec.structs.replace(
                    reached or FeedPosition(), **{event.kind: event.number}
                )
                facts = msgspec.json.encode({"number": event.number, **event.facts}).decode()
                yield f"id: {reached.text}\nevent: {event.kind}\ndata: {facts}\n\n"
                last = time.monotonic()
            if time.monotonic() - last >= self.heartbeat_seconds:
                yield HEARTBEAT
                last = time.monotonic()
            if await request.is_disconnected():
                return
            await asyncio.sleep(self.poll_seconds)

    def response(self, request: Request, tenant: str) -> StreamingResponse:
        """The stream for one browser."""
        named = request.headers.get("last-event-id") or request.query_params.get("after")
        after = FeedPosition.parse(named)
        return StreamingResponse(
            self.stream(request, tenant, after), media_type="text/event-stream", headers=HEADERS
        )
