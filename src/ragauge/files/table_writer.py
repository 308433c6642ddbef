"""Writing columns as CSV or Parquet."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.files.parquet_reader import missing_extra

# The colons are for CI services, which take a line that begins with two for a command; the
# semicolon is what spreadsheets split cells at in half of Europe.
_TO_QUOTE = re.compile(r'[,;"\t\r\n]|^[\s:]|\s$|^$')
_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|[\t\r\n]")  # noqa: RUF001
"""How a cell begins that a spreadsheet computes, or runs; the wide forms do so too in some."""
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_ROWS_A_GROUP = 1 << 20


class TableColumn(Struct, frozen=True, kw_only=True):
    """A column: its head, what it holds, and a value for each row; None and nan are no value.

    Words are of a few kinds that need no quotes, such as labels; texts may be anything.
    """

    name: str
    kind: Literal["text", "word", "whole", "number"]
    values: Sequence[Any] | NDArray[np.float64]


def as_csv(columns: Sequence[TableColumn], *, decimals: int, raw: bool = False) -> str:
    """Lines of comma-separated values, a head first; numbers with so many decimals.

    A text that a spreadsheet would take for a formula gets a `'` in front, unless `raw` is asked.
    """
    # Most values are of 0 to 1 with few decimals: their texts are made once and looked up.
    words = np.array(
        [f"{step / 10**decimals:.{decimals}f}" for step in range(10**decimals + 1)], object
    )
    cells = [_cells(column, words, decimals, raw) for column in columns]
    heads = [_quoted(column.name) for column in columns]
    return "\n".join([",".join(heads), *map(",".join, zip(*cells, strict=True))]) + "\n"


def _cells(
    column: TableColumn, words: NDArray[np.object_], decimals: int, raw: bool
) -> Sequence[str]:
    if column.kind == "number":
        return _number_cells(np.asarray(column.values, np.float64), words, decimals)
    if column.kind == "text":
        shown = _quoted if raw else lambda text: _quoted(_neutralised(text))
        return ["" if value is None else shown(value) for value in column.values]
    return ["" if value is None else str(value) for value in column.values]


def _neutralised(text: str) -> str:
    """A text that no spreadsheet computes; a number such as -0.5 is none that does harm."""
    if _FORMULA.match(text) and not _NUMBER.fullmatch(text):
        return f"'{text}"
    return text


def _quoted(text: str) -> str:
    """A text as CSV has it: in quotes where a reader could take a part of it for something else."""
    if not _TO_QUOTE.search(text):
        return text
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="", quoting=csv.QUOTE_ALL).writerow([text])
    return buffer.getvalue()


def _number_cells(
    values: NDArray[np.float64], words: NDArray[np.object_], decimals: int
) -> list[str]:
    """Values with their decimals, empty for none. Most lie between 0 and 1: those are looked up."""
    steps = values * 10**decimals
    with np.errstate(invalid="ignore"):
        place = np.rint(steps)
        # Close to the middle of two steps only the exact value can tell which is nearer.
        plain = (values >= 0) & (values <= 1) & (np.abs(np.abs(steps - place) - 0.5) > 1e-6)
    column = words[np.where(plain, place, 0).astype(np.int64)]
    for i in np.flatnonzero(~plain).tolist():
        value = float(values[i])
        column[i] = "" if math.isnan(value) else f"{value + 0.0:.{decimals}f}"
    cells: list[str] = column.tolist()
    return cells


def as_parquet(columns: Sequence[TableColumn]) -> bytes:
    """A Parquet file with the values as they were measured, null where there is none.

    The same columns give the same bytes under one release of the package that writes them; the
    file names that release and no time.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise missing_extra("parquet", "pyarrow", "parquet") from error
    kinds = {"whole": pyarrow.int64(), "number": pyarrow.float64()}
    text = pyarrow.string()
    arrays = [pyarrow.array(_nulls(one), kinds.get(one.kind, text)) for one in columns]
    table = pyarrow.Table.from_arrays(arrays, names=[column.name for column in columns])
    buffer = io.BytesIO()
    packed = {"compression": "zstd", "compression_level": 3, "row_group_size": _ROWS_A_GROUP}
    parquet.write_table(table, buffer, version="2.6", store_schema=False, **packed)
    return buffer.getvalue()


def _nulls(column: TableColumn) -> list[Any]:
    if column.kind != "number":
        return list(column.values)
    numbers: list[float] = np.asarray(column.values, np.float64).tolist()
    return [None if math.isnan(value) else value for value in numbers]
