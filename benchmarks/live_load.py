"""Owns the load on a live collector: how much it takes, at what cost, and what it refuses.

Run as `python benchmarks/live_load.py`, which starts a server of its own and looks at its processor
time; or with `--url http://HOST:PORT` against any server of OTLP/HTTP, with the same bodies. The
generator is this file: asyncio, one request at a time on each of some connections, bodies of
`live_bodies.py` made before the clock starts. Requests are due at even times whether or not earlier
ones were answered, and latency counts from then.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import live_bodies
from live_bodies import Shape
from ragauge.live.spool import SpoolReader, decode_spans
from table import MEGABYTE, grid, machine

SHAPE = live_bodies.BY_HAND
TRACES = SHAPE.traces  # of a body: 100 spans
MOST_CPU, MOST_P99, MOST_MB = 0.1, 0.2, 300  # what the project promises
_TICKS = os.sysconf("SC_CLK_TCK")


AnyBodies = Sequence[bytes] | live_bodies.Bodies


@dataclass
class Load:
    """What was sent, and what came back: statuses, seconds of each 200, and acknowledged bodies."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)
    wall: float = 0.0

    def quantile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Server:
    """A `ragauge serve` with all traces kept; what it takes of the machine."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self.folder = folder
        (folder / "ragauge.toml").write_text(settings or "[live]\n", encoding="utf-8")
        command = [sys.executable, "-P", "-m", "ragauge", "serve", "--port", "0", "--rate", "1"]
        self.log = folder / "server.log"
        self.begins = self.log.stat().st_size if self.log.exists() else 0  # it may be a restart
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, stderr=log)
        self.url = self._address()

    def _address(self) -> str:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            said = self.log.read_bytes()[self.begins :].decode()
            if address := re.search(r"listening on (\S+)\n", said):
                return address[1]
            time.sleep(0.02)
        raise RuntimeError(self.log.read_text("utf-8"))

    @property
    def pids(self) -> tuple[int, int | None]:
        """The web process and its worker."""
        own = self.process.pid
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                if int(path.read_text().rpartition(") ")[2].split()[1]) == own:
                    return own, int(path.parent.name)
        return own, None

    def cpu(self, pid: int | None) -> float:
        """The seconds of processor time that a process has had."""
        if pid is None:
            return 0.0
        parts = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(parts[11]) + int(parts[12])) / _TICKS

    def peak_mb(self, pid: int | None) -> float:
        """The most memory that a process ever had."""
        if pid is None:
            return 0.0
        text = Path(f"/proc/{pid}/status").read_text()
        peak = re.search(r"VmHWM:\s+(\d+)", text)
        return int(peak[1]) * 1024 / MEGABYTE if peak else 0.0

    def kill(self, *, worker: bool = False) -> None:
        """End a process as a crash does."""
        pid = self.pids[1] if worker else self.process.pid
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not worker:
            self.process.wait()

    def stop(self) -> int:
        """End it as an operator does."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


def stored_traces(folder: Path) -> set[str]:
    """The traces that are on disk: in the spool, or scored."""
    import sqlite3
    from contextlib import closing

    reader = SpoolReader(folder / "ragauge-live.db.spool")
    names: set[str] = set()
    after = 0
    # Scored first: what the worker deletes from the spool meanwhile is there by then.
    while bodies := reader.batch(after, 200):
        after = bodies[-1].number
        for body in bodies:
            names.update(span.trace_id for span in decode_spans(body.body))
    reader.close()
    with closing(sqlite3.connect(folder / "ragauge-live.db", timeout=60)) as connection:
        names.update(row[0] for row in connection.execute("SELECT trace_id FROM live_traces"))
    return names


