"""Markdown tables of gates, metrics and questions, shared by the reports that print Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ragauge import wording
from ragauge.model.aggregate import Scores
from ragauge.model.verdict import Verdict
from ragauge.text import plain

_MARKS = re.compile(r"([\\`*\[\]~$]|(?<![^\W_])_|_(?![^\W_]))")
_BEGINNINGS = re.compile(r"^(?:(?=[#+=-])|(\d+)(?=[.)](?: |$)))")
"""Where a line would begin a heading or a list."""


def escaped(text: str) -> str:
    """Text that Markdown shows as it is; pipes are left to the tables, which escape them."""
    safe = _MARKS.sub(r"\\\1", plain(text).strip())
    safe = safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _BEGINNINGS.sub(r"\1\\", safe)


def code(name: str) -> str:
    """An id or a place as code, unless it is none that code can hold."""
    return escaped(name) if "`" in name or plain(name) != name else f"`{name}`"


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
                escaped(wording.gate_name(each)), wording.number(each.value), wording.demand(each),
                wording.margin(each), str(each.n), wording.number(each.detectable),
                "waived" if each.waived else each.status, escaped(wording.gate_note(each)),
            )
            for each in verdict.gates
        ],
    )  # fmt: skip


def metrics(scores: Scores, verdict: Verdict) -> list[str]:
    """A table of the metrics, and below it those that have no value."""
    lines = table(
        ["metric", "value", "n", "95 % interval", "left out"],
        [
            (
                f"`{name}`", wording.number(each.value), str(each.n),
                wording.interval(each.interval), wording.metric_note(each),
            )
            for name, each in wording.shown_metrics(scores, verdict).items()
        ],
    )  # fmt: skip
    rest = [*wording.counts_behind(scores), *wording.not_measured(scores, verdict)]
    return [*lines, *(f"- {line}" for line in rest), *([""] if rest else [])]


def slices(scores: Scores, verdict: Verdict, most: int) -> list[str]:
    """A table for each dimension; at most so many parts of each."""
    columns = wording.slice_metrics(scores, verdict)
    lines: list[str] = []
    for dimension, parts in wording.shown_slices(scores).items():
        rows = [
            (
                escaped(name), str(part.n),
                *(wording.number(part.value(metric)) for metric in columns),
            )
            for name, part in list(parts.items())[:most]
        ]  # fmt: skip
        lines += [f"## By {dimension}", ""]
        lines += table([dimension, "n", *(f"`{metric}`" for metric in columns)], rows)
        if len(parts) > most:
            lines += [f"... and {len(parts) - most} more.", ""]
    return lines


def look_at(scores: Scores, most: int) -> list[str]:
    """The questions to look at; nothing if all is well."""
    bad = wording.bad_questions(scores)
    if not bad:
        return []
    listed = bad[:most]
    told = any(each.cause is not None for each in listed)
    rows = [
        (
            escaped(wording.question_name(each.qid, each.turn)),
            each.label,
            *([each.cause or ""] if told else []),
            code(each.trace or each.gold),
        )
        for each in listed
    ]
    heads = ["question", "label", *(["cause"] if told else []), "where"]
    return ["## Look at", "", *table(heads, rows)]


def warnings(scores: Scores) -> list[str]:
    """The findings about the run, as a list."""
    return [f"- {escaped(each)}" for each in scores.warnings]
