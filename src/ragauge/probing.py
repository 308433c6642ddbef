"""Probes: what ΔS over ranks, against decoys, and of several retrievers says of an index.

Each probe has one numeric rule, which it states with the numbers. The source documents name the
patterns ("flat and high", "close") without numbers: those here are our own, in units of ΔS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from ragauge.embedding import Measurer
from ragauge.model.gold import GoldItem
from ragauge.model.semantic import Bands
from ragauge.model.trace import Trace
from ragauge.stats.intervals import quantile

FLAT = 0.05
FALL = 0.10
CLOSE = 0.05
CLOSE_SHARE = 0.20
GOOD_SINGLE = 0.50
WORSE = 0.05
SPLIT = 0.20
LEAST = 5

Finding = Literal[
    "ok", "index-or-metric-mismatch", "filter-too-strict", "anchor-and-decoy-close",
    "hybrid-split", "not-evaluable",
]  # fmt: skip


class Probe(Struct, frozen=True, kw_only=True):
    """What a probe found: its rule, its numbers, and the questions that show it best."""

    probe: str
    finding: Finding
    rule: str
    reason: str
    n: int
    numbers: dict[str, Any]
    worst: tuple[dict[str, Any], ...] = ()
    left_out: dict[str, int] = {}
    embedder: str | None = None


def _median(values: Iterable[float]) -> float | None:
    return quantile(np.array(list(values), np.float64), 0.5)


def _by_question(traces: Iterable[Trace]) -> dict[str, list[Trace]]:
    """The traces of each question without an error, in the order of their names."""
    found: dict[str, list[Trace]] = {}
    for trace in traces:
        if trace.error is None:
            found.setdefault(trace.qid or trace.question or "", []).append(trace)
    return dict(sorted(found.items()))


def _mean(values: Sequence[float]) -> float:
    return float(np.sum(np.sort(np.array(values, np.float64)))) / len(values)


def _distances(trace: Trace, k: int) -> list[float] | None:
    """ΔS of the first k hits; None where there are fewer, or one of them has none."""
    found = [hit.delta_s for hit in trace.hits[:k]]
    listed = [each for each in found if each is not None]
    return listed if len(listed) == k else None


def _reaching(traces: Iterable[Trace], k: int) -> int:
    """How many questions have k hits with ΔS."""
    groups = _by_question(traces).values()
    return sum(any(_distances(each, k) is not None for each in group) for group in groups)


def k_sweep(traces: Iterable[Trace], ks: Sequence[int], bands: Bands) -> Probe:
    """How ΔS of the hits goes with k: the median of the first k, and the nearest of them.

    A cut-off that too few questions reach is left out, as long as two remain.
    """
    traces = list(traces)
    ks = sorted(set(ks))
    left: dict[str, int] = {}
    while len(ks) > 2 and (reached := _reaching(traces, ks[-1])) < LEAST:
        left[f"cut-off: k = {ks[-1]}, which {reached} questions reach"] = 1
        ks = ks[:-1]
    rule = (
        f"flat and high: the median ΔS of the first k hits, and that of the nearest of them, is at "
        f"least {bands.risk:.2f} at every k, and the median moves by at most {FLAT:.2f}; "
        f"falling: the nearest of the first k hits comes nearer by at least {FALL:.2f} from "
        f"k = {ks[0]} to {ks[-1]}, or the median by at least {FLAT:.2f}"
    )
    middle: dict[int, list[float]] = {k: [] for k in ks}
    nearest: dict[int, list[float]] = {k: [] for k in ks}
    rows = []
    short = 0
    for qid, group in _by_question(traces).items():
        whole = [each for each in group if _distances(each, ks[-1]) is not None]
        if not whole:
            short += 1
            continue
        row: dict[str, Any] = {"qid": qid}
        for k in ks:
            listed = [_distances(each, k) or [] for each in whole]
            middle[k].append(_mean([_median(each) or 0.0 for each in listed]))
            nearest[k].append(_mean([min(each) for each in listed]))
            row[f"nearest@{k}"] = nearest[k][-1]
        rows.append((nearest[ks[0]][-1] - nearest[ks[-1]][-1], row))
    n = len(rows)
    if short:
        left[f"questions without {ks[-1]} hits that have ΔS"] = short
    if n < LEAST:
        return _too_few("k-sweep", rule, n, left)
    curve = {k: _median(values) or 0.0 for k, values in middle.items()}
    near = {k: _median(values) or 0.0 for k, values in nearest.items()}
    spread = max(curve.values()) - min(curve.values())
    fall, drop = near[ks[0]] - near[ks[-1]], curve[ks[0]] - curve[ks[-1]]
    finding: Finding = "ok"
    lowest = min(*curve.values(), *near.values())
    if lowest >= bands.risk and spread <= FLAT and fall < FALL:
        finding = "index-or-metric-mismatch"
    elif fall >= FALL or drop >= FLAT:
        finding = "filter-too-strict"
    return Probe(
        probe="k-sweep", finding=finding, rule=rule, n=n, left_out=left,
        reason=f"medians move by {spread:.4f}; the nearest hit comes nearer by {fall:.4f}",
        numbers={
            "median": {str(k): value for k, value in curve.items()},
            "nearest": {str(k): value for k, value in near.items()},
            "spread": spread, "fall": fall,
        },
        worst=_worst(rows),
    )  # fmt: skip


def _worst(
    rows: Sequence[tuple[float, dict[str, Any]]], most: int = 5
) -> tuple[dict[str, Any], ...]:
    ordered = sorted(rows, key=lambda each: (-each[0], each[1]["qid"]))
    return tuple(row for _, row in ordered[:most])


def _too_few(probe: str, rule: str, n: int, left: Mapping[str, int]) -> Probe:
    return Probe(
        probe=probe, finding="not-evaluable", rule=rule, n=n, numbers={}, left_out=dict(left),
        reason=f"{n} questions are too few: the least is {LEAST}",
    )  # fmt: skip


class Reference(Struct, frozen=True):
    """The text of an item's anchor, and that of a decoy."""

    anchor: str | None
    decoy: str | None


