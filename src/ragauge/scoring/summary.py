"""Summaries: from the numbers of each question to one number a metric, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping

from msgspec import Struct

from ragauge.metrics.columns import Bools, Floats, Ints
from ragauge.metrics.metric import SHARES, Selected
from ragauge.model.scores import MetricResult, SliceResult
from ragauge.scoring.estimates import Estimate, QuestionSums, level_estimate
from ragauge.stats import exact_sums
from ragauge.stats.intervals import quantile


class MeasuredQuestions(Struct, frozen=True, kw_only=True):
    """Numerator and denominator of each metric for each question, as (metrics, questions).

    With the question as the unit a denominator is 1 where the question is in the population; with
    the row, or for a ratio of sums, it is a sum of its own. `inside` says who is in the population.
    `records` counts, for each metric, the records of each question in the population. `cluster`
    numbers the conversation that each question is a turn of; None where each is its own.
    """

    selected: tuple[Selected, ...]
    tops: Floats
    bottoms: Floats
    inside: Bools
    records: tuple[Ints, ...]
    by_row: bool
    cluster: Ints | None = None

    def only(self, questions: Bools | Ints) -> MeasuredQuestions:
        """The same of some questions."""
        return MeasuredQuestions(
            selected=self.selected,
            tops=self.tops[:, questions],
            bottoms=self.bottoms[:, questions],
            inside=self.inside[:, questions],
            records=tuple(counts[questions] for counts in self.records),
            by_row=self.by_row,
            cluster=None if self.cluster is None else self.cluster[questions],
        )

    def record_count(self, place: int) -> int:
        """How many records are in the population of a metric."""
        return int(self.records[place][self.inside[place]].sum())

    def is_mean(self, place: int) -> bool:
        """Whether a metric is the mean over questions."""
        return not self.by_row and self.selected[place].metric.aggregate == "mean"

    def value(self, place: int) -> float | None:
        """The one number of a metric; None for 0/0."""
        metric, inside = self.selected[place].metric, self.inside[place]
        tops, bottoms = self.tops[place][inside], self.bottoms[place][inside]
        if metric.quantile is not None:
            return quantile(tops / bottoms, SHARES[metric.quantile])
        if self.is_mean(place):
            return exact_sums.mean(tops)
        below = math.fsum(bottoms.tolist())
        return math.fsum(tops.tolist()) / below if below else None

    def estimate(self, place: int) -> Estimate:
        """How well the number of a metric is known."""
        inside = self.inside[place]
        questions = QuestionSums(
            self.tops[place][inside],
            self.bottoms[place][inside],
            self.records[place][inside],
            None if self.cluster is None else self.cluster[inside],
            self.by_row,
        )
        return level_estimate(self.selected[place].metric, questions)


MOST_INTERVALS = 200
"""A dimension with more parts than this gets no intervals: nobody reads that many."""


def slice_results(
    measured: MeasuredQuestions,
    parts: Mapping[str, Mapping[str, Ints]],
    *,
    min_n: int,
    intervals: bool,
) -> dict[str, dict[str, SliceResult]]:
    """Each metric over each part of each dimension."""
    return {
        dimension: {
            name: _part(
                measured.only(questions) if len(questions) >= min_n else measured,
                len(questions),
                min_n,
                intervals=intervals and len(names) <= MOST_INTERVALS,
            )
            for name, questions in names.items()
        }
        for dimension, names in parts.items()
    }


def _part(part: MeasuredQuestions, n: int, min_n: int, *, intervals: bool) -> SliceResult:
    if n < min_n:
        return SliceResult(n=n, metrics={})
    counts = part.inside.sum(axis=1).tolist()
    metrics = {}
    for place, chosen in enumerate(part.selected):
        enough = counts[place] >= min_n and counts[place] > 0
        value = part.value(place) if enough else None
        estimate = part.estimate(place) if intervals and value is not None else Estimate()
        metrics[chosen.id] = MetricResult(
            value=value,
            n=counts[place],
            records=part.record_count(place),
            excluded={},
            interval=estimate.interval,
            interval_reason=estimate.reason,
            detectable=estimate.detectable,
            version=chosen.metric.version,
            better=chosen.metric.better,
            reason=None if value is not None else "too-few" if counts[place] else "no-records",
        )
    return SliceResult(n=n, metrics=metrics)
