"""A real server: exporters of OpenTelemetry reach it, and nothing it acknowledged is ever lost."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from ragauge.live.spool import SpoolReader, decode_spans
from tests.support.live_process import LiveProcess, live_process, stored_traces, wait_until
from tests.support.live_server import otlp_request

pytestmark = pytest.mark.slow
PROTOBUF = "application/x-protobuf"
HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-protobuf\r\n"
SHORT_TIMES = "[live.limits]\nread_seconds = 0.7\n"


def body_of(number: int, **options: Any) -> bytes:
    data: bytes = otlp_request(first=number, **options).SerializeToString()
    return data


def send(server: LiveProcess, number: int) -> int:
    return server.ask("/v1/traces", body_of(number), Content_Type=PROTOBUF).status


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveProcess]:
    with live_process(tmp_path_factory.mktemp("live"), "--rate", "1", settings=SHORT_TIMES) as made:
        yield made


def traced(exporter: SpanExporter) -> str:
    """Make a small trace with the SDK and export it; its id."""
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("test")
    with tracer.start_as_current_span("ask") as root:
        root.set_attribute("openinference.span.kind", "CHAIN")
        root.set_attribute("input.value", "who is it?")
        with tracer.start_as_current_span("retrieve") as inner:
            inner.set_attribute("retrieval.documents.0.document.score", 0.5)
            inner.set_attribute("tags", ["a", "b"])
    provider.shutdown()
    return f"{root.get_span_context().trace_id:032x}"


@pytest.mark.parametrize(
    "compression", [Compression.NoCompression, Compression.Gzip, Compression.Deflate]
)
def test_the_exporter_of_opentelemetry_is_understood(
    server: LiveProcess, compression: Compression
) -> None:
    exporter = OTLPSpanExporter(endpoint=f"{server.url}/v1/traces", compression=compression)
    trace_id = traced(exporter)
    assert trace_id in stored_traces(server.folder)


class JsonExporter(SpanExporter):
    """Sends OTLP/JSON, made by protobuf's own writer of JSON."""

    def __init__(self, server: LiveProcess) -> None:
        self.server = server
        self.answers: list[bytes] = []

    def export(self, spans: Any) -> SpanExportResult:
        import base64

        from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

        document = json_format.MessageToDict(encode_spans(spans))
        for resource in document["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    for name in span.keys() & {"traceId", "spanId", "parentSpanId"}:
                        span[name] = base64.b64decode(span[name]).hex()
        body = json.dumps(document).encode()
        answer = self.server.ask("/v1/traces", body, Content_Type="application/json")
        self.answers.append(answer.body)
        return SpanExportResult.SUCCESS if answer.status == 200 else SpanExportResult.FAILURE


def test_json_of_the_same_spans_is_understood(server: LiveProcess) -> None:
    exporter = JsonExporter(server)
    trace_id = traced(exporter)
    assert exporter.answers == [b"{}", b"{}"]
    reader = SpoolReader(server.folder / "ragauge-live.db.spool")
    spans = [
        span for body in reader.batch(0, 1000) for span in decode_spans(body.body)
        if span.trace_id == trace_id
    ]  # fmt: skip
    reader.close()
    assert [span.name for span in spans] == ["retrieve", "ask"]
    assert spans[0].attributes == {"retrieval.documents.0.document.score": 0.5, "tags": ["a", "b"]}
    assert spans[0].resource["service.name"] == "shop"
    assert spans[0].parent_id == spans[1].span_id


def test_an_exporter_that_is_told_to_wait_sends_again(tmp_path: Path) -> None:
    """The spool is full: 429, and the exporter of OpenTelemetry comes back when there is room."""
    settings = "[live.limits]\nspool_bytes = 150000\n"
    with live_process(tmp_path, "--rate", "1", settings=settings) as server:
        number = 0
        while send_large(server, number) == 200:
            number += 1
        exporter = OTLPSpanExporter(endpoint=f"{server.url}/v1/traces")
        results: list[str] = []
        sender = threading.Thread(target=lambda: results.append(traced(exporter)))
        sender.start()
        time.sleep(0.5)
        reader = SpoolReader(tmp_path / "ragauge-live.db.spool")
        reader.delete([body.number for body in reader.batch(0, 1000)])
        sender.join(30)
        assert results[0] in stored_traces(tmp_path)
        reader.close()


def send_large(server: LiveProcess, number: int) -> int:
    body = body_of(1000 + number, attributes={"padding": "x" * 20_000})
    return server.ask("/v1/traces", body, Content_Type=PROTOBUF).status


class Sender(threading.Thread):
    """Sends traces one by one, each until it is acknowledged, and remembers which were."""

    def __init__(self, server: LiveProcess, first: int) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.first = first
        self.acknowledged: list[int] = []

    def run(self) -> None:
        for number in range(self.first, self.first + 100_000):
            try:
                if send(self.server, number) == 200:
                    self.acknowledged.append(number)
            except (OSError, urllib.error.URLError):
                return


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    chance = random.Random(17)
    acknowledged: set[str] = set()
    for attempt in range(3):
        server = LiveProcess(tmp_path, "--rate", "1")
        senders = [Sender(server, 1 + attempt * 10**6 + place * 10**5) for place in range(4)]
        for sender in senders:
            sender.start()
        wait_until(lambda: all(sender.acknowledged for sender in senders))  # noqa: B023
        time.sleep(chance.uniform(0, 0.3))
        server.kill()
        for sender in senders:
            sender.join(30)
            acknowledged.update(f"{number:032x}" for number in sender.acknowledged)
    assert len(acknowledged) >= 12
    assert acknowledged - stored_traces(tmp_path) == set()


def test_a_body_sent_again_after_a_crash_is_stored_once(tmp_path: Path) -> None:
    """The client did not hear the answer: the same body comes to the next server."""
    server = LiveProcess(tmp_path, "--rate", "1")
    assert send(server, 1) == 200
    server.kill()
    with live_process(tmp_path, "--rate", "1") as server:
        assert send(server, 1) == 200
        metrics = server.ask("/metrics").body.decode()
        assert 'ragauge_ingest_spans_total{outcome="duplicate"} 2' in metrics


def test_an_order_to_end_is_no_failure(tmp_path: Path) -> None:
    server = LiveProcess(tmp_path, "--rate", "1")
    assert send(server, 1) == 200
    assert server.stop() == 0
    assert server.lines[-1] == "ended"
    assert f"{1:032x}" in stored_traces(tmp_path)
    assert not list((tmp_path / "ragauge-live.db.spool").glob("*-wal"))  # nothing is left open


def test_the_server_says_what_it_keeps_and_when_a_window_fills(tmp_path: Path) -> None:
    with live_process(tmp_path) as server:
        wait_until(lambda: "--rate sets another" in server.lines[-1])
        said = "\n".join(server.lines)
    assert "keeping 1 % of the traces" in said
    assert "a window of 200 samples takes 20,000 traces" in said


def test_two_servers_do_not_share_a_spool(tmp_path: Path) -> None:
    with live_process(tmp_path, "--rate", "1"):
        second = LiveProcess(tmp_path, "--rate", "1")
        assert second.process.wait(30) == 2
        assert any("error[run-held]" in line for line in second.lines)
        second.stop()


def connected(server: LiveProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def test_a_slow_head_is_cut_off(server: LiveProcess) -> None:
    with connected(server) as client:
        started = time.monotonic()
        client.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\n")
        assert client.recv(100) == b""  # closed, and nobody waited for more
        assert time.monotonic() - started < 15
    assert server.ask("/healthz").status == 200


def test_a_connection_that_says_nothing_is_closed(server: LiveProcess) -> None:
    with connected(server) as client:
        assert client.recv(100) == b""


def test_an_endless_head_is_cut_off(server: LiveProcess) -> None:
    padding = b"".join(b"X-Padding-%d: %s\r\n" % (n, b"x" * 1000) for n in range(10_000))
    with connected(server) as client, pytest.raises(ConnectionError):
        client.sendall(b"GET /healthz HTTP/1.1\r\n" + padding)


def test_a_slow_body_is_answered_with_408(server: LiveProcess) -> None:
    with connected(server) as client:
        client.sendall(HEAD + b"Content-Length: 1000\r\n\r\nabc")
        assert client.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_a_body_that_ends_early_is_not_stored(server: LiveProcess) -> None:
    before = stored_traces(server.folder)
    body = body_of(987_654)
    with connected(server) as client:
        client.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body))
        client.sendall(body[:-10])
    time.sleep(0.2)
    assert stored_traces(server.folder) == before
    assert server.ask("/healthz").status == 200


