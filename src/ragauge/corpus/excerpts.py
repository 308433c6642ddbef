"""Excerpts: the text at a place of a built corpus, for reports that show it.

Texts are read when they are asked for, and only the last of them are cached: memory does not grow
with the corpus.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from ragauge.corpus.lookup import Lookup, is_hash_of
from ragauge.corpus.manifest import read_blocks, read_documents
from ragauge.files.fields import FieldError
from ragauge.spans import Span

DocumentSpans = tuple[str, tuple[Span, ...]]
"""A document, and spans of it."""
_CACHED_CHARACTERS = 1 << 24
_CACHED_EXCERPTS = 1 << 16


class Excerpt(NamedTuple):
    """The text of a passage, span by span, and what the corpus says of where it lies."""

    parts: tuple[str, ...]
    doc: str
    spans: tuple[Span, ...]
    section: str | None = None
    type: str | None = None


class _BlockPlace(NamedTuple):
    doc: str
    start: int
    end: int
    section: str
    type: str


class Excerpts:
    """Reads passages of one corpus, or of several versions of it.

    Of several the first is taken that has the document, with the hash that is known of it.
    `foreign` are documents whose text in the corpus is not the one that is meant, and `lost` are
    places that are not in their document; nothing is shown of either. `cut` are places of which
    a reader was shown a part.
    """

    def __init__(self, folders: Iterable[str | os.PathLike[str]]) -> None:
        self._corpora = [_Corpus(folder) for folder in folders]
        self._cache: dict[tuple[object, ...], Excerpt | None] = {}
        self._cached_characters = 0
        self.foreign: set[str] = set()
        self.lost: set[DocumentSpans] = set()
        self.cut: set[DocumentSpans] = set()

    def find(
        self, name: str, docs: tuple[str, ...], spans: tuple[Span, ...], hashes: tuple[str, ...]
    ) -> Excerpt | None:
        """The text at the spans of a document, or of the block of that name if there are none.

        `docs` are the names that the document may have, `hashes` all that is known of its content.
        """
        key = (None if spans else name, docs, spans, hashes)
        if key in self._cache:
            return self._cache[key]
        excerpt = self._read(name, docs, spans, hashes)
        size = self._cached_characters + (sum(map(len, excerpt.parts)) if excerpt else 0)
        if size > _CACHED_CHARACTERS or len(self._cache) >= _CACHED_EXCERPTS:
            size -= self._cached_characters
            self._cache.clear()
        self._cache[key], self._cached_characters = excerpt, size
        return excerpt

    def _read(
        self, name: str, docs: tuple[str, ...], spans: tuple[Span, ...], hashes: tuple[str, ...]
    ) -> Excerpt | None:
        foreign: list[str] = []
        for corpus in self._corpora:
            block = None if spans else corpus.blocks.get(name)
            names, where = docs, spans
            if block is not None:
                names, where = (block.doc,), (Span(block.start, block.end),)
            doc = next((name for name in names if name in corpus.lookup.documents), None)
            if doc is None or not where:
                continue
            if not corpus.is_of(doc, hashes):
                foreign.append(doc)
                continue
            parts = corpus.parts(doc, where)
            if parts is None:
                self.lost.add((doc, where))
                return None
            if block is None:
                return Excerpt(parts, doc, where)
            return Excerpt(parts, doc, where, block.section, block.type)
        self.foreign.update(foreign)
        return None


class _Corpus:
    """One corpus: its documents, and its blocks if anybody asks for one."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.lookup = Lookup(read_documents(folder))
        self._is_of: dict[tuple[str, tuple[str, ...]], bool] = {}

    @cached_property
    def blocks(self) -> dict[str, _BlockPlace]:
        return {
            block.id: _BlockPlace(block.doc, *block.span, block.section, block.type)
            for block in read_blocks(self.lookup.corpus)
        }

    def is_of(self, doc: str, hashes: tuple[str, ...]) -> bool:
        """Whether all hashes are of the text that a document has here."""
        if (doc, hashes) not in self._is_of:
            document = self.lookup.documents[doc]
            self._is_of[doc, hashes] = all(is_hash_of(document, digest) for digest in hashes)
        return self._is_of[doc, hashes]

    def parts(self, doc: str, spans: Sequence[Span]) -> tuple[str, ...] | None:
        """The text at each span; None where one is not in the document or cuts a character."""
        size = self.lookup.documents[doc].bytes
        texts = []
        for span in spans:
            try:
                start, end = self.lookup.in_bytes(doc, span)
                if not 0 <= start <= end <= size:
                    return None
                texts.append(self.lookup.text(doc)[start:end].decode())
            except (FieldError, UnicodeDecodeError):
                return None
        return tuple(texts)
