"""Files whose rows stand one level deeper than they are looked for: said, and never read as a row.

Read as a row, such a file has no field that is known, or one whose value is a whole column.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import msgspec

from ragauge.errors import Place, RagaugeError
from ragauge.formats.imports.foreign_format import ForeignFile, Side
from ragauge.model.field_spellings import GOLD_NAMES, TRACE_NAMES


def refuse_wrapped_rows(file: ForeignFile, side: Side) -> None:
    """Raise if a file is one object that holds the rows; say how they are taken out of it."""
    if file.converted or not _is_one_object(file):
        return
    names = GOLD_NAMES if side == "gold" else TRACE_NAMES
    document = file.first_row
    if _has_columns(document):
        raise _refused(
            file.name,
            "has a column under each name, as `DataFrame.to_json` writes it",
            'write rows: frame.to_json(path, orient="records", lines=True)',
        )
    if not names.isdisjoint(document):
        return
    lists = [name for name, value in document.items() if _has_rows(value)]
    known = [name for name in lists if not names.isdisjoint(document[name][0])]
    for name in (*known, *lists):
        raise _refused(
            file.name,
            f"is one object, and its rows stand in `{name}`",
            f"take them out: jq -c '.[\"{name}\"][]' FILE > rows.jsonl",
        )
    if document and all(_is_row(value, names) for value in document.values()):
        raise _refused(
            file.name,
            f"is one object with a row under each name, such as `{next(iter(document))}`",
            "take them out: jq -c '.[]' FILE > rows.jsonl",
        )


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


def _is_row(value: Any, names: Set[str]) -> bool:
    return isinstance(value, dict) and not names.isdisjoint(value)


def _refused(name: str, what: str, hint: str) -> RagaugeError:
    return RagaugeError.of("not-a-row", f"`{name}` {what}", hint=hint, place=Place(name))
