"""Owns the campaign on the live monitor: kills at random moments, a soak, and what load costs.

What was answered with 200 is looked for afterwards: in the spool, or among the scored traces.
"""

from __future__ import annotations

import random
import sqlite3
import tempfile
import threading
import time
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import live_bodies
import live_load
from live_load import Server, stored_traces
from table import grid

SEED = 17
KILLS = 200
SOAK_SECONDS = 600
SOAK_SPANS = 1000
_PATIENCE = 300


class _Sender(threading.Thread):
    """Sends small bodies one after the other, a second time where it heard nothing."""

    def __init__(self, place: int) -> None:
        super().__init__(daemon=True)
        self.place = place
        self.url = ""
        self.is_over = False
        self.acknowledged: set[str] = set()
        self.statuses: dict[int, int] = {}

    def run(self) -> None:
        number = self.place * 10_000_000
        body, first = b"", -1
        while not self.is_over:
            if first != number:
                body, first = live_bodies.body(SEED, number, 2), number
            status = self._send(body)
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == 200:
                names = (live_bodies.trace_id(SEED, number + step) for step in range(2))
                self.acknowledged.update(names)
                number += 2
            else:
                time.sleep(0.05)

    def _send(self, body: bytes) -> int:
        """The status of the answer; 0 where there was none."""
        headers = {"content-type": "application/x-protobuf"}
        connection = HTTPConnection(self.url.removeprefix("http://"), timeout=30)
        try:
            connection.request("POST", "/v1/traces", body, headers)
            return connection.getresponse().status
        except (OSError, HTTPException):
            return 0
        finally:
            connection.close()


def kills(count: int) -> tuple[list[str], int]:
    """Kill the web process or the worker at random moments while four senders go on."""
    chance = random.Random(SEED)
    settings = "[live]\nassemble_root = 0.2\nassemble_after = 1\n"
    web_kills = worker_kills = 0
    with tempfile.TemporaryDirectory(prefix="ragauge-kills-") as name:
        folder = Path(name)
        server = Server(folder, settings)
        senders = [_Sender(place) for place in range(4)]
        for sender in senders:
            sender.url = server.url
            sender.start()
        for _ in range(count):
            time.sleep(chance.uniform(0, 1))
            if chance.random() < 0.5:
                server.kill()
                web_kills += 1
                server = Server(folder, settings)
                for sender in senders:
                    sender.url = server.url
            else:
                server.kill(worker=True)
                worker_kills += 1
        for sender in senders:
            sender.is_over = True
        for sender in senders:
            sender.join(60)
        _wait_for_worker(folder)
        server.stop()
        acknowledged = set().union(*(sender.acknowledged for sender in senders))
        lost = acknowledged - stored_traces(folder)
        with closing(sqlite3.connect(folder / "ragauge-live.db")) as connection:
            scored, twice = connection.execute(
                "SELECT count(*), count(*) - count(DISTINCT trace_id) FROM live_traces"
            ).fetchone()
    expected = (0, 200, 429, 503)  # 0: the server was gone
    other = sum(
        count
        for sender in senders
        for status, count in sender.statuses.items()
        if status not in expected
    )
    row = [
        f"{web_kills}", f"{worker_kills}", f"{len(acknowledged):,}", f"{scored:,}",
        f"{len(lost):,}", f"{twice:,}", f"{other:,}",
    ]  # fmt: skip
    return row, len(lost) + twice + other


def _wait_for_worker(folder: Path) -> None:
    """Wait until the spool is empty, or nothing happens any more."""
    from ragauge.live.spool import SpoolReader

    reader = SpoolReader(folder / "ragauge-live.db.spool")
    deadline = time.monotonic() + _PATIENCE
    while reader.depth() and time.monotonic() < deadline:
        time.sleep(0.5)
    reader.close()


def campaign(effort: float) -> int:
    """All three; the number of faults."""
    row, faults = kills(max(2, round(KILLS * effort)))
    headings = (
        "web killed", "worker killed", "traces acknowledged", "scored", "lost", "stored twice",
        "other answers",
    )  # fmt: skip
    print("`kill -9` at random moments, under four senders that go on:\n")
    print(grid("rrrrrrr", headings, [row]))
    seconds = max(2.0, SOAK_SECONDS * effort)
    print(
        f"\nLoad, from benchmarks/live_load.py on the same machine; the soak is {seconds:.0f} s:\n"
    )
    rows = []
    short = max(2.0, 10 * min(1.0, effort))
    for measured, more in (
        live_load.steady(SOAK_SPANS, seconds, packed=False, seed=3),
        live_load.steady(2 * SOAK_SPANS, short, packed=True, seed=4),
        live_load.overload(64, short, seed=5),
    ):
        rows.append(measured)
        faults += more
    print(live_load.table(rows))
    print(f"\n{faults} acknowledged traces lost, stored twice, or answers other than 200 and 429")
    return int(faults > 0)
