"""The objects of a JSON file that another tool wrote: lines, an array, or one object."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from ragauge.errors import Place, RagaugeError
from ragauge.files.fields import FieldError
from ragauge.files.open import UnpackedFile, inspect
from ragauge.files.ranges import plan, read_rows
from ragauge.formats.imports.foreign_format import ForeignFile, Row
from ragauge.formats.json_rows import decode_row

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_OF_UTC = datetime(1970, 1, 1)  # without a zone a time is written sooner
_MICROSECOND = timedelta(microseconds=1)
_LATEST = 253_402_300_800 * 10**9  # the year 10000


def json_objects(file: ForeignFile, *inside: str) -> Iterator[Row]:
    """The objects of a file, or those in the lists that an object has under some names."""
    source = inspect(UnpackedFile(file.name, file.path, file.converted))
    first = 1
    for part in plan(source):
        rows = read_rows(source, part)
        if part.first_line is not None:
            first = part.first_line
        at_end = part.end >= source.size
        for index, data in enumerate(rows.data):
            overlong = index in rows.overlong
            if not overlong and not data.strip():
                continue
            cut = at_end and not rows.ended and index == len(rows.data) - 1
            try:
                row = decode_row(data, cut=cut, overlong=overlong)
            except FieldError as error:
                place = Place(file.name, first + rows.line(index))
                raise RagaugeError.of(
                    error.code, error.message, hint=error.hint, place=place
                ) from error
            lists = [row[name] for name in inside if isinstance(row.get(name), list)]
            if lists:
                yield from (
                    entry for entries in lists for entry in entries if isinstance(entry, dict)
                )
            else:
                yield dict(row)
        first += rows.newlines


def iso_time(moment: int) -> str | None:
    """Nanoseconds since 1970 as ISO 8601, in UTC; None for what no calendar has."""
    if not 0 < moment < _LATEST:
        return None
    seconds, rest = divmod(moment, 10**9)
    return (_EPOCH_OF_UTC + timedelta(0, seconds, rest // 1000)).isoformat() + "Z"


def nanoseconds(value: Any) -> int:
    """A time as nanoseconds since 1970: from ISO 8601, seconds, milliseconds or nanoseconds.

    A time without a zone is UTC, as Langfuse and TruLens write it. What is no time is 0.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return int(value) if value.isascii() and value.isdecimal() and len(value) < 20 else 0
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return (moment - _EPOCH) // _MICROSECOND * 1000
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e19:
        return 0
    for limit, factor in ((1e11, 10**9), (1e14, 10**6), (1e17, 10**3)):
        if value < limit:
            return int(value * factor)
    return int(value)


def hex_id(value: Any) -> str | None:
    """The id of a trace or a span in lower hex, whether it was hex, base64 or a decimal number."""
    if not isinstance(value, str) or not value:
        return None
    if len(value) in (12, 24) and value.endswith("="):
        try:
            return base64.b64decode(value, validate=True).hex()
        except binascii.Error:
            return value
    return value.lower()
