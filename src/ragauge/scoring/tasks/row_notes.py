"""Notes on rows, for a page: where each row is, its question and slot, and what its hits say.

They are taken while rows are reduced, so that nobody has to read a file again to find a trace.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence, Set

from msgspec import Struct

from ragauge.files.ranges import Range, Rows
from ragauge.formats.fast_rows import FastHit
from ragauge.model.chunk import Chunk
from ragauge.model.trace import Hit, SlotKey, Trace
from ragauge.scoring.chunk_facts import CollectedFacts, FactsCollector
from ragauge.scoring.trace_columns import SlotName


class NotedRows(Struct, frozen=True):
    """The rows of a range that belong to a question, from the last to the first.

    The columns are 64-bit integers. `lines` count from the start of the range. Of traces in
    memory, `begins` are their places in the list.
    """

    questions: bytes
    slot_codes: bytes
    begins: bytes
    sizes: bytes
    lines: bytes
    slots: list[SlotKey]
    facts: CollectedFacts


class RowNotes:
    """Takes notes on the rows of one range after another."""

    def __init__(self, wanted: Set[str], chunks: Mapping[str, Chunk]) -> None:
        self.wanted = wanted
        self.chunks = chunks
        self._begin()

    def _begin(self) -> None:
        self.questions, self.slot_codes, self.rows = array("q"), array("q"), array("q")
        self.slots: dict[SlotName, int] = {}
        self.hits: list[list[str | FastHit | Hit]] = []
        self.contents: set[tuple[object, str]] = set()

    def note(self, question: int, slot: SlotName, row: int) -> None:
        """Note a row by its place in the range; a range is walked from its last row."""
        self.questions.append(question)
        self.slot_codes.append(self.slots.setdefault(slot, len(self.slots)))
        self.rows.append(row)

    def note_hits(self, hits: Iterable[str | FastHit | Hit]) -> None:
        """Note what the hits of a row say, also of one that belongs to no question."""
        useful_hits = [hit for hit in hits if self._is_useful(hit)]
        if useful_hits:
            self.hits.append(useful_hits)

    def _is_useful(self, hit: str | FastHit | Hit) -> bool:
        """Whether gold names a hit, or it has a hash of a document that is new."""
        if isinstance(hit, str):
            return hit in self.wanted
        if hit.doc_hash is not None:
            # A row of the fast path that is not made a trace has neither documents nor paths.
            doc, path = (None, None) if isinstance(hit, FastHit) else (hit.doc, hit.path)
            content = (doc or (hit.id, path), hit.doc_hash)
            if content not in self.contents:
                self.contents.add(content)
                return True
        return hit.id in self.wanted

    def take(self, part: Range, rows: Rows) -> NotedRows:
        """The notes on the rows of a range."""
        begins, data = rows.begins(), rows.data
        return self._take(
            [part.start + begins[row] for row in self.rows],
            [len(data[row]) for row in self.rows],
            [rows.line(row) for row in self.rows],
        )

    def take_traces(self, traces: Sequence[Trace]) -> NotedRows:
        """The notes on traces in memory; those without a line are numbered from 1."""
        lines = [traces[row].line for row in self.rows]
        numbered = [
            row + 1 if line is None else line for row, line in zip(self.rows, lines, strict=True)
        ]
        return self._take(self.rows, [0] * len(lines), numbered)

    def _take(self, begins: Sequence[int], sizes: Sequence[int], lines: Sequence[int]) -> NotedRows:
        # In file order: of two hits on a chunk the first one wins.
        hits = [_hit(hit) for useful_hits in reversed(self.hits) for hit in useful_hits]
        collector = FactsCollector(self.wanted, self.chunks, comparable=False)
        collector.add(Trace(hits=tuple(hits)))
        noted = NotedRows(
            self.questions.tobytes(),
            self.slot_codes.tobytes(),
            array("q", begins).tobytes(),
            array("q", sizes).tobytes(),
            array("q", lines).tobytes(),
            [slot if isinstance(slot, tuple) else (None, slot, None) for slot in self.slots],
            collector.take(),
        )
        self._begin()
        return noted


def _hit(hit: str | FastHit | Hit) -> Hit:
    if isinstance(hit, str):
        return Hit(hit)
    return hit.text_hit() if isinstance(hit, FastHit) else hit
