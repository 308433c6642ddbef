"""A second look at some rows of the trace file, for what one row alone cannot tell.

Which slots agree, whether a citation was retrieved in an earlier turn, whether anybody retrieved it
at all: these need the texts and ids of several rows. The first pass keeps only where they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

from ragauge.decoding import decode_row
from ragauge.fields import FieldError
from ragauge.model.trace import SlotKey, Trace
from ragauge.rows import Job, RangeReducer
from ragauge.source import Range, Rows, read_rows

Key = tuple[int, SlotKey]
"""A question and a slot of it."""

Wanted = Mapping[int, Mapping[int, Set[Key]]]
"""The slots wanted, by range and by line in the range."""

Pages = Callable[[int], Iterable[tuple[int, Trace | bytes]]]
"""For the index of a range its rows from the last to the first, each with its line."""


class Looker:
    """Reads rows again; where a slot stands several times on a line, the last one is it."""

    def __init__(self, job: Job, pages: Pages, ranges: Sequence[int]) -> None:
        self.reducer = RangeReducer(job)
        self.pages = pages
        self.ranges = ranges

    def visit(self, wanted: Wanted, take: Callable[[Key, Trace], None]) -> None:
        """Hand over the traces of the slots wanted, one by one."""
        found: set[Key] = set()
        for index in wanted:
            lines = wanted[index]
            for line, row in self.pages(index):
                if line not in lines:
                    continue
                trace = self._trace(row)
                key = self._key(trace) if trace is not None else None
                if trace is None or key not in lines[line] or key in found:
                    continue
                assert key is not None
                found.add(key)
                take(key, trace)

    def retrieved(self, wanted: Set[str]) -> set[str]:
        """Which of some ids are among the hits of any row that is scored."""
        found: set[str] = set()
        seen: set[object] = set()
        keep = self.reducer.job.rules.keep
        for index in self.ranges:
            for _, row in self.pages(index):
                key, hits = self._hits(row)
                if key is None:
                    continue
                if keep != "every":
                    taken: object = key if keep == "slot" else key[0]
                    if taken in seen:
                        continue  # a later trace has replaced this one
                    seen.add(taken)
                found.update(each for each in hits if each in wanted)
        return found

    def _trace(self, row: Trace | bytes) -> Trace | None:
        if isinstance(row, Trace):
            return row
        try:
            return self.reducer.reader.trace(decode_row(row, cut=False, overlong=False))
        except FieldError:
            return None  # a bad line that was skipped

    def _hits(self, row: Trace | bytes) -> tuple[Key | None, Sequence[str]]:
        """The slot that a row fills, and the ids that it retrieved."""
        if not isinstance(row, Trace):
            fast = self.reducer.try_decode(row)
            if fast is not None and fast.chunks is None and fast.question is None:
                code = self.reducer.find(fast.qid, fast.q, fast.turn)
                if code is None:
                    return None, ()
                paraphrase = self.reducer.paraphrase(code, fast.paraphrase, fast.q)
                return (code, (paraphrase, fast.seed, fast.turn)), fast.retrieved_ids or ()
        trace = self._trace(row)
        if trace is None:
            return None, ()
        hits = () if trace.error is not None else [hit.id for hit in trace.hits]
        return self._key(trace), hits

    def _key(self, trace: Trace) -> Key | None:
        code = self.reducer.find(trace.qid, trace.question, trace.turn)
        if code is None:
            return None
        paraphrase = self.reducer.paraphrase(code, trace.paraphrase, trace.question)
        return code, (paraphrase, trace.seed, trace.turn)


def pages_of_file(job: Job, ranges: Sequence[Range]) -> Pages:
    """The rows of a trace file."""
    by_index = {part.index: part for part in ranges}

    def pages(index: int) -> Iterator[tuple[int, bytes]]:
        rows: Rows = read_rows(job.source, by_index[index])
        for place in reversed(range(len(rows.data))):
            if place not in rows.overlong and rows.data[place].strip():
                yield rows.line(place), rows.data[place]

    return pages


def pages_of_traces(traces: Sequence[Trace]) -> Pages:
    """Traces that are in memory, as one range."""

    def pages(_: int) -> Iterator[tuple[int, Trace]]:
        for place in reversed(range(len(traces))):
            line = traces[place].line
            yield place + 1 if line is None else line, traces[place]

    return pages
