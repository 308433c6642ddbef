"""Agreement of two rankings: Kendall's tau (1938) of lists of a few entries."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence


def tau_of_lists(one: Sequence[str], other: Sequence[str], top: int = 10) -> float | None:
    """Kendall's tau of the ids in both first `top` entries; None if fewer than two are shared.

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
