"""What is left out when a page would be too large: chosen in steps and counted.

Ranked lists stay before answers, and answers before texts; of each, those of failing questions stay
before the others. Texts are shortened around their evidence before they are left out, and hits
beyond the tenth go before whole questions. People open a page because of what fails: what they
read then is the last to go.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.concurrency import map_in_threads
from ragauge.report.html.data_blocks import compressed, encoded

Item = TypeVar("Item")
Limits = NDArray[np.int64]
"""How many characters each item may have."""
BUDGET = 5_500_000
"""Bytes that a page may have before anything is left out of its questions.

A page is to be below 6 MB, whatever is in it: people send it to others."""
GAP = " … "
MOST_HITS = 10
"""Hits of an attempt that stay the longest."""
MOST_FIELD = 4_000
"""Characters of what is neither answer nor text: an error, a quote, the words that were asked."""
MOST_ID = 1_000
"""Characters of an id, and of the document and the section beside it."""
MOST_ENTRIES = 300
"""Entries of a list that a gold item holds: paraphrases, claims, expected items."""
_LONG = 20_000  # a text of the corpus is never longer: see report/drilldown/corpus_texts
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
_SAMPLE, _SAMPLE_ITEMS = 300_000, 4_000
"""Characters and items from which it is guessed at which step to begin."""
_UNUSED = 0.02
"""The share of the room that is not worth another try."""
_NOTHING = b"[]"
"""A block whose items have no text."""


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


class ShortenedText(Struct, frozen=True):
    """A text with parts left out: the ranges of the whole that are still there, and where now.

    starts, ends   of each range in the whole text
    moved          where the range begins in `text`
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    moved: tuple[int, ...]

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """Where a part of the whole text is now, as far as it is still there."""
        place = bisect_right(self.starts, start) - 1
        if place < 0 or start >= self.ends[place]:
            return None
        shift = self.moved[place] - self.starts[place]
        return start + shift, min(end, self.ends[place]) + shift


def shorten(text: str, spans: Sequence[tuple[int, int]], most: int) -> ShortenedText:
    """A text cut to about `most` characters, which lie around the spans, or at its beginning.

    Each span gets an equal part of them, half of what it does not need on either side.
    """
    if not spans:
        return ShortenedText(text[:most] + GAP.rstrip(), (0,), (most,), (0,))
    inside = sorted({(max(a, 0), min(b, len(text))) for a, b in spans if a < len(text) and b > 0})
    share = most // max(len(inside), 1)
    ranges: list[list[int]] = []
    for start, last in inside or [(0, 0)]:
        end = min(last, start + share)
        around = (share - (end - start)) // 2 if inside else share
        begin, until = max(0, start - around), min(len(text), end + around)
        if ranges and begin <= ranges[-1][1]:
            ranges[-1][1] = max(ranges[-1][1], until)
        else:
            ranges.append([begin, until])
    parts: list[str] = []
    moved = []
    length = 0
    if ranges[0][0] > 0:
        parts.append(GAP.lstrip())
        length = len(parts[0])
    for number, (begin, until) in enumerate(ranges):
        if number:
            parts.append(GAP)
            length += len(GAP)
        moved.append(length)
        parts.append(text[begin:until])
        length += until - begin
    if ranges[-1][1] < len(text):
        parts.append(GAP.rstrip())
    starts, ends = zip(*ranges, strict=True)
    return ShortenedText("".join(parts), starts, ends, tuple(moved))


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
        clauses = [
            _are(self.fields, "field", "fields", f"cut to {MOST_FIELD:,} characters or fewer"),
            _are(self.shortened, "text of a passage", "texts of passages", "shortened"),
            _are(self.texts, "text of a passage", "texts of passages", "left out"),
            _are(self.answers, "answer", "answers", "shortened"),
            _are(self.lost_answers, "answer", "answers", "left out"),
            hits and f"{hits}, from {_counted(self.cut_questions, 'question', 'questions')}",
            _are(self.questions, "question", "questions", "shown without details"),
        ]
        return [clause for clause in clauses if clause]


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _are(count: int, one: str, many: str, what: str) -> str:
    """What happened to so many things; nothing if there are none."""
    return f"{_counted(count, one, many)} {'is' if count == 1 else 'are'} {what}" if count else ""


