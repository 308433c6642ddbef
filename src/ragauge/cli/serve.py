"""`ragauge serve`: the live monitor, a collector, a worker and a dashboard behind one command."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.live_store import live_store_url
from ragauge.cli.options import CommandOptions, options, permit, say
from ragauge.cli.store_options import CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import safe_streams
from ragauge.files import connections
from ragauge.files.redaction import without_password
from ragauge.text import plain

if TYPE_CHECKING:
    from ragauge.config import Config
    from ragauge.live.server_state import LiveState
    from ragauge.live.settings import LiveSettings

_WORKER = "from ragauge.cli.serve import run_worker; run_worker()"


class _LineFormatter(logging.Formatter):
    """One line for each message: names in traces have line ends, and would forge lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802
        return plain(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802
        return "\n".join(f"  {line}" for line in super().formatException(ei).splitlines())


def _start_log() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LineFormatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


@click.command("serve", short_help="Collect traces of a running system, and watch it.")
@click.option("--host", metavar="ADDRESS", help="Where to listen (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="0 takes any (default: 4319).")
@click.option(
    "--rate",
    type=click.FloatRange(0, 1),
    help="The share of traces that is kept (default: 0.01, or as [live.sampling] says).",
)
@options([STORE_OPTION, CONFIG_OPTION])
def COMMAND(host: str | None, port: int | None, rate: float | None, **where: Any) -> int:  # noqa: N802
    """Collect traces, score them, and show how the system does.

    Exporters of OpenTelemetry send to http://127.0.0.1:4319/v1/traces, anything else posts JSON to
    /api/traces. What is answered with 200 is on disk. Settings are in [live] of ragauge.toml;
    docs/live-settings.md has them all.

    Without a token the server listens on this machine only: see `ragauge token create`. Ctrl-C
    ends; nothing that was accepted is lost.
    """
    from msgspec.structs import replace

    from ragauge.live.settings import live_settings
    from ragauge.trust.needs import needs_of_live

    asked = CommandOptions(**where)
    config = asked.config
    settings = live_settings(config)
    if host is not None:
        settings = replace(settings, host=host)
    if port is not None:
        settings = replace(settings, port=port)
    if rate is not None:
        settings = replace(settings, sampling=replace(settings.sampling, rate=rate))
    settings = replace(
        settings, gold=settings.gold or config.gold, corpus=settings.corpus or config.corpus
    )
    url = live_store_url(asked)
    permit(config, [need for need in needs_of_live(config) if need.key != ("store",)])
    _start_log()
    return _serve(settings, url, config)


def run_worker() -> None:
    """The worker process. What it prints goes to the terminal of the server, made safe as there."""
    # A target or a library may print; whoever reads standard output waits for its end alone.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    from ragauge.live.worker import main

    with safe_streams():
        connections.listen(say)
        _start_log()
        main()


def _serve(settings: LiveSettings, url: str, config: Config) -> int:
    from ragauge.live.access import check_address, list_tokens
    from ragauge.live.extras import require_serve
    from ragauge.live.spool import hold_spool, spool_folder
    from ragauge.live.worker_process import WorkerOrder, WorkerProcess

    texts = _checked_gold(settings, config)
    require_serve()
    from ragauge.live.server_state import LiveState
    from ragauge.live.web import LiveServer

    with ExitStack() as stack:
        stack.enter_context(hold_spool(spool_folder(settings, url)))
        state = LiveState(settings, url, gold_texts=texts)
        stack.callback(state.close)
        with state.databases() as database:
            check_address(settings.host, list_tokens(database), now=state.now())
        order = WorkerOrder(
            settings=settings,
            store_url=url,
            spool=str(state.spool_folder),
            config=config.origin if Path(config.origin).exists() else None,
            named_hosts=connections.named_hosts(),
        )
        worker = WorkerProcess(order, _WORKER)
        worker.start()
        stack.callback(worker.stop)
        state.worker_state = worker.state
        server = LiveServer(state, on_ready=lambda address: _announce(state, address))
        server.run()
    say("ended")
    return 0


def _checked_gold(settings: LiveSettings, config: Config) -> list[str]:
    """The questions of the gold set; whatever the worker would fail at is refused here."""
    from ragauge.live.alert_log import check_log
    from ragauge.live.alert_rules import check_rules
    from ragauge.live.outbox import secrets_of
    from ragauge.live.trace_values import KnownIds, LiveGold
    from ragauge.run.run import target_kind

    check_rules(settings.alerts)
    secrets_of(settings.alerts)
    if settings.alerts.log is not None:
        check_log(settings.alerts.log)
    if settings.shadow is not None:
        for address in (settings.shadow.target, settings.shadow.live):
            if address is not None:
                target_kind(address)
    KnownIds.read(settings.corpus)
    items = LiveGold.read(settings.gold, fields=config.field_maps).items.values()
    return [text for item in items for text in (item.question, *item.paraphrases) if text]


def _announce(state: LiveState, address: str) -> None:
    """Say where the server is, what it keeps, and whether that will do."""
    rate, samples = state.settings.sampling.rate, state.settings.window.samples
    say(f"listening on {address}")
    say(f"  spans to {address}/v1/traces, rows to {address}/api/traces")
    say(f"  keeping {100 * rate:g} % of the traces in {without_password(state.databases.url)}")
    if state.filling_rate is None:
        needed = f"{round(samples / rate):,} traces" if rate else "errors and gold questions alone"
        say(f"  at this rate a window of {samples} samples takes {needed}; --rate sets another")
    else:
        say(
            f"  {state.traces_an_hour:,.0f} traces an hour came in the last day: "
            f"--rate {state.filling_rate:.2g} would fill a window an hour"
        )