def test_chunks_come_without_a_length(server: LiveProcess) -> None:
    body = body_of(555)
    with connected(server) as client:
        client.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        for start in range(0, len(body), 100):
            part = body[start : start + 100]
            client.sendall(b"%x\r\n%s\r\n" % (len(part), part))
        client.sendall(b"0\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200 ")
    assert f"{555:032x}" in stored_traces(server.folder)


def test_a_large_body_is_answered_though_nobody_reads_it(server: LiveProcess) -> None:
    answer = server.ask("/v1/traces", b"x" * 20_000_000, Content_Type=PROTOBUF)
    assert answer.status == 413


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB, where this user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a file system can be mounted by root alone")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def test_a_full_disk_is_503_until_there_is_room(tmp_path: Path, small_disk: Path) -> None:
    settings = f"[live]\nspool = '{small_disk / 'spool'}'\n"
    with live_process(tmp_path, "--rate", "1", settings=settings) as server:
        filler = small_disk / "filler"
        with filler.open("wb") as file:
            free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
            file.write(b"\0" * (free - 200_000))
        answers = [send_answer(server, number) for number in range(40)]
        statuses = [answer.status for answer in answers]
        assert set(statuses) == {200, 503}
        refused = answers[statuses.index(503)]
        assert refused.headers["retry-after"] == "1"
        assert b"full" in refused.body
        assert server.ask("/readyz").status == 503
        filler.unlink()
        again = [
            send_answer(server, number).status
            for number, status in enumerate(statuses)
            if status == 503
        ]
        assert set(again) == {200}
        assert server.ask("/readyz").status == 200
        names = {f"{5000 + number:032x}" for number in range(40)}
        assert names <= stored_traces(tmp_path, spool=small_disk / "spool")


def send_answer(server: LiveProcess, number: int) -> Any:
    body = body_of(5000 + number, attributes={"padding": "x" * 20_000})
    return server.ask("/v1/traces", body, Content_Type=PROTOBUF)
