"""What Python functions may be given: an argument of another kind is an error that says so.

Without this, an argument of the wrong kind would fail somewhere inside, as an attribute that it has
not.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import wraps
from types import MappingProxyType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from ragauge.errors import RagaugeError
from ragauge.formats.field_map import FieldMaps
from ragauge.model.embedder import Embedding
from ragauge.model.gold import GoldSet
from ragauge.model.options import Options
from ragauge.model.trace import TraceSet
from ragauge.model.verdict import Gate, Waiver

P = ParamSpec("P")
T = TypeVar("T")


class ArgumentKind(NamedTuple):
    """What an argument is, in words, an example, and whether a value is that."""

    what: str
    example: str
    fits: Callable[[Any], bool]


def _is_list(value: object, of: type | tuple[type, ...]) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(
        isinstance(entry, of) for entry in value
    )


def _is_path(value: object) -> bool:
    return isinstance(value, str | os.PathLike) and "\0" not in os.fsdecode(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _optional(kind: ArgumentKind) -> ArgumentKind:
    return kind._replace(fits=lambda value: value is None or kind.fits(value))


def _text(example: str) -> ArgumentKind:
    return ArgumentKind("a text", example, lambda value: isinstance(value, str))


def _word(*words: str) -> ArgumentKind:
    listed = " or ".join(f'"{word}"' for word in words)
    return ArgumentKind(
        listed, "check the spelling", lambda value: isinstance(value, str) and value in words
    )


def _texts(example: str) -> ArgumentKind:
    return ArgumentKind("a list of texts", example, lambda value: _is_list(value, str))


_PATH = _optional(ArgumentKind("a path", "name the file or folder", _is_path))
_FLAG = ArgumentKind("True or False", "leave it out", lambda value: isinstance(value, bool))
_LENIENCE = ArgumentKind(
    "True, False or a share", "leave it out", lambda value: isinstance(value, bool | int | float)
)
_NUMBER = _optional(ArgumentKind("a whole number", "leave it out", _is_number))

ARGUMENTS: dict[str, ArgumentKind] = {
    "profile": _optional(_text('for example profile="all"')),
    "dialect": _text('for example dialect="auto"'),
    "k": _optional(
        ArgumentKind(
            "a whole number, or a list of them",
            "for example k=5 or k=[1, 5]",
            lambda value: (
                _is_number(value)
                or (isinstance(value, list | tuple | range) and all(map(_is_number, value)))
            ),
        )
    ),
    "metrics": _texts('for example metrics=["recall@5", "citation.*"]'),
    "also": _texts('for example also=["retrieval.mrr@10"]'),
    "missing": _word("count", "exclude"),
    "on_bad_line": _word("stop", "skip"),
    "refusal_patterns": _texts('for example refusal_patterns=["no idea"]'),
    "workers": _NUMBER,
    "intervals": _FLAG,
    "count_repeats": _FLAG,
    "hashes": _FLAG,
    "note_rows": _FLAG,
    "chunks": _PATH,
    "chunks_a": _PATH,
    "chunks_b": _PATH,
    "corpus": _PATH,
    "options": ArgumentKind(
        "an Options value",
        "from ragauge.model.options import Options",
        lambda value: isinstance(value, Options),
    ),
    "embed": _optional(
        ArgumentKind(
            "an Embedding value",
            "from ragauge.model.embedder import Embedding",
            lambda value: isinstance(value, Embedding),
        )
    ),
    "bands": _optional(
        ArgumentKind(
            "a dict of bands", "by the ids of embedders", lambda value: isinstance(value, Mapping)
        )
    ),
    "fields": _optional(
        ArgumentKind(
            "a dict of field names",
            'for example fields={"answer": "response"}',
            lambda value: isinstance(value, FieldMaps | Mapping),
        )
    ),
    "ignore_fields": _texts('for example ignore_fields=["session"]'),
    "overlap": _word("cumulative", "single"),
    "strict": _FLAG,
    "fail_on": _texts('for example fail_on="regression" or fail_on=["regression:2", "loss:1%"]'),
    "strict_kinds": _FLAG,
    "accept_open": _FLAG,
    "accept_doc_level": _FLAG,
    "today": _optional(
        ArgumentKind("a date", "from datetime import date", lambda value: isinstance(value, date))
    ),
    "waivers": ArgumentKind(
        "a list of Waiver values",
        "from ragauge.model.verdict import Waiver; or write them into ragauge.toml",
        lambda value: _is_list(value, Waiver),
    ),
    "url": _text('for example "sqlite:///ragauge.db"'),
    "create": _FLAG,
    "run_id": _optional(_text("a name of your own, or leave it out")),
    "suite": _text('for example suite="nightly"'),
    "tags": _texts('for example tags=("nightly",)'),
    "commit_hash": _optional(_text("leave it out")),
    "system": _optional(
        ArgumentKind(
            "a dict", 'for example system={"k": 5}', lambda value: isinstance(value, Mapping)
        )
    ),
    "qid": _optional(_text("the id of the gold item")),
    "only": _optional(_word("answer", "retrieval")),
    "citations": _optional(
        ArgumentKind(
            "a list", 'for example citations=["c1"]', lambda value: isinstance(value, list | tuple)
        )
    ),
}
"""Every argument that has one kind wherever it stands, by its name."""

_SINGLE_TEXTS = ("metrics", "also", "refusal_patterns", "ignore_fields", "tags", "fail_on")
"""Lists of which one entry may be given as it is."""


ROWS = {"gold": "gold", "traces": "traces", "path": "what is to be loaded"}
"""Arguments that may be rows, and what they are called."""


def checked(
    function: Callable[P, T], rows: Mapping[str, str] = MappingProxyType(ROWS)
) -> Callable[P, T]:
    """A function that refuses arguments of another kind than theirs, and `rows` that are none."""
    signature = inspect.signature(function)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = {key: _checked(key, entry) for key, entry in value.items()}
                continue
            if name in rows and value is not None:
                refuse_no_rows(rows[name], value)
            bound.arguments[name] = _checked(name, value)
        return function(*bound.args, **bound.kwargs)

    return called


def _checked(name: str, value: Any) -> Any:
    """A value, or an error that says of what kind it should be; one text may stand for a list."""
    if name in _SINGLE_TEXTS and isinstance(value, str):
        return [value]
    kind = _LENIENCE if name.startswith("allow_") else ARGUMENTS.get(name)
    if kind is not None and not kind.fits(value):
        message = f"{name} is {kind.what}, got: {described(value)}"
        raise RagaugeError.of("usage", message, hint=kind.example)
    return value


def refuse_no_rows(name: str, value: object) -> None:
    """Refuse one row where several are wanted, and rows that are none: nothing can come of them."""
    if isinstance(value, Mapping) and type(value).__module__.partition(".")[0] == "datasets":
        splits = ", ".join(map(str, value)) or "none"
        message = f"{name} must be one data set, got the splits of one: {splits}"
        raise RagaugeError.of("usage", message, hint='choose one, as in dataset["test"]')
    if isinstance(value, Mapping):
        message = f"{name} must be a path or rows, got: one dict"
        raise RagaugeError.of("usage", message, hint="put it into a list of dicts: [{...}]")
    if isinstance(value, str | bytes | os.PathLike | GoldSet | TraceSet):
        return
    try:
        empty = len(value) == 0  # type: ignore[arg-type]
    except TypeError:  # an iterator, or no rows at all: said where it is read
        return
    if empty:
        message = f"{name} has no rows: {described(value)}"
        raise RagaugeError.of("usage", message, hint="one row a question is needed")


def described(value: object) -> str:
    """What a value is, and what is in it, for messages."""
    name = type(value).__name__
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        if not value:
            return f"an empty {name}"
        other = next((entry for entry in value if not isinstance(entry, type(value[0]))), value[0])
        return f"{name} of {type(other).__name__}"
    return f"{name} {value!r}" if isinstance(value, str) and len(value) < 40 else name


def is_gates(value: object) -> bool:
    """Whether a value may be gates that stand alone."""
    return _is_list(value, Gate)
