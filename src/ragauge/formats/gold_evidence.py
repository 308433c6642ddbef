"""Where the evidence of a raw gold row stands: its entries with their paths, in any dialect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragauge.files.fields import Row, as_id, as_list, meaning, pick
from ragauge.formats import gold
from ragauge.formats.gold import Own
from ragauge.model.field_spellings import GOLD_SPELLINGS
from ragauge.spans import spans_in


class EvidenceEntry(NamedTuple):
    """One entry of evidence: the field that it stands in, its path in the row, and its value."""

    field: str
    path: str
    value: Any


def relevant_name(row: Row, own: Own) -> str:
    """The name of the field that holds the evidence of a row, or that it would have."""
    name = pick(row, GOLD_SPELLINGS["relevant"], own.get("relevant", ()), meaning=meaning)[0]
    return name or next(iter(own.get("relevant", ())), "relevant")


def entries(row: Row, own: Own) -> list[EvidenceEntry]:
    """Every entry of evidence, in the order of the row's lists."""
    evidence: list[EvidenceEntry] = []
    name, value = pick(row, GOLD_SPELLINGS["relevant"], own.get("relevant", ()), meaning=meaning)
    if value is not None:
        # Other spellings that say the same are pinned too, lest they disagree afterwards.
        for spelling in GOLD_SPELLINGS["relevant"]:
            if row.get(spelling) is not None and meaning(row[spelling]) == meaning(value):
                evidence += _listed(spelling, spelling, row[spelling])
    name, value = pick(row, GOLD_SPELLINGS["places"], own.get("places", ()), meaning=meaning)
    if value is not None:
        evidence += _listed(name, name, value)
    groups = row.get("groups")
    for i, group in enumerate(as_list(groups, "groups") if groups is not None else ()):
        evidence += _listed("groups", f"groups[{i}]", group)
    return evidence


def negative_entries(row: Row) -> list[EvidenceEntry]:
    """Every hard negative, in the order of the row's list."""
    value = row.get("negatives")
    return [] if value is None else _listed("negatives", "negatives", value)


def _listed(name: str, path: str, value: Any) -> list[EvidenceEntry]:
    listed = enumerate(as_list(value, path))
    return [EvidenceEntry(name, f"{path}[{i}]", entry) for i, entry in listed]


def replaced(value: Any, path: str, new: Any) -> Any:
    """A copy of nested lists with the element at a path such as `[2][0]` replaced."""
    if not path:
        return new
    index, _, rest = path[1:].partition("]")
    copy = list(value)
    copy[int(index)] = replaced(copy[int(index)], rest, new)
    return copy


def only_document(row: Row, own: Own) -> str | None:
    """The document of an item that names one and no more."""
    names = own.get("relevant_docs", ())
    name, value = pick(row, GOLD_SPELLINGS["relevant_docs"], names, meaning=meaning)
    listed = [value] if isinstance(value, str | int) else value
    if not isinstance(listed, list) or len(listed) != 1:
        return None
    return as_id(listed[0], name)


def refuse_mixed_units(listed: Sequence[EvidenceEntry], unit: str) -> None:
    """Refuse an item whose offsets count different things; `unit` is that of the item."""
    gold.refuse_mixed_units(
        span
        for entry in listed
        if isinstance(entry.value, Mapping)
        for span in spans_in(entry.value, entry.path, unit=unit)
    )
