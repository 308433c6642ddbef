"""What is left out when a page would be too large: chosen in steps, counted, and told.

Texts go first, those that only questions without a problem show before the others. They are
shortened around their evidence, then left out, those of hits without a mark before the others; then
hits beyond the tenth go, then whole questions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from msgspec import Struct

BUDGET = 5_500_000
"""Bytes that a page may have before anything is left out of its questions."""
GAP = " … "
_HITS = 10


class Step(Struct, frozen=True, kw_only=True):
    """How much is kept, of questions without a problem (`fine`) and of the others (`failing`).

    fine, failing             characters of a text; None is all of it
    fine_hits, failing_hits   hits of an attempt
    fine_shown                whether questions without a problem have details at all
    failing_shown             how many of the others have; None is all of them
    only_marked               whether of failing questions too only the texts of hits count that
                              have a mark: evidence, wrong ones, cited ones
    """

    fine: int | None = None
    failing: int | None = None
    fine_hits: int | None = None
    failing_hits: int | None = None
    fine_shown: bool = True
    failing_shown: int | None = None
    only_marked: bool = False

    def characters(self, *, failing: bool) -> int | None:
        """How long a text may be."""
        return self.failing if failing else self.fine

    def hits(self, *, failing: bool) -> int | None:
        """How many hits there may be."""
        return self.failing_hits if failing else self.fine_hits

    def shown(self, failing: Sequence[bool]) -> list[bool]:
        """Which questions have details: the first of those that fail, if not all can."""
        if self.failing_shown is None:
            return [is_failing or self.fine_shown for is_failing in failing]
        counted = accumulate(failing)
        return [
            (is_failing and count <= self.failing_shown) or (not is_failing and self.fine_shown)
            for is_failing, count in zip(failing, counted, strict=True)
        ]


TEXT_STEPS = (
    Step(),
    Step(fine=1200),
    Step(fine=600),
    Step(fine=300),
    Step(fine=160),
    Step(fine=160, failing=1200),
    Step(fine=160, failing=600),
    Step(fine=160, failing=300),
    Step(fine=0, failing=300),
    Step(fine=0, failing=160),
    Step(fine=0, failing=600, only_marked=True),
    Step(fine=0, failing=300, only_marked=True),
    Step(fine=0, failing=160, only_marked=True),
    Step(fine=0, failing=0),
)
"""Steps that only cut texts, from all to none."""
STEPS = (
    *TEXT_STEPS,
    Step(fine=0, failing=0, fine_hits=_HITS),
    Step(fine=0, failing=0, fine_hits=_HITS, failing_hits=_HITS),
    Step(fine=0, failing=0, fine_shown=False, failing_hits=_HITS),
    Step(fine=0, failing=0, fine_shown=False, failing_hits=_HITS, failing_shown=10_000),
    Step(fine=0, failing=0, fine_shown=False, failing_hits=_HITS, failing_shown=2_000),
    Step(fine=0, failing=0, fine_shown=False, failing_shown=0),
)
"""From all to nothing; the first that fits is taken."""


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

    shortened: int = 0
    texts: int = 0
    hits: int = 0
    cut_questions: int = 0
    answers: int = 0
    questions: int = 0

    def sentences(self) -> list[str]:
        """What was left out, in words; nothing if nothing was."""
        told = []
        if self.shortened:
            told.append(f"the texts of {self.shortened:,} passages are shortened")
        if self.texts:
            told.append(f"the texts of {self.texts:,} passages are left out")
        if self.answers:
            told.append(f"{self.answers:,} answers are shortened")
        if self.hits:
            told.append(
                f"{self.hits:,} hits beyond the tenth are left out, of {self.cut_questions:,} "
                "questions"
            )
        if self.questions:
            told.append(f"{self.questions:,} questions are shown without details")
        return told
