"""Following a corpus: what a migration map tells of two runs over two versions of it.

Run a retrieved from the old corpus of the map and run b from the new one. A place of the old corpus
stands for its new place on the side of b, and a gold item that moved with its corpus is still the
same question.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.migration import SURE, MapRow
from ragauge.redirecting import Redirects
from ragauge.spans import Merged, Span, merged
from ragauge.standins import expected_of

_BYTES = "byte"
_Evidence = tuple[frozenset[str], dict[str, Merged]]
"""The ids that evidence names, and for each document the bytes."""


class Follower:
    """Asks a map for two runs, and counts what it was asked for."""

    def __init__(self, redirects: Redirects, *, least: float = SURE) -> None:
        self.redirects = redirects
        self.least = least
        self.places = self.questions = 0

    def changes(self, doc: str | None) -> bool:
        """Whether the map knows a document and says that its text or its name is another now."""
        found = self.redirects.documents
        return doc in found and self.redirects.unchanged(doc) != doc

    def renames(self, name: str) -> bool:
        """Whether an id means another block in the new corpus, or none."""
        row = self.redirects.blocks.get(name)
        return row is not None and [each.id for each in row.new] != [name]

    def new_place(
        self, doc: str, spans: Sequence[Span], hashes: tuple[Sequence[str], Sequence[str]]
    ) -> tuple[str, tuple[Span, ...]] | None:
        """Where a place of the old corpus is in the new one; None if that cannot be said.

        `hashes` are those that the sides know of the document: a map of other versions than those
        that the runs retrieved from says nothing.
        """
        row = self.redirects.documents.get(doc)
        if row is None or not self._fits(row, *hashes):
            return None
        found: dict[str, list[tuple[int, int]]] = {}
        for span in spans:
            moved = self.redirects.span(doc, span.start, span.end)
            if span.unit != _BYTES or moved is None or moved.share < self.least:
                return None
            for place in moved.places:
                found.setdefault(place.doc, []).append(place.span)
        if len(found) != 1:
            return None  # evidence is a place in one document
        ((name, extents),) = found.items()
        return name, tuple(Span(start, end) for start, end in merged(extents))

    def told(self) -> list[str]:
        """What was followed, in words."""
        notes = []
        if self.questions:
            notes.append(f"questions whose gold moved with the corpus: {self.questions:,}")
        if self.places:
            notes.append(f"expected places followed into the new corpus: {self.places:,}")
        return notes or ["the map says nothing of what these runs expect"]

    @staticmethod
    def _fits(row: MapRow, before: Sequence[str], after: Sequence[str]) -> bool:
        """Whether the versions of a document that the sides know are those of the map."""
        old = {row.old.hash, row.old.source_hash}
        new = {each for place in row.new for each in (place.hash, place.source_hash)}
        return (not before or not old.isdisjoint(before)) and (
            not after or not new.isdisjoint(after)
        )

    def is_same(self, before: GoldItem, after: GoldItem) -> bool:
        """Whether an item only followed its corpus: all but its evidence is as it was."""
        if _without_evidence(before) != _without_evidence(after):
            return False
        return self._moved(expected_of(before)) == _named(expected_of(after))

    def _moved(self, members: Iterable[str | Anchor]) -> _Evidence | None:
        """What evidence of the old corpus is in the new one."""
        names: set[str] = set()
        places: list[tuple[str, tuple[Span, ...]]] = []
        for member in members:
            if isinstance(member, Anchor):
                found = self._spans(member)
                if found is None:
                    return None
                places += found
            else:
                row = self.redirects.blocks.get(member)
                names.update([member] if row is None else [each.id for each in row.new])
        return frozenset(names), _by_doc(places)

    def _spans(self, anchor: Anchor) -> list[tuple[str, tuple[Span, ...]]] | None:
        """The new places of an anchor, in any document."""
        found: list[tuple[str, tuple[Span, ...]]] = []
        for span in anchor.spans:
            moved = self.redirects.span(anchor.doc, span.start, span.end)
            if moved is None:
                found.append((anchor.doc, (span,)))
            elif moved.share < self.least or span.unit != _BYTES:
                return None
            else:
                found += [(each.doc, (Span(*each.span),)) for each in moved.places]
        return found


def _without_evidence(item: GoldItem) -> GoldItem:
    return replace(
        item, relevant=(), anchors=(), places=(), relevant_docs=None, groups=(), grades={},
        anchor_section=None, negatives=(), decoy_section=None, extra={}, line=None,
    )  # fmt: skip


def _named(members: Iterable[str | Anchor]) -> _Evidence:
    """The ids and the bytes that evidence names as it is."""
    members = list(members)
    ids = frozenset(each for each in members if isinstance(each, str))
    return ids, _by_doc([(each.doc, each.spans) for each in members if isinstance(each, Anchor)])


def _by_doc(places: Iterable[tuple[str, Sequence[Span]]]) -> dict[str, Merged]:
    found: dict[str, list[tuple[int, int]]] = {}
    for doc, spans in places:
        found.setdefault(doc, []).extend((span.start, span.end) for span in spans)
    return {doc: merged(extents) for doc, extents in found.items()}
