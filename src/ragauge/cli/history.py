"""`ragauge history`: a metric over all stored runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import CommandOptions, options, say, screen, whole_number
from ragauge.cli.store_options import ANY_FORMAT, CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import print_json, print_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragauge.store.history import Timeline

_NAMED = 5


@click.command("history", short_help="Show a metric over all stored runs.")
@click.argument("metric")
@click.option("--suite", metavar="S", help="Only the runs of this suite.")
@click.option("--profile", metavar="NAME", help="Only the runs under this profile.")
@whole_number("--limit", least=1, metavar="N", help="Only the newest N values.")
@options([ANY_FORMAT, STORE_OPTION, CONFIG_OPTION])
def COMMAND(metric: str, **values: Any) -> int:  # noqa: N802
    """Show METRIC in every complete run, the oldest first.

    METRIC is an id with its cut-off (retrieval.hit@5), or a short name of the runs' profiles
    (hit@5, mrr). A line between two runs says that their values are not comparable, and why. Exit
    code 5 if no run has the metric.
    """
    from ragauge.codes import ExitCode
    from ragauge.store import history

    asked = CommandOptions(**values)
    suite, profile = asked.suite, asked.profile
    with asked.store() as store:
        runs = store.runs(suite=suite)
        store_name = store.name
    if profile is not None:
        runs = [run for run in runs if run.profile == profile]
    whole = history.timeline(runs, metric)
    if not whole.points:
        choices = {"suite": suite, "profile": profile}
        chosen = [f"{name} {value}" for name, value in choices.items() if value is not None]
        among = f" ({', '.join(chosen)})" if chosen else ""
        say(f"no complete run in {store_name} has {metric}{among}")
        _say_excluded(whole)
        return int(ExitCode.NOTHING_MEASURED)
    newest = whole.last(asked.limit)
    if asked.format_name == "json":
        print_json(newest.document())
        return 0
    print_lines(_lines(newest, int(screen()["width"])))
    if len(newest.points) < len(whole.points):
        say(f"the newest {len(newest.points)} of {len(whole.points)} values")
    _say_excluded(whole)
    return 0


def _say_excluded(line: Timeline) -> None:
    """Count and name the runs that give no value; they are not shown as 0."""
    for runs, why in (
        (line.without, "without this metric"),
        (line.incomplete, "incomplete"),
        (line.unreadable, "with scores that cannot be read"),
    ):
        if runs:
            more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
            noun = "run" if len(runs) == 1 else "runs"
            say(f"left out, {why}: {len(runs)} {noun}: {', '.join(runs[:_NAMED])}{more}")


def _lines(line: Timeline, width: int) -> list[str]:
    from ragauge.model import phrases
    from ragauge.model.metric_names import metric_label
    from ragauge.report.terminal.stored_runs import TerminalColumn, moment, short_commit, table
    from ragauge.text import plain

    points = line.points
    last = points[-1]
    several = len({point.run.suite for point in points}) > 1
    head = [f"{plain(metric_label(last.metric))}, {last.measured.better} is better"]
    above = {
        place: [part for change in point.changes for part in _mark(plain(change), width)]
        for place, point in enumerate(points)
    }
    values = [phrases.number(point.measured.value) for point in points]
    reasons = [
        point.measured.reason or "" if point.measured.value is None else "" for point in points
    ]
    intervals = [
        "" if (bounds := point.measured.interval) is None else phrases.interval(bounds)
        for point in points
    ]
    columns = [
        TerminalColumn("created", [moment(point.run.created_at) for point in points], 2),
        TerminalColumn("run", [point.run.run_id for point in points]),
        TerminalColumn("value", values, right=True),
        TerminalColumn("95 % interval", intervals, 1),
        TerminalColumn("n", [str(point.measured.n) for point in points], right=True),
        TerminalColumn("version", [str(point.measured.version) for point in points], 7, right=True),
        TerminalColumn("0/0", reasons, 3),
        TerminalColumn("suite", [point.run.suite if several else "" for point in points], 5),
        TerminalColumn("tags", [", ".join(point.run.tags) for point in points], 4),
        TerminalColumn("commit", [short_commit(point.run) for point in points], 6),
    ]
    rows = table(columns, width, above=above)
    drawn = _drawn([point.measured.value for point in points], width)
    return [*head, "", *rows, *(["", *drawn] if drawn else [])]


def _mark(change: str, width: int) -> list[str]:
    """The line between two runs that cannot be compared."""
    import textwrap

    return textwrap.wrap(
        f"── {change}: not comparable",
        max(width, 40),
        subsequent_indent="   ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def _drawn(values: Sequence[float | None], width: int) -> list[str]:
    """The values as a sparkline, cut at the screen's width, and what its ends stand for."""
    from ragauge.model import phrases
    from ragauge.report.terminal.sparkline import sparkline

    numbers = [value for value in values if value is not None]
    if not numbers:
        return []
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    line = sparkline(values, ascii=ascii_only)
    lines = [line[start : start + width] for start in range(0, len(line), width)]
    scale = f"from {phrases.number(min(numbers))} to {phrases.number(max(numbers))}"
    if len(lines) == 1 and len(line) + len(scale) + 2 <= width:
        return [f"{line}  {scale}"]
    return [*lines, scale]
