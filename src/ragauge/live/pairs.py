"""A pair: what live and a second system did for one question, and how far they agree.

Nobody knows the right answer to a live question. What can be measured without it: whether the
second system retrieves what live retrieved, whether it cites, whether it cites what it retrieved,
how far its citations are from the question, and how long it took.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from msgspec import Struct

from ragauge.model.agreement import By
from ragauge.model.trace import Answer, Hit, Trace
from ragauge.quotes import byte_length, bytes_of, covered, normalised
from ragauge.run.shadow_agreement import agree, slot_content
from ragauge.scoring.refusals import NaturalRefusals
from ragauge.scoring.trace_details import distance_of_citations
from ragauge.spans import Merged, merged, of_unit, overlap, size
from ragauge.stats.intervals import quantile

TOP = 5
"""Hits of live that count: the recall proxy is the share of them that the other side covers."""

MatchRung = Literal["exact", "span", "quote", "id", "document"]
RUNGS: tuple[MatchRung, ...] = ("exact", "span", "quote", "id", "document")
"""By what hits are recognised, the surest first; `id` is an id that nothing proves or refutes."""

Outcome = Literal["cited", "invalid", "uncited", "refused", "hits", "empty", "failed"]
"""What became of a question.

cited     answered, and every citation is among the hits and known to the corpus, if there is one
invalid   answered, with a citation that is not
uncited   answered without a citation: not cite-first
refused   declined
hits      nothing was answered, something retrieved: an index without a reader
empty     neither
failed    an error, or no answer in time
"""

ANSWERED: tuple[Outcome, ...] = ("cited", "invalid", "uncited")
_TOKEN = "not in context"
_SLOT = ("", None, None, None)


class SideValues(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured of one side; `index` is the hash of the index where the side says it."""

    outcome: Outcome
    delta_s: float | None = None
    ms: float | None = None
    index: str | None = None


