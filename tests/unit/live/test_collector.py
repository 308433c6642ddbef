"""The collector: what is answered with 200 is on disk, and every refusal says what to do."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from starlette.testclient import TestClient

from ragauge.live.server_state import LiveState
from ragauge.live.spool import SpoolReader, decode_spans
from tests.support.live_server import (
    JSON,
    PROTOBUF,
    live_client,
    otlp_request,
    spooled,
    spooled_ids,
)

IDS = [("0" * 31 + "1", "0" * 15 + "2"), ("0" * 31 + "1", "0" * 15 + "3")]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with live_client(tmp_path) as made:
        yield made


def state_of(client: TestClient) -> LiveState:
    state: LiveState = client.app.state.live  # type: ignore[attr-defined]
    return state


def as_json(request: Any) -> bytes:
    """The request as OTLP/JSON has it: ids in hex, where protobuf's JSON has base64."""
    document = json_format.MessageToDict(request)
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64decode(span[name]).hex()
    return json.dumps(document).encode()


def test_protobuf_is_stored_before_it_is_answered(client: TestClient) -> None:
    response = client.post(
        "/v1/traces", content=otlp_request().SerializeToString(), headers=PROTOBUF
    )
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-type"] == "application/x-protobuf"
    assert spooled_ids(state_of(client)) == IDS


def test_json_is_read_as_protobuf_is(client: TestClient) -> None:
    response = client.post("/v1/traces", content=as_json(otlp_request()), headers=JSON)
    assert (response.status_code, response.json()) == (200, {})
    assert spooled_ids(state_of(client)) == IDS


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", lambda data: zlib.compress(data)[2:-4]),  # without the header of zlib
        ("gzip", lambda data: gzip.compress(data[:50]) + gzip.compress(data[50:])),
        ("identity", lambda data: data),
    ],
)
def test_packed_bodies_are_unpacked(client: TestClient, encoding: str, pack: Any) -> None:
    body = pack(otlp_request().SerializeToString())
    headers = {**PROTOBUF, "content-encoding": encoding}
    assert client.post("/v1/traces", content=body, headers=headers).status_code == 200
    assert spooled_ids(state_of(client)) == IDS


def test_the_same_body_twice_is_stored_once(client: TestClient) -> None:
    body = otlp_request().SerializeToString()
    for _ in range(3):
        assert client.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200
    assert len(spooled(state_of(client))) == 1
    totals = state_of(client).counts.totals("")
    assert {name: counts.spans for name, counts in totals.items()} == {
        "accepted": 2,
        "duplicate": 4,
    }


def test_native_rows_come_as_an_object_a_list_or_lines(client: TestClient) -> None:
    row = {"question": "who?", "hits": [{"id": "d1"}], "answer": "they"}
    rows = [{"trace_id": f"t{number}", **row} for number in range(4)]
    lines = "\n".join(map(json.dumps, rows[2:]))
    assert client.post("/api/traces", json=rows[0]).json()["accepted"] == 1
    assert client.post("/api/traces", json=rows[1:2]).json()["accepted"] == 1
    response = client.post(
        "/api/traces", content=lines, headers={"content-type": "application/x-ndjson"}
    )
    assert response.json() == {"accepted": 2, "rejected": 0, "errors": []}
    bodies = spooled(state_of(client))
    stored = [json.loads(line) for body in bodies for line in body.body.split(b"\n")]
    assert stored == rows
    assert {body.kind for body in bodies} == {"rows"}


def otlp(**options: Any) -> bytes:
    body: bytes = otlp_request(**options).SerializeToString()
    return body


def message_of(content: bytes) -> str:
    """The text of a google.rpc.Status: field 2, with its length before it."""
    assert content[:1] == b"\x12"
    return content[-(content[1] & 127 | content[2] << 7) :].decode() if content[1] > 127 else (
        content[2 : 2 + content[1]].decode()
    )  # fmt: skip


