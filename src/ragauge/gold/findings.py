"""What a gold set says of itself: unread fields, and items without evidence."""

from __future__ import annotations

from collections.abc import Sequence

from ragauge.formats.gold import MIGRATED_TO, PREVIOUS
from ragauge.model.field_spellings import GOLD_NAMES
from ragauge.model.gold import GoldItem
from ragauge.text import some


def gold_findings(items: Sequence[GoldItem]) -> list[str]:
    """Sentences about gold items that can hardly be meant as they are."""
    bare = [item.qid for item in items if lacks_evidence(item)]
    if not bare:
        return []
    noun = "item" if len(bare) == 1 else "items"
    return [f"{len(bare)} answerable gold {noun} without evidence: {some(bare)}"]


def unread_fields(items: Sequence[GoldItem]) -> dict[str, list[GoldItem]]:
    """The fields that nothing reads, each with the items that have it.

    What `gold migrate` leaves in an item is no mistake of its author.
    """
    items_by_field: dict[str, list[GoldItem]] = {}
    for item in items:
        for name in item.extra:
            if name != MIGRATED_TO and name.removesuffix(PREVIOUS) not in GOLD_NAMES:
                items_by_field.setdefault(name, []).append(item)
    return items_by_field


def lacks_evidence(item: GoldItem) -> bool:
    """Whether an item is to be answered and does not say from what."""
    return item.expect == "answer" and not has_evidence(item)


def has_evidence(item: GoldItem) -> bool:
    """Whether an item names evidence of any kind, or the section that holds the answer."""
    return bool(names_evidence(item) or item.anchor_section)


def names_evidence(item: GoldItem) -> bool:
    """Whether an item names evidence; a section alone also says where an answer is missed."""
    named = (item.relevant, item.anchors, item.places, item.groups, item.grades, item.relevant_docs)
    return any(named)
