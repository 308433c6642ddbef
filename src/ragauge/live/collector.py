"""The collector: what is sent to `/v1/traces` and `/api/traces` is read, sampled, redacted, stored.

The answer is 200 when it is on disk. Exporters of OpenTelemetry send again after 429 and 503 and
drop what was answered with anything else, so these two are for all trouble that passes.
"""

from __future__ import annotations

import asyncio
import secrets
import struct
import zlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from ragauge.errors import RagaugeError
from ragauge.formats.imports.otlp_json import spans_of_json
from ragauge.formats.imports.otlp_protobuf import spans_of_protobuf
from ragauge.formats.imports.span import TraceSpan
from ragauge.live.access import INGEST, AccessDeniedError, require
from ragauge.live.ingest_counts import Outcome
from ragauge.live.server_state import LiveState
from ragauge.live.settings import IngestLimits
from ragauge.live.spool import BodyKind, SpoolUnavailableError, encode_spans

PROTOBUF, JSON = "application/x-protobuf", "application/json"
_LINES = ("application/x-ndjson", "application/jsonl", "application/x-jsonlines")
_RETRY = {"Retry-After": "1"}
_IN_THREAD = 256 * 1024
"""A larger body is read beside the others, so that the server goes on answering."""
_SMALL = 2**20
"""What unpacks to less is no bomb, whatever its ratio."""
_MOST_MEMBERS = 16
"""Parts of one gzip body: each is copied with all that follows it. Exporters send one."""
_USUAL_RATIO = 8
_UNKNOWN_LENGTH = 64 * 1024
_MOST_REASONS = 20
_TRACE_DIGITS, _SPAN_DIGITS = 32, 16
_STATUS_OUTCOMES: dict[int, Outcome] = {
    400: "undecodable", 401: "denied", 403: "denied", 408: "undecodable", 413: "too-large",
    415: "unsupported", 429: "refused", 503: "unavailable",
}  # fmt: skip


