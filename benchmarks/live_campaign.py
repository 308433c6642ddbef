"""Owns the campaign on the live monitor: kills at random moments, a soak, and what load costs.

What was answered with 200 is looked for afterwards: in the spool, or among the scored traces.
"""

from __future__ import annotations

import json
import logging
import os
import random
import sqlite3
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import live_bodies
import live_load
from live_load import Server, stored_traces
from table import grid

SEED = 17
KILLS = 200
SOAK_SECONDS = 600
SOAK_SPANS = 2000
FAST_SPANS = 10_000
_PATIENCE = 300
_WHOLE = 0.1  # less is a look at whether it works at all


class _Sender(threading.Thread):
    """Sends small bodies one after the other, a second time where it heard nothing.

    The first of them sends a trace as two bodies, its root last; the second is the exporter of
    OpenTelemetry, which is asked again where it gave up; the others send two traces a body.
    """

    def __init__(self, place: int) -> None:
        super().__init__(daemon=True)
        self.place = place
        self.url = ""
        self.is_over = False
        self.acknowledged: set[str] = set()
        self.statuses: dict[int, int] = {}

    def run(self) -> None:
        number = self.place * 10_000_000
        while not self.is_over:
            if self.place == 1:
                self._export()
                continue
            request = live_bodies.request(SEED, number, 1 if self.place == 0 else 2)
            bodies = _split(request) if self.place == 0 else [request.SerializeToString()]
            for body in bodies:
                self._until_taken(lambda body=body: self._send(body))  # type: ignore[misc]
            count = 1 if self.place == 0 else 2
            for step in range(count):
                self.acknowledged.add(live_bodies.trace_id(SEED, number + step))
            number += count

    def _until_taken(self, send: Callable[[], int]) -> None:
        while True:
            status = send()
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == 200:
                return
            time.sleep(0.05)

    def _send(self, body: bytes) -> int:
        """The status of the answer; 0 where there was none."""
        headers = {"content-type": "application/x-protobuf"}
        connection = HTTPConnection(self.url.removeprefix("http://"), timeout=30)
        try:
            connection.request("POST", "/v1/traces", body, headers)
            return connection.getresponse().status
        except (OSError, HTTPException):
            return 0
        finally:
            connection.close()

    def _export(self) -> None:
        """A trace by the SDK and its exporter, with gzip."""
        from opentelemetry.exporter.otlp.proto.http import Compression
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        kept = InMemorySpanExporter()
        provider = TracerProvider(resource=Resource.create({"service.name": "load"}))
        provider.add_span_processor(SimpleSpanProcessor(kept))
        tracer = provider.get_tracer("campaign")
        question = {"input.value": "where is it?"}
        chain = {"openinference.span.kind": "CHAIN", "output.value": "here", **question}
        found = {f"retrieval.documents.{rank}.document.id": f"c{rank}" for rank in range(5)}
        with tracer.start_as_current_span("ask", attributes=chain) as root:
            search = {"openinference.span.kind": "RETRIEVER", **question, **found}
            tracer.start_span("retrieve", attributes=search).end()
        spans = kept.get_finished_spans()

        def send() -> int:
            exporter = OTLPSpanExporter(
                endpoint=f"{self.url}/v1/traces", compression=Compression.Gzip
            )
            result = exporter.export(spans)
            exporter.shutdown()  # type: ignore[no-untyped-call]
            return 200 if result == SpanExportResult.SUCCESS else 0

        self._until_taken(send)
        self.acknowledged.add(f"{root.get_span_context().trace_id:032x}")


def _split(request: Any) -> list[bytes]:
    """The spans of a request in two bodies: the root comes last."""
    first, last = deepcopy(request), deepcopy(request)
    del first.resource_spans[0].scope_spans[0].spans[0]
    del last.resource_spans[0].scope_spans[0].spans[1:]
    return [first.SerializeToString(), last.SerializeToString()]


