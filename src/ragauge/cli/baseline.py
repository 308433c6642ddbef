"""`ragauge baseline`: say which stored run others are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import CommandOptions, options, say, screen
from ragauge.cli.store_options import ANY_FORMAT, CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import print_json, print_lines

if TYPE_CHECKING:
    from ragauge.model.run import RunRecord

_SCHEMA = "ragauge.baselines/1"


@click.group(
    "baseline",
    no_args_is_help=False,
    short_help="Set or show the run that others are compared with.",
)
def COMMAND() -> None:  # noqa: N802
    """Set or show the baseline of a suite: the stored run that others are compared with.

    A baseline is a tag: `baseline` for the suite `default`, `baseline:SUITE` for any other.
    """


@COMMAND.command("set", short_help="Make a run the baseline of its suite.")
@click.argument("name", metavar="RUN")
@click.option("--suite", metavar="S", help="The baseline of this suite (default: the run's own).")
@options([STORE_OPTION, CONFIG_OPTION])
def _set(name: str, suite: str | None, **where: Any) -> int:
    """Make RUN the baseline of its suite. A run that is not complete is refused (exit code 4)."""
    from ragauge.store.runs import baseline_tag, find_run

    asked = CommandOptions(**where)
    with asked.store() as store:
        run = find_run(store, name, suite=suite or asked.config.suite)
        suite = suite or run.suite
        tag = baseline_tag(suite)
        before = next((stored.run_id for stored in store.runs() if tag in stored.tags), None)
        store.tag(tag, run.run_id)
    sentence = f"the baseline of {suite} is {run.run_id}"
    if before not in (None, run.run_id):
        sentence += f", before {before}"
    say(sentence)
    return 0


@COMMAND.command("show", short_help="Show the baselines.")
@click.option("--suite", metavar="S", help="Only that of this suite.")
@options([ANY_FORMAT, STORE_OPTION, CONFIG_OPTION])
def _show(suite: str | None, format_name: str, **where: Any) -> int:
    """Show the baseline of each suite, or of one. Exit code 4 if there is none."""
    from ragauge.errors import RagaugeError
    from ragauge.report.terminal import stored_runs
    from ragauge.report.terminal.stored_runs import TerminalColumn
    from ragauge.store.runs import baseline_tag

    with CommandOptions(**where).store() as store:
        baselines = _baselines(store.runs())
        store_name = store.name
    if suite is not None:
        baselines = {name: run for name, run in baselines.items() if name == suite}
    if not baselines:
        of = "" if suite is None else f" of the suite `{suite}`"
        hint = "make a run the baseline: ragauge baseline set RUN"
        raise RagaugeError.of("no-baseline", f"there is no baseline{of} in {store_name}", hint=hint)
    if format_name == "json":
        entries = [
            {"suite": name, "tag": baseline_tag(name), "run": stored_runs.run_entry(run)}
            for name, run in baselines.items()
        ]
        print_json({"schema": _SCHEMA, "store": store_name, "baselines": entries})
        return 0
    runs = list(baselines.values())
    heads = [stored_runs.headline(run) for run in runs]
    columns = [
        TerminalColumn("suite", list(baselines)),
        TerminalColumn("run", [run.run_id for run in runs]),
        TerminalColumn("created", [stored_runs.moment(run.created_at) for run in runs], 1),
        TerminalColumn("profile", [run.profile for run in runs], 2),
        TerminalColumn("results", [str(run.results) for run in runs], 4, right=True),
        TerminalColumn("commit", [stored_runs.short_commit(run) for run in runs], 3),
        TerminalColumn("headline", ["" if head is None else str(head) for head in heads], 5),
    ]
    print_lines(stored_runs.table(columns, int(screen()["width"])))
    return 0


def _baselines(runs: list[RunRecord]) -> dict[str, RunRecord]:
    """The runs that baseline tags name, by suite."""
    from ragauge.store.runs import BASELINE

    by_suite = {}
    for run in runs:
        for tag in run.tags:
            kind, colon, suite = tag.partition(":")
            if kind == BASELINE:
                by_suite[suite if colon else "default"] = run
    return dict(sorted(by_suite.items()))
