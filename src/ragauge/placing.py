"""Places: where hits and citations lie, and how they meet the evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ragauge.fields import FieldError
from ragauge.ids import lies_in
from ragauge.model.gold import Anchor
from ragauge.model.options import CitationMode
from ragauge.pieces import Rich
from ragauge.spans import Merged, Span, merged, of_unit, overlap, share_half, size


class Place(NamedTuple):
    """A hit or citation with all that is known of where it lies.

    `docs` may be a guess, the only document that the item names; `stated` are not. `own` are the
    spans that a citation gives itself, not those of the hit with its id.
    """

    id: str
    docs: tuple[str, ...]
    section: str | None
    spans: tuple[Span, ...]
    stated: tuple[str, ...] = ()
    own: tuple[Span, ...] = ()

    def in_doc(self, doc: str) -> bool:
        """Whether it lies in a document."""
        return doc in self.docs


def found_at(anchor: Anchor, hits: Sequence[Place], first: Mapping[str, int]) -> int | None:
    """The rank at which an anchor is found: by its id, or once half of it is covered."""
    unit = anchor.spans[0].unit
    gold = of_unit(anchor.spans, unit)
    needed = size(gold)
    best = first.get(anchor.id) if anchor.id is not None else None
    union: Merged = []
    for rank, hit in enumerate(hits):
        if best is not None and rank >= best:
            return best
        if not hit.spans or not hit.in_doc(anchor.doc):
            continue
        refuse_mixed(hit, unit)
        union = merged([*union, *of_unit(hit.spans, unit)])
        if 2 * overlap(union, gold) >= needed:
            return rank
    return best


def is_relevant(place: Place, anchor: Anchor) -> bool:
    """Whether a hit or citation is the anchor's block, or shares half of the shorter with it."""
    if anchor.id is not None and place.id == anchor.id:
        return True
    if not place.spans or not place.in_doc(anchor.doc):
        return False
    refuse_mixed(place, anchor.spans[0].unit)
    return share_half(anchor.spans, place.spans)


def refuse_mixed(place: Place, unit: str) -> None:
    """Bytes and characters look alike and differ: comparing them would be a quiet mistake."""
    units = {span.unit for span in place.spans}
    if units != {unit} and units | {unit} <= {"byte", "char"}:
        raise FieldError(
            "mixed-units",
            f"`{place.id}` has {'/'.join(sorted(units))} offsets, and the gold has {unit} offsets",
            "use one unit in gold and traces: bytes in the document's UTF-8 text",
        )


def _in_scope(place: Place, rich: Rich) -> bool:
    return not rich.scope or any(doc in rich.scope for doc in place.docs)


def in_section(place: Place, rich: Rich) -> bool:
    """Whether it lies in the section that holds the answer, or below it."""
    return (
        place.section is not None
        and rich.section is not None
        and _in_scope(place, rich)
        and lies_in(place.section, rich.section)
    )


def shares(one: Place, other: Place) -> bool:
    """Whether two places of one document overlap by half of the shorter."""
    return bool(set(one.docs) & set(other.docs)) and share_half(one.spans, other.spans)


def _within(one: Span, gold: Span, window: int) -> bool:
    inside = one.start >= gold.start - window and one.end <= gold.end + window
    return inside and one.start < gold.end and gold.start < one.end


def _endpoints(one: Span, gold: Span, window: int) -> bool:
    return abs(one.start - gold.start) <= window and abs(one.end - gold.end) <= window


def _overlap(one: Span, gold: Span, window: int) -> bool:
    return one.start < gold.end + window and gold.start - window < one.end


AGREE: Mapping[CitationMode, Callable[[Span, Span, int], bool]] = {
    "within": _within,
    "endpoints": _endpoints,
    "overlap": _overlap,
}
