"""A real `ragauge serve` for tests: its address, its folder, what it stored, and ways to end it."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from ragauge.live.spool import SpoolReader, decode_spans

PATIENCE = 60.0


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: dict[str, str]
    body: bytes


class LiveProcess:
    """One server process in a folder; `settings` is the [live] of its ragauge.toml."""

    def __init__(self, folder: Path, *options: str, settings: str = "") -> None:
        self.folder = folder
        if settings:
            (folder / "ragauge.toml").write_text(settings)
        command = [sys.executable, "-P", "-m", "ragauge", "serve", "--port", "0", *options]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
            encoding="utf-8", env=environment,
        )  # fmt: skip
        self.lines: list[str] = []
        self._is_ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._is_ready.wait(PATIENCE):
            self.process.kill()
            raise AssertionError(f"the server did not start: {self.lines}")

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            if line.startswith("listening on "):
                self._is_ready.set()
        self._is_ready.set()  # it has ended

    @property
    def url(self) -> str:
        """Where it listens."""
        address = re.search(r"listening on (\S+)", "\n".join(self.lines))
        assert address is not None, self.lines
        return address[1]

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def ask(self, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request; a refusal is an answer too."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, body, named)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return Answer(response.status, dict(response.headers), response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, dict(error.headers), error.read())

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.send_signal(signal.SIGKILL)
        self.stop()

    def stop(self) -> int:
        """End it as an operator does; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return code


@contextmanager
def live_process(folder: Path, *options: str, settings: str = "") -> Iterator[LiveProcess]:
    """A server that is ended with the block."""
    server = LiveProcess(folder, *options, settings=settings)
    try:
        yield server
    finally:
        server.stop()


def stored_traces(folder: Path, *, spool: Path | None = None) -> set[str]:
    """The ids of the traces that are on disk: in the spool, or scored already."""
    reader = SpoolReader(spool or folder / "ragauge-live.db.spool")
    names: set[str] = set()
    after = 0
    while bodies := reader.batch(after, 500):
        after = bodies[-1].number
        for body in bodies:
            names.update(span.trace_id for span in decode_spans(body.body))
    reader.close()
    database = folder / "ragauge-live.db"
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        names.update(row[0] for row in connection.execute("SELECT trace_id FROM live_traces"))
    return names


def wait_until(is_true: object, seconds: float = PATIENCE) -> None:
    """Wait for a condition, which is called again and again."""
    assert callable(is_true)
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
