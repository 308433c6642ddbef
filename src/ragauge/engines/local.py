"""The engine that reduces every range in this process."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence, Set

from ragauge.jobs import Job, Partial
from ragauge.rows import RangeReducer
from ragauge.source import Range


class Local:
    """Reduces ranges one after another."""

    def __init__(self) -> None:
        self.reducer: RangeReducer | None = None
        self.ranges: Sequence[Range] = ()

    def run(self, job: Job, ranges: Sequence[Range]) -> Iterator[Partial]:
        """Yield the partial of each range, from the last range to the first."""
        self.reducer, self.ranges = RangeReducer(job), ranges
        for part in reversed(ranges):
            collecting = gc.isenabled()
            gc.disable()
            try:
                partial = self.reducer.reduce(part)
            finally:
                if collecting:
                    gc.enable()
            yield partial

    def retrieved(self, wanted: Set[str]) -> set[str]:
        """Which of some ids are among the hits of any row, once all ranges are reduced."""
        found: set[str] = set()
        for part in self.ranges:
            if self.reducer is not None:
                found |= self.reducer.scan(part, wanted)
        return found
