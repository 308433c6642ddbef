"""Batches: many records as columns, with the views that metrics are written in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from msgspec import Struct

from ragauge.metrics.columns import (
    NO_ENTRIES,
    Bools,
    Column,
    Floats,
    GoldColumns,
    Ints,
    Sparse,
    spread,
    starts_of,
    totals,
)
from ragauge.metrics.facts import Fact

NEVER = np.iinfo(np.int32).max
"""The rank of what was not retrieved."""


def _by_record(record: Ints, rank: Ints) -> Ints:
    """One number for a record and a rank, in the order of records and then of ranks."""
    return (record << 32) + rank


def _fact(fact: Fact) -> cached_property[Bools]:
    return cached_property(lambda batch: batch.has(fact))


def _of_item(name: str) -> cached_property[Bools]:
    return cached_property(lambda batch: getattr(batch.gold, name)[batch.question])


def _count_of_item(name: str) -> cached_property[Column]:
    return cached_property(lambda batch: getattr(batch.gold, name)[batch.question])


class Batch(Struct, frozen=True, kw_only=True, dict=True):
    """Records as columns; a property or method gives one value for each record.

    `ranks` has one entry for each piece of evidence of each record: its 0-based rank, or -1.

    `traceless` and `with_error` say what became of the trace; under a profile that follows its
    source such records are answers all the same, and are neither `missing` nor `errored`.

    `absent_counts` says whether records without a trace or with an error count in retrieval
    metrics, as records without hits; `no_evidence_counts` whether an answerable item without
    evidence counts as recalled; `nothing_satisfies` whether an answer of which nothing is to be
    checked, strings or citations, is satisfied; `errored_is_empty` whether a trace with an error is
    one that found nothing; `shows_missing` whether an item without a trace has a record at all,
    which it has not where only rows of the trace file are scored.
    """

    gold: GoldColumns
    question: Ints
    facts: Column
    hit_count: Column
    cited_count: Column
    plain_cited_relevant: Column
    ranks: Column
    details: Mapping[str, Sparse]
    traceless: Bools
    with_error: Bools
    absent_counts: bool = True
    no_evidence_counts: bool = False
    nothing_satisfies: bool = False
    errored_is_empty: bool = False
    shows_missing: bool = True

    # Of the gold item of each record.
    answerable = _of_item("answerable")  # in the answerable population
    unanswerable = _of_item("unanswerable")  # in the unanswerable population
    creditable = _of_item("creditable")  # an answer can be right
    refusable = _of_item("refusable")  # any answer is wrong
    has_section = _of_item("has_section")  # it names the section that holds the answer
    has_negatives = _of_item("has_negatives")  # it names hard negatives
    has_strings = _of_item("has_strings")  # it names strings that must, or must not, be there
    has_claims = _of_item("has_claims")
    has_constraints = _of_item("has_constraints")  # locked ones
    has_references = _of_item("has_references")  # it names reference answers
    has_judgements = _of_item("has_judgements")  # it says of something that it is not relevant
    relevant_count = _count_of_item("relevant_count")  # |G|: its pieces of evidence
    doc_count = _count_of_item("doc_count")  # documents that are expected
    nonrelevant_count = _count_of_item("nonrelevant_count")  # what is known to be not relevant
    group_count = _count_of_item("group_count")  # groups of evidence
    _piece_count = _count_of_item("piece_count")

    # Of the trace of each record; the profile decides whether absences are excluded or answers.
    missing = _fact(Fact.MISSING)  # there is none, and the record is excluded
    errored = _fact(Fact.ERRORED)  # it carries an error, and the record is excluded
    has_answer = _fact(Fact.ANSWER)  # be it a refusal
    refused = _fact(Fact.REFUSED)
    listed = _fact(Fact.LISTED)  # the answer has a citations list, perhaps an empty one
    cited = _fact(Fact.CITED)  # C is not empty
    hit = _fact(Fact.CITED_RELEVANT)  # C ∩ G is not empty
    in_context = _fact(Fact.IN_CONTEXT)  # C ⊆ hits
    has_echo = _fact(Fact.ECHO)  # it echoes constraints
    echoed = _fact(Fact.ECHOED)  # every locked constraint is echoed

    @property
    def size(self) -> int:
        """How many records there are."""
        return len(self.question)

    def has(self, fact: Fact) -> Bools:
        """Whether a fact is true of each record."""
        held: Bools = (self.facts & int(fact)) != 0
        return held

    def detail(self, name: str) -> Sparse:
        """A sparse table of these records."""
        return self.details.get(name, NO_ENTRIES)

    def single(self, name: str, default: float = 0.0) -> Floats:
        """The one value that each record has in a sparse table, or the default."""
        table = self.detail(name)
        column = np.full(self.size, default)
        column[table.record] = table.value
        return column

    def listed_in(self, name: str, k: int = NEVER) -> Bools:
        """Whether each record has an entry in a sparse table with a key below k."""
        return self.detail(name).count(self.size, k) > 0

    @cached_property
    def answered(self) -> Bools:
        """There is an answer, no error, and it is not a refusal."""
        return self.has_answer & ~self.errored & ~self.refused

    @cached_property
    def grounded(self) -> Bools:
        """The trace says that its answer is grounded, or says nothing of it and is an answer."""
        is_flagged = self.has(Fact.GROUNDED_KNOWN)
        held: Bools = np.where(is_flagged, self.has(Fact.GROUNDED), self.answered)
        return held

    @cached_property
    def span_bytes(self) -> Ints:
        """How much text the places of the evidence cover."""
        return self.gold.span_bytes[self.question]

    @cached_property
    def different_citations(self) -> Floats:
        """|C|: the cited places where evidence has places, else the cited ids."""
        counts = self.cited_count.astype(np.float64)
        by_places = self.detail("cited_places")
        counts[by_places.record] = by_places.value
        return counts

    @cached_property
    def cited_relevant(self) -> Floats:
        """How many citations are evidence."""
        return self._decided("cited_relevant")

    @cached_property
    def cited_pieces(self) -> Floats:
        """How many pieces of the evidence are cited."""
        return self._decided("cited_pieces")

    def _decided(self, table: str) -> Floats:
        """A count of citations: by places where they decided, else by ids."""
        counts = self.plain_cited_relevant.astype(np.float64)
        by_places = self.detail(table)
        counts[by_places.record] = by_places.value
        return counts

    @cached_property
    def hit_in_scope(self) -> Bools:
        """Not to be refused, C ⊆ hits, and C ∩ G is not empty or both are empty."""
        neither = (self.relevant_count == 0) & ~self.cited
        scoped: Bools = ~self.refusable & self.in_context & (self.hit | neither)
        return scoped

    @cached_property
    def contained(self) -> Bools:
        """A claim of the gold item appears in what was said, or its list of claims is empty."""
        return self.has(Fact.CONTAINED) | self.gold.vacuous[self.question]

    @cached_property
    def found_pieces(self) -> tuple[Ints, Ints, Ints]:
        """Record, rank and place in the gold of every piece that was found."""
        places = np.flatnonzero(self.ranks >= 0)
        record = np.repeat(np.arange(self.size, dtype=np.int64), self._piece_count)[places]
        start = starts_of(self._piece_count)
        piece = self.gold.piece_start[self.question][record] + places - start[record]
        return record, self.ranks[places].astype(np.int64), piece

    @cached_property
    def _relevant(self) -> tuple[Ints, Ints]:
        """Record and rank of every relevant piece that was found, by record and rank."""
        record, rank, piece = self.found_pieces
        if not self.gold.all_relevant:
            counted = self.gold.piece_relevant[piece]
            record, rank = record[counted], rank[counted]
        order = np.lexsort((rank, record))
        return record[order], rank[order]

    def relevant_in_top(self, k: int) -> Ints:
        """|G ∩ R_k|: how many pieces of the evidence are found by rank k."""
        record, rank = self._relevant
        return np.bincount(record[rank < k], minlength=self.size)

    def relevant_hits_in_top(self, k: int) -> Ints:
        """How many of the first k hits are relevant."""
        return self._relevant_hits(np.full(self.size, k, np.int64))

    @cached_property
    def relevant_hits_in_own_top(self) -> Ints:
        """How many of the first |G| hits are relevant."""
        return self._relevant_hits(self.relevant_count.astype(np.int64))

    def _relevant_hits(self, cut: Ints) -> Ints:
        """How many hits above each record's cut are relevant: by places where evidence has them."""
        record, rank = self._relevant
        by_id = np.bincount(record[rank < cut[record]], minlength=self.size)
        placed = self.gold.has_places[self.question]
        if not placed.any():
            return by_id
        table = self.detail("relevant_rank")
        near = table.key < cut[table.record]
        by_place = np.bincount(table.record[near], minlength=self.size)
        return np.where(placed, by_place, by_id)

    @cached_property
    def first_relevant(self) -> Ints:
        """The rank of the first relevant piece, NEVER if none was found."""
        return self._first(*self._relevant)

    def _first(self, record: Ints, rank: Ints) -> Ints:
        first = np.full(self.size, NEVER, np.int64)
        np.minimum.at(first, record, rank)
        return first

    def precision_sum(self, k: int) -> Floats:
        """The sum of the precisions at the rank of each relevant piece found by rank k."""
        record, rank = self._relevant
        counts = np.bincount(record, minlength=self.size)
        place = np.arange(len(record)) - starts_of(counts)[record]
        near = rank < k
        # Two places may be found at one rank; a precision above 1 there would be a count of them.
        precision = np.minimum(1.0, (place[near] + 1) / (rank[near] + 1))
        return totals(record[near], precision, self.size)

    def gain(self, k: int) -> Floats:
        """The discounted gain of the first k hits."""
        record, rank, piece = self.found_pieces
        near = rank < k
        worth = self.gold.piece_gain[piece[near]] / np.log2(rank[near] + 2.0)
        return totals(record[near], worth, self.size)

    def ideal_gain(self, k: int) -> Floats:
        """The discounted gain of the best list of k."""
        return self.gold.ideal(k)[self.question]

    def groups_in_top(self, k: int) -> Ints:
        """How many groups of evidence have a member that is found by rank k."""
        gold, question = self.gold, self.question
        counts = gold.member_count[question]
        member = spread(gold.member_start[question], counts)
        record = np.repeat(np.arange(self.size, dtype=np.int64), counts)
        piece = starts_of(self._piece_count)[record] + gold.member_piece[member]
        ranks = self.ranks[piece]
        near = (ranks >= 0) & (ranks < k)
        first = starts_of(self.group_count)
        satisfied = np.zeros(int(self.group_count.sum()), np.bool_)
        satisfied[(first[record] + gold.member_group[member])[near]] = True
        owner = np.repeat(np.arange(self.size, dtype=np.int64), self.group_count)
        return np.bincount(owner[satisfied], minlength=self.size)

    def docs_in_top(self, k: int) -> Ints:
        """How many expected documents are among the first k hits."""
        table = self.detail("doc_rank")
        return np.bincount(table.record[table.value < k], minlength=self.size)

    @cached_property
    def first_doc(self) -> Ints:
        """The rank of the first hit of an expected document, NEVER if there is none."""
        table = self.detail("doc_rank")
        return self._first(table.record, table.value.astype(np.int64))

    def section_in_top(self, k: int) -> Bools:
        """Whether one of the first k hits lies in the anchor section."""
        found: Bools = self.single("section_rank", NEVER) < k
        return found

    @cached_property
    def first_negative(self) -> Ints:
        """The rank of the first hard negative, NEVER if none was found."""
        table = self.detail("negative_rank")
        return self._first(table.record, table.key)

    def judged_in_top(self, k: int) -> Ints:
        """How many of the first k hits are judged, relevant or not."""
        return self.relevant_hits_in_top(k) + self.detail("judged_rank").count(self.size, k)

    @cached_property
    def preferred(self) -> Floats:
        """The sum over relevant pieces of 1 less the share of nonrelevant ones that rank above."""
        table = self.detail("judged_rank")
        on_scale = table.value > 0
        order = _by_record(table.record[on_scale], table.key[on_scale])
        order.sort()
        record, rank = self._relevant
        above = np.searchsorted(order, _by_record(record, rank)) - np.searchsorted(
            order, _by_record(record, np.zeros_like(rank))
        )
        relevant = self.relevant_count[record]
        judged = np.maximum(1, np.minimum(relevant, self.nonrelevant_count[record]))
        lost = np.minimum(above, relevant) / judged
        return totals(record, 1.0 - lost, self.size)

    def quantile_of(self, name: str, share: float, k: int = NEVER) -> Floats:
        """The quantile of each record's values in a sparse table with a key below k; 0 if none."""
        table = self.detail(name)
        near = table.key < k
        record, value = table.record[near], table.value[near]
        order = np.lexsort((value, record))
        record, value = record[order], value[order]
        counts = np.bincount(record, minlength=self.size)
        held = np.flatnonzero(counts)
        first = starts_of(counts)[held]
        place = share * (counts[held] - 1)
        below = np.floor(place).astype(np.int64)
        above = np.minimum(below + 1, counts[held] - 1)
        low, high = value[first + below], value[first + above]
        column = np.zeros(self.size)
        column[held] = low + (high - low) * (place - below)
        return column
