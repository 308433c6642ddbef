"""Following a corpus: what a migration map tells of two runs over two versions of it.

Run a retrieved from the old corpus of the map and run b from the new one. A place, a block or a
document of the old corpus stands for its new one on the side of b, and a gold item that moved
with its corpus is still the same question.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ragauge.compare.effective_gold import expected_of
from ragauge.compare.match_clues import Fallen, Lead
from ragauge.compare.same_documents import Sameness
from ragauge.corpus.diff.redirects import Redirects
from ragauge.files.fields import FieldError
from ragauge.formats.gold import gold_item
from ragauge.gold.migrate.evidence import Rewriter, Settings
from ragauge.gold.migrate.gold_rows import rewrite_gold
from ragauge.model.comparison import Rung
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.migration import SURE, NewPlace, OldPlace
from ragauge.spans import Span, merged

_BYTES = "byte"
_EVIDENCE = (
    "relevant", "anchors", "places", "relevant_docs", "groups", "grades", "anchor_section",
    "negatives", "decoy_section",
)  # fmt: skip


class Follower:
    """Asks a map for two runs, and counts what it was asked for."""

    def __init__(self, redirects: Redirects, *, least: float = SURE) -> None:
        self.redirects = redirects
        self.least = least
        self.followed = self.questions = 0

    def told(self) -> list[str]:
        """What was followed, in words."""
        notes = []
        if self.questions:
            notes.append(f"questions whose gold moved with the corpus: {self.questions:,}")
        if self.followed:
            notes.append(f"expected pieces followed into the new corpus: {self.followed:,}")
        return notes or ["the map says nothing of what these runs expect"]

    # --- pieces ---

    def changes(self, doc: str | None) -> bool:
        """Whether the map knows a document and says that its text or its name is another now."""
        found = self.redirects.documents
        return doc in found and self.redirects.unchanged(doc) != doc

    def new_name(self, doc: str) -> str:
        """What a document is called in the new corpus; its own name where that cannot be said."""
        row = self.redirects.documents.get(doc)
        if row is None or len(row.new) != 1 or row.for_review:
            return doc
        return row.new[0].doc

    def renames(self, name: str) -> bool:
        """Whether an id means another block in the new corpus, or none."""
        row = self.redirects.blocks.get(name)
        return row is not None and [each.id for each in row.new] != [name]

    def by_place(self, lead: Lead, same: Sameness) -> tuple[str, tuple[Span, ...]] | None:
        """Where the place of a lead is in the new corpus; None if that cannot be said.

        A map of other versions than those that the runs retrieved from says nothing.
        """
        row = self.redirects.documents.get(lead.doc) if lead.doc is not None else None
        if row is None or lead.doc is None or lead.later or not self.changes(lead.doc):
            return None
        if not (same.a.measures(_BYTES) and same.b.measures(_BYTES)):
            return None
        found: dict[str, list[tuple[int, int]]] = {}
        for span in lead.spans:
            moved = self.redirects.span(lead.doc, span.start, span.end)
            if span.unit != _BYTES or moved is None or moved.share < self.least:
                return None
            for place in moved.places:
                found.setdefault(place.doc, []).append(place.span)
        if len(found) != 1:
            return None  # evidence is a place in one document
        ((name, extents),) = found.items()
        there = [each for each in row.new if each.doc == name]
        before, after = same.a.find(lead.doc), same.b.find(name)
        if not _is(before.hashes if before is not None else (), [row.old]):
            return None
        if not _is(after.hashes if after is not None else (), there):
            return None
        known = name if after is None else after.name
        return known, tuple(Span(start, end) for start, end in merged(extents))

    def by_id(self, name: str, same: Sameness) -> Fallen | None:
        """A block under its old id and under its new one, if both sides are cut into blocks alike.

        One that became several, or none, has no id that could stand for it.
        """
        row = self.redirects.blocks.get(name)
        if row is None or len(row.new) != 1 or row.for_review or not self.renames(name):
            return None
        new = row.new[0]
        if not same.same_chunking(same.a.find(row.old.doc), same.b.find(new.doc)):
            return None
        one = Anchor(doc=row.old.doc, spans=(Span(*row.old.span),), id=name)
        held = tuple(Span(*each.span) for each in self.redirects.held(row, new).places)
        other = Anchor(doc=new.doc, spans=held, id=new.id)
        return Fallen("exact", (one, other))

    # --- items ---

    def is_same(self, before: GoldItem, after: GoldItem) -> bool:
        """Whether an item only followed its corpus: it is what `gold migrate` makes of it."""
        others = [
            name for name in GoldItem.__struct_fields__ if name not in (*_EVIDENCE, "extra", "line")
        ]
        if any(getattr(before, name) != getattr(after, name) for name in others):
            return False
        moved = self.moved(before)
        return moved is not None and _said(moved) == _said(after)

    def moved(self, item: GoldItem) -> GoldItem | None:
        """The item with its evidence in the new corpus; None where some of it has no new place."""
        row = _row(item)
        settings = Settings(least=self.least, on_unmapped="keep", strict=False)
        rewriter = Rewriter(self.redirects, settings)
        try:
            changed = rewrite_gold(row, rewriter)
            return None if rewriter.problems else gold_item({**row, **changed}, {}, None)
        except FieldError:
            return None


def rungs_of(before: GoldItem, after: GoldItem) -> tuple[Rung, ...]:
    """The rungs of an item that moved with its corpus: each side has evidence of its own."""
    known = set(expected_of(before))
    members = expected_of(after)
    if members:
        return tuple(
            "exact" if isinstance(each, str) or each in known else "doc_span" for each in members
        )
    docs = set(before.relevant_docs or ())
    return tuple(
        "exact" if each in docs else "doc" for each in dict.fromkeys(after.relevant_docs or ())
    )


def _is(known: Collection[str], versions: Sequence[OldPlace | NewPlace]) -> bool:
    """Whether what a side knows of a document fits its version in the map; nothing fits all.

    Text may have gone to a document that is no other's successor: of that one no version is told.
    """
    told = {each for place in versions for each in (place.hash, place.source_hash) if each}
    return not known or not told or not told.isdisjoint(known)


def _row(item: GoldItem) -> dict[str, Any]:
    """The evidence of an item as a row has it."""
    row: dict[str, Any] = {
        "qid": item.qid,
        "relevant": [*item.relevant, *map(_entry, item.anchors)],
        "gold_spans": [*map(_entry, item.places)],
        "groups": [[_member(each) for each in group] for group in item.groups],
        "grades": item.grades,
        "negatives": list(item.negatives),
        "anchor_section": item.anchor_section,
        "decoy_section": item.decoy_section,
        "relevant_docs": None if item.relevant_docs is None else list(item.relevant_docs),
    }
    return {name: value for name, value in row.items() if value or name == "relevant_docs"}


def _member(member: str | Anchor) -> Any:
    return member if isinstance(member, str) else _entry(member)


def _entry(anchor: Anchor) -> dict[str, Any]:
    unit = anchor.spans[0].unit if anchor.spans else _BYTES
    entry: dict[str, Any] = {"doc": anchor.doc, "unit": unit}
    if len(anchor.spans) == 1:
        entry |= {"start": anchor.spans[0].start, "end": anchor.spans[0].end}
    else:
        entry["source_spans"] = [[span.start, span.end] for span in anchor.spans]
    named = {"id": anchor.id, "section": anchor.section}
    return entry | {name: value for name, value in named.items() if value is not None}


def _said(item: GoldItem) -> dict[str, Any]:
    """What the evidence of an item says, whatever its order and its quotes."""
    return {
        "ids": frozenset(item.relevant),
        "anchors": frozenset(map(_place, item.anchors)),
        "places": frozenset(map(_place, item.places)),
        "docs": None if item.relevant_docs is None else frozenset(item.relevant_docs),
        "groups": frozenset(
            frozenset(each if isinstance(each, str) else _place(each) for each in group)
            for group in item.groups
        ),
        "grades": item.grades,
        "negatives": frozenset(item.negatives),
        "sections": (item.anchor_section, item.decoy_section),
    }


def _place(anchor: Anchor) -> tuple[str, tuple[Span, ...], str | None]:
    return anchor.doc, anchor.spans, anchor.id
