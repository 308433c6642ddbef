"""Unpacking gzip and zstd, and how much of what is unpacked, converted or piped is taken.

What unpacks takes an open file and the name to report it by, and yields the bytes that it holds.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from msgspec import Struct

from ragauge.errors import Place, RagaugeError
from ragauge.files.parquet_reader import missing_extra
from ragauge.files.ranges import MAX_LINE

_STEP = 64 * 1024
_ZSTD_STEP = 4 * 1024  # zstd packs up to 128 KiB into four bytes
_DAMAGED = "the file is damaged or was not written to its end; make it again"


GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
"""The bytes that packed files and Parquet begin with."""

_SIZE = re.compile(r"([0-9]{1,15})\s?([KMGT]?)(?:i?B)?", re.IGNORECASE)
_LOOK_EVERY = 16 * 1024 * 1024  # bytes written between two looks at the free space
_ALWAYS_TRIED = 64 * 1024 * 1024


class CopyLimits(Struct, frozen=True, kw_only=True):
    """How much may be written to a temporary file.

    No more than `size` bytes if they are also more than `ratio` times the size of the file that
    they come from; and only while `reserve` bytes stay free in the folder. Small copies are always
    tried, since many containers have a small folder for temporary files.
    """

    size: int = 2 * 1024**3
    ratio: int = 500
    reserve: int = 1024**3

    @classmethod
    def from_environment(cls) -> CopyLimits:
        """The limits as the environment sets them.

        They are not in `ragauge.toml`: whoever sends the file that is too large may send that too.
        """
        usual = cls()
        return cls(
            size=_setting("RAGAUGE_UNPACK_LIMIT", usual.size),
            ratio=_setting("RAGAUGE_UNPACK_RATIO", usual.ratio),
            reserve=_setting("RAGAUGE_DISK_RESERVE", usual.reserve),
        )


def _setting(variable: str, default: int) -> int:
    text = os.environ.get(variable, "").strip()
    match = _SIZE.fullmatch(text)
    if match is None and text:
        message = f"`{variable}` must be a whole number, got `{text}`"
        hint = "for example 500, 800MB or 4GiB; K, M, G and T are powers of 1024"
        raise RagaugeError.of("usage", message, hint=hint)
    if match is None:
        return default
    return int(match[1]) << 10 * " KMGT".index(match[2].upper() or " ")


def bounded(
    chunks: Iterable[bytes], name: str, *, packed: int | None, folder: str, limits: CopyLimits
) -> Iterator[bytes]:
    """Yield chunks that are to be written to a folder, and raise before one is too much.

    `packed` is the size of the file that they come from; None where they are copied as they are.
    """
    written = looked = 0
    is_begun, has_lines = False, True
    line, since = 1, 0  # the line that is being written, and its bytes so far
    for chunk in chunks:
        if not is_begun and (head := chunk[:64].lstrip()):
            is_begun, has_lines = True, _has_lines(head)
        if has_lines:
            end = chunk.find(b"\n")
            if since + (len(chunk) if end < 0 else end) > MAX_LINE:
                raise _endless_line(name, line)
            since = since + len(chunk) if end < 0 else len(chunk) - chunk.rfind(b"\n") - 1
            line += chunk.count(b"\n")
        written += len(chunk)
        if packed is not None and written > max(limits.size, limits.ratio * packed):
            raise _too_large(name, packed, limits)
        if written > _ALWAYS_TRIED and written - looked > _LOOK_EVERY:
            looked = written
            if shutil.disk_usage(folder).free - len(chunk) < limits.reserve:
                raise _no_space(name, folder, limits)
        yield chunk


def _has_lines(head: bytes) -> bool:
    """Whether what begins like this has lines: packed files have none, a JSON array need not."""
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return not begin.startswith((GZIP, ZSTD, PARQUET, b"["))


def _endless_line(name: str, line: int) -> RagaugeError:
    message = f"the line is longer than {MAX_LINE // 2**20} MiB"
    hint = "a newline is missing, or the row holds a whole document: write one row per line"
    return RagaugeError.of("line-too-long", message, hint=hint, place=Place(name, line))


def _too_large(name: str, packed: int, limits: CopyLimits) -> RagaugeError:
    message = (
        f"`{name}` has {_shown(packed)} and unpacks to more than {_shown(limits.size)}, "
        f"which is more than {limits.ratio} times its size"
    )
    hint = "if that is meant, unpack it yourself, or raise RAGAUGE_UNPACK_LIMIT (such as 8GiB)"
    return RagaugeError.of("unpacks-too-large", message, hint=hint, place=Place(name))


def _no_space(name: str, folder: str, limits: CopyLimits) -> RagaugeError:
    message = (
        f"`{name}` cannot be copied to a temporary file: less than {_shown(limits.reserve)} would "
        f"be left in `{folder}`"
    )
    hint = "name a folder with more space in TMPDIR, or lower RAGAUGE_DISK_RESERVE (such as 100MB)"
    return RagaugeError.of("file-unreadable", message, hint=hint)


def _shown(size: int) -> str:
    amount, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if amount >= 1024:
            amount, unit = amount / 1024, larger
    return f"{amount:.4g} {unit}"


def gzip_chunks(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield what a gzip file holds, member by member."""
    try:
        with gzip.open(file, "rb") as stream:
            while chunk := stream.read(_STEP):
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        message = f"`{name}` cannot be unpacked: {error}"
        raise RagaugeError.of("bad-gzip", message, hint=_DAMAGED, place=Place(name)) from error


def zstd_chunks(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield what a zstd file holds, frame by frame."""
    start, failure = _zstd(name)
    frame, rest = start(), b""
    inside = False
    try:
        while data := rest or file.read(_ZSTD_STEP):
            yield frame.decompress(data)
            rest, inside = frame.unused_data, not frame.eof
            if frame.eof:
                frame = start()
    except failure as error:
        raise _bad_zstd(name, str(error)) from error
    if inside:  # the package does not mind a frame that has no end
        raise _bad_zstd(name, "it ends in the middle of a frame")


def _zstd(name: str) -> tuple[Callable[[], Any], type[Exception]]:
    """What starts to unpack a frame, and what it raises; Python has both itself from 3.14 on."""
    try:
        import zstandard

        unpacker = zstandard.ZstdDecompressor()
        return unpacker.decompressobj, zstandard.ZstdError
    except ImportError:
        pass
    try:
        import importlib

        zstd = importlib.import_module("compression.zstd")
    except ImportError as error:
        raise missing_extra("zstd", "zstandard", name) from error
    return zstd.ZstdDecompressor, zstd.ZstdError


def _bad_zstd(name: str, reason: str) -> RagaugeError:
    message = f"`{name}` cannot be unpacked: {reason}"
    return RagaugeError.of("bad-zstd", message, hint=_DAMAGED, place=Place(name))
