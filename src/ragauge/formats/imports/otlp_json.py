"""OTLP as JSON: the body of a request, or one such body a line, as file exporters write it.

Decoded into typed structs: protobuf's own reader of JSON takes 48 times as long. Lines are decoded
where they lie in a block of the file, and a document of any size part by part, so that memory
does not grow with the file.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import msgspec
from msgspec import Raw, Struct

from ragauge.errors import Place, RagaugeError
from ragauge.files.json_faults import error_offset
from ragauge.formats.imports.foreign_format import ForeignFile
from ragauge.formats.imports.json_file import hex_id
from ragauge.formats.imports.span import BODY, NO_ATTRIBUTES, TraceSpan, first_line

_BLOCK = 4 * 1024 * 1024
_LARGE = 16 * 1024 * 1024
"""What is larger is decoded part by part."""
_UTF8_BOM = b"\xef\xbb\xbf"
_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_FINE = (None, 0, 1)

Number = int | float | str | None


class _AnyValue(Struct, gc=False):
    stringValue: str | None = None  # noqa: N815
    intValue: Number = None  # noqa: N815
    doubleValue: Number = None  # noqa: N815
    boolValue: bool | None = None  # noqa: N815
    arrayValue: _Values | None = None  # noqa: N815
    kvlistValue: _KeyValues | None = None  # noqa: N815


class _Values(Struct, gc=False):
    values: list[_AnyValue] = []


class _KeyValue(Struct, gc=False):
    key: str = ""
    value: _AnyValue | None = None


class _KeyValues(Struct, gc=False):
    values: list[_KeyValue] = []


class _Status(Struct, gc=False):
    code: int | str | None = None
    message: str | None = None


class _Event(Struct, gc=False):
    name: str | None = None
    attributes: list[_KeyValue] = []


class _JsonSpan(Struct, gc=False):
    traceId: str = ""  # noqa: N815
    spanId: str = ""  # noqa: N815
    parentSpanId: str | None = None  # noqa: N815
    name: str | None = None
    startTimeUnixNano: Number = 0  # noqa: N815
    endTimeUnixNano: Number = 0  # noqa: N815
    attributes: list[_KeyValue] | None = None
    droppedAttributesCount: Number = 0  # noqa: N815
    status: _Status | None = None
    events: Raw = Raw(b"[]")


class _Resource(Struct, gc=False):
    attributes: list[_KeyValue] | None = None


class _ScopeSpans(Struct, gc=False):
    spans: list[Raw] | None = None


class _ResourceSpans(Struct, gc=False):
    resource: _Resource | None = None
    scopeSpans: list[_ScopeSpans] | None = None  # noqa: N815
    instrumentationLibrarySpans: list[_ScopeSpans] | None = None  # noqa: N815


class _Body(Struct, gc=False):
    """A request; Tempo calls the list `batches`. Lines of metrics and logs have neither."""

    resourceSpans: list[_ResourceSpans] | None = None  # noqa: N815
    batches: list[_ResourceSpans] | None = None


_decode_body = msgspec.json.Decoder(_Body).decode
_decode_bodies = msgspec.json.Decoder(list[_Body]).decode
_decode_span = msgspec.json.Decoder(_JsonSpan).decode
_decode_events = msgspec.json.Decoder(list[_Event]).decode


def json_spans(file: ForeignFile) -> Iterator[TraceSpan]:
    """The spans of a file: of one body, of a list of them, or of a body a line."""
    with file.open() as stream:
        for number, line in enumerate(_lines(stream), start=1):
            body = None if line.data is None else _line_body(line.data)
            if line.data is not None and body is not None:
                yield from _body_spans(body, line.data, file.name, number)
            elif line.data is None:
                data = _mapped(file, line.start, line.end)
                yield from _document_spans(data, file.name, number)
            elif bytes(line.data).strip():  # not a body a line: a body or a list over many lines
                data = _mapped(file, line.start, os.path.getsize(file.path))
                yield from _document_spans(data, file.name, number)
                return


def spans_of_json(body: bytes, name: str = BODY) -> list[TraceSpan]:
    """The spans of one request body, all or none: a damaged one raises. `name` is for the error."""
    return list(_document_spans(memoryview(body), name, 1))


class _Line(NamedTuple):
    """Where a line stands in a file, and its bytes, unless there are too many of them."""

    start: int
    end: int
    data: memoryview | None


def _lines(stream: BinaryIO) -> Iterator[_Line]:
    """The lines of a file; their bytes are a view into one block, and good until the next line.

    An object of its own for each line, as `readline` makes, takes half as long as the decoding.
    """
    position = len(_UTF8_BOM) if stream.read(len(_UTF8_BOM)) == _UTF8_BOM else 0
    stream.seek(position)
    block = bytearray(_BLOCK)
    large_from: int | None = None  # where a line began that is larger than any block
    rest = 0
    while count := stream.readinto(memoryview(block)[rest:]):  # type: ignore[attr-defined]
        start, end = 0, rest + count
        while (newline := block.find(b"\n", start, end)) >= 0:
            if large_from is None:
                data = memoryview(block)[start:newline]
                yield _Line(position + start, position + newline, data)
            else:
                yield _Line(large_from, position + newline, None)
                large_from = None
            start = newline + 1
        if start == 0 and end >= _LARGE:
            large_from = position if large_from is None else large_from
            start = end
        rest = end - start
        if rest == len(block):
            block = block + bytes(len(block))  # views of the old one may be held
        else:
            block[:rest] = block[start:end]
        position += start
    if large_from is not None:
        yield _Line(large_from, position + rest, None)
    elif rest:
        yield _Line(position, position + rest, memoryview(block)[:rest])


def _line_body(data: memoryview) -> _Body | None:
    try:
        return _decode_body(data)
    except _DECODE_ERRORS:
        return None


def _mapped(file: ForeignFile, start: int, end: int) -> memoryview:
    with file.open() as stream:
        # Closed when the last view of it is gone: parts of it may be in the hands of an error.
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    return memoryview(mapped)[start:end]


def _document_spans(data: memoryview, name: str, number: int) -> Iterator[TraceSpan]:
    """The spans of a body, or a list of bodies, that may be of any size.

    `name` and `number` are the file and the line that an error names.
    """
    is_list = bytes(data[:_BLOCK]).lstrip()[:1] == b"["
    try:
        bodies = _decode_bodies(data) if is_list else (_decode_body(data),)
    except _DECODE_ERRORS as error:
        raise _damaged(name, data, number, error) from error
    for body in bodies:
        yield from _body_spans(body, data, name, number)


def _body_spans(body: _Body, data: memoryview, name: str, number: int) -> Iterator[TraceSpan]:
    """The spans of a body, decoded one at a time: a batch of them would not fit into a cache."""
    for part in body.resourceSpans or body.batches or ():
        resource = part.resource
        pairs = None if resource is None else resource.attributes
        shared = _attributes(pairs) if pairs else NO_ATTRIBUTES
        for scope in part.scopeSpans or part.instrumentationLibrarySpans or ():
            for place, span in enumerate(scope.spans or (), start=1):
                try:
                    yield _span(_decode_span(span), shared)
                except _DECODE_ERRORS as error:
                    raise _damaged(name, data, number, error, f" of span {place}") from error


def _damaged(
    name: str, data: memoryview, number: int, error: Exception, part: str = ""
) -> RagaugeError:
    # The decoder names a byte where the text is no JSON, and then it counts from the start. Parts
    # are decoded behind that: what is wrong in them is a type, and has no byte.
    offset = 0 if part else error_offset(error, b"")
    starts = range(0, offset, _BLOCK)
    newlines = sum(bytes(data[at : min(at + _BLOCK, offset)]).count(b"\n") for at in starts)
    hint = "the file is damaged or was not written to its end; export it again"
    return RagaugeError.of(
        "bad-spans",
        f"the spans cannot be read: {error}{part}",
        hint=hint,
        place=Place(name, number + newlines),
    )


def _span(span: _JsonSpan, resource: dict[str, Any]) -> TraceSpan:
    # What nearly every span has goes the short way: this runs once for each of millions.
    trace_id, span_id, parent_id = span.traceId, span.spanId, span.parentSpanId
    try:
        start, end = int(span.startTimeUnixNano), int(span.endTimeUnixNano)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        start, end = _whole(span.startTimeUnixNano), _whole(span.endTimeUnixNano)
    status = span.status
    return TraceSpan(
        trace_id.lower() if len(trace_id) == 32 else hex_id(trace_id) or "",
        span_id.lower() if len(span_id) == 16 else hex_id(span_id) or "",
        parent_id.lower() if parent_id and len(parent_id) == 16 else hex_id(parent_id),
        span.name or "",
        start,
        end,
        _attributes(span.attributes) if span.attributes else {},
        None if status is None or status.code in _FINE else _error(status, span.events),
        _whole(span.droppedAttributesCount) if span.droppedAttributesCount else 0,
        resource,
    )


def _attributes(pairs: list[_KeyValue]) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for pair in pairs:  # quicker than a comprehension, which is a call of its own
        value = pair.value
        if value is not None and value.stringValue is not None:
            attributes[pair.key] = value.stringValue
        else:
            attributes[pair.key] = _value(value, 0)
    return attributes


def _value(value: _AnyValue | None, depth: int) -> Any:
    if value is None:
        return None
    if value.stringValue is not None:
        return value.stringValue
    if value.intValue is not None:
        return _whole(value.intValue)
    if value.doubleValue is not None:
        return _float(value.doubleValue)
    if value.arrayValue is not None and depth < 64:
        return [_value(entry, depth + 1) for entry in value.arrayValue.values]
    if value.kvlistValue is not None and depth < 64:
        return {pair.key: _value(pair.value, depth + 1) for pair in value.kvlistValue.values}
    return value.boolValue


def _whole(value: Number) -> int:
    """A whole number; JSON of protobuf writes those of 64 bits as text."""
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        sign = value[:1] == "-"
        digits = value[1:] if sign else value
        if digits.isascii() and digits.isdecimal() and len(digits) < 20:
            return -int(digits) if sign else int(digits)
        return 0
    return int(value) if value is not None and abs(value) < 1e19 else 0


def _float(value: Number) -> Any:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value


def _error(status: _Status, events: Raw) -> str | None:
    if status.code not in (2, "STATUS_CODE_ERROR", "2"):
        return None
    if status.message and (said := first_line(status.message)):
        return said
    try:
        listed = _decode_events(events)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        listed = []
    for event in listed:
        if event.name == "exception":
            attributes = _attributes(event.attributes)
            message = attributes.get("exception.message")
            if isinstance(message, str) and (said := first_line(message)):
                return said
    return "error"