async def send(
    url: str, bodies: AnyBodies, *, rate: float, connections: int, path: str = "/v1/traces",
    packed: bool = False,
) -> Load:  # fmt: skip
    """Send bodies at so many a second over some connections; each is sent once."""
    load, queue = Load(), iter(range(len(bodies)))
    start = time.perf_counter()
    address = urlsplit(url)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\n"
        "Content-Type: application/x-protobuf\r\n"
        + ("Content-Encoding: gzip\r\n" if packed else "")
    )

    async def work() -> None:
        reader: asyncio.StreamReader | None = None
        writer: asyncio.StreamWriter | None = None
        for number in queue:
            due = start + number / rate
            if (wait := due - time.perf_counter()) > 0:
                await asyncio.sleep(wait)
            try:
                if reader is None or writer is None:
                    reader, writer = await asyncio.open_connection(
                        address.hostname, address.port, limit=2**20
                    )
                body = bodies[number]
                writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 30)
                status = int(answer.split(b" ", 2)[1])
                length = re.search(rb"content-length: (\d+)", answer.lower())
                if length and int(length[1]):
                    await reader.readexactly(int(length[1]))
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                status, reader, writer = 0, None, None
            load.statuses[status] += 1
            if status == 200:
                load.seconds.append(time.perf_counter() - due)
                load.acknowledged.append(number)
        if writer is not None:
            writer.close()

    await asyncio.gather(*(work() for _ in range(connections)))
    load.wall = time.perf_counter() - start
    return load


def make_bodies(
    count: int, *, seed: int, packed: bool = False, shape: Shape = SHAPE
) -> list[bytes]:
    """So many bodies, no two the same."""
    return [
        live_bodies.body(seed, number * shape.traces, shape.traces, packed=packed, shape=shape)
        for number in range(count)
    ]


def traces_of(numbers: Sequence[int], *, seed: int, shape: Shape = SHAPE) -> set[str]:
    """The ids of the traces in some bodies."""
    return {
        live_bodies.trace_id(seed, number * shape.traces + place)
        for number in numbers
        for place in range(shape.traces)
    }


@dataclass
class Measured:
    """What a server took, at what cost, and what became of it."""

    sent: str
    load: Load
    shape: Shape
    packed: bool
    web_cpu: float
    worker_cpu: float
    web_mb: float
    worker_mb: float
    lost: int
    scored_seconds: float  # from the last answer until all is scored

    @property
    def spans(self) -> int:
        return len(self.load.acknowledged) * self.shape.spans_a_body

    @property
    def faults(self) -> int:
        """Acknowledged traces that are gone, and answers that no exporter expects."""
        return self.lost + sum(
            n for status, n in self.load.statuses.items() if status not in (200, 429)
        )

    def row(self) -> list[str]:
        load, spans = self.load, max(1, self.spans)
        answers = ", ".join(
            f"{status or 'none'}: {n:,}" for status, n in sorted(load.statuses.items())
        )
        timed = bool(load.seconds)
        return [
            self.sent,
            "gzip" if self.packed else "plain",
            f"{self.spans / load.wall:,.0f}",
            f"{1000 * self.web_cpu / spans:.3f}",
            f"{1000 * self.worker_cpu * self.shape.spans / spans:.3f}",
            f"{1000 * load.quantile(0.5):.0f}" if timed else "–",
            f"{1000 * load.quantile(0.99):.0f}" if timed else "–",
            f"{self.scored_seconds:.0f}",
            f"{self.web_mb:.0f} + {self.worker_mb:.0f}",
            answers,
            f"{self.lost:,}",
        ]


HEADINGS = (
    "spans/s sent", "body", "accepted/s", "web CPU s per 1,000 spans",
    "worker CPU s per 1,000 traces", "p50 ms", "p99 ms", "all scored after s", "web + worker MB",
    "answers", "acknowledged and lost",
)  # fmt: skip


def table(rows: Sequence[Measured]) -> str:
    """The rows with their headings."""
    return grid("rlrrrrrrrlr", HEADINGS, [measured.row() for measured in rows])


def _measured(
    sent: str, bodies: AnyBodies, *, seed: int, shape: Shape, packed: bool, rate: float,
    connections: int,
) -> Measured:  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="ragauge-load-") as name:
        folder = Path(name)
        server = Server(folder)
        web, worker = server.pids
        before, before_worker = server.cpu(web), server.cpu(worker)
        load = asyncio.run(
            send(server.url, bodies, rate=rate, connections=connections, packed=packed)
        )
        cpu, ended = server.cpu(web) - before, time.monotonic()
        wait_until_scored(folder)
        scored_seconds = time.monotonic() - ended
        worker_cpu = server.cpu(worker) - before_worker
        peaks = server.peak_mb(web), server.peak_mb(worker)
        server.stop()
        lost = len(traces_of(load.acknowledged, seed=seed, shape=shape) - stored_traces(folder))
    return Measured(
        sent, load, shape, packed, cpu, worker_cpu, *peaks, lost=lost, scored_seconds=scored_seconds
    )


