"""JUnit XML: one test for each gate, and one for each question that went wrong."""

from __future__ import annotations

import math

from ragauge.model import phrases
from ragauge.model.report import Report, View
from ragauge.model.scores import PerQuestion, QuestionResult, Scores
from ragauge.report.ci import entries
from ragauge.report.ci.junit_xml import Case, Suite, junit
from ragauge.report.ci.paths import location_of
from ragauge.text import plain


def _text(view: View) -> str:
    scores = view.scores
    gates = Suite(
        name="gates",
        cases=entries.gate_cases(view.verdict, "ragauge.gates"),
        properties=(
            ("verdict", view.verdict.status),
            ("exit_code", str(int(view.verdict.exit_code))),
            ("profile", plain(scores.profile)),
            ("gold", plain(scores.gold_name)),
            ("trace", plain(scores.trace_name)),
            *_metrics(scores),
        ),
    )
    values = scores.per_question
    names = () if values is None else zip(values.qids, values.turns, strict=True)
    places = {name: place for place, name in enumerate(names)}
    notes = phrases.damage_notes(view.verdict)
    questions = Suite(
        name="questions",
        cases=tuple(
            _case(question, scores, places, notes.get((question.qid, question.turn)))
            for question in phrases.questions_needing_attention(scores, view.verdict)
        ),
        properties=(("asked", str(scores.tally.gold)),),
    )
    return junit([gates, questions])


def _metrics(scores: Scores) -> list[tuple[str, str]]:
    """Each metric with its value and n; 0/0 has its reason instead."""
    return [
        (
            plain(name),
            plain(f"0/0: {result.left_out or result.reason}")
            if result.value is None and result.band is None
            else f"{phrases.metric_number(result)} (n = {result.n})",
        )
        for name, result in scores.metrics.items()
    ]


def _case(
    question: QuestionResult,
    scores: Scores,
    places: dict[tuple[str, int | None], int],
    damage: str | None,
) -> Case:
    label_and_cause = phrases.labelled(question.label, question.cause)
    if damage is not None:
        label_and_cause = f"{label_and_cause}; {plain(damage)}"
    body = [
        label_and_cause,
        f"gold: {plain(question.gold)}",
        f"trace: {'none' if question.trace is None else plain(question.trace)}",
    ]
    if len(question.labels) > 1:
        body.append("slots: " + ", ".join(f"{n} {name}" for name, n in question.labels.items()))
    return Case(
        group="ragauge.questions",
        name=phrases.question_name(question.qid, question.turn),
        outcome="failure",
        kind=question.label,
        message=label_and_cause,
        location=location_of(question.gold),
        body="\n".join([*body, *_values(question, scores.per_question, places)]),
    )


def _values(
    question: QuestionResult, values: PerQuestion | None, places: dict[tuple[str, int | None], int]
) -> list[str]:
    place = places.get((question.qid, question.turn))
    if values is None or place is None:
        return []
    column = values.values[:, place].tolist()
    return [
        f"{plain(name)}: {phrases.number(value)}"
        for name, value in zip(values.metrics, column, strict=True)
        if not math.isnan(value)
    ]


REPORT = Report(
    name="junit",
    title="JUnit XML: a test for each gate and each failing question",
    syntax="xml",
    content=_text,
    suffixes=(".xml",),
    public=True,
)
