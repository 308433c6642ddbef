"""Chances of a gate: how often it fails a system that did not change, and passes one that is worse.

They follow from n, the interval and the policy alone, so that every report can say them, and a
stored run can be judged again for free.
"""

from __future__ import annotations

import math

import numpy as np

from ragauge import registry
from ragauge.metrics.columns import Floats
from ragauge.metrics.metric import SHARES, Metric
from ragauge.model.scores import Scores
from ragauge.model.verdict import Gate, GateChances, GateResult
from ragauge.stats.error_rates import (
    DropNoise,
    OutcomeChances,
    binomial_below,
    drop_chances,
    level_chances,
    normal_chances,
    perfect_passes_from,
    questions_worth,
    unchanged_passes_from,
)
from ragauge.stats.intervals import TAIL, Z95, quantile_ranks


def level_gate_chances(judged: GateResult, metric_id: str, scores: Scores) -> GateChances | None:
    """The chances of a gate on a level; None where its number has no interval."""
    gate, value, interval = judged.gate, judged.value, judged.interval
    metric = registry.metrics()[metric_id.partition("@")[0]]
    if value is None:
        return None
    if metric.quantile is not None:
        return _quantile_chances(gate, metric, metric_id, scores)
    if interval is None or interval[0] is None or interval[1] is None:
        return None
    if not metric.bounded:
        sign = 1.0 if gate.better == "higher" else -1.0
        spread = (interval[1] - interval[0]) / (2 * Z95)
        return _described(
            normal_chances(sign * value, spread, sign * gate.threshold, gate.policy), None, None
        )
    mean, threshold = (_good(metric, gate, number) for number in (value, gate.threshold))
    bounds = sorted(_good(metric, gate, bound) for bound in (interval[0], interval[1]))
    n = questions_worth(mean, bounds[0], bounds[1])
    # As if half a question more had been right, and half a one wrong: a perfect score is no proof
    # that nothing ever fails.
    unchanged = level_chances((mean * n + 0.5) / (n + 1), n, threshold, gate.policy)
    worse = at_worse = None
    if judged.detectable is not None:
        sign = -1.0 if gate.better == "higher" else 1.0
        low, high = metric.range
        worse = min(high, max(low, gate.threshold + sign * judged.detectable))
        at_worse = level_chances(_good(metric, gate, worse), n, threshold, gate.policy)
    perfect = perfect_passes_from(threshold) if gate.policy == "confident-pass" else None
    return _described(unchanged, worse, at_worse, perfect)


def chances_at(judged: GateResult, n: int) -> GateChances | None:
    """The chances of a gate on a level with so many questions of the same kind."""
    gate, value, interval = judged.gate, judged.value, judged.interval
    metric = registry.metrics()[gate.metric.partition("@")[0]]
    if value is None or interval is None or interval[0] is None or interval[1] is None:
        return None
    if metric.quantile is not None or not metric.bounded:
        return None
    mean, threshold = (_good(metric, gate, number) for number in (value, gate.threshold))
    bounds = sorted(_good(metric, gate, bound) for bound in (interval[0], interval[1]))
    worth = questions_worth(mean, bounds[0], bounds[1]) * n / judged.n
    return _described(level_chances(mean, worth, threshold, gate.policy), None, None)


def drop_gate_chances(judged: GateResult, noise: DropNoise | None) -> GateChances | None:
    """The chances of a gate on a drop; None where questions do not say how they move."""
    if noise is None or judged.value is None:
        return None
    gate = judged.gate
    low, high = registry.metrics()[gate.metric.partition("@")[0]].range
    width = high - low
    most = gate.threshold / width
    best = gate.chosen_from
    unchanged = drop_chances(noise, 0.0, most, gate.policy, chosen_from=best)
    at_worse = None
    if judged.detectable is not None:
        worse = judged.detectable / width
        at_worse = drop_chances(noise, worse, most, gate.policy, chosen_from=best)
    perfect = None
    if gate.policy == "confident-pass":
        perfect = unchanged_passes_from(most, tail=TAIL / best)
    return _described(unchanged, judged.detectable, at_worse, perfect)


def _good(metric: Metric, gate: Gate, number: float) -> float:
    """A number of a metric as one in 0 to 1 that is better when higher."""
    low, high = metric.range
    share = (number - low) / (high - low)
    if gate.better == "lower":
        share = 1 - share
    # F1 is judged through the rate J = TP / (TP + FP + FN), of which F1 = 2J / (1 + J).
    return share / (2 - share) if metric.f1 else share


def _quantile_chances(
    gate: Gate, metric: Metric, metric_id: str, scores: Scores
) -> GateChances | None:
    """How often a quantile of as many values, of which as many meet the threshold, does so too."""
    values = _values(metric_id, gate, scores)
    if values is None or gate.better != "lower" or metric.quantile is None:
        return None
    n, share = len(values), SHARES[metric.quantile]
    meeting = (np.count_nonzero(values <= gate.threshold) + 0.5) / (n + 1)
    lower, upper = quantile_ranks(n, share)
    needed = math.ceil(share * (n - 1) - 1e-9) + 1  # values at the threshold or below it
    pass_from, fail_below = needed, needed
    if gate.policy == "confident-pass":
        pass_from = fail_below = n + 1 if upper is None else upper
    elif gate.policy == "confident-fail":
        fail_below = 0 if lower is None else lower
    fails = binomial_below(n, meeting, fail_below)
    passes = 1 - binomial_below(n, meeting, pass_from)
    return _described(OutcomeChances(passes, max(0.0, 1 - passes - fails), fails), None, None)


def _values(metric_id: str, gate: Gate, scores: Scores) -> Floats | None:
    values = scores.per_question
    if gate.part is not None or values is None or metric_id not in values.metrics:
        return None
    column = values.of(metric_id)
    column = column[~np.isnan(column)]
    return column if len(column) else None


def _described(
    unchanged: OutcomeChances,
    worse: float | None,
    at_worse: OutcomeChances | None,
    perfect: int | None = None,
) -> GateChances:
    return GateChances(
        fails_unchanged=unchanged.fails,
        reviews_unchanged=unchanged.reviews,
        worse=worse if at_worse is not None else None,
        passes_worse=None if at_worse is None else at_worse.passes,
        reviews_worse=None if at_worse is None else at_worse.reviews,
        perfect_from=perfect,
    )
