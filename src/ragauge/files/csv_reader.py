"""Reading CSV and TSV as JSON Lines: a header, and a row whose cells are all texts.

What a text means (a number, a list) is for those to say who know the field.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

import msgspec

from ragauge.errors import MAX_REPORTED, Place, Problem, RagaugeError
from ragauge.files.ranges import MAX_LINE

SUFFIXES = (".csv", ".tsv")
_TAB = "\t"
_encode = msgspec.json.Encoder().encode


def csv_lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the rows of a CSV file as JSON Lines, each on the line that it begins on.

    Cells that are empty are left out. Lines between rows stay as blank lines, and so does the
    header.
    """
    lines = _text_lines(file, name)
    header = next(lines, "")
    if not header.strip():
        return
    # For as long as this file is read; a cell may be as long as a row of any other file.
    limit = csv.field_size_limit(MAX_LINE)
    reader = csv.reader(chain([header], lines), delimiter=_delimiter(header, name))
    try:
        yield from _objects(reader, name)
    except csv.Error as error:
        raise RagaugeError.of(
            "bad-csv",
            f"the row is no CSV: {error}",
            hint="a quote inside of a quoted cell is written twice",
            place=Place(name, reader.line_num),
        ) from error
    finally:
        csv.field_size_limit(limit)


def _text_lines(file: BinaryIO, name: str) -> Iterator[str]:
    for number, data in enumerate(file, 1):
        try:
            line = data.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            message = f"byte {error.start} of the line is not UTF-8: {error.reason}"
            hint, place = "save the table as CSV in UTF-8", Place(name, number)
            raise RagaugeError.of("bad-encoding", message, hint=hint, place=place) from error
        if "\0" in line:
            hint = "the file was damaged while it was written; write it again"
            place = Place(name, number)
            raise RagaugeError.of("nul-byte", "NUL byte in the line", hint=hint, place=place)
        yield line


def _delimiter(header: str, name: str) -> str:
    """What stands between cells: a tab in a `.tsv`, else what the header has most of."""
    inner = name.lower().removesuffix(".gz").removesuffix(".zst")
    if inner.endswith(".tsv"):
        return _TAB
    return max(",;" + _TAB, key=header.count)  # of equals the first: a comma


def _objects(reader: Iterator[list[str]], name: str) -> Iterator[bytes]:
    header = [cell.strip() for cell in next(reader)]
    _check_header(header, name)
    problems: list[Problem] = []
    count = 0
    written = 0  # lines that were yielded
    before: int = reader.line_num  # type: ignore[attr-defined]
    for cells in reader:
        line, before = before + 1, reader.line_num  # type: ignore[attr-defined]
        if not any(cells):
            continue
        if len(cells) != len(header):
            count += 1
            if len(problems) < MAX_REPORTED:
                problems.append(_ragged(cells, header, Place(name, line)))
            continue
        row = {column: cell for column, cell in zip(header, cells, strict=True) if cell}
        yield b"\n" * (line - 1 - written) + _encode(row) + b"\n"
        written = line
    if count:
        raise RagaugeError(problems, total=count)


def _check_header(header: list[str], name: str) -> None:
    twice = [column for place, column in enumerate(header) if column in header[:place]]
    if twice:
        message = f"two columns are called `{twice[0]}`" if twice[0] else "two columns have no name"
        hint = "the first line of a CSV file names its columns, each with a name of its own"
        raise RagaugeError.of("bad-csv", message, hint=hint, place=Place(name, 1))


def _ragged(cells: list[str], header: list[str], place: Place) -> Problem:
    message = f"the row has {len(cells)} cells, and the header {len(header)}"
    hint = "put a cell that holds the separator or a line end in double quotes"
    return Problem("bad-csv", message, hint, place)
