"""Probes: what ΔS over ranks, against decoys, and of several retrievers says of an index.

Each probe has one numeric rule, which it states with the numbers. The source documents name the
patterns ("flat and high", "close") without numbers: those here are our own, in units of ΔS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from ragauge.diagnose.scored_traces import QuestionKey, ScoredTraces
from ragauge.embed.measure import Measurer
from ragauge.model.gold import GoldItem
from ragauge.model.semantic import Bands
from ragauge.model.trace import Trace
from ragauge.scoring.known_texts import TextsById, first_of
from ragauge.stats.intervals import quantile

# Own numbers: the pages say "flat", "sharp", "close" and "worse". 0.05 is a quarter of the
# transitional zone of the source's bands (0.40 to 0.60), and 0.10 half of it.
FLAT = 0.05
FALL = 0.10
CLOSE = 0.05
CLOSE_SHARE = 0.20
GOOD_SINGLE = 0.50
WORSE = 0.05
SPLIT = 0.20
LEAST = 5
"""Questions below which a median tells nothing, as for slices."""

ProbeFinding = Literal[
    "ok",
    "index-or-metric-mismatch",
    "filter-too-strict",
    "anchor-and-decoy-close",
    "hybrid-split",
    "not-evaluable",
]


class Probe(Struct, frozen=True, kw_only=True):
    """What a probe found: its rule, its numbers, and the questions that show it best.

    `unknown` are names of traces that belong to no gold item, and were not looked at.
    """

    probe: str
    finding: ProbeFinding
    rule: str
    reason: str
    n: int
    numbers: dict[str, Any]
    worst: tuple[dict[str, Any], ...] = ()
    left_out: dict[str, int] = {}
    unknown: tuple[str, ...] = ()
    embedder: str | None = None


def _median(values: Iterable[float]) -> float | None:
    return quantile(np.array(list(values), np.float64), 0.5)


def _mean(values: Sequence[float]) -> float:
    return float(np.sum(np.sort(np.array(values, np.float64)))) / len(values)


def _distances(trace: Trace, k: int) -> list[float] | None:
    """ΔS of the first k hits; None where there are fewer, or one of them has none."""
    distances = [hit.delta_s for hit in trace.hits[:k] if hit.delta_s is not None]
    return distances if len(distances) == k else None


def _reaching(scored: ScoredTraces, k: int) -> int:
    """How many questions have k hits with ΔS."""
    groups = scored.by_question.values()
    return sum(any(_distances(trace, k) is not None for trace in group) for group in groups)


class _Curve(Struct, frozen=True):
    """ΔS of one question by k: the median of the first k hits, and the nearest of them."""

    question: QuestionKey
    middle: list[float]
    nearest: list[float]

    def row(self, ks: Sequence[int], what: str) -> dict[str, Any]:
        """As it is shown: the nearest hits, or the medians where those show it."""
        distances = self.nearest if what == "nearest" else self.middle
        by_k = {f"{what}@{k}": value for k, value in zip(ks, distances, strict=True)}
        return {**_named(self.question), **by_k}


def k_sweep(scored: ScoredTraces, ks: Sequence[int], bands: Bands) -> Probe:
    """How ΔS of the hits goes with k: the median of the first k, and the nearest of them.

    A cut-off that too few questions reach is excluded, as long as two remain.
    """
    ks = sorted(set(ks))
    excluded = dict(scored.left_out)
    while len(ks) > 2 and (reached := _reaching(scored, ks[-1])) < LEAST:
        excluded[f"cut-off: k = {ks[-1]}, which {reached} questions reach"] = 1
        ks = ks[:-1]
    rule = (
        f"flat and high: the median ΔS of the first k hits, and that of the nearest of them, is at "
        f"least {bands.risk:.2f} at every k, and the median moves by at most {FLAT:.2f}; "
        f"falling: the nearest of the first k hits comes nearer by at least {FALL:.2f} from "
        f"k = {ks[0]} to {ks[-1]}, or the median by at least {FLAT:.2f}"
    )
    curves, short_questions, short_slots = [], 0, 0
    for question, group in scored.by_question.items():
        # Every k over the same slots: a curve over other traces at each k would show the traces.
        deep = [trace for trace in group if _distances(trace, ks[-1]) is not None]
        if not deep:
            short_questions += 1
            continue
        short_slots += len(group) - len(deep)
        by_k = [[_distances(trace, k) or [] for trace in deep] for k in ks]
        curves.append(
            _Curve(
                question,
                [_mean([_median(distances) or 0.0 for distances in slots]) for slots in by_k],
                [_mean([min(distances) for distances in slots]) for slots in by_k],
            )
        )
    if short_questions:
        excluded[f"questions without {ks[-1]} hits that have ΔS"] = short_questions
    if short_slots:
        excluded[f"slots of other questions without {ks[-1]} hits that have ΔS"] = short_slots
    n = len(curves)
    if n < LEAST:
        return _too_few("k-sweep", rule, n, excluded, scored.unknown)
    curve = [_median(q.middle[place] for q in curves) or 0.0 for place in range(len(ks))]
    near = [_median(q.nearest[place] for q in curves) or 0.0 for place in range(len(ks))]
    spread = max(curve) - min(curve)
    fall, drop = near[0] - near[-1], curve[0] - curve[-1]
    finding: ProbeFinding = "ok"
    if min(*curve, *near) >= bands.risk and spread <= FLAT and fall < FALL:
        finding = "index-or-metric-mismatch"
    elif fall >= FALL or drop >= FLAT:
        finding = "filter-too-strict"

    falling = finding == "filter-too-strict"
    what = "median" if falling and fall < FALL else "nearest"

    def shows(question_curve: _Curve) -> float:
        """How well a question shows the finding: it falls, or even its nearest hit is far."""
        distances = question_curve.nearest if what == "nearest" else question_curve.middle
        return distances[0] - distances[-1] if falling else distances[-1]

    return Probe(
        probe="k-sweep",
        finding=finding,
        rule=rule,
        n=n,
        left_out=excluded,
        unknown=scored.unknown,
        reason=f"medians move by {spread:.4f}; the nearest hit comes nearer by {fall:.4f}",
        numbers={
            "median": dict(zip(map(str, ks), curve, strict=True)),
            "nearest": dict(zip(map(str, ks), near, strict=True)),
            "spread": spread,
            "fall": fall,
        },
        worst=_worst([(shows(q), q.question, q.row(ks, what)) for q in curves]),
    )


def _named(question: QuestionKey) -> dict[str, Any]:
    """A question as a row begins: the turn stands there where there is one."""
    turn = {} if question.turn is None else {"turn": question.turn}
    return {"qid": question.qid, **turn}


_Row = tuple[float, QuestionKey, dict[str, Any]]
"""How well a question shows the finding, and what is shown of it."""


def _worst(rows: Sequence[_Row], most: int = 5) -> tuple[dict[str, Any], ...]:
    ordered = sorted(rows, key=lambda row: (-row[0], row[1].order))
    return tuple(row for _, _, row in ordered[:most])


def _too_few(
    probe: str, rule: str, n: int, excluded: Mapping[str, int], unknown: tuple[str, ...]
) -> Probe:
    return Probe(
        probe=probe,
        finding="not-evaluable",
        rule=rule,
        n=n,
        numbers={},
        left_out=dict(excluded),
        unknown=unknown,
        reason=f"{n} questions are too few: the least is {LEAST}",
    )


class Reference(Struct, frozen=True):
    """The text of an item's anchor, and that of a decoy."""

    anchor: str | None
    decoy: str | None


