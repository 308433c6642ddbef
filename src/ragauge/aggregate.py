"""Aggregation: batches in any order and size become one number a metric, always the same bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ragauge.labels import label_records
from ragauge.model.aggregate import MetricResult
from ragauge.model.batch import Batch, Bools, GoldColumns
from ragauge.model.facts import Fact
from ragauge.model.labels import LABELS
from ragauge.model.metric import Metric, Population, Selected, Tally
from ragauge.stats import exact
from ragauge.stats.intervals import WILSON_BELOW, bootstrap, wilson

RULES = {"token": Fact.BY_TOKEN, "refused flag": Fact.BY_FLAG, "grounded flag": Fact.BY_GROUNDED,
         "pattern": Fact.BY_PATTERN}  # fmt: skip
"""Which rule decided that an answer is a refusal."""


class Totals:
    """Running sums per question: whole numbers, so neither order nor batch size can matter."""

    def __init__(
        self, gold: GoldColumns, selected: Sequence[Selected], correct: Metric, *, keep_rows: bool
    ) -> None:
        questions = len(gold.answerable)
        self.gold = gold
        self.selected = [each for each in selected if each.metric.value is not None]
        self.shares = [each for each in selected if each.metric.share is not None]
        self.correct = correct
        self.sums = np.zeros((len(self.selected), questions), np.int64)
        populations = dict.fromkeys(each.metric.over for each in self.selected)
        self.sizes = {over: np.zeros(questions, np.int64) for over in populations}
        self.excluded: dict[Population, Counter[str]] = {over: Counter() for over in populations}
        self.labels = np.zeros((len(LABELS), questions), np.int64)
        # The worst label's rank and the earliest position with it, in one number to maximise.
        self.worst = np.full(questions, -1, np.int64)
        self.refusals: Counter[str] = Counter()
        self.answered = self.refused = self.answerable = self.unanswerable = 0
        self.errored = self.repeated = 0
        self.keep_rows = keep_rows
        self.rows: list[tuple[NDArray[np.int64], Batch, NDArray[np.uint8]]] = []

    def add(self, batch: Batch, position: NDArray[np.int64]) -> None:
        """Add the records of a batch."""
        questions = len(self.worst)
        members: dict[Population, Bools] = {}
        for over in self.sizes:
            inside, excluded = over.members(batch)
            members[over] = inside
            self.excluded[over].update(excluded)
            self.sizes[over] += np.bincount(batch.question[inside], minlength=questions)
        for i, each in enumerate(self.selected):
            metric = each.metric
            assert metric.value is not None
            values = metric.value(batch, each.k or 0)
            inside = members[metric.over]
            if metric.binary:
                ones = batch.question[inside & np.asarray(values, np.bool_)]
                self.sums[i] += np.bincount(ones, minlength=questions)
            else:
                units = exact.to_units(values[inside].astype(np.float64))
                np.add.at(self.sums[i], batch.question[inside], units)
        assert self.correct.value is not None
        correct = np.asarray(self.correct.value(batch, 0), np.bool_)
        grounded = self.correct.id == "answer.grounded_precision"
        labels = label_records(batch, correct, grounded=grounded)
        cells = labels.astype(np.int64) * questions + batch.question
        self.labels += np.bincount(cells, minlength=self.labels.size).reshape(self.labels.shape)
        # Positions are below 2**56; the earliest of the worst wins.
        score = (labels.astype(np.int64) << 56) | ((1 << 56) - 1 - position)
        np.maximum.at(self.worst, batch.question, score)
        self.answered += int(np.count_nonzero(batch.answered))
        self.refused += int(np.count_nonzero(batch.refused))
        self.answerable += int(np.count_nonzero(batch.answerable))
        self.unanswerable += int(np.count_nonzero(batch.unanswerable))
        self.errored += int(np.count_nonzero(batch.with_error))
        self.repeated += int(np.count_nonzero(batch.has(Fact.REPEATED)))
        for name, fact in RULES.items():
            decided = int(np.count_nonzero(batch.refused & batch.has(fact)))
            if decided:
                self.refusals[name] += decided
        if self.keep_rows:
            self.rows.append((position, batch, labels))

    @property
    def seen(self) -> Bools:
        """Which questions have a record."""
        return self.worst >= 0

    def worst_labels(self) -> list[tuple[str, int] | None]:
        """The worst label of each question and the position of the record that has it."""
        return [
            None if score < 0 else (LABELS[score >> 56], (1 << 56) - 1 - (score & ((1 << 56) - 1)))
            for score in self.worst.tolist()
        ]

    def results(
        self, order: NDArray[np.int64], tally: Tally, *, unit: str, intervals: bool
    ) -> dict[str, MetricResult]:
        """One result a metric. `order` lists the questions by id, so file order cannot matter."""
        tops, bottoms = self._ratios(order, unit)
        ranges = self._intervals(tops, bottoms, unit) if intervals else [None] * len(tops)
        results: dict[str, MetricResult] = {}
        for i, each in enumerate(self.selected):
            sizes, excluded = self.sizes[each.metric.over], self.excluded[each.metric.over]
            n = int(np.count_nonzero(sizes))
            records = int(sizes.sum())
            if unit == "row":
                scale = 1 if each.metric.binary else exact.UNIT
                value = int(self.sums[i].sum()) / (scale * records) if records else None
            else:
                value = exact.mean(tops[i][bottoms[i] > 0])
            results[each.id] = MetricResult(
                value=value,
                n=n,
                records=records,
                excluded=dict(sorted(excluded.items())),
                interval=ranges[i],
                version=each.metric.version,
                better=each.metric.better,
                reason=None if n else _why_empty(excluded),
            )
        for each in self.shares:
            assert each.metric.share is not None
            top, bottom = each.metric.share(tally)
            results[each.id] = MetricResult(
                value=top / bottom if bottom else None, n=bottom, records=bottom, excluded={},
                interval=None, version=each.metric.version, better=each.metric.better,
                reason=None if bottom else "no-traces",
            )  # fmt: skip
        return results

    def _ratios(
        self, order: NDArray[np.int64], unit: str
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Each question's share in numerator and denominator of each metric.

        With the question as the unit these are its mean and 1; with the row, its sum and count.
        """
        sums = self.sums[:, order].astype(np.float64)
        counts = np.array(
            [self.sizes[each.metric.over][order] for each in self.selected], np.float64
        ).reshape(sums.shape)
        scale = np.array([1.0 if each.metric.binary else exact.UNIT for each in self.selected])
        if unit == "row":
            return sums / scale[:, None], counts
        inside = counts > 0
        tops = np.zeros_like(sums)
        np.divide(sums, counts * scale[:, None], out=tops, where=inside)
        return tops, inside.astype(np.float64)

    def _intervals(
        self, tops: NDArray[np.float64], bottoms: NDArray[np.float64], unit: str
    ) -> list[tuple[float, float] | None]:
        ranges: list[tuple[float, float] | None] = [None] * len(tops)
        large: list[int] = []
        for i, each in enumerate(self.selected):
            inside = bottoms[i] > 0
            n = int(np.count_nonzero(inside))
            if n == 0:
                continue
            if each.metric.binary and n < WILSON_BELOW:
                shares = tops[i][inside] / bottoms[i][inside]
                value = exact.mean(shares) if unit == "question" else None
                rate = float(tops[i].sum() / bottoms[i].sum()) if value is None else value
                ranges[i] = wilson(rate * n, n)
            else:
                large.append(i)
        if large:
            found = bootstrap(tops[large].T, bottoms[large].T)
            for i, interval in zip(large, found, strict=True):
                ranges[i] = interval
        return ranges


def _why_empty(excluded: Counter[str]) -> str:
    if not excluded:
        return "no-records"
    return min(excluded, key=lambda reason: (-excluded[reason], reason))