class BlockCache:
    """Blocks by their JSON: of those that are tried, most are the same as the time before."""

    def __init__(self) -> None:
        self._blocks: dict[bytes, str] = {}

    def blocks(self, values: Iterable[Any]) -> list[str]:
        """A block for each value."""
        raws = list(map(encoded, values))
        new = [raw for raw in dict.fromkeys(raws) if raw not in self._blocks]
        self._blocks.update(zip(new, map_in_threads(compressed, new), strict=True))
        return [self._blocks[raw] for raw in raws]


class FittedBlocks(Struct, frozen=True):
    """Blocks, and the limit to which each item was cut."""

    blocks: list[str]
    limits: Limits


class BlockFitter(Generic[Item]):
    """Finds the longest texts of items whose blocks fit into the room that there is.

    `lengths` are the characters of the items, `cut` cuts the one at a place to a limit, and `size`
    is how many items go into a block.
    """

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

    def fit(self, steps: Sequence[Limits], room: int) -> FittedBlocks:
        """The blocks within so many bytes; under the last step if even that is too much.

        The first step that fits is taken as a whole. Then block after block gets what the step
        before would give it, until the room is used up: steps are far apart, and a page is to leave
        nothing out that it has room for.
        """
        if not self._lengths.any():
            return FittedBlocks(self._blocks_within(steps[0], None) or [], steps[0])
        last = len(steps) - 1
        # Compressing is what takes the time here: a sample says where to begin.
        step = bisect_left(range(last), True, key=lambda i: self._guess(steps[i]) <= room)
        blocks = self._blocks_within(steps[step], room if step < last else None)
        while blocks is None:
            step += 1
            blocks = self._blocks_within(steps[step], room if step < last else None)
        limits = steps[step].copy()
        left = room - sum(map(len, blocks))
        least = int(max(room, 0) * _UNUSED)
        while step > 0 and left > least:
            step -= 1
            is_all = True
            for number, start in enumerate(self._starts):
                if left <= least:
                    is_all = False
                    break
                gained, whole = self._raise(blocks, number, start, limits, steps[step], left)
                left -= gained
                is_all &= whole
            if not is_all:
                break
        return FittedBlocks(blocks, limits)

    def _raise(
        self, blocks: list[str], number: int, start: int, limits: Limits, higher: Limits, left: int
    ) -> tuple[int, bool]:
        """Give a block more, or as many of its items as fit; what that took, and whether all."""
        stop = min(start + self._size, len(self._items))
        before = len(blocks[number])
        if (
            np.minimum(higher[start:stop], self._lengths[start:stop]).sum()
            == np.minimum(limits[start:stop], self._lengths[start:stop]).sum()
        ):
            return 0, True

        def with_more(count: int) -> tuple[Limits, str]:
            mixed = limits.copy()
            mixed[start : start + count] = higher[start : start + count]
            return mixed, compressed(self._json(mixed, start))

        # How many items fit is found by halving: the size of a compressed block does not follow
        # from its parts.
        low, high = 0, stop - start
        candidate = with_more(high)
        best = None
        if len(candidate[1]) - before <= left:
            low, best = high, candidate
        while high - low > 1:
            middle = (low + high) // 2
            candidate = with_more(middle)
            if len(candidate[1]) - before <= left:
                low, best = middle, candidate
            else:
                high = middle
        if best is None:
            return 0, False
        limits[:], blocks[number] = best
        return len(blocks[number]) - before, low == stop - start

    def _blocks_within(self, limits: Limits, room: int | None) -> list[str] | None:
        """All blocks under limits, or None where they need more room than there is."""
        blocks = []
        size = 0
        for block in map_in_threads(
            compressed, (self._json(limits, start) for start in self._starts)
        ):
            blocks.append(block)
            size += len(block)
            if room is not None and size > room:
                return None
        return blocks

    def _json(self, limits: Limits, start: int) -> bytes:
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
        sampled = range(0, len(lengths), every)
        block = compressed(encoded([self._cut(i, int(limits[i])) for i in sampled]))
        return len(block) * total / max(int(lengths[::every].sum()), 1)