class PairValues(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured of a pair.

    found, expected  hits of live's top 5 that the other side's top 5 covers, and all of them
    rung             by what they were recognised
    unmeasured       why there is no such count
    tau              Kendall's tau of the first ten of both
    same_citations   whether both cite the same; None where neither cites
    gold             values of gold metrics of both, where the question is one of the gold set
    """

    live: SideValues
    other: SideValues
    found: int | None = None
    expected: int | None = None
    rung: MatchRung | None = None
    unmeasured: str | None = None
    tau: float | None = None
    same_citations: bool | None = None
    gold: dict[str, tuple[float | None, float | None]] = {}


class TopCoverage(NamedTuple):
    """How much of live's top 5 another top 5 covers, and by what that was seen."""

    found: int
    expected: int
    rung: MatchRung


Refuses = Callable[[Answer], bool]


def refusal_reader(patterns: Sequence[str] = (), languages: Sequence[str] = ("en",)) -> Refuses:
    """What tells refusals: the flag of the answer, or else its token, patterns and wording."""
    compiled = [re.compile(pattern, re.IGNORECASE) for pattern in patterns]
    natural = _natural(tuple(languages))

    def refuses(answer: Answer) -> bool:
        if answer.refused is not None:
            return answer.refused
        if answer.grounded is not None:
            return not answer.grounded
        text = answer.said or ""
        if text.strip().lower() == _TOKEN or any(pattern.search(text) for pattern in compiled):
            return True
        return natural.declines(text.lower()) if text else False

    return refuses


@lru_cache(8)
def _natural(languages: tuple[str, ...]) -> NaturalRefusals:
    return NaturalRefusals(languages)


def side_values(trace: Trace, refuses: Refuses) -> SideValues:
    """Measure one side of a pair."""
    timing = trace.timing
    return SideValues(
        outcome=outcome_of(trace, refuses),
        delta_s=None if trace.error is not None else _delta_s(trace),
        ms=None if timing is None else timing.total,
        index=trace.index.get("index_hash"),
    )


def outcome_of(trace: Trace, refuses: Refuses) -> Outcome:
    """What became of the question of a trace."""
    if trace.error is not None:
        return "failed"
    answer = trace.answer
    if answer is None:
        return "hits" if trace.hits else "empty"
    if refuses(answer):
        return "refused"
    listed = answer.listed
    if not listed:
        return "uncited"
    valid = {hit.id for hit in trace.hits} - set(trace.unknown_ids or ())
    return "cited" if all(citation.id in valid for citation in listed) else "invalid"


def _delta_s(trace: Trace) -> float | None:
    """ΔS of what is cited; where nothing is, the median over the first hits."""
    answer = trace.answer
    if answer is not None and answer.listed:
        return distance_of_citations(answer, trace.hits)
    values = [hit.delta_s for hit in trace.hits[:TOP] if hit.delta_s is not None]
    return quantile(np.array(values, np.float64), 0.5)


def measure_pair(
    live: Trace, other: Trace, refuses: Refuses, *, first: MatchRung = "exact"
) -> PairValues:
    """Measure a pair; hits are recognised by no rung before `first`.

    Live asked again is measured by the same rung as the shadow: a place is found more easily than
    an id, and the baseline must not be stricter or milder than what it is compared with.
    """
    sides = side_values(live, refuses), side_values(other, refuses)
    if other.error is not None:
        return PairValues(live=sides[0], other=sides[1], unmeasured="failed")
    top = cover_top(live, other, first=first)
    by: By = "place" if isinstance(top, TopCoverage) and top.rung == "span" else "id"
    agreement = agree({_SLOT: slot_content(live, {})}, {_SLOT: slot_content(other, {})}, by)
    same = agreement.citations.value
    return PairValues(
        live=sides[0],
        other=sides[1],
        found=top.found if isinstance(top, TopCoverage) else None,
        expected=top.expected if isinstance(top, TopCoverage) else None,
        rung=top.rung if isinstance(top, TopCoverage) else None,
        unmeasured=None if isinstance(top, TopCoverage) else top,
        tau=agreement.tau.value,
        same_citations=None if same is None else same == 1.0,
    )


def cover_top(live: Trace, other: Trace, *, first: MatchRung = "exact") -> TopCoverage | str:
    """How many hits of live's top 5 the other's top 5 covers, or why nobody can tell.

    One rung is taken for all of them: the first for which both sides carry what it needs, whether
    or not it finds anything, so that a miss never slides down to a rung that hides it.
    """
    wanted = _unique(live.hits[:TOP])
    there = other.hits[:TOP]
    if not wanted:
        return "live-empty"
    if not there:
        return TopCoverage(0, len(wanted), first)
    for rung in RUNGS[RUNGS.index(first) :]:
        if _WORKS[rung](wanted, there, _chunker(live), _chunker(other)):
            found = sum(_FINDS[rung](hit, there) for hit in wanted)
            return TopCoverage(found, len(wanted), rung)
    return "no-common-ground"


def _unique(hits: Sequence[Hit]) -> list[Hit]:
    """Each id once, as it came first."""
    by_id: dict[str, Hit] = {}
    for hit in hits:
        by_id.setdefault(hit.id, hit)
    return list(by_id.values())


def _chunker(trace: Trace) -> str | None:
    """The version of the chunker, where a trace names one and only one."""
    versions = {hit.chunker_version for hit in trace.hits[:TOP]}
    versions.add(trace.index.get("chunker_version"))
    versions.discard(None)
    return versions.pop() if len(versions) == 1 else None


def _docs(hit: Hit) -> set[str]:
    return {doc for doc in (hit.doc, hit.path) if doc is not None}


def _contradicts(wanted: Sequence[Hit], there: Sequence[Hit]) -> bool:
    """Whether an id stands for other text on the other side."""
    by_id = {hit.id: hit for hit in there}
    for hit in wanted:
        twin = by_id.get(hit.id)
        if twin is None:
            continue
        for mine, theirs in (
            (hit.spans, twin.spans),
            (hit.text_hash, twin.text_hash),
            (None if hit.snippet else hit.text, None if twin.snippet else twin.text),
        ):
            if mine and theirs and mine != theirs:
                return True
    return False


def _same_chunks(
    wanted: Sequence[Hit], there: Sequence[Hit], mine: str | None, theirs: str | None
) -> bool:
    return mine is not None and mine == theirs and not _contradicts(wanted, there)


def _have_places(
    wanted: Sequence[Hit], there: Sequence[Hit], _mine: str | None, _theirs: str | None
) -> bool:
    """Whether both sides say where their hits lie, in one unit of documents that are the same."""
    hits = [*wanted, *there]
    if not all(hit.spans and _docs(hit) for hit in hits):
        return False
    if len({span.unit for hit in hits for span in hit.spans}) > 1:
        return False
    hashes = {hit.doc: hit.doc_hash for hit in wanted if hit.doc_hash is not None}
    # Offsets into an older version of a document say nothing of the new one.
    return all(
        hit.doc_hash is None or hashes.get(hit.doc, hit.doc_hash) == hit.doc_hash for hit in there
    )


def _have_texts(
    wanted: Sequence[Hit], there: Sequence[Hit], _mine: str | None, _theirs: str | None
) -> bool:
    return all(normalised(hit.text or "") for hit in (*wanted, *there))


def _have_ids(
    wanted: Sequence[Hit], there: Sequence[Hit], mine: str | None, theirs: str | None
) -> bool:
    """Whether nothing says that ids of the two sides mean different chunks."""
    return (mine is None or theirs is None or mine == theirs) and not _contradicts(wanted, there)


def _have_documents(
    wanted: Sequence[Hit], there: Sequence[Hit], _mine: str | None, _theirs: str | None
) -> bool:
    return all(_docs(hit) for hit in (*wanted, *there))


def _found_by_id(hit: Hit, there: Sequence[Hit]) -> bool:
    return any(twin.id == hit.id for twin in there)


def _found_by_span(hit: Hit, there: Sequence[Hit]) -> bool:
    """Whether the other side's hits cover half of the place, together."""
    unit = hit.spans[0].unit
    place = of_unit(hit.spans, unit)
    docs = _docs(hit)
    pieces = [piece for twin in there if _docs(twin) & docs for piece in of_unit(twin.spans, unit)]
    return 2 * overlap(place, merged(pieces)) >= max(1, size(place))


def _found_by_quote(hit: Hit, there: Sequence[Hit]) -> bool:
    """Whether the other side's texts cover half of the text, together."""
    quote = normalised(hit.text or "")
    union: Merged = []
    for twin in there:
        union = merged([*union, *covered(quote, normalised(twin.text or ""), union)])
    return 2 * bytes_of(quote, union) >= byte_length(quote)


def _found_by_document(hit: Hit, there: Sequence[Hit]) -> bool:
    return any(_docs(twin) & _docs(hit) for twin in there)


_Works = Callable[[Sequence[Hit], Sequence[Hit], str | None, str | None], bool]
_WORKS: Mapping[MatchRung, _Works] = {
    "exact": _same_chunks,
    "span": _have_places,
    "quote": _have_texts,
    "id": _have_ids,
    "document": _have_documents,
}
_FINDS: Mapping[MatchRung, Callable[[Hit, Sequence[Hit]], bool]] = {
    "exact": _found_by_id,
    "span": _found_by_span,
    "quote": _found_by_quote,
    "id": _found_by_id,
    "document": _found_by_document,
}
