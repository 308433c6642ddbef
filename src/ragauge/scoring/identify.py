"""Which hits and citations of a stored trace are evidence, by the rules of its run.

All is asked of the code that scored the run; nothing is decided here in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from msgspec.structs import replace

from ragauge.files.fields import FieldError
from ragauge.files.ranges import Source
from ragauge.ids import doc_of
from ragauge.model.chunk import Chunk
from ragauge.model.drilldown import Mark
from ragauge.model.gold import Anchor, Expect, GoldItem
from ragauge.model.scores import Scores
from ragauge.model.trace import Answer, Hit, Trace
from ragauge.scoring.chunk_ends import hits_in_chunk
from ragauge.scoring.evidence_pieces import GoldDetails, is_somewhere
from ragauge.scoring.evidence_places import EvidencePlace, is_negative, is_relevant, shares
from ragauge.scoring.gold_table import GoldTable, gold_table, unique_items
from ragauge.scoring.highlights import Highlights, highlights
from ragauge.scoring.places import ChunkPlaces, chunk_places
from ragauge.scoring.scoring_run import ScoringPlan, job_of
from ragauge.scoring.sums import RULES
from ragauge.scoring.tasks.reduce import RangeReducer
from ragauge.spans import Span

Marks = tuple[Mark, ...]
_PLAIN = GoldDetails()
_GOLD: Marks = ("gold",)
_POSSIBLE: Marks = ("possible",)
_NEGATIVE: Marks = ("negative",)
_DOCUMENT: Marks = ("document",)


class WantedEvidence(NamedTuple):
    """What a question asks for: ids, documents, places, and more where there is more to know.

    `near`: a hit of another document than these can be evidence or a decoy by its id alone.
    `chunks` are those in which the evidence may stand anywhere, where the run was scored so; they
    are not among the ids and anchors then.
    """

    ids: Set[str]
    docs: Set[str]
    details: GoldDetails | None
    anchors: tuple[Anchor, ...]
    shown: tuple[Anchor, ...]
    near: bool
    chunks: tuple[ChunkPlaces, ...] = ()


class EvidenceIdentifier:
    """Knows the questions of a run, and which hits and citations of its traces are evidence."""

    def __init__(
        self,
        plan: ScoringPlan,
        items: Sequence[GoldItem],
        chunks: dict[str, Chunk],
        *,
        gold_name: str,
        table: GoldTable | None = None,
        beside: Sequence[GoldItem] = (),
    ) -> None:
        if table is None:
            table = gold_table(
                items,
                plan.profile,
                plan.options,
                name=gold_name,
                chunks=chunks,
                slices=False,
                beside=beside,
            )
        # Its traces were placed when they were read.
        job = job_of(replace(plan, places=None), table, Source("", "", 0, 0, "lines", ()))
        reducer = RangeReducer(job)
        self.items = unique_items(items, plan.profile, gold_name)
        self.chunks = chunks
        self.plan = plan
        self.table = table
        self.rules = plan.profile.join
        self.keys = job.keys
        self.find = reducer.find
        self.paraphrase = reducer.paraphrase
        self._reducer = reducer.reducer
        self._detail = reducer.reducer.detail
        self._numbers = {(item.qid, item.turn): place for place, item in enumerate(self.items)}
        self.by_place: frozenset[int] = frozenset()

    def follow_places(self, scores: Scores, questions: Iterable[int] | None = None) -> None:
        """Take over which questions the scores judged by where in a chunk the evidence stands.

        `questions` are their places among the scores, where these do not say so themselves.
        """
        values = scores.per_question
        if values is None:
            return
        if questions is None:
            questions = () if values.ends is None else values.ends.questions.tolist()
        numbers = (self.number(values.qids[at], values.turns[at]) for at in questions)
        self.by_place = frozenset(number for number in numbers if number is not None)

    def number(self, qid: str, turn: int | None) -> int | None:
        """The number of a question by its id and turn."""
        number = self._numbers.get((qid, turn))
        return self._numbers.get((qid, None)) if number is None else number

    def wanted(self, question: int) -> WantedEvidence:
        """What a question asks for."""
        keys = self.keys
        ids = frozenset(keys.counted.get(question, keys.evidence[question]))
        docs = {self.chunks[name].doc if name in self.chunks else doc_of(name) for name in ids}
        details = keys.details.get(question)
        anchors: tuple[Anchor, ...] = ()
        lit = anchors
        near = True
        if details is not None:
            counted = zip(details.anchors, details.counted, strict=True)
            anchors = tuple(anchor for anchor, counts in counted if counts)
            lit = (*anchors, *(place for place in details.places if place not in anchors))
            docs |= {*details.docs, *(anchor.doc for anchor in lit)}
            ids |= {anchor.id for anchor in anchors if anchor.id is not None}
            near = not (details.decoy or details.wrong or any(not anchor.doc for anchor in anchors))
        chunks: tuple[ChunkPlaces, ...] = ()
        if details is not None and question in self.by_place:
            least = self.plan.options.least_evidence
            chunks = tuple(
                chunk
                for chunk in chunk_places(details, least=least)
                if details.counted[chunk.number]
            )
            near = False  # a hit with the id of a chunk may say of itself that it lies elsewhere
            anchors = tuple(anchor for anchor in anchors if not is_somewhere(anchor))
            ids -= {chunk.anchor.id for chunk in chunks if chunk.anchor.id is not None}
        return WantedEvidence(
            ids, {doc for doc in docs if doc}, details, anchors, lit, near, chunks
        )

    def places(self, wanted: WantedEvidence, hits: Sequence[Hit]) -> list[EvidencePlace | None]:
        """Where hits lie; None for those of which only the id can matter."""
        details = wanted.details or _PLAIN
        docs, place_of = wanted.docs, self._detail.place_of_hit
        if not wanted.near:
            return [place_of(hit, details) for hit in hits]
        plain = wanted.details is None and not self.chunks
        heads = tuple(docs) if plain else ("",)
        return [
            None
            if (
                hit.doc not in docs
                if hit.doc is not None
                else not hit.id.startswith(heads)  # what an id names, it begins with
            )
            and hit.path not in docs
            else place_of(hit, details)
            for hit in hits
        ]

    def hit_marks(
        self, wanted: WantedEvidence, hits: Sequence[Hit], places: Sequence[EvidencePlace | None]
    ) -> list[Marks]:
        """What each hit of a list is, apart from being cited."""
        first: dict[str, int] = {}
        for rank, hit in enumerate(hits):
            first.setdefault(hit.id, rank)
        relevance = self._relevance(wanted, places, first)
        return [
            self._marks(wanted, hit.id, place, relevance.get(rank))
            for rank, (hit, place) in enumerate(zip(hits, places, strict=True))
        ]

    def cited_marks(self, wanted: WantedEvidence, cited: Sequence[EvidencePlace]) -> list[Marks]:
        """The same of the different citations of an answer."""
        relevance = self._relevance(wanted, cited, {})
        return [
            self._marks(wanted, place.id, place, relevance.get(number))
            for number, place in enumerate(cited)
        ]

    def _relevance(
        self,
        wanted: WantedEvidence,
        places: Sequence[EvidencePlace | None],
        first: Mapping[str, int],
    ) -> dict[int, bool]:
        """The ranks of what may be evidence somewhere in a chunk, and whether it surely is."""
        ranked = [(rank, place) for rank, place in enumerate(places) if place is not None]
        surely: dict[int, bool] = {}
        for chunk in wanted.chunks:
            least = self.plan.options.least_evidence
            try:
                relevance = hits_in_chunk(chunk, ranked, first, least=least)
            except FieldError:
                continue  # offsets of another unit: nothing can be said
            for one in relevance:
                if one.possibly:
                    surely[one.rank] = one.surely or surely.get(one.rank, False)
        return surely

    def _marks(
        self,
        wanted: WantedEvidence,
        name: str,
        place: EvidencePlace | None,
        surely: bool | None,
    ) -> Marks:
        """What a hit or citation is; `surely` is said of what may be evidence somewhere."""
        details = wanted.details
        if surely is not None:
            negative = details is not None and place is not None and is_negative(place, details)
            mark = _GOLD if surely or is_gold(wanted, name, place) else _POSSIBLE
            return (*mark, "negative") if negative else mark
        if place is None and name not in wanted.ids:
            return _NEGATIVE if details is not None and name in details.negatives else ()
        negative = details is not None and (
            name in details.negatives if place is None else is_negative(place, details)
        )
        if is_gold(wanted, name, place):
            return ("gold", "negative") if negative else _GOLD
        if place is not None and wanted.docs and not wanted.docs.isdisjoint(place.stated):
            return ("document", "negative") if negative else _DOCUMENT
        return _NEGATIVE if negative else ()

    def cited(
        self, wanted: WantedEvidence, trace: Trace, places: Sequence[EvidencePlace | None]
    ) -> tuple[list[EvidencePlace], Set[int]]:
        """Where the different citations lie, and the ranks, from 0, of the hits that are cited."""
        answer = trace.answer
        if answer is None or not (answer.cited or answer.citations):
            return [], frozenset()
        hits = trace.hits
        first: dict[str, int] = {}
        for rank, hit in enumerate(hits):
            first.setdefault(hit.id, rank)
        placed = {rank: place for rank, place in enumerate(places) if place is not None}
        details = wanted.details or _PLAIN
        cited = self._detail.citations(answer, hits, placed, first, details)
        names = {citation.id for citation in cited}
        ranks = {rank for rank, hit in enumerate(hits) if hit.id in names}
        bare = {
            citation.id for citation in answer.cited if citation.placed and citation.id not in first
        }
        for place in cited:
            if place.id in bare:
                for rank, hit in enumerate(hits):
                    where = places[rank] or self._detail.place_of_hit(hit, details)
                    if shares(place, where):
                        ranks.add(rank)
        return cited, ranks

    def highlights(
        self,
        wanted: WantedEvidence,
        place: EvidencePlace,
        text: str,
        spans: Sequence[Span] | None = None,
    ) -> Highlights:
        """The characters of a text that are evidence; it lies at `spans`, or as its place says."""
        anchors = [
            anchor
            for anchor in wanted.shown
            if not anchor.doc or anchor.doc in place.docs or not place.docs
        ]
        # Offsets mean nothing in a document that nobody names; a quote may still be found there.
        if not anchors:
            return ()
        spans = place.spans if spans is None else spans
        return highlights(text, spans if place.docs else (), anchors)

    def expects(self, question: int) -> Expect | None:
        """What a question was scored to expect, also where gold leaves that to the profile."""
        columns = self.table.columns
        if columns.answerable[question]:
            return "answer"
        return "refuse" if columns.refusable[question] else None

    def refusal(self, question: int, trace: Trace) -> str | None:
        """The rule that found a refusal, as scores name it; None where there is none."""
        answer: Answer | None = trace.answer
        if answer is None or (trace.error is not None and self.rules.absent != "empty-answer"):
            return None
        facts = self._reducer.refusal(question, answer)
        if not facts:
            return None
        return ", ".join(name for name, rule in RULES.items() if facts & rule)


def is_gold(wanted: WantedEvidence, name: str, place: EvidencePlace | None) -> bool:
    """Whether a hit or citation is evidence: by its place, or by its id where that says no other.

    An id that was given to another part of the document, as by another chunker, proves nothing.
    """
    if place is not None and is_evidence(wanted, place):
        return True
    if name not in wanted.ids:
        return False
    named = [anchor for anchor in wanted.anchors if anchor.id == name and anchor.spans]
    return (
        not named
        or place is None
        or not place.spans
        or not any(anchor.doc in place.docs for anchor in named)
    )


def is_evidence(wanted: WantedEvidence, place: EvidencePlace) -> bool:
    """Whether something lies at the evidence, or in a document where nothing else is expected."""
    if any(_lies_at(place, anchor) for anchor in wanted.anchors):
        return True
    details = wanted.details
    if details is None or wanted.ids or details.anchors:
        return False
    return any(doc in place.stated for doc in details.docs)


def _lies_at(place: EvidencePlace, anchor: Anchor) -> bool:
    try:
        return is_relevant(place, anchor)
    except FieldError:
        return False  # offsets of another unit: nothing can be said
