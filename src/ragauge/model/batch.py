"""Batches: many records as columns, with the views that metrics are written in."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ragauge.model.facts import Fact

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Column = NDArray[np.int32]


class GoldColumns:
    """What metrics need to know of the gold items, one entry an item.

    `answerable` and `unanswerable` are populations. `creditable`: an answer can be right;
    `refusable`: any answer is wrong. For labelled items the two pairs agree; profiles decide what
    an unlabelled item is.
    """

    def __init__(
        self,
        *,
        answerable: Bools,
        unanswerable: Bools,
        creditable: Bools,
        refusable: Bools,
        relevant_count: Column,
        has_claims: Bools,
        has_constraints: Bools,
        vacuous: Bools,
    ) -> None:
        self.answerable = answerable
        self.unanswerable = unanswerable
        self.creditable = creditable
        self.refusable = refusable
        self.relevant_count = relevant_count
        self.has_claims = has_claims
        self.has_constraints = has_constraints
        self.vacuous = vacuous


class Batch:
    """Records as columns; a property or method gives one value for each record.

    `ranks` has one entry for each piece of evidence of each record: its 0-based rank, or -1.

    `traceless` and `with_error` say what became of the trace; under a profile that follows its
    source such records are answers all the same, and are neither `missing` nor `errored`.

    `absent_counts` says whether records without a trace or with an error count in retrieval
    metrics, as records without hits; `no_evidence_counts` whether an answerable item without
    evidence counts as recalled; `shows_missing` whether an item without a trace has a record at
    all, which it has not where only rows of the trace file are scored.
    """

    def __init__(
        self,
        *,
        gold: GoldColumns,
        question: Ints,
        facts: Column,
        hits: Column,
        cited: Column,
        ranks: Column,
        traceless: Bools,
        with_error: Bools,
        absent_counts: bool = True,
        no_evidence_counts: bool = False,
        shows_missing: bool = True,
    ) -> None:
        self.gold = gold
        self.question = question
        self.facts = facts
        self.hit_count = hits
        self.cited_count = cited
        self.ranks = ranks
        self.traceless = traceless
        self.with_error = with_error
        self.absent_counts = absent_counts
        self.no_evidence_counts = no_evidence_counts
        self.shows_missing = shows_missing
        self.size = len(question)

    def has(self, fact: Fact) -> Bools:
        """Whether a fact is true of each record."""
        held: Bools = (self.facts & int(fact)) != 0
        return held

    @cached_property
    def missing(self) -> Bools:
        """The gold item has no trace, and the profile leaves such records out."""
        return self.has(Fact.MISSING)

    @cached_property
    def errored(self) -> Bools:
        """The trace carries an error, and the profile leaves such records out."""
        return self.has(Fact.ERRORED)

    @cached_property
    def has_answer(self) -> Bools:
        """There is an answer, be it a refusal."""
        return self.has(Fact.ANSWER)

    @cached_property
    def refused(self) -> Bools:
        """The answer is a refusal."""
        return self.has(Fact.REFUSED)

    @cached_property
    def answered(self) -> Bools:
        """There is an answer, no error, and it is not a refusal."""
        return self.has_answer & ~self.errored & ~self.refused

    @cached_property
    def answerable(self) -> Bools:
        """The item is in the answerable population."""
        return self.gold.answerable[self.question]

    @cached_property
    def unanswerable(self) -> Bools:
        """The item is in the unanswerable population."""
        return self.gold.unanswerable[self.question]

    @cached_property
    def creditable(self) -> Bools:
        """An answer to this item can be right."""
        return self.gold.creditable[self.question]

    @cached_property
    def refusable(self) -> Bools:
        """Any answer to this item is wrong."""
        return self.gold.refusable[self.question]

    @cached_property
    def relevant_count(self) -> Column:
        """|G|: how many pieces of evidence the item has."""
        return self.gold.relevant_count[self.question]

    @cached_property
    def has_claims(self) -> Bools:
        """The item has claims to look for."""
        return self.gold.has_claims[self.question]

    @cached_property
    def has_constraints(self) -> Bools:
        """The item has locked constraints."""
        return self.gold.has_constraints[self.question]

    @cached_property
    def listed(self) -> Bools:
        """The answer has a citations list, perhaps an empty one."""
        return self.has(Fact.LISTED)

    @cached_property
    def cited(self) -> Bools:
        """C is not empty."""
        return self.has(Fact.CITED)

    @cached_property
    def hit(self) -> Bools:
        """C ∩ G is not empty."""
        return self.has(Fact.CITED_RELEVANT)

    @cached_property
    def in_context(self) -> Bools:
        """C ⊆ hits."""
        return self.has(Fact.IN_CONTEXT)

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
    def has_echo(self) -> Bools:
        """The trace echoes constraints."""
        return self.has(Fact.ECHO)

    @cached_property
    def echoed(self) -> Bools:
        """Every locked constraint is echoed."""
        return self.has(Fact.ECHOED)

    @cached_property
    def _record_of_rank(self) -> Ints:
        return np.repeat(np.arange(self.size, dtype=np.int64), self.relevant_count)

    def relevant_in_top(self, k: int) -> Ints:
        """|G ∩ R_k|."""
        near = (self.ranks >= 0) & (self.ranks < k)
        return np.bincount(self._record_of_rank[near], minlength=self.size)
