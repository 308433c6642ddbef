"""The rows of a page's drill-downs, as JSON has them, and how much of one a step lets through."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from msgspec import Struct
from msgspec.structs import replace

from ragauge.model.drilldown import Expected
from ragauge.page.fitting import STEPS, Omitted, Short, Step, shorten

Shorts = dict[int, Short | None]
"""Texts that were cut, by the number of their passage; None where nothing is left of one."""
_ANSWER = 2000
"""Characters of an answer, once texts are shortened."""


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
    """An attempt; `left_out` counts the hits that there was no room for."""

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
    answer: str | None = None
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
    for attempt in (*question.attempts, *question.other):
        for hits in (attempt.hits, attempt.citations):
            if hits is not None:
                yield from hits.pieces


def fitted_row(
    question: QuestionRow, step: Step, failing: bool, shorts: Shorts,
    omitted: Omitted,
) -> QuestionRow:  # fmt: skip
    """A question with as much as a step lets it have."""
    if step is STEPS[0]:
        return question
    if _is_whole(question, step, failing):
        return question
    before = omitted.hits
    most = step.hits(failing=failing)
    shorten_answers = step.characters(failing=failing) is not None

    def fitted(attempt: AttemptRow) -> AttemptRow:
        hits = attempt.hits
        left_out = 0
        if hits is not None and most is not None and len(hits.piece) > most:
            left_out = len(hits.piece) - most
            omitted.hits += left_out
            hits = hits.first(most)
        answer = attempt.answer
        if shorten_answers and answer is not None and len(answer) > _ANSWER:
            omitted.answers += 1
            answer = shorten(answer, (), _ANSWER).text
        return replace(
            attempt,
            hits=_moved(hits, shorts),
            citations=_moved(attempt.citations, shorts),
            left_out=left_out,
            answer=answer,
        )

    made = replace(
        question,
        attempts=[fitted(each) for each in question.attempts],
        other=[fitted(each) for each in question.other],
    )
    omitted.cut_questions += omitted.hits > before
    return made


def _is_whole(question: QuestionRow, step: Step, failing: bool) -> bool:
    """Whether a step leaves a question as it is: most have nothing that it could change."""
    most = step.hits(failing=failing)
    characters = step.characters(failing=failing)
    for attempt in (*question.attempts, *question.other):
        hits, citations = attempt.hits, attempt.citations
        if hits is not None and (hits.highlights or (most is not None and len(hits.piece) > most)):
            return False
        if citations is not None and citations.highlights:
            return False
        if characters is not None and len(attempt.answer or "") > _ANSWER:
            return False
    return True


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
