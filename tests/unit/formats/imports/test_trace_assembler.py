"""Spans of one trace become one row, whatever their order, file and vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge.formats.imports.coverage import Coverage
from tests.support.spans import (
    START,
    body,
    chain,
    imported,
    reranker,
    retriever,
    span,
    written,
)


def ids(row: dict[str, Any], field: str = "hits") -> list[str]:
    return [hit["id"] for hit in row[field]]


def rows_of(folder: Path, *spans: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    return imported(written(folder / "spans.json", *spans), **options)


def test_a_chain_with_a_retriever_is_one_trace(tmp_path: Path) -> None:
    (row,) = rows_of(
        tmp_path,
        retriever(2, ["a", "b"], "q?", parent=1),
        chain(1, "q?", "It is so. [b]", attributes={"metadata": '{"qid": "Q1"}'}),
    )
    assert row == {
        "qid": "Q1",
        "question": "q?",
        "hits": [{"id": "a", "text": "text of a"}, {"id": "b", "text": "text of b"}],
        "answer": "It is so. [b]",
        "citations": ["b"],
        "latency_ms": 0.898,  # from 1 to 899 µs
        "perf": {"t_retrieve_ms": 0.896},
        "ts": "2023-11-14T22:13:21.000001Z",
        "trace_id": f"{1:032x}",
        "span_id": f"{1:016x}",
    }


def test_the_order_of_spans_and_files_does_not_show(tmp_path: Path) -> None:
    spans = [
        chain(1, "q?", "x"),
        retriever(2, ["a"], "q?", parent=1),
        chain(11, "r?", "y", trace=2),
        retriever(12, ["b"], "r?", parent=11, trace=2),
    ]
    forward = rows_of(tmp_path, *spans)
    assert rows_of(tmp_path, *spans[::-1]) == forward
    one = written(tmp_path / "one.json", spans[3], spans[0])
    other = written(tmp_path / "other.json", spans[1], spans[2])
    assert imported(one, other) == imported(other, one) == forward
    assert [row["question"] for row in forward] == ["q?", "r?"]


def test_of_a_pair_of_spans_for_one_retrieval_the_outer_counts(tmp_path: Path) -> None:
    counts = Coverage()
    (row,) = rows_of(
        tmp_path,
        chain(1, "q?"),
        retriever(2, ["a", "b"], "q?", parent=1),
        retriever(3, None, '{"qb": {"query_str": "q?"}}', parent=2),
        coverage=counts,
    )
    assert ids(row) == ["a", "b"]
    assert counts.notes == {}


def test_the_list_of_a_reranker_counts_and_the_first_one_stays(tmp_path: Path) -> None:
    spans = [
        chain(1, "q?"),
        retriever(2, ["a", "b", "c"], "q?", parent=1),
        reranker(3, ["c", "a"], parent=1),
    ]
    (row,) = rows_of(tmp_path, *spans)
    assert ids(row) == ["c", "a"]
    assert ids(row, "hits_before_rerank") == ["a", "b", "c"]
    (first,) = rows_of(tmp_path, *spans, stage="first")
    assert ids(first) == ["a", "b", "c"]


SEVERAL = [
    chain(1, "compare x and y"),
    retriever(3, ["a", "b"], "x", parent=1),
    retriever(2, ["b", "c"], "y", parent=1),  # begins earlier and ends later
]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("last", ["b", "c"]), ("first", ["a", "b"]), ("union", ["a", "b", "c"])],
)
def test_of_several_retrievals_one_is_chosen_and_it_is_said(
    tmp_path: Path, choice: str, expected: list[str]
) -> None:
    counts = Coverage()
    (row,) = rows_of(tmp_path, *SEVERAL, retrieval=choice, coverage=counts)
    assert ids(row) == expected
    assert counts.sentences() == [
        f"1 trace with several retrievals, read with --retrieval {choice}"
    ]


def test_each_retrieval_can_be_a_trace(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, *SEVERAL, retrieval="each")
    assert [(row["question"], ids(row)) for row in rows] == [("x", ["a", "b"]), ("y", ["b", "c"])]


def test_a_trace_that_lost_its_top_ranks_is_an_error_and_has_no_hits(tmp_path: Path) -> None:
    """The SDK keeps 128 attributes and drops the oldest: the best hits go first."""
    attributes = {f"retrieval.documents.{rank}.document.id": f"c{rank}" for rank in range(18, 50)}
    counts = Coverage()
    (row,) = rows_of(
        tmp_path,
        span(
            1,
            {**attributes, "openinference.span.kind": "RETRIEVER"},
            droppedAttributesCount=76,
        ),
        span(
            2,
            {"openinference.span.kind": "RETRIEVER", "input.value": '{"qb": {"query_str": "q?"}}'},
            parent=1,
        ),
        coverage=counts,
    )
    assert row["hits"] == []
    assert row["question"] == "q?"
    assert row["error"] == (
        "truncated: the first 18 of 50 documents are missing (76 attributes were dropped)"
    )
    assert counts.errors == 1
    assert "lost hits" in counts.sentences()[0]


def test_a_gap_in_the_ranks_is_enough_without_a_count(tmp_path: Path) -> None:
    """Phoenix does not export how many attributes were dropped."""
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.id": "a",
        "retrieval.documents.2.document.id": "c",
    }
    (row,) = rows_of(tmp_path, span(1, attributes))
    assert row["error"] == "truncated: 1 of 3 documents are missing"


def test_a_span_that_lost_its_kind_is_still_a_retriever(tmp_path: Path) -> None:
    (row,) = rows_of(
        tmp_path, span(1, {"retrieval.documents.7.document.id": "h"}, droppedAttributesCount=9)
    )
    assert row["error"].startswith("truncated: the first 7 of 8 documents")


def test_a_rank_of_a_billion_takes_no_memory(tmp_path: Path) -> None:
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.999999999.document.id": "a",
    }
    (row,) = rows_of(tmp_path, span(1, attributes))
    assert row["error"] == "truncated: the first 999999999 of 1000000000 documents are missing"
    attributes["retrieval.documents.99999999999999999999.document.id"] = "b"
    (row,) = rows_of(tmp_path, span(1, attributes))
    assert "has no rank" in row["error"]


def test_without_its_first_span_a_trace_is_read_and_counted(tmp_path: Path) -> None:
    counts = Coverage()
    (row,) = rows_of(tmp_path, retriever(2, ["a"], "q?", parent=77), coverage=counts)
    assert (row["question"], ids(row)) == ("q?", ["a"])
    assert counts.sentences() == ["1 trace with spans whose parent is not in the files"]


def test_spans_above_that_no_vocabulary_knows_are_passed_through(tmp_path: Path) -> None:
    """A web server's span stands above the chain, as in any deployed service."""
    (row,) = rows_of(
        tmp_path,
        span(1, {"http.request.method": "POST"}),
        chain(2, "q?", "x", parent=1),
        retriever(3, ["a"], "rewritten q", parent=2),
    )
    assert (row["question"], row["answer"], ids(row)) == ("q?", "x", ["a"])


