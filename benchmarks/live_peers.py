"""The live collector beside Phoenix: the same bodies; what is accepted, stored and left by a crash.

Run as `python benchmarks/live_peers.py --phoenix /path/to/bin/phoenix`, with an environment of its
own for `arize-phoenix`; without one that half is skipped. Both keep their data in SQLite, at their
default settings. Phoenix also builds what its pages show; what is compared is when it says 200, and
what that is worth.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import live_bodies
import live_load
from live_load import SHAPE, Load, Server, stored_traces
from table import MEGABYTE, grid, machine

_PATIENCE = 600


class Peer(NamedTuple):
    """A server that runs: its processes, and how many spans are on its disk."""

    name: str
    url: str
    pids: list[int]
    stored: Callable[[], int]
    kill: Callable[[], None]


def _ragauge(folder: Path) -> Peer:
    server = Server(folder)
    web, worker = server.pids
    return Peer(
        "ragauge serve",
        server.url,
        [web] if worker is None else [web, worker],
        lambda: len(stored_traces(folder)) * SHAPE.spans,
        server.kill,
    )


def _phoenix(program: str, folder: Path) -> Peer:
    port, grpc = _free_port(), _free_port()
    environment = {
        **os.environ,
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen([program, "serve"], env=environment, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + _PATIENCE
    while True:
        with suppress(OSError, urllib.error.URLError):
            urllib.request.urlopen(f"{url}/healthz", timeout=5).close()
            break
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError((folder / "server.log").read_text("utf-8", "replace")[-2000:])
        time.sleep(0.1)

    def stored() -> int:
        with closing(sqlite3.connect(folder / "phoenix.db", timeout=60)) as connection:
            return int(connection.execute("SELECT count(*) FROM spans").fetchone()[0])

    def kill() -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()

    return Peer("Phoenix", url, [process.pid], stored, kill)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _cpu(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        parts = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        ticks += int(parts[11]) + int(parts[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _peak_mb(pids: list[int]) -> float:
    lines = [
        line
        for pid in pids
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return sum(int(line.split()[1]) * 1024 for line in lines) / MEGABYTE


def _send(peer: Peer, count: int, seed: int) -> Load:
    """Send bodies as fast as they are answered, on four connections."""
    bodies = live_load.make_bodies(count, seed=seed)
    return asyncio.run(live_load.send(peer.url, bodies, rate=1e9, connections=4))


def measure(start: Callable[[Path], Peer], count: int) -> list[str]:
    """A row: what is accepted and stored, what it takes, and what a crash leaves."""
    with tempfile.TemporaryDirectory(prefix="ragauge-peers-", ignore_cleanup_errors=True) as name:
        begun = time.monotonic()
        peer = start(Path(name))
        ready = time.monotonic() - begun
        before = _cpu(peer.pids)
        load = _send(peer, count, 21)
        accepted = len(load.acknowledged) * SHAPE.spans_a_body
        begun = time.monotonic() - load.wall
        while peer.stored() < accepted and time.monotonic() - begun < _PATIENCE:
            time.sleep(0.25)
        stored_after = time.monotonic() - begun
        cpu, peak, stored = _cpu(peer.pids) - before, _peak_mb(peer.pids), peer.stored()
        peer.kill()
    with tempfile.TemporaryDirectory(prefix="ragauge-peers-", ignore_cleanup_errors=True) as name:
        peer = start(Path(name))
        crashed = _send(peer, count, 22)
        time.sleep(1)
        peer.kill()
        time.sleep(1)  # a worker ends with its server
        promised = len(crashed.acknowledged) * SHAPE.spans_a_body
        left = peer.stored()
    answers = ", ".join(f"{status or 'none'}: {n:,}" for status, n in sorted(load.statuses.items()))
    return [
        peer.name,
        f"{ready:.1f}",
        answers,
        f"{accepted / load.wall:,.0f}",
        f"{stored / stored_after:,.0f}",
        f"{1000 * cpu / max(1, accepted):.3f}",
        f"{peak:.0f}",
        f"{left:,} of {promised:,}",
    ]


HEADINGS = (
    "server", "ready after s", "answers", "accepted spans/s", "stored spans/s",
    "CPU s per 1,000 spans", "peak MB", "left of what was acknowledged, after `kill -9`",
)  # fmt: skip


def main() -> int:
    """Measure from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phoenix", default=shutil.which("phoenix"), help="its program")
    parser.add_argument("--bodies", type=int, default=67, help="of 100 spans each")
    options = parser.parse_args()
    size = len(live_bodies.body(1, 0, SHAPE.traces)) / SHAPE.spans_a_body
    print(
        f"{machine()}, load {os.getloadavg()[0]:.1f}. {options.bodies} bodies of "
        f"{SHAPE.spans_a_body} spans of {size:,.0f} bytes, on four connections, each after the "
        "answer to the one before.\n"
    )
    rows = [measure(_ragauge, options.bodies)]
    if options.phoenix is None:
        print("Phoenix is skipped: name its program with --phoenix\n")
    else:
        rows.append(measure(lambda folder: _phoenix(options.phoenix, folder), options.bodies))
    print(grid("lrlrrrrr", HEADINGS, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
