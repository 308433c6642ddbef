"""OTLP as protobuf: the body of a request, several behind each other, or each behind its length.

The messages are walked here and only single ones are handed to the package, so that a file may be
far larger than memory. The package is an extra, imported when such a file is met.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from typing import Any, BinaryIO, NamedTuple

from ragauge.errors import Place, RagaugeError
from ragauge.files.parquet_reader import missing_extra
from ragauge.formats.imports.foreign_format import ForeignFile
from ragauge.formats.imports.span import BODY, NO_ATTRIBUTES, TraceSpan, first_line

_AT_ONCE = 16 * 1024 * 1024
_RESOURCE, _LIST = 1, 2
"""Numbers of fields: what `ResourceSpans` and `ScopeSpans` are of, and their list."""
_ERROR = 2
_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}
_DAMAGED = "the file is damaged or was not written to its end; export it again"


def looks_like_protobuf(file: ForeignFile) -> bool:
    """Whether a file begins as a request of spans does, and is no text."""
    head = file.head
    if len(head) < 4 or head[:1] in (b"{", b"["):
        return False
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        # Cut in the middle of a character, a text is still one.
        text = "\x00" if error.start < len(head) - 4 else ""
    if not any(ord(char) < 32 and char not in "\t\n\r" for char in text):
        return False
    return _framing(head, os.path.getsize(file.path)) is not None


def _framing(head: bytes, size: int) -> str | None:
    """How messages follow each other: as fields of one, or each behind its length."""
    if _begins_request(head, 0):
        return "plain"
    if head[0] == 0 and _begins_request(head, 4) and int.from_bytes(head[:4], "big") < size:
        return "fixed"  # as the collector's file exporter writes them
    length, start = _varint(head, 0)
    if start and 0 < length <= size - start and _begins_request(head, start):
        return "varint"
    return None


def _begins_request(head: bytes, start: int) -> bool:
    """Whether a `TracesData` with a resource or a scope in it begins here."""
    if head[start : start + 1] != b"\n":
        return False
    length, inner = _varint(head, start + 1)
    if not inner or not 2 <= length < 1 << 40:  # more than is there: then the file was cut
        return False
    if head[inner : inner + 1] not in (b"\n", b"\x12"):
        return False
    within, behind = _varint(head, inner + 1)
    return bool(behind) and within <= length


def _varint(data: bytes, start: int) -> tuple[int, int]:
    """A number and the place behind it; the place is 0 where there is none."""
    value = 0
    for shift in range(10):
        if start + shift >= len(data):
            return 0, 0
        byte = data[start + shift]
        value |= (byte & 127) << (7 * shift)
        if byte < 128:
            return value, start + shift + 1
    return 0, 0


class _Messages(NamedTuple):
    """The classes of the package."""

    resource_spans: Any
    scope_spans: Any
    span: Any
    resource: Any
    failure: Any


def _messages(name: str) -> _Messages:
    try:
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.resource.v1.resource_pb2 import Resource
        from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
    except ImportError as error:
        raise missing_extra("otlp", "opentelemetry-proto", name) from error
    return _Messages(ResourceSpans, ScopeSpans, Span, Resource, DecodeError)


def protobuf_spans(file: ForeignFile) -> Iterator[TraceSpan]:
    """The spans of a file."""
    messages = _messages(file.name)
    size = os.path.getsize(file.path)
    framing = _framing(file.head, size) or "plain"
    with file.open() as stream:
        walk = _Walk(file.name, stream, messages)
        try:
            if framing == "plain":
                yield from walk.requests(size)
            while framing != "plain" and stream.tell() < size:
                if framing == "fixed":
                    length = int.from_bytes(walk.take(4), "big")
                else:
                    length = walk.varint()
                yield from walk.requests(walk.end_of(length, size))
        except messages.failure as error:
            raise walk.damaged(str(error)) from error


def spans_of_protobuf(body: bytes, name: str = BODY) -> list[TraceSpan]:
    """The spans of one request body, all or none: a damaged one raises. `name` is for the error."""
    messages = _messages(name)
    walk = _Walk(name, BytesIO(body), messages)
    try:
        return list(walk.requests(len(body)))
    except messages.failure as error:
        raise walk.damaged(str(error)) from error


class _Walk:
    """Goes through the fields of messages in a file, and parses those that fit into memory."""

    def __init__(self, name: str, stream: BinaryIO, messages: _Messages) -> None:
        self.name = name
        self.stream = stream
        self.messages = messages

    def damaged(self, what: str) -> RagaugeError:
        message = f"the spans cannot be read at byte {self.stream.tell()}: {what}"
        return RagaugeError.of("bad-spans", message, hint=_DAMAGED, place=Place(self.name))

    def take(self, size: int) -> bytes:
        data = self.stream.read(size)
        if len(data) < size:
            raise self.damaged("the file ends in the middle of a message")
        return data

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise self.damaged("a number has no end")

    def end_of(self, length: int, limit: int) -> int:
        end = self.stream.tell() + length
        if end > limit:
            raise self.damaged("a message is longer than what holds it")
        return end

    def fields(self, end: int) -> Iterator[tuple[int, int]]:
        """The number and the length of each field with a length; the stream stands at its value.

        Whoever takes a field leaves the stream behind it; the others are passed over.
        """
        while (start := self.stream.tell()) < end:
            key = self.varint()
            number, kind = key >> 3, key & 7
            if number == 0:
                raise self.damaged("a field has no number")
            if kind == _LENGTH_DELIMITED:
                behind = self.end_of(length := self.varint(), end)
                yield number, length
                self.stream.seek(behind)
            elif kind == 0:
                self.varint()
            elif kind in _FIXED:
                self.take(_FIXED[kind])
            else:
                self.stream.seek(start)
                raise self.damaged(f"a field is of a kind {kind} that spans do not have")

    def requests(self, end: int) -> Iterator[TraceSpan]:
        for number, length in self.fields(end):
            if number == 1:
                if length <= _AT_ONCE:
                    part = self.messages.resource_spans.FromString(self.take(length))
                    resource = _resource(part.resource)
                    for scope in part.scope_spans:
                        for span in scope.spans:
                            yield _span(span, resource)
                else:
                    yield from self.resource_spans(self.end_of(length, end))

    def resource_spans(self, end: int) -> Iterator[TraceSpan]:
        resource = NO_ATTRIBUTES
        for number, length in self.fields(end):
            if number == _RESOURCE:
                resource = _resource(self.messages.resource.FromString(self.take(length)))
            elif number == _LIST and length <= _AT_ONCE:
                for span in self.messages.scope_spans.FromString(self.take(length)).spans:
                    yield _span(span, resource)
            elif number == _LIST:
                for inner, size in self.fields(self.end_of(length, end)):
                    if inner == _LIST:
                        yield _span(self.messages.span.FromString(self.take(size)), resource)


def _resource(resource: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in resource.attributes}


def _span(span: Any, resource: dict[str, Any]) -> TraceSpan:
    attributes = {}
    for pair in span.attributes:  # once: every look makes objects for the pair and its value
        value = pair.value
        attributes[pair.key] = value.string_value or _value(value)
    return TraceSpan(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex() or None,
        span.name,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        attributes,
        _error(span) if span.status.code == _ERROR else None,
        span.dropped_attributes_count,
        resource,
    )


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(entry) for entry in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value) for pair in value.kvlist_value.values}
    if kind is None or kind == "bytes_value":
        return None
    return getattr(value, kind, None)


def _error(span: Any) -> str:
    if said := first_line(span.status.message):
        return said
    for event in span.events:
        if event.name == "exception":
            for pair in event.attributes:
                is_message = pair.key == "exception.message"
                if is_message and (said := first_line(pair.value.string_value)):
                    return said
    return "error"
