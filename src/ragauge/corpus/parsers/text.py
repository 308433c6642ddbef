"""Plain text: paragraphs between blank lines, no headings."""

from __future__ import annotations

import re

from ragauge.corpus.canonical_text import kept_text
from ragauge.model.corpus import Parsed, Parser, Piece

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BLANKS = b" \t\r\n\v\f"


def parse(data: bytes) -> Parsed:
    """Take every run of lines that are not blank as a piece of prose."""
    text, _, origins = kept_text(data)
    pieces: list[Piece] = []
    start: int | None = None
    end = line = 0
    line_ends = (line_end.span() for line_end in _LINE_END.finditer(text))
    for stop, after in (*line_ends, (len(text), len(text))):
        if text[line:stop].strip(_BLANKS):
            start = line if start is None else start
            end = line + len(text[line:stop].rstrip(_BLANKS))
        elif start is not None:
            pieces.append(Piece(type="prose", span=(start, end)))
            start = None
        line = after
    if start is not None:
        pieces.append(Piece(type="prose", span=(start, end)))
    return Parsed(text=text, headings=(), pieces=tuple(pieces), origins=origins)


PARSER = Parser(name="text", title="plain text", suffixes=(".txt",), parse=parse)
