"""Blocks of a PDF: lines in reading order become paragraphs, headings, code and captions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Literal

from msgspec import Struct

from ragauge.corpus.parsers.pdf_layout import PdfLine

HEADING = 1.12
"""How much larger than the body a heading is set.

Above a body of 10 points, 11.5 is a heading and 11 is not. A smaller ratio would take introductions
for headings; headings of the body's own size are found by the outline of the file.
"""
BULLET = re.compile(r"(?:[•‣◦▪●○·–*-]|\(?\d{1,3}[.)]|\(?[a-z][.)])(?:\s|$)")
_CAPTION = re.compile(r"(?:figure|fig\.|table|tab\.)\s+\d+[a-z]?\s*[.:|]", re.IGNORECASE)
_LETTERS = re.compile(r"[^\w]+")
_NUMBERED = re.compile(r"^(?:(?:\d+\.)*\d+\.?|[ivxlc]+\.)\s+", re.IGNORECASE)
# As in a table of contents. Only the first of many dots is tried, here and below.
LEADERS = re.compile(r"(?<!\.)(?<!\.\s)(?:\.\s?){4,}\s*\w*$")
_OPEN = re.compile(r"[^.!?:;]$")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LAST_WORD = re.compile(rf"(?<![^\W\d_])(?<![^\W\d_]-){_WORD.pattern}$")
_SHORTEST_HALF = 4
"""Letters of a word that may be half of a compound: shorter ones are mostly syllables, as in
per-form and in-come, and occur as words of their own in almost any text."""


class Style(Struct, frozen=True):
    """What is usual in a document: the size of its body and the distance of lines by size.

    `words` are those of its text that no line end divides, and how often they occur.
    """

    body: float
    leading: Mapping[float, float]
    mono_is_code: bool
    words: Mapping[str, int] = {}

    def distance(self, size: float) -> float:
        """How far apart lines of a size stand inside a paragraph."""
        usual = self.leading.get(size, 0.0)
        # Lines further apart than double spacing are single lines, not lines of a paragraph.
        return usual if 0 < usual <= 2.2 * size else 1.25 * size


class PdfBlock(Struct, frozen=True):
    """A block: its kind, its text, the size of its letters, and its first character's index."""

    kind: Literal["prose", "code", "table", "caption", "heading"]
    text: str
    size: float
    index: int
    level: int = 0
    table: tuple[int, int] = (0, 0)


def style_of(pages: Sequence[Sequence[PdfLine]]) -> Style:
    """Find out what is usual: most characters decide."""
    sizes: Counter[float] = Counter()
    steps: dict[float, Counter[float]] = {}
    mono = total = 0
    for lines in pages:
        for line in lines:
            count = len(line.text)
            total += count
            mono += count * line.mono
            sizes[line.size] += count
        for before, line in pairwise(lines):
            step = round((before.y - line.y) * 2) / 2
            if before.flow == line.flow and before.size == line.size and step > 0:
                steps.setdefault(line.size, Counter())[step] += 1
    body = _most_frequent(sizes) if sizes else 0.0
    leading = {size: _most_frequent(counts) for size, counts in steps.items()}
    # A document of which more than three fifths are set in a fixed width is typewritten prose.
    code = 5 * mono <= 3 * total
    text = [line.text for lines in pages for line in lines if not (line.mono and code)]
    return Style(body, leading, code, count_words(text))


def _most_frequent(counts: Counter[float]) -> float:
    """The most frequent value; of equal ones the smallest."""
    return max(counts, key=lambda value: (counts[value], -value))


def count_words(lines: Sequence[str]) -> Counter[str]:
    """How often each word occurs, and each part of one with hyphens; what is divided is none."""
    counts: Counter[str] = Counter()
    divided = False
    for line in lines:
        words = [word.casefold() for word in _WORD.findall(line)]
        words = words[1:] if divided else words
        divided = line.endswith("-") and line[-2:-1].isalpha()
        for word in words[:-1] if divided else words:
            counts[word] += 1
            if "-" in word:
                counts.update(word.split("-"))
    return counts


def is_compound(before: str, after: str, words: Mapping[str, int]) -> bool:
    """Whether a hyphen at the end of a line belongs to the word that goes on in the next one.

    The document itself shows it: it writes the word with its hyphen, at least as often as without;
    or it has it in neither form, and has both halves as words.
    """
    one, other = _LAST_WORD.search(before.casefold()), _WORD.match(after.casefold())
    if one is None or other is None:
        return False
    hyphened, joined = words.get(f"{one[0]}-{other[0]}", 0), words.get(one[0] + other[0], 0)
    if hyphened or joined:
        return hyphened >= joined
    halves = one[0].rpartition("-")[2], other[0].partition("-")[0]
    long = "-" in one[0] or min(map(len, halves)) >= _SHORTEST_HALF
    return long and all(half in words for half in halves)


