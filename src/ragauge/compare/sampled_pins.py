"""Estimates from a sample of pins: a few open questions are pinned, and stand for all of them.

Between the ends of the difference, the pinned ones say how far the truth lies from the low end; the
other open questions are taken to lie as far, on average, as they were drawn at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.compare.places import NARROWEST, PlaceFindings
from ragauge.gates.drops import common_questions, conversations_of
from ragauge.model.gold import Anchor, GoldItem
from ragauge.model.scores import SampledEstimate, Scores
from ragauge.scoring.estimates import delta_estimate
from ragauge.stats import exact_sums
from ragauge.stats.intervals import wilson_lower

FEWEST_PINS = 20
"""With fewer pins there is no estimate."""


class SampledPins(Struct, frozen=True):
    """The questions of a random sample that are pinned, and how many were drawn."""

    keys: frozenset[tuple[str, int | None]]
    drawn: int

    @property
    def pinned(self) -> int:
        """How many are pinned."""
        return len(self.keys)

    @property
    def is_complete(self) -> bool:
        """Whether all that were drawn are pinned, and enough of them.

        Those that nobody could decide may differ from the others.
        """
        return self.pinned >= self.drawn >= FEWEST_PINS


def sampled_pins(items: Sequence[GoldItem]) -> SampledPins | None:
    """The sample that a gold set records; None if it has none, or parts of several."""
    keys = set()
    samples = set()
    for item in items:
        origins = [anchor.narrowed_from for anchor in item.anchors]
        drawn = [origin for origin in origins if origin is not None and origin.drawn is not None]
        if drawn:
            samples |= {(origin.drawn, origin.of, origin.seed) for origin in drawn}
            if not any(anchor.is_chunk for anchor in item.anchors) and not item.relevant:
                keys.add((item.qid, item.turn))
    if len(samples) != 1:
        return None
    ((number, _, _),) = samples
    return SampledPins(frozenset(keys), number or 0)


def widened(item: GoldItem) -> GoldItem:
    """An item whose evidence is the chunks again that a sample of pins narrowed."""
    if not any(_is_drawn(anchor) for anchor in item.anchors):
        return item
    return replace(item, anchors=tuple(dict.fromkeys(map(_widened, item.anchors))))


def _is_drawn(anchor: Anchor) -> bool:
    return anchor.narrowed_from is not None and anchor.narrowed_from.drawn is not None


def _widened(anchor: Anchor) -> Anchor:
    origin = anchor.narrowed_from
    if origin is None or origin.drawn is None:
        return anchor
    return Anchor(
        doc=anchor.doc, spans=origin.spans, id=origin.id, section=anchor.section, grain="chunk"
    )


def estimate_from_pins(
    pinned: tuple[Scores, Scores],
    wide: tuple[Scores, Scores],
    findings: PlaceFindings,
    sample: SampledPins,
) -> dict[str, SampledEstimate]:
    """The difference of each metric that is open without the pins.

    `pinned` are the runs with the pins, `wide` those without, of which `findings` are.
    """
    ends = wide[0].ends, wide[1].ends
    now, before = pinned[1].per_question, pinned[0].per_question
    assert now is not None and before is not None and ends[0] is not None and ends[1] is not None
    low_a, low_b = ends[0].low, ends[1].low
    assert low_a.per_question is not None and low_b.per_question is not None
    mine, theirs, _ = common_questions(low_a.per_question, low_b.per_question)
    keys = [
        (low_a.per_question.qids[place], low_a.per_question.turns[place]) for place in mine.tolist()
    ]
    drawn = np.array([key in sample.keys for key in keys], np.bool_)
    at_a, at_b = (
        {key: at for at, key in enumerate(zip(run.qids, run.turns, strict=True))}
        for run in (before, now)
    )
    if any(key not in at_a or key not in at_b for key in keys):
        # Nothing recognises a pin in both runs, and the others need not be like it.
        return {}
    mine_pinned = np.array([at_a[key] for key in keys], np.int64)
    theirs_pinned = np.array([at_b[key] for key in keys], np.int64)
    conversations = conversations_of(low_a.per_question, mine)
    estimates = {}
    for metric in findings.bands:
        deltas = []
        for end in ("low", "high"):
            one, other = (getattr(side, end).per_question for side in ends if side is not None)
            deltas.append(other.of(metric)[theirs] - one.of(metric)[mine])
        low, high = deltas
        true = now.of(metric)[theirs_pinned] - before.of(metric)[mine_pinned]
        inside = ~np.isnan(low) & ~np.isnan(high)
        chosen = inside & drawn & ~np.isnan(true)
        width = float((high - low)[chosen].sum())
        if width <= NARROWEST or np.count_nonzero(chosen) < FEWEST_PINS:
            continue
        share = min(1.0, max(0.0, float((true - low)[chosen].sum()) / width))
        between = (low + share * (high - low))[inside]
        lowest, highest = (exact_sums.mean(end[inside]) for end in (low, high))
        assert lowest is not None and highest is not None
        definition = registry.metrics()[metric.partition("@")[0]]
        groups = conversations[inside]
        together = np.unique(groups, return_inverse=True)[1].astype(np.int64)
        paired = delta_estimate(
            definition,
            np.zeros(len(between)),
            between,
            together if together.max() + 1 < len(between) else None,
        ).closed
        if paired is None:
            continue
        delta = lowest + share * (highest - lowest)
        by_pins = _half_width(share, sample.pinned) * (highest - lowest)
        half = sqrt(by_pins**2 + ((paired[1] - paired[0]) / 2) ** 2)
        estimates[metric] = SampledEstimate(
            delta=delta, interval=(delta - half, delta + half), pins=sample.pinned
        )
    return estimates


def _half_width(share: float, n: int) -> float:
    """Half the width of Wilson's 95 % interval of a share of n."""
    return (1 - wilson_lower(1 - share, n) - wilson_lower(share, n)) / 2
