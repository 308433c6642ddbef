"""Data of the page: JSON, compressed, as base64 in elements that no browser runs.

The format of zlib has neither clock nor system in its header, so the same data give the same bytes.
"""

from __future__ import annotations

import json
import math
import zlib
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import msgspec

_LEVEL = 6


def encoded(value: Any) -> bytes:
    """A value as JSON; halves of characters, which UTF-8 cannot write, become escapes."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(_finite(msgspec.to_builtins(value)), allow_nan=False).encode()


def _finite(value: Any) -> Any:
    """Plain values with null for numbers that JSON does not have, as msgspec writes them."""
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def serialised(value: Any) -> str:
    """A value as the text of an element."""
    return compressed(encoded(value))


def compressed(raw: bytes) -> str:
    """JSON as the text of an element."""
    return b64encode(zlib.compress(raw, _LEVEL)).decode()


def in_parts(values: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """A sequence in parts of one size, the last one with what is left."""
    return [values[start : start + size] for start in range(0, len(values), size)]
