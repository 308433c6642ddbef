"""The body of a comment on a pull request: verdict and gates, and the rest folded."""

from __future__ import annotations

from ragauge.model import phrases
from ragauge.model.report import Report, View
from ragauge.report import markdown
from ragauge.report.markdown import MarkdownSection, folded, more, section, shortened, text_within

MOST_BYTES = 32_000
"""GitHub takes 65,536 characters, and one comment may hold scores and a comparison."""
_QUESTIONS = 50


def _text(view: View) -> str:
    scores, verdict = view.scores, view.verdict
    opening = (
        markdown.marker(scores.profile),
        f"### ragauge: {shortened(phrases.verdict_headline(verdict))}",
        "",
        shortened(f"{phrases.run_summary(scores).capitalize()}."),
        "",
    )
    listed_metrics = phrases.listed_metrics(scores, verdict)
    metrics = markdown.metrics(scores, verdict, shortened)
    warnings = [*markdown.warnings(scores, shortened), ""] if scores.warnings else []
    sections = [
        MarkdownSection(title="the verdict", head=opening),
        section("the gates", markdown.gates(verdict, shortened)),
        section("what made gates fail", markdown.damage(verdict, "####", shortened)),
        section(
            "the warnings",
            folded(f"Warnings ({len(scores.warnings)})", warnings) if warnings else [],
        ),
        section("the metrics", folded(f"Metrics ({len(listed_metrics)})", metrics)),
        section("what the reranker changed", markdown.stages(scores, "####", shortened)),
        section("the questions to look at", _questions(view)),
    ]
    return text_within(sections, MOST_BYTES)


def _questions(view: View) -> list[str]:
    bad = phrases.questions_needing_attention(view.scores, view.verdict)
    lines = markdown.questions(bad[:_QUESTIONS], shortened)
    lines += more(len(bad) - _QUESTIONS)
    return folded(f"Questions to look at ({len(bad)})", lines) if bad else []


REPORT = Report(
    name="comment", title="the body of a comment on a pull request", content=_text, public=True
)
