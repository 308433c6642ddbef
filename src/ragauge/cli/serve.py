"""`ragauge serve`: the live monitor, a collector, a worker and a dashboard behind one command."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.live_store import live_store_url
from ragauge.cli.options import CommandOptions, options, permit, say
from ragauge.cli.store_options import CONFIG_OPTION, STORE_OPTION
from ragauge.files.redaction import without_password

if TYPE_CHECKING:
    from ragauge.live.server_state import LiveState
    from ragauge.live.settings import LiveSettings


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
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
    return _serve(
        settings, url, config_path=config.origin if Path(config.origin).exists() else None
    )


def _serve(settings: LiveSettings, url: str, *, config_path: str | None) -> int:
    from ragauge.live.access import check_address, list_tokens
    from ragauge.live.alert_rules import rules_of
    from ragauge.live.extras import require_serve
    from ragauge.live.outbox import secrets_of
    from ragauge.live.spool import hold_spool, spool_folder
    from ragauge.live.worker_process import WorkerOrder, WorkerProcess

    rules_of(settings.alerts)
    secrets_of(settings.alerts)
    require_serve()
    from ragauge.live.server_state import LiveState
    from ragauge.live.web import LiveServer

    with ExitStack() as stack:
        stack.enter_context(hold_spool(spool_folder(settings, url)))
        state = LiveState(settings, url, gold_questions=lambda: _gold_questions(settings))
        stack.callback(state.close)
        with state.databases() as database:
            check_address(settings.host, list_tokens(database), now=state.now())
        order = WorkerOrder(
            settings=settings, store_url=url, spool=str(state.spool_folder), config=config_path
        )
        worker = WorkerProcess(order)
        worker.start()
        stack.callback(worker.stop)
        state.worker_state = worker.state
        server = LiveServer(state, on_ready=lambda address: _announce(state, address))
        server.run()
    say("ended")
    return 0


def _gold_questions(settings: LiveSettings) -> dict[str, str]:
    from ragauge.formats.load import load_gold

    if settings.gold is None:
        return {}
    items = load_gold(settings.gold).items
    return {item.qid: item.question for item in items if item.question is not None}


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
