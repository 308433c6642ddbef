"""The engine that reduces every range in this process."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence

from ragauge.rows import Job, Partial, RangeReducer
from ragauge.source import Range


def run(job: Job, ranges: Sequence[Range]) -> Iterator[Partial]:
    """Yield the partial of each range, from the last range to the first."""
    reducer = RangeReducer(job)
    for part in reversed(ranges):
        collecting = gc.isenabled()
        gc.disable()
        try:
            partial = reducer.reduce(part)
        finally:
            if collecting:
                gc.enable()
        yield partial
