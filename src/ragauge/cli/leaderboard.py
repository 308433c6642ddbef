"""`ragauge leaderboard`: more than two runs side by side, on the questions that all have."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from ragauge.cli.options import CommandOptions, choice, options, say, screen
from ragauge.cli.store_options import CONFIG_OPTION, STORE_OPTION
from ragauge.cli.streams import print_json, print_lines, print_text

if TYPE_CHECKING:
    from ragauge.compare.common_gold import StoredRun
    from ragauge.compare.leaderboard import Leaderboard, LeaderboardCell, LeaderboardRow
    from ragauge.model.scores import Scores

MOST_RUNS = 50


@click.command("leaderboard", short_help="Set several runs side by side.")
@click.argument("names", nargs=-1, required=True, metavar="RUN RUN...")
@click.option(
    "--metrics",
    metavar="ID[,ID...]",
    help="Which metrics (default: those that gates are on, else those of the profile).",
)
@choice(
    "--against",
    of=["first", "best"],
    default="first",
    help="What the differences are to: the first run that is named, or the best by each metric.",
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
    """Set two or more runs side by side, metric by metric, on the questions that all have.

    RUN is a stored run (id, tag, `baseline`, `latest`), a run file, or a file of scores. Values are
    those that the runs were scored with; differences are paired by question, and p-values adjusted
    by Holm for the number of runs: against the best for all pairs, as it is chosen by the same
    numbers. `compare` looks at two runs question by question.
    """
    from ragauge.codes import ExitCode
    from ragauge.compare.leaderboard import leaderboard

    asked = CommandOptions(**values)
    if not 2 <= len(asked.names) <= MOST_RUNS:
        raise click.UsageError(f"name 2 to {MOST_RUNS} runs, got {len(asked.names)}")
    with ExitStack() as stack:
        sources = _sources(stack, asked)
        scores = _scores(sources)
        board = leaderboard(scores, _metrics(asked, list(scores.values())), against=asked.against)
        notes = _notes(sources, board)
    if asked.format_name == "json":
        print_json({**board.document(), "notes": notes})
    elif asked.format_name == "csv":
        print_text(_csv(board), "csv")
    else:
        print_lines(_lines(board, int(screen()["width"])))
    for note in notes:
        say(f"note: {note}")
    measured = any(row.cells for row in board.rows)
    return int(ExitCode.PASS if measured else ExitCode.NOTHING_MEASURED)


def _sources(stack: ExitStack, asked: CommandOptions) -> dict[str, StoredRun | Scores]:
    """The runs by the names that they are shown with: their ids, or what they were called."""
    from ragauge.cli.named_runs import RunFinder
    from ragauge.compare.common_gold import StoredRun

    finder = RunFinder(
        stack,
        asked.config,
        open_store=lambda: stack.enter_context(asked.store()),
        suite=asked.config.suite or "default",
    )
    finder.open_for(asked.names)
    sources: dict[str, StoredRun | Scores] = {}
    for name in asked.names:
        source = finder.source(name)
        shown = source.record.run_id if isinstance(source, StoredRun) else name
        if shown in sources:
            shown = name
        if shown in sources:
            raise click.UsageError(f"the run {shown} is named twice")
        sources[shown] = source
    return sources


def _scores(sources: dict[str, StoredRun | Scores]) -> dict[str, Scores]:
    from ragauge.compare.common_gold import StoredRun
    from ragauge.store.runs import run_scores

    return {
        name: run_scores(source.store, source.record) if isinstance(source, StoredRun) else source
        for name, source in sources.items()
    }


def _metrics(asked: CommandOptions, scores: Sequence[Scores]) -> list[str]:
    """The ids of the metrics: those that were asked for, those with a gate, or the profile's."""
    from ragauge import registry
    from ragauge.cli.options import gates_from

    profile = registry.profile(scores[0].profile)
    measured = [
        name
        for name in scores[0].metrics
        if all(one.per_question is None or name in one.per_question.metrics for one in scores)
        and "@999999999" not in name
    ]
    if asked.metrics:
        ids = [profile.meant(name.strip()) for name in asked.metrics.split(",")]
        for metric_id in ids:
            if metric_id.partition("@")[0] not in registry.metrics():
                raise registry.unknown_name("metric", metric_id, registry.metrics())
        return [_with_cut(metric_id, measured) for metric_id in ids]
    gates = gates_from(profile, scores[0].k, asked.config, None)
    gated = [name for name in dict.fromkeys(gate.metric for gate in gates) if name in measured]
    return gated or measured


def _with_cut(metric_id: str, measured: Sequence[str]) -> str:
    """The id with its cut-off, where the runs have only one."""
    cuts = [name for name in measured if name.partition("@")[0] == metric_id]
    if metric_id in measured or len(cuts) != 1:
        return metric_id
    return cuts[0]


