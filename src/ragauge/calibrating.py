"""Calibration: how well ΔS of an embedder tells evidence from other texts, and bands that fit it.

Pairs of a question with its evidence, with its hard negatives, and with texts of other questions.
The rule for bands is our own: no source gives one. Of pairs that have nothing to do with each other
1 % are below `stable` and 10 % below `risk`; `target` is where evidence and such pairs part best.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from ragauge.embedding import Measurer
from ragauge.model.columns import Floats
from ragauge.model.gold import GoldItem
from ragauge.model.semantic import ZONES, Bands
from ragauge.model.trace import Trace
from ragauge.remeasuring import Texts
from ragauge.stats.intervals import quantile

SHARES = (0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95)
RANDOM_PAIRS = 5
LEAST = 20
WEAK = 0.80
_STABLE, _RISK = 0.01, 0.10


class Group(Struct, frozen=True, kw_only=True):
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
    groups: dict[str, Group]
    auc: dict[str, float | None]
    proposed: Bands | None
    reason: str | None = None
    left_out: dict[str, int] = {}
    notes: tuple[str, ...] = ()


class Pairs(NamedTuple):
    """Questions with texts: of their evidence, of their hard negatives, and of other questions."""

    positive: list[tuple[str, str]]
    negative: list[tuple[str, str]]
    random: list[tuple[str, str]]


class Pool:
    """The texts that are known, by id: of hits, of the list of chunks, and of the corpus."""

    def __init__(self, texts: Texts, traces: Iterable[Trace]) -> None:
        self.texts = texts
        self.seen: dict[str, str] = {}
        for trace in traces:
            for hit in trace.hits:
                if hit.text is not None and hit.text.strip():
                    self.seen.setdefault(hit.id, hit.text)

    def of(self, name: str) -> str | None:
        """The text of an id, None if it is not known or empty."""
        found = self.seen.get(name) or self.texts.of_id(name)
        return found if found and found.strip() else None

    def names(self) -> list[str]:
        """All ids that may have a text, in order."""
        return sorted({*self.seen, *self.texts.chunks})


def pairs_of(items: Sequence[GoldItem], pool: Pool) -> tuple[Pairs, dict[str, int]]:
    """The pairs of a gold set, and how many had to be left out for want of a text."""
    found = Pairs([], [], [])
    left = {"items without a question": 0, "evidence without a text": 0,
            "negatives without a text": 0}  # fmt: skip
    names = pool.names()
    for item in sorted(items, key=lambda each: (each.qid, each.turn or 0)):
        question = item.question or (item.paraphrases[0] if item.paraphrases else None)
        if not question or not question.strip():
            left["items without a question"] += 1
            continue
        for name in item.relevant:
            _add(found.positive, question, pool.of(name), left, "evidence without a text")
        for anchor in (*item.anchors, *(() if item.relevant else item.places)):
            text = anchor.quote or (pool.of(anchor.id) if anchor.id else None)
            _add(found.positive, question, text, left, "evidence without a text")
        for name in item.negatives:
            _add(found.negative, question, pool.of(name), left, "negatives without a text")
        own = {*item.relevant, *item.negatives, *item.grades}
        own |= {anchor.id for anchor in item.anchors if anchor.id}
        for text in _others(item, names, own, pool):
            found.random.append((question, text))
    return found, {reason: n for reason, n in left.items() if n}


def _add(
    pairs: list[tuple[str, str]], question: str, text: str | None, left: dict[str, int], why: str
) -> None:
    if text is None or not text.strip():
        left[why] += 1
    else:
        pairs.append((question, text))


def _others(item: GoldItem, names: Sequence[str], own: set[str], pool: Pool) -> list[str]:
    """Texts of other ids, drawn by a hash of the question's id: the same ones every time."""
    drawn: dict[str, str] = {}
    for number in range(RANDOM_PAIRS * 4 if names else 0):
        said = f"{item.qid}\0{'' if item.turn is None else item.turn}\0{number}"
        digest = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        name = names[int.from_bytes(digest, "little") % len(names)]
        text = pool.of(name) if name not in own and name not in drawn else None
        if text is not None:
            drawn[name] = text
        if len(drawn) == RANDOM_PAIRS:
            break
    return list(drawn.values())


def calibrate(
    items: Sequence[GoldItem], pool: Pool, measurer: Measurer, *,
    bands: Mapping[str, Bands] | None = None,
) -> Calibration:  # fmt: skip
    """Measure the pairs of a gold set, and propose bands for the embedder."""
    pairs, left = pairs_of(items, pool)
    values = {
        name: np.array(measurer.distances(listed), np.float64)
        for name, listed in pairs._asdict().items()
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
        groups={name: _group(found, mine) for name, found in values.items()},
        auc={"negative": auc(positive, values["negative"]), "random": apart},
        proposed=proposed,
        reason=reason,
        left_out=left,
        notes=tuple(measurer.notes()),
    )


def _group(values: Floats, bands: Bands) -> Group:
    if not len(values):
        return Group(n=0)
    counts = dict.fromkeys(ZONES, 0)
    for value in values.tolist():
        counts[bands.zone(value)] += 1
    return Group(
        n=len(values),
        percentiles={f"p{share * 100:g}": _at(values, share) for share in SHARES},
        zones={zone: n / len(values) for zone, n in counts.items()},
        on_target=int(np.count_nonzero(values <= bands.target)) / len(values),
    )


def _at(values: Floats, share: float) -> float:
    found = quantile(values, share)
    assert found is not None
    return found


def auc(near: Floats, far: Floats) -> float | None:
    """The share of pairs in which the first is nearer than the second; ties count half."""
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
    best = float(cuts[int(np.argmax(inside - outside))])
    return Bands(stable=stable, target=min(risk, max(stable, round(best, 2))), risk=risk)
