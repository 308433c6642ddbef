"""Places of hits and citations, and whether they meet the evidence.

Evidence is found at the rank where half of it is covered (decision 0016), and a hit is evidence if
the two share half of the shorter one, so that neither must be cut as the other is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from ragauge.files.fields import FieldError
from ragauge.ids import lies_in
from ragauge.model.gold import Anchor
from ragauge.model.options import CitationMode
from ragauge.model.trace import Hit
from ragauge.quotes import byte_length, bytes_of, common_runs, covered, shares_half
from ragauge.scoring.evidence_pieces import GoldDetails, is_effective
from ragauge.spans import Merged, Span, merged, of_unit, overlap, share_half, size


class EvidencePlace(NamedTuple):
    """A hit or citation with all that is known of where it lies.

    `docs` may be a guess, the only document that the item names; `stated` are not. `own` are the
    spans that a citation gives itself, not those of the hit with its id. `text` is normalised, and
    there only for items whose evidence is a quote.
    """

    id: str
    docs: tuple[str, ...]
    section: str | None
    spans: tuple[Span, ...]
    stated: tuple[str, ...] = ()
    own: tuple[Span, ...] = ()
    text: str = ""

    def in_doc(self, doc: str) -> bool:
        """Whether it lies in a document."""
        return doc in self.docs

    def may_quote(self, doc: str) -> bool:
        """Whether it has a text that may be of a document: of that one, or of an unknown one."""
        return bool(self.text) and (not doc or not self.docs or doc in self.docs)


RankedPlace = tuple[int, EvidencePlace]
"""A hit at its rank; a list may lack hits that cannot matter."""


def found_at(
    anchor: Anchor, hits: Sequence[RankedPlace], first: Mapping[str, int], *, single: bool = False
) -> int | None:
    """The rank at which an anchor is found: by its id, or once half of it is covered.

    `first` has the first rank of each id.
    `single`: by one hit alone. An anchor without spans is a quote, or else a whole document.
    """
    best = first.get(anchor.id) if anchor.id is not None else None
    if anchor.spans:
        rank_found = _covered_at(anchor, hits, best, single=single)
    elif anchor.quote is not None:
        rank_found = _quoted_at(anchor, anchor.quote, hits, first, single=single)
    else:
        rank_found = next((rank for rank, hit in hits if anchor.doc in hit.stated), None)
    return best if rank_found is None or (best is not None and best < rank_found) else rank_found


def _covered_at(
    anchor: Anchor, hits: Sequence[RankedPlace], best: int | None, *, single: bool
) -> int | None:
    unit = anchor.spans[0].unit
    gold = of_unit(anchor.spans, unit)
    needed = size(gold)
    union: Merged = []
    for rank, hit in hits:
        if best is not None and rank >= best:
            break
        if not hit.spans or anchor.doc not in hit.docs:
            continue
        refuse_mixed(hit, unit)
        mine = of_unit(hit.spans, unit)
        union = mine if single or not union else merged([*union, *mine])
        if 2 * overlap(union, gold) >= needed:
            return rank
    return None


def _quoted_at(
    anchor: Anchor,
    quote: str,
    hits: Sequence[RankedPlace],
    first: Mapping[str, int],
    *,
    single: bool,
) -> int | None:
    alone = _is_quote_alone(anchor)
    length = len(quote) if alone else byte_length(quote)
    measure = size if alone else partial(bytes_of, quote)
    union: Merged = []
    for rank, hit in hits:
        # A chunk that stands twice among the hits is the same words, not their next occurrence.
        if first.get(hit.id, rank) != rank or not hit.may_quote(anchor.doc):
            continue
        mine = covered(quote, hit.text, None if single else union)
        if alone and 2 * size(mine) < length:
            mine = max(mine, common_runs(quote, hit.text), key=size)
        union = mine if single else merged([*union, *mine])
        if union and 2 * measure(union) >= length:
            return rank
    return None


def _is_quote_alone(anchor: Anchor) -> bool:
    """Whether all that a gold set says of a piece of evidence is its words."""
    return not anchor.doc and not is_effective(anchor)


def is_relevant(place: EvidencePlace, anchor: Anchor) -> bool:
    """Whether a hit or citation is the anchor's block, or shares half of the shorter with it."""
    if anchor.id is not None and place.id == anchor.id:
        return True
    if not anchor.spans:
        if anchor.quote is None:
            return anchor.doc in place.stated
        if not place.may_quote(anchor.doc):
            return False
        if shares_half(anchor.quote, place.text):
            return True
        runs = common_runs(anchor.quote, place.text) if _is_quote_alone(anchor) else []
        return 2 * size(runs) >= max(1, min(len(anchor.quote), len(place.text)))
    if not place.spans or not place.in_doc(anchor.doc):
        return False
    refuse_mixed(place, anchor.spans[0].unit)
    return share_half(anchor.spans, place.spans)


