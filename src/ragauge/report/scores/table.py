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
    from rich.table import Table

_QUESTIONS = 8
_SLICES = 8


def _text(view: View) -> str:
    from rich.text import Text

    screen = Screen(view.width, color=view.color)
    console = screen.console
    scores, verdict = view.scores, view.verdict

    def table(*heads: str, right: tuple[str, ...] = ()) -> Table:
        return plain_table(*heads, right=right, whole=("metric", "95 % interval", *right))

    console.print(phrases.run_summary(scores))
    console.print()
    if verdict.gates:
        gates = table(*GATE_HEADS, right=("value", "margin", "n", "detectable"))
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
        console.print()
    metrics = table("metric", "value", "n", "95 % interval", "left out", right=("value", "n"))
    for name, metric in phrases.listed_metrics(scores, verdict).items():
        metrics.add_row(
            metric_label(name),
            phrases.number(metric.value),
            str(metric.n),
            phrases.interval(metric.interval),
            phrases.metric_note(metric),
        )
    console.print(metrics)
    for line in (*phrases.count_lines(scores), *phrases.undefined_metric_lines(scores, verdict)):
        console.print(line)
    columns = phrases.slice_metrics(scores, verdict)
    for dimension, parts in phrases.listed_slices(scores).items():
        console.print()
        heads = [phrases.metric_head(column) for column in columns]
        slices = table(plain(dimension), "n", *heads, right=("n", *heads))
        for name, part in list(parts.items())[: len(parts) if view.full else _SLICES]:
            values = [part.value(metric) for metric in columns]
            slices.add_row(name, str(part.n), *(phrases.number(value) for value in values))
        console.print(slices)
        if len(parts) > _SLICES and not view.full:
            console.print(f"... and {len(parts) - _SLICES} more; --full shows all")
    bad = phrases.questions_needing_attention(scores, verdict)
    if bad:
        console.print()
        listed = bad[: len(bad) if view.full else _QUESTIONS]
        has_causes = any(question.cause is not None for question in listed)
        heads = ["label", "cause"] if has_causes else ["label"]
        questions = table(f"look at ({len(bad)})", *heads, "where")
        for question in listed:
            name = phrases.question_name(question.qid, question.turn)
            why = [question.cause or ""] if has_causes else []
            questions.add_row(name, question.label, *why, question.trace or question.gold)
        console.print(questions)
    console.print()
    console.print(Text(phrases.verdict_headline(verdict), style=f"bold {COLORS[verdict.status]}"))
    return screen.text()


REPORT = Report(
    name="table", title="tables for the terminal", content=_text, suffixes=(".txt",), public=True
)
