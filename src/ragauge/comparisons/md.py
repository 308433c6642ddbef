"""The Markdown report of a comparison: what changed, why it may have, and in which questions."""

from __future__ import annotations

from ragauge import contrasting, markdown, sidebyside
from ragauge.model.comparison import ComparisonReport, ComparisonView

_ROWS = 50


def _text(view: ComparisonView) -> str:
    comparison = view.comparison
    runs = comparison.run_a, comparison.run_b
    notes = sidebyside.notes(comparison)
    lines = [
        f"# ragauge: {' → '.join(markdown.escaped(run.name) for run in runs)}",
        "",
        *sidebyside.paragraph(sidebyside.sentence(contrasting.headline(comparison))),
        *sidebyside.verdict(view),
        "## What was compared",
        "",
        *sidebyside.runs(comparison),
        *sidebyside.paragraph(sidebyside.sentence(contrasting.left_out_line(comparison))),
        "## Why it may differ",
        "",
        *sidebyside.causes(comparison, len(comparison.causes) if view.full else _ROWS),
        "## Metrics",
        "",
        *sidebyside.deltas(comparison),
        "## Questions",
        "",
        *sidebyside.kind_lines(view),
        *_questions(view),
        *(["## Notes", "", *notes] if notes else []),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _questions(view: ComparisonView) -> list[str]:
    """A table for each kind, regressions first, of retrieval and of answers."""
    lines: list[str] = []
    found = contrasting.groups(view, _ROWS)
    for group in found:
        lines += [f"### {sidebyside.group_title(group)}", "", *sidebyside.questions(group)]
    return [*lines, *sidebyside.brackets(found)]


REPORT = ComparisonReport(
    name="md",
    title="Markdown for people and pull requests",
    content=_text,
    suffixes=(".md",),
)
