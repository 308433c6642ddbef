"""A second look at some rows of the trace file, for what one row alone cannot tell.

Which slots agree, whether a citation was retrieved in an earlier turn, whether anybody retrieved it
at all: these need the texts and ids of several rows. The first pass keeps only where they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from ragauge.files.ranges import Range, Rows, read_rows
from ragauge.model.payloads import trace_of
from ragauge.model.trace import Citation, Hit, SlotKey, Trace
from ragauge.scoring.evidence_places import Place
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.reduce import RangeReducer
from ragauge.scoring.trace_details import Detailer

Key = tuple[int, SlotKey]
"""A question and a slot of it."""

Wanted = Mapping[int, Mapping[int, Set[Key]]]
"""The slots wanted, by range and by line in the range."""

Pages = Callable[[int], Iterable[tuple[int, Trace | bytes]]]
"""For the index of a range its rows from the last to the first, each with its line."""


class Seen(NamedTuple):
    """What a second look needs of a row."""

    said: str | None
    citations: Sequence[str]
    ids: Sequence[str]
    hits: Sequence[Hit] = ()
    cited: Sequence[Citation] = ()
    errored: bool = False

    def places(self, detail: Detailer) -> list[Place]:
        """Where the hits lie, as far as it is known."""
        if not self.hits:
            return [detail.place_of_hit(Hit(each)) for each in self.ids]
        return [detail.place_of_hit(hit) for hit in self.hits]


class Looker:
    """Reads rows again; where a slot stands several times on a line, the last one is it."""

    def __init__(self, job: Job, pages: Pages) -> None:
        self.reducer = RangeReducer(job)
        self.detail = self.reducer.reducer.detail
        self.pages = pages

    def visit(self, wanted: Wanted, take: Callable[[Key, Seen], None]) -> None:
        """Hand over what the slots wanted say, one by one."""
        found: set[Key] = set()
        for index in wanted:
            lines = wanted[index]
            for line, row in self.pages(index):
                if line not in lines:
                    continue
                key, seen = self._look(row)
                if key is None or seen is None or key not in lines[line] or key in found:
                    continue
                found.add(key)
                take(key, seen)

    def _look(self, row: Trace | bytes) -> tuple[Key | None, Seen | None]:
        """The slot that a row fills, and what it says."""
        if not isinstance(row, Trace):
            fast = None if self.reducer.exact_only else self.reducer.try_decode(row)
            usual = None if fast is None else self.reducer.usual(fast)
            if fast is not None and usual is not None:
                key = self._key(fast.qid, usual.question, fast.paraphrase, fast.seed, fast.turn)
                return key, Seen(usual.said, usual.citations or (), usual.hits)
        trace = self._trace(row)
        if trace is None:
            return None, None
        key = self._key(trace.qid, trace.question, trace.paraphrase, trace.seed, trace.turn)
        given = trace.answer
        return key, Seen(
            given.said if given is not None else None,
            given.citations or () if given is not None else (),
            [hit.id for hit in trace.hits],
            trace.hits,
            given.cited if given is not None else (),
            errored=trace.error is not None,
        )

    def _trace(self, row: Trace | bytes) -> Trace | None:
        return row if isinstance(row, Trace) else self.reducer.read(row)

    def _key(
        self, qid: str | None, question: str | None, paraphrase: int | None,
        seed: int | str | None, turn: int | None,
    ) -> Key | None:  # fmt: skip
        code = self.reducer.find(qid, question, turn)
        if code is None:
            return None
        return code, (self.reducer.paraphrase(code, paraphrase, question), seed, turn)


def pages_of_file(job: Job, ranges: Sequence[Range]) -> Pages:
    """The rows of a trace file; stored traces know the line that they came from."""
    by_index = {part.index: part for part in ranges}

    def pages(index: int) -> Iterator[tuple[int, Trace | bytes]]:
        rows: Rows = read_rows(job.source, by_index[index])
        for place in reversed(range(len(rows.data))):
            if job.stored:
                trace = trace_of(rows.data[place])
                yield trace.line or 0, trace
            elif place not in rows.overlong and rows.data[place].strip():
                yield rows.line(place), rows.data[place]

    return pages


def pages_of_traces(traces: Sequence[Trace]) -> Pages:
    """Traces that are in memory, as one range."""

    def pages(_: int) -> Iterator[tuple[int, Trace]]:
        for place in reversed(range(len(traces))):
            line = traces[place].line
            yield place + 1 if line is None else line, traces[place]

    return pages