def title_key(text: str) -> str:
    """A title as it is compared: letters and digits, without a number before them."""
    return _LETTERS.sub("", _NUMBERED.sub("", text.strip())).casefold()


def blocks_of(lines: Sequence[PdfLine], style: Style, outline: Mapping[str, int]) -> list[PdfBlock]:
    """The blocks of a page; `outline` gives the levels of titles that the file names itself."""
    groups: list[list[PdfLine]] = []
    for place, line in enumerate(lines):
        following = lines[place + 1] if place + 1 < len(lines) else None
        if groups and _continues(groups[-1], line, following, style, outline):
            groups[-1].append(line)
        else:
            groups.append([line])
    return [_block(group, style, outline) for group in groups]


def _is_code(line: PdfLine, style: Style) -> bool:
    return line.mono and style.mono_is_code


def _continues(
    group: list[PdfLine],
    line: PdfLine,
    following: PdfLine | None,
    style: Style,
    outline: Mapping[str, int],
) -> bool:
    """Whether a line belongs to the block before it."""
    before = group[-1]
    if before.words[0].table is not None or line.words[0].table is not None:
        return False
    if _is_code(before, style) != _is_code(line, style):
        return False
    if title_key(line.text) in outline or title_key(before.text) in outline:
        return title_key(" ".join(part.text for part in (*group, line))) in outline
    if abs(before.size - line.size) > 0.75:  # a step and a half of the rounded sizes
        return False
    if before.flow != line.flow:  # a paragraph may go on in the next column
        unfinished = _OPEN.search(before.text) is not None and line.text[0].islower()
        return unfinished and not _is_code(line, style)
    step, usual = before.y - line.y, style.distance(line.size)
    if _is_code(line, style):
        return step <= 3.2 * usual  # code may have two blank lines in it
    # A smaller factor would divide paragraphs at a line with a formula, a larger one would join
    # those that are set apart by less than half a line.
    if step > 1.3 * usual:
        return False
    return _CAPTION.match(line.text) is None and not _is_indented(before, line, following)


def _is_indented(before: PdfLine, line: PdfLine, following: PdfLine | None) -> bool:
    """Whether a line is set in, between two that are not: a paragraph begins with it."""
    if following is None or following.flow != line.flow or BULLET.match(before.text):
        return False
    # An indent is at least about a letter wide; what is set in further is no beginning.
    least, most = 0.8 * line.size, 4 * line.size
    return all(least <= line.left - neighbour.left <= most for neighbour in (before, following))


def _block(group: list[PdfLine], style: Style, outline: Mapping[str, int]) -> PdfBlock:
    size = max(line.size for line in group)
    index = group[0].words[0].index
    table = group[0].words[0].table
    if table is not None:
        return PdfBlock("table", group[0].text, size, index, table=table)
    if _is_code(group[0], style):
        return PdfBlock("code", _code(group, style), size, index)
    text = join_lines(group, style.words)
    level = outline.get(title_key(text), 0)
    # Long text in large letters is a quote or a poster, and no title.
    large = size >= HEADING * style.body and len(group) <= 4 and len(text) <= 250
    if level or (large and LEADERS.search(text) is None):
        return PdfBlock("heading", text, size, index, level)
    return PdfBlock("caption" if _CAPTION.match(text) else "prose", text, size, index)


def join_lines(group: Sequence[PdfLine], words: Mapping[str, int] | None = None) -> str:
    """Lines as flowing text; a word that was divided between two is whole again.

    `words` of the document decide which hyphens belong to a word.
    """
    text = group[0].text
    for before, line in pairwise(group):
        added = line.text
        divided = text.endswith("-") and text[-2:-1].isalnum()
        if divided and text[-2].isalpha() and added[0].islower():
            text = (text if words and is_compound(text[:-1], added, words) else text[:-1]) + added
        elif divided and added[0].isalnum():  # a hyphen of its own, as in 5-fold
            text += added
        else:
            own_line = BULLET.match(added) or LEADERS.search(before.text)
            text += ("\n" if own_line else " ") + added
    return text


def _code(group: Sequence[PdfLine], style: Style) -> str:
    """Lines of code with their indentation, blank lines and inner spaces as they look."""
    words = [word for line in group for word in line.words]
    wide = median((word.right - word.left) / len(word.text) for word in words) or 1.0
    margin = min(line.left for line in group)
    usual = style.distance(group[0].size)
    text = ""
    before: PdfLine | None = None
    for line in group:
        if before is not None:
            blank = round((before.y - line.y) / usual) - 1 if before.flow == line.flow else 0
            text += "\n" * (1 + min(max(blank, 0), 2))
        # In a font of fixed width the distance of two words is a number of letters.
        at = margin
        for place, word in enumerate(line.words):
            spaces = round((word.left - at) / wide)
            text += " " * max(min(spaces, 120), 1 if place else 0) + word.text
            at = word.right
        before = line
    return text