def triangulate(
    scored: ScoredTraces,
    references: Mapping[QuestionKey, Reference],
    pool: TextsById,
    measurer: Measurer,
) -> Probe:
    """Whether what was retrieved first is nearer to the anchor than to a decoy.

    `pool` has the texts of hits where the traces do not have them.
    """
    rule = (
        f"close: ΔS(first hit, decoy) - ΔS(first hit, anchor) is below {CLOSE:.2f} for more than "
        f"{CLOSE_SHARE:.0%} of the questions"
    )
    rows: list[_Row] = []
    no_reference = no_text = 0
    for question, group in scored.by_question.items():
        reference = references.get(question)
        if reference is None or not reference.anchor or not reference.decoy:
            no_reference += 1
            continue
        pairs = []
        for trace in group:
            text = pool.of_hit(trace.hits[0]) if trace.hits else None
            near = measurer.between(text, reference.anchor)
            far = measurer.between(text, reference.decoy)
            if near is not None and far is not None:
                pairs.append((near, far))
        if not pairs:
            no_text += 1
            continue
        margin = _mean([far - near for near, far in pairs])
        row = {
            **_named(question),
            "anchor": _mean([near for near, _ in pairs]),
            "decoy": _mean([far for _, far in pairs]),
            "margin": margin,
        }
        rows.append((-margin, question, row))
    excluded = dict(scored.left_out)
    if no_reference:
        excluded["questions without an anchor and a decoy that have texts"] = no_reference
    if no_text:
        excluded["questions whose first hit has no text"] = no_text
    n = len(rows)
    if n < LEAST:
        return _too_few("triangulate", rule, n, excluded, scored.unknown)
    close = sum(row["margin"] < CLOSE for _, _, row in rows)
    decoys = sum(row["margin"] <= -CLOSE for _, _, row in rows)
    return Probe(
        probe="triangulate",
        finding="anchor-and-decoy-close" if close > CLOSE_SHARE * n else "ok",
        rule=rule,
        n=n,
        left_out=excluded,
        unknown=scored.unknown,
        reason=f"{close} of {n} questions are close, {decoys} of them nearer to the decoy",
        numbers={
            "anchor": _median(row["anchor"] for _, _, row in rows),
            "decoy": _median(row["decoy"] for _, _, row in rows),
            "margin": _median(row["margin"] for _, _, row in rows),
            "close": close,
            "nearer_to_decoy": decoys,
            "close_share": close / n,
        },
        worst=_worst(rows),
    )


