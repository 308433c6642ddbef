"""Laying aside: the traces of a run as lines to be read again, with the question and slot of each.

It is for those who look at a run once. A store keeps more, and packs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct
from msgspec.structs import replace

from ragauge.files.ranges import Range
from ragauge.model.payloads import trace_json
from ragauge.model.trace import Hit, SlotKey, Trace
from ragauge.scoring.chunk_facts import Gathered, Gatherer, wanted_ids
from ragauge.scoring.tasks.full_traces import FullReader, numbered
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.reduce import RangeReducer
from ragauge.scoring.tasks.task import Work, Worker

_MOST_CONTENTS = 1 << 18


class Laid(Struct, frozen=True):
    """Traces as lines of JSON, each with its length; `questions` has None where none is asked.

    `gathered` is what their hits tell of the ids that the gold set names, and of the content of
    documents; a store knows more.
    """

    lines: bytes
    sizes: list[int]
    questions: list[int | None]
    slots: list[SlotKey]
    gathered: Gathered


class LineMaker:
    """Makes lines of the ranges of a trace file, or of traces that are in memory."""

    def __init__(self, job: Job, *, reducer: RangeReducer | None = None) -> None:
        self.reader = FullReader(job, reducer)
        self.reducer = self.reader.reducer
        self.gatherer = Gatherer(wanted_ids(job.keys), job.chunks, comparable=False)
        self.contents: set[tuple[object, str]] = set()

    def lay(self, part: Range) -> Laid:
        """The lines of one range, whose first line is known; what cannot be read is left out."""
        return self._laid(self.reader.traces(part))

    def lay_traces(self, traces: Iterable[Trace], first: int) -> Laid:
        """The lines of traces in memory; those without a line are numbered from `first`."""
        return self._laid(numbered(traces, first))

    def _laid(self, traces: Iterable[Trace]) -> Laid:
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
            telling = self._telling(trace.hits)
            if telling:
                self.gatherer.add(replace(trace, hits=telling))
        sizes = [len(line) + 1 for line in lines]
        return Laid(b"\n".join([*lines, b""]), sizes, questions, slots, self.gatherer.take())

    def _telling(self, hits: Iterable[Hit]) -> tuple[Hit, ...]:
        """The hits that gold names, and those that first tell a hash of their document."""
        wanted, known = self.gatherer.wanted, self.contents
        if len(known) > _MOST_CONTENTS:
            known.clear()
        found = []
        for hit in hits:
            if hit.doc_hash is not None:
                content = (hit.doc or (hit.id, hit.path), hit.doc_hash)
                if content not in known:
                    known.add(content)
                    found.append(hit)
                    continue
            if hit.id in wanted:
                found.append(hit)
        return tuple(found)


class ListLines(Work[Laid], frozen=True):
    """The traces of ranges as lines. The first line of each range must be known."""

    result = Laid

    def begin(self, worker: Worker) -> Callable[[Range], Laid]:
        """Read with the reducer that is there."""
        return LineMaker(worker.job, reducer=worker.reducer()).lay
