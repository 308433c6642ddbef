"""Standard output and standard error: what is printed leaves through here, and is made safe here.

Ids, texts and file names come from other people's files. A terminal obeys the control characters
in them, and a CI service the lines that look like its commands.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO, cast

import click

from ragauge.report.terminal.console import StyledText
from ragauge.text import UNSAFE, plain

if TYPE_CHECKING:
    from ragauge.model.report import Syntax

_CI = ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
"""The variables of services that read commands in the output of a step."""
# The runner of GitHub compares by culture, which passes over characters without width.
_WIDTHLESS = "\u00ad\u034f\u180b-\u180f\u200b-\u200f\u2060-\u206f\ufe00-\ufe0f\ufeff"
# Without line ends: from each of many empty lines all others would be looked at.
_BLANKS = rf"(?:[^\S\r\n]|[{_WIDTHLESS}])*"
_COMMAND = re.compile(rf"((?:\A|(?<=[\r\n])){_BLANKS})(:)(?=[{_WIDTHLESS}]*(?::|\Z))")
"""`::error::`, which the runner takes behind any blanks; also where the next write may go on."""
_OLD_COMMAND = re.compile(rf"(#[{_WIDTHLESS}]*#[{_WIDTHLESS}]*[A-Za-z]{{0,20}})(\[)")
"""`##[error]`, `##vso[` and `##teamcity[`, which services find anywhere in a line."""
_BLANK_LINE = re.compile(_BLANKS)
_LINE_END = re.compile(r"[\r\n]")
_LONGEST_OLD = 40
_COLORS = re.compile("(\x1b\\[[0-9;]*m)")
_CLEAR_LINE = "\r\x1b[K"


def _as_text(match: re.Match[str]) -> str:
    character = match[match.lastindex or 0]
    return f"\\x{ord(character):02x}" if character in ":[" else ascii(character)[1:-1]


def _as_json(match: re.Match[str]) -> str:
    # Outside of strings JSON has none of these characters, so the value stays the same.
    return f"\\u{ord(match[match.lastindex or 0]):04x}"


def _as_xml(match: re.Match[str]) -> str:
    return f"&#{ord(match[match.lastindex or 0])};"


_ESCAPES: dict[str, Callable[[re.Match[str]], str]] = {"json": _as_json, "xml": _as_xml}
_FOR_PROGRAMS = ("json", "xml", "csv")


class SafeStream(io.TextIOBase):
    """A stream of the process, through which nothing goes that a terminal or CI would obey.

    What is written is text for people, and always cleaned. `put` also takes what programs read: it
    is cleaned on a terminal, and goes to files and pipes as it is, but for commands of CI. There
    is no `buffer`, by which libraries would get around this.
    """

    def __init__(self, stream: TextIO) -> None:
        self.behind = stream
        self._in_ci = any(os.environ.get(name) for name in _CI)
        self._line = ""

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The encoding of the stream behind it."""
        return self.behind.encoding or "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        """What happens to characters that the encoding lacks."""
        return self.behind.errors or "strict"

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self.behind.isatty()

    def fileno(self) -> int:
        """The file descriptor of the stream behind it."""
        return self.behind.fileno()

    def writable(self) -> bool:
        """It is there to be written to."""
        return True

    def flush(self) -> None:
        """Flush the stream behind it."""
        self.behind.flush()

    def close(self) -> None:
        """Leave the stream behind it open: it belongs to the process."""

    @property
    def is_read_by_ci(self) -> bool:
        """Whether a CI service looks for commands in it: in all but files."""
        try:
            return self._in_ci and not stat.S_ISREG(os.fstat(self.behind.fileno()).st_mode)
        except (OSError, ValueError):  # no file at all, as where tests collect the output
            return self._in_ci

    def write(self, text: str) -> int:
        """Write text for people."""
        if not isinstance(text, str):
            raise TypeError(f"text is written here, not {type(text).__name__}")
        self.put(text, "text")
        return len(text)

    def put(self, text: str, syntax: Syntax) -> None:
        """Write text of some syntax; colours pass in what `Screen` has drawn."""
        escape = _ESCAPES.get(syntax, _as_text)
        is_exact = syntax in _FOR_PROGRAMS and not self.isatty()
        if not is_exact:
            pieces = _COLORS.split(text) if isinstance(text, StyledText) else [text]
            pieces[::2] = [UNSAFE.sub(escape, piece) for piece in pieces[::2]]
            text = "".join(pieces)
        if syntax != "commands" and (self.is_read_by_ci if is_exact else self._in_ci):
            text = self._without_commands(text, escape)
        self.behind.write(text)

    def show_progress(self, line: str) -> None:
        """Put a line in the place of the last one, on a terminal."""
        self.behind.write(f"{_CLEAR_LINE}{plain(line)}")
        self.behind.flush()

    def _without_commands(self, text: str, escape: Callable[[re.Match[str]], str]) -> str:
        """Escape what CI would run; a line may come in several writes."""

        def escaped(match: re.Match[str]) -> str:
            return match[1] + escape(match)

        before = self._line
        whole = _OLD_COMMAND.sub(escaped, _COMMAND.sub(escaped, before + text))
        line = _LINE_END.split(whole)[-1]
        # Of a line with a word in it, the last characters say whether an old command goes on.
        self._line = "" if _BLANK_LINE.fullmatch(line) else f"x{line[-_LONGEST_OLD:]}"
        return whole[len(before) :]


class _JsonBytes(io.RawIOBase):
    """Bytes of JSON Lines for a stream on which they must be made safe."""

    def __init__(self, stream: SafeStream) -> None:
        self._text = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._text.put(self._decoder.decode(data), "json")
        return len(data)


@contextmanager
def safe_streams() -> Iterator[None]:
    """Let everything that this process prints go through safe streams."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (None if stream is None else _safe(stream) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _safe(stream: TextIO) -> Any:
    return stream if isinstance(stream, SafeStream) else SafeStream(stream)


def print_line(text: str, *, err: bool = False) -> None:
    """Print a line for people; a line end in it, as in an id, begins no line of its own."""
    click.echo(plain(text), err=err)


def print_lines(lines: Iterable[str]) -> None:
    """Print lines for people."""
    for line in lines:
        print_line(line)


def print_text(text: str, syntax: Syntax = "text") -> None:
    """Print what a report made, which ends with a line end."""
    stream = _safe(sys.stdout)
    stream.put(text, syntax)
    stream.flush()


def print_json(document: object, *, indent: int | None = 2) -> None:
    """Print a document as JSON, for people and for programs."""
    print_text(json.dumps(document, indent=indent, ensure_ascii=False) + "\n", "json")


def show_progress(line: str) -> None:
    """Put a line in the place of the last one on standard error, which is a terminal."""
    _safe(sys.stderr).show_progress(line)


def binary_output() -> BinaryIO:
    """Standard output for bytes of JSON Lines: as they are, unless a terminal or CI reads them."""
    stream = _safe(sys.stdout)
    buffer = getattr(stream.behind, "buffer", None)
    is_exact = buffer is not None and not stream.isatty() and not stream.is_read_by_ci
    return cast(BinaryIO, buffer if is_exact else _JsonBytes(stream))
