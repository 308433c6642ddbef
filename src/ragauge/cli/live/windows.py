"""`ragauge live windows`: the windows of live traffic that have ended."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.live_store import live_store_url
from ragauge.cli.options import CommandOptions, options, say, screen, whole_number
from ragauge.cli.store_options import ANY_FORMAT, CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import print_json, print_lines

if TYPE_CHECKING:
    from ragauge.live.export import WindowFacts

_SCHEMA = "ragauge.live-windows/1"
_SHOWN = ("live.coverage", "live.error", "live.empty", "live.refusal", "live.latency_p95")


@click.command("windows", short_help="List the last windows.")
@click.option("--app", metavar="NAME", help="Only those of an app.")
@whole_number("--limit", least=1, most=1000, default=20, metavar="N", help="How many.")
@click.option("--tenant", default="", metavar="NAME", help="That of this tenant.")
@options([ANY_FORMAT, STORE_OPTION, CONFIG_OPTION])
def COMMAND(app: str | None, limit: int, tenant: str, format_name: str, **where: Any) -> int:  # noqa: N802
    """List the last windows, the newest first.

    A window of which only the app is named is of all its traffic; others are of a build, an index
    or a type of question. Exit code 5 if there are none.
    """
    import msgspec

    from ragauge.codes import ExitCode
    from ragauge.live.database import open_database
    from ragauge.live.export import list_windows

    with closing(open_database(live_store_url(CommandOptions(**where)), create=False)) as database:
        windows = list_windows(database, tenant=tenant, app=app, limit=limit)
    if format_name == "json":
        entries = [_entry(window) for window in windows]
        print_json({"schema": _SCHEMA, "windows": entries})
    elif windows:
        aggregates = [msgspec.json.decode(window.aggregate) for window in windows]
        print_lines(_table(windows, [aggregate["metrics"] for aggregate in aggregates]))
    if not windows:
        say("there are no windows: one closes with enough samples, or after a day")
        return int(ExitCode.NOTHING_MEASURED)
    return 0


def _entry(window: WindowFacts) -> dict[str, Any]:
    import msgspec

    series = window.series
    return {
        "number": window.number,
        "app": series.app,
        "build": series.build,
        "index_hash": series.index_hash,
        "question_type": series.question_type,
        "begins_at": window.begins_at,
        "ends_at": window.ends_at,
        "state": window.state,
        "samples": window.samples,
        "sample_rate": window.sample_rate,
        "ragauge_version": window.ragauge_version,
        **msgspec.json.decode(window.aggregate),
    }


def _table(windows: list[WindowFacts], metrics: list[dict[str, Any]]) -> list[str]:
    from ragauge.report.terminal import stored_runs
    from ragauge.report.terminal.stored_runs import TerminalColumn

    def part(window: WindowFacts) -> str:
        series = window.series
        names = (series.build, series.index_hash, series.question_type)
        return " ".join(name for name in names if name) or "all"

    columns = [
        TerminalColumn("window", [str(window.number) for window in windows]),
        TerminalColumn("app", [window.series.app for window in windows]),
        TerminalColumn("part", [part(window) for window in windows]),
        TerminalColumn("ends", [window.ends_at for window in windows]),
        TerminalColumn("state", [window.state for window in windows]),
        TerminalColumn("samples", [str(window.samples) for window in windows]),
    ]
    for place, name in enumerate(_SHOWN, start=1):
        values = [entry.get(name, {}).get("value") for entry in metrics]
        shown = ["-" if value is None else f"{value:g}" for value in values]
        columns.append(TerminalColumn(name.removeprefix("live."), shown, place))
    return stored_runs.table(columns, int(screen()["width"]))
