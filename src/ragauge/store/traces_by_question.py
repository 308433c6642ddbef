"""The traces of a run by question: which of them were scored, and where they are kept."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from types import MappingProxyType
from typing import IO, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge.concurrency import map_in_threads
from ragauge.metrics.columns import Ints
from ragauge.model.payloads import UNREADABLE, thaw, trace_of
from ragauge.model.run import Store
from ragauge.model.trace import SlotKey, Trace
from ragauge.scoring.identify import EvidenceIdentifier
from ragauge.scoring.inputs import PageRows
from ragauge.scoring.slot_stability import slot_order
from ragauge.scoring.tasks.reduce import RangeReducer

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
    """The scored traces of a run, question by question, read when they are asked for.

    In memory there are a few numbers for each of them. The columns have the rows of the run that
    belong to a question, in file order; `read` gives the trace of one of these rows, or None if
    it cannot be read. `keep` is the rule by which the run was joined: which of several traces
    counts. `lost` are slots whose traces are gone.
    """

    def __init__(
        self,
        question: Ints,
        slot: Ints,
        slots: Sequence[SlotKey],
        read: Callable[[int], Trace | None],
        *,
        keep: str,
        lost: Mapping[int, Sequence[SlotTrace]] = MappingProxyType({}),
    ) -> None:
        self._slots = slots
        self._read = read
        self._lost = lost
        order = sorted(range(len(slots)), key=lambda code: slot_order(slots[code]))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        # By the place in the file last: of the traces of a slot the last one counts.
        rows = np.lexsort((np.arange(len(slot)), rank[slot], question))
        if keep == "last":
            rows = np.argsort(question, kind="stable")
        question, slot = question[rows], slot[rows]
        counts = np.ones(len(rows), np.bool_)
        if keep != "every":
            same = question[1:] == question[:-1]
            counts[:-1] = ~(same if keep == "last" else same & (slot[1:] == slot[:-1]))
        places = np.flatnonzero(counts)
        self._replaced = np.diff(places, prepend=-1) - 1
        self._row, self._slot = rows[places], slot[places]
        question = question[places]
        last = int(question[-1]) if len(question) else -1
        self._first = np.searchsorted(question, np.arange(last + 2))

    def of(self, question: int) -> list[SlotTrace]:
        """The traces of a question: by paraphrase, seed and turn."""
        traces = []
        if question < len(self._first) - 1:
            first, last = self._first[question : question + 2].tolist()
            traces = [self._slot_trace(place) for place in range(first, last)]
        return [*traces, *self._lost.get(question, ())]

    def _slot_trace(self, place: int) -> SlotTrace:
        slot, trace = self._slots[self._slot[place]], self._read(int(self._row[place]))
        return SlotTrace(slot, trace, 0 if trace is None else int(self._replaced[place]))


@contextmanager
def scored_by_question(scored: PageRows) -> Iterator[TracesByQuestion]:
    """The traces of a run that was just scored; its files may be closed before they are read."""
    index, in_memory = scored.index, scored.traces
    read_row = RangeReducer(scored.job).read
    with ExitStack() as stack:
        # A file that was unpacked or came from a pipe is gone by its name when inputs are closed.
        file = None
        if in_memory is None and len(index.begin):
            file = stack.enter_context(open(scored.job.source.path, "rb"))

        def read(row: int) -> Trace | None:
            begin, line = int(index.begin[row]), int(index.line[row])
            if file is None:
                assert in_memory is not None
                return replace(in_memory[begin], line=line)
            file.seek(begin)
            return read_row(file.read(int(index.size[row])), line)

        keep = scored.job.rules.keep
        yield TracesByQuestion(index.question, index.slot, index.slots, read, keep=keep)


@contextmanager
def by_question(
    store: Store, run_id: str, recogniser: EvidenceIdentifier
) -> Iterator[TracesByQuestion]:
    """The traces of a stored run by question; the store may be closed before they are."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY, prefix="ragauge-") as file:
        yield _copied(store, run_id, recogniser, file)


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


def _copied(
    store: Store, run_id: str, recogniser: EvidenceIdentifier, file: IO[bytes]
) -> TracesByQuestion:
    codes: dict[SlotKey, int] = {}
    questions, slots = array("q"), array("q")
    begins, sizes = array("q"), array("q")
    unreadable: set[int] = set()
    end = 0
    decompressed = map_in_threads(_decompressed, _payload_batches(store.payloads(run_id)))
    for ordinal, data in chain.from_iterable(decompressed):
        try:
            head = None if data is None else _decode_head(data)
        except UNREADABLE:
            head = None
        if data is None or head is None:
            unreadable.add(ordinal)
            continue
        question = recogniser.find(head.qid, head.question, head.turn)
        if question is not None:
            number = recogniser.paraphrase(question, head.paraphrase, head.question)
            questions.append(question)
            slots.append(codes.setdefault((number, head.seed, head.turn), len(codes)))
            begins.append(end)
            sizes.append(file.write(data))
            end += len(data)
    lost: dict[int, list[SlotTrace]] = {}
    for facts in store.facts(run_id) if unreadable else ():
        if facts.ordinal in unreadable:
            asked = recogniser.number(facts.query_id, facts.turn)
            if asked is not None:
                slot = (facts.paraphrase, facts.seed, facts.turn)
                lost.setdefault(asked, []).append(SlotTrace(slot, None))

    def read(row: int) -> Trace | None:
        file.seek(begins[row])
        try:
            return trace_of(file.read(sizes[row]))
        except UNREADABLE:
            return None

    return TracesByQuestion(
        np.array(questions, np.int64),
        np.array(slots, np.int64),
        list(codes),
        read,
        keep=recogniser.rules.keep,
        lost=lost,
    )
