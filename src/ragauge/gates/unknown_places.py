"""Gates on what depends on places that gold does not say: judged at both ends."""

from __future__ import annotations

from msgspec.structs import replace

from ragauge.model.phrases import count
from ragauge.model.scores import PLACE_UNKNOWN, PlaceEnds, SampledEstimate
from ragauge.model.verdict import Gate, GateResult
from ragauge.stats.intervals import TAIL, Z95, Interval, normal_quantile

WHY_UNKNOWN = "gold names chunks, and it depends on where in them the evidence stands"


def result_of_ends(low: GateResult, high: GateResult, ends: PlaceEnds) -> GateResult:
    """The result of a gate on a drop, which stands where both ends of the difference agree on it.

    At the low end the drop is greatest: what passes there passes wherever the evidence stands, and
    what fails at the high end fails wherever it does.
    """
    metric = low.gate.metric
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
    return replace(
        low,
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
