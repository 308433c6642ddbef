"""Levenshtein distances of many pairs of strings at once, exact for any code points.

Myers' bit-parallel algorithm (1999) in the form and the blocks of Hyyrö (2003): a column of the
table of distances is held as the signs of its vertical differences, one bit a row, 64 rows a word.
One numpy call moves a word of many pairs by one character of their texts. The distance is read off
the last column alone: it is the length of the text plus the sum of the vertical differences.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

_WORD = 64
_LANES = 4_096  # pairs at once: a dozen vectors of them stay in a core's second cache
_TEXT_CELLS = 1 << 19  # characters of a chunk, on either side
_MASK_CELLS = 1 << 20  # words of masks; with the line above a chunk takes about 40 MB
_FEW = 8  # pairs for each word below which Python's integers are faster than calls of numpy
_ONE, _TOP = np.uint64(1), np.uint64(_WORD - 1)

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Words = NDArray[np.uint64]


def distances(pairs: Sequence[tuple[str, str]]) -> NDArray[np.int64]:
    """Levenshtein distance of each pair, in code points; equal pairs are computed once."""
    strings = list(dict.fromkeys(chain.from_iterable(pairs)))
    index = {string: i for i, string in enumerate(strings)}
    numbers = map(index.__getitem__, chain.from_iterable(pairs))
    ids = np.fromiter(numbers, np.int64, 2 * len(pairs)).reshape(-1, 2)
    # The distance is symmetric, so a pair is known by its smaller and its larger number.
    keys, place = np.unique(ids.min(axis=1) * len(index) + ids.max(axis=1), return_inverse=True)
    one, other = np.divmod(keys, max(1, len(index)))
    return _distinct(strings, one, other)[place.reshape(-1)]


def _distinct(strings: list[str], one: Ints, other: Ints) -> Ints:
    """Distances of pairs that are all different, given as numbers of strings."""
    lengths = _lengths(strings)
    left, right = lengths[one], lengths[other]
    result = np.where(one == other, 0, np.maximum(left, right))  # true where one side is empty
    # Work is words of the pattern times characters of the text: either side may be the pattern.
    turn = _words(left) * right > _words(right) * left
    patterns, texts = np.where(turn, other, one), np.where(turn, one, other)
    words, steps = _words(lengths[patterns]), lengths[texts]
    order = np.lexsort((-steps, words))  # by words, the longest texts first
    order = order[((one != other) & (np.minimum(left, right) > 0))[order]]
    sizes = words[order]
    for width in np.unique(sizes).tolist():
        first, stop = np.searchsorted(sizes, [width, width + 1]).tolist()
        lanes = _LANES
        while first < stop:
            longest = max(width * _WORD, int(steps[order[first]]))
            fit = max(1, min(lanes, stop - first, _TEXT_CELLS // longest))
            chunk = order[first : first + fit]
            mine, theirs = ([strings[i] for i in ids[chunk].tolist()] for ids in (patterns, texts))
            chunk_distances = _chunk(mine, theirs, width)
            if chunk_distances is None:  # masks too large for memory: take half as many pairs
                lanes = fit // 2
                continue
            result[chunk] = chunk_distances
            first += fit
    return result


def _chunk(patterns: list[str], texts: list[str], width: int) -> Ints | list[int] | None:
    """Distances of pairs with the longest text first; None if their alphabet is too large."""
    if len(patterns) < _FEW * width:
        return list(map(_single, patterns, texts))
    mine, theirs, letters = _encode(patterns, texts)
    if width * letters * len(patterns) > _MASK_CELLS:
        return None
    rows, steps = _lengths(patterns), _lengths(texts)
    masks = _masks(_upright(mine, rows), width, letters)
    plus, minus = _last_columns(masks, _upright(theirs, steps), steps)
    return steps + _count(plus, rows) - _count(minus, rows)


def _lengths(strings: list[str]) -> Ints:
    return np.fromiter(map(len, strings), np.int64, len(strings))


def _words(lengths: Ints) -> Ints:
    return -(-lengths // _WORD)


def _encode(patterns: list[str], texts: list[str]) -> tuple[Codes, Codes, int]:
    """Both sides as small numbers, 0 for what is in no pattern, and how many numbers there are."""
    mine, theirs = _code_points(patterns), _code_points(texts)
    numbers = np.zeros(max(int(mine.max()), int(theirs.max())) + 1, np.int32)
    numbers[mine] = 1
    alphabet = np.flatnonzero(numbers)
    numbers[alphabet] = np.arange(1, len(alphabet) + 1)
    return numbers[mine], numbers[theirs], len(alphabet) + 1


def _code_points(strings: list[str]) -> NDArray[np.intp]:
    raw = "".join(strings).encode("utf-32-le", "surrogatepass")  # lone surrogates count too
    return np.frombuffer(raw, "<u4").astype(np.intp)


def _upright(codes: Codes, lengths: Ints) -> Codes:
    """One column a string, 0 below its end."""
    lying = np.zeros((len(lengths), int(lengths.max())), np.int32)
    lying[np.arange(lying.shape[1]) < lengths[:, None]] = codes
    return np.ascontiguousarray(lying.T)


def _masks(patterns: Codes, width: int, letters: int) -> Words:
    """For each word, letter and pair the rows where the letter stands in the pattern.

    Rows below the end of a pattern count as letter 0, which texts use for letters of no pattern.
    That is harmless: nothing ever passes from a row to the rows above it.
    """
    lanes = patterns.shape[1]
    masks = np.zeros((width, letters * lanes), np.uint64)
    here = np.arange(lanes)
    cells = np.empty(lanes, np.int64)
    for row, codes in enumerate(patterns):
        np.multiply(codes, lanes, out=cells)
        cells += here
        masks[row // _WORD][cells] |= np.uint64(1 << row % _WORD)
    return masks


def _last_columns(masks: Words, texts: Codes, steps: Ints) -> tuple[Words, Words]:
    """Where the distance grows and falls down the last column of each pair."""
    lanes = len(steps)
    plus = np.full((len(masks), lanes), ~np.uint64(0))
    minus = np.zeros((len(masks), lanes), np.uint64)
    rooms = np.empty((6, lanes), np.uint64)
    here = np.arange(lanes)
    cells = np.empty(lanes, np.int64)
    # How many texts are longer than each place; the longest come first, so they are a prefix.
    under_way = np.searchsorted(-steps, -np.arange(len(texts))).tolist()
    for codes, active in zip(texts, under_way, strict=True):
        np.multiply(codes, lanes, out=cells)
        cells += here
        _advance(masks, cells[:active], plus[:, :active], minus[:, :active], rooms[:, :active])
    return plus, minus


def _advance(masks: Words, cells: Ints, plus: Words, minus: Words, rooms: Words) -> None:
    """Move all columns by one character of their texts, in place.

    In Hyyrö's letters `plus` and `minus` are VP and VN, `rise` and `fall` HP and HN: where the
    distance grows or falls down a column, and from a column to the next.
    """
    match, zero, rise, fall, rise_in, fall_in = rooms
    rise_in.fill(1)  # the row above the pattern grows by one with each character
    fall_in.fill(0)
    last = len(masks) - 1
    for word, (mask, up, down) in enumerate(zip(masks, plus, minus, strict=True)):
        np.take(mask, cells, out=match, mode="clip")  # the default mode would copy `out`
        np.bitwise_or(match, fall_in, out=fall)
        np.bitwise_and(fall, up, out=zero)
        zero += up
        zero ^= up
        zero |= fall
        match |= down
        np.bitwise_or(zero, up, out=rise)
        np.invert(rise, out=rise)
        rise |= down
        np.bitwise_and(zero, up, out=fall)
        if word < last:
            np.right_shift(rise, _TOP, out=up)
            np.right_shift(fall, _TOP, out=zero)
        rise <<= _ONE
        rise |= rise_in
        fall <<= _ONE
        fall |= fall_in
        if word < last:
            rise_in[:] = up
            fall_in, zero = zero, fall_in
        np.bitwise_and(rise, match, out=down)
        np.bitwise_or(match, rise, out=up)
        np.invert(up, out=up)
        np.bitwise_or(up, fall, out=up)


def _count(columns: Words, lengths: Ints) -> Ints:
    """Count the bits set in the first `lengths` rows of each column."""
    raw = np.ascontiguousarray(columns.T).astype("<u8", copy=False).view(np.uint8)
    bits = np.unpackbits(raw, axis=1, bitorder="little")
    bits[np.arange(bits.shape[1]) >= lengths[:, None]] = 0
    counts: Ints = bits.sum(axis=1, dtype=np.int64)
    return counts


def _single(pattern: str, text: str) -> int:
    """The same for one pair, with one integer of any length for a column."""
    masks: dict[str, int] = {}
    for row, letter in enumerate(pattern):
        masks[letter] = masks.get(letter, 0) | 1 << row
    full = (1 << len(pattern)) - 1
    up, down = full, 0
    for letter in text:
        match = masks.get(letter, 0)
        zero = (((match & up) + up) ^ up) | match
        match |= down
        rise = (down | ~(zero | up)) << 1 | 1
        fall = (zero & up) << 1
        up = (fall | ~(match | rise)) & full
        down = rise & match & full
    return len(text) + up.bit_count() - down.bit_count()
