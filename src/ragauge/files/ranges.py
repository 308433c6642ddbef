"""The byte ranges of a file, and the rows of a range with their lines.

A range is newline-aligned and is the unit of work: any process can read one alone. A row knows its
line inside the range; the first line of each range is known once all ranges before it are counted.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import BinaryIO, Literal

import msgspec
from msgspec import Struct

from ragauge.errors import Place, RagaugeError
from ragauge.files.json_faults import deepest, error_offset, half_surrogate

RANGE_BYTES = 1024 * 1024
MAX_LINE = 64 * 1024 * 1024
_STEP = 64 * 1024

Layout = Literal["lines", "array", "object", "empty", "qrels", "run"]


class Range(Struct, frozen=True):
    """A newline-aligned (or, in a JSON array, element-aligned) part of a file."""

    index: int
    start: int
    end: int
    first_line: int | None = None


class Rows(Struct, frozen=True):
    """The rows of one range; `lines` counts from 0 at the range (None: row i is on line i).

    Blank lines stay as empty rows, so that rows and lines agree. A row that is too long for memory
    is empty too, and its index is in `overlong`. `ended`: the last row has its newline.
    `offsets` says where rows begin in the range, unless each begins a newline behind the last one.
    """

    data: list[bytes]
    lines: Sequence[int] | None
    overlong: frozenset[int]
    newlines: int
    ended: bool = True
    offsets: Sequence[int] | None = None

    def begins(self) -> Sequence[int]:
        """Where each row begins, counted from the start of the range."""
        if self.offsets is not None:
            return self.offsets
        return list(accumulate((len(row) + 1 for row in self.data), initial=0))

    def line(self, index: int) -> int:
        """The line of a row within its range, from 0."""
        return index if self.lines is None else self.lines[index]


class Source(Struct, frozen=True):
    """A file that is ready to be read in ranges; `name` is how the user wrote it.

    `tabular`: the rows come from a table whose cells are all texts.
    """

    name: str
    path: str
    start: int
    size: int
    layout: Layout
    notes: tuple[str, ...]
    tabular: bool = False


def plan(source: Source, *, range_bytes: int = RANGE_BYTES) -> list[Range]:
    """Split a source into ranges, in file order."""
    if source.layout == "array":
        return _plan_array(source, range_bytes)
    if source.layout == "object":
        with open(source.path, "rb") as file:
            file.seek(source.start)
            head = file.read()
        blank = len(head) - len(head.lstrip())
        return [Range(0, source.start, source.size, 1 + head[:blank].count(b"\n"))]
    ranges: list[Range] = []
    start = source.start
    with open(source.path, "rb") as file:
        while start < source.size:
            end = _line_end(file, min(start + range_bytes, source.size), source.size)
            ranges.append(Range(len(ranges), start, end))
            start = end
    return ranges


def _line_end(file: BinaryIO, position: int, size: int) -> int:
    """Return the first position at or behind `position` that begins a line (or the file's end)."""
    if position >= size:
        return size
    file.seek(position - 1)  # a newline just before means that a line begins here
    while chunk := file.read(_STEP):
        newline = chunk.find(b"\n")
        if newline >= 0:
            return file.tell() - len(chunk) + newline + 1
    return size


def _plan_array(source: Source, range_bytes: int) -> list[Range]:
    with open(source.path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as m:
        data = memoryview(m)[source.start :]
        try:
            return _element_ranges(source, data, range_bytes)
        finally:
            data.release()


def _element_ranges(source: Source, data: memoryview, range_bytes: int) -> list[Range]:
    try:
        elements = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise _bad_array(source, bytes(data), error) from error
    ranges: list[Range] = []
    before = source.start
    position, line, counted = bytes(data[:_STEP]).index(b"[") + 1, 1, 0
    start: int | None = None
    for element in elements:
        while data[position] in b" \t\r\n,":
            position += 1
        if start is None:
            start = position
            # Each byte is searched for newlines once, however many ranges there are.
            line += bytes(data[counted:start]).count(b"\n")
            counted = start
        position += len(memoryview(element))  # a Raw is a view of the data: nothing is copied
        if position - start >= range_bytes:
            ranges.append(Range(len(ranges), before + start, before + position, line))
            start = None
    if start is not None:
        ranges.append(Range(len(ranges), before + start, before + position, line))
    return ranges


def _bad_array(source: Source, data: bytes, error: Exception) -> RagaugeError:
    """Say what is wrong with an array that does not decode, as near to the place as can be."""
    code, message, hint, at = "bad-json", f"the JSON array is malformed: {error}", "", len(data)
    if b"\0" in data:
        code, message, at = "nul-byte", "there is a NUL byte in the JSON array", data.index(0)
        hint = "the file was damaged while it was written; write it again"
    elif isinstance(error, RecursionError):
        code, message, at = "too-deep", "an element is nested too deeply", deepest(data)
        hint = "write one flat object per question"
    elif (half := half_surrogate(data)) is not None:
        message, at = "half of a surrogate pair is no character", half
        hint = "write both halves, or the character itself in UTF-8"
    elif "truncated" in str(error):
        code, message = "truncated-line", "the JSON array is cut off"
        hint = "close the array, or write JSON Lines: one object per line"
    else:
        at = error_offset(error, data)
        hint = "check the place with a JSON tool, or write JSON Lines: one object per line"
    place = Place(source.name, data[:at].count(b"\n") + 1)
    return RagaugeError.of(code, message, hint=hint, place=place)


def rows_of(source: Source) -> Iterator[tuple[int, bytes, bool, bool]]:
    """Yield line, bytes, whether it ends the file without a newline, and whether it is too long.

    Rows come in file order; blank lines are passed over.
    """
    first = 1
    for part in plan(source):
        rows = read_rows(source, part)
        if part.first_line is not None:
            first = part.first_line
        at_end = part.end >= source.size
        for index, data in enumerate(rows.data):
            overlong = index in rows.overlong
            if overlong or data.strip():
                cut = at_end and not rows.ended and index == len(rows.data) - 1
                yield first + rows.line(index), data, cut, overlong
        first += rows.newlines


def read_rows(source: Source, part: Range) -> Rows:
    """Return the rows of a range."""
    if source.layout == "array":
        return _read_elements(source, part)
    if source.layout == "object":
        data = read_range(source, part)
        begin = len(data) - len(data.lstrip())
        return Rows([data.strip()], [0], frozenset(), 0, offsets=[begin])
    # Ranges end at a newline, so only one with a huge line is much longer than RANGE_BYTES.
    if part.end - part.start > MAX_LINE:
        return _read_bounded(source, part)
    rows = read_range(source, part).split(b"\n")
    newlines = len(rows) - 1
    ended = not rows[-1]
    if ended:
        rows.pop()
    return Rows(rows, None, frozenset(), newlines, ended)


def _read_bounded(source: Source, part: Range) -> Rows:
    """Read a range that holds a huge line without ever holding that line."""
    rows: list[bytes] = []
    overlong: set[int] = set()
    begins: list[int] = []
    with open(source.path, "rb") as file:
        file.seek(part.start)
        while (begin := file.tell()) < part.end and (row := file.readline(MAX_LINE + 1)):
            begins.append(begin - part.start)
            whole = row.endswith(b"\n")
            if not whole and len(row) > MAX_LINE:
                overlong.add(len(rows))
                rows.append(b"")
                while (piece := file.readline(_STEP)) and not piece.endswith(b"\n"):
                    pass
            else:
                rows.append(row[:-1] if whole else row)
    return Rows(rows, None, frozenset(overlong), len(rows), offsets=begins)


def _read_elements(source: Source, part: Range) -> Rows:
    data = read_range(source, part)
    elements = msgspec.json.decode(b"[" + data + b"]", type=list[msgspec.Raw])
    rows: list[bytes] = []
    lines: list[int] = []
    begins: list[int] = []
    position = line = counted = 0
    for element in elements:
        while data[position] in b" \t\r\n,":
            position += 1
        line += data.count(b"\n", counted, position)
        counted = position
        rows.append(bytes(element))
        lines.append(line)
        begins.append(position)
        position += len(rows[-1])
    return Rows(rows, lines, frozenset(), data.count(b"\n"), offsets=begins)


def read_range(source: Source, part: Range) -> bytes:
    """Read the bytes of a range."""
    with open(source.path, "rb") as file:
        file.seek(part.start)
        return file.read(part.end - part.start)
