"""The ladder: by what each expected piece of evidence is recognised on both sides of a comparison.

A chunk id may mean another text in another run. Then both sides are scored with an effective gold
item that names a place, a quote or a whole document instead: the best rung that works on both.
Whether anything is found there plays no part, so a miss never slides down to hide a regression.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ragauge.following import Follower, rungs_of
from ragauge.ids import doc_of
from ragauge.knowing import Side
from ragauge.leads import Fallen, Lead, fallen_to, moved_to, quoted_in, stays, together
from ragauge.model.comparison import RUNGS, Match, Rung
from ragauge.model.evidence import Carries
from ragauge.model.gold import Anchor, GoldItem
from ragauge.pieces import STAND_IN
from ragauge.quoting import normalised
from ragauge.rungnotes import Told, match_of
from ragauge.sameness import Sameness
from ragauge.spans import UNITS, Span
from ragauge.standins import expected_of, is_plain, only_document, rewritten, stand_ins

__all__ = ["Climber", "Ladder", "Side", "climb"]

_EXACT: Rung = "exact"
_SPANS, _DOCS, _TEXTS = int(Carries.SPANS), int(Carries.DOCS), int(Carries.TEXTS)
_ALL = _SPANS | _DOCS | _TEXTS


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
        self, a: Side, b: Side, *, follower: Follower | None = None,
        earlier: Mapping[tuple[str, int | None], GoldItem] | None = None,
    ) -> None:  # fmt: skip
        self.a, self.b = a, b
        self.same = Sameness(a, b)
        self.follower = follower
        self.earlier = earlier or {}
        self.listed = bool(a.chunks or b.chunks)
        self.told = Told()
        self._comparable: dict[tuple[str, str], bool] = {}
        self._called: dict[str, tuple[str, str]] = {}

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
            rungs=tuple(rungs), items_a=tuple(items_a), items_b=tuple(items_b), counts=counts,
            match=match_of(counts), notes=self.notes(counts["none"]),
        )  # fmt: skip

    def notes(self, left_out: int) -> tuple[str, ...]:
        """What a reader should be told of the comparison."""
        followed = [] if self.follower is None else self.follower.told()
        return (*followed, *self.told.notes(self.same.off, left_out))

    def climb(self, item: GoldItem) -> tuple[tuple[Rung, ...], GoldItem, GoldItem]:
        """The rungs of one item, and its effective items."""
        members = expected_of(item)
        key = item.qid, item.turn
        if key in self.earlier:
            return rungs_of(self.earlier[key], item), self.earlier[key], item
        mine, theirs = self.a.carries.get(key, _ALL), self.b.carries.get(key, _ALL)
        bits = mine & theirs
        if not members:
            return self._documents(item, bits)
        if is_plain(item):
            return self._by_ids(item, members, bits)
        known = {member: self._leads(member, item) for member in members}
        leads = {each: found for each, found in known.items() if not self._is_exact(each, found)}
        if not (leads or item.places or item.relevant_docs):
            return (_EXACT,) * len(members), item, item
        unit = self._unit(item, members, leads, bits) if leads else None
        names = stand_ins(leads)
        fallen = {each: self._fall(each, names[each], leads[each], bits, unit) for each in leads}
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
                None if (mine ^ theirs) & _DOCS else self._docs_of(item, side),
            )
            if side == 0:
                before = parts
            effective.append(effective[0] if side and parts == before else rewritten(item, *parts))
        return rungs, effective[0], effective[1]

    def _by_ids(
        self, item: GoldItem, members: tuple[str | Anchor, ...], bits: int
    ) -> tuple[tuple[Rung, ...], GoldItem, GoldItem]:
        """An item that expects ids and nothing else, as most do: the same in fewer steps."""
        leads: dict[str | Anchor, list[Lead]] = {}
        for member in members:
            found = self._leads(member, item)
            if not self._is_exact(member, found):
                leads[member] = found
        if not leads:
            return (_EXACT,) * len(members), item, item
        only = next(iter(leads.values())) if len(members) == 1 and not self.listed else []
        if len(only) == 1:
            unit = only[0].unit
            if not (self._spans_work(only[0], bits, unit) or self._moved(only[0], bits, unit)):
                unit = None
        else:
            unit = self._unit(item, members, leads, bits)
        rungs: list[Rung] = []
        names: list[str] = []
        places: tuple[list[Anchor], list[Anchor]] = [], []
        for member in members:
            if member not in leads:
                rungs.append(_EXACT)
                names.append(str(member))
                continue
            name = f"{STAND_IN}{member}"
            rung, (one, other) = self._fall(member, name, leads[member], bits, unit)
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
        return tuple(rungs), effective, replace(
            effective, relevant=relevant, places=tuple(places[1])
        )  # fmt: skip

    # --- documents ---

    def _documents(self, item: GoldItem, bits: int) -> tuple[tuple[Rung, ...], GoldItem, GoldItem]:
        """An item that expects documents and no chunks of them, or nothing at all."""
        if not item.relevant_docs:
            return (), item, item
        rungs: list[Rung] = []
        kept: list[str] = []
        for doc in dict.fromkeys(item.relevant_docs):
            pair = self.same.locate(doc)
            rung: Rung = "doc" if bits & _DOCS else "none"
            if pair.named_a == pair.named_b and self._names(doc) == (doc, doc):
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
        return tuple(self._names(doc)[side] for doc in item.relevant_docs)

    def _names(self, doc: str) -> tuple[str, str]:
        """What the sides call a document."""
        names = self._called.get(doc)
        if names is None:
            pair = self.same.locate(doc)
            names = pair.names
            if pair.moved:
                self.told.renamed[doc] = names
            if self.follower is not None and (new := self.follower.new_name(doc)) != doc:
                names = names[0], new
                self.follower.followed += 1
            self._called[doc] = names
        return names

    def _in_doc(self, place: Anchor, side: int) -> Anchor:
        doc = self._names(place.doc)[side]
        return place if doc == place.doc else replace(place, doc=doc)

    def _keeps(
        self, place: Anchor, fallen: Mapping[str | Anchor, Fallen], bits: int, unit: str | None
    ) -> bool:
        """Whether a known place of the evidence still says the same on both sides."""
        if not fallen:
            return self.same.locate(place.doc).content != "differs"
        return self._spans_work(Lead(place.doc, place.spans), bits, unit)

    # --- rungs ---

    def _is_exact(self, member: str | Anchor, leads: Sequence[Lead]) -> bool:
        same = self.same
        if isinstance(member, Anchor):
            if self.follower is not None and self.follower.changes(member.doc):
                return False
            return same.trusts(member.doc) and member.id not in same.contradicted
        if member in same.contradicted:
            return False
        if self.follower is not None and self.follower.renames(member):
            return False
        for lead in leads:
            if not same.trusts(lead.doc):
                return same.same_chunk(member)
        return True

    def _leads(self, member: str | Anchor, item: GoldItem) -> list[Lead]:
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
                leads.append(Lead(doc, facts.spans, facts.text, section, later))
        if len(leads) == 1 and leads[0].doc:
            return leads
        if len(leads) > 1 and member in self.same.contradicted:
            leads = [together(leads)]  # what it means to the first that says so was expected
        told = [lead.doc for lead in leads if lead.doc is not None]
        doc = told[0] if told else doc_of(member) or only_document(item)
        return [lead if lead.doc else lead._replace(doc=doc) for lead in leads] or [Lead(doc)]

    def _unit(
        self, item: GoldItem, members: Sequence[str | Anchor],
        leads: dict[str | Anchor, list[Lead]], bits: int,
    ) -> str | None:  # fmt: skip
        """The one unit that places of an item may have: that of gold, or else the first to work."""
        own = {
            span.unit
            for anchor in (*(each for each in members if isinstance(each, Anchor)), *item.places)
            for span in anchor.spans
        }
        for chunks in (self.a.chunks, self.b.chunks):
            if chunks:
                exact = [each for each in members if each in chunks and each not in leads]
                own |= {span.unit for each in exact for span in chunks[str(each)].spans}
        if own:
            return min(own) if len(own) == 1 else None
        every = [lead for found in leads.values() for lead in found]
        works = {
            lead.unit
            for lead in every
            if self._spans_work(lead, bits, lead.unit) or self._moved(lead, bits, lead.unit)
        }
        return next((unit for unit in UNITS if unit in works), None)

    def _spans_work(self, lead: Lead, bits: int, unit: str | None) -> bool:
        if unit is None or not bits & _SPANS or lead.doc is None or lead.unit != unit:
            return False
        known = self._comparable.get((lead.doc, unit))
        if known is None:
            changed = self.follower is not None and self.follower.changes(lead.doc)
            known = self._comparable[lead.doc, unit] = (
                self.same.a.measures(unit)
                and self.same.b.measures(unit)
                and self.same.locate(lead.doc).content == "same"
                and not changed
            )
        return known

    def _moved(
        self, lead: Lead, bits: int, unit: str | None
    ) -> tuple[str, tuple[Span, ...]] | None:
        """Where the map of the corpora has the place of a lead; None without a map."""
        if self.follower is None or unit != "byte" or not bits & _SPANS or lead.unit != unit:
            return None
        return self.follower.by_place(lead, self.same)

    def _fall(
        self, member: str | Anchor, name: str, leads: Sequence[Lead], bits: int, unit: str | None
    ) -> Fallen:
        """The best rung below exact that works on both sides for any of the leads."""
        for lead in leads:
            if self._spans_work(lead, bits, unit):
                assert lead.doc is not None
                return fallen_to("doc_span", self._names(lead.doc), name, lead, spans=lead.spans)
        if self.follower is not None:
            for lead in leads:
                new = self._moved(lead, bits, unit)
                if new is not None and lead.doc is not None:
                    self.follower.followed += 1
                    known = self.same.a.find(lead.doc)
                    return moved_to(name, lead, lead.doc if known is None else known.name, new)
            found = self.follower.by_id(member, self.same) if isinstance(member, str) else None
            if found is not None:
                self.follower.followed += 1
                return found
        if bits & _TEXTS:
            found = self._quoted(leads, name)
            if found is not None:
                return found
        for lead in leads:
            if lead.doc is not None and bits & _DOCS:
                return fallen_to("doc", self._names(lead.doc), name, lead)
        return Fallen("none")

    def _quoted(self, leads: Sequence[Lead], name: str) -> Fallen | None:
        tried = False
        for lead in leads:
            quote = normalised(lead.quote or "")
            if not quote:
                continue
            tried = True
            pair = self.same.locate(lead.doc)
            one = quoted_in(pair.a, self.same.a, quote)
            other = quoted_in(pair.b, self.same.b, quote)
            if one is None or other is None:
                continue
            docs = one, other
            self.told.anywhere += "" in docs
            if pair.moved or (one and other and pair.names != docs):
                self.told.renamed[pair.name] = docs
            return fallen_to("quote", docs, name, lead, quote=quote)
        self.told.rewritten += tried
        return None
