"""A comparison for the page of a step of GitHub Actions, cut where GitHub would refuse it."""

from __future__ import annotations

from ragauge import contrasting, sidebyside
from ragauge.markdown import section, unlinked
from ragauge.model.comparison import ComparisonReport, ComparisonView
from ragauge.trimming import Section, fitted

MOST_BYTES = 500_000
"""A step may write 1 MiB, and may hold the scores of a run and a comparison."""
_ROWS = 50


def _text(view: ComparisonView) -> str:
    return "\n".join(fitted(_sections(view), MOST_BYTES)).rstrip() + "\n"


def _sections(view: ComparisonView) -> list[Section]:
    comparison = view.comparison
    left_out = sidebyside.sentence(contrasting.left_out_line(comparison))
    causes = sidebyside.causes(comparison, len(comparison.causes) if view.full else _ROWS, unlinked)
    notes = sidebyside.notes(comparison, unlinked)
    found = contrasting.groups(view, _ROWS)
    return [
        Section(title="the headline", head=tuple(sidebyside.opening(view, "##", unlinked))),
        section("the gates", sidebyside.gates(comparison, unlinked)),
        section("the metrics", ["### Metrics", "", *sidebyside.deltas(comparison, unlinked)]),
        section("the counts", ["### Questions", "", *sidebyside.kind_lines(view)]),
        *(
            section(
                sidebyside.group_title(group),
                [f"#### {sidebyside.group_title(group)}", "",
                 *sidebyside.questions(group, unlinked)],
            )
            for group in found
        ),
        Section(title="the brackets", head=tuple(sidebyside.brackets(found))),
        section("the causes", ["### Why it may differ", "", *causes]),
        section(
            "the runs",
            ["### What was compared", "", *sidebyside.runs(comparison, unlinked),
             unlinked(left_out), ""],
        ),
        section("the notes", ["### Notes", "", *notes, ""] if notes else []),
    ]  # fmt: skip


REPORT = ComparisonReport(
    name="summary", title="Markdown for $GITHUB_STEP_SUMMARY, within its limit", content=_text
)
