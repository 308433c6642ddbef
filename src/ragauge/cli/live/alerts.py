"""`ragauge live alerts`: the state of every rule, what changed, and what webhooks wait for."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.live_store import live_store_url
from ragauge.cli.options import CommandOptions, options, say, screen, whole_number
from ragauge.cli.store_options import ANY_FORMAT, CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import print_json, print_lines

if TYPE_CHECKING:
    from ragauge.live.alerts import AlertKey, AlertRecord

_ALERTS = "ragauge.alert-states/1"


@click.command("alerts", short_help="List alerts and their states, or what changed.")
@click.option("--app", metavar="NAME", help="Only the alerts of this app.")
@click.option("--tenant", default="", metavar="NAME", help="Those of this tenant.")
@click.option("--events", is_flag=True, help="List the changes of alerts, the newest last.")
@whole_number("--limit", least=1, default=50, metavar="N", help="Only the newest N changes.")
@options([ANY_FORMAT, STORE_OPTION, CONFIG_OPTION])
def COMMAND(  # noqa: N802
    app: str | None, tenant: str, events: bool, limit: int, format_name: str, **where: Any
) -> int:
    """List the state of every alert rule of `ragauge serve`.

    Exit code 1 if an alert is firing, and 5 if no rule was evaluated yet.
    """
    import msgspec

    from ragauge.codes import ExitCode
    from ragauge.live.alert_log import last_events
    from ragauge.live.alerts import read_alerts
    from ragauge.live.database import open_database
    from ragauge.live.outbox import count_messages

    url = live_store_url(CommandOptions(**where))
    with closing(open_database(url, create=False)) as database:
        alerts = {
            key: record
            for key, record in read_alerts(database, tenant=tenant).items()
            if app in (None, key.app)
        }
        changes = last_events(database, tenant=tenant, app=app, limit=limit) if events else []
        messages = count_messages(database, tenant=tenant)
    if not alerts:
        say(f"no rule was evaluated in {database.name}; `ragauge serve` does when a window closes")
        return int(ExitCode.NOTHING_MEASURED)
    if format_name == "json":
        document: dict[str, Any] = {"schema": _ALERTS, "store": database.name}
        document["alerts"] = [_entry(key, record) for key, record in alerts.items()]
        if events:
            document["events"] = msgspec.to_builtins(changes)
        print_json({**document, "messages": messages})
    elif events:
        _print_events(changes)
    else:
        _print_alerts(alerts)
    if waiting := messages.get("waiting", 0):
        say(f"{waiting} {'message waits' if waiting == 1 else 'messages wait'} for a webhook")
    if given_up := messages.get("given-up", 0):
        was = "message was" if given_up == 1 else "messages were"
        say(f"{given_up} {was} given up; the log of the server says why")
    is_firing = any(record.state == "firing" for record in alerts.values())
    return int(ExitCode.GATE_FAILED) if is_firing else 0


def _entry(key: AlertKey, record: AlertRecord) -> dict[str, Any]:
    from ragauge.live.alerts import iso_time

    return {
        "app": key.app,
        "rule": key.rule,
        "series": key.series,
        "state": record.state,
        "since": iso_time(record.since),
        "metric": record.metric,
        "value": record.measured.value,
        "n": record.measured.n,
        "interval": record.measured.interval,
        "threshold": record.threshold,
        "direction": record.direction,
        "details": record.details,
    }


def _print_alerts(alerts: dict[AlertKey, AlertRecord]) -> None:
    from ragauge.live.alerts import iso_time
    from ragauge.report.terminal.stored_runs import TerminalColumn, table

    records = list(alerts.values())
    columns = [
        TerminalColumn("state", [record.state for record in records]),
        TerminalColumn("rule", [key.rule for key in alerts]),
        TerminalColumn("app", [f"{key.app} {key.series}".strip() for key in alerts]),
        TerminalColumn("value", [_number(record.measured.value) for record in records], right=True),
        TerminalColumn("95 % interval", [_interval(record) for record in records], rank=1),
        TerminalColumn("n", [str(record.measured.n) for record in records], right=True, rank=2),
        TerminalColumn("threshold", [_limit(record) for record in records], right=True),
        TerminalColumn("since", [iso_time(record.since) for record in records], rank=3),
    ]
    print_lines(table(columns, int(screen()["width"])))


def _print_events(changes: list[dict[str, Any]]) -> None:
    from ragauge.report.terminal.stored_runs import TerminalColumn, table

    columns = [
        TerminalColumn("at", [change["at"] for change in changes]),
        TerminalColumn("state", [f"{one['before']} → {one['state']}" for one in changes]),
        TerminalColumn("rule", [change["rule"] for change in changes]),
        TerminalColumn("app", [f"{one['app']} {one['series']}".strip() for one in changes]),
        TerminalColumn("value", [_number(one["record"].measured.value) for one in changes]),
    ]
    print_lines(table(columns, int(screen()["width"])))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _interval(record: AlertRecord) -> str:
    if record.measured.interval is None:
        return ""
    return " to ".join("…" if side is None else _number(side) for side in record.measured.interval)


def _limit(record: AlertRecord) -> str:
    sign = "<" if record.direction == "below" else "≥"
    return "" if record.threshold is None else f"{sign} {_number(record.threshold)}"
