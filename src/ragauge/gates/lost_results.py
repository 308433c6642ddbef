"""Lost results: what a missing result counts as where two runs are set side by side.

A question, or a slot of one, that a run lost may not leave its mean: a crash would then be a gain.
Deltas and drops fill in the same values, so that a table and a verdict tell one story.
"""

from __future__ import annotations

from operator import add
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace

from ragauge import registry
from ragauge.metrics.columns import Bools, Floats, Ints
from ragauge.metrics.metric import Metric
from ragauge.metrics.populations import excludes_errors
from ragauge.model.phrases import count
from ragauge.model.profile import JoinRules
from ragauge.model.scores import Scores


class LostResults(Struct, frozen=True):
    """What a run lacks of the questions that it shares with another.

    absent     the questions without any result
    there      how many slots of each have a result
    errored    how many carry an error
    missing    how many fewer there are than in the run that it is measured by
    counted    whether what is lost counts at all: not with `--missing exclude`
    errored_is_empty   whether a trace with an error is one that found nothing
    """

    absent: Bools
    there: Ints
    errored: Ints
    missing: Ints
    counted: bool = True
    errored_is_empty: bool = False

    @property
    def slots(self) -> Ints:
        """How many slots of each question have no result, where others have."""
        return np.where(self.absent, 0, self.errored + self.missing)

    def only(self, chosen: Bools) -> LostResults:
        """The same of some of the questions."""
        columns = ("absent", "there", "errored", "missing")
        return replace(self, **{name: getattr(self, name)[chosen] for name in columns})


class FilledResults(Struct, frozen=True):
    """How many questions and slots were filled in, or excluded as there is nothing to fill in."""

    questions: int = 0
    slots: int = 0
    left_out: int = 0
    left_slots: int = 0

    def __add__(self, other: FilledResults) -> FilledResults:
        """Both together."""
        return FilledResults(*map(add, astuple(self), astuple(other)))

    @property
    def note(self) -> str | None:
        """What a reader should know of it; None if there is nothing."""
        parts = []
        for questions, slots, what in (
            (self.questions, self.slots, "counted as the worst"),
            (self.left_out, self.left_slots, "left out: no value to count them as"),
        ):
            counted = [
                count(n, noun) for n, noun in ((questions, "question"), (slots, "slot")) if n
            ]
            parts += [f"{' and '.join(counted)} without a result {what}"] if counted else []
        return "; ".join(parts) or None


def lost_results(scores: Scores, places: Ints, *, beside: Scores, there: Ints) -> LostResults:
    """What a run lacks of the questions at those places; `there` are their places in `beside`."""
    answered, errored = (slots[places] for slots in scores.questions.slots)
    missing = np.zeros(len(places), np.int64)
    if _has_slots(scores) and _has_slots(beside):
        other_answered, other_errored = (slots[there] for slots in beside.questions.slots)
        missing = np.maximum(other_answered + other_errored - answered - errored, 0)
    absent = answered == 0
    missing[absent] = 0  # the question as a whole counts already
    return LostResults(
        absent,
        answered,
        errored,
        missing,
        scores.options.missing != "exclude",
        _rules(scores).errored_hits == "empty",
    )


def _has_slots(scores: Scores) -> bool:
    """Whether slots are scored one by one: not where only the last row counts, or every row."""
    return _rules(scores).keep == "slot"


def _rules(scores: Scores) -> JoinRules:
    profile = registry.profiles().get(scores.profile)
    return JoinRules() if profile is None else profile.join


Extreme = Literal["worst", "best"]
"""What a lost result counts as."""


def fill_worst(
    metric: Metric,
    sides: tuple[Floats, Floats],
    losses: tuple[LostResults | None, LostResults | None],
) -> FilledResults:
    """Put the worst value of a metric where a run lost a question or a slot, and count it."""
    return fill_lost(metric, sides, losses, "worst")


def fill_lost(
    metric: Metric,
    sides: tuple[Floats, Floats],
    losses: tuple[LostResults | None, LostResults | None],
    lost_as: Extreme,
) -> FilledResults:
    """Put the worst or the best value where a run lost a question or a slot, and count it.

    Only where the question has a value in one of the runs, and then has one in both. The mean of a
    question is over the slots that are there and those that are lost, each with the same weight. A
    side without losses stays as it is.

    Distances and times have no worst value, only an end of their range: with it, one crash would
    outweigh a hundred questions. There such questions are excluded instead (decision 0017).
    """
    filling = None if metric.worst is None else metric.extremes[lost_as == "best"]
    valued = ~np.isnan(sides[0]), ~np.isnan(sides[1])
    uncounted = tuple(None if lost is None else _uncounted(metric, lost) for lost in losses)
    compared = np.ones(len(sides[0]), np.bool_)
    for here, beside, lost, slots in zip(valued, valued[::-1], losses, uncounted, strict=True):
        if lost is None or slots is None or filling is None or not lost.counted:
            compared &= here
        else:
            compared &= here | (beside & (lost.absent | (slots > 0)))
    filled = FilledResults()
    for values, here, beside, lost, slots in zip(
        sides, valued, valued[::-1], losses, uncounted, strict=True
    ):
        if lost is None or slots is None:
            continue
        partly = compared & ~lost.absent & (slots > 0)
        if filling is None or not lost.counted:
            whole = lost.absent & ~here & beside
            filled += FilledResults(
                left_out=int(np.count_nonzero(whole)), left_slots=int(np.sum(slots[partly]))
            )
            continue
        whole = compared & lost.absent & ~here
        values[whole] = filling
        values[partly] = _over_all(metric, filling, values, lost, slots)[partly]
        filled += FilledResults(
            questions=int(np.count_nonzero(whole)), slots=int(np.sum(slots[partly]))
        )
    return filled


def lift_errors(metric: Metric, values: Floats, lost: LostResults) -> None:
    """Take slots with an error that count as misses in the values of questions for the best."""
    if metric.worst is None or metric.of_question is not None or not lost.counted:
        return
    if metric.id.startswith("run.") or _excludes(metric, lost):
        return
    worst, best = metric.extremes
    slots = np.maximum(lost.there + lost.errored + lost.missing, 1)
    values += lost.errored * (best - worst) / slots


def _excludes(metric: Metric, lost: LostResults) -> bool:
    return excludes_errors(metric.over, errored_is_empty=lost.errored_is_empty)


def _over_all(
    metric: Metric, filling: float, values: Floats, lost: LostResults, slots: Ints
) -> Floats:
    """The mean of each question over all its slots, those that are lost too."""
    if metric.of_question is not None:  # nothing is known of how the lost slots would agree
        return np.full(len(values), filling)
    in_mean = lost.there + lost.missing + lost.errored - slots
    weight = np.where(np.isnan(values), 0, in_mean)
    sums: Floats = np.nan_to_num(values) * weight + filling * slots
    return sums / np.maximum(weight + slots, 1)


def _uncounted(metric: Metric, lost: LostResults) -> Ints:
    """The lost slots that a question's value says nothing of; errors may be in it, as misses."""
    if metric.id.startswith("run."):  # it counts what is lost itself
        return np.zeros(len(lost.there), np.int64)
    if metric.of_question is not None:
        return lost.missing
    if _excludes(metric, lost):
        return lost.missing + lost.errored
    return lost.missing
