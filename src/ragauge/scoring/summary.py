"""Summaries: from the numbers of each question to one number a metric, with its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ragauge.metrics.columns import Bools, Floats, Ints
from ragauge.metrics.metric import SHARES, Selected
from ragauge.model.scores import ErroredValue, MetricResult, SliceResult
from ragauge.scoring.estimates import (
    Estimate,
    PopulationSums,
    level_estimate,
    quantile_estimate,
)
from ragauge.stats import exact_sums
from ragauge.stats.intervals import quantile

Sums = NDArray[Any]
"""Whole numbers of 32 or 64 bits, or values of questions."""
Places = NDArray[np.integer[Any]]
"""Some questions, by their places."""


class RecordValues(Struct, frozen=True):
    """The value of each record of a metric, and the question that it is a record of."""

    question: Ints
    value: Floats

    def between(self, first: int, last: int) -> RecordValues:
        """The same of consecutive questions, which are numbered anew."""
        chosen = (self.question >= first) & (self.question < last)
        return RecordValues(self.question[chosen] - first, self.value[chosen])

    def only(self, questions: Places, size: int) -> RecordValues:
        """The same of some questions of so many, which are numbered in their order."""
        number = np.full(size, -1, np.int64)
        number[questions] = np.arange(len(questions))
        places = number[self.question]
        return RecordValues(places[places >= 0], self.value[places >= 0])


def joined_values(parts: Sequence[RecordValues]) -> RecordValues:
    """The values of several parts, in the order of their questions."""
    if not parts:
        return RecordValues(np.zeros(0, np.int64), np.zeros(0))
    question = np.concatenate([part.question for part in parts]).astype(np.int64)
    value = np.concatenate([part.value for part in parts])
    order = np.lexsort((value, question))
    return RecordValues(question[order], value[order])


class MeasuredQuestions(Struct, frozen=True, kw_only=True):
    """Numerator and denominator of each metric for each question, as (metrics, questions).

    With the question as the unit a denominator is 1 where the question is in the population; with
    the row, or for a ratio of sums, it is a sum of its own. `inside` says who is in the population.
    `records` counts, for each metric, the records of each question in the population. `cluster`
    numbers the conversation that each question is a turn of; None where each is its own. `values`
    has those of records, for metrics that are a quantile of them.
    """

    selected: tuple[Selected, ...]
    tops: Floats
    bottoms: Floats
    inside: Bools
    records: tuple[Ints, ...]
    by_row: bool
    cluster: Ints | None = None
    values: Mapping[int, RecordValues] = {}

    def between(self, first: int, last: int) -> MeasuredQuestions:
        """The same of consecutive questions, without a copy."""
        return MeasuredQuestions(
            selected=self.selected,
            tops=self.tops[:, first:last],
            bottoms=self.bottoms[:, first:last],
            inside=self.inside[:, first:last],
            records=tuple(counts[first:last] for counts in self.records),
            by_row=self.by_row,
            cluster=None if self.cluster is None else self.cluster[first:last],
            values={place: values.between(first, last) for place, values in self.values.items()},
        )

    def count(self, place: int) -> int:
        """How many questions are in the population of a metric."""
        return int(np.count_nonzero(self.inside[place]))

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
            values = self.values[place].value if place in self.values else tops / bottoms
            return quantile(values, SHARES[metric.quantile])
        if metric.sums:
            amounts = tops / bottoms * self.records[place][inside]
            return math.fsum(amounts.tolist()) if len(amounts) else None
        if self.is_mean(place):
            return exact_sums.mean(tops)
        below = exact_sums.fraction_total(bottoms)
        return float(exact_sums.fraction_total(tops) / below) if below else None

    def estimate(self, place: int) -> Estimate:
        """How well the number of a metric is known."""
        inside = self.inside[place]
        metric = self.selected[place].metric
        if place in self.values:
            values = self.values[place]
            groups = values.question if self.cluster is None else self.cluster[values.question]
            return quantile_estimate(metric, values.value, groups)
        population = PopulationSums(
            self.tops[place][inside],
            self.bottoms[place][inside],
            self.records[place][inside].astype(np.int64),
            None if self.cluster is None else self.cluster[inside],
            self.by_row,
        )
        return level_estimate(metric, population)


class QuestionSums(Struct, frozen=True, kw_only=True):
    """The sums of each metric for each question, from which `MeasuredQuestions` are made.

    With many questions the numbers of all metrics take gigabytes as floating point; so they are
    made metric by metric, or of some questions. `sums` are whole numbers in `units`, `bottoms` the
    denominators of ratios, `records` counts the records in the population. The values of metrics
    that are no sums over records are in `sums` too; `members` has their populations. `values` are
    those of records, where the quantile is over records.
    """

    selected: tuple[Selected, ...]
    sums: tuple[Sums, ...]
    units: tuple[int, ...]
    bottoms: Mapping[int, Ints]
    records: tuple[Sums, ...]
    members: Mapping[int, Bools]
    by_row: bool
    cluster: Ints | None = None
    order: Places | None = None
    values: Mapping[int, RecordValues] = {}

    def ordered(self, order: Places) -> QuestionSums:
        """The same of some questions, or of all in another order."""
        return replace(self, order=order)

    def only(self, questions: Places) -> MeasuredQuestions:
        """The numbers of some questions, for all metrics."""
        return self._made(range(len(self.selected)), questions)

    def metric(self, place: int) -> MeasuredQuestions:
        """The numbers of one metric."""
        return self._made([place], self.order)

    def _made(self, places: Sequence[int], chosen: Places | None) -> MeasuredQuestions:
        taken: dict[int, Sums] = {}

        def take(column: Sums) -> Sums:
            if chosen is None:
                return column
            if id(column) not in taken:  # many metrics have one population
                taken[id(column)] = column[chosen]
            return taken[id(column)]

        size = len(self.records[0]) if chosen is None else len(chosen)
        tops, bottoms = np.empty((len(places), size)), np.empty((len(places), size))
        inside = np.empty((len(places), size), np.bool_)
        for row, place in enumerate(places):
            sums = take(self.sums[place])
            if place in self.members:
                inside[row] = take(self.members[place])
                tops[row], bottoms[row] = np.where(inside[row], sums, 0.0), inside[row]
                continue
            unit, counts = self.units[place], take(self.records[place]).astype(np.int64)
            below = take(self.bottoms[place]) if place in self.bottoms else None
            inside[row] = counts > 0
            if self.by_row:  # one division in the end, of whole numbers
                tops[row] = sums
                bottoms[row] = counts * unit if below is None else below
            else:
                each_record = unit * np.maximum(1, counts)
                tops[row] = sums / each_record
                bottoms[row] = inside[row] if below is None else below / each_record
        return MeasuredQuestions(
            selected=tuple(self.selected[place] for place in places),
            tops=tops,
            bottoms=bottoms,
            inside=inside,
            records=tuple(take(self.records[place]) for place in places),
            by_row=self.by_row,
            cluster=None if self.cluster is None else take(self.cluster),
            values={
                row: self.values[place]
                if chosen is None
                else self.values[place].only(chosen, len(self.records[place]))
                for row, place in enumerate(places)
                if place in self.values
            },
        )


MOST_INTERVALS = 200
"""A dimension with more parts than this gets no intervals: nobody reads that many."""


_TOGETHER = 1 << 14
"""Questions of parts whose numbers are made together: for a few questions that takes as long."""
_NOTHING_EXCLUDED: dict[str, int] = {}
_NO_METRICS: dict[str, MetricResult] = {}


def errored_values(
    ends: Sequence[MeasuredQuestions], place: int, *, intervals: bool
) -> tuple[ErroredValue, ErroredValue] | None:
    """A metric with errors at their worst and at their best; None where there are no errors."""
    values = []
    for part in ends:
        metric, value = part.selected[place].metric, part.value(place)
        if value is None or metric.sums or metric.id.startswith("run."):
            return None
        interval = part.estimate(place).interval if intervals else None
        values.append(ErroredValue(value, part.count(place), interval))
    return (values[0], values[1]) if values else None


def slice_results(
    sums: QuestionSums,
    parts: Mapping[str, Mapping[str, Places]],
    *,
    min_n: int,
    intervals: bool,
    extremes: Sequence[QuestionSums] = (),
) -> dict[str, dict[str, SliceResult]]:
    """Each metric over each part of each dimension.

    `extremes` are the sums with errors at their worst and at their best.
    """
    results: dict[str, dict[str, SliceResult]] = {}
    ids = [chosen.id for chosen in sums.selected]  # made once: there may be thousands of parts
    for dimension, names in parts.items():
        bounded = intervals and len(names) <= MOST_INTERVALS
        # In the order of the names; parts with few questions are not measured.
        results[dimension] = {
            name: SliceResult(n=len(questions), metrics=_NO_METRICS)
            for name, questions in names.items()
        }
        for group in _groups(names, min_n):
            if len(group) == 1:
                ((name, questions),) = group
                whole = [end.ordered(questions) for end in (sums, *extremes)]
                metrics = _large_part(whole, ids, min_n, intervals=bounded)
                results[dimension][name] = SliceResult(n=len(questions), metrics=metrics)
                continue
            together = np.concatenate([questions for _, questions in group])
            blocks = [end.only(together) for end in (sums, *extremes)]
            first = 0
            for name, questions in group:
                last = first + len(questions)
                parts_of_name = [block.between(first, last) for block in blocks]
                metrics = _part(parts_of_name, ids, min_n, intervals=bounded)
                results[dimension][name] = SliceResult(n=last - first, metrics=metrics)
                first = last
    return results


def _groups(names: Mapping[str, Places], min_n: int) -> Iterator[list[tuple[str, Places]]]:
    """The parts with enough questions, those of a group to be measured together."""
    group: list[tuple[str, Places]] = []
    size = 0
    for name, questions in names.items():
        if len(questions) < min_n:
            continue
        if group and size + len(questions) > _TOGETHER:
            yield group
            group, size = [], 0
        group.append((name, questions))
        size += len(questions)
    if group:
        yield group


def _part(
    parts: Sequence[MeasuredQuestions], names: Sequence[str], min_n: int, *, intervals: bool
) -> dict[str, MetricResult]:
    counts = parts[0].inside.sum(axis=1).tolist()
    return {
        name: _result(parts, place, counts[place], min_n, intervals=intervals)
        for place, name in enumerate(names)
    }


def _large_part(
    parts: Sequence[QuestionSums], names: Sequence[str], min_n: int, *, intervals: bool
) -> dict[str, MetricResult]:
    """The same of many questions, metric by metric."""
    results = {}
    for place, name in enumerate(names):
        metrics = [part.metric(place) for part in parts]
        results[name] = _result(metrics, 0, metrics[0].count(0), min_n, intervals=intervals)
    return results


def _result(
    parts: Sequence[MeasuredQuestions], place: int, n: int, min_n: int, *, intervals: bool
) -> MetricResult:
    part, *ends = parts
    metric = part.selected[place].metric
    value = part.value(place) if n >= min_n and n > 0 else None
    estimate = part.estimate(place) if intervals and value is not None else Estimate()
    return MetricResult(
        value=value,
        n=n,
        records=part.record_count(place),
        excluded=_NOTHING_EXCLUDED,
        interval=estimate.interval,
        interval_reason=estimate.reason,
        detectable=estimate.detectable,
        version=metric.version,
        better=metric.better,
        reason=None if value is not None else "too-few" if n else "no-records",
        errored=None if value is None else errored_values(ends, place, intervals=intervals),
    )