def references_of(items: Iterable[GoldItem], pool: TextsById) -> dict[QuestionKey, Reference]:
    """The anchor and the decoy of each item: its first evidence and first negative with a text."""
    return {
        QuestionKey(item.qid, item.turn): Reference(
            first_of(pool.evidence(item)), first_of(pool.negatives(item))
        )
        for item in items
    }


def hybrid(runs: Mapping[str, ScoredTraces], k: int) -> Probe:
    """Whether two retrievers are good by themselves, and worse together.

    `runs` are `sparse`, `dense` and `hybrid`, compared on the questions that all of them have.
    """
    rule = (
        f"split: sparse and dense each have a median ΔS of at most {GOOD_SINGLE:.2f} over their "
        f"first {k} hits, and the hybrid's is above the better of them by more than {WORSE:.2f}"
    )
    values: dict[str, dict[QuestionKey, float]] = {}
    for name, run in runs.items():
        values[name] = {}
        for question, group in run.by_question.items():
            slots = [distances for trace in group if (distances := _first(trace, k))]
            if slots:
                values[name][question] = _mean([_median(distances) or 0.0 for distances in slots])
    every = {question for run in runs.values() for question in run.by_question}
    in_all = set.intersection(*(set(by_question) for by_question in values.values()))
    common = sorted(in_all, key=lambda question: question.order)
    excluded = {
        f"{reason} ({name})": count
        for name, run in runs.items()
        for reason, count in run.left_out.items()
    }
    if len(every) > len(common):
        excluded["questions without ΔS in all three runs"] = len(every) - len(common)
    unknown = tuple(dict.fromkeys(name for run in runs.values() for name in run.unknown))
    if len(common) < LEAST:
        return _too_few("hybrid", rule, len(common), excluded, unknown)
    medians = {
        name: _median(by_question[question] for question in common) or 0.0
        for name, by_question in values.items()
    }
    best = min(medians["sparse"], medians["dense"])
    rows: list[_Row] = []
    overlaps = []
    for question in common:
        of_runs = {name: by_question[question] for name, by_question in values.items()}
        apart = of_runs["hybrid"] - min(of_runs["sparse"], of_runs["dense"])
        rows.append((apart, question, {**_named(question), **of_runs}))
        sparse, dense = (_ids(runs[name].by_question[question], k) for name in ("sparse", "dense"))
        overlaps.append(len(sparse & dense) / len(sparse | dense))
    overlap = _mean(overlaps)
    worse = sum(apart > WORSE for apart, _, _ in rows)
    good = max(medians["sparse"], medians["dense"]) <= GOOD_SINGLE
    is_split = good and medians["hybrid"] > best + WORSE
    agreement = "apart" if overlap < SPLIT else "together"
    return Probe(
        probe="hybrid",
        finding="hybrid-split" if is_split else "ok",
        rule=rule,
        n=len(common),
        left_out=excluded,
        unknown=unknown,
        reason=f"the hybrid is {medians['hybrid'] - best:+.4f} from the better single; worse on "
        f"{worse} of {len(common)} questions; sparse and dense share {overlap:.2f} of their hits "
        f"({agreement}: a split shows below {SPLIT:.2f})",
        numbers={"median": medians, "worse": worse, "overlap": overlap, "k": k},
        worst=_worst([row for row in rows if row[0] > WORSE]),
    )


def _first(trace: Trace, k: int) -> list[float]:
    return [hit.delta_s for hit in trace.hits[:k] if hit.delta_s is not None]


def _ids(group: Sequence[Trace], k: int) -> set[str]:
    return {hit.id for trace in group for hit in trace.hits[:k]}
