"""The grammars of chunk ids and of sections: what an id says about document, section and type."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

TYPES = {"p": "prose", "c": "code", "t": "table", "f": "figure", "x": "caption"}


class IdParts(NamedTuple):
    """What an id tells of its chunk; None for what it does not tell."""

    doc: str | None
    section: str | None
    type: str | None


_OPAQUE = IdParts(None, None, None)

# What may follow the last `#`, or be the whole id: `S.4.2.p.Bk011a`, `A.3.1.bk012`, or a number,
# which needs a document. No digits but ASCII ones, and no `$`, which would let a line end pass.
_BLOCK = re.compile(
    r"(S(?:\.[0-9]+)*)\.([pctfx])\.Bk[0-9]+[a-z]?"
    r"|([A-Z](?:\.[0-9]+)*)\.bk[0-9]+"
    r"|[0-9]+"
)
_FIELDS = re.compile(r"(.+)\|r=[0-9A-Za-z]+\|s=(?:p[0-9]+|([^|]+))\|p=[0-9]+\|b=[0-9]+", re.DOTALL)

# Numbers longer than this are names, not counts of headings.
_NUMBER = "[0-9]{1,18}"
_DOTTED = re.compile(rf"(?:[A-Z]|{_NUMBER})(?:\.{_NUMBER})*")
_ROOT = "S"


def parts_of(chunk: str) -> IdParts:
    """Split a chunk id by its grammar; an id of no known grammar is opaque and tells nothing."""
    if "|" in chunk:
        fields = _FIELDS.fullmatch(chunk)
        return _OPAQUE if fields is None else IdParts(fields[1], fields[2], None)
    before, hash_sign, tail = chunk.rpartition("#")
    if hash_sign:
        if not before:
            return _OPAQUE
    elif "k" not in tail:  # most opaque ids end here: both kinds of block have a `k`
        return _OPAQUE
    block = _BLOCK.fullmatch(tail)
    if block is None:
        return _OPAQUE
    doc = before or None
    if block.lastindex == 2:
        return IdParts(doc, block[1], TYPES[block[2]])
    return IdParts(doc, block[3], None)


def doc_of(chunk: str) -> str | None:
    """Return the document that the id names, or None."""
    return parts_of(chunk).doc


def section_of(chunk: str) -> str | None:
    """Return the section that the id names, or None."""
    return parts_of(chunk).section


def type_of(chunk: str) -> str | None:
    """Return the content type that the id names, or None."""
    return parts_of(chunk).type


def split_section(text: str) -> tuple[str | None, str]:
    """Split `guide.md#S.4.2` into document and section; other text is a section as it stands."""
    doc, hash_sign, section = text.rpartition("#")
    if hash_sign and _DOTTED.fullmatch(section):
        return doc or None, section
    return None, text


@lru_cache(maxsize=65_536)
def section_path(section: str) -> tuple[int | str, ...]:
    """Return the steps from the root to a section: `S.4.2` and `4.2` are both (4, 2)."""
    if _DOTTED.fullmatch(section):
        steps = section.split(".")
        if steps[0] == _ROOT:
            del steps[0]
        return tuple(int(step) if step.isdigit() else step for step in steps)
    if "/" in section:
        return tuple(step for step in section.split("/") if step)
    return (section,)


def lies_in(section: str, anchor: str) -> bool:
    """Whether a section is the anchor or below it; every section lies in the root."""
    above = section_path(anchor)
    return section_path(section)[: len(above)] == above


def distance(a: str, b: str) -> int:
    """Count the edges between two sections through their lowest common ancestor."""
    one, other = section_path(a), section_path(b)
    common = 0
    for step, twin in zip(one, other, strict=False):
        if step != twin:
            break
        common += 1
    return len(one) + len(other) - 2 * common
