"""Keys that an object in JSON has twice, of which decoders take the last without a word."""

from __future__ import annotations

import json
import re

import msgspec

from ragauge.files.json_faults import STRING

_TOKEN = re.compile(STRING + rb"|[{}\[\]:,]", re.DOTALL)
_MOST = 20
"""Keys that are named: a row that has more is no better known by them."""
_decode = msgspec.json.Decoder(float_hook=float).decode
_encode = msgspec.json.Encoder().encode


def duplicate_keys(data: bytes) -> tuple[str, ...]:
    """The paths of keys that stand twice in one object of a row, such as `answer.citations`.

    A row that is not JSON has none.
    """
    return _duplicates(data) if may_have_duplicate_keys(data) else ()


def may_have_duplicate_keys(data: bytes) -> bool:
    """Whether a row has a key twice, told by its colons: what is decoded has one of the two less.

    Colons in strings are on both sides, unless one is written as an escape.
    """
    try:
        decoded = _encode(_decode(data))
    except (msgspec.ValidationError, OverflowError, RecursionError):
        return True  # a number is too large, or an object too deep: it takes a walk to know
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return data.count(b":") != decoded.count(b":") or b"\\u003" in data


def _duplicates(data: bytes) -> tuple[str, ...]:
    """Walk through a row; it may be nested to any depth."""
    duplicates: list[str] = []
    # For each open bracket: the keys of an object so far, or None and the place in a list.
    open_keys: list[set[str] | None] = []
    path: list[str] = []  # what leads to the value at hand, a step for each open bracket
    waiting = ""
    for match in _TOKEN.finditer(data):
        token = match.group()
        if token in (b"{", b"["):
            open_keys.append(set() if token == b"{" else None)
            path.append("" if token == b"{" else "[0]")
        elif token in (b"}", b"]"):
            if not open_keys:
                break  # no JSON
            open_keys.pop()
            path.pop()
        elif token == b",":
            if path and path[-1].startswith("["):
                path[-1] = f"[{int(path[-1][1:-1]) + 1}]"
        elif token == b":":
            keys = open_keys[-1] if open_keys else None
            if keys is not None:
                path[-1] = f".{waiting}"
                if waiting in keys:
                    duplicates.append(_shown(path))
                    if len(duplicates) == _MOST:
                        break
                keys.add(waiting)
        else:
            waiting = _key(token)
    return tuple(dict.fromkeys(duplicates))


def _shown(path: list[str]) -> str:
    steps = path if len(path) <= 20 else [*path[:10], "...", *path[-10:]]
    return "".join(steps).removeprefix(".")


def _key(token: bytes) -> str:
    if b"\\" not in token:
        return token[1:-1].decode("utf-8", "replace")
    try:
        return str(json.loads(token))
    except ValueError:
        return token.decode("utf-8", "replace")
