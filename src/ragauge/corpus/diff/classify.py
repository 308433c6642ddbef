"""The migration map of two corpora: every block, section and document, classified.

same      the same id, the same bytes, the same place
shift     the same text, or at least 0.85 of it under another id, at another place
edit      the text was changed under its id, or to less than 0.85 under another
split     several new blocks hold it; merge: its new block holds others, too
move      it is in another document, or not in the section that its own became
unmapped  less than 0.60 of it can be found

0.85 and 0.60 are `SURE` and `LEAST` of model/migration. Shares are of the old text, in bytes
without blanks: an edit of one word in 500 bytes keeps more than 0.98, and a sentence rewritten in
a paragraph of three keeps about 0.67, which a person should review.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ragauge.corpus.diff.destinations import Destinations
from ragauge.corpus.diff.exact_matches import OrderedCorpus, match_exactly
from ragauge.corpus.diff.fuzzy_matches import Placement, place_items
from ragauge.corpus.diff.words import KeptText, same_letters
from ragauge.corpus.manifest import Corpus
from ragauge.model.corpus import Document, Section
from ragauge.model.migration import (
    KINDS,
    LEAST,
    SURE,
    CorpusVersion,
    Header,
    Kind,
    MapRow,
    MigrationFigures,
    MigrationMap,
    MigrationTarget,
    NewPlace,
    OldPlace,
    Run,
    Subject,
)

COVERAGE, DRIFT = 0.995, 0.005
"""Targets: the share of old blocks with a new place, and of their bytes that are not there."""

# The share of a block from which on a new block holds a part of it. A smaller one would call a
# block split of which a few words are in the next one.
_BLOCK_PART = 0.10
_MAX_LISTED = 3


def migration_map(old: Corpus, new: Corpus) -> MigrationMap:
    """Map one version of a corpus to the next one."""
    mapper = _Mapper(OrderedCorpus(old), OrderedCorpus(new))
    rows = [*mapper.documents(), *mapper.sections(), *mapper.blocks()]
    figures = _figures(rows, old, new)
    counts: dict[str, dict[str, int]] = {}
    for subject in ("document", "section", "block"):
        kinds = Counter(row.kind for row in rows if row.of == subject)
        counts[subject] = {kind: kinds[kind] for kind in KINDS if kinds[kind]}
    before, after, targets = _version(old), _version(new), _targets(figures)
    header = Header(old=before, new=after, counts=counts, figures=figures, targets=targets)
    return MigrationMap(header, tuple(rows))


class _Mapper:
    """Turns what was matched and aligned into rows."""

    def __init__(self, old: OrderedCorpus, new: OrderedCorpus) -> None:
        self.old = old
        self.new = new
        self.matching = match_exactly(old, new)
        self.placements = place_items(self.matching)
        self.destinations = Destinations(self.matching, self.placements)
        self.known_sections = {
            place for destination in self.destinations.sections for place in destination.places
        }

    def documents(self) -> Iterable[MapRow]:
        """One row for each document."""
        destinations = self.destinations.documents
        shared = Counter(place for there in destinations for place in there.accepted)
        for number, destination in enumerate(destinations):
            document = self.old.documents[number]
            others = [self.new.documents[place] for place in destination.accepted]
            before = OldPlace(**_document_fields(document))
            after = tuple(
                NewPlace(**_document_fields(other), runs=self._unchanged_runs(number, place))
                for other, place in zip(others, destination.accepted, strict=True)
            )
            merged = any(shared[place] > 1 for place in destination.places)
            kind = _document_kind(document, others, merged=merged)
            named = any(other.doc == document.doc for other in others)
            yield _row("document", kind, before, after, destination.share, named=named)

    def _unchanged_runs(self, doc: int, other: int) -> tuple[Run, ...] | None:
        """What of a document went on in another as it was, over headings and blocks.

        Rows of blocks end with their blocks. With these runs, a place that begins in one paragraph
        and ends in another can be followed to the byte.
        """
        if self.old.documents[doc].hash == self.new.documents[other].hash:
            return None
        runs: list[Run] = []
        for item in range(*self.old.ranges[doc]):
            for part in self._parts(item):
                there = self.new.items[part.new]
                if there.doc == other:
                    here = self.old.items[item]
                    whole = (here.span[0], there.span[0], here.size)
                    runs += [run for run in part.runs or (whole,) if len(run) == 3]
        return unchanged_runs(self.old.text(doc), self.new.text(other), runs) or None

    def sections(self) -> Iterable[MapRow]:
        """One row for each section, under the id `doc#S.1.2`."""
        destinations = self.destinations.sections
        shared = Counter(place for there in destinations for place in there.accepted)
        for number, destination in enumerate(destinations):
            section, places = self.old.sections[number], destination.accepted
            others = [self.new.sections[place] for place in places]
            before = OldPlace(**_section_fields(section))
            after = tuple(NewPlace(**_section_fields(other)) for other in others)
            if not places:
                kind: Kind = "unmapped"
            elif len(places) > 1:
                kind = "split"
            elif shared[places[0]] > 1:
                kind = "merge"
            elif self._was_moved(number, places[0]):
                kind = "move"
            elif before.id == after[0].id and self._same_bytes(section, others[0]):
                kind = "same"
            else:
                same_id = before.id == after[0].id
                kind = _shift_or_edit(same_id, destination.share, whole=destination.whole)
            named = bool(places) and self._has_its_heading(number, places[0])
            yield _row("section", kind, before, after, destination.share, named=named)

    def _has_its_heading(self, number: int, place: int) -> bool:
        """Whether a section went where its heading went; text before all headings has none."""
        old, new = self.old.item_of_heading.get(number), self.new.item_of_heading.get(place)
        if old is None or new is None:
            return old is new and self.old.sections[number].doc == self.new.sections[place].doc
        return self.matching.there[old] == new

    def _was_moved(self, number: int, place: int) -> bool:
        """Whether it left its order, its document, or the section above it."""
        doc, other = self.old.sections[number].doc, self.new.sections[place].doc
        if self.destinations.sections[number].moved or doc != other:
            return True
        above, upper = self.old.parents[number], self.new.parents[place]
        if above is None or upper is None:
            return above is not upper
        return upper not in self.destinations.sections[above].places

    def _same_bytes(self, old: Section, new: Section) -> bool:
        if old.subtree != new.subtree:
            return False
        doc, other = self.old.doc_numbers[old.doc], self.new.doc_numbers[new.doc]
        if doc in self.matching.identical:
            return True
        return self.old.text(doc)[slice(*old.subtree)] == self.new.text(other)[slice(*new.subtree)]

    def blocks(self) -> Iterable[MapRow]:
        """One row for each block."""
        parts = [self._parts(item) for item in self.old.item_of_block]
        holders: dict[int, list[int]] = {}
        for number, listed in enumerate(parts):
            for part in listed:
                holders.setdefault(part.new, []).append(number)
        for number, listed in enumerate(parts):
            yield self._block(number, listed, holders)

    def _parts(self, item: int) -> tuple[KeptText, ...]:
        """The new items that hold a real part of one; none if too little is left of it."""
        placement = self.placements.get(item)
        if placement is None:
            return ()
        listed = tuple(part for part in placement.parts if self._is_part(placement, part))
        return listed if _share(placement, listed) >= LEAST else ()

    def _is_part(self, placement: Placement, part: KeptText) -> bool:
        item = self.new.items[part.new]
        if (item.block is None) != (self.old.items[part.old].block is None):
            return False
        return (
            placement.exact
            or part.size >= _BLOCK_PART * placement.size
            or 2 * part.size >= item.size  # a small new block may hold little else
        )

    def _block(
        self, number: int, parts: tuple[KeptText, ...], holders: dict[int, list[int]]
    ) -> MapRow:
        old = self.old.blocks[number]
        item = self.old.item_of_block[number]
        before = OldPlace(id=old.id, doc=old.doc, span=old.span)
        placement = self.placements.get(item)
        if placement is None or not parts:
            return _row("block", "unmapped", before, (), 0.0, note=self._nearest(placement))
        after = tuple(self._new_place(item, part) for part in parts)
        share = _share(placement, parts)
        others = [holder for holder in holders[parts[0].new] if holder != number]
        note = None
        if len(parts) > 1:
            kind: Kind = "split"
        elif others:
            kind = "merge"
            note = f"together with {self._listed_ids(others)}"
        else:
            kind = self._moved_or_changed(number, parts[0], placement, share)
        return _row("block", kind, before, after, share, note=note)

    def _moved_or_changed(
        self, number: int, part: KeptText, placement: Placement, share: float
    ) -> Kind:
        old, item = self.old.blocks[number], self.new.items[part.new]
        new = self.new.block(part.new)
        assert new is not None
        item_number = self.old.item_of_block[number]
        destination = self.destinations.sections[self.old.items[item_number].section]
        # A section that no old one became is a subtitle that was put in: nothing moved there.
        left = item.section not in destination.places and item.section in self.known_sections
        if placement.moved or new.doc != old.doc or left:
            return "move"
        if new.id == old.id and new.span == old.span and placement.exact and not part.runs:
            return "same"
        whole = placement.exact
        if share == 1.0 and not whole:
            whole = same_letters(self.old.bytes_of(item_number), self.new.bytes_of(part.new))
        return _shift_or_edit(new.id == old.id, share, whole=whole)

    def _new_place(self, item: int, part: KeptText) -> NewPlace:
        block = self.new.block(part.new)
        assert block is not None
        here = self.old.items[item]
        whole = (here.span[0], block.span[0], here.size)
        runs = None if part.runs in ((), (whole,)) else part.runs
        return NewPlace(id=block.id, doc=block.doc, span=block.span, runs=runs)

    def _nearest(self, placement: Placement | None) -> str | None:
        """What an unmapped block came nearest to."""
        if placement is None or not placement.parts:
            return None
        part = max(placement.parts, key=lambda candidate: (candidate.size, -candidate.new))
        share = min(1.0, part.size / max(1, placement.size))
        item = self.new.items[part.new]
        block = self.new.block(part.new)
        name = _section_id(self.new.sections[item.section]) if block is None else block.id
        return f"{share:.2f} of it is in {name}"

    def _listed_ids(self, numbers: Sequence[int]) -> str:
        names = [self.old.blocks[number].id for number in numbers[:_MAX_LISTED]]
        more = len(numbers) - len(names)
        return ", ".join(names) + (f" and {more} more" if more else "")


def _document_fields(document: Document) -> dict[str, Any]:
    """A document as a place."""
    source = document.source_hash if document.source_hash != document.hash else None
    return {
        "id": document.doc,
        "doc": document.doc,
        "span": (0, document.bytes),
        "hash": document.hash,
        "source_hash": source,
    }


def _section_fields(section: Section) -> dict[str, Any]:
    """A section as a place."""
    return {
        "id": _section_id(section),
        "doc": section.doc,
        "span": section.subtree,
        "heading": section.heading,
    }


def _share(placement: Placement, parts: Sequence[KeptText]) -> float:
    if placement.exact:
        return 1.0 if parts else 0.0
    return min(1.0, sum(part.size for part in parts) / max(1, placement.size))


def _shift_or_edit(same_id: bool, share: float, *, whole: bool) -> Kind:
    if whole or (not same_id and share >= SURE):
        return "shift"
    return "edit"


def _document_kind(old: Document, others: Sequence[Document], *, merged: bool) -> Kind:
    if not others:
        return "unmapped"
    if len(others) > 1:
        return "split"
    if others[0].doc == old.doc:
        return "same" if others[0].hash == old.hash else "edit"
    return "merge" if merged else "move"


def _row(
    of: Subject, kind: Kind, old: OldPlace, new: tuple[NewPlace, ...], share: float, **more: Any
) -> MapRow:
    """A row; `more` may be `named` and `note`."""
    # 1.0 says that nothing is missing.
    rounded = min(round(share, 4), 0.9999) if share < 1.0 else 1.0
    confidence = rounded if kind != "unmapped" else 0.0
    return MapRow(of=of, kind=kind, old=old, new=new, confidence=confidence, **more)


def _section_id(section: Section) -> str:
    return f"{section.doc}#{section.id}"


def _version(corpus: Corpus) -> CorpusVersion:
    counts = corpus.manifest.counts
    return CorpusVersion(
        revision=corpus.manifest.revision,
        documents=counts.documents,
        sections=counts.sections,
        blocks=counts.blocks,
    )


def _figures(rows: Sequence[MapRow], old: Corpus, new: Corpus) -> MigrationFigures:
    blocks = [row for row in rows if row.of == "block"]
    mapped = [row for row in blocks if row.new]
    size = sum(row.old.span[1] - row.old.span[0] for row in mapped)
    kept_bytes = sum(row.confidence * (row.old.span[1] - row.old.span[0]) for row in mapped)
    return MigrationFigures(
        coverage=len(mapped) / len(blocks) if blocks else None,
        duplicate_ids=_duplicates(old) + _duplicates(new),
        drift=max(0.0, round(1 - kept_bytes / size, 6)) if size else None,
        review=sum(row.for_review for row in rows),
    )


def _duplicates(corpus: Corpus) -> int:
    names = Counter(block.id for block in corpus.blocks)
    names.update(_section_id(section) for section in corpus.sections)
    return sum(count > 1 for count in names.values())


def _targets(figures: MigrationFigures) -> tuple[MigrationTarget, ...]:
    coverage, drift = figures.coverage, figures.drift
    covered = coverage is not None and coverage >= COVERAGE
    near = drift is not None and drift <= DRIFT
    return (
        MigrationTarget(figure="coverage", demand=f">= {COVERAGE}", met=covered),
        MigrationTarget(figure="duplicate_ids", demand="0", met=figures.duplicate_ids == 0),
        MigrationTarget(figure="drift", demand=f"<= {DRIFT}", met=near),
    )


_BLANK = frozenset(b" \t\r\n")


def unchanged_runs(old: bytes, new: bytes, runs: Iterable[Run]) -> tuple[Run, ...]:
    """Join runs of the same bytes where the bytes between them are the same, too.

    What is in one run alone is known already from the rows of blocks, so only those that hold
    several come out. Blanks before and behind text that stayed belong to it.
    """
    long_runs: list[Run] = []
    joined = False
    start = shift = end = 0
    for before, after, size in sorted(set(runs)):
        if end and after - before == shift and old[end:before] == new[end + shift : before + shift]:
            end, joined = max(end, before + size), True
            continue
        if joined:
            long_runs.append(_with_blanks(old, new, start, end, shift))
        start, end, shift, joined = before, before + size, after - before, False
    if joined:
        long_runs.append(_with_blanks(old, new, start, end, shift))
    return tuple(long_runs)


def _with_blanks(old: bytes, new: bytes, start: int, end: int, shift: int) -> Run:
    while start and start + shift and old[start - 1] == new[start + shift - 1] in _BLANK:
        start -= 1
    while end < len(old) and end + shift < len(new) and old[end] == new[end + shift] in _BLANK:
        end += 1
    return start, start + shift, end - start
