"""Paths into a row of somebody else's: `answer`, `metadata.qid`, `sources[].id`, `context_*`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ragauge.errors import RagaugeError

_NAME = r'"(?:[^"\\]|\\.)+"|[^.\[\]"\'`|*?{}@&(),!<>=]+'
_STEP = re.compile(rf"(?P<name>{_NAME})|(?P<each>\[\])|\[(?P<index>-?[0-9]{{1,9}})\]")
_NUMBERED = re.compile(
    r"(?P<before>[^.\[\]*\"'`|?{}@&()!<>=]+)\*(?P<behind>[^.\[\]*\"'`|?{}@&()!<>=]*)"
)
_decode = msgspec.json.Decoder().decode


ITSELF = "."
"""The path to what it is looked up in: `hits.text=.` says that hits are texts."""


class Missing(Struct, frozen=True):
    """What a path leads to where the row has nothing there; null is something."""


MISSING = Missing()


class EachStep(Struct, frozen=True):
    """`[]`: every entry of a list, those that are lists themselves entry by entry."""


Step = str | int | EachStep
Find = Callable[[Mapping[str, Any]], Any]


class FieldPath(Struct, frozen=True):
    """A path that was read: the field of the row that it begins with, and what it finds.

    `root` is None where only the whole row will do; `plain`: the path is that one field. `covers`
    tells which fields are meant where a path is of several.
    """

    text: str
    root: str | None
    plain: bool
    find: Find
    covers: Callable[[str], bool] | None = None


def opened_text(text: str) -> Any:
    """What a text holds that is JSON itself, as fields of many exports are; else the text."""
    try:
        return _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return text


def field_path(text: str, open_text: Callable[[str], Any] = opened_text) -> FieldPath:
    """Read a path; what is no dotted path must be JMESPath.

    A path that leads into a text goes on in what `open_text` makes of it. `.` is the value itself.
    """
    if text.strip() == ITSELF:
        return FieldPath(text, None, False, lambda value: value)
    numbered = _NUMBERED.fullmatch(text.strip())
    if numbered is not None:
        return _numbered_fields(text, numbered["before"], numbered["behind"])
    steps = _steps(text.strip())
    if steps is None:
        return FieldPath(text, None, False, _jmespath(text))
    root = steps[0]
    assert isinstance(root, str)
    whole = ".".join(str(step) for step in steps)
    flat = whole if all(isinstance(step, str) for step in steps) and len(steps) > 1 else None

    def find(row: Mapping[str, Any]) -> Any:
        # Exports that flatten their objects have names with dots in them.
        return row[flat] if flat is not None and flat in row else _walk(row, steps, open_text)

    return FieldPath(text, root, len(steps) == 1, find)


def _numbered_fields(text: str, before: str, behind: str) -> FieldPath:
    """`context_*`: the fields with a number in the place of the star, by that number.

    Tables have a column for each rank; where there were fewer hits the last ones are empty.
    """
    name = re.compile(rf"{re.escape(before)}([0-9]{{1,4}}){re.escape(behind)}")

    def find(row: Mapping[str, Any]) -> Any:
        found = [(int(match[1]), one) for one in row if (match := name.fullmatch(one))]
        if not found:
            return MISSING
        values = [row[one] for _, one in sorted(found)]
        while values and (values[-1] is None or values[-1] == ""):
            values.pop()
        return values

    return FieldPath(text, None, False, find, lambda one: name.fullmatch(one) is not None)


def _steps(text: str) -> tuple[Step, ...] | None:
    """The steps of a dotted path; None if it is something else."""
    steps: list[Step] = []
    at = 0
    while at < len(text):
        if steps and text[at] == ".":
            at += 1
            if at < len(text) and text[at] == "[":
                return None
        elif steps and text[at] != "[":
            return None
        match = _STEP.match(text, at)
        if match is None or (not steps and match["name"] is None):
            return None
        at = match.end()
        if match["name"] is not None:
            name = match["name"]
            steps.append(str(_decode(name)) if name.startswith('"') else name.strip())
        else:
            steps.append(EachStep() if match["each"] else int(match["index"]))
    return tuple(steps) if steps and all(step != "" for step in steps) else None


def _walk(value: Any, steps: tuple[Step, ...], open_text: Callable[[str], Any]) -> Any:
    for place, step in enumerate(steps):
        if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
            value = open_text(value)
        if isinstance(step, EachStep):
            if value is None or value is MISSING:
                return MISSING
            if not isinstance(value, list):
                return value  # whoever reads it says that it is no list
            return _walk_each(value, steps[place + 1 :], open_text)
        if isinstance(step, int):
            if not isinstance(value, list) or not -len(value) <= step < len(value):
                return MISSING
            value = value[step]
        elif isinstance(value, Mapping) and step in value:
            value = value[step]
        else:
            return MISSING
    return value


def _walk_each(
    values: list[Any], steps: tuple[Step, ...], open_text: Callable[[str], Any]
) -> list[Any]:
    """What the steps find in each entry.

    An entry in which they find nothing stays, as null: without it the ranks of all others below
    would be wrong. Only a list that is not there adds no entry.
    """
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    if not steps:
        return flat
    results: list[Any] = []
    for entry in flat:
        result = _walk(entry, steps, open_text)
        if EachStep() in steps:
            results += [] if result is MISSING else result if isinstance(result, list) else [result]
        else:
            results.append(None if result is MISSING else result)
    return results


def _jmespath(text: str) -> Find:
    try:
        import jmespath
    except ImportError as error:
        raise RagaugeError.of(
            "missing-extra",
            f"`{text}` is no dotted path such as `sources[].id`, and JMESPath needs the package "
            "`jmespath`",
            hint="pip install 'ragauge[http]'",
        ) from error
    try:
        compiled = jmespath.compile(text)
    except jmespath.exceptions.JMESPathError as error:
        message = str(error).partition("\n")[0]
        raise RagaugeError.of(
            "bad-field-path",
            f"`{text}` is neither a dotted path nor JMESPath: {message}",
            hint="write answer, metadata.qid or sources[].id; see jmespath.org for more",
        ) from error

    def find(row: Mapping[str, Any]) -> Any:
        try:
            value = compiled.search(row)
        except jmespath.exceptions.JMESPathError:
            return MISSING  # a function that does not fit this row: it has nothing there
        return MISSING if value is None else value

    return find
