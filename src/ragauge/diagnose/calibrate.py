"""Calibration: how well ΔS of an embedder tells evidence from other texts, and bands that fit it.

Pairs of a question with its evidence, with its hard negatives, and with texts of other questions,
which share no id, no byte and no quote with what belongs to the question.
Bands serve gates: a system that cites the evidence must pass them, and one that cites hard
negatives must not. So the edges lie between the two as half of the questions show them, and the
other half tries them. Without hard negatives the random texts stand in.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge.embed.measure import Measurer
from ragauge.gates.bands import P90_SHARE, zone_limit
from ragauge.ids import lies_in, split_section
from ragauge.metrics.columns import Floats
from ragauge.model.gold import GoldItem
from ragauge.model.semantic import ZONES, BandCalibration, Bands
from ragauge.quotes import normalised, shares_half
from ragauge.scoring.evidence_pieces import documents_of
from ragauge.scoring.known_texts import ChunkPlace, TextsById, evidence_of
from ragauge.spans import Span, shared
from ragauge.stats import exact_sums, resampling
from ragauge.stats.intervals import quantile

SHARES = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95)
RANDOM_PAIRS = 5
"""Texts of other questions for each question."""
LEAST = 20
"""Pairs of a kind below which no bands are proposed."""
WEAK = 0.75
"""Below this AUC evidence and other texts overlap so much that no gate should part them."""
SURE = 0.95
"""In so many resamples the evidence has to pass, and the other texts to fail."""
RESAMPLES = 2_000
_STEP = 0.01
_HIGHEST = 2.0


class DistanceGroup(Struct, frozen=True, kw_only=True):
    """ΔS of one kind of pair: percentiles, and how many are in which zone."""

    n: int
    percentiles: dict[str, float] = {}
    zones: dict[str, float] = {}
    on_target: float | None = None


class Calibration(Struct, frozen=True, kw_only=True):
    """What was measured, and the bands that follow from it.

    `auc` is the share of (evidence, other) pairs of pairs in which evidence is nearer; `proposed`
    is None where `reason` says why nothing can be proposed. `passes` and `fails` are shares of
    resamples of the questions that the bands were not made from: in which evidence passes both
    gates on ΔS, and in which the other texts fail one.
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
    passes: float | None = None
    fails: float | None = None


class CalibrationPairs(NamedTuple):
    """Questions with texts: of their evidence, of their hard negatives, and of other questions.

    `owners` are the ids of the questions, beside the pairs of each kind.
    """

    positive: list[tuple[str, str]]
    negative: list[tuple[str, str]]
    random: list[tuple[str, str]]
    owners: dict[str, list[str]]

    def of_kinds(self) -> dict[str, list[tuple[str, str]]]:
        """The pairs by their kind."""
        return {"positive": self.positive, "negative": self.negative, "random": self.random}


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
    pairs = CalibrationPairs([], [], [], {"positive": [], "negative": [], "random": []})
    excluded = {
        "items without a question": 0,
        "evidence without a text": 0,
        "negatives without a text": 0,
    }
    names = pool.names()
    for item in sorted(items, key=lambda each: (each.qid, each.turn or 0)):
        # Systems are asked every wording, and a question has the mean of what came of them.
        wordings = dict.fromkeys([item.question or "", *item.paraphrases])
        asked = [wording for wording in wordings if wording.strip()]
        if not asked:
            excluded["items without a question"] += 1
            continue
        key = f"{item.qid}\0{'' if item.turn is None else item.turn}"
        evidence = pool.evidence(item)
        others = _others(item, names, OwnEvidence(item, pool, evidence), pool)
        for kind, texts in (
            ("positive", evidence),
            ("negative", pool.negatives(item)),
            ("random", others),
        ):
            for text in texts:
                if text is None or not text.strip():
                    excluded[_TEXTLESS[kind]] += 1
                    continue
                questions = asked[:1] if kind == "random" else asked
                pairs.of_kinds()[kind].extend((question, text) for question in questions)
                pairs.owners[kind].extend([key] * len(questions))
    return pairs, {reason: n for reason, n in excluded.items() if n}


