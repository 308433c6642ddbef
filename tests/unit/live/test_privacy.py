"""Privacy: no secret, no user's name and nothing the project hides ever comes to the disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.live.database import open_database
from ragauge.live.privacy import Redactor, user_hash_key, user_key
from ragauge.live.settings import Redaction
from ragauge.live.spool import decode_spans
from tests.support.cases import cases
from tests.support.live_server import JSON, PROTOBUF, live_client, otlp_request, spooled

MARK = "hunter2mark"
SECRETS = {
    "http.request.header.authorization": MARK,
    "http.request.header.x-internal-auth": f"id-{MARK}",
    "http.response.header.set-cookie": f"session={MARK}",
    "llm.api_key": MARK,
    "db.password": MARK,
    "url.full": f"https://user:{MARK}@host/path?api_key={MARK}",
    "input.value": f"Authorization: Bearer {MARK}",
    "llm.invocation_parameters": json.dumps({"openai_api_key": MARK, "n": 1}),
    "note": f"use sk-{MARK}abcdef0123456789 please",
    "user.id": MARK,
    "enduser.id": MARK,
    "user.email": f"{MARK}@example.com",
    "hidden.by.project": MARK,
    "ticket": f"CASE-{MARK}",
}
SETTINGS = {"fields": ["hidden.by.project"], "patterns": [r"CASE-\w+"]}


def everything_written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
@cases("name", SECRETS)
def test_secrets_of_spans_never_touch_the_disk(tmp_path: Path, name: str) -> None:
    """Also while the file is open: the log of the database is looked at too."""
    request = otlp_request(attributes={name: SECRETS[name]}, error=f"password={MARK}")
    resource = request.resource_spans[0].resource
    resource.attributes.add(key="process.env.API_TOKEN").value.string_value = MARK
    with live_client(tmp_path, redaction=SETTINGS) as client:
        body = request.SerializeToString()
        assert client.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200
        written = everything_written(tmp_path)
        assert b"an answer" in written  # what is no secret is there
        assert MARK.encode() not in written
    assert MARK.encode() not in everything_written(tmp_path)


def test_secrets_of_rows_never_touch_the_disk(tmp_path: Path) -> None:
    row = {
        "trace_id": "t", "question": f"why CASE-{MARK}", "answer": f"Bearer {MARK}", "user": MARK,
        "hits": [{"id": "d", "text": f"token={MARK}", "hidden.by.project": MARK}],
        "headers": {"authorization": MARK}, "config": ["--api-key", MARK],
    }  # fmt: skip
    with live_client(tmp_path, redaction=SETTINGS) as client:
        assert client.post("/api/traces", json=row).json()["accepted"] == 1
        assert MARK.encode() not in everything_written(tmp_path)
        (body,) = spooled(client.app.state.live)  # type: ignore[attr-defined]
        stored = json.loads(body.body)
        assert stored["question"] == "why [redacted]"
        assert "user" not in stored
        assert len(stored["user_key"]) == 32


def test_what_is_refused_or_left_out_is_not_written_either(tmp_path: Path) -> None:
    with live_client(tmp_path, sampling={"rate": 0.0, "errors": 0.0}) as client:
        body = otlp_request(attributes={"note": MARK}).SerializeToString()
        assert client.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200
        assert client.post("/v1/traces", content=body[:-3], headers=PROTOBUF).status_code == 400
        assert client.post("/api/traces", content=f'{{"{MARK}"', headers=JSON).status_code == 400
        assert MARK.encode() not in everything_written(tmp_path)


def test_a_user_is_one_hash_on_all_servers_of_a_store(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'live.db'}"
    one, other = open_database(url), open_database(url)
    key = user_hash_key(one)
    assert key == user_hash_key(other)
    assert len(key) == 32
    assert user_key("ann", key) == user_key("ann", key) != user_key("ann", bytes(32))
    one.close()
    other.close()
    with live_client(tmp_path) as client:
        body = otlp_request(attributes={"user.id": "ann"}).SerializeToString()
        client.post("/v1/traces", content=body, headers=PROTOBUF)
        (stored,) = spooled(client.app.state.live)  # type: ignore[attr-defined]
    assert decode_spans(stored.body)[0].attributes["user.id"] == user_key("ann", key)


def test_texts_may_be_left_out_and_ids_stay(tmp_path: Path) -> None:
    metadata = '{"qid": "Q7", "index_hash": "i1", "note": "my secret plan"}'
    request = otlp_request(attributes={"metadata": metadata, "session.id": "s1"})
    row = {"trace_id": "t", "qid": "Q1", "question": "plan?",
           "hits": [{"id": "d1", "text": "plan"}], "answer": "plan?", "hits_seen": 3}  # fmt: skip
    with live_client(tmp_path, redaction={"texts": True}) as client:
        client.post("/v1/traces", content=request.SerializeToString(), headers=PROTOBUF)
        client.post("/api/traces", json=row)
        written = everything_written(tmp_path)
        spans, rows = spooled(client.app.state.live)  # type: ignore[attr-defined]
    for text in (b"question 1", b"an answer", b"text of a document", b"plan"):
        assert text not in written
    root, retriever = decode_spans(spans.body)
    assert root.attributes["openinference.span.kind"] == "CHAIN"
    assert root.attributes["session.id"] == "s1"
    assert json.loads(root.attributes["metadata"])["qid"] == "Q7"
    assert retriever.attributes["retrieval.documents.0.document.id"] == "d1"
    assert root.attributes["input.value"] == retriever.attributes["input.value"]  # the same text
    assert root.attributes["input.value"] != root.attributes["output.value"]
    stored = json.loads(rows.body)
    assert (stored["trace_id"], stored["qid"], stored["hits"][0]["id"]) == ("t", "Q1", "d1")
    assert stored["question"] == stored["answer"] != stored["hits"][0]["text"]


def test_a_pattern_that_is_none_is_told_at_the_start() -> None:
    with pytest.raises(RagaugeError, match="patterns: the pattern"):
        Redactor(Redaction(patterns=("(",)), b"key")


@cases("value", [None, True, 3, 2.5, ["a", {"token": MARK}], {"password": MARK}])
def test_values_of_every_type_are_looked_at(value: Any) -> None:
    redactor = Redactor(Redaction(), b"key")
    from ragauge.formats.imports.span import TraceSpan

    span = TraceSpan("t", "s", None, "name", 0, 1, {"plain": value, "secret": value})
    (result,) = redactor.spans([span])
    assert MARK not in repr(result)
    if not isinstance(value, list | dict):
        assert result.attributes["plain"] == value
