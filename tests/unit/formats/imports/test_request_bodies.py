"""A collector reads spans from the bodies of requests, without files, and gets the same traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragauge.errors import RagaugeError
from ragauge.formats.imports.convert import assemble
from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.otlp_json import spans_of_json
from ragauge.formats.imports.otlp_protobuf import spans_of_protobuf
from ragauge.formats.imports.question_join import QuestionJoin
from tests.support.cases import cases
from tests.support.spans import body, chain, protobuf, retriever

FIXTURES = Path(__file__).parents[3] / "fixtures" / "imports"
RETRIEVAL = body(retriever(2, ["a", "b"], "q?", parent=1), resource={"service.version": "2"})
ANSWER = body(chain(1, "q?", "So it is. [2]"), resource={"service.version": "2"})


def as_json(request: dict[str, object]) -> bytes:
    return json.dumps(request).encode()


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.pb")), ids=lambda path: path.name)
def test_a_protobuf_body_gives_the_traces_of_its_file(path: Path) -> None:
    pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    expected = (FIXTURES / "expected" / f"{path.name}.jsonl").read_text("utf-8").splitlines()
    rows = assemble(spans_of_protobuf(path.read_bytes()))
    assert rows == [json.loads(line) for line in expected]


def test_a_json_body_gives_the_traces_of_its_file() -> None:
    name = "openinference-langchain.json"
    expected = (FIXTURES / "expected" / f"{name}.jsonl").read_text("utf-8").splitlines()
    rows = assemble(spans_of_json((FIXTURES / name).read_bytes()))
    assert rows == [json.loads(line) for line in expected]


def test_spans_of_one_trace_may_come_in_several_bodies_and_any_order() -> None:
    first, second = spans_of_json(as_json(RETRIEVAL)), spans_of_json(as_json(ANSWER))
    (row,) = assemble(first + second)
    assert row["answer"] == "So it is. [2]"
    assert [hit["id"] for hit in row["hits"]] == ["a", "b"]
    assert row["citations"] == ["b"]
    assert row["build"] == "2"
    assert assemble(second + first) == [row]


def test_json_and_protobuf_bodies_give_the_same_spans() -> None:
    pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    assert spans_of_protobuf(protobuf(RETRIEVAL)) == spans_of_json(as_json(RETRIEVAL))


def test_what_was_found_is_counted_and_questions_join_with_gold() -> None:
    coverage = Coverage()
    join = QuestionJoin([("Q7", "q?")])
    (row,) = assemble(spans_of_json(as_json(ANSWER)), coverage=coverage, join=join)
    assert row["qid"] == "Q7"
    assert coverage.rows == coverage.answers == 1
    assert coverage.joins == {"by question": 1}


def test_a_body_without_spans_gives_none() -> None:
    assert spans_of_json(b'{"resourceSpans": []}') == []
    assert spans_of_json(b"{}") == []
    assert assemble([]) == []


@cases("cut", [b"", b"[", b"3", b'{"resourceSpans": [{]}', as_json(ANSWER)[:-40]])
def test_a_damaged_json_body_gives_no_span_at_all(cut: bytes) -> None:
    with pytest.raises(RagaugeError) as caught:
        spans_of_json(cut)
    problem = caught.value.problems[0]
    assert problem.code == "bad-spans"
    assert problem.place is not None
    assert problem.place.file == "the request body"


def test_a_damaged_protobuf_body_gives_no_span_at_all() -> None:
    pytest.importorskip("opentelemetry.proto.trace.v1.trace_pb2")
    whole = protobuf(RETRIEVAL) + protobuf(ANSWER)
    assert len(spans_of_protobuf(whole)) == 2
    with pytest.raises(RagaugeError) as caught:
        spans_of_protobuf(whole[:-3])
    assert caught.value.problems[0].code == "bad-spans"
