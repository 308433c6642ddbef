"""Columns: what metrics need to know of the gold items, and sparse tables over records."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Column = NDArray[np.int32]


def starts_of(counts: NDArray[np.int32] | Ints) -> Ints:
    """Where each segment begins when segments of these lengths follow each other."""
    ends = np.cumsum(counts, dtype=np.int64)
    return np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if len(ends) else ends


def spread(starts: Ints, counts: NDArray[np.int32] | Ints) -> Ints:
    """The places of all entries of some segments, one segment behind the other."""
    counts = counts.astype(np.int64)
    total = int(counts.sum())
    shift = np.repeat(starts - starts_of(counts), counts)
    return np.arange(total, dtype=np.int64) + shift


def totals(record: Ints, weights: Floats, size: int) -> Floats:
    """The sum of the weights of each record, added in the order given."""
    return np.bincount(record, weights=weights, minlength=size).astype(np.float64, copy=False)


class Sparse(Struct, frozen=True):
    """A table of (record, key, value), for what only some records have."""

    record: Ints
    key: Ints
    value: Floats

    def take(self, records: Bools) -> Sparse:
        """The entries of some records, which are numbered anew."""
        number = np.cumsum(records, dtype=np.int64) - 1
        entries = records[self.record]
        return Sparse(number[self.record[entries]], self.key[entries], self.value[entries])

    def count(self, size: int, below: int) -> Ints:
        """How many entries each record has with a key below a bound."""
        return np.bincount(self.record[self.key < below], minlength=size)

    def total(self, size: int, below: int) -> Floats:
        """The sum of each record's values with a key below a bound."""
        entries = self.key < below
        return totals(self.record[entries], self.value[entries], size)


MOST_GAINS = 16
NO_ENTRIES = Sparse(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float64))


class GoldColumns(Struct, frozen=True, kw_only=True, dict=True):
    """What metrics need to know of the gold items, one entry an item.

    `answerable` and `unanswerable` are populations. `creditable`: an answer can be right;
    `refusable`: any answer is wrong. For labelled items the two pairs agree; profiles decide what
    an unlabelled item is.

    Pieces of evidence stand item behind item: first those known by id (`id_count`), then those with
    a place. `piece_relevant` and `piece_gain` go with them; the members of groups are given as
    places among the pieces of their item.
    """

    answerable: Bools
    unanswerable: Bools
    creditable: Bools
    refusable: Bools
    relevant_count: Column
    piece_count: Column
    id_count: Column
    piece_relevant: Bools
    piece_gain: Floats
    has_claims: Bools
    has_constraints: Bools
    vacuous: Bools
    group_count: Column
    member_count: Column
    member_group: Column
    member_piece: Column
    doc_count: Column
    has_section: Bools
    has_negatives: Bools
    has_strings: Bools
    has_references: Bools
    has_judgements: Bools
    nonrelevant_count: Column
    span_bytes: Ints

    def first(self, count: int) -> GoldColumns:
        """The same of the first items; what stands behind their pieces is never asked for."""
        whole = ("piece_relevant", "piece_gain", "member_group", "member_piece")
        return GoldColumns(
            **{
                name: getattr(self, name) if name in whole else getattr(self, name)[:count]
                for name in self.__struct_fields__
            }
        )

    @cached_property
    def all_relevant(self) -> bool:
        """Whether every piece counts as relevant."""
        return bool(self.piece_relevant.all())

    @cached_property
    def has_places(self) -> Bools:
        """Whether an item has evidence with a place."""
        return self.piece_count > self.id_count

    @cached_property
    def piece_start(self) -> Ints:
        """Where the pieces of each item begin."""
        return starts_of(self.piece_count)

    @cached_property
    def member_start(self) -> Ints:
        """Where the group members of each item begin."""
        return starts_of(self.member_count)

    @cached_property
    def _gain_counts(self) -> list[tuple[float, Ints]] | None:
        """For each gain, from the highest: how many pieces of each item have it.

        None where there are too many different gains to go through them one by one.
        """
        item = np.repeat(np.arange(len(self.piece_count), dtype=np.int64), self.piece_count)
        gains = np.unique(self.piece_gain[self.piece_gain > 0])
        if len(gains) > MOST_GAINS:
            return None
        return [
            (gain, np.bincount(item[self.piece_gain == gain], minlength=len(self.piece_count)))
            for gain in gains[::-1].tolist()
        ]

    @cached_property
    def _best_gains(self) -> tuple[Ints, Ints, Floats]:
        """Item, place in the ideal order, and gain of every piece that has a gain."""
        item = np.repeat(np.arange(len(self.piece_count), dtype=np.int64), self.piece_count)
        gains = self.piece_gain > 0
        item, gain = item[gains], self.piece_gain[gains]
        order = np.lexsort((-gain, item))
        item, gain = item[order], gain[order]
        counts = np.bincount(item, minlength=len(self.piece_count))
        return item, np.arange(len(item)) - starts_of(counts)[item], gain

    def ideal(self, k: int) -> Floats:
        """The discounted gain of the best list of k: the highest gains first."""
        if self._gain_counts is None:
            item, place, gain = self._best_gains
            near = place < k
            worth = gain[near] / np.log2(place[near] + 2.0)
            return totals(item[near], worth, len(self.piece_count))
        most = int(min(k, self.piece_count.max(initial=0)))
        discounts = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(most) + 2.0))])
        best = np.zeros(len(self.piece_count))
        filled = np.zeros(len(self.piece_count), np.int64)
        for worth_each, counts in self._gain_counts:
            upto = np.minimum(filled + counts, most)
            best += worth_each * (discounts[upto] - discounts[np.minimum(filled, most)])
            filled += counts
        return best
