"""Agreement of two runs: do they retrieve the same, in the same order, and cite the same?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ragauge.ids import parts_of
from ragauge.model.agreement import Agreed, Agreement, By, Differing
from ragauge.model.chunk import Chunk
from ragauge.model.trace import Trace
from ragauge.spans import Span, shared
from ragauge.stats import exact_sums
from ragauge.stats.kendall import tau_of_lists
from ragauge.stats.rank_biased_overlap import rank_biased_overlap

DEPTH = 100
"""Hits of a slot that are compared; what follows has no weight."""

SlotName = tuple[str, int | None, str | None, int | None]
"""Question, paraphrase, seed and turn."""


class Spot(NamedTuple):
    """A hit or citation: its id, and where it lies as far as that is known."""

    id: str
    docs: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()


Question = tuple[str, int | None]
"""Id and turn: a turn of a conversation is a question of its own."""


class Shown(NamedTuple):
    """What one slot retrieved and cited; `cites` is None where nothing was answered.

    Hits are as they were given: one that repeats an id keeps its rank, and lies where the first
    of that id does.
    """

    hits: tuple[Spot, ...]
    cites: tuple[Spot, ...] | None


def shown(trace: Trace, chunks: Mapping[str, Chunk]) -> Shown:
    """What of a trace is compared; a citation lies where it says, or where its hit does."""
    hits: dict[str, Spot] = {}
    for hit in trace.hits[:DEPTH]:
        if hit.id not in hits:
            docs = tuple(each for each in (hit.doc, hit.path) if each is not None)
            hits[hit.id] = _spot(hit.id, docs, hit.spans, chunks)
    ranked = tuple(hits[hit.id] for hit in trace.hits[:DEPTH])
    answer = trace.answer
    if answer is None:
        return Shown(ranked, None)
    cites: dict[str, Spot] = {}
    for each in answer.listed:
        same = hits.get(each.id)
        docs = (each.doc,) if each.doc is not None else same.docs if same is not None else ()
        spans = each.spans or (same.spans if same is not None else ())
        cites.setdefault(each.id, _spot(each.id, docs, spans, chunks))
    return Shown(ranked, tuple(cites.values()))


def _spot(
    name: str, docs: tuple[str, ...], spans: tuple[Span, ...], chunks: Mapping[str, Chunk]
) -> Spot:
    chunk = chunks.get(name)
    if chunk is not None:
        return Spot(name, docs or (chunk.doc,), spans or chunk.spans)
    if not docs and (doc := parts_of(name).doc) is not None:
        docs = (doc,)
    return Spot(name, docs, spans)


def agree(a: Mapping[SlotName, Shown], b: Mapping[SlotName, Shown], by: By) -> Agreement:
    """Compare two runs slot by slot; the figures are means over questions."""
    both = sorted(a.keys() & b.keys(), key=_order)
    citing: dict[Question, list[float]] = {}
    overlaps: dict[Question, list[float]] = {}
    taus: dict[Question, list[float]] = {}
    differing = []
    for name in both:
        one, other = a[name], b[name]
        question = name[0], name[3]
        first = [each.id for each in one.hits]
        second = renamed(one.hits, other.hits, by)
        _add(overlaps, question, rank_biased_overlap(first, second))
        _add(taus, question, tau_of_lists(first, second))
        if one.cites or other.cites:
            found = _differing(name, one.cites or (), other.cites or (), by)
            _add(citing, question, 0.0 if found is not None else 1.0)
            differing += [] if found is None else [found]
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


def renamed(one: Sequence[Spot], other: Sequence[Spot], by: By) -> list[str]:
    """The names of the other side, with the names of this side where they mean the same.

    By place, each id is paired with at most one: those that share most text first.
    """
    if by == "id":
        return [each.id for each in other]
    mine, theirs = _unique(one), _unique(other)
    ids = {each.id for each in mine}
    # A name that this side uses for something else must not look the same.
    names = {each.id: f"{each.id}\0" if each.id in ids else each.id for each in theirs}
    names |= {theirs[j].id: mine[i].id for i, j in paired(mine, theirs)}
    return [names[each.id] for each in other]


def _unique(spots: Sequence[Spot]) -> list[Spot]:
    """Each id once, as it came first."""
    found: dict[str, Spot] = {}
    for each in spots:
        found.setdefault(each.id, each)
    return list(found.values())


def paired(one: Sequence[Spot], other: Sequence[Spot]) -> list[tuple[int, int]]:
    """Pairs of places that share half of the shorter; ids count where neither side has a place."""
    found = []
    for i, first in enumerate(one):
        for j, second in enumerate(other):
            common = _common(first, second)
            if common:
                found.append((-common, i + j, i, j))
    taken: tuple[set[int], set[int]] = (set(), set())
    pairs = []
    for _, _, i, j in sorted(found):
        if i not in taken[0] and j not in taken[1]:
            taken[0].add(i)
            taken[1].add(j)
            pairs.append((i, j))
    return sorted(pairs)


def _common(one: Spot, other: Spot) -> int:
    """How much text two places share, 0 where it is less than half of the shorter."""
    if not one.spans and not other.spans:
        return int(one.id == other.id)
    if not set(one.docs) & set(other.docs):
        return 0
    common, shorter = shared(one.spans, other.spans)
    return common if shorter and 2 * common >= shorter else 0


def _differing(
    name: SlotName, one: Sequence[Spot], other: Sequence[Spot], by: By
) -> Differing | None:
    """How the citations of a slot differ, None if they do not.

    By id, what has another id may still be the same text: that is a replacement.
    """
    mine = {each.id for each in one}
    if mine == set(renamed(one, other, by)):
        return None
    rest_one, rest_other = list(one), list(other)
    if by == "id":
        theirs = {each.id for each in other}
        rest_one = [each for each in one if each.id not in theirs]
        rest_other = [each for each in other if each.id not in mine]
    pairs = [
        (i, j)
        for i, j in paired(rest_one, rest_other)
        if rest_one[i].spans or rest_one[i].id == rest_other[j].id
    ]
    left, right = {i for i, _ in pairs}, {j for _, j in pairs}
    return Differing(
        qid=name[0],
        paraphrase=name[1],
        seed=name[2],
        turn=name[3],
        replaced=tuple(
            (rest_one[i].id, rest_other[j].id)
            for i, j in pairs
            if rest_one[i].id != rest_other[j].id
        ),
        lost=tuple(each.id for i, each in enumerate(rest_one) if i not in left),
        gained=tuple(each.id for j, each in enumerate(rest_other) if j not in right),
    )


def _add(values: dict[Question, list[float]], name: Question, value: float | None) -> None:
    if value is not None:
        values.setdefault(name, []).append(value)


def _agreed(values: Mapping[Question, Sequence[float]]) -> Agreed:
    means: Iterable[float | None] = (exact_sums.mean(np.array(each)) for each in values.values())
    known = np.array([each for each in means if each is not None], np.float64)
    return Agreed(
        value=exact_sums.mean(known),
        questions=len(known),
        slots=sum(len(each) for each in values.values()),
    )


def _order(name: SlotName) -> tuple[str, int, int, str]:
    qid, paraphrase, seed, turn = name
    return (qid, -1 if turn is None else turn, -1 if paraphrase is None else paraphrase, seed or "")
