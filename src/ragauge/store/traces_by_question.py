"""The traces of a run by question: which of them were scored, and where they are kept."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import IO, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from ragauge.concurrency import map_in_threads
from ragauge.metrics.columns import Ints
from ragauge.model.payloads import UNREADABLE, thaw, trace_of
from ragauge.model.run import Store
from ragauge.model.trace import SlotKey, Trace
from ragauge.scoring.chunk_facts import CollectedFacts
from ragauge.scoring.identify import EvidenceIdentifier
from ragauge.scoring.slot_stability import slot_order
from ragauge.scoring.tasks.lines import TraceLines

CANNOT = "the stored trace cannot be read"


class _TraceHead(Struct):
    """What of a stored trace says where it belongs."""

    qid: str | None = None
    question: str | None = None
    paraphrase: int | None = None
    seed: int | str | None = None
    turn: int | None = None


class SlotTrace(NamedTuple):
    """One trace of a question with its slot; None for the trace if it cannot be read.

    `replaced` is how many earlier traces of the slot there are.
    """

    slot: SlotKey
    trace: Trace | None
    replaced: int = 0


class TracesByQuestion:
    """The scored traces of a run, question by question; a temporary file holds them meanwhile.

    In memory there are a few numbers for each of them.
    """

    def __init__(self, file: IO[bytes], index: TraceIndex) -> None:
        self._file = file
        self._slots = list(index.codes)
        self._lost = index.lost
        question, self._slot, self._begin, self._size, self._replaced = index.scored()
        count = int(question[-1]) + 1 if len(question) else 0
        self._first = np.searchsorted(question, np.arange(count + 1))

    def of(self, question: int) -> list[SlotTrace]:
        """The traces of a question: by paraphrase, seed and turn."""
        traces = []
        if question < len(self._first) - 1:
            first, last = self._first[question : question + 2].tolist()
            traces = [self._read(place) for place in range(first, last)]
        lost = self._lost.get(question)
        return traces if lost is None else [*traces, *lost]

    def _read(self, place: int) -> SlotTrace:
        slot = self._slots[self._slot[place]]
        self._file.seek(int(self._begin[place]))
        data = self._file.read(int(self._size[place]))
        try:
            return SlotTrace(slot, trace_of(data), int(self._replaced[place]))
        except UNREADABLE:
            return SlotTrace(slot, None)


class TraceIndex:
    """Where each trace is in a file, noted while they are written one after another.

    `keep` is the rule by which a run was joined: which of several traces counts.
    """

    def __init__(self, keep: str) -> None:
        self.keep = keep
        self.codes: dict[SlotKey, int] = {}
        self.question, self.slot = array("q"), array("q")
        self.begin, self.size = array("q"), array("q")
        self.lost: dict[int, list[SlotTrace]] = {}
        self.end = 0

    def note(self, question: int | None, slot: SlotKey, size: int) -> None:
        """Note the next trace; one of no question only takes its room."""
        if question is not None:
            self.question.append(question)
            self.slot.append(self.codes.setdefault(slot, len(self.codes)))
            self.begin.append(self.end)
            self.size.append(size)
        self.end += size

    def scored(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """The traces that were scored, by question and slot: the last one of each, or every one.

        Their question, slot, place in the file and size, and how many each of them replaced.
        """
        question, slot, begin, size = (
            np.array(column, np.int64)
            for column in (self.question, self.slot, self.begin, self.size)
        )
        slots = list(self.codes)
        order = sorted(range(len(slots)), key=lambda code: slot_order(slots[code]))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        # By the place in the file last: of the traces of a slot the last one counts.
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
def by_question(
    store: Store, run_id: str, recogniser: EvidenceIdentifier
) -> Iterator[TracesByQuestion]:
    """The traces of a stored run by question; the store may be closed before they are."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="ragauge-") as file:
        yield TracesByQuestion(file, _copy_payloads(store, run_id, recogniser, file))


def write_lines(
    lines: Iterable[TraceLines], file: IO[bytes], keep: str, gathered: CollectedFacts
) -> TraceIndex:
    """Write traces to a file, note where each of them is, and merge what their hits say."""
    index = TraceIndex(keep)
    for part in lines:
        file.write(part.lines)
        for question, slot, size in zip(part.questions, part.slots, part.sizes, strict=True):
            index.note(question, slot, size)
        gathered.merge(part.gathered)
    file.flush()
    return index


_IN_MEMORY = 1 << 20
"""Bytes of a small run that never get to the disk."""

_AT_ONCE = 1 << 17
"""Bytes of payloads for a thread: a shorter piece of work would cost more than it gains."""

_decode_head = msgspec.json.Decoder(_TraceHead).decode


def _payload_batches(rows: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """Payloads, as many at a time as are worth the way to another thread."""
    some: list[tuple[int, bytes]] = []
    size = 0
    for row in rows:
        some.append(row)
        size += len(row[1])
        if size > _AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


def _decompressed(rows: list[tuple[int, bytes]]) -> list[tuple[int, bytes | None]]:
    """The JSON of payloads; None for what cannot be read."""
    texts: list[tuple[int, bytes | None]] = []
    for ordinal, payload in rows:
        try:
            texts.append((ordinal, thaw(payload)))
        except UNREADABLE:
            texts.append((ordinal, None))
    return texts


def _copy_payloads(
    store: Store, run_id: str, recogniser: EvidenceIdentifier, file: IO[bytes]
) -> TraceIndex:
    index = TraceIndex(recogniser.rules.keep)
    unreadable: set[int] = set()
    decompressed = map_in_threads(_decompressed, _payload_batches(store.payloads(run_id)))
    for ordinal, data in chain.from_iterable(decompressed):
        try:
            head = None if data is None else _decode_head(data)
        except UNREADABLE:
            head = None
        if data is None or head is None:
            unreadable.add(ordinal)
            continue
        file.write(data)
        question, number = recogniser.find(head.qid, head.question, head.turn), head.paraphrase
        if question is not None:
            number = recogniser.paraphrase(question, number, head.question)
        index.note(question, (number, head.seed, head.turn), len(data))
    for facts in store.facts(run_id) if unreadable else ():
        if facts.ordinal in unreadable:
            asked = recogniser.number(facts.query_id, facts.turn)
            if asked is not None:
                slot = (facts.paraphrase, facts.seed, facts.turn)
                index.lost.setdefault(asked, []).append(SlotTrace(slot, None))
    return index
