"""Tables of a PDF: words in a grid of ruled lines, or in columns that are aligned.

A PDF has no tables, only words and strokes. Only what is clear is a table: at least two rows and
two columns, drawn or aligned. All else stays running text, since a table that is none garbles the
text of a whole page, and one that is missed still has its words. A table becomes one word with the
text of its rows, in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import mean

from msgspec import Struct
from msgspec.structs import replace

from ragauge.corpus.parsers.pdf_blocks import BULLET, LEADERS, join_lines
from ragauge.corpus.parsers.pdf_layout import (
    PdfLine,
    PdfPage,
    PdfWord,
    gutter_of,
    parts_of,
    rows_of,
)

_MEETING_DISTANCE = 3.0  # points within which ruled lines meet
_MOST_RULES = 1_500  # every level one is compared with every upright one; a drawing has more
_LEAST_FILLED = 0.4  # of the cells of a grid; the grid of a chart is mostly empty
_LEAST_ROWS = 3  # of a table without ruled lines: two lines are aligned by accident
_IN_LINE = 2.5  # points by which edges of a column may differ
# From one row to the next, by the smallest step or the size of letters. A larger factor would make
# one table of two with text between them; a smaller one would refuse rows of uneven height.
_WIDEST_STEP = 2.4
_LONG_CELL = 15  # characters; lines of narrow columns of text are longer

Cells = list[list[str]]


class RuledLine(Struct, frozen=True, order=True):
    """A stroke or the side of a box, level or upright, merged with those that it goes on in.

    `at` is its height, or its distance from the left if it is upright, `first` and `last` its ends.
    """

    at: float
    first: float
    last: float

    def reaches(self, place: float) -> bool:
        """Whether it meets a ruled line of the other direction that is at this place."""
        return self.first - _MEETING_DISTANCE <= place <= self.last + _MEETING_DISTANCE


class _PdfTable(Struct):
    cells: Cells
    words: list[PdfWord]


def with_ruled_tables(page: PdfPage) -> PdfPage:
    """Make every table that is drawn with rules one word."""
    words = list(page.words)
    for table in _ruled_tables(page):
        inside = set(map(id, table.words))
        words = [word for word in words if id(word) not in inside]
        words.append(_as_word(table))
    return replace(page, words=tuple(words), edges=())


def with_aligned_tables(lines: Sequence[PdfLine], *, mono_is_code: bool) -> list[PdfLine]:
    """Make lines below each other whose parts stand in columns one line of one word."""
    result: list[PdfLine] = []
    at = 0
    while at < len(lines):
        end = _end_of_aligned(lines, at, mono_is_code)
        if end - at >= _LEAST_ROWS:
            rows = [list(parts_of(line.words)) for line in lines[at:end]]
            cells = [[join_lines([PdfLine(tuple(part), 0)]) for part in row] for row in rows]
            table = _PdfTable(cells, [word for row in rows for part in row for word in part])
            result.append(PdfLine((_as_word(table),), lines[at].row, lines[at].flow))
            at = end
        else:
            result.append(lines[at])
            at += 1
    return result


def _as_word(table: _PdfTable) -> PdfWord:
    words = table.words
    return PdfWord(
        text="\n".join(" | ".join(row) for row in table.cells),
        left=min(word.left for word in words),
        right=max(word.right for word in words),
        y=max(word.y for word in words),
        size=words[0].size,
        index=min(word.index for word in words),
        table=(len(table.cells), max(map(len, table.cells))),
    )


# Rules


def _ruled_tables(page: PdfPage) -> list[_PdfTable]:
    # Shorter strokes are parts of symbols or ticks of a chart. Upright ones may be shorter, since
    # cells are lower than they are wide. A stroke may be 1.5 points off straight.
    level = _merge_segments(
        (y, min(x, other), max(x, other))
        for x, y, other, end in page.edges
        if abs(y - end) <= 1.5 and abs(x - other) >= 8
    )
    upright = _merge_segments(
        (x, min(y, end), max(y, end))
        for x, y, other, end in page.edges
        if abs(x - other) <= 1.5 and abs(y - end) >= 4
    )
    if not level or len(level) + len(upright) > _MOST_RULES:
        return []
    tables = []
    alone: list[RuledLine] = []
    for rows, columns in _connected_rules(level, upright):
        if not columns:
            alone += rows
            continue
        if not rows:  # bars in the margin, the axis of a chart: they hold no cells
            continue
        gridded = len(columns) >= 3  # with two upright lines it is a frame with rows in it
        table = _grid_table(page, rows, columns) if gridded else _banded_table(page, rows)
        if table is not None:
            tables.append(table)
    return tables + _between_rules(page, alone)


def _merge_segments(segments: Iterable[tuple[float, float, float]]) -> list[RuledLine]:
    """Ruled lines from segments that go on in each other; both sides of a thin box are one line.

    Many programs draw a line as a thin filled box, or cell by cell.
    """
    groups: list[list[tuple[float, float, float]]] = []
    for rule in sorted(segments):
        if groups and rule[0] - groups[-1][0][0] <= 2:
            groups[-1].append(rule)
        else:
            groups.append([rule])
    merged = []
    for group in groups:
        first, last = None, 0.0
        for _, begin, end in sorted(group, key=lambda rule: rule[1:]):
            if first is not None and begin - last > _MEETING_DISTANCE:
                merged.append(RuledLine(group[0][0], first, last))
                first = None
            first, last = (begin, end) if first is None else (first, max(last, end))
        if first is not None:
            merged.append(RuledLine(group[0][0], first, last))
    return merged


def _connected_rules(
    level: list[RuledLine], upright: list[RuledLine]
) -> list[tuple[list[RuledLine], list[RuledLine]]]:
    """Groups of ruled lines that meet, directly or through others (union-find)."""
    root = list(range(len(level) + len(upright)))

    def top(place: int) -> int:
        while root[place] != place:
            root[place] = place = root[root[place]]
        return place

    for row, one in enumerate(level):
        for column, other in enumerate(upright, len(level)):
            if one.reaches(other.at) and other.reaches(one.at):
                root[top(column)] = top(row)
    groups: dict[int, tuple[list[RuledLine], list[RuledLine]]] = {}
    for place, rule in enumerate([*level, *upright]):
        rows, columns = groups.setdefault(top(place), ([], []))
        (rows if place < len(level) else columns).append(rule)
    return [(sorted(rows), sorted(columns)) for rows, columns in groups.values()]


def _inside(page: PdfPage, left: float, right: float, low: float, high: float) -> list[PdfWord]:
    """Words whose middle is in a box: letters reach about 0.6 of their size above the baseline."""
    return [
        word
        for word in page.words
        if left - 1 <= (word.left + word.right) / 2 <= right + 1
        and low <= word.y + 0.3 * word.size <= high
    ]


def _grid_table(page: PdfPage, rows: list[RuledLine], columns: list[RuledLine]) -> _PdfTable | None:
    """The cells between rules; where an upright one is missing, a cell is wider."""
    heights = sorted({rule.at for rule in rows}, reverse=True)
    cells: Cells = []
    all_words: list[PdfWord] = []
    filled = total = 0
    for high, low in pairwise(heights):
        middle = (high + low) / 2
        edges = [rule.at for rule in columns if rule.first - 1 <= middle <= rule.last + 1]
        row = []
        for left, right in pairwise(edges):
            words = _inside(page, left, right, low, high)
            all_words += words
            row.append(_cell(words))
        filled += sum(map(bool, row))
        total += len(row)
        if any(row):
            cells.append(row)
    enough = len(cells) >= 2 and sum(len(list(filter(None, row))) >= 2 for row in cells) >= 2
    return _PdfTable(cells, all_words) if enough and filled >= _LEAST_FILLED * total else None


def _between_rules(page: PdfPage, rules: list[RuledLine]) -> list[_PdfTable]:
    """Tables of level rules only, which are equally wide: the largest run that is a table."""
    groups: list[list[RuledLine]] = []
    for rule in sorted(rules, reverse=True):
        for group in groups:
            ends = zip((group[0].first, group[0].last), (rule.first, rule.last), strict=True)
            if all(abs(one - other) <= _MEETING_DISTANCE for one, other in ends):
                group.append(rule)
                break
        else:
            groups.append([rule])
    tables = []
    for group in groups:
        # Rules of one width may be those of several tables: the largest run that is one table is
        # tried first, of at most 60 rules, so that a page of ruled paper takes no time.
        at = 0
        while at < len(group) - 1:
            for end in range(min(len(group), at + 60), at + 1, -1):
                table = _banded_table(page, group[at:end])
                if table is not None:
                    tables.append(table)
                    at = end - 1
                    break
            at += 1
    return tables


def _banded_table(page: PdfPage, rules: list[RuledLine]) -> _PdfTable | None:
    """The words between level rules, if they stand in columns with clear space between them."""
    first, last = min(rule.first for rule in rules), max(rule.last for rule in rules)
    low, high = min(rule.at for rule in rules), max(rule.at for rule in rules)
    words = _inside(page, first, last, low, high)
    rows = [list(parts_of(row)) for row in rows_of(words)]
    segments = [PdfLine(tuple(part), number) for number, row in enumerate(rows) for part in row]
    if len(rows) < 2 or len(rows[0]) < 2 or gutter_of(segments) is not None:
        return None
    steps = [one[0][0].y - other[0][0].y for one, other in pairwise(rows)]
    if max(steps) > _WIDEST_STEP * max(min(steps), rows[0][0][0].size):
        return None  # what is that far apart is two tables, and text between them
    bands: list[list[float]] = []
    for left, right in sorted((part[0].left, part[-1].right) for row in rows for part in row):
        if bands and left <= bands[-1][1]:
            bands[-1][1] = max(bands[-1][1], right)
        else:
            bands.append([left, right])
    # Where three fifths of the rows have several parts: the others may go on with a long cell.
    several = sum(len(row) >= 2 for row in rows)
    if len(bands) < 2 or 5 * several < 3 * len(rows):
        return None
    cells: list[list[list[PdfWord]]] = []
    for row in rows:
        placed = [
            [word for part in row for word in part if left <= word.left <= right]
            for left, right in bands
        ]
        if placed[0] or not cells:
            cells.append(placed)
        else:  # a cell above goes on
            cells[-1] = [one + other for one, other in zip(cells[-1], placed, strict=True)]
    if len(cells) < 2:
        return None
    return _PdfTable([[_cell(cell) for cell in row] for row in cells], words)


def _cell(words: list[PdfWord]) -> str:
    rows = rows_of(words)
    return join_lines([PdfLine(tuple(row), 0) for row in rows]) if rows else ""


# Columns in line


def _end_of_aligned(lines: Sequence[PdfLine], at: int, mono_is_code: bool) -> int:
    """The line behind the last one of a table that begins here."""
    first = lines[at]
    columns = [[part] for part in parts_of(first.words)]
    if len(columns) < 2 or _cannot_be_row(first, mono_is_code):
        return at
    end = at + 1
    step = 0.0
    while end < len(lines):
        before, line = lines[end - 1], lines[end]
        down = before.y - line.y
        parts = list(parts_of(line.words))
        if line.flow != first.flow or line.size != first.size or len(parts) != len(columns):
            break
        # Rows follow each other evenly, not more than two and a half lines apart.
        if not 0 < down <= 2.5 * line.size or (step and not step / 1.6 <= down <= 1.6 * step):
            break
        if _cannot_be_row(line, mono_is_code):
            break
        longer = [[*column, part] for column, part in zip(columns, parts, strict=True)]
        if not all(map(_stands_in_line, longer)):
            break
        columns, step, end = longer, step or down, end + 1
    # Bullets with their texts, and columns of running text that `gutter_of` did not see, are
    # aligned as well.
    bullets = all(BULLET.fullmatch(part[0].text) for part in columns[0])
    return at if bullets or all(map(_reads_as_text, columns)) else end


def _cannot_be_row(line: PdfLine, mono_is_code: bool) -> bool:
    """Whether a line is a table already, code, or one of a table of contents."""
    is_table = any(word.table is not None for word in line.words)
    return is_table or (line.mono and mono_is_code) or LEADERS.search(line.text) is not None


def _stands_in_line(column: list[list[PdfWord]]) -> bool:
    """Whether the cells of a column begin, end or have their middle at the same place."""
    edges: tuple[Callable[[list[PdfWord]], float], ...] = (
        lambda part: part[0].left,
        lambda part: part[-1].right,
        lambda part: (part[0].left + part[-1].right) / 2,
    )
    return any(max(map(edge, column)) - min(map(edge, column)) <= _IN_LINE for edge in edges)


def _reads_as_text(column: list[list[PdfWord]]) -> bool:
    """Whether most cells are long and as wide as the column, as lines of running text are."""
    widths = [part[-1].right - part[0].left for part in column]
    full = sum(width >= 0.8 * max(widths) for width in widths)
    letters = mean(sum(len(word.text) + 1 for word in part) for part in column)
    return letters >= _LONG_CELL and 2 * full >= len(widths)
