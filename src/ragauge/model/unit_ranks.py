"""Unit ranks: where each thing that a question expects was found, slot by slot.

A unit is a group of evidence where the item has groups, else a piece of evidence, else a document.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray


class UnitFindings(NamedTuple):
    """The units of one question in one run: how many slots there are, and the ranks of each unit.

    `ranks` has, for each unit, the ranks of the slots that found it, from 1 and sorted.
    """

    slots: int
    ranks: tuple[tuple[int, ...], ...]

    def within(self, k: int) -> list[int]:
        """In how many slots each unit is found within k."""
        return [sum(rank <= k for rank in ranks) for ranks in self.ranks]


class UnitRanks(Struct, frozen=True, kw_only=True):
    """The units of all questions, question behind question.

    counts   how many units each question has
    slots    how many of its slots count
    unit     of each finding the unit, numbered over all questions; sorted
    rank     of each finding the rank, from 1; sorted within a unit
    names    what the units of each question are called, where that is known
    """

    counts: NDArray[np.int64]
    slots: NDArray[np.int64]
    unit: NDArray[np.int64]
    rank: NDArray[np.int64]
    names: Sequence[tuple[str, ...]] = ()

    def findings(self) -> list[UnitFindings]:
        """The units of each question."""
        ends = np.searchsorted(self.unit, np.arange(1, int(self.counts.sum()) + 1)).tolist()
        ranks = self.rank.tolist()
        by_unit, begin = [], 0
        for end in ends:
            by_unit.append(tuple(ranks[begin:end]))
            begin = end
        questions, begin = [], 0
        for count, slots in zip(self.counts.tolist(), self.slots.tolist(), strict=True):
            questions.append(UnitFindings(slots, tuple(by_unit[begin : begin + count])))
            begin += count
        return questions

    @classmethod
    def of(
        cls, questions: Sequence[UnitFindings], names: Sequence[tuple[str, ...]] = ()
    ) -> UnitRanks:
        """The units of questions as columns."""
        by_unit = [ranks for question in questions for ranks in question.ranks]
        return cls(
            counts=np.array([len(question.ranks) for question in questions], np.int64),
            slots=np.array([question.slots for question in questions], np.int64),
            unit=np.repeat(
                np.arange(len(by_unit), dtype=np.int64),
                np.array([len(ranks) for ranks in by_unit], np.int64),
            ),
            rank=np.array([rank for ranks in by_unit for rank in ranks], np.int64),
            names=names,
        )
