"""Fingerprints: which text an id in gold stands for, so that another text under it is noticed.

The id of a block says where it stands, and not what it says: after a section was inserted, the ids
behind it are those of other text. Pinned evidence has its quote; for all that is only an id, the
lock of a gold set keeps a fingerprint of the text, made as those of the blocks of a corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ragauge.corpus.blocks import fingerprint
from ragauge.corpus.lookup import Lookup, short_quote
from ragauge.files.fields import FieldError
from ragauge.model.chunk import Chunk
from ragauge.model.gold import GoldItem

FOLLOW_HINT = (
    "`ragauge corpus diff` and `gold migrate` follow an edit; if the new text is meant, "
    "`gold verify --corpus DIR --update` notes it"
)


class Fingerprints:
    """Fingerprints of the text that ids stand for in a corpus, and in a list of chunks."""

    def __init__(self, lookup: Lookup, chunks: Mapping[str, Chunk] | None = None) -> None:
        self.lookup = lookup
        self.chunks = chunks or {}
        self._of_chunks: dict[str, str | None] = {}

    def of_id(self, name: str) -> str | None:
        """The fingerprint of a block or a chunk; None for whatever has no text of its own."""
        chunk = self.chunks.get(name)
        if chunk is None:
            block = self.lookup.blocks.get(name)
            return None if block is None else block.fingerprint
        if name not in self._of_chunks:
            text = self._chunk_text(chunk)
            self._of_chunks[name] = None if text is None else fingerprint(text)
        return self._of_chunks[name]

    def of_item(self, item: GoldItem) -> dict[str, str]:
        """The fingerprints of all that an item names by id: evidence, negatives and sections.

        A section is known by its title: its text may come and go.
        """
        texts = {name: self.of_id(name) for name in named_ids(item)}
        for name in (item.anchor_section, item.decoy_section):
            if name is not None:
                title = self._title(name, item)
                texts[name] = None if title is None else fingerprint(title)
        return {name: text for name, text in sorted(texts.items()) if text is not None}

    def text_of(self, name: str, item: GoldItem) -> str:
        """What an id stands for, cut short; of a section its title."""
        if name in self.chunks:
            text = self._chunk_text(self.chunks[name])
        elif name in self.lookup.blocks:
            text = self.lookup.quote(self.lookup.spot_of(self.lookup.blocks[name]))
        else:
            text = self._title(name, item)
        return short_quote(text or "")

    def _chunk_text(self, chunk: Chunk) -> str | None:
        try:
            extents = [self.lookup.in_bytes(chunk.doc, span) for span in chunk.spans]
            spots = [self.lookup.spot(chunk.doc, *extent) for extent in extents]
        except FieldError:
            return None  # the rules about places say what is wrong with it
        return " ".join(self.lookup.quote(spot) for spot in spots) if spots else None

    def _title(self, name: str, item: GoldItem) -> str | None:
        docs = {anchor.doc for anchor in (*item.anchors, *item.places)}
        docs |= set(item.relevant_docs or ())
        blocks = (self.lookup.blocks.get(entry) for entry in evidence_ids(item))
        docs |= {block.doc for block in blocks if block is not None}
        try:
            return self.lookup.section(name, next(iter(docs)) if len(docs) == 1 else None).title
        except FieldError:
            return None


def evidence_ids(item: GoldItem) -> Iterator[str]:
    """The evidence that an item names by id and not by place."""
    yield from item.relevant
    for group in item.groups:
        yield from (member for member in group if isinstance(member, str))
    yield from (name for name, grade in item.grades.items() if grade > 0)


def named_ids(item: GoldItem) -> Iterator[str]:
    """All that an item names by id: evidence, judgements and negatives."""
    yield from evidence_ids(item)
    yield from item.grades
    yield from item.negatives


def text_changed(name: str, text: str) -> FieldError:
    """Build the error for an id that stands for other text than when the set was frozen."""
    message = f"`{name}` stands for other text than when the set was frozen: {text}"
    return FieldError("text-changed", message, FOLLOW_HINT)
