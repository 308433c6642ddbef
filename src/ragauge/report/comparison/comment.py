"""A comparison as the body of a comment on a pull request: base against head."""

from __future__ import annotations

import msgspec

from ragauge.model.comparison import Comparison, ComparisonReport, ComparisonView
from ragauge.report import markdown
from ragauge.report.comparison import markdown_parts, sentences
from ragauge.report.markdown import MarkdownSection, folded, section, shortened, text_within

MOST_BYTES = 32_000
"""GitHub takes 65,536 characters, and one comment may hold scores and a comparison."""
_ROWS = 30
_SIDES = ("base", "head")


def _text(view: ComparisonView) -> str:
    comparison = view.comparison
    head = comparison.run_b
    opening = (
        markdown.marker(head.suite or head.profile),
        *markdown_parts.opening(view, "###", shortened),
    )
    groups = sentences.groups(msgspec.structs.replace(view, full=False), _ROWS)
    tables = [
        (markdown_parts.group_title(group), markdown_parts.questions(group, shortened, _SIDES))
        for group in groups
    ]
    notes = markdown_parts.notes(comparison, shortened)
    sections = [
        MarkdownSection(title="the headline", head=opening),
        section("the gates", markdown_parts.gates(comparison, shortened)),
        section("what made gates fail", markdown.damage(comparison.verdict, "####", shortened)),
        section("the metrics", _deltas(comparison)),
        section("the slices", _slices(comparison)),
        # Regressions first; each table is cut by itself.
        *(section(title, folded(title, lines)) for title, lines in tables),
        section("the causes", _causes(comparison)),
        section("the notes", [*notes, ""] if notes else []),
        MarkdownSection(
            title="what was left out",
            head=(shortened(markdown_parts.sentence(sentences.left_out_line(comparison))), ""),
        ),
    ]
    return text_within(sections, MOST_BYTES)


def _deltas(comparison: Comparison) -> list[str]:
    deltas = sentences.shown_deltas(comparison.deltas)
    if not deltas:
        return ["No metric has a value in either run.", ""]
    moved = sentences.moved_line(deltas)
    rest = [
        *([] if moved is None else [moved]),
        *sentences.lost_lines(deltas),
        *sentences.place_lines(comparison),
        *sentences.document_lines(comparison),
    ]
    rest_lines = [f"- {shortened(line)}" for line in rest]
    return [
        *markdown_parts.delta_table(deltas, _SIDES, shortened),
        markdown_parts.legend(deltas, _SIDES),
        "",
        *([*rest_lines, ""] if rest_lines else []),
    ]


def _slices(comparison: Comparison) -> list[str]:
    lines = markdown_parts.slices(comparison, "####", _ROWS, shortened)
    return folded("Slices", lines[2:]) if lines else []


def _causes(comparison: Comparison) -> list[str]:
    if not comparison.causes:
        return []
    title = f"Why it may differ ({len(comparison.causes)})"
    return folded(title, markdown_parts.causes(comparison, _ROWS, shortened))


REPORT = ComparisonReport(
    name="comment", title="the body of a comment on a pull request", content=_text
)
