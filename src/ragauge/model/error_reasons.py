"""Reasons of failures: messages with one cause become one reason, and reasons are counted.

Ports, addresses, ids and times differ from question to question; what went wrong does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b

from ragauge.files.redaction import redacted
from ragauge.text import plain

LONGEST = 120
SHOWN = 3
_GONE = "…"

_URL = r"[a-z][a-z0-9+.-]*://[^\s'\"`<>,;)\]]+"
_FIRST_URL = re.compile(rf"\A(?:{_URL}):?\s+(?=\S)")
_KEPT = (
    r"\b(?:answered|status|code|errno|error|signal|http)\b(?:\s+code)?[\s:=#]{0,3}\d{1,5}\b"
    r"|\b(?:utf|latin|iso|cp|ipv|sha|md|base|http/)-?\d+(?:\.\d+)?"
    r"|\bwithin \d+(?:\.\d+)? m?s\b"
)
"""Numbers that say what went wrong: a status, an error code, a time limit."""

_VARYING = re.compile(
    rf"(?P<kept>{_KEPT})"
    rf"|{_URL}"
    r"|\b\d{4}-\d\d-\d\d[T ]\d[\d:.,]*(?:Z\b|[+-][\d:]+)?"  # a time
    r"|\b0x[0-9a-f]+\b"
    r"|\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"  # a UUID
    r"|\[?\b(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{0,4}\]?(?::\d+)?"  # an address of IPv6
    r"|(?<=[a-z]):\d{2,5}\b"  # a port
    r"|\b(?=(?:[^\W\d]{0,40}\d){2})(?=\d{0,40}[a-z_])\w{6,}\b"  # an id: letters and digits
    r"|(?<=[\s(=:])(?:'[^']{40,}'|\"[^\"]{40,}\"|`[^`]{40,}`)"  # a quoted text, as a question
    r"|\d+(?:[.,:]\d+)*",
    re.IGNORECASE,
)
_REPEATED = re.compile(rf"{_GONE}(?:[\s.,:;/#_-]*{_GONE})+")


@lru_cache(4096)  # a run has few messages, and a million traces of them
def reason_of(message: str) -> str:
    """What a message has in common with others of the same cause."""
    text = " ".join(plain(str(redacted(message[: 4 * LONGEST]))).split())
    text = _FIRST_URL.sub("", text)
    text = _VARYING.sub(lambda match: match["kept"] or _GONE, text)
    text = _REPEATED.sub(_GONE, text) or "no reason given"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}{_GONE}"


def reason_code(reason: str) -> int:
    """A number for a reason that fits into a float: records are columns of numbers."""
    return int.from_bytes(blake2b(reason.encode(errors="replace"), digest_size=6).digest(), "big")


def sorted_reasons(counts: Mapping[str, int]) -> dict[str, int]:
    """Reasons with their counts, the most frequent first."""
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


def counted_reasons(counts: Mapping[str, int], *, shown: int = SHOWN) -> str:
    """The most frequent reasons in one line: `12 × connection refused, 3 × timed out`."""
    listed = list(sorted_reasons(counts).items())
    parts = [f"{n} × {reason}" for reason, n in listed[:shown]]
    rest = sum(n for _, n in listed[shown:])
    return ", ".join([*parts, *([f"{rest} × other reasons"] if rest else [])])
