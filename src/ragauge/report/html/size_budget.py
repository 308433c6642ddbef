"""What is left out when a page would be too large: chosen in steps, counted, and told.

Ranked lists stay before answers, and answers before texts; of each, those of failing questions stay
before the others. Texts are shortened around their evidence before they are left out, and hits
beyond the tenth go before whole questions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.concurrency import beside
from ragauge.report.html.data_blocks import compressed, encoded

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
ALL = 2**40
"""A limit that is none."""

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
        "".join(parts),
        tuple(each[0] for each in kept),
        tuple(each[1] for each in kept),
        tuple(moved),
    )


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


Item = TypeVar("Item")


Limits = NDArray[np.int64]
"""How many characters each item may have."""


_SAMPLE = 300_000


_SAMPLE_ITEMS = 4_000
"""Characters and items from which it is guessed at which step to begin."""


_LEFT = 0.02
"""The share of the room that is not worth filling any more."""


class Packer:
    """Packs values, and remembers what it packed: most blocks are the same when one is tried."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def packed(self, values: Iterable[Any]) -> list[str]:
        """Values as the texts of elements."""
        raws = list(map(encoded, values))
        new = [raw for raw in dict.fromkeys(raws) if raw not in self._known]
        self._known.update(zip(new, beside(compressed, new), strict=True))
        return [self._known[raw] for raw in raws]


class Filled(Struct, frozen=True):
    """Blocks, and the limit under which each item stands in them."""

    blocks: list[str]
    limits: Limits


class Filling(Generic[Item]):
    """Items whose texts may be cut: `lengths` are their characters, `cut` cuts one to a limit."""

    def __init__(
        self,
        items: Sequence[Item],
        lengths: Sequence[int],
        cut: Callable[[int, int], Any],
        size: int,
    ) -> None:
        self._items = items
        self._lengths = np.array(lengths, np.int64)
        self._cut = cut
        self._starts = range(0, len(items), size)
        self._size = size

    def filled(self, steps: Sequence[Limits], room: int) -> Filled:
        """The blocks within so many bytes; under the last step if even that is too much."""
        if not self._lengths.any():
            return Filled(self._within(steps[0], None) or [], steps[0])
        last = len(steps) - 1
        places = range(last)
        step = bisect_left(places, True, key=lambda i: self._guess(steps[i]) <= room)
        blocks = self._within(steps[step], room if step < last else None)
        while blocks is None:
            step += 1
            blocks = self._within(steps[step], room if step < last else None)
        limits = steps[step].copy()
        left = room - sum(map(len, blocks))
        least = int(max(room, 0) * _LEFT)
        while step > 0 and left > least:
            step -= 1
            is_all = True
            for number, start in enumerate(self._starts):
                if left <= least:
                    is_all = False
                    break
                gained, whole = self._raised(blocks, number, start, limits, steps[step], left)
                left -= gained
                is_all &= whole
            if not is_all:
                break
        return Filled(blocks, limits)

    def _raised(
        self, blocks: list[str], number: int, start: int, limits: Limits, higher: Limits, left: int
    ) -> tuple[int, bool]:
        """Give a block more, or as many of its items as fit; what that took, and whether all."""
        stop = min(start + self._size, len(self._items))
        before = len(blocks[number])

        def mixed(count: int) -> tuple[Limits, str]:
            tried = limits.copy()
            tried[start : start + count] = higher[start : start + count]
            return tried, self._block(tried, start)

        low, high = 0, stop - start
        if (
            np.minimum(higher[start:stop], self._lengths[start:stop]).sum()
            == np.minimum(limits[start:stop], self._lengths[start:stop]).sum()
        ):
            return 0, True
        tried, text = mixed(high)
        if len(text) - before <= left:
            low = high
        kept = (tried, text) if low else None
        while high - low > 1:
            middle = (low + high) // 2
            tried, text = mixed(middle)
            if len(text) - before <= left:
                low, kept = middle, (tried, text)
            else:
                high = middle
        if kept is None:
            return 0, False
        limits[:] = kept[0]
        blocks[number] = kept[1]
        return len(kept[1]) - before, low == stop - start

    def _within(self, limits: Limits, room: int | None) -> list[str] | None:
        """All blocks under limits, or None where they need more room than there is."""
        made = []
        size = 0
        for text in beside(compressed, (self._raw(limits, start) for start in self._starts)):
            made.append(text)
            size += len(text)
            if room is not None and size > room:
                return None
        return made

    def _block(self, limits: Limits, start: int) -> str:
        return compressed(self._raw(limits, start))

    def _raw(self, limits: Limits, start: int) -> bytes:
        part = limits[start : start + self._size]
        if not np.minimum(part, self._lengths[start : start + self._size]).any():
            return _NOTHING
        cut = self._cut
        return encoded([cut(start + i, most) for i, most in enumerate(part.tolist())])

    def _guess(self, limits: Limits) -> float:
        """About how many bytes all takes under limits, judged by every so many items."""
        lengths = np.minimum(self._lengths, limits)
        total = int(lengths.sum())
        if total == 0:
            return 0.0
        every = max(1, total // _SAMPLE, len(lengths) // _SAMPLE_ITEMS)
        chosen = range(0, len(lengths), every)
        made = compressed(encoded([self._cut(i, int(limits[i])) for i in chosen]))
        return len(made) * total / max(int(lengths[::every].sum()), 1)


_NOTHING = b"[]"
"""A block whose items have no text."""