CUT = otlp()[:-7]
BOMB = gzip.compress(b"\0" * 70_000_000)
REFUSALS: list[tuple[str, bytes, dict[str, str], int, str]] = [
    ("/v1/traces", b"no spans", {"content-type": "text/plain"}, 415, "application/x-protobuf"),
    ("/v1/traces", otlp(), {}, 415, "application/x-protobuf"),
    ("/v1/traces", CUT, PROTOBUF, 400, "cannot be read"),
    ("/v1/traces", b"\xff" * 50, PROTOBUF, 400, "cannot be read"),
    ("/v1/traces", b'{"resourceSpans": [', JSON, 400, "cannot be read"),
    ("/v1/traces", b"[" * 100_000, JSON, 400, "cannot be read"),
    ("/v1/traces", b'{"resourceSpans": 3}', JSON, 400, "cannot be read"),
    ("/v1/traces", otlp(), {**PROTOBUF, "content-encoding": "zstd"}, 415, "gzip or deflate"),
    ("/v1/traces", otlp(), {**PROTOBUF, "content-encoding": "gzip"}, 400, "no gzip"),
    (
        "/v1/traces",
        gzip.compress(otlp())[:-9],
        {**PROTOBUF, "content-encoding": "gzip"},
        400,
        "cut",
    ),
    ("/v1/traces", BOMB, {**PROTOBUF, "content-encoding": "gzip"}, 413, "unpacks to more"),
    # Each part would be copied with all behind it: 4 MB of them took half a minute.
    (
        "/v1/traces",
        gzip.compress(b"") * 17,
        {**PROTOBUF, "content-encoding": "gzip"},
        400,
        "more than 16 packed parts",
    ),
    ("/v1/traces", b"x" * 17_000_000, PROTOBUF, 413, "larger than"),
    ("/api/traces", b"{}", {"content-type": "text/plain"}, 415, "application/json"),
    ("/api/traces", b"{", JSON, 400, "no JSON"),
    ("/api/traces", b'{"question": "a"}\n{', {"content-type": "application/jsonl"}, 400, "line 2"),
]


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "reason"),
    REFUSALS,
    ids=[f"{status}-{number}" for number, (*_, status, _) in enumerate(REFUSALS)],
)
def test_what_cannot_be_taken_is_refused_with_a_reason(
    client: TestClient, path: str, body: bytes, headers: dict[str, str], status: int, reason: str
) -> None:
    response = client.post(path, content=body, headers=headers)
    assert response.status_code == status
    is_protobuf = response.headers["content-type"] == "application/x-protobuf"
    assert is_protobuf == (headers.get("content-type") == "application/x-protobuf")
    text = message_of(response.content) if is_protobuf else response.json()["message"]
    assert reason in text
    assert spooled(state_of(client)) == []
    assert "retry-after" not in response.headers  # sent again, it would be refused again


def test_a_bomb_is_known_by_its_ratio_before_it_is_large(tmp_path: Path) -> None:
    """1,000 times its size is over a ratio of 500, though 2 MB are under the limit of bytes."""
    bomb = gzip.compress(b"\0" * 2_000_000)
    assert len(bomb) < 4000
    with live_client(tmp_path, limits={"ratio": 500}) as client:
        headers = {**PROTOBUF, "content-encoding": "gzip"}
        assert client.post("/v1/traces", content=bomb, headers=headers).status_code == 413


