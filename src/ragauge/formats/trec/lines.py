"""TREC files: the lines of qrels and runs as columns, block by block, and what is wrong with them.

A block whose lines all have the expected fields is taken apart at once. Any other block is read
line by line, which also finds and explains the bad lines. Both ways give the same columns.
"""

from __future__ import annotations

import codecs
import io
import math
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.errors import MAX_REPORTED, Place, Problem
from ragauge.files.ranges import MAX_LINE, Range, Source, plan
from ragauge.formats.trec.tokens import (
    Bytes,
    Flags,
    Index,
    Tokens,
    blank_text,
    decimals,
    integers,
    padded,
)

BLOCK_BYTES = 4 * 1024 * 1024
_DECIMAL = re.compile(rb"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?")
_INTEGER = re.compile(rb"[+-]?[0-9]+")
_INT32 = 2**31
_SHOWN = 60
_NEWLINE = 10
_SMALL = 64 * 1024  # bytes of a block that is not worth halving
_FREED = 31 * 1024 * 1024  # never written to, and below the 32 MiB that are learned from

Number = float | int
Numbers = NDArray[np.float32] | NDArray[np.int32]
Result = TypeVar("Result")


class BadLine(Struct, frozen=True):
    """A line that cannot be used: its number from 1, what is wrong, and how to fix it."""

    line: int
    code: str
    message: str
    hint: str

    def at(self, file: str) -> Problem:
        """Return the problem with its place in a file."""
        return Problem(self.code, self.message, self.hint, Place(file, self.line))


class LineForm(Struct, frozen=True):
    """How many fields a line has, and which of them are read."""

    name: str
    fields: tuple[str, ...]
    qid: int
    docid: int
    number: int
    read: Callable[[bytes, str], Number]


class _UnusableError(Exception):
    """A line cannot be used: code, message and hint."""


def _shown(token: bytes) -> str:
    text = token.decode("utf-8", "replace")
    return f'"{text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."}"'


def _read_grade(token: bytes, name: str) -> int:
    if _INTEGER.fullmatch(token) is None:
        message = f"`{name}` must be an integer, got {_shown(token)}"
        raise _UnusableError("bad-field", message, "write the grade as a whole number")
    digits = token.lstrip(b"+-0")
    value = int(digits or b"0") if len(digits) < 12 else _INT32
    value = -value if token.startswith(b"-") else value
    if not -_INT32 <= value < _INT32:
        message = f"`{name}` does not fit into 32 bits: {_shown(token)}"
        raise _UnusableError("bad-field", message, "use a smaller grade")
    return value


def _read_score(token: bytes, name: str) -> float:
    value = float(token) if _DECIMAL.fullmatch(token) else math.nan
    if not math.isfinite(value):
        message = f"`{name}` must be a finite number, got {_shown(token)}"
        raise _UnusableError("bad-field", message, "write the score as a decimal number")
    return value


RUN = LineForm("run", ("query", "Q0", "document", "rank", "score", "tag"), 0, 2, 4, _read_score)
QRELS = LineForm("qrels", ("query", "iteration", "document", "grade"), 0, 2, 3, _read_grade)
BEIR = LineForm("qrels", ("query-id", "corpus-id", "score"), 0, 1, 2, _read_grade)


def _fields_of(row: bytes, form: LineForm) -> list[bytes]:
    """Split a row that is not blank, or raise what is wrong with it."""
    if b"\0" in row:
        message = f"NUL byte at byte {row.index(0)} of the line"
        hint = "the file was damaged while it was written; write it again"
        raise _UnusableError("nul-byte", message, hint)
    try:
        row.decode()
    except UnicodeDecodeError as error:
        message = f"byte {error.start} of the line is not UTF-8: {error.reason}"
        raise _UnusableError("bad-encoding", message, "convert the file to UTF-8") from error
    fields = row.split()
    if len(fields) != len(form.fields):
        wanted = f"{len(form.fields)} fields ({' '.join(form.fields)})"
        message = f"a {form.name} line has {wanted}, got {len(fields)}: {_shown(row.strip())}"
        hint = "separate the fields by blanks or tabs; an id has no blanks inside"
        if form is QRELS and len(fields) == len(BEIR.fields):
            hint = "begin the file with the line `query-id\tcorpus-id\tscore` if it is a BEIR file"
        raise _UnusableError("not-a-row", message, hint)
    return fields


class ExactRow(NamedTuple):
    """A usable line: its number from 1 and its first byte in the block, and what it says."""

    line: int
    origin: int
    fields: list[bytes]
    number: Number


