"""A chunk: a piece of a document that some chunker made, and where it lies."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ragauge.spans import Span


class Chunk(Struct, frozen=True, omit_defaults=True):
    """A chunk of some chunker: where it lies, and where known its text, hashes and chunker."""

    doc: str
    spans: tuple[Span, ...]
    section: str | None = None
    type: str | None = None
    text: str | None = None
    text_hash: str | None = None
    doc_hash: str | None = None
    chunker_version: str | None = None
    policy_hash: str | None = None


Chunks = Mapping[str, Chunk]
