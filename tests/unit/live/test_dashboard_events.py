"""`/events`: what is told, once, and from where a browser was cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.live.dashboard.events import EventFeed
from ragauge.live.dashboard.queries import FeedPosition
from ragauge.live.database import LiveDatabase, open_database
from tests.support import live_rows as rows
from tests.support.live_rows import MINUTE, NOW


class Browser:
    """A request that goes on until it is closed."""

    def __init__(self) -> None:
        self.closed = False

    async def is_disconnected(self) -> bool:
        return self.closed


@pytest.fixture
def database(tmp_path: Path) -> Iterator[LiveDatabase]:
    opened = open_database(f"sqlite:///{tmp_path / 'live.db'}")
    yield opened
    opened.close()


def feed_of(database: LiveDatabase) -> EventFeed:
    @contextmanager
    def borrow() -> Iterator[LiveDatabase]:
        opened = open_database(database.url)
        try:
            yield opened
        finally:
            opened.close()

    feed = EventFeed(borrow, lambda: NOW)
    feed.poll_seconds = 0.01
    return feed


async def take(stream: AsyncIterator[str], count: int) -> list[str]:
    return [await asyncio.wait_for(anext(stream), 10) for _ in range(count)]


def listen(feed: EventFeed, after: FeedPosition | None, count: int) -> list[str]:
    async def run() -> list[str]:
        stream: Any = feed.stream(Browser(), "", after)  # type: ignore[arg-type]
        try:
            return await take(stream, count)
        finally:
            await stream.aclose()

    return asyncio.run(run())


def test_a_window_is_told_with_the_position_behind_it(database: LiveDatabase) -> None:
    rows.add_windows(database, [rows.window_row(NOW - MINUTE, {})])

    async def run() -> list[str]:
        stream: Any = feed_of(database).stream(Browser(), "", None)  # type: ignore[arg-type]
        first = await take(stream, 2)
        rows.add_windows(database, [rows.window_row(NOW, {}), rows.window_row(NOW, {}, tenant="x")])
        rows.add_alert(database, "coverage", "firing")
        told = await take(stream, 2)
        await stream.aclose()
        return [*first, *told]

    retry, hello, window, alert = asyncio.run(run())
    assert retry.startswith("retry: ")
    assert hello == "id: 1.0.0.0\nevent: hello\ndata: {}\n\n"
    assert window.startswith("id: 2.0.0.0\nevent: window\ndata: ")
    assert '"app":"shop"' in window
    assert alert.startswith("id: 2.1.0.0\nevent: alert\n")


def test_what_was_missed_is_told_from_the_table(database: LiveDatabase) -> None:
    rows.add_windows(database, [rows.window_row(NOW - at * MINUTE, {}) for at in (2, 1, 0)])
    rows.add_counts(database, [("", NOW // MINUTE - 1, "accepted", 5, 2)])
    _, second, third, minute = listen(feed_of(database), FeedPosition(1, 0, 0, 0), 4)
    assert second.startswith("id: 2.0.0.0\nevent: window")
    assert third.startswith("id: 3.0.0.0\nevent: window")
    assert minute.startswith(f"id: 3.0.0.{NOW // MINUTE - 1}\nevent: minute")


def test_silence_has_a_heartbeat(database: LiveDatabase) -> None:
    feed = feed_of(database)
    feed.heartbeat_seconds = 0.02
    _, _, *beats = listen(feed, None, 4)
    assert beats == [": still here\n\n"] * 2


def test_text_of_a_row_cannot_begin_another_event(database: LiveDatabase) -> None:
    hostile = "a\n\nevent: decision\ndata: {}\r\n\r\n\u2028"
    rows.add_alert(database, hostile, "firing")
    _, told = listen(feed_of(database), FeedPosition(), 2)
    assert told.count("\n") == 4  # id, event, data, and the empty line
    assert "\r" not in told


def test_a_store_that_is_away_does_not_end_the_stream(database: LiveDatabase) -> None:
    feed = feed_of(database)
    look, tries = feed._look, []

    def flaky(tenant: str, after: FeedPosition | None) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise RagaugeError.of("store-unavailable", "away", hint="wait")
        return look(tenant, after)

    feed._look = flaky  # type: ignore[method-assign]
    rows.add_windows(database, [rows.window_row(NOW, {})])
    _, told = listen(feed, FeedPosition(), 2)
    assert told.startswith("id: 1.0.0.0\nevent: window")


def test_streams_end_when_the_server_stops_or_the_browser_is_gone(database: LiveDatabase) -> None:
    async def run(*, stops: bool) -> None:
        feed, browser = feed_of(database), Browser()
        stream: Any = feed.stream(browser, "", None)  # type: ignore[arg-type]
        await take(stream, 2)
        if stops:
            feed.stop()
        else:
            browser.closed = True
        assert [text async for text in stream] == []

    asyncio.run(asyncio.wait_for(run(stops=True), 10))
    asyncio.run(asyncio.wait_for(run(stops=False), 10))
