"""Aligning two sequences: what is in both, in the same order, in time near to linear.

Equal ends are taken off first. Then runs that occur once on either side are looked for, longer ones
first, and the longest chain of them that is in order on both sides is kept (as in patience diff);
what lies between is aligned in the same way. A small rest is solved exactly. A large rest in which
nothing is rare is left unaligned: that costs confidence, never correctness. difflib compares all
pairs, which takes hours on a corpus that was rewritten.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Hashable, Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

Match = tuple[int, int, int]
"""Where a common run begins on either side, and how long it is."""

# Lengths of the runs that are looked for. A run of six words that occurs once on either side is
# hardly an accident; a single word may well be, and is asked only where no longer run is found.
_WIDTHS = (6, 3, 1)
_SMALL_TABLE = 1 << 14  # cells of a table that is filled without looking for rare runs first
# Cells of the largest table that is filled: 16 MiB of 32-bit integers, for 2,000 by 2,000 words.
# A larger rest, in which nothing is rare, is left unaligned.
_LARGEST_TABLE = 1 << 22
# A match of this many words and bytes is kept wherever it is: `_PHRASE_WORDS` in fuzzy_matches
# takes as many words for a phrase. Fewer words may be accidents of the language (`in the case of`).
_SURE_WORDS, _SURE_SIZE = 4, 16
# A dropped match widens the gap beside its neighbours, which may then have to go as well. That
# settles after a few rounds; the limit only bounds the time for texts made to be awkward.
_PASSES = 12


def align(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[Match]:
    """Find the runs that two sequences have in common, in order on both sides."""
    numbers: dict[Hashable, int] = {}
    a = [numbers.setdefault(element, len(numbers)) for element in one]
    b = [numbers.setdefault(element, len(numbers)) for element in other]
    matches: list[Match] = []
    waiting = [(0, len(a), 0, len(b))]  # a stack of regions, since recursion could go deep
    while waiting:
        left, right, low, high = _strip_equal_ends(a, b, waiting.pop(), matches)
        if left == right or low == high:
            continue
        cells = (right - left) * (high - low)
        chain: list[Match] = []
        if cells > _SMALL_TABLE:
            for width in _WIDTHS:
                chain = _chain(a, b, (left, right, low, high), width)
                if chain:
                    break
        if chain:
            matches += chain
            for i, j, length in chain:
                waiting.append((left, i, low, j))
                left, low = i + length, j + length
            waiting.append((left, right, low, high))
        elif cells <= _LARGEST_TABLE:
            matches += _exact_lcs(a[left:right], b[low:high], left, low)
    return _merge_adjacent(matches)


def drop_islands(matches: Sequence[Match], one: Sequence[int], other: Sequence[int]) -> list[Match]:
    """Drop matches that are lost among changes: a few common words in rewritten text.

    `one` and `other` are the sizes of the elements. A short match goes if what changed before it
    and what changed behind it are both at least as large as the match itself.
    """
    before = list(accumulate(one, initial=0))
    beside = list(accumulate(other, initial=0))
    remaining = list(matches)
    for _ in range(_PASSES):
        stays = []
        end = (0, 0)
        ends = [*remaining, (len(one), len(other), 0)]
        for (i, j, length), (next_i, next_j, _) in pairwise(ends):
            last_i, last_j = i + length, j + length
            size = before[last_i] - before[i]
            gap = max(before[i] - before[end[0]], beside[j] - beside[end[1]])
            behind = max(before[next_i] - before[last_i], beside[next_j] - beside[last_j])
            sure = length >= _SURE_WORDS and size >= _SURE_SIZE
            if sure or size > gap or size > behind:
                stays.append((i, j, length))
                end = (last_i, last_j)
        if len(stays) == len(remaining):
            break
        remaining = stays
    return remaining


def slide_gaps(
    matches: Sequence[Match],
    one: Sequence[Hashable],
    other: Sequence[Hashable],
    starts: Container[int],
    other_starts: Container[int],
) -> list[Match]:
    """Slide what was only put in or only taken out to where something begins, if it can slide.

    Taking out the second of `a. b. c.` may look as if ` b.` or as if `. b` had gone; the first is
    meant if a paragraph begins at `b`. `starts` are the places where one begins, on either side.
    """
    ends = [(0, 0, 0), *matches, (len(one), len(other), 0)]
    for position in range(1, len(ends)):
        i, j, length = ends[position - 1]
        left, low, more = ends[position]
        left_gap, low_gap = left - i - length, low - j - length
        if (left_gap == 0) == (low_gap == 0):
            continue  # text was replaced, or nothing changed: there is nothing to slide
        side, begin, end, side_starts = (
            (one, i + length, left, starts) if left_gap else (other, j + length, low, other_starts)
        )
        step = _best_step(side, begin, end, side_starts, back=length, forth=more)
        ends[position - 1] = (i, j, length + step)
        ends[position] = (left + step, low + step, more - step)
    return [match for match in ends if match[2]]


def _best_step(
    side: Sequence[Hashable], begin: int, end: int, starts: Container[int], *, back: int, forth: int
) -> int:
    """How far a gap is best moved: to begin and to end where something begins, as near as it is."""
    steps = [0]
    for step in range(1, forth + 1):
        if end + step > len(side) or side[begin + step - 1] != side[end + step - 1]:
            break
        steps.append(step)
    for step in range(1, back + 1):
        if side[begin - step] != side[end - step]:
            break
        steps.append(-step)

    def fit(step: int) -> tuple[int, int, int]:
        edges = (begin + step in starts) + (end + step in starts or end + step == len(side))
        return -edges, abs(step), step

    return min(steps, key=fit)


def _strip_equal_ends(
    a: Sequence[int], b: Sequence[int], region: tuple[int, int, int, int], matches: list[Match]
) -> tuple[int, int, int, int]:
    """Take equal beginnings and ends off a region, and note them."""
    left, right, low, high = region
    start = left
    while left < right and low < high and a[left] == b[low]:
        left, low = left + 1, low + 1
    if left > start:
        matches.append((start, low - (left - start), left - start))
    end = right
    while right > left and high > low and a[right - 1] == b[high - 1]:
        right, high = right - 1, high - 1
    if right < end:
        matches.append((right, high, end - right))
    return left, right, low, high


def _chain(
    a: Sequence[int], b: Sequence[int], region: tuple[int, int, int, int], width: int
) -> list[Match]:
    """The longest ordered chain of runs of a width that occur once on either side."""
    left, right, low, high = region
    places_in_a = _unique_runs(a, left, right, width)
    places_in_b = _unique_runs(b, low, high, width)
    pairs = [(place, places_in_b[run]) for run, place in places_in_a.items() if run in places_in_b]
    chain: list[Match] = []
    for i, j in _longest_increasing(pairs):
        if chain:
            last_i, last_j, length = chain[-1]
            # Runs begin at every word, so neighbours overlap: on the same diagonal they are one.
            if i - j == last_i - last_j and i <= last_i + length:
                chain[-1] = (last_i, last_j, i + width - last_i)
                continue
            if i < last_i + length or j < last_j + length:
                continue  # it would use words a second time
        chain.append((i, j, width))
    return chain


def _unique_runs(values: Sequence[int], start: int, end: int, width: int) -> dict[Hashable, int]:
    """The runs that occur once in a region, with their places, in order."""
    keys: list[Hashable] = list(values[start:end])
    if width > 1:
        keys = [tuple(values[i : i + width]) for i in range(start, end - width + 1)]
    counts = Counter(keys)
    return {run: start + i for i, run in enumerate(keys) if counts[run] == 1}


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of pairs in the order of their first member, the most that ascend in the second, too."""
    # `tails[n]` is the smallest second member that ends a chain of n + 1 pairs, `at[n]` its pair,
    # and `before` leads from each pair back to the one before it: O(n log n).
    tails: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for position, (_, j) in enumerate(pairs):
        length = bisect_left(tails, j)
        before.append(at[length - 1] if length else -1)
        if length == len(tails):
            tails.append(j)
            at.append(position)
        else:
            tails[length] = j
            at[length] = position
    chain = []
    position = at[-1] if at else -1
    while position >= 0:
        chain.append(pairs[position])
        position = before[position]
    return chain[::-1]


