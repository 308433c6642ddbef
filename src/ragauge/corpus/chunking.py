"""Reference chunkings: documents of a corpus cut by size, by section or by block.

A chunking is a function of the text and its policy alone: the same corpus and the same settings
give the same chunks under the same ids.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from ragauge.corpus.canonical_text import trimmed
from ragauge.corpus.lookup import Lookup
from ragauge.corpus.section_tree import section_at
from ragauge.model.corpus import Block, Document, Extent
from ragauge.text import text_hash

ChunkBy = Literal["size", "section", "block"]
SizeUnit = Literal["char", "word", "byte"]

CHUNKER = "ragauge.chunk/1"
"""The version of the chunker; a changed result for the same policy bumps it."""

# Per cent of a chunk, at its end, in which a good place to cut is looked for. More would find more
# ends of sentences, and chunks would differ more in size.
_SOFT = 15
_MARKS = 16  # characters between a stop and the place to cut: quotes, brackets, white space
_WORD = re.compile(r"\S+")
_STOP = re.compile(r"[.!?…][\"')\]*_`”’»]*(?=\s|\Z)|[。！？]|\n(?=[ \t]*\r?\n)")  # noqa: RUF001
_BLANK = re.compile(r"\s*")


class ChunkPolicy(Struct, frozen=True, kw_only=True):
    """How documents are cut; sizes and overlap count `unit`s.

    by         `size`: the whole text; `section`: the own body of each; `block`: each block
    size       how large a chunk may be; None leaves sections and blocks whole
    overlap    how much of a chunk the next one repeats, where a text is cut by size
    hard       cut exactly at the size, not at the end of a sentence or word shortly before it
    merge_to   join neighbouring blocks of a section up to this size
    """

    by: ChunkBy = "size"
    size: int | None = None
    overlap: int = 0
    unit: SizeUnit = "char"
    hard: bool = False
    merge_to: int | None = None

    @property
    def hash(self) -> str:
        """A name for the settings: equal for equal ones."""
        encoded = msgspec.json.encode([CHUNKER, msgspec.to_builtins(self)], order="deterministic")
        return sha256(encoded).hexdigest()[:16]


class CutChunk(Struct, frozen=True, kw_only=True):
    """One chunk: its bytes, and what is known of it."""

    id: str
    doc: str
    start: int
    end: int
    section: str | None
    type: str | None
    text: str

    def row(self, document: Document, policy: str, *, with_text: bool) -> dict[str, Any]:
        """The line of a list of chunks; what is not known is left out."""
        row = {
            **asdict(self),
            "text": self.text if with_text else None,
            "text_hash": text_hash(self.text),
            "doc_hash": document.hash,
            "chunker_version": CHUNKER,
            "policy_hash": policy,
        }
        return {name: value for name, value in row.items() if value is not None}


def cut_document(lookup: Lookup, document: Document, policy: ChunkPolicy) -> Iterator[CutChunk]:
    """The chunks of a document, by their start; none holds nothing but white space.

    Every byte of every block is in a chunk. A chunk that is one block has the block's id, any
    other is named by its bytes, as in `guide.md#0-180`: an id that claims no section.
    """
    doc, text = document.doc, lookup.text(document.doc)
    sections = lookup.sections_by_doc[doc]
    whole = {block.span: block.id for block in lookup.blocks_by_doc[doc]}
    for start, end in _extents(lookup, document, policy):
        chunk_text = text[start:end].decode()
        if not chunk_text.strip() and not lookup.touched(doc, start, end):
            continue
        section = section_at(sections, start)
        name = whole.get((start, end)) if policy.by == "block" else None
        yield CutChunk(
            id=name or f"{doc}#{start}-{end}",
            doc=doc,
            start=start,
            end=end,
            section=None if section is None else section.id,
            type=lookup.type_at(doc, start, end),
            text=chunk_text,
        )


def _extents(lookup: Lookup, document: Document, policy: ChunkPolicy) -> Iterator[Extent]:
    text = lookup.text(document.doc)
    whole = policy.by == "size"
    for extent in [(0, len(text))] if whole else _units(lookup, document, policy):
        if policy.size is None and not whole:
            yield extent
        else:
            yield from _Splitter(text, extent, policy).extents()


def _units(lookup: Lookup, document: Document, policy: ChunkPolicy) -> Iterator[Extent]:
    """What is not cut unless it is too large: the bodies of sections, or blocks."""
    text = lookup.text(document.doc)
    held: dict[str, list[Block]] = {}
    for block in lookup.blocks_by_doc[document.doc]:
        if block.span[0] < block.span[1]:
            held.setdefault(block.section, []).append(block)
    for section in lookup.sections_by_doc[document.doc]:
        blocks = held.get(section.id, [])
        if policy.by == "block":
            yield from _merged(text, blocks, policy)
            continue
        start, end = trimmed(text, *section.body)
        if blocks:  # white space may be a block's own
            start, end = min(start, blocks[0].span[0]), max(end, blocks[-1].span[1])
        if start < end:
            yield start, end


def _merged(text: bytes, blocks: Sequence[Block], policy: ChunkPolicy) -> Iterator[Extent]:
    """The blocks of a section, joined as long as they and what is between them fit."""
    joined: Extent | None = None
    length = 0
    for block in blocks:
        start, end = block.span
        if joined is not None:
            grown = length + length_of(text[joined[1] : end], policy.unit)
            if policy.merge_to is not None and grown <= policy.merge_to:
                joined, length = (joined[0], end), grown
                continue
            yield joined
        joined, length = block.span, length_of(text[start:end], policy.unit)
    if joined is not None:
        yield joined


def length_of(text: bytes, unit: SizeUnit) -> int:
    """How long a text is in a unit."""
    if unit == "byte":
        return len(text)
    characters = text.decode()
    return len(characters) if unit == "char" else len(characters.split())


class _Splitter:
    """Cuts one extent of a text into chunks of a size; positions are characters of the extent."""

    def __init__(self, text: bytes, extent: Extent, policy: ChunkPolicy) -> None:
        assert policy.size is not None
        assert 0 <= policy.overlap < policy.size
        self.bytes = text[slice(*extent)]
        self.first = extent[0]
        self.text = self.bytes.decode()
        self.size, self.overlap = policy.size, policy.overlap
        self.unit, self.hard = policy.unit, policy.hard
        self.least = policy.size - policy.size * _SOFT // 100

    @cached_property
    def _offsets(self) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """The byte of each character, and behind the last; None where they are the same."""
        if len(self.text) == len(self.bytes):
            return None
        raw = np.frombuffer(self.bytes, np.uint8)
        # Bytes 10xxxxxx go on with a character of UTF-8; all others begin one.
        return np.append(np.flatnonzero(raw & 0xC0 != 0x80), len(raw))

    @cached_property
    def _words(self) -> list[int]:
        """Where each word begins, and the end; white space belongs to the word before it."""
        return [*(word.start() for word in _WORD.finditer(self.text)), len(self.text)]

    def extents(self) -> Iterator[Extent]:
        """The chunks in order."""
        start, total = 0, len(self.text)
        while start < total:
            limit = self._reach(start, self.size)
            end = limit if limit >= total or self.hard else self._soft(start, limit)
            yield self.first + self._byte(start), self.first + self._byte(end)
            if end >= total:
                return
            # In bytes, an overlap may begin inside the first character of this very chunk. Words
            # always go on: the overlap is smaller than the size.
            start = max(self._back(end), start + 1) if self.unit != "word" else self._back(end)

    def _byte(self, position: int) -> int:
        return position if self._offsets is None else int(self._offsets[position])

    def _character(self, byte: int) -> int:
        """The character that holds a byte."""
        if self._offsets is None:
            return byte
        return int(np.searchsorted(self._offsets, byte, "right")) - 1

    def _reach(self, start: int, size: int) -> int:
        """How far a chunk of a size goes: at least one character, though it has more bytes."""
        total = len(self.text)
        if self.unit == "char":
            return min(total, start + size)
        if self.unit == "byte":
            end = min(len(self.bytes), self._byte(start) + size)
            return max(start + 1, self._character(end))
        return self._words[min(bisect_left(self._words, start) + size, len(self._words) - 1)]

    def _back(self, end: int) -> int:
        """Where the next chunk begins, so that it repeats the overlap: never in a character."""
        if self.unit == "char":
            return end - self.overlap
        if self.unit == "byte":
            return self._character(self._byte(end) - self.overlap)
        return self._words[bisect_left(self._words, end) - self.overlap]

    def _soft(self, start: int, limit: int) -> int:
        """The last end of a sentence shortly before the limit, else of a word, else the limit."""
        # A chunk no longer than the overlap would make the next one begin where it began.
        least = max(self._reach(start, self.least), self._reach(start, self.overlap + 1))
        best = 0
        # A stop may be a little earlier, with marks and white space up to a good place.
        for stop in _STOP.finditer(self.text, max(start, least - _MARKS), limit + 1):
            behind = _BLANK.match(self.text, stop.end(), limit)
            end = behind.end() if behind is not None else stop.end()
            if least <= end <= limit and (self.unit != "word" or self._begins(end)):
                best = end
        if best:
            return best
        for end in range(limit, least - 1, -1):
            if self.text[end].isspace() or self.text[end - 1].isspace():
                return end
        return limit

    def _begins(self, position: int) -> bool:
        """Whether a word begins at a position."""
        place = bisect_left(self._words, position)
        return place < len(self._words) and self._words[place] == position
