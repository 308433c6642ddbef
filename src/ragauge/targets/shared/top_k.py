"""Ranking: the best of many scores with ties broken by id, and several rankings made one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Order = NDArray[np.int64]
"""The place of each passage among the sorted ids."""


class Ranked(Struct, frozen=True):
    """A passage by its number, and its score."""

    number: int
    score: float


def best(scores: NDArray[Any], numbers: NDArray[np.int64], order: Order, k: int) -> list[Ranked]:
    """The k best of some passages: by falling score, then by id. Scores go with the numbers."""
    # A full sort of all scores would take most of the time of a question.
    if len(numbers) > k > 0:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        candidates = scores >= least  # all that tie with the last one
        scores, numbers = scores[candidates], numbers[candidates]
    ranks = np.lexsort((order[numbers], -scores))[:k]
    return [Ranked(int(numbers[rank]), float(scores[rank])) for rank in ranks]


def fused(
    rankings: Sequence[Sequence[Ranked]], order: Order, k: int, constant: float
) -> list[Ranked]:
    """Reciprocal rank fusion: a passage scores the sum of 1 / (constant + its rank), from 1.

    Ranks are taken from the lists alone, so that scores of different kinds need no common scale.
    """
    total: dict[int, float] = {}
    for ranking in rankings:
        for rank, ranked in enumerate(ranking, 1):
            total[ranked.number] = total.get(ranked.number, 0.0) + 1.0 / (constant + rank)
    # Rounded, so that the order in which rankings are added does not show.
    numbers = np.array(sorted(total), np.int64)
    scores = np.round(np.array([total[number] for number in sorted(total)], np.float64), 9)
    return best(scores, numbers, order, k)
