"""Opening files: the kind of a file, and how it becomes a source that can be read in ranges.

JSON is read where it lies. Everything else (packed files, Parquet, YAML, CSV, pipes, standard
input) is written to a temporary file first, up to limits, which is gone when the source is closed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from ragauge.errors import Place, RagaugeError
from ragauge.files import csv_reader, parquet_reader, unpack, yaml_reader
from ragauge.files.ranges import MAX_LINE, Layout, Source
from ragauge.files.temporary_file import temporary_file

_STEP = 64 * 1024
_UTF8_BOM = b"\xef\xbb\xbf"

Reading = Callable[[BinaryIO, str], Iterable[bytes]]
"""Takes an open file and its name, and yields the bytes to read in its place."""


class UnpackedFile(NamedTuple):
    """A file as it is after unpacking: how the user wrote its name, and where its bytes are now.

    `converted`: they are JSON Lines that were made of a file of another kind.
    """

    name: str
    path: str
    converted: bool


@contextmanager
def opened(name: str | os.PathLike[str]) -> Iterator[Source]:
    """Yield the source behind a file name; `-` is standard input."""
    with unpacked(name) as file:
        yield inspect(file)


@contextmanager
def unpacked(name: str | os.PathLike[str]) -> Iterator[UnpackedFile]:
    """Yield a file whose bytes can be read in any order, whatever they are."""
    path = os.fspath(name)
    with ExitStack() as stack:
        if path == "-":
            display_name = "<stdin>"
            path = stack.enter_context(_spooled(_chunks(sys.stdin.buffer), display_name, None))
        else:
            # A name of odd bytes can be opened, but not written into a report as it is.
            display_name = os.fsencode(path).decode("utf-8", "replace")
            _check_file(display_name, Path(path))
        try:
            if not os.path.isfile(path):  # a pipe: it can be read once, and from the start
                pipe = stack.enter_context(open(path, "rb"))
                path = stack.enter_context(_spooled(_chunks(pipe), display_name, None))
            packed = os.path.getsize(path)
            for find_reading in (_unpacking, _converting):
                with open(path, "rb") as file:
                    reading = find_reading(file.read(_STEP), display_name)
                    if reading is not None:
                        file.seek(0)
                        path = stack.enter_context(
                            _spooled(reading(file, display_name), display_name, packed)
                        )
        except OSError as error:
            raise _unreadable(display_name, error) from error
        # What was converted is JSON Lines, even if its first line begins as an array does.
        yield UnpackedFile(display_name, path, reading is not None)


def _unpacking(head: bytes, _: str) -> Reading | None:
    """How a packed file is unpacked: recognised by its first bytes, whatever its name is."""
    if head.startswith(unpack.GZIP):
        return unpack.gzip_chunks
    return unpack.zstd_chunks if head.startswith(unpack.ZSTD) else None


def _converting(head: bytes, name: str) -> Reading | None:
    """How a file of another kind becomes JSON Lines; YAML and CSV are recognised by their names."""
    if head.startswith(unpack.PARQUET):
        return parquet_reader.parquet_lines
    if _is_table(name):
        body = head.removeprefix(_UTF8_BOM).lstrip()
        # Judgements and runs of TREC are often called .tsv; JSON has no header.
        is_other = body[:1] in (b"{", b"[", b"") or _columns(body.split(b"\n", 1)[0]) != "lines"
        return None if is_other else csv_reader.csv_lines
    return yaml_reader.yaml_lines if _inner_name(name).endswith((".yaml", ".yml")) else None


def _inner_name(name: str) -> str:
    """The name of a file without what says that it is packed, in lower case."""
    return name.lower().removesuffix(".gz").removesuffix(".zst")


def _is_table(name: str) -> bool:
    return _inner_name(name).endswith(csv_reader.SUFFIXES)


def _check_file(name: str, path: Path) -> None:
    try:
        is_dir, exists = path.is_dir(), path.exists()
    except OSError as error:
        raise _unreadable(name, error) from error
    if is_dir:
        hint = "name a file inside it; a BEIR folder is one with qrels/*.tsv in it"
        raise RagaugeError.of("file-unreadable", f"`{name}` is a folder", hint=hint)
    if not exists:
        near = _near_names(path)
        hint = f"did you mean {near}?" if near else "check the path and the current folder"
        raise RagaugeError.of("file-not-found", f"there is no file `{name}`", hint=hint)


def _near_names(path: Path) -> str:
    import difflib

    parent = path.parent
    if not parent.is_dir():
        return ""
    names = sorted(entry.name for entry in parent.iterdir() if entry.is_file())
    return ", ".join(
        f"`{parent / name}`" for name in difflib.get_close_matches(path.name, names, 2)
    )


def _unreadable(name: str, error: OSError) -> RagaugeError:
    message = f"`{name}` cannot be read: {error.strerror or error}"
    return RagaugeError.of("file-unreadable", message, hint="check the permissions of the file")


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(_STEP):
        yield chunk


@contextmanager
def _spooled(chunks: Iterable[bytes], name: str, packed: int | None) -> Iterator[str]:
    """Copy chunks to a temporary file, so that they can be read in ranges, in any order.

    `packed` is the size of the file that they are made of; None where they are copied as they are.
    """
    limits = unpack.CopyLimits.from_environment()
    with ExitStack() as stack:
        try:
            copy = stack.enter_context(temporary_file())
            folder = tempfile.gettempdir()
            for chunk in unpack.bounded(chunks, name, packed=packed, folder=folder, limits=limits):
                copy.file.write(chunk)
            copy.file.flush()
        except OSError as error:
            raise _no_copy(name, error) from error
        yield copy.path


def _no_copy(name: str, error: OSError) -> RagaugeError:
    message = f"`{name}` cannot be copied to a temporary file: {error.strerror or error}"
    hint = "check the space in the folder for temporary files, or name another in TMPDIR"
    return RagaugeError.of("file-unreadable", message, hint=hint)


def inspect(file: UnpackedFile) -> Source:
    """The source that an unpacked file is: its layout, and what is odd about its first bytes."""
    name, path, converted = file
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as stream:
            head = stream.read(_STEP)
    except OSError as error:
        raise _unreadable(name, error) from error
    if converted:
        layout: Layout = "lines" if size else "empty"
        return Source(name, path, 0, size, layout, (), _is_table(name))
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or (b"\0" in head[:4] and len(head) > 3):
        message = f"`{name}` looks like UTF-16 or UTF-32"
        hint = "convert it to UTF-8 (for example with `iconv -t UTF-8`)"
        raise RagaugeError.of("bad-encoding", message, hint=hint, place=Place(name, 1))
    notes = []
    start = 0
    if head.startswith(_UTF8_BOM):
        start = len(_UTF8_BOM)
        notes.append("byte order mark at the start")
    if b"\r\n" in head:
        notes.append("CRLF line ends")
    return Source(name, path, start, size, _layout(head[start:], path, start), tuple(notes))


def _layout(head: bytes, path: str, start: int) -> Layout:
    body = head.lstrip()
    if not body:
        return "empty" if len(head) < _STEP - len(_UTF8_BOM) else "lines"
    if body.startswith(b"["):
        return "array"
    # A pretty-printed single object opens with a line that is not an object of its own.
    first = body.split(b"\n", 1)[0].rstrip()
    if first == b"{" or (first.startswith(b"{") and first.endswith((b",", b"[", b"{"))):
        with open(path, "rb") as file:
            file.seek(start)
            whole = file.read(MAX_LINE)
        try:
            if isinstance(msgspec.json.decode(whole), dict):
                return "object"
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    return _columns(first)


def _columns(first: bytes) -> Layout:
    """Whether the first line has the columns of TREC: judgements have four, a run has six.

    BEIR's judgements have three, under a heading.
    """
    if first.startswith(b"{"):
        return "lines"  # a row of JSON, even where it has six words and a number is the fifth
    words = first.split()
    try:
        if words == [b"query-id", b"corpus-id", b"score"]:
            return "qrels"
        if len(words) == 4 and int(words[3]) is not None:
            return "qrels"
        if len(words) == 6 and float(words[4]) is not None:
            return "run"
    except ValueError:
        pass
    return "lines"


PathLike = str | os.PathLike[str]