def is_negative(place: EvidencePlace, details: GoldDetails) -> bool:
    """Whether a hit or citation is a hard negative, or lies in the section of a decoy."""
    if place.id in details.negatives or any(is_relevant(place, anchor) for anchor in details.wrong):
        return True
    decoy, section = details.decoy, place.section
    if decoy is None or section is None or not lies_in(section, decoy):
        return False
    return details.decoy_doc is None or place.in_doc(details.decoy_doc)


def refuse_mixed(place: EvidencePlace, unit: str) -> None:
    """Bytes and characters look alike and differ: comparing them would be a quiet mistake."""
    if len(place.spans) == 1 and place.spans[0].unit == unit:
        return
    units = {span.unit for span in place.spans}
    if units != {unit} and units | {unit} <= {"byte", "char"}:
        raise FieldError(
            "mixed-units",
            f"`{place.id}` has {'/'.join(sorted(units))} offsets, and the gold has {unit} offsets",
            "use one unit in gold and traces: bytes in the document's UTF-8 text; with a corpus, "
            "gold in characters is read as bytes",
        )


def in_scope(place: EvidencePlace, details: GoldDetails) -> bool:
    """Whether it lies in a document in which the anchor section is meant."""
    return not details.scope or any(doc in details.scope for doc in place.docs)


def in_section(place: EvidencePlace, details: GoldDetails) -> bool:
    """Whether it lies in the section that holds the answer, or below it."""
    return (
        place.section is not None
        and details.section is not None
        and in_scope(place, details)
        and lies_in(place.section, details.section)
    )


def shares(one: EvidencePlace, other: EvidencePlace) -> bool:
    """Whether two places of one document overlap by half of the shorter."""
    return bool(set(one.docs) & set(other.docs)) and share_half(one.spans, other.spans)


def _within(cited: Merged, gold: Merged, window: int) -> bool:
    widened = merged((start - window, end + window) for start, end in gold)
    return overlap(cited, widened) == size(cited) and overlap(cited, gold) > 0


def _endpoints(cited: Merged, gold: Merged, window: int) -> bool:
    if not cited or not gold:
        return False
    first, last = abs(cited[0][0] - gold[0][0]), abs(cited[-1][1] - gold[-1][1])
    return first <= window and last <= window


def _overlap(cited: Merged, gold: Merged, window: int) -> bool:
    return overlap(cited, [(start - window, end + window) for start, end in gold]) > 0


AGREE: Mapping[CitationMode, Callable[[Merged, Merged, int], bool]] = {
    "within": _within,
    "endpoints": _endpoints,
    "overlap": _overlap,
}
"""When a citation agrees with evidence; both are unions of spans."""


class OnePlace(NamedTuple):
    """The stretch, its unit, and the name of the piece of evidence, if it has one."""

    doc: str
    start: int
    end: int
    unit: str
    name: str | None


class PlaceRanks(NamedTuple):
    """Where the evidence is found, and the ranks of all hits that are relevant, in order."""

    found: int | None
    relevant: list[int]


def only_place(details: GoldDetails) -> OnePlace | None:
    """The one place that an item asks for; None where it asks for anything else, or for more."""
    if len(details.anchors) != 1 or not details.counted[0] or details.ids or details.docs:
        return None
    if details.somewhere:
        return None
    if details.section or details.decoy or details.negatives or details.wrong or details.judged:
        return None
    anchor = details.anchors[0]
    if len(anchor.spans) != 1 or not anchor.spans[0].length:
        return None
    span = anchor.spans[0]
    return OnePlace(anchor.doc, span.start, span.end, span.unit, anchor.id)


def ranks_of(
    place: OnePlace, hits: Sequence[Hit], ids: Sequence[str], *, single: bool
) -> PlaceRanks | None:
    """Where hits with these ids find the place; None where a hit needs a closer look.

    The same as `found_at` and `is_relevant` say hit by hit, with fewer steps for the usual item,
    which asks for one place. A property test compares the two.
    """
    doc, start, end, unit, name = place
    best = ids.index(name) if name is not None and name in ids else None
    covered_at: int | None = None
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
        if covered_at is None and (best is None or rank < best):
            covered = merged([*covered, (low, high)]) if covered and not single else [(low, high)]
            if 2 * size(covered) >= end - start:
                covered_at = rank
        half = 2 * (high - low) >= min(end - start, span.length)
        if half and rank != best and ids.index(hit.id) == rank:
            relevant.append(rank)
    return PlaceRanks(best if covered_at is None else covered_at, sorted(relevant))
