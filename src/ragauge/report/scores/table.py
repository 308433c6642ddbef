"""The terminal report: gates, metrics, and the questions that need attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragauge.model import phrases
from ragauge.model.metric_names import metric_label
from ragauge.model.report import Report, View
from ragauge.report.markdown import GATE_HEADS
from ragauge.report.terminal.console import COLORS, Screen, plain_table
from ragauge.report.terminal.damage_table import print_damage
from ragauge.text import plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_QUESTIONS = 8
_SLICES = 8


def _text(view: View) -> str:
    from rich.text import Text

    screen = Screen(view.width, color=view.color)
    console = screen.console
    verdict = view.verdict
    console.print(phrases.run_summary(view.scores))
    console.print()
    if verdict.gates:
        _print_gates(console, view)
    _print_metrics(console, view)
    _print_slices(console, view)
    _print_questions(console, view)
    console.print()
    console.print(Text(phrases.verdict_headline(verdict), style=f"bold {COLORS[verdict.status]}"))
    return screen.text()


def _table(*heads: str, right: tuple[str, ...] = ()) -> Table:
    return plain_table(*heads, right=right, whole=("metric", "95 % interval", *right))


def _print_gates(console: Console, view: View) -> None:
    from rich.text import Text

    verdict = view.verdict
    gates = _table(*GATE_HEADS, right=("value", "margin", "n", "detectable"))
    for result in verdict.gates:
        *cells, status = phrases.gate_cells(result)
        gates.add_row(*cells, Text(status, style=COLORS[result.status]))
    console.print(gates)
    for line in phrases.gate_origins(verdict):
        console.print(line)
    for result in verdict.gates:
        if phrases.gate_note(result):
            console.print(f"{phrases.gate_name(result)}: {phrases.gate_note(result)}")
    for result in phrases.failed_drops(verdict):
        console.print()
        print_damage(console, result, full=view.full)
    if rows := phrases.chance_rows(verdict):
        console.print()
        console.print("how often the gates decide wrongly at this n:")
        right = phrases.CHANCE_HEADS[2:]
        chances = _table(*phrases.CHANCE_HEADS, right=right)
        for row in rows:
            chances.add_row(*row)
        console.print(chances)
    console.print()


def _print_metrics(console: Console, view: View) -> None:
    scores, verdict = view.scores, view.verdict
    metrics = _table("metric", "value", "n", "95 % interval", "left out", right=("value", "n"))
    for name, metric in phrases.listed_metrics(scores, verdict).items():
        metrics.add_row(
            metric_label(name),
            phrases.metric_number(metric),
            str(metric.n),
            phrases.metric_interval(metric),
            phrases.metric_note(metric),
        )
    console.print(metrics)
    for line in (*phrases.count_lines(scores), *phrases.undefined_metric_lines(scores, verdict)):
        console.print(line)
    if scores.stages:
        console.print()
        stages = _table(*phrases.STAGE_HEADS, right=phrases.STAGE_HEADS[1:])
        for delta in scores.stages:
            stages.add_row(*phrases.stage_cells(delta))
        console.print(stages)


def _print_slices(console: Console, view: View) -> None:
    columns = phrases.slice_metrics(view.scores, view.verdict)
    for dimension, parts in phrases.listed_slices(view.scores).items():
        console.print()
        heads = [phrases.metric_head(column) for column in columns]
        slices = _table(plain(dimension), "n", *heads, right=("n", *heads))
        for name, part in list(parts.items())[: len(parts) if view.full else _SLICES]:
            values = [phrases.metric_number(part.metrics.get(metric)) for metric in columns]
            slices.add_row(name, str(part.n), *values)
        console.print(slices)
        if len(parts) > _SLICES and not view.full:
            console.print(f"... and {len(parts) - _SLICES} more; --full shows all")


def _print_questions(console: Console, view: View) -> None:
    bad = phrases.questions_needing_attention(view.scores, view.verdict)
    if not bad:
        return
    console.print()
    listed = bad[: len(bad) if view.full else _QUESTIONS]
    has_causes = any(question.cause is not None for question in listed)
    heads = ["label", "cause"] if has_causes else ["label"]
    questions = _table(f"look at ({len(bad)})", *heads, "where")
    for question in listed:
        name = phrases.question_name(question.qid, question.turn)
        why = [question.cause or ""] if has_causes else []
        questions.add_row(name, question.label, *why, question.trace or question.gold)
    console.print(questions)


REPORT = Report(
    name="table", title="tables for the terminal", content=_text, suffixes=(".txt",), public=True
)
