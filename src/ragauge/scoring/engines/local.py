"""The engine that reduces every range in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set

from ragauge.concurrency import uncollected
from ragauge.files.ranges import Range
from ragauge.scoring.tasks.job import Job, Partial
from ragauge.scoring.tasks.lines import Laid, LineMaker
from ragauge.scoring.tasks.pack import Packed, RangePacker
from ragauge.scoring.tasks.reduce import RangeReducer
from ragauge.scoring.tasks.unpack import Unpacked, Unpacking, unpack_elsewhere


class Local:
    """Reduces ranges one after another."""

    def __init__(self) -> None:
        self.reducer: RangeReducer | None = None
        self.ranges: Sequence[Range] = ()

    def run(self, job: Job, ranges: Sequence[Range]) -> Iterator[Partial]:
        """Yield the partial of each range, from the last range to the first."""
        self.reducer, self.ranges = RangeReducer(job), ranges
        for part in reversed(ranges):
            with uncollected():
                partial = self.reducer.reduce(part)
            yield partial

    def unpack(self, task: Unpacking) -> Callable[[], Unpacked]:
        """Unpack a stored run; it is done when this returns."""
        done = unpack_elsewhere(task)
        return lambda: done

    def pack(self, job: Job, ranges: Sequence[Range]) -> Iterator[Packed]:
        """Yield each range packed, from the first to the last, once all ranges are reduced."""
        packer = RangePacker(job)
        for part in ranges:
            with uncollected():
                packed = packer.pack(part)
            yield packed

    def lay(self, job: Job, ranges: Sequence[Range]) -> Iterator[Laid]:
        """Yield the lines of each range, from the first to the last, once all are reduced."""
        maker = LineMaker(job, reducer=self.reducer)
        for part in ranges:
            with uncollected():
                laid = maker.lay(part)
            yield laid

    def retrieved(self, wanted: Set[str]) -> set[str]:
        """Which of some ids are among the hits of any row, once all ranges are reduced."""
        found: set[str] = set()
        for part in self.ranges:
            if self.reducer is not None:
                found |= self.reducer.scan(part, wanted)
        return found
