"""A comparison for the page of a step of GitHub Actions, cut where GitHub would refuse it."""

from __future__ import annotations

from ragauge.model.comparison import ComparisonReport, ComparisonView
from ragauge.report import markdown
from ragauge.report.comparison import markdown_parts, sentences
from ragauge.report.markdown import MarkdownSection, section, shortened, text_within

MOST_BYTES = 500_000
"""A step may write 1 MiB, and may hold the scores of a run and a comparison."""
_ROWS = 50


def _text(view: ComparisonView) -> str:
    comparison = view.comparison
    left_out = markdown_parts.sentence(sentences.left_out_line(comparison))
    causes = markdown_parts.causes(
        comparison, len(comparison.causes) if view.full else _ROWS, shortened
    )
    notes = markdown_parts.notes(comparison, shortened)
    groups = sentences.groups(view, _ROWS)
    sections = [
        MarkdownSection(
            title="the headline", head=tuple(markdown_parts.opening(view, "##", shortened))
        ),
        section("the gates", markdown_parts.gates(comparison, shortened)),
        section(
            "what made gates fail",
            markdown.damage(comparison.verdict, "###", shortened, full=view.full),
        ),
        section("the metrics", ["### Metrics", "", *markdown_parts.deltas(comparison, shortened)]),
        section(
            "the slices",
            markdown_parts.slices(comparison, "###", 10**6 if view.full else _ROWS, shortened),
        ),
        section("the counts", ["### Questions", "", *markdown_parts.kind_lines(view)]),
        *(
            section(
                markdown_parts.group_title(group),
                [
                    f"#### {markdown_parts.group_title(group)}",
                    "",
                    *markdown_parts.questions(group, shortened),
                ],
            )
            for group in groups
        ),
        MarkdownSection(title="the brackets", head=tuple(markdown_parts.brackets(groups))),
        section("the causes", ["### Why it may differ", "", *causes]),
        section(
            "the runs",
            [
                "### What was compared",
                "",
                *markdown_parts.runs(comparison, shortened),
                shortened(left_out),
                "",
            ],
        ),
        section("the notes", ["### Notes", "", *notes, ""] if notes else []),
    ]
    return text_within(sections, MOST_BYTES)


REPORT = ComparisonReport(
    name="summary", title="Markdown for $GITHUB_STEP_SUMMARY, within its limit", content=_text
)
