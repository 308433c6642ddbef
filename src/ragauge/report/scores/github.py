"""Annotations for GitHub Actions: gates without a file, questions where their gold stands."""

from __future__ import annotations

from collections.abc import Mapping

from ragauge.model import phrases
from ragauge.model.report import Report, View
from ragauge.model.scores import QuestionResult
from ragauge.report.ci import entries
from ragauge.report.ci.github_commands import (
    LEVELS,
    MOST_ANNOTATIONS,
    Level,
    command,
    not_annotated,
)
from ragauge.report.ci.paths import location_of


def _text(view: View) -> str:
    """Gates and blocks first, then the worst questions while there is room, then what is not there.

    Questions are errors where the run is not let through, and warnings where it is: by itself a
    question fails nothing.
    """
    verdict = view.verdict
    annotations = {level: entries.gate_annotations(verdict, level) for level in LEVELS}
    bad = phrases.questions_needing_attention(view.scores, view.verdict)
    level: Level = "error" if verdict.exit_code else "warning"
    room = max(0, MOST_ANNOTATIONS - len(annotations[level]))
    lines = [line for name in LEVELS for line in annotations[name][: _MOST[name]]]
    notes = phrases.damage_notes(verdict)
    lines += [_question(question, level, notes) for question in bad[:room]]
    missing = {
        "gate": sum(max(0, len(annotations[name]) - _MOST[name]) for name in LEVELS),
        "failing question": len(bad) - len(bad[:room]),
    }
    counts = [phrases.count(n, noun) for noun, n in missing.items() if n]
    if counts:
        lines.append(not_annotated(" and ".join(counts)))
    lines.append(command("notice", phrases.verdict_headline(verdict), title="ragauge"))
    return "\n".join(lines) + "\n"


_MOST: dict[Level, int] = {
    **dict.fromkeys(LEVELS, MOST_ANNOTATIONS),
    "notice": MOST_ANNOTATIONS - 2,
}
"""How many gates of each level are annotated: two notices are about all of them."""


def _question(
    question: QuestionResult, level: Level, notes: Mapping[tuple[str, int | None], str]
) -> str:
    name = phrases.question_name(question.qid, question.turn)
    where = "no trace" if question.trace is None else f"trace {question.trace}"
    note = notes.get((question.qid, question.turn))
    label = phrases.labelled(question.label, question.cause)
    return command(
        level,
        f"{name}: {f'{note}; ' if note else ''}{label} ({where})",
        title=f"ragauge: {question.label}",
        location=location_of(question.gold),
    )


REPORT = Report(
    name="github",
    title="annotations for GitHub Actions, at the lines of the gold set",
    syntax="commands",
    content=_text,
    public=True,
)
