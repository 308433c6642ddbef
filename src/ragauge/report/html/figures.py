"""The charts of a run: which numbers are drawn, and what is said beside them."""

from __future__ import annotations

import math

import numpy as np

from ragauge.model import phrases
from ragauge.model.metric_names import metric_label
from ragauge.model.scores import Scores
from ragauge.model.semantic import ZONES, Bands
from ragauge.model.verdict import Verdict
from ragauge.report.html import charts
from ragauge.report.html.charts import Bar, Dot, Line, figure
from ragauge.report.html.markup import Markup
from ragauge.report.html.sections import label_tone

_LINES = 6
_PARTS = 12
_SLICED = 3
_BIN = 0.05
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


def figures(scores: Scores, verdict: Verdict) -> list[Markup]:
    """All charts that there is something to draw for."""
    found = [
        _by_k(scores, verdict),
        _labels(scores),
        _distances(scores),
        *_states(scores),
        *_types(scores, verdict),
    ]
    return [each for each in found if each is not None]


def families(scores: Scores, verdict: Verdict) -> list[Line]:
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
    return [Line(name, tuple(values[name].get(k) for k in ks)) for name in names]


def _by_k(scores: Scores, verdict: Verdict) -> Markup | None:
    found = families(scores, verdict)
    if not found:
        return None
    shown = [
        Line(metric_label(line.name).rpartition(".")[2], line.values) for line in found[:_LINES]
    ]
    rest = len(found) - len(shown)
    note = f"{phrases.count(rest, 'more metric')} in the table" if rest else ""
    return figure("Metrics by k", note, charts.lines(sorted(scores.k), shown))


def _labels(scores: Scores) -> Markup | None:
    counted: dict[str, int] = {}
    for label in scores.questions.labels:
        counted[label] = counted.get(label, 0) + 1
    if not counted:
        return None
    rows = [
        Bar(name, n, label_tone(name))
        for name, n in sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    ]
    return figure("Questions by label", "", charts.bars("Questions by label", rows))


def _distances(scores: Scores) -> Markup | None:
    """ΔS of questions, in the zones of its bands."""
    known = scores.per_question
    for name in _DISTANCES:
        if known is None or name not in known.metrics:
            continue
        values = known.of(name)
        values = values[np.isfinite(values)]
        if values.size:
            break
    else:
        return None
    bands = Bands() if scores.semantic is None else scores.semantic.bands
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
    return figure("ΔS of questions", note, drawn)


def _states(scores: Scores) -> list[Markup]:
    """λ, computed and recorded."""
    made = []
    for kind, states in scores.states.items():
        if any(states.values()):
            title = f"λ of questions, {kind}"
            rows = []
            for state, count in states.items():
                name, tone = _STATES.get(state, ("", "quiet"))
                rows.append(Bar(f"{state} {name}".rstrip(), count, tone))
            made.append(figure(title, "", charts.bars(title, rows)))
    return made


def _types(scores: Scores, verdict: Verdict) -> list[Markup]:
    """The gated or first metrics over the types of questions."""
    parts = scores.slices.get("type", {})
    made: list[Markup] = []
    for metric in phrases.slice_metrics(scores, verdict):
        rows = []
        for name, part in parts.items():
            result = part.metrics.get(metric)
            if result is not None and result.value is not None and 0 <= result.value <= 1:
                rows.append(Dot(name, result.value, result.interval, f"n {result.n}"))
        if rows and len(made) < _SLICED:
            note = "by type" if len(rows) <= _PARTS else f"by type, {_PARTS} of {len(rows)}"
            drawn = charts.dots(f"{metric_label(metric)} by type", rows[:_PARTS])
            made.append(figure(metric_label(metric), note, drawn))
    return made