def test_traces_of_other_software_are_counted_and_make_no_row(tmp_path: Path) -> None:
    counts = Coverage()
    rows = rows_of(
        tmp_path,
        span(1, {"http.request.method": "GET"}),
        span(2, {"openinference.span.kind": "EMBEDDING"}, trace=2),
        coverage=counts,
    )
    assert rows == []
    assert counts.sentences() == [
        "1 trace without a span of a known convention (passed over)",
        "1 trace without a question, a retrieval or an answer (passed over)",
    ]


def test_a_span_that_came_twice_counts_once(tmp_path: Path) -> None:
    counts = Coverage()
    spans = [chain(1, "q?", "x"), retriever(2, ["a"], "q?", parent=1)]
    (row,) = rows_of(tmp_path, *spans, *spans, coverage=counts)
    assert ids(row) == ["a"]
    assert counts.notes == {"spans that came twice (counted once)": 2}


def test_spans_that_are_each_others_parents_end(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path, chain(1, "q?", "x", parent=2), chain(2, "r?", "y", parent=1))
    assert row["question"] in ("q?", "r?")


def test_an_error_keeps_its_first_line_and_no_secret(tmp_path: Path) -> None:
    message = "RuntimeError: no answer from https://u:hunter2@db.example\nTraceback (most recent..."
    (row,) = rows_of(tmp_path, chain(1, "q?", status={"code": 2, "message": message}))
    assert row["error"] == "RuntimeError: no answer from https://u:[redacted]@db.example"
    event = {
        "name": "exception",
        "attributes": [{"key": "exception.message", "value": {"stringValue": "index is down"}}],
    }
    (row,) = rows_of(tmp_path, chain(1, "q?", status={"code": 2}, events=[event]))
    assert row["error"] == "index is down"


