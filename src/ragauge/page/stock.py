"""The passages of a page, each once: numbered as they come, cut where there is no room for all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from operator import sub

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.model.drilldown import MARKS, Attempt, Drilldown, Mark, Passage
from ragauge.page.blocks import cut, packed
from ragauge.page.fitting import Omitted, Step, shorten
from ragauge.page.rows import AttemptRow, Hits, QuestionRow, Shorts, fitted_row, pieces_of

QUESTIONS = 200
"""Questions in one block."""
PIECES = 400
"""Passages in one block."""
_SAMPLE = 400_000
_SAMPLE_PIECES = 4_000
_SAMPLE_QUESTIONS = 800
"""Characters, passages and questions from which the size of a page is guessed."""
_CUT = QuestionRow(cut=True)
_NO_PIECE: tuple[str | None, ...] = (None,) * 6
_BITS = {mark: 1 << place for place, mark in enumerate(MARKS)}


class Packed(Struct, frozen=True, kw_only=True):
    """The blocks of a page's drill-downs, and what was left out of them."""

    questions: list[str]
    pieces: list[str]
    omitted: Omitted

    @property
    def size(self) -> int:
        """How many bytes they take in the page."""
        return sum(map(len, self.questions)) + sum(map(len, self.pieces))


class Stock:
    """All passages of a page, each once, with the parts of its text that are evidence anywhere."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str | None, ...], int] = {}
        self.spans: dict[int, set[tuple[int, int]]] = {}
        self.failing: set[int] = set()
        self.marked: set[int] = set()
        self.scores: list[tuple[Hits, list[float | None]]] = []
        self.distances: list[tuple[Hits, list[float | None]]] = []
        self._lengths: NDArray[np.int64] | None = None
        self._size: float | None = None

    def question(self, found: Drilldown, failing: bool) -> QuestionRow:
        """A question whose passages are numbers of pieces."""
        return QuestionRow(
            question=found.question, paraphrases=found.paraphrases, expect=found.expect,
            gold=found.gold, expected=found.expected, negatives=found.negatives,
            claims=found.claims, must_contain=found.must_contain, forbidden=found.forbidden,
            tags=found.tags,
            attempts=[self._attempt(each, failing) for each in found.attempts],
            other=[self._attempt(each, failing) for each in found.other],
        )  # fmt: skip

    def _attempt(self, found: Attempt, failing: bool) -> AttemptRow:
        return AttemptRow(
            paraphrase=found.paraphrase, seed=found.seed, turn=found.turn,
            replaced=found.replaced, asked=found.asked, trace=found.trace,
            label=found.label, error=found.error, hits=self._hits(found.hits, failing),
            answer=found.answer, refusal=found.refusal,
            citations=self._hits(found.citations, failing), delta_s=_rounded(found.delta_s),
            latency_ms=_rounded(found.latency_ms), lambda_state=found.lambda_state,
        )  # fmt: skip

    def _hits(self, passages: tuple[Passage, ...], failing: bool) -> Hits | None:
        if not passages:
            return None
        numbers, pieces, marks = self.numbers, [], []
        highlights: dict[int, list[tuple[int, int]]] = {}
        for place, each in enumerate(passages):
            key = (each.id, each.doc, each.section, each.where, each.type, each.text)
            piece = numbers.setdefault(key, len(numbers))
            pieces.append(piece)
            marks.append(_mask(each.marks) if each.marks else 0)
            if each.highlights and each.text:
                self.spans.setdefault(piece, set()).update(each.highlights)
                highlights[place] = list(each.highlights)
        if failing:
            self.failing.update(pieces)
            self.marked.update(piece for piece, mark in zip(pieces, marks, strict=True) if mark)
        steps = [pieces[0], *map(sub, pieces[1:], pieces)]
        made = Hits(steps, marks, highlights=highlights)
        self.scores.append((made, [each.score for each in passages]))
        self.distances.append((made, [each.delta_s for each in passages]))
        return made

    def finish(self) -> None:
        """Round all scores and distances: many at once is faster than each by itself."""
        for (made, _), column in zip(self.scores, _columns(self.scores), strict=True):
            made.score = column
        for (made, _), column in zip(self.distances, _columns(self.distances), strict=True):
            made.delta_s = column
        self.scores, self.distances = [], []

    def estimate(self, questions: list[QuestionRow], step: Step) -> float:
        """About how many bytes all takes under a step, judged by every so many parts of it."""
        keys = list(self.numbers)
        if self._lengths is None:
            self._lengths = np.array([len(key[5] or "") for key in keys], np.int64)
        kept = np.zeros(len(keys), np.bool_)
        kept[list(self._keeping(step))] = True
        fine, other = (2**40 if most is None else most for most in (step.fine, step.failing))
        lengths = np.minimum(self._lengths, np.where(kept, other, fine))
        every = max(1, int(lengths.sum()) // _SAMPLE, len(keys) // _SAMPLE_PIECES)
        rows = [
            (*key[:5], (key[5] or "")[:size])
            for key, size in zip(keys[::every], lengths[::every].tolist(), strict=True)
        ]
        pieces = len(packed(list(zip(*rows, strict=True)))) * every
        if self._size is None:  # what cutting texts changes in there is little
            shown = questions[:: max(1, len(questions) // _SAMPLE_QUESTIONS)]
            self._size = len(packed(shown)) * len(questions) / len(shown)
        return pieces + self._size

    def packed(
        self, questions: list[QuestionRow], failing: Sequence[bool], step: Step, *, room: int | None
    ) -> Packed | None:
        """The blocks under a step, or None where they need more room than there is."""
        keys = list(self.numbers)
        shorts = self._shorts(keys, step)
        omitted = Omitted()
        is_shown = step.shown(failing)
        shown = [
            fitted_row(question, step, is_failing, shorts, omitted) if has_room else _CUT
            for question, is_failing, has_room in zip(questions, failing, is_shown, strict=True)
        ]
        omitted.questions = is_shown.count(False)
        if step.failing_hits is not None or step.fine_hits is not None or not step.fine_shown:
            used = {piece for each in shown for piece in pieces_of(each)}
            keys = [key if piece in used else _NO_PIECE for piece, key in enumerate(keys)]
            shorts = {piece: short for piece, short in shorts.items() if piece in used}
        omitted.texts = sum(short is None for short in shorts.values())
        omitted.shortened = len(shorts) - omitted.texts
        texts = [key[5] for key in keys]
        for piece, short in shorts.items():
            texts[piece] = None if short is None else short.text
        size = 0
        made: tuple[list[str], list[str]] = ([], [])
        rows = zip(cut(keys, PIECES), cut(texts, PIECES), strict=True)
        columns = (
            [*list(zip(*part, strict=True))[:5], kept] if set(part) != {_NO_PIECE} else []
            for part, kept in rows
        )
        for blocks, values in ((made[0], columns), (made[1], cut(shown, QUESTIONS))):
            for value in values:
                blocks.append(packed(value))
                size += len(blocks[-1])
                if room is not None and size > room:
                    return None
        return Packed(pieces=made[0], questions=made[1], omitted=omitted)

    def _keeping(self, step: Step) -> set[int]:
        """The passages whose texts are kept the longest."""
        return self.marked if step.only_marked else self.failing

    def _shorts(self, keys: Sequence[tuple[str | None, ...]], step: Step) -> Shorts:
        """The texts that a step cuts; None where nothing is left of one."""
        found: Shorts = {}
        if step.fine is None and step.failing is None:
            return found
        keeping = self._keeping(step)
        for piece, key in enumerate(keys):
            text = key[5]
            most = step.characters(failing=piece in keeping)
            if text is not None and most is not None and len(text) > most:
                spans = sorted(self.spans.get(piece, ()))
                found[piece] = shorten(text, spans, most) if most else None
        return found


@cache
def _mask(marks: tuple[Mark, ...]) -> int:
    """Marks as bits, in the order of MARKS."""
    return sum(_BITS[mark] for mark in dict.fromkeys(marks))


def _columns(found: list[tuple[Hits, list[float | None]]]) -> Iterable[list[float | None]]:
    """Numbers as the page shows them; an empty list where an attempt has none."""
    values = np.array([value for _, column in found for value in column], np.float64)
    values[~np.isfinite(values)] = np.nan  # which JSON has as null
    rounded = (np.round(values, 4) + 0.0).tolist()
    at = 0
    for _, column in found:
        size = len(column)
        yield [] if column.count(None) == size else rounded[at : at + size]
        at += size


def _rounded(value: float | None) -> float | None:
    """A number as the page shows it; none where it is not finite."""
    return None if value is None or not math.isfinite(value) else round(value, 4) + 0.0
