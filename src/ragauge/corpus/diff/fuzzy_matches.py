"""Finding text that was changed: in its place between what stayed, or anywhere by rare phrases.

A phrase is four words in a row. Only blocks that share a phrase which few blocks have are ever
compared, so the work grows with the text and not with the pairs of blocks. What is found in its
place to at least 0.85 (`SURE`, from which on a row of the map needs no review) is not searched for
anywhere else.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from zlib import crc32

from msgspec import Struct

from ragauge.corpus.diff.exact_matches import LONG_ENOUGH, Matching
from ragauge.corpus.diff.words import KeptText, Words, find_kept, sizes_by_owner, split_words
from ragauge.model.migration import SURE

# Longer phrases are rarer, and fewer of them survive an edit: each changed word takes out as many
# phrases as a phrase has words.
_PHRASE_WORDS = 4
_SHORT_TEXT = 40  # words up to which every phrase of a block is indexed, and not one in four
_RARE = 8  # blocks that may share a phrase; one in more of them (boilerplate) says nothing
# Blocks that are aligned with a lost one. More would find text that was scattered over more blocks,
# and each costs an alignment.
_MAX_CANDIDATES = 4
# What text elsewhere must have more than what is in place. With no such margin, a few common words
# more in another block would make a move of an edit; a large one would keep text at a worse place.
_MIN_GAIN = 0.02


class Placement(Struct, frozen=True):
    """Where an old item is now: its bytes without blanks, and what of them is in which new item.

    `exact` says that it is one new item which says the same, `moved` that it left its place in
    the order of what stayed.
    """

    size: int
    parts: tuple[KeptText, ...]
    exact: bool = False
    moved: bool = False

    @property
    def share(self) -> float:
        """How much of it is kept, from 0 to 1."""
        return 1.0 if self.exact else sum(part.size for part in self.parts) / max(1, self.size)


def place_items(matching: Matching) -> dict[int, Placement]:
    """Place every old item that can be found at all."""
    placements = {
        item: _place_exact(matching, item, place)
        for item, place in enumerate(matching.there)
        if place is not None
    }
    for old_items, new_items in matching.gaps():
        placements.update(_place_changed(matching, old_items, new_items))
    left = [
        number
        for number, item in enumerate(matching.old.items)
        if item.block is not None and (number not in placements or placements[number].share < SURE)
    ]
    if left:
        placements.update(_place_elsewhere(matching, left, placements))
    return placements


def _place_exact(matching: Matching, item: int, place: int) -> Placement:
    """Two items that say the same; only where their bytes differ the text must be looked at."""
    old, new = matching.old, matching.new
    whole = KeptText(item, place, old.items[item].size, ())
    moved = item not in matching.anchored
    if old.items[item].doc in matching.identical or old.bytes_of(item) == new.bytes_of(place):
        return Placement(whole.size, (whole,), exact=True, moved=moved)
    old_words, new_words = split_words([old.owned_text(item)]), split_words([new.owned_text(place)])
    parts = tuple(find_kept(old_words, new_words))
    # Fingerprints ignore case and form, so the same text may have no word in common.
    spans = (*old.items[item].span, *new.items[place].span)
    parts = parts or (KeptText(item, place, 0, (spans,)),)
    return Placement(whole.size, parts, exact=True, moved=moved)


def _place_changed(
    matching: Matching, old_items: list[int], new_items: list[int]
) -> dict[int, Placement]:
    """Align the changed text between two matches, over the borders of blocks.

    So one block may turn up in two (a subtitle was inserted), and two in one.
    """
    old_words = split_words(matching.old.owned_text(item) for item in old_items)
    new_words = split_words(matching.new.owned_text(item) for item in new_items)
    by_item: dict[int, list[KeptText]] = defaultdict(list)
    for part in find_kept(old_words, new_words):
        by_item[part.old].append(part)
    sizes = sizes_by_owner(old_words)
    return {item: Placement(sizes[item], tuple(parts)) for item, parts in by_item.items()}


def _place_elsewhere(
    matching: Matching, left: list[int], placements: dict[int, Placement]
) -> dict[int, Placement]:
    """Look for what is left in all new blocks that are not the same as an old one."""
    old, new = matching.old, matching.new
    index: dict[int, list[int]] = defaultdict(list)
    for number, item in enumerate(new.items):
        if item.block is not None and matching.origin[number] is None:
            for phrase in _phrases(split_words([new.owned_text(number)])):
                # One more than is rare: a full list tells that the phrase is not.
                if len(index[phrase]) <= _RARE:
                    index[phrase].append(number)
    unique = _unique_texts(matching)
    better = {}
    for number in left:
        copy = unique.get(old.items[number].key)
        if copy is not None:  # copies that became one: the one that stayed has its own match
            better[number] = _place_exact(matching, number, copy)
            continue
        words = split_words([old.owned_text(number)])
        in_place = placements.get(number)
        nearby = [] if in_place is None else [part.new for part in in_place.parts]
        candidates = _candidates(words, index)
        if not [candidate for candidate in candidates if candidate not in nearby]:
            continue
        moved = _assemble(matching, words, list(dict.fromkeys(candidates + nearby)))
        if in_place is None or moved.share > in_place.share + _MIN_GAIN:
            better[number] = moved
    return better


def _unique_texts(matching: Matching) -> dict[str, int]:
    """Every long text that stands once in the new corpus, also where it was there before."""
    counts = Counter(item.key for item in matching.new.items)
    return {
        item.key: number
        for number, item in enumerate(matching.new.items)
        if item.block is not None and item.size >= LONG_ENOUGH and counts[item.key] == 1
    }


def _phrases(words: Words) -> list[int]:
    """The phrases of a text as numbers; of a long text one in four, chosen by the phrase itself.

    Choosing by the number makes both corpora keep the same phrases. CRC-32 is the same on every
    machine, unlike `hash`; two phrases with one number only cost a comparison in vain.
    """
    listed = words.words
    every = len(listed) <= _SHORT_TEXT
    phrases: dict[int, None] = {}
    for start in range(max(1, len(listed) - _PHRASE_WORDS + 1)):
        number = crc32(b" ".join(listed[start : start + _PHRASE_WORDS]))
        if every or number % 4 == 0:
            phrases[number] = None
    return list(phrases)


def _candidates(words: Words, index: dict[int, list[int]]) -> list[int]:
    """The blocks that share most rare phrases."""
    votes: Counter[int] = Counter()
    for phrase in _phrases(words):
        holders = index.get(phrase, [])
        if len(holders) <= _RARE:
            votes.update(holders)
    return sorted(votes, key=lambda number: (-votes[number], number))[:_MAX_CANDIDATES]


def _assemble(matching: Matching, words: Words, candidates: list[int]) -> Placement:
    """Take from each candidate what the ones before it did not have; parts may be in any order."""
    size = sum(map(len, words.words))
    parts: list[KeptText] = []
    rest = words
    for candidate in candidates:
        new_words = split_words([matching.new.owned_text(candidate)])
        for part in find_kept(rest, new_words):
            parts.append(part)
            rest = rest.without(set(part.words))
            break
        if not rest.words:
            break
    return Placement(size, tuple(sorted(parts, key=lambda part: part.new)), moved=True)