def wait_until_scored(folder: Path, seconds: float = 900) -> None:
    """Wait until the spool is empty."""
    reader = SpoolReader(folder / "ragauge-live.db.spool")
    deadline = time.monotonic() + seconds
    while reader.depth() and time.monotonic() < deadline:
        time.sleep(0.25)
    reader.close()


def steady(
    spans_a_second: int, seconds: float, *, packed: bool, seed: int = 1, shape: Shape = SHAPE
) -> Measured:
    """A load below what the server can take, at even times."""
    rate = spans_a_second / shape.spans_a_body
    count = round(rate * seconds)
    bodies: AnyBodies = (
        make_bodies(count, seed=seed, packed=True, shape=shape)
        if packed
        else live_bodies.Bodies(count, seed=seed, shape=shape)
    )
    return _measured(
        f"{spans_a_second:,}", bodies, seed=seed, shape=shape, packed=packed, rate=rate,
        connections=16,
    )  # fmt: skip


def overload(connections: int, seconds: float, *, seed: int = 2) -> Measured:
    """More than the server can take: as fast as it answers, on many connections."""
    bodies = make_bodies(round(200 * seconds), seed=seed)
    measured = _measured(
        f"all at once, {connections} connections", bodies, seed=seed, shape=SHAPE, packed=False,
        rate=1e9, connections=connections,
    )  # fmt: skip
    measured.load.seconds = []  # all were due at the start
    return measured


def shapes(seconds: float) -> str:
    """What bodies of other sizes cost, at five megabytes a second: a table."""
    rows = []
    for place, shape in enumerate((live_bodies.BY_HAND, *live_bodies.LANGCHAIN)):
        size = len(live_bodies.body(1, 0, shape.traces, shape=shape)) / shape.spans_a_body
        spans_a_second = round(5e6 / size)
        measured = steady(spans_a_second, seconds, packed=False, seed=10 + place, shape=shape)
        spans = max(1, measured.spans)
        rows.append(
            [
                shape.name,
                f"{size:,.0f}",
                f"{spans / measured.load.wall:,.0f}",
                f"{1000 * measured.web_cpu / spans:.3f}",
                f"{1e6 * measured.web_cpu / (spans * size):.4f}",
                f"{1000 * measured.worker_cpu * shape.spans / spans:.3f}",
                f"{measured.faults:,}",
            ]
        )
    headings = (
        "trace", "bytes a span", "spans/s", "web CPU s per 1,000 spans", "web CPU s per MB",
        "worker CPU s per 1,000 traces", "faults",
    )  # fmt: skip
    return grid("lrrrrrr", headings, rows)


def main() -> int:
    """Measure from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a server that is there already: only its answers are timed")
    parser.add_argument("--spans", type=int, default=2000, help="spans a second")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=256, help="of the overload")
    parser.add_argument("--shapes", action="store_true", help="bodies of other sizes instead")
    options = parser.parse_args()
    print(f"{machine()}; the generator shares it. Load {os.getloadavg()[0]:.1f}.\n")
    if options.shapes:
        print(shapes(options.seconds))
        return 0
    if options.url:
        rate = options.spans / SHAPE.spans_a_body
        bodies = make_bodies(round(rate * options.seconds), seed=int(time.time()))
        load = asyncio.run(send(options.url, bodies, rate=rate, connections=16))
        sent = f"{options.spans:,}"
        print(table([Measured(sent, load, SHAPE, False, 0, 0, 0, 0, lost=0, scored_seconds=0)]))
        return 0
    rows = [
        steady(options.spans, options.seconds, packed=False),
        steady(options.spans, options.seconds, packed=True),
        overload(options.connections, options.seconds),
    ]
    print(table(rows))
    return int(any(measured.faults for measured in rows))


if __name__ == "__main__":
    sys.exit(main())
