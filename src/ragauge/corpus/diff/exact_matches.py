"""Matching what says the same in two corpora: documents first, then headings and blocks.

Documents are paired by name, and those that lost theirs by their content. Inside a pair, items
that say the same are matched in order. The rest is matched wherever in the corpus it went, if it
is long enough to be recognised, and with it the neighbours that moved along.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from ragauge.corpus.diff.sequence_alignment import align
from ragauge.corpus.diff.words import OwnedText
from ragauge.corpus.manifest import Corpus
from ragauge.model.corpus import Block, Extent, Section

LONG_ENOUGH = 40
"""From this many bytes on, a text that occurs once is taken for the same wherever it is.

Shorter texts (`Example`, `See also`) are too common: one that disappears here and one that is new
there have nothing to do with each other, so they only keep their place in the order.
"""

# The share of a document's bytes that another must have to be the same one, renamed. A larger share
# would lose documents that were renamed and edited all over; a smaller one would pair documents
# that have only some standard paragraphs in common.
_RENAMED_SHARE = 0.3
# A block in more documents than this (licence notes, navigation) does not identify any of them,
# and counting it would make the votes grow with the square of the documents.
_FEW_DOCUMENTS = 8
_TEXTS_CACHED = 64  # documents; they are compared in order, so a few are enough


class OrderedItem(Struct, frozen=True):
    """A heading or a block; `key` is the same for those that say the same.

    `doc`, `section` and `block` are numbers: places among all documents, sections and blocks of
    the corpus. A heading has no `block`.
    """

    doc: int
    span: Extent
    key: str
    section: int
    block: int | None = None

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.span[1] - self.span[0]


class OrderedCorpus:
    """A corpus in which everything has a number: matches are then pairs of integers.

    `items` are all headings and blocks, document by document; `ranges` are the first item of each
    document and the one behind its last, `subtrees` the same for each section. `text` gives the
    text of a document; the last few are remembered.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.documents = corpus.documents
        self.sections = corpus.sections
        self.blocks = corpus.blocks
        self.doc_numbers = {document.doc: n for n, document in enumerate(corpus.documents)}
        self.section_numbers = {
            (section.doc, section.id): n for n, section in enumerate(corpus.sections)
        }
        self.items: list[OrderedItem] = []
        self.ranges: list[tuple[int, int]] = []
        self.item_of_block: list[int] = [0] * len(corpus.blocks)
        self.item_of_heading: dict[int, int] = {}
        self.text = lru_cache(_TEXTS_CACHED)(self._read_text)
        self._collect_items()
        self.parents = [
            None if section.parent is None else self.section_numbers[section.doc, section.parent]
            for section in corpus.sections
        ]
        self.subtrees = [self._subtree(section) for section in corpus.sections]

    def _collect_items(self) -> None:
        by_doc: list[list[OrderedItem]] = [[] for _ in self.documents]
        for number, section in enumerate(self.sections):
            if section.heading is not None:
                doc = self.doc_numbers[section.doc]
                # The mark keeps a heading apart from a block; fingerprints are hexadecimal.
                title = " ".join(section.title.lower().split())
                by_doc[doc].append(OrderedItem(doc, section.heading, f"# {title}", number))
        for number, block in enumerate(self.blocks):
            doc = self.doc_numbers[block.doc]
            section_number = self.section_numbers[block.doc, block.section]
            by_doc[doc].append(
                OrderedItem(doc, block.span, block.fingerprint, section_number, number)
            )
        for listed in by_doc:
            start = len(self.items)
            self.items += sorted(listed, key=lambda item: item.span)
            self.ranges.append((start, len(self.items)))
        for number, item in enumerate(self.items):
            if item.block is None:
                self.item_of_heading[item.section] = number
            else:
                self.item_of_block[item.block] = number

    def _subtree(self, section: Section) -> tuple[int, int]:
        """The items from the first to behind the last of a section and those below it."""
        start, end = self.ranges[self.doc_numbers[section.doc]]

        def place(byte: int) -> int:
            return bisect_left(self.items, byte, start, end, key=lambda item: item.span[0])

        return place(section.subtree[0]), place(section.subtree[1])

    def block(self, item: int) -> Block | None:
        """The block that an item is, or None for a heading."""
        number = self.items[item].block
        return None if number is None else self.blocks[number]

    def _read_text(self, doc: int) -> bytes:
        return self.corpus.text(self.documents[doc])

    def bytes_of(self, item: int) -> bytes:
        """The bytes of an item."""
        entry = self.items[item]
        return self.text(entry.doc)[slice(*entry.span)]

    def owned_text(self, item: int) -> OwnedText:
        """The text of an item, with the number of the item as its owner."""
        entry = self.items[item]
        return OwnedText(item, self.text(entry.doc), entry.span)


class Matching:
    """Which items of the old side are the same as which of the new one.

    `there` holds for each old item the new one or None, `origin` the other way round. `anchored`
    are old items whose match is in order within a pair of documents; `identical` are old documents
    of which not a byte changed.
    """

    def __init__(self, old: OrderedCorpus, new: OrderedCorpus) -> None:
        self.old = old
        self.new = new
        self.there: list[int | None] = [None] * len(old.items)
        self.origin: list[int | None] = [None] * len(new.items)
        self.anchored: set[int] = set()
        self.pairs = _pair_documents(old, new)
        self.identical: set[int] = set()

    def match(self, item: int, place: int) -> None:
        """Say that two items are the same."""
        self.there[item] = place
        self.origin[place] = item

    def gaps(self) -> Iterator[tuple[list[int], list[int]]]:
        """What is unmatched on both sides between matches in order: text that was changed."""
        for doc, other in sorted(self.pairs.items()):
            if doc in self.identical:
                continue
            (start, end), (low, high) = self.old.ranges[doc], self.new.ranges[other]
            # Only matches in order delimit a gap: one that moved here from elsewhere says nothing
            # about what its neighbours were. One step behind the end closes the last gap.
            old_gap: list[int] = []
            for item in range(start, end + 1):
                if item < end and item not in self.anchored:
                    if self.there[item] is None:
                        old_gap.append(item)
                    continue
                place = self.there[item] if item < end else high
                assert place is not None
                new_gap = [number for number in range(low, place) if self.origin[number] is None]
                if old_gap and new_gap:
                    yield old_gap, new_gap
                old_gap, low = [], place + 1


