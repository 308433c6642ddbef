"""Files whose rows stand one level deeper than they are looked for: taken out where it is plain.

Read as a row, such a file has no field that is known, or one whose value is a whole column.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from ragauge.errors import Place, RagaugeError
from ragauge.files.open import UnpackedFile
from ragauge.files.temporary_file import temporary_file
from ragauge.formats.imports.foreign_format import ForeignFile, Side
from ragauge.model.field_spellings import GOLD_NAMES, GOLD_SPELLINGS, TRACE_NAMES, TRACE_SPELLINGS

_LARGEST = 256 * 1024 * 1024
"""A document that is larger is not held in memory as a whole."""
_decode_parts = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_encode = msgspec.json.encode


class UnwrappedRows(NamedTuple):
    """The rows of a document as JSON Lines, and where they stood in it."""

    file: UnpackedFile
    note: str


def unwrapped_columns(stack: ExitStack, file: UnpackedFile) -> UnwrappedRows | None:
    """The rows of a file that has a column under each name; None for any other file.

    The names are those of rows, so such a file is taken apart before its format is looked for.
    """
    foreign = ForeignFile(file)
    if file.converted or not _is_one_object(foreign) or not _has_columns(foreign.first_row):
        return None
    what = "has a column under each name, as `DataFrame.to_json` writes it"
    cure = 'write rows: frame.to_json(path, orient="records", lines=True)'
    return _taken_apart(stack, file, what, cure, "columns were read as rows", _rows_of_columns)


def unwrapped_rows(
    stack: ExitStack, file: UnpackedFile, side: Side, *, roots: Set[str] = frozenset()
) -> UnwrappedRows | None:
    """The rows of a file that is one object around them; None for any other file.

    `roots` are fields of the user's own. What could be read in two ways is refused, and so is a
    document that is too large to be taken apart here.
    """
    foreign = ForeignFile(file)
    if file.converted or not _is_one_object(foreign):
        return None
    names = (GOLD_NAMES if side == "gold" else TRACE_NAMES) | roots
    document = foreign.first_row
    if not names.isdisjoint(document):
        return None
    lists = [name for name, value in document.items() if _has_rows(value)]
    known = [name for name in lists if not names.isdisjoint(document[name][0])]
    rows: Callable[[Mapping[str, Raw]], Iterator[bytes]]
    if lists:
        name = known[0] if known else lists[0]
        what = f"is one object, and its rows stand in `{name}`"
        cure = f"take them out: jq -c '.[\"{name}\"][]' FILE > rows.jsonl"
        note = f"rows were taken from `{name}`"
        rows = lambda parts: map(bytes, _decode_list(parts[name]))  # noqa: E731
        if len(known) != 1:
            raise _refused(file, what, cure)
    elif _are_rows(list(document.values()), names):
        what = f"is one object with a row under each name, such as `{next(iter(document))}`"
        cure = "take them out: jq -c '.[]' FILE > rows.jsonl"
        note = "rows were read under the names that they stand under, as ids of their questions"
        rows = partial(_rows_by_id, side=side)
    else:
        return None
    return _taken_apart(stack, file, what, cure, note, rows)


def _taken_apart(
    stack: ExitStack,
    file: UnpackedFile,
    what: str,
    cure: str,
    note: str,
    rows: Callable[[Mapping[str, Raw]], Iterator[bytes]],
) -> UnwrappedRows:
    if os.path.getsize(file.path) > _LARGEST:
        raise _refused(file, what, cure)
    copy = stack.enter_context(temporary_file())
    with open(file.path, "rb") as stream:
        data = stream.read().removeprefix(b"\xef\xbb\xbf")
    try:
        # A line end in JSON is a blank wherever it may stand.
        for row in rows(_decode_parts(data)):
            copy.file.write(row.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"`{file.name}` {what}, and cannot be read: {error}"
        hint = "the file is damaged or was not written to its end; write it again"
        raise RagaugeError.of("bad-json", message, hint=hint, place=Place(file.name)) from error
    copy.file.flush()
    return UnwrappedRows(UnpackedFile(file.name, copy.path, True), note)


def _refused(file: UnpackedFile, what: str, cure: str) -> RagaugeError:
    return RagaugeError.of("not-a-row", f"`{file.name}` {what}", hint=cure, place=Place(file.name))


def _rows_of_columns(parts: Mapping[str, Raw]) -> Iterator[bytes]:
    columns = {name: _decode_parts(part) for name, part in parts.items()}
    for index in next(iter(columns.values())):
        yield _encode({name: column[index] for name, column in columns.items() if index in column})


def _rows_by_id(parts: Mapping[str, Raw], side: Side) -> Iterator[bytes]:
    spellings: Sequence[str] = (GOLD_SPELLINGS if side == "gold" else TRACE_SPELLINGS)["qid"]
    for name, part in parts.items():
        row = _decode_parts(part)
        yield bytes(part) if any(one in row for one in spellings) else _encode({"qid": name, **row})


def _is_one_object(file: ForeignFile) -> bool:
    """Whether the file is one object, as far as its head tells; its first line may be a row."""
    if not isinstance(file.json_head, dict):
        return False
    first, newline, rest = file.head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")
    if not newline or not rest.strip():
        return True
    try:
        msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return False


def _has_columns(document: dict[str, Any]) -> bool:
    columns = [frozenset(value) for value in document.values() if isinstance(value, dict)]
    if len(columns) < 2 or len(columns) < len(document):
        return False
    numbers = columns[0]
    return bool(numbers) and all(key.isdecimal() for key in numbers) and len(set(columns)) == 1


def _has_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _are_rows(values: Sequence[Any], names: Set[str]) -> bool:
    """Whether values are objects that have a field in common which is known."""
    if not values or not all(isinstance(value, dict) for value in values):
        return False
    return bool(frozenset(names).intersection(*values))
