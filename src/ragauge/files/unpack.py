"""Unpacking gzip and zstd.

Each function takes an open file and the name to report it by, and yields the bytes that it holds.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from ragauge.errors import Place, RagaugeError
from ragauge.files.parquet_reader import missing_extra

_STEP = 64 * 1024
_ZSTD_STEP = 4 * 1024  # zstd packs up to 128 KiB into four bytes
_DAMAGED = "the file is damaged or was not written to its end; make it again"


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
