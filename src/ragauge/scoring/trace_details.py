"""The details of a record that ids alone cannot give: places, sections, documents, distances.

They come out as sparse tables of (record, key, value), so that records without them cost nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from msgspec.structs import replace

from ragauge.files.fields import FieldError
from ragauge.ids import distance, parts_of, section_of, section_path
from ragauge.metrics.facts import LAMBDA_STATES, Fact
from ragauge.model.chunk import Chunk, Chunks
from ragauge.model.gold import Anchor
from ragauge.model.options import Options
from ragauge.model.trace import Answer, Citation, Hit, Trace, Usage
from ragauge.quotes import byte_length, normalised
from ragauge.scoring.evidence_pieces import GoldDetails, is_effective, is_somewhere
from ragauge.scoring.evidence_places import (
    AGREE,
    EvidencePlace,
    OnePlace,
    RankedPlace,
    found_at,
    in_scope,
    in_section,
    is_negative,
    is_relevant,
    only_place,
    ranks_of,
    refuse_mixed,
    shares,
)
from ragauge.scoring.places import (
    ACCURATE_TABLE,
    ANYWHERE,
    CITED_COVER_TABLES,
    COVER_TABLES,
    HITS_TABLE,
    MOST_RANKS,
    OWN_TABLE,
    PLACE_TABLE,
    POSSIBLE_CITED_TABLE,
    POSSIBLE_TABLE,
    SIZE_TABLE,
    TOUCH_TABLE,
    ChunkCover,
    ChunkPlaces,
    chunk_covers,
    chunk_places,
    is_whole,
    own_chunk,
    place_runs,
    possible_ranks,
    touching,
)
from ragauge.scoring.reference_answers import AnswerText, ReferenceAnswer
from ragauge.scoring.section_index import SectionIndex
from ragauge.spans import Merged, Span, merged, of_unit, overlap, size
from ragauge.text import fold, without_citations

_PLAIN = GoldDetails()


class TraceDetails:
    """Finds the details of traces for one gold set.

    `errors_count`: a trace with an error is a trace like any other, as in sources that say so.
    """

    def __init__(
        self,
        details: Mapping[int, GoldDetails],
        chunks: Chunks,
        options: Options,
        *,
        errors_count: bool,
        bytes_too: bool = True,
    ) -> None:
        self.bytes_too = bytes_too
        self.details = details
        self.chunks = chunks
        self.options = options
        self.errors_count = errors_count
        self.agrees = AGREE[options.citation_mode]
        self.single = options.overlap == "single"
        self.tables = Tables()
        self.embedders: set[str] = set()
        self.by_doc: dict[str, list[EvidencePlace]] | None = None
        self.sections: SectionIndex | None = None
        self.references: dict[int, tuple[ReferenceAnswer, ...]] = {}
        self.near: dict[int, frozenset[str | None] | None] = {}
        self.only: dict[int, OnePlace | None] = {}
        self.somewhere: dict[int, tuple[ChunkPlaces, ...]] = {}

    def add(self, record: int, question: int, trace: Trace, ids: Sequence[str]) -> int:
        """Add the details of one trace, whose hits have these ids; return what they decide.

        A trace that is refused (its places cannot be compared with those of the gold) leaves
        nothing behind.
        """
        try:
            return self._add(record, question, trace, ids)
        except FieldError:
            self.tables.drop(record)
            raise

    def _add(self, record: int, question: int, trace: Trace, ids: Sequence[str]) -> int:
        facts = int(Fact.DISORDERED) if trace.disordered else 0
        if trace.oversampled:
            facts |= Fact.OVERSAMPLED
        if trace.usage is not None:  # what failed was paid for too
            self.add_usage(record, trace.usage)
        if trace.error is not None and not self.errors_count:
            return facts
        self._recorded(record, trace)
        details = self.details.get(question)
        answer = trace.answer
        if self.chunks and answer is not None and answer.citations and self._all_known(answer):
            facts |= Fact.RESOLVED
        placed = answer is not None and any(citation.placed for citation in answer.cited)
        if details is None and not placed:
            return facts
        if answer is None and self._one_place(record, question, trace, ids):
            return facts
        item = details or _PLAIN
        near = None if placed or self.bytes_too or self.chunks else self._near(question, item)
        ranked = [
            (rank, self.place_of_hit(hit, item))
            for rank, hit in enumerate(trace.hits)
            if near is None or hit.doc is None or hit.doc in near or hit.path in near
        ]
        # From the last to the first, so that the first rank of an id is the one that stays.
        first = dict(zip(reversed(ids), range(len(ids) - 1, -1, -1), strict=True))
        if details is not None:
            self._ranks(record, details, ranked, first)
            if details.somewhere and self._places(record, question, details, ranked, first):
                for rank, hit in enumerate(trace.hits):
                    self.tables.add(SIZE_TABLE, record, rank, self._size(hit))
            if self.bytes_too:
                self._spans(record, details, ranked)
        if answer is not None:
            places = self.citations(answer, trace.hits, dict(ranked), first, item)
            if details is not None:
                facts |= self._cited(record, details, places)
                if details.somewhere:
                    self._chunks_cited(record, question, details, places)
                facts |= self._strings(details, answer)
                if details.references:
                    self._compare(record, question, details, answer)
            if placed:
                facts |= _context(places, [place for _, place in ranked], answer)
        return facts

    def add_usage(self, record: int, usage: Usage) -> None:
        """Add what a trace cost."""
        if usage.tokens is not None:
            self.tables.add("tokens", record, 0, usage.tokens)
        if usage.cost is not None:
            self.tables.add("cost", record, 0, usage.cost)

    def _compare(self, record: int, question: int, details: GoldDetails, answer: Answer) -> None:
        """Add how near an answer is to the nearest of the reference answers."""
        if question not in self.references:
            self.references[question] = tuple(map(ReferenceAnswer, details.references))
        said = AnswerText(without_citations(answer.said or ""))
        likeness = [reference.likeness(said) for reference in self.references[question]]
        for table in ("exact_match", "token_f1", "rouge_l"):
            best = max(getattr(one, table) for one in likeness)
            if best:
                self.tables.add(table, record, 0, best)

    def _one_place(self, record: int, question: int, trace: Trace, ids: Sequence[str]) -> bool:
        """Add the ranks of an item that asks for one place; False where that needs more steps."""
        if self.bytes_too or self.chunks:
            return False
        if question not in self.only:
            self.only[question] = only_place(self.details[question])
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
            delta_s = distance_of_citations(answer, trace.hits)
            if delta_s is not None:
                add("delta_s_cited", record, 0, delta_s)
                seen = True
        embedder = trace.embedder or trace.index.get("embed_model")
        if seen and embedder is not None:
            self.embedders.add(embedder)
        if trace.lambda_state is not None:
            add("lambda", record, 0, LAMBDA_STATES.index(trace.lambda_state))
        if trace.unknown_ids is not None:
            unknown = set(trace.unknown_ids)
            add("unknown_hits", record, 0, sum(hit.id in unknown for hit in trace.hits))
            if answer is not None and not unknown.isdisjoint(answer.citations or ()):
                add("unknown_cited", record, 0, 1)
        if trace.timing is not None:
            for name in ("retrieve", "reason", "total"):
                value = getattr(trace.timing, name)
                if value is not None:
                    add(f"{name}_ms", record, 0, value)

    def _all_known(self, answer: Answer) -> bool:
        """Whether every citation is a chunk of the list, by its id or by its place."""
        return all(
            citation.id in self.chunks or self._lies_in_chunk(citation)
            for citation in answer.listed
        )

    def _lies_in_chunk(self, citation: Citation) -> bool:
        if not citation.placed or citation.doc is None or not citation.spans:
            return False
        if self.by_doc is None:
            self.by_doc = {}
            for name, chunk in self.chunks.items():
                place = EvidencePlace(name, (chunk.doc,), None, chunk.spans)
                self.by_doc.setdefault(chunk.doc, []).append(place)
        cited = EvidencePlace(citation.id, (citation.doc,), None, citation.spans)
        return any(shares(cited, place) for place in self.by_doc.get(citation.doc, ()))

    def _near(self, question: int, details: GoldDetails) -> frozenset[str | None] | None:
        """The documents that matter to an item, where others can only matter by ids; else None."""
        if question not in self.near:
            wrong = details.decoy or details.negatives or details.wrong
            narrow = not (details.section or wrong or details.quoted or details.judged)
            narrow = narrow and not any(anchor.doc == ANYWHERE for anchor in details.anchors)
            docs = [anchor.doc for anchor in details.anchors]
            docs += details.docs
            docs += [place.doc for place in details.places if place.doc not in docs]
            self.near[question] = frozenset(docs) if narrow else None
        return self.near[question]

    def place_of_hit(self, hit: Hit, details: GoldDetails = _PLAIN) -> EvidencePlace:
        """Where a hit lies: as it says itself, as the list of chunks says, or by its id."""
        chunk = self.chunks.get(hit.id)
        parts = parts_of(hit.id)
        doc = hit.doc or (chunk.doc if chunk else None) or parts.doc
        stated: tuple[str, ...] = () if doc is None else (doc,)
        if hit.path is not None:
            stated = (*stated, hit.path)
        docs = stated or ((details.doc,) if details.doc is not None else ())
        spans = hit.spans or (chunk.spans if chunk else ())
        return EvidencePlace(
            hit.id,
            docs,
            hit.section
            or (chunk.section if chunk else None)
            or parts.section
            or self._section_at(docs, spans, details),
            spans,
            stated,
            text=_text(hit, chunk) if details.quoted else "",
        )

    def _section_at(
        self, docs: Sequence[str], spans: Sequence[Span], details: GoldDetails
    ) -> str | None:
        """The section that the list of chunks knows at a place; None where nobody asks for it."""
        if not self.chunks or not spans or (details.section is None and details.decoy is None):
            return None
        if self.sections is None:
            self.sections = SectionIndex(self.chunks.values())
        return self.sections.section_at(docs, spans)

    def citations(
        self,
        answer: Answer,
        hits: Sequence[Hit],
        placed: Mapping[int, EvidencePlace],
        first: Mapping[str, int],
        details: GoldDetails,
    ) -> list[EvidencePlace]:
        """The distinct citations, each with what it says itself or the hit of the same id says.

        One chunk that is cited at two places is two citations. Of a hit that is not placed, its
        document is all that matters.
        """
        places: dict[tuple[object, ...], EvidencePlace] = {}
        for citation in answer.listed:
            rank = first.get(citation.id)
            same = None if rank is None else placed.get(rank) or _elsewhere(hits[rank])
            chunk = self.chunks.get(citation.id)
            parts = parts_of(citation.id)
            doc = citation.doc or (chunk.doc if chunk else None) or parts.doc
            docs = (doc,) if doc is not None else ()
            stated = docs if same is None else (*docs, *same.stated)
            if same is not None:
                docs = tuple(dict.fromkeys((*docs, *same.docs)))
            elif doc is None and details.doc is not None:
                docs = (details.doc,)
            spans = citation.spans or (same.spans if same else ()) or (chunk.spans if chunk else ())
            place = EvidencePlace(
                citation.id,
                docs,
                citation.section
                or (same.section if same else None)
                or (chunk.section if chunk else None)
                or parts.section
                or self._section_at(docs, spans, details),
                spans,
                stated=stated,
                own=citation.spans or (chunk.spans if chunk else ()),
                text=same.text if same else _text(None, chunk) if details.quoted else "",
            )
            places.setdefault((place.id, place.docs, place.section, place.spans), place)
        return list(places.values())

    def _size(self, hit: Hit) -> int:
        """How many bytes a hit has, by its place or its text; 0 if neither is known."""
        chunk = self.chunks.get(hit.id)
        spans = hit.spans or (chunk.spans if chunk is not None else ())
        if spans:
            return size(of_unit(spans, spans[0].unit))
        text = hit.text or (chunk.text if chunk is not None else None) or ""
        return byte_length(text)

    def _chunks_of(self, question: int, details: GoldDetails) -> tuple[ChunkPlaces, ...]:
        if question not in self.somewhere:
            least = self.options.least_evidence
            self.somewhere[question] = chunk_places(details, least=least)
        return self.somewhere[question]

    def _places(
        self,
        record: int,
        question: int,
        details: GoldDetails,
        hits: Sequence[RankedPlace],
        first: Mapping[str, int],
    ) -> bool:
        """Add the rank of every place at which the evidence of a chunk may stand.

        A chunk that no hit but itself touches is found by its id at all places or at none: that
        needs no table. Whether there is any other is returned.
        """
        add = self.tables.add
        touched = False
        all_covers: list[tuple[ChunkPlaces, list[ChunkCover]]] = []
        for chunk in self._chunks_of(question, details):
            if not chunk.places:
                touched = True
                for rank, sure in possible_ranks(chunk, hits, first):
                    key = chunk.number * MOST_RANKS + min(rank, MOST_RANKS - 1)
                    add(POSSIBLE_TABLE, record, key, sure)
                continue
            own = own_chunk(chunk, hits, first)
            if own is not None:
                add(OWN_TABLE, record, chunk.number, own)
            covers = touching(chunk, chunk_covers(chunk, hits, first))
            all_covers.append((chunk, covers))
            if self._touch(record, chunk, covers, contradicted=own == -1):
                touched = True
                for at, rank in place_runs(chunk, hits, first, single=self.single):
                    add(PLACE_TABLE, record, chunk.first + at, rank)
        if touched:
            for chunk, covers in all_covers:
                self._covers(record, chunk, covers, COVER_TABLES, first)
            add(HITS_TABLE, record, 0, 1)
            self._sure_hits(record, details, hits, first)
        return touched

    def _touch(
        self,
        record: int,
        chunk: ChunkPlaces,
        covers: Sequence[ChunkCover],
        *,
        contradicted: bool = False,
    ) -> bool:
        """Note whether anything but a chunk itself covers some of it, and return that.

        The very chunk under another id says nothing of how the others are cut. An effective place
        has no hits of its own id, and is always looked at.
        """
        others = [cover for cover in covers if cover.id != chunk.anchor.id or contradicted]
        is_renamed = bool(others)
        others = [cover for cover in others if not is_whole(chunk, cover)]
        if not others and not is_effective(chunk.anchor):
            if is_renamed:
                self.tables.add(TOUCH_TABLE, record, chunk.number, 0)
            return is_renamed
        listed = self._is_listed(chunk.anchor.id) and all(
            self._is_listed(cover.id) for cover in others
        )
        is_same = listed and not contradicted
        self.tables.add(TOUCH_TABLE, record, chunk.number, 1 if is_same else 2)
        return True

    def _covers(
        self,
        record: int,
        chunk: ChunkPlaces,
        covers: Sequence[ChunkCover],
        tables: tuple[str, str, str],
        first: Mapping[str, int],
    ) -> None:
        """Add what covers a chunk; a hit that stands twice is the same text again."""
        add = self.tables.add
        start_table, end_table, size_table = tables
        for cover in covers:
            if first.get(cover.id, cover.rank) != cover.rank:
                continue
            key = chunk.number * MOST_RANKS + min(cover.rank, MOST_RANKS - 1)
            for start, end in cover.spans:
                add(start_table, record, key, start)
                add(end_table, record, key, end)
            add(size_table, record, key, cover.size)

    def _is_listed(self, name: str | None) -> bool:
        return name is not None and name in self.chunks and bool(self.chunks[name].spans)

    def _sure_hits(
        self,
        record: int,
        details: GoldDetails,
        hits: Sequence[RankedPlace],
        first: Mapping[str, int],
    ) -> None:
        """Add the hits that are evidence wherever that of chunks stands."""
        ranks = {first[name] for name in details.ids if name in first}
        anchors = [
            anchor
            for anchor, counts in zip(details.anchors, details.counted, strict=True)
            if counts and not is_somewhere(anchor)
        ]
        for rank, hit in hits:
            if first[hit.id] == rank and any(is_relevant(hit, anchor) for anchor in anchors):
                ranks.add(rank)
        for rank in sorted(ranks):
            self.tables.add("sure_rank", record, rank, 1)

    def _chunks_cited(
        self, record: int, question: int, details: GoldDetails, cited: Sequence[EvidencePlace]
    ) -> None:
        """Add what citations cover of the chunks in which the evidence may stand anywhere."""
        add = self.tables.add
        ranked = list(enumerate(cited))
        numbers = {place.id: number for number, place in reversed(ranked)}
        touched = False
        all_covers: list[tuple[ChunkPlaces, list[ChunkCover]]] = []
        for chunk in self._chunks_of(question, details):
            if not chunk.places:
                touched = True
                for number, is_sure in possible_ranks(chunk, ranked, numbers):
                    key = chunk.number * MOST_RANKS + min(number, MOST_RANKS - 1)
                    add(POSSIBLE_CITED_TABLE, record, key, is_sure)
                continue
            # Citations of one chunk at two places are two: their numbers stand for their ids.
            covers = touching(chunk, chunk_covers(chunk, ranked, {}))
            all_covers.append((chunk, covers))
            touched |= self._touch(record, chunk, covers)
        if not touched:
            return
        for chunk, covers in all_covers:
            self._covers(record, chunk, covers, CITED_COVER_TABLES, {})
            if chunk.text is None:
                self._chunk_accuracy(record, chunk, cited)
        wanted = set(details.ids)
        pieces: set[int | str] = set()
        for number, place in ranked:
            met: set[int | str] = {place.id} if place.id in wanted else set()
            met |= {
                at
                for at, anchor in enumerate(details.anchors)
                if details.counted[at] and not is_somewhere(anchor) and is_relevant(place, anchor)
            }
            pieces |= met
            if met:
                add("sure_cited", record, number, 1)
        add("sure_cited_piece", record, 0, len(pieces))
        sure = [anchor for anchor in details.places if not is_somewhere(anchor)]
        if any(self._accurate(place, anchor) for place in cited for anchor in sure):
            add("sure_accurate", record, 0, 1)

    def _chunk_accuracy(
        self, record: int, chunk: ChunkPlaces, cited: Sequence[EvidencePlace]
    ) -> None:
        """Add whether a citation agrees with the evidence of a chunk, wherever it stands or not."""
        anchor = chunk.anchor
        whole = of_unit(anchor.spans, anchor.spans[0].unit)
        possible = False
        for place in cited:
            if not place.own or not place.in_doc(anchor.doc):
                continue
            spans = of_unit(place.own, anchor.spans[0].unit)
            stretches = [chunk.places[0], chunk.places[-1], *whole]
            # The stretch that ends where the citation does, as far as the chunk reaches.
            if spans:
                nearest = [(max(spans[0][0], whole[0][0]), min(spans[-1][1], whole[-1][1]))]
                stretches += [stretch for stretch in nearest if stretch[0] < stretch[1]]
            agrees = [
                self._accurate(place, replace(anchor, spans=(Span(*one, anchor.spans[0].unit),)))
                for one in stretches
            ]
            possible |= any(agrees)
            if all(agrees):
                self.tables.add(ACCURATE_TABLE, record, chunk.number, 1)
                return
        if possible:
            self.tables.add(ACCURATE_TABLE, record, chunk.number, 0)

    def _ranks(
        self,
        record: int,
        details: GoldDetails,
        hits: Sequence[RankedPlace],
        first: Mapping[str, int],
    ) -> None:
        """The ranks at which an item finds what it asks for; `hits` are those that may matter."""
        add = self.tables.add
        for number, anchor in enumerate(details.anchors):
            rank_found = found_at(anchor, hits, first, single=self.single)
            if rank_found is not None:
                add("anchor_rank", record, number, rank_found)
        relevant = {first[name] for name in details.ids if name in first}
        if details.anchors:
            anchors = details.anchors
            if not all(details.counted):
                anchors = tuple(
                    a for a, counts in zip(anchors, details.counted, strict=True) if counts
                )
            named = (*details.ids, *(anchor.id for anchor in anchors if anchor.id is not None))
            ranks = {first[name] for name in named if name in first}
            for rank, hit in hits:
                if first[hit.id] == rank and any(is_relevant(hit, anchor) for anchor in anchors):
                    ranks.add(rank)
            for rank in sorted(ranks):
                add("relevant_rank", record, rank, 1)
            relevant |= ranks
        for number, doc in enumerate(details.docs):
            rank_found = next((rank for rank, hit in hits if doc in hit.stated), None)
            if rank_found is not None:
                add("doc_rank", record, number, rank_found)
        if details.section is not None:
            rank_found = next((rank for rank, hit in hits if in_section(hit, details)), None)
            if rank_found is not None:
                add("section_rank", record, 0, rank_found)
        wrong: set[int] = set()
        if details.negatives or details.wrong or details.decoy is not None:
            for rank, hit in hits:
                if first[hit.id] == rank and is_negative(hit, details):
                    add("negative_rank", record, rank, 1)
                    wrong.add(rank)
        if wrong or details.judged:
            self._judged(record, details, wrong, relevant, first)

    def _judged(
        self,
        record: int,
        details: GoldDetails,
        wrong: Set[int],
        relevant: Set[int],
        first: Mapping[str, int],
    ) -> None:
        """The ranks of hits that are judged and not relevant; 0 for grades outside the scale."""
        judged = {first[name]: counts for name, counts in details.judged.items() if name in first}
        judged |= dict.fromkeys(wrong, True)
        for rank in sorted(judged.keys() - relevant):
            self.tables.add("judged_rank", record, rank, float(judged[rank]))

    def _spans(self, record: int, details: GoldDetails, hits: Sequence[RankedPlace]) -> None:
        """What each hit adds to the union of retrieved text, and to what of the gold it covers."""
        if not details.places:
            return
        unit = details.places[0].spans[0].unit
        gold = _by_document(details.places, unit)
        tables = [("span_covered", gold)]
        if details.somewhere:
            sure = [anchor for anchor in details.places if not is_somewhere(anchor)]
            tables.append(("sure_covered", _by_document(sure, unit)))
        union: dict[str, Merged] = {}
        for rank, hit in hits:
            if not hit.spans:
                continue
            refuse_mixed(hit, unit)
            # Text of an unknown document was retrieved too, and is none of the gold.
            doc = hit.docs[0] if hit.docs else ""
            if doc not in gold and len(hit.docs) > 1:
                doc = next((name for name in hit.docs if name in gold), doc)
            before, new = union.get(doc, []), of_unit(hit.spans, unit)
            grown = size(new)
            if before:
                new = merged([*before, *new])
                grown = size(new) - size(before)
            if not grown:
                continue
            union[doc] = new
            self.tables.add("span_union", record, rank, grown)
            for table, places in tables:
                if doc in places:
                    covered = overlap(new, places[doc]) - overlap(before, places[doc])
                    if covered:
                        self.tables.add(table, record, rank, covered)

    def _cited(self, record: int, details: GoldDetails, cited: Sequence[EvidencePlace]) -> int:
        add = self.tables.add
        facts = 0
        wanted = set(details.ids)
        pieces: set[int | str] = set()
        hitting = 0
        for place in cited:
            met: set[int | str] = {place.id} if place.id in wanted else set()
            met |= {
                number
                for number, anchor in enumerate(details.anchors)
                if details.counted[number] and is_relevant(place, anchor)
            }
            hitting += bool(met)
            pieces |= met
        if details.anchors:
            add("cited_places", record, 0, len(cited))
            add("cited_relevant", record, 0, hitting)
            add("cited_pieces", record, 0, len(pieces))
            facts |= Fact.CITES_DECIDED | (Fact.CITED_RELEVANT if hitting else 0)
        if details.section is not None:
            away = []
            elsewhere = 0
            for place in cited:
                if place.section is None:
                    continue
                if place.docs and not in_scope(place, details):
                    elsewhere += 1
                    continue
                away.append(distance(place.section, details.section))
                if in_section(place, details):
                    facts |= Fact.CITES_SECTION
            if away:
                add("distance", record, 0, sum(away) / len(away))
            elif elsewhere:
                add("other_document", record, 0, elsewhere)
        if any(self._accurate(place, anchor) for place in cited for anchor in details.places):
            facts |= Fact.ACCURATE
        if details.places and any(place.own for place in cited):
            facts |= Fact.CITES_SPAN
        return int(facts)

    def _accurate(self, cited: EvidencePlace, anchor: Anchor) -> bool:
        if not cited.own or not cited.in_doc(anchor.doc):
            return False
        section = anchor.section or (section_of(anchor.id) if anchor.id else None)
        if (
            section is not None
            and cited.section is not None
            and section_path(cited.section) != section_path(section)
        ):
            return False
        unit = anchor.spans[0].unit
        refuse_mixed(cited, unit)
        return self.agrees(
            of_unit(cited.own, unit), of_unit(anchor.spans, unit), self.options.citation_window
        )

    def _strings(self, details: GoldDetails, answer: Answer) -> int:
        if not details.must_contain and not details.forbidden:
            return 0
        text = fold(answer.said or "", ignore_case=self.options.ignore_case)
        right = all(string in text for string in details.must_contain) and not any(
            string in text for string in details.forbidden
        )
        return int(Fact.STRINGS_OK) if right else 0


def _by_document(anchors: Sequence[Anchor], unit: str) -> dict[str, Merged]:
    """What places cover of each document."""
    covered: dict[str, Merged] = {}
    for anchor in anchors:
        old = covered.get(anchor.doc, [])
        covered[anchor.doc] = merged([*old, *of_unit(anchor.spans, unit)])
    return covered


def _elsewhere(hit: Hit) -> EvidencePlace:
    """A hit in a document that the item does not speak of."""
    docs = () if hit.doc is None else (hit.doc,)
    return EvidencePlace(hit.id, docs, None, (), docs)


def _text(hit: Hit | None, chunk: Chunk | None) -> str:
    """The text of a chunk: of the hit, or of the list of chunks where the hit has but a part."""
    whole = chunk.text if chunk is not None else None
    text = hit.text if hit is not None else None
    if text is None or (whole is not None and hit is not None and hit.snippet):
        text = whole
    return normalised(text or "")


def distance_of_citations(answer: Answer, hits: Sequence[Hit]) -> float | None:
    """The ΔS of an answer, or of its first citation that has one: its own, or that of the hit."""
    if answer.delta_s is not None:
        return answer.delta_s
    by_id = {hit.id: hit.delta_s for hit in reversed(hits)}
    for citation in answer.listed:
        delta_s = citation.delta_s if citation.delta_s is not None else by_id.get(citation.id)
        if delta_s is not None:
            return delta_s
    return None


def _context(cited: Sequence[EvidencePlace], hits: Sequence[EvidencePlace], answer: Answer) -> int:
    """Whether every citation is among the hits, where some citations name only a place."""
    ids = {hit.id for hit in hits}
    named = {citation.id for citation in answer.cited if citation.placed}
    for place in cited:
        if place.id in ids:
            continue
        if place.id not in named or not any(shares(place, hit) for hit in hits):
            return int(Fact.CONTEXT_DECIDED)
    return int(Fact.CONTEXT_DECIDED | Fact.IN_CONTEXT)


TableBytes = tuple[bytes, bytes, bytes]


class _TableColumns(NamedTuple):
    record: array[int]
    key: array[int]
    value: array[float]


class Tables:
    """Sparse tables as they grow; every entry is a record, a key and a value."""

    def __init__(self) -> None:
        self.tables: dict[str, _TableColumns] = {}

    def add(self, table: str, record: int, key: int, value: float) -> None:
        """Add one entry."""
        columns = self.tables.get(table)
        if columns is None:
            columns = self.tables[table] = _TableColumns(array("i"), array("i"), array("d"))
        columns.record.append(record)
        columns.key.append(key)
        columns.value.append(value)

    def drop(self, record: int) -> None:
        """Forget the entries of the newest record."""
        for name, columns in list(self.tables.items()):
            count = columns.record.count(record)
            if count:
                for column in columns:
                    del column[-count:]
            if not columns.record:
                del self.tables[name]

    def take(self) -> dict[str, TableBytes]:
        """The entries so far as bytes; the next entry begins new tables."""
        packed = {
            name: (table.record.tobytes(), table.key.tobytes(), table.value.tobytes())
            for name, table in self.tables.items()
        }
        self.tables = {}
        return packed
