"""The worker process as the server sees it: started, watched, started again when it dies."""

from __future__ import annotations

import logging
import subprocess
import threading
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.concurrency import start_process, write_message
from ragauge.live.settings import LiveSettings

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_log = logging.getLogger("ragauge.live")


class WorkerOrder(Struct, frozen=True, kw_only=True):
    """What the worker is told on its standard input, as one message of JSON.

    It works until that input ends, which it does with the server however that ends.
    `config` is the project's file, and None where there is none. `named_hosts` says who named the
    hosts that it may connect to, for what it announces.
    """

    settings: LiveSettings
    store_url: str
    spool: str
    config: str | None = None
    named_hosts: dict[str, str] = {}


class WorkerProcess:
    """Keeps one worker running until it is stopped; `code` is what its process runs."""

    def __init__(self, order: WorkerOrder, code: str) -> None:
        self._code = code
        self._message = msgspec.json.encode(order)
        self._process: subprocess.Popen[bytes] | None = None
        self._stop = threading.Event()
        self.restarts = 0
        self._thread = threading.Thread(target=self._watch, name="worker", daemon=True)

    def start(self) -> None:
        """Start the worker."""
        self._thread.start()

    def state(self) -> dict[str, Any]:
        """Whether it runs, and how often it was started again."""
        process = self._process
        return {
            "running": process is not None and process.poll() is None,
            "pid": None if process is None else process.pid,
            "restarts": self.restarts,
        }

    def _watch(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stop.is_set():
            process = start_process("-c", self._code)
            self._process = process
            assert process.stdin is not None and process.stdout is not None
            with suppress(OSError):
                write_message(process.stdin, self._message)
            process.stdout.read()  # it says nothing there: this ends with it
            status = process.wait()
            if self._stop.is_set():
                return
            self.restarts += 1
            _log.error("the worker ended with status %s; starting it again", status)
            self._stop.wait(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def stop(self, timeout: float = 10.0) -> None:
        """Let the worker finish what it does, then end it."""
        self._stop.set()
        process = self._process
        if process is None:
            return
        with suppress(OSError):
            assert process.stdin is not None
            process.stdin.close()
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
