"""Answers of services in their own JSON, and as streams."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragauge.targets.shared.foreign_answer import decoded_answer, known_answer
from tests.support.cases import cases

HIT = {"text": "so", "doc": "/d/a.md"}


@cases(
    ("answered", "hits"),
    [
        ({"results": [{"content": "so", "metadata": {"source": "/d/a.md"}}]}, [HIT]),
        ({"data": {"documents": [{"page_content": "so", "source": "/d/a.md"}]}}, [HIT]),
        ({"hits": {"hits": [{"_id": "1", "_score": 2.5, "_source": HIT}]}},
         [{**HIT, "id": "1", "score": 2.5}]),
        ({"matches": [{"id": "1", "score": 0.5, "payload": HIT}]},
         [{**HIT, "id": "1", "score": 0.5}]),
        ({"contexts": ["two words", "id-7"]}, [{"text": "two words"}, "id-7"]),
        ({"source_nodes": [{"node": {"id_": "n", **HIT}, "score": 0.1}]},
         [{**HIT, "score": 0.1}]),
        ({"results": [{"content": "so", "metadata": {"source": "/d/a.md", "start_index": 4}}]},
         [{**HIT, "offsets": [4, 6], "unit": "char"}]),
        ({"results": []}, []),
    ],
)  # fmt: skip
def test_hits_are_found_under_the_usual_names(answered: Any, hits: list[Any]) -> None:
    assert known_answer(answered)["hits"] == hits


@cases(
    "row",
    [
        {"hits": ["a", "b"], "answer": "yes"},
        {"topk": [{"id": "a", "doc": "d", "offsets": [0, 4], "delta_s": 0.3}]},
        {"retrieval": {"hits": ["a"]}, "answer_json": {"claim": "c"}},
        {"answer": "yes"},
        {"hits": [{"id": "a", "text": "so", "metadata": {"x": 1}}]},
    ],
)
def test_what_is_spelled_as_a_trace_stays(row: Any) -> None:
    assert known_answer(row) == row
    assert known_answer(["a", ["b", 0.5], {"id": "c"}]) == ["a", ["b", 0.5], {"id": "c"}]


@pytest.mark.parametrize(
    "answered",
    [
        {"response": "yes"},
        {"output": {"content": "yes"}},
        {"choices": [{"message": {"role": "assistant", "content": "yes"}}]},
    ],
)
def test_the_answer_is_found(answered: Any) -> None:
    assert known_answer(answered)["answer"] == "yes"


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def events(*datas: Any) -> bytes:
    texts = [data if isinstance(data, str) else json.dumps(data) for data in datas]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


@cases(
    ("body", "kind"),
    [
        (lines({"sources": [HIT]}, {"token": "ye"}, {"token": "s"}), "application/x-ndjson"),
        (lines({"token": "ye"}, {"token": "s"}, {"sources": [HIT], "answer": "yes"}), ""),
        (events({"sources": [HIT]}, {"delta": "ye"}, {"delta": "s"}, "[DONE]"), ""),
        (events({"data": {"sources": [HIT]}}, {"type": "x", "data": "yes"}), "text/event-stream"),
        (events({"sources": [HIT]}, {"choices": [{"delta": {"content": "yes"}}]}), ""),
        (b": hello\nevent: a\n" + events({"sources": [HIT]}, "ye", "s"), "text/event-stream"),
        (lines({"sources": [HIT], "answer": "yes"}), "application/json; charset=utf-8"),
    ],
)
def test_a_stream_is_put_together(body: bytes, kind: str) -> None:
    row = known_answer(decoded_answer(body, kind))
    assert row["hits"] == [HIT]
    assert row["answer"] == "yes"


@cases("body", [b"", b"<html>", b'{"a": 1', b"plain words\nand more", b"\xff"])
def test_what_is_neither_json_nor_a_stream_is_an_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decoded_answer(body, "application/json")
