"""The task of a temporary run: ranges as lines of JSON, with the question and slot of each trace.

A temporary run is for a page that is made once. A store holds more, and compresses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from ragauge.files.ranges import Range
from ragauge.model.payloads import trace_json
from ragauge.model.trace import Hit, SlotKey, Trace
from ragauge.scoring.chunk_facts import CollectedFacts, FactsCollector, wanted_ids
from ragauge.scoring.tasks.full_traces import FullReader, numbered
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.reduce import RangeReducer
from ragauge.scoring.tasks.task import Work, Worker

_MOST_CONTENTS = 1 << 18
"""Hashes of documents that are remembered, so that memory has a bound; then some are sent twice."""


class TraceLines(Struct, frozen=True):
    """Traces as lines of JSON, each with its length; `questions` has None for unknown ones.

    `gathered` is what their hits say of the ids that the gold set names, and of the content of
    documents.
    """

    lines: bytes
    sizes: list[int]
    questions: list[int | None]
    slots: list[SlotKey]
    gathered: CollectedFacts


class LineSerialiser:
    """Makes lines of the ranges of a trace file, or of traces that are in memory."""

    def __init__(self, job: Job, *, reducer: RangeReducer | None = None) -> None:
        self.reader = FullReader(job, reducer)
        self.reducer = self.reader.reducer
        self.gatherer = FactsCollector(wanted_ids(job.keys), job.chunks, comparable=False)
        self.contents: set[tuple[object, str]] = set()

    def lines(self, part: Range) -> TraceLines:
        """The lines of one range, whose first line is known; bad lines are skipped."""
        return self._lines(self.reader.traces(part))

    def lines_of(self, traces: Iterable[Trace], first: int) -> TraceLines:
        """The lines of traces in memory; those without a line are numbered from `first`."""
        return self._lines(numbered(traces, first))

    def _lines(self, traces: Iterable[Trace]) -> TraceLines:
        find, paraphrase = self.reducer.find, self.reducer.paraphrase
        lines: list[bytes] = []
        questions: list[int | None] = []
        slots: list[SlotKey] = []
        for trace in traces:
            question, number = find(trace.qid, trace.question, trace.turn), trace.paraphrase
            if question is not None:
                number = paraphrase(question, number, trace.question)
            lines.append(trace_json(trace))
            questions.append(question)
            slots.append((number, trace.seed, trace.turn))
            useful_hits = self._useful_hits(trace.hits)
            if useful_hits:
                self.gatherer.add(replace(trace, hits=useful_hits))
        sizes = [len(line) + 1 for line in lines]
        return TraceLines(b"\n".join([*lines, b""]), sizes, questions, slots, self.gatherer.take())

    def _useful_hits(self, hits: Iterable[Hit]) -> tuple[Hit, ...]:
        """The hits that gold names, and those with a hash of a document that is new."""
        wanted, contents = self.gatherer.wanted, self.contents
        if len(contents) > _MOST_CONTENTS:
            contents.clear()
        useful = []
        for hit in hits:
            if hit.doc_hash is not None:
                content = (hit.doc or (hit.id, hit.path), hit.doc_hash)
                if content not in contents:
                    contents.add(content)
                    useful.append(hit)
                    continue
            if hit.id in wanted:
                useful.append(hit)
        return tuple(useful)


class ListLines(Work[TraceLines], frozen=True):
    """The traces of ranges as lines. The first line of each range must be known."""

    result = TraceLines

    def begin(self, worker: Worker) -> Callable[[Range], TraceLines]:
        """Read with the reducer that is there."""
        return LineSerialiser(worker.job, reducer=worker.reducer()).lines
