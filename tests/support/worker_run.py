"""The worker process of a live monitor for tests, with a part that says and reaches odd things."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ragauge.concurrency import write_message
from ragauge.live.spool import create_spool

_CODE = """\
import logging, sys
from ragauge.cli import serve
from ragauge.files import http_client
from ragauge.live import worker

class Part:
    name = "odd"
    def step(self, now):
        log = logging.getLogger("ragauge.live")
        log.info("an app\\x1b]0;title\\x07\\n::error::x\\nINFO %s", "promote")
        print("a target prints\\x1b[2J", flush=True)
        try:
            http_client.request("POST", "http://127.0.0.1:1/hook", b"", {}, 5.0)
        except http_client.WebError:
            pass
        steps.append(now)

steps = []
worker._has_input = lambda: bool(steps)
worker.PARTS[:] = [lambda context: Part()]
serve.run_worker()
"""


def run_worker(order: bytes, folder: Path) -> str:
    """Let a worker take one step in a folder; what it said on standard error."""
    create_spool(folder / "spool")
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _CODE], cwd=folder, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "GITHUB_ACTIONS": "true"},
    )  # fmt: skip
    assert process.stdin is not None
    write_message(process.stdin, order)
    out, err = process.communicate(timeout=60)
    assert out == b"", "the server reads there, and keeps what it reads"
    return err.decode()
