"""Layout of a page: words with boxes become lines in reading order, for one and more columns.

Coordinates are those of PDF: x grows to the right, y upwards, in points. Distances between letters
and lines are compared with the size of the letters, so that the same page set larger is read the
same.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from statistics import median

from msgspec import Struct

MARGIN = 0.12
"""The part of a page's height, at the top and at the bottom, where running lines may be.

Of A4 these are 3.6 cm each. A larger part would take what repeats in the text, such as the header
row of a table that goes on for pages, for a running line; a smaller one misses headers set low.
"""
_DIGITS = re.compile(r"\d+")


class PdfWord(Struct, frozen=True):
    """A word: its text, its box, its size in points, and its first character's index.

    A word may stand for a whole table, and then has the number of its rows and columns.
    """

    text: str
    left: float
    right: float
    y: float
    size: float
    mono: bool = False
    index: int = 0
    table: tuple[int, int] | None = None


class PdfLine(Struct, frozen=True):
    """Words on one height, in order; `flow` is the number of the column that they stand in."""

    words: tuple[PdfWord, ...]
    row: int
    flow: int = 0

    @property
    def text(self) -> str:
        """The words with a space between them."""
        return " ".join(word.text for word in self.words)

    @property
    def left(self) -> float:
        """Where the line begins."""
        return self.words[0].left

    @property
    def right(self) -> float:
        """Where the line ends."""
        return self.words[-1].right

    @property
    def y(self) -> float:
        """The height of the line: that of its tallest word."""
        return max(self.words, key=lambda word: word.size).y

    @property
    def size(self) -> float:
        """The size that most of its characters have, to half a point."""
        counts: Counter[float] = Counter()
        for word in self.words:
            counts[rounded(word.size)] += len(word.text)
        return max(counts.items(), key=lambda item: (item[1], item[0]))[0]

    @property
    def mono(self) -> bool:
        """Whether all of it is set in a font of fixed width."""
        return all(word.mono for word in self.words)


_Occurrence = tuple[float, int, int]
"""Where a line stands: its height, its page and its row."""
Edge = tuple[float, float, float, float]
"""A straight line that is drawn: x and y of its beginning and of its end."""


class PdfPage(Struct, frozen=True):
    """One page: its words, its lower and upper edge, and the straight lines drawn on it."""

    words: tuple[PdfWord, ...]
    bottom: float
    top: float
    edges: tuple[Edge, ...] = ()


def rounded(size: float) -> float:
    """A size to half a point, because PDF writers do not hit the same one twice."""
    return round(size * 2) / 2


def rows_of(words: Iterable[PdfWord]) -> list[list[PdfWord]]:
    """Words by their height, from the top down, and from left to right on one height."""
    rows: list[list[PdfWord]] = []
    anchor, size = 0.0, 0.0
    for word in sorted(words, key=lambda word: (-word.y, word.left, word.index)):
        # Superscripts and subscripts are off the baseline by about a third of the letters' size,
        # the next line by its whole size or more.
        if rows and anchor - word.y <= 0.4 * max(size, word.size):
            rows[-1].append(word)
            size = max(size, word.size)
        else:
            rows.append([word])
            anchor, size = word.y, word.size
    return [sorted(row, key=lambda word: (word.left, word.index)) for row in rows]


def running_lines(pages: Sequence[PdfPage]) -> set[tuple[int, int]]:
    """Running headers and footers: (page, row) of lines that repeat at one height.

    A line is one if it is near an edge and, with every number the same (a page has its own), on at
    least three pages or on half of at least two.
    """
    seen: dict[str, list[_Occurrence]] = defaultdict(list)
    for number, page in enumerate(pages):
        edge = MARGIN * (page.top - page.bottom)
        for place, row in enumerate(rows_of(page.words)):
            if not page.bottom + edge < row[0].y < page.top - edge:
                text = _DIGITS.sub("#", " ".join(word.text for word in row)).casefold()
                seen[text].append((row[0].y, number, place))
    repeated: set[tuple[int, int]] = set()
    for occurrences in seen.values():
        for group in _group_by_height(sorted(occurrences)):
            count = len({number for _, number, _ in group})
            if count >= 3 or (count >= 2 and 2 * count >= len(pages)):
                repeated.update((number, place) for _, number, place in group)
    return repeated


def _group_by_height(heights: list[_Occurrence]) -> Iterator[list[_Occurrence]]:
    group: list[_Occurrence] = []
    for height in heights:
        if group and height[0] - group[-1][0] > 3:  # points: the same line, set on another page
            yield group
            group = []
        group.append(height)
    if group:
        yield group


def lines_in_order(page: PdfPage, without: set[int]) -> list[PdfLine]:
    """The lines of a page in reading order, without some of its rows."""
    segments = [
        PdfLine(tuple(part), number)
        for number, row in enumerate(rows_of(page.words))
        if number not in without
        for part in parts_of(row)
    ]
    return [
        PdfLine(line.words, line.row, flow)
        for flow, column in enumerate(_columns(segments))
        for line in column
    ]


def parts_of(row: Sequence[PdfWord]) -> Iterator[list[PdfWord]]:
    """Cut a row where the space between words is as wide as between columns."""
    part = [row[0]]
    for before, word in pairwise(row):
        # Spaces between words are about a quarter of the size, and wider in justified lines. A
        # smaller ratio would cut such lines in two, a larger one would read across narrow gutters.
        if word.left - before.right > 0.9 * max(before.size, word.size):
            yield part
            part = []
        part.append(word)
    yield part


def _columns(segments: list[PdfLine], depth: int = 0) -> Iterator[list[PdfLine]]:
    """Runs of lines in reading order: what crosses the gutter breaks the columns."""
    # Divided twice, a page has up to four columns.
    gutter = gutter_of(segments) if depth < 2 else None
    if gutter is None:
        if segments:
            yield _join_rows(segments)
        return
    left: list[PdfLine] = []
    right: list[PdfLine] = []
    across: list[PdfLine] = []
    for segment in segments:
        side = left if segment.right <= gutter else right if segment.left >= gutter else None
        if side is None:
            yield from _columns(left, depth + 1)
            yield from _columns(right, depth + 1)
            left, right = [], []
            across.append(segment)
            continue
        # A short line beside one that crosses belongs to it.
        if across and across[-1].row == segment.row:
            across.append(segment)
            continue
        if across:
            yield _join_rows(across)
            across = []
        side.append(segment)
    if across:
        yield _join_rows(across)
    yield from _columns(left, depth + 1)
    yield from _columns(right, depth + 1)


def _join_rows(segments: list[PdfLine]) -> list[PdfLine]:
    """Segments of one row made one line again."""
    rows: dict[int, list[PdfWord]] = {}
    for segment in segments:
        rows.setdefault(segment.row, []).extend(segment.words)
    return [PdfLine(tuple(words), row) for row, words in rows.items()]


def gutter_of(segments: list[PdfLine]) -> float | None:
    """The middle of a clear gutter: an upright strip with wide lines on either side of it."""
    if len(segments) < 6:  # three on either side, see below
        return None
    first = min(segment.left for segment in segments)
    width = max(segment.right for segment in segments) - first
    if not 100 <= width <= 20_000:  # no page of PDF is wider
        return None
    # How many lines cover each point of the width: differences first, then their running sum.
    cover = [0] * (int(width) + 2)
    for segment in segments:
        cover[int(segment.left - first)] += 1
        cover[int(segment.right - first) + 1] -= 1
    for x in range(1, len(cover)):
        cover[x] += cover[x - 1]
    # A gutter is looked for in the middle half. Titles may cross it, so it is where the fewest
    # lines are, not where none is; of several such strips it is the widest.
    inner = range(int(0.25 * width), int(0.75 * width))
    lowest = min(cover[x] for x in inner)
    best: tuple[int, int] | None = None
    start = None
    for x in [*inner, inner[-1] + 1]:
        if x in inner and cover[x] == lowest:
            start = x if start is None else start
        elif start is not None:
            if best is None or x - start > best[1] - best[0]:
                best = (start, x)
            start = None
    if best is None:
        return None
    middle = first + (best[0] + best[1]) / 2
    left = [segment for segment in segments if segment.right <= middle]
    right = [segment for segment in segments if segment.left >= middle]
    size = median(segment.size for segment in segments)
    # Less than the 0.9 of `parts_of`: whole points make the strip up to two points narrower.
    if len(left) < 3 or len(right) < 3 or best[1] - best[0] < 0.7 * size:
        return None
    for side, other in ((left, right), (right, left)):
        # Lines above and below the columns may be short. Beside each other, short lines are cells
        # of a table: columns of text fill at least a quarter of the width each.
        low, high = min(line.y for line in other) - size, max(line.y for line in other) + size
        beside = [line.right - line.left for line in side if low <= line.y <= high]
        if not beside or median(beside) < 0.25 * width:
            return None
    return middle
