"""Sections by place: which section of a document holds most of some bytes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from ragauge.model.chunk import Chunk
from ragauge.spans import Span

_MAX_CACHED = 1 << 16


class _Stretch(NamedTuple):
    start: int
    end: int
    section: str


class SectionIndex:
    """Finds sections by the chunks that name theirs: blocks of a corpus, or a list of chunks."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        stretches: dict[str, set[_Stretch]] = {}
        for chunk in chunks:
            if chunk.section is not None:
                stretches.setdefault(chunk.doc, set()).update(
                    _Stretch(span.start, span.end, chunk.section)
                    for span in chunk.spans
                    if span.unit == "byte" and span.length
                )
        self._stretches = {doc: sorted(listed) for doc, listed in stretches.items()}
        # The farthest end of a stretch and all before it: chunks of a list may overlap.
        self._ends = {
            doc: list(accumulate((one.end for one in listed), max))
            for doc, listed in self._stretches.items()
        }
        self._cache: dict[tuple[str, tuple[Span, ...]], str | None] = {}

    def section_at(self, docs: Sequence[str], spans: Sequence[Span]) -> str | None:
        """The section that has most of the bytes; of equal ones the one that begins first."""
        doc = next((name for name in docs if name in self._stretches), None)
        if doc is None:
            return None
        key = (doc, tuple(spans))
        if key not in self._cache:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            self._cache[key] = self._largest(doc, spans)
        return self._cache[key]

    def _largest(self, doc: str, spans: Sequence[Span]) -> str | None:
        stretches, ends = self._stretches[doc], self._ends[doc]
        shared: dict[str, int] = {}
        for span in spans:
            if span.unit != "byte":
                continue
            last = bisect_left(stretches, (span.end,))
            first = bisect_left(ends, span.start + 1, 0, last)
            for stretch in stretches[first:last]:
                common = min(span.end, stretch.end) - max(span.start, stretch.start)
                if common > 0:
                    shared[stretch.section] = shared.get(stretch.section, 0) + common
        return max(shared, key=lambda section: shared[section]) if shared else None
