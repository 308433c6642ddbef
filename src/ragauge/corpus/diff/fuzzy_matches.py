"""Finding text that was changed: in its place between what stayed, or anywhere by rare phrases.

A phrase is four words in a row. Only blocks that share a phrase which few blocks have are ever
compared, so the work grows with the text and not with the pairs of blocks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from zlib import crc32

from msgspec import Struct

from ragauge.corpus.diff.exact_matches import LONG_ENOUGH, Matching
from ragauge.corpus.diff.words import Kept, Words, kept_between, weight, words_of
from ragauge.model.migration import SURE, Run

_PHRASE = 4
_SHORT = 40  # words up to which every phrase of a block is remembered, and not one in four
_FEW = 8
_CANDIDATES = 4
_BETTER = 0.02


class Placed(Struct, frozen=True):
    """Where an old item stands now: its bytes without blanks, and what of them is in which item.

    `exact` says that it is one new item which says the same, `moved` that it left its place in
    the order of what stayed.
    """

    size: int
    parts: tuple[Kept, ...]
    exact: bool = False
    moved: bool = False

    @property
    def share(self) -> float:
        """How much of it is kept, from 0 to 1."""
        return 1.0 if self.exact else sum(part.size for part in self.parts) / max(1, self.size)


def placed(matching: Matching) -> dict[int, Placed]:
    """Place every old item that can be found at all."""
    placements = {
        item: _same(matching, item, place)
        for item, place in enumerate(matching.there)
        if place is not None
    }
    for old_items, new_items in matching.gaps():
        placements.update(_changed(matching, old_items, new_items))
    left = [
        number
        for number, item in enumerate(matching.old.items)
        if item.block is not None and (number not in placements or placements[number].share < SURE)
    ]
    if left:
        placements.update(_elsewhere(matching, left, placements))
    return placements


def _same(matching: Matching, item: int, place: int) -> Placed:
    """Two items that say the same; only where their bytes differ the text must be looked at."""
    old, new = matching.old, matching.new
    whole = Kept(item, place, old.items[item].size, ())
    moved = item not in matching.anchored
    if old.items[item].doc in matching.identical or old.bytes_of(item) == new.bytes_of(place):
        return Placed(whole.size, (whole,), exact=True, moved=moved)
    old_words, new_words = words_of([old.stretch(item)]), words_of([new.stretch(place)])
    parts = tuple(kept_between(old_words, new_words))
    parts = parts or (Kept(item, place, 0, _ends(matching, item, place)),)
    return Placed(whole.size, parts, exact=True, moved=moved)


def _ends(matching: Matching, item: int, place: int) -> tuple[Run, ...]:
    return ((*matching.old.items[item].span, *matching.new.items[place].span),)


def _changed(matching: Matching, old_items: list[int], new_items: list[int]) -> dict[int, Placed]:
    """Align the changed text between two matches."""
    old_words = words_of(matching.old.stretch(item) for item in old_items)
    new_words = words_of(matching.new.stretch(item) for item in new_items)
    by_item: dict[int, list[Kept]] = defaultdict(list)
    for part in kept_between(old_words, new_words):
        by_item[part.old].append(part)
    sizes = weight(old_words)
    return {item: Placed(sizes[item], tuple(parts)) for item, parts in by_item.items()}


def _elsewhere(
    matching: Matching, left: list[int], placements: dict[int, Placed]
) -> dict[int, Placed]:
    """Look for what is left in all new blocks that are not the same as an old one."""
    old, new = matching.old, matching.new
    index: dict[int, list[int]] = defaultdict(list)
    for number, item in enumerate(new.items):
        if item.block is not None and matching.origin[number] is None:
            for phrase in _phrases(words_of([new.stretch(number)])):
                if len(index[phrase]) <= _FEW:
                    index[phrase].append(number)
    unique = _standing_once(matching)
    better = {}
    for number in left:
        copy = unique.get(old.items[number].key)
        if copy is not None:
            better[number] = _same(matching, number, copy)
            continue
        words = words_of([old.stretch(number)])
        in_place = placements.get(number)
        nearby = [] if in_place is None else [part.new for part in in_place.parts]
        candidates = _candidates(words, index)
        if not [candidate for candidate in candidates if candidate not in nearby]:
            continue
        moved = _assembled(matching, words, list(dict.fromkeys(candidates + nearby)))
        if in_place is None or moved.share > in_place.share + _BETTER:
            better[number] = moved
    return better


def _standing_once(matching: Matching) -> dict[str, int]:
    """Every long text that stands once in the new corpus, also where it was there before."""
    counts = Counter(item.key for item in matching.new.items)
    return {
        item.key: number
        for number, item in enumerate(matching.new.items)
        if item.block is not None and item.size >= LONG_ENOUGH and counts[item.key] == 1
    }


def _phrases(words: Words) -> list[int]:
    """The phrases of a text as numbers; of a long text one in four, chosen by the phrase itself."""
    listed = words.words
    every = len(listed) <= _SHORT
    phrases: dict[int, None] = {}
    for start in range(max(1, len(listed) - _PHRASE + 1)):
        number = crc32(b" ".join(listed[start : start + _PHRASE]))
        if every or number % 4 == 0:
            phrases[number] = None
    return list(phrases)


def _candidates(words: Words, index: dict[int, list[int]]) -> list[int]:
    """The blocks that share most rare phrases."""
    votes: Counter[int] = Counter()
    for phrase in _phrases(words):
        holders = index.get(phrase, [])
        if len(holders) <= _FEW:
            votes.update(holders)
    ranked = sorted(votes, key=lambda number: (-votes[number], number))
    return ranked[:_CANDIDATES]


def _assembled(matching: Matching, words: Words, candidates: list[int]) -> Placed:
    """Take from each candidate what the ones before it did not have; parts may be in any order."""
    size = sum(map(len, words.words))
    parts: list[Kept] = []
    rest = words
    for candidate in candidates:
        new_words = words_of([matching.new.stretch(candidate)])
        for part in kept_between(rest, new_words):
            parts.append(part)
            rest = rest.without(set(part.words))
            break
        if not rest.words:
            break
    return Placed(size, tuple(sorted(parts, key=lambda part: part.new)), moved=True)