_TEXTLESS = {"positive": "evidence without a text", "negative": "negatives without a text"}


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
    values: dict[str, Floats] = {}
    by_question: dict[str, dict[str, list[float]]] = {}
    for kind, of_kind in pairs.of_kinds().items():
        measured = measurer.each_distance(of_kind)
        grouped: dict[str, list[float]] = {}
        for owner, value in zip(pairs.owners[kind], measured, strict=True):
            if value is not None:
                grouped.setdefault(owner, []).append(value)
        by_question[kind] = grouped
        values[kind] = np.array([value for value in measured if value is not None], np.float64)
    embedder = measurer.embedder
    mine = (bands or {}).get(embedder.id, Bands())
    shares = {kind: auc(values["positive"], values[kind]) for kind in ("negative", "random")}
    against = "negative" if len(values["negative"]) >= LEAST else "random"
    reason, fitted = None, None
    if len(values["positive"]) < LEAST or len(values[against]) < LEAST:
        reason = (
            f"{len(values['positive'])} pairs with evidence and {len(values[against])} others are "
            f"too few: bands need {LEAST} of each"
        )
    else:
        apart = shares[against]
        assert apart is not None
        counts = len(values["positive"]), len(values[against])
        fitted = fit_bands(
            by_question["positive"], by_question[against], apart, counts, AGAINST[against]
        )
        reason = None if fitted.bands is not None else "the two halves have too few questions"
    return Calibration(
        embedder=embedder.id,
        lexical=embedder.lexical,
        questions=len({(item.qid, item.turn) for item in items}),
        bands=mine,
        groups={kind: _group(distances, mine) for kind, distances in values.items()},
        auc=shares,
        proposed=None if fitted is None else fitted.bands,
        reason=reason,
        left_out=excluded,
        notes=tuple(measurer.notes()),
        passes=None if fitted is None else fitted.passes,
        fails=None if fitted is None else fitted.fails,
    )


AGAINST = {"negative": "hard negatives", "random": "random texts"}


class FittedBands(NamedTuple):
    """Bands, and how they did with the questions that they were not made from."""

    bands: Bands | None
    passes: float | None = None
    fails: float | None = None


class _Edges(NamedTuple):
    """What the gates are held against: a median, and a 90th percentile."""

    median: float
    p90: float

    def bands(self, near: Floats, far: Floats) -> Bands:
        """The bands whose gates these are, to two decimals, rounded away from the evidence."""
        stable = min(_HIGHEST, math.ceil(round(self.median * 100, 6)) / 100)
        width = max(0.0, self.p90 - stable) / P90_SHARE
        risk = min(_HIGHEST, math.ceil(round((stable + width) * 100, 6)) / 100)
        return Bands(stable=stable, target=min(risk, max(stable, _parting(near, far))), risk=risk)


def fit_bands(
    evidence: Mapping[str, Sequence[float]],
    others: Mapping[str, Sequence[float]],
    apart: float,
    counts: tuple[int, int],
    against: str,
) -> FittedBands:
    """Choose bands with half of the questions, and try them on the other half.

    Where evidence and the others are not apart, or no bands pass the trial, the bands are those of
    the source documents, with the note that gates are not to be judged by them.
    """
    near, far = _halves(evidence), _halves(others)
    if min(map(len, (*near, *far))) < FEWEST:
        return FittedBands(None)
    edges = _edges(near[0], far[0])
    evidence_tries, other_tries = _tries(near[1]), _tries(far[1])
    passes, fails = _trial(edges, evidence_tries, other_tries)
    while passes < SURE and edges.median + _STEP <= _HIGHEST:
        edges = _Edges(edges.median + _STEP, edges.p90 + _STEP)
        passes, fails = _trial(edges, evidence_tries, other_tries)
    bands = edges.bands(np.concatenate(near), np.concatenate(far))
    rounded = _Edges(bands.stable, zone_limit("stable", "_p90", bands))
    passes, fails = _trial(rounded, evidence_tries, other_tries)
    stable, risk = _edge_intervals(near[0], far[0])
    judged = apart >= WEAK and passes >= SURE and fails >= SURE
    calibration = BandCalibration(
        auc=round(apart, 4),
        evidence=counts[0],
        others=counts[1],
        against=against,
        stable=stable,
        risk=risk,
        judged=judged,
    )
    bands = replace(bands if judged else Bands(), calibration=calibration)
    return FittedBands(bands, passes, fails)


