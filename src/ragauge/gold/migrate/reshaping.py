"""Objects that name evidence: new ids, documents, sections and offsets in the form they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from ragauge.files.fields import Row
from ragauge.ids import split_section
from ragauge.model.dialect import HIT_DOCS, HIT_HASHES, HIT_IDS, HIT_SECTIONS

DOC_NAMES = (*HIT_DOCS, "path")
QUOTES = ("quote", "text", "quote_hash")
"""Where gold has the text at a place, or its hash."""
SPAN_NAMES = ("span", "offsets", "source_spans", "start", "end", "start_byte", "end_byte")


def hash_in(value: Row) -> str | None:
    """The hash that an object gives of the text of its document."""
    found = next((value[name] for name in HIT_HASHES[0] if value.get(name) is not None), None)
    return found if isinstance(found, str) else None


def renamed(value: Row, names: Mapping[str, str], known: str | None, *, prev: bool) -> Row:
    """Put new names where an object has its id and its document."""
    made: dict[str, Any] = {}
    for name, each in value.items():
        named = name in HIT_IDS or name in DOC_NAMES
        new = names.get(str(each)) if named and isinstance(each, str | int) else None
        made[name] = each if new is None or new == each else new
        if name in HIT_IDS and prev and known is not None and made[name] != each:
            made.setdefault("id_prev", each)
    return made


def requoted(made: Row, quote: str, *, parts: int) -> Row:
    """Put a new quote where an object has one; of text in several parts its hash is kept."""
    digest = sha256(quote.encode()).hexdigest()
    changed: dict[str, Any] = {}
    for name, each in made.items():
        if name not in QUOTES or each is None:
            changed[name] = each
        elif name == "quote_hash" or parts > 1:
            changed["quote_hash"] = digest
        else:
            changed[name] = quote
    return changed


def in_section(made: Row, section: str | None) -> Row:
    """Put a new section where an object names its own."""
    if section is None:
        return made
    return {
        name: _like(each, section) if name in HIT_SECTIONS and isinstance(each, str) else each
        for name, each in made.items()
    }


def _like(given: str, section: str) -> str:
    """Write a section as the one that it replaces: with its document or without, with S or not."""
    doc, tail = split_section(given)
    if not tail.startswith("S"):
        section = section.removeprefix("S.")
    return section if doc is None else f"{doc}#{section}"


def with_spans(made: Row, spans: Sequence[tuple[int, int]]) -> Row:
    """Write spans in the form that an object has; several need `source_spans`."""
    form = next((name for name in SPAN_NAMES if made.get(name) is not None), None)
    if len(spans) > 1 or form == "source_spans":
        listed = made.get("source_spans")
        model = listed[0] if isinstance(listed, list) and listed else None
        rest = {name: each for name, each in made.items() if name not in SPAN_NAMES}
        return {**rest, "source_spans": [_formed(model, span) for span in spans]}
    start, end = spans[0]
    plain = {"start": start, "end": end, "start_byte": start, "end_byte": end}
    return {
        name: _formed(each, spans[0])
        if name in ("span", "offsets") and each is not None
        else plain.get(name, each)
        if each is not None
        else each
        for name, each in made.items()
    }


def _formed(model: Any, span: tuple[int, int]) -> Any:
    if not isinstance(model, Mapping):
        return list(span)
    plain = {"start": span[0], "end": span[1], "start_byte": span[0], "end_byte": span[1]}
    return {name: plain.get(name, each) for name, each in model.items()}
