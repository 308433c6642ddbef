"""The details of a record that ids alone cannot give: places, sections, documents, distances.

They come out as sparse tables of (record, key, value), so that records without them cost nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ragauge.ids import distance, parts_of, section_of, section_path
from ragauge.metrics.facts import LAMBDA_STATES, Fact
from ragauge.model.chunk import Chunk, Chunks
from ragauge.model.gold import Anchor
from ragauge.model.options import Options
from ragauge.model.trace import Answer, Citation, Hit, Trace
from ragauge.quotes import normalised
from ragauge.scoring.evidence_pieces import Rich
from ragauge.scoring.evidence_places import (
    AGREE,
    OnePlace,
    Place,
    Ranked,
    found_at,
    in_section,
    is_negative,
    is_relevant,
    only_place,
    ranks_of,
    refuse_mixed,
    shares,
)
from ragauge.spans import Merged, merged, of_unit, overlap, size
from ragauge.text import fold

_PLAIN = Rich()


class Detailer:
    """Finds the details of traces for one gold set.

    `errors_count`: a trace with an error is a trace like any other, as in sources that say so.
    """

    def __init__(
        self,
        rich: Mapping[int, Rich],
        chunks: Chunks,
        options: Options,
        *,
        errors_count: bool,
        bytes_too: bool = True,
    ) -> None:
        self.bytes_too = bytes_too
        self.rich = rich
        self.chunks = chunks
        self.options = options
        self.errors_count = errors_count
        self.agrees = AGREE[options.citation_mode]
        self.single = options.overlap == "single"
        self.tables = Tables()
        self.embedders: set[str] = set()
        self.by_doc: dict[str, list[Place]] | None = None
        self.near: dict[int, frozenset[str | None] | None] = {}
        self.only: dict[int, OnePlace | None] = {}

    def add(self, record: int, question: int, trace: Trace, ids: Sequence[str]) -> int:
        """Add the details of one trace, whose hits have these ids; return what they decide."""
        facts = int(Fact.DISORDERED) if trace.disordered else 0
        if trace.error is not None and not self.errors_count:
            return facts
        self._recorded(record, trace)
        rich = self.rich.get(question)
        answer = trace.answer
        if self.chunks and answer is not None and answer.citations and self._all_known(answer):
            facts |= Fact.RESOLVED
        placed = answer is not None and any(each.placed for each in answer.cited)
        if rich is None and not placed:
            return facts
        if answer is None and self._one_place(record, question, trace, ids):
            return facts
        item = rich or _PLAIN
        near = None if placed or self.bytes_too or self.chunks else self._near(question, item)
        ranked = [
            (rank, self.place_of_hit(hit, item))
            for rank, hit in enumerate(trace.hits)
            if near is None or hit.doc is None or hit.doc in near or hit.path in near
        ]
        # From the last to the first, so that the first rank of an id is the one that stays.
        first = dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True))
        if rich is not None:
            self._ranks(record, rich, ranked, first)
            if self.bytes_too:
                self._spans(record, rich, ranked)
        if answer is not None:
            places = self.citations(answer, trace.hits, dict(ranked), first, item)
            if rich is not None:
                facts |= self._cited(record, rich, places)
                facts |= self._strings(rich, answer)
            if placed:
                facts |= _context(places, [place for _, place in ranked], answer)
        return facts

    def _one_place(self, record: int, question: int, trace: Trace, ids: Sequence[str]) -> bool:
        """Add the ranks of an item that asks for one place; False where that needs more steps."""
        if self.bytes_too or self.chunks:
            return False
        if question not in self.only:
            self.only[question] = only_place(self.rich[question])
        place = self.only[question]
        ranks = None if place is None else ranks_of(place, trace.hits, ids, single=self.single)
        if ranks is None:
            return False
        if ranks.found is not None:
            self.tables.add("anchor_rank", record, 0, ranks.found)
        for rank in ranks.relevant:
            self.tables.add("relevant_rank", record, rank, 1)
        return True

    def _recorded(self, record: int, trace: Trace) -> None:
        """What the trace itself says: ΔS, λ and times."""
        add, answer = self.tables.add, trace.answer
        seen = False
        distances = [hit.delta_s for hit in trace.hits]
        if distances.count(None) < len(distances):
            seen = True
            for rank, distance_ in enumerate(distances):
                if distance_ is not None:
                    add("delta_s", record, rank, distance_)
        if answer is not None and answer.citations:
            found = distance_of_citations(answer, trace.hits)
            if found is not None:
                add("delta_s_cited", record, 0, found)
                seen = True
        embedder = trace.embedder or trace.index.get("embed_model")
        if seen and embedder is not None:
            self.embedders.add(embedder)
        if trace.lambda_state is not None:
            add("lambda", record, 0, LAMBDA_STATES.index(trace.lambda_state))
        if trace.timing is not None:
            for name in ("retrieve", "reason", "total"):
                value = getattr(trace.timing, name)
                if value is not None:
                    add(f"{name}_ms", record, 0, value)

    def _all_known(self, answer: Answer) -> bool:
        """Whether every citation is a chunk of the list, by its id or by its place."""
        return all(each.id in self.chunks or self._lies_in_chunk(each) for each in answer.listed)

    def _lies_in_chunk(self, citation: Citation) -> bool:
        if not citation.placed or citation.doc is None or not citation.spans:
            return False
        if self.by_doc is None:
            self.by_doc = {}
            for name, chunk in self.chunks.items():
                place = Place(name, (chunk.doc,), None, chunk.spans)
                self.by_doc.setdefault(chunk.doc, []).append(place)
        cited = Place(citation.id, (citation.doc,), None, citation.spans)
        return any(shares(cited, place) for place in self.by_doc.get(citation.doc, ()))

    def _near(self, question: int, rich: Rich) -> frozenset[str | None] | None:
        """The documents that matter to an item, where others can only matter by ids; else None."""
        if question not in self.near:
            narrow = not (rich.section or rich.decoy or rich.negatives or rich.quoted)
            docs = [anchor.doc for anchor in rich.anchors]
            docs += rich.docs
            docs += [place.doc for place in rich.places if place.doc not in docs]
            self.near[question] = frozenset(docs) if narrow else None
        return self.near[question]

    def place_of_hit(self, hit: Hit, rich: Rich = _PLAIN) -> Place:
        """Where a hit lies: as it says itself, as the list of chunks says, or by its id."""
        chunk = self.chunks.get(hit.id)
        parts = parts_of(hit.id)
        doc = hit.doc or (chunk.doc if chunk else None) or parts.doc
        stated: tuple[str, ...] = () if doc is None else (doc,)
        if hit.path is not None:
            stated = (*stated, hit.path)
        return Place(
            hit.id,
            stated or ((rich.doc,) if rich.doc is not None else ()),
            hit.section or (chunk.section if chunk else None) or parts.section,
            hit.spans or (chunk.spans if chunk else ()),
            stated,
            text=_text(hit, chunk) if rich.quoted else "",
        )

    def citations(
        self,
        answer: Answer,
        hits: Sequence[Hit],
        placed: Mapping[int, Place],
        first: Mapping[str, int],
        rich: Rich,
    ) -> list[Place]:
        """The distinct citations, each with what it says itself or the hit of the same id says.

        Of a hit that is not placed, its document is all that matters.
        """
        found: dict[str, Place] = {}
        for each in answer.listed:
            if each.id in found:
                continue
            rank = first.get(each.id)
            same = None if rank is None else placed.get(rank) or _elsewhere(hits[rank])
            chunk = self.chunks.get(each.id)
            parts = parts_of(each.id)
            doc = each.doc or (chunk.doc if chunk else None) or parts.doc
            docs = (doc,) if doc is not None else ()
            stated = docs if same is None else (*docs, *same.stated)
            if same is not None:
                docs = tuple(dict.fromkeys((*docs, *same.docs)))
            elif doc is None and rich.doc is not None:
                docs = (rich.doc,)
            found[each.id] = Place(
                each.id,
                docs,
                each.section
                or (same.section if same else None)
                or (chunk.section if chunk else None)
                or parts.section,
                each.spans or (same.spans if same else ()) or (chunk.spans if chunk else ()),
                stated=stated,
                own=each.spans or (chunk.spans if chunk else ()),
                text=same.text if same else _text(None, chunk) if rich.quoted else "",
            )
        return list(found.values())

    def _ranks(
        self, record: int, rich: Rich, hits: Sequence[Ranked], first: Mapping[str, int]
    ) -> None:
        """The ranks at which an item finds what it asks for; `hits` are those that may matter."""
        add = self.tables.add
        for number, anchor in enumerate(rich.anchors):
            found = found_at(anchor, hits, first, single=self.single)
            if found is not None:
                add("anchor_rank", record, number, found)
        if rich.anchors:
            anchors = rich.anchors
            if not all(rich.counted):
                anchors = tuple(a for a, each in zip(anchors, rich.counted, strict=True) if each)
            named = (*rich.ids, *(anchor.id for anchor in anchors if anchor.id is not None))
            ranks = {first[name] for name in named if name in first}
            for rank, hit in hits:
                if first[hit.id] == rank and any(is_relevant(hit, each) for each in anchors):
                    ranks.add(rank)
            for rank in sorted(ranks):
                add("relevant_rank", record, rank, 1)
        for number, doc in enumerate(rich.docs):
            found = next((rank for rank, hit in hits if doc in hit.stated), None)
            if found is not None:
                add("doc_rank", record, number, found)
        if rich.section is not None:
            found = next((rank for rank, hit in hits if in_section(hit, rich)), None)
            if found is not None:
                add("section_rank", record, 0, found)
        if rich.negatives or rich.decoy is not None:
            for rank, hit in hits:
                if first[hit.id] == rank and is_negative(hit, rich):
                    add("negative_rank", record, rank, 1)

    def _spans(self, record: int, rich: Rich, hits: Sequence[Ranked]) -> None:
        """What each hit adds to the union of retrieved text, and to what of the gold it covers."""
        if not rich.places:
            return
        unit = rich.places[0].spans[0].unit
        gold: dict[str, Merged] = {}
        for anchor in rich.places:
            old = gold.get(anchor.doc, [])
            gold[anchor.doc] = merged([*old, *of_unit(anchor.spans, unit)])
        union: dict[str, Merged] = {}
        for rank, hit in hits:
            if not hit.spans:
                continue
            refuse_mixed(hit, unit)
            # Text of an unknown document was retrieved too, and is none of the gold.
            doc = hit.docs[0] if hit.docs else ""
            if doc not in gold and len(hit.docs) > 1:
                doc = next((each for each in hit.docs if each in gold), doc)
            before, new = union.get(doc, []), of_unit(hit.spans, unit)
            grown = size(new)
            if before:
                new = merged([*before, *new])
                grown = size(new) - size(before)
            if not grown:
                continue
            union[doc] = new
            self.tables.add("span_union", record, rank, grown)
            if doc in gold:
                covered = overlap(new, gold[doc]) - overlap(before, gold[doc])
                if covered:
                    self.tables.add("span_covered", record, rank, covered)

    def _cited(self, record: int, rich: Rich, cited: Sequence[Place]) -> int:
        add = self.tables.add
        facts = 0
        wanted = set(rich.ids)
        pieces: set[int | str] = set()
        hitting = 0
        for each in cited:
            found: set[int | str] = {each.id} if each.id in wanted else set()
            for number, anchor in enumerate(rich.anchors):
                if rich.counted[number] and is_relevant(each, anchor):
                    found.add(number)
            hitting += bool(found)
            pieces |= found
        if rich.anchors:
            add("cited_relevant", record, 0, hitting)
            add("cited_pieces", record, 0, len(pieces))
            facts |= Fact.CITES_DECIDED | (Fact.CITED_RELEVANT if hitting else 0)
        if rich.section is not None:
            away = []
            for each in cited:
                if each.section is None:
                    continue
                away.append(distance(each.section, rich.section))
                if in_section(each, rich):
                    facts |= Fact.CITES_SECTION
            if away:
                add("distance", record, 0, sum(away) / len(away))
        if any(self._accurate(each, anchor) for each in cited for anchor in rich.places):
            facts |= Fact.ACCURATE
        if rich.places and any(each.own for each in cited):
            facts |= Fact.CITES_SPAN
        return int(facts)

    def _accurate(self, cited: Place, anchor: Anchor) -> bool:
        if not cited.own or not cited.in_doc(anchor.doc):
            return False
        section = anchor.section or (section_of(anchor.id) if anchor.id else None)
        if (
            section is not None
            and cited.section is not None
            and section_path(cited.section) != section_path(section)
        ):
            return False
        refuse_mixed(cited, anchor.spans[0].unit)
        window = self.options.citation_window
        return any(
            one.unit == gold.unit and self.agrees(one, gold, window)
            for one in cited.own
            for gold in anchor.spans
        )

    def _strings(self, rich: Rich, answer: Answer) -> int:
        if not rich.must_contain and not rich.forbidden:
            return 0
        text = fold(answer.said or "", ignore_case=self.options.ignore_case)
        right = all(each in text for each in rich.must_contain) and not any(
            each in text for each in rich.forbidden
        )
        return int(Fact.STRINGS_OK) if right else 0


def _elsewhere(hit: Hit) -> Place:
    """A hit in a document that the item does not speak of."""
    docs = () if hit.doc is None else (hit.doc,)
    return Place(hit.id, docs, None, (), docs)


def _text(hit: Hit | None, chunk: Chunk | None) -> str:
    """The text of a chunk: of the hit, or of the list of chunks where the hit has but a part."""
    whole = chunk.text if chunk is not None else None
    given = hit.text if hit is not None else None
    if given is None or (whole is not None and hit is not None and hit.snippet):
        given = whole
    return normalised(given or "")


def distance_of_citations(answer: Answer, hits: Sequence[Hit]) -> float | None:
    """The ΔS of an answer, or of its first citation that has one: its own, or that of the hit."""
    if answer.delta_s is not None:
        return answer.delta_s
    by_id = {hit.id: hit.delta_s for hit in reversed(hits)}
    for each in answer.listed:
        found = each.delta_s if each.delta_s is not None else by_id.get(each.id)
        if found is not None:
            return found
    return None


def _context(cited: Sequence[Place], hits: Sequence[Place], answer: Answer) -> int:
    """Whether every citation is among the hits, where some citations name only a place."""
    ids = {hit.id for hit in hits}
    named = {each.id for each in answer.cited if each.placed}
    for each in cited:
        if each.id in ids:
            continue
        if each.id not in named or not any(shares(each, hit) for hit in hits):
            return int(Fact.CONTEXT_DECIDED)
    return int(Fact.CONTEXT_DECIDED | Fact.IN_CONTEXT)


TableBytes = tuple[bytes, bytes, bytes]


class _Table(NamedTuple):
    record: array[int]
    key: array[int]
    value: array[float]


class Tables:
    """Sparse tables as they grow; every entry is a record, a key and a value."""

    def __init__(self) -> None:
        self.tables: dict[str, _Table] = {}

    def add(self, table: str, record: int, key: int, value: float) -> None:
        """Add one entry."""
        found = self.tables.get(table)
        if found is None:
            found = self.tables[table] = _Table(array("i"), array("i"), array("d"))
        found.record.append(record)
        found.key.append(key)
        found.value.append(value)

    def take(self) -> dict[str, TableBytes]:
        """Hand over the entries gathered so far, and begin anew."""
        packed = {
            name: (table.record.tobytes(), table.key.tobytes(), table.value.tobytes())
            for name, table in self.tables.items()
        }
        self.tables = {}
        return packed
