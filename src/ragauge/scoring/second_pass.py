"""The second pass: what can be said of a record only when all rows of the run are in.

A citation may be of a hit of an earlier turn, or of some other trace's hit; slots of one question
are compared with each other. The first pass keeps eight bytes for each such row, its range and its
line, and only those rows are read again: holding their texts would let memory grow with the file
(decision 0011). Records that depend on other rows wait meanwhile.
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
from ragauge.scoring.evidence_places import EvidencePlace, shares
from ragauge.scoring.gold_table import GoldTable
from ragauge.scoring.join import Records
from ragauge.scoring.slot_ledger import Ledger
from ragauge.scoring.slot_stability import (
    MOST_SLOTS,
    ComparedSlot,
    compare,
    drawing_order,
    slot_order,
    to_compare,
)
from ragauge.scoring.sums import count_into
from ragauge.scoring.tasks.job import Job, NamedHits
from ragauge.scoring.tasks.reduce import RangeReducer
from ragauge.scoring.trace_details import TraceDetails


class TraceRows(Protocol):
    """Traces that can be read again."""

    def rows(self, job: Job, index: int) -> Iterable[tuple[int, Trace | bytes]]:
        """The rows of the range of that index from the last to the first, each with its line."""
        ...

    def find_ids(self, job: Job, ids: frozenset[str]) -> set[str]:
        """Which of some ids were retrieved by any row."""
        ...

    def named_hits(self, job: Job, names: frozenset[str]) -> NamedHits:
        """What the hits and citations of all rows are known by; `names` are those of gold."""
        ...


RecordPlaces = tuple[Column, Column, Ints, Column]
"""Question, slot, position and facts of records."""


class SecondPass:
    """Remembers where scored records are in the file, and holds those that depend on others."""

    def __init__(
        self,
        table: GoldTable,
        ledger: Ledger,
        selected: Sequence[Selected],
        rules: JoinRules,
        *,
        absent_counts: bool,
    ) -> None:
        self.table = table
        self.ledger = ledger
        self.by_slot = rules.keep == "slot"
        self.resolves = self._resolves(table, selected)
        self.compares = self.by_slot and any(chosen.metric.reads_slots for chosen in selected)
        self.compares_claims = any(chosen.metric.reads_claims for chosen in selected)
        self.absent_counts = absent_counts
        self.counts = np.zeros(len(table.qids), np.int64)
        self.order = np.zeros(0, np.int64)
        if self.compares:
            called = [table.name(question) for question in range(len(table.qids))]
            self.order = drawing_order(called)
        self.turned = np.zeros(0, np.bool_)
        self.places: list[RecordPlaces] = []
        self.waiting: list[Records] = []

    @classmethod
    def needs_open_citations(
        cls, table: GoldTable, selected: Sequence[Selected], rules: JoinRules
    ) -> bool:
        """Whether the first pass must note which cited ids the row itself did not retrieve."""
        return rules.keep == "slot" or cls._resolves(table, selected)

    @staticmethod
    def _resolves(table: GoldTable, selected: Sequence[Selected]) -> bool:
        # A list of chunks says itself which ids exist; then no other row is asked.
        return not table.chunks and any(chosen.metric.reads_other_rows for chosen in selected)

    def add(self, records: Records) -> Records:
        """Hold the records that depend on other rows, and return the others."""
        facts = records.facts
        if self.by_slot:
            self._remember(records)
        if self.table.beside:  # of these only the hits matter, as the context of later turns
            records = records.take(records.question < self.table.measured, self.table.columns)
            facts = records.facts
        if not self.table.chunks:
            in_context = (facts & int(Fact.IN_CONTEXT)) != 0
            facts = np.where(in_context, facts | int(Fact.RESOLVED), facts).astype(np.int32)
            records = msgspec.structs.replace(records, facts=facts)
        # Nothing that another row says can change these.
        closed = Fact.IN_CONTEXT | Fact.ERRORED | Fact.ODD_CITATIONS
        waiting = ((facts & int(Fact.CITED)) != 0) & ((facts & int(closed)) == 0)
        if not self.resolves:
            waiting &= self._turned()[records.slot] if self.by_slot else False
        if not waiting.any():
            return records
        gold = self.table.columns
        self.waiting.append(records.take(waiting, gold))
        return records.take(~waiting, gold)

    def _remember(self, records: Records) -> None:
        """Remember the places of records that may have to be read again.

        A question that no longer fits into the comparison never will: counts only grow.
        """
        wanted = self._turned()[records.slot]
        if self.compares:
            measured = records.question < self.table.measured
            compared = measured
            if not self.absent_counts:
                compared = measured & ((records.facts & int(Fact.ERRORED)) == 0)
            count_into(self.counts, records.question[compared])
            fits = to_compare(self.counts, self.order) | (self.counts <= 1)
            wanted = wanted | (fits[records.question] & measured)
        if wanted.any():
            self.places.append(
                (
                    records.question[wanted].astype(np.int32),
                    records.slot[wanted].astype(np.int32),
                    records.position[wanted],
                    records.facts[wanted],
                )
            )

    def _turned(self) -> Bools:
        """Which slots have a turn, by their code; slots only ever come to the end."""
        count = len(self.turned)
        if count < len(self.ledger.codes):
            new = [key[2] is not None for key in islice(self.ledger.codes, count, None)]
            self.turned = np.concatenate([self.turned, np.array(new, np.bool_)])
        return self.turned if len(self.turned) else np.zeros(1, np.bool_)

    def resolve(self, reader: RereadRows | None) -> Iterator[Records]:
        """Read the rows of the waiting records again, and yield the records with their facts."""
        if not self.waiting or reader is None:
            return
        slots = list(self.ledger.codes) or [(None, None, None)]
        keys = [
            (question, slots[slot])
            for records in self.waiting
            for question, slot in zip(records.question.tolist(), records.slot.tolist(), strict=True)
        ]
        # By record: where every row is scored, several records share a question and a slot.
        lost = [
            frozenset(records.open.get(record, ()))
            for records in self.waiting
            for record in range(len(records.question))
        ]
        positions = np.concatenate([records.position for records in self.waiting]).tolist()
        talked = self._outside_conversation(reader, keys, positions, slots)
        lost = [talked.get(key, left) for key, left in zip(keys, lost, strict=True)]
        somewhere: set[str] = set()
        if self.resolves:
            open_ids = frozenset[str]().union(*lost)
            somewhere = reader.find_ids(open_ids)
        # `lost` has one entry for each record, through all batches.
        place = 0
        for records in self.waiting:
            facts = records.facts.copy()
            for i in range(len(facts)):
                if not lost[place]:
                    facts[i] |= int(Fact.IN_CONTEXT)
                if lost[place] <= somewhere and not self.table.chunks:
                    facts[i] |= int(Fact.RESOLVED)
                place += 1
            yield msgspec.structs.replace(records, facts=facts)
        self.waiting = []

    def _outside_conversation(
        self,
        reader: RereadRows,
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
        earlier = self._earlier_hits(reader, [key for key, _ in turned], slots)
        outside: dict[Key, frozenset[str]] = {}

        def note(key: Key, seen: RowContent) -> None:
            outside[key] = _not_among(
                _cited_places(seen), [*seen.places(reader.detail), *earlier.get(key, [])]
            )

        reader.visit(
            _wanted([position for _, position in turned], [key for key, _ in turned]), note
        )
        return outside

    def _earlier_hits(
        self, reader: RereadRows, keys: Sequence[Key], slots: Sequence[SlotKey]
    ) -> dict[Key, list[EvidencePlace]]:
        """What earlier turns of the same conversation retrieved, for slots with a turn."""
        turned = set(keys)
        talks = {_talk(self._conversation(question), slot) for question, slot in turned}
        question, slot, position, facts = self._all_places()
        fine = (facts & int(Fact.ERRORED)) == 0
        places: list[int] = []
        keys_found: list[Key] = []
        for code, number, where in zip(
            question[fine].tolist(), slot[fine].tolist(), position[fine].tolist(), strict=True
        ):
            key = slots[number]
            if key[2] is not None and _talk(self._conversation(code), key) in talks:
                places.append(where)
                keys_found.append((code, key))
        by_talk: dict[tuple[int, object, object], list[tuple[int, list[EvidencePlace]]]] = {}

        def note(key: Key, seen: RowContent) -> None:
            turn = key[1][2]
            assert turn is not None
            talk = _talk(self._conversation(key[0]), key[1])
            by_talk.setdefault(talk, []).append((turn, seen.places(reader.detail)))

        reader.visit(_wanted(places, keys_found), note)
        hits: dict[Key, list[EvidencePlace]] = {}
        for key in turned:
            turn = key[1][2]
            assert turn is not None
            before = by_talk.get(_talk(self._conversation(key[0]), key[1]), [])
            hits[key] = [place for earlier, places in before if earlier < turn for place in places]
        return hits

    def _all_places(self) -> RecordPlaces:
        parts = [np.concatenate(part) for part in zip(*self.places, strict=True)]
        return parts[0], parts[1], parts[2], parts[3]

    def _conversation(self, question: int) -> int:
        cluster = self.table.cluster
        return question if cluster is None else int(cluster[question])

    def compare(self, reader: RereadRows | None) -> tuple[dict[str, Floats], str | None]:
        """What comparing the slots of each question gives, and a note where not all were."""
        if not self.compares or not self.places or reader is None:
            return {}, None
        counts = self.counts
        picked = to_compare(counts, self.order)
        question, slot, position, facts = self._all_places()
        mine = picked[question]
        if not self.absent_counts:
            mine &= (facts & int(Fact.ERRORED)) == 0
        question, slot, position, facts = question[mine], slot[mine], position[mine], facts[mine]
        slots = list(self.ledger.codes)
        # By paraphrase, seed and turn, never by file: with more than MOST_SLOTS slots the order
        # decides which of them are compared.
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
        texts: dict[str, str] = {}  # slots of a question mostly cite and say the same
        slot_of: dict[Key, ComparedSlot] = {}
        of = dict(zip(keys, zip(answered, errored, strict=True), strict=True))

        def note(key: Key, seen: RowContent) -> None:
            slot_of[key] = _slot(seen, *of[key], texts)

        reader.visit(_wanted(position[chosen].tolist(), keys), note)
        groups: dict[int, list[ComparedSlot]] = {}
        for key in keys:
            if key in slot_of:
                groups.setdefault(key[0], []).append(slot_of[key])
        found_values = compare(size, groups, claims_too=self.compares_claims)
        found_values["compared"] = (picked | (counts <= 1)).astype(np.float64)
        return found_values, _compared_note(counts, picked)


def _compared_note(counts: Ints, picked: Bools) -> str | None:
    """What was excluded from the comparison of slots, if anything was."""
    several = int(np.count_nonzero(counts > 1))
    widest = int(counts.max(initial=0))
    parts = []
    if int(np.count_nonzero(picked)) < several:
        parts.append(f"{np.count_nonzero(picked)} of {several} questions")
    if widest > MOST_SLOTS:
        parts.append(f"the first {MOST_SLOTS} of up to {widest} slots of a question")
    if not parts:
        return None
    return f"stability of citations, claims and order is taken from {' and '.join(parts)}"


def _slot(seen: RowContent, answered: bool, errored: bool, texts: dict[str, str]) -> ComparedSlot:
    """What is compared of a slot; equal texts are held once."""
    if errored:
        return ComparedSlot(frozenset(), None, ())
    claim = seen.said if answered else None
    return ComparedSlot(
        frozenset(texts.setdefault(name, name) for name in seen.citations),
        claim if claim is None else texts.setdefault(claim, claim),
        tuple(seen.ids[:10]),
    )


def _cited_places(seen: RowContent) -> list[EvidencePlace]:
    """What is cited; a citation that is only a place keeps its spans, one with an id needs none."""
    return [
        EvidencePlace(
            citation.id,
            (citation.doc,) if citation.doc else (),
            None,
            citation.spans if citation.placed else (),
        )
        for citation in seen.cited or tuple(Citation(name) for name in seen.citations)
    ]


def _not_among(cited: Sequence[EvidencePlace], hits: Sequence[EvidencePlace]) -> frozenset[str]:
    """The cited ids that no hit has, nor shares its place with."""
    ids = {hit.id for hit in hits}
    return frozenset(
        place.id
        for place in cited
        if place.id not in ids and not (place.spans and any(shares(place, hit) for hit in hits))
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


WantedSlots = Mapping[int, Mapping[int, Set[Key]]]
"""The slots wanted, by range and by line in the range."""


class RowContent(NamedTuple):
    """What the second pass needs of a row."""

    said: str | None
    citations: Sequence[str]
    ids: Sequence[str]
    hits: Sequence[Hit] = ()
    cited: Sequence[Citation] = ()

    def places(self, detail: TraceDetails) -> list[EvidencePlace]:
        """Where the hits lie, as far as it is known."""
        if not self.hits:
            return [detail.place_of_hit(Hit(name)) for name in self.ids]
        return [detail.place_of_hit(hit) for hit in self.hits]


class RereadRows:
    """Reads rows again. Where a slot is on a line several times, the last one counts."""

    def __init__(self, job: Job, traces: TraceRows) -> None:
        self.job = job
        self.reducer = RangeReducer(job)
        self.detail = self.reducer.reducer.detail
        self.traces = traces

    def find_ids(self, ids: frozenset[str]) -> set[str]:
        """Which of some ids any row has retrieved."""
        return self.traces.find_ids(self.job, ids)

    def named_hits(self, names: frozenset[str]) -> NamedHits:
        """What the hits and citations of all rows are known by; `names` are those of gold."""
        return self.traces.named_hits(self.job, names)

    def visit(self, wanted: WantedSlots, take: Callable[[Key, RowContent], None]) -> None:
        """Call `take` with the content of each of the slots wanted."""
        visited: set[Key] = set()
        for index in wanted:
            lines = wanted[index]
            for line, row in self.traces.rows(self.job, index):
                if line not in lines:
                    continue
                key, seen = self._content(row)
                if key is None or seen is None or key not in lines[line] or key in visited:
                    continue
                visited.add(key)
                take(key, seen)

    def _content(self, row: Trace | bytes) -> tuple[Key | None, RowContent | None]:
        """The slot that a row fills, and its content."""
        if not isinstance(row, Trace):
            fast = None if self.reducer.exact_only else self.reducer.try_decode(row)
            usual = None if fast is None else self.reducer.usual(fast)
            if fast is not None and usual is not None:
                key = self._key(fast.qid, usual.question, fast.paraphrase, fast.seed, fast.turn)
                return key, RowContent(usual.said, usual.citations or (), usual.hits)
        trace = self._trace(row)
        if trace is None:
            return None, None
        key = self._key(trace.qid, trace.question, trace.paraphrase, trace.seed, trace.turn)
        answer = trace.answer
        return key, RowContent(
            answer.said if answer is not None else None,
            answer.citations or () if answer is not None else (),
            [hit.id for hit in trace.hits],
            trace.hits,
            answer.cited if answer is not None else (),
        )

    def _trace(self, row: Trace | bytes) -> Trace | None:
        return self.reducer.placed(row) if isinstance(row, Trace) else self.reducer.read(row)

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
