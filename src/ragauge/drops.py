"""Drops: how much worse a run is than a baseline, question by question."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ragauge import registry
from ragauge.model.aggregate import PerQuestion, Scores
from ragauge.model.columns import Floats, Ints, totals
from ragauge.model.metric import SHARES, Better
from ragauge.stats import exact
from ragauge.stats.intervals import quantile
from ragauge.stats.paired import paired_bootstrap, permutation
from ragauge.wording import count


class Drop(Struct, frozen=True, kw_only=True):
    """The change to the worse over the questions that both runs have; None where it is undefined.

    `reason` says why it is undefined, or what the two values are; `code` is of an undefined one.
    """

    value: float | None
    n: int
    interval: tuple[float, float] | None
    reason: str
    code: str | None = None


def drop_of(metric: str, better: Better, scores: Scores, baseline: Scores | None) -> Drop:
    """Compare one metric of a run with the same metric of a baseline, pairwise."""
    if baseline is None:
        return _undefined("no-baseline", "there is no baseline: give --baseline SCORES")
    trouble = incomparable(metric, scores, baseline)
    if trouble is not None:
        return _undefined("incomparable", trouble)
    assert scores.per_question is not None and baseline.per_question is not None
    mine, theirs, changed = common(scores.per_question, baseline.per_question)
    now, before = scores.per_question.of(metric)[mine], baseline.per_question.of(metric)[theirs]
    both = ~np.isnan(now) & ~np.isnan(before)
    now, before = now[both], before[both]
    n = len(now)
    if n == 0:
        return _undefined("incomparable", f"no question has {metric} in both runs")
    share = SHARES.get(registry.metrics()[metric.partition("@")[0]].aggregate)
    new, old = _value(now, share), _value(before, share)
    sign = 1.0 if better == "lower" else -1.0
    told = f"{old:.4f} in the baseline, {new:.4f} now, on {count(n, 'common question')}"
    interval = None
    if share is None:
        talks = _conversations(scores.per_question, mine[both])
        counts, a, b = (together(column, talks) for column in (np.ones(n), before, now))
        (found,) = paired_bootstrap(a, counts, b, counts)
        (p,) = permutation(b - a)
        if found is not None and len(counts) > 1:
            interval = (found[0], found[1]) if sign > 0 else (-found[1] + 0.0, -found[0] + 0.0)
            told += f": {interval[0]:+.4f} to {interval[1]:+.4f} worse (95 %)"
        if p is not None:
            told += f", p\u00a0=\u00a0{p:.4f}"
    left = _defined(scores.per_question, metric) + _defined(baseline.per_question, metric) - 2 * n
    if left:
        told += f"; without a partner: {count(left, 'value')}"
    if changed:
        told += f"; left out, as their gold changed: {count(changed, 'question')}"
    if scores.embedders != baseline.embedders and scores.embedders and baseline.embedders:
        told += "; the embedders of the two runs differ"
    return Drop(value=sign * (new - old) + 0.0, n=n, interval=interval, reason=told)


def _defined(values: PerQuestion, metric: str) -> int:
    return int(np.count_nonzero(~np.isnan(values.of(metric))))


def _conversations(values: PerQuestion, places: Ints) -> Ints:
    """The conversation of each question: turns of one id are drawn and flipped together."""
    names = np.array([values.qids[place] for place in places.tolist()])
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def together(column: Floats, talks: Ints) -> Floats:
    """The sum of a column over each conversation, as a column."""
    return totals(talks, column, int(talks.max()) + 1)[:, None]


def _value(values: Floats, share: float | None) -> float:
    found = exact.mean(values) if share is None else quantile(values, share)
    assert found is not None
    return found


def _undefined(code: str, reason: str) -> Drop:
    return Drop(value=None, n=0, interval=None, reason=reason, code=code)


def incomparable(metric: str, scores: Scores, baseline: Scores) -> str | None:
    """Why a metric of two runs cannot be compared; None if it can."""
    for run, name in ((scores, "these scores"), (baseline, "the baseline")):
        if run.per_question is None:
            return f"no values of questions in {name}: save them with --full"
        if metric not in run.per_question.metrics:
            return f"{metric} is not in {name}, or is not made of values of questions"
    versions = scores.metrics[metric].version, baseline.metrics[metric].version
    if versions[0] != versions[1]:
        return f"{metric} is version {versions[0]} here and {versions[1]} in the baseline"
    if metric.startswith("semantic.") and (
        scores.embedders != baseline.embedders or len(scores.embedders) > 1
    ):
        return "ΔS of different embedders is never compared"
    family, base = metric.partition(".")[0], metric.partition("@")[0]
    differing = [
        name
        for name in (*_ALWAYS, *_MATTERING.get(base, _MATTERING.get(family, ())))
        if getattr(scores.options, name) != getattr(baseline.options, name)
    ]
    if differing:
        return f"the two runs were scored with a different {' and '.join(differing)}"
    return None


_ALWAYS = ("missing", "chunks", "refusal_patterns")
_MATTERING = {
    "retrieval": ("relevance_level", "overlap"),
    "answer": ("relevance_level",),
    "citation": ("relevance_level",),
    "stability": ("relevance_level",),
    "citation.accuracy": ("citation_mode", "citation_window", "relevance_level"),
    "answer.groundedness": ("ignore_case",),
}
"""The options that change a metric."""


def common(one: PerQuestion, other: PerQuestion) -> tuple[Ints, Ints, int]:
    """The places of the questions that both have, ordered by what they are.

    Questions whose gold items say different things are left out and counted.
    """
    theirs = {key: place for place, key in enumerate(zip(other.qids, other.turns, strict=True))}
    shared = sorted(
        (qid, -1 if turn is None else turn, place, theirs[qid, turn])
        for place, (qid, turn) in enumerate(zip(one.qids, one.turns, strict=True))
        if (qid, turn) in theirs
    )
    kept = shared
    if one.hashes and other.hashes:
        kept = [each for each in shared if one.hashes[each[2]] == other.hashes[each[3]]]
    return (
        np.array([each[2] for each in kept], np.int64),
        np.array([each[3] for each in kept], np.int64),
        len(shared) - len(kept),
    )
