"""The terminal report: gates, metrics, and the questions to look at."""

from __future__ import annotations

import io

from ragauge import wording
from ragauge.model.report import Report, View

_COLORS = {"pass": "green", "review": "yellow", "fail": "red", "not-evaluable": "magenta"}
_QUESTIONS = 8


def _text(view: View) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    buffer = io.StringIO()
    console = Console(
        file=buffer, width=view.width, force_terminal=view.color, no_color=not view.color,
        highlight=False, emoji=False, markup=False, legacy_windows=False,
        color_system="standard" if view.color else None,
    )  # fmt: skip
    scores, verdict = view.scores, view.verdict

    def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, expand=False)
        for column in columns:
            justify = "right" if column in right else "left"
            whole = column == "metric" or column in right
            made.add_column(column, justify=justify, overflow="fold", no_wrap=whole)  # type: ignore[arg-type]
        return made

    console.print(wording.opening(scores))
    console.print()
    if verdict.gates:
        gates = table(
            "gate", "value", "demand", "margin", "n", "detectable", "verdict",
            right=("value", "margin", "n", "detectable"),
        )  # fmt: skip
        for result in verdict.gates:
            shown = "waived" if result.waived else result.status
            gates.add_row(
                wording.gate_name(result), wording.number(result.value), wording.demand(result),
                wording.margin(result), str(result.n), wording.number(result.detectable),
                Text(shown, style=_COLORS[result.status]),
            )  # fmt: skip
        console.print(gates)
        for line in wording.origins(verdict):
            console.print(line)
        for result in verdict.gates:
            if wording.gate_note(result):
                console.print(f"{wording.gate_name(result)}: {wording.gate_note(result)}")
        console.print()
    metrics = table("metric", "value", "n", "95 % interval", "left out", right=("value", "n"))
    for name, measured in scores.metrics.items():
        metrics.add_row(
            name, wording.number(measured.value), str(measured.n),
            wording.interval(measured.interval), wording.metric_note(measured),
        )  # fmt: skip
    console.print(metrics)
    worst = wording.to_look_at(scores, len(scores.questions) if view.full else _QUESTIONS)
    if worst:
        bad = sum(1 for each in scores.questions if each.label not in ("OK", "REFUSAL_OK"))
        console.print()
        questions = table(f"look at ({bad})", "label", "where")
        for each in worst:
            questions.add_row(each.qid, each.label, each.trace or each.gold)
        console.print(questions)
    console.print()
    console.print(Text(wording.headline(verdict), style=f"bold {_COLORS[verdict.status]}"))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


REPORT = Report(name="table", title="tables for the terminal", text=_text, suffixes=(".txt",))
