"""Calibration: how well ΔS of an embedder tells evidence from other texts, and bands that fit it.

Pairs of a question with its evidence, with its hard negatives, and with texts of other questions,
which share no id, no byte and no quote with what belongs to the question.
The rule for bands is our own: no source gives one. Of pairs that have nothing to do with each other
1 % are below `stable` and 10 % below `risk`; `target` is where evidence and such pairs part best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from ragauge.embed.measure import Measurer
from ragauge.ids import lies_in, split_section
from ragauge.metrics.columns import Floats
from ragauge.model.gold import GoldItem
from ragauge.model.semantic import ZONES, Bands
from ragauge.quotes import normalised, shares_half
from ragauge.scoring.evidence_pieces import documents_of
from ragauge.scoring.known_texts import ChunkPlace, TextsById, evidence_of
from ragauge.spans import Span, shared
from ragauge.stats.intervals import quantile

SHARES = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95)
RANDOM_PAIRS = 5
"""Texts of other questions for each question."""
LEAST = 20
"""Pairs of a kind below which no bands are proposed."""
WEAK = 0.80
"""Below this AUC evidence and random texts overlap so much that no band can part them."""
_STABLE, _RISK = 0.01, 0.10


class DistanceGroup(Struct, frozen=True, kw_only=True):
    """ΔS of one kind of pair: percentiles, and how many are in which zone."""

    n: int
    percentiles: dict[str, float] = {}
    zones: dict[str, float] = {}
    on_target: float | None = None


class Calibration(Struct, frozen=True, kw_only=True):
    """What was measured, and the bands that follow from it.

    `auc` is the share of (evidence, other) pairs of pairs in which evidence is nearer; `proposed`
    is None where `reason` says why nothing can be proposed.
    """

    embedder: str
    lexical: bool
    questions: int
    bands: Bands
    groups: dict[str, DistanceGroup]
    auc: dict[str, float | None]
    proposed: Bands | None
    reason: str | None = None
    left_out: dict[str, int] = {}
    notes: tuple[str, ...] = ()


class CalibrationPairs(NamedTuple):
    """Questions with texts: of their evidence, of their hard negatives, and of other questions."""

    positive: list[tuple[str, str]]
    negative: list[tuple[str, str]]
    random: list[tuple[str, str]]


class OwnEvidence:
    """What belongs to a question: its evidence and its negatives, by id, by place and by text.

    An item that names no piece of evidence has all of its section, or else of its documents.
    """

    def __init__(self, item: GoldItem, pool: TextsById, evidence: Sequence[str | None]) -> None:
        pieces = evidence_of(item)
        anchors = (*pieces.anchors, *item.places, *item.negative_places)
        self.pool = pool
        self.names = {*pieces.ids, *item.negatives, *item.grades}
        self.names |= {anchor.id for anchor in anchors if anchor.id is not None}
        self.docs = {anchor.doc for anchor in anchors if not anchor.spans and anchor.quote is None}
        self.section: tuple[tuple[str, ...], str] | None = None
        if not any(pieces.relevant) and item.anchor_section is not None:
            doc, section = split_section(item.anchor_section)
            self.section = (doc,) if doc else documents_of(item, pieces, {}), section
        elif not any(pieces.relevant):
            self.docs |= set(item.relevant_docs or ())
        self.spans: dict[str, list[Span]] = {}
        for anchor in anchors:
            self._add(pool.texts.in_bytes(ChunkPlace((anchor.doc,), None, anchor.spans)))
        for name in sorted(self.names):
            self._add(pool.spot(name))
        quotes = {anchor.quote for anchor in anchors} | {*evidence}
        self.quotes = {normalised(quote) for quote in quotes if quote}

    def _add(self, spot: ChunkPlace) -> None:
        for doc in spot.docs:
            self.spans.setdefault(doc, []).extend(spot.spans)

    def _overlaps(self, doc: str, spans: Sequence[Span]) -> bool:
        return any(shared((own_span,), spans)[0] > 0 for own_span in self.spans.get(doc, ()))

    def has(self, name: str, text: str) -> bool:
        """Whether a chunk, or a part of it, belongs to the question."""
        if name in self.names:
            return True
        spot = self.pool.spot(name)
        if any(doc in self.docs or self._overlaps(doc, spot.spans) for doc in spot.docs):
            return True
        if self.section is not None and spot.section is not None:
            docs, section = self.section
            if lies_in(spot.section, section) and (not docs or not {*docs}.isdisjoint(spot.docs)):
                return True
        chunk_text = normalised(text)
        return any(shares_half(quote, chunk_text) for quote in self.quotes)


def pairs_of(items: Sequence[GoldItem], pool: TextsById) -> tuple[CalibrationPairs, dict[str, int]]:
    """The pairs of a gold set, and how many had to be excluded for want of a text."""
    pairs = CalibrationPairs([], [], [])
    excluded = {
        "items without a question": 0,
        "evidence without a text": 0,
        "negatives without a text": 0,
    }
    names = pool.names()
    for item in sorted(items, key=lambda each: (each.qid, each.turn or 0)):
        question = item.question or (item.paraphrases[0] if item.paraphrases else None)
        if not question or not question.strip():
            excluded["items without a question"] += 1
            continue
        evidence = pool.evidence(item)
        for text in evidence:
            _add(pairs.positive, question, text, excluded, "evidence without a text")
        for text in pool.negatives(item):
            _add(pairs.negative, question, text, excluded, "negatives without a text")
        for text in _others(item, names, OwnEvidence(item, pool, evidence), pool):
            pairs.random.append((question, text))
    return pairs, {reason: n for reason, n in excluded.items() if n}


def _add(
    pairs: list[tuple[str, str]],
    question: str,
    text: str | None,
    excluded: dict[str, int],
    reason: str,
) -> None:
    if text is None or not text.strip():
        excluded[reason] += 1
    else:
        pairs.append((question, text))


def _others(item: GoldItem, names: Sequence[str], own: OwnEvidence, pool: TextsById) -> list[str]:
    """Texts of other ids, drawn by a hash of the question's id: the same ones every time."""
    drawn: dict[str, str] = {}
    # Four tries a pair: a draw may be known already, without a text, or belong to the question.
    for number in range(RANDOM_PAIRS * 4 if names else 0):
        key = f"{item.qid}\0{'' if item.turn is None else item.turn}\0{number}"
        digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        name = names[int.from_bytes(digest, "little") % len(names)]
        text = None if name in drawn else pool.of(name)
        if text is not None and not own.has(name, text):
            drawn[name] = text
        if len(drawn) == RANDOM_PAIRS:
            break
    return list(drawn.values())


