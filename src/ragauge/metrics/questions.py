"""Questions: what came of each question over all its slots, for metrics of stability."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.metrics.columns import Bools, Floats, GoldColumns, Ints
from ragauge.metrics.facts import LAMBDA_STATES

NO_STATE = -1
_CONVERGENT, _DIVERGENT, _MIXED, _CHAOTIC = range(len(LAMBDA_STATES))


class Questions(Struct, frozen=True, kw_only=True, dict=True):
    """Counts over the slots of each question, one entry a question.

    slots       scored records; 0 where slots are not told apart
    traced      whether there is any trace
    hitting     slots that are answered and cite evidence; in an index-only run, slots with evidence
                among the first five hits
    silent      slots that refuse or cite nothing; in an index-only run, slots without hits
    refused     slots that refuse
    spoken      slots with an answer
    oversampled slots that live traffic kept by a higher rate than that of all
    recorded    the state of λ that the traces record: a place in LAMBDA_STATES, -1 for none
    index_only  whether no trace of the run has an answer
    compared    whether the slots were compared with each other; in a large run some are not
    citation_jaccard, claim_distance, rank_tau: what comparing the slots gave, nan where undefined
    """

    gold: GoldColumns
    slots: Ints
    traced: Bools
    hitting: Ints
    silent: Ints
    refused: Ints
    spoken: Ints
    oversampled: Ints
    recorded: NDArray[np.int8]
    index_only: bool
    compared: Bools
    citation_jaccard: Floats
    claim_distance: Floats
    rank_tau: Floats

    @property
    def size(self) -> int:
        """How many questions there are."""
        return len(self.slots)

    @cached_property
    def could_refuse(self) -> Bools:
        """Not to be refused, or in a run that answers and so can refuse."""
        return ~self.gold.refusable | (not self.index_only)

    @cached_property
    def has_outcome(self) -> Bools:
        """There is evidence to hit, or the question should be refused."""
        held: Bools = self.gold.refusable | (self.gold.relevant_count > 0)
        return held

    @cached_property
    def state(self) -> NDArray[np.int8]:
        """λ of each question as a place in LAMBDA_STATES, -1 where there is none."""
        no_hit = np.where(self.silent == self.slots, _DIVERGENT, _CHAOTIC)
        answering = np.where(self.hitting == 0, no_hit, _MIXED)
        answering = np.where(self.hitting == self.slots, _CONVERGENT, answering)
        # A question to be refused is never ←: slots that refuse are right.
        refusing = np.where(self.refused == 0, _CHAOTIC, _MIXED)
        refusing = np.where(self.refused == self.slots, _CONVERGENT, refusing)
        states = np.where(self.gold.refusable, refusing, answering)
        has_state = self.has_outcome & self.could_refuse & (self.slots > 1)
        return np.where(has_state, states, NO_STATE).astype(np.int8)
