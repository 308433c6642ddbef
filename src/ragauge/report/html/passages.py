"""The passages of a page, each once: numbered as they come, with what is evidence in them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from operator import sub

import numpy as np
from msgspec.structs import replace

from ragauge.model.drilldown import MARKS, Attempt, Drilldown, Expected, Mark, Passage
from ragauge.report.html.question_rows import AttemptRow, Hits, QuestionRow
from ragauge.report.html.size_budget import MOST_ENTRIES, MOST_FIELD, MOST_ID, capped

_BITS = {mark: 1 << place for place, mark in enumerate(MARKS)}
Key = tuple[str | None, ...]
"""A passage: its id, document, section, place, type and text."""


class Stock:
    """All passages of a page, each once, with the parts of its text that are evidence anywhere."""

    def __init__(self) -> None:
        self.numbers: dict[Key, int] = {}
        self.spans: dict[int, set[tuple[int, int]]] = {}
        self.failing: set[int] = set()
        self.marked: set[int] = set()
        self.scores: list[tuple[Hits, list[float | None]]] = []
        self.distances: list[tuple[Hits, list[float | None]]] = []
        self.cut_fields = 0
        self._cut: dict[Key, int] = {}

    def question(self, found: Drilldown, failing: bool) -> QuestionRow:
        """A question whose passages are numbers of pieces."""
        return QuestionRow(
            question=self._field(found.question),
            paraphrases=self._fields(found.paraphrases),
            expect=found.expect,
            gold=found.gold,
            expected=self._expected(found.expected),
            evidence=self._hits(found.evidence[:MOST_ENTRIES], failing),
            negatives=self._fields(found.negatives),
            claims=self._fields(found.claims),
            must_contain=self._fields(found.must_contain),
            forbidden=self._fields(found.forbidden),
            tags=self._fields(found.tags),
            attempts=[self._attempt(each, failing) for each in found.attempts],
            other=[self._attempt(each, failing) for each in found.other],
        )

    def _field(self, text: str | None, most: int = MOST_FIELD) -> str | None:
        if text is None or len(text) <= most:
            return text
        self.cut_fields += 1
        return capped(text, most)

    def _fields(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        if not texts or (
            len(texts) <= MOST_ENTRIES and all(len(text) <= MOST_FIELD for text in texts)
        ):
            return texts
        kept = tuple(self._field(text) or "" for text in texts[:MOST_ENTRIES])
        left = len(texts) - len(kept)
        if not left:
            return kept
        self.cut_fields += 1
        return (*kept, f"… and {left:,} more, which are not on this page")

    def _expected(self, found: tuple[Expected, ...]) -> tuple[Expected, ...]:
        if len(found) <= MOST_ENTRIES and all(
            len(each.name) <= MOST_ID
            and len(each.doc or "") <= MOST_ID
            and len(each.where or "") <= MOST_ID
            and len(each.quote or "") <= MOST_FIELD
            for each in found
        ):
            return found
        kept = tuple(
            replace(
                each,
                name=self._field(each.name, MOST_ID),
                doc=self._field(each.doc, MOST_ID),
                where=self._field(each.where, MOST_ID),
                quote=self._field(each.quote),
            )
            for each in found[:MOST_ENTRIES]
        )
        left = len(found) - len(kept)
        if not left:
            return kept
        self.cut_fields += 1
        return (*kept, Expected(name=f"… and {left:,} more, which are not on this page"))

    def _attempt(self, found: Attempt, failing: bool) -> AttemptRow:
        return AttemptRow(
            paraphrase=found.paraphrase,
            seed=self._field(found.seed, MOST_ID),
            turn=found.turn,
            replaced=found.replaced,
            asked=self._field(found.asked),
            trace=found.trace,
            label=found.label,
            error=self._field(found.error),
            hits=self._hits(found.hits, failing),
            answered=found.answer is not None,
            refusal=found.refusal,
            citations=self._hits(found.citations, failing),
            delta_s=_rounded(found.delta_s),
            latency_ms=_rounded(found.latency_ms),
            lambda_state=self._field(found.lambda_state, MOST_ID),
        )

    def _hits(self, passages: tuple[Passage, ...], failing: bool) -> Hits | None:
        if not passages:
            return None
        known = self.numbers.get
        keys = [
            (each.id, each.doc, each.section, each.where, each.type, each.text) for each in passages
        ]
        pieces = [self._new(key) if (piece := known(key)) is None else piece for key in keys]
        marks = [_mask(each.marks) if each.marks else 0 for each in passages]
        highlights = {
            place: list(each.highlights)
            for place, each in enumerate(passages)
            if each.highlights and each.text
        }
        for place, spans in highlights.items():
            self.spans.setdefault(pieces[place], set()).update(spans)
        if failing:
            self.failing.update(pieces)
            self.marked.update(piece for piece, mark in zip(pieces, marks, strict=True) if mark)
        steps = [pieces[0], *map(sub, pieces[1:], pieces)]
        made = Hits(steps, marks, highlights=highlights)
        for columns, column in (
            (self.scores, [each.score for each in passages]),
            (self.distances, [each.delta_s for each in passages]),
        ):
            if column.count(None) < len(column):
                columns.append((made, column))
        return made

    def finish(self) -> None:
        """Round all scores and distances: many at once is faster than each by itself."""
        for (made, _), column in zip(self.scores, _columns(self.scores), strict=True):
            made.score = column
        for (made, _), column in zip(self.distances, _columns(self.distances), strict=True):
            made.delta_s = column
        self.scores, self.distances = [], []

    def _new(self, key: Key) -> int:
        """The number of a passage that is not among them as it is; its names may be cut."""
        numbers = self.numbers
        for part in key[:5]:
            if part is not None and len(part) > MOST_ID:
                break
        else:
            number = numbers[key] = len(numbers)
            return number
        known = self._cut.get(key)
        if known is None:
            kept = (*(self._field(part, MOST_ID) for part in key[:5]), key[5])
            known = self._cut[key] = numbers.setdefault(kept, len(numbers))
        return known


@cache
def _mask(marks: tuple[Mark, ...]) -> int:
    """Marks as bits, in the order of MARKS."""
    return sum(_BITS[mark] for mark in dict.fromkeys(marks))


def _columns(found: list[tuple[Hits, list[float | None]]]) -> Iterable[list[float | None]]:
    """Numbers as the page shows them."""
    values = np.array([value for _, column in found for value in column], np.float64)
    values[~np.isfinite(values)] = np.nan  # which JSON has as null
    rounded = (np.round(values, 4) + 0.0).tolist()
    at = 0
    for _, column in found:
        size = len(column)
        yield rounded[at : at + size]
        at += size


def _rounded(value: float | None) -> float | None:
    """A number as the page shows it; none where it is not finite."""
    return None if value is None or not math.isfinite(value) else round(value, 4) + 0.0
