"""Items whose evidence is one stretch of one document: hits are held against it in few steps.

Comparisons by place make such items of all that expect a chunk by its id, by the hundred thousand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ragauge.model.trace import Hit
from ragauge.scoring.evidence_pieces import Rich
from ragauge.spans import Merged, merged, size


class OnePlace(NamedTuple):
    """The stretch, its unit, and the name of the piece of evidence, if it has one."""

    doc: str
    start: int
    end: int
    unit: str
    name: str | None


class Ranks(NamedTuple):
    """Where the evidence is found, and the ranks of all hits that are relevant, in order."""

    found: int | None
    relevant: list[int]


def only_place(rich: Rich) -> OnePlace | None:
    """The one place that an item asks for; None where it asks for anything else, or for more."""
    if len(rich.anchors) != 1 or not rich.counted[0] or rich.ids or rich.docs:
        return None
    if rich.section or rich.decoy or rich.negatives:
        return None
    anchor = rich.anchors[0]
    if len(anchor.spans) != 1 or not anchor.spans[0].length:
        return None
    span = anchor.spans[0]
    return OnePlace(anchor.doc, span.start, span.end, span.unit, anchor.id)


def ranks_of(
    place: OnePlace, hits: Sequence[Hit], ids: Sequence[str], *, single: bool
) -> Ranks | None:
    """Where hits with these ids find the place; None where a hit needs a closer look.

    The same as `placing.found_at` and `placing.is_relevant` say, hit by hit.
    """
    doc, start, end, unit, name = place
    best = ids.index(name) if name is not None and name in ids else None
    found: int | None = None
    relevant = [] if best is None else [best]
    covered: Merged = []
    for rank, hit in enumerate(hits):
        if not hit.doc or hit.path is not None:
            return None  # its document may be a guess, or have two names
        if hit.doc != doc or not hit.spans:
            continue
        span = hit.spans[0]
        if len(hit.spans) > 1 or span.unit != unit:
            return None
        low, high = max(span.start, start), min(span.end, end)
        if low >= high:
            continue
        if found is None and (best is None or rank < best):
            covered = merged([*covered, (low, high)]) if covered and not single else [(low, high)]
            if 2 * size(covered) >= end - start:
                found = rank
        half = 2 * (high - low) >= min(end - start, span.length)
        if half and rank != best and ids.index(hit.id) == rank:
            relevant.append(rank)
    return Ranks(best if found is None else found, sorted(relevant))