def triangulate(
    traces: Iterable[Trace], references: Mapping[str, Reference], texts: Mapping[str, str],
    measurer: Measurer,
) -> Probe:  # fmt: skip
    """Whether what was retrieved first is nearer to the anchor than to a decoy.

    `texts` are those of hits, by id, where the traces do not have them.
    """
    rule = (
        f"close: ΔS(first hit, decoy) - ΔS(first hit, anchor) is below {CLOSE:.2f} for more than "
        f"{CLOSE_SHARE:.0%} of the questions"
    )
    rows = []
    left = {"questions without an anchor and a decoy that have texts": 0,
            "questions whose first hit has no text": 0}  # fmt: skip
    for qid, group in _by_question(traces).items():
        given = references.get(qid)
        if given is None or not given.anchor or not given.decoy:
            left["questions without an anchor and a decoy that have texts"] += 1
            continue
        margins, pairs = [], []
        for trace in group:
            first = trace.hits[0] if trace.hits else None
            text = None if first is None else first.text or texts.get(first.id)
            near = measurer.between(text, given.anchor)
            far = measurer.between(text, given.decoy)
            if near is not None and far is not None:
                margins.append(far - near)
                pairs.append((near, far))
        if not margins:
            left["questions whose first hit has no text"] += 1
            continue
        margin = _mean(margins)
        row: dict[str, Any] = {
            "qid": qid,
            "anchor": _mean([each[0] for each in pairs]),
            "decoy": _mean([each[1] for each in pairs]),
            "margin": margin,
        }
        rows.append((-margin, row))
    left = {reason: count for reason, count in left.items() if count}
    n = len(rows)
    if n < LEAST:
        return _too_few("triangulate", rule, n, left)
    close = sum(row["margin"] < CLOSE for _, row in rows)
    decoys = sum(row["margin"] <= -CLOSE for _, row in rows)
    return Probe(
        probe="triangulate",
        finding="anchor-and-decoy-close" if close > CLOSE_SHARE * n else "ok",
        rule=rule, n=n, left_out=left,
        reason=f"{close} of {n} questions are close, {decoys} of them nearer to the decoy",
        numbers={
            "anchor": _median(row["anchor"] for _, row in rows),
            "decoy": _median(row["decoy"] for _, row in rows),
            "margin": _median(row["margin"] for _, row in rows),
            "close": close, "nearer_to_decoy": decoys, "close_share": close / n,
        },
        worst=_worst(rows),
    )  # fmt: skip


