"""Reading Parquet as JSON Lines. Its package is an extra, imported when such a file is met."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec

from ragauge.errors import Place, RagaugeError
from ragauge.files.ranges import MAX_LINE

_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_ROWS = 4096
_MOST_AT_ONCE = 32 * 1024 * 1024
"""Bytes of values that are taken out of a batch at a time."""
_SMALL_COLUMN = 16 * 1024 * 1024
_DAMAGED = "the file is damaged or was not written to its end; make it again"

_encoder = msgspec.json.Encoder(decimal_format="number")
_encode, _encode_lines = _encoder.encode, _encoder.encode_lines


def missing_extra(extra: str, package: str, name: str) -> RagaugeError:
    """Build the error for a file whose package is not installed."""
    message = f"`{name}` needs the package {package}, which is not installed"
    return RagaugeError.of("missing-extra", message, hint=f'pip install "ragauge[{extra}]"')


class _ParquetColumn(NamedTuple):
    """A column: its name, the type that is read, and what makes JSON of a value, if anything."""

    name: str
    kind: Any
    convert: Callable[[Any], Any] | None

    def values(self, array: Any) -> list[Any]:
        if array.type != self.kind:
            array = array.cast(self.kind, safe=False)
        return _convert_all(array.to_pylist(), self.convert)


def parquet_lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Yield the rows of a Parquet file as JSON Lines: row i, from 1, is line i."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise missing_extra("parquet", "pyarrow", name) from error
    try:
        table = parquet.ParquetFile(file)
        columns = [_column(field, name) for field in table.schema_arrow]
        if not columns:
            raise _bad_parquet(name, f"`{name}` has no columns", "write the fields as columns")
        _refuse_equal_names(columns, name)
        first, rows = 1, _batch_rows(table.metadata)
        for group in range(table.metadata.num_row_groups):
            part = parquet.ParquetFile(
                file,
                metadata=table.metadata,
                buffer_size=_BATCH_BYTES // 4,
                pre_buffer=False,
                page_checksum_verification=True,
                read_dictionary=_small_texts(table.metadata.row_group(group)),
            )
            for whole in part.iter_batches(rows, row_groups=[group], use_threads=False):
                for batch in _parts(whole, Place(name, first)):
                    yield _batch_lines(batch, columns, Place(name, first))
                    first += batch.num_rows
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        message = f"`{name}` cannot be read: {first_line(error)}"
        raise _bad_parquet(name, message, _DAMAGED) from error


def _refuse_equal_names(columns: list[_ParquetColumn], name: str) -> None:
    names = [column.name for column in columns]
    twice = [one for place, one in enumerate(names) if one in names[:place]]
    if twice:
        message = f"two columns of `{name}` are called `{twice[0]}`"
        raise _bad_parquet(name, message, "keep one of them, or give it another name")


def _small_texts(group: Any) -> list[str]:
    """The columns of text that take few bytes in a group of rows.

    They are read as dictionaries, until it is known how much they stand for: some kilobytes can
    name one long text thousands of times. Larger columns would take twice the time that way, and
    far more memory.
    """
    columns = (group.column(index) for index in range(group.num_columns))
    return [
        column.path_in_schema
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and column.total_uncompressed_size < _SMALL_COLUMN
    ]


def _parts(batch: Any, first: Place) -> Iterator[Any]:
    """A batch in parts that are small when each value is written out."""
    import pyarrow

    size = sum(_written_out(array) for array in batch.columns)
    if batch.num_rows > 1 and size > _MOST_AT_ONCE:
        half = batch.num_rows // 2
        # Taken, not sliced: a slice of lists is decoded with all values of the whole.
        yield from _parts(batch.take(pyarrow.array(range(half))), first)
        below = Place(first.file, (first.line or 1) + half)
        yield from _parts(batch.take(pyarrow.array(range(half, batch.num_rows))), below)
    elif size > MAX_LINE:
        message = f"the row is longer than {MAX_LINE // 2**20} MiB"
        hint = "the row holds a whole document, or one many times: write less into a row"
        raise RagaugeError.of("line-too-long", message, hint=hint, place=first)
    else:
        yield batch


def _written_out(array: Any) -> int:
    """The bytes of an array's values if none of them is shared."""
    from pyarrow import compute, types

    if types.is_dictionary(array.type) and len(array.dictionary):
        lengths = compute.binary_length(array.dictionary)
        return compute.sum(compute.take(lengths, array.indices)).as_py() or 0
    if types.is_map(array.type):
        return _written_out(array.keys) + _written_out(array.items)
    if types.is_nested(array.type) and hasattr(array, "flatten"):
        inner = array.flatten()
        return sum(map(_written_out, inner if isinstance(inner, list) else [inner]))
    return int(array.nbytes)


def _batch_rows(metadata: Any) -> int:
    """How many rows to hold at a time: fewer where rows are wide."""
    groups = range(metadata.num_row_groups)
    size: int = sum(metadata.row_group(index).total_byte_size for index in groups)
    width = size // max(int(metadata.num_rows), 1) + 1
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // width))


