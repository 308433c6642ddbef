"""Annotations for GitHub Actions: gates without a file, questions where their gold stands."""

from __future__ import annotations

from ragauge.model import phrases
from ragauge.model.report import Report, View
from ragauge.model.scores import QuestionResult
from ragauge.report.ci import entries
from ragauge.report.ci.github_commands import SHOWN, Level, command
from ragauge.report.ci.paths import spot_of


def _text(view: View) -> str:
    """Gates and blocks first, then the worst questions while there is room, then what is not there.

    Questions are errors where the run is not let through, and warnings where it is: by itself a
    question fails nothing.
    """
    verdict = view.verdict
    found = {level: entries.annotated(verdict, level) for level in _LEVELS}
    bad = phrases.bad_questions(view.scores)
    level: Level = "error" if verdict.exit_code else "warning"
    room = max(0, SHOWN - len(found[level]))
    lines = [line for each in _LEVELS for line in found[each][: _MOST[each]]]
    lines += [_question(each, level) for each in bad[:room]]
    left = {
        "gate": sum(max(0, len(found[each]) - _MOST[each]) for each in _LEVELS),
        "failing question": len(bad) - len(bad[:room]),
    }
    told = [phrases.count(n, noun) for noun, n in left.items() if n]
    if told:
        said = f"not annotated, because GitHub shows {SHOWN} of a kind: {' and '.join(told)}"
        lines.append(command("notice", said, title="ragauge"))
    lines.append(command("notice", phrases.headline(verdict), title="ragauge"))
    return "\n".join(lines) + "\n"


_LEVELS: tuple[Level, ...] = ("error", "warning", "notice")
_MOST: dict[Level, int] = {"error": SHOWN, "warning": SHOWN, "notice": SHOWN - 2}
"""How many gates of each level are annotated: two notices are about all of them."""


def _question(question: QuestionResult, level: Level) -> str:
    name = phrases.question_name(question.qid, question.turn)
    told = question.label if question.cause is None else f"{question.label}: {question.cause}"
    where = "no trace" if question.trace is None else f"trace {question.trace}"
    return command(
        level,
        f"{name}: {told} ({where})",
        title=f"ragauge: {question.label}",
        spot=spot_of(question.gold),
    )


REPORT = Report(
    name="github",
    title="annotations for GitHub Actions, at the lines of the gold set",
    content=_text,
    public=True,
)
