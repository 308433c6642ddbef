"""The drill-downs of a page as rows of JSON, and as many of them as there is room for.

Every passage is stored once, however many questions show it: rows hold numbers of passages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import accumulate
from operator import sub

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge.concurrency import paused_collector
from ragauge.model.drilldown import MARKS, Attempt, Drilldown, Expected, Mark, Passage
from ragauge.report.html.data_blocks import in_parts
from ragauge.report.html.markup import shortened
from ragauge.report.html.size_budget import (
    ALL,
    MOST_ENTRIES,
    MOST_FIELD,
    MOST_HITS,
    MOST_ID,
    BlockCache,
    BlockFitter,
    FittedBlocks,
    Omitted,
    ShortenedText,
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
_ELEMENT = 80
"""Bytes that an element takes around its block."""
# How often it is tried to show some more questions, and the share of the room that is not worth
# another try: each try serialises all ranked lists anew.
_TRIES = 8
_UNUSED = 0.02
_BITS = {mark: 1 << place for place, mark in enumerate(MARKS)}

PassageKey = tuple[str | None, ...]
"""What makes a passage: its id, document, section, place, type and text."""
_NO_PASSAGE: PassageKey = (None,) * 6
ShortenedTexts = dict[int, ShortenedText | None]
"""Texts that were cut, by the number of their passage; None where nothing is left of one."""
NumberColumn = list[float | None]


class Hits(Struct, omit_defaults=True, gc=False):
    """Passages column by column: which piece, its score and ΔS, marks as bits, highlights.

    Each number of a piece is the difference from the one before: new pieces mostly come in order,
    and a column of ones takes next to nothing when it is compressed.
    """

    piece: list[int]
    marks: list[int]
    score: NumberColumn = []
    delta_s: NumberColumn = []
    highlights: dict[int, list[tuple[int, int]]] = {}

    @property
    def pieces(self) -> list[int]:
        """The numbers of the pieces themselves."""
        return list(accumulate(self.piece))

    def first(self, most: int) -> Hits:
        """Only so many of the passages."""
        return Hits(
            self.piece[:most],
            self.marks[:most],
            self.score[:most],
            self.delta_s[:most],
            {place: spans for place, spans in self.highlights.items() if place < most},
        )

    def with_moved_highlights(self, shortened_texts: ShortenedTexts) -> Hits:
        """The same passages, with highlights where the shortened texts have them."""
        if not self.highlights:
            return self
        highlights = {}
        pieces = self.pieces
        for place, spans_in_whole in self.highlights.items():
            spans, piece = spans_in_whole, pieces[place]
            if piece in shortened_texts:
                text = shortened_texts[piece]
                moved = () if text is None else (text.span(*span) for span in spans_in_whole)
                spans = [span for span in moved if span is not None]
            if spans:
                highlights[place] = spans
        return Hits(self.piece, self.marks, self.score, self.delta_s, highlights)


class AttemptRow(Struct, omit_defaults=True, kw_only=True, gc=False):
    """An attempt; `left_out` counts the hits that there was no room for.

    Its answer is in a block of its own; `answered` says that there is one.
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

    def pieces(self) -> Iterable[int]:
        """The passages that the question shows."""
        if self.evidence is not None:
            yield from self.evidence.pieces
        for attempt in (*self.attempts, *self.other):
            for hits in (attempt.hits, attempt.citations):
                if hits is not None:
                    yield from hits.pieces

    def with_first_hits(self, most: int, omitted: Omitted) -> QuestionRow:
        """The question with so many hits of an attempt at most; `omitted` counts the others."""
        attempts = (*self.attempts, *self.other)
        if all(attempt.hits is None or len(attempt.hits.piece) <= most for attempt in attempts):
            return self
        omitted.cut_questions += 1

        def with_first(attempt: AttemptRow) -> AttemptRow:
            hits = attempt.hits
            if hits is None or len(hits.piece) <= most:
                return attempt
            left_out = len(hits.piece) - most
            omitted.hits += left_out
            return replace(attempt, hits=hits.first(most), left_out=left_out)

        return self._with_attempts(with_first)

    def with_moved_highlights(self, shortened_texts: ShortenedTexts) -> QuestionRow:
        """The question with highlights where the shortened texts have them."""
        if not any(
            hits is not None and hits.highlights
            for attempt in (*self.attempts, *self.other)
            for hits in (attempt.hits, attempt.citations)
        ):
            return self

        def moved(hits: Hits | None) -> Hits | None:
            return None if hits is None else hits.with_moved_highlights(shortened_texts)

        return self._with_attempts(
            lambda attempt: replace(
                attempt, hits=moved(attempt.hits), citations=moved(attempt.citations)
            )
        )

    def _with_attempts(self, change: Callable[[AttemptRow], AttemptRow]) -> QuestionRow:
        return replace(
            self, attempts=list(map(change, self.attempts)), other=list(map(change, self.other))
        )