class RefusedRequestError(Exception):
    """A request that is not stored: the status of the answer, and why."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class _Accepted(NamedTuple):
    """What became of a body that was read."""

    accepted: int
    rejected: int
    reasons: list[str]


async def receive_otlp(request: Request) -> Response:
    """`POST /v1/traces`: spans by OTLP/HTTP, as protobuf or JSON."""
    media = _media_type(request)
    answer_type = media if media in (PROTOBUF, JSON) else JSON

    async def receive(state: LiveState, tenant: str) -> Response:
        if media not in (PROTOBUF, JSON):
            raise RefusedRequestError(415, f"send {PROTOBUF} or {JSON}")
        body = await _read_body(request, state.settings.limits)
        read = spans_of_protobuf if media == PROTOBUF else spans_of_json
        result = await _with_body(body, lambda data: _spool_spans(state, tenant, body, data, read))
        return _otlp_response(await result, answer_type)

    return await _answered(request, receive, answer_type)


async def receive_rows(request: Request) -> Response:
    """`POST /api/traces`: traces as native rows, a JSON object, a list of them, or one a line."""
    media = _media_type(request)

    async def receive(state: LiveState, tenant: str) -> Response:
        if media != JSON and media not in _LINES:
            raise RefusedRequestError(415, f"send {JSON} or {_LINES[0]}")
        body = await _read_body(request, state.settings.limits)
        is_lines = media != JSON
        result = await _with_body(
            body, lambda data: _spool_rows(state, tenant, body, data, is_lines=is_lines)
        )
        accepted = await result
        content = {
            "accepted": accepted.accepted,
            "rejected": accepted.rejected,
            "errors": accepted.reasons,
        }
        return Response(msgspec.json.encode(content), media_type=JSON)

    return await _answered(request, receive, JSON)


ROUTES = [
    Route("/v1/traces", receive_otlp, methods=["POST"]),
    Route("/api/traces", receive_rows, methods=["POST"]),
]


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _answered(
    request: Request, receive: Callable[[LiveState, str], Awaitable[Response]], media: str
) -> Response:
    """What `receive` answers, or the refusal; whatever goes wrong beside that passes: 503."""
    state: LiveState = request.app.state.live
    tenant = ""
    admitted = 0
    try:
        caller = await require(request, INGEST)
        tenant = caller.tenant
        if state.spool.is_full:
            raise RefusedRequestError(429, "the spool is full; the worker is behind")
        admitted = _admit(request, state)
        return await receive(state, tenant)
    except (RefusedRequestError, AccessDeniedError) as error:
        status, reason = error.status, error.reason
    except SpoolUnavailableError as error:
        status, reason = 503, f"nothing can be written now: {error}"
    except RagaugeError as error:
        problem = error.problems[0]
        status = 400 if problem.code == "bad-spans" else 503
        reason = problem.message
    except ClientDisconnect:
        status, reason = 400, "the body was cut"
    except Exception as error:  # a fault of ours: what was sent is not on disk, so send it again
        state.log_fault("collector", error)
        status, reason = 503, "the server stumbled; send it again"
    finally:
        state.admitted_bytes -= admitted
    if status != 408:
        await _drain(request, state.settings.limits)
    state.counts.add(tenant, _STATUS_OUTCOMES.get(status, "undecodable"))
    return _refusal(status, reason, media)


async def _drain(request: Request, limits: IngestLimits) -> None:
    """Read on what is refused: a client that is still sending would not hear the answer."""
    left = 4 * limits.body_bytes
    with suppress(TimeoutError, ClientDisconnect, RuntimeError):  # or all of it was read
        async with asyncio.timeout(limits.read_seconds):
            async for chunk in request.stream():
                left -= len(chunk)
                if left < 0:
                    return


def _admit(request: Request, state: LiveState) -> int:
    """Let a request in by the bytes it will take in memory, or refuse it: others come first."""
    length = request.headers.get("content-length", "")
    size = int(length) if length.isdecimal() else _UNKNOWN_LENGTH
    if length.isdecimal() and size > state.settings.limits.body_bytes:
        raise RefusedRequestError(413, _too_large(state.settings.limits))
    if request.headers.get("content-encoding"):
        size *= _USUAL_RATIO
    if state.admitted_bytes and state.admitted_bytes + size > state.settings.limits.waiting_bytes:
        raise RefusedRequestError(429, "more is sent than the server can take")
    state.admitted_bytes += size
    return size


def _too_large(limits: IngestLimits) -> str:
    return f"the body is larger than {limits.body_bytes:,} bytes"


class _Body(NamedTuple):
    """A body as it came, and how it was packed."""

    data: bytes
    encoding: str
    limits: IngestLimits

    def key(self) -> bytes:
        return blake2b(self.data, digest_size=16).digest()


async def _read_body(request: Request, limits: IngestLimits) -> _Body:
    chunks, size = [], 0
    try:
        async with asyncio.timeout(limits.read_seconds):
            async for chunk in request.stream():
                size += len(chunk)
                if size > limits.body_bytes:
                    raise RefusedRequestError(413, _too_large(limits))
                chunks.append(chunk)
    except TimeoutError as error:
        raise RefusedRequestError(408, "the body took too long to come") from error
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    return _Body(b"".join(chunks), encoding, limits)


async def _with_body(
    body: _Body, store: Callable[[bytes], Awaitable[_Accepted]]
) -> Awaitable[_Accepted]:
    """Unpack a body and hand it on; a large one in a thread of its own."""
    if len(body.data) < _IN_THREAD:
        return store(_unpacked(body))
    return await asyncio.to_thread(lambda: store(_unpacked(body)))


def _unpacked(body: _Body) -> bytes:
    """The bytes of a body; never more than the limits allow, whatever it claims to be."""
    data, encoding, limits = body
    if encoding in ("", "identity"):
        return data
    if encoding not in ("gzip", "deflate"):
        raise RefusedRequestError(415, f"`{encoding}` is not read: send gzip or deflate")
    most = min(limits.unpacked_bytes, max(_SMALL, limits.ratio * len(data)))
    bits = 16 + zlib.MAX_WBITS if encoding == "gzip" else zlib.MAX_WBITS
    try:
        return _inflated(data, bits, most)
    except zlib.error as error:
        if encoding == "deflate":  # some send it without the header of zlib
            try:
                return _inflated(data, -zlib.MAX_WBITS, most)
            except zlib.error:
                pass
        raise RefusedRequestError(400, f"the body is no {encoding}: {error}") from error


def _inflated(data: bytes, bits: int, most: int) -> bytes:
    parts: list[bytes] = []
    left = most
    while data:
        if len(parts) == _MOST_MEMBERS:
            raise RefusedRequestError(400, f"the body has more than {_MOST_MEMBERS} packed parts")
        unpacker = zlib.decompressobj(bits)
        part = unpacker.decompress(data, left + 1)
        left -= len(part)
        if left < 0:
            raise RefusedRequestError(413, f"the body unpacks to more than {most:,} bytes")
        if not unpacker.eof:
            raise RefusedRequestError(400, "the packed body was cut")
        parts.append(part)
        data = unpacker.unused_data
    return b"".join(parts)


def _spool_spans(
    state: LiveState,
    tenant: str,
    body: _Body,
    data: bytes,
    read: Callable[[bytes], list[TraceSpan]],
) -> Awaitable[_Accepted]:
    spans = read(data)
    usable = [span for span in spans if _is_usable(span)]
    rejected = len(spans) - len(usable)
    now = state.now()
    sampled = state.sampler.sample_spans(tenant, usable, now=now)
    records = [
        (rate, encode_spans(state.redactor.spans(chosen)))
        for rate, chosen in sampled.by_rate.items()
    ]
    roots = sum(span.parent_id is None for span in usable)
    reasons = []
    if rejected:
        reasons.append(
            f"{rejected} of {len(spans)} spans have no valid trace id or span id: they cannot be "
            "put into a trace"
        )
    left_out = min(sampled.left_out, len(usable))
    counted = _Counted(len(usable) - left_out, left_out, rejected, roots, reasons)

    async def store() -> _Accepted:
        accepted = await _stored(
            state, tenant, "spans", body.key(), records, counted, now, sampled.known_from
        )
        state.sampler.forget(sampled.released)
        return accepted

    return store()


def _is_usable(span: TraceSpan) -> bool:
    """Whether a span names itself and its trace: 8 and 16 bytes that are not all zero."""
    return (
        len(span.trace_id) == _TRACE_DIGITS
        and len(span.span_id) == _SPAN_DIGITS
        and span.trace_id.strip("0") != ""
        and span.span_id.strip("0") != ""
    )


def _spool_rows(
    state: LiveState, tenant: str, body: _Body, data: bytes, *, is_lines: bool
) -> Awaitable[_Accepted]:
    rows = _rows_of(data, is_lines=is_lines)
    by_rate: dict[float, list[bytes]] = {}
    accepted = left_out = 0
    reasons: list[str] = []
    key = body.key()
    for number, row in enumerate(rows, start=1):
        reason = _row_fault(row)
        if reason is not None:
            reasons.append(f"row {number}: {reason}")
            continue
        if row.get("trace_id") is None:
            # Without an id the same row may be two traces: nothing tells a body sent again.
            row["trace_id"] = secrets.token_hex(16)
            key = secrets.token_bytes(16)
        rate = state.sampler.sample_row(row["trace_id"], row)
        if rate is None:
            left_out += 1
            continue
        accepted += 1
        by_rate.setdefault(rate, []).append(msgspec.json.encode(state.redactor.row(row)))
    records = [(rate, b"\n".join(lines)) for rate, lines in by_rate.items()]
    counted = _Counted(accepted, left_out, len(reasons), accepted + left_out, reasons)
    return _stored(state, tenant, "rows", key, records, counted, state.now())


def _rows_of(data: bytes, *, is_lines: bool) -> list[Any]:
    """The rows of a body; the line of what cannot be read is named."""
    if not is_lines:
        try:
            value = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RefusedRequestError(400, f"the body is no JSON: {error}") from error
        return value if isinstance(value, list) else [value]
    rows = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            try:
                rows.append(msgspec.json.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise RefusedRequestError(400, f"line {number} is no JSON: {error}") from error
    return rows


def _row_fault(row: Any) -> str | None:
    if not isinstance(row, dict):
        return "a trace is a JSON object"
    trace_id = row.get("trace_id")
    if trace_id is not None and not (isinstance(trace_id, str) and 0 < len(trace_id) <= 200):
        return "`trace_id` must be a text of 1 to 200 characters"
    if not any(row.get(name) is not None for name in ("question", "qid", "hits", "answer")):
        return "it has neither `question` nor `qid`, `hits` or `answer`"
    return None


class _Counted(NamedTuple):
    """How many spans or rows of a body met which end."""

    accepted: int
    left_out: int
    rejected: int
    traces: int
    reasons: list[str]


async def _stored(
    state: LiveState,
    tenant: str,
    kind: BodyKind,
    key: bytes,
    records: list[tuple[float, bytes]],
    counted: _Counted,
    now: int,
    known_from: int = 0,
) -> _Accepted:
    """Wait until the records of a body are on disk, and count them."""
    writes = [
        state.spool.put(
            tenant, key + struct.pack(">d", rate), kind, now, record, rate, known_from=known_from
        )
        for rate, record in records
    ]
    stored = [await asyncio.wrap_future(write) for write in writes]
    is_again = bool(stored) and not any(stored)
    # What is stored is what was accepted; a trace is counted where its first span came.
    traces = 0 if is_again else counted.traces
    share = counted.accepted / max(1, counted.accepted + counted.left_out)
    kept = round(traces * share)
    outcome: Outcome = "duplicate" if is_again else "accepted"
    if counted.accepted or not (counted.left_out or counted.rejected):
        state.counts.add(tenant, outcome, counted.accepted, kept)
    if counted.left_out:
        state.counts.add(tenant, "sampled-out", counted.left_out, traces - kept)
    if counted.rejected:
        state.counts.add(tenant, "rejected", counted.rejected)
    return _Accepted(
        counted.accepted + counted.left_out, counted.rejected, counted.reasons[:_MOST_REASONS]
    )


def _otlp_response(accepted: _Accepted, media: str) -> Response:
    """An ExportTraceServiceResponse in the type of the request."""
    message = "; ".join(accepted.reasons)
    if media == JSON:
        content: dict[str, Any] = {}
        if accepted.rejected:
            content["partialSuccess"] = {
                "rejectedSpans": str(accepted.rejected),
                "errorMessage": message,
            }
        return Response(msgspec.json.encode(content), media_type=JSON)
    if not accepted.rejected:
        return Response(b"", media_type=PROTOBUF)  # the empty message
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTracePartialSuccess,
        ExportTraceServiceResponse,
    )

    partial = ExportTracePartialSuccess(rejected_spans=accepted.rejected, error_message=message)
    response = ExportTraceServiceResponse(partial_success=partial)
    return Response(response.SerializeToString(), media_type=PROTOBUF)


def _refusal(status: int, reason: str, media: str) -> Response:
    """A google.rpc.Status, as OTLP wants it, in the type of the request."""
    headers = _RETRY if status in (429, 503) else None
    if status == 408:
        headers = {"Connection": "close"}  # the rest of the body would come as slowly
    if status == 401:
        headers = {"WWW-Authenticate": "Bearer"}
    if media == JSON:
        content = msgspec.json.encode({"message": reason})
    else:
        text = reason.encode()[:2000]
        content = b"\x12" + _varint(len(text)) + text  # field 2 of the message, a text
    return Response(content, status, headers, media)


def _varint(number: int) -> bytes:
    groups = bytearray()
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    groups.append(number)
    return bytes(groups)