def calibrate(
    items: Sequence[GoldItem],
    pool: TextsById,
    measurer: Measurer,
    *,
    bands: Mapping[str, Bands] | None = None,
) -> Calibration:
    """Measure the pairs of a gold set, and propose bands for the embedder."""
    pairs, excluded = pairs_of(items, pool)
    values = {
        kind: np.array(measurer.distances(of_kind), np.float64)
        for kind, of_kind in pairs._asdict().items()
    }
    embedder = measurer.embedder
    mine = (bands or {}).get(embedder.id, Bands())
    positive, others = values["positive"], values["random"]
    reason = None
    if len(positive) < LEAST or len(others) < LEAST:
        reason = (
            f"{len(positive)} pairs with evidence and {len(others)} random ones are too few: "
            f"bands need {LEAST} of each"
        )
    apart = auc(positive, others)
    proposed = None
    if reason is None:
        assert apart is not None
        proposed = propose(positive, others)
        if apart < WEAK:
            proposed = None
            reason = (
                f"evidence is nearer than random texts in {apart:.1%} of cases: below {WEAK:.0%}"
            )
    return Calibration(
        embedder=embedder.id,
        lexical=embedder.lexical,
        questions=len({(item.qid, item.turn) for item in items}),
        bands=mine,
        groups={kind: _group(distances, mine) for kind, distances in values.items()},
        auc={"negative": auc(positive, values["negative"]), "random": apart},
        proposed=proposed,
        reason=reason,
        left_out=excluded,
        notes=tuple(measurer.notes()),
    )


def _group(values: Floats, bands: Bands) -> DistanceGroup:
    if not len(values):
        return DistanceGroup(n=0)
    counts = dict.fromkeys(ZONES, 0)
    for value in values.tolist():
        counts[bands.zone(value)] += 1
    return DistanceGroup(
        n=len(values),
        percentiles={f"p{share * 100:g}": _at(values, share) for share in SHARES},
        zones={zone: n / len(values) for zone, n in counts.items()},
        on_target=int(np.count_nonzero(values <= bands.target)) / len(values),
    )


def _at(values: Floats, share: float) -> float:
    value = quantile(values, share)
    assert value is not None
    return value


def auc(near: Floats, far: Floats) -> float | None:
    """The share of pairs in which the first is nearer than the second; ties count half.

    The area under the ROC curve is the same number (the statistic U of Mann and Whitney, 1947).
    """
    if not len(near) or not len(far):
        return None
    ordered = np.sort(far)
    above = len(far) - np.searchsorted(ordered, near, "right")
    ties = np.searchsorted(ordered, near, "right") - np.searchsorted(ordered, near, "left")
    return float((2 * above.sum() + ties.sum()) / (2 * len(near) * len(far)))


def propose(near: Floats, far: Floats) -> Bands:
    """Bands to two decimals from ΔS of evidence and of random pairs."""
    stable, risk = round(_at(far, _STABLE), 2), round(_at(far, _RISK), 2)
    cuts = np.unique(np.concatenate([near, far]))
    inside = np.searchsorted(np.sort(near), cuts, "right") / len(near)
    outside = np.searchsorted(np.sort(far), cuts, "right") / len(far)
    # Youden's index: the cut at which most evidence and fewest random texts are on the near side.
    best = float(cuts[int(np.argmax(inside - outside))])
    return Bands(stable=stable, target=min(risk, max(stable, round(best, 2))), risk=risk)
