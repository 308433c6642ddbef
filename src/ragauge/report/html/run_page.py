"""The report as one HTML file: verdict, metrics, charts, and every question with its hits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
from markupsafe import Markup

from ragauge.concurrency import map_in_threads, paused_collector
from ragauge.model import phrases
from ragauge.model.labels import CAUSES, MEANINGS
from ragauge.model.metric_names import metric_label
from ragauge.model.report import View
from ragauge.model.scores import MetricResult, PerQuestion, QuestionResult, Scores
from ragauge.model.semantic import ZONES, Bands
from ragauge.model.verdict import Verdict
from ragauge.report.html import charts
from ragauge.report.html.charts import Bar, ChartLine, Dot, Figure
from ragauge.report.html.data_blocks import compressed, encoded
from ragauge.report.html.details import QUESTIONS, PageDetails
from ragauge.report.html.markup import label_tone, shortened
from ragauge.report.html.page import MOST_PRINTED, Blocks, fill_page, render
from ragauge.report.html.question_table import (
    ColumnChoice,
    QuestionColumn,
    choice_column,
    damage_column,
    first_columns,
    table_block,
    word_column,
)

_NO_HITS = "These scores were saved without traces: there are no hits and no answers to show."
_NO_QUESTIONS = "These scores hold no questions one by one: save them with --full."
_LABEL_CHOICES = [ColumnChoice(label, label_tone(label), text) for label, text in MEANINGS.items()]
_METRICS = 4
"""Metrics that the table of questions shows."""
_MOST_SLICES = 200
"""Parts of a dimension that a table of slices shows; the JSON has all of them."""
_LINES = 6
"""Lines of one chart: so many colours can be told apart."""
_TYPES = 12
"""Types of questions in one chart."""
_SLICED = 3
"""Metrics that have a chart by type."""
_BIN = 0.05
"""Width of a bin of ΔS."""
_BEHIND, _MOST_BINS = 4, 80
"""Bins behind the band of risk, and how many there may be to have it on the chart."""
_FIRST = ("retrieval.hit", "retrieval.recall", "retrieval.precision", "retrieval.ndcg",
          "retrieval.mrr", "retrieval.map")  # fmt: skip
_DISTANCES = ("semantic.delta_s_cited", "semantic.delta_s_hits@5", "semantic.delta_s_hits")
"""What zones are counted over: the first of these that has a value."""
_STATES = {
    "→": ("convergent", "good"), "←": ("divergent", "quiet"), "<>": ("recursive", "warn"),
    "×": ("chaotic", "bad"),
}  # fmt: skip


@paused_collector()
def run_page(view: View) -> str:
    """The page of a run."""
    scores, verdict = view.scores, view.verdict
    attention = phrases.questions_needing_attention(scores, verdict)
    names = {(question.qid, question.turn) for question in attention}
    results = list(scores.questions)
    failing = [(result.qid, result.turn) in names for result in results]
    headline = phrases.verdict_headline(verdict)
    context = {
        "title": f"{headline} · {scores.trace_name}",
        "headline": headline,
        "status": verdict.status if verdict.gates or verdict.blocks else None,
        "scores": scores,
        "verdict": verdict,
        "counts": _counts(scores, len(attention)),
        "metrics": phrases.listed_metrics(scores, verdict),
        "gated": {result.gate.metric for result in verdict.gates},
        "figures": figures(scores, verdict),
        "slices": phrases.listed_slices(scores),
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

    details = None if view.details is None or not results else PageDetails(view.details, failing)
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
    label = f"{metric_label(name)}: {phrases.number(result.value)}"
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
    view: View, results: list[QuestionResult], failing: list[bool], details: PageDetails | None
) -> Blocks:
    """The table of questions and the values of each."""
    if not results:
        return []
    columns = _columns(results, details)
    damage = phrases.damage_of(view.verdict)
    if damage:
        columns.append(damage_column([(result.qid, result.turn) for result in results], damage))
    values = view.scores.per_question
    metrics: list[str] = []
    value_blocks: Blocks = []
    if values is not None and len(values.qids) == len(results):
        rows = np.flatnonzero(~np.isnan(values.values).all(axis=1)).tolist()
        metrics = [values.metrics[row] for row in rows]
        if metrics:
            columns += _metric_columns(view, values, metrics)
            rounded = np.round(values.values[rows], 4) + 0.0  # + 0.0 makes 0.0 of -0.0
            parts = (
                encoded(rounded[:, start : start + QUESTIONS].tolist())
                for start in range(0, len(results), QUESTIONS)
            )
            texts = map_in_threads(compressed, parts)
            value_blocks = [(f"values-{number}", text) for number, text in enumerate(texts)]
    table = table_block(
        columns,
        failing,
        sides=("",),
        sort="label",
        detailed=details is not None,
        metrics=[metric_label(name) for name in metrics],
        note=_NO_HITS,
    )
    return [("index", table), *value_blocks]


def _columns(results: list[QuestionResult], details: PageDetails | None) -> list[QuestionColumn]:
    turns = [result.turn for result in results]
    columns = first_columns((result.qid for result in results), turns, details)
    labels = [result.label for result in results]
    columns.append(choice_column("label", labels, _LABEL_CHOICES, "all labels"))
    causes = [result.cause for result in results]
    if any(causes):
        choices = [ColumnChoice(name, "quiet", meaning) for name, meaning in CAUSES.items()]
        columns.append(choice_column("cause", causes, choices, "all causes", wide=True))
    slot_labels = list(map(_slot_labels, results))
    if any(slot_labels):
        columns.append(word_column("slots", slot_labels, head="labels of slots", hidden=True))
    return [
        *columns,
        word_column("gold", [result.gold for result in results], hidden=True),
        word_column("trace", [result.trace for result in results], hidden=True),
    ]


def _slot_labels(result: QuestionResult) -> str | None:
    """How many slots have which label, where there are several."""
    if sum(result.labels.values()) < 2:
        return None
    return ", ".join(f"{count} {label}" for label, count in result.labels.items())


def _metric_columns(
    view: View, values: PerQuestion, metrics: Sequence[str]
) -> list[QuestionColumn]:
    """The metrics that the table shows: gated ones first, as tables of slices have them."""
    chosen = [name for name in phrases.slice_metrics(view.scores, view.verdict) if name in metrics]
    chosen += [name for name in metrics if name not in chosen]
    return [
        QuestionColumn(
            name=name,
            head=phrases.metric_head(name),
            about=name,
            form="number",
            wide=True,
            values=(np.round(values.of(name), 4) + 0.0).tolist(),
        )
        for name in chosen[:_METRICS]
    ]


def figures(scores: Scores, verdict: Verdict) -> list[Figure]:
    """All charts that there is something to draw for."""
    every = [
        _metrics_by_k(scores, verdict),
        _questions_by_label(scores),
        _distances(scores),
        *_states(scores),
        *_metrics_by_type(scores, verdict),
    ]
    return [figure for figure in every if figure is not None]


def families(scores: Scores, verdict: Verdict) -> list[ChartLine]:
    """Metrics between 0 and 1 with a value at two k or more: gated ones first, then the usual."""
    ks = [str(k) for k in sorted(scores.k)]
    values: dict[str, dict[str, float]] = {}
    for name, result in scores.metrics.items():
        base, _, k = name.partition("@")
        if k in ks and result.value is not None and 0 <= result.value <= 1:
            values.setdefault(base, {})[k] = result.value
    gated = [result.gate.metric.partition("@")[0] for result in verdict.gates]
    names = [
        name for name in dict.fromkeys([*gated, *_FIRST, *values]) if len(values.get(name, ())) >= 2
    ]
    return [ChartLine(name, tuple(values[name].get(k) for k in ks)) for name in names]


def _metrics_by_k(scores: Scores, verdict: Verdict) -> Figure | None:
    lines = families(scores, verdict)
    if not lines:
        return None
    # The style has colours for six lines. Names lose their family: there is little room for them.
    drawn = [
        ChartLine(metric_label(line.name).rpartition(".")[2], line.values)
        for line in lines[:_LINES]
    ]
    rest = len(lines) - len(drawn)
    note = f"{phrases.count(rest, 'more metric')} in the table" if rest else ""
    return Figure("Metrics by k", note, charts.lines(sorted(scores.k), drawn))


def _questions_by_label(scores: Scores) -> Figure | None:
    counts = Counter(scores.questions.labels)
    if not counts:
        return None
    rows = [
        Bar(label, count, label_tone(label))
        for label, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    return Figure("Questions by label", "", charts.bars("Questions by label", rows))


def _distances(scores: Scores) -> Figure | None:
    """ΔS of questions, in the zones of its bands."""
    per_question = scores.per_question
    for name in _DISTANCES:
        if per_question is None or name not in per_question.metrics:
            continue
        values = per_question.of(name)
        values = values[np.isfinite(values)]
        if values.size:
            break
    else:
        return None
    bands = Bands() if scores.semantic is None else scores.semantic.bands
    # Quotients are rounded before they become bins: 0.6 / 0.05 is 11.999999999999998.
    reach = math.ceil(round(bands.risk / _BIN, 6)) + _BEHIND
    bins = max(20, math.ceil(round(float(values.max()) / _BIN, 6)), min(reach, _MOST_BINS))
    places = np.clip(np.floor(np.round(values / _BIN, 6)).astype(np.int64), 0, bins - 1)
    counts = np.bincount(places, minlength=bins).tolist()
    zones = dict.fromkeys(ZONES, 0)
    for value in values.tolist():
        zones[bands.zone(value)] += 1
    tones = ("good", "warn", "bad")
    rows = [Bar(zone, zones[zone], tone) for zone, tone in zip(ZONES, tones, strict=True)]
    note = f"{name}, n = {values.size}"
    if scores.semantic is None:
        note += "; zones of the source documents"
    if bands.risk >= bins * _BIN:
        note += f"; {zones['risk']} at risk, which begins at {bands.risk:g}"
    drawn = charts.histogram(
        "Questions by ΔS", counts, low=0.0, step=_BIN, zones=rows, ends=(bands.stable, bands.risk)
    )
    return Figure("ΔS of questions", note, drawn)


def _states(scores: Scores) -> list[Figure]:
    """λ, computed and recorded."""
    figures = []
    for kind, states in scores.states.items():
        if any(states.values()):
            title = f"λ of questions, {kind}"
            rows = []
            for state, count in states.items():
                name, tone = _STATES.get(state, ("", "quiet"))
                rows.append(Bar(f"{state} {name}".rstrip(), count, tone))
            figures.append(Figure(title, "", charts.bars(title, rows)))
    return figures


def _metrics_by_type(scores: Scores, verdict: Verdict) -> list[Figure]:
    """The gated or first metrics over the types of questions."""
    parts = scores.slices.get("type", {})
    figures: list[Figure] = []
    for metric in phrases.slice_metrics(scores, verdict):
        rows = []
        for name, part in parts.items():
            result = part.metrics.get(metric)
            if result is not None and result.value is not None and 0 <= result.value <= 1:
                rows.append(Dot(name, result.value, result.interval, f"n {result.n}"))
        if rows and len(figures) < _SLICED:
            note = "by type" if len(rows) <= _TYPES else f"by type, {_TYPES} of {len(rows)}"
            drawn = charts.dots(f"{metric_label(metric)} by type", rows[:_TYPES])
            figures.append(Figure(metric_label(metric), note, drawn))
    return figures