def test_a_step_that_failed_inside_one_that_went_well_is_no_error(tmp_path: Path) -> None:
    (row,) = rows_of(
        tmp_path,
        chain(1, "q?", "fallback"),
        retriever(2, None, "q?", parent=1, status={"code": 2, "message": "down"}),
    )
    assert "error" not in row


def test_a_python_repr_is_named_and_not_evaluated(tmp_path: Path) -> None:
    counts = Coverage()
    attributes = {"retrieval.documents.0.document.metadata": "{'file': __import__('os')}"}
    (row,) = rows_of(tmp_path, retriever(1, ["a"], "q?", attributes=attributes), coverage=counts)
    assert row["hits"] == [{"id": "a", "text": "text of a"}]
    assert counts.sentences() == ["1 hit with metadata as a Python repr (not read)"]


@pytest.mark.parametrize("score", ["NaN", "Infinity", "-Infinity"])
def test_a_score_that_is_no_number_is_left_out(tmp_path: Path, score: str) -> None:
    counts = Coverage()
    attributes = {"retrieval.documents.0.document.score": {"doubleValue": score}}
    (row,) = rows_of(tmp_path, retriever(1, ["a"], attributes=attributes), coverage=counts)
    assert "score" not in row["hits"][0]
    assert counts.sentences() == ["1 hit with a score that is no number (not read)"]


def test_a_whole_number_is_a_score_and_an_id(tmp_path: Path) -> None:
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.id": {"intValue": "7"},
        "retrieval.documents.0.document.score": {"intValue": "0"},
    }
    (row,) = rows_of(tmp_path, span(1, attributes))
    assert row["hits"] == [{"id": "7", "score": 0}]


def test_documents_that_were_cut_at_a_length_limit_are_lost(tmp_path: Path) -> None:
    documents = json.dumps([{"id": "a", "score": 1}, {"id": "b", "score": 0.5}])[:30]
    attributes = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": documents}
    (row,) = rows_of(tmp_path, span(1, attributes))
    assert row["error"] == "truncated: the list of documents was cut at 30 characters"
    assert row["hits"] == []


def test_what_identifies_the_index_comes_along(tmp_path: Path) -> None:
    metadata = {"metadata": '{"index_hash": "v3", "secret": "x"}'}
    path = tmp_path / "spans.json"
    spans = body(
        chain(1, "q?", attributes=metadata),
        retriever(2, ["a"], parent=1),
        resource={"service.version": "1.2.3"},
    )
    path.write_text(json.dumps(spans), encoding="utf-8")
    (row,) = imported(path)
    assert (row["index_hash"], row["build"]) == ("v3", "1.2.3")
    assert "secret" not in row


def test_the_time_of_a_trace_decides_its_place(tmp_path: Path) -> None:
    """The last trace of a question counts: in an export that is newest first, too."""
    later = chain(1, "q?", "new", trace=5)
    earlier = chain(1, "q?", "old", trace=9, startTimeUnixNano=str(START))
    rows = rows_of(tmp_path, later, earlier)
    assert [row["answer"] for row in rows] == ["old", "new"]


def test_a_hit_without_a_name_keeps_its_rank(tmp_path: Path) -> None:
    counts = Coverage()
    documents = json.dumps([{"score": 0.9}, {"id": "b"}, {"source_id": "c.md", "score": 0.1}])
    attributes = {"gen_ai.operation.name": "retrieval", "gen_ai.retrieval.documents": documents}
    (row,) = rows_of(tmp_path, span(1, attributes), coverage=counts)
    assert ids(row) == ["(unnamed)", "b", "c.md"]
    assert counts.sentences() == ["1 hit without an id, a text or a document"]


def test_where_a_chunk_was_cut_out_comes_along(tmp_path: Path) -> None:
    """LangChain's splitters and LlamaIndex say it in characters."""
    attributes = {
        "retrieval.documents.0.document.metadata": '{"source": "a.md", "start_index": 7, "page": 2}'
    }
    (row,) = rows_of(tmp_path, retriever(1, ["a"], attributes=attributes))
    expected = {"id": "a", "doc": "a.md", "text": "text of a", "start_index": 7}
    assert row["hits"] == [expected]
