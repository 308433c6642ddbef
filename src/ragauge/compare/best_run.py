"""The best of several runs: for each gate on a drop the one beside which a run looks worst."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.compare.common_gold import StoredRun
from ragauge.gates.drops import incomparable, paired_values
from ragauge.metrics.metric import SHARES
from ragauge.model.scores import Scores
from ragauge.model.verdict import Gate, GateKey
from ragauge.stats import exact_sums
from ragauge.stats.intervals import quantile
from ragauge.store.runs import run_scores


class BestRun(Struct, frozen=True):
    """The best run for a gate, and among how many that could be compared it was chosen."""

    run: StoredRun
    chosen_from: int


def best_runs(
    runs: Sequence[StoredRun], scores: Scores, gates: Iterable[Gate]
) -> dict[GateKey, BestRun]:
    """For each gate the run that was better than these scores by the most, on common questions.

    Of a gate on a slice only the questions in it count: the best run of all questions need not be
    the best one of a slice. The values are those that the runs were stored with. A run that has
    another version of the metric, or of whose questions less than nine in ten are left, is not
    looked at: nothing could be judged against it. Of equal ones the newest is taken; `runs` are in
    the order of their times. A gate for which no run is left is missing.
    """
    scores = _any_chunks(scores)
    stored = [(run, _any_chunks(run_scores(run.store, run.record))) for run in runs]
    best: dict[GateKey, BestRun] = {}
    for gate in gates:
        drops = [(_drop(gate, scores, before), run) for run, before in stored]
        comparable = [(drop, run) for drop, run in drops if drop is not None]
        if comparable:
            largest = max(drop for drop, _ in comparable)
            newest = [run for drop, run in comparable if drop == largest][-1]
            best[gate.key] = BestRun(newest, len(comparable))
    return best


def _drop(gate: Gate, scores: Scores, before: Scores) -> float | None:
    """By how much the metric was better before; None if that cannot be told."""
    metric = gate.metric
    if scores.per_question is None or incomparable(metric, scores, before) is not None:
        return None
    pairs = paired_values(metric, scores, before)
    assert before.per_question is not None
    valued = ~np.isnan(before.per_question.of(metric))
    if gate.part is not None:
        inside = scores.per_question.in_slice(gate.part)
        inside_before = before.per_question.in_slice(gate.part)
        if inside is None:
            return None
        pairs = pairs.only(inside[pairs.mine])
        if inside_before is not None:
            valued &= inside_before
    if 10 * len(pairs.now) < 9 * np.count_nonzero(valued) or not len(pairs.now):
        return None
    definition = registry.metrics()[metric.partition("@")[0]]
    share = SHARES.get(definition.aggregate)
    values = [
        exact_sums.mean(side) if share is None else quantile(side, share)
        for side in (pairs.before, pairs.now)
    ]
    assert values[0] is not None and values[1] is not None
    sign = 1.0 if definition.better == "higher" else -1.0
    return sign * (values[0] - values[1])


def _any_chunks(scores: Scores) -> Scores:
    """Scores whose list of chunks does not matter: each run may have one of its own."""
    return replace(scores, options=replace(scores.options, chunks=None))
