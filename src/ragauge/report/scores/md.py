"""The Markdown report: verdict, gates, metrics and the questions that need attention."""

from __future__ import annotations

from ragauge.model import phrases
from ragauge.model.report import Report, View
from ragauge.report import markdown

_QUESTIONS = 20
_SLICES = 20


def _text(view: View) -> str:
    scores = view.scores
    bad = phrases.questions_needing_attention(scores, view.verdict)
    listed = bad if view.full else bad[:_QUESTIONS]
    warnings = markdown.warnings(scores)
    lines = [
        f"# ragauge: {markdown.escaped(phrases.verdict_headline(view.verdict))}",
        "",
        f"{markdown.escaped(phrases.run_summary(scores).capitalize())}.",
        "",
        *([*warnings, ""] if warnings else []),
        *markdown.gates(view.verdict),
        *markdown.damage(view.verdict, "##", full=view.full),
        *markdown.metrics(scores, view.verdict),
        *markdown.stages(scores, "##"),
        *markdown.slices(scores, view.verdict, 10**6 if view.full else _SLICES),
        *(["## Look at", "", *markdown.questions(listed)] if listed else []),
    ]
    return "\n".join(lines).rstrip() + "\n"


REPORT = Report(
    name="md",
    title="Markdown for people and pull requests",
    content=_text,
    suffixes=(".md",),
    public=True,
)
