"""Annotations of a comparison for GitHub Actions: gates on a drop, and what went wrong."""

from __future__ import annotations

from ragauge.model import phrases
from ragauge.model.comparison import ComparisonReport, ComparisonView, QueryComparison
from ragauge.report.ci import entries
from ragauge.report.ci.github_commands import (
    LEVELS,
    MOST_ANNOTATIONS,
    Level,
    command,
    not_annotated,
)
from ragauge.report.comparison import sentences
from ragauge.report.comparison.sentences import QuestionGroup


def _text(view: ComparisonView) -> str:
    """Gates first, then regressions and losses, then how many more there are.

    These are errors where the command fails, and warnings where it does not. A comparison does
    not know the lines of the gold set, so they name no file.
    """
    comparison = view.comparison
    verdict = comparison.verdict
    level: Level = "error" if view.exit_code else "warning"
    lines: list[str] = []
    taken = 0
    for gate_level in LEVELS:
        annotations = [] if verdict is None else entries.gate_annotations(verdict, gate_level)
        lines += annotations[:MOST_ANNOTATIONS]
        taken += len(annotations[:MOST_ANNOTATIONS]) if gate_level == level else 0
    damaged = [
        command(level, phrases.damage_line(result, question), title="ragauge: made a gate fail")
        for result in phrases.failed_drops(verdict)
        for question in result.damage
    ]
    room = max(0, MOST_ANNOTATIONS - taken)
    lines += damaged[:room]
    taken += len(damaged[:room])
    worse = [
        _question(group, query, level)
        for group in sentences.worse_groups(view)
        for query in group.queries
    ]
    room = max(0, MOST_ANNOTATIONS - taken)
    lines += worse[:room]
    if len(worse) > room:
        lines.append(not_annotated(f"{len(worse) - room} more questions that lost something"))
    slices = sentences.slice_lines(comparison, worse=True)
    lines += [
        command("notice", f"{name}: {line}; not adjusted", title="ragauge: slice")
        for name, line in slices[:MOST_ANNOTATIONS]
    ]
    if len(slices) > MOST_ANNOTATIONS:
        lines.append(not_annotated(f"{len(slices) - MOST_ANNOTATIONS} more slices that are worse"))
    headline = sentences.headline(comparison)
    decision = entries.decision(view)
    if decision is not None:
        headline = f"{decision}; {headline}"
    lines.append(command("notice", headline, title="ragauge"))
    return "\n".join(lines) + "\n"


def _question(group: QuestionGroup, query: QueryComparison, level: Level) -> str:
    name = phrases.question_name(query.query_id, query.turn)
    change = sentences.what_happened(query, group.about)
    return command(level, f"{name}: {change}", title=f"ragauge: {group.about} {group.kind}")


REPORT = ComparisonReport(
    name="github", title="annotations for GitHub Actions", syntax="commands", content=_text
)