_CUT_ROW = QuestionRow(cut=True)


class PassageTable:
    """All passages of a page, numbered as they come, and what rows of questions say of them.

    spans        by passage, the parts of its text that are evidence for any question
    failing      passages of questions that fail, whose texts are cut last
    marked       those of them with a mark, which are cut after all others
    cut_fields   how many texts were too long for a field and are cut
    """

    def __init__(self) -> None:
        self.numbers: dict[PassageKey, int] = {}
        self.spans: dict[int, set[tuple[int, int]]] = {}
        self.failing: set[int] = set()
        self.marked: set[int] = set()
        self.cut_fields = 0
        self._cut_keys: dict[PassageKey, int] = {}
        self._scores: list[tuple[Hits, NumberColumn]] = []
        self._distances: list[tuple[Hits, NumberColumn]] = []

    def question_row(self, drilldown: Drilldown, failing: bool) -> QuestionRow:
        """A question whose passages are numbers of pieces."""
        return QuestionRow(
            question=self._field(drilldown.question),
            paraphrases=self._fields(drilldown.paraphrases),
            expect=drilldown.expect,
            gold=drilldown.gold,
            expected=self._expected(drilldown.expected),
            evidence=self._hits(drilldown.evidence[:MOST_ENTRIES], failing),
            negatives=self._fields(drilldown.negatives),
            claims=self._fields(drilldown.claims),
            must_contain=self._fields(drilldown.must_contain),
            forbidden=self._fields(drilldown.forbidden),
            tags=self._fields(drilldown.tags),
            attempts=[self._attempt(attempt, failing) for attempt in drilldown.attempts],
            other=[self._attempt(attempt, failing) for attempt in drilldown.other],
        )

    def finish(self) -> None:
        """Round all scores and distances: many at once is faster than each by itself."""
        for name, columns in (("score", self._scores), ("delta_s", self._distances)):
            for (hits, _), column in zip(columns, _rounded_columns(columns), strict=True):
                setattr(hits, name, column)
        self._scores, self._distances = [], []

    def _field(self, text: str | None, most: int = MOST_FIELD) -> str | None:
        if text is None or len(text) <= most:
            return text
        self.cut_fields += 1
        return capped(text, most)

    def _fields(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        # Nearly all are short, and there are six such lists for each of 10,000 questions.
        if not texts or (
            len(texts) <= MOST_ENTRIES and all(len(text) <= MOST_FIELD for text in texts)
        ):
            return texts
        entries = tuple(self._field(text) or "" for text in texts[:MOST_ENTRIES])
        missing = len(texts) - len(entries)
        return (*entries, self._more(missing)) if missing else entries

    def _more(self, missing: int) -> str:
        """The last entry of a list that was cut."""
        self.cut_fields += 1
        return f"… and {missing:,} more, which are not on this page"

    def _expected(self, items: tuple[Expected, ...]) -> tuple[Expected, ...]:
        if len(items) <= MOST_ENTRIES and all(
            len(item.name) <= MOST_ID
            and len(item.doc or "") <= MOST_ID
            and len(item.where or "") <= MOST_ID
            and len(item.quote or "") <= MOST_FIELD
            for item in items
        ):
            return items
        entries = tuple(
            replace(
                item,
                name=self._field(item.name, MOST_ID),
                doc=self._field(item.doc, MOST_ID),
                where=self._field(item.where, MOST_ID),
                quote=self._field(item.quote),
            )
            for item in items[:MOST_ENTRIES]
        )
        missing = len(items) - len(entries)
        return (*entries, Expected(name=self._more(missing))) if missing else entries

    def _attempt(self, attempt: Attempt, failing: bool) -> AttemptRow:
        return AttemptRow(
            paraphrase=attempt.paraphrase,
            seed=self._field(attempt.seed, MOST_ID),
            turn=attempt.turn,
            replaced=attempt.replaced,
            asked=self._field(attempt.asked),
            trace=attempt.trace,
            label=attempt.label,
            error=self._field(attempt.error),
            hits=self._hits(attempt.hits, failing),
            answered=attempt.answer is not None,
            refusal=attempt.refusal,
            citations=self._hits(attempt.citations, failing),
            delta_s=_rounded(attempt.delta_s),
            latency_ms=_rounded(attempt.latency_ms),
            lambda_state=self._field(attempt.lambda_state, MOST_ID),
        )

    def _hits(self, passages: tuple[Passage, ...], failing: bool) -> Hits | None:
        # 100,000 hits go through here: whole columns by comprehensions, and no object for a hit.
        if not passages:
            return None
        number_of = self.numbers.get
        keys = [
            (passage.id, passage.doc, passage.section, passage.where, passage.type, passage.text)
            for passage in passages
        ]
        pieces = [self._add(key) if (piece := number_of(key)) is None else piece for key in keys]
        marks = [_mask(passage.marks) if passage.marks else 0 for passage in passages]
        highlights = {
            place: list(passage.highlights)
            for place, passage in enumerate(passages)
            if passage.highlights and passage.text
        }
        for place, spans in highlights.items():
            self.spans.setdefault(pieces[place], set()).update(spans)
        if failing:
            self.failing.update(pieces)
            self.marked.update(piece for piece, mark in zip(pieces, marks, strict=True) if mark)
        steps = [pieces[0], *map(sub, pieces[1:], pieces)]
        hits = Hits(steps, marks, highlights=highlights)
        for columns, column in (
            (self._scores, [passage.score for passage in passages]),
            (self._distances, [passage.delta_s for passage in passages]),
        ):
            if column.count(None) < len(column):
                columns.append((hits, column))
        return hits

    def _add(self, key: PassageKey) -> int:
        """The number of a passage that is not in the table as it is; its names may be cut."""
        numbers = self.numbers
        for part in key[:5]:
            if part is not None and len(part) > MOST_ID:
                break
        else:
            number = numbers[key] = len(numbers)
            return number
        cut_number = self._cut_keys.get(key)
        if cut_number is None:
            cut_key = (*(self._field(part, MOST_ID) for part in key[:5]), key[5])
            cut_number = self._cut_keys[key] = numbers.setdefault(cut_key, len(numbers))
        return cut_number


@cache
def _mask(marks: tuple[Mark, ...]) -> int:
    """Marks as bits, in the order of MARKS."""
    return sum(_BITS[mark] for mark in dict.fromkeys(marks))


def _rounded_columns(columns: list[tuple[Hits, NumberColumn]]) -> Iterable[NumberColumn]:
    """Numbers as the page shows them."""
    values = np.array([value for _, column in columns for value in column], np.float64)
    values[~np.isfinite(values)] = np.nan  # which JSON has as null
    rounded = (np.round(values, 4) + 0.0).tolist()  # + 0.0 makes 0.0 of -0.0
    start = 0
    for _, column in columns:
        end = start + len(column)
        yield rounded[start:end]
        start = end


def _rounded(value: float | None) -> float | None:
    """A number as the page shows it; none where it is not finite."""
    return None if value is None or not math.isfinite(value) else round(value, 4) + 0.0


class DetailBlocks(Struct, frozen=True, kw_only=True):
    """The blocks of a page's drill-downs, and what was left out of them.

    Questions and their answers are in the order of `priority`.
    """

    questions: list[str]
    answers: list[str]
    pieces: list[str]
    texts: list[str]
    omitted: Omitted

    @property
    def named(self) -> list[tuple[str, str]]:
        """The blocks with their names."""
        return [
            (f"{kind}-{number}", block)
            for kind in ("questions", "answers", "pieces", "texts")
            for number, block in enumerate(getattr(self, kind))
        ]

    @property
    def size(self) -> int:
        """How many bytes they take in the page."""
        return sum(len(block) for _, block in self.named)


class _RankedLists(Struct, frozen=True):
    """Ranked lists of the first questions: `rows` of questions, `keys` of passages, and blocks."""

    rows: list[QuestionRow]
    keys: list[PassageKey]
    questions: list[str]
    pieces: list[str]
    omitted: Omitted

    @property
    def size(self) -> int:
        return sum(map(len, self.questions)) + sum(map(len, self.pieces))


def priority(failing: Sequence[bool]) -> list[int]:
    """The order in which questions get room: those that fail first. The script has it too."""
    return sorted(range(len(failing)), key=lambda place: not failing[place])


class PageDetails:
    """The drill-downs of a page before it is known how much of them there is room for.

    `failing` says which questions are cut last. `texts` and `types` are the words and types of
    the questions, for the table.
    """

    def __init__(self, drilldowns: Iterable[Drilldown], failing: Sequence[bool]) -> None:
        with paused_collector():
            questions = [drilldown for drilldown, _ in zip(drilldowns, failing, strict=True)]
            self.types = [
                None if question.type is None else capped(question.type, MOST_ID)
                for question in questions
            ]
            self.texts = [shortened(question.question or "", MOST_TEXT) for question in questions]
            order = priority(failing)
            self._failing = np.array([failing[place] for place in order], np.bool_)
            self._passages = PassageTable()
            self._rows: list[QuestionRow] = []
            self._answers: list[list[str | None]] = []
            for place in order:
                question = questions[place]
                row = self._passages.question_row(question, failing[place])
                if self.texts[place] == question.question:
                    row.question = None  # the table has all of it
                self._rows.append(row)
                attempts = (*question.attempts, *question.other)
                self._answers.append([attempt.answer for attempt in attempts])
            self._passages.finish()

    def blocks_within(self, room: int) -> DetailBlocks:
        """The blocks within so many bytes, if need be with less in them.

        Ranked lists come first, because without them a drill-down shows nothing; then answers,
        which people read; texts get the rest.
        """
        with paused_collector():
            block_cache = BlockCache()
            parts = -(-len(self._rows) // QUESTIONS) - (-len(self._passages.numbers) // PIECES)
            room -= 2 * parts * _ELEMENT
            lists = self._lists_within(block_cache, room)
            omitted = lists.omitted
            omitted.fields = self._passages.cut_fields
            room -= lists.size
            answers = self._answers_within(lists, room)
            room -= sum(map(len, answers.blocks))
            texts, shortened_texts = self._texts_within(lists, room)
            questions = lists.questions
            if shortened_texts:
                rows = [row.with_moved_highlights(shortened_texts) for row in lists.rows]
                questions = block_cache.blocks(in_parts(rows, QUESTIONS))
            return DetailBlocks(
                questions=questions,
                answers=answers.blocks,
                pieces=lists.pieces,
                texts=texts.blocks,
                omitted=omitted,
            )

    def _lists_within(self, block_cache: BlockCache, room: int) -> _RankedLists:
        """Ranked lists: all, or ten hits of some of them, or of the first questions only."""
        count = len(self._rows)
        whole = self._ranked_lists(block_cache, count, count)
        if whole.size <= room:
            return whole
        short = self._ranked_lists(block_cache, 0, count)
        if short.size <= room:
            return _most(
                lambda n: self._ranked_lists(block_cache, n, count), short, whole, count, room
            )
        none = self._ranked_lists(block_cache, 0, 0)
        return _most(lambda n: self._ranked_lists(block_cache, 0, n), none, short, count, room)

    def _ranked_lists(self, block_cache: BlockCache, whole: int, detailed: int) -> _RankedLists:
        """The first `whole` questions with all hits, up to `detailed` with ten, and no others."""
        omitted = Omitted(questions=len(self._rows) - detailed)
        rows = [
            *self._rows[:whole],
            *(row.with_first_hits(MOST_HITS, omitted) for row in self._rows[whole:detailed]),
            *[_CUT_ROW] * omitted.questions,
        ]
        keys = list(self._passages.numbers)
        if omitted.hits or omitted.questions:
            # Passages that nobody shows any more stay as places without content: numbers of
            # passages are the same however much is left out.
            used = {piece for row in rows[:detailed] for piece in row.pieces()}
            keys = [key if piece in used else _NO_PASSAGE for piece, key in enumerate(keys)]
        columns_of_pieces = [
            [] if set(part) == {_NO_PASSAGE} else list(zip(*part, strict=True))[:5]
            for part in in_parts(keys, PIECES)
        ]
        return _RankedLists(
            rows,
            keys,
            block_cache.blocks(in_parts(rows, QUESTIONS)),
            block_cache.blocks(columns_of_pieces),
            omitted,
        )

    def _answers_within(self, lists: _RankedLists, room: int) -> FittedBlocks:
        """The answers of the questions that have details."""
        answers = [
            [] if row.cut else texts for row, texts in zip(lists.rows, self._answers, strict=True)
        ]

        def cut_to(place: int, most: int) -> list[str | None]:
            return [
                None if text is None or (not most and text) else capped(text, most)
                for text in answers[place]
            ]

        lengths = [max((len(text or "") for text in texts), default=0) for texts in answers]
        fitter = BlockFitter(answers, lengths, cut_to, QUESTIONS)
        fitted = fitter.fit(answer_limits(self._failing), room)
        for texts, most in zip(answers, fitted.limits.tolist(), strict=True):
            longer = sum(len(text or "") > most for text in texts)
            if most:
                lists.omitted.answers += longer
            else:
                lists.omitted.lost_answers += longer
        return fitted

    def _texts_within(self, lists: _RankedLists, room: int) -> tuple[FittedBlocks, ShortenedTexts]:
        """The texts of the passages that are shown, and those that had to be cut."""
        passages = self._passages
        texts = [key[5] for key in lists.keys]
        spans = {piece: sorted(places) for piece, places in passages.spans.items()}

        def cut_to(piece: int, most: int) -> str | None:
            text = texts[piece]
            if text is None or not most:
                return None
            return text if len(text) <= most else shorten(text, spans.get(piece, ()), most).text

        lengths = [len(text or "") for text in texts]
        failing, marked = np.zeros((2, len(texts)), np.bool_)
        failing[list(passages.failing)] = True
        marked[list(passages.marked)] = True
        fitter = BlockFitter(texts, lengths, cut_to, PIECES)
        fitted = fitter.fit(text_limits(failing, marked), room)
        shortened_texts: ShortenedTexts = {}
        for piece, (text, most) in enumerate(zip(texts, fitted.limits.tolist(), strict=True)):
            if text is None or len(text) <= min(most, ALL):
                continue
            lists.omitted.shortened += most > 0
            lists.omitted.texts += most == 0
            if piece in spans:
                shortened_texts[piece] = shorten(text, spans[piece], most) if most else None
        return fitted, shortened_texts


def _most(
    make: Callable[[int], _RankedLists],
    fitting: _RankedLists,
    exceeding: _RankedLists,
    count: int,
    room: int,
) -> _RankedLists:
    """The lists for as many questions as fit: sizes grow about evenly, so few tries are needed."""
    low, high, too_much = 0, count, exceeding.size
    for _ in range(_TRIES):
        if high - low < 2 or room - fitting.size <= room * _UNUSED:
            break
        share = (room - fitting.size) / max(too_much - fitting.size, 1)
        # A little less than the share says: a try that does not fit is of no use.
        tried = min(max(low + int((high - low) * share * 0.99), low + 1), high - 1)
        lists = make(tried)
        if lists.size <= room:
            low, fitting = tried, lists
        else:
            high, too_much = tried, lists.size
    return fitting
