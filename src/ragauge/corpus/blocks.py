"""Typed blocks with ids: `guide.md#S.4.2.p.Bk011` is the eleventh block of section S.4.2, prose.

Blocks are numbered from 1 within the body of their section, over all types together. So an edit
inside a section can change the numbers behind it in that section and no others; a heading that
comes or goes moves the sections behind it at its depth. A number has at least three digits. The
grammar's letter behind the number is left to chunkers that cut a block into parts: no block of a
corpus has one.

Ids do not sort as text, because the type comes before the number and `S.10` before `S.2`;
`reading_order` gives the key that does.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256

from ragauge.corpus.anchors import anchor_of
from ragauge.corpus.section_tree import section_at
from ragauge.ids import section_path
from ragauge.model.corpus import LETTERS, Block, Parsed, Section

_PORTION = 1 << 20  # characters that are normalised at once
_BLANK = re.compile(r"[ \t\r\n]")
_TAIL = re.compile(r"(S(?:\.[0-9]+)*)\.[a-z]\.Bk([0-9]+)([a-z]?)")


def build_blocks(doc: str, parsed: Parsed, sections: Sequence[Section]) -> tuple[Block, ...]:
    """Build the blocks of a document, in reading order; a caption names the block it is of."""
    numbers: Counter[str] = Counter()
    places = []
    for piece in parsed.pieces:
        section = section_at(sections, piece.span[0])
        if section is None:
            raise ValueError(f"no section holds the piece at byte {piece.span[0]}")
        numbers[section.id] += 1
        name = block_id(doc, section.id, piece.type, numbers[section.id])
        places.append((section.id, name))
    blocks = []
    for piece, (section_id, name) in zip(parsed.pieces, places, strict=True):
        attrs = dict(piece.attrs)
        if isinstance(attrs.get("of"), int):
            attrs["of"] = places[attrs["of"]][1]
        page = piece.page
        if page is None and parsed.pages:
            page = max(1, bisect_right(parsed.pages, piece.span[0]))
        block = Block(
            id=name,
            doc=doc,
            section=section_id,
            type=piece.type,
            span=piece.span,
            anchor_span=anchor_of(parsed.text, piece),
            fingerprint=fingerprint(parsed.text[slice(*piece.span)].decode()),
            page=page,
            attrs=attrs,
        )
        blocks.append(block)
    return tuple(blocks)


def block_id(doc: str, section: str, kind: str, number: int) -> str:
    """Write the id of a block."""
    return f"{doc}#{section}.{LETTERS[kind]}.Bk{number:03d}"


def fingerprint(text: str) -> str:
    """Hash what a block says: NFC, lower case, every run of white space one blank."""
    digest = sha256()
    between = ""
    for part in _portions(text):
        words = " ".join(unicodedata.normalize("NFC", part).lower().split())
        if words:
            digest.update(f"{between}{words}".encode())
            between = " "
    return digest.hexdigest()[:32]


def _portions(text: str) -> Iterator[str]:
    """Cut a text of many megabytes at white space, since a list of its words would be larger."""
    at = 0
    while len(text) - at > _PORTION:
        blank = _BLANK.search(text, at + _PORTION)
        end = blank.start() if blank is not None else len(text)
        yield text[at:end]
        at = end
    yield text[at:]


def reading_order(block: str) -> tuple[str, tuple[int | str, ...], int, str]:
    """The key that sorts ids of blocks by document, and as they stand in it."""
    doc, _, tail = block.rpartition("#")
    match = _TAIL.fullmatch(tail)
    if match is None:
        raise ValueError(f"`{block}` is not the id of a block")
    return doc, section_path(match[1]), int(match[2]), match[3]
