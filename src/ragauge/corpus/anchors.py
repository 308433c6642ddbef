"""Anchors: the few bytes by which a block is recognised and shown.

Of prose it is the first sentence that says something, of code the first line, of a table its header
row, and of a figure or caption all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragauge.model.corpus import Extent, Piece

SHORTEST = 8
"""How many characters a sentence needs to be an anchor, without marks of lists and quotes."""

_LONGEST_SENTENCE = 4_096
_LOOKED_AT = 1 << 16  # bytes of a block; a longer one without any sentence has no anchor
# What a line of prose may begin with that is no part of a sentence: markers of lists and quotes.
_MARKS = re.compile(r"(?:[\s>]|[-*+•]\s|[0-9]{1,9}[.)]\s)*")
_NEXT_PARAGRAPH = re.compile(r"(?:\r\n|\r|\n)[ \t>]*(?:(?=[\r\n])|[-*+•]\s|[0-9]{1,9}[.)]\s)")
_STOP = re.compile(r"[.!?…][\"')\]*_`”’»]*(?=\s+[^\sa-z]|\s*\Z)|[。！？]")  # noqa: RUF001
# Words that a full stop belongs to without ending a sentence, in English and German.
_ABBREVIATIONS = frozenset(
    (
        "abb", "al", "approx", "bzw", "ca", "cf", "dr", "ed", "eds", "eq", "etc", "fig", "figs",
        "inc", "mr", "mrs", "ms", "nr", "prof", "resp", "sec", "st", "str", "tab", "usw",
        "vgl", "vol", "vs",
    )
)  # fmt: skip
_LAST_WORD = re.compile(r"(?<![\w.])[\w.]*+\Z")
_SPACES = re.compile(r"\s*")

_LINE = re.compile(rb"[^\r\n]+")
_BLANKS = b" \t\v\f"
# Lines around code and tables that are no part of what they say.
_AROUND_CODE = re.compile(
    rb"\s*(?:`{3,}[^`]*|~{3,}+.*|-{3}|\+{3}|\.\.\s(?:(?!::).)*+::.*|:[\w-]+:.*)"
)
_AROUND_TABLE = re.compile(rb"\s*(?:\.\.\s(?:(?!::).)*+::.*|:(?!header:)[\w-]+:.*)")
_BORDER = re.compile(rb"(?=[^+=-]*+[+=-])[\s+|=:-]*+")
_LISTED_ROW = re.compile(rb"\s*\* - ")


def anchor_of(text: bytes, piece: Piece) -> Extent | None:
    """The anchor of a piece, inside its span; None if it says nothing, as a comment does not."""
    if piece.type == "prose":
        return None if piece.attrs.get("role") == "comment" else sentence_in(text, piece.span)
    if piece.type == "code":
        return next(_lines(text, piece.span, _AROUND_CODE), None)
    if piece.type == "table":
        return _first_row(text, piece.span)
    return piece.span


def sentence_in(text: bytes, span: Extent, shortest: int = SHORTEST) -> Extent | None:
    """The first sentence that is long enough: up to a stop, the paragraph's end, or 4 KiB."""
    start, end = span
    cut = text[start : min(end, start + _LOOKED_AT)]
    words = cut.decode(errors="ignore")  # the cut may go through a character
    for first, last in _sentences(words):
        if len(" ".join(words[first:last].split())) >= shortest:
            sentence = words[first:last].encode()[:_LONGEST_SENTENCE].decode(errors="ignore")
            begin = start + len(words[:first].encode())
            return begin, begin + len(sentence.encode())
    return None


def _sentences(words: str) -> Iterator[tuple[int, int]]:
    """Where each sentence begins and ends, without marks before it and white space behind it."""
    at = 0
    while at < len(words):
        break_ = _NEXT_PARAGRAPH.search(words, _skip(_MARKS, words, at))
        behind = break_.end() if break_ is not None else len(words)
        paragraph = words[at : break_.start() if break_ is not None else len(words)]
        begin = _skip(_MARKS, paragraph, 0)
        for stop in _STOP.finditer(paragraph, begin):
            if stop[0][0] != "." or not _is_abbreviation(paragraph, stop.start(), stop.end()):
                yield at + begin, at + stop.end()
                begin = _skip(_SPACES, paragraph, stop.end())
        if begin < len(paragraph):
            yield at + begin, at + len(paragraph.rstrip())
        at = behind


def _skip(pattern: re.Pattern[str], words: str, at: int) -> int:
    match = pattern.match(words, at)
    return at if match is None else match.end()


def _is_abbreviation(paragraph: str, at: int, end: int) -> bool:
    """Whether a full stop belongs to a short form, an initial or an ordinal."""
    if _skip(_SPACES, paragraph, end) == len(paragraph):
        return False
    match = _LAST_WORD.search(paragraph[max(at - 40, 0) : at])
    word = match[0] if match else ""
    short_number = word.isdigit() and len(word) <= 2
    initial = len(word) == 1 and word.isalpha()
    return short_number or initial or word.lower() in _ABBREVIATIONS or _dotted(word)


def _dotted(word: str) -> bool:
    """Whether a word is letters with stops between them, as in `e.g` and `z.B`."""
    return "." in word and all(len(part) == 1 for part in word.split("."))


def _lines(text: bytes, span: Extent, around: re.Pattern[bytes]) -> Iterator[Extent]:
    """The lines of a span that are not blank, from the first that is not around it on."""
    begun = False
    for match in _LINE.finditer(text, *span):
        line = match[0].strip(_BLANKS)
        if not line or (not begun and around.fullmatch(line)):
            continue
        begun = True
        start = match.start() + match[0].index(line)
        yield start, start + len(line)


def _first_row(text: bytes, span: Extent) -> Extent | None:
    """The header row, which is the first one; between borders it may have several lines."""
    row: Extent | None = None
    bordered = listed = False
    for start, end in _lines(text, span, _AROUND_TABLE):
        line = text[start:end]
        if _BORDER.fullmatch(line):
            if row is not None:
                break
            bordered = True
        elif row is None:
            row, listed = (start, end), _LISTED_ROW.match(line) is not None
        elif (bordered and not listed) or (listed and not _LISTED_ROW.match(line)):
            row = row[0], end
        else:
            break
    return row
