"""One of two corpora that are compared: its headings and blocks in reading order, by number."""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict

from msgspec import Struct

from ragauge.corpus.diff.words import OwnedText
from ragauge.corpus.manifest import Corpus
from ragauge.model.corpus import Block, Document, Extent, Section

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
    document and the one behind its last, `subtrees` the same for each section.
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
        self._texts: OrderedDict[int, bytes] = OrderedDict()
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

    def document(self, item: int) -> Document:
        """The document that an item stands in."""
        return self.documents[self.items[item].doc]

    def block(self, item: int) -> Block | None:
        """The block that an item is, or None for a heading."""
        number = self.items[item].block
        return None if number is None else self.blocks[number]

    def text(self, doc: int) -> bytes:
        """The text of a document; the last few are remembered."""
        if doc in self._texts:
            self._texts.move_to_end(doc)
        else:
            self._texts[doc] = self.corpus.text(self.documents[doc])
            if len(self._texts) > _TEXTS_CACHED:
                self._texts.popitem(last=False)
        return self._texts[doc]

    def bytes_of(self, item: int) -> bytes:
        """The bytes of an item."""
        entry = self.items[item]
        return self.text(entry.doc)[slice(*entry.span)]

    def owned_text(self, item: int) -> OwnedText:
        """The text of an item, with the number of the item as its owner."""
        entry = self.items[item]
        return OwnedText(item, self.text(entry.doc), entry.span)
