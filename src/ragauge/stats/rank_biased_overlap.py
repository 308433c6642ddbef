"""Rank-biased overlap of two lists, where the first entries weigh most."""

from __future__ import annotations

from collections.abc import Sequence

PERSISTENCE = 0.9
"""How likely a reader goes on to the next entry: the first ten carry 86 % of the weight."""


def rank_biased_overlap(
    one: Sequence[str], other: Sequence[str], persistence: float = PERSISTENCE
) -> float | None:
    """RBO of two lists, extrapolated beyond their ends; 1 for the same list, 0 for nothing shared.

    After Webber, Moffat and Zobel (2010), formula 32, for lists of any two lengths. A repeated
    entry counts once, at its first place, so there are no ties. None where both lists are empty.
    """
    first, second = list(dict.fromkeys(one)), list(dict.fromkeys(other))
    short, long = sorted((first, second), key=len)
    if not long:
        return None
    if not short:
        return 0.0
    s, length = len(short), len(long)
    seen_short: set[str] = set()
    seen_long: set[str] = set()
    shared = 0
    shared_at_s = 0
    total = 0.0
    for depth in range(1, length + 1):
        new = long[depth - 1]
        seen_long.add(new)
        if depth <= s:
            beside = short[depth - 1]
            seen_short.add(beside)
            shared += (new in seen_short) + (beside in seen_long and beside != new)
        else:
            shared += new in seen_short
        if depth == s:
            shared_at_s = shared
        agreed = shared / depth
        if depth > s:
            # Beyond the end of the short list it is taken to agree as much as it did at its end.
            agreed += shared_at_s * (depth - s) / (s * depth)
        total += agreed * persistence**depth
    rest = (shared - shared_at_s) / length + shared_at_s / s
    overlap = total * (1 - persistence) / persistence + rest * persistence**length
    return min(1.0, max(0.0, overlap))  # rounding may leave it a hair outside
