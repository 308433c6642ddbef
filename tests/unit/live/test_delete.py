"""Deletion on demand reaches every place that has the id of a trace or of a user."""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ragauge.live.dashboard import queries
from ragauge.live.database import LiveDatabase
from ragauge.live.decisions import read_decisions, repeat_decision
from ragauge.live.delete import delete_traces
from ragauge.live.outbox import Message, queue_messages
from ragauge.live.retention import RetentionPart
from ragauge.live.settings import Retention, Webhook
from ragauge.live.traffic import Traffic
from tests.support import decided_store, live_rows
from tests.support.decided_store import NOW
from tests.unit.live.live_traffic import MINUTE, START, SpoolOfTests, worker
from tests.unit.live.test_traffic import spans, stored

TRACE, USER = "t00003", "9f2c55aa01"
HOOK = Webhook(url="https://hooks.example/T0")


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[SpoolOfTests]:
    opened = SpoolOfTests(tmp_path)
    yield opened
    opened.close()


def bytes_of(path: Path) -> dict[str, bytes]:
    """All that the tables of a store say, unpacked, by table."""
    said: dict[str, bytes] = {}
    with closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            values = [
                value for row in connection.execute(f"SELECT * FROM {table}") for value in row
            ]
            said[table] = b"\0".join(map(_plain, values))
    return said


def _plain(value: object) -> bytes:
    if not isinstance(value, bytes):
        return str(value).encode()
    try:
        return zlib.decompress(value)
    except zlib.error:
        return value


def fill(database: LiveDatabase) -> None:
    """A trace with an answer, a pair, a decision about it, an alert that names it, a candidate."""
    decided_store.promoted(database)
    live_rows.add_trace(database, TRACE, live_rows.trace_body("Why?", [], "So.", []), arrived=NOW)
    with database.transaction() as execute:
        execute("UPDATE live_traces SET user_key = ?", (USER,))
        alert = {"rule": "coverage", "worst_traces": ["other", TRACE]}
        message = Message("", "key", {"text": "firing", "alerts": [alert]})
        queue_messages(execute, [HOOK], [message], NOW)
    candidate = queries.GoldCandidate(trace_id=TRACE, created=NOW, item_json='{"qid":"live"}')
    queries.put_gold_candidate(database, "", candidate)


@pytest.mark.parametrize("by", ["trace", "user"])
def test_nothing_has_the_id_any_more_and_the_decision_is_repeated(
    spool: SpoolOfTests, by: str
) -> None:
    database = worker(spool).traffic.database
    fill(database)
    path = spool.folder / "live.db"
    holders = {table for table, said in bytes_of(path).items() if TRACE.encode() in said}
    assert holders == {"live_traces", "live_pairs", "live_outbox", "live_gold_candidates"}
    (decision,) = read_decisions(database)
    if by == "trace":
        deleted = delete_traces(database, spool.reader, trace_ids=[TRACE], now=NOW)
    else:
        deleted = delete_traces(database, spool.reader, user_keys=[USER], now=NOW)
    assert (deleted.traces, deleted.pairs, deleted.candidates, deleted.messages) == (1, 3, 1, 1)
    said = bytes_of(path)
    name = (TRACE if by == "trace" else USER).encode()
    # That it was deleted is known for a day: a worker may still hold the trace.
    assert {table for table, text in said.items() if name in text} == {"live_deletions"}
    assert b'"worst_traces":["other"]' in said["live_outbox"]
    assert repeat_decision(database, decision).decision == "promote"  # to the byte, or it raises


def test_a_candidate_goes_with_its_user_when_its_trace_is_long_gone(spool: SpoolOfTests) -> None:
    database = worker(spool).traffic.database
    fill(database)
    with database.transaction() as execute:
        execute("DELETE FROM live_traces", ())
    assert delete_traces(database, None, user_keys=[USER], now=NOW).candidates == 1
    assert queries.gold_candidates(database, "") == []


def test_spans_of_a_trace_go_also_where_they_do_not_name_the_user(spool: SpoolOfTests) -> None:
    """The user stands in one span; the others of the trace came in another body."""
    root, *others = spans(3, {"user.id": USER})
    spool.put_spans([root], START)
    nameless = [span for span in others if USER not in span.attributes.values()]
    spool.put_spans([*(nameless or spans(3)), *spans(4)], START)
    database = worker(spool).traffic.database
    assert delete_traces(database, spool.reader, user_keys=[USER], now=START + 1).spooled == 2
    part = worker(spool)  # a new process, which has nothing in memory
    part.traffic.step(START + MINUTE)
    assert [row[0] for row in stored(part)] == [f"{4:032x}"]


def test_bodies_that_were_put_aside_go_too_and_those_of_other_tenants_stay(
    spool: SpoolOfTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ValueError("cannot be read")

    monkeypatch.setattr(Traffic, "_rows", broken)
    row = {"trace_id": "t/é", "user_key": USER, "question": "a?"}
    spool.put_rows([row], START)
    spool.put_rows([{**row, "trace_id": "t2", "user_key": "u2"}], START + 1)
    spool.put_rows([row], START, tenant="other")
    part = worker(spool)
    part.traffic.step(START + 2)
    folder = spool.folder / "quarantine"
    assert len(list(folder.iterdir())) == 3
    database = part.traffic.database
    assert delete_traces(database, spool.reader, trace_ids=["t/é"], now=START + 3).put_aside == 1
    assert delete_traces(database, spool.reader, user_keys=["u2"], now=START + 3).put_aside == 1
    (left,) = folder.iterdir()
    assert USER.encode() in left.read_bytes()


def test_pages_of_the_file_hold_nothing_of_what_was_deleted(spool: SpoolOfTests) -> None:
    """SQLite leaves what was deleted in its pages, unless it is told not to."""
    secret = "a question that nobody may read again"
    database = worker(spool).traffic.database
    body = live_rows.trace_body(secret, [], "So.", [])
    live_rows.add_trace(database, TRACE, body, arrived=NOW)
    candidate = queries.GoldCandidate(
        trace_id=TRACE, created=NOW, item_json=json.dumps({"question": secret})
    )
    queries.put_gold_candidate(database, "", candidate)
    delete_traces(database, None, trace_ids=[TRACE], now=NOW)
    for path in spool.folder.glob("live.db*"):
        assert secret.encode() not in path.read_bytes()


def test_messages_go_with_the_traces_that_they_name_unless_they_wait(spool: SpoolOfTests) -> None:
    database = worker(spool).traffic.database
    with database.transaction() as execute:
        for number, state in enumerate(("sent", "waiting", "given-up")):
            execute(
                "INSERT INTO live_outbox (tenant, dedupe_key, webhook, created, payload, next_try,"
                " state) VALUES ('', ?, 'w', ?, '{}', 0, ?)",
                (str(number), NOW, state),
            )
        execute(
            "INSERT INTO live_alert_events (tenant, app, rule, series, at, before, after,"
            " record_json) VALUES ('', 'a', 'r', '', ?, 'inactive', 'firing', '{}')",
            (NOW,),
        )
    retention = RetentionPart(database, Retention(traces=2, windows=4))
    counts = []
    for days in (1, 3, 5):
        retention.step(NOW + days * 24 * 60 * MINUTE)
        counts.append(
            [
                database.read(f"SELECT count(*) FROM {table}")[0][0]
                for table in ("live_outbox", "live_alert_events")
            ]
        )
    assert counts == [[3, 1], [1, 1], [1, 0]]
