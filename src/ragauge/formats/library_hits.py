"""Hits that a log has as a library or a database gives them: with their names, or a level deeper.

A document of LangChain has `page_content` and `metadata.source`, one of LlamaIndex a `node`, one of
Haystack `content` and `meta`, a point of Qdrant a `payload`. They are read where a file is opened,
as a user's own field names are, so that every path sees the same hits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ragauge.files.ranges import Source
from ragauge.formats.imports.documents import hit_of
from ragauge.formats.unread_fields import sampled_rows
from ragauge.model.field_spellings import FIRST_HITS, HIT_SPELLINGS, TRACE_SPELLINGS
from ragauge.spans import PLACE_NAMES

NOTE = (
    "hits are documents of a library: text, document and score were looked for in their metadata "
    "too"
)
_LISTS = (*TRACE_SPELLINGS["hits"], FIRST_HITS)
_IDS = HIT_SPELLINGS["id"]
_TEXTS = (*HIT_SPELLINGS["text"], *HIT_SPELLINGS["snippet"])
_NAMES = frozenset(name for names in HIT_SPELLINGS.values() for name in names) | {*PLACE_NAMES}
_OTHER_TEXTS = ("page_content", "pageContent", "content", "document")
_CLASSES = ("Document",)
"""What LangChain writes as the type of every document."""
_DEEPER = ("node", "payload", "metadata", "meta", "extra_info", "document")
_BAD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_decode_row = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def holds_library_hits(source: Source) -> bool:
    """Whether hits of a sample of the rows are documents of a library."""
    for data in sampled_rows(source):
        try:
            row = _decode_row(data)
        except _BAD:
            continue  # an error elsewhere, with its line
        nested = _plain(row.get("retrieval"))
        rows = [row, nested] if isinstance(nested, dict) else [row]
        for hits in (hits for one in rows for hits in _lists_in(one).values()):
            if any(map(is_library_hit, hits)):
                return True
    return False


def is_library_hit(entry: Any) -> bool:
    """Whether an entry says something under the names of a library that it does not say in ours."""
    if not isinstance(entry, dict):
        return False
    if isinstance(entry.get("kwargs"), dict) and "lc" in entry:
        return True
    if all(entry.get(name) is None for name in _TEXTS):
        if any(isinstance(entry.get(name), str) for name in _OTHER_TEXTS):
            return True
        if any(isinstance(entry.get(name), dict) for name in ("node", "payload", "document")):
            return True
    has_id = any(entry.get(name) is not None for name in _IDS)
    return not has_id and any(isinstance(entry.get(name), dict) for name in _DEEPER)


def with_known_hits(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose hits have our names; values may be raw JSON."""
    changed = dict(row)
    for name, hits in _lists_in(row).items():
        if any(map(is_library_hit, hits)):
            changed[name] = [known_hit(entry) if is_library_hit(entry) else entry for entry in hits]
    nested = _plain(row.get("retrieval"))
    if isinstance(nested, dict):
        changed["retrieval"] = with_known_hits(nested)
    return changed


def known_hit(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A hit under our names; what it says in our names stays."""
    if isinstance(entry.get("kwargs"), dict):  # LangChain's serialised form: `id` is a class there
        entry = entry["kwargs"]
    stated = {name: value for name, value in entry.items() if name in _NAMES and value is not None}
    fields = {
        field for field, names in HIT_SPELLINGS.items() if not stated.keys().isdisjoint(names)
    }
    if not stated.keys().isdisjoint(PLACE_NAMES):
        fields |= {*PLACE_NAMES}
    made = hit_of(dict(entry), []) or {}
    if fields & {"doc", "path"}:
        fields |= {"doc", "path"}
    if stated.get("type") in _CLASSES:
        del stated["type"]
    return stated | {name: value for name, value in made.items() if name not in fields}


def _lists_in(row: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The lists of hits of a row; those inside of `retrieval` are found there."""
    lists = {}
    for name in _LISTS:
        value = _plain(row.get(name))
        if isinstance(value, dict):
            value = _entries_of(value)
        if isinstance(value, list):
            lists[name] = value
    nested = _plain(row.get("retrieval"))
    if isinstance(nested, list):
        lists["retrieval"] = nested
    return lists


def _entries_of(columns: Mapping[str, Any]) -> list[Any] | None:
    """The hits of a query of Chroma, which answers in columns, each with a list for each query."""
    ids = columns.get("ids")
    if not isinstance(ids, list) or len(ids) != 1 or not isinstance(ids[0], list):
        return None
    entries: list[Any] = [{"id": name} for name in ids[0]]
    for column, field in (("documents", "page_content"), ("metadatas", "metadata")):
        values = columns.get(column)
        if isinstance(values, list) and len(values) == 1 and isinstance(values[0], list):
            for entry, value in zip(entries, values[0], strict=False):
                entry[field] = value
    return entries


def _plain(value: Any) -> Any:
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None  # a number out of range, bytes that are no text: the reader of rows names it
