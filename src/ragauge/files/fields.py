"""Taking typed fields out of decoded JSON objects, with errors that name the path inside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

INT64 = 1 << 63
ID_NAMES = ("id", "chunk_id", "snippet_id", "block_id")
"""The names under which an object may carry its id."""


class FieldError(Exception):
    """A field that cannot be used: code, message and hint, still without its place."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


Row = Mapping[str, Any]
Value = TypeVar("Value")


def wrong_type(path: str, expected: str, value: object, hint: str) -> FieldError:
    """Build the error for a value of the wrong type."""
    return FieldError("bad-field", f"`{path}` must be {expected}, got {shown(value)}", hint)


def conflict(one: str, other: str, value: object, different: object) -> FieldError:
    """Build the error for two spellings of one field that disagree."""
    return FieldError(
        "field-conflict",
        f"`{one}` and `{other}` are the same field and disagree: {shown(value)} and "
        f"{shown(different)}",
        "keep one of them, or choose the profile whose spelling is meant",
    )


def shown(value: object) -> str:
    """Show a JSON value as the file has it, cut to a readable length."""
    import json

    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."


def meaning(value: Any) -> Any:
    """What a value says as an id or a list of ids: 7 is "7", and {"id": "a"} is "a"."""
    if isinstance(value, list):
        return [meaning(entry) for entry in value]
    if isinstance(value, dict):
        ids = [value[name] for name in ID_NAMES if value.get(name) is not None]
        return meaning(ids[0]) if ids else value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def pick(
    row: Row,
    names: Sequence[str],
    own: Sequence[str] = (),
    *,
    inside: str = "",
    meaning: Callable[[Any], Any] = lambda value: value,
) -> tuple[str, Any]:
    """Return the name and value of a field among its spellings; ("", None) if it is absent.

    null counts as absent. The first own name that is there and not empty wins; otherwise all
    spellings that are there must agree in their meaning.
    """
    if len(names) == 1 and not own:  # most fields, and there is nothing to agree with
        value = row.get(names[0])
        return ("", None) if value is None else (inside + names[0], value)
    if own:
        empty: tuple[str, Any] = ("", None)
        for name in own:
            value = row.get(name)
            if value is not None:
                if value != "":
                    return inside + name, value
                empty = (inside + name, value)
        if empty[0]:
            return empty
    first_name, first = "", None
    for name in names:
        value = row.get(name)
        if value is None:
            continue
        if first_name and meaning(first) != meaning(value):
            raise conflict(first_name, inside + name, first, value)
        if not first_name:
            first_name, first = inside + name, value
    return first_name, first


def pick_as(
    convert: Callable[[Any, str], Value], row: Row, names: Sequence[str], *, inside: str = ""
) -> Value | None:
    """The value of a field among its spellings, converted by one of the functions below."""
    name, value = pick(row, names, inside=inside)
    return None if value is None else convert(value, name)


def as_id(value: Any, path: str) -> str:
    """Take an id: a string, or an integer, which is read as its digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(as_int(value, path))
    is_pair = isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
    hint = 'write {"id": …, "score": …}' if is_pair else "write the id as a string"
    raise wrong_type(path, "an id (a string)", value, hint)


def as_int(value: Any, path: str) -> int:
    """Take an integer of at most 64 bits."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type(path, "a whole number", value, "write the number without quotes")
    if not -INT64 <= value < INT64:
        raise wrong_type(path, "a number of at most 64 bits", value, "use a smaller number")
    return value


def as_number(value: Any, path: str) -> float:
    """Take a number."""
    if isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            raise wrong_type(path, "a number of at most 64 bits", value, "use a smaller number")
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return float(as_int(value, path))
    raise wrong_type(path, "a number", value, "write the number without quotes")


def as_text(value: Any, path: str) -> str:
    """Take a string."""
    if not isinstance(value, str):
        raise wrong_type(path, "a string", value, "put it in quotes, or use null for nothing")
    return value


def as_bool(value: Any, path: str) -> bool:
    """Take true or false."""
    if not isinstance(value, bool):
        raise wrong_type(path, "true or false", value, "write true or false without quotes")
    return value


def as_list(value: Any, path: str) -> list[Any]:
    """Take a list."""
    if not isinstance(value, list):
        is_object = isinstance(value, dict)
        hint = "write a list, in order" if is_object else "put it in square brackets"
        raise wrong_type(path, "a list", value, hint)
    return value


def as_object(value: Any, path: str) -> dict[str, Any]:
    """Take an object."""
    if not isinstance(value, dict):
        raise wrong_type(path, "an object", value, "put it in curly brackets, with named fields")
    return value


def as_texts(value: Any, path: str) -> tuple[str, ...]:
    """Take a list of strings; null and absence are the empty list."""
    listed = () if value is None else as_list(value, path)
    return tuple(as_text(entry, f"{path}[{i}]") for i, entry in enumerate(listed))


def as_ids(value: Any, path: str) -> tuple[str, ...]:
    """Take a list of ids; null and absence are the empty list."""
    listed = () if value is None else as_list(value, path)
    return tuple(as_id(entry, f"{path}[{i}]") for i, entry in enumerate(listed))