def _exact_lcs(a: Sequence[int], b: Sequence[int], left: int, low: int) -> list[Match]:
    """A longest common subsequence, from a table that is filled row by row."""
    other: NDArray[np.int32] = np.array(b, np.int32)
    table = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    for i, code in enumerate(a):
        # A cell is the largest of the one above, the one to the left, and the one above the left
        # plus a match. The running maximum stands for the cell to the left: rows never fall.
        taken = table[i, :-1] + (other == code)
        np.maximum.accumulate(np.maximum(table[i, 1:], taken), out=table[i + 1, 1:])
    matches: list[Match] = []
    i, j = len(a), len(b)
    while i and j:
        if a[i - 1] == b[j - 1]:
            i, j = i - 1, j - 1
            matches.append((left + i, low + j, 1))
        elif table[i - 1, j] >= table[i, j - 1]:
            i -= 1
        else:
            j -= 1
    return matches


def _merge_adjacent(matches: list[Match]) -> list[Match]:
    """The matches in order, with those that touch made one."""
    joined: list[Match] = []
    for i, j, length in sorted(matches):
        if joined and (i, j) == (joined[-1][0] + joined[-1][2], joined[-1][1] + joined[-1][2]):
            joined[-1] = (*joined[-1][:2], joined[-1][2] + length)
        else:
            joined.append((i, j, length))
    return joined
