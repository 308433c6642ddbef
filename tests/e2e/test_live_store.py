"""Two real servers on one PostgreSQL that crashes while they work: each trace is stored once."""

from __future__ import annotations

import signal
import threading
import time
import urllib.error
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ragauge.live.database import open_database
from ragauge.live.spool import SpoolReader
from tests.support.live_process import LiveProcess, live_process, wait_until
from tests.support.live_server import otlp_request
from tests.support.postgres import own_server

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
SETTINGS = "[live]\nassemble_root = 0.2\nassemble_after = 1\n"


class Sender(threading.Thread):
    """Sends traces until each is acknowledged, as exporters do; every third to both servers."""

    def __init__(self, servers: list[LiveProcess], first: int) -> None:
        super().__init__(daemon=True)
        self.servers = servers
        self.next = first
        self.first = first
        self.statuses: Counter[int] = Counter()
        self.is_over = False

    def run(self) -> None:
        while not self.is_over:
            body = otlp_request(first=self.next).SerializeToString()
            own = self.servers[self.first % 2]
            for server in self.servers if self.next % 3 == 0 else (own,):
                self._send(server, body)
            self.next += 1

    def _send(self, server: LiveProcess, body: bytes) -> None:
        while True:
            try:
                answer = server.ask("/v1/traces", body, Content_Type="application/x-protobuf")
            except (OSError, urllib.error.URLError):
                self.statuses[0] += 1
                continue
            self.statuses[answer.status] += 1
            if answer.status == 200:
                return
            time.sleep(0.05)


def test_two_servers_survive_the_crash_of_their_store(tmp_path: Path) -> None:
    with ExitStack() as stack:
        postgres = stack.enter_context(own_server())
        servers = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            options = ("--rate", "1", "--store", postgres.url)
            servers.append(
                stack.enter_context(live_process(tmp_path / name, *options, settings=SETTINGS))
            )
        senders = [Sender(servers, first) for first in (1_000_000, 2_000_001)]
        for sender in senders:
            sender.start()
        for _ in range(2):
            time.sleep(1)
            postgres.stop(signal.SIGQUIT)
            time.sleep(0.5)
            postgres.start()
        time.sleep(1)
        for sender in senders:
            sender.is_over = True
        for sender in senders:
            sender.join(30)
        # The spool takes what the store cannot: nobody was refused.
        assert {status for sender in senders for status in sender.statuses} == {200}
        sent = {
            f"{number:032x}" for sender in senders for number in range(sender.first, sender.next)
        }
        assert len(sent) > 20
        readers = [SpoolReader(tmp_path / name / "ragauge-live.spool") for name in ("one", "two")]
        wait_until(lambda: not any(reader.depth() for reader in readers))
        with closing(open_database(postgres.url)) as database:
            stored = database.read("SELECT trace_id, state FROM live_traces")
            assert sorted(stored) == sorted((name, "scored") for name in sent)
            (counted,) = database.read(
                "SELECT sum(traces) FROM live_counts WHERE outcome = 'scored'"
            )
            assert counted[0] == len(sent)
        for reader in readers:
            reader.close()
        for server in servers:
            assert server.ask("/readyz").status == 200
