"""The body of a comment on a pull request: verdict and gates, and the rest folded."""

from __future__ import annotations

from ragauge.model import phrases
from ragauge.model.report import Report, View
from ragauge.report import markdown
from ragauge.report.ci.size_limit import MarkdownSection, lines_within
from ragauge.report.markdown import folded, section, unlinked

MOST_BYTES = 32_000
"""GitHub takes 65,536 characters, and one comment may hold scores and a comparison."""
_QUESTIONS = 50


def _text(view: View) -> str:
    return "\n".join(lines_within(_sections(view), MOST_BYTES)).rstrip() + "\n"


def _sections(view: View) -> list[MarkdownSection]:
    scores, verdict = view.scores, view.verdict
    opening = (
        markdown.marker(scores.profile),
        f"### ragauge: {unlinked(phrases.verdict_headline(verdict))}",
        "",
        unlinked(f"{phrases.run_summary(scores).capitalize()}."),
        "",
    )
    listed_metrics = phrases.listed_metrics(scores, verdict)
    metrics = markdown.metrics(scores, verdict, unlinked)
    warnings = markdown.warnings(scores, unlinked)
    return [
        MarkdownSection(title="the verdict", head=opening),
        section("the gates", markdown.gates(verdict, unlinked)),
        section("the warnings", folded(f"Warnings ({len(warnings)})", [*warnings, ""]))
        if warnings
        else MarkdownSection(title="the warnings"),
        section("the metrics", folded(f"Metrics ({len(listed_metrics)})", metrics)),
        _questions(view),
    ]


def _questions(view: View) -> MarkdownSection:
    bad = phrases.questions_needing_attention(view.scores)
    if not bad:
        return MarkdownSection(title="the questions to look at")
    lines = markdown.questions(bad[:_QUESTIONS], unlinked)
    if len(bad) > _QUESTIONS:
        lines += [f"... and {len(bad) - _QUESTIONS} more.", ""]
    return section("the questions to look at", folded(f"Questions to look at ({len(bad)})", lines))


REPORT = Report(
    name="comment", title="the body of a comment on a pull request", content=_text, public=True
)
