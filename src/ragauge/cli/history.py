"""`ragauge history`: metrics over all stored runs, and whether they moved by more than noise."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import CommandOptions, choice, options, say, screen, whole_number
from ragauge.cli.store_options import CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import print_json, print_lines, print_text

if TYPE_CHECKING:
    from datetime import date

    from ragauge.store.history import Point, Timeline

_NAMED = 5
_SCHEMA = "ragauge.histories/1"


def _day(_context: click.Context, _option: click.Parameter, text: str | None) -> date | None:
    from datetime import date

    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"it takes a date as YYYY-MM-DD, got {text!r}") from error


@click.command("history", short_help="Show metrics over all stored runs.")
@click.argument("metrics", nargs=-1, required=True, metavar="METRIC...")
@click.option("--slice", "part", metavar="NAME=PART", help="Only this part, as type=table.")
@click.option("--suite", metavar="S", help="Only the runs of this suite.")
@click.option("--profile", metavar="NAME", help="Only the runs under this profile.")
@click.option(
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    help="Only runs with a tag, as nightly-*. Repeats.",
)
@click.option(
    "--branch", "branches", multiple=True, metavar="NAME", help="Only runs of a branch. Repeats."
)
@click.option("--since", callback=_day, metavar="DATE", help="Only runs of this day or later.")
@click.option("--until", callback=_day, metavar="DATE", help="Only runs of this day or earlier.")
@whole_number("--limit", least=1, metavar="N", help="Only the newest N values.")
@whole_number(
    "--window",
    least=1,
    most=500,
    default=20,
    metavar="N",
    help="How many values before the newest tell what is noise.",
)
@choice(
    "--format",
    "format_name",
    of=["table", "json", "csv"],
    default="table",
    help="What is printed.",
)
@options([STORE_OPTION, CONFIG_OPTION])
def COMMAND(**values: Any) -> int:  # noqa: N802
    """Show METRIC in every complete run, the oldest first, and whether it moved beyond its noise.

    METRIC is an id with its cut-off (retrieval.hit@5), or a short name of the runs' profiles
    (hit@5, mrr); several stand side by side. A line between two runs says that their values are
    not comparable, and why. Exit code 5 if no run has the metrics.
    """
    from ragauge.codes import ExitCode
    from ragauge.store import history

    asked = CommandOptions(**values)
    if asked.part is not None and "=" not in asked.part:
        raise click.UsageError(f"--slice takes NAME=PART, as type=table, got {asked.part!r}")
    with asked.store() as store:
        runs = history.choose_runs(
            store.runs(suite=asked.suite),
            profile=asked.profile,
            tags=asked.tags,
            branches=asked.branches,
            since=asked.since,
            until=asked.until,
        )
        measure = None
        if asked.part is not None:
            stored = {run.run_id: history.measured_in_slice(store, run, asked.part) for run in runs}
            measure = lambda run: stored[run.run_id]  # noqa: E731
        whole = [
            history.timeline(runs, metric, part=asked.part, measure=measure)
            for metric in dict.fromkeys(asked.metrics)
        ]
        store_name = store.name
    if not any(line.points for line in whole):
        names = ", ".join(line.asked for line in whole)
        say(f"no complete run in {store_name} has {names}{_choices(asked)}")
        _say_excluded(whole[0])
        return int(ExitCode.NOTHING_MEASURED)
    whole = [_with_gates(line, asked) for line in whole]
    shown = [line.last(asked.limit) for line in whole]
    tested = max(asked.window, 1)
    if asked.format_name == "json":
        documents = [
            {**line.document(tested), "tests": all_of_it.document(tested)["tests"]}
            for line, all_of_it in zip(shown, whole, strict=True)
        ]
        print_json(
            documents[0] if len(documents) == 1 else {"schema": _SCHEMA, "series": documents}
        )
        return 0
    if asked.format_name == "csv":
        print_text(_csv(shown), "csv")
        return 0
    width = int(screen()["width"])
    lines = _lines(shown[0], width) if len(shown) == 1 else _side_by_side(shown, width)
    for line in whole:
        lines += _test_lines(line, tested, width, named=len(whole) > 1)
    print_lines(lines)
    for line, all_of_it in zip(shown, whole, strict=True):
        if len(line.points) < len(all_of_it.points):
            say(f"the newest {len(line.points)} of {len(all_of_it.points)} values")
            break
    for line in whole:
        _say_excluded(line, named=len(whole) > 1)
    return 0


def _choices(asked: CommandOptions) -> str:
    """What the runs were chosen by, for a message."""
    choices = {
        "slice": asked.part, "suite": asked.suite, "profile": asked.profile,
        "tag": ", ".join(asked.tags), "branch": ", ".join(asked.branches),
        "since": asked.since, "until": asked.until,
    }  # fmt: skip
    chosen = [f"{name} {value}" for name, value in choices.items() if value]
    return f" ({', '.join(chosen)})" if chosen else ""


def _with_gates(line: Timeline, asked: CommandOptions) -> Timeline:
    """The timeline with the gates on its metric: of the newest run's profile and ragauge.toml."""
    from msgspec.structs import replace

    from ragauge import registry
    from ragauge.cli.options import gates_from

    profile = registry.profiles().get(line.points[-1].run.profile) if line.points else None
    if profile is None:
        return line
    metric = line.points[-1].metric
    gates = gates_from(profile, asked.config.k or profile.k, asked.config, None)
    on_metric = (gate for gate in gates if gate.metric == metric and gate.part == line.part)
    return replace(line, gates=tuple(on_metric))


