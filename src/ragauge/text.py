"""Rules over plain text: the refusal token, claim needles, citations in answers, what is safe."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

REFUSAL_TOKEN = "not in context"
"""What the prompts of the source pages make a model answer where it refuses."""
MIN_NEEDLE = 5
"""Characters that a claim must have to be sought, as in the scorers of the source pages."""

# Without the closing bracket: after an opening one that is never closed, a pattern that has both
# would read to the end of the answer, and do so again from the next opening one.
_CITATIONS = re.compile(r"citations\s*+:\s*+\[", re.IGNORECASE)
_SEPARATOR = re.compile(r"[,\s]+")
UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What moves a terminal's cursor, changes its colours or turns the direction of a line around.

Tabs and line feeds are none of it.
"""
_LINE_ENDS = re.compile(r"[\t\n\v\f\r\x85\u2028\u2029]+")
# The rule of the example 08 of the source: runs of at least five ASCII characters.
_PHRASE = re.compile(r"[a-z0-9][a-z0-9\-\s]{4,}")


def normalise(said: str | None) -> str:
    """Strip and lower what was said; this is the text that needles and the token are sought in."""
    return (said or "").strip().lower()


class CitationList(NamedTuple):
    """Where the first `citations: [a, b]` of an answer is.

    From `start` to `end` with its brackets; between them from `first` to `last`.
    """

    start: int
    first: int
    last: int

    @property
    def end(self) -> int:
        """Where the text behind the list goes on."""
        return self.last + 1


def citation_list(answer: str) -> CitationList | None:
    """Find the first `citations: [a, b]` in an answer; None if it has none."""
    opening = _CITATIONS.search(answer)
    if opening is None:
        return None
    # If this list is not closed, no later one is.
    closing = answer.find("]", opening.end())
    return None if closing < 0 else CitationList(opening.start(), opening.end(), closing)


def citations_in(answer: str) -> list[str] | None:
    """Return the ids of the first `citations: [a, b]` in the answer, or None if it has none."""
    listed = citation_list(answer)
    if listed is None:
        return None
    return [part for part in _SEPARATOR.split(answer[listed.first : listed.last]) if part]


def without_citations(answer: str) -> str:
    """The answer without its first `citations: [a, b]`, which are no words of the answer."""
    listed = citation_list(answer)
    return answer if listed is None else answer[: listed.start] + answer[listed.end :]


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


def short_claims(claims: Sequence[str]) -> tuple[str, ...]:
    """The claims that are too short for both rules, lowered and without blanks around them."""
    lowered = (claim.lower() for claim in claims)
    return tuple(word for claim in lowered if len(claim) < MIN_NEEDLE and (word := claim.strip()))


def contains_word(text: str, word: str) -> bool:
    """Whether a text in lower case has a word, or a few, that stand by themselves.

    No letter and no digit may touch them, and no digit that a point or comma joins to them: `80` is
    not in `8080`, `80.5` or `1,80`, and is in `80.` and `(80)`.
    """
    at = text.find(word)
    while at >= 0:
        before, behind = text[max(0, at - 2) : at], text[at + len(word) : at + len(word) + 2]
        if not (_joins(before[::-1]) or _joins(behind)):
            return True
        at = text.find(word, at + 1)
    return False


def _joins(touching: str) -> bool:
    """Whether the two characters beside a word, the nearer one first, make it part of another."""
    if touching[:1].isalnum():
        return True
    return touching[:1] in (".", ",") and touching[1:].isdecimal()


def question_key(text: str | None) -> str:
    """What spellings of one question share: composed characters, case, blanks."""
    return " ".join(unicodedata.normalize("NFC", text or "").casefold().split())


MADE_ID = re.compile("q-[0-9a-f]{12}")


def question_id(text: str) -> str:
    """The id of a gold item that has none of its own: the same for the same question."""
    return f"q-{sha256(question_key(text).encode()).hexdigest()[:12]}"


def text_hash(text: str) -> str:
    """A hash of a chunk's text, for traces that give none of their own."""
    return sha256(text.encode()).hexdigest()[:32]


def plain(text: str) -> str:
    """One line of text that is safe to show: line ends become blanks, controls their escapes."""
    return visible(_LINE_ENDS.sub(" ", text))


def visible(text: str) -> str:
    """Lines of text that are safe to show: controls become their escapes; line feeds stay."""
    return UNSAFE.sub(lambda match: ascii(match[0])[1:-1], text)


def compiled_pattern(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """A regular expression of a user; ValueError where it is none, or Python warns of it.

    What Python warns of means something else in a later version: the same file would be scored
    otherwise.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, Warning, OverflowError, RecursionError) as error:
        shown = plain(pattern if len(pattern) <= 60 else f"{pattern[:57]}...")
        raise ValueError(f"the pattern `{shown}` cannot be used: {error}") from error


def some(names: Sequence[str], most: int = 5) -> str:
    """The first names of a list, and how many more there are."""
    first = ", ".join(names[:most])
    return first if len(names) <= most else f"{first} and {len(names) - most} more"


def fold(text: str, *, ignore_case: bool) -> str:
    """A text as it is compared with the strings that it must, or must not, contain."""
    composed = unicodedata.normalize("NFC", text)
    return composed.casefold() if ignore_case else composed
