"""Annotations of a comparison for GitHub Actions: gates on a drop, and what went wrong."""

from __future__ import annotations

from ragauge.model import phrases
from ragauge.model.comparison import ComparisonReport, ComparisonView, QueryComparison
from ragauge.report.ci import entries
from ragauge.report.ci.github_commands import SHOWN, Level, command
from ragauge.report.comparison import sentences
from ragauge.report.comparison.sentences import Group


def _text(view: ComparisonView) -> str:
    """Gates first, then regressions and losses, then how many more there are.

    These are errors where the command fails, and warnings where it does not. A comparison does
    not know the lines of the gold set, so they name no file.
    """
    comparison = view.comparison
    verdict = comparison.verdict
    level: Level = "error" if view.exit_code else "warning"
    lines: list[str] = []
    loud = 0
    for each_level in _LEVELS:
        found = [] if verdict is None else entries.annotated(verdict, each_level)
        lines += found[:SHOWN]
        loud += len(found[:SHOWN]) if each_level == level else 0
    worse = [
        _question(group, each, level)
        for group in sentences.groups(view, len(comparison.per_query))
        if group.kind in ("regression", "loss")
        for each in group.queries
    ]
    room = max(0, SHOWN - loud)
    lines += worse[:room]
    if len(worse) > room:
        said = (
            f"not annotated, because GitHub shows {SHOWN} of a kind: "
            f"{len(worse) - room} more regressions and losses"
        )
        lines.append(command("notice", said, title="ragauge"))
    told = sentences.headline(comparison)
    decided = entries.decision(view)
    if decided is not None:
        told = f"{decided}; {told}"
    lines.append(command("notice", told, title="ragauge"))
    return "\n".join(lines) + "\n"


_LEVELS: tuple[Level, ...] = ("error", "warning", "notice")


def _question(group: Group, query: QueryComparison, level: Level) -> str:
    name = phrases.question_name(query.query_id, query.turn)
    told = sentences.what_happened(query, group.about)
    return command(level, f"{name}: {told}", title=f"ragauge: {group.about} {group.kind}")


REPORT = ComparisonReport(name="github", title="annotations for GitHub Actions", content=_text)
