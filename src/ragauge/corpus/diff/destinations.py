"""Where the sections and documents of an old corpus went.

This is judged by their text: every item votes with its bytes for the section or document that it
is in now. The one with most votes is the destination, unless the heading says otherwise; others
with a large share are further places of a section that was split.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from ragauge.corpus.diff.exact_matches import Matching
from ragauge.corpus.diff.fuzzy_matches import Placement
from ragauge.model.migration import LEAST, SURE

# The share of the votes from which on a further section, or document, is a place as well. A smaller
# share would call a section split from which one paragraph moved away. Documents are larger, so a
# tenth of one is whole sections.
_SECTION_PART = 0.25
_DOCUMENT_PART = 0.10


class Destination(Struct, frozen=True):
    """Where a section or a document went: the main place first, and how much of it is there.

    `whole` says that every item of it is there unchanged, and nothing else is; `moved` that most
    of it left its place in the order of what stayed.
    """

    places: tuple[int, ...]
    share: float
    whole: bool
    moved: bool = False

    @property
    def accepted(self) -> tuple[int, ...]:
        """The places, if enough is there."""
        return self.places if self.share >= LEAST else ()


class Destinations:
    """The destinations of all sections and documents; what went nowhere has no places."""

    def __init__(self, matching: Matching, placements: Mapping[int, Placement]) -> None:
        self.matching = matching
        self.placements = placements
        self.children: list[list[int]] = [[] for _ in matching.old.sections]
        for number, above in enumerate(matching.old.parents):
            if above is not None:
                self.children[above].append(number)
        self.empty_sections = {
            (section.doc, section.id): place
            for place, section in enumerate(matching.new.sections)
            if matching.new.subtrees[place][0] == matching.new.subtrees[place][1]
        }
        self.sections: list[Destination] = [_NOWHERE] * len(matching.old.sections)
        for number in reversed(range(len(self.sections))):
            self.sections[number] = self._section(number)
        self.documents = [self._document(n) for n in range(len(matching.old.documents))]

    def spread(self, item: int) -> Iterator[tuple[int, float]]:
        """The new items that hold an old item, with the bytes of it that each has."""
        placement = self.placements.get(item)
        if placement is None:
            return
        size = self.matching.old.items[item].size
        for part in placement.parts:
            share = 1.0 if placement.exact else part.size / max(1, placement.size)
            yield part.new, share * size

    def _section(self, number: int) -> Destination:
        """Sections come before those below them; going backwards, those are known already."""
        old, new = self.matching.old, self.matching.new
        votes: Counter[int] = Counter()
        start, end = old.subtrees[number]
        if start == end:
            return self._empty_section(number)
        # Only the section's own text votes: that of the sections below it may have moved away.
        own = [item for item in range(start, end) if old.items[item].section == number]
        for item in own:
            for place, size in self.spread(item):
                # Integers add up to the same sum in any order; a thousandth of a byte is enough.
                votes[new.items[place].section] += round(size * 1000)
        if not votes:
            self._vote_by_children(number, votes)
        if not votes:
            return _NOWHERE
        total = sum(votes.values())
        ranked = sorted(votes, key=lambda section: (-votes[section], section))
        places = self._heading_destination(number, votes) or ranked[:1]
        for section in ranked:
            inside = any(_covers(new.subtrees[place], new.subtrees[section]) for place in places)
            if votes[section] >= _SECTION_PART * total and not inside:
                places.append(section)
        ranges = [new.subtrees[place] for place in places]
        return self._measure(range(start, end), places, ranges)

    def _empty_section(self, number: int) -> Destination:
        """A section without text goes with its document, to the section of its id there."""
        section = self.matching.old.sections[number]
        pair = self.matching.pairs.get(self.matching.old.doc_numbers[section.doc])
        if pair is None:
            return _NOWHERE
        place = self.empty_sections.get((self.matching.new.documents[pair].doc, section.id))
        return _NOWHERE if place is None else Destination((place,), 1.0, whole=True)

    def _heading_destination(self, number: int, votes: Counter[int]) -> list[int]:
        """The section that has its heading now, if some of its text is in there, too."""
        subtrees = self.matching.new.subtrees
        heading = self.matching.old.item_of_heading.get(number)
        placement = self.placements.get(heading) if heading is not None else None
        if placement is None or placement.share < 0.5:  # half of its words are other words now
            return []
        item = self.matching.new.items[placement.parts[0].new]
        below = [section for section in votes if _covers(subtrees[item.section], subtrees[section])]
        inside = sum(votes[section] for section in below)
        whole = item.block is None and inside >= _SECTION_PART * sum(votes.values())
        return [item.section] if whole else []

    def _vote_by_children(self, number: int, votes: Counter[int]) -> None:
        for child in self.children[number]:
            if self.sections[child].places:
                upper = self.matching.new.parents[self.sections[child].places[0]]
                if upper is not None:
                    votes[upper] += 1

    def _document(self, number: int) -> Destination:
        old, new = self.matching.old, self.matching.new
        start, end = old.ranges[number]
        pair = self.matching.pairs.get(number)
        if start == end:
            return _NOWHERE if pair is None else Destination((pair,), 1.0, whole=True)
        votes: Counter[int] = Counter()
        for item in range(start, end):
            for place, size in self.spread(item):
                votes[new.items[place].doc] += round(size * 1000)
        if not votes:
            return _NOWHERE
        total = sum(old.items[item].size for item in range(start, end))
        ranked = sorted(votes, key=lambda doc: (-votes[doc], doc != pair, doc))
        least = _DOCUMENT_PART * total * 1000
        places = [doc for doc in ranked if votes[doc] >= least] or ranked[:1]
        # Almost all of it is in one document: what is elsewhere was moved, and is no second half.
        if votes[places[0]] >= SURE * total * 1000:
            del places[1:]
        return self._measure(range(start, end), places, [new.ranges[place] for place in places])

    def _measure(
        self, items: range, places: list[int], ranges: list[tuple[int, int]]
    ) -> Destination:
        """Measure how much of some items lies in ranges of new items."""
        old = self.matching.old
        total = kept_bytes = moved = 0.0
        exact = True
        for item in items:
            total += old.items[item].size
            placement = self.placements.get(item)
            exact = exact and placement is not None and placement.exact
            for place, size in self.spread(item):
                if any(start <= place < end for start, end in ranges):
                    kept_bytes += size
                    moved += size if placement is not None and placement.moved else 0
        there = sum(end - start for start, end in ranges)
        share = min(1.0, kept_bytes / total) if total else 1.0
        whole = exact and share == 1.0 and there == len(items)
        return Destination(tuple(places), share, whole, 2 * moved > kept_bytes)


_NOWHERE = Destination((), 0.0, whole=False)


def _covers(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]
