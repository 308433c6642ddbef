"""Real traffic through the parts of the worker: it gets worse, an alert fires, and it resolves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge.live.alert_log import AlertLog, read_events
from ragauge.live.alerts import AlertEvaluator, read_alerts
from ragauge.live.outbox import Outbox
from ragauge.live.settings import Alerts, LiveSettings, Sampling, Webhook
from ragauge.live.worker import LiveWorker
from tests.support.web_servers import Request, Server, http, serving
from tests.unit.live.live_traffic import MINUTE, START, SpoolOfTests, worker

A_MINUTE = 60


def sent(number: int, *, cited: float, index_hash: str = "i1") -> dict[str, Any]:
    """A trace of a shop; all but a share of them cite nothing."""
    draw = random.Random(number)
    hits = [{"id": f"guide-{draw.randrange(8)}.md#{place}"} for place in range(1, 4)]
    return {
        "trace_id": f"{number:032x}",
        "app": "shop",
        "build": "v1",
        "index_hash": index_hash,
        "question": f"How do I do thing {number}?",
        "hits": hits,
        "answer": "It is so.",
        "citations": [hits[0]["id"]] if draw.random() < cited else [],
        "latency_ms": 300 + draw.random() * 100,
    }


@pytest.fixture
def receiver() -> Iterator[Server]:
    def answer(_request: Request) -> bytes:
        return http(b"ok")

    with serving(answer) as server:
        yield server


@pytest.mark.slow
def test_a_system_that_stops_citing_fires_and_one_that_cites_again_resolves(
    tmp_path: Path, receiver: Server
) -> None:
    alerts = Alerts(webhooks=(Webhook(url=receiver.url),), log=str(tmp_path / "alerts.jsonl"))
    settings = LiveSettings(sampling=Sampling(rate=1.0), alerts=alerts)
    spool = SpoolOfTests(tmp_path)
    traffic = worker(spool, settings=settings)
    database = traffic.windows.database
    outbox = Outbox(alerts, database)
    parts = LiveWorker(
        [traffic, AlertEvaluator(settings, database), AlertLog(alerts.log, database), outbox]
    )
    number = 0
    now = START

    def minutes(count: int, *, cited: float) -> str:
        nonlocal number, now
        for _ in range(count):
            rows = [sent(number + place, cited=cited) for place in range(A_MINUTE)]
            number += A_MINUTE
            spool.put_rows(rows, now + 30_000)
            now += MINUTE
            parts.step(now)
        parts.step(now + 20_000)  # the last minute is sealed
        parts.step(now + 26_000)
        states = {key.rule: record.state for key, record in read_alerts(database).items()}
        return states["coverage"]

    assert minutes(10, cited=0.95) == "inactive"
    assert minutes(15, cited=0.40) == "firing"
    assert minutes(15, cited=0.95) == "resolved"
    assert parts.failures == {}
    changes = [
        (event["before"], event["state"])
        for event in read_events(database)
        if event["rule"] == "coverage"
    ]
    assert changes == [("inactive", "pending"), ("pending", "firing"), ("firing", "resolved")]
    for _ in range(200):
        parts.step(now + 40_000)
        if len(receiver.requests) == 2:
            break
    outbox.close()
    fired, resolved = (request.json["alerts"] for request in receiver.requests)
    assert [entry["state"] for entry in (*fired, *resolved)] == ["firing", "resolved"]
    (entry,) = fired
    # The five worst traces are such as cite nothing.
    rows = database.read("SELECT trace_id, CAST(arrived AS TEXT) FROM live_traces")
    assert len(entry["worst_traces"]) == 5
    assert set(entry["worst_traces"]) <= {trace_id for trace_id, _ in rows}
    for trace_id in entry["worst_traces"]:
        assert sent(int(trace_id, 16), cited=0.40)["citations"] == []
    assert entry["indexes"][0]["index_hash"] == "i1"
    logged = [
        msgspec.json.decode(line) for line in Path(alerts.log or "").read_bytes().splitlines()
    ]
    assert [line["state"] for line in logged if line["rule"] == "coverage"] == [
        "pending",
        "firing",
        "resolved",
    ]
    # Nothing else fired: other rules saw the same traffic, and what is cited is valid.
    assert {event["rule"] for event in read_events(database) if event["state"] == "firing"} == {
        "coverage"
    }


def test_a_second_index_in_real_traffic_fires_before_any_window_closes(tmp_path: Path) -> None:
    settings = LiveSettings(sampling=Sampling(rate=1.0))
    spool = SpoolOfTests(tmp_path)
    traffic = worker(spool, settings=settings)
    parts = LiveWorker([traffic, AlertEvaluator(settings, traffic.windows.database)])
    rows = [sent(number, cited=1.0, index_hash=f"i{number % 2}") for number in range(10)]
    spool.put_rows(rows, START)
    parts.step(START + 1_000)
    (key,) = read_alerts(traffic.windows.database)
    assert (key.rule, key.series) == ("index-drift", "build=v1 index_hash")
    assert read_alerts(traffic.windows.database)[key].state == "firing"
