"""Slices: the same metrics over a part of the questions."""

from __future__ import annotations

from collections.abc import Mapping

from ragauge.metrics.columns import Ints
from ragauge.model.scores import MetricResult, SliceResult
from ragauge.scoring.summary import Interval, Measured

MOST_INTERVALS = 50
"""A dimension with more parts than this gets no intervals: nobody reads them."""


def slice_results(
    measured: Measured,
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


def _part(part: Measured, n: int, min_n: int, *, intervals: bool) -> SliceResult:
    if n < min_n:
        return SliceResult(n=n, metrics={})
    counts = part.inside.sum(axis=1).tolist()
    found: list[Interval] = [None] * len(counts)
    if intervals and any(count >= min_n for count in counts):
        found = part.intervals()
    metrics = {}
    for place, each in enumerate(part.selected):
        shown = counts[place] >= min_n and counts[place] > 0
        value = part.value(place) if shown else None
        metrics[each.id] = MetricResult(
            value=value,
            n=counts[place],
            records=part.record_count(place),
            excluded={},
            interval=found[place] if value is not None else None,
            version=each.metric.version,
            better=each.metric.better,
            reason=None if value is not None else "too-few" if counts[place] else "no-records",
        )
    return SliceResult(n=n, metrics=metrics)
