"""Rows in full: the traces of a range with all that they say, by whichever path reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ragauge.files.fields import FieldError
from ragauge.files.ranges import Range, read_rows
from ragauge.formats.fast_rows import StrictRow
from ragauge.formats.json_rows import decode_row
from ragauge.formats.placedrows import placed_trace
from ragauge.model.trace import Answer, Hit, Trace
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.reduce import RangeReducer

_decode_strict = msgspec.json.Decoder(StrictRow).decode


class FullReader:
    """Reads the traces of ranges that were reduced before; the lines that begin them are known."""

    def __init__(self, job: Job, reducer: RangeReducer | None = None) -> None:
        self.job = job
        self.reducer = reducer or RangeReducer(job)
        self._strict = job.rules.by != "question" and not self.reducer.strip_citations

    def traces(self, part: Range) -> Iterator[Trace]:
        """The traces of a range; lines that cannot be read are left out."""
        rows = read_rows(self.job.source, part)
        first = part.first_line or 0
        for index, data in enumerate(rows.data):
            if index not in rows.overlong and data.strip():
                trace = self._trace(data, first + rows.line(index))
                if trace is not None:
                    yield trace

    def _trace(self, data: bytes, line: int) -> Trace | None:
        if self.job.stored:
            return self.reducer.read(data)
        if self._strict:
            try:
                return _plain(_decode_strict(data), line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                pass
            placed = placed_trace(data, line)
            if placed is not None:
                return placed
        try:
            return self.reducer.reader.trace(decode_row(data, cut=False, overlong=False), line)
        except FieldError:
            return None  # a bad line that was skipped, and is counted with the scores


def numbered(traces: Iterable[Trace], first: int) -> Iterator[Trace]:
    """Traces that are in memory; those without a line are numbered from `first`."""
    for place, trace in enumerate(traces):
        if trace.line is None:
            yield msgspec.structs.replace(trace, line=first + place)
        else:
            yield trace


def _plain(row: StrictRow, line: int) -> Trace:
    answer = row.answer_json
    given = None
    if answer is not None and not (answer.claim is None and answer.citations is None):
        given = Answer(
            claim=answer.claim,
            citations=None if answer.citations is None else tuple(answer.citations),
        )
    return Trace(
        qid=row.qid or None,
        question=row.q,
        seed=row.seed,
        hits=tuple(map(Hit, row.retrieved_ids or ())),
        answer=given,
        line=line,
    )
