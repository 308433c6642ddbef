"""Hits as libraries and databases dump them: what each was printed as by the library itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragauge import load_traces, score
from ragauge.errors import RagaugeError
from ragauge.model.trace import Hit
from tests.support.cases import cases
from tests.support.command import Folder, Row

TEXT = "Green tea is brewed at 80 degrees."
# langchain-core 1.x `model_dump`, `dumpd`; llama-index-core `NodeWithScore.to_dict`, and a node as
# people write it; haystack 3.4 `Document.to_dict`, flat and not; qdrant-client `ScoredPoint`.
SHAPES: dict[str, tuple[Any, Hit]] = {
    "langchain": (
        {
            "id": None,
            "metadata": {"source": "/data/docs/tea.md", "start_index": 0},
            "page_content": TEXT,
            "type": "Document",
        },
        Hit("", doc="/data/docs/tea.md", text=TEXT),
    ),
    "langchain-dumpd": (
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "document", "Document"],
            "kwargs": {"metadata": {"source": "a.md"}, "page_content": TEXT, "type": "Document"},
        },
        Hit("", doc="a.md", text=TEXT),
    ),
    "llamaindex": (
        {
            "node": {
                "id_": "n-1",
                "embedding": None,
                "metadata": {"file_path": "tea.md"},
                "relationships": {},
                "text": TEXT,
                "mimetype": "text/plain",
                "start_char_idx": 0,
                "end_char_idx": 34,
                "class_name": "TextNode",
            },
            "score": 0.5,
            "class_name": "NodeWithScore",
        },
        Hit("n-1", doc="tea.md", score=0.5, text=TEXT),
    ),
    "llamaindex-text": (
        {"text": TEXT, "metadata": {"file_path": "tea.md"}},
        Hit("", doc="tea.md", text=TEXT),
    ),
    "haystack": (
        {"file_path": "tea.md", "id": "ec3b", "content": TEXT, "blob": None, "score": 0.5},
        Hit("ec3b", doc="tea.md", score=0.5, text=TEXT),
    ),
    "haystack-meta": (
        {"id": "ec3b", "content": TEXT, "meta": {"file_path": "tea.md"}, "score": 0.5},
        Hit("ec3b", doc="tea.md", score=0.5, text=TEXT),
    ),
    "qdrant": (
        {
            "id": 7,
            "version": 1,
            "score": 0.5,
            "payload": {"page_content": TEXT, "metadata": {"source": "tea.md"}},
            "vector": None,
        },
        Hit("7", doc="tea.md", score=0.5, text=TEXT),
    ),
    "chroma-row": (
        {"id": "c1", "document": TEXT, "metadata": {"source": "tea.md"}, "distance": 0.1},
        Hit("c1", doc="tea.md", text=TEXT),
    ),
}


def trace_file(folder: Path, *hits: Any, **more: Any) -> Path:
    path = folder / "t.jsonl"
    path.write_text(json.dumps({"qid": "Q1", "hits": list(hits), **more}) + "\n")
    return path


@cases("name", SHAPES)
def test_hits_are_read_as_the_library_has_them(tmp_path: Path, name: str) -> None:
    given, expected = SHAPES[name]
    traces = load_traces(trace_file(tmp_path, given))
    (hit,) = traces.traces[0].hits
    assert (hit.doc, hit.text, hit.score) == (expected.doc, expected.text, expected.score)
    if expected.id:
        assert hit.id == expected.id
    assert any("documents of a library" in note for note in traces.notes)


@cases("name", SHAPES)
def test_files_rows_and_nested_lists_agree(tmp_path: Path, name: str) -> None:
    given, _ = SHAPES[name]
    gold = [{"qid": "Q1", "question": "How hot is tea?", "relevant": [{"quote": TEXT}]}]
    row = {"qid": "Q1", "hits": [given]}
    nested = {"qid": "Q1", "retrieval": {"hits": [given]}}
    for traces in ([row], [nested], trace_file(tmp_path, given)):
        scored = score(gold, traces, metrics=["retrieval.recall@1"])
        assert scored.metrics["retrieval.recall@1"].value == 1


def test_a_query_of_chroma_is_read_as_it_answers(tmp_path: Path) -> None:
    path = trace_file(tmp_path)
    answered = {
        "ids": [["a", "b"]],
        "documents": [[TEXT, "Black tea."]],
        "metadatas": [[{"source": "tea.md"}, None]],
        "distances": [[0.0, 1.4]],
    }
    path.write_text(json.dumps({"qid": "Q1", "hits": answered}))
    first, second = load_traces(path).traces[0].hits
    assert (first.id, first.doc, first.text) == ("a", "tea.md", TEXT)
    assert (second.id, second.doc, second.text) == ("b", None, "Black tea.")


def test_hits_in_our_own_names_stay_as_they_are(tmp_path: Path) -> None:
    own = {"id": "c1", "text": TEXT, "doc": "tea.md", "metadata": {"source": "other.md"}}
    traces = load_traces(trace_file(tmp_path, own))
    assert traces.traces[0].hits == (Hit("c1", doc="tea.md", text=TEXT),)
    assert traces.notes == ()


def test_what_a_map_says_of_hits_wins(tmp_path: Path) -> None:
    hit = {"page_content": TEXT, "metadata": {"source": "a.md", "key": "k-1"}}
    traces = load_traces(trace_file(tmp_path, hit), fields={"hits": "hits[].metadata.key"})
    assert [one.id for one in traces.traces[0].hits] == ["k-1"]


def test_hits_that_are_documents_count_for_documents() -> None:
    gold = [
        {"qid": f"Q{n}", "question": f"Which tea is number {n}?", "relevant_docs": ["tea.md"]}
        for n in range(2)
    ]
    rows: list[Row] = [
        {"qid": "Q0", "hits": [{"doc": "beer.md"}, {"doc": "tea.md"}]},
        {"qid": "Q1", "hits": [{"doc": "beer.md"}, {"metadata": {"source": "wine.md"}}]},
    ]
    scored = score(gold, rows, profile="all", metrics=["retrieval.recall_doc@2"])
    assert scored.metrics["retrieval.recall_doc@2"].value == 1 / 2
    assert not scored.blocks


def test_a_document_beside_a_passage_that_nothing_reads_is_a_misspelt_text(tmp_path: Path) -> None:
    with pytest.raises(RagaugeError) as caught:
        load_traces(trace_file(tmp_path, {"doc": "tea.md", "page_contents": TEXT}))
    assert "--field hits.text=page_contents" in caught.value.problems[0].hint
    (hit,) = load_traces(trace_file(tmp_path, {"doc": "a.md", "title": "Tea"})).traces[0].hits
    assert hit == Hit("a.md", doc="a.md")


def test_a_hit_without_anything_says_which_field_to_name(tmp_path: Path) -> None:
    with pytest.raises(RagaugeError) as caught:
        load_traces(trace_file(tmp_path, {"info": {"uid": "c1"}}))
    assert "--field hits.id=info.NAME" in caught.value.problems[0].hint
    with pytest.raises(RagaugeError) as caught:
        load_traces(trace_file(tmp_path, {"uid": "c1"}))
    assert "--field hits.id=uid" in caught.value.problems[0].hint


def test_gold_whose_names_are_all_misspelt_is_one_error_with_the_name(folder: Folder) -> None:
    folder.write("gold.jsonl", [{"qidd": f"Q{n}", "questoin": "Why?"} for n in range(200)])
    folder.write("t.jsonl", [{"qid": "Q1", "hits": ["a"]}])
    for command in ("score", "validate"):
        done = folder.run(command, "gold.jsonl", "t.jsonl")
        assert (done.exit_code, done.codes) == (3, {"missing-field"})
        assert len(done.problems) == 1
        (problem,) = done.problems
        assert problem.message == "the item has no id; the same up to line 20"
        assert "`qidd` is not read: did you mean `qid`?" in problem.hint
        assert problem.where == "gold.jsonl:1"
        assert "... and 180 more problems" in done.err


def test_items_without_an_id_here_and_there_are_listed_one_by_one(folder: Folder) -> None:
    rows = [{"qid": f"Q{n}"} if n % 2 else {"case_key": f"Q{n}"} for n in range(6)]
    folder.write("gold.jsonl", rows)
    folder.write("t.jsonl", [{"qid": "Q1", "hits": ["a"]}])
    done = folder.run("score", "gold.jsonl", "t.jsonl")
    assert [problem.where for problem in done.problems] == [f"gold.jsonl:{n}" for n in (1, 3, 5)]
    assert "--gold-field qid=case_key" in done.problems[0].hint


def test_an_id_that_is_misspelt_by_a_double_letter_is_named(folder: Folder) -> None:
    rows = [{"qidd": f"Q{n}", "question": f"Why is it {n}?", "relevant": ["a"]} for n in range(3)]
    folder.write("gold.jsonl", rows)
    folder.write("t.jsonl", [{"question": "Why is it 1?", "hits": ["a"]}])
    done = folder.run("score", "gold.jsonl", "t.jsonl", "--profile", "all")
    assert "each is named after its question; `qidd` is not read: did you mean `qid`?" in done.err


def test_texts_are_shown_where_no_id_can_match(folder: Folder) -> None:
    gold = [
        {"qid": f"Q{n}", "question": f"Which colour{n} is right?", "relevant": [f"c{n}"]}
        for n in range(5)
    ]
    long = "Green tea is brewed at 80 degrees, and  black tea with water that boils."
    folder.write("gold.jsonl", gold)
    folder.write("t.jsonl", [{"qid": f"Q{n}", "hits": [{"text": long}]} for n in range(5)])
    done = folder.run("score", "gold.jsonl", "t.jsonl", "--profile", "all")
    assert done.exit_code == 4
    assert 'such as the text "Green tea is brewed at 80 degrees, and black tea with water..."' in (
        done.out + done.err
    )
    assert "text=" not in done.out + done.err
