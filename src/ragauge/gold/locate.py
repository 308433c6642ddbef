"""Locating: gold that quotes a corpus or counts its characters is read as bytes of that corpus.

What `gold pin` would write is read without being written. Ids stay ids: only entries that have no
bytes of their own are looked up, and what cannot be found is the error that `gold pin` gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragauge.corpus.lookup import Lookup
from ragauge.files.fields import Row
from ragauge.formats.gold import Locate, Own
from ragauge.formats.gold_evidence import (
    EvidenceEntry,
    entries,
    negative_entries,
    only_document,
    refuse_mixed_units,
    replaced,
)
from ragauge.gold.pin import Pinner
from ragauge.model.field_spellings import HIT_DOCS
from ragauge.spans import PLACE_NAMES, spans_in, unit_in

_UNIT = "unit"


def locator(lookup: Lookup, *, convert: bool = True) -> Locate:
    """What finds quotes in a corpus and, with `convert`, makes bytes of characters."""
    pinner = Pinner(lookup)

    def locate(row: Row, own: Own) -> Row:
        unit = unit_in(row, "", "byte")
        listed = [*entries(row, own), *negative_entries(row)]
        only = only_document(row, own)
        wanted = [
            entry
            for entry in listed
            if _is_wanted(entry, unit, convert=convert)
            and not (only is None and _is_quote_alone(entry.value))
        ]
        if not wanted:
            return row
        refuse_mixed_units(listed, unit)
        located: dict[str, Any] = dict(row)
        for field, path, value in wanted:
            pinned = {**pinner.entry(value, path, unit=unit, doc=only).value, _UNIT: "byte"}
            located[field] = replaced(located[field], path.removeprefix(field), pinned)
        return located

    return locate


def _is_quote_alone(value: Mapping[str, Any]) -> bool:
    """Whether an entry is a quote that names no document: it is found by the texts of hits."""
    return not any(value.get(name) is not None for name in (*HIT_DOCS, *PLACE_NAMES))


def _is_wanted(entry: EvidenceEntry, unit: str, *, convert: bool) -> bool:
    """Whether an entry is a quote without a place, or a place in characters."""
    if not isinstance(entry.value, Mapping):
        return False
    spans = spans_in(entry.value, entry.path, unit=unit)
    if not spans:
        return entry.value.get("quote") is not None
    return convert and any(span.unit == "char" for span in spans)
