"""What the hits of a run show beyond its metrics: how many, how long, in which order, of what.

Rules about an index need it: whether near text comes first, whether chunks became shorter, which
documents never appear, and whether two calls with the same wording agree. Traces are read once
more, one at a time; of a large run those of some questions, drawn by a hash of their ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from ragauge.metrics.columns import Floats
from ragauge.model.payloads import UNREADABLE, thaw, trace_of
from ragauge.model.run import ResultFacts
from ragauge.model.scores import Scores
from ragauge.model.trace import Hit, Trace
from ragauge.scoring.identify import EvidenceIdentifier, WantedEvidence, is_evidence
from ragauge.scoring.slot_stability import ComparedSlot, compare, drawing_order
from ragauge.spans import shared

MOST = 2_000
"""Questions whose hits are looked at. The rules are about an index, which shows in fewer."""
TOP = 5
DEEP = 20


class SeenChunk(NamedTuple):
    """A chunk as hits show it; `start` and `text` are None where they do not."""

    start: int | None
    size: int
    text: bytes | None


class HitFacts(Struct, frozen=True, kw_only=True):
    """One number a question where nothing else is said, nan where there is none.

    count           hits of a list, the mean over its lists
    nearness        Kendall's tau of rank and ΔS in a list: 1, the nearest first; -1, the farthest
    falling         the same of rank and score: 1, the highest first; -1, the lowest
    length          bytes of the first five hits, the median
    highest         the highest score
    covered         of evidence that was found by its id, the share that the hit holds
    tau, citations, claims, flips
                    order, citations, wording and outcome of calls with one wording and several
                    seeds: agreement for the first two, distance and 0 or 1 for the others
    wanted_docs     the documents that each question expects
    lists           how many lists were read; `longest` is the longest one
    docs            in how many lists each document appears
    chunks          where each chunk begins, how long it is, and a hash of its text
    metrics         by what the index says that it compares
    """

    count: Floats
    nearness: Floats
    falling: Floats
    length: Floats
    highest: Floats
    covered: Floats
    tau: Floats
    citations: Floats
    claims: Floats
    flips: Floats
    wanted_docs: Sequence[frozenset[str]]
    chunks_of: Sequence[frozenset[str]]
    lists: int
    longest: int
    docs: Mapping[str, int]
    chunks: Mapping[str, SeenChunk]
    metrics: frozenset[str]

    def shorter_than(self, before: HitFacts, share: float) -> tuple[frozenset[str], int]:
        """The chunks that begin where they did and have less than this share, and of how many."""
        common = [name for name in self.chunks if name in before.chunks]
        cut = frozenset(
            name
            for name in common
            if self.chunks[name].start == before.chunks[name].start
            and self.chunks[name].size < share * before.chunks[name].size
        )
        return cut, len(common)

    def is_same_chunking(self, before: HitFacts) -> bool:
        """Whether most chunks have the ids that they had, and still begin with the same text.

        Where an id is a number in a document, another chunking has the same ids for other texts.
        """
        common = [name for name in self.chunks if name in before.chunks]
        pairs = [(self.chunks[name], before.chunks[name]) for name in common]
        alike = sum(one.start == other.start or one.text == other.text for one, other in pairs)
        return 2 * alike >= len(self.chunks) > 0


class _SlotHits(Struct, frozen=True, kw_only=True):
    """What is remembered of one list of hits and the answer to it."""

    wording: int | str | None
    seed: str | None
    count: int
    nearness: float
    falling: float
    length: float
    highest: float
    covered: float
    outcome: bool | None
    docs: frozenset[str]
    compared: ComparedSlot


def read_hit_facts(
    rows: Iterable[tuple[ResultFacts, bytes]], identifier: EvidenceIdentifier, scores: Scores
) -> HitFacts:
    """Read the traces of a run again, as they are stored; the last of each slot counts."""
    values = scores.per_question
    assert values is not None
    keys = list(zip(values.qids, values.turns, strict=True))
    order = drawing_order([f"{qid}\0{turn}" for qid, turn in keys])
    drawn = {keys[place]: place for place in order[:MOST].tolist()}
    slots: dict[int, dict[tuple[int | str | None, str | None, int | None], _SlotHits]] = {}
    chunks: dict[str, SeenChunk] = {}
    metrics: set[str] = set()
    wanted: dict[int, WantedEvidence] = {}
    for facts, payload in rows:
        place = drawn.get((facts.query_id, facts.turn), drawn.get((facts.query_id, None)))
        if place is None or facts.outcome != "ok":
            continue
        question = identifier.number(facts.query_id, facts.turn)
        if question is None:
            continue
        try:
            trace = trace_of(thaw(payload))
        except UNREADABLE:
            continue
        if place not in wanted:
            wanted[place] = identifier.wanted(question)
        wording = facts.paraphrase if facts.paraphrase is not None else trace.question
        slot = _slot_hits(trace, wording, facts.seed, identifier, wanted[place])
        slots.setdefault(place, {})[wording, facts.seed, facts.turn] = slot
        for hit in trace.hits:
            if hit.id not in chunks and (size := _size(hit)) is not None:
                start = hit.spans[0].start if hit.spans else None
                chunks[hit.id] = SeenChunk(start, size, _digest(hit.text))
        metrics |= {trace.index["metric"].lower()} if "metric" in trace.index else set()
    groups = {place: list(of_question.values()) for place, of_question in slots.items()}
    return _facts(groups, wanted, chunks, frozenset(metrics), len(keys))


def _facts(
    groups: Mapping[int, Sequence[_SlotHits]],
    wanted: Mapping[int, WantedEvidence],
    chunks: Mapping[str, SeenChunk],
    metrics: frozenset[str],
    size: int,
) -> HitFacts:
    columns = {
        name: np.full(size, np.nan)
        for name in ("count", "nearness", "falling", "length", "highest", "covered", "flips")
    }
    docs: Counter[str] = Counter()
    chunks_of: list[frozenset[str]] = [frozenset()] * size
    for place, group in groups.items():
        for name in ("count", "nearness", "falling", "length", "highest"):
            columns[name][place] = _mean([getattr(slot, name) for slot in group])
        covered = [slot.covered for slot in group if not np.isnan(slot.covered)]
        columns["covered"][place] = min(covered, default=np.nan)
        columns["flips"][place] = _flips(group)
        chunks_of[place] = frozenset(name for slot in group for name in slot.compared.hits)
        for slot in group:
            docs.update(slot.docs)
    wanted_docs = [
        frozenset(wanted[place].docs) if place in wanted else frozenset() for place in range(size)
    ]
    return HitFacts(
        **columns,
        **_seeds_compared(groups, size),
        wanted_docs=wanted_docs,
        chunks_of=chunks_of,
        lists=sum(map(len, groups.values())),
        longest=max((slot.count for group in groups.values() for slot in group), default=0),
        docs=docs,
        chunks=chunks,
        metrics=metrics,
    )


def _by_wording(group: Sequence[_SlotHits]) -> list[list[_SlotHits]]:
    """The slots that differ in nothing but their seed."""
    wordings: dict[int | str | None, list[_SlotHits]] = {}
    for slot in group:
        wordings.setdefault(slot.wording, []).append(slot)
    return [slots for slots in wordings.values() if len(slots) > 1]


def _seeds_compared(groups: Mapping[int, Sequence[_SlotHits]], size: int) -> dict[str, Floats]:
    """How alike calls with one wording are; a question has the mean over its wordings."""
    owners: list[int] = []
    slots: dict[int, list[ComparedSlot]] = {}
    for place, group in groups.items():
        for same in _by_wording(group):
            slots[len(owners)] = [slot.compared for slot in same]
            owners.append(place)
    compared = compare(len(owners), slots)
    names = {"tau": "rank_tau", "citations": "citation_jaccard", "claims": "claim_distance"}
    columns = {}
    for name, source in names.items():
        by_place: dict[int, list[float]] = {}
        for owner, value in zip(owners, compared[source].tolist(), strict=True):
            by_place.setdefault(owner, []).append(value)
        columns[name] = np.full(size, np.nan)
        for place, of_wordings in by_place.items():
            columns[name][place] = _mean(of_wordings)
    return columns


def _flips(group: Sequence[_SlotHits]) -> float:
    """1 if some wording hits with one seed and not with another."""
    outcomes = [{slot.outcome for slot in same} - {None} for same in _by_wording(group)]
    if not any(outcomes):
        return float("nan")
    return float(any(len(of_wording) > 1 for of_wording in outcomes))


def _mean(values: Sequence[float]) -> float:
    numbers = [value for value in values if not np.isnan(value)]
    return float(np.sum(np.sort(np.array(numbers)))) / len(numbers) if numbers else float("nan")


def _slot_hits(
    trace: Trace,
    wording: int | str | None,
    seed: str | None,
    identifier: EvidenceIdentifier,
    wanted: WantedEvidence,
) -> _SlotHits:
    hits, answer = trace.hits, trace.answer
    sizes = [size for hit in hits[:TOP] if (size := _size(hit)) is not None]
    hit_scores = [hit.score for hit in hits if hit.score is not None]
    places = identifier.places(wanted, hits)
    docs = {doc for place in places if place is not None for doc in place.stated}
    docs |= {hit.doc for hit in hits if hit.doc is not None}
    outcome = None
    if wanted.chunks:
        marks = identifier.hit_marks(wanted, hits, places)[:TOP]
        if answer is not None:
            marks = identifier.cited_marks(wanted, identifier.cited(wanted, trace, places)[0])
        outcome = any("gold" in mine for mine in marks)
        if not outcome and any("possible" in mine for mine in marks):
            outcome = None  # where in the chunk the evidence stands decides
    elif wanted.ids or wanted.anchors:
        cited, _ = identifier.cited(wanted, trace, places)
        outcome = any(place.id in wanted.ids or is_evidence(wanted, place) for place in cited)
        if answer is None:
            outcome = any(rank <= TOP for rank in _evidence_ranks(wanted, hits))
    return _SlotHits(
        wording=wording,
        seed=seed,
        count=len(hits),
        nearness=_tau([hit.delta_s for hit in hits[:DEEP]]),
        falling=-_tau([hit.score for hit in hits[:DEEP]]),
        length=float(np.median(sizes)) if sizes else float("nan"),
        highest=max(map(abs, hit_scores), default=float("nan")),
        covered=_covered(wanted, hits),
        outcome=outcome,
        docs=frozenset(docs),
        compared=ComparedSlot(
            citations=frozenset(() if answer is None else answer.citations or ()),
            claim=None if answer is None else answer.said,
            hits=tuple(hit.id for hit in hits),
        ),
    )


def _evidence_ranks(wanted: WantedEvidence, hits: Sequence[Hit]) -> list[int]:
    return [rank for rank, hit in enumerate(hits, 1) if hit.id in wanted.ids]


def _size(hit: Hit) -> int | None:
    """The bytes of a hit: of its text or of its place, the smaller where both are known."""
    sizes = []
    if hit.spans:
        sizes.append(sum(span.length for span in hit.spans))
    if hit.text is not None and not hit.snippet:
        sizes.append(len(hit.text.encode("utf-8", "surrogatepass")))
    return min(sizes, default=None)


def _digest(text: str | None) -> bytes | None:
    if text is None:
        return None
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _covered(wanted: WantedEvidence, hits: Sequence[Hit]) -> float:
    """Of the evidence that a hit names by its id, the smallest share that the hit holds."""
    anchors = (*wanted.anchors, *(chunk.anchor for chunk in wanted.chunks))
    places = {anchor.id: anchor.spans for anchor in anchors if anchor.id and anchor.spans}
    shares = []
    for hit in hits:
        spans = places.get(hit.id)
        size = _size(hit)
        if spans is None or size is None or not hit.spans:
            continue
        whole = sum(span.length for span in spans)
        common = shared(spans, hit.spans)[0]
        # Offsets that moved lie beside the evidence; that is no cut, and has a rule of its own.
        if whole and common:
            shares.append(min(1.0, size / whole))
    return min(shares, default=float("nan"))


def _tau(values: Sequence[float | None]) -> float:
    """Kendall's tau-a of the ranks and the values that are there; nan below five."""
    numbers = np.array([value for value in values if value is not None], np.float64)
    n = len(numbers)
    if n < TOP:
        return float("nan")
    signs = np.sign(numbers[None, :] - numbers[:, None])[np.triu_indices(n, 1)]
    return float(signs.sum()) / (n * (n - 1) / 2)
