"""A body on its whole way through the live monitor, inside this process and without a network.

`collect PATH TYPE ENCODING` posts the file `body`, lets the worker take its steps, asks for the
pages, and scores what is exported of the windows. It is written as a command line, so that a
campaign breaks bodies as it breaks files.
"""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import msgspec
from starlette.testclient import TestClient

from ragauge import score
from ragauge.live.database import LiveDatabase, SteadyDatabase
from ragauge.live.export import export_window, list_windows, window_gold
from ragauge.live.server_state import LiveState
from ragauge.live.spool import SpoolReader
from ragauge.live.trace_values import KnownIds, LiveGold
from ragauge.live.traffic import QUARANTINE
from ragauge.live.web import make_app
from ragauge.live.worker import PARTS, WorkerContext
from ragauge.model.scores_document import metrics_document
from tests.support.live_server import settings_of

COMMAND = "collect"
MINUTE = 60_000
START = 29_800_000 * MINUTE
GOLD = [
    {"qid": "G1", "question": "What is red?", "paraphrases": ["Which are red?"], "type": "fact",
     "relevant": ["a.md#1"], "negatives": ["b.md#2"], "answerable": True},
    {"qid": "G2", "question": "question 1", "answerable": True,
     "relevant": [{"doc": "a.md", "start": 0, "end": 10, "quote": "Apples are"}]},
]  # fmt: skip
_USUAL = ("/api/traces", "application/json", "identity")
_ANSWERS = (200, 400, 413, 415)
_PAGES = (
    "/", "/metric?by=build&range=7d", "/metric?by=type&range=90d", "/alerts", "/decisions",
    "/pairs", "/traces", "/ingest", "/metrics",
)  # fmt: skip


class MonitorError(Exception):
    """What a body must not do to a live monitor."""


def collect(arguments: Sequence[str]) -> int:
    """Post the body; 0 where it was taken, 3 where it was refused. Prints what became of it."""
    path, media, encoding = (*arguments[:3], *_USUAL[len(arguments) :])
    body = Path("body").read_bytes() if Path("body").exists() else b""
    with ExitStack() as stack:
        stack.enter_context(_silent_log())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        monitor = _Monitor(folder, stack)
        answer = monitor.client.post(
            path, content=body, headers={"content-type": media, "content-encoding": encoding}
        )
        if answer.status_code not in _ANSWERS or monitor.state.faults:
            raise MonitorError(f"status {answer.status_code}, faults {monitor.state.faults}")
        print(answer.status_code, json.dumps(answer.text))
        if answer.status_code != 200:
            return 3
        monitor.work()
        monitor.check_windows()
        monitor.check_pages()
    return 0


@contextmanager
def _silent_log() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


class _Monitor:
    """A server and its worker, whose clock stands still between steps."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        settings = settings_of(
            window={"samples": 1, "minutes": 1},
            alerts={"log": str(folder / "alerts.jsonl")},
            shadow={"target": "python:nosuch:ask", "rate": 1.0, "qps": 1000},
        )
        self.folder = folder
        self.now = START
        url = f"sqlite:///{folder / 'live.db'}"
        self.state = stack.enter_context(closing(LiveState(settings, url, clock=lambda: self.now)))
        self.database: LiveDatabase = stack.enter_context(closing(SteadyDatabase(url)))
        self.spool = stack.enter_context(closing(SpoolReader(self.state.spool_folder)))
        self.client = TestClient(make_app(self.state), base_url="http://localhost:4319")
        context = WorkerContext(
            settings=settings,
            database=self.database,
            spool=self.spool,
            folder=self.state.spool_folder,
            gold=LiveGold([msgspec.json.encode(item) for item in GOLD]),
            known_ids=KnownIds(["a.md#1"], ["a.md", "b.md"]),
        )
        self.parts = [build(context) for build in PARTS]

    def work(self) -> None:
        """Let the worker do all that follows within ten minutes."""
        for after in (1_000, 20_000, 70_000, 3 * MINUTE, 10 * MINUTE):
            self.now = START + after
            for part in self.parts:
                part.step(self.now)
                if wait := getattr(part, "wait", None):
                    wait()
        self.state.write_counts()
        if (self.state.spool_folder / QUARANTINE).exists():
            raise MonitorError("a body that was taken is in quarantine")
        if depth := self.spool.depth():
            raise MonitorError(f"{depth} bodies are still in the spool")

    def check_windows(self) -> None:
        """A window that is exported has the numbers of `score`."""
        traces = self.database.read("SELECT state FROM live_traces ORDER BY state")
        print([row[0] for row in traces])
        for window in list_windows(self.database, limit=3):
            aggregate = json.loads(window.aggregate)
            gold = window_gold(self.database, aggregate["gold"]["digest"])
            folder = self.folder / f"window-{window.number}"
            export_window(self.database, window, gold, folder)
            scores = score(
                folder / "gold.jsonl", folder / "traces.jsonl", profile="live", dialect="native"
            )
            if json.dumps(metrics_document(scores)) != json.dumps(aggregate["metrics"]):
                raise MonitorError("a window has other numbers than its export")

    def check_pages(self) -> None:
        """Every page can be made, also those of single traces."""
        traces = self.database.read("SELECT trace_id FROM live_traces ORDER BY trace_id LIMIT 2")
        for page in _PAGES:
            self._check_page(page, {})
        for (trace_id,) in traces:
            for page in ("/trace", "/pair"):
                self._check_page(page, {"id": trace_id})

    def _check_page(self, page: str, query: dict[str, str]) -> None:
        status = self.client.get(page, params=query or None).status_code
        if status not in (200, 404):
            raise MonitorError(f"status {status} of {page}")
