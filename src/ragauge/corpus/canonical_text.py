"""Canonical text: decoding sources, tables of lines, and writing text with its origins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ragauge.errors import RagaugeError
from ragauge.files.fields import FieldError

BOM = b"\xef\xbb\xbf"

OriginRun = tuple[int, int, int]
"""From a byte of the text, a character of the source, and how many bytes are alike."""
Atom = tuple[str, int | None]
"""A bit of text, and the character of the source that it comes from, if it comes from there."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_LINE_END_BYTES = re.compile(rb"\r\n|\r|\n")
_SURROGATE = re.compile("[\ud800-\udfff]")


def without_bom(source: bytes) -> bytes:
    """Remove a byte order mark of UTF-8."""
    return source.removeprefix(BOM)


def kept_text(source: bytes) -> tuple[bytes, str, tuple[OriginRun, ...]]:
    """A text whose bytes stay as they are but for a byte order mark: bytes, words and origins."""
    text = without_bom(source)
    try:
        words = text.decode()
    except UnicodeDecodeError as error:
        message = f"the bytes from {error.start + len(source) - len(text)} on are not UTF-8"
        hint = "convert the file to UTF-8; dropping the bytes would move every offset behind them"
        raise FieldError("bad-encoding", message, hint) from error
    return text, words, () if text is source else ((0, len(BOM), len(text)),)


def missing_package(what: str) -> RagaugeError:
    """Build the error for a format that needs a package which is not installed."""
    why = f"{what} needs a package that is not installed"
    return RagaugeError.of("missing-extra", why, hint="pip install 'ragauge[corpus]'")


def utf8(source: bytes) -> str:
    """Decode UTF-8 strictly; bytes that are not UTF-8 are an error that names the first."""
    try:
        return source.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the byte at offset {error.start} is not UTF-8"
        raise FieldError("bad-encoding", message, "convert the file to UTF-8") from error


def well_formed(text: str) -> str:
    """Replace surrogates that have no partner, which UTF-8 cannot hold; join those that have."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def lines_of(text: str) -> list[str]:
    """The lines of a text without their ends, which are only CRLF, CR and LF."""
    return _LINE_END.split(text)


def line_starts(text: bytes) -> list[int]:
    """The first byte of each line; lines end at CRLF, CR or LF and nothing else."""
    return [0, *(line_end.end() for line_end in _LINE_END_BYTES.finditer(text))]


def trimmed(text: bytes, start: int, end: int) -> tuple[int, int]:
    """Shrink an extent: whole blank lines before it and all white space behind it go.

    The indentation of its first line stays.
    """
    inside = text[start:end]
    end = start + len(inside.rstrip(b" \t\r\n"))
    blank = len(inside) - len(inside.lstrip(b" \t\r\n"))
    if start + blank >= end:
        return end, end
    last_break = max(inside.rfind(b"\n", 0, blank), inside.rfind(b"\r", 0, blank))
    return start + last_break + 1, end


def stripped(atoms: Sequence[Atom], *, lines: bool = False) -> list[Atom]:
    """Atoms without the white space around them; of lines the first keeps its indentation."""
    text = "".join(part for part, _ in atoms)
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    if start >= end:
        return []
    if lines:
        start = text.rfind("\n", 0, start) + 1
    inner: list[Atom] = []
    at = 0
    for part, origin in atoms:
        first, last = max(start - at, 0), min(end - at, len(part))
        if first < last:
            inner.append((part[first:last], None if origin is None else origin + first))
        at += len(part)
    return inner


class TextWriter:
    """Writes canonical text block by block and records where each run of it came from.

    Neighbouring atoms become one run where the source goes on as well, so that a page of plain
    text has a handful of runs and not one for each word.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._runs: list[list[int]] = []
        self._characters = 0  # of the last run
        self.length = 0

    def add(self, atoms: Iterable[Atom]) -> tuple[int, int]:
        """Write atoms and return the extent that they cover."""
        start = self.length
        for text, origin in atoms:
            size = len(text.encode("utf-8"))
            if origin is not None and size:
                self._run(origin, size, len(text))
            self._parts.append(text)
            self.length += size
        return start, self.length

    def _run(self, origin: int, size: int, characters: int) -> None:
        if self._runs:
            start, source, length = self._runs[-1]
            if start + length == self.length and source + self._characters == origin:
                self._runs[-1][2] += size
                self._characters += characters
                return
        self._runs.append([self.length, origin, size])
        self._characters = characters

    def block(self, atoms: Sequence[Atom]) -> tuple[int, int]:
        """Write atoms as a block of its own, a blank line away from what is there."""
        if self.length:
            self.add([("\n\n", None)])
        return self.add(atoms)

    @property
    def text(self) -> bytes:
        """What was written."""
        return "".join(self._parts).encode("utf-8")

    @property
    def origins(self) -> tuple[OriginRun, ...]:
        """The runs in order."""
        return tuple((start, source, length) for start, source, length in self._runs)
