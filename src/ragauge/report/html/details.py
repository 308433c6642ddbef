"""The drill-downs of a page, as many as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct

from ragauge.concurrency import uncollected
from ragauge.model.drilldown import Drilldown
from ragauge.report.html.data_blocks import cut
from ragauge.report.html.markup import shortened
from ragauge.report.html.passages import Key, Stock
from ragauge.report.html.question_rows import (
    QuestionRow,
    Shorts,
    pieces_of,
    with_first_hits,
    with_moved_highlights,
)
from ragauge.report.html.size_budget import (
    ALL,
    MOST_HITS,
    MOST_ID,
    Filled,
    Filling,
    Omitted,
    Packer,
    answer_limits,
    capped,
    shorten,
    text_limits,
)

QUESTIONS = 200
"""Questions in one block."""
PIECES = 400
"""Passages in one block."""
MOST_TEXT = 300
"""Characters of a question that the table has; the drill-down has more of them."""
_CUT = QuestionRow(cut=True)
_NO_PIECE: Key = (None,) * 6
_ELEMENT = 80
"""Bytes that an element takes around its block."""
_TRIES = 8
_LEFT = 0.02
"""How often, and up to which share of the room, it is tried to show some more questions."""


class Packed(Struct, frozen=True, kw_only=True):
    """The blocks of a page's drill-downs, and what was left out of them.

    Questions, and the answers beside them, stand in the order of `priority`.
    """

    questions: list[str]
    answers: list[str]
    pieces: list[str]
    texts: list[str]
    omitted: Omitted

    @property
    def named(self) -> list[tuple[str, str]]:
        """The blocks with their names."""
        kinds = {
            "questions": self.questions,
            "answers": self.answers,
            "pieces": self.pieces,
            "texts": self.texts,
        }
        return [
            (f"{kind}-{number}", text)
            for kind, texts in kinds.items()
            for number, text in enumerate(texts)
        ]

    @property
    def size(self) -> int:
        """How many bytes they take in the page."""
        return sum(len(text) for _, text in self.named)


class _Lists(Struct, frozen=True):
    """Ranked lists of the first questions, packed: `rows` of questions and `keys` of passages."""

    rows: list[QuestionRow]
    keys: list[Key]
    questions: list[str]
    pieces: list[str]
    omitted: Omitted

    @property
    def size(self) -> int:
        return sum(map(len, self.questions)) + sum(map(len, self.pieces))


def priority(failing: Sequence[bool]) -> list[int]:
    """The order in which questions get room: those that fail first. The script has it too."""
    return sorted(range(len(failing)), key=lambda place: not failing[place])


class Gathered:
    """The drill-downs of a page before it is known how much of them there is room for.

    `failing` says which questions keep what they have the longest. `texts` and `types` are the
    words and types of the questions, for the table.
    """

    def __init__(self, drilldowns: Iterable[Drilldown], failing: Sequence[bool]) -> None:
        with uncollected():
            found = [each for each, _ in zip(drilldowns, failing, strict=True)]
            self.types = [
                None if each.type is None else capped(each.type, MOST_ID) for each in found
            ]
            self.texts = [shortened(each.question or "", MOST_TEXT) for each in found]
            order = priority(failing)
            self._failing = np.array([failing[place] for place in order], np.bool_)
            self._stock = Stock()
            self._rows: list[QuestionRow] = []
            self._answers: list[list[str | None]] = []
            for place in order:
                each = found[place]
                row = self._stock.question(each, failing[place])
                if self.texts[place] == each.question:
                    row.question = None  # the table has all of it
                self._rows.append(row)
                self._answers.append([one.answer for one in (*each.attempts, *each.other)])
            self._stock.finish()

    def packed(self, room: int) -> Packed:
        """The blocks within so many bytes, if need be with less in them."""
        with uncollected():
            packer = Packer()
            parts = -(-len(self._rows) // QUESTIONS) - (-len(self._stock.numbers) // PIECES)
            room -= 2 * parts * _ELEMENT
            lists = self._lists(packer, room)
            omitted = lists.omitted
            omitted.fields = self._stock.cut_fields
            left = room - lists.size
            answers = self._answered(lists, left)
            left -= sum(map(len, answers.blocks))
            texts, shorts = self._texts(lists, left)
            questions = lists.questions
            if shorts:
                rows = [with_moved_highlights(row, shorts) for row in lists.rows]
                questions = packer.packed(cut(rows, QUESTIONS))
            return Packed(
                questions=questions,
                answers=answers.blocks,
                pieces=lists.pieces,
                texts=texts.blocks,
                omitted=omitted,
            )

    def _lists(self, packer: Packer, room: int) -> _Lists:
        """Ranked lists: all, or ten hits of some of them, or of the first questions only."""
        count = len(self._rows)
        whole = self._listed(packer, count, count)
        if whole.size <= room:
            return whole
        short = self._listed(packer, 0, count)
        if short.size <= room:
            return _most(lambda n: self._listed(packer, n, count), short, whole, count, room)
        none = self._listed(packer, 0, 0)
        return _most(lambda n: self._listed(packer, 0, n), none, short, count, room)

    def _listed(self, packer: Packer, whole: int, shown: int) -> _Lists:
        """The first questions with all their hits, more of them with ten, and no others."""
        omitted = Omitted(questions=len(self._rows) - shown)
        rows = [
            *self._rows[:whole],
            *(with_first_hits(row, MOST_HITS, omitted) for row in self._rows[whole:shown]),
            *[_CUT] * omitted.questions,
        ]
        keys = list(self._stock.numbers)
        if omitted.hits or omitted.questions:
            used = {piece for row in rows[:shown] for piece in pieces_of(row)}
            keys = [key if piece in used else _NO_PIECE for piece, key in enumerate(keys)]
        pieces = [
            [] if set(part) == {_NO_PIECE} else list(zip(*part, strict=True))[:5]
            for part in cut(keys, PIECES)
        ]
        return _Lists(
            rows,
            keys,
            packer.packed(cut(rows, QUESTIONS)),
            packer.packed(pieces),
            omitted,
        )

    def _answered(self, lists: _Lists, room: int) -> Filled:
        """The answers of the questions that are shown."""
        items = [
            [] if row.cut else answers
            for row, answers in zip(lists.rows, self._answers, strict=True)
        ]

        def shortened_to(place: int, most: int) -> list[str | None]:
            return [
                None if each is None or (not most and each) else capped(each, most)
                for each in items[place]
            ]

        lengths = [max((len(each or "") for each in answers), default=0) for answers in items]
        made = Filling(items, lengths, shortened_to, QUESTIONS).filled(
            answer_limits(self._failing), room
        )
        for answers, most in zip(items, made.limits.tolist(), strict=True):
            longer = sum(len(each or "") > most for each in answers)
            if most:
                lists.omitted.answers += longer
            else:
                lists.omitted.lost_answers += longer
        return made

    def _texts(self, lists: _Lists, room: int) -> tuple[Filled, Shorts]:
        """The texts of the passages that are shown, and those that had to be cut."""
        stock = self._stock
        texts = [key[5] for key in lists.keys]
        spans = {piece: sorted(found) for piece, found in stock.spans.items()}

        def shortened_to(piece: int, most: int) -> str | None:
            text = texts[piece]
            if text is None or not most:
                return None
            return text if len(text) <= most else shorten(text, spans.get(piece, ()), most).text

        lengths = [len(text or "") for text in texts]
        failing, marked = np.zeros((2, len(texts)), np.bool_)
        failing[list(stock.failing)] = True
        marked[list(stock.marked)] = True
        made = Filling(texts, lengths, shortened_to, PIECES).filled(
            text_limits(failing, marked), room
        )
        shorts: Shorts = {}
        for piece, (text, most) in enumerate(zip(texts, made.limits.tolist(), strict=True)):
            if text is None or len(text) <= min(most, ALL):
                continue
            lists.omitted.shortened += most > 0
            lists.omitted.texts += most == 0
            if piece in spans:
                shorts[piece] = shorten(text, spans[piece], most) if most else None
        return made, shorts


def _most(
    make: Callable[[int], _Lists], fits: _Lists, exceeds: _Lists, count: int, room: int
) -> _Lists:
    """The lists for as many questions as fit: sizes grow about evenly, so few tries are needed."""
    low, high, too_much = 0, count, exceeds.size
    for _ in range(_TRIES):
        if high - low < 2 or room - fits.size <= room * _LEFT:
            break
        share = (room - fits.size) / max(too_much - fits.size, 1)
        tried = min(max(low + int((high - low) * share * 0.99), low + 1), high - 1)
        made = make(tried)
        if made.size <= room:
            low, fits = tried, made
        else:
            high, too_much = tried, made.size
    return fits
