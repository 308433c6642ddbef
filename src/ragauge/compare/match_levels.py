"""The ladder: by what each expected piece of evidence is recognised on both sides of a comparison.

A chunk id may mean another text in another run. Then both sides are scored with an effective gold
item that names a place, a quote or a whole document instead: the best rung that works on both.
Whether anything is found there plays no part, so a miss never slides down to hide a regression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragauge.compare.effective_gold import (
    expected_of,
    is_plain,
    only_document,
    rewritten,
    stand_ins,
)
from ragauge.compare.follow_map import Follower, rungs_of
from ragauge.compare.known_documents import Side
from ragauge.compare.match_clues import Fallen, Lead, stays, together
from ragauge.compare.match_fallback import DOCS, SPANS, TEXTS, Faller, Member
from ragauge.compare.match_notes import Told, match_of
from ragauge.compare.same_documents import Sameness
from ragauge.ids import doc_of
from ragauge.model.comparison import RUNGS, Match, Rung
from ragauge.model.gold import Anchor, GoldItem
from ragauge.scoring.evidence_pieces import NEGATIVE, STAND_IN

__all__ = ["Climber", "Ladder", "Side", "climb"]

_EXACT: Rung = "exact"
_ALL = SPANS | DOCS | TEXTS


class Ladder(Struct, frozen=True, kw_only=True):
    """How two runs are compared, item by item.

    rungs              for each item, the rungs of its expected pieces
    items_a, items_b   the effective items; the very same where nothing falls back
    counts             how many pieces are on each rung
    """

    rungs: tuple[tuple[Rung, ...], ...]
    items_a: tuple[GoldItem, ...]
    items_b: tuple[GoldItem, ...]
    counts: dict[Rung, int]
    match: Match
    notes: tuple[str, ...]


def climb(items: Iterable[GoldItem], a: Side, b: Side) -> Ladder:
    """Find the rung of every expected piece, and the items to score both sides with."""
    return Climber(a, b).climb_all(items)


class Climber:
    """Finds the rungs of items, and counts what a reader should be told.

    With a `follower`, places of the first side's corpus are followed into that of the second;
    `earlier` are items as the first side has them that moved with the corpus.
    """

    def __init__(
        self,
        a: Side,
        b: Side,
        *,
        follower: Follower | None = None,
        earlier: Mapping[tuple[str, int | None], GoldItem] | None = None,
    ) -> None:
        self.a, self.b = a, b
        self.same = Sameness(a, b)
        self.follower = follower
        self.earlier = earlier or {}
        self.listed = bool(a.chunks or b.chunks)
        self.told = Told()
        self.faller = Faller(self.same, follower, self.told)

    def climb_all(self, items: Iterable[GoldItem]) -> Ladder:
        """Find the rung of every expected piece, and the items to score both sides with."""
        whole = self.same.whole and self.follower is None
        rungs: list[tuple[Rung, ...]] = []
        items_a: list[GoldItem] = []
        items_b: list[GoldItem] = []
        exact: dict[int, tuple[Rung, ...]] = {}
        for item in items:
            one = other = item
            found: tuple[Rung, ...] | None = None
            if whole:
                count = len(expected_of(item))
                if count or not item.relevant_docs:
                    found = exact.get(count)
                    if found is None:
                        found = exact[count] = tuple(_EXACT for _ in range(count))
            if found is None:
                found, one, other = self.climb(item)
            rungs.append(found)
            items_a.append(one)
            items_b.append(other)
        counts = dict.fromkeys(RUNGS, 0)
        for each in rungs:
            for rung in each:
                counts[rung] += 1
        return Ladder(
            rungs=tuple(rungs),
            items_a=tuple(items_a),
            items_b=tuple(items_b),
            counts=counts,
            match=match_of(counts),
            notes=self.notes(counts["none"]),
        )

    def notes(self, left_out: int) -> tuple[str, ...]:
        """What a reader should be told of the comparison."""
        followed = [] if self.follower is None else self.follower.told()
        return (*followed, *self.told.notes(self.same.off, left_out))

    def climb(self, item: GoldItem) -> tuple[tuple[Rung, ...], GoldItem, GoldItem]:
        """The rungs of one item, and its effective items."""
        key = item.qid, item.turn
        if key in self.earlier:
            return rungs_of(self.earlier[key], item), self.earlier[key], item
        both = self.a.carries.get(key, _ALL), self.b.carries.get(key, _ALL)
        members = expected_of(item)
        if not members:
            rungs, one, other = self._documents(item, both[0] & both[1])
        elif is_plain(item):
            rungs, one, other = self._by_ids(item, members, both)
        else:
            rungs, one, other = self._by_places(item, members, both)
        if item.negatives:
            one, other = self._negatives(item.negatives, one, other, both)
        return rungs, one, other

    def _by_places(
        self, item: GoldItem, members: tuple[Member, ...], both: tuple[int, int]
    ) -> tuple[tuple[Rung, ...], GoldItem, GoldItem]:
        """An item with evidence of any kind."""
        bits = both[0] & both[1]
        leads, unit = self._settled(item, members, both)
        if not (leads or item.places or item.relevant_docs):
            return (_EXACT,) * len(members), item, item
        names = stand_ins(leads)
        fall = self.faller.fall
        fallen = {each: fall(each, names[each], leads[each], bits, unit) for each in leads}
        rungs: tuple[Rung, ...] = tuple(
            fallen[member].rung if member in fallen else "exact" for member in members
        )
        places = [place for place in item.places if self._keeps(place, fallen, bits, unit)]
        self.told.unplaced += len(item.places) - len(places)
        # A place that gold itself gives, and that both sides know as such, stands for itself.
        moved = {each: found for each, found in fallen.items() if not stays(each, found)}
        effective: list[GoldItem] = []
        for side in (0, 1):
            parts = (
                {member: found.anchors[side] for member, found in moved.items()},
                [self._in_doc(place, side) for place in places],
                None if (both[0] ^ both[1]) & DOCS else self._docs_of(item, side),
            )
            if side == 0:
                before = parts
            effective.append(effective[0] if side and parts == before else rewritten(item, *parts))
        return rungs, effective[0], effective[1]

    def _by_ids(
        self, item: GoldItem, members: tuple[Member, ...], both: tuple[int, int]
    ) -> tuple[tuple[Rung, ...], GoldItem, GoldItem]:
        """An item that expects ids and nothing else, as most do: the same in fewer steps."""
        bits = both[0] & both[1]
        leads, unit = self._settled(item, members, both)
        if not leads:
            return (_EXACT,) * len(members), item, item
        rungs: list[Rung] = []
        names: list[str] = []
        places: tuple[list[Anchor], list[Anchor]] = [], []
        for member in members:
            if member not in leads:
                rungs.append(_EXACT)
                names.append(str(member))
                continue
            name = f"{STAND_IN}{member}"
            rung, (one, other) = self.faller.fall(member, name, leads[member], bits, unit)
            rungs.append(rung)
            if one is not None and other is not None:
                names.append(one.id or name)
                places[0].append(one)
                places[1].append(other)
        effective = replace(item, relevant=tuple(names), places=tuple(places[0]))
        if places[0] == places[1]:
            return tuple(rungs), effective, effective
        renamed = {one.id: other.id or "" for one, other in zip(*places, strict=True)}
        relevant = tuple([renamed.get(name, name) for name in names])
        return (
            tuple(rungs),
            effective,
            replace(effective, relevant=relevant, places=tuple(places[1])),
        )

    def _settled(
        self, item: GoldItem, members: tuple[Member, ...], both: tuple[int, int]
    ) -> tuple[dict[Member, list[Lead]], str | None]:
        """The pieces that are not exact, with what is known of them, and the unit of their places.

        A doubtful one falls only to where the very passage is looked for; else its id is believed.
        """
        faller, bits = self.faller, both[0] & both[1]
        leads: dict[Member, list[Lead]] = {}
        doubtful: set[Member] = set()
        for member in members:
            found = self._leads(member, item)
            if not faller.is_exact(member, found, both):
                leads[member] = found
            elif faller.is_doubtful(member, found):
                leads[member] = found
                doubtful.add(member)
        if not leads:
            return leads, None
        unit = self._unit(item, members, leads, bits)
        while doubtful:
            stuck = {each for each in doubtful if not faller.finds(leads[each], bits, unit)}
            if not stuck:
                break
            doubtful -= stuck
            leads = {each: found for each, found in leads.items() if each not in stuck}
            unit = self._unit(item, members, leads, bits)
        self.told.strangers += len(doubtful)
        return leads, unit

    def _unit(
        self,
        item: GoldItem,
        members: tuple[Member, ...],
        leads: dict[Member, list[Lead]],
        bits: int,
    ) -> str | None:
        """The unit of the places of an item; of one id that one side knows in fewer steps."""
        if len(members) == len(leads) == 1 and not self.listed and is_plain(item):
            (only,) = leads.values()
            if len(only) == 1:
                return only[0].unit if self.faller.places(only[0], bits, only[0].unit) else None
        return self.faller.unit(item, members, leads, bits) if leads else None

    def _negatives(
        self, names: Sequence[str], one: GoldItem, other: GoldItem, both: tuple[int, int]
    ) -> tuple[GoldItem, GoldItem]:
        """The effective items with their hard negatives as each side recognises them.

        A whole document is no hard negative: what has neither place nor quote on both sides is left
        out, and counted.
        """
        nobody = GoldItem(qid=one.qid)
        known: tuple[list[str], list[str]] = [], []
        places: tuple[list[Anchor], list[Anchor]] = [], []
        for name in dict.fromkeys(names):
            leads, unit = self._settled(nobody, (name,), both)
            if not leads:
                known[0].append(name)
                known[1].append(name)
                continue
            fallen = self.faller.fall(
                name, f"{NEGATIVE}{name}", leads[name], both[0] & both[1], unit, coarse=False
            )
            if fallen.rung == "none":
                self.told.negatives += 1
            for side, anchor in enumerate(fallen.anchors):
                if anchor is not None and anchor.id is not None:
                    known[side].append(anchor.id)
                    places[side].extend([anchor] if fallen.rung != "exact" else [])
        if (one.negatives, other.negatives) == (tuple(known[0]), tuple(known[1])):
            return one, other
        first = replace(one, negatives=tuple(known[0]), places=(*one.places, *places[0]))
        if other == one and known[0] == known[1] and places[0] == places[1]:
            return first, first
        second = replace(other, negatives=tuple(known[1]), places=(*other.places, *places[1]))
        return first, second

    # --- documents ---

    def _documents(self, item: GoldItem, bits: int) -> tuple[tuple[Rung, ...], GoldItem, GoldItem]:
        """An item that expects documents and no chunks of them, or nothing at all."""
        if not item.relevant_docs:
            return (), item, item
        rungs: list[Rung] = []
        kept: list[str] = []
        for doc in dict.fromkeys(item.relevant_docs):
            pair = self.same.locate(doc)
            rung: Rung = "doc" if bits & DOCS else "none"
            if pair.named_a == pair.named_b and self.faller.names(doc) == (doc, doc):
                rung = "exact"
            if rung != "none":
                kept.append(doc)
            rungs.append(rung)
        if not kept:
            bare = replace(item, relevant_docs=None)
            return tuple(rungs), bare, bare
        if len(kept) < len(rungs):
            item = replace(item, relevant_docs=tuple(kept))
        one, other = (
            rewritten(item, {}, item.places, self._docs_of(item, side)) for side in (0, 1)
        )
        return tuple(rungs), one, other

    def _docs_of(self, item: GoldItem, side: int) -> tuple[str, ...] | None:
        """The documents that an item expects, as a side calls them."""
        if item.relevant_docs is None:
            return None
        return tuple(self.faller.names(doc)[side] for doc in item.relevant_docs)

    def _in_doc(self, place: Anchor, side: int) -> Anchor:
        doc = self.faller.names(place.doc)[side]
        return place if doc == place.doc else replace(place, doc=doc)

    def _keeps(
        self, place: Anchor, fallen: Mapping[Member, Fallen], bits: int, unit: str | None
    ) -> bool:
        """Whether a known place of the evidence still says the same on both sides."""
        if not fallen:
            return self.same.locate(place.doc).content != "differs"
        return self.faller.spans_work(Lead(place.doc, place.spans), bits, unit)

    # --- what is known ---

    def _leads(self, member: Member, item: GoldItem) -> list[Lead]:
        """What is known of a piece: by gold, by the first side, by the second, by its id."""
        if isinstance(member, Anchor):
            leads = [Lead(member.doc, member.spans, member.quote, member.section)]
            known = [] if member.id is None else [self.same.a.facts(member.id)]
            known += [] if member.id is None else [self.same.b.facts(member.id)]
            texts = [facts.text for facts in known if facts is not None]
            return leads + [Lead(member.doc, (), text, member.section) for text in texts if text]
        leads = []
        if item.places:
            leads = [
                Lead(place.doc, place.spans, place.quote, place.section)
                for place in item.places
                if place.id == member
            ]
        for library in (self.same.a, self.same.b):
            facts = library.facts(member)
            if facts is not None:
                chunk = library.side.chunks.get(member) if self.listed else None
                section = chunk.section if chunk is not None else None
                later = library is self.same.b
                doc = facts.doc or facts.path
                leads.append(Lead(doc, facts.spans, facts.text, section, later, facts.text_hash))
        if len(leads) == 1 and leads[0].doc:
            return leads
        if len(leads) > 1 and member in self.same.contradicted:
            leads = [together(leads)]  # what it means to the first that says so was expected
        told = [lead.doc for lead in leads if lead.doc is not None]
        doc = told[0] if told else doc_of(member) or only_document(item)
        return [lead if lead.doc else lead._replace(doc=doc) for lead in leads] or [Lead(doc)]
