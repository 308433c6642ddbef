"""Agreement of two rankings: Kendall's tau-b, counted pair by pair, for lists of a few entries.

Tau-b (Kendall 1945) leaves pairs that are tied on a side out of that side's count, so that ties
alone do not pull it to 0. Counting pairs is quadratic; lists here have ten entries.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from itertools import combinations


def tau_b(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Kendall's tau-b of paired ranks; None below two entries or if one side is all ties."""
    agreeing = opposed = tied_in_a = tied_in_b = tied_in_both = 0
    for (x, y), (u, v) in combinations(zip(a, b, strict=True), 2):
        if x == u:
            if y == v:
                tied_in_both += 1
            else:
                tied_in_a += 1
        elif y == v:
            tied_in_b += 1
        elif (x < u) == (y < v):
            agreeing += 1
        else:
            opposed += 1
    strict = agreeing + opposed
    ordered_in_a, ordered_in_b = strict + tied_in_b, strict + tied_in_a
    if not ordered_in_a or not ordered_in_b:
        return None
    return (agreeing - opposed) / math.sqrt(ordered_in_a * ordered_in_b)


def tau_of_lists(one: Sequence[str], other: Sequence[str], top: int = 10) -> float | None:
    """Kendall's tau-b of the ids in both first `top` entries; None if fewer than two are shared.

    A repeated id counts once, at its first place, so there are no ties: the value needs only the
    number of pairs that the lists order differently.
    """
    in_one = set(one[:top])
    shared = [entry for entry in dict.fromkeys(other[:top]) if entry in in_one]
    if len(shared) < 2:
        return None
    place = {entry: i for i, entry in enumerate(shared)}
    # Insertion into a sorted list counts the inversions: those already seen that belong behind.
    seen: list[int] = []
    inverted = 0
    for entry in dict.fromkeys(one[:top]):
        if entry in place:
            at = place[entry]
            below = bisect(seen, at)
            inverted += len(seen) - below
            seen.insert(below, at)
    pairs = len(shared) * (len(shared) - 1) // 2
    return (pairs - 2 * inverted) / pairs
