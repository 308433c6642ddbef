"""Corpus: documents as canonical text with byte offsets, their title tree, and typed blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

BlockType = Literal["prose", "code", "table", "figure", "caption"]
LETTERS: dict[str, str] = {"prose": "p", "code": "c", "table": "t", "figure": "f", "caption": "x"}
"""The letter of each type in a block's id."""

Extent = tuple[int, int]
"""From a byte up to, and not including, another, in the canonical text."""


class Heading(Struct, frozen=True, kw_only=True):
    """A heading as a parser found it: its level from 1, its title, and where it stands."""

    level: int
    title: str
    span: Extent


class Piece(Struct, frozen=True, kw_only=True):
    """A piece of text between headings, as a parser found it; pieces do not overlap.

    `attrs` say more: `language` of code, `rows` and `columns` of a table, `alt` of a figure,
    `of` of a caption (the place of its figure or table among the pieces).
    """

    type: BlockType
    span: Extent
    attrs: dict[str, Any] = {}
    page: int | None = None


class Parsed(Struct, frozen=True, kw_only=True):
    """What a parser makes of one file.

    text      the canonical text; for text and Markdown the bytes of the file without a BOM
    origins   how the text maps to the source, where it is not the same: (byte in the text, byte
              or character in the source, length), in order
    pages     the first byte of each page, for formats that have pages
    notes     what a reader should know, such as damaged parts that were passed over
    tracebacks  of what failed on parts that were read in a simpler way, for whoever looks into it
    """

    text: bytes
    headings: tuple[Heading, ...]
    pieces: tuple[Piece, ...]
    title: str | None = None
    origins: tuple[tuple[int, int, int], ...] = ()
    pages: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    tracebacks: tuple[str, ...] = ()


class Parser(Struct, frozen=True, kw_only=True):
    """A format: its name, the suffixes of its files, and how one is parsed.

    `parse` is pure: the same bytes give the same result. It raises `FieldError` for a file that it
    cannot read at all. A changed result bumps the version. `native` says that it runs code which a
    bad file may make end the whole process, so it is called in a worker process only.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    parse: Callable[[bytes], Parsed]
    version: int = 1
    native: bool = False


class Document(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One document: its path relative to the corpus folder, its content, and how it was read."""

    doc: str
    format: str
    hash: str
    bytes: int
    text: str
    source_hash: str
    title: str | None = None
    parser_version: int = 1
    pages: tuple[int, ...] = ()
    origins: tuple[tuple[int, int, int], ...] = ()
    notes: tuple[str, ...] = ()


class Section(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One section: `body` ends at the next heading of any depth, `subtree` at the next of its own.

    `anchor` is the first sentence of its body, if it has any.
    """

    id: str
    doc: str
    title: str
    depth: int
    body: Extent
    subtree: Extent
    heading: Extent | None = None
    parent: str | None = None
    anchor: Extent | None = None


class Block(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One typed block; every block belongs to exactly one section.

    `anchor_span` is a part of it to recognise it by: the first sentence of prose, the first line of
    code, the header row of a table. A block that says too little has none.
    """

    id: str
    doc: str
    section: str
    type: BlockType
    span: Extent
    fingerprint: str
    page: int | None = None
    anchor_span: Extent | None = None
    attrs: dict[str, Any] = {}
