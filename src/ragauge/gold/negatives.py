"""Hard negatives: blocks near the evidence, or worded like the question, that are not evidence.

Two lists are taken in turn, of the blocks in the same document that are near. `section`: by the
distance of their sections, then by their words. `words`: by BM25 with the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.corpus.bm25 import Bm25Index, words_of
from ragauge.corpus.chunk_list import read_chunk_list
from ragauge.corpus.lookup import CorpusSpot, Lookup, open_corpus
from ragauge.errors import MAX_REPORTED, Problem, RagaugeError
from ragauge.files.atomic_write import write_atomically
from ragauge.files.fields import FieldError
from ragauge.formats.gold_files import comments_lost, form_of, read_items, without_draft, written
from ragauge.gold.lock import Lock
from ragauge.gold.pin import Pinner, frozen_texts
from ragauge.ids import distance, split_section
from ragauge.model.corpus import Block
from ragauge.model.gold import GoldItem
from ragauge.quotes import normalised

Reason = Literal["section", "words"]
FARTHEST = 4
"""Edges in the title tree to the farthest section that is near; `gold lint` warns beyond it.

As far as a cousin section: up to the parent of the parent and down again, as from S.4.2 to S.1.3.
"""

_EXTRA_ORDERED = 64
"""How many more candidates than are asked for are ordered at first."""


class Negative(Struct, frozen=True, kw_only=True):
    """A suggested negative: which list it is from, and the numbers that put it there.

    `distance` counts the edges between its section and the nearest one of the evidence; None in
    another document. `score` is BM25 with the question.
    """

    id: str
    reason: Reason
    distance: int | None
    score: float
    spot: CorpusSpot


class Suggester:
    """Suggests negatives from a corpus; the index over its blocks is made once."""

    def __init__(self, lookup: Lookup) -> None:
        self.lookup = lookup
        self.blocks = lookup.corpus.blocks
        self.index = Bm25Index(self._texts())
        by_doc: dict[str, list[int]] = {}
        for place, block in enumerate(self.blocks):
            by_doc.setdefault(block.doc, []).append(place)
        self.places = {doc: np.array(numbers, np.int64) for doc, numbers in by_doc.items()}

    def _texts(self) -> Iterator[str]:
        for block in self.blocks:
            start, end = block.span
            yield self.lookup.text(block.doc)[start:end].decode()

    def suggest(
        self, item: GoldItem, evidence: Sequence[CorpusSpot], count: int, *, anywhere: bool = False
    ) -> list[Negative]:
        """Suggest so many negatives for an item whose evidence lies at some places.

        `anywhere`: the list by words is of all blocks of the corpus.
        """
        if count <= 0 or not evidence:
            return []
        asked = " ".join(filter(None, [item.question, *item.paraphrases]))
        if not words_of(asked):  # a draft has no question yet
            asked = " ".join(self.lookup.quote(spot) for spot in evidence)
        scores = self.index.scores(asked)
        docs = list(dict.fromkeys(spot.doc for spot in evidence))
        inside = np.concatenate([self.places.get(doc, np.zeros(0, np.int64)) for doc in docs])
        sections = _sections(item, evidence)
        far = {int(place): self._distance(int(place), sections) for place in inside}
        # Both lists are of near blocks, because `gold lint` warns of others; an item may get fewer
        # than were asked for.
        near = [at for at in far if far[at] <= FARTHEST]
        near.sort(key=lambda at: (far[at], -scores[at], at))
        alike = np.arange(len(self.blocks)) if anywhere else np.array(sorted(near), np.int64)
        lists: list[tuple[Reason, Iterator[int]]] = [
            ("section", iter(near)),
            ("words", _by_score(alike, scores, count)),
        ]
        taken = self._take(lists, _Exclusions(self.lookup, item, evidence), count)
        return [
            Negative(
                id=self.blocks[at].id,
                reason=reason,
                distance=far.get(at),
                score=float(scores[at]),
                spot=self.lookup.spot_of(self.blocks[at]),
            )
            for at, reason in taken.items()
        ]

    def _take(
        self, lists: Sequence[tuple[Reason, Iterator[int]]], exclusions: _Exclusions, count: int
    ) -> dict[int, Reason]:
        """Take from the lists in turn the next block that is not excluded."""
        taken: dict[int, Reason] = {}
        waiting = list(lists)
        while waiting and len(taken) < count:
            reason, places = waiting.pop(0)
            for at in places:
                usable = at not in taken and self.index.lengths[at]
                if usable and not exclusions.excludes(self.blocks[at]):
                    taken[at] = reason
                    waiting.append((reason, places))
                    break
        return taken

    def _distance(self, place: int, sections: Sequence[tuple[str, str]]) -> int:
        block = self.blocks[place]
        return min(distance(block.section, name) for doc, name in sections if doc == block.doc)


class _Exclusions:
    """What is no negative: the evidence, what says the same, and what is a negative already.

    A block that contains the text of the evidence would be a right answer that counts as wrong.
    """

    def __init__(self, lookup: Lookup, item: GoldItem, evidence: Sequence[CorpusSpot]) -> None:
        self.lookup = lookup
        self.evidence = evidence
        self.excluded_ids = {*item.negatives, *item.relevant}
        wrong = item.negative_places
        self.excluded_ids |= {a.id for a in (*item.anchors, *wrong) if a.id is not None}
        self.negatives = [(a.doc, span) for a in wrong for span in a.spans if span.unit == "byte"]
        self.excluded_ids |= {name for name, grade in item.grades.items() if grade > 0}
        self.quotes = [normalised(lookup.quote(spot)) for spot in evidence]

    def excludes(self, block: Block) -> bool:
        start, end = block.span
        near = (spot for spot in self.evidence if spot.doc == block.doc)
        if block.id in self.excluded_ids or any(s.start < end and start < s.end for s in near):
            return True
        if any(doc == block.doc and s.start < end and start < s.end for doc, s in self.negatives):
            return True
        text = normalised(self.lookup.text(block.doc)[start:end].decode())
        return any(quote in text for quote in self.quotes)


def _by_score(places: NDArray[np.int64], scores: NDArray[np.float64], count: int) -> Iterator[int]:
    """Places by falling score, then as they stand; those that share no word are left out."""
    matching = places[scores[places] > 0]
    if len(matching) > count + _EXTRA_ORDERED:
        # Most are never asked for: order the best ones first.
        last = count + _EXTRA_ORDERED - 1
        lowest = -np.partition(-scores[matching], last)[last]
        best = matching[scores[matching] >= lowest]
        yield from (int(at) for at in best[np.lexsort((best, -scores[best]))])
        matching = matching[scores[matching] < lowest]
    yield from (int(at) for at in matching[np.lexsort((matching, -scores[matching]))])


def _sections(item: GoldItem, evidence: Sequence[CorpusSpot]) -> list[tuple[str, str]]:
    """The sections of the evidence, and the anchor section where it lies in the same document."""
    sections = [(spot.doc, spot.section or "S.0") for spot in evidence]
    if item.anchor_section is not None:
        doc, section = split_section(item.anchor_section)
        docs = {spot.doc for spot in evidence}
        if doc in docs or (doc is None and len(docs) == 1):
            sections.append((doc or next(iter(docs)), section))
    return list(dict.fromkeys(sections))


class ItemNegatives(Struct, frozen=True, kw_only=True):
    """The negatives that were found for one item; none if it has enough, or no evidence."""

    qid: str
    line: int
    negatives: tuple[Negative, ...]


class Suggestions(Struct, frozen=True, kw_only=True):
    """The negatives of a file; `unplaced` items have no evidence, so nothing is near them.

    `comments` counts those of YAML that were lost in rows that changed.
    """

    items: tuple[ItemNegatives, ...]
    unplaced: int
    short: int
    comments: int = 0


def suggest_negatives(
    gold: str,
    corpus: str,
    out: str | None = None,
    *,
    count: int = 5,
    chunks: str | None = None,
    anywhere: bool = False,
    dialect: str = "auto",
    lock: Lock | None = None,
) -> Suggestions:
    """Find hard negatives so that every item has `count` of them; with `out` they are written.

    `lock` knows which text ids stood for when the set was frozen: near other text nothing is found.
    """
    rows = read_items(gold, dialect)
    if out is not None:
        form_of(out, rows.form)
    lookup = open_corpus(corpus)
    pinner = Pinner(lookup, read_chunk_list(chunks))
    suggester = Suggester(lookup)
    suggested: list[ItemNegatives] = []
    changes: dict[int, dict[str, Any]] = {}
    problems: list[Problem] = []
    failed = unplaced = short = 0
    for index, raw in enumerate(rows.rows):
        try:
            frozen = frozen_texts(rows, index, lock)
            pinned = pinner.row(raw.fields, rows.reader.own_gold, frozen)
            item = rows.reader.gold(without_draft(pinned.fields), raw.line)
        except FieldError as error:
            failed += 1
            if len(problems) < MAX_REPORTED:
                problems.append(rows.problem(error, index))
            continue
        wanted = count - len(item.negatives) - len(item.negative_places)
        new = suggester.suggest(item, pinned.spots, wanted, anywhere=anywhere)
        unplaced += not pinned.spots
        short += bool(pinned.spots) and len(new) < wanted
        suggested.append(ItemNegatives(qid=item.qid, line=raw.line, negatives=tuple(new)))
        if new:
            # With its place a negative counts whatever the chunks of an index are.
            placed = [pinner.entry(negative.id, "negatives").value for negative in new]
            listed = [*(raw.fields.get("negatives") or ()), *placed]
            changes[index] = {**raw.fields, "negatives": listed}
    if failed:
        raise RagaugeError(problems, total=failed)
    lost = 0
    if out is not None:
        write_atomically(out, written(rows, changes, out))
        lost = comments_lost(rows, changes, out)
    return Suggestions(items=tuple(suggested), unplaced=unplaced, short=short, comments=lost)
