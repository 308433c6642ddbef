"""Markdown tables of gates, metrics and questions, shared by the reports that print Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ragauge import wording
from ragauge.model.aggregate import Scores
from ragauge.model.verdict import Verdict


def _row(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, with a blank line behind it."""
    return [_row(heads), _row("---" for _ in heads), *(_row(row) for row in rows), ""]


def gates(verdict: Verdict) -> list[str]:
    """A table of the gates; nothing if there are none."""
    if not verdict.gates:
        return []
    return table(
        ["gate", "value", "demand", "margin", "n", "detectable", "verdict", ""],
        [
            (
                wording.gate_name(each), wording.number(each.value), wording.demand(each),
                wording.margin(each), str(each.n), wording.number(each.detectable),
                "waived" if each.waived else each.status, wording.gate_note(each),
            )
            for each in verdict.gates
        ],
    )  # fmt: skip


def metrics(scores: Scores) -> list[str]:
    """A table of the metrics."""
    return table(
        ["metric", "value", "n", "95 % interval", "left out"],
        [
            (
                f"`{name}`", wording.number(each.value), str(each.n),
                wording.interval(each.interval), wording.metric_note(each),
            )
            for name, each in scores.metrics.items()
        ],
    )  # fmt: skip


def look_at(scores: Scores, most: int) -> list[str]:
    """The questions to look at; nothing if all is well."""
    worst = wording.to_look_at(scores, most)
    if not worst:
        return []
    rows = [(each.qid, each.label, f"`{each.trace or each.gold}`") for each in worst]
    return ["## Look at", "", *table(["question", "label", "where"], rows)]


def warnings(scores: Scores) -> list[str]:
    """The findings about the run, as a list."""
    return [f"- {each}" for each in scores.warnings]