def kills(count: int) -> tuple[list[str], int]:
    """Kill the web process, the worker or both at random moments while four senders go on."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # the server is gone: it is known
    chance = random.Random(SEED)
    # A trace without its root waits for longer than a server needs to be back.
    settings = "[live]\nassemble_root = 0.2\nassemble_after = 60\n"
    killed = dict.fromkeys(("web", "worker", "both"), 0)
    with tempfile.TemporaryDirectory(prefix="ragauge-kills-") as name:
        folder = Path(name)
        server = Server(folder, settings)
        senders = [_Sender(place) for place in range(4)]
        for sender in senders:
            sender.url = server.url
            sender.start()
        for _ in range(count):
            time.sleep(chance.uniform(0, 1.5))
            what = chance.choice(list(killed))
            killed[what] += 1
            if what != "web":
                server.kill(worker=True)
            if what != "worker":
                server.kill()
                server = Server(folder, settings)
                for sender in senders:
                    sender.url = server.url
        for sender in senders:
            sender.is_over = True
        for sender in senders:
            sender.join(60)
        live_load.wait_until_scored(folder, _PATIENCE)
        server.stop()
        acknowledged = set().union(*(sender.acknowledged for sender in senders))
        lost = acknowledged - stored_traces(folder)
        quarantine = folder / "ragauge-live.db.spool" / "quarantine"
        aside = len(list(quarantine.iterdir())) if quarantine.exists() else 0
        with closing(sqlite3.connect(folder / "ragauge-live.db")) as connection:
            rows = connection.execute("SELECT trace_id, state, body FROM live_traces").fetchall()
        twice = len(rows) - len({row[0] for row in rows})
        partial = sum(
            name in acknowledged and not _is_whole(state, body) for name, state, body in rows
        )
    expected = (0, 200, 429, 503)  # 0: the server was gone
    other = sum(
        count
        for sender in senders
        for status, count in sender.statuses.items()
        if status not in expected
    )
    row = [
        *(f"{count}" for count in killed.values()), f"{len(acknowledged):,}", f"{len(rows):,}",
        f"{len(lost):,}", f"{twice:,}", f"{partial:,}", f"{aside:,}", f"{other:,}",
    ]  # fmt: skip
    return row, len(lost) + twice + partial + aside + other


def _is_whole(state: str, body: bytes | None) -> bool:
    """Whether a trace was scored with all its hits, and with its answer."""
    if state != "scored" or body is None:
        return False
    trace = json.loads(zlib.decompress(body))
    return len(trace["hits"]) == 5 and bool(trace["answer"])


def campaign(effort: float) -> int:
    """All three; the number of faults."""
    row, faults = kills(max(2, round(KILLS * effort)))
    headings = (
        "web killed", "worker killed", "both killed", "traces acknowledged", "stored", "lost",
        "stored twice", "stored in part", "put aside", "other answers",
    )  # fmt: skip
    print("`kill -9` at random moments, under four senders that go on:\n")
    print(grid("rrrrrrrrrr", headings, [row]))
    seconds = max(0.5, SOAK_SECONDS * effort)
    load = f"load {os.getloadavg()[0]:.1f}, with what else ran"
    print(f"\nLoad on a server, from this machine ({load}); the first row lasts {seconds:.0f} s:\n")
    short = max(0.5, 20 * min(1.0, effort))
    rows = [
        live_load.steady(SOAK_SPANS, seconds, packed=False, seed=3),
        live_load.overload(256, short, seed=5),
    ]
    if effort >= _WHOLE:
        rows += [
            live_load.steady(FAST_SPANS, short, packed=False, seed=6),
            live_load.steady(FAST_SPANS, short, packed=True, seed=4),
        ]
    print(live_load.table(rows))
    faults += sum(measured.faults for measured in rows)
    if effort >= _WHOLE:
        print("\nBodies of other sizes:\n")
        print(live_load.shapes(short))
    print(f"\n{faults} traces lost, stored twice or in part, or answers other than 200 and 429")
    return int(faults > 0)
