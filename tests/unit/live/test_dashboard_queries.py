"""What the pages read, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from ragauge.live.dashboard import queries
from ragauge.live.dashboard.queries import FeedPosition, GoldCandidate
from ragauge.live.database import LiveDatabase, open_database
from tests.support import live_rows as rows
from tests.support.cases import cases
from tests.support.live_rows import MINUTE, NOW
from tests.support.postgres import own_schema, server_url

POSTGRES = pytest.param("postgres", marks=[pytest.mark.slow, pytest.mark.xdist_group("postgres")])
LAST = NOW // MINUTE


@pytest.fixture(params=["sqlite", POSTGRES])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveDatabase]:
    with ExitStack() as stack:
        url = f"sqlite:///{tmp_path / 'live.db'}"
        if request.param == "postgres":
            url = stack.enter_context(own_schema(server_url(request.config)))
        yield stack.enter_context(closing(open_database(url)))


def test_apps_are_those_of_the_tenant(database: LiveDatabase) -> None:
    rows.add_windows(database, [rows.window_row(NOW, {}, app=app) for app in ("b", "a")])
    rows.add_windows(database, [rows.window_row(NOW, {}, app="theirs", tenant="t2")])
    rows.add_minutes(database, [("", "only-minutes", LAST, "", "", "", 3)])
    rows.add_trace(database, "1", None, app="only-traces")
    assert queries.apps(database, "") == ["a", "b", "only-minutes", "only-traces"]
    assert queries.apps(database, "t2") == ["theirs"]
    assert queries.apps(database, "t3") == []


def test_newest_windows_are_totals_with_their_metrics(database: LiveDatabase) -> None:
    metrics = {"live.empty": rows.metric(0.5, 40, 0.1), "live.tau": rows.metric(None, 0)}
    rows.add_windows(
        database,
        [
            rows.window_row(NOW - MINUTE, metrics),
            rows.window_row(NOW, {}, state="too-little-traffic", samples=7),
            rows.window_row(NOW, {}, build="b1"),
            rows.window_row(NOW, {}, tenant="t2"),
        ],
    )
    newest, before = queries.newest_windows(database, "", "shop", limit=5)
    assert (newest.samples, newest.is_closed, newest.is_total) == (7, False, True)
    assert before.metrics["live.empty"].interval == (0.4, 0.6)
    assert (before.metrics["live.tau"].value, before.metrics["live.tau"].n) == (None, 0)
    assert len(queries.newest_windows(database, "", "shop", limit=1)) == 1
    only_closed = queries.newest_windows(database, "", "shop", limit=5, closed=True)
    assert [window.samples for window in only_closed] == [200]
    (part,) = queries.parts_of_window(database, "", "shop", newest.begins_at)
    assert part.build == "b1"
    assert queries.window(database, "", part.number) == part
    assert queries.window(database, "t2", part.number) is None


def test_windows_come_in_pages_and_none_is_lost(
    database: LiveDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven windows that begin in pairs, read three at a time."""
    monkeypatch.setattr(queries, "PAGE_OF_WINDOWS", 3)
    builds = ("b1", "b2")
    parts = [
        rows.window_row(NOW - at * MINUTE, {"m": rows.metric(at / 10), "o": {}}, build=build)
        for at in range(4)
        for build in builds
    ][1:]
    rows.add_windows(database, parts)
    found = list(
        queries.windows_since(
            database, "", "shop", rows.time_text(NOW - 3_600_000), metric="m", by="build"
        )
    )
    # From the oldest on; of the newest moment b1 was left out.
    assert [(window.metrics["m"].value, window.build) for window in found] == [
        (0.3, "b1"), (0.3, "b2"), (0.2, "b1"), (0.2, "b2"), (0.1, "b1"), (0.1, "b2"), (0.0, "b2"),
    ]  # fmt: skip
    assert all(list(window.metrics) == ["m"] for window in found)
    late = queries.windows_since(
        database, "", "shop", rows.time_text(NOW - 6 * MINUTE), metric="m", by="build"
    )
    assert len(list(late)) == 3  # began 5 or 6 minutes ago


