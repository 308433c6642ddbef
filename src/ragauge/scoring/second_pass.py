"""Settling: what the rows of a run decide together, once all of them are in.

A citation may be of a hit of an earlier turn, or of some other trace's hit; slots of one question
are compared with each other. Records that wait for such an answer are set aside meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import NamedTuple, Protocol

import msgspec
import numpy as np

from ragauge.metrics.columns import Bools, Column, Floats, Ints, starts_of
from ragauge.metrics.facts import Fact
from ragauge.metrics.metric import Selected
from ragauge.model.profile import JoinRules
from ragauge.model.trace import Citation, Hit, SlotKey, Trace
from ragauge.scoring.evidence_places import Place, shares
from ragauge.scoring.gold_table import GoldTable
from ragauge.scoring.join import Records
from ragauge.scoring.slot_ledger import Ledger
from ragauge.scoring.slot_stability import (
    MOST_SLOTS,
    Slot,
    compare,
    drawing_order,
    slot_order,
    to_compare,
)
from ragauge.scoring.sums import COMPARED
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.reduce import RangeReducer
from ragauge.scoring.trace_details import Detailer


class TraceRows(Protocol):
    """Traces that can be read again."""

    def rows(self, job: Job, index: int) -> Iterable[tuple[int, Trace | bytes]]:
        """The rows of the range of that index from the last to the first, each with its line."""
        ...

    def find_ids(self, job: Job, ids: frozenset[str]) -> set[str]:
        """Which of some ids were retrieved by any row."""
        ...


Kept = tuple[Column, Column, Ints, Column]
"""Question, slot, position and facts of records."""


class Settler:
    """Remembers where the scored records stand, and sets aside those that others must settle."""

    def __init__(
        self,
        table: GoldTable,
        ledger: Ledger,
        selected: Sequence[Selected],
        rules: JoinRules,
        *,
        absent_counts: bool,
    ) -> None:
        names = {each.metric.id for each in selected}
        self.table = table
        self.ledger = ledger
        self.by_slot = rules.keep == "slot"
        self.resolves = self._resolves(table, selected)
        self.compares = self.by_slot and not names.isdisjoint(
            f"stability.{name}" for name in COMPARED
        )
        self.absent_counts = absent_counts
        self.counts = np.zeros(len(table.qids), np.int64)
        self.order = np.zeros(0, np.int64)
        if self.compares:
            called = [table.name(question) for question in range(len(table.qids))]
            self.order = drawing_order(called)
        self.turned = np.zeros(0, np.bool_)
        self.kept: list[Kept] = []
        self.aside: list[Records] = []

    @classmethod
    def needs_open_citations(
        cls, table: GoldTable, selected: Sequence[Selected], rules: JoinRules
    ) -> bool:
        """Whether the first pass must note which cited ids the row itself did not retrieve."""
        return rules.keep == "slot" or cls._resolves(table, selected)

    @staticmethod
    def _resolves(table: GoldTable, selected: Sequence[Selected]) -> bool:
        # A list of chunks says itself which ids exist; then no other row is asked.
        return not table.chunks and any(each.metric.id == "citation.resolved" for each in selected)

    def settled(self, records: Records) -> Records:
        """Set aside what others must settle, and return the rest."""
        facts = records.facts
        if self.by_slot:
            self._keep(records)
        if self.table.beside:  # only what they retrieved is asked for, when others are settled
            records = records.take(records.question < self.table.measured, self.table.columns)
            facts = records.facts
        if not self.table.chunks:
            known = (facts & int(Fact.IN_CONTEXT)) != 0
            facts = np.where(known, facts | int(Fact.RESOLVED), facts).astype(np.int32)
            records = msgspec.structs.replace(records, facts=facts)
        closed = Fact.IN_CONTEXT | Fact.ERRORED | Fact.ODD_CITATIONS
        waiting = ((facts & int(Fact.CITED)) != 0) & ((facts & int(closed)) == 0)
        if not self.resolves:
            waiting &= self._turned()[records.slot] if self.by_slot else False
        if not waiting.any():
            return records
        gold = self.table.columns
        self.aside.append(records.take(waiting, gold))
        return records.take(~waiting, gold)

    def _keep(self, records: Records) -> None:
        """Remember where the records stand that may have to be looked at again.

        A question that no longer fits into the comparison never will: counts only grow.
        """
        wanted = self._turned()[records.slot]
        if self.compares:
            measured = records.question < self.table.measured
            compared = measured
            if not self.absent_counts:
                compared = measured & ((records.facts & int(Fact.ERRORED)) == 0)
            size = len(self.table.qids)
            self.counts += np.bincount(records.question[compared], minlength=size)
            fits = to_compare(self.counts, self.order) | (self.counts <= 1)
            wanted = wanted | (fits[records.question] & measured)
        if wanted.any():
            self.kept.append(
                (
                    records.question[wanted].astype(np.int32),
                    records.slot[wanted].astype(np.int32),
                    records.position[wanted],
                    records.facts[wanted],
                )
            )

    def _turned(self) -> Bools:
        """Which slots have a turn, by their code; slots only ever come to the end."""
        known = len(self.turned)
        if known < len(self.ledger.codes):
            new = [key[2] is not None for key in islice(self.ledger.codes, known, None)]
            self.turned = np.concatenate([self.turned, np.array(new, np.bool_)])
        return self.turned if len(self.turned) else np.zeros(1, np.bool_)

    def settle(self, looker: Looker | None) -> Iterator[Records]:
        """Look again at the records that were set aside, and hand them over with their facts."""
        if not self.aside or looker is None:
            return
        slots = list(self.ledger.codes) or [(None, None, None)]
        keys = [
            (question, slots[slot])
            for records in self.aside
            for question, slot in zip(records.question.tolist(), records.slot.tolist(), strict=True)
        ]
        # By record: where every row is scored, several records share a question and a slot.
        lost = [
            frozenset(records.open.get(record, ()))
            for records in self.aside
            for record in range(len(records.question))
        ]
        positions = np.concatenate([records.position for records in self.aside]).tolist()
        talked = self._outside_conversation(looker, keys, positions, slots)
        lost = [talked.get(key, left) for key, left in zip(keys, lost, strict=True)]
        somewhere: set[str] = set()
        if self.resolves:
            open_ids = frozenset[str]().union(*lost)
            somewhere = looker.find_ids(open_ids)
        place = 0
        for records in self.aside:
            facts = records.facts.copy()
            for i in range(len(facts)):
                if not lost[place]:
                    facts[i] |= int(Fact.IN_CONTEXT)
                if lost[place] <= somewhere and not self.table.chunks:
                    facts[i] |= int(Fact.RESOLVED)
                place += 1
            yield msgspec.structs.replace(records, facts=facts)
        self.aside = []

    def _outside_conversation(
        self,
        looker: Looker,
        keys: Sequence[Key],
        positions: Sequence[int],
        slots: Sequence[SlotKey],
    ) -> dict[Key, frozenset[str]]:
        """What slots with a turn cite that neither they nor earlier turns retrieved."""
        turned = [
            (key, position)
            for key, position in zip(keys, positions, strict=True)
            if key[1][2] is not None
        ]
        if not turned:
            return {}
        earlier = self._earlier_hits(looker, [key for key, _ in turned], slots)
        found: dict[Key, frozenset[str]] = {}

        def note(key: Key, seen: Seen) -> None:
            found[key] = _not_among(
                _cited_places(seen), [*seen.places(looker.detail), *earlier.get(key, [])]
            )

        looker.visit(
            _wanted([position for _, position in turned], [key for key, _ in turned]), note
        )
        return found

    def _earlier_hits(
        self, looker: Looker, keys: Sequence[Key], slots: Sequence[SlotKey]
    ) -> dict[Key, list[Place]]:
        """What earlier turns of the same conversation retrieved, for slots with a turn."""
        turned = set(keys)
        talks = {_talk(self._conversation(question), slot) for question, slot in turned}
        question, slot, position, facts = self._all_kept()
        fine = (facts & int(Fact.ERRORED)) == 0
        places: list[int] = []
        found: list[Key] = []
        for code, number, where in zip(
            question[fine].tolist(), slot[fine].tolist(), position[fine].tolist(), strict=True
        ):
            key = slots[number]
            if key[2] is not None and _talk(self._conversation(code), key) in talks:
                places.append(where)
                found.append((code, key))
        said: dict[tuple[int, object, object], list[tuple[int, list[Place]]]] = {}

        def note(key: Key, seen: Seen) -> None:
            turn = key[1][2]
            assert turn is not None
            talk = _talk(self._conversation(key[0]), key[1])
            said.setdefault(talk, []).append((turn, seen.places(looker.detail)))

        looker.visit(_wanted(places, found), note)
        hits: dict[Key, list[Place]] = {}
        for key in turned:
            turn = key[1][2]
            assert turn is not None
            before = said.get(_talk(self._conversation(key[0]), key[1]), [])
            hits[key] = [place for each, places in before if each < turn for place in places]
        return hits

    def _all_kept(self) -> Kept:
        parts = [np.concatenate(part) for part in zip(*self.kept, strict=True)]
        return parts[0], parts[1], parts[2], parts[3]

    def _conversation(self, question: int) -> int:
        cluster = self.table.cluster
        return question if cluster is None else int(cluster[question])

    def compare(self, looker: Looker | None) -> tuple[dict[str, Floats], str | None]:
        """What comparing the slots of each question gives, and a note where not all were."""
        if not self.compares or not self.kept or looker is None:
            return {}, None
        counts = self.counts
        picked = to_compare(counts, self.order)
        question, slot, position, facts = self._all_kept()
        mine = picked[question]
        if not self.absent_counts:
            mine &= (facts & int(Fact.ERRORED)) == 0
        question, slot, position, facts = question[mine], slot[mine], position[mine], facts[mine]
        slots = list(self.ledger.codes)
        ranked = sorted(range(len(slots)), key=lambda code: slot_order(slots[code]))
        rank = np.empty(len(slots), np.int64)
        rank[ranked] = np.arange(len(slots))
        order = np.lexsort((rank[slot], question))
        question, slot, position, facts = (
            question[order],
            slot[order],
            position[order],
            facts[order],
        )
        size = len(self.table.qids)
        first = starts_of(np.bincount(question, minlength=size))
        chosen = np.arange(len(question)) - first[question] < MOST_SLOTS
        keys = [
            (code, slots[number])
            for code, number in zip(question[chosen].tolist(), slot[chosen].tolist(), strict=True)
        ]
        spoken = Fact.ANSWER | Fact.REFUSED | Fact.ERRORED
        answered = ((facts[chosen] & int(spoken)) == int(Fact.ANSWER)).tolist()
        errored = ((facts[chosen] & int(Fact.ERRORED)) != 0).tolist()
        texts: dict[str, str] = {}
        found: dict[Key, Slot] = {}
        of = dict(zip(keys, zip(answered, errored, strict=True), strict=True))

        def note(key: Key, seen: Seen) -> None:
            found[key] = _slot(seen, *of[key], texts)

        looker.visit(_wanted(position[chosen].tolist(), keys), note)
        groups: dict[int, list[Slot]] = {}
        for key in keys:
            if key in found:
                groups.setdefault(key[0], []).append(found[key])
        found_values = compare(size, groups)
        found_values["compared"] = (picked | (counts <= 1)).astype(np.float64)
        return found_values, _compared_note(counts, picked)


def _compared_note(counts: Ints, picked: Bools) -> str | None:
    """What was left out of the comparison of slots, if anything was."""
    several = int(np.count_nonzero(counts > 1))
    widest = int(counts.max(initial=0))
    told = []
    if int(np.count_nonzero(picked)) < several:
        told.append(f"{np.count_nonzero(picked)} of {several} questions")
    if widest > MOST_SLOTS:
        told.append(f"the first {MOST_SLOTS} of up to {widest} slots of a question")
    if not told:
        return None
    return f"stability of citations, claims and order is taken from {' and '.join(told)}"


def _slot(seen: Seen, answered: bool, errored: bool, texts: dict[str, str]) -> Slot:
    """What is compared of a slot; equal texts are held once."""
    if errored:
        return Slot(frozenset(), None, ())
    claim = seen.said if answered else None
    return Slot(
        frozenset(texts.setdefault(each, each) for each in seen.citations),
        claim if claim is None else texts.setdefault(claim, claim),
        tuple(seen.ids[:10]),
    )


def _cited_places(seen: Seen) -> list[Place]:
    """What is cited; a citation that is only a place keeps its spans, one with an id needs none."""
    return [
        Place(each.id, (each.doc,) if each.doc else (), None, each.spans if each.placed else ())
        for each in seen.cited or tuple(Citation(each) for each in seen.citations)
    ]


def _not_among(cited: Sequence[Place], hits: Sequence[Place]) -> frozenset[str]:
    """The cited ids that no hit has, nor shares its place with."""
    ids = {hit.id for hit in hits}
    return frozenset(
        each.id
        for each in cited
        if each.id not in ids and not (each.spans and any(shares(each, hit) for hit in hits))
    )


def _talk(conversation: int, slot: SlotKey) -> tuple[int, object, object]:
    return conversation, slot[0], slot[1]


def _wanted(positions: Iterable[int], keys: Iterable[Key]) -> dict[int, dict[int, set[Key]]]:
    wanted: dict[int, dict[int, set[Key]]] = {}
    for position, key in zip(positions, keys, strict=True):
        lines = wanted.setdefault(position >> 32, {})
        lines.setdefault(position & 0xFFFFFFFF, set()).add(key)
    return wanted


Key = tuple[int, SlotKey]
"""A question and a slot of it."""


Wanted = Mapping[int, Mapping[int, Set[Key]]]
"""The slots wanted, by range and by line in the range."""


class Seen(NamedTuple):
    """What a second look needs of a row."""

    said: str | None
    citations: Sequence[str]
    ids: Sequence[str]
    hits: Sequence[Hit] = ()
    cited: Sequence[Citation] = ()
    errored: bool = False

    def places(self, detail: Detailer) -> list[Place]:
        """Where the hits lie, as far as it is known."""
        if not self.hits:
            return [detail.place_of_hit(Hit(each)) for each in self.ids]
        return [detail.place_of_hit(hit) for hit in self.hits]


class Looker:
    """Reads rows again; where a slot stands several times on a line, the last one is it."""

    def __init__(self, job: Job, traces: TraceRows) -> None:
        self.job = job
        self.reducer = RangeReducer(job)
        self.detail = self.reducer.reducer.detail
        self.traces = traces

    def find_ids(self, ids: frozenset[str]) -> set[str]:
        """Which of some ids any row has retrieved."""
        return self.traces.find_ids(self.job, ids)

    def visit(self, wanted: Wanted, take: Callable[[Key, Seen], None]) -> None:
        """Hand over what the slots wanted say, one by one."""
        found: set[Key] = set()
        for index in wanted:
            lines = wanted[index]
            for line, row in self.traces.rows(self.job, index):
                if line not in lines:
                    continue
                key, seen = self._look(row)
                if key is None or seen is None or key not in lines[line] or key in found:
                    continue
                found.add(key)
                take(key, seen)

    def _look(self, row: Trace | bytes) -> tuple[Key | None, Seen | None]:
        """The slot that a row fills, and what it says."""
        if not isinstance(row, Trace):
            fast = None if self.reducer.exact_only else self.reducer.try_decode(row)
            usual = None if fast is None else self.reducer.usual(fast)
            if fast is not None and usual is not None:
                key = self._key(fast.qid, usual.question, fast.paraphrase, fast.seed, fast.turn)
                return key, Seen(usual.said, usual.citations or (), usual.hits)
        trace = self._trace(row)
        if trace is None:
            return None, None
        key = self._key(trace.qid, trace.question, trace.paraphrase, trace.seed, trace.turn)
        given = trace.answer
        return key, Seen(
            given.said if given is not None else None,
            given.citations or () if given is not None else (),
            [hit.id for hit in trace.hits],
            trace.hits,
            given.cited if given is not None else (),
            errored=trace.error is not None,
        )

    def _trace(self, row: Trace | bytes) -> Trace | None:
        return row if isinstance(row, Trace) else self.reducer.read(row)

    def _key(
        self,
        qid: str | None,
        question: str | None,
        paraphrase: int | None,
        seed: int | str | None,
        turn: int | None,
    ) -> Key | None:
        code = self.reducer.find(qid, question, turn)
        if code is None:
            return None
        return code, (self.reducer.paraphrase(code, paraphrase, question), seed, turn)
