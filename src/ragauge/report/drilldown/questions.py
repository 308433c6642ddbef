"""Drill-downs: the questions of runs one by one, with all that a reader wants to see.

Details are made while they are walked. What they are made from lies in a file, so that memory does
not grow with the run: the trace file of a run that was just scored, a temporary one for a stored
run, whose store may be closed meanwhile.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from msgspec.structs import replace

from ragauge.compare.align import Aligned
from ragauge.compare.common_gold import StoredRun
from ragauge.corpus.excerpts import Excerpt, Excerpts
from ragauge.errors import RagaugeError
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import Comparison, MatchLevel
from ragauge.model.drilldown import Attempt, Drilldown, Passage
from ragauge.model.evidence import Evidence
from ragauge.model.gold import Expect, GoldItem
from ragauge.model.payloads import readable, thaw_chunks, thaw_evidence, thaw_gold
from ragauge.model.run import RunRecord, Store
from ragauge.model.scores import Scores
from ragauge.model.trace import Citation, Hit, Trace
from ragauge.report.drilldown.corpus_texts import CorpusTextReader, ShownText
from ragauge.report.drilldown.expected import (
    ExpectedPiece,
    expected_pieces,
    negatives_of,
    pieces_with_text,
)
from ragauge.report.drilldown.slot_labels import SlotLabels, slot_labels, stored_labels
from ragauge.scoring.evidence_places import EvidencePlace
from ragauge.scoring.highlights import Highlights
from ragauge.scoring.identify import EvidenceIdentifier, Marks, WantedEvidence
from ragauge.scoring.inputs import ScoredRun
from ragauge.scoring.results import at
from ragauge.scoring.row_index import RecordLabels
from ragauge.scoring.scoring_run import ScoringPlan
from ragauge.scoring.trace_details import distance_of_citations
from ragauge.spans import Span, in_words
from ragauge.store.runs import facts_of_chunks
from ragauge.store.snapshot import plan_of, read_snapshot
from ragauge.store.traces_by_question import (
    CANNOT,
    SlotTrace,
    TracesByQuestion,
    by_question,
    scored_by_question,
)

Key = tuple[str, int | None]


class Details:
    """The drill-downs of some questions, each made when it is asked for."""

    def __init__(self, count: int, make: Callable[[int], Drilldown]) -> None:
        self._count = count
        self._make = make

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Drilldown]:
        return map(self._make, range(self._count))


@contextmanager
def details_of_run(
    store: Store, run: RunRecord, scores: Scores, texts: Excerpts | None = None
) -> Iterator[Details]:
    """The drill-downs of a stored run, in the order of the questions of its scores.

    `texts` tells what stands at places of which the run has no text.
    """
    snapshot = read_snapshot(run.snapshot, run.run_id)
    items = thaw_gold(store.gold(run.gold_key), run.run_id)
    with ExitStack() as stack:
        plan = plan_of(snapshot.scoring, metrics=())
        yield _details(
            _side(stack, StoredRun(store, run), items, plan, scores, texts), scores, texts
        )


class JustScored(NamedTuple):
    """A run that was just scored, whose traces can be read while it is open."""

    recogniser: EvidenceIdentifier
    traces: TracesByQuestion
    labels: RecordLabels
    name: str
    evidence: Evidence


@contextmanager
def just_scored(run: ScoredRun) -> Iterator[JustScored]:
    """Open the traces of a run once more, before its inputs are closed (decision 0031)."""
    for_page, inputs = run.for_page, run.inputs
    assert for_page is not None, "the plan asks for it"
    facts = facts_of_chunks(run)
    for facts_of_range in for_page.index.facts:
        facts.merge(facts_of_range)
    recogniser = EvidenceIdentifier(
        replace(run.plan, selected=[]),
        run.items,
        run.chunks,
        gold_name=inputs.gold_name,
        table=run.table,
    )
    with scored_by_question(for_page) as traces:
        yield JustScored(recogniser, traces, for_page.labels, inputs.trace_name, facts.evidence())


def details_of_scored(run: JustScored, scores: Scores, texts: Excerpts | None = None) -> Details:
    """The drill-downs of a run that was just scored, in the order of its questions."""
    labels = slot_labels(run.recogniser, scores, run.labels.of)
    run.recogniser.follow_places(scores)
    side = _Side(run.recogniser, run.traces, labels, run.name, run.evidence, texts)
    return _details(side, scores, texts)


def _details(side: _Side, scores: Scores, texts: Excerpts | None) -> Details:
    listed = side.recogniser.items
    gold = _Gold((side,), texts)
    questions = scores.questions
    values = scores.per_question
    qids = [result.qid for result in questions] if values is None else list(values.qids)
    # Judgements have an order of their own, and then no two of them share an id.
    in_order = [item.qid for item in listed] == qids

    def make(place: int) -> Drilldown:
        result = questions[place]
        number = place if in_order else side.recogniser.number(result.qid, result.turn)
        if number is None:
            return Drilldown(qid=result.qid, turn=result.turn, gold=result.gold)
        return gold.drilldown(
            listed[number],
            result.gold,
            (),
            side.recogniser.expects(number),
            attempts=side.attempts(number),
        )

    return Details(len(questions), make)


@contextmanager
def details_of_comparison(
    a: StoredRun,
    b: StoredRun,
    aligned: Aligned,
    comparison: Comparison,
    texts: Excerpts | None = None,
) -> Iterator[Details]:
    """The drill-downs of two runs that were compared, each marked by the items of its side.

    They stand in the order of the questions of the comparison. `texts` is as for one run.
    """
    ground = aligned.compared_gold
    assert ground is not None, "align keeps it where it is asked to"
    plan = plan_of(ground.rules, metrics=())
    with ExitStack() as stack:
        one = _side(stack, a, ground.items_a, plan, aligned.a, texts, ground.beside_a)
        other = _side(stack, b, ground.items_b, plan, aligned.b, texts, ground.beside_b)
        if aligned.places is not None:
            for side, scores in ((one, aligned.a), (other, aligned.b)):
                side.recogniser.follow_places(scores, aligned.places.questions)
        gold = _Gold((one, other), texts)
        by_key: Mapping[Key, GoldItem] = {(item.qid, item.turn): item for item in ground.items}
        by_qid = {item.qid: item for item in ground.items}
        listed = comparison.per_query
        gold_name = comparison.run_b.gold_name

        def make(place: int) -> Drilldown:
            compared = listed[place]
            key = compared.query_id, compared.turn
            item = by_key.get(key) or by_qid[compared.query_id]
            mine, theirs = (side.recogniser.number(*key) for side in (one, other))
            expect = item.expect
            if mine is not None:
                expect = one.recogniser.expects(mine)
            elif theirs is not None:
                expect = other.recogniser.expects(theirs)
            return gold.drilldown(
                item,
                at(gold_name, item.line),
                compared.rungs,
                expect,
                attempts=() if mine is None else one.attempts(mine),
                other=() if theirs is None else other.attempts(theirs),
            )

        yield Details(len(listed), make)


def _side(
    stack: ExitStack,
    run: StoredRun,
    items: Sequence[GoldItem],
    plan: ScoringPlan,
    scores: Scores,
    texts: Excerpts | None,
    beside: Sequence[GoldItem] = (),
) -> _Side:
    record, store = run.record, run.store
    if not readable(record.schema_version):
        raise RagaugeError.of(
            "newer-store",
            f"the results of `{record.run_id}` were stored by a newer ragauge",
            hint="upgrade ragauge",
        )
    inputs = read_snapshot(record.snapshot, record.run_id).inputs
    chunks: dict[str, Chunk] = {}
    if record.chunks is not None:
        chunks = thaw_chunks(store.chunks(record.chunks), record.run_id)
    recogniser = EvidenceIdentifier(plan, items, chunks, gold_name=inputs.gold_name, beside=beside)
    recogniser.follow_places(scores)
    traces = stack.enter_context(by_question(store, record.run_id, recogniser))
    labels = slot_labels(recogniser, scores, stored_labels(store, record, recogniser))
    return _Side(recogniser, traces, labels, inputs.trace_name, _evidence(run), texts)


def _evidence(run: StoredRun) -> Evidence:
    """What a run knows of chunks and documents; who has just stored it holds it without that."""
    record = run.record if run.record.evidence else run.store.run(run.record.run_id)
    return Evidence() if record is None else thaw_evidence(record.evidence, record.run_id)


class _Gold:
    """Shows what questions expect, by what one run or both know of it."""

    def __init__(self, sides: tuple[_Side, ...], texts: Excerpts | None) -> None:
        self.chunks = ChainMap(*(side.chunks for side in sides))
        self.seen = ChainMap(*(side.evidence.expected for side in sides))
        self.corpus_texts = None
        if texts is not None:
            self.corpus_texts = CorpusTextReader(texts, [side.evidence.docs for side in sides])

    def drilldown(
        self,
        item: GoldItem,
        gold: str,
        rungs: Sequence[MatchLevel],
        expect: Expect | None,
        *,
        attempts: tuple[Attempt, ...],
        other: tuple[Attempt, ...] = (),
    ) -> Drilldown:
        """One question with its attempts."""
        pieces = [self._placed(piece) for piece in pieces_with_text(item, self.chunks, self.seen)]
        return Drilldown(
            qid=item.qid,
            turn=item.turn,
            question=item.question,
            paraphrases=item.paraphrases,
            expect=expect,
            gold=gold,
            expected=expected_pieces(item, pieces, rungs),
            evidence=self._evidence(pieces, (*attempts, *other)),
            negatives=negatives_of(item),
            claims=item.claims_any or (),
            must_contain=item.must_contain,
            forbidden=item.forbidden,
            type=item.type,
            tags=item.tags,
            attempts=attempts,
            other=other,
        )

    @staticmethod
    def _evidence(
        pieces: Sequence[ExpectedPiece], attempts: Sequence[Attempt]
    ) -> tuple[Passage, ...]:
        """The texts of pieces that neither a quote nor a hit shows."""
        with_text = [piece for piece in pieces if piece.text is not None and piece.quote is None]
        if not with_text:
            return ()
        retrieved = {hit.id for one in attempts for hit in one.hits if hit.text is not None}
        return tuple(
            [
                Passage(
                    id=piece.name,
                    doc=piece.doc,
                    section=piece.section,
                    type=piece.type,
                    where=_where(piece.spans, None),
                    text=piece.text,
                    marks=("gold",),
                )
                for piece in with_text
                if piece.name not in retrieved
            ]
        )

    def _placed(self, piece: ExpectedPiece) -> ExpectedPiece:
        """A piece with what the corpus has of it, where nobody else says what it says."""
        if self.corpus_texts is None or piece.text is not None or piece.quote is not None:
            return piece
        excerpt = self.corpus_texts.find(piece.name, piece.doc, piece.spans, piece.doc_hash)
        if excerpt is None:
            return piece
        return piece._replace(
            doc=piece.doc or excerpt.doc,
            spans=excerpt.spans,
            section=piece.section or excerpt.section,
            type=piece.type or excerpt.type,
            text=self.corpus_texts.shown(excerpt, ()).text,
        )


class _Side:
    """One run: its traces by question, and who knows what they are."""

    def __init__(
        self,
        recogniser: EvidenceIdentifier,
        traces: TracesByQuestion,
        labels: SlotLabels,
        name: str,
        evidence: Evidence,
        texts: Excerpts | None,
    ) -> None:
        self.evidence = evidence
        self.corpus_texts = None if texts is None else CorpusTextReader(texts, (evidence.docs,))
        self.recogniser = recogniser
        self.chunks = recogniser.chunks
        self.traces = traces
        self.labels = labels
        self.name = name

    def attempts(self, question: int) -> tuple[Attempt, ...]:
        """What the system did for a question, slot by slot."""
        item, wanted = self.recogniser.items[question], self.recogniser.wanted(question)
        traces = self.traces.of(question)
        lines = [scored.trace.line for scored in traces if scored.trace is not None]
        labels = iter(self.labels.of(question, lines))
        return tuple(
            [
                self._attempt(
                    question, item, wanted, scored, None if scored.trace is None else next(labels)
                )
                for scored in traces
            ]
        )

    def _attempt(
        self,
        question: int,
        item: GoldItem,
        wanted: WantedEvidence,
        scored: SlotTrace,
        label: str | None,
    ) -> Attempt:
        trace = scored.trace
        paraphrase, seed, turn = scored.slot
        turn = None if turn == item.turn else turn
        seed = None if seed is None else str(seed)
        if trace is None:
            return Attempt(paraphrase=paraphrase, seed=seed, turn=turn, error=CANNOT)
        recogniser, answer = self.recogniser, trace.answer
        places = recogniser.places(wanted, trace.hits)
        marks = recogniser.hit_marks(wanted, trace.hits, places)
        cited, ranks = recogniser.cited(wanted, trace, places)
        return Attempt(
            paraphrase=paraphrase,
            seed=seed,
            turn=turn,
            replaced=scored.replaced,
            asked=_asked(item, paraphrase, trace),
            trace=at(self.name, trace.line),
            label=label,
            error=trace.error,
            hits=tuple(
                [
                    self._hit(wanted, hit, place, (*mine, "cited") if rank in ranks else mine)
                    for rank, (hit, place, mine) in enumerate(
                        zip(trace.hits, places, marks, strict=True)
                    )
                ]
            ),
            answer=None if answer is None else answer.said,
            refusal=recogniser.refusal(question, trace),
            citations=self._citations(wanted, trace, cited),
            delta_s=None if answer is None else distance_of_citations(answer, trace.hits),
            latency_ms=None if trace.timing is None else trace.timing.total,
            lambda_state=trace.lambda_state,
        )

    def _hit(
        self, wanted: WantedEvidence, hit: Hit, place: EvidencePlace | None, marks: Marks
    ) -> Passage:
        chunk = self.chunks.get(hit.id) if self.chunks else None
        doc, section, text, spans, kind = hit.doc, hit.section, hit.text, hit.spans, hit.type
        if chunk is not None:
            doc, section = doc or chunk.doc, section or chunk.section
            text = chunk.text if text is None else text
            spans, kind = spans or chunk.spans, kind or chunk.type
        lit: Highlights = ()
        if text is not None:
            lit = () if place is None else self.recogniser.highlights(wanted, place, text)
        elif self.corpus_texts is not None:
            hashed = hit.doc_hash or (None if chunk is None else chunk.doc_hash)
            excerpt = self.corpus_texts.find(hit.id, doc, spans, hashed, hit.path)
            if excerpt is not None:
                text, lit = self._shown_text(wanted, place, excerpt)
                doc, spans = doc or excerpt.doc, spans or excerpt.spans
                section, kind = section or excerpt.section, kind or excerpt.type
        return Passage(
            id=hit.id,
            doc=doc,
            section=section,
            where=_where(spans, hit.spot),
            score=hit.score,
            type=kind,
            delta_s=hit.delta_s,
            text=text,
            highlights=lit,
            marks=marks,
        )

    def _shown_text(
        self, wanted: WantedEvidence, place: EvidencePlace | None, excerpt: Excerpt
    ) -> ShownText:
        """A text of the corpus, with what is evidence of the question in it."""
        assert self.corpus_texts is not None
        lit: Highlights = ()
        if place is not None:
            text = "".join(excerpt.parts)
            lit = self.recogniser.highlights(wanted, place, text, excerpt.spans)
        return self.corpus_texts.shown(excerpt, lit)

    def _citations(
        self, wanted: WantedEvidence, trace: Trace, cited: Sequence[EvidencePlace]
    ) -> tuple[Passage, ...]:
        if not cited or trace.answer is None:
            return ()
        places = {place.id: place for place in cited}
        of_cited = self.recogniser.cited_marks(wanted, cited)
        marks = {place.id: mine for place, mine in zip(cited, of_cited, strict=True)}
        needed = bool(self.chunks) or self.corpus_texts is not None
        retrieved = {hit.id for hit in trace.hits} if needed else set()
        return tuple(
            [
                _cited(citation, marks[citation.id])
                if not needed or citation.id in retrieved
                else self._cited_elsewhere(
                    wanted, citation, places[citation.id], marks[citation.id]
                )
                for citation in trace.answer.listed
            ]
        )

    def _cited_elsewhere(
        self, wanted: WantedEvidence, citation: Citation, place: EvidencePlace, marks: Marks
    ) -> Passage:
        """A citation that is not shown among the hits, with what is known of it."""
        doc, section, spans = citation.doc, citation.section, citation.spans
        chunk = self.chunks.get(citation.id)
        text: str | None = None
        hashed: str | None = None
        lit: Highlights = ()
        if chunk is not None:
            doc, section, spans = doc or chunk.doc, section or chunk.section, spans or chunk.spans
            text, hashed = chunk.text, chunk.doc_hash
        if text is None and self.corpus_texts is not None:
            excerpt = self.corpus_texts.find(citation.id, doc, spans, hashed)
            if excerpt is not None:
                text, lit = self._shown_text(wanted, place, excerpt)
                doc, spans = doc or excerpt.doc, spans or excerpt.spans
                section = section or excerpt.section
        elif text is not None:
            lit = self.recogniser.highlights(wanted, place, text, spans)
        return Passage(
            id=citation.id,
            doc=doc,
            section=section,
            where=_where(spans, None),
            delta_s=citation.delta_s,
            marks=marks,
            text=text,
            highlights=lit,
        )


def _cited(citation: Citation, marks: Marks) -> Passage:
    """A citation as it says itself."""
    return Passage(
        id=citation.id,
        doc=citation.doc,
        section=citation.section,
        where=_where(citation.spans, None),
        delta_s=citation.delta_s,
        marks=marks,
    )


def _where(spans: Sequence[Span], spot: str | None) -> str | None:
    return in_words(spans) if spans else spot


def _asked(item: GoldItem, paraphrase: int | None, trace: Trace) -> str | None:
    """The words that were asked, where they are known and are not those of the question."""
    words = trace.question
    if words is None and paraphrase is not None and 0 <= paraphrase < len(item.paraphrases):
        words = item.paraphrases[paraphrase]
    return None if words == item.question else words
