"""`ragauge decide`: what was decided about the shadow of a live system, and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.live_store import live_store_url
from ragauge.cli.options import CommandOptions, options, say, screen, whole_number
from ragauge.cli.store_options import ANY_FORMAT, CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import print_json, print_lines, print_text

if TYPE_CHECKING:
    from ragauge.live.database import LiveDatabase
    from ragauge.live.decision_rules import DecisionRecord
    from ragauge.live.decisions import StoredDecision

_WHERE = [STORE_OPTION, CONFIG_OPTION]
_APP = click.option("--app", metavar="NAME", help="Only decisions about this app.")
_TENANT = click.option("--tenant", metavar="NAME", help="Only those of this tenant.")
_DECISIONS = "ragauge.decisions/1"
_LARGEST = 2**63 - 1


@click.group("decide", no_args_is_help=False, short_help="Show what was decided about a shadow.")
def COMMAND() -> None:  # noqa: N802
    """Show and repeat decisions about a shadow: promote, hold or roll back.

    `ragauge serve` decides whenever a window of live traffic closes, and stores each decision with
    its evidence. `show` and `repeat` exit with 0 for promote, 1 for roll back and 4 for hold, so a
    deployment can ask them.
    """


@COMMAND.command("list", short_help="List decisions, the newest last.")
@options([_APP, _TENANT])
@whole_number("--limit", least=1, most=100_000, default=20, metavar="N", help="Only the newest N.")
@options([ANY_FORMAT, *_WHERE])
def _list(app: str | None, tenant: str | None, limit: int, format_name: str, **where: Any) -> int:
    """List decisions, the newest last. Exit code 5 if there is none."""
    from ragauge.codes import ExitCode
    from ragauge.live.decisions import read_decisions
    from ragauge.report.terminal.stored_runs import TerminalColumn, table

    with _database(CommandOptions(**where)) as database:
        decisions = read_decisions(database, tenant=tenant, app=app, limit=limit)[::-1]
        name = database.name
    if not decisions:
        say(f"nothing was decided in {name}; `ragauge serve` with [live.shadow] decides")
        return int(ExitCode.NOTHING_MEASURED)
    if format_name == "json":
        entries = [_entry(decision) for decision in decisions]
        print_json({"schema": _DECISIONS, "store": name, "decisions": entries})
        return 0
    columns = [
        TerminalColumn("number", [str(decision.number) for decision in decisions], right=True),
        TerminalColumn("decision", [decision.decision for decision in decisions]),
        TerminalColumn("app", [decision.app for decision in decisions]),
        TerminalColumn("window until", [decision.ends_at or "" for decision in decisions]),
        TerminalColumn("shadow", [decision.shadow for decision in decisions], rank=1),
        TerminalColumn("live", [decision.live for decision in decisions], rank=2),
    ]
    print_lines(table(columns, int(screen()["width"])))
    return 0


@COMMAND.command("show", short_help="Show one decision with its numbers.")
@click.argument("number", required=False, type=click.IntRange(1, _LARGEST), metavar="[NUMBER]")
@options([_APP, _TENANT, ANY_FORMAT, *_WHERE])
def _show(
    number: int | None, app: str | None, tenant: str | None, format_name: str, **where: Any
) -> int:
    """Show decision NUMBER, or the newest: every condition with its number, interval and n.

    Exit code 0 for promote, 1 for roll back, 4 for hold.
    """
    with _database(CommandOptions(**where)) as database:
        stored = _find(database, number, app, tenant)
        actions = database.read(
            "SELECT command, exit_code, ended, output FROM live_actions WHERE decision = ?",
            (stored.number,),
        )
    _print(stored, format_name)
    for command, exit_code, ended, output in actions:
        state = f"exit code {exit_code}" if ended is not None else "it runs, or was cut off"
        say(f"{command}: {state}{f': {output}' if output else ''}")
    return _exit_code(stored.decision)


@COMMAND.command("repeat", short_help="Compute a decision again from its evidence.")
@click.argument("number", required=False, type=click.IntRange(1, _LARGEST), metavar="[NUMBER]")
@options([_APP, _TENANT, ANY_FORMAT, *_WHERE])
def _repeat(
    number: int | None, app: str | None, tenant: str | None, format_name: str, **where: Any
) -> int:
    """Compute decision NUMBER, or the newest, again from the evidence that is stored with it.

    It must give the same bytes: otherwise the error `decision-differs` says why. Exit code 0 for
    promote, 1 for roll back, 4 for hold.
    """
    from ragauge.live.decisions import repeat_decision

    with _database(CommandOptions(**where)) as database:
        stored = _find(database, number, app, tenant)
        repeat_decision(database, stored)
    _print(stored, format_name)
    say(f"decision {stored.number} was repeated from its evidence: the same bytes")
    return _exit_code(stored.decision)


@contextmanager
def _database(asked: CommandOptions) -> Iterator[LiveDatabase]:
    from ragauge.live.database import open_database

    with closing(open_database(live_store_url(asked), create=False)) as database:
        yield database


def _find(
    database: LiveDatabase, number: int | None, app: str | None, tenant: str | None
) -> StoredDecision:
    from ragauge.errors import RagaugeError
    from ragauge.live.decisions import read_decisions

    found = read_decisions(database, number=number, app=app, tenant=tenant)
    if not found:
        what = "no decision" if number is None else f"no decision {number}"
        message = f"{what} is stored in {database.name}"
        hint = "`ragauge decide list` shows what there is"
        raise RagaugeError.of("nothing-measured", message, hint=hint)
    return found[0]


def _entry(stored: StoredDecision) -> dict[str, Any]:
    from ragauge.live.decisions import read_record

    record = read_record(stored)
    return {
        "number": stored.number,
        "created_at": stored.created_at,
        "tenant": stored.tenant,
        "app": stored.app,
        "live": stored.live,
        "shadow": stored.shadow,
        "begins_at": stored.begins_at,
        "ends_at": stored.ends_at,
        "decision": stored.decision,
        "reasons": list(record.reasons),
    }


def _exit_code(decision: str) -> int:
    from ragauge.codes import ExitCode

    codes = {"promote": ExitCode.PASS, "roll-back": ExitCode.GATE_FAILED}
    return int(codes.get(decision, ExitCode.NOT_EVALUABLE))


def _print(stored: StoredDecision, format_name: str) -> None:
    from ragauge.live.decisions import read_record

    if format_name == "json":
        print_text(stored.record_json + "\n", "json")  # the bytes that were decided
        return
    print_lines(_lines(stored, read_record(stored)))


def _lines(stored: StoredDecision, record: DecisionRecord) -> list[str]:
    """A decision for people: what, why, and every condition."""
    title = {"promote": "PROMOTE", "hold": "HOLD", "roll-back": "ROLL BACK"}[record.decision]
    lines = [
        f"{title}  decision {stored.number} of {stored.created_at}",
        *(f"  {reason}" for reason in record.reasons),
        "",
        f"app      {record.app}",
        f"live     {record.live or '(no index named)'}",
        f"shadow   {record.shadow or '(none)'}",
        f"window   {record.begins_at} to {record.ends_at}",
        f"pairs    {_pairs(record)}",
        "",
        "conditions",
    ]
    marks = {"pass": "✓", "fail": "✗", "not-measured": "?", "not-judged": "–"}
    lines += [f"  {marks[one.status]} {one.words}" for one in record.criteria]
    return lines


def _pairs(record: DecisionRecord) -> str:
    roles = {"shadow": "mirrored", "self": "asked of live again", "again": "of the shadow again"}
    parts = []
    for role, words in roles.items():
        counts = {
            key.partition("-")[2]: count
            for key, count in record.pairs.items()
            if key.startswith(f"{role}-")
        }
        if counts:
            states = ", ".join(f"{count} {state}" for state, count in counts.items())
            parts.append(f"{sum(counts.values())} {words} ({states})")
    over = f" over {record.hours:.1f} hours"
    return ("; ".join(parts) or "none") + (over if parts else "")