def test_a_damaged_aggregate_is_a_window_without_metrics(database: LiveDatabase) -> None:
    row = list(rows.window_row(NOW, {}))
    row[-1] = '{"metrics": [1, 2]}'
    rows.add_windows(database, [row])
    (window,) = queries.newest_windows(database, "", "shop", limit=1)
    assert window.metrics == {}


def test_traffic_is_by_the_minute(database: LiveDatabase) -> None:
    rows.add_minutes(
        database,
        [
            ("", "shop", LAST - 2, "b1", "i1", "", 5),
            ("", "shop", LAST - 2, "b2", "i1", "", 6),
            ("", "shop", LAST, "b1", "i1", "", 1),
            ("", "shop", LAST - 9, "b1", "i1", "", 100),
            ("t2", "shop", LAST, "b1", "i1", "", 1000),
        ],
    )
    found = queries.traffic(database, "", "shop", LAST - 5)
    assert [(one.minute, one.samples) for one in found] == [(LAST - 2, 11), (LAST, 1)]
    # With totals kept, they are the traffic: parts would count it twice.
    rows.add_minutes(database, [("", "shop", LAST - 2, "", "", "", 11)])
    found = queries.traffic(database, "", "shop", LAST - 5)
    assert [(one.minute, one.samples) for one in found] == [(LAST - 2, 11)]


def test_alerts_and_their_changes(database: LiveDatabase) -> None:
    measured = {"value": 0.5, "n": 200, "interval": [0.4, None]}
    record = {"metric": "m", "measured": measured, "threshold": 0.7, "direction": "below"}
    rows.add_alert(database, "coverage", "firing", record=record, before="pending")
    rows.add_alert(database, "theirs", "firing", tenant="t2")
    rows.add_alert(database, "silent", "no-data", record={"was_firing": True})
    coverage, silent = queries.alerts(database, "")
    assert coverage.facts.limit == "≥ 0.7"
    assert coverage.facts.measured.interval == (0.4, None)
    assert (coverage.is_unresolved, silent.is_unresolved) == (True, True)
    newest, oldest = queries.alert_events(database, "")
    assert (newest.rule, oldest.rule, oldest.before, oldest.after) == (
        "silent", "coverage", "pending", "firing",
    )  # fmt: skip
    assert queries.alert_events(database, "", before=newest.number) == [oldest]


def test_decisions(database: LiveDatabase) -> None:
    rows.add_decision(database, "hold", {"criteria": []}, ends=NOW - 1000)
    rows.add_decision(database, "promote", {"criteria": [{"name": "x"}]})
    rows.add_decision(database, "hold", {}, tenant="t2")
    newest, oldest = queries.decisions(database, "")
    assert (newest.decision, oldest.decision) == ("promote", "hold")
    assert newest.record == {"criteria": [{"name": "x"}]}
    assert queries.decisions(database, "", before=newest.number) == [oldest]
    assert queries.decision(database, "", newest.number) == newest
    assert queries.decision(database, "t2", newest.number) is None


def test_traces_and_pairs_go_by_time_and_tenant(database: LiveDatabase) -> None:
    for number in range(5):
        rows.add_trace(
            database, f"t{number}", {"question": "q"}, arrived=NOW - number * 1000,
            state="errored" if number == 2 else "scored",
        )  # fmt: skip
    rows.add_trace(database, "t0", {"question": "theirs"}, tenant="t2")
    rows.add_pair(database, "t1", {"question": "q"}, asked=NOW - 10)
    rows.add_pair(database, "t1", {"question": "q"}, asked=NOW - 5, role="self")
    listed = queries.traces(database, "", "shop", limit=3)
    assert [row.trace_id for row in listed] == ["t0", "t1", "t2"]
    older = queries.traces(database, "", "shop", before=listed[-1].arrived)
    assert [row.trace_id for row in older] == ["t3", "t4"]
    assert [row.trace_id for row in queries.traces(database, "", "shop", state="errored")] == ["t2"]
    assert queries.last_arrival(database, "", "shop") == NOW
    assert queries.last_arrival(database, "", "other") is None
    found = queries.trace(database, "t2", "t0")
    assert found is not None
    assert found.arrived == NOW - 5000
    content = queries.trace_content(database, "", "t0")
    assert content is not None
    assert content.body == rows.packed({"question": "q"})
    assert queries.trace(database, "t3", "t0") is None
    assert queries.trace_content(database, "t3", "t0") is None
    assert [row.role for row in queries.pairs(database, "", "shop")] == ["self", "shadow"]
    assert [row.role for row in queries.pairs_of_trace(database, "", "t1")] == ["shadow", "self"]
    assert queries.pairs_of_trace(database, "t2", "t1") == []


