"""Rules: what a finding needs to be claimed, and what a rule can ask of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from ragauge.metrics.columns import Bools, Floats, Ints
from ragauge.model.diagnosis import Number
from ragauge.model.scores import Scores
from ragauge.stats import exact_sums

SLACK = 1e-9
"""A difference of two means may be off by its last bit, and 1.0 - 0.8 is less than 0.2."""


class RuleHit(Struct, frozen=True, kw_only=True):
    """What a rule claims: its questions, the worst first, the numbers, and what to do next."""

    places: Ints
    numbers: tuple[Number, ...]
    step: str


class Symptoms:
    """The scores of a run as rules ask them; `types` says which questions have which evidence."""

    def __init__(self, scores: Scores, types: Mapping[str, Ints] | None = None) -> None:
        self.scores = scores
        self.types = types or {}

    @property
    def size(self) -> int:
        """How many questions there are."""
        return len(self.scores.questions)

    def value(self, metric: str) -> float | None:
        """The value of a metric over the run; None where it has none."""
        result = self.scores.metrics.get(metric)
        return None if result is None else result.value

    def of(self, metric: str) -> Floats:
        """The value of a metric for each question, nan where it has none."""
        values = self.scores.per_question
        if values is None or metric not in values.metrics:
            return np.full(self.size, np.nan)
        return values.of(metric)

    def number(self, metric: str, reading: str = "") -> Number:
        """The metric as a number behind a finding."""
        result = self.scores.metrics.get(metric)
        return Number(
            name=metric,
            value=self.value(metric),
            n=0 if result is None else result.n,
            reading=reading,
        )

    def count(self, name: str, places: Ints, reading: str = "") -> Number:
        """A number of questions, of all."""
        return Number(name=name, value=float(len(places)), n=self.size, reading=reading, whole=True)

    @cached_property
    def _labels(self) -> Sequence[str]:
        return self.scores.questions.labels

    def labelled(self, *labels: str) -> Ints:
        """The questions with one of these labels, in gold order."""
        return _places([label in labels for label in self._labels])

    def caused(self, cause: str, *, unless: str = "") -> Ints:
        """The questions with this cause, those with most slots of it first."""
        causes = self.scores.questions.causes
        places = _places(
            [
                question_cause == cause and label != unless
                for question_cause, label in zip(causes, self._labels, strict=True)
            ]
        )
        return _by(places, [-self._share(place, cause) for place in places.tolist()])

    def _share(self, place: int, cause: str) -> float:
        question = self.scores.questions[place]
        return question.causes.get(cause, 0) / max(1, sum(question.labels.values()))

    def where(self, metric: str, holds: Callable[[Floats], Bools], *, worst: str = "low") -> Ints:
        """The questions whose value of a metric is such; the lowest (or highest) first."""
        values = self.of(metric)
        measured = np.flatnonzero(~np.isnan(values))
        places = measured[holds(values[measured])]
        keys = values[places] if worst == "low" else -values[places]
        return _by(places, keys.tolist())

    def mean(self, metric: str, places: Ints) -> tuple[float | None, int]:
        """The mean of a metric over some questions, and over how many of them it is."""
        values = self.of(metric)[places]
        values = values[~np.isnan(values)]
        return (exact_sums.mean(values) if len(values) else None), len(values)


Find = Callable[[Symptoms], RuleHit | None]


class DiagnosisRule(Struct, frozen=True, kw_only=True):
    """A likely cause, and what must be so for it to be claimed; `needs` are metrics it asks for.

    `source` names the page whose table of symptoms it comes from.
    """

    id: str
    title: str
    source: str
    find: Find
    needs: tuple[str, ...] = ()
    blocking: bool = False


def _places(holds: Sequence[bool]) -> Ints:
    return np.flatnonzero(np.array(holds, np.bool_)).astype(np.int64)


def _by(places: Ints, keys: Sequence[float]) -> Ints:
    """The places in the order of their keys, equal ones as they stand."""
    order = np.argsort(np.array(keys, np.float64), kind="stable")
    return places[order]
