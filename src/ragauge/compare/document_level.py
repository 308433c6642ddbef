"""The document level of two runs: which documents they found, where places cannot be told.

A document is larger than its evidence. One that is lost proves that its evidence is lost; one that
is found proves nothing. So what is counted by document has names of its own (`retrieval.hit_doc`,
`doc_regression`), stands beside the numbers of the evidence, and decides only where that is asked
for (decision 0060).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from ragauge import registry
from ragauge.compare import metric_deltas, question_changes
from ragauge.compare.effective_gold import EffectiveGold, expected_pieces
from ragauge.compare.follow_map import MapFollower
from ragauge.compare.match_levels import DOCS, SPANS, TEXTS, PieceMatcher
from ragauge.compare.places import NARROWEST, PlaceFindings
from ragauge.compare.question_changes import Judging
from ragauge.compare.same_documents import SameDocuments
from ragauge.model.comparison import (
    DocKind,
    DocumentLevel,
    MatchLevel,
    QueryComparison,
    doc_kind,
)
from ragauge.model.gold import GoldItem
from ragauge.model.metric_names import by_document
from ragauge.model.scores import PerQuestion, Scores
from ragauge.scoring.scoring_run import ScoringPlan

_FAMILIES = ("retrieval.hit_doc", "retrieval.recall_doc", "retrieval.mrr_doc")
_ALL = SPANS | DOCS | TEXTS


def is_by_document(levels: Iterable[MatchLevel]) -> bool:
    """Whether all that is not recognised by its id is recognised by its document alone."""
    return {level for level in levels if level != "exact"} == {"doc"}


def document_gold(
    items: Sequence[GoldItem],
    gold: EffectiveGold,
    same: SameDocuments,
    follower: MapFollower | None,
) -> EffectiveGold:
    """The same questions with nothing expected but the documents of their evidence.

    A question expects none where not every piece is known by its document, or where hits name no
    documents: such a hit counts as one of the only document there is.
    """
    matcher = PieceMatcher(same, follower)
    items_a: list[GoldItem] = []
    items_b: list[GoldItem] = []
    for item in items:
        key = item.qid, item.turn
        docs: list[tuple[str, str]] = []
        if same.a.carries.get(key, _ALL) & same.b.carries.get(key, _ALL) & DOCS:
            docs = _documents(item, matcher)
        for run, run_items in enumerate((items_a, items_b)):
            run_items.append(_bare(item, tuple(dict.fromkeys(pair[run] for pair in docs))))
    return replace(gold, items_a=tuple(items_a), items_b=tuple(items_b))


def _documents(item: GoldItem, matcher: PieceMatcher) -> list[tuple[str, str]]:
    """The documents of the evidence, as either run calls them; none if one is not known."""
    pieces = expected_pieces(item)
    if not pieces:
        return [matcher.names(doc) for doc in item.relevant_docs or ()]
    if any(matcher.clues(piece, item)[0].doc is None for piece in pieces):
        return []
    return sorted(matcher.known_documents(item, pieces))


def _bare(item: GoldItem, docs: tuple[str, ...]) -> GoldItem:
    return replace(
        item,
        relevant=(),
        anchors=(),
        places=(),
        groups=(),
        grades={},
        negatives=(),
        negative_places=(),
        anchor_section=None,
        decoy_section=None,
        relevant_docs=docs or None,
    )


def document_plan(plan: ScoringPlan) -> ScoringPlan:
    """What is measured by document: the metrics of documents, at every cut-off of the runs."""
    cutoffs = sorted({chosen.k for chosen in plan.selected if chosen.k is not None and chosen.k})
    cutoffs = [k for k in cutoffs if k < 10**6] or [10]  # not the ranks without a cut-off
    names = [f"{family}@{k}" for family in _FAMILIES for k in cutoffs]
    return replace(plan, selected=registry.select(names, cutoffs))


def with_document_level(
    runs: tuple[Scores, Scores],
    documents: tuple[Scores, Scores],
    findings: PlaceFindings,
    levels: Mapping[tuple[str, int | None], Sequence[MatchLevel]],
) -> tuple[Scores, Scores]:
    """Runs with unknown places that carry their scores by document, for gates that may move.

    A gate moves to the metric of documents only if each question that is open is so because
    nothing but its document is known, and all that have a value have one by document, too.
    """
    a, b = runs
    assert a.ends is not None and b.ends is not None and a.per_question is not None
    values = a.per_question
    keys = [(values.qids[place], values.turns[place]) for place in findings.questions]
    only_documents = np.array([is_by_document(levels.get(key, ())) for key in keys], np.bool_)
    movable = set()
    for metric, band in findings.bands.items():
        moved = by_document(metric)
        if moved is None:
            continue
        low, high = (end[1] - end[0] for end in (band.low, band.high))
        is_open = high - low > NARROWEST
        whole = all(
            _covers(ends.low.per_question, metric, scores.per_question, moved)
            for ends, scores in zip((a.ends, b.ends), documents, strict=True)
        )
        if whole and is_open.any() and bool(only_documents[is_open].all()):
            movable.add(metric)
    sides = []
    for run, scores in zip((a, b), documents, strict=True):
        assert run.ends is not None
        ends = replace(run.ends, by_document=replace(scores, blocks=()), movable=frozenset(movable))
        sides.append(replace(run, ends=ends))
    return sides[0], sides[1]


def _covers(
    values: PerQuestion | None, metric: str, documents: PerQuestion | None, moved: str
) -> bool:
    """Whether every question with a value of a metric has one of that by document."""
    if values is None or documents is None:
        return False
    if metric not in values.metrics or moved not in documents.metrics:
        return False
    return _valued(values, metric) <= _valued(documents, moved)


def _valued(values: PerQuestion, metric: str) -> set[tuple[str, int | None]]:
    places = np.flatnonzero(~np.isnan(values.of(metric))).tolist()
    return {(values.qids[place], values.turns[place]) for place in places}


def document_level(a: Scores, b: Scores, judging: Judging) -> DocumentLevel | None:
    """What two runs say of documents; None where that was not asked of them."""
    if a.ends is None or b.ends is None:
        return None
    one, other = a.ends.by_document, b.ends.by_document
    if one is None or other is None:
        return None
    pairs = metric_deltas.pair(one, other)
    judging = judging._replace(why=None)
    changes = question_changes.questions(one, other, pairs, levels={}, judging=judging)
    deltas = metric_deltas.deltas(one, other, pairs, frozenset())
    return DocumentLevel(
        # A headline never speaks of them, so there is nothing to correct.
        deltas=tuple(replace(delta, p_holm=None) for delta in deltas if delta.n),
        kinds={
            (change.query_id, change.turn): doc_kind(change.kind)
            for change in changes
            if change.kind is not None
        },
    )


def with_doc_kinds(
    changes: Sequence[QueryComparison], documents: DocumentLevel | None
) -> tuple[QueryComparison, ...]:
    """Changes with their kinds by document, where nothing better than that is known of some piece.

    Gold that names documents and no evidence has its kinds by document alone.
    """
    kinds: Mapping[tuple[str, int | None], DocKind | None] = (
        {} if documents is None else documents.kinds
    )
    with_kinds = []
    for change in changes:
        if "doc" not in change.rungs:
            with_kinds.append(change)
            continue
        kind = kinds.get((change.query_id, change.turn))
        if kind is None and change.certain and change.kind is not None:
            kind = doc_kind(change.kind)
        with_kinds.append(replace(change, doc_kind=kind))
    return tuple(with_kinds)
