"""Live traffic end to end with a clock of its own: from the spool to a decision, all parts real."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragauge.live.database import LiveDatabase, open_database
from ragauge.live.decisions import Decisions, read_decisions, read_record, repeat_decision
from ragauge.live.mirror import Mirror
from ragauge.live.settings import LiveSettings
from ragauge.live.spool import SpoolReader
from ragauge.live.trace_values import LiveGold
from ragauge.live.worker import PARTS, LiveWorker, WorkerContext
from tests.support.web_servers import Request, Server, http, serving
from tests.unit.live.live_traffic import MINUTE, START, SpoolOfTests

pytestmark = pytest.mark.slow

QUESTIONS = 240
LIVE_HITS = [{"id": f"c{n}", "delta_s": 0.3} for n in range(5)]
OTHER_HITS = [{"id": f"x{n}", "delta_s": 0.3} for n in range(5)]


class LiveSystem:
    """A worker with all its parts, and the time."""

    def __init__(self, folder: Path, settings: LiveSettings) -> None:
        self.spool = SpoolOfTests(folder)
        self.database: LiveDatabase = open_database(f"sqlite:///{folder / 'live.db'}")
        context = WorkerContext(
            settings=settings,
            database=self.database,
            spool=SpoolReader(folder),
            folder=folder,
            gold=LiveGold(),
        )
        self.parts = [build(context) for build in PARTS]
        self.mirror = next(part for part in self.parts if isinstance(part, Mirror))
        self.decisions = next(part for part in self.parts if isinstance(part, Decisions))
        self.worker = LiveWorker(self.parts)
        self.now = START

    def send(self, number: int, **facts: Any) -> None:
        row = {
            "trace_id": f"trace-{number}",
            "app": "shop",
            "question": f"How long does delivery {number} take?",
            "hits": LIVE_HITS,
            "answer": {"text": "Five days.", "citations": ["c0"]},
            "build": "b1",
            "index_hash": "i1",
            "latency_ms": 90,
            **facts,
        }
        self.spool.put_rows([row], self.now)

    def run_for(self, minutes: float) -> None:
        end = self.now + round(minutes * MINUTE)
        while self.now < end:
            self.worker.step(self.now)
            self.mirror.wait()
            self.decisions.wait()
            assert not self.worker.failures, self.worker.failures
            self.now += 10_000


@contextmanager
def live_system(folder: Path, live: Server, shadow: Server, **more: Any) -> Iterator[LiveSystem]:
    settings = msgspec.convert(
        {
            "sampling": {"rate": 1.0},
            "shadow": {
                "target": shadow.url,
                "live": live.url,
                "rate": 1.0,
                "self_rate": 1.0,
                "qps": 1000.0,
                "least_hours": 0.0,
                **more,
            },
        },
        LiveSettings,
    )
    system = LiveSystem(folder, settings)
    try:
        yield system
    finally:
        system.mirror.close()
        system.spool.close()
        system.database.close()


def answering(hits: list[dict[str, Any]]) -> Any:
    def answer(request: Request) -> bytes:
        assert request.json["question"].startswith("How long")
        cites = {"text": "Five days.", "citations": [hits[0]["id"]]}
        return http({"hits": hits, "answer": cites, "index_hash": "i2"})

    return answer


def send_traffic(system: LiveSystem, first: int = 0) -> None:
    """One question every 1.5 s, for six minutes."""
    for number in range(QUESTIONS):
        system.send(first + number)
        if number % 20 == 19:
            system.run_for(0.5)


def test_an_equal_shadow_is_promoted_and_drift_rolls_back(tmp_path: Path) -> None:
    with (
        serving(answering(LIVE_HITS)) as live,
        serving(answering(LIVE_HITS)) as shadow,
        live_system(tmp_path, live, shadow) as system,
    ):
        send_traffic(system)
        system.run_for(5)
        stored = read_decisions(system.database, limit=9)
        assert [one.decision for one in stored] == ["promote"]
        record = read_record(stored[0])
        # the questions of the window, each asked of both once more
        assert record.pairs["shadow-answered"] >= 200
        assert record.pairs["self-answered"] == record.pairs["shadow-answered"]
        assert {one.status for one in record.criteria[:6]} == {"pass"}
        assert repeat_decision(system.database, stored[0]) == record
        # a second replica under the same build answers from another index
        for number in range(QUESTIONS):
            system.send(1000 + number, index_hash="i1" if number % 2 else "i9")
            if number % 20 == 19:
                system.run_for(0.5)
        system.run_for(5)
        newest = read_decisions(system.database)[0]
        assert newest.decision == "roll-back"
        assert read_record(newest).reasons == ("the index drifted: index-drift",)


def test_a_shadow_that_finds_other_things_is_held(tmp_path: Path) -> None:
    with (
        serving(answering(LIVE_HITS)) as live,
        serving(answering(OTHER_HITS)) as shadow,
        live_system(tmp_path, live, shadow) as system,
    ):
        send_traffic(system)
        system.run_for(5)
        (stored,) = read_decisions(system.database, limit=9)
        assert stored.decision == "hold"
        (reason,) = read_record(stored).reasons
        assert reason.startswith("recall proxy against live's agreement with itself: lower bound -")
