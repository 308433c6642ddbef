"""Summaries: from the numbers of each question to one number a metric, with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from ragauge.metrics.columns import Bools, Floats, Ints
from ragauge.metrics.metric import SHARES, Metric, Selected
from ragauge.model.scores import MetricResult, SliceResult
from ragauge.stats import exact_sums
from ragauge.stats.intervals import (
    WILSON_BELOW,
    bootstrap,
    bootstrap_quantile,
    quantile,
    wilson,
)

Interval = tuple[float, float] | None
_STEP = 2.0**-20
"""Resampled sums are taken in steps of this size."""


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
        if metric.sums:
            amounts = tops / bottoms * self.records[place][inside]
            return math.fsum(amounts.tolist()) if len(amounts) else None
        if self.is_mean(place):
            return exact_sums.mean(tops)
        below = math.fsum(bottoms.tolist())
        return math.fsum(tops.tolist()) / below if below else None

    def intervals(self) -> list[Interval]:
        """The 95 % interval of each metric: all resampled together, questions as the unit."""
        intervals: list[Interval] = [None] * len(self.selected)
        resampled: list[int] = []
        for place, chosen in enumerate(self.selected):
            n = int(np.count_nonzero(self.inside[place]))
            if n == 0 or chosen.metric.sums:  # a sum is counted, and not a sample of anything
                continue
            rate = self._rate(chosen.metric, place)
            if rate is not None and n < WILSON_BELOW and self.cluster is None:
                intervals[place] = wilson(rate * n, n)
            elif self._units(place) < 2:
                continue  # resampling one question can only give its value back
            elif chosen.metric.quantile is not None:
                inside = self.inside[place]
                values = self.tops[place][inside] / self.bottoms[place][inside]
                talks = None
                if self.cluster is not None:
                    talks = np.unique(self.cluster[inside], return_inverse=True)[1]
                intervals[place] = bootstrap_quantile(
                    values, SHARES[chosen.metric.quantile], cluster=talks
                )
            else:
                resampled.append(place)
        if resampled:
            tops, bottoms = self._clustered(resampled)
            for place, interval in zip(resampled, bootstrap(tops.T, bottoms.T), strict=True):
                intervals[place] = _snapped(interval, self.value(place))
        return intervals

    def _units(self, place: int) -> int:
        """How many questions, or conversations of questions, there are to draw from."""
        inside = self.inside[place]
        if self.cluster is None:
            return int(np.count_nonzero(inside))
        return len(np.unique(self.cluster[inside]))

    def _rate(self, metric: Metric, place: int) -> float | None:
        """The value of a metric that is a rate of questions, for which Wilson's interval holds."""
        if not metric.binary or metric.aggregate != "mean":
            return None
        return self.value(place)

    def _clustered(self, places: Sequence[int]) -> tuple[Floats, Floats]:
        """Numerators and denominators to resample: the turns of a conversation stay together."""
        tops = np.where(self.inside[places], self.tops[places], 0.0)
        bottoms = np.where(self.inside[places], self.bottoms[places], 0.0)
        if self.cluster is None:
            return tops, bottoms
        names, number = np.unique(self.cluster, return_inverse=True)
        together = np.zeros((2, len(places), len(names)))
        for row in range(len(places)):
            together[0, row] = np.bincount(number, weights=tops[row], minlength=len(names))
            together[1, row] = np.bincount(number, weights=bottoms[row], minlength=len(names))
        return together[0], together[1]


def _snapped(interval: Interval, value: float | None) -> Interval:
    """A bound that is the value but for the steps of the sums is the value itself."""
    if interval is None or value is None:
        return interval
    low, high = (value if abs(bound - value) < _STEP else bound for bound in interval)
    return low, high


MOST_INTERVALS = 50
"""A dimension with more parts than this gets no intervals: each is a bootstrap, and nobody reads
that many."""


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
    bounds: list[Interval] = [None] * len(counts)
    if intervals and any(count >= min_n for count in counts):
        bounds = part.intervals()
    metrics = {}
    for place, chosen in enumerate(part.selected):
        enough = counts[place] >= min_n and counts[place] > 0
        value = part.value(place) if enough else None
        metrics[chosen.id] = MetricResult(
            value=value,
            n=counts[place],
            records=part.record_count(place),
            excluded={},
            interval=bounds[place] if value is not None else None,
            version=chosen.metric.version,
            better=chosen.metric.better,
            reason=None if value is not None else "too-few" if counts[place] else "no-records",
        )
    return SliceResult(n=n, metrics=metrics)
