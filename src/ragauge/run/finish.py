"""Results are stored batch by batch while a run is asked; at its end the run is scored."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import suppress
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from ragauge.formats.unread_fields import FieldCounter, unread_notes
from ragauge.ids import doc_of
from ragauge.model.chunk import Chunk
from ragauge.model.comparison import RANKS
from ragauge.model.evidence import Carries
from ragauge.model.gold import GoldItem
from ragauge.model.payloads import UNREADABLE, thaw, trace_of
from ragauge.model.run import ResultRow, RunRecord, Store
from ragauge.model.scores import Scores
from ragauge.model.semantic import Bands
from ragauge.model.trace import Trace
from ragauge.run.ask import BatchCounts
from ragauge.scoring.chunk_facts import FactsCollector, expected_ids, has_text, negative_ids
from ragauge.scoring.remeasure import semantic_of
from ragauge.scoring.results import without_metrics
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.pack import RowSerialiser, SerialisedRows
from ragauge.store.runs import add_scores, recompute_scores
from ragauge.store.stored_scores import value_texts

_AT_ONCE = 2048
_NO_QUESTION = -1
_CACHED_IDS = 1 << 16


class _HitFacts(FactsCollector):
    """Looks only at what hits carry. Ids come again and again, so the last ones are cached."""

    def __init__(self, wanted: Set[str], chunks: Mapping[str, Chunk]) -> None:
        super().__init__(wanted, chunks)
        self.doc_of = lru_cache(_CACHED_IDS)(doc_of)

    def add(self, trace: Trace) -> int:
        """What all hits of a trace carry, as the bits of `Carries`."""
        spanned = named = quotable = True
        for hit in trace.hits:
            chunk = self.chunks.get(hit.id)
            spanned = spanned and bool(hit.spans or (chunk is not None and chunk.spans))
            named = named and bool(hit.doc or chunk is not None or self.doc_of(hit.id) is not None)
            quotable = quotable and has_text(hit, chunk)
        return spanned * Carries.SPANS | named * Carries.DOCS | quotable * Carries.TEXTS


class ResultWriter:
    """Stores traces under the numbers of their slots, which are their lines counted from 0.

    It holds none of them: facts about chunks are gathered when the run is finished.
    """

    def __init__(self, store: Store, run: RunRecord, job: Job, *, replacing: bool) -> None:
        self.packer = RowSerialiser(job)
        self.packer.gatherer = _HitFacts(self.packer.gatherer.wanted, job.chunks)
        self.run_id = run.run_id
        self.put = store.replace_results if replacing else store.add_results
        self.labelled = [
            bool(ids) or code in job.keys.details for code, ids in enumerate(self.packer.relevant)
        ]

    def write(self, batch: Sequence[Trace]) -> BatchCounts:
        """Store a batch, and count what is in it."""
        try:
            rows = self.packer.pack_traces(batch, 1).rows
        except Exception:  # one trace cannot be stored; the others of the batch can
            rows = [row for trace in batch for row in self._one(trace).rows]
        self.put(
            self.run_id,
            [
                ResultRow(facts._replace(ordinal=_number(trace)), payload)
                for trace, (facts, payload, _) in zip(batch, rows, strict=True)
            ],
        )
        is_hit = [
            facts.hit_rank is not None
            for facts, _, code in rows
            if code is not None and self.labelled[code]
        ]
        errors = sum(facts.outcome == "errored" for facts, _, _ in rows)
        return BatchCounts(len(rows), errors, sum(is_hit), len(is_hit))

    def _one(self, trace: Trace) -> SerialisedRows:
        try:
            return self.packer.pack_traces([trace], 1)
        except Exception as error:
            reason = f"the answer cannot be stored: {type(error).__name__}: {error}"
            reason = reason.encode(errors="backslashreplace").decode()
            nothing: dict[str, Any] = {"hits": (), "answer": None, "lambda_state": None}
            failed = replace(trace, **nothing, index={}, extra={}, error=reason)
            return self.packer.pack_traces([failed], 1)


def _number(trace: Trace) -> int:
    return (trace.line or 1) - 1


def finish_run(
    store: Store,
    run: RunRecord,
    job: Job,
    items: Sequence[GoldItem],
    bands: Mapping[str, Bands] | None = None,
    *,
    ignore_fields: Collection[str] = (),
) -> Scores:
    """Score a run from all its results, whenever they came, and mark it complete.

    Where `bands` has those of its embedder, the zones of its ΔS are counted too. Fields of answers
    that nothing reads are noted, but for `ignore_fields`.
    """
    # Traces are read one by one and not held: a run may be longer than memory.
    gatherer = FactsCollector(expected_ids(items), job.chunks, negatives=negative_ids(items))
    gatherer.add_chunks()
    gathered = gatherer.take()
    packer = RowSerialiser(job)
    ordinals, questions = array("q"), array("q")
    fields = FieldCounter("trace", ignore_fields)
    for count, (ordinal, payload) in enumerate(store.payloads(run.run_id), 1):
        ordinals.append(ordinal)
        questions.append(_NO_QUESTION)
        with suppress(*UNREADABLE):  # it is counted where the run is scored
            trace = trace_of(thaw(payload))
            packer.gatherer.add(trace)
            fields.add(trace.extra)
            code = packer.reducer.find(trace.qid, trace.question, trace.turn)
            questions[-1] = _NO_QUESTION if code is None else code
        if count % _AT_ONCE == 0:
            gathered.merge(packer.gatherer.take())
    gathered.merge(packer.gatherer.take())
    scores = recompute_scores(store, replace(run, results=len(ordinals)))
    scores = replace(scores, semantic=semantic_of(scores, bands or {}, None) or scores.semantic)
    scores = replace(scores, warnings=(*unread_notes([fields.use()]), *scores.warnings))
    measured = value_texts(scores)
    for start in range(0, len(ordinals), _AT_ONCE):
        pairs = zip(
            ordinals[start : start + _AT_ONCE], questions[start : start + _AT_ONCE], strict=True
        )
        store.set_values(
            run.run_id,
            [
                (ordinal, None if question == _NO_QUESTION else measured(question))
                for ordinal, question in pairs
            ],
        )
    add_scores(store, run, scores, len(ordinals), gathered)
    return without_metrics(scores, RANKS, values=True)
