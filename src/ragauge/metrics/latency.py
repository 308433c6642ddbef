"""Latency: how long the parts took, as the traces record it."""

from __future__ import annotations

from functools import partial

from ragauge.metrics.metric import Example, Metric, Quantile
from ragauge.metrics.populations import timed

_MICRO = 1000  # steps in a millisecond that sums are exact to
_YEAR = 366 * 24 * 3600 * 1000.0
_NAMES = {"median": "median", "p95": "95th percentile"}
_FIELDS = {
    "retrieve": ("Time to retrieve", "`perf.t_retrieve_ms`"),
    "reason": ("Time to reason", "`perf.t_reason_ms`"),
    "total": ("Time in all", "`latency_ms`, `elapsed_ms`, or retrieve and reason together"),
}
_GOLD = {"qid": "A1", "question": "What domain?", "relevant": ["pB#1"]}
_TRACE = {"qid": "A1", "topk": ["pB#1"], "perf": {"t_retrieve_ms": 40, "t_reason_ms": 800}}
_example = partial(Example, _GOLD, _TRACE)
_VALUES = {"retrieve": 40.0, "reason": 800.0, "total": 840.0}


def _metric(part: str, quantile: Quantile) -> Metric:
    title, field = _FIELDS[part]

    return Metric(
        id=f"latency.{part}_ms" if quantile == "median" else f"latency.{part}_ms_{quantile}",
        binary=False,
        quantile=quantile,
        range=(0.0, _YEAR),
        unit=_MICRO,
        title=f"{title}, {_NAMES[quantile]}",
        formula=f"{field} in milliseconds; the {_NAMES[quantile]} over questions, interpolated "
        "linearly",
        over=timed(part),
        better="lower",
        source="WFGY live monitoring page (perf)",
        value=lambda batch, k: batch.single(f"{part}_ms"),
        example=_example(
            _VALUES[part],
            f"one question that took {_VALUES[part]:g} ms"
            + (": 40 + 800." if part == "total" else "."),
        ),
    )


METRICS = tuple(_metric(part, quantile) for part in _FIELDS for quantile in ("median", "p95"))
