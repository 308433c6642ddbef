"""Migration maps as files: JSON Lines, a header first, then a row for each thing that moved."""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

from ragauge.errors import Place, Problem, RagaugeError
from ragauge.files.atomic_write import atomic_file
from ragauge.files.fields import FieldError
from ragauge.files.open import opened
from ragauge.files.ranges import Source, rows_of
from ragauge.formats.json_rows import decode_row
from ragauge.model.migration import SCHEMA, Header, MapRow, MigrationMap


def write_map(name: str | os.PathLike[str], migration: MigrationMap) -> None:
    """Write a map; the same map gives the same bytes."""
    write_rows(name, [migration.header, *migration.rows])


def write_rows(name: str | os.PathLike[str], rows: Iterable[Header | MapRow]) -> None:
    """Write rows as JSON Lines."""
    with atomic_file(name) as file:
        file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)


def read_map(name: str | os.PathLike[str]) -> MigrationMap:
    """Read a map that `ragauge corpus diff` wrote."""
    with opened(name) as source:
        if source.layout not in ("lines", "empty"):
            raise _unusable(source, None, "it is not a migration map")
        return _read(source)


def _read(source: Source) -> MigrationMap:
    header: Header | None = None
    rows: list[MapRow] = []
    decode_header = msgspec.json.Decoder(Header).decode
    decode = msgspec.json.Decoder(MapRow).decode
    for line, data, cut, overlong in rows_of(source):
        try:
            if overlong:
                decode_row(data, cut=cut, overlong=overlong)
            if header is None:
                header = decode_header(data)
                continue
            row = decode(data)
        except FieldError as error:
            place = Place(source.name, line)
            problem = Problem(error.code, error.message, error.hint, place)
            raise RagaugeError([problem]) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _unusable(source, line, str(error)) from error
        _check(source, line, row)
        rows.append(row)
    if header is None:
        raise _unusable(source, None, "it is empty")
    if header.schema != SCHEMA:
        why = f"its schema is `{header.schema}`, this version reads `{SCHEMA}`"
        raise _unusable(source, 1, why)
    # The sum only, not the counts by kind: a row corrected by hand may be of another kind, but a
    # file that was cut off has fewer.
    counted = sum(sum(kinds.values()) for kinds in header.counts.values())
    if counted != len(rows):
        raise _unusable(source, None, f"it has {len(rows)} rows, its header counts {counted}")
    return MigrationMap(header, tuple(rows))


def _check(source: Source, line: int, row: MapRow) -> None:
    """Hold a row to what its kind says: people may correct rows by hand."""
    wrong = None
    if not 0 <= row.confidence <= 1:
        wrong = f"the confidence must be from 0 to 1, got {row.confidence}"
    elif bool(row.new) == (row.kind == "unmapped"):
        wrong = f"a row of the kind {row.kind} has {len(row.new)} new places"
    elif any(not 3 <= len(run) <= 5 for place in row.new for run in place.runs or ()):
        wrong = "a run has three numbers, four or five"
    elif any(min(run) < 0 for place in row.new for run in place.runs or ()):
        wrong = "no number of a run is below 0"
    if wrong is not None:
        raise _unusable(source, line, wrong)


def _unusable(source: Source, line: int | None, why: str) -> RagaugeError:
    message = f"the migration map cannot be used: {why}"
    hint = "make it again with `ragauge corpus diff OLD NEW -o MAP`"
    return RagaugeError.of("bad-field", message, hint=hint, place=Place(source.name, line))
