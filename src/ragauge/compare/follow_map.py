"""Follow a corpus: what a migration map tells of two runs over two versions of it.

Run a retrieved from the old corpus of the map and run b from the new one. A place, a block or a
document of the old corpus stands for its new one on the side of b, and a gold item that moved
with its corpus is still the same question.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ragauge.compare.same_documents import SameDocuments
from ragauge.corpus.diff.redirects import Redirects
from ragauge.files.fields import FieldError
from ragauge.formats.gold import gold_item
from ragauge.gold.migrate.evidence import MigrationSettings, Rewriter
from ragauge.gold.migrate.gold_rows import rewrite_gold
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.migration import SURE, NewPlace, OldPlace
from ragauge.spans import Span, merged

_BYTES = "byte"
_EVIDENCE = (
    "relevant", "anchors", "places", "relevant_docs", "groups", "grades", "anchor_section",
    "negatives", "negative_places", "decoy_section",
)  # fmt: skip


class MapFollower:
    """Asks a map for two runs, and counts what it was asked for."""

    def __init__(self, redirects: Redirects, *, least: float = SURE) -> None:
        self.redirects = redirects
        self.least = least
        self.followed = self.questions = 0

    def notes(self) -> list[str]:
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
        return doc in self.redirects.documents and self.redirects.unchanged(doc) != doc

    def new_name(self, doc: str) -> str:
        """What a document is called in the new corpus; its own name where that cannot be said."""
        row = self.redirects.documents.get(doc)
        if row is None or len(row.new) != 1 or row.for_review:
            return doc
        return row.new[0].doc

    def renames(self, block_id: str) -> bool:
        """Whether an id means another block in the new corpus, or none."""
        row = self.redirects.blocks.get(block_id)
        return row is not None and [block.id for block in row.new] != [block_id]

    def by_place(
        self, doc: str, spans: Sequence[Span], same: SameDocuments
    ) -> tuple[str, tuple[Span, ...]] | None:
        """Where a place of the old corpus is in the new one; None if that cannot be said.

        A map of other versions than those that the runs retrieved from says nothing.
        """
        row = self.redirects.documents.get(doc)
        if row is None or not self.changes(doc):
            return None
        if not (same.a.measures(_BYTES) and same.b.measures(_BYTES)):
            return None
        extents_by_doc: dict[str, list[tuple[int, int]]] = {}
        for span in spans:
            moved = self.redirects.span(doc, span.start, span.end)
            if span.unit != _BYTES or moved is None or moved.share < self.least:
                return None
            for place in moved.places:
                extents_by_doc.setdefault(place.doc, []).append(place.span)
        if len(extents_by_doc) != 1:
            return None  # evidence is a place in one document
        ((name, extents),) = extents_by_doc.items()
        new_versions = [version for version in row.new if version.doc == name]
        before, after = same.a.find(doc), same.b.find(name)
        if not _is_version(before.hashes if before is not None else (), [row.old]):
            return None
        if not _is_version(after.hashes if after is not None else (), new_versions):
            return None
        new_doc = name if after is None else after.name
        return new_doc, tuple(Span(start, end) for start, end in merged(extents))

    def by_id(self, block_id: str, same: SameDocuments) -> tuple[Anchor, Anchor] | None:
        """A block under its old id and under its new one, if both runs are cut into blocks alike.

        One that became several, or none, has no id that could be looked for.
        """
        row = self.redirects.blocks.get(block_id)
        if row is None or len(row.new) != 1 or row.for_review or not self.renames(block_id):
            return None
        new = row.new[0]
        if not same.same_chunking(same.a.find(row.old.doc), same.b.find(new.doc)):
            return None
        old_block = Anchor(doc=row.old.doc, spans=(Span(*row.old.span),), id=block_id)
        # A block that was merged into a larger one is only that part of it.
        held = tuple(Span(*place.span) for place in self.redirects.held(row, new).places)
        return old_block, Anchor(doc=new.doc, spans=held, id=new.id)

    # --- items ---

    def is_same(self, before: GoldItem, after: GoldItem) -> bool:
        """Whether an item only followed its corpus: it is what `gold migrate` makes of it."""
        beside = [
            name for name in GoldItem.__struct_fields__ if name not in (*_EVIDENCE, "extra", "line")
        ]
        if any(getattr(before, name) != getattr(after, name) for name in beside):
            return False
        moved = self.moved(before)
        return moved is not None and _evidence_of(moved) == _evidence_of(after)

    def moved(self, item: GoldItem) -> GoldItem | None:
        """The item with its evidence in the new corpus; None where some of it has no new place."""
        row = _row(item)
        settings = MigrationSettings(least=self.least, on_unmapped="keep", strict=False)
        rewriter = Rewriter(self.redirects, settings)
        try:
            changed = rewrite_gold(row, rewriter)
            return None if rewriter.problems else gold_item({**row, **changed}, {}, None)
        except FieldError:
            return None


def _is_version(hashes: Collection[str], versions: Sequence[OldPlace | NewPlace]) -> bool:
    """Whether what a run knows of a document fits its version in the map; nothing fits all.

    Text may have gone to a document that is no other's successor: of that one no version is known.
    """
    of_map = {
        content_hash
        for place in versions
        for content_hash in (place.hash, place.source_hash)
        if content_hash
    }
    return not hashes or not of_map or not of_map.isdisjoint(hashes)


def _row(item: GoldItem) -> dict[str, Any]:
    """The evidence of an item as a row has it."""
    row: dict[str, Any] = {
        "qid": item.qid,
        "relevant": [*item.relevant, *map(_entry, item.anchors)],
        "gold_spans": [*map(_entry, item.places)],
        "groups": [
            [member if isinstance(member, str) else _entry(member) for member in group]
            for group in item.groups
        ],
        "grades": item.grades,
        "negatives": [*item.negatives, *map(_entry, item.negative_places)],
        "anchor_section": item.anchor_section,
        "decoy_section": item.decoy_section,
        "relevant_docs": None if item.relevant_docs is None else list(item.relevant_docs),
    }
    return {name: value for name, value in row.items() if value or name == "relevant_docs"}


def _entry(anchor: Anchor) -> dict[str, Any]:
    unit = anchor.spans[0].unit if anchor.spans else _BYTES
    entry: dict[str, Any] = {"doc": anchor.doc, "unit": unit}
    if not anchor.spans:
        entry["quote"] = anchor.quote
    elif len(anchor.spans) == 1:
        entry |= {"start": anchor.spans[0].start, "end": anchor.spans[0].end}
    else:
        entry["source_spans"] = [[span.start, span.end] for span in anchor.spans]
    named = {"id": anchor.id, "section": anchor.section}
    return entry | {name: value for name, value in named.items() if value is not None}


def _evidence_of(item: GoldItem) -> dict[str, Any]:
    """What the evidence of an item says, whatever its order and its quotes."""
    return {
        "ids": frozenset(item.relevant),
        "anchors": frozenset(map(_place, item.anchors)),
        "places": frozenset(map(_place, item.places)),
        "docs": None if item.relevant_docs is None else frozenset(item.relevant_docs),
        "groups": frozenset(
            frozenset(member if isinstance(member, str) else _place(member) for member in group)
            for group in item.groups
        ),
        "grades": item.grades,
        "negatives": frozenset((*item.negatives, *map(_place, item.negative_places))),
        "sections": (item.anchor_section, item.decoy_section),
    }


def _place(anchor: Anchor) -> tuple[str, tuple[Span, ...], str | None]:
    return anchor.doc, anchor.spans, anchor.id
