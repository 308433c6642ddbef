"""The Markdown report: verdict, gates, metrics and the questions to look at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragauge import wording
from ragauge.model.report import Report, View

_QUESTIONS = 20


def _row(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_row(heads), _row("---" for _ in heads), *(_row(row) for row in rows), ""]


def _text(view: View) -> str:
    scores, verdict = view.scores, view.verdict
    lines = [f"# ragauge: {wording.headline(verdict)}", ""]
    lines += [
        f"Profile `{scores.profile}`, {scores.tally.gold} questions, "
        f"{scores.tally.scored} traces scored.",
        "",
    ]
    if verdict.gates:
        lines += _table(
            ["gate", "value", "demand", "margin", "n", "verdict", ""],
            [
                (
                    wording.gate_name(each), wording.number(each.value), wording.demand(each),
                    wording.margin(each), str(each.n),
                    "waived" if each.waived else each.status, wording.gate_note(each),
                )
                for each in verdict.gates
            ],
        )  # fmt: skip
    lines += _table(
        ["metric", "value", "n", "95 % interval", "left out"],
        [
            (
                f"`{name}`", wording.number(each.value), str(each.n),
                wording.interval(each.interval), wording.metric_note(each),
            )
            for name, each in scores.metrics.items()
        ],
    )  # fmt: skip
    worst = wording.to_look_at(scores, len(scores.questions) if view.full else _QUESTIONS)
    if worst:
        lines += ["## Look at", ""]
        lines += _table(
            ["question", "label", "where"],
            [(each.qid, each.label, f"`{each.trace or each.gold}`") for each in worst],
        )
    for warning in scores.warnings:
        lines.append(f"- {warning}")
    return "\n".join(lines).rstrip() + "\n"


REPORT = Report(
    name="md", title="Markdown for people and pull requests", text=_text, suffixes=(".md",)
)
