"""The Markdown report of a comparison: what changed, why it may have, and in which questions."""

from __future__ import annotations

from ragauge.model.comparison import ComparisonReport, ComparisonView
from ragauge.report import markdown
from ragauge.report.comparison import markdown_parts, sentences

_ROWS = 50


def _text(view: ComparisonView) -> str:
    comparison = view.comparison
    runs = comparison.run_a, comparison.run_b
    notes = markdown_parts.notes(comparison)
    lines = [
        f"# ragauge: {' → '.join(markdown.escaped(run.name) for run in runs)}",
        "",
        *markdown_parts.paragraph(markdown_parts.sentence(sentences.headline(comparison))),
        *markdown_parts.verdict(view),
        *markdown.damage(comparison.verdict, "##", full=view.full),
        "## What was compared",
        "",
        *markdown_parts.runs(comparison),
        *markdown_parts.paragraph(markdown_parts.sentence(sentences.left_out_line(comparison))),
        "## Why it may differ",
        "",
        *markdown_parts.causes(comparison, len(comparison.causes) if view.full else _ROWS),
        "## Metrics",
        "",
        *markdown_parts.deltas(comparison),
        *markdown_parts.slices(comparison, "##", 10**6 if view.full else _ROWS),
        "## Questions",
        "",
        *markdown_parts.kind_lines(view),
        *_questions(view),
        *(["## Notes", "", *notes] if notes else []),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _questions(view: ComparisonView) -> list[str]:
    """A table for each kind, regressions first, of retrieval and of answers."""
    lines: list[str] = []
    groups = sentences.groups(view, _ROWS)
    for group in groups:
        lines += [f"### {markdown_parts.group_title(group)}", "", *markdown_parts.questions(group)]
    return [*lines, *markdown_parts.brackets(groups)]


REPORT = ComparisonReport(
    name="md", title="Markdown for people and pull requests", content=_text, suffixes=(".md",)
)
