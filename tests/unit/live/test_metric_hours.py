"""Hours of metrics: what windows say, in fewer rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ragauge.live import metric_hours
from ragauge.live.dashboard import queries
from ragauge.live.database import LiveDatabase, open_database
from ragauge.live.metric_hours import HOUR, MetricHour, MetricHours, read_hours
from tests.support import live_rows as rows
from tests.support.live_rows import MINUTE, NOW
from tests.support.postgres import own_schema, server_url

SERVER = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=SERVER)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveDatabase]:
    with ExitStack() as stack:
        url = f"sqlite:///{tmp_path / 'live.db'}"
        if request.param == "postgres":
            url = stack.enter_context(own_schema(server_url(request.config)))
        yield stack.enter_context(closing(open_database(url)))


def test_hours_are_the_last_the_least_and_the_most_of_their_windows(
    database: LiveDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten hours of windows, added three at a time by a worker that is started again and again."""
    monkeypatch.setattr(metric_hours, "WINDOWS", 3)
    draw = random.Random(5)
    ends = [NOW - 5 * MINUTE * at for at in range(120)]
    values = {(at, build): round(draw.random(), 4) for at in ends for build in ("", "b1")}
    listed = [
        rows.window_row(at, {"m": rows.metric(value), "none": rows.metric(None)}, build=build)
        for (at, build), value in values.items()
    ]
    draw.shuffle(listed)  # a late window has a larger number
    for part in (listed[:100], listed[100:]):
        rows.add_windows(database, part)
        for _ in range(20):
            MetricHours(database).step(NOW)
    for build, by in (("", "total"), ("b1", "build")):
        found = read_hours(database, "", "shop", "m", 0, queries.SERIES[by])
        own: dict[int, list[int]] = {}
        for at in sorted(ends):
            own.setdefault(at // HOUR, []).append(at)
        assert found == [
            MetricHour(
                build, "", "", len(inside), inside[-1], values[inside[-1], build],
                min(values[at, build] for at in inside), max(values[at, build] for at in inside),
            )
            for inside in own.values()
        ]  # fmt: skip
    assert read_hours(database, "", "shop", "none", 0, queries.SERIES["total"]) == []
    since = read_hours(database, "", "shop", "m", NOW - 3 * HOUR, queries.SERIES["total"])
    assert [hour.ended // HOUR for hour in since] == [NOW // HOUR - back for back in (3, 2, 1, 0)]


def test_a_damaged_window_holds_nobody_up(database: LiveDatabase) -> None:
    broken = list(rows.window_row(NOW - MINUTE, {}))
    broken[-1] = '{"metrics": [1, 2]}'
    rows.add_windows(database, [broken, rows.window_row(NOW, {"m": rows.metric(0.5)})])
    MetricHours(database).step(NOW)
    (hour,) = read_hours(database, "", "shop", "m", 0, queries.SERIES["total"])
    assert (hour.windows, hour.last) == (1, 0.5)
