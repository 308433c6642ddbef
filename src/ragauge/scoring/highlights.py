"""Highlights: which characters of a passage are evidence, by where it lies or by what is quoted."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from ragauge.model.gold import Anchor
from ragauge.quotes import border, least_overlap, normalised
from ragauge.spans import Merged, Span, merged

Highlights = tuple[tuple[int, int], ...]

_WORD = re.compile(r"\S+")
_Cut = tuple[int, int, int]
"""A stretch of a text in one piece: where it begins in the text, and its place in the document."""


def highlights(text: str, spans: Sequence[Span], anchors: Iterable[Anchor]) -> Highlights:
    """The characters of a text that are evidence, as intervals from and up to.

    `spans` say where the text lies, in the document of the anchors. Where offsets do not fit
    the text, because it has another length than its place, the quote of an anchor is looked for.
    """
    lit: Merged = []
    for anchor in anchors:
        mine = _by_place(text, spans, anchor.spans)
        if mine is None:
            mine = [] if anchor.quote is None else quoted(text, anchor.quote)
        lit += mine
    return tuple(merged(lit))


def _by_place(text: str, spans: Sequence[Span], gold: Sequence[Span]) -> Merged | None:
    """What of a text lies at a place; None where that cannot be told."""
    if not spans or not gold:
        return None
    unit = gold[0].unit
    if any(span.unit != unit for span in (*spans, *gold)):
        return None
    total = sum(span.length for span in spans)
    cuts: list[_Cut] = []
    begins = 0
    for span in spans:
        cuts.append((begins, span.start, span.end))
        begins += span.length
    shared = [
        (begins + max(start, span.start) - start, begins + min(end, span.end) - start)
        for begins, start, end in cuts
        for span in gold
        if max(start, span.start) < min(end, span.end)
    ]
    if unit == "char":
        return shared if total == len(text) else None
    if unit == "byte":
        return _of_bytes(text, total, shared)
    return _of_lines(text, total, shared) if unit == "line" else None


def _of_bytes(text: str, total: int, shared: Merged) -> Merged | None:
    """Intervals of bytes as characters; a character of which any byte is inside is inside."""
    if text.isascii():
        return shared if total == len(text) else None
    data = text.encode("utf-8", "surrogatepass")
    if total != len(data):
        return None
    characters = []
    for start, end in shared:
        begin, stop = _back(data, start), _on(data, end)
        first = len(data[:begin].decode("utf-8", "surrogatepass"))
        characters.append((first, first + len(data[begin:stop].decode("utf-8", "surrogatepass"))))
    return characters


def _back(data: bytes, place: int) -> int:
    while place > 0 and data[place] & 0xC0 == 0x80:
        place -= 1
    return place


def _on(data: bytes, place: int) -> int:
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return place


def _of_lines(text: str, total: int, shared: Merged) -> Merged | None:
    """Intervals of lines as characters, line ends among them."""
    ends = [match.end() for match in re.finditer(r"\n", text)]
    if not ends or ends[-1] < len(text):
        ends.append(len(text))
    if total != len(ends):
        return None
    begins = [0, *ends]
    return [(begins[start], begins[end]) for start, end in shared]


def spaced(lit: Sequence[tuple[int, int]], sizes: Sequence[int], gap: int) -> Highlights:
    """Intervals of a text in parts, as they lie once a gap stands between any two of the parts."""
    moved = []
    begin = 0
    for number, size in enumerate(sizes):
        shift = number * gap
        moved += [
            (max(start, begin) + shift, min(end, begin + size) + shift)
            for start, end in lit
            if start < begin + size and begin < end
        ]
        begin += size
    return tuple(sorted(moved))


def quoted(text: str, quote: str) -> Merged:
    """Where a quote stands in a text, whatever the whitespace; of one that is cut, what is there.

    Only its first occurrence is meant.
    """
    verbatim = text.find(quote) if quote else -1
    if verbatim >= 0:
        return [(verbatim, verbatim + len(quote))]
    wanted = normalised(quote)
    words = _Words(text)
    if not wanted or not words.text:
        return []
    start = words.text.find(wanted)
    if start >= 0:
        return [words.raw(start, start + len(wanted))]
    least = least_overlap(wanted)
    if len(words.text) < least:
        return []
    if words.text in wanted:
        return [words.raw(0, len(words.text))]
    tail, head = border(words.text, wanted, least), border(wanted, words.text, least)
    parts = [(0, head), (len(words.text) - tail, len(words.text))]
    return merged(words.raw(start, end) for start, end in parts if end > start)


class _Words:
    """A text as it is compared with quotes, and the way back to the text as it is."""

    def __init__(self, text: str) -> None:
        self.begins: list[int] = []
        self.words: list[tuple[int, int, int]] = []
        parts = []
        place = 0
        for match in _WORD.finditer(text):
            word = unicodedata.normalize("NFC", match[0])
            self.begins.append(place)
            self.words.append((len(word), match.start(), match.end()))
            parts.append(word)
            place += len(word) + 1
        self.text = " ".join(parts)

    def raw(self, start: int, end: int) -> tuple[int, int]:
        """An interval of what is compared as one of the text; a word of another length is whole."""
        first, last = (bisect_right(self.begins, place) - 1 for place in (start, end - 1))
        length, begin, stop = self.words[first]
        from_ = begin + start - self.begins[first] if length == stop - begin else begin
        length, begin, stop = self.words[last]
        to = begin + end - self.begins[last] if length == stop - begin else stop
        return min(from_, stop), min(to, stop)
