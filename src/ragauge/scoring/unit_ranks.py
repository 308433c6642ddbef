"""The ranks of expected units, collected batch by batch: what questions are compared by."""

from __future__ import annotations

import numpy as np

from ragauge.metrics.batch import NEVER, Batch
from ragauge.metrics.columns import GoldColumns, Ints, spread, starts_of
from ragauge.metrics.populations import COUNTED
from ragauge.model.chunk import Chunks
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.options import Options
from ragauge.model.unit_ranks import UnitRanks
from ragauge.scoring.evidence_pieces import EFFECTIVE_PREFIX, pieces_of

_LONGEST = 60
"""Characters of a quote that name it."""


class UnitCollector:
    """Collects at which rank each slot found each unit.

    Each finding takes eight bytes, so it is done only where runs are to be compared.
    """

    def __init__(self, gold: GoldColumns) -> None:
        grouped, labelled = gold.group_count > 0, gold.relevant_count > 0
        counts = np.where(labelled, gold.relevant_count, gold.doc_count)
        self.counts: Ints = np.where(grouped, gold.group_count, counts).astype(np.int64)
        self.starts = starts_of(self.counts)
        self.slots = np.zeros(len(self.counts), np.int64)
        self.by_pieces = labelled & ~grouped
        self.by_docs = ~labelled & ~grouped
        # The place of a relevant piece among the relevant ones of all items.
        relevant = gold.piece_relevant.astype(np.int64)
        self.number: Ints = np.cumsum(relevant) - relevant
        self.units: list[np.typing.NDArray[np.int32]] = []
        self.ranks: list[np.typing.NDArray[np.int32]] = []

    def add(self, batch: Batch) -> None:
        """Add what the records of a batch found."""
        counted = COUNTED.members(batch)[0]
        np.add.at(self.slots, batch.question[counted], 1)
        for record, number, rank in (_pieces(batch, self), _docs(batch, self), _groups(batch)):
            inside = counted[record]
            units = self.starts[batch.question[record[inside]]] + number[inside]
            self.units.append(units.astype(np.int32))
            self.ranks.append((rank[inside] + 1).astype(np.int32))

    def unit_ranks(self) -> UnitRanks:
        """All of it, in an order that does not depend on how records came."""
        unit, rank = (
            np.concatenate(columns).astype(np.int64) if columns else np.zeros(0, np.int64)
            for columns in (self.units, self.ranks)
        )
        order = np.lexsort((rank, unit))
        return UnitRanks(counts=self.counts, slots=self.slots, unit=unit[order], rank=rank[order])


def _pieces(batch: Batch, collector: UnitCollector) -> tuple[Ints, Ints, Ints]:
    """Record, number in its item and rank of every relevant piece that was found."""
    record, rank, piece = batch.found_pieces
    counted = batch.gold.piece_relevant[piece] & collector.by_pieces[batch.question[record]]
    record, rank, piece = record[counted], rank[counted], piece[counted]
    first = collector.number[batch.gold.piece_start[batch.question[record]]]
    return record, collector.number[piece] - first, rank


def _docs(batch: Batch, collector: UnitCollector) -> tuple[Ints, Ints, Ints]:
    """The same of documents, for items that name no evidence."""
    table = batch.detail("doc_rank")
    counted = collector.by_docs[batch.question[table.record]]
    return table.record[counted], table.key[counted], table.value[counted].astype(np.int64)


def _groups(batch: Batch) -> tuple[Ints, Ints, Ints]:
    """The same of groups; a group has the rank of its first member."""
    gold, question = batch.gold, batch.question
    counts = gold.member_count[question]
    member = spread(gold.member_start[question], counts)
    record = np.repeat(np.arange(batch.size, dtype=np.int64), counts)
    ranks = batch.ranks[starts_of(gold.piece_count[question])[record] + gold.member_piece[member]]
    found = ranks >= 0
    groups = batch.group_count
    owner = np.repeat(np.arange(batch.size, dtype=np.int64), groups)
    best = np.full(len(owner), NEVER, np.int64)
    group = (starts_of(groups)[record] + gold.member_group[member])[found]
    np.minimum.at(best, group, ranks[found].astype(np.int64))
    near = np.flatnonzero(best < NEVER)
    return owner[near], near - starts_of(groups)[owner[near]], best[near]


def unit_names(item: GoldItem, chunks: Chunks, options: Options) -> tuple[str, ...]:
    """What the units of an item are called, in the order of their ranks."""
    pieces = pieces_of(item, chunks, options)
    names = [*map(_piece_name, pieces.ids), *map(_piece_name, pieces.anchors)]
    if pieces.groups:
        return tuple(" | ".join(names[place] for place in group) for group in pieces.groups)
    relevant = [name for name, counts in zip(names, pieces.relevant, strict=True) if counts]
    return tuple(relevant or dict.fromkeys(item.relevant_docs or ()))


def _piece_name(piece: str | Anchor) -> str:
    if isinstance(piece, str):
        return piece.removeprefix(EFFECTIVE_PREFIX)
    if piece.id is not None:
        return piece.id.removeprefix(EFFECTIVE_PREFIX)
    if piece.spans:
        spans = ",".join(f"{span.start}-{span.end}" for span in piece.spans)
        return f"{piece.doc}:{spans}"
    quote = " ".join((piece.quote or "").split())
    quote = quote if len(quote) <= _LONGEST else f"{quote[: _LONGEST - 3]}..."
    return f"{piece.doc}: “{quote}”" if piece.doc else f"“{quote}”"