def exact_rows(file: BinaryIO, size: int, form: LineForm) -> Iterator[ExactRow | BadLine | None]:
    """Read lines one by one; a blank line gives None. A line too long to be held is never held."""
    line = at = 0
    while at < size:
        line, origin = line + 1, at
        row = file.readline(MAX_LINE + 1)
        at += len(row)
        try:
            if len(row) > MAX_LINE:
                while not row.endswith(b"\n") and (row := file.readline(MAX_LINE)):
                    at += len(row)
                message = f"the line is longer than {MAX_LINE // 2**20} MiB"
                hint = "a newline is missing: write a row per line"
                raise _UnusableError("line-too-long", message, hint)
            if row.strip():
                fields = _fields_of(row, form)
                number = form.read(fields[form.number], form.fields[form.number])
                yield ExactRow(line, origin, fields, number)
            else:
                yield None
        except _UnusableError as error:
            yield BadLine(line, *error.args)


class BadLines(Struct):
    """The bad lines of a file: the first few, and how many there are."""

    first: list[BadLine] = []
    total: int = 0

    def add(self, bad: BadLine) -> None:
        """Count a bad line, and keep it if it is one of the first."""
        self.total += 1
        if len(self.first) < MAX_REPORTED:
            self.first.append(bad)

    def merge(self, later: BadLines, lines: int) -> None:
        """Add what was found in a later block, before which there are `lines` lines."""
        self.total += later.total
        for bad in later.first[: MAX_REPORTED - len(self.first)]:
            self.first.append(msgspec.structs.replace(bad, line=bad.line + lines))


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """The usable lines of a block as columns; lines and bytes are counted from the block's own."""

    qid: Tokens
    docid: Tokens
    number: Numbers
    origin: Index  # the first byte of each line
    size: int  # of the block, in bytes
    count: int  # of the block's lines, usable or not
    trouble: BadLines
    numbered: Index | None = None  # the line of each, unless every line is usable

    def line(self, chosen: Index) -> Index:
        """Return line numbers, from 1."""
        return chosen + 1 if self.numbered is None else self.numbered[chosen]


def parse(text: Bytes, size: int, form: LineForm) -> Lines:
    """Take the first `size` bytes of a padded text apart, at once or else line by line."""
    return _columns(text, size, form) or _one_by_one(io.BytesIO(text[:size].tobytes()), size, form)


def _columns(text: Bytes, size: int, form: LineForm) -> Lines | None:
    """Take regular lines apart at once; None if any of them is not what it should be."""
    if not size:
        return None
    end = size if text[size - 1] == _NEWLINE else size + 1
    text[size] = _NEWLINE  # behind the last line, if it has none of its own
    body = text[:end]
    lowest = body.view(np.int8).min()  # a byte beyond ASCII is negative here
    if lowest <= 0 and not (body.all() and _is_utf8(body)):
        return None
    spare = body - np.uint8(9)
    blank = spare < 5
    blank |= np.equal(body, ord(" "), out=spare.view(np.bool_))
    line_end = np.equal(body, _NEWLINE, out=spare.view(np.bool_))
    count = int(np.count_nonzero(line_end))
    if blank[0] or (blank[1:] & blank[:-1]).any():
        fields = _spaced_fields(text, blank, line_end, form)
    else:
        fields = _single_fields(text, blank, count, form)
    if fields is None:
        return None
    qid, docid, token = fields
    number = _numbers(token, form)
    if number is None:
        return None
    return Lines(qid, docid, number, qid.start, size, count, BadLines())


