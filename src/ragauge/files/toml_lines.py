"""Lines of a TOML file: where a key stands, and where a file stops being TOML.

`tomllib` tells no lines of what it has read. A file is cut into statements here, which is a matter
of brackets and quotes, and each statement is read by `tomllib` again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, NamedTuple

TomlKey = tuple[str | int, ...]
"""The way to a value: names of tables and keys, and places in arrays from 0."""

# What a bracket or an end of line must not be looked for in, and then these.
_TOKEN = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)
_AT_LINE = re.compile(r"\(at line (\d+),")


class _Statement(NamedTuple):
    line: int
    text: str


def line_of_key(text: str, key: TomlKey) -> int:
    """The line of a key, or of the nearest table around it; 1 where the file has neither."""
    lines = _lines_by_key(text)
    for length in range(len(key), 0, -1):
        if key[:length] in lines:
            return lines[key[:length]]
    return 1


def line_of_fault(text: str, error: Exception) -> int:
    """The line of what `tomllib` could not read."""
    match = _AT_LINE.search(str(error))
    if match is not None:
        return int(match[1])
    # "At the end of the document" an array or a quote is still open: it was opened further up.
    last = 1
    for statement in _statements(text):
        last = statement.line
        if _parsed(statement) is None:
            break
    return last


def _lines_by_key(text: str) -> dict[TomlKey, int]:
    lines: dict[TomlKey, int] = {}
    tables: dict[TomlKey, int] = {}  # arrays of tables, with how many of them there are so far
    current: TomlKey = ()
    for statement in _statements(text):
        parsed = _parsed(statement)
        if parsed is None:
            continue
        if statement.text.startswith("["):
            current = _header(parsed, tables)
            keys = [current[:length] for length in range(1, len(current) + 1)]
        else:
            keys = [current + key for key in _keys(parsed)]
        for key in keys:
            lines.setdefault(key, statement.line)
    return lines


def _statements(text: str) -> Iterator[_Statement]:
    """The statements of a file, which end where a line ends outside of brackets and quotes."""
    start, line, depth = 0, 1, 0
    first = line
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == "\n" and depth <= 0:
            if statement := _statement(first, text[start : match.start()]):
                yield statement
            start, depth, first = match.end(), 0, line + 1
        elif token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
        line += token.count("\n")
    if statement := _statement(first, text[start:]):
        yield statement


def _statement(line: int, text: str) -> _Statement | None:
    text = text.strip()
    return None if not text or text.startswith("#") else _Statement(line, text)


def _parsed(statement: _Statement) -> dict[str, Any] | None:
    try:
        return tomllib.loads(statement.text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _header(parsed: dict[str, Any], tables: dict[TomlKey, int]) -> TomlKey:
    """The table that `[a.b]` or `[[a.b]]` begins; in arrays of tables it is the last one."""
    key: TomlKey = ()
    value: Any = parsed
    while isinstance(value, dict) and value:
        ((name, value),) = value.items()
        key += (name,)
        if isinstance(value, list):  # [[a.b]]
            tables[key] = tables.get(key, 0) + 1
        if key in tables:
            key += (tables[key] - 1,)
    return key


def _keys(value: Any, before: TomlKey = ()) -> Iterator[TomlKey]:
    if before:
        yield before
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _keys(inner, (*before, name))
