"""Continuing: what of a run is left to ask, what is known of it, and which answers do not stand."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from msgspec import Struct

from ragauge.model.payloads import UNREADABLE, thaw, trace_of
from ragauge.model.run import RunRecord, Store
from ragauge.run.answer_to_trace import errored_trace
from ragauge.run.finish import Keeper
from ragauge.run.slots import Slots, followed

FOLLOWS = "it was asked with an answer to an earlier turn that does not stand"
_AT_ONCE = 512


class Rest(Struct, frozen=True):
    """What is left to ask of a run; `done` has a byte for each slot, 1 where it is not asked.

    `stale` are the numbers of stored results that are asked for again. They must be gone before
    the first question is asked: a run that is stopped meanwhile would keep some of them.
    """

    slots: Slots
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
            for strand in self.slots.strands(self.wanted)
            for slot in strand.slots
            if self.done[slot.number]
        }
        found: dict[int, str | None] = {}
        for ordinal, payload in store.payloads(run.run_id) if needed else ():
            if ordinal in needed:
                with suppress(*UNREADABLE):
                    answer = trace_of(thaw(payload)).answer
                    found[ordinal] = None if answer is None else answer.said
        return found


def rest_of(store: Store, run: RunRecord, slots: Slots, *, retry_errors: bool) -> Rest:
    """What has no result yet; with `retry_errors` also the errors, and the turns after them.

    These were given a history without the answer.
    """
    done = bytearray(slots.count)
    errored: set[int] = set()
    for ordinal, outcome in store.outcomes(run.run_id):
        if ordinal < slots.count:
            done[ordinal] = 1
            if outcome == "errored":
                errored.add(ordinal)
    stale = []
    for slot in followed(slots, errored) if retry_errors else ():
        if done[slot.number]:
            stale.append(slot.number)
            done[slot.number] = 0
    return Rest(slots, done, sorted(stale))


def take_back(
    store: Store, run: RunRecord, slots: Slots, doubts: Mapping[int, str], keeper: Keeper
) -> int:
    """Put errors in the place of answers that do not stand, and of the turns after them."""
    if not doubts:
        return 0
    stored = {ordinal for ordinal, outcome in store.outcomes(run.run_id) if outcome != "errored"}
    traces = [
        errored_trace(slot, doubts.get(slot.number, FOLLOWS), None)
        for slot in followed(slots, doubts)
        if slot.number in stored
    ]
    for start in range(0, len(traces), _AT_ONCE):
        keeper.keep(traces[start : start + _AT_ONCE])
    return len(traces)