def _notes(sources: dict[str, StoredRun | Scores], board: Leaderboard) -> list[str]:
    """What a reader should know of what was compared."""
    from ragauge.compare.common_gold import StoredRun
    from ragauge.model.payloads import thaw_gold
    from ragauge.model.phrases import count

    words = {"not-in-all": "not in all runs", "gold-changed": "their gold changed"}
    notes = [
        f"{count(n, 'question')} left out: {words[reason]}" for reason, n in board.excluded.items()
    ]
    stored = [source for source in sources.values() if isinstance(source, StoredRun)]
    chunkings = {(run.evidence.chunkers, run.evidence.policies) for run in stored}
    if len(chunkings) > 1 and any(
        item.relevant for item in thaw_gold(stored[0].store.gold(stored[0].record.gold_key), "")
    ):
        notes.append(
            "the runs were chunked differently and the gold set names chunks: retrieval is shown "
            "as it was scored; `ragauge compare` recognises chunks by place, or pin the gold "
            "set with `ragauge gold pin`"
        )
    return notes


def _lines(board: Leaderboard, width: int) -> list[str]:
    from ragauge.model.phrases import count

    lines = [
        f"{count(len(board.runs), 'run')} on the {count(board.counted, 'question')} that all have, "
        f"against the {board.against}"
    ]
    for row in board.rows:
        lines += ["", *_row_lines(board, row, width)]
    return lines


def _row_lines(board: Leaderboard, row: LeaderboardRow, width: int) -> list[str]:
    from ragauge.compare.leaderboard import LEVEL
    from ragauge.model import phrases
    from ragauge.model.metric_names import metric_label
    from ragauge.report.terminal.stored_runs import TerminalColumn, table
    from ragauge.text import plain

    title = f"{plain(metric_label(row.metric))}, {row.better} is better"
    if not row.cells:
        return [title, f"  not compared: {plain(row.reason or '')}"]
    order = row.ranking
    cells = [row.cells[place] for place in order]

    def said(place: int, cell: LeaderboardCell) -> str:
        if place == row.reference:
            return board.against
        if cell.p is None:
            return "-"
        return f"{cell.p:.4f}" + (" *" if cell.p <= LEVEL else "")

    columns = [
        TerminalColumn("run", [plain(board.runs[place]) for place in order]),
        TerminalColumn("value", [phrases.number(cell.value) for cell in cells], right=True),
        TerminalColumn(
            "95 % interval",
            ["" if cell.interval is None else phrases.interval(cell.interval) for cell in cells],
            2,
        ),
        TerminalColumn(
            "Δ",
            ["" if cell.delta is None else phrases.signed_number(cell.delta) for cell in cells],
            right=True,
        ),
        TerminalColumn(
            "of the Δ",
            [
                "" if (bounds := cell.delta_interval) is None
                else f"{bounds[0]:+.4f} to {bounds[1]:+.4f}"
                for cell in cells
            ],
            3,
        ),
        TerminalColumn(
            "p (Holm)", [said(place, cell) for place, cell in zip(order, cells, strict=True)], 1
        ),
    ]  # fmt: skip
    return [f"{title}, n = {row.n}", *table(columns, width)]


def _csv(board: Leaderboard) -> str:
    from ragauge.files.table_writer import TableColumn, as_csv

    rows = [(row, rank, place) for row in board.rows for rank, place in enumerate(row.ranking, 1)]
    nothing = (None, None)
    cells = [row.cells[place] for row, _, place in rows]

    def numbers(name: str, column: list[float | None]) -> TableColumn:
        nan = float("nan")
        return TableColumn(
            name=name, kind="number", values=[nan if value is None else value for value in column]
        )

    return as_csv(
        [
            TableColumn(name="metric", kind="text", values=[row.metric for row, _, _ in rows]),
            TableColumn(name="rank", kind="whole", values=[rank for _, rank, _ in rows]),
            TableColumn(
                name="run", kind="text", values=[board.runs[place] for _, _, place in rows]
            ),
            TableColumn(name="n", kind="whole", values=[row.n for row, _, _ in rows]),
            numbers("value", [cell.value for cell in cells]),
            numbers("low", [(cell.interval or nothing)[0] for cell in cells]),
            numbers("high", [(cell.interval or nothing)[1] for cell in cells]),
            numbers("delta", [cell.delta for cell in cells]),
            numbers("delta_low", [(cell.delta_interval or nothing)[0] for cell in cells]),
            numbers("delta_high", [(cell.delta_interval or nothing)[1] for cell in cells]),
            numbers("p_holm", [cell.p for cell in cells]),
        ],
        decimals=4,
    )
