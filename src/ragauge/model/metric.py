"""Metrics and populations: small frozen values from which everything else is derived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.model.batch import Batch, Bools

Values = NDArray[np.float64] | Bools
Better = Literal["higher", "lower"]


class Requirement(Struct, frozen=True):
    """One condition of a population, and the reason given for a record that fails it."""

    reason: str
    holds: Callable[[Batch], Bools]


class Population(Struct, frozen=True):
    """The named set of records that a metric is a mean over.

    A record is excluded for the first requirement that it fails.
    """

    name: str
    meaning: str
    requires: tuple[Requirement, ...]

    def also(self, name: str, meaning: str, *requires: Requirement) -> Population:
        """A narrower population."""
        return Population(name, meaning, (*self.requires, *requires))

    def members(self, batch: Batch) -> tuple[Bools, dict[str, int]]:
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
    """A worked example: rows as a file has them, and the arithmetic. A test runs every one."""

    gold: dict[str, Any]
    trace: dict[str, Any]
    value: float | None
    arithmetic: str


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
    scored: int
    answered: int
    refused: int
    answerable: int
    unanswerable: int


class Metric(Struct, frozen=True, kw_only=True):
    """One id, one formula, for ever; a changed formula gets a new version.

    `value` gives a number for each record of a batch; only those in the population are used.
    `binary` says that it is 0 or 1. A metric with `share` instead is one count of the run over
    another: it speaks of rows that never became records.
    """

    id: str
    title: str
    formula: str
    over: Population
    value: Callable[[Batch, int], Values] | None = None
    share: Callable[[Tally], tuple[int, int]] | None = None
    better: Better
    source: str
    example: Example
    at_k: bool = False
    binary: bool = True
    range: tuple[float, float] = (0.0, 1.0)
    version: int = 1
    elsewhere: str = ""

    @property
    def aggregate(self) -> Literal["mean", "share"]:
        """How values become one number: the mean over questions, or a share of the whole run."""
        return "mean" if self.share is None else "share"


class Selected(Struct, frozen=True):
    """A metric at a cut-off, as a run reports it."""

    metric: Metric
    k: int | None

    @property
    def id(self) -> str:
        """The reported id: `family.name` or `family.name@k`."""
        return self.metric.id if self.k is None else f"{self.metric.id}@{self.k}"
