"""The task of a store: ranges as serialised rows, with what their hits say of chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from ragauge.files.ranges import Range, read_rows
from ragauge.model.payloads import freeze_trace
from ragauge.model.run import ResultFacts, ResultRow
from ragauge.model.trace import Hit, Trace
from ragauge.scoring.chunk_facts import CollectedFacts, FactsCollector, unwanted_ids, wanted_ids
from ragauge.scoring.evidence_places import found_at
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.reduce import RangeReducer
from ragauge.scoring.tasks.task import Work, Worker

SerialisedRow = tuple[ResultFacts, bytes, int | None]
"""Facts and payload of a row, and the place of its question in the gold table."""


class SerialisedRows(Struct, frozen=True):
    """The rows of a range, numbered by their lines, and what their hits say of chunks."""

    rows: list[SerialisedRow]
    gathered: CollectedFacts

    def result_rows(self, first: int, measured: Callable[[int], str]) -> list[ResultRow]:
        """The rows to store, numbered from `first`, each with what was measured of its question."""
        return [
            ResultRow(
                facts._replace(ordinal=first + place),
                payload,
                None if question is None else measured(question),
            )
            for place, (facts, payload, question) in enumerate(self.rows)
        ]

    def renumbered(self, order: Sequence[int]) -> SerialisedRows:
        """The same rows, where question `i` is question `order[i]`."""
        rows = [
            (facts, payload, None if question is None else order[question])
            for facts, payload, question in self.rows
        ]
        return replace(self, rows=rows)


class RowSerialiser:
    """Serialises ranges of a trace file, or traces that are in memory."""

    def __init__(self, job: Job, *, reducer: RangeReducer | None = None) -> None:
        self.job = job
        self.reducer = reducer or RangeReducer(job)
        self.detail = self.reducer.reducer.detail
        self.relevant = [
            frozenset(job.keys.counted.get(question, ids))
            for question, ids in enumerate(job.keys.evidence)
        ]
        keys = job.keys
        self.gatherer = FactsCollector(wanted_ids(keys), job.chunks, negatives=unwanted_ids(keys))

    def pack(self, part: Range) -> SerialisedRows:
        """Serialise one range, whose first line is known; bad lines are skipped."""
        rows = read_rows(self.job.source, part)
        first = part.first_line or 0
        traces = (
            self.reducer.read(data, first + rows.line(index))
            for index, data in enumerate(rows.data)
            if index not in rows.overlong and data.strip()
        )
        return self._packed(trace for trace in traces if trace is not None)

    def pack_traces(self, traces: Iterable[Trace], first: int) -> SerialisedRows:
        """Serialise traces in memory; those without a line are numbered from `first`."""
        return self._packed(
            replace(trace, line=first + place) if trace.line is None else trace
            for place, trace in enumerate(map(self.reducer.placed, traces))
        )

    def _packed(self, traces: Iterable[Trace]) -> SerialisedRows:
        return SerialisedRows([self._row(trace) for trace in traces], self.gatherer.take())

    def _row(self, trace: Trace) -> SerialisedRow:
        code = self.reducer.find(trace.qid, trace.question, trace.turn)
        paraphrase = trace.paraphrase
        outcome, rank = "unknown", None
        if code is not None:
            paraphrase = self.reducer.paraphrase(code, paraphrase, trace.question)
            outcome = "ok" if trace.error is None else "errored"
            if trace.error is None:
                rank = self._first_rank(code, trace.hits)
        timing, answer = trace.timing, trace.answer
        facts = ResultFacts(
            ordinal=0,
            query_id=trace.qid or (self._qid(code) if code is not None else "") or "",
            paraphrase=paraphrase,
            seed=None if trace.seed is None else str(trace.seed),
            turn=trace.turn,
            hit_rank=None if rank is None else rank + 1,
            carries=self.gatherer.add(trace),
            outcome=outcome,
            delta_s=None if answer is None else answer.delta_s,
            latency_ms=None if timing is None else timing.total,
        )
        return facts, freeze_trace(trace), code

    def _qid(self, code: int) -> str:
        return self.job.qids[code] if self.job.qids else ""

    def _first_rank(self, code: int, hits: Sequence[Hit]) -> int | None:
        """The rank of the first evidence, or of the first expected document where there is none."""
        wanted: Set[str] = self.relevant[code]
        best = next((rank for rank, hit in enumerate(hits) if hit.id in wanted), None)
        details = self.job.keys.details.get(code)
        if details is None:
            return best
        ranked = [(rank, self.detail.place_of_hit(hit, details)) for rank, hit in enumerate(hits)]
        first: dict[str, int] = {}
        for rank, hit in enumerate(hits):
            first.setdefault(hit.id, rank)
        ranks = [best] if best is not None else []
        for anchor, counts in zip(details.anchors, details.counted, strict=True):
            rank_ = found_at(anchor, ranked, first) if counts else None
            ranks += [] if rank_ is None else [rank_]
        if not wanted and not details.anchors:
            ranks += [
                rank for rank, place in ranked if any(doc in place.stated for doc in details.docs)
            ]
        return min(ranks, default=None)


class SerialiseRows(Work[SerialisedRows], frozen=True):
    """The traces of ranges as rows for a store. The first line of each range must be known.

    `qids` are the ids of the questions, for traces that name theirs in words only.
    """

    result = SerialisedRows
    qids: tuple[str, ...]

    def begin(self, worker: Worker) -> Callable[[Range], SerialisedRows]:
        """Read with the reducer that is there."""
        job = replace(worker.job, qids=self.qids)
        return RowSerialiser(job, reducer=worker.reducer()).pack
