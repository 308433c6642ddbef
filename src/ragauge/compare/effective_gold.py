"""Effective gold: the items that two runs are scored with, so that both are matched alike.

A chunk id may mean another text in another run. Ranks are not patched then: each run gets an item
of its own, in which the piece is named by a place, a quote or a whole document, and is scored
again with it. So every metric follows the same match level, and a table of deltas can never
contradict the list of regressions (decision 0016).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ragauge.compare.follow_map import MapFollower
from ragauge.compare.match_levels import (
    DOCS,
    SPANS,
    TEXTS,
    Clue,
    Piece,
    PieceMatch,
    PieceMatcher,
    match_of,
)
from ragauge.compare.same_documents import SameDocuments
from ragauge.model.comparison import MATCH_LEVELS, Match, MatchLevel
from ragauge.model.gold import Anchor, GoldItem
from ragauge.scoring.evidence_pieces import EFFECTIVE_PREFIX, NEGATIVE_PREFIX

_ALL = SPANS | DOCS | TEXTS
_EXACT: MatchLevel = "exact"


class EffectiveGold(Struct, frozen=True, kw_only=True):
    """How two runs are matched, item by item.

    levels             for each item, the match levels of its expected pieces
    items_a, items_b   the effective items; the very same objects where nothing falls back
    counts             how many pieces have each level
    unproven           how many of those that are exact are so by ids that nothing proves
    """

    levels: tuple[tuple[MatchLevel, ...], ...]
    items_a: tuple[GoldItem, ...]
    items_b: tuple[GoldItem, ...]
    counts: dict[MatchLevel, int]
    match: Match
    notes: tuple[str, ...]
    unproven: int = 0


class _MatchedItem(NamedTuple):
    """The levels of one item, and its effective items."""

    levels: tuple[MatchLevel, ...]
    a: GoldItem
    b: GoldItem


def match_items(
    items: Iterable[GoldItem],
    same: SameDocuments,
    *,
    follower: MapFollower | None = None,
    earlier: Mapping[tuple[str, int | None], GoldItem] | None = None,
) -> EffectiveGold:
    """Find the match level of every expected piece, and the items to score both runs with.

    `earlier` are items that moved with the corpus, as the first run has them.
    """
    matcher = PieceMatcher(same, follower)
    all_exact = same.all_ids_agree and follower is None
    all_levels: list[tuple[MatchLevel, ...]] = []
    items_a: list[GoldItem] = []
    items_b: list[GoldItem] = []
    for item in items:
        old = earlier.get((item.qid, item.turn)) if earlier else None
        pieces = expected_pieces(item)
        levels: tuple[MatchLevel, ...]
        if old is not None:
            levels, item_a, item_b = _levels_of_moved(old, item), old, item
        elif all_exact and not item.relevant_docs:
            levels, item_a, item_b = (_EXACT,) * len(pieces), item, item
            for piece in pieces:
                matcher.count_unproven(piece, matcher.clues(piece, item))
        else:
            # Even where all chunk ids agree, documents may have other names in the other run, or
            # its hits may name none.
            levels, item_a, item_b = _match_item(item, pieces, matcher)
        all_levels.append(levels)
        items_a.append(item_a)
        items_b.append(item_b)
    counts = dict.fromkeys(MATCH_LEVELS, 0)
    for levels in all_levels:
        for level in levels:
            counts[level] += 1
    map_notes = [] if follower is None else follower.notes()
    return EffectiveGold(
        levels=tuple(all_levels),
        items_a=tuple(items_a),
        items_b=tuple(items_b),
        counts=counts,
        match=match_of(counts, unproven=matcher.notes.unproven),
        unproven=matcher.notes.unproven,
        notes=(*map_notes, *matcher.notes.lines(same.reused_id, counts["none"])),
    )


def expected_pieces(item: GoldItem) -> tuple[Piece, ...]:
    """The distinct pieces of an item's evidence; an id that one of its anchors has is that anchor.

    Grades stand in the order of their names, as a table has no order of its own.
    """
    if not (item.anchors or item.grades or item.groups):
        relevant = item.relevant
        return relevant if len(relevant) < 2 else tuple(dict.fromkeys(relevant))
    graded = sorted(name for name, grade in item.grades.items() if grade > 0)
    grouped = (piece for group in item.groups for piece in group)
    pieces = dict.fromkeys([*item.relevant, *item.anchors, *graded, *grouped])
    anchored = {piece.id for piece in pieces if isinstance(piece, Anchor)}
    return tuple(piece for piece in pieces if piece not in anchored)


def _levels_of_moved(before: GoldItem, after: GoldItem) -> tuple[MatchLevel, ...]:
    """The levels of an item that moved with its corpus: each run has evidence of its own."""
    old_pieces = set(expected_pieces(before))
    pieces = expected_pieces(after)
    if pieces:
        return tuple(
            "exact" if isinstance(piece, str) or piece in old_pieces else "doc_span"
            for piece in pieces
        )
    docs = set(before.relevant_docs or ())
    return tuple(
        "exact" if doc in docs else "doc" for doc in dict.fromkeys(after.relevant_docs or ())
    )


# --- one item ---


def _match_item(item: GoldItem, pieces: Sequence[Piece], matcher: PieceMatcher) -> _MatchedItem:
    """Match an item: its pieces or else its documents, then its hard negatives."""
    key = item.qid, item.turn
    same = matcher.same
    carried = same.a.carries.get(key, _ALL), same.b.carries.get(key, _ALL)
    if pieces:
        matched = _match_pieces(item, pieces, carried, matcher)
    else:
        matched = _match_documents(item, carried[0] & carried[1], matcher)
    if item.negatives:
        matched = _match_negatives(item.negatives, matched, carried, matcher)
    if item.negative_places:
        levels, item_a, item_b = matched
        wrong_a, wrong_b = (_places_in(item.negative_places, run, matcher) for run in (0, 1))
        if (wrong_a, wrong_b) != (item.negative_places, item.negative_places):
            item_a = replace(item_a, negative_places=wrong_a)
            item_b = replace(item_b, negative_places=wrong_b)
            matched = _MatchedItem(levels, item_a, item_b)
    return matched


def _match_pieces(
    item: GoldItem, pieces: Sequence[Piece], carried: tuple[int, int], matcher: PieceMatcher
) -> _MatchedItem:
    """An item that expects chunks or places."""
    both = carried[0] & carried[1]
    all_clues, unit = matcher.not_exact(item, pieces, carried)
    falls_back = any(all_clues)
    if not (falls_back or item.places or item.relevant_docs):
        return _MatchedItem((_EXACT,) * len(pieces), item, item)
    levels: list[MatchLevel] = []
    anchors_a: dict[Piece, Anchor | None] = {}
    anchors_b: dict[Piece, Anchor | None] = {}
    names: set[str] = set()
    for piece, clues in zip(pieces, all_clues, strict=True):
        if clues is None:
            levels.append("exact")
            continue
        name = _effective_name(piece, names)
        match = matcher.fall_back(piece, name, clues, both, unit)
        levels.append(match.level)
        if not _is_own_place(piece, match):
            anchors_a[piece], anchors_b[piece] = match.anchors
    places_a = places_b = item.places
    if item.places:
        places = [
            place for place in item.places if _still_says(place, falls_back, both, unit, matcher)
        ]
        matcher.notes.unplaced += len(item.places) - len(places)
        places_a, places_b = (_places_in(places, run, matcher) for run in (0, 1))
    # A hit that names no document is taken to be of the only one that its item names. So an item
    # with a rewritten piece names every document that its evidence is known to be in.
    documents = matcher.known_documents(item, pieces) if anchors_a else set()
    documents = documents if len(documents) > 1 else set()
    docs_a = docs_b = item.relevant_docs
    if (carried[0] ^ carried[1]) & DOCS and item.relevant_docs:
        # The hits of one run only name theirs: documents count in neither, and stay named.
        documents |= {matcher.names(doc) for doc in item.relevant_docs}
        docs_a = docs_b = None
    elif item.relevant_docs:
        docs_a, docs_b = (_docs_in(item, run, matcher) for run in (0, 1))
    if documents:
        places_a = (*places_a, *_bare_documents(doc for doc, _ in documents))
        places_b = (*places_b, *_bare_documents(doc for _, doc in documents))
    item_a = item_b = _rewritten(item, anchors_a, places_a, docs_a)
    if anchors_a != anchors_b or places_a != places_b or docs_a != docs_b:
        item_b = _rewritten(item, anchors_b, places_b, docs_b)
    return _MatchedItem(tuple(levels), item_a, item_b)


def _match_documents(item: GoldItem, both: int, matcher: PieceMatcher) -> _MatchedItem:
    """An item that expects documents and no chunks of them, or nothing at all."""
    if not item.relevant_docs:
        return _MatchedItem((), item, item)
    levels: list[MatchLevel] = []
    matched: list[str] = []
    for doc in dict.fromkeys(item.relevant_docs):
        pair = matcher.same.pair(doc)
        # The same name in both runs is enough, though hits name none; but it is never exact: a
        # document says nothing of the chunks in it.
        is_same = pair.named_a == pair.named_b and matcher.names(doc) == (doc, doc)
        level: MatchLevel = "doc" if both & DOCS or is_same else "none"
        if level != "none":
            matched.append(doc)
        levels.append(level)
    if not matched:
        bare = replace(item, relevant_docs=None)
        return _MatchedItem(tuple(levels), bare, bare)
    if len(matched) < len(levels):
        item = replace(item, relevant_docs=tuple(matched))
    item_a, item_b = (
        _rewritten(item, {}, item.places, _docs_in(item, run, matcher)) for run in (0, 1)
    )
    return _MatchedItem(tuple(levels), item_a, item_b)


def _match_negatives(
    names: Sequence[str], matched: _MatchedItem, carried: tuple[int, int], matcher: PieceMatcher
) -> _MatchedItem:
    """The effective items with their hard negatives as each run recognises them.

    A whole document is no hard negative, as it may hold the evidence: what has neither place nor
    quote in both runs is excluded, and counted.
    """
    levels, item_a, item_b = matched
    # Places of the evidence must not decide the unit of a negative, nor its document.
    no_item = GoldItem(qid=item_a.qid)
    negatives: tuple[list[str], list[str]] = [], []
    places: tuple[list[Anchor], list[Anchor]] = [], []
    for name in dict.fromkeys(names):
        (clues,), unit = matcher.not_exact(no_item, (name,), carried)
        if clues is None:
            negatives[0].append(name)
            negatives[1].append(name)
            continue
        match = matcher.fall_back(
            name,
            f"{NEGATIVE_PREFIX}{name}",
            clues,
            carried[0] & carried[1],
            unit,
            whole_document=False,
        )
        if match.level == "none":
            matcher.notes.negatives += 1
        for run, anchor in enumerate(match.anchors):
            if anchor is not None and anchor.id is not None:
                negatives[run].append(anchor.id)
                places[run].extend([anchor] if match.level != "exact" else [])
    ids_a, ids_b = tuple(negatives[0]), tuple(negatives[1])
    if (item_a.negatives, item_b.negatives) == (ids_a, ids_b):
        return matched
    new_a = replace(item_a, negatives=ids_a, places=(*item_a.places, *places[0]))
    if item_b == item_a and ids_a == ids_b and places[0] == places[1]:
        return _MatchedItem(levels, new_a, new_a)
    new_b = replace(item_b, negatives=ids_b, places=(*item_b.places, *places[1]))
    return _MatchedItem(levels, new_a, new_b)


# --- effective items ---


def _effective_name(piece: Piece, names: set[str]) -> str:
    """A name for what a piece is looked for by, that no other piece of the item has."""
    if isinstance(piece, str):
        label = piece
    elif piece.id is not None:
        label = piece.id
    else:
        spans = ",".join(f"{span.unit}={span.start}-{span.end}" for span in piece.spans)
        label = f"{piece.doc} {spans}"
    name = EFFECTIVE_PREFIX + label
    while name in names:
        name += " again"
    names.add(name)
    return name


def _is_own_place(piece: Piece, match: PieceMatch) -> bool:
    """Whether a piece is recognised in both runs by the very place that gold gives.

    Then the item stays as it is, and stored values of the runs can be used.
    """
    if isinstance(piece, str) or piece.id is not None or match.level != "doc_span":
        return False
    return all(
        anchor is not None and (anchor.doc, anchor.spans) == (piece.doc, piece.spans)
        for anchor in match.anchors
    )


def _still_says(
    place: Anchor, falls_back: bool, both: int, unit: str | None, matcher: PieceMatcher
) -> bool:
    """Whether a place that gold gives beside the evidence says the same in both runs."""
    if not falls_back:
        return matcher.same.pair(place.doc).content != "differs"
    return matcher.spans_work(Clue(place.doc, place.spans), both, unit)


def _docs_in(item: GoldItem, run: int, matcher: PieceMatcher) -> tuple[str, ...]:
    """The documents that an item expects, as a run calls them."""
    return tuple(matcher.names(doc)[run] for doc in item.relevant_docs or ())


def _bare_documents(docs: Iterable[str]) -> list[Anchor]:
    """Documents as places that cover nothing: an item names them, and expects nothing of them."""
    return [Anchor(doc=doc, spans=()) for doc in sorted(set(docs))]


def _places_in(places: Sequence[Anchor], run: int, matcher: PieceMatcher) -> tuple[Anchor, ...]:
    """Places in documents as a run calls them."""
    docs = [matcher.names(place.doc)[run] for place in places]
    return tuple(
        place if doc == place.doc else replace(place, doc=doc)
        for place, doc in zip(places, docs, strict=True)
    )


def _rewritten(
    item: GoldItem,
    anchors: Mapping[Piece, Anchor | None],
    places: tuple[Anchor, ...],
    docs: tuple[str, ...] | None,
) -> GoldItem:
    """The item with anchors in the place of pieces, and without the pieces that have none.

    `places` and `docs` are those of the item as the run knows them.
    """
    if not anchors:
        if docs == item.relevant_docs and places == item.places:
            return item
        return replace(item, relevant_docs=docs, places=places)
    new_ids: dict[str, str | None] = {}
    new_places: list[Anchor] = []
    for piece, anchor in anchors.items():
        chunk_id = piece if isinstance(piece, str) else piece.id
        if chunk_id is not None:
            new_ids[chunk_id] = None if anchor is None else anchor.id
        if anchor is not None and isinstance(piece, str):
            new_places.append(anchor)

    if places:
        matched = [place for place in places if new_ids.get(place.id or "", "") is not None]
        new_places = [*matched, *new_places]
    by_ids = replace(
        item,
        relevant=tuple(
            [new for old in item.relevant if (new := new_ids.get(old, old)) is not None]
        ),
        places=tuple(new_places),
        relevant_docs=docs,
    )
    if not (item.anchors or item.groups or item.grades):
        return by_ids

    def renamed(pieces: Iterable[Piece]) -> list[Piece]:
        new = [
            new_ids.get(piece, piece) if isinstance(piece, str) else anchors.get(piece, piece)
            for piece in pieces
        ]
        return [piece for piece in new if piece is not None]

    groups = [(group, tuple(renamed(group))) for group in item.groups]
    grades = ((new_ids.get(name, name), grade) for name, grade in item.grades.items())
    return replace(
        by_ids,
        anchors=tuple([piece for piece in renamed(item.anchors) if isinstance(piece, Anchor)]),
        # A group that was empty in gold stays; one that lost all its pieces goes.
        groups=tuple(new for old, new in groups if new or not old),
        grades={name: grade for name, grade in grades if name is not None},
    )
