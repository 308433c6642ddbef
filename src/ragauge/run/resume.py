"""Resuming a run: which slots are left to ask, with which history, and which answers are withdrawn.

`run.resumed` loads a stored run and refuses to go on with another target or gold set.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from ragauge.model.payloads import UNREADABLE, thaw, trace_of
from ragauge.model.run import RunRecord, Store
from ragauge.run.answer_to_trace import error_trace
from ragauge.run.finish import ResultWriter
from ragauge.run.slots import GoldSlots, with_later_turns

FOLLOWS = "it was asked with an answer to an earlier turn that does not stand"
_AT_ONCE = 512  # traces in one transaction


class RemainingSlots(Struct, frozen=True):
    """The slots that are left to ask; `done` has a byte for each slot, 1 where it is not asked.

    `stale` are the numbers of stored results that are asked for again. They must be gone before
    the first question is asked: a run that is stopped meanwhile would keep some of them.
    """

    slots: GoldSlots
    done: bytearray
    stale: list[int]

    @property
    def total(self) -> int:
        """How many slots are left."""
        return self.done.count(0)

    def wanted(self, number: int) -> bool:
        """Whether a slot is to be asked."""
        return not self.done[number]

    def answers_before(self, store: Store, run: RunRecord) -> dict[int, str | None]:
        """What was answered in the turns before those that are still to be asked."""
        if all(item.turn is None for item in self.slots.items):
            return {}
        needed = {
            slot.number
            for sequence in self.slots.sequences(self.wanted)
            for slot in sequence.slots
            if self.done[slot.number]
        }
        answers: dict[int, str | None] = {}
        for ordinal, payload in store.payloads(run.run_id) if needed else ():
            if ordinal in needed:
                with suppress(*UNREADABLE):  # the turn is asked without this answer
                    answer = trace_of(thaw(payload)).answer
                    answers[ordinal] = None if answer is None else answer.said
        return answers


def remaining_slots(
    store: Store, run: RunRecord, slots: GoldSlots, *, retry_errors: bool
) -> RemainingSlots:
    """The slots without a result; with `retry_errors` also errors, and the turns after them.

    Those turns were asked with a history that lacks the answer.
    """
    done = bytearray(slots.count)
    errored: set[int] = set()
    for ordinal, outcome in store.outcomes(run.run_id):
        if ordinal < slots.count:  # no stored number may index out of range
            done[ordinal] = 1
            if outcome == "errored":
                errored.add(ordinal)
    stale = []
    for slot in with_later_turns(slots, errored) if retry_errors else ():
        if done[slot.number]:
            stale.append(slot.number)
            done[slot.number] = 0
    return RemainingSlots(slots, done, sorted(stale))


def withdraw_answers(
    store: Store, run: RunRecord, slots: GoldSlots, doubts: Mapping[int, str], writer: ResultWriter
) -> int:
    """Replace answers that are in doubt by errors, and the turns after them; return how many."""
    if not doubts:
        return 0
    # What is an error already keeps its own reason.
    stored = {ordinal for ordinal, outcome in store.outcomes(run.run_id) if outcome != "errored"}
    traces = [
        error_trace(slot, doubts.get(slot.number, FOLLOWS), None)
        for slot in with_later_turns(slots, doubts)
        if slot.number in stored
    ]
    for start in range(0, len(traces), _AT_ONCE):
        writer.write(traces[start : start + _AT_ONCE])
    return len(traces)
