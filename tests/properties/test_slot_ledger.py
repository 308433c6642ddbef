"""The ledger of taken slots, as a table or as sorted runs, is a set of question and slot."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragauge.model.trace import SlotKey
from ragauge.scoring.slot_ledger import DENSE_CELLS, Ledger
from tests.support.effort import examples

QUESTIONS = 5
Claim = tuple[int, SlotKey]

seeds = st.one_of(st.none(), st.integers(0, 6), st.sampled_from(("a", "b")))
pairs: st.SearchStrategy[SlotKey] = st.tuples(
    st.sampled_from((None, 0, 1)), seeds, st.none()
)  # fmt: skip
keys: st.SearchStrategy[SlotKey] = st.tuples(
    st.sampled_from((None, 0, 1)), seeds, st.sampled_from((None, 1))
)


def batches(slots: st.SearchStrategy[SlotKey]) -> st.SearchStrategy[list[list[Claim]]]:
    claim = st.tuples(st.integers(0, QUESTIONS - 1), slots)
    return st.lists(st.lists(claim, max_size=12), max_size=6)


def _claim(ledger: Ledger, batch: list[Claim]) -> list[bool]:
    question = np.array([question for question, _ in batch], np.int32)
    slots = np.array([ledger.code(slot) for _, slot in batch], np.int64)
    fresh: list[bool] = ledger.claim(question, slots).tolist()
    return fresh


def _model(taken: set[Claim], batch: list[Claim]) -> list[bool]:
    fresh = []
    for claim in batch:
        fresh.append(claim not in taken)
        taken.add(claim)
    return fresh


def _missing(taken: set[Claim], seen: list[bool]) -> int:
    """Cells of the grid of paraphrases × seeds that questions with a trace do not fill."""
    paraphrases = {slot[0] for _, slot in taken}
    seeds_seen = {slot[1] for _, slot in taken}
    filled = {(question, slot[0], slot[1]) for question, slot in taken if seen[question]}
    return len(paraphrases) * len(seeds_seen) * sum(seen) - len(filled)


@examples(50)
@given(drawn=batches(keys), limit=st.integers(0, 60))
def test_ledger_is_a_set(drawn: list[list[Claim]], limit: int) -> None:
    """A slot is free once: in a table, in sorted runs, and when the one becomes the other."""
    ledgers = [Ledger(QUESTIONS, dense_cells=cells) for cells in (DENSE_CELLS, 0, limit)]
    taken: set[Claim] = set()
    for batch in drawn:
        expected = _model(taken, batch)
        assert [_claim(ledger, batch) for ledger in ledgers] == [expected] * 3
    assert ledgers[0].runs is None
    if any(drawn):
        assert ledgers[1].runs is not None


@examples(50)
@given(drawn=batches(keys), beside=st.integers(0, 2))
def test_missing_slots_of_a_table(drawn: list[list[Claim]], beside: int) -> None:
    """What is missing of paraphrases × seeds is counted once, whatever the turns."""
    ledger = Ledger(QUESTIONS)
    taken: set[Claim] = set()
    for batch in drawn:
        _model(taken, batch)
        _claim(ledger, batch)
    # The last question may be one that is not measured: what it fills is not asked for.
    last = QUESTIONS - beside
    seen = [each < last and any(question == each for question, _ in taken)
            for each in range(QUESTIONS)]  # fmt: skip
    assert ledger.missing_slots(np.array(seen)) == _missing(taken, seen)


@examples(50)
@given(drawn=batches(pairs), limit=st.integers(0, 40), beside=st.integers(0, 2))
def test_missing_slots_of_sorted_runs(drawn: list[list[Claim]], limit: int, beside: int) -> None:
    """Without turns, sorted runs miss the same number of slots."""
    ledgers = [Ledger(QUESTIONS, dense_cells=cells) for cells in (0, limit)]
    taken: set[Claim] = set()
    for batch in drawn:
        _model(taken, batch)
        for ledger in ledgers:
            _claim(ledger, batch)
    last = QUESTIONS - beside
    seen = np.array([each < last and any(question == each for question, _ in taken)
                     for each in range(QUESTIONS)])  # fmt: skip
    expected = _missing(taken, seen.tolist())
    assert [ledger.missing_slots(seen) for ledger in ledgers] == [expected] * 2
