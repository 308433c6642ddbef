"""`ragauge rescore`: score stored runs again under the formulas of this version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import CommandOptions, options, say, screen
from ragauge.cli.store_options import ANY_FORMAT, CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import print_json, print_lines

if TYPE_CHECKING:
    from ragauge.errors import RagaugeError
    from ragauge.model.scores import MetricResult
    from ragauge.store.runs import MetricChange, Rescored

_SCHEMA = "ragauge.rescored/1"


@click.command("rescore", short_help="Score stored runs again under today's formulas.")
@click.argument("names", nargs=-1, metavar="[RUN]...")
@click.option("--all", "every", is_flag=True, help="All complete runs of the store.")
@click.option("--workers", type=click.IntRange(1, 256), help="Processes (default: by run size).")
@options([ANY_FORMAT, STORE_OPTION, CONFIG_OPTION])
def COMMAND(names: tuple[str, ...], every: bool, **values: Any) -> int:  # noqa: N802
    """Score runs again from what is stored of them; no gold or trace file is needed.

    Where scores differ they are stored beside the old ones, which stay with their versions. A run
    that cannot be read does not stop the others: the exit code is that of the first error. Exit
    code 5 if there was nothing to score.
    """
    from ragauge.codes import ExitCode
    from ragauge.errors import RagaugeError
    from ragauge.store.runs import find_run, rescore

    if bool(names) == every:
        raise click.UsageError("name the runs to score again, or give --all, but not both")
    asked = CommandOptions(**values)
    config = asked.config
    entries: list[dict[str, Any]] = []
    first: RagaugeError | None = None
    tell = asked.format_name == "table"
    with asked.store() as store:
        if every:
            runs = store.runs()
        else:
            named = [find_run(store, name, suite=config.suite) for name in names]
            runs = list({run.run_id: run for run in named}.values())
        for run in runs:
            if run.status != "complete":
                entries.append({"run_id": run.run_id, "status": "skipped", "reason": "incomplete"})
                say(f"skipped {run.run_id}: it is incomplete")
                continue
            try:
                done = rescore(store, run, workers=asked.workers)
            except RagaugeError as error:
                first = first or error
                problem = error.problems[0]
                fields = {"code": problem.code, "message": problem.message, "hint": problem.hint}
                entries.append({"run_id": run.run_id, "status": "failed", **fields})
                say(f"failed {run.run_id}")
                for line in str(error).split("\n"):
                    say(line)
                continue
            entries.append(_entry(done))
            if tell:
                print_lines(_lines(done, int(screen()["width"])))
    if not tell:
        print_json({"schema": _SCHEMA, "runs": entries})
    if first is not None:
        return int(first.exit_code)
    if not any(entry["status"] != "skipped" for entry in entries):
        say("there was nothing to score")
        return int(ExitCode.NOTHING_MEASURED)
    return 0


def _entry(done: Rescored) -> dict[str, Any]:
    return {
        "run_id": done.run_id,
        "status": "unchanged" if done.number is None else "changed",
        "number": done.number,
        "changes": [
            {"metric": change.metric, "old": _side(change.old), "new": _side(change.new)}
            for change in done.changes
        ],
    }


def _side(result: MetricResult | None) -> dict[str, Any] | None:
    from ragauge.model.scores_document import rounded

    if result is None:
        return None
    bounds = result.interval
    return {
        "value": rounded(result.value),
        "n": result.n,
        "interval": None if bounds is None else [rounded(bound) for bound in bounds],
        "version": result.version,
    }


def _lines(done: Rescored, width: int) -> list[str]:
    """What came of one run, in words."""
    from ragauge.model.metric_names import metric_label
    from ragauge.report.terminal.stored_runs import TerminalColumn, table
    from ragauge.text import plain

    if done.number is None:
        return [plain(f"{done.run_id}: unchanged")]
    head = f"{done.run_id}: stored as scoring {done.number}"
    if not done.changes:
        return [plain(f"{head}; no metric changed")]
    changes = done.changes
    columns = [
        TerminalColumn("metric", [metric_label(change.metric) for change in changes]),
        TerminalColumn("before", [_value(change.old) for change in changes]),
        TerminalColumn("now", [_value(change.new) for change in changes]),
        TerminalColumn("also", [_also(change) for change in changes], 1),
    ]
    return [plain(f"{head}; changed metrics: {len(changes)}"), *table(columns, width)]


def _value(result: MetricResult | None) -> str:
    from ragauge.model import phrases

    return "none" if result is None else f"{phrases.number(result.value)} (v{result.version})"


def _also(change: MetricChange) -> str:
    """What else differs, where the values and versions alone do not tell."""
    old, new = change.old, change.new
    if old is None or new is None:
        return ""
    differences = [f"n {old.n} → {new.n}"] if old.n != new.n else []
    if old.interval != new.interval:
        differences.append("the interval")
    if old.excluded != new.excluded:
        differences.append("what was left out")
    return ", ".join(differences)