FEWEST = 5
"""Questions of a half below which it shows nothing."""


def _halves(values: Mapping[str, Sequence[float]]) -> tuple[Floats, Floats]:
    """The mean of each question, in two halves by a hash of its id."""
    halves: tuple[list[float], list[float]] = ([], [])
    for key in sorted(values):
        digest = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        mean = exact_sums.mean(np.array(values[key], np.float64))
        assert mean is not None, "a question without a value is in no half"
        halves[digest[0] & 1].append(mean)
    return np.array(halves[0], np.float64), np.array(halves[1], np.float64)


def _edges(near: Floats, far: Floats) -> _Edges:
    """Half-way between the evidence and the others, as far as each is known.

    What counts is how far the median (and p90) of evidence may lie up by chance, and that of the
    others down. Where these cross, the evidence decides.
    """
    mine, theirs = _tries(near), _tries(far)
    edges = []
    for column in (0, 1):
        high = float(np.quantile(mine[:, column], 0.975))
        low = float(np.quantile(theirs[:, column], 0.025))
        edges.append((high + low) / 2 if high < low else high)
    return _Edges(edges[0], max(edges))


def _tries(values: Floats, tries: int = RESAMPLES) -> Floats:
    """Median and 90th percentile of resamples of the questions, the same ones every time."""
    chance = np.random.Generator(np.random.SFC64(resampling.SEED))
    drawn = values[chance.integers(0, len(values), (tries, len(values)))]
    return np.quantile(drawn, (0.5, 0.9), axis=1).T


def _trial(edges: _Edges, evidence: Floats, others: Floats) -> tuple[float, float]:
    """How often the evidence passes both gates, and how often the others do not."""

    def passing(tries: Floats) -> float:
        inside = (tries[:, 0] <= edges.median) & (tries[:, 1] <= edges.p90)
        return int(np.count_nonzero(inside)) / len(tries)

    return passing(evidence), 1 - passing(others)


def _edge_intervals(
    near: Floats, far: Floats, tries: int = 200
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the edges would lie with other questions, in 95 of 100 cases."""
    chance = np.random.Generator(np.random.SFC64(resampling.SEED + 1))
    stable, risk = [], []
    for _ in range(tries):
        one = near[chance.integers(0, len(near), len(near))]
        other = far[chance.integers(0, len(far), len(far))]
        bands = _edges(one, other).bands(one, other)
        stable.append(bands.stable)
        risk.append(bands.risk)

    def interval(values: Sequence[float]) -> tuple[float, float]:
        low, high = np.quantile(np.array(values), (0.025, 0.975))
        return round(float(low), 4), round(float(high), 4)

    return interval(stable), interval(risk)


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


def _parting(near: Floats, far: Floats) -> float:
    """Youden's index: the cut with most evidence and fewest other texts on the near side."""
    cuts = np.unique(np.concatenate([near, far]))
    inside = np.searchsorted(np.sort(near), cuts, "right") / len(near)
    outside = np.searchsorted(np.sort(far), cuts, "right") / len(far)
    return round(float(cuts[int(np.argmax(inside - outside))]), 2)
