"""Quotes: how much of a quote the text of a hit covers, however the text was cut into chunks.

Both are compared as `normalised` leaves them. Places in a quote count its characters; how much of
it they are is measured in bytes of UTF-8, as spans are.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from ragauge.spans import Merged, merged, overlap, size

_EDGE = 12  # characters, about two words
_TRIES = 16  # candidates that are compared one by one before the linear search takes over


def normalised(text: str) -> str:
    """A text as it is compared: NFC, runs of whitespace as one blank, none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def clusters(word: str) -> Iterator[str]:
    """Parts of a word that are composed each by itself: a letter with all that may join it.

    Most marks have a combining class; the vowels of Hangul and of some scripts of India have none,
    and join the letter before them nevertheless.
    """
    cluster = ""
    for letter in word:
        if cluster and not unicodedata.combining(letter):
            apart = unicodedata.normalize("NFC", cluster) + unicodedata.normalize("NFC", letter)
            if unicodedata.normalize("NFC", cluster + letter) == apart:
                yield cluster
                cluster = ""
        cluster += letter
    if cluster:
        yield cluster


def is_quote(text: str, quote: str) -> bool:
    """Whether the text at a place is a quote, from its first byte to its last.

    White space inside may differ, because people copy quotes from other layouts. At the ends it
    may not: a place that takes in a blank before the quote was counted wrongly, and so, by as many
    bytes, were others of the same set whose neighbours are no blanks.
    """
    if text == quote:
        return True
    return normalised(text) == normalised(quote) and outer_blanks(text) == outer_blanks(quote)


def outer_blanks(text: str) -> tuple[str, str]:
    """The white space that a text begins and ends with; line ends of any system are alike."""
    text = text.replace("\r\n", "\n")
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]


def least_overlap(quote: str) -> int:
    """How many characters count as an overlap at all: twelve, or a fifth of a short quote.

    Fewer are shared by chance: a blank, an article, the end of a sentence.
    """
    return min(_EDGE, -(-len(quote) // 5))


def covered(quote: str, text: str, before: Merged | None = None) -> Merged:
    """The intervals of a quote that a text covers; both are normalised.

    A text that contains the quote covers all of it. One that lies inside covers the first place
    where it stands that is not wholly covered `before`, so that another chunk of the same words
    counts for their next occurrence and never twice for one. Any other covers what its end shares
    with the quote's beginning, and its beginning with the quote's end.
    """
    if not quote or not text:
        return []
    if quote in text:
        return [(0, len(quote))]
    least = least_overlap(quote)
    if len(text) < least:
        return []
    if text in quote:
        return [_place(quote, text, before or [])]
    head, tail = border(text, quote, least), border(quote, text, least)
    return merged([(0, head), (len(quote) - tail, len(quote))])


def common_runs(quote: str, text: str) -> Merged:
    """The intervals of a quote that stand in a text, wherever; both are normalised.

    Runs of fewer than 23 characters may be passed over: they are shared by chance. In a quote that
    repeats itself one run stands in several places; then only the longest counts.
    """
    intervals: list[tuple[int, int]] = []
    at = 0
    while at + _EDGE <= len(quote):
        piece, best = quote[at : at + _EDGE], at
        place = text.find(piece)
        for _ in range(_TRIES):
            if place < 0:
                break
            end = at + _common_prefix(quote[at:], text[place : place + len(quote) - at])
            before = _common_prefix(quote[:at][::-1], text[max(0, place - at) : place][::-1])
            if end - (at - before) > 2 * _EDGE - 2:
                intervals.append((at - before, end))
                best = max(best, end)
            place = text.find(piece, place + 1)
        at = max(at + _EDGE, best - best % _EDGE)
    union = merged(intervals)
    if size(union) > len(text):
        return [max(intervals, key=lambda interval: interval[1] - interval[0])]
    return union


def _common_prefix(one: str, other: str) -> int:
    """The length of what two texts begin with alike; every letter is compared about once."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high - 1:
        half = (low + high) // 2
        if one[low:half] == other[low:half]:
            low = half
        else:
            high = half
    return low


def shares_half(quote: str, text: str) -> bool:
    """Whether a text and a quote share at least half of the shorter; both are normalised."""
    shorter = min(byte_length(quote), byte_length(text))
    return 2 * bytes_of(quote, covered(quote, text)) >= max(1, shorter)


def byte_length(text: str) -> int:
    """How many bytes a text has in UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))


def bytes_of(quote: str, union: Merged) -> int:
    """How many bytes of a quote some intervals of its characters are."""
    return sum(byte_length(quote[start:end]) for start, end in union)


def _place(quote: str, text: str, before: Merged) -> tuple[int, int]:
    """The first occurrence that is not wholly covered yet; the first one if all are."""
    first = start = quote.find(text)
    while start >= 0:
        if overlap(before, [(start, start + len(text))]) < len(text):
            return start, start + len(text)
        start = quote.find(text, start + 1)
    return first, first + len(text)


def border(left: str, right: str, least: int) -> int:
    """The length of the longest end of `left` that `right` begins with; 0 if under `least`."""
    if least > min(len(left), len(right)):
        return 0
    needle = right[:least]
    start = left.find(needle, max(0, len(left) - len(right)))
    for _ in range(_TRIES):
        if start < 0:
            return 0
        if right.startswith(left[start:]):
            return len(left) - start
        start = left.find(needle, start + 1)
    if start < 0:
        return 0
    length = _linear_border(left[start:], right)
    return length if length >= least else 0


def _linear_border(left: str, right: str) -> int:
    """The same by the failure function of Knuth, Morris and Pratt: texts that repeat themselves.

    `left` is at most as long as `right`.
    """
    fallback = [0] * len(right)
    length = 0
    for place in range(1, len(right)):
        while length and right[place] != right[length]:
            length = fallback[length - 1]
        length += right[place] == right[length]
        fallback[place] = length
    length = 0
    for letter in left:
        while length and (length == len(right) or letter != right[length]):
            length = fallback[length - 1]
        length += letter == right[length]
    return length
