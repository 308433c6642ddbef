"""The report as one HTML file: verdict, metrics, charts, and every question with its hits."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from ragauge.concurrency import beside, uncollected
from ragauge.model import phrases
from ragauge.model.labels import CAUSES
from ragauge.model.metric_names import metric_label
from ragauge.model.report import Report, View
from ragauge.model.scores import MetricResult, PerQuestion, QuestionResult, Scores
from ragauge.report.html import charts, sections
from ragauge.report.html.data_blocks import compressed, encoded
from ragauge.report.html.details import QUESTIONS, Gathered
from ragauge.report.html.figures import figures
from ragauge.report.html.markup import Child, Markup, element, shortened
from ragauge.report.html.page import Blocks, filled, page
from ragauge.report.html.question_table import Choice, Column, choice_column, index, named_choices
from ragauge.report.html.sections import Head, chip, code, label_tone, section, table
from ragauge.report.html.size_budget import MOST_ID, capped

_NO_HITS = "These scores were saved without traces: there are no hits and no answers to show."
_NO_QUESTIONS = "These scores hold no questions one by one: save them with --full."
_METRICS = 4
"""Metrics that the table of questions shows."""
_PARTS = 200
"""Parts of a dimension that a table of slices shows; the JSON has all of them."""


@uncollected()
def _text(view: View) -> str:
    scores, verdict = view.scores, view.verdict
    bad = phrases.bad_questions(scores)
    names = {(each.qid, each.turn) for each in bad}
    results = list(scores.questions)
    failing = [(each.qid, each.turn) in names for each in results]
    headline = phrases.headline(verdict)
    gold = element("span", f"against {shortened(scores.gold_name)}", class_="quiet")
    head = [
        element("h1", f"{shortened(scores.trace_name)} ", gold),
        sections.verdict_banner(
            verdict.status if verdict.gates or verdict.blocks else None,
            headline,
            [f"{phrases.opening(scores).capitalize()}."],
        ),
        _ledger(scores, len(bad)),
    ]
    before = [
        ("Gates", "gates", sections.gates(verdict)),
        ("Metrics", "metrics", _metrics(view)),
        ("Charts", "charts", sections.charts_section(figures(scores, verdict))),
        ("Slices", "slices", _slices(view)),
    ]
    behind = [
        ("Warnings", "warnings", _warnings(scores)),
        ("Inputs", "inputs", _inputs(scores)),
    ]
    paper = _paper(bad)
    lacking = _NO_QUESTIONS if not results and scores.tally.gold else None
    if lacking is None and results and view.details is None:
        lacking = _NO_HITS

    def write(blocks: Blocks, notes: Sequence[str]) -> str:
        told = notes if lacking is None else [lacking, *notes]
        middle = ("Questions", "questions", sections.questions(len(results), paper, told))
        return page(f"{headline} · {scores.trace_name}", head, [*before, middle, *behind], blocks)

    details = None if view.details is None or not results else Gathered(view.details, failing)
    return filled(write, _blocks(view, results, failing, details), details)


def _ledger(scores: Scores, bad: int) -> Markup:
    """What was counted while the run was read; what should be 0 stands out where it is not."""
    tally = scores.tally
    missing = tally.missing_slots if tally.missing_slots > tally.missing else 0
    skipped = tally.gold_skipped + tally.trace_skipped

    def alarming(count: int) -> str:
        return "bad" if count else "plain"

    numbers = [
        ("questions", tally.gold, "plain"),
        ("traces scored", tally.scored, "plain"),
        ("to look at", bad, "warn" if bad else "plain"),
        ("missing", tally.missing, alarming(tally.missing)),
        *([("missing slots", missing, "bad")] if missing else []),
        ("errored", tally.errored, alarming(tally.errored)),
        (
            "duplicates",
            tally.duplicates + tally.gold_duplicates,
            alarming(tally.duplicates + tally.gold_duplicates),
        ),
        ("unknown ids", tally.unknown, alarming(tally.unknown)),
        ("lines skipped", skipped, alarming(skipped)),
    ]
    return sections.counts(numbers)


def _metrics(view: View) -> Markup:
    scores, verdict = view.scores, view.verdict
    gated = {result.gate.metric for result in verdict.gates}
    shown = phrases.shown_metrics(scores, verdict)
    heads: list[Head | str] = [
        "metric",
        Head("value", True),
        Head("n", True),
        "",
        Head("95 % interval", True),
        "left out",
    ]
    rows = [_metric(name, each, name in gated) for name, each in shown.items()]
    lines = [*phrases.counts_behind(scores), *phrases.not_measured(scores, verdict)]
    empty = element("p", "No metric has a value.", class_="quiet")
    made = table("Metrics", heads, rows, class_="metrics") if rows else empty
    return section("metrics", "Metrics", made, sections.listed(lines))


def _metric(name: str, result: MetricResult, gated: bool) -> list[Child]:
    drawn = None
    if result.value is not None and 0 <= result.value <= 1:
        label = f"{metric_label(name)}: {phrases.number(result.value)}"
        if result.interval is not None:
            label += f", 95 % interval {phrases.interval(result.interval)}"
        drawn = charts.strip(label, result.value, result.interval, low=0.0, high=1.0)
    return [
        sections.metric_name(name, gated=gated, better=result.better),
        phrases.number(result.value),
        f"{result.n:,}",
        drawn,
        phrases.interval(result.interval),
        phrases.metric_note(result),
    ]


def _slices(view: View) -> Markup | None:
    scores = view.scores
    columns = phrases.slice_metrics(scores, view.verdict)
    made: list[Child] = []
    for dimension, parts in phrases.shown_slices(scores).items():
        rows: list[list[Child]] = [
            [
                shortened(name),
                f"{part.n:,}",
                *(phrases.number(part.value(metric)) for metric in columns),
            ]
            for name, part in list(parts.items())[:_PARTS]
        ]
        heads: list[Head | str] = [dimension, Head("n", True)]
        heads += [Head(metric_label(each), True) for each in columns]
        made.append(element("h3", f"By {dimension}"))
        made.append(table(f"By {dimension}", heads, rows))
        if len(parts) > len(rows):
            made.append(element("p", f"… and {len(parts) - len(rows):,} more.", class_="quiet"))
    if not made:
        return None
    least = f"Fewer than {scores.options.min_n} questions show no value."
    return section("slices", "Slices", element("p", least, class_="quiet"), made)


def _warnings(scores: Scores) -> Markup | None:
    if not scores.warnings and not scores.skipped:
        return None
    parts: list[Child] = [sections.listed(scores.warnings)]
    if scores.skipped:
        parts += [element("h3", "Skipped lines"), sections.listed(scores.skipped)]
        more = scores.tally.gold_skipped + scores.tally.trace_skipped - len(scores.skipped)
        if more > 0:
            parts.append(element("p", f"… and {more:,} more.", class_="quiet"))
    return section("warnings", "Warnings", parts)


def _inputs(scores: Scores) -> Markup:
    options = msgspec.to_builtins(scores.options)
    known = sections.facts(
        [
            ("gold", code(scores.gold_name)),
            ("traces", code(scores.trace_name)),
            ("profile", scores.profile),
            ("dialect", scores.dialect),
            ("k", ", ".join(map(str, scores.k))),
            ("gold hash", code(scores.gold_hash)),
            ("embedders", shortened(", ".join(scores.embedders), 2000)),
            *((name.replace("_", " "), _option(value)) for name, value in options.items()),
        ]
    )
    parts: list[Child] = [known]
    for title, counted in (
        ("Refusal as a classification", scores.confusion),
        ("Rules that found refusals", scores.refusal_rules),
        ("Counts", msgspec.to_builtins(scores.tally)),
    ):
        if any(counted.values()):
            parts.append(element("h3", title))
            told = [(name.replace("_", " "), f"{count:,}") for name, count in counted.items()]
            parts.append(sections.facts(told))
    return section("inputs", "Inputs and options", parts)


def _option(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return shortened(", ".join(map(str, value)), 2000)
    return (
        ""
        if value is None
        else ("yes" if value else "no")
        if isinstance(value, bool)
        else (shortened(str(value)))
    )


def _paper(bad: Sequence[QuestionResult]) -> Markup | None:
    """The questions to look at, as paper has them."""
    if not bad:
        return None
    rows: list[list[Child]] = [
        [
            shortened(phrases.question_name(each.qid, each.turn)),
            chip(each.label, label_tone(each.label)),
            each.cause or "",
            code(each.trace or each.gold),
        ]
        for each in bad[: sections.PAPER_ROWS]
    ]
    heads = ["question", "label", "cause", "where"]
    return sections.paper_list("Look at", heads, rows, len(bad))


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
        metrics=[metric_label(name) for name in names],
        marks=dict(sections.MARKS),
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
            sections.LABEL_CHOICES,
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
            head=phrases.metric_head(name),
            about=name,
            form="number",
            wide=True,
            values=(np.round(values.of(name), 4) + 0.0).tolist(),
        )
        for name in chosen[:_METRICS]
    ]


REPORT = Report(
    name="html",
    title="one page for the browser, with every question",
    content=_text,
    suffixes=(".html",),
    public=True,
    detailed=True,
)