def _batch_lines(batch: Any, columns: list[_ParquetColumn], first: Place) -> bytes:
    names = [column.name for column in columns]
    try:
        values = [
            column.values(array) for column, array in zip(columns, batch.columns, strict=True)
        ]
        rows = zip(*values, strict=True)
        return _encode_lines([dict(zip(names, row, strict=True)) for row in rows])
    except (ValueError, OverflowError, TypeError) as error:
        _name_the_row(batch, columns, first)
        message = f"rows of `{first.file}` cannot be read: {first_line(error)}"
        raise _bad_parquet(first.file, message, _DAMAGED) from error


def _name_the_row(batch: Any, columns: list[_ParquetColumn], first: Place) -> None:
    """Raise for the first value of a batch that has no JSON form."""
    for index in range(batch.num_rows):
        for column, array in zip(columns, batch.columns, strict=True):
            try:
                _encode_lines(column.values(array.slice(index, 1)))
            except (ValueError, OverflowError, TypeError) as error:
                row = (first.line or 1) + index
                raise RagaugeError.of(
                    "bad-parquet",
                    f"column `{column.name}` of row {row} cannot be read: {first_line(error)}",
                    hint="write null where there is no value, and text as UTF-8",
                    place=Place(first.file, row),
                ) from error


def _column(field: Any, name: str) -> _ParquetColumn:
    try:
        return _ParquetColumn(field.name, kind := _readable(field.type), _converter(kind))
    except TypeError as error:
        raise _bad_parquet(
            name,
            f"column `{field.name}` of `{name}` has the type {error}, which has no JSON form",
            "leave the column out, or write it as text",
        ) from error


def _readable(kind: Any) -> Any:
    """A type whose values Python knows: no nanoseconds, and no time zone but UTC."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(kind):
        return _readable(kind.value_type)
    if types.is_timestamp(kind):
        unit = "us" if kind.unit == "ns" else kind.unit
        return pa.timestamp(unit, kind.tz and "UTC")
    if types.is_time64(kind):
        return pa.time64("us")
    if types.is_duration(kind):
        return pa.duration("us")
    if str(kind) in ("string_view", "binary_view"):  # older releases have no name for these
        return pa.large_string() if str(kind) == "string_view" else pa.large_binary()
    if types.is_struct(kind):
        return pa.struct([field.with_type(_readable(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_readable(kind.key_type), _readable(kind.item_type))
    if types.is_fixed_size_list(kind):
        return pa.list_(_readable(kind.value_type), kind.list_size)
    if types.is_large_list(kind):
        return pa.large_list(_readable(kind.value_type))
    return pa.list_(_readable(kind.value_type)) if types.is_list(kind) else kind


def _converter(kind: Any) -> Callable[[Any], Any] | None:
    """What makes JSON of a value of a type; None: it is JSON, or the encoder knows it."""
    import pyarrow
    from pyarrow import types

    if isinstance(kind, pyarrow.BaseExtensionType):
        is_uuid = kind.extension_name == "arrow.uuid"
        return None if is_uuid else _converter(kind.storage_type)
    if types.is_dictionary(kind):
        return _converter(kind.value_type)
    if types.is_floating(kind):
        return finite
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return bytes.decode
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        inner = _converter(kind.value_type)
        return None if inner is None else lambda values: _convert_all(values, inner)
    if types.is_map(kind):
        key, item = _converter(kind.key_type), _converter(kind.item_type)
        return lambda pairs: _map_object(
            [(_map_key(name, key), _convert_all([value], item)[0]) for name, value in pairs]
        )
    if types.is_struct(kind):
        fields = {field.name: _converter(field.type) for field in kind}
        return lambda row: {
            name: _convert_all([row[name]], convert)[0] for name, convert in fields.items()
        }
    plain = ("string", "large_string", "integer", "boolean", "null", "decimal", "temporal")
    if not any(getattr(types, f"is_{name}")(kind) for name in plain):
        raise TypeError(str(kind))
    return None


def _convert_all(values: list[Any], convert: Callable[[Any], Any] | None) -> list[Any]:
    if convert is None:
        return values
    return [None if value is None else convert(value) for value in values]


def finite(value: float) -> float:
    """Return a number that JSON has, or raise a ValueError."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a number that JSON has")
    return number


def _map_object(pairs: list[tuple[str, Any]]) -> Any:
    """The object of a map. A key that stands twice does so in JSON too, where rows are judged."""
    mapping = dict(pairs)
    if len(mapping) == len(pairs):
        return mapping
    members = (_encode(name) + b":" + _encode(value) for name, value in pairs)
    return msgspec.Raw(b"{" + b",".join(members) + b"}")


def _map_key(key: Any, convert: Callable[[Any], Any] | None) -> str:
    value = _convert_all([key], convert)[0]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode().strip('"')


def first_line(error: Exception) -> str:
    """What an error says, in one line."""
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__


def _bad_parquet(name: str, message: str, hint: str) -> RagaugeError:
    return RagaugeError.of("bad-parquet", message, hint=hint, place=Place(name))
