"""Gates on what depends on places that gold does not say: judged at both ends."""

from __future__ import annotations

from typing import Literal

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ragauge.gates.drops import common_questions
from ragauge.model.phrases import count
from ragauge.model.scores import (
    PLACE_UNKNOWN,
    PerQuestion,
    PlaceEnds,
    SampledEstimate,
    Scores,
)
from ragauge.model.verdict import Gate, GateResult
from ragauge.stats.intervals import TAIL, Z95, Interval, normal_quantile

WHY_UNKNOWN = "gold names chunks, and it depends on where in them the evidence stands"


def result_of_ends(low: GateResult, high: GateResult, ends: PlaceEnds) -> GateResult:
    """The result of a gate on a drop, which stands where both ends of the difference agree on it.

    At one end the drop is greatest, the low one where higher is better: what passes there passes
    wherever the evidence stands, and what fails at the other end fails wherever it does.
    """
    metric = low.gate.metric
    if low.gate.better == "lower":
        low, high = high, low
    statuses = low.status, high.status
    if metric not in ends.unknown:
        if "not-evaluable" in statuses:
            return low if low.status == "not-evaluable" else high
        if high.status == "fail":
            return _nearest(high, low, high)
        if "fail" not in statuses:
            return _nearest(high if high.status == "review" != low.status else low, low, high)
    why = WHY_UNKNOWN
    if metric not in ends.unknown and low.value is not None and high.value is not None:
        why = (
            f"the drop lies between {high.value:+.4f} and {low.value:+.4f}: {why}; pin "
            f"{count(ends.open.get(metric, 0), 'question')} with `ragauge gold pin --narrow --open`"
        )
    return _without_number(low, why)


def with_separate_ends(scores: Scores, baseline: Scores) -> tuple[Scores, Scores]:
    """Two runs that were scored apart, with the ends of their difference.

    Nothing says that their evidence stands at the same place, so the difference is least between
    the least of the one and the greatest of the other. Runs without open values stay as they are.
    """
    now, before = scores.per_question, baseline.per_question
    if now is None or before is None or (now.ends is None and before.ends is None):
        return scores, baseline
    if scores.ends is not None or baseline.ends is not None:
        return scores, baseline
    mine, theirs, _ = common_questions(now, before)
    is_open: dict[str, int] = {}
    for metric in now.metrics:
        if metric in before.metrics:
            either = _are_open(now, metric)[mine] | _are_open(before, metric)[theirs]
            is_open[metric] = int(np.count_nonzero(either))
    unknown = frozenset(
        name
        for run in (scores, baseline)
        for name, result in run.metrics.items()
        if result.reason == PLACE_UNKNOWN and result.ends is None
    )
    low, high = _at_end(scores, "low"), _at_end(scores, "high")
    low_before, high_before = _at_end(baseline, "low"), _at_end(baseline, "high")
    return (
        replace(scores, ends=PlaceEnds(low=low, high=high, unknown=unknown, open=is_open)),
        replace(
            baseline,
            ends=PlaceEnds(low=high_before, high=low_before, unknown=unknown, open=is_open),
        ),
    )


def _are_open(values: PerQuestion, metric: str) -> NDArray[np.bool_]:
    """Which questions have a value that depends on the place."""
    if values.ends is None:
        return np.zeros(len(values.qids), np.bool_)
    row = values.metrics.index(metric)
    is_open: NDArray[np.bool_] = values.ends.low[row] < values.ends.high[row]
    return is_open


def _at_end(scores: Scores, end: Literal["low", "high"]) -> Scores:
    """A run with the values of one end."""
    values = scores.per_question
    assert values is not None
    if values.ends is None:
        return scores
    at_end = values.ends.low if end == "low" else values.ends.high
    return replace(scores, per_question=replace(values, values=at_end, ends=None))


def level_of_ends(low: GateResult, high: GateResult, open_questions: int) -> GateResult:
    """The result of a gate on a level, which stands where both ends of the metric agree on it.

    `low` is judged by the least value, `high` by the greatest; whichever is worse, a verdict that
    both have holds wherever the evidence stands.
    """
    statuses = low.status, high.status
    if "not-evaluable" in statuses:
        return low if low.status == "not-evaluable" else high
    assert low.value is not None and high.value is not None
    between = f"it lies between {low.value:.4f} and {high.value:.4f}"
    if "fail" in statuses and statuses != ("fail", "fail"):
        pins = f"pin {count(open_questions, 'question')}" if open_questions else "pin them"
        return _without_number(
            low, f"{between}: {WHY_UNKNOWN}; {pins} with `ragauge gold pin --narrow`"
        )
    worse, better = (low, high) if low.gate.better == "higher" else (high, low)
    # What fails is surely as bad as its better end, what passes surely as good as its worse one.
    nearest = better if statuses == ("fail", "fail") else worse
    interval = None
    if low.interval is not None and high.interval is not None:
        interval = low.interval[0], high.interval[1]
    least = "at least" if (nearest is low) else "at most"
    why = f"{least} this: {between}, as gold names chunks and not where in them the evidence stands"
    if nearest.reason is not None:
        why += f"; at this end {nearest.reason}"
    return replace(nearest, interval=interval, detectable=None, chances=None, reason=why)


def _without_number(result: GateResult, why: str) -> GateResult:
    """A gate that cannot be judged, as it depends on places that gold does not say."""
    return replace(
        result,
        status="not-evaluable",
        value=None,
        margin=None,
        interval=None,
        detectable=None,
        chances=None,
        caution=None,
        reason=why,
        code=PLACE_UNKNOWN,
    )


def _nearest(result: GateResult, low: GateResult, high: GateResult) -> GateResult:
    """A verdict that holds wherever the evidence stands, with what is known of the drop.

    Its number is that of the end that is nearest to the threshold; the interval reaches from the
    lower bound of the least drop to the upper one of the greatest.
    """
    assert low.value is not None and high.value is not None
    if f"{low.value:.4f}" == f"{high.value:.4f}":
        return result
    interval = None
    if low.interval is not None and high.interval is not None:
        interval = high.interval[0], low.interval[1]
    least = "at least" if result is high else "at most"
    why = (
        f"{least} this: the drop lies between {high.value:+.4f} and {low.value:+.4f}, as gold "
        "names chunks and not where in them the evidence stands"
    )
    if result.reason is not None:
        why += f"; at this end {result.reason}"
    return replace(result, interval=interval, detectable=None, chances=None, reason=why)


def estimated_drop(estimate: SampledEstimate, gate: Gate, n: int) -> tuple[float, int, Interval]:
    """How much worse a metric is by a sample of pins, the number of questions, and the interval.

    Against the best of some runs it holds for all of them at once, as any other does.
    """
    wider = normal_quantile(TAIL / gate.chosen_from) / Z95
    low, high = (estimate.delta + wider * (end - estimate.delta) for end in estimate.interval)
    if gate.better == "lower":
        return estimate.delta, n, (low, high)
    return -estimate.delta + 0.0, n, (-high + 0.0, -low + 0.0)
