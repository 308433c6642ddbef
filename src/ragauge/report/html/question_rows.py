"""The rows of a page's drill-downs, as JSON has them, and how much of one a step lets through."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from ragauge.model.drilldown import Expected
from ragauge.report.html.size_budget import Omitted, Short

Shorts = dict[int, Short | None]
"""Texts that were cut, by the number of their passage; None where nothing is left of one."""


class Hits(Struct, omit_defaults=True, gc=False):
    """Passages column by column: which piece, its score and ΔS, marks as bits, highlights.

    Each number of a piece is the difference from the one before: new pieces mostly come in order.
    """

    piece: list[int]
    marks: list[int]
    score: list[float | None] = []
    delta_s: list[float | None] = []
    highlights: dict[int, list[tuple[int, int]]] = {}

    @property
    def pieces(self) -> list[int]:
        """The numbers of the pieces themselves."""
        return list(accumulate(self.piece))

    def first(self, most: int) -> Hits:
        """Only so many of the passages."""
        kept = {i: spans for i, spans in self.highlights.items() if i < most}
        return Hits(
            self.piece[:most], self.marks[:most], self.score[:most], self.delta_s[:most], kept
        )


class AttemptRow(Struct, omit_defaults=True, kw_only=True, gc=False):
    """An attempt; `left_out` counts the hits that there was no room for.

    Its answer stands in a block of its own; `answered` says that there is one.
    """

    paraphrase: int | None = None
    seed: str | None = None
    turn: int | None = None
    replaced: int = 0
    asked: str | None = None
    trace: str | None = None
    label: str | None = None
    error: str | None = None
    hits: Hits | None = None
    left_out: int = 0
    answered: bool = False
    refusal: str | None = None
    citations: Hits | None = None
    delta_s: float | None = None
    latency_ms: float | None = None
    lambda_state: str | None = None


class QuestionRow(Struct, omit_defaults=True, kw_only=True, gc=False):
    """A question; `cut` says that there was no room for it."""

    question: str | None = None
    paraphrases: tuple[str, ...] = ()
    expect: str | None = None
    gold: str | None = None
    expected: tuple[Expected, ...] = ()
    evidence: Hits | None = None
    negatives: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    must_contain: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    attempts: list[AttemptRow] = []
    other: list[AttemptRow] = []
    cut: bool = False


def pieces_of(question: QuestionRow) -> Iterable[int]:
    """The passages that a question shows."""
    if question.evidence is not None:
        yield from question.evidence.pieces
    for attempt in (*question.attempts, *question.other):
        for hits in (attempt.hits, attempt.citations):
            if hits is not None:
                yield from hits.pieces


def with_first_hits(question: QuestionRow, most: int, omitted: Omitted) -> QuestionRow:
    """A question whose attempts have so many hits at most."""
    both = (question.attempts, question.other)
    if all(
        each.hits is None or len(each.hits.piece) <= most for attempts in both for each in attempts
    ):
        return question

    def fitted(attempt: AttemptRow) -> AttemptRow:
        hits = attempt.hits
        if hits is None or len(hits.piece) <= most:
            return attempt
        left_out = len(hits.piece) - most
        omitted.hits += left_out
        return replace(attempt, hits=hits.first(most), left_out=left_out)

    omitted.cut_questions += 1
    return replace(
        question,
        attempts=[fitted(each) for each in question.attempts],
        other=[fitted(each) for each in question.other],
    )


def with_moved_highlights(question: QuestionRow, shorts: Shorts) -> QuestionRow:
    """A question whose highlights lie where the shortened texts have them."""
    both = (*question.attempts, *question.other)
    if not any(
        hits is not None and hits.highlights
        for each in both
        for hits in (each.hits, each.citations)
    ):
        return question

    def fitted(attempt: AttemptRow) -> AttemptRow:
        return replace(
            attempt, hits=_moved(attempt.hits, shorts), citations=_moved(attempt.citations, shorts)
        )

    return replace(
        question,
        attempts=[fitted(each) for each in question.attempts],
        other=[fitted(each) for each in question.other],
    )


def _moved(hits: Hits | None, shorts: Shorts) -> Hits | None:
    """Passages whose highlights lie where the shortened texts have them."""
    if hits is None or not hits.highlights:
        return hits
    highlights = {}
    pieces = hits.pieces
    for place, spans in hits.highlights.items():
        piece = pieces[place]
        if piece not in shorts:
            highlights[place] = spans
            continue
        short = shorts[piece]
        found = [] if short is None else [short.span(*span) for span in spans]
        kept = [span for span in found if span is not None]
        if kept:
            highlights[place] = kept
    return Hits(hits.piece, hits.marks, hits.score, hits.delta_s, highlights)
