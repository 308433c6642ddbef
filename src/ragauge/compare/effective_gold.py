"""Stand-ins: what an item expects, and the item that says so by places, quotes or documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from ragauge.ids import doc_of, split_section
from ragauge.model.gold import Anchor, GoldItem
from ragauge.scoring.evidence_pieces import STAND_IN


def expected_of(item: GoldItem) -> tuple[str | Anchor, ...]:
    """The distinct pieces of an item's evidence; an id that one of its anchors has is that anchor.

    Grades stand in the order of their names, as a table has no order of its own.
    """
    if not (item.anchors or item.grades or item.groups):
        relevant = item.relevant
        return relevant if len(relevant) < 2 else tuple(dict.fromkeys(relevant))
    graded = sorted(name for name, grade in item.grades.items() if grade > 0)
    grouped = (member for group in item.groups for member in group)
    members = dict.fromkeys([*item.relevant, *item.anchors, *graded, *grouped])
    anchored = {member.id for member in members if isinstance(member, Anchor)}
    return tuple(member for member in members if member not in anchored)


def is_plain(item: GoldItem) -> bool:
    """Whether an item has ids of chunks for evidence, and nothing beside them."""
    return not (item.anchors or item.grades or item.groups or item.places or item.relevant_docs)


def only_document(item: GoldItem) -> str | None:
    """The document of an item that names no other."""
    docs = {*(item.relevant_docs or ()), *(each.doc for each in (*item.anchors, *item.places))}
    docs |= {found for each in item.relevant if (found := doc_of(each)) is not None}
    section = split_section(item.anchor_section)[0] if item.anchor_section is not None else None
    docs |= {section} if section is not None else set()
    return docs.pop() if len(docs) == 1 else None


def stand_ins(members: Iterable[str | Anchor]) -> dict[str | Anchor, str]:
    """A name for what stands for each piece of an item; no two are equal."""
    names: dict[str | Anchor, str] = {}
    for member in members:
        known = member if isinstance(member, str) else member.id
        if known is None and isinstance(member, Anchor):
            spans = ",".join(f"{span.unit}={span.start}-{span.end}" for span in member.spans)
            known = f"{member.doc} {spans}"
        name = f"{STAND_IN}{known}"
        while name in names.values():
            name += " again"
        names[member] = name
    return names


def rewritten(
    item: GoldItem,
    fallen: Mapping[str | Anchor, Anchor | None],
    places: Sequence[Anchor],
    docs: tuple[str, ...] | None,
) -> GoldItem:
    """The item with stand-ins for the pieces that fell, and without those that have none.

    `places` and `docs` are those of the item as the side knows them.
    """
    if not fallen:
        if docs == item.relevant_docs and tuple(places) == item.places:
            return item
        return replace(item, relevant_docs=docs, places=tuple(places))
    names: dict[str, str | None] = {}
    for member, found in fallen.items():
        known = member if isinstance(member, str) else member.id
        if known is not None:
            names[known] = None if found is None else found.id

    def kept(members: Iterable[str | Anchor]) -> list[str | Anchor]:
        new = (
            names.get(each, each) if isinstance(each, str) else fallen.get(each, each)
            for each in members
        )
        return [each for each in new if each is not None]

    grouped = [(group, tuple(kept(group))) for group in item.groups]
    graded = ((names.get(name, name), grade) for name, grade in item.grades.items())
    return replace(
        item,
        relevant=tuple(str(each) for each in kept(item.relevant)),
        anchors=tuple(each for each in kept(item.anchors) if isinstance(each, Anchor)),
        places=(
            *(place for place in places if names.get(place.id or "", "") is not None),
            *(found for member, found in fallen.items() if isinstance(member, str) and found),
        ),
        groups=tuple(new for old, new in grouped if new or not old),
        grades={name: grade for name, grade in graded if name is not None},
        relevant_docs=docs,
    )
