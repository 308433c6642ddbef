"""Tokens of a text as machine words: compared, ordered, hashed and read as numbers, all at once.

A token is read eight bytes at a time, its first byte lowest. What lies behind the token's end is
cleared, so that equal words are equal bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]

PAD = 40  # bytes behind a text that words may be read from
MOST_DIGITS = 15  # so many are exact in a float, and so is their quotient by a power of ten
_LONGEST_SCORE = 24
_FEW_WORDS = 8

_MULTIPLIER = 0x9E3779B97F4A7C15
_POWERS = 10.0 ** np.arange(MOST_DIGITS + 1)


def _every(byte: int) -> np.uint64:
    return np.uint64(byte * 0x0101010101010101)


_ZEROS, _ONES, _TOPS, _TO_TOP = _every(0x30), _every(0x01), _every(0x80), _every(0x76)
_DOTS = _every(0x2E) ^ _ZEROS
_1, _3, _7, _8, _16, _32, _56, _64 = (np.uint64(bits) for bits in (1, 3, 7, 8, 16, 32, 56, 64))
_LOW_BYTE = np.uint64(0xFF)
_PAIRS = np.uint64(0x000000FF000000FF)
_HUNDREDS, _UNITS = np.uint64(100 + (1_000_000 << 32)), np.uint64(1 + (10_000 << 32))
_PLACES = np.uint64(0x0020406080A0C0E0)  # its byte n from the top begins with the three bits of n


def blank_text(size: int) -> Bytes:
    """Make room for a text, and for the words that reach beyond its end."""
    out = np.empty((size + PAD + 7) // 8 * 8, np.uint8)
    out[size:] = 0
    return out


def padded(text: bytes) -> Bytes:
    """Copy a text to where words can be read up to its last byte."""
    out = blank_text(len(text))
    out[: len(text)] = np.frombuffer(text, np.uint8)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """Tokens of a padded text: where each begins, and its bytes."""

    text: Bytes
    start: Index
    size: Index

    def __len__(self) -> int:
        return len(self.start)

    def pick(self, chosen: Index | Flags | slice) -> Tokens:
        """Choose some of the tokens."""
        return Tokens(self.text, self.start[chosen], self.size[chosen])

    def get(self, index: int) -> bytes:
        """Return the bytes of one token."""
        start = int(self.start[index])
        return self.text[start : start + int(self.size[index])].tobytes()

    def all(self) -> list[bytes]:
        """Return the bytes of every token."""
        words = (self.longest() + 7) // 8
        if 0 < words <= _FEW_WORDS:
            table = np.empty((len(self), words), "<u8")
            for number in range(words):
                table[:, number] = self.word(number)
            # No token holds a NUL byte, so that those behind its end are not taken for its own.
            named: list[bytes] = table.view(f"S{8 * words}").ravel().tolist()
            return named
        text, ends = self.text.data, self.start + self.size
        bounds = zip(self.start.tolist(), ends.tolist(), strict=True)
        return [text[start:end].tobytes() for start, end in bounds]

    def longest(self) -> int:
        """Return the size of the longest token."""
        return int(self.size.max(initial=0))

    def raw(self, first: int, count: int) -> list[Words]:
        """Read some words of each token from byte 8 × first on, whatever is behind its end."""
        words = self.text.view("<u8")
        index = (self.start >> 3) + first
        if first > 2:  # further than the padding reaches
            np.minimum(index, len(words) - 2, out=index)
        right = ((self.start & 7) << 3).view(np.uint64)
        left = _64 - right  # a shift by 64 gives 0
        out, low = [], words.take(index)
        for _ in range(count):
            index += 1
            high = words.take(index)
            low >>= right
            low |= high << left
            out.append(low)
            low = high
        return out

    def word(self, number: int) -> Words:
        """Read the eight bytes of each token from byte 8 × number on, without what follows it."""
        out = self.raw(number, 1)[0]
        out &= _size_mask(np.maximum(self.size, 8 * number) - 8 * number if number else self.size)
        return out


def _size_mask(size: Index) -> Words:
    """Make masks of so many bytes; from eight on they keep the whole word."""
    return (_1 << (size.view(np.uint64) << _3)) - _1


def run_starts(tokens: Tokens) -> Index:
    """Find where a token differs from the one before it; the first one always does."""
    if not len(tokens):
        return np.zeros(0, np.int64)
    first = tokens.word(0)
    changed = np.ones(len(tokens), np.bool_)
    changed[1:] = (first[1:] != first[:-1]) | (tokens.size[1:] != tokens.size[:-1])
    if tokens.longest() > 8:
        same = np.flatnonzero(~changed)
        changed[same] = ~equal(tokens.pick(same), tokens.pick(same - 1))
    return np.flatnonzero(changed)


def equal(one: Tokens, other: Tokens) -> Flags:
    """Compare tokens in pairs, byte by byte."""
    out: Flags = one.size == other.size
    undecided, number = np.flatnonzero(out), 0
    while len(undecided):
        differs = one.pick(undecided).word(number) != other.pick(undecided).word(number)
        out[undecided[differs]] = False
        number += 1
        undecided = undecided[~differs & (one.size[undecided] > 8 * number)]
    return out


def less(one: Tokens, other: Tokens) -> Flags:
    """Say in pairs whether one token comes before the other in the order of its bytes."""
    out = np.zeros(len(one), np.bool_)
    size = np.maximum(one.size, other.size)
    undecided, number = np.arange(len(one)), 0
    while len(undecided):
        left = one.pick(undecided).word(number).byteswap()
        right = other.pick(undecided).word(number).byteswap()
        out[undecided] = left < right
        number += 1
        undecided = undecided[(left == right) & (size[undecided] > 8 * number)]
    return out


def fingerprints(tokens: Tokens) -> Words:
    """Hash tokens to 64 bits; the hash of a token depends on nothing but its bytes."""
    factor, longest = _MULTIPLIER, tokens.longest()
    if longest <= 8:
        return tokens.word(0) * np.uint64(factor)
    out, second = tokens.raw(0, 2)
    out &= _size_mask(tokens.size)
    second &= _size_mask(np.maximum(tokens.size, 8) - 8)
    out *= np.uint64(factor)
    factor = factor * _MULTIPLIER % 2**64
    second *= np.uint64(factor)
    out += second
    for number in range(2, (longest + 7) // 8):
        factor = factor * _MULTIPLIER % 2**64
        long = np.flatnonzero(tokens.size > 8 * number)
        out[long] += tokens.pick(long).word(number) * np.uint64(factor)
    return out


def keys(fingerprint: Words, group: Index) -> Words:
    """Mix the group of each token into its hash, so that the upper bits are well spread."""
    out = fingerprint ^ (group.astype(np.uint64) * np.uint64(0xD6E8FEB86659FD93))
    out ^= out >> np.uint64(31)
    out *= np.uint64(0xBF58476D1CE4E5B9)
    return out


class HashTable:
    """A table that finds the first place of a key; equal keys are equal only by their hash."""

    def __init__(self, keys: Words) -> None:
        count = len(keys)
        bits = max(8 * count, 16).bit_length()
        self.keys = keys
        self.shift = np.uint64(64 - bits)
        slot = (keys >> self.shift).view(np.int64)
        self.table = np.full(1 << bits, -1, np.int32)
        # Backwards: where a slot is wanted more than once, the last writer is the first place.
        self.table[slot[::-1].copy()] = np.arange(count - 1, -1, -1, dtype=np.int32)
        holder = self.table.take(slot)
        moved = np.flatnonzero(holder != np.arange(count, dtype=np.int32))
        moved_keys = keys[moved]
        order = np.argsort(moved_keys)
        again = np.flatnonzero(moved_keys[order[1:]] == moved_keys[order[:-1]])
        if len(again):  # then their order counts
            order = np.argsort(moved_keys, kind="stable")
        self.moved, self.moved_keys = moved[order], moved_keys[order]
        held = holder[self.moved].astype(np.int64)
        same = keys[held] == self.moved_keys
        self.later = np.concatenate((self.moved[same], self.moved[again + 1]))
        self.earlier = np.concatenate((held[same], self.moved[again]))

    def find(self, wanted: Words) -> Index:
        """Return the first place of each key, -1 where it has none."""
        place = self.table.take((wanted >> self.shift).view(np.int64)).astype(np.int64)
        taken = np.flatnonzero((place >= 0) & (self.keys[place] != wanted))
        if not len(taken):
            return place
        place[taken] = -1
        at = np.searchsorted(self.moved_keys, wanted[taken])
        inside = np.flatnonzero(at < len(self.moved))
        matching = inside[self.moved_keys[at[inside]] == wanted[taken[inside]]]
        place[taken[matching]] = self.moved[at[matching]]
        return place


def _numbers(word: Words) -> Words:
    """Read eight digits, the first of them in the lowest byte; a digit is its own value here."""
    word = word * np.uint64(10) + (word >> _8)
    return ((word & _PAIRS) * _HUNDREDS + ((word >> _16) & _PAIRS) * _UNITS) >> _32


def _not_digits(word: Words) -> Words:
    """Mark the bytes above 9; above the first of them, marks mean nothing."""
    return (word | (word + _TO_TOP)) & _TOPS


def _unsigned(tokens: Tokens) -> tuple[Tokens, Flags | None]:
    """Take the signs off; the flags say which are negative."""
    first = tokens.text.take(tokens.start)
    negative = first == ord("-")
    signed = negative | (first == ord("+"))
    if not signed.any():
        return tokens, None
    return Tokens(tokens.text, tokens.start + signed, tokens.size - signed), negative


def integers(tokens: Tokens) -> tuple[Index, Index]:
    """Read whole numbers of up to eight digits; also return which tokens are anything else."""
    bare, negative = _unsigned(tokens)
    # Moved to the upper bytes, behind leading zeros.
    shift = _64 - (np.minimum(bare.size, 8).view(np.uint64) << _3)
    word = (bare.raw(0, 1)[0] ^ _ZEROS) << shift
    odd = (_not_digits(word) != 0) | (bare.size < 1) | (bare.size > 8)
    out = _numbers(word).view(np.int64)
    return (out if negative is None else np.where(negative, -out, out)), np.flatnonzero(odd)


def decimals(tokens: Tokens) -> tuple[NDArray[np.float32], Index]:
    """Read plain decimals as C does: to the nearest double, then to single precision.

    Also returns which tokens could not be read with certainty: exponents, signs that stand alone,
    very long ones, and everything that is no number. Fifteen digits over a power of ten are one
    exact division; of longer tokens, both neighbours must round to the same single.
    """
    bare, negative = _unsigned(tokens)
    size = bare.size
    head, tail = bare.raw(0, 2)
    head ^= _ZEROS  # digits become their values, and so does what is cleared behind the end: 0
    tail ^= _ZEROS
    head &= _size_mask(size)
    tail &= _size_mask(np.maximum(size, 8) - 8)
    dot = _first_dot(head)
    place = ((dot * _PLACES) >> np.uint64(61)).view(np.int64)  # the digits before the dot
    short = size < 2  # too short for a dot and a digit

    # Close the gap: what follows the dot moves down, from the tail into the head.
    before = dot - _1  # all of the head if there is no dot in it
    digits = head & before
    digits |= ((head >> _8) | (tail << _56)) & ~before
    rest = tail & ~_LOW_BYTE
    other = np.flatnonzero(dot == 0)
    if len(other):
        rest[other], place[other], short[other] = _beyond_head(tail[other], size[other])
    odd = (_not_digits(digits) | _not_digits(rest)) != 0
    odd |= short

    whole = _numbers(digits) * np.uint64(10_000_000) + _numbers(rest)
    number = whole.view(np.int64).astype(np.float64)
    scale = _POWERS.take(MOST_DIGITS - place)
    out = (number / scale).astype(np.float32)
    long = np.flatnonzero(size > 16)
    if len(long):
        beyond = Tokens(bare.text, bare.start[long] + 16, size[long] - 16)
        above = ((number[long] + 1.0) / scale[long]).astype(np.float32)
        word = (beyond.raw(0, 1)[0] ^ _ZEROS) & _size_mask(beyond.size)
        odd[long] |= _not_digits(word) != 0
        odd[long] |= (above != out[long]) | (size[long] > _LONGEST_SCORE)
    return (out if negative is None else np.where(negative, -out, out)), np.flatnonzero(odd)


def _beyond_head(tail: Words, size: Index) -> tuple[Words, Index, Flags]:
    """Read on where the head has no dot: the seven digits of the tail, and where the dot is.

    A whole number has its dot behind its last digit.
    """
    dot = _first_dot(tail)
    whole = dot == 0
    before = dot - _1
    digits = ((tail & before) << _8) | (tail & ~((before << _8) | _LOW_BYTE))
    place = ((dot * _PLACES) >> np.uint64(61)).view(np.int64) + 8
    unclear = whole & ((size < 1) | (size > MOST_DIGITS))
    return digits, np.where(whole, np.clip(size, 0, MOST_DIGITS), place), unclear


def _first_dot(word: Words) -> Words:
    """Set the lowest bit of the first byte that is a dot; 0 where there is none."""
    other = word ^ _DOTS
    marks = (other - _ONES) & ~other & _TOPS
    return (marks & (~marks + _1)) >> _7