def test_chunks_without_a_length_are_counted_as_they_come(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        body = otlp()
        yield body[:100]
        yield body[100:]

    def endless() -> Iterator[bytes]:
        yield from [b"x" * 1000] * 100

    with live_client(tmp_path, limits={"body_bytes": 50_000}) as client:
        assert client.post("/v1/traces", content=chunks(), headers=PROTOBUF).status_code == 200
        assert client.post("/v1/traces", content=endless(), headers=PROTOBUF).status_code == 413
        assert spooled_ids(state_of(client)) == IDS


@pytest.mark.parametrize("media", [PROTOBUF, JSON])
def test_spans_that_cannot_be_used_are_told_in_the_answer(
    client: TestClient, media: dict[str, str]
) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    request = otlp_request(traces=2)
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[0].trace_id = b"\0" * 16
    spans[1].span_id = b""
    spans[2].trace_id = b"short"
    body = request.SerializeToString() if media is PROTOBUF else as_json(request)
    response = client.post("/v1/traces", content=body, headers=media)
    assert response.status_code == 200
    if media is PROTOBUF:
        partial = ExportTraceServiceResponse.FromString(response.content).partial_success
        rejected, reason = partial.rejected_spans, partial.error_message
    else:
        answer = response.json()["partialSuccess"]
        rejected, reason = int(answer["rejectedSpans"]), answer["errorMessage"]
    assert rejected == 3
    assert "3 of 4 spans have no valid trace id or span id" in reason
    assert spooled_ids(state_of(client)) == [("0" * 31 + "2", "0" * 15 + "5")]
    assert state_of(client).counts.totals("")["rejected"].spans == 3


def test_rows_that_cannot_be_used_are_named(client: TestClient) -> None:
    rows = [
        {"trace_id": "a", "question": "q"},
        3,
        {"trace_id": 5, "question": "q"},
        {"trace_id": "b"},
    ]
    response = client.post("/api/traces", json=rows)
    assert response.status_code == 200
    assert response.json() == {
        "accepted": 1,
        "rejected": 3,
        "errors": [
            "row 2: a trace is a JSON object",
            "row 3: `trace_id` must be a text of 1 to 200 characters",
            "row 4: it has neither `question` nor `qid`, `hits` or `answer`",
        ],
    }


def test_rows_without_an_id_are_traces_of_their_own(client: TestClient) -> None:
    """Two users may ask the same: only an id can tell that from one body that came twice."""
    for _ in range(2):
        client.post("/api/traces", json={"question": "q"})
        client.post("/api/traces", json={"trace_id": "t", "question": "q"})
    lines = [json.loads(body.body) for body in spooled(state_of(client))]
    assert len(lines) == 3
    assert len({line["trace_id"] for line in lines}) == 3


@pytest.mark.slow
def test_a_full_spool_answers_429_and_loses_nothing(tmp_path: Path) -> None:
    with live_client(tmp_path, limits={"spool_bytes": 200_000}) as client:
        state = state_of(client)
        statuses = []
        for number in range(1, 200):
            body = otlp(first=number, attributes={"padding": "x" * 5000})
            response = client.post("/v1/traces", content=body, headers=PROTOBUF)
            statuses.append(response.status_code)
        assert set(statuses) == {200, 429}
        assert statuses == sorted(statuses)  # once full, it stays so until somebody reads
        assert response.headers["retry-after"] == "1"
        assert len(spooled(state)) == statuses.count(200)
        assert state.counts.totals("")["refused"].requests == statuses.count(429)
        assert client.get("/readyz").status_code == 503
        reader = SpoolReader(state.spool_folder)
        reader.delete([body.number for body in reader.batch(0, 1000)])
        reader.close()
        deadline = time.monotonic() + 10
        while state.spool.is_full and time.monotonic() < deadline:
            time.sleep(0.05)
        assert client.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200


def test_a_disk_that_is_full_answers_503_and_recovers(client: TestClient) -> None:
    state = state_of(client)
    commit = state.spool._commit
    failure = sqlite3.OperationalError("database or disk is full")
    state.spool._commit = raises(failure)  # type: ignore[method-assign]
    response = client.post("/v1/traces", content=otlp(), headers=PROTOBUF)
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert "disk is full" in message_of(response.content)
    assert "disk is full" in client.get("/readyz").json()["problems"][0]
    state.spool._commit = commit  # type: ignore[method-assign]
    assert client.post("/v1/traces", content=otlp(), headers=PROTOBUF).status_code == 200
    assert client.get("/readyz").status_code == 200
    assert spooled_ids(state) == IDS


def test_a_fault_of_ours_is_503_and_tells_nothing_of_the_data(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An exporter drops what is answered with 500; sent again, it may be taken."""
    state = state_of(client)
    monkeypatch.setattr(state.redactor, "spans", raises(ValueError("the user's secret")))
    response = client.post("/v1/traces", content=otlp(), headers=PROTOBUF)
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text + response.text
    assert state.faults == {"collector": 1}


def test_more_than_the_server_can_read_at_once_is_429(client: TestClient) -> None:
    state = state_of(client)
    state.admitted_bytes = state.settings.limits.waiting_bytes
    response = client.post("/v1/traces", content=otlp(), headers=PROTOBUF)
    assert (response.status_code, response.headers["retry-after"]) == (429, "1")
    state.admitted_bytes = 0
    assert client.post("/v1/traces", content=otlp(), headers=PROTOBUF).status_code == 200
    assert state.admitted_bytes == 0


def test_times_of_spans_do_not_decide_when_they_came(tmp_path: Path) -> None:
    """A clock of 1970 or of next year: the time of arrival is that of the server."""
    with live_client(tmp_path, clock=lambda: 1_800_000_000_123) as client:
        request = otlp_request()
        spans = request.resource_spans[0].scope_spans[0].spans
        spans[0].start_time_unix_nano, spans[1].end_time_unix_nano = 0, 2**64 - 1
        body = request.SerializeToString()
        assert client.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200
        (body,) = spooled(state_of(client))
        assert body.received == 1_800_000_000_123
        start, end = ((span.start, span.end) for span in decode_spans(body.body))
        assert (start[0], end[1]) == (0, 2**64 - 1)


def test_numbers_beyond_64_bits_are_stored_too(client: TestClient) -> None:
    document = json.loads(as_json(otlp_request()))
    span = document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    span["attributes"].append({"key": "huge", "value": {"intValue": 10**30}})
    response = client.post("/v1/traces", content=json.dumps(document), headers=JSON)
    assert response.status_code == 200
    (body,) = spooled(state_of(client))
    assert decode_spans(body.body)[0].attributes["huge"] in (10**30, str(10**30), float(10**30))


def raises(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail
