"""Worst: what a result that is not there counts as where two runs are set side by side.

A question, or a slot of one, that a run lost may not leave its mean: a crash would then be a gain.
Deltas and drops fill in the same values, so that a table and a verdict tell one story.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from ragauge import registry
from ragauge.metrics.columns import Bools, Floats, Ints
from ragauge.metrics.metric import Metric
from ragauge.metrics.populations import leaves_out_errors
from ragauge.model.phrases import count
from ragauge.model.profile import JoinRules
from ragauge.model.scores import Scores


class Lost(Struct, frozen=True):
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

    def only(self, chosen: Bools) -> Lost:
        """The same of some of the questions."""
        return Lost(
            self.absent[chosen],
            self.there[chosen],
            self.errored[chosen],
            self.missing[chosen],
            self.counted,
            self.errored_is_empty,
        )


class Filling(Struct, frozen=True):
    """How many questions and slots were filled in, or left out as there is nothing to fill in."""

    questions: int = 0
    slots: int = 0
    left_out: int = 0
    left_slots: int = 0

    def __add__(self, other: Filling) -> Filling:
        """Both together."""
        return Filling(
            self.questions + other.questions,
            self.slots + other.slots,
            self.left_out + other.left_out,
            self.left_slots + other.left_slots,
        )

    @property
    def told(self) -> str | None:
        """What a reader should know of it; None if there is nothing."""
        parts = [
            f"{_together(questions, slots)} without a result {what}"
            for questions, slots, what in (
                (self.questions, self.slots, "counted as the worst"),
                (self.left_out, self.left_slots, "left out: no value to count them as"),
            )
            if questions or slots
        ]
        return "; ".join(parts) or None


def _together(questions: int, slots: int) -> str:
    parts = [(questions, "question"), (slots, "slot")]
    return " and ".join(count(n, noun) for n, noun in parts if n)


def lost(scores: Scores, places: Ints, *, beside: Scores, there: Ints) -> Lost:
    """What a run lacks of the questions at those places; `there` are their places in `beside`."""
    some, wrong = (each[places] for each in scores.questions.slots)
    fewer = np.zeros(len(places), np.int64)
    if _has_slots(scores) and _has_slots(beside):
        others, failed = (each[there] for each in beside.questions.slots)
        fewer = np.maximum(others + failed - some - wrong, 0)
    gone = some == 0
    fewer[gone] = 0
    return Lost(
        gone,
        some,
        wrong,
        fewer,
        scores.options.missing != "exclude",
        _rules(scores).errored_hits == "empty",
    )


def _has_slots(scores: Scores) -> bool:
    """Whether slots are scored one by one: not where only the last row counts, or every row."""
    return _rules(scores).keep == "slot"


def _rules(scores: Scores) -> JoinRules:
    known = registry.profiles().get(scores.profile)
    return JoinRules() if known is None else known.join


def fill(
    metric: Metric, sides: tuple[Floats, Floats], losses: tuple[Lost | None, Lost | None]
) -> Filling:
    """Put the worst value of a metric where a run lost a question or a slot, and count it.

    Only where the question has a value in one of the runs, and then has one in both. The mean of a
    question is over the slots that are there and those that are lost, each with the same weight. A
    side without losses stays as it is.
    """
    valued = ~np.isnan(sides[0]), ~np.isnan(sides[1])
    gone = tuple(None if each is None else _gone(metric, each) for each in losses)
    inside = np.ones(len(sides[0]), np.bool_)
    for known, beside, lost, slots in zip(valued, valued[::-1], losses, gone, strict=True):
        if lost is None or slots is None or metric.worst is None or not lost.counted:
            inside &= known
        else:
            inside &= known | (beside & (lost.absent | (slots > 0)))
    found = Filling()
    for mine, known, beside, lost, slots in zip(
        sides, valued, valued[::-1], losses, gone, strict=True
    ):
        if lost is None or slots is None:
            continue
        part = inside & ~lost.absent & (slots > 0)
        if metric.worst is None or not lost.counted:
            whole = lost.absent & ~known & beside
            found += Filling(
                left_out=int(np.count_nonzero(whole)), left_slots=int(np.sum(slots[part]))
            )
            continue
        whole = inside & lost.absent & ~known
        mine[whole] = metric.worst
        mine[part] = _over_all(metric, metric.worst, mine, lost, slots)[part]
        found += Filling(questions=int(np.count_nonzero(whole)), slots=int(np.sum(slots[part])))
    return found


def _over_all(metric: Metric, worst: float, mine: Floats, lost: Lost, slots: Ints) -> Floats:
    """The mean of each question over all its slots, those that are lost too."""
    if metric.of_question is not None:  # nothing is known of how the lost slots would agree
        return np.full(len(mine), worst)
    known = lost.there + lost.missing + lost.errored - slots
    weight = np.where(np.isnan(mine), 0, known)
    found: Floats = (np.nan_to_num(mine) * weight + worst * slots) / np.maximum(weight + slots, 1)
    return found


def _gone(metric: Metric, lost: Lost) -> Ints:
    """The lost slots that a question's value says nothing of."""
    if metric.id.startswith("run."):  # it counts what is lost itself
        return np.zeros(len(lost.there), np.int64)
    return lost.missing if metric.of_question is not None else _uncounted(metric, lost)


def _uncounted(metric: Metric, lost: Lost) -> Ints:
    """The lost slots that are not in a question's mean: errors may be, as misses."""
    if leaves_out_errors(metric.over, errored_is_empty=lost.errored_is_empty):
        return lost.missing + lost.errored
    return lost.missing
