"""Texts that say nearly the same in nearly the same words: an exact search among many.

Two texts resemble each other if they share at least four fifths of their runs of four characters
(Jaccard) and name the same numbers: `in 2021` and `in 2022` are two questions. Nothing is sampled.
A pair that is near must share one of the rarest runs of both (prefix filtering), so that few pairs
are ever looked at.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

LEAST = 0.8
"""The share from which on two texts are nearly the same."""

_TOP, _BOTTOM = 4, 5  # the same share in whole numbers
_RUN = 4
_PAIRS = 1 << 20  # pairs that are looked at together
_TABLE = 1 << 25  # the largest table that saves sorting
_WORDS = 4  # of 64 bits, in which a set of runs is sketched
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_ENDS = ".,;:!?¿¡\"'`´()[]{}<>«»“”„‘’…。，、；：！？（）「」『』《》"  # noqa: RUF001
_DIGIT = re.compile(r"\d")

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


def normalised(text: str) -> str:
    """A text without case, compatibility forms, and the punctuation around its words.

    Signs inside a word or without a place in a sentence stay: `C` and `C++` are two languages.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = (word.strip(_ENDS) for word in folded.split())
    return " ".join(word for word in words if word)


def likeness(one: str, other: str) -> float:
    """The share of runs that two normalised texts have in common; 0 if their numbers differ."""
    if _numbers(one) != _numbers(other):
        return 0.0
    mine, theirs = _runs(one), _runs(other)
    return len(mine & theirs) / len(mine | theirs)


def families(texts: Sequence[str], owners: Sequence[int]) -> list[list[int]]:
    """Owners whose normalised texts resemble each other, each family in ascending order.

    Who resembles a member of a family belongs to it. Empty texts resemble nothing.
    """
    kin = _Kin(max(owners, default=-1) + 1)
    places: dict[str, int] = {}
    firsts: list[int] = []
    for text, owner in zip(texts, owners, strict=True):
        if not text:
            continue
        if text in places:
            kin.join(firsts[places[text]], owner)
        else:
            places[text] = len(firsts)
            firsts.append(owner)
    unique = list(places)
    if len(unique) > 1:
        owner_of = np.array(firsts, np.int64)
        for pairs in _candidates(unique, owner_of, kin):
            for left, right in pairs.tolist():
                if not kin.related(firsts[left], firsts[right]) and _near(
                    unique[left], unique[right]
                ):
                    kin.join(firsts[left], firsts[right])
    return kin.families()


class _Kin:
    """Disjoint sets of owners."""

    def __init__(self, size: int) -> None:
        self.parents = list(range(size))
        self._labels: Ints | None = None

    def root(self, member: int) -> int:
        parents = self.parents
        while parents[member] != member:
            parents[member] = parents[parents[member]]
            member = parents[member]
        return member

    def related(self, one: int, other: int) -> bool:
        return self.root(one) == self.root(other)

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self.root(one), self.root(other)))
        if first != second:
            self.parents[second] = first
            self._labels = None

    def labels(self) -> Ints:
        """The root of every owner."""
        if self._labels is None:
            self._labels = np.array([self.root(each) for each in range(len(self.parents))])
        return self._labels

    def families(self) -> list[list[int]]:
        found: dict[int, list[int]] = {}
        for member in range(len(self.parents)):
            found.setdefault(self.root(member), []).append(member)
        return [members for members in found.values() if len(members) > 1]


class _Sets(Struct, frozen=True):
    """The runs of all texts, text by text. A run is known by its rank, the rarest first.

    `text` has the place of the text in the order of sizes, `at` the place of the run in its text,
    and `shared` says whether another text may have the run too. `sizes` and `sketches`, which have
    a bit for each run, stand in the order of sizes; `order` leads back to the texts.
    """

    text: Shorts
    rank: Shorts
    at: Shorts
    shared: NDArray[np.bool_]
    sizes: Ints
    sketches: NDArray[np.uint64]
    order: Ints


