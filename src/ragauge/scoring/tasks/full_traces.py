"""Rows in full: the traces of a range with all that they say, by whichever path reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ragauge.files.ranges import Range, read_rows
from ragauge.model.trace import Trace
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.reduce import RangeReducer


class FullReader:
    """Reads the traces of ranges that were reduced before; the lines that begin them are known."""

    def __init__(self, job: Job, reducer: RangeReducer | None = None) -> None:
        self.job = job
        self.reducer = reducer or RangeReducer(job)

    def traces(self, part: Range) -> Iterator[Trace]:
        """The traces of a range; lines that cannot be read are excluded."""
        rows = read_rows(self.job.source, part)
        first = part.first_line or 0
        for index, data in enumerate(rows.data):
            if index not in rows.overlong and data.strip():
                trace = self.reducer.read(data, first + rows.line(index))
                if trace is not None:
                    yield trace


def numbered(traces: Iterable[Trace], first: int) -> Iterator[Trace]:
    """Traces that are in memory; those without a line are numbered from `first`."""
    for place, trace in enumerate(traces):
        if trace.line is None:
            yield msgspec.structs.replace(trace, line=first + place)
        else:
            yield trace