def match_exactly(old: OrderedCorpus, new: OrderedCorpus) -> Matching:
    """Match two corpora by what is the same in them."""
    matching = Matching(old, new)
    for doc, other in sorted(matching.pairs.items()):
        _match_in_order(matching, doc, other)
    _match_moved(matching)
    return matching


def _match_in_order(matching: Matching, doc: int, other: int) -> None:
    old, new = matching.old, matching.new
    (start, end), (low, high) = old.ranges[doc], new.ranges[other]
    old_keys = [item.key for item in old.items[start:end]]
    new_keys = [item.key for item in new.items[low:high]]
    # The hash is of the text alone. Another version of a parser may cut the same text otherwise,
    # so sections and spans are compared as well.
    if old.documents[doc].hash == new.documents[other].hash and old_keys == new_keys:
        spans = [item.span for item in old.items[start:end]]
        if spans == [item.span for item in new.items[low:high]]:
            matching.identical.add(doc)
    for i, j, length in align(old_keys, new_keys):
        for k in range(length):
            matching.match(start + i + k, low + j + k)
            matching.anchored.add(start + i + k)


def _match_moved(matching: Matching) -> None:
    """Match what is left by text that occurs once on both sides, then as often on both sides.

    Unique texts go first: their neighbours are matched along with them, which leaves fewer copies
    to be assigned in the order in which they come.
    """
    old, new = matching.old, matching.new
    for most in (1, None):
        new_by_key = _unmatched_by_key(new, matching.origin)
        for key, items in _unmatched_by_key(old, matching.there).items():
            places = new_by_key.get(key, [])
            if len(items) != len(places) or (most is not None and len(items) > most):
                continue
            if old.items[items[0]].size < LONG_ENOUGH:
                continue
            for item, place in zip(items, places, strict=True):
                if matching.there[item] is None and matching.origin[place] is None:
                    matching.match(item, place)
                    _match_neighbours(matching, item, place)


def _match_neighbours(matching: Matching, item: int, place: int) -> None:
    """Match what stands before and behind, as long as it says the same and is free."""
    old, new = matching.old, matching.new
    start, end = old.ranges[old.items[item].doc]
    low, high = new.ranges[new.items[place].doc]
    for step in (1, -1):
        i, j = item + step, place + step
        while (
            start <= i < end
            and low <= j < high
            and matching.there[i] is None
            and matching.origin[j] is None
            and old.items[i].key == new.items[j].key
        ):
            matching.match(i, j)
            i, j = i + step, j + step


def _unmatched_by_key(side: OrderedCorpus, matches: list[int | None]) -> dict[str, list[int]]:
    """The blocks that are not matched yet, by what they say."""
    by_key: dict[str, list[int]] = defaultdict(list)
    for number, item in enumerate(side.items):
        if matches[number] is None and item.block is not None:
            by_key[item.key].append(number)
    return by_key


def _pair_documents(old: OrderedCorpus, new: OrderedCorpus) -> dict[int, int]:
    """Pair documents: by name, then by content, then by most of their blocks."""
    pairs = {
        number: new.doc_numbers[document.doc]
        for number, document in enumerate(old.documents)
        if document.doc in new.doc_numbers
    }
    gone = [number for number in range(len(old.documents)) if number not in pairs]
    taken = set(pairs.values())
    added = [number for number in range(len(new.documents)) if number not in taken]
    by_hash: dict[str, list[int]] = defaultdict(list)
    for number in reversed(added):  # `pop` then gives copies away in reading order
        by_hash[new.documents[number].hash].append(number)
    for number in gone:
        if by_hash[old.documents[number].hash]:
            pairs[number] = by_hash[old.documents[number].hash].pop()
    gone = [number for number in gone if number not in pairs]
    taken = set(pairs.values())
    if gone:
        _pair_by_blocks(old, new, gone, {number for number in added if number not in taken}, pairs)
    return pairs


def _pair_by_blocks(
    old: OrderedCorpus, new: OrderedCorpus, gone: list[int], added: set[int], pairs: dict[int, int]
) -> None:
    """Pair renamed documents by the bytes of the blocks that they share, the largest share first.

    What is in many documents says nothing about which one this is.
    """
    holders: dict[str, list[int]] = defaultdict(list)
    for doc in sorted(added):
        for key in {new.items[i].key for i in range(*new.ranges[doc])}:
            holders[key].append(doc)
    votes: list[tuple[float, int, int]] = []
    for doc in gone:
        items = [old.items[i] for i in range(*old.ranges[doc])]
        shared: Counter[int] = Counter()
        for item in items:
            listed = holders.get(item.key, [])
            if len(listed) <= _FEW_DOCUMENTS:
                for other in listed:
                    shared[other] += item.size
        total = sum(item.size for item in items) or 1
        votes += [(-size / total, doc, other) for other, size in shared.items()]
    taken: set[int] = set()
    for share, doc, other in sorted(votes):  # shares are negative: the largest comes first
        if -share >= _RENAMED_SHARE and doc not in pairs and other not in taken:
            pairs[doc] = other
            taken.add(other)
