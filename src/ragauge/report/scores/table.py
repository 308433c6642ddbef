"""The terminal report: gates, metrics, and the questions to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragauge.model import phrases
from ragauge.model.metric_names import metric_label
from ragauge.model.report import Report, View
from ragauge.report.terminal.console import COLORS, Screen, plain_table
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

    def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
        made = plain_table()
        for column in columns:
            justify = "right" if column in right else "left"
            whole = column in ("metric", "95 % interval") or column in right
            made.add_column(column, justify=justify, overflow="fold", no_wrap=whole)  # type: ignore[arg-type]
        return made

    console.print(phrases.opening(scores))
    console.print()
    if verdict.gates:
        gates = table(
            "gate",
            "value",
            "demand",
            "margin",
            "n",
            "detectable",
            "verdict",
            right=("value", "margin", "n", "detectable"),
        )
        for result in verdict.gates:
            shown = "waived" if result.waived else result.status
            gates.add_row(
                phrases.gate_name(result),
                phrases.number(result.value),
                phrases.demand(result),
                phrases.margin(result),
                str(result.n),
                phrases.number(result.detectable),
                Text(shown, style=COLORS[result.status]),
            )
        console.print(gates)
        for line in phrases.origins(verdict):
            console.print(line)
        for result in verdict.gates:
            if phrases.gate_note(result):
                console.print(f"{phrases.gate_name(result)}: {phrases.gate_note(result)}")
        console.print()
    metrics = table("metric", "value", "n", "95 % interval", "left out", right=("value", "n"))
    for name, measured in phrases.shown_metrics(scores, verdict).items():
        metrics.add_row(
            metric_label(name),
            phrases.number(measured.value),
            str(measured.n),
            phrases.interval(measured.interval),
            phrases.metric_note(measured),
        )
    console.print(metrics)
    for line in (*phrases.counts_behind(scores), *phrases.not_measured(scores, verdict)):
        console.print(line)
    columns = phrases.slice_metrics(scores, verdict)
    for dimension, parts in phrases.shown_slices(scores).items():
        console.print()
        heads = [phrases.metric_head(column) for column in columns]
        slices = table(dimension, "n", *heads, right=("n", *heads))
        for name, part in list(parts.items())[: len(parts) if view.full else _SLICES]:
            values = [part.value(metric) for metric in columns]
            slices.add_row(plain(name), str(part.n), *(phrases.number(value) for value in values))
        console.print(slices)
        if len(parts) > _SLICES and not view.full:
            console.print(f"... and {len(parts) - _SLICES} more; --full shows all")
    bad = phrases.bad_questions(scores)
    if bad:
        console.print()
        listed = bad[: len(bad) if view.full else _QUESTIONS]
        told = any(each.cause is not None for each in listed)
        heads = ["label", "cause"] if told else ["label"]
        questions = table(f"look at ({len(bad)})", *heads, "where")
        for each in listed:
            name = phrases.question_name(each.qid, each.turn)
            why = [each.cause or ""] if told else []
            questions.add_row(name, each.label, *why, plain(each.trace or each.gold))
        console.print(questions)
    console.print()
    console.print(Text(phrases.headline(verdict), style=f"bold {COLORS[verdict.status]}"))
    return screen.text()


REPORT = Report(
    name="table", title="tables for the terminal", content=_text, suffixes=(".txt",), public=True
)
