"""A comparison as the body of a comment on a pull request: base against head."""

from __future__ import annotations

import msgspec

from ragauge import contrasting, markdown, sidebyside
from ragauge.contrasting import Group
from ragauge.markdown import folded, section, unlinked
from ragauge.model.comparison import Comparison, ComparisonReport, ComparisonView
from ragauge.trimming import Section, fitted

MOST_BYTES = 32_000
"""GitHub takes 65,536 characters, and one comment may hold scores and a comparison."""
_ROWS = 30
_SIDES = ("base", "head")


def _text(view: ComparisonView) -> str:
    return "\n".join(fitted(_sections(view), MOST_BYTES)).rstrip() + "\n"


def _sections(view: ComparisonView) -> list[Section]:
    comparison = view.comparison
    head = comparison.run_b
    opening = (
        markdown.marker(head.suite or head.profile), *sidebyside.opening(view, "###", unlinked),
    )  # fmt: skip
    found = contrasting.groups(msgspec.structs.replace(view, full=False), _ROWS)
    notes = sidebyside.notes(comparison, unlinked)
    return [
        Section(title="the headline", head=opening),
        section("the gates", sidebyside.gates(comparison, unlinked)),
        section("the metrics", _deltas(comparison)),
        *(_folded(group) for group in found),
        section("the causes", _causes(comparison)),
        section("the notes", [*notes, ""] if notes else []),
        Section(title="what was left out", head=(
            unlinked(sidebyside.sentence(contrasting.left_out_line(comparison))), "",
        )),
    ]  # fmt: skip


def _deltas(comparison: Comparison) -> list[str]:
    found = contrasting.shown_deltas(comparison.deltas)
    if not found:
        return ["No metric has a value in either run.", ""]
    lost = [f"- {unlinked(line)}" for line in contrasting.lost_lines(found)]
    return [
        *sidebyside.delta_table(found, _SIDES, unlinked), sidebyside.legend(found, _SIDES), "",
        *([*lost, ""] if lost else []),
    ]  # fmt: skip


def _folded(group: Group) -> Section:
    """The questions of one kind, regressions first: each table is cut by itself."""
    title = sidebyside.group_title(group)
    return section(title, folded(title, sidebyside.questions(group, unlinked, _SIDES)))


def _causes(comparison: Comparison) -> list[str]:
    if not comparison.causes:
        return []
    title = f"Why it may differ ({len(comparison.causes)})"
    return folded(title, sidebyside.causes(comparison, _ROWS, unlinked))


REPORT = ComparisonReport(
    name="comment", title="the body of a comment on a pull request", content=_text
)
