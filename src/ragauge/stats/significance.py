"""P-values of counts: McNemar's exact test, and Holm's correction for asking several questions.

Everything is done in whole numbers and divided once, so that no library of logarithms or gamma
functions can change a digit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_EXACT_UP_TO = 1_000  # discordant pairs; the whole numbers grow with their square
_BITS = 160  # of a term of many pairs; a million roundings leave 140
_FACTORS = 128  # multiplied before they are shortened to _BITS


def mcnemar(wins: int, losses: int) -> float:
    """Exact two-sided p-value of so many wins and losses, if each might as well be the other.

    McNemar's test (1947) by the binomial distribution itself, not by its χ²: gold sets are small,
    and often fewer than 25 questions differ, where the approximation is poor.
    Twice the chance of at most the smaller count, at most 1; 1.0 with neither wins nor losses.
    """
    if wins < 0 or losses < 0:
        raise ValueError(f"counts are never below 0, got {wins} and {losses}")
    n, few = wins + losses, min(wins, losses)
    if 2 * few >= n - 1:  # P(X <= few) is at least a half
        return 1.0
    if n <= _EXACT_UP_TO:
        return min(1.0, sum(math.comb(n, i) for i in range(few + 1)) / (1 << (n - 1)))
    top, power = _choose(n, few)
    total = term = top
    for i in range(few, 0, -1):
        term = term * i // (n - i + 1)
        if not term:
            break
        total += term
    return min(1.0, total / (1 << (n - 1 - power)))  # 0.0 where no float is as small


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (1979); None stays None and is not counted as a question asked.

    It holds the chance of any false alarm as Bonferroni's does, and never rejects less. It assumes
    nothing of how metrics depend on each other, and here they do.
    """
    for p in ps:
        if p is not None and not 0 <= p <= 1:
            raise ValueError(f"a p-value is between 0 and 1, got {p}")
    asked = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    least = 0.0
    for rank, (p, place) in enumerate(asked):
        least = max(least, min(1.0, (len(asked) - rank) * p))
        corrected[place] = least
    return corrected


def _choose(n: int, k: int) -> tuple[int, int]:
    """`n` over `k` as a whole number of about _BITS bits times a power of two."""
    top, power = 1 << _BITS, -_BITS
    for start in range(1, k + 1, _FACTORS):
        stop = min(start + _FACTORS, k + 1)
        top = top * math.prod(range(n - k + start, n - k + stop)) // math.prod(range(start, stop))
        spare = top.bit_length() - _BITS
        if spare > 0:
            top, power = top >> spare, power + spare
    return top, power
