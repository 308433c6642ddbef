"""The stored traces of a run by question: which of them were scored, and where they are kept."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from ragauge.comparing import slot_order
from ragauge.freezing import UNREADABLE, thaw, trace_of
from ragauge.model.columns import Ints
from ragauge.model.run import Store
from ragauge.model.trace import SlotKey, Trace
from ragauge.recognising import Recogniser

CANNOT = "the stored trace cannot be read"


class _Head(Struct):
    """What of a stored trace says where it belongs."""

    qid: str | None = None
    question: str | None = None
    paraphrase: int | None = None
    seed: int | str | None = None
    turn: int | None = None


class Found(NamedTuple):
    """One trace of a question with its slot; None for the trace if it cannot be read.

    `replaced` is how many earlier traces of the slot there are.
    """

    slot: SlotKey
    trace: Trace | None
    replaced: int = 0


class ByQuestion:
    """The scored traces of a run, question by question; a temporary file holds them meanwhile.

    In memory there are a few numbers for each of them.
    """

    def __init__(self, file: tempfile.SpooledTemporaryFile[bytes], traces: _Gathered) -> None:
        self._file = file
        self._slots = list(traces.codes)
        self._lost = traces.lost
        self._question, self._slot, self._begin, self._size, self._replaced = traces.sorted()

    def of(self, question: int) -> list[Found]:
        """The traces of a question: by paraphrase, seed and turn."""
        first, last = np.searchsorted(self._question, (question, question + 1)).tolist()
        found = [self._read(place) for place in range(first, last)]
        lost = self._lost.get(question)
        return found if lost is None else [*found, *lost]

    def _read(self, place: int) -> Found:
        slot = self._slots[self._slot[place]]
        self._file.seek(int(self._begin[place]))
        data = self._file.read(int(self._size[place]))
        try:
            return Found(slot, trace_of(data), int(self._replaced[place]))
        except UNREADABLE:
            return Found(slot, None)


class _Gathered:
    """What is noted of the traces while they are copied."""

    def __init__(self, recogniser: Recogniser) -> None:
        self.recogniser = recogniser
        self.keep = recogniser.rules.keep
        self.codes: dict[SlotKey, int] = {}
        self.question, self.slot = array("q"), array("q")
        self.begin, self.size = array("q"), array("q")
        self.lost: dict[int, list[Found]] = {}

    def note(self, head: _Head, begin: int, size: int) -> None:
        """Note where the trace of a question stands; any other is of no question."""
        question = self.recogniser.find(head.qid, head.question, head.turn)
        if question is None:
            return
        number = self.recogniser.paraphrase(question, head.paraphrase, head.question)
        slot = (number, head.seed, head.turn)
        self.question.append(question)
        self.slot.append(self.codes.setdefault(slot, len(self.codes)))
        self.begin.append(begin)
        self.size.append(size)

    def sorted(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """The traces that were scored, by question and slot: the last one of each, or every one."""
        question, slot, begin, size = (
            np.array(each, np.int64) for each in (self.question, self.slot, self.begin, self.size)
        )
        slots = list(self.codes)
        order = sorted(range(len(slots)), key=lambda code: slot_order(slots[code]))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        # By the place in the file at last: the one that counts is the last of its equals.
        by = np.lexsort((np.arange(len(slot)), rank[slot] if len(slot) else slot, question))
        if self.keep == "last":
            by = np.argsort(question, kind="stable")
        question, slot, begin, size = question[by], slot[by], begin[by], size[by]
        if self.keep == "every":
            return question, slot, begin, size, np.zeros(len(slot), np.int64)
        ends = np.ones(len(question), np.bool_)
        same = question[1:] == question[:-1]
        ends[:-1] = ~(same if self.keep == "last" else same & (slot[1:] == slot[:-1]))
        places = np.flatnonzero(ends)
        replaced = np.diff(places, prepend=-1) - 1
        return question[places], slot[places], begin[places], size[places], replaced


@contextmanager
def by_question(store: Store, run_id: str, recogniser: Recogniser) -> Iterator[ByQuestion]:
    """The traces of a stored run by question; the store may be closed before they are."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="ragauge-") as file:
        yield ByQuestion(file, _copied(store, run_id, recogniser, file))


_IN_MEMORY = 1 << 20
_decode_head = msgspec.json.Decoder(_Head).decode


def _copied(
    store: Store, run_id: str, recogniser: Recogniser,
    file: tempfile.SpooledTemporaryFile[bytes],
) -> _Gathered:  # fmt: skip
    gathered = _Gathered(recogniser)
    unreadable: set[int] = set()
    begin = 0
    for ordinal, payload in store.payloads(run_id):
        try:
            data = thaw(payload)
            head = _decode_head(data)
        except UNREADABLE:
            unreadable.add(ordinal)
            continue
        file.write(data)
        gathered.note(head, begin, len(data))
        begin += len(data)
    for facts in store.facts(run_id) if unreadable else ():
        if facts.ordinal in unreadable:
            question = recogniser.number(facts.query_id, facts.turn)
            if question is not None:
                slot = (facts.paraphrase, facts.seed, facts.turn)
                gathered.lost.setdefault(question, []).append(Found(slot, None))
    return gathered
