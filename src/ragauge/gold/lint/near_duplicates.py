"""Texts that say nearly the same in nearly the same words: an exact search among many.

Two texts resemble each other if they share at least four fifths of their runs of four characters
(Jaccard) and name the same numbers: `in 2021` and `in 2022` are two questions. Nothing is sampled:
MinHash would miss a pair in one order of the file and find it in another. A near pair must share
one of the rarest runs of both (prefix filtering), so that few pairs are ever compared; sketches of
256 bits then exclude most of these. Texts are taken some at a time, so that memory holds a few
bytes for each character and no more.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

TOP, BOTTOM = 4, 5
"""The share of common runs, 4/5, from which on two sets are near; integers are never rounded."""

NEAR_SHARE = TOP / BOTTOM
"""The share from which on two texts are nearly the same.

A typo in a question of 40 letters takes 4 of 40 runs away on either side: 36 / 44 = 0.82.
"""

RUN = 4
"""Characters of a run. They work in every script and see through a typo, where words do not."""
WORDS = 4
"""Words of 64 bits in which a set of runs is sketched."""

_PAIRS = 1 << 17  # pairs that are compared together, so that they stay in the processor's cache
_MANY = 1 << 12  # pairs from which on it pays to see first which owners are joined by now
_AT_ONCE = 1 << 13  # texts
_LARGE = 64  # texts of a group; more are not compared by sketches, which takes all pairs
_TABLE = 1 << 25  # the largest table that saves sorting
_ENDS = ".,;:!?¿¡\"'`´()[]{}<>«»“”„‘’…。，、；：！？（）「」『』《》"  # noqa: RUF001
_DIGIT = re.compile(r"\d")
# Odd constants with well mixed bits, as in xxHash: one for each character of a run.
_MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93)

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Bits = NDArray[np.uint64]


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
    # Equal texts are joined at once, so that all that follows is about distinct texts.
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
                one, other = firsts[left], firsts[right]
                if not kin.related(one, other) and _near(unique[left], unique[right]):
                    kin.join(one, other)
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
    """Pairs of texts that may be near, some at a time; no pair that is near is missing.

    Texts are ordered by size. Each looks in the lists of its own rare runs for smaller texts, down
    to four fifths of its size: smaller ones cannot share enough with it.
    """
    rare = rarest_runs(texts)
    count = len(texts)
    order = np.argsort(rare.sizes, kind="stable")
    place = np.argsort(order, kind="stable")
    numbers, owners = _number_sets(texts)[order], owners[order]
    sizes, sketches = rare.sizes[order], np.ascontiguousarray(rare.sketches[:, order])
    larger = place[rare.text]
    # Texts are listed under their rare runs; those that name other numbers have other lists.
    lists = rare.rank.astype(np.int64) * (int(numbers.max()) + 1) + numbers[larger]
    # A key is list, text and flag in one integer; sorted, each list is one range of it.
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
            # Pairs within a family say nothing new: a thousand alike would be half a million.
            family = kin.labels(fresh=len(pairs) > _MANY)[owners]
            yield order[pairs[family[pairs[:, 0]] != family[pairs[:, 1]]]]


def _sifted(left: Ints, right: Ints, sizes: Ints, sketches: Bits) -> Ints:
    """The pairs whose sketches differ by no more than near sets may."""
    most = most_apart(sizes[left], sizes[right])
    apart = np.zeros(len(left), np.int64)
    for sketch in sketches:
        apart += count_bits(sketch[left] ^ sketch[right])
        near = np.flatnonzero(apart <= most)  # most pairs go after the first word
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


# Texts as sets of runs, in numbers


class RareRuns(Struct, frozen=True):
    """The rarest runs of each text that another one may share, text by text.

    Of a near pair the larger set has a common run among its rarest, and the smaller one among the
    `first` of them: what follows is too little to make them near. A run is known by its rank.
    """

    text: Shorts
    rank: Shorts
    first: NDArray[np.bool_]
    sizes: Ints
    sketches: Bits


def padded(text: str) -> str:
    """A text with blanks around it, so that its ends count and one letter is a run."""
    return f"  {text} "


def rarest_runs(texts: Sequence[str]) -> RareRuns:
    """The rarest runs of all texts, none of which is empty, and a sketch of each text."""
    # A run that occurs once cannot be shared. It still has its place among the rarest.
    numbers, often = _numbered_runs(texts)
    shared = often > 1
    rarest = np.argsort(often, kind="stable")
    rank_of = np.argsort(rarest, kind="stable").astype(np.int32)
    shared = shared[rarest]
    parts: list[tuple[Shorts, Shorts, NDArray[np.bool_]]] = []
    sizes, sketches = np.zeros(len(texts), np.int64), np.zeros((WORDS, len(texts)), np.uint64)
    for place, part in enumerate(_parts(texts)):
        letters, lengths = _letters(part)
        base = place * _AT_ONCE
        sketches[:, base : base + len(part)] = _sketched(letters, lengths)
        keys = np.repeat(np.arange(len(part)), lengths - (RUN - 1)) * len(often)
        keys += rank_of[numbers[place]]
        numbers[place] = np.zeros(0, np.int32)  # it is not needed again
        text, rank = np.divmod(distinct(keys), len(often))
        size = np.bincount(text, minlength=len(part))
        sizes[base : base + len(part)] = size
        at = np.arange(len(text)) - np.repeat(np.cumsum(size) - size, size)
        taken = np.flatnonzero(shared[rank] & (at <= _prefix_of_larger(size)[text]))
        text, rank, at = text[taken], rank[taken], at[taken]
        first = at <= _prefix_of_smaller(size)[text]
        parts.append(((text + base).astype(np.int32), rank.astype(np.int32), first))
    texts_of, ranks, firsts = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return RareRuns(texts_of, ranks, firsts, sizes, sketches)


def _prefix_of_larger(sizes: Ints) -> Ints:
    """The last place, by rarity, at which the larger set of a near pair must have a common run.

    At least 4/5 of it are common, because the union is no smaller: if none of its first
    n - ceil(4n/5) + 1 runs were, too few would be left.
    """
    return sizes - -(-TOP * sizes // BOTTOM)


def _prefix_of_smaller(sizes: Ints) -> Ints:
    """The same for the smaller set: 4/9 of both sizes together are common, so 8/9 of it."""
    return sizes - -(-2 * TOP * sizes // (TOP + BOTTOM))


def may_be_near(groups: Sequence[Sequence[str]]) -> list[bool]:
    """Whether two texts of a group may be near; where it says no, none are.

    Groups that are large are not looked at.
    """
    flags = np.zeros(len(groups), np.bool_)
    for begin in range(0, len(groups), _AT_ONCE // 4):
        texts: list[str] = []
        owners: list[int] = []
        for number, group in enumerate(groups[begin : begin + _AT_ONCE // 4], begin):
            filled = [text for text in group if text]
            if len(filled) > _LARGE:
                flags[number] = True
            elif len(filled) > 1:
                texts += filled
                owners += [number] * len(filled)
        if texts:
            _flag_near(texts, np.array(owners, np.int64), flags)
    return [bool(flag) for flag in flags]


def _flag_near(texts: Sequence[str], owners: Ints, flags: NDArray[np.bool_]) -> None:
    letters, lengths = _letters(texts)
    sketches, runs = _sketched(letters, lengths), lengths - (RUN - 1)
    for step in range(1, int(np.bincount(owners - owners[0]).max())):
        left = np.flatnonzero(owners[:-step] == owners[step:])
        right = left + step
        apart = sum(count_bits(word[left] ^ word[right]) for word in sketches)
        near = apart <= most_apart(runs[left], runs[right])
        flags[owners[left[near]]] = True


def most_apart(one: Ints, other: Ints) -> Ints:
    """In how many runs near sets of these sizes differ at most; a bit that differs is a run.

    Near sets have at least 4/9 of both sizes in common, which leaves 1/9 of both sizes. Two runs
    may share a bit, so sketches never differ in more bits than sets in runs.
    """
    return (one + other) * (BOTTOM - TOP) // (BOTTOM + TOP)


def _parts(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(texts), _AT_ONCE):
        yield texts[start : start + _AT_ONCE]


def _letters(texts: Sequence[str]) -> tuple[NDArray[np.uint32], Ints]:
    """The characters of all texts, padded, and how many each has."""
    ready = [padded(text) for text in texts]
    lengths = np.array([len(text) for text in ready], np.int64)
    return np.frombuffer("".join(ready).encode("utf-32-le", "surrogatepass"), np.uint32), lengths


def _within(lengths: Ints) -> NDArray[np.bool_]:
    """Where a run begins that ends in the same text."""
    inside = np.ones(int(lengths.sum()), np.bool_)
    ends = np.cumsum(lengths)
    for back in range(1, RUN):
        inside[ends - back] = False
    return inside[: 1 - RUN]


def _sketched(letters: NDArray[np.uint32], lengths: Ints) -> Bits:
    """A few words of bits for each text, with a bit for each run."""
    mixed = np.zeros(len(letters) - (RUN - 1), np.uint64)
    for place, factor in enumerate(_MIX):
        mixed += letters[place : len(mixed) + place].astype(np.uint64) * np.uint64(factor)
    mixed = mixed[_within(lengths)]
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(_MIX[0])
    mixed >>= np.uint64(40)
    bits = np.uint64(1) << (mixed & np.uint64(63))
    word = (mixed >> np.uint64(6)) % np.uint64(WORDS)
    runs = lengths - (RUN - 1)
    starts = np.cumsum(runs) - runs
    by_word = (np.where(word == number, bits, np.uint64(0)) for number in range(WORDS))
    return np.stack([np.bitwise_or.reduceat(chosen, starts) for chosen in by_word])


def _numbered_runs(texts: Sequence[str]) -> tuple[list[Shorts], Ints]:
    """The number of every run of every text, part by part, and how often each number occurs.

    A run is a number with four digits, in a system with as many digits as there are letters.
    """
    there = np.zeros(0x110000, np.bool_)
    for part in _parts(texts):
        there[_letters(part)[0]] = True
    digits, letter_count = np.cumsum(there) - 1, int(there.sum())
    pairs = None
    if letter_count**RUN >= 1 << 62:  # too many letters: known pairs of them are numbered instead
        digits_of = (digits[_letters(part)[0]] for part in _parts(texts))
        pairs = distinct(
            np.concatenate([distinct(_pairs(part, letter_count)) for part in digits_of])
        )
    base = letter_count * letter_count if pairs is None else len(pairs)
    most = base * base
    values: list[Ints] = []
    seen = np.zeros(most if most <= _TABLE else 0, np.bool_)
    for part in _parts(texts):
        letters, lengths = _letters(part)
        two = _pairs(digits[letters], letter_count)
        if pairs is not None:
            two = np.searchsorted(pairs, two)
        four = (two[:-2] * base + two[2:])[_within(lengths)]
        values.append(four.astype(np.int32) if most <= _TABLE else four)
        if most <= _TABLE:
            seen[four] = True
    if most <= _TABLE:
        number_of = np.cumsum(seen, dtype=np.int32) - 1
        count = int(seen.sum())
        numbers = [number_of[runs] for runs in values]
    else:
        kinds = distinct(np.concatenate([distinct(runs) for runs in values]))
        count = len(kinds)
        numbers = [np.searchsorted(kinds, runs).astype(np.int32) for runs in values]
    often = np.zeros(count, np.int64)
    for part_numbers in numbers:
        often += np.bincount(part_numbers, minlength=count)
    return numbers, often


def _pairs(digits: Ints, letter_count: int) -> Ints:
    return digits[:-1] * letter_count + digits[1:]


def distinct(values: Ints) -> Ints:
    """Each value once, in ascending order. Several times as fast as numpy's own for many values."""
    ordered = np.sort(values)
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    once: Ints = ordered[fresh[: len(ordered)]]
    return once


def count_bits(words: Bits) -> Ints:
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
