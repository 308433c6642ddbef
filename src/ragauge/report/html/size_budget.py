"""What is left out when a page would be too large: chosen in steps, counted, and told.

Ranked lists stay before answers, and answers before texts; of each, those of failing questions stay
before the others. Texts are shortened around their evidence before they are left out, and hits
beyond the tenth go before whole questions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.report.html.filling import ALL, Limits

BUDGET = 5_500_000
"""Bytes that a page may have before anything is left out of its questions."""
GAP = " … "
MOST_HITS = 10
"""Hits of an attempt that stay the longest."""
MOST_FIELD = 4_000
"""Characters of what is neither answer nor text: an error, a quote, the words that were asked."""
MOST_ID = 1_000
"""Characters of an id, and of the document and the section beside it."""
MOST_ENTRIES = 300
"""Entries of a list that a gold item holds: paraphrases, claims, expected items."""
_LONG = 20_000

TEXT_STEPS: tuple[tuple[int, int, int], ...] = (
    (ALL, ALL, ALL), (_LONG, _LONG, _LONG), (4000, _LONG, _LONG), (1200, _LONG, _LONG),
    (600, 4000, 4000), (300, 4000, 4000), (160, 4000, 4000), (160, 1200, 1200), (160, 600, 600),
    (160, 300, 300), (0, 300, 300), (0, 160, 160), (0, 0, 160), (0, 0, 0),
)  # fmt: skip
"""Characters of a text: of questions without a problem, of failing ones, and of those their hits
that have a mark."""
ANSWER_STEPS: tuple[tuple[int, int], ...] = (
    (ALL, ALL), (_LONG, _LONG), (4000, _LONG), (2000, 4000), (1000, 2000), (500, 2000), (200, 1000),
    (200, 500), (0, 500), (0, 200), (0, 0),
)  # fmt: skip
"""Characters of an answer: of questions without a problem, and of failing ones."""


def answer_limits(failing: NDArray[np.bool_]) -> list[Limits]:
    """The steps for the answers of questions."""
    return [np.where(failing, bad, fine).astype(np.int64) for fine, bad in ANSWER_STEPS]


def text_limits(failing: NDArray[np.bool_], marked: NDArray[np.bool_]) -> list[Limits]:
    """The steps for the texts of passages."""
    return [
        np.where(marked, mark, np.where(failing, bad, fine)).astype(np.int64)
        for fine, bad, mark in TEXT_STEPS
    ]


def capped(text: str, most: int) -> str:
    """A text that is no longer than that, with what was cut in words."""
    if len(text) <= most:
        return text
    return f"{text[:most]} … ({len(text) - most:,} more characters are not on this page)"


class Short(Struct, frozen=True):
    """A text with parts left out: what was kept, as ranges of the whole, and where it is now."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    moved: tuple[int, ...]

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """Where a part of the whole text is now, as far as it was kept."""
        place = bisect_right(self.starts, start) - 1
        if place < 0 or start >= self.ends[place]:
            return None
        shift = self.moved[place] - self.starts[place]
        return start + shift, min(end, self.ends[place]) + shift


def shorten(text: str, spans: Sequence[tuple[int, int]], most: int) -> Short:
    """A text cut to about `most` characters, which lie around the spans, or at its beginning.

    Each span gets an equal part of them, half of what it does not need on either side.
    """
    if not spans:
        return Short(text[:most] + GAP.rstrip(), (0,), (most,), (0,))
    inside = sorted({(max(a, 0), min(b, len(text))) for a, b in spans if a < len(text) and b > 0})
    each = most // max(len(inside), 1)
    kept: list[list[int]] = []
    for start, last in inside or [(0, 0)]:
        end = min(last, start + each)
        around = (each - (end - start)) // 2 if inside else each
        begin, until = max(0, start - around), min(len(text), end + around)
        if kept and begin <= kept[-1][1]:
            kept[-1][1] = max(kept[-1][1], until)
        else:
            kept.append([begin, until])
    parts: list[str] = []
    moved = []
    at = 0
    if kept[0][0] > 0:
        parts.append(GAP.lstrip())
        at = len(parts[0])
    for number, (begin, until) in enumerate(kept):
        if number:
            parts.append(GAP)
            at += len(GAP)
        moved.append(at)
        parts.append(text[begin:until])
        at += until - begin
    if kept[-1][1] < len(text):
        parts.append(GAP.rstrip())
    return Short(
        "".join(parts), tuple(each[0] for each in kept), tuple(each[1] for each in kept),
        tuple(moved),
    )  # fmt: skip


class Omitted(Struct, kw_only=True):
    """How much of what was left out of a page."""

    fields: int = 0
    shortened: int = 0
    texts: int = 0
    answers: int = 0
    lost_answers: int = 0
    hits: int = 0
    cut_questions: int = 0
    questions: int = 0

    def sentences(self) -> list[str]:
        """What was left out, in words; nothing if nothing was."""
        hits = _are(self.hits, "hit beyond the tenth", "hits beyond the tenth", "left out")
        told = [
            _are(self.fields, "field", "fields", f"cut to {MOST_FIELD:,} characters or fewer"),
            _are(self.shortened, "text of a passage", "texts of passages", "shortened"),
            _are(self.texts, "text of a passage", "texts of passages", "left out"),
            _are(self.answers, "answer", "answers", "shortened"),
            _are(self.lost_answers, "answer", "answers", "left out"),
            hits and f"{hits}, from {_counted(self.cut_questions, 'question', 'questions')}",
            _are(self.questions, "question", "questions", "shown without details"),
        ]
        return [each for each in told if each]


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _are(count: int, one: str, many: str, what: str) -> str:
    """What happened to so many things; nothing if there are none."""
    return f"{_counted(count, one, many)} {'is' if count == 1 else 'are'} {what}" if count else ""