def test_outcomes_are_added_up_from_a_minute_on(database: LiveDatabase) -> None:
    rows.add_counts(
        database,
        [
            ("", LAST - 70, "accepted", 100, 10),
            ("", LAST - 2, "accepted", 7, 2),
            ("", LAST, "accepted", 1, 1),
            ("", LAST - 1, "refused", 3, 0),
            ("t2", LAST, "refused", 50, 0),
        ],
    )
    accepted, refused = queries.outcomes(database, "", LAST - 59)
    assert (accepted.spans, accepted.traces, accepted.last_minute) == (8, 3, LAST)
    assert (refused.outcome, refused.spans) == ("refused", 3)
    assert queries.last_accepted(database, "") == LAST
    assert queries.last_accepted(database, "t2") is None


def test_gold_candidates_are_replaced_and_removed(database: LiveDatabase) -> None:
    def put(tenant: str, trace_id: str, text: str) -> None:
        made = GoldCandidate(trace_id=trace_id, created=NOW, item_json=text)
        queries.put_gold_candidate(database, tenant, made)

    put("", "a", '{"qid": 1}')
    put("", "a", '{"qid": 2}')
    put("t2", "a", '{"qid": 3}')
    (candidate,) = queries.gold_candidates(database, "")
    assert queries.item_of(candidate) == {"qid": 2}
    queries.remove_gold_candidate(database, "", "a")
    assert queries.gold_candidates(database, "") == []
    assert len(queries.gold_candidates(database, "t2")) == 1


def test_the_feed_tells_what_is_behind_a_position(database: LiveDatabase) -> None:
    begin = queries.feed_position(database, "", LAST)
    assert begin == FeedPosition(0, 0, 0, 0)
    rows.add_windows(database, [rows.window_row(NOW, {}), rows.window_row(NOW, {}, tenant="t2")])
    rows.add_alert(database, "coverage", "firing")
    rows.add_decision(database, "hold", {})
    counts = [("", LAST - 1, "accepted", 5, 2), ("", LAST - 1, "scored", 0, 2)]
    rows.add_counts(database, [*counts, ("", LAST, "accepted", 9, 9)])
    events = queries.feed_events(database, "", begin, LAST)
    assert [event.kind for event in events] == ["window", "alert", "decision", "minute"]
    assert events[1].facts["rule"] == "coverage"
    assert events[3].facts == {"traces": 4}  # the present minute is not closed
    after = queries.feed_position(database, "", LAST)
    assert queries.feed_events(database, "", after, LAST) == []
    assert [event.number for event in queries.feed_events(database, "", after, LAST + 1)] == [LAST]
    assert FeedPosition.parse(after.text) == after


@cases("text", [None, "", "1.2.3", "1.2.3.x", "1.2.3.-4", f"1.2.3.{10**30}", "\u0661.1.1.1"])
def test_a_position_that_says_nothing_is_none(text: str | None) -> None:
    assert FeedPosition.parse(text) is None


def test_outbox_counts_by_state(database: LiveDatabase) -> None:
    def row(key: str, state: str) -> tuple[Any, ...]:
        return "", key, "http://x", NOW, "{}", NOW, state

    with database.transaction():
        database.execute_many(
            "INSERT INTO live_outbox (tenant, dedupe_key, webhook, created, payload, next_try,"
            " state) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [row("a", "waiting"), row("b", "given-up"), row("c", "given-up")],
        )
    assert queries.outbox(database, "") == {"waiting": 1, "given-up": 2}
