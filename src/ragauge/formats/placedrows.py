"""Trace rows with placed hits on a quick path: one typed decoding gives the trace.

Only a row in which every field is spelled once and has its usual type takes it; any other is read
on the exact path. The two give equal traces; a test compares them.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated

import msgspec
from msgspec import Meta

from ragauge.formats.fast_rows import FastPerf, Milliseconds, NoState, OtherNames, WideInt
from ragauge.model.dialect import INDEX_NAMES
from ragauge.model.trace import Answer, Hit, Timing, Trace
from ragauge.spans import Span
from ragauge.text import citations_in

# A name with a letter beyond ASCII, plain or escaped: only the exact path knows what it may mean.
ODD_NAME = re.compile(rb'(?:[\x80-\xff]|\\u)[^"]*"\s*:')

_Offset = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
_Pair = tuple[_Offset, _Offset]


class PlacedHit(OtherNames, gc=False, kw_only=True):
    """A hit with a place; whatever else is read of hits must be null here."""

    id: str
    doc: str | None = None
    offsets: _Pair | None = None
    span: _Pair | None = None
    start: _Offset | None = None
    end: _Offset | None = None
    score: float | None = None
    section: str | None = None
    type: str | None = None
    text: str | None = None
    rank: WideInt | None = None
    chunker_version: str | None = None
    doc_hash: str | None = None
    text_hash: str | None = None
    policy_hash: str | None = None
    document_hash: None = None
    content_hash: None = None
    chunk_hash: None = None

    def hit(self) -> Hit | None:
        """The hit; None where its place is said twice, or is none."""
        pair = self.offsets
        if pair is None:
            pair = self.span
        elif self.span is not None:
            return None
        if self.start is not None or self.end is not None:
            if pair is not None or self.start is None or self.end is None:
                return None
            pair = (self.start, self.end)
        if pair is not None and pair[1] < pair[0]:
            return None
        return Hit(
            self.id,
            self.doc,
            self.section,
            self.score,
            self.type,
            self.text,
            () if pair is None else (Span(pair[0], pair[1]),),
            None,
            self.chunker_version,
            None,
            None,
            self.doc_hash,
            self.text_hash,
            self.policy_hash,
        )


class PlacedAnswer(NoState, gc=False, kw_only=True):
    """An answer in words that may cite; whatever else is read of answers must be null here."""

    claim: str | None = None
    text: str | None = None
    citations: list[str] | None = None
    answer: None = None
    refused: None = None
    grounded: None = None
    constraints_echo: None = None


class PlacedRow(NoState, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A row of placed hits with an answer; a field that is not listed here is read elsewhere."""

    qid: str | None = None
    question: str | None = None
    q: str | None = None
    query: str | None = None
    paraphrase: WideInt | None = None
    seed: WideInt | None = None
    turn: WideInt | None = None
    topk: list[PlacedHit] | None = None
    hits: list[PlacedHit] | None = None
    answer_json: PlacedAnswer | None = None
    answer: PlacedAnswer | None = None
    error: None = None
    perf: FastPerf | None = None
    latency_ms: Milliseconds | None = None
    elapsed_ms: Milliseconds | None = None
    index_hash: str | None = None
    embed_model: str | None = None
    metric: str | None = None
    analyzer: str | None = None
    chunker_version: str | None = None
    policy_hash: str | None = None
    build: str | None = None
    rev: str | None = None


_decode = msgspec.json.Decoder(PlacedRow).decode


def placed_trace(data: bytes, line: int | None) -> Trace | None:
    """The trace of a row of this shape; None if it has another."""
    try:
        # Fields of hits that are passed over are not decoded, so their bytes are checked here.
        data.decode()
        if (not data.isascii() or b"\\u" in data) and ODD_NAME.search(data):
            return None
        row = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    asked = [each for each in (row.question, row.q, row.query) if each is not None]
    if len(asked) > 1 or (row.topk and row.hits) or (row.answer_json and row.answer):
        return None
    listed = row.topk or row.hits or ()
    hits = [hit for each in listed if (hit := each.hit()) is not None]
    if len(hits) < len(listed):
        return None
    return Trace(
        qid=row.qid or None,
        question=asked[0] if asked else None,
        paraphrase=row.paraphrase,
        seed=row.seed,
        turn=row.turn,
        hits=tuple(hits),
        answer=_answer(row.answer_json or row.answer),
        timing=_timing(row),
        index={name: value for name in INDEX_NAMES if (value := getattr(row, name)) is not None},
        disordered=_disordered(listed),
        line=line,
    )


def _answer(given: PlacedAnswer | None) -> Answer | None:
    if given is None:
        return None
    listed = given.citations
    if listed is None and given.text is not None:
        listed = citations_in(given.text)
    if given.claim is None and given.text is None and listed is None:
        return None
    citations = None if listed is None else tuple(listed)
    return Answer(claim=given.claim, text=given.text, citations=citations)


def _timing(row: PlacedRow) -> Timing | None:
    retrieve = row.perf.t_retrieve_ms if row.perf is not None else None
    reason = row.perf.t_reason_ms if row.perf is not None else None
    total = row.latency_ms if row.latency_ms is not None else row.elapsed_ms
    if total is None and retrieve is not None and reason is not None:
        total = retrieve + reason
    if retrieve is None and reason is None and total is None:
        return None
    return Timing(retrieve=retrieve, reason=reason, total=total)


def _disordered(listed: list[PlacedHit] | tuple[()]) -> bool:
    ranks = [each.rank for each in listed if each.rank is not None]
    scores = [each.score for each in listed if each.score is not None]
    return any(later < earlier for earlier, later in pairwise(ranks)) or any(
        later > earlier for earlier, later in pairwise(scores)
    )
