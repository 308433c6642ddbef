"""Metrics and populations: small frozen values from which everything else is derived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.metrics.batch import Batch
from ragauge.metrics.columns import Bools
from ragauge.metrics.questions import Questions
from ragauge.stats.exact_sums import UNIT

Values = NDArray[np.float64] | Bools
Better = Literal["higher", "lower"]
Quantile = Literal["median", "p90", "p95"]
Aggregate = Literal["mean", "ratio", "share", "sum"] | Quantile
SHARES: dict[str, float] = {"median": 0.5, "p90": 0.9, "p95": 0.95}
"""The quantiles by name."""
_WIDEST = 10.0


class Requirement(Struct, frozen=True):
    """One condition of a population, and the reason given for a record that fails it.

    Populations of records are asked of a Batch, those of whole questions of a Questions.
    """

    reason: str
    holds: Callable[[Any], Bools]


class Population(Struct, frozen=True):
    """The named set of records (or questions) that a metric is over.

    A record is excluded for the first requirement that it fails.
    """

    name: str
    meaning: str
    requires: tuple[Requirement, ...]

    def also(self, name: str, meaning: str, *requires: Requirement) -> Population:
        """A narrower population."""
        return Population(name, meaning, (*self.requires, *requires))

    def members(self, batch: Batch | Questions) -> tuple[Bools, dict[str, int]]:
        """The members in a batch, and how many records each reason excludes."""
        inside = np.ones(batch.size, np.bool_)
        excluded: dict[str, int] = {}
        for requirement in self.requires:
            holds = requirement.holds(batch)
            out = int(np.count_nonzero(inside & ~holds))
            if out:
                excluded[requirement.reason] = excluded.get(requirement.reason, 0) + out
                inside &= holds
        return inside, excluded


class Example(Struct, frozen=True):
    """A worked example: rows as a file has them, and the arithmetic. A test runs every one.

    `trace` is one row, or several for what only several slots can show.
    """

    gold: dict[str, Any]
    trace: dict[str, Any] | list[dict[str, Any]]
    value: float | None
    arithmetic: str


def answer_row(
    claim: str, citations: list[str], *, qid: str = "A1", **fields: Any
) -> dict[str, Any]:
    """The trace row of an example: some fields, and an answer with its citations."""
    return {"qid": qid, **fields, "answer_json": {"claim": claim, "citations": citations}}


class Tally(Struct, frozen=True, kw_only=True):
    """What was counted while a run was read; the last four are of the scored records."""

    gold: int
    gold_duplicates: int
    gold_skipped: int
    traces: int
    trace_skipped: int
    unknown: int
    duplicates: int
    missing: int
    missing_slots: int
    errored: int
    repeated_ids: int
    disordered: int = 0
    scored: int
    answered: int
    refused: int
    answerable: int
    unanswerable: int


class Metric(Struct, frozen=True, kw_only=True):
    """One id, one formula, for ever; a changed formula gets a new version.

    Exactly one of four functions says what is measured: `value` gives a number for each record of
    a batch, `ratio` two, whose sums are divided in the end, `of_question` one for each question
    seen over all its slots, and `share` one count of the run over another, for rows that never
    became records. Only what is in the population is used.

    `binary`: values are 0 or 1. `quantile`: questions are put together by that quantile, not by
    their mean; `sums`: the values of all records are added up. `f1`: the ratio is an F1, twice the
    true positives over these and all that is positive.
    `of_records`: the quantile is over records, not over questions. `only_named`: `*` does not mean
    it, only its id or its family does.
    `at_k`: the metric has a cut-off; `may_cut`: it may be given one, 0 is all hits.
    `unit` is the number of steps in 1 that sums are exact to. Where a value is nan although the
    record is in the population, the record is excluded, and `undefined` is the reason.

    Some of what a batch has is dear, and only there where a chosen metric says that it reads it:
    `reads_bytes`, the overlap of hits and evidence in bytes (`span_covered`, `span_union`);
    `reads_other_rows`, whether cited ids are hits of any other row (`Fact.RESOLVED`);
    `reads_slots`, what comparing the slots of a question gives, and with `reads_claims` also the
    distance of their claims.
    """

    id: str
    title: str
    formula: str
    over: Population
    value: Callable[[Batch, int], Values] | None = None
    ratio: Callable[[Batch, int], tuple[Values, Values]] | None = None
    of_question: Callable[[Questions], Values] | None = None
    share: Callable[[Tally], tuple[int, int]] | None = None
    better: Better
    source: str
    example: Example
    at_k: bool = False
    may_cut: bool = False
    binary: bool = True
    quantile: Quantile | None = None
    sums: bool = False
    range: tuple[float, float] = (0.0, 1.0)
    unit: int = UNIT
    undefined: str | None = None
    version: int = 1
    elsewhere: str = ""
    reads_bytes: bool = False
    reads_other_rows: bool = False
    reads_slots: bool = False
    reads_claims: bool = False
    f1: bool = False
    of_records: bool = False
    only_named: bool = False

    @property
    def worst(self) -> float | None:
        """The value of what was not answered; None where no value means that.

        Distances and times have none: the end of their range is only a bound.
        """
        worst = self.range[0] if self.better == "higher" else self.range[1]
        if not np.isfinite(worst) or (self.better == "lower" and worst != 1.0):
            return None
        return worst

    @property
    def extremes(self) -> tuple[float, float]:
        """The worst and the best end of its range."""
        low, high = self.range
        return (low, high) if self.better == "higher" else (high, low)

    @property
    def bounded(self) -> bool:
        """Whether values have two ends that matter; else the range only keeps nonsense out."""
        return self.range[1] - self.range[0] <= _WIDEST

    @property
    def aggregate(self) -> Aggregate:
        """How values become one number."""
        if self.share is not None:
            return "share"
        if self.ratio is not None:
            return "ratio"
        if self.sums:
            return "sum"
        return self.quantile or "mean"


class Selected(Struct, frozen=True):
    """A metric at a cut-off, as a run reports it."""

    metric: Metric
    k: int | None

    @property
    def id(self) -> str:
        """The reported id: `family.name` or `family.name@k`."""
        return self.metric.id if self.k is None else f"{self.metric.id}@{self.k}"
