"""One trace as the pages show it: the question, the answer, the hits, and which were cited."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ragauge import registry
from ragauge.files.fields import FieldError
from ragauge.formats.traces import RowReader
from ragauge.model.payloads import UNREADABLE
from ragauge.model.trace import Trace

LARGEST = 64 * 2**20
"""Bytes of a body when unpacked: a damaged one must not fill the memory."""


class ShownHit(Struct, frozen=True, kw_only=True):
    """A hit at its rank; `other_rank` is where the other side of a pair has it."""

    rank: int
    id: str
    doc: str | None
    section: str | None
    score: float | None
    delta_s: float | None
    text: str | None
    cited: bool
    other_rank: int | None = None


class ShownTrace(Struct, frozen=True, kw_only=True):
    """A trace, or why there is none to show."""

    question: str | None = None
    answer: str | None = None
    refused: bool = False
    error: str | None = None
    hits: tuple[ShownHit, ...] = ()
    strays: tuple[str, ...] = ()
    """Ids that were cited and are no hits."""
    cites: bool = False
    milliseconds: float | None = None
    facts: Mapping[str, str] = {}
    missing: str | None = None


def unpacked(body: bytes) -> bytes:
    """The JSON of a packed body; a body that was never packed as it is."""
    if body[:1] in (b"{", b"["):
        return body
    opened = zlib.decompressobj()
    text = opened.decompress(body, LARGEST)
    if opened.unconsumed_tail:
        raise zlib.error("it is too large")
    return text


def read_trace(row: Mapping[str, Any]) -> Trace:
    """A native row of JSON as a trace."""
    dialect = registry.dialects()["native"]
    return RowReader(dialect, own=False).trace(dict(row))


def shown_trace(body: bytes | None) -> ShownTrace:
    """What there is to see of a body: nothing once it was deleted, or if it cannot be read."""
    if body is None:
        gone = "The texts of this trace were deleted by their age; its numbers stay."
        return ShownTrace(missing=gone)
    try:
        row = msgspec.json.decode(unpacked(body))
        trace = read_trace(row)
    except (*UNREADABLE, FieldError, TypeError, ValueError) as error:
        return ShownTrace(missing=f"The body of this trace cannot be read: {error}")
    return shown(trace)


def shown(trace: Trace) -> ShownTrace:
    """A trace with each hit marked that its answer cites."""
    answer = trace.answer
    cited = [citation.id for citation in answer.listed] if answer is not None else []
    ids = {hit.id for hit in trace.hits}
    hits = tuple(
        ShownHit(
            rank=rank,
            id=hit.id,
            doc=hit.doc,
            section=hit.section,
            score=hit.score,
            delta_s=hit.delta_s,
            text=hit.text,
            cited=hit.id in cited,
        )
        for rank, hit in enumerate(trace.hits, 1)
    )
    return ShownTrace(
        question=trace.question,
        answer=None if answer is None else answer.said,
        refused=answer is not None and bool(answer.refused),
        error=trace.error,
        hits=hits,
        strays=tuple(dict.fromkeys(name for name in cited if name not in ids)),
        cites=answer is not None and answer.citations is not None,
        milliseconds=None if trace.timing is None else trace.timing.total,
        facts=dict(trace.index),
    )


def side_by_side(live: ShownTrace, shadow: ShownTrace) -> tuple[ShownTrace, ShownTrace]:
    """Two traces of one question, each hit with its rank on the other side."""

    def with_ranks(one: ShownTrace, other: ShownTrace) -> ShownTrace:
        ranks: dict[str, int] = {}
        for hit in other.hits:
            ranks.setdefault(hit.id, hit.rank)
        hits = tuple(msgspec.structs.replace(hit, other_rank=ranks.get(hit.id)) for hit in one.hits)
        return msgspec.structs.replace(one, hits=hits)

    return with_ranks(live, shadow), with_ranks(shadow, live)


class _Asked(Struct):
    question: str | None = None


def question_of(body: bytes | None) -> str | None:
    """The question of a packed trace in our own names, for a list; None where it has none."""
    if body is None:
        return None
    try:
        return msgspec.json.decode(unpacked(body), type=_Asked).question
    except UNREADABLE:
        return None


class PairSide(Struct, frozen=True):
    """What became of the question on one side."""

    outcome: str | None = None


class PairFacts(Struct, frozen=True):
    """What was measured of a pair, as a list has it; `why` it was not asked, where it was not."""

    live: PairSide = PairSide()
    other: PairSide = PairSide()
    found: int | None = None
    expected: int | None = None
    tau: float | None = None
    why: str | None = None


def pair_facts(measured: bytes | None) -> PairFacts:
    """What a row of `live_pairs` says; nothing where it cannot be read."""
    try:
        return msgspec.json.decode(measured or b"{}", type=PairFacts)
    except UNREADABLE:
        return PairFacts()
