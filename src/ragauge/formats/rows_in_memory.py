"""Rows in memory: dicts, frames of pandas and polars, tables and data sets, read as a file is.

They are written to a file without a name, as JSON Lines, and go the way of all files: the same
spellings, the same recognition of other tools' rows, the same numbers. No library is imported for
it: whoever has a frame has its library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol, TypeVar

import msgspec

from ragauge.errors import RagaugeError
from ragauge.files.open import UnpackedFile
from ragauge.files.temporary_file import temporary_file

T = TypeVar("T")
NAMES = {"gold": "<gold>", "traces": "<traces>"}


class Frame(Protocol):
    """A frame of pandas or polars, for whoever checks types."""

    @property
    def columns(self) -> Any:
        """Its columns, or their names."""


Rows = Iterable[Mapping[str, Any]] | Frame
"""What is read as the rows of a file: dicts, a frame, a table of Arrow, a data set."""


def rereadable(given: T) -> T | list[Any]:
    """What was given, or a list of what an iterator yields: it may have to be looked at twice."""
    return list(given) if isinstance(given, Iterator) else given


def file_of_rows(stack: ExitStack, given: object, side: str) -> UnpackedFile | None:
    """A file of the rows that were given; None where what was given is no rows."""
    rows = _rows(given)
    if rows is None:
        return None
    copy = stack.enter_context(temporary_file())
    for number, row in enumerate(rows, 1):
        try:
            line = msgspec.json.encode(row, enc_hook=_plain)
        except (TypeError, OverflowError, RecursionError, UnicodeEncodeError) as error:
            raise RagaugeError.of(
                "bad-field",
                f"row {number} of {NAMES[side]} cannot be written as JSON: {error}",
                hint="give texts, numbers, lists and dicts",
            ) from error
        copy.file.write(line + b"\n")
    copy.file.flush()
    return UnpackedFile(NAMES[side], copy.path, converted=True)


def _rows(given: object) -> Iterator[Mapping[str, Any]] | None:
    """The rows of a list of dicts, a frame, a table or a data set."""
    if isinstance(given, Sequence) and not isinstance(given, str | bytes):
        is_rows = bool(given) and all(isinstance(row, Mapping) for row in given)
        return map(_string_keys, given) if is_rows else None
    library = type(given).__module__.partition(".")[0]
    frame: Any = given
    rows: Iterable[Mapping[str, Any]] | None = None
    if library == "polars" and (hasattr(frame, "collect") or hasattr(frame, "to_dicts")):
        rows = (frame.collect() if hasattr(frame, "collect") else frame).to_dicts()
    elif library == "pandas" and hasattr(frame, "columns"):
        if not frame.columns.is_unique:  # pandas would leave all but one of them out
            twice = sorted(set(map(str, frame.columns[frame.columns.duplicated()])))
            message = f"the frame has two columns of one name: {', '.join(twice)}"
            raise RagaugeError.of("bad-field", message, hint="rename or drop one of them")
        rows = map(_string_keys, frame.to_dict("records"))
    elif library == "pyarrow" and hasattr(frame, "to_pylist"):
        rows = frame.to_pylist()
    elif library == "datasets" and hasattr(frame, "column_names"):
        # With a format, rows would be arrays, frames or tables of one row.
        rows = frame.with_format(None) if hasattr(frame, "with_format") else frame
    return None if rows is None else iter(rows)


def _string_keys(row: Mapping[Any, Any]) -> Mapping[str, Any]:
    if all(isinstance(name, str) for name in row):
        return row
    return {str(name): value for name, value in row.items()}


def _plain(value: Any) -> Any:
    """What JSON has for a value of a library: arrays are lists, moments texts, `NA` is null."""
    if hasattr(value, "tolist"):  # numpy: a scalar or an array
        return value.tolist()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no JSON")