def _say_excluded(line: Timeline, *, named: bool = False) -> None:
    """Count and name the runs that give no value; they are not shown as 0."""
    for runs, why in (
        (line.without, f"without {line.asked}" if named else "without this metric"),
        (line.incomplete, "incomplete"),
        (line.unreadable, "with scores that cannot be read"),
    ):
        if runs:
            more = f" and {len(runs) - _NAMED} more" if len(runs) > _NAMED else ""
            noun = "run" if len(runs) == 1 else "runs"
            say(f"left out, {why}: {len(runs)} {noun}: {', '.join(runs[:_NAMED])}{more}")


def _title(line: Timeline) -> list[str]:
    """What is shown, and the gates on it."""
    from ragauge.model.metric_names import metric_label
    from ragauge.text import plain

    last = line.points[-1]
    part = "" if line.part is None else f", {plain(line.part)}"
    gates = [
        f"gate: {'drop ' if gate.is_drop else ''}{gate.sign} {gate.given}" for gate in line.gates
    ]
    return [f"{plain(metric_label(last.metric))}{part}, {last.measured.better} is better", *gates]


def _verdict(line: Timeline, point: Point) -> str:
    passes = line.passes(point)
    return "" if passes is None else ("pass" if passes else "fail")


def _lines(line: Timeline, width: int) -> list[str]:
    from ragauge.model import phrases
    from ragauge.report.terminal.stored_runs import TerminalColumn, moment, short_commit, table
    from ragauge.text import plain

    points = line.points
    several = len({point.run.suite for point in points}) > 1
    branches = len({point.run.branch for point in points}) > 1
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
        TerminalColumn("gate", [_verdict(line, point) for point in points], 1),
        TerminalColumn("95 % interval", intervals, 1),
        TerminalColumn("n", [str(point.measured.n) for point in points], right=True),
        TerminalColumn("version", [str(point.measured.version) for point in points], 8, right=True),
        TerminalColumn("0/0", reasons, 3),
        TerminalColumn("suite", [point.run.suite if several else "" for point in points], 5),
        TerminalColumn("tags", [", ".join(point.run.tags) for point in points], 4),
        TerminalColumn("commit", [short_commit(point.run) for point in points], 6),
        TerminalColumn(
            "branch", [(point.run.branch or "") if branches else "" for point in points], 7
        ),
    ]
    rows = table(columns, width, above=above)
    drawn = _drawn([point.measured.value for point in points], width)
    return [*_title(line), "", *rows, *(["", *drawn] if drawn else [])]


def _side_by_side(lines: Sequence[Timeline], width: int) -> list[str]:
    """Several metrics: a row for each run, a column for each metric."""
    from ragauge.model import phrases
    from ragauge.report.terminal.stored_runs import TerminalColumn, moment, short_commit, table
    from ragauge.text import plain

    by_run = [{point.run.run_id: point for point in line.points} for line in lines]
    runs = {point.run.run_id: point.run for line in lines for point in line.points}
    order = sorted(runs.values(), key=lambda run: (run.created_at, run.run_id))
    above: dict[int, list[str]] = {}
    for place, run in enumerate(order):
        changes = dict.fromkeys(
            change
            for points in by_run
            if run.run_id in points
            for change in points[run.run_id].changes
        )
        above[place] = [part for change in changes for part in _mark(plain(change), width)]
    columns = [
        TerminalColumn("created", [moment(run.created_at) for run in order], 2),
        TerminalColumn("run", [run.run_id for run in order]),
    ]
    for line, points in zip(lines, by_run, strict=True):
        cells = []
        for run in order:
            point = points.get(run.run_id)
            value = None if point is None else point.measured.value
            fails = point is not None and _verdict(line, point) == "fail"
            cells.append(phrases.number(value) + ("!" if fails else " "))
        columns.append(TerminalColumn(f"{plain(line.asked)} ", cells, right=True))
    columns += [
        TerminalColumn("tags", [", ".join(run.tags) for run in order], 4),
        TerminalColumn("commit", [short_commit(run) for run in order], 6),
    ]
    titles = [", ".join(_title(line)) for line in lines if line.points]
    failing = any(_verdict(line, point) == "fail" for line in lines for point in line.points)
    legend = ["", "! beyond the gate"] if failing else []
    return [*titles, "", *table(columns, width, above=above), *legend]


