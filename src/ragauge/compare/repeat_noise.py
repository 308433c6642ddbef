"""The noise of a baseline that asked its questions several times: which regressions it explains.

Slots of a question with one wording and different seeds are repeats, and so are other runs of the
same system. Were the two systems the same, any of these repeats might as well be one of run b: so
they are exchanged at random, wording by wording, and the regressions are as many as the noise makes
if the exchanged runs look as bad in more than 5 % of the exchanges (decision 0054). Wordings are
never exchanged with each other, as a system may well answer one and not the other every time.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.compare.metric_deltas import QuestionPairs
from ragauge.metrics.columns import Floats, Ints, starts_of
from ragauge.model.comparison import CHANCE
from ragauge.model.scores import PerQuestion, Scores
from ragauge.stats.resampling import SEED

EXCHANGES = 4_000
"""Random exchanges: a p near 0.05 is known to within 0.007."""


class RepeatNoise(Struct, frozen=True, kw_only=True):
    """What the repeats of the baseline say of the regressions.

    repeated   the questions that both runs have in full, and the baseline more than once in one
               wording; by their place among the compared ones
    unstable   how many of them came out differently in the baseline itself
    p          how often exchanged repeats look as bad; None where no question is unstable
    """

    repeated: frozenset[int]
    unstable: int = 0
    p: float | None = None

    @property
    def explains(self) -> bool:
        """Whether the regressions of repeated questions are no more than noise makes."""
        return self.p is not None and self.p >= CHANCE


NO_REPEATS = RepeatNoise(repeated=frozenset())


class _SlotValues(NamedTuple):
    """The slots of one question: their wordings, and their values of each aspect as columns."""

    wordings: Ints
    values: Floats


def repeat_noise(
    a: Sequence[Scores],
    b: Scores,
    pairs: QuestionPairs,
    *,
    k: int,
    ranks: bool = False,
    unknown: Set[int] = frozenset(),
) -> RepeatNoise:
    """The noise of a baseline, which is the first of `a`, and of other runs of the same system.

    A slot is as good as the number of units that it finds within k, and as its label; with `ranks`
    also as the sum of its reciprocal ranks. Pairs of which nobody knows what each slot found are
    `unknown`, and are not looked at.
    """
    sides = [_slot_values(scores, k, ranks=ranks) for scores in (*a, b)]
    if any(side is None for side in sides) or a[0].per_question is None:
        return NO_REPEATS
    values = a[0].per_question
    keys = [(values.qids[place], values.turns[place]) for place in pairs.mine.tolist()]
    places = [_places(scores.per_question) for scores in (*a, b)]
    whole = (pairs.a.slots == 0) & (pairs.b.slots == 0) & ~pairs.a.absent & ~pairs.b.absent
    repeated: set[int] = set()
    unstable = 0
    varied: list[tuple[_SlotValues, _SlotValues]] = []
    for number, key in enumerate(keys):
        if not whole[number] or number in unknown:
            continue
        rows = [side[of[key]] for side, of in zip(sides, places, strict=True) if side and key in of]
        before, after = _joined(rows[:-1]), rows[-1]
        if not _is_repeated(before, after):
            continue
        repeated.add(number)
        unstable += _is_unstable(before)
        if (_joined([before, after]).values != before.values[0]).any():
            varied.append((before, after))
    if not unstable:
        return RepeatNoise(repeated=frozenset(repeated))
    return RepeatNoise(repeated=frozenset(repeated), unstable=unstable, p=_exchanged(varied))


def _slot_values(scores: Scores, k: int, *, ranks: bool) -> list[_SlotValues] | None:
    """The slots of each question; None where it is not known what each slot found."""
    units = None if scores.per_question is None else scores.per_question.units
    if units is None or not units.has_slots:
        return None
    found, reciprocal = units.by_slot(k)
    columns = [found, units.good, *([reciprocal] if ranks else [])]
    values = np.stack(columns, axis=1).astype(np.float64)
    first = starts_of(units.slots)
    return [
        _SlotValues(units.wording[start : start + count], values[start : start + count])
        for start, count in zip(first.tolist(), units.slots.tolist(), strict=True)
    ]


def _places(values: PerQuestion | None) -> dict[tuple[str, int | None], int]:
    assert values is not None
    keys = zip(values.qids, values.turns, strict=True)
    return {key: place for place, key in enumerate(keys)}


def _joined(rows: Sequence[_SlotValues]) -> _SlotValues:
    return _SlotValues(
        np.concatenate([row.wordings for row in rows]), np.concatenate([row.values for row in rows])
    )


def _is_repeated(before: _SlotValues, after: _SlotValues) -> bool:
    """Whether the baseline asked each wording of the other run, and one of them several times."""
    wordings, counts = np.unique(before.wordings, return_counts=True)
    return bool((counts > 1).any()) and np.array_equal(wordings, np.unique(after.wordings))


def _is_unstable(slots: _SlotValues) -> bool:
    return any(
        bool((slots.values[slots.wordings == wording] != rows[0]).any())
        for wording in np.unique(slots.wordings).tolist()
        for rows in [slots.values[slots.wordings == wording]]
    )


def _exchanged(questions: Sequence[tuple[_SlotValues, _SlotValues]]) -> float:
    """How often exchanged repeats are together at least as bad as those of run b.

    Of each question and aspect it is known how often an exchange gives run b no more than it has;
    Fisher's sum of the logarithms of these shares tells one question that lost everything as well
    as many that lost a little, and what other questions won does not make up for it.
    """
    raw = np.random.SFC64(SEED)
    total = np.zeros(EXCHANGES + 1)
    for before, after in questions:
        together = _joined([before, after])
        is_later = np.arange(len(together.wordings)) >= len(before.wordings)
        sums = np.zeros((EXCHANGES + 1, together.values.shape[1]))
        for wording in np.unique(together.wordings).tolist():
            group = np.flatnonzero(together.wordings == wording)
            later = is_later[group]
            count = int(np.count_nonzero(later))
            drawn = _draws(raw, len(group), count)
            values = together.values[group]
            sums[0] += values[later].sum(axis=0)
            sums[1:] += values[drawn].sum(axis=1)
        for column in np.rint(sums.T * _STEPS).astype(np.int64):
            _, which, counts = np.unique(column, return_inverse=True, return_counts=True)
            shares = np.cumsum(counts) / len(column)
            total -= np.log(shares)[which]
    # What was observed is one of the exchanges, so p is never 0; sums may be off by their last bit.
    return int(np.count_nonzero(total >= total[0] - 1e-9)) / len(total)


_STEPS = 720_720.0
"""Reciprocals of all ranks up to 16 are whole numbers of these steps, so that equal sums are."""


def _draws(raw: np.random.SFC64, size: int, count: int) -> NDArray[np.int64]:
    """Which `count` of so many repeats are taken for those of run b, in every exchange."""
    keys = np.asarray(raw.random_raw(EXCHANGES * size), np.uint64).reshape(EXCHANGES, size)
    return np.argsort(keys, axis=1, kind="stable")[:, :count]
