"""Plain text: paragraphs between blank lines, no headings."""

from __future__ import annotations

import codecs
import re

from ragauge.files.fields import FieldError
from ragauge.model.corpus import Parsed, Parser, Piece

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BLANKS = b" \t\r\n\v\f"


def parse(data: bytes) -> Parsed:
    """Take every run of lines that are not blank as a piece of prose."""
    text = data.removeprefix(codecs.BOM_UTF8)
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise FieldError(
            "bad-encoding",
            f"the bytes from {error.start + len(data) - len(text)} on are not UTF-8",
            "convert the file to UTF-8; dropping the bytes would move every offset behind them",
        ) from error
    pieces: list[Piece] = []
    start: int | None = None
    end = line = 0
    for stop, after in _line_ends(text):
        if text[line:stop].strip(_BLANKS):
            start = line if start is None else start
            end = line + len(text[line:stop].rstrip(_BLANKS))
        elif start is not None:
            pieces.append(Piece(type="prose", span=(start, end)))
            start = None
        line = after
    if start is not None:
        pieces.append(Piece(type="prose", span=(start, end)))
    origins = () if len(text) == len(data) else ((0, 3, len(text)),)
    return Parsed(text=text, headings=(), pieces=tuple(pieces), origins=origins)


def _line_ends(text: bytes) -> list[tuple[int, int]]:
    """Where the words of each line end, and where the line behind it begins."""
    return [*(line_end.span() for line_end in _LINE_END.finditer(text)), (len(text), len(text))]


PARSER = Parser(name="text", title="plain text", suffixes=(".txt",), parse=parse)
