"""Leaderboards: more than two runs side by side, on the questions that all of them have.

A run that lacks a hard question would otherwise lead by it. Differences are paired by question and
adjusted for how many there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.gates.drops import conversations_of, incomparable, sum_by_conversation
from ragauge.metrics.columns import Floats, Ints
from ragauge.metrics.metric import SHARES, Better, Metric
from ragauge.model.scores import PerQuestion, Scores
from ragauge.model.scores_document import rounded, rounded_pair
from ragauge.scoring.estimates import PopulationSums, delta_estimate, level_estimate
from ragauge.stats import exact_sums
from ragauge.stats.intervals import Interval, quantile
from ragauge.stats.paired import permutation, quantile_permutation
from ragauge.stats.significance import holm

SCHEMA = "ragauge.leaderboard/1"
LEVEL = 0.05
Reference = Literal["first", "best"]


class LeaderboardCell(Struct, frozen=True, kw_only=True):
    """One metric of one run; the difference is to the run that the others are compared with.

    `p` is two-sided, and adjusted by Holm over all differences of the metric that were looked at.
    """

    value: float
    interval: Interval | None = None
    delta: float | None = None
    delta_interval: tuple[float, float] | None = None
    p: float | None = None


class LeaderboardRow(Struct, frozen=True, kw_only=True):
    """One metric in all runs, over the questions where all have a value; `reference` is a place.

    `cells` are in the order of the runs; without any, `reason` says why.
    """

    metric: str
    better: Better
    n: int = 0
    reference: int = 0
    cells: tuple[LeaderboardCell, ...] = ()
    reason: str | None = None

    @property
    def ranking(self) -> list[int]:
        """The places of the runs, the best first; of equal ones the first that was named."""
        sign = -1.0 if self.better == "higher" else 1.0
        return sorted(range(len(self.cells)), key=lambda place: sign * self.cells[place].value)


class Leaderboard(Struct, frozen=True, kw_only=True):
    """Some runs by their names, metric by metric; `counted` questions are unchanged in all."""

    runs: tuple[str, ...]
    rows: tuple[LeaderboardRow, ...]
    counted: int
    excluded: Mapping[str, int]
    against: Reference

    def document(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "schema": SCHEMA,
            "runs": list(self.runs),
            "questions": self.counted,
            "left_out": dict(self.excluded),
            "against": self.against,
            "metrics": [
                {
                    "metric": row.metric,
                    "better": row.better,
                    "n": row.n,
                    "reason": row.reason,
                    "reference": self.runs[row.reference] if row.cells else None,
                    "ranking": [self.runs[place] for place in row.ranking],
                    "values": [_entry(name, cell) for name, cell in self._named(row)],
                }
                for row in self.rows
            ],
        }

    def _named(self, row: LeaderboardRow) -> list[tuple[str, LeaderboardCell]]:
        return list(zip(self.runs, row.cells, strict=False))


def _entry(name: str, cell: LeaderboardCell) -> dict[str, Any]:
    return {
        "run": name,
        "value": rounded(cell.value),
        "interval": rounded_pair(cell.interval),
        "delta": rounded(cell.delta),
        "delta_interval": rounded_pair(cell.delta_interval),
        "p_holm": None if cell.p is None else float(f"{cell.p:.4g}"),
    }


def leaderboard(
    runs: Mapping[str, Scores], metrics: Sequence[str], *, against: Reference = "first"
) -> Leaderboard:
    """Set runs side by side; `metrics` are ids with their cut-offs.

    Against the first run each other one is a question of its own, and Holm's correction is over
    these. The best run is known only from the same numbers, so the correction is over all pairs.
    """
    names, scores = tuple(runs), [_any_chunks(one) for one in runs.values()]
    values = [_values(name, one) for name, one in zip(names, scores, strict=True)]
    places, excluded = _common(values)
    if not len(places[0]):
        raise RagaugeError.of(
            "nothing-in-common",
            f"the {len(names)} runs have no unchanged question in common",
            hint="compare runs of one gold set: `ragauge runs list` shows their gold hashes",
        )
    rows = tuple(_row(metric, scores, values, places, against) for metric in metrics)
    return Leaderboard(
        runs=names, rows=rows, counted=len(places[0]), excluded=excluded, against=against
    )


def _values(name: str, scores: Scores) -> PerQuestion:
    if scores.per_question is None:
        raise RagaugeError.of(
            "incomparable",
            f"the scores of {name} have no values of questions",
            hint="save them with `ragauge score --full -o FILE.json`, or --save-run",
        )
    return scores.per_question


def _common(values: Sequence[PerQuestion]) -> tuple[list[Ints], dict[str, int]]:
    """The places of the questions that all runs have unchanged, in one order."""
    tables = []
    for one in values:
        hashes = one.hashes or ("",) * len(one.qids)
        keys = zip(one.qids, one.turns, strict=True)
        tables.append({key: (place, hashes[place]) for place, key in enumerate(keys)})
    in_all = set.intersection(*(set(table) for table in tables))
    in_any = set.union(*(set(table) for table in tables))
    order = sorted(in_all, key=lambda key: (key[0], -1 if key[1] is None else key[1]))
    unchanged = [key for key in order if len({table[key][1] for table in tables} - {""}) <= 1]
    excluded = {
        "not-in-all": len(in_any) - len(in_all),
        "gold-changed": len(order) - len(unchanged),
    }
    places = [np.array([table[key][0] for key in unchanged], np.int64) for table in tables]
    return places, {reason: n for reason, n in excluded.items() if n}


def _row(
    name: str,
    scores: Sequence[Scores],
    values: Sequence[PerQuestion],
    places: Sequence[Ints],
    against: Reference,
) -> LeaderboardRow:
    metric = registry.metrics()[name.partition("@")[0]]
    for other in scores[1:]:
        trouble = incomparable(name, other, scores[0])
        if trouble is not None:
            reason = trouble.replace("the baseline", "the first run").replace(
                "these scores", "another run"
            )
            return LeaderboardRow(metric=name, better=metric.better, reason=reason)
    columns = [one.of(name)[at] for one, at in zip(values, places, strict=True)]
    inside = ~np.isnan(columns).any(axis=0)
    if not inside.any():
        reason = "no question has a value in all runs"
        return LeaderboardRow(metric=name, better=metric.better, reason=reason)
    columns = [column[inside] for column in columns]
    conversations = conversations_of(values[0], places[0][inside])
    groups = conversations if conversations.max() + 1 < len(conversations) else None
    share = SHARES.get(metric.aggregate)
    means = [_level(column, share) for column in columns]
    sign = -1.0 if metric.better == "higher" else 1.0
    reference = 0
    if against == "best":
        reference = min(range(len(means)), key=lambda place: sign * means[place])
    pairs = [
        pair
        for pair in itertools.combinations(range(len(columns)), 2)
        if against == "best" or reference in pair
    ]
    ps = [_p(columns[a], columns[b], share, conversations, groups) for a, b in pairs]
    adjusted = dict(zip(pairs, holm(ps), strict=True))
    cells = []
    for place, (column, mean) in enumerate(zip(columns, means, strict=True)):
        cell = LeaderboardCell(value=mean, interval=_interval(metric, column, groups))
        if place != reference:
            looks = len(pairs)
            estimate = delta_estimate(metric, columns[reference], column, groups, looks=looks)
            cell = replace(
                cell,
                delta=mean - means[reference],
                delta_interval=estimate.closed,
                p=adjusted[min(place, reference), max(place, reference)],
            )
        cells.append(cell)
    return LeaderboardRow(
        metric=name,
        better=metric.better,
        n=len(columns[0]),
        reference=reference,
        cells=tuple(cells),
    )


def _level(column: Floats, share: float | None) -> float:
    value = exact_sums.mean(column) if share is None else quantile(column, share)
    assert value is not None
    return value


def _interval(metric: Metric, column: Floats, groups: Ints | None) -> Interval | None:
    ones = np.ones(len(column))
    population = PopulationSums(column, ones, ones.astype(np.int64), groups, by_row=False)
    return level_estimate(metric, population).interval


def _p(
    a: Floats, b: Floats, share: float | None, conversations: Ints, groups: Ints | None
) -> float | None:
    if share is not None:
        return quantile_permutation(a, b, share, cluster=groups)
    (p,) = permutation(sum_by_conversation(b - a, conversations))
    return p


def _any_chunks(scores: Scores) -> Scores:
    """Scores whose list of chunks does not matter: each run may have one of its own."""
    return replace(scores, options=replace(scores.options, chunks=None))