def _is_utf8(body: Bytes) -> bool:
    try:
        codecs.decode(body.data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _single_fields(text: Bytes, blank: Flags, lines: int, form: LineForm) -> list[Tokens] | None:
    """Find the fields of lines in which one blank or tab stands between two fields."""
    bounds = np.flatnonzero(blank)
    if len(bounds) != lines * len(form.fields):
        return None
    ends = bounds.reshape(lines, -1)
    if (text.take(ends[:, -1]) != _NEWLINE).any():
        return None
    out = []
    for field in (form.qid, form.docid, form.number):
        if field:
            start = ends[:, field - 1] + 1
        else:
            start = np.zeros(lines, np.int64)
            np.add(ends[:-1, -1], 1, out=start[1:])
        out.append(Tokens(text, start, ends[:, field] - start))
    return out


def _spaced_fields(
    text: Bytes, blank: Flags, line_end: Flags, form: LineForm
) -> list[Tokens] | None:
    """Find the fields of lines with any number of blanks before, between and behind them."""
    edges = blank.copy()
    edges[1:] ^= blank[:-1]
    edges[0] = not blank[0]
    bounds = np.flatnonzero(edges)  # the text ends with a newline, so that every field has an end
    breaks = np.flatnonzero(line_end)
    if len(bounds) != 2 * len(breaks) * len(form.fields):
        return None
    edges_of = bounds.reshape(len(breaks), -1, 2)
    if (breaks < edges_of[:, -1, 1]).any() or (breaks[:-1] > edges_of[1:, 0, 0]).any():
        return None
    out = []
    for field in (form.qid, form.docid, form.number):
        start = np.ascontiguousarray(edges_of[:, field, 0])
        out.append(Tokens(text, start, edges_of[:, field, 1] - start))
    return out


def _numbers(tokens: Tokens, form: LineForm) -> Numbers | None:
    """Read scores or grades; None if one of them is no number."""
    if form is not RUN:
        grades, odd = integers(tokens)
        return None if len(odd) else grades.astype(np.int32)
    scores, odd = decimals(tokens)
    if len(odd):
        texts = tokens.pick(odd).all()
        if not all(map(_DECIMAL.fullmatch, texts)):
            return None
        exact = np.fromiter(map(float, texts), np.float64, len(texts))
        if not np.isfinite(exact).all():
            return None
        scores[odd] = _single(exact)
    return scores


def _single(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    """Round to single precision as C does: what is too large becomes infinite, and no warning."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)


def _one_by_one(file: BinaryIO, size: int, form: LineForm) -> Lines:
    """Read a block line by line, and leave out the bad lines."""
    trouble = BadLines()
    tokens: list[bytes] = []
    numbers: list[Number] = []
    numbered: list[int] = []
    origin: list[int] = []
    count = 0
    for row in exact_rows(file, size, form):
        count += 1
        if isinstance(row, BadLine):
            trouble.add(row)
        elif row is not None:
            tokens += (row.fields[form.qid], row.fields[form.docid])
            numbers.append(row.number)
            numbered.append(row.line)
            origin.append(row.origin)
    sizes = np.fromiter(map(len, tokens), np.int64, len(tokens))
    starts = np.cumsum(sizes) - sizes
    text = padded(b"".join(tokens))
    exact = np.array(numbers, np.float64)
    number = _single(exact) if form is RUN else exact.astype(np.int32)
    qid, docid = (Tokens(text, starts[side::2], sizes[side::2]) for side in (0, 1))
    origins, line_numbers = np.array(origin, np.int64), np.array(numbered, np.int64)
    return Lines(qid, docid, number, origins, size, count, trouble, line_numbers)


def _read_block(source: Source, part: Range, form: LineForm) -> Iterator[tuple[Lines, int]]:
    """Yield the lines of a block and its first byte, or of the smaller blocks it is cut into."""
    size = part.end - part.start
    with open(source.path, "rb") as file:
        file.seek(part.start)
        if size > MAX_LINE:
            yield _one_by_one(file, size, form), part.start
            return
        text = blank_text(size)
        size = file.readinto(text.data[:size])
    yield from _parse_cut(text, size, form, part.start)


def _parse_cut(text: Bytes, size: int, form: LineForm, start: int) -> Iterator[tuple[Lines, int]]:
    """Take a block apart; one with a bad line is halved, so that few lines are read one by one."""
    lines = _columns(text, size, form)
    cut = 0
    if lines is None and size > _SMALL:
        breaks = np.flatnonzero(text[size // 2 : size - 1] == _NEWLINE)
        cut = size // 2 + int(breaks[0]) + 1 if len(breaks) else 0
    if cut:
        for begin, end in ((0, cut), (cut, size)):
            half = padded(text[begin:end].tobytes())
            yield from _parse_cut(half, end - begin, form, start + begin)
    else:
        yield lines or parse(text, size, form), start


def in_blocks(
    source: Source,
    form: LineForm,
    work: Callable[[Lines, int], Result],
    *,
    threads: int,
    block_bytes: int,
) -> list[Result]:
    """Do some work on the lines of each block and its first byte; results are in file order."""
    parts = plan(msgspec.structs.replace(source, layout="lines"), range_bytes=block_bytes)
    # The C library of Linux learns from the largest block freed how much memory to keep: without
    # this, it would give every column back to the system, which clears it for the next one.
    np.empty(_FREED, np.uint8)

    def on_block(part: Range) -> list[Result]:
        return [work(lines, start) for lines, start in _read_block(source, part, form)]

    if threads < 2 or len(parts) < 2:
        return list(chain.from_iterable(map(on_block, parts)))
    with ThreadPoolExecutor(threads) as pool:
        return list(chain.from_iterable(pool.map(on_block, parts)))