def references_of(items: Iterable[GoldItem], texts: Mapping[str, str]) -> dict[str, Reference]:
    """The anchor and the decoy of each item: its first evidence and first negative with a text."""
    found = {}
    for item in items:
        anchors = [texts.get(name) for name in item.relevant]
        anchors += [each.quote for each in (*item.anchors, *item.places)]
        decoys = [texts.get(name) for name in item.negatives]
        found[item.qid] = Reference(
            next((each for each in anchors if each), None),
            next((each for each in decoys if each), None),
        )
    return found


def hybrid(runs: Mapping[str, Sequence[Trace]], k: int) -> Probe:
    """Whether two retrievers are good by themselves, and worse together.

    `runs` are `sparse`, `dense` and `hybrid`, compared on the questions that all of them have.
    """
    rule = (
        f"split: sparse and dense each have a median ΔS of at most {GOOD_SINGLE:.2f} over their "
        f"first {k} hits, and the hybrid's is above the better of them by more than {WORSE:.2f}"
    )
    grouped = {name: _by_question(traces) for name, traces in runs.items()}
    values: dict[str, dict[str, float]] = {}
    for name, questions in grouped.items():
        values[name] = {}
        for qid, group in questions.items():
            listed = [found for trace in group if (found := _first(trace, k))]
            if listed:
                values[name][qid] = _mean([_median(each) or 0.0 for each in listed])
    every = set().union(*grouped.values())
    common = sorted(set.intersection(*(set(each) for each in values.values())))
    gone = len(every) - len(common)
    left = {"questions without ΔS in all three runs": gone} if gone else {}
    if len(common) < LEAST:
        return _too_few("hybrid", rule, len(common), left)
    medians = {name: _median(found[qid] for qid in common) or 0.0 for name, found in values.items()}
    best = min(medians["sparse"], medians["dense"])
    rows = []
    shared = []
    for qid in common:
        row: dict[str, Any] = {"qid": qid, **{name: each[qid] for name, each in values.items()}}
        rows.append((row["hybrid"] - min(row["sparse"], row["dense"]), row))
        one, other = (_ids(grouped[name][qid], k) for name in ("sparse", "dense"))
        shared.append(len(one & other) / len(one | other))
    overlap = _mean(shared)
    worse = sum(apart > WORSE for apart, _ in rows)
    good = max(medians["sparse"], medians["dense"]) <= GOOD_SINGLE
    is_split = good and medians["hybrid"] > best + WORSE
    apart = "apart" if overlap < SPLIT else "together"
    return Probe(
        probe="hybrid", finding="hybrid-split" if is_split else "ok", rule=rule, n=len(common),
        left_out=left,
        reason=f"the hybrid is {medians['hybrid'] - best:+.4f} from the better single; worse on "
        f"{worse} of {len(common)} questions; sparse and dense share {overlap:.2f} of their hits "
        f"({apart}: a split shows below {SPLIT:.2f})",
        numbers={"median": medians, "worse": worse, "overlap": overlap, "k": k},
        worst=_worst([each for each in rows if each[0] > WORSE]),
    )  # fmt: skip


def _first(trace: Trace, k: int) -> list[float]:
    return [hit.delta_s for hit in trace.hits[:k] if hit.delta_s is not None]


def _ids(group: Sequence[Trace], k: int) -> set[str]:
    return {hit.id for trace in group for hit in trace.hits[:k]}