def _candidates(texts: Sequence[str], owners: Ints, kin: _Kin) -> Iterator[Ints]:
    """Pairs of texts that may be near, some at a time; no pair that is near is left out.

    Of a near pair the larger set has a common run among its rarest `wide`, and the smaller one
    among its rarest `narrow`: what follows is too little to make them near.
    """
    sets = _sets(texts)
    numbers, owners = _numbered(texts)[sets.order], owners[sets.order]
    sizes, count = sets.sizes, len(texts)
    wide = (sizes - -(-_TOP * sizes // _BOTTOM)).astype(np.int32)
    narrow = (sizes - -(-2 * _TOP * sizes // (_TOP + _BOTTOM))).astype(np.int32)
    asking = np.flatnonzero(sets.shared & (sets.at <= wide[sets.text]))
    larger = sets.text[asking].astype(np.int64)
    # Texts are listed under their rare runs; those that name other numbers have other lists.
    lists = sets.rank[asking].astype(np.int64) * (int(numbers.max()) + 1) + numbers[larger]
    keys = (_numbers_for(lists) * count + larger) * 2 + (sets.at[asking] <= narrow[larger])
    order, sketches = sets.order, sets.sketches
    del sets, asking, lists
    keys.sort()  # in this order all that follows walks through memory once
    listed = keys[(keys & 1) == 1] >> 1
    keys >>= 1
    larger, smaller = keys % count, listed % count
    smallest = np.searchsorted(sizes, -(-_TOP * sizes // _BOTTOM))
    begin = np.searchsorted(listed, keys - larger + smallest[larger])
    counts = np.searchsorted(listed, keys) - begin
    del keys, listed
    totals = np.cumsum(counts)
    done, last = 0, 0
    while done < len(larger):
        stop = max(done + 1, int(np.searchsorted(totals, last + _PAIRS, side="right")))
        here = counts[done:stop]
        right = np.repeat(larger[done:stop], here)
        first = begin[done:stop] - (np.cumsum(here) - here)
        left = smaller[np.repeat(first, here) + np.arange(len(right))]
        last, done = int(totals[stop - 1]), stop
        yield order[_sifted(left, right, sizes, sketches, kin.labels()[owners])]


def _sifted(
    left: Ints, right: Ints, sizes: Ints, sketches: NDArray[np.uint64], family: Ints
) -> Ints:
    """The pairs of different families whose sketches differ by no more than near sets may.

    A bit that differs is a run that differs, and near sets differ in a ninth of their runs.
    """
    most = (sizes[left] + sizes[right]) * (_BOTTOM - _TOP) // (_BOTTOM + _TOP)
    apart = np.zeros(len(left), np.int64)
    for word in range(_WORDS):
        sketch = sketches[:, word]
        apart = apart + _ones(sketch[left] ^ sketch[right])
        near = np.flatnonzero(apart <= most)
        left, right, most, apart = left[near], right[near], most[near], apart[near]
    other = family[left] != family[right]
    pairs = _distinct(left[other] * len(family) + right[other])
    return np.stack(np.divmod(pairs, len(family)), axis=1)


def _sets(texts: Sequence[str]) -> _Sets:
    values, lengths, most = _values(texts)
    numbered = _numbers_for(values, most)
    del values
    often = np.bincount(numbered)
    rarest = np.argsort(often, kind="stable")
    rank_of = np.argsort(rarest, kind="stable")
    keys = np.repeat(np.arange(len(texts)), lengths) * len(often)
    keys += rank_of[numbered]
    del numbered
    text, rank = (each.astype(np.int32) for each in np.divmod(_distinct(keys), len(often)))
    del keys
    sizes = np.bincount(text, minlength=len(texts))
    starts = np.cumsum(sizes) - sizes
    order = np.argsort(sizes, kind="stable")
    return _Sets(
        text=np.argsort(order, kind="stable").astype(np.int32)[text],
        rank=rank,
        at=(np.arange(len(text)) - np.repeat(starts, sizes)).astype(np.int32),
        shared=(often[rarest] > 1)[rank],
        sizes=sizes[order],
        sketches=_sketched(rank, starts)[order],
        order=order,
    )


def _values(texts: Sequence[str]) -> tuple[Ints, Ints, int]:
    """A number for each run of each text, how many runs each text has, and the largest number + 1.

    A number is that of four letters; where there are too many letters for that, of two pairs.
    """
    padded = [_padded(text) for text in texts]
    lengths = np.array([len(text) for text in padded], np.int64)
    letters = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), np.uint32)
    there = np.zeros(0x110000, np.bool_)
    there[letters] = True
    known = int(there.sum())
    pairs = (np.cumsum(there) - 1)[letters]
    pairs = pairs[:-1] * known + pairs[1:]
    base = known * known
    if base * base >= 1 << 62:
        pairs = _numbers_for(pairs)
        base = int(pairs.max()) + 1
    inside = np.ones(len(letters), np.bool_)
    ends = np.cumsum(lengths)
    for back in range(1, _RUN):
        inside[ends - back] = False
    values = pairs[:-2] * base
    values += pairs[2:]
    return values[inside[: len(values)]], lengths - (_RUN - 1), base * base


def _distinct(values: Ints) -> Ints:
    """Each value once, in ascending order. Several times as fast as numpy's own for many values."""
    ordered = np.sort(values)
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    once: Ints = ordered[fresh[: len(ordered)]]
    return once


def _numbers_for(values: Ints, most: int | None = None) -> Ints:
    """A number from 0 for each value, in the order of the values, which are below `most`."""
    if most is not None and most <= _TABLE:
        there = np.zeros(most, np.bool_)
        there[values] = True
        return (np.cumsum(there, dtype=np.int32) - 1)[values].astype(np.int64)
    order = np.argsort(values)
    ordered = values[order]
    fresh = np.concatenate([[False], ordered[1:] != ordered[:-1]])
    numbers = np.empty(len(values), np.int64)
    numbers[order] = np.cumsum(fresh[: len(values)])
    return numbers


def _sketched(rank: Shorts, starts: Ints) -> NDArray[np.uint64]:
    """A few words of bits for each text."""
    mixed = (rank.astype(np.uint64) * _SPREAD) >> np.uint64(32)
    bits = np.uint64(1) << (mixed & np.uint64(63))
    word = (mixed >> np.uint64(6)) % np.uint64(_WORDS)
    return np.stack(
        [
            np.bitwise_or.reduceat(np.where(word == each, bits, np.uint64(0)), starts)
            for each in range(_WORDS)
        ],
        axis=1,
    )


def _numbered(texts: Iterable[str]) -> Ints:
    """The same number for texts that name the same numbers."""
    known: dict[frozenset[str], int] = {}
    return np.array([known.setdefault(_numbers(text), len(known)) for text in texts], np.int64)


def _ones(words: NDArray[np.uint64]) -> Ints:
    """Count the bits of each word."""
    if hasattr(np, "bitwise_count"):  # numpy 2 on
        counted: Ints = np.bitwise_count(words).astype(np.int64)
        return counted
    count = words - ((words >> np.uint64(1)) & np.uint64(0x5555555555555555))
    fours = np.uint64(0x3333333333333333)
    count = (count & fours) + ((count >> np.uint64(2)) & fours)
    count = (count + (count >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    summed: Ints = ((count * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)
    return summed


def _near(one: str, other: str) -> bool:
    mine, theirs = _runs(one), _runs(other)
    common = len(mine & theirs)
    return _BOTTOM * common >= _TOP * (len(mine) + len(theirs) - common)


def _padded(text: str) -> str:
    """A text with blanks around it, so that its ends count and one letter is a run."""
    return f"  {text} "


@lru_cache(maxsize=4096)
def _runs(text: str) -> frozenset[str]:
    padded = _padded(text)
    return frozenset({padded[at : at + _RUN] for at in range(len(padded) - _RUN + 1)})


def _numbers(text: str) -> frozenset[str]:
    if _DIGIT.search(text) is None:
        return frozenset()
    return frozenset(word for word in text.split() if _DIGIT.search(word))
