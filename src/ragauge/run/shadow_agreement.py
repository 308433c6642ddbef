"""How far two runs agree: do they retrieve the same, in the same order, and cite the same?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ragauge.ids import parts_of
from ragauge.model.agreement import Agreement, AgreementFigure, By, DifferingSlot
from ragauge.model.chunk import Chunk
from ragauge.model.trace import Trace
from ragauge.spans import Span, shared
from ragauge.stats import exact_sums
from ragauge.stats.kendall import tau_of_lists
from ragauge.stats.rank_biased_overlap import rank_biased_overlap

DEPTH = 100
"""Hits of a slot that are compared; what follows has no weight."""

SlotKey = tuple[str, int | None, str | None, int | None]
"""Question, paraphrase, seed and turn."""


class ItemLocation(NamedTuple):
    """A hit or citation: its id, and its documents and spans as far as they are known."""

    id: str
    docs: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()


QuestionKey = tuple[str, int | None]
"""Id and turn: a turn of a conversation is a question of its own."""


class SlotContent(NamedTuple):
    """What one slot retrieved and cited; `cites` is None where nothing was answered.

    Hits are as they were given: one that repeats an id keeps its rank, and lies where the first
    of that id does.
    """

    hits: tuple[ItemLocation, ...]
    cites: tuple[ItemLocation, ...] | None


def slot_content(trace: Trace, chunks: Mapping[str, Chunk]) -> SlotContent:
    """What of a trace is compared; a citation lies where it says, or where its hit does."""
    hits: dict[str, ItemLocation] = {}
    for hit in trace.hits[:DEPTH]:
        if hit.id not in hits:
            docs = tuple(doc for doc in (hit.doc, hit.path) if doc is not None)
            hits[hit.id] = _location(hit.id, docs, hit.spans, chunks)
    ranked = tuple(hits[hit.id] for hit in trace.hits[:DEPTH])
    answer = trace.answer
    if answer is None:
        return SlotContent(ranked, None)
    cites: dict[str, ItemLocation] = {}
    for citation in answer.listed:
        hit_location = hits.get(citation.id, ItemLocation(citation.id))
        docs = hit_location.docs if citation.doc is None else (citation.doc,)
        spans = citation.spans or hit_location.spans
        cites.setdefault(citation.id, _location(citation.id, docs, spans, chunks))
    return SlotContent(ranked, tuple(cites.values()))


def _location(
    name: str, docs: tuple[str, ...], spans: tuple[Span, ...], chunks: Mapping[str, Chunk]
) -> ItemLocation:
    chunk = chunks.get(name)
    if chunk is not None:
        return ItemLocation(name, docs or (chunk.doc,), spans or chunk.spans)
    if not docs and (doc := parts_of(name).doc) is not None:
        docs = (doc,)
    return ItemLocation(name, docs, spans)


def agree(a: Mapping[SlotKey, SlotContent], b: Mapping[SlotKey, SlotContent], by: By) -> Agreement:
    """Compare two runs slot by slot; the figures are means over questions."""
    both = sorted(a.keys() & b.keys(), key=_order)
    citing: dict[QuestionKey, list[float]] = {}
    overlaps: dict[QuestionKey, list[float]] = {}
    taus: dict[QuestionKey, list[float]] = {}
    differing = []
    for key in both:
        one, other = a[key], b[key]
        question = key[0], key[3]
        first = [hit.id for hit in one.hits]
        second = renamed(one.hits, other.hits, by)
        _add(overlaps, question, rank_biased_overlap(first, second))
        _add(taus, question, tau_of_lists(first, second))
        if one.cites or other.cites:
            difference = _differing(key, one.cites or (), other.cites or (), by)
            _add(citing, question, 0.0 if difference is not None else 1.0)
            differing += [] if difference is None else [difference]
    return Agreement(
        by=by,
        slots=len(both),
        only_a=len(a.keys() - b.keys()),
        only_b=len(b.keys() - a.keys()),
        citations=_agreed(citing),
        rbo=_agreed(overlaps),
        tau=_agreed(taus),
        differing=tuple(differing),
    )


def renamed(one: Sequence[ItemLocation], other: Sequence[ItemLocation], by: By) -> list[str]:
    """The names of the other side, with the names of this side where they mean the same.

    By place, each id is paired with at most one: those that share most text first.
    """
    if by == "id":
        return [item.id for item in other]
    mine, theirs = _unique(one), _unique(other)
    ids = {item.id for item in mine}
    # A name that this side uses for something else must not look the same.
    names = {item.id: f"{item.id}\0" if item.id in ids else item.id for item in theirs}
    names |= {theirs[j].id: mine[i].id for i, j in paired(mine, theirs)}
    return [names[item.id] for item in other]


def _unique(items: Sequence[ItemLocation]) -> list[ItemLocation]:
    """Each id once, as it came first."""
    by_id: dict[str, ItemLocation] = {}
    for item in items:
        by_id.setdefault(item.id, item)
    return list(by_id.values())


def paired(one: Sequence[ItemLocation], other: Sequence[ItemLocation]) -> list[tuple[int, int]]:
    """Pairs of places that share half of the shorter; ids count where neither side has a place."""
    candidates = []
    for i, first in enumerate(one):
        for j, second in enumerate(other):
            common = _common(first, second)
            if common:
                candidates.append((-common, i + j, i, j))
    taken: tuple[set[int], set[int]] = (set(), set())
    pairs = []
    # Most shared text first; among equals the pair that is nearest to the top of both lists.
    for _, _, i, j in sorted(candidates):
        if i not in taken[0] and j not in taken[1]:
            taken[0].add(i)
            taken[1].add(j)
            pairs.append((i, j))
    return sorted(pairs)


def _common(one: ItemLocation, other: ItemLocation) -> int:
    """How much text two places share, 0 where it is less than half of the shorter."""
    if not one.spans and not other.spans:
        return int(one.id == other.id)
    if not set(one.docs) & set(other.docs):
        return 0
    common, shorter = shared(one.spans, other.spans)
    return common if shorter and 2 * common >= shorter else 0


def _differing(
    key: SlotKey, one: Sequence[ItemLocation], other: Sequence[ItemLocation], by: By
) -> DifferingSlot | None:
    """How the citations of a slot differ, None if they do not.

    By id, what has another id may still be the same text: that is a replacement.
    """
    mine = {item.id for item in one}
    if mine == set(renamed(one, other, by)):
        return None
    rest_one, rest_other = list(one), list(other)
    if by == "id":
        theirs = {item.id for item in other}
        rest_one = [item for item in one if item.id not in theirs]
        rest_other = [item for item in other if item.id not in mine]
    pairs = [
        (i, j)
        for i, j in paired(rest_one, rest_other)
        if rest_one[i].spans or rest_one[i].id == rest_other[j].id
    ]
    left, right = {i for i, _ in pairs}, {j for _, j in pairs}
    return DifferingSlot(
        qid=key[0],
        paraphrase=key[1],
        seed=key[2],
        turn=key[3],
        replaced=tuple(
            (rest_one[i].id, rest_other[j].id)
            for i, j in pairs
            if rest_one[i].id != rest_other[j].id
        ),
        lost=tuple(item.id for i, item in enumerate(rest_one) if i not in left),
        gained=tuple(item.id for j, item in enumerate(rest_other) if j not in right),
    )


def _add(values: dict[QuestionKey, list[float]], key: QuestionKey, value: float | None) -> None:
    if value is not None:
        values.setdefault(key, []).append(value)


def _agreed(values: Mapping[QuestionKey, Sequence[float]]) -> AgreementFigure:
    means: Iterable[float | None] = (exact_sums.mean(np.array(slots)) for slots in values.values())
    questions = np.array([mean for mean in means if mean is not None], np.float64)
    return AgreementFigure(
        value=exact_sums.mean(questions),
        questions=len(questions),
        slots=sum(len(slots) for slots in values.values()),
    )


def _order(key: SlotKey) -> tuple[str, int, int, str]:
    qid, paraphrase, seed, turn = key
    return (qid, -1 if turn is None else turn, -1 if paraphrase is None else paraphrase, seed or "")
