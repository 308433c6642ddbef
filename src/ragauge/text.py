"""Rules over plain text: the refusal token, claim needles, and citations written inside answers."""

from __future__ import annotations

import re
from collections.abc import Sequence

REFUSAL_TOKEN = "not in context"
MIN_NEEDLE = 5

_CITATIONS = re.compile(r"citations\s*:\s*\[([^\]]*)\]", re.IGNORECASE)
_SEPARATOR = re.compile(r"[,\s]+")
_PHRASE = re.compile(r"[a-z0-9][a-z0-9\-\s]{4,}")


def normalise(said: str | None) -> str:
    """Strip and lower what was said; this is the text that needles and the token are sought in."""
    return (said or "").strip().lower()


def citations_in(answer: str) -> list[str] | None:
    """Return the ids of the first `citations: [a, b]` in the answer, or None if it has none."""
    match = _CITATIONS.search(answer)
    if match is None:
        return None
    return [part for part in _SEPARATOR.split(match.group(1)) if part]


def substring_needles(claims: Sequence[str]) -> tuple[str, ...]:
    """Needles of the substring rule: the lowered claims of at least five characters.

    The length is taken after lowering, because lowering can lengthen a string (`İ`).
    """
    lowered = (claim.lower() for claim in claims)
    return tuple(needle for needle in lowered if len(needle) >= MIN_NEEDLE)


def phrase_needles(claims: Sequence[str]) -> tuple[str, ...]:
    """Needles of the phrase rule: runs of ASCII letters, digits, hyphens and blanks in the claims.

    A run ends at any other character, so `X is a mapping.` gives `x is a mapping`.
    """
    needles = []
    for claim in claims:
        for match in _PHRASE.finditer(claim.lower()):
            phrase = match.group(0).strip()
            if len(phrase) >= MIN_NEEDLE:
                needles.append(phrase)
    return tuple(needles)
