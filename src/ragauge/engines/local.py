"""The engine that reduces every range in this process."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence

from ragauge.rows import Job, Partial, RangeReducer
from ragauge.source import Range


class Local:
    """Reduces ranges one after another."""

    def __init__(self) -> None:
        self.reducer: RangeReducer | None = None

    def run(self, job: Job, ranges: Sequence[Range]) -> Iterator[Partial]:
        """Yield the partial of each range, from the last range to the first."""
        self.reducer = RangeReducer(job)
        for part in reversed(ranges):
            collecting = gc.isenabled()
            gc.disable()
            try:
                partial = self.reducer.reduce(part)
            finally:
                if collecting:
                    gc.enable()
            yield partial

    def known(self, wanted: Sequence[str]) -> set[str] | None:
        """Which of some ids were retrieved by any row; None if that was not remembered."""
        found = self.reducer.known(wanted) if self.reducer is not None else None
        return None if found is None else set(found)