def _test_lines(line: Timeline, last: int, width: int, *, named: bool) -> list[str]:
    """What the tests say, in words: the newest value, the trend, the change of level."""
    import textwrap

    from ragauge.model import phrases
    from ragauge.stats.series import FEWEST_BEFORE, FEWEST_TREND, LEVEL

    tests = line.tests(last)
    if tests is None:
        return []
    newest, trend, change = tests.newest, tests.trend, tests.change
    sentences = []
    if newest.p is None:
        sentences.append(
            f"noise: not known yet, {newest.n} of {FEWEST_BEFORE} comparable values before the "
            "newest"
        )
    else:
        worse = "worse than all" if not newest.rank else f"as bad or worse: {newest.rank}"
        judged = "more than noise" if newest.p <= LEVEL else "within the noise"
        sentences.append(
            f"newest: {worse} of the last {newest.n} (their worst {phrases.number(newest.worst)}), "
            f"{_p(newest.p)}: {judged}"
        )
    if trend.p is not None and trend.slope is not None and trend.n >= FEWEST_TREND:
        judged = "no trend"
        if trend.p <= LEVEL and trend.s:
            judged = f"{'rises' if trend.s > 0 else 'falls'} by {abs(trend.slope):.4f} a run"
        sentences.append(f"trend over {trend.n}: {judged}, {_p(trend.p)}")
    if change.p is not None:
        judged = "no change of level"
        if change.p <= LEVEL and change.place is not None:
            judged = (
                f"from {phrases.number(change.before)} to {phrases.number(change.after)} (medians) "
                f"with {tests.changed_at}"
            )
        sentences.append(f"level: {judged}, {_p(change.p)}")
    head = [f"{line.asked}:"] if named else []
    indent = "  " if named else ""
    return [
        "",
        *head,
        *(
            part
            for sentence in sentences
            for part in textwrap.wrap(
                sentence,
                max(width, 40),
                initial_indent=indent,
                subsequent_indent=f"{indent}  ",
                break_on_hyphens=False,
                break_long_words=False,
            )
        ),
    ]


def _p(p: float) -> str:
    return f"p = {p:.4f}" if p >= 0.0001 else "p < 0.0001"


def _csv(lines: Sequence[Timeline]) -> str:
    """A row for each metric and run."""
    from ragauge.files.table_writer import TableColumn, as_csv

    rows = [(line, point) for line in lines for point in line.points]
    nothing = (None, None)

    def texts(name: str, cells: list[str | None]) -> TableColumn:
        return TableColumn(name=name, kind="text", values=cells)

    def numbers(name: str, cells: list[float | None]) -> TableColumn:
        nan = float("nan")
        return TableColumn(
            name=name, kind="number", values=[nan if cell is None else cell for cell in cells]
        )

    points = [point for _, point in rows]
    passes = {None: None, True: "pass", False: "fail"}
    columns = [
        texts("metric", [point.metric for point in points]),
        texts("slice", [line.part for line, _ in rows]),
        texts("run_id", [point.run.run_id for point in points]),
        texts("created_at", [point.run.created_at for point in points]),
        texts("suite", [point.run.suite for point in points]),
        texts("profile", [point.run.profile for point in points]),
        texts("branch", [point.run.branch for point in points]),
        texts("commit_hash", [point.run.commit_hash for point in points]),
        texts("dirty", [_yes_or_no(point.run.dirty) for point in points]),
        texts("author", [point.run.author for point in points]),
        texts("tags", [" ".join(point.run.tags) for point in points]),
        numbers("value", [point.measured.value for point in points]),
        numbers("low", [(point.measured.interval or nothing)[0] for point in points]),
        numbers("high", [(point.measured.interval or nothing)[1] for point in points]),
        TableColumn(name="n", kind="whole", values=[point.measured.n for point in points]),
        TableColumn(
            name="version", kind="whole", values=[point.measured.version for point in points]
        ),
        texts("gate", [passes[line.passes(point)] for line, point in rows]),
        texts("changes", ["; ".join(point.changes) for point in points]),
    ]
    return as_csv(columns, decimals=4)


def _yes_or_no(value: bool | None) -> str | None:
    return None if value is None else ("yes" if value else "no")


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
