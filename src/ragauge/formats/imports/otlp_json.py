"""OTLP as JSON: the body of a request, or one such body a line, as file exporters write it.

Decoded into typed structs: protobuf's own reader of JSON takes 48 times as long.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ragauge.errors import Place, RagaugeError
from ragauge.files.json_faults import error_offset
from ragauge.formats.imports.foreign_format import ForeignFile
from ragauge.formats.imports.json_file import hex_id
from ragauge.formats.imports.span import NO_ATTRIBUTES, TraceSpan, first_line

_LARGE = 64 * 1024 * 1024
_UTF8_BOM = b"\xef\xbb\xbf"

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


class _ScopeSpans(Struct, gc=False):
    spans: list[_JsonSpan] | None = None


class _Resource(Struct, gc=False):
    attributes: list[_KeyValue] | None = None


class _ResourceSpans(Struct, gc=False):
    resource: _Resource | None = None
    scopeSpans: list[_ScopeSpans] | None = None  # noqa: N815
    instrumentationLibrarySpans: list[_ScopeSpans] | None = None  # noqa: N815


class _Body(Struct, gc=False):
    """A request; Tempo calls the list `batches`. Lines of metrics and logs have neither."""

    resourceSpans: list[_ResourceSpans] | None = None  # noqa: N815
    batches: list[_ResourceSpans] | None = None


class _RawBody(Struct, gc=False):
    """The same, with parts that are decoded one at a time."""

    resourceSpans: list[Raw] | None = None  # noqa: N815
    batches: list[Raw] | None = None


_decode_body = msgspec.json.Decoder(_Body).decode
_decode_bodies = msgspec.json.Decoder(list[_Body]).decode
_decode_raw = msgspec.json.Decoder(_RawBody).decode
_decode_resource = msgspec.json.Decoder(_ResourceSpans).decode
_decode_events = msgspec.json.Decoder(list[_Event]).decode


def json_spans(file: ForeignFile) -> Iterator[TraceSpan]:
    """The spans of a file: of one body, of a list of them, or of a body a line."""
    with file.open() as stream:
        if stream.read(len(_UTF8_BOM)) != _UTF8_BOM:
            stream.seek(0)
        line = 0
        while data := stream.readline(_LARGE):
            line += 1
            if len(data) == _LARGE and not data.endswith(b"\n"):
                yield from _large_spans(file, line)
                return
            if not data.strip():
                continue
            body = _line_body(data)
            if body is None:  # not a body a line: a body or a list over many lines
                yield from _whole_spans(file, stream.tell() - len(data), line)
                return
            yield from _body_spans(body)


def _line_body(data: bytes) -> _Body | None:
    try:
        return _decode_body(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _whole_spans(file: ForeignFile, start: int, line: int) -> Iterator[TraceSpan]:
    with file.open() as stream:
        stream.seek(start)
        data = stream.read()
    try:
        is_list = data.lstrip()[:1] == b"["
        bodies = _decode_bodies(data) if is_list else [_decode_body(data)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(file.name, data, line, error) from error
    for body in bodies:
        yield from _body_spans(body)


def _large_spans(file: ForeignFile, line: int) -> Iterator[TraceSpan]:
    """The spans of a body that is too large to be decoded at once."""
    with (
        file.open() as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        data = memoryview(mapped)
        raw: Any = None
        try:
            raw = _decode_raw(data)
            for part in raw.resourceSpans or raw.batches or ():
                yield from _resource_spans(_decode_resource(part))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _damaged(file.name, b"", line, error) from error
        finally:
            del raw
            data.release()


def _damaged(name: str, data: bytes, line: int, error: Exception) -> RagaugeError:
    offset = error_offset(error, data) if data else 0
    place = Place(name, line + data[:offset].count(b"\n"))
    hint = "the file is damaged or was not written to its end; export it again"
    return RagaugeError.of(
        "bad-spans", f"the spans cannot be read: {error}", hint=hint, place=place
    )


def _body_spans(body: _Body) -> Iterator[TraceSpan]:
    for resource in body.resourceSpans or body.batches or ():
        yield from _resource_spans(resource)


def _resource_spans(part: _ResourceSpans) -> Iterator[TraceSpan]:
    shared = NO_ATTRIBUTES
    if part.resource is not None and part.resource.attributes:
        shared = _attributes(part.resource.attributes)
    for scope in part.scopeSpans or part.instrumentationLibrarySpans or ():
        for span in scope.spans or ():
            yield _span(span, shared)


def _span(span: _JsonSpan, resource: dict[str, Any]) -> TraceSpan:
    # What nearly every span has goes the short way: this runs once for each of millions.
    trace_id, span_id, parent_id = span.traceId, span.spanId, span.parentSpanId
    try:
        start, end = int(span.startTimeUnixNano), int(span.endTimeUnixNano)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        start, end = _whole(span.startTimeUnixNano), _whole(span.endTimeUnixNano)
    return TraceSpan(
        trace_id.lower() if len(trace_id) == 32 else hex_id(trace_id) or "",
        span_id.lower() if len(span_id) == 16 else hex_id(span_id) or "",
        parent_id.lower() if parent_id and len(parent_id) == 16 else hex_id(parent_id),
        span.name or "",
        start,
        end,
        _attributes(span.attributes) if span.attributes else {},
        None if span.status is None else _error(span.status, span.events),
        _whole(span.droppedAttributesCount) if span.droppedAttributesCount else 0,
        resource,
    )


def _attributes(pairs: list[_KeyValue]) -> dict[str, Any]:
    try:
        attributes: dict[str, Any] = {
            pair.key: pair.value.stringValue  # type: ignore[union-attr]
            for pair in pairs
        }
    except AttributeError:  # some value is null
        attributes = dict.fromkeys(pair.key for pair in pairs)
    if None in attributes.values():
        for pair in pairs:
            if attributes[pair.key] is None:
                attributes[pair.key] = _value(pair.value, 0)
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
