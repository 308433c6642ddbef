"""Damage: the questions that made a gate fail, by their share of what is wrong.

Of a drop, what is wrong with a question is how much worse its value is than in the baseline; of a
level, how far its value is from the best one there is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from ragauge import registry
from ragauge.gates.drops import paired_values
from ragauge.metrics.columns import Floats, Ints
from ragauge.model.scores import PerQuestion, Scores
from ragauge.model.unit_ranks import UnitFindings
from ragauge.model.verdict import DamagedQuestion, GateResult
from ragauge.stats import exact_sums


def with_damage(result: GateResult, scores: Scores, baseline: Scores | None) -> GateResult:
    """The result of a gate; of one that failed, with the questions that made it fail.

    Values of questions are not always there: a scores file without them has no questions to name.
    """
    values, metric = scores.per_question, _measured_by(result, scores)
    if result.gate.moved_from is not None and result.damage:
        return result  # of other scores than these
    if result.status != "fail" or values is None or metric is None:
        return result
    part = result.gate.part
    if part is not None and values.in_slice(part) is None:
        return result  # nobody knows which questions are in it
    if not result.gate.is_drop:
        return replace(result, damage=_below_best(result, metric, values))
    if baseline is None or baseline.per_question is None:
        return result
    if metric not in baseline.per_question.metrics:
        return result
    damage = _lost_since(result, metric, scores, baseline)
    if scores.ends is not None and baseline.ends is not None:
        # Where the evidence stands is unknown of some: what they lost at the least.
        known = {(one.query_id, one.turn) for one in damage}
        damage = tuple(
            one if (one.query_id, one.turn) in known else replace(one, lost=())
            for one in _lost_since(result, metric, scores.ends.high, baseline.ends.high)
        )
    return replace(result, damage=damage)


def _measured_by(result: GateResult, scores: Scores) -> str | None:
    """The metric that a gate was judged by, if questions have values of it."""
    gate, values = result.gate, scores.per_question
    name = gate.instead if gate.instead is not None and not scores.cites else gate.metric
    return name if values is not None and name in values.metrics else None


def _lost_since(
    result: GateResult, metric: str, scores: Scores, baseline: Scores
) -> tuple[DamagedQuestion, ...]:
    pairs = paired_values(metric, scores, baseline)
    now, before = scores.per_question, baseline.per_question
    assert now is not None and before is not None
    inside = None if result.gate.part is None else now.in_slice(result.gate.part)
    if inside is not None:
        pairs = pairs.only(inside[pairs.mine])
    sign = 1.0 if result.gate.better == "lower" else -1.0
    lost = _lost_units(metric, (before, pairs.theirs), (now, pairs.mine))
    return _by_damage(
        now, pairs.mine, sign * (pairs.now - pairs.before), pairs.now, pairs.before, lost
    )


def _below_best(
    result: GateResult, metric: str, values: PerQuestion
) -> tuple[DamagedQuestion, ...]:
    column = values.of(metric)
    places = np.flatnonzero(~np.isnan(column))
    inside = None if result.gate.part is None else values.in_slice(result.gate.part)
    if inside is not None:
        places = places[inside[places]]
    now = column[places]
    definition = registry.metrics()[metric.partition("@")[0]]
    # What has no ends that matter, such as milliseconds, is measured by the threshold.
    low, high = definition.range if definition.bounded else (result.gate.threshold,) * 2
    damage = high - now if result.gate.better == "higher" else now - low
    return _by_damage(values, places, damage, now, None, [()] * len(places))


def _by_damage(
    values: PerQuestion,
    places: Ints,
    damage: Floats,
    now: Floats,
    before: Floats | None,
    lost: Sequence[tuple[str, ...]],
) -> tuple[DamagedQuestion, ...]:
    """Those with any damage, the worst first; equal ones in the order of their ids."""
    worse = np.flatnonzero(damage > 1e-12)
    total = exact_sums.mean(damage[worse])
    questions = [
        DamagedQuestion(
            query_id=values.qids[places[i]],
            turn=values.turns[places[i]],
            value=float(now[i]),
            before=None if before is None else float(before[i]),
            damage=float(damage[i]),
            share=float(damage[i]) / (total * len(worse)) if total else 0.0,
            lost=lost[i],
        )
        for i in worse.tolist()
    ]
    return tuple(sorted(questions, key=lambda one: (-one.damage, one.query_id, one.turn or 0)))


def _lost_units(
    metric: str, before: tuple[PerQuestion, Ints], now: tuple[PerQuestion, Ints]
) -> list[tuple[str, ...]]:
    """Of each question the pieces that are found within the metric's cut-off in fewer slots."""
    (values_a, places_a), (values_b, places_b) = before, now
    one, other = values_a.units, values_b.units
    family, _, k = metric.partition("@")
    cut = int(k) if k else 10
    if one is None or other is None or not family.startswith("retrieval."):
        return [()] * len(places_b)
    all_a, all_b = one.findings(), other.findings()
    lost = []
    for place_a, place_b in zip(places_a.tolist(), places_b.tolist(), strict=True):
        names_a = one.names[place_a] if one.names else ()
        names_b = other.names[place_b] if other.names else ()
        lost.append(_lost_names(all_a[place_a], all_b[place_b], names_a, names_b, cut))
    return lost


def _lost_names(
    before: UnitFindings,
    now: UnitFindings,
    names_a: Sequence[str],
    names_b: Sequence[str],
    k: int,
) -> tuple[str, ...]:
    """The pieces that were found in a larger share of slots before; told apart by their names."""
    if len(names_a) != len(before.ranks) or len(names_b) != len(now.ranks):
        return ()
    shares = dict(zip(names_b, now.within(k), strict=True))
    slots = max(1, before.slots), max(1, now.slots)
    return tuple(
        name
        for name, count in zip(names_a, before.within(k), strict=True)
        if name in shares and shares[name] * slots[0] < count * slots[1]
    )
