"""The ranks of expected units, collected batch by batch: what questions are compared by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragauge.metrics.batch import NEVER, Batch
from ragauge.metrics.columns import GoldColumns, Ints, spread, starts_of
from ragauge.metrics.populations import COUNTED
from ragauge.model.chunk import Chunks
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.labels import GOOD, LABELS
from ragauge.model.options import Options
from ragauge.model.trace import SlotKey
from ragauge.model.unit_ranks import UnitRanks
from ragauge.scoring.evidence_pieces import EFFECTIVE_PREFIX, pieces_of

_LONGEST = 60
"""Characters of a quote that name it."""


class UnitCollector:
    """Collects at which rank each slot found each unit.

    Each finding takes twelve bytes, and each record as many as four, so it is done only where runs
    are to be compared. `codes` are the numbers of slots, all of them once every record is in.
    """

    def __init__(self, gold: GoldColumns, codes: Mapping[SlotKey, int]) -> None:
        self.codes = codes
        grouped, labelled = gold.group_count > 0, gold.relevant_count > 0
        counts = np.where(labelled, gold.relevant_count, gold.doc_count)
        self.counts: Ints = np.where(grouped, gold.group_count, counts).astype(np.int64)
        self.starts = starts_of(self.counts)
        self.by_pieces = labelled & ~grouped
        self.by_docs = ~labelled & ~grouped
        # The place of a relevant piece among the relevant ones of all items.
        relevant = gold.piece_relevant.astype(np.int64)
        self.number: Ints = np.cumsum(relevant) - relevant
        self.size = 0  # records so far
        self.records: list[tuple[Ints, Ints, Ints, Ints]] = []
        self.found: list[tuple[_Small, _Small, _Small]] = []

    def add(self, batch: Batch, slot: Ints, position: Ints, labels: NDArray[np.uint8]) -> None:
        """Add what the records of a batch found."""
        counted = COUNTED.members(batch)[0]
        number = self.size + np.cumsum(counted) - 1  # of those that count, over all batches
        self.size += int(np.count_nonzero(counted))
        self.records.append(
            (
                batch.question[counted].astype(np.int64),
                slot[counted],
                position[counted],
                _GOOD[labels[counted]],
            )
        )
        for record, unit, rank in (_pieces(batch, self), _docs(batch, self), _groups(batch)):
            inside = counted[record]
            units = self.starts[batch.question[record[inside]]] + unit[inside]
            columns = units, rank[inside] + 1, number[record[inside]]
            self.found.append(tuple(column.astype(np.int32) for column in columns))  # type: ignore[arg-type]

    def unit_ranks(self) -> UnitRanks:
        """All of it, in an order that does not depend on how records came."""
        question, code, position, good = _columns(self.records, 4)
        unit, rank, record = _columns(self.found, 3)
        # Slots in the order of their keys: codes are given as slots come.
        keys = sorted(self.codes, key=_slot_order)
        order_of, wording_of = np.zeros((2, len(keys) + 1), np.int64)
        for place, key in enumerate(keys):
            order_of[self.codes[key]] = place
            wording_of[self.codes[key]] = -1 if key[0] is None else key[0]
        order = np.lexsort((position, order_of[code], question))
        slots = np.bincount(question, minlength=len(self.counts)).astype(np.int64)
        slot_of = np.zeros(len(order), np.int64)
        slot_of[order] = np.arange(len(order)) - starts_of(slots)[question[order]]
        by_unit = np.lexsort((slot_of[record], rank, unit))
        return UnitRanks(
            counts=self.counts,
            slots=slots,
            unit=unit[by_unit],
            rank=rank[by_unit],
            slot=slot_of[record][by_unit],
            wording=wording_of[code[order]],
            good=good[order],
        )


_Small = NDArray[np.int32]
_GOOD = np.array([label in GOOD for label in LABELS], np.int64)


def _slot_order(key: SlotKey) -> tuple[bool, int, str, str]:
    paraphrase, seed, turn = key
    return paraphrase is None, paraphrase or 0, repr(seed), repr(turn)


def _columns(parts: Sequence[tuple[NDArray[Any], ...]], count: int) -> list[Ints]:
    if not parts:
        return [np.zeros(0, np.int64) for _ in range(count)]
    return [np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True)]


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
