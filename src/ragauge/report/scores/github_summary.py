"""The page of a step of GitHub Actions: the Markdown report, cut where GitHub would refuse it."""

from __future__ import annotations

from ragauge.model import phrases
from ragauge.model.report import Report, View
from ragauge.report import markdown
from ragauge.report.markdown import MarkdownSection, folded, more, section, shortened, text_within

MOST_BYTES = 500_000
"""A step may write 1 MiB, and may hold the scores of a run and a comparison."""
_QUESTIONS = 100
_UNFOLDED = 20
_SLICES = 20


def _text(view: View) -> str:
    scores, verdict = view.scores, view.verdict
    title = f"## ragauge: {shortened(phrases.verdict_headline(verdict))}"
    opening = shortened(f"{phrases.run_summary(scores).capitalize()}.")
    parts = 10**6 if view.full else _SLICES
    warnings = markdown.warnings(scores, shortened)
    tables = markdown.slice_tables(scores, verdict, parts, shortened)
    sections = [
        MarkdownSection(title="the verdict", head=(title, "", opening, "")),
        section("the warnings", ["### Warnings", "", *warnings, ""] if warnings else []),
        section("the gates", markdown.gates(verdict, shortened)),
        section("what made gates fail", markdown.damage(verdict, "####", shortened)),
        section("the metrics", markdown.metrics(scores, verdict, shortened)),
        section("what the reranker changed", markdown.stages(scores, "###", shortened)),
        *_questions(view),
        *(
            section(f"the slices by {shortened(name)}", [f"#{lines[0]}", *lines[1:]])
            for name, lines in tables.items()
        ),
    ]
    return text_within(sections, MOST_BYTES)


def _questions(view: View) -> list[MarkdownSection]:
    """The questions that need attention; many of them are folded."""
    bad = phrases.questions_needing_attention(view.scores, view.verdict)
    if not bad:
        return []
    listed = bad if view.full else bad[:_QUESTIONS]
    lines = markdown.questions(listed, shortened)
    lines += more(len(bad) - len(listed))
    title = f"Look at ({len(bad)})"
    whole = [f"### {title}", "", *lines] if len(listed) <= _UNFOLDED else folded(title, lines)
    return [section("the questions to look at", whole)]


REPORT = Report(
    name="summary",
    title="Markdown for $GITHUB_STEP_SUMMARY, within its limit",
    content=_text,
    public=True,
)
