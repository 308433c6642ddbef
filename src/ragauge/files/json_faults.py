"""Where JSON that does not decode goes wrong."""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)
# Possessive: a string without an end must not be tried again from every place in it.
STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRING = re.compile(STRING, re.DOTALL)
_STRING_OR_BRACKET = re.compile(STRING + rb"|[{}\[\]]", re.DOTALL)


def half_surrogate(data: bytes) -> int | None:
    """Where an escape stands for half of a surrogate pair, if one does."""
    waiting: re.Match[bytes] | None = None
    for match in _ESCAPE.finditer(data):
        code = int(match.group(1) or b"0", 16)
        if waiting is not None:
            if match.start() != waiting.end() or not 0xDC00 <= code < 0xE000:
                return waiting.start()
            waiting = None
        elif 0xD800 <= code < 0xDC00:
            waiting = match
        elif 0xDC00 <= code < 0xE000:
            return match.start()
    return None if waiting is None else waiting.start()


def deepest(data: bytes) -> int:
    """Where brackets are nested most deeply."""
    depth = most = at = 0
    for match in _STRING_OR_BRACKET.finditer(data):
        if match.group() in (b"{", b"["):
            depth += 1
            if depth > most:
                most, at = depth, match.start()
        elif match.group() in (b"}", b"]"):
            depth -= 1
    return at


def is_cut(data: bytes) -> bool:
    """Whether a row ends inside a string or with a bracket open."""
    rest = _STRING.sub(b"", data)
    opening, closing = rest.count(b"{") + rest.count(b"["), rest.count(b"}") + rest.count(b"]")
    return b'"' in rest or opening > closing


def error_offset(error: Exception, data: bytes) -> int:
    """Return the byte at which the decoder stopped, or the end of the data if it does not say."""
    text = str(error)
    _, marker, tail = text.rpartition("(byte ")
    return int(tail.rstrip(")")) if marker else len(data)
