"""The Markdown of the WFGY example 08, line by line; --full adds tables behind it."""

from __future__ import annotations

from ragauge.model.report import Report, View
from ragauge.report import markdown


def _percent(view: View, metric: str) -> str:
    result = view.scores.metrics.get(metric)
    if result is not None and result.band is not None:
        return " … ".join(f"{100 * end:.1f}%" for end in result.band)
    value = None if result is None else result.shown
    return "n/a" if value is None else f"{100 * value:.1f}%"


def _yes(value: bool) -> str:
    return "true" if value else "false"


def _cell(qid: str) -> str:
    """An id as the source prints it, unless it would end the cell, be a mark or call somebody."""
    return markdown.escaped(qid).replace("|", "\\|")


def _text(view: View) -> str:
    lines = [
        "# RAG Quality Report",
        "",
        f"- Questions scored: **{len(view.scores.rows)}**",
        f"- Answer precision (over answered): **{_percent(view, 'answer.precision')}**",
        f"- Over-refusal (answerable but refused): **{_percent(view, 'refusal.over')}**",
        "- Under-refusal / Hallucination (unanswerable but answered): "
        f"**{_percent(view, 'refusal.under')}**",
        f"- Citation hit rate (answerable): **{_percent(view, 'citation.hit_rate_answerable')}**",
        f"- Claim containment (answerable): **{_percent(view, 'answer.claim_containment')}**",
        "",
        "## Per-question",
        "",
        "| qid | answered | hit | refusal | label |",
        "|-----|----------|-----|---------|-------|",
    ]
    lines += [
        f"| {_cell(row.qid)} | {_yes(row.answered)} | {_yes(row.hit)} | {_yes(row.refused)} "
        f"| **{row.label}** |"
        for row in view.scores.rows
    ]
    if view.full:
        lines += [
            "",
            "## Gates and metrics",
            "",
            *markdown.gates(view.verdict),
            *markdown.metrics(view.scores, view.verdict),
            *markdown.slices(view.scores, view.verdict, 10**6),
            *markdown.warnings(view.scores),
        ]
    return "\n".join(lines).rstrip("\n") + "\n"


REPORT = Report(
    name="smoke", title="the Markdown of the WFGY example 08, line by line", content=_text
)
