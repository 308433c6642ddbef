"""Falling: whether a chunk id works on both sides of a comparison, and the best rung if not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ragauge.compare.follow_map import Follower
from ragauge.compare.match_clues import Fallen, Lead, fallen_to, moved_to, quoted_in, stands_at
from ragauge.compare.match_notes import Told
from ragauge.compare.same_documents import Sameness
from ragauge.model.chunk import Chunk
from ragauge.model.evidence import Carries
from ragauge.model.gold import Anchor, GoldItem
from ragauge.quotes import normalised
from ragauge.spans import UNITS, Span
from ragauge.text import text_hash

Member = str | Anchor
SPANS, DOCS, TEXTS = int(Carries.SPANS), int(Carries.DOCS), int(Carries.TEXTS)
_BYTES = "byte"


class Faller:
    """Asks what two sides know; what a reader should be told of it is counted in `told`."""

    def __init__(self, same: Sameness, follower: Follower | None, told: Told) -> None:
        self.same = same
        self.follower = follower
        self.told = told
        self._comparable: dict[tuple[str, str], bool] = {}
        self._called: dict[str, tuple[str, str]] = {}

    def names(self, doc: str) -> tuple[str, str]:
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

    # --- exact ---

    def is_exact(self, member: Member, leads: Sequence[Lead], bits: tuple[int, int]) -> bool:
        """Whether an id means the same on both sides, so far as they tell.

        `bits` are what the hits of both sides carry.
        """
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
        return not self._unlisted(member, leads, bits)

    def _unlisted(self, name: str, leads: Sequence[Lead], bits: tuple[int, int]) -> bool:
        """Whether one side's list has an id and that of the other has not, nor says why.

        A list speaks of an index if it places the hits; another list may go with them.
        """
        a, b = self.same.a.side.chunks, self.same.b.side.chunks
        if not a or not b or (name in a) == (name in b):
            return False
        if not bits[name in a] & SPANS:
            return False
        return not all(self.same.recorded(lead.doc) for lead in leads)

    def is_doubtful(self, member: Member, leads: Sequence[Lead]) -> bool:
        """Whether an exact piece is so for want of a word only, and the runs share no id."""
        if not self.same.strangers:
            return False
        if isinstance(member, Anchor):
            return self.same.doubts(member.doc)
        return any(self.same.doubts(lead.doc) for lead in leads)

    # --- places ---

    def unit(
        self,
        item: GoldItem,
        members: Sequence[Member],
        leads: Mapping[Member, Sequence[Lead]],
        bits: int,
    ) -> str | None:
        """The one unit that places of an item may have: that of gold, or else the first to work."""
        own = {
            span.unit
            for anchor in (*(each for each in members if isinstance(each, Anchor)), *item.places)
            for span in anchor.spans
        }
        for side in (self.same.a.side, self.same.b.side):
            if side.chunks:
                exact = [each for each in members if each in side.chunks and each not in leads]
                own |= {span.unit for each in exact for span in side.chunks[str(each)].spans}
        if own:
            return min(own) if len(own) == 1 else None
        works = {
            unit
            for found in leads.values()
            for lead in found
            for unit in (lead.unit, _BYTES)
            if self.places(lead, bits, unit)
        }
        return next((unit for unit in UNITS if unit in works), None)

    def places(self, lead: Lead, bits: int, unit: str | None) -> bool:
        """Whether a lead has a place on both sides, here or moved."""
        if self.spans_work(lead, bits, unit) or self._moved(lead, bits, unit) is not None:
            return True
        return self._standing(lead, bits, unit) is not None

    def spans_work(self, lead: Lead, bits: int, unit: str | None) -> bool:
        """Whether the place of a lead is the same on both sides, and their hits have places."""
        if unit is None or not bits & SPANS or lead.doc is None or lead.unit != unit:
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
        if self.follower is None or unit != _BYTES or not bits & SPANS or lead.unit != unit:
            return None
        return self.follower.by_place(lead, self.same)

    def _standing(self, lead: Lead, bits: int, unit: str | None) -> tuple[Chunk, Chunk] | None:
        """The listed chunk of each side that has the very text of a lead, and where it stands.

        Lists without texts tell it by hashes, as the blocks of a corpus do.
        """
        a, b = self.same.a, self.same.b
        if unit != _BYTES or not bits & SPANS or not (a.measures(unit) and b.measures(unit)):
            return None
        if not a.side.chunks or not b.side.chunks:
            return None
        hashed = lead.text_hash or (text_hash(lead.quote) if lead.quote else None)
        if hashed is None:
            return None
        pair = self.same.locate(lead.doc)
        one, other = a.standing(hashed, pair.a), b.standing(hashed, pair.b)
        if one is None or other is None:
            return None
        lengths = [[(span.unit, span.length) for span in each.spans] for each in (one, other)]
        if lengths[0] != lengths[1] or any(name != _BYTES for name, _ in lengths[0]):
            return None
        return one, other

    # --- the best rung ---

    def fall(
        self,
        member: Member,
        name: str,
        leads: Sequence[Lead],
        bits: int,
        unit: str | None,
        *,
        coarse: bool = True,
    ) -> Fallen:
        """The best rung below exact that works on both sides for any of the leads.

        Without `coarse` only those that find the very passage: a document is too much.
        """
        for lead in leads:
            if self.spans_work(lead, bits, unit):
                assert lead.doc is not None
                return fallen_to("doc_span", self.names(lead.doc), name, lead, spans=lead.spans)
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
        if bits & TEXTS:
            found = self._quoted(leads, name)
            if found is not None:
                return found
        for lead in leads:
            standing = self._standing(lead, bits, unit)
            if standing is not None:
                return stands_at(name, lead, standing)
        if not coarse:
            return Fallen("none")
        self._tell(leads, bits)
        for lead in leads:
            if lead.doc is not None and bits & DOCS:
                return fallen_to("doc", self.names(lead.doc), name, lead)
        return Fallen("none")

    def finds(self, leads: Sequence[Lead], bits: int, unit: str | None) -> bool:
        """Whether the very passage of a lead can be looked for on both sides."""
        if any(self.places(lead, bits, unit) for lead in leads):
            return True
        return bool(bits & TEXTS) and any(self._quotation(lead) is not None for lead in leads)

    def _quotation(self, lead: Lead) -> tuple[str, tuple[str, str]] | None:
        """The quote of a lead, and the document of each side that it is looked for in."""
        quote = normalised(lead.quote or "")
        if not quote:
            return None
        pair = self.same.locate(lead.doc)
        one = quoted_in(pair.a, self.same.a, quote)
        other = quoted_in(pair.b, self.same.b, quote)
        return None if one is None or other is None else (quote, (one, other))

    def _quoted(self, leads: Sequence[Lead], name: str) -> Fallen | None:
        for lead in leads:
            found = self._quotation(lead)
            if found is None:
                continue
            quote, docs = found
            pair = self.same.locate(lead.doc)
            self.told.anywhere += "" in docs
            if pair.moved or (all(docs) and pair.names != docs):
                self.told.renamed[pair.name] = docs
            return fallen_to("quote", docs, name, lead, quote=quote)
        return None

    def _tell(self, leads: Sequence[Lead], bits: int) -> None:
        """Count why a passage cannot be looked for."""
        if bits & TEXTS:
            self.told.rewritten += any(normalised(lead.quote or "") for lead in leads)
        elif bits & DOCS and any(self._edited(lead.doc) for lead in leads):
            self.told.textless += 1

    def _edited(self, doc: str | None) -> bool:
        return doc is not None and self.same.locate(doc).content == "differs"
