"""The texts in the cells of a table, as the values that the fields of gold and traces take."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ragauge.files.fields import FieldError, shown
from ragauge.formats.field_map import Side
from ragauge.formats.field_path import opened_text
from ragauge.model.field_spellings import GOLD_SPELLINGS, TRACE_SPELLINGS

_ID_LISTS = {
    "gold": ("relevant", "relevant_docs", "negatives", "places"),
    "traces": ("hits", "citations"),
}
_TEXT_LISTS = {
    "gold": ("paraphrases", "claims", "must_contain", "forbidden", "constraints"),
    "traces": ("constraints_echo",),
}
_WORD_LISTS = {"gold": ("tags",), "traces": ()}
_LISTS = {"gold": ("groups",), "traces": ()}
_FLAGS = {"gold": ("answerable",), "traces": ("refused", "grounded")}
_NUMBERS = {"gold": ("turn",), "traces": ("paraphrase", "turn", "delta_s", "total_ms")}
_OBJECTS = {"gold": ("grades",), "traces": ("perf", "answer")}
_SEEDS = {"gold": (), "traces": ("seed",)}

_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")

_ID = re.compile(r"(?=.*[0-9#/_:-])[^\s,]+")
"""What looks like an id in a list with commas: no blank, and a sign that words do not have."""

_LITERAL = re.compile(
    r"""\s*(?:(?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?P<number>-?[0-9][0-9_.eE+-]*)"""
    r"""|(?P<word>None|True|False|nan)|(?P<sign>[\[\]{}(),:]))""",
    re.DOTALL,
)
_DEEPEST = 32


class CellReader:
    """Reads the cells of one side: a text becomes a list, a number or a flag where one is meant."""

    def __init__(self, side: Side) -> None:
        spellings = GOLD_SPELLINGS if side == "gold" else TRACE_SPELLINGS
        self.readers = {
            name: read
            for read, fields in (
                (_ids, _ID_LISTS[side]),
                (_texts, _TEXT_LISTS[side]),
                (_words, _WORD_LISTS[side]),
                (_list, _LISTS[side]),
                (_flag, _FLAGS[side]),
                (_number, _NUMBERS[side]),
                (_object, _OBJECTS[side]),
                (_seed, _SEEDS[side]),
            )
            for field in fields
            for name in spellings[field]
        }

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row whose cells are values."""
        values = {}
        for name, value in row.items():
            plain = msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value
            read = self.readers.get(name)
            values[name] = read(name, plain) if read and isinstance(plain, str) else plain
        return values


def _ids(name: str, cell: str) -> Any:
    listed = _listed(name, cell)
    if listed is not None:
        return listed
    separator = "|" if "|" in cell else ";"
    parts = [part.strip() for part in cell.split(separator) if part.strip()]
    if len(parts) == 1 and "," in cell:
        # Names of files have commas too (`Smith, John.pdf`), so all parts have to look like ids.
        listed = [part.strip() for part in cell.split(",")]
        return listed if all(map(_ID.fullmatch, listed)) else parts
    return parts


def _words(name: str, cell: str) -> Any:
    listed = _listed(name, cell)
    if listed is not None:
        return listed
    return [part.strip() for part in re.split("[|;,]", cell) if part.strip()]


def _texts(name: str, cell: str) -> Any:
    listed = _listed(name, cell)
    # A semicolon may stand in a sentence; a bar hardly ever does.
    return listed if listed is not None else [part.strip() for part in cell.split("|")]


def _list(name: str, cell: str) -> Any:
    listed = _listed(name, cell)
    if listed is None:
        raise _unreadable(name, "a list in JSON", cell)
    return listed


def _listed(name: str, cell: str) -> list[Any] | None:
    """The list that a cell is in JSON, or as Python prints one; None for any other text."""
    if not cell.lstrip().startswith("["):
        return None
    value = opened_cell(cell)
    if not isinstance(value, list):
        raise _unreadable(name, "a list in JSON", cell)
    return value


def _flag(name: str, cell: str) -> bool:
    word = cell.strip().lower()
    if word not in (*_TRUE, *_FALSE):
        raise _unreadable(name, "true or false", cell)
    return word in _TRUE


def _number(name: str, cell: str) -> Any:
    text = cell.strip()
    if text.startswith("["):
        return _listed(name, cell)
    if _INTEGER.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text):
        raise _unreadable(name, "a number", cell)
    return float(text)


def _seed(_: str, cell: str) -> int | str:
    return int(cell) if _INTEGER.fullmatch(cell.strip()) else cell


def _object(_: str, cell: str) -> Any:
    if not cell.lstrip().startswith("{"):
        return cell
    value = opened_cell(cell)
    return value if isinstance(value, dict) else cell


def _unreadable(name: str, expected: str, cell: str) -> FieldError:
    message = f"the cell of `{name}` must be {expected}, got {shown(cell)}"
    return FieldError("bad-field", message, 'lists are written as JSON, ["a", "b"], or a|b')


def listed_cell(text: str) -> Any:
    """The entries of a cell that stands for a list, whatever they are."""
    value = opened_cell(text)
    return [part.strip() for part in value.split("|")] if isinstance(value, str) else value


def opened_cell(text: str) -> Any:
    """What a text holds that is JSON, or a list or dictionary as Python prints it; else the text.

    Nothing is evaluated: tables that pandas wrote have their lists in this form.
    """
    value = opened_text(text)
    if not isinstance(value, str) or text.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        return _PythonLiteral(text).value()
    except ValueError:
        return text


class _PythonLiteral:
    """A list or dictionary of plain values, as `repr` writes them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def value(self) -> Any:
        """The value; ValueError if the text is anything else, or anything stands behind it."""
        value = self._value(self._token(), 0)
        if self.text[self.at :].strip():
            raise ValueError
        return value

    def _token(self) -> re.Match[str]:
        match = _LITERAL.match(self.text, self.at)
        if match is None:
            raise ValueError
        self.at = match.end()
        return match

    def _value(self, token: re.Match[str], depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError
        if token["text"] is not None:
            return _python_text(token["text"])
        if token["number"] is not None:
            number = token["number"]
            return int(number) if _INTEGER.fullmatch(number) else float(number)
        if token["word"] is not None:
            return {"None": None, "True": True, "False": False, "nan": None}[token["word"]]
        if token["sign"] in ("[", "("):
            return list(self._entries("]" if token["sign"] == "[" else ")", depth))
        if token["sign"] == "{":
            return self._members(depth)
        raise ValueError

    def _entries(self, closing: str, depth: int) -> list[Any]:
        entries: list[Any] = []
        token = self._token()
        while token["sign"] != closing:
            entries.append(self._value(token, depth + 1))
            token = self._token()
            # Without a comma it is an array as numpy prints it, of which parts may be left out.
            if token["sign"] == ",":
                token = self._token()
            elif token["sign"] != closing:
                raise ValueError
        return entries

    def _members(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        token = self._token()
        while token["sign"] != "}":
            if token["text"] is None or self._token()["sign"] != ":":
                raise ValueError
            members[_python_text(token["text"])] = self._value(self._token(), depth + 1)
            token = self._token()
            if token["sign"] == ",":
                token = self._token()
            elif token["sign"] != "}":
                raise ValueError
        return members


def _python_text(token: str) -> str:
    if "\\" not in token:
        return token[1:-1]
    import ast

    try:
        return str(ast.literal_eval(token))  # one string and nothing else, as the pattern has it
    except (SyntaxError, MemoryError) as error:
        raise ValueError from error
