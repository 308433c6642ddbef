"""The report as one HTML file: verdict, metrics, charts, and every question with its hits."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from markupsafe import Markup

from ragauge.concurrency import beside, uncollected
from ragauge.model import phrases
from ragauge.model.labels import CAUSES, MEANINGS
from ragauge.model.report import View
from ragauge.model.scores import MetricResult, PerQuestion, QuestionResult, Scores
from ragauge.report.html import charts
from ragauge.report.html.data_blocks import compressed, encoded
from ragauge.report.html.details import QUESTIONS, Gathered
from ragauge.report.html.figures import figures
from ragauge.report.html.markup import shortened
from ragauge.report.html.page import MOST_PRINTED, Blocks, fill_page, render
from ragauge.report.html.question_table import Choice, Column, choice_column, index, named_choices
from ragauge.report.html.size_budget import MOST_ID, capped
from ragauge.report.html.tones import label_tone

_NO_HITS = "These scores were saved without traces: there are no hits and no answers to show."
_NO_QUESTIONS = "These scores hold no questions one by one: save them with --full."
_LABEL_CHOICES = [Choice(label, label_tone(label), text) for label, text in MEANINGS.items()]
_METRICS = 4
"""Metrics that the table of questions shows."""
_MOST_SLICES = 200
"""Parts of a dimension that a table of slices shows; the JSON has all of them."""


@uncollected()
def run_page(view: View) -> str:
    """The page of a run."""
    scores, verdict = view.scores, view.verdict
    attention = phrases.bad_questions(scores)
    names = {(question.qid, question.turn) for question in attention}
    results = list(scores.questions)
    failing = [(result.qid, result.turn) in names for result in results]
    headline = phrases.headline(verdict)
    context = {
        "title": f"{headline} · {scores.trace_name}",
        "headline": headline,
        "status": verdict.status if verdict.gates or verdict.blocks else None,
        "scores": scores,
        "verdict": verdict,
        "counts": _counts(scores, len(attention)),
        "metrics": phrases.shown_metrics(scores, verdict),
        "gated": {result.gate.metric for result in verdict.gates},
        "figures": figures(scores, verdict),
        "slices": phrases.shown_slices(scores),
        "slice_metrics": phrases.slice_metrics(scores, verdict),
        "attention": attention,
        "options": {
            name: _option(value) for name, value in msgspec.to_builtins(scores.options).items()
        },
        "tally": msgspec.to_builtins(scores.tally),
        "strip": _strip,
        "label_tone": label_tone,
        "MOST_SLICES": _MOST_SLICES,
        "MOST_PRINTED": MOST_PRINTED,
    }
    lacking = []
    if not results and scores.tally.gold:
        lacking = [_NO_QUESTIONS]
    elif results and view.details is None:
        lacking = [_NO_HITS]

    def write(blocks: Blocks, notes: Sequence[str]) -> str:
        return render("run.html", blocks=blocks, notes=[*lacking, *notes], **context)

    details = None if view.details is None or not results else Gathered(view.details, failing)
    return fill_page(write, _blocks(view, results, failing, details), details)


def _counts(scores: Scores, attention: int) -> list[tuple[str, int, str]]:
    """What was counted while the run was read; what should be 0 stands out where it is not."""
    tally = scores.tally
    missing_slots = tally.missing_slots if tally.missing_slots > tally.missing else 0
    problems = {
        "missing": tally.missing,
        **({"missing slots": missing_slots} if missing_slots else {}),
        "errored": tally.errored,
        "duplicates": tally.duplicates + tally.gold_duplicates,
        "unknown ids": tally.unknown,
        "lines skipped": tally.gold_skipped + tally.trace_skipped,
    }
    return [
        ("questions", tally.gold, "plain"),
        ("traces scored", tally.scored, "plain"),
        ("to look at", attention, "warn" if attention else "plain"),
        *((name, count, "bad" if count else "plain") for name, count in problems.items()),
    ]


def _strip(name: str, result: MetricResult) -> Markup | None:
    """A value between 0 and 1 with its interval; others, such as milliseconds, have no scale."""
    if result.value is None or not 0 <= result.value <= 1:
        return None
    label = f"{name}: {phrases.number(result.value)}"
    if result.interval is not None:
        label += f", 95 % interval {phrases.interval(result.interval)}"
    return charts.strip(label, result.value, result.interval, low=0.0, high=1.0)


def _option(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return shortened(", ".join(map(str, value)), 2000)
    return shortened(str(value))


def _blocks(
    view: View, results: list[QuestionResult], failing: list[bool], details: Gathered | None
) -> Blocks:
    """The table of questions and the values of each."""
    if not results:
        return []
    values = view.scores.per_question
    kept: list[int] = []
    if values is not None and len(values.qids) == len(results):
        kept = np.flatnonzero(~np.isnan(values.values).all(axis=1)).tolist()
    columns = _columns(results, details)
    blocks = []
    names: list[str] = []
    if values is not None and kept:
        names = [values.metrics[place] for place in kept]
        rounded = np.round(values.values[kept], 4) + 0.0
        columns += _numbers(view, values, names)
        parts = (
            encoded(rounded[:, start : start + QUESTIONS].tolist())
            for start in range(0, len(results), QUESTIONS)
        )
        packed = beside(compressed, parts)
        blocks = [(f"values-{number}", text) for number, text in enumerate(packed)]
    table_data = index(
        columns,
        failing,
        sides=("",),
        sort="label",
        detailed=details is not None,
        metrics=names,
        note=_NO_HITS,
    )
    return [("index", table_data), *blocks]


def _columns(results: list[QuestionResult], details: Gathered | None) -> list[Column]:
    qids = [capped(each.qid, MOST_ID) for each in results]
    columns = [Column(name="qid", head="question id", form="id", values=qids)]
    if any(each.turn is not None for each in results):
        turns = [each.turn for each in results]
        columns.append(Column(name="turn", head="turn", form="number", values=turns))
    types: list[str | None] = []
    if details is not None:
        columns.append(Column(name="question", head="question", form="text", values=details.texts))
        types = details.types
    if any(types):
        columns.append(
            choice_column(
                "type",
                "type",
                types,
                named_choices(types),
                wide=True,
                filtered=True,
                all_choices="all types",
            )
        )
    labels = [each.label for each in results]
    columns.append(
        choice_column(
            "label",
            "label",
            labels,
            _LABEL_CHOICES,
            filtered=True,
            all_choices="all labels",
        )
    )
    causes = [each.cause for each in results]
    if any(causes):
        known = [Choice(name, "quiet", said) for name, said in CAUSES.items()]
        columns.append(
            choice_column(
                "cause", "cause", causes, known, wide=True, filtered=True, all_choices="all causes"
            )
        )
    told = [_slot_labels(each) for each in results]
    if any(told):
        columns.append(
            Column(name="slots", head="labels of slots", form="word", values=told, hidden=True)
        )
    for name, places in (
        ("gold", [each.gold for each in results]),
        ("trace", [each.trace for each in results]),
    ):
        columns.append(Column(name=name, head=name, form="word", values=places, hidden=True))
    return columns


def _slot_labels(result: QuestionResult) -> str | None:
    """How many slots have which label, where there are several."""
    if sum(result.labels.values()) < 2:
        return None
    return ", ".join(f"{count} {label}" for label, count in result.labels.items())


def _numbers(view: View, values: PerQuestion, names: Sequence[str]) -> list[Column]:
    """The metrics that the table shows: gated ones first, as tables of slices have them."""
    chosen = [name for name in phrases.slice_metrics(view.scores, view.verdict) if name in names]
    chosen += [name for name in names if name not in chosen]
    return [
        Column(
            name=name,
            head=name.replace(".", ".\n", 1),
            about=name,
            form="number",
            wide=True,
            values=(np.round(values.of(name), 4) + 0.0).tolist(),
        )
        for name in chosen[:_METRICS]
    ]
