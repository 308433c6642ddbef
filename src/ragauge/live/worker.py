"""The worker of `ragauge serve`: the parts that work off the path of those who send.

A part has `step(now)`, with the time in milliseconds, and does what is due by then. A part that
fails is logged and tried again later, each time after a longer pause; the others go on.
"""

from __future__ import annotations

import logging
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragauge.concurrency import read_message
from ragauge.config import Config, load_config
from ragauge.files.connections import name_host
from ragauge.live.alert_log import AlertLog
from ragauge.live.alerts import AlertEvaluator
from ragauge.live.database import LiveDatabase, SteadyDatabase
from ragauge.live.decisions import Decisions
from ragauge.live.metric_hours import MetricHours
from ragauge.live.mirror import Mirror, gold_scorer
from ragauge.live.outbox import Outbox
from ragauge.live.retention import RetentionPart
from ragauge.live.settings import LiveSettings
from ragauge.live.spool import SpoolReader
from ragauge.live.trace_values import KnownIds, LiveGold, TraceReader
from ragauge.live.traffic import QUARANTINE, Traffic
from ragauge.live.windows import SETTLE, Windows
from ragauge.live.worker_process import WorkerOrder
from ragauge.model.options import Options

FIRST_PAUSE = 1_000
LONGEST_PAUSE = 60_000
STEP_SECONDS = 0.5

log = logging.getLogger("ragauge.live")


class Part(Protocol):
    """Something that the worker does again and again."""

    @property
    def name(self) -> str:
        """What it is called in the log and in health."""

    def step(self, now: int) -> None:
        """Do what is due at a time."""


class WorkerContext(Struct, frozen=True, kw_only=True):
    """What parts are built from. One thread uses the database and the spool."""

    settings: LiveSettings
    database: LiveDatabase
    spool: SpoolReader
    folder: Path
    gold: LiveGold
    known_ids: KnownIds | None = None
    options: Options = Options()
    config: Config = Config()


class ScoredTraffic:
    """Traffic and its windows: a minute is sealed when all that came in it is stored."""

    name = "traffic"

    def __init__(self, context: WorkerContext) -> None:
        settings = context.settings
        reader = TraceReader(settings.app, context.gold, context.known_ids)
        self.traffic = Traffic(settings, context.database, context.spool, context.folder, reader)
        wait = SETTLE + round(settings.assemble_after * 1000)
        self.windows = Windows(
            context.database, settings.window, context.gold, options=context.options, wait=wait
        )

    def step(self, now: int) -> None:
        """Score what has come, then close the windows that end."""
        self.traffic.step(now)
        self.windows.step(now, read_until=self.traffic.read_until)


def alerts_part(context: WorkerContext) -> Part:
    """The rules, judged on every step."""
    return AlertEvaluator(context.settings, context.database)


def outbox_part(context: WorkerContext) -> Part:
    """What is told to webhooks."""
    return Outbox(context.settings.alerts, context.database)


def alert_log_part(context: WorkerContext) -> Part:
    """What is told to a file."""
    return AlertLog(context.settings.alerts.log, context.database)


def mirror_part(context: WorkerContext) -> Part:
    """The mirror, with gold to score the questions that are in it."""
    return Mirror(
        context.settings,
        context.database,
        options=context.options,
        gold_values=gold_scorer(context.gold.items, context.options),
        known_ids=context.known_ids,
    )


def decision_part(context: WorkerContext) -> Part:
    """The decisions about what was mirrored."""
    return Decisions(context.settings, context.database)


def retention_part(context: WorkerContext) -> Part:
    """What deletes old data."""
    folder = context.folder / QUARANTINE
    return RetentionPart(context.database, context.settings.retention, folder)


def hours_part(context: WorkerContext) -> Part:
    """What sums windows up for long ranges."""
    return MetricHours(context.database)


PARTS: list[Callable[[WorkerContext], Part]] = [
    ScoredTraffic,
    hours_part,
    mirror_part,
    alerts_part,
    decision_part,  # after the alerts: two windows of them roll back
    alert_log_part,
    outbox_part,
    retention_part,
]
"""What the worker does, in this order: each builds its part."""


class _Paused(Struct):
    """A part, and until when it rests after a failure."""

    part: Part
    failures: int = 0
    until: int = 0


class LiveWorker:
    """Takes steps of all parts; time is given, so that tests have their own."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = [_Paused(part) for part in parts]

    def step(self, now: int) -> None:
        """One step of every part that is not resting."""
        for paused in self._parts:
            if now < paused.until:
                continue
            try:
                paused.part.step(now)
            except Exception:  # the store may be away for a while: nothing is lost meanwhile
                paused.failures += 1
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (paused.failures - 1))
                paused.until = now + pause
                log.exception("%s failed; again in %g s", paused.part.name, pause / 1000)
            else:
                paused.failures = paused.until = 0

    @property
    def failures(self) -> dict[str, int]:
        """How often each part that fails has failed since it last went well."""
        return {paused.part.name: paused.failures for paused in self._parts if paused.failures}


def run_forever(worker: LiveWorker, *, is_over: Callable[[], bool]) -> None:
    """Take steps until it is over; a step that takes long is followed by the next at once."""
    while not is_over():
        begun = time.monotonic()
        worker.step(int(time.time() * 1000))
        rest = STEP_SECONDS - (time.monotonic() - begun)
        if rest > 0 and not is_over():
            time.sleep(rest)


def worker_context(order: WorkerOrder) -> WorkerContext:
    """What the parts of a worker need, opened and read."""
    settings = order.settings
    config = Config() if order.config is None else load_config(Path(order.config))
    folder = Path(order.spool)
    return WorkerContext(
        settings=settings,
        database=SteadyDatabase(order.store_url),
        spool=SpoolReader(folder),
        folder=folder,
        gold=LiveGold.read(settings.gold, fields=config.field_maps),
        known_ids=KnownIds.read(settings.corpus),
        options=replace(config.options, refusal_patterns=config.refusal.patterns),
        config=config,
    )


def main() -> None:
    """The life of the worker process: until its input ends, which it does with the server."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the server decides, and closes the input
    message = read_message(sys.stdin.buffer)
    if message is None:
        return
    order = msgspec.json.decode(message, type=WorkerOrder)
    for host, by in order.named_hosts.items():
        name_host(host, by)
    context = worker_context(order)
    worker = LiveWorker([build(context) for build in PARTS])
    run_forever(worker, is_over=_has_input)


def _has_input() -> bool:
    """Whether the input has ended: nothing more is ever said there."""
    return bool(select.select([sys.stdin], [], [], 0)[0])
