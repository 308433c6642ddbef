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

from ragauge.gold.lint.shingles import (
    BOTTOM,
    RUN,
    TOP,
    Bits,
    Ints,
    count_bits,
    distinct,
    most_apart,
    padded,
    rarest_runs,
)

NEAR_SHARE = TOP / BOTTOM
"""The share from which on two texts are nearly the same."""

_PAIRS = 1 << 17  # pairs that are looked at together, so that they stay near the processor
_MANY = 1 << 12  # pairs that are worth a look at who is related by now
_ENDS = ".,;:!?¿¡\"'`´()[]{}<>«»“”„‘’…。，、；：！？（）「」『』《》"  # noqa: RUF001
_DIGIT = re.compile(r"\d")


def normalised(text: str) -> str:
    """A text without case, compatibility forms, and the punctuation around its words.

    Signs inside a word or without a place in a sentence stay: `C` and `C++` are two languages.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = (word.strip(_ENDS) for word in folded.split())
    return " ".join(word for word in words if word)


def similarity(one: str, other: str) -> float:
    """The share of runs that two normalised texts have in common; 0 if their numbers differ."""
    if _numbers(one) != _numbers(other):
        return 0.0
    one_runs, other_runs = _runs(one), _runs(other)
    return len(one_runs & other_runs) / len(one_runs | other_runs)


def group_near_duplicates(texts: Sequence[str], owners: Sequence[int]) -> list[list[int]]:
    """Owners whose normalised texts resemble each other, each family in ascending order.

    Who resembles a member of a family belongs to it. Empty texts resemble nothing.
    """
    kin = _DisjointSets(max(owners, default=-1) + 1)
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


class _DisjointSets:
    """Disjoint sets of owners."""

    def __init__(self, size: int) -> None:
        self.parents = list(range(size))
        self._labels: Ints | None = None
        self._joined = False

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
            self._joined = True

    def labels(self, *, fresh: bool) -> Ints:
        """The root of every owner; unless they must be fresh, some may have been joined since."""
        if self._labels is None or (fresh and self._joined):
            self._labels = np.array([self.root(member) for member in range(len(self.parents))])
            self._joined = False
        return self._labels

    def families(self) -> list[list[int]]:
        by_root: dict[int, list[int]] = {}
        for member in range(len(self.parents)):
            by_root.setdefault(self.root(member), []).append(member)
        return [members for members in by_root.values() if len(members) > 1]


def _candidates(texts: Sequence[str], owners: Ints, kin: _DisjointSets) -> Iterator[Ints]:
    """Pairs of texts that may be near, some at a time; no pair that is near is left out."""
    rare = rarest_runs(texts)
    count = len(texts)
    order = np.argsort(rare.sizes, kind="stable")
    place = np.argsort(order, kind="stable")
    numbers, owners = _number_sets(texts)[order], owners[order]
    sizes, sketches = rare.sizes[order], np.ascontiguousarray(rare.sketches[:, order])
    larger = place[rare.text]
    # Texts are listed under their rare runs; those that name other numbers have other lists.
    lists = rare.rank.astype(np.int64) * (int(numbers.max()) + 1) + numbers[larger]
    keys = (_rank_values(lists) * count + larger) * 2 + rare.first
    del rare, lists
    keys.sort()  # in this order all that follows walks through memory once
    listed = keys[(keys & 1) == 1] >> 1
    keys >>= 1
    larger, smaller = keys % count, listed % count
    smallest = np.searchsorted(sizes, -(-TOP * sizes // BOTTOM))
    begin = np.searchsorted(listed, keys - larger + smallest[larger])
    counts = np.searchsorted(listed, keys) - begin
    del keys, listed
    asked = np.flatnonzero(counts)
    larger, begin, counts = larger[asked], begin[asked], counts[asked]
    totals = np.cumsum(counts)
    done, last = 0, 0
    while done < len(larger):
        stop = max(done + 1, int(np.searchsorted(totals, last + _PAIRS, side="right")))
        here = counts[done:stop]
        right = np.repeat(larger[done:stop], here)
        first = begin[done:stop] - (np.cumsum(here) - here)
        left = smaller[np.repeat(first, here) + np.arange(len(right))]
        last, done = int(totals[stop - 1]), stop
        pairs = _sifted(left, right, sizes, sketches)
        if len(pairs):
            family = kin.labels(fresh=len(pairs) > _MANY)[owners]
            yield order[pairs[family[pairs[:, 0]] != family[pairs[:, 1]]]]


def _sifted(left: Ints, right: Ints, sizes: Ints, sketches: Bits) -> Ints:
    """The pairs whose sketches differ by no more than near sets may."""
    most = most_apart(sizes[left], sizes[right])
    apart = np.zeros(len(left), np.int64)
    for sketch in sketches:
        apart += count_bits(sketch[left] ^ sketch[right])
        near = np.flatnonzero(apart <= most)
        left, right, most, apart = left[near], right[near], most[near], apart[near]
    pairs = distinct(left * len(sizes) + right)
    return np.stack(np.divmod(pairs, len(sizes)), axis=1)


def _rank_values(values: Ints) -> Ints:
    """A number from 0 for each value, in the order of the values."""
    order = np.argsort(values)
    ordered = values[order]
    fresh = np.concatenate([[False], ordered[1:] != ordered[:-1]])
    numbers = np.empty(len(values), np.int64)
    numbers[order] = np.cumsum(fresh[: len(values)])
    return numbers


def _number_sets(texts: Iterable[str]) -> Ints:
    """The same number for texts that name the same numbers."""
    numbers: dict[frozenset[str], int] = {}
    return np.array([numbers.setdefault(_numbers(text), len(numbers)) for text in texts], np.int64)


def _near(one: str, other: str) -> bool:
    one_runs, other_runs = _runs(one), _runs(other)
    common = len(one_runs & other_runs)
    return BOTTOM * common >= TOP * (len(one_runs) + len(other_runs) - common)


@lru_cache(maxsize=4096)
def _runs(text: str) -> frozenset[str]:
    whole = padded(text)
    return frozenset({whole[at : at + RUN] for at in range(len(whole) - RUN + 1)})


def _numbers(text: str) -> frozenset[str]:
    if _DIGIT.search(text) is None:
        return frozenset()
    return frozenset(word for word in text.split() if _DIGIT.search(word))
