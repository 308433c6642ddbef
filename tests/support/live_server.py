"""A live monitor inside a test: its state, a client without a network, and bodies to send."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from starlette.testclient import TestClient

from ragauge.live.server_state import LiveState, now_ms
from ragauge.live.settings import LiveSettings
from ragauge.live.spool import SpooledBody, SpoolReader, decode_spans
from ragauge.live.web import make_app

PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}


def settings_of(**live: Any) -> LiveSettings:
    """Settings as ragauge.toml would have them; all traces are kept unless it is said otherwise."""
    return msgspec.convert({"sampling": {"rate": 1.0}, **live}, LiveSettings)


@contextmanager
def live_state(
    folder: Path,
    *,
    url: str | None = None,
    clock: Callable[[], int] = now_ms,
    gold: dict[str, str] | None = None,
    **live: Any,
) -> Iterator[LiveState]:
    """The state of a web process, with a store and a spool in a folder."""
    state = LiveState(
        settings_of(**live),
        url or f"sqlite:///{folder / 'live.db'}",
        gold_texts=(gold or {}).values(),
        clock=clock,
    )
    try:
        yield state
    finally:
        state.close()


@contextmanager
def live_client(folder: Path, **live: Any) -> Iterator[TestClient]:
    """A client of a server that is open to this machine; `client.app.state.live` is its state."""
    with live_state(folder, **live) as state:
        yield TestClient(make_app(state), base_url="http://localhost:4319")


def spooled(state: LiveState) -> list[SpooledBody]:
    """The bodies that wait in the spool."""
    reader = SpoolReader(state.spool_folder)
    try:
        return reader.batch(0, 10_000)
    finally:
        reader.close()


def spooled_ids(state: LiveState) -> list[tuple[str, str]]:
    """The trace id and the span id of each span that waits."""
    bodies = [body for body in spooled(state) if body.kind == "spans"]
    return [(span.trace_id, span.span_id) for body in bodies for span in decode_spans(body.body)]


def otlp_request(
    traces: int = 1, *, first: int = 1, attributes: dict[str, str] | None = None, error: str = ""
) -> Any:
    """An ExportTraceServiceRequest: a root and a retriever for each trace."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    _set(resource.resource.attributes, {"service.name": "shop", "service.version": "7"})
    spans = resource.scope_spans.add().spans
    for number in range(first, first + traces):
        trace_id = number.to_bytes(16, "big")
        root = spans.add(
            trace_id=trace_id, span_id=(2 * number).to_bytes(8, "big"), name="ask",
            start_time_unix_nano=10**18, end_time_unix_nano=10**18 + 10**9,
        )  # fmt: skip
        _set(
            root.attributes,
            {"openinference.span.kind": "CHAIN", "input.value": f"question {number}",
             "output.value": "an answer", **(attributes or {})},
        )  # fmt: skip
        if error:
            root.status.code, root.status.message = 2, error
        retriever = spans.add(
            trace_id=trace_id, span_id=(2 * number + 1).to_bytes(8, "big"), name="retrieve",
            parent_span_id=(2 * number).to_bytes(8, "big"),
            start_time_unix_nano=10**18, end_time_unix_nano=10**18 + 10**8,
        )  # fmt: skip
        _set(
            retriever.attributes,
            {"openinference.span.kind": "RETRIEVER", "input.value": f"question {number}",
             "retrieval.documents.0.document.id": "d1",
             "retrieval.documents.0.document.content": "the text of a document"},
        )  # fmt: skip
    return request


def _set(attributes: Any, values: dict[str, str]) -> None:
    for name, value in values.items():
        attributes.add(key=name).value.string_value = value
