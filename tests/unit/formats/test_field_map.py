"""A user's own field names become ours before anything reads a row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.formats.field_map import FieldMapper, FieldMaps, field_maps
from ragauge.formats.load import load_gold, load_traces


def mapped(fields: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    return FieldMapper(field_maps(fields).traces)(row)


def written(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def refused(fields: Mapping[str, Any]) -> RagaugeError:
    with pytest.raises(RagaugeError) as raised:
        field_maps(fields)
    return raised.value


def test_a_field_is_taken_from_its_path_and_what_it_was_made_of_is_gone() -> None:
    row = {"response": "Yes.", "sources": [{"id": "a"}], "model": "m"}
    assert mapped({"answer": "response", "hits": "sources[].id"}, row) == {
        "model": "m",
        "answer": "Yes.",
        "hits": ["a"],
    }


def test_a_mapped_field_wins_over_every_other_spelling_of_it() -> None:
    """`id` is a spelling of qid, and here it is the id of a log line."""
    row = {"id": "log-7", "meta": {"q": "A1"}, "topk": ["x"], "retrieval": ["y"], "sources": ["a"]}
    assert mapped({"qid": "meta.q", "hits": "sources"}, row) == {"qid": "A1", "hits": ["a"]}


def test_an_answer_that_is_mapped_hides_the_text_beside_it() -> None:
    row = {"answer_text": "other", "answer_json": {"claim": "x"}, "response": "Yes."}
    assert mapped({"answer": "response"}, row) == {"answer": "Yes."}


def test_names_may_be_exchanged() -> None:
    row = {"answer": "What?", "response": "Yes."}
    assert mapped({"question": "answer", "answer": "response"}, row) == {
        "question": "What?",
        "answer": "Yes.",
    }


def test_an_empty_path_says_that_the_rows_do_not_have_the_field() -> None:
    assert mapped({"qid": ""}, {"id": "log-7", "question": "What?"}) == {"question": "What?"}


def test_the_fields_of_hits_have_paths_of_their_own() -> None:
    row = {
        "docs": [
            {"meta": {"chunk": "a#1"}, "page_content": "t", "score": 0.5, "lang": "en"},
            {"meta": {"chunk": "b#1"}, "score": 0.25},
        ]
    }
    fields = {"hits": "docs", "hits.id": "meta.chunk", "hits.text": "page_content"}
    assert mapped(fields, row)["hits"] == [
        {"score": 0.5, "lang": "en", "id": "a#1", "text": "t"},
        {"score": 0.25, "id": "b#1"},
    ]


def test_hits_under_a_name_of_ours_may_have_other_fields_too() -> None:
    row = {"chunks": [{"uid": "a"}]}
    assert mapped({"hits.id": "uid"}, row) == {"chunks": [{"id": "a"}]}


def test_a_path_into_a_field_that_is_read_leaves_that_field() -> None:
    row = {"answer": {"text": "Yes.", "sources": [{"id": "a"}]}}
    assert mapped({"citations": "answer.sources[].id"}, row) == {**row, "citations": ["a"]}


def test_a_name_of_one_side_stands_for_that_side_and_others_for_both() -> None:
    maps = field_maps({"question": "prompt", "hits": "docs", "relevant": "evidence"})
    assert [entry.name for entry in maps.gold.entries] == ["question", "relevant"]
    assert [entry.name for entry in maps.traces.entries] == ["question", "hits"]


def test_options_replace_what_the_file_says() -> None:
    maps = field_maps({"answer": "response", "traces": {"hits": "docs"}})
    maps = maps.updated(["answer=output.text"], ["qid=key"])
    assert {entry.name: entry.path for entry in maps.traces.entries} == {
        "hits": "docs",
        "answer": "output.text",
    }
    assert [(entry.name, entry.path) for entry in maps.gold.entries] == [("qid", "key")]


def test_fields_that_are_known_to_be_unread() -> None:
    maps = field_maps({"ignore": ["model"], "traces": {"ignore": ["run"]}})
    assert maps.gold.ignore == ("model",)
    assert maps.traces.ignore == ("model", "run")


def test_unknown_names_are_refused_with_the_nearest() -> None:
    error = refused({"answr": "response"})
    assert error.code == "unknown-name"
    assert "did you mean `answer`" in str(error)
    assert refused({"hits.txt": "body"}).code == "unknown-name"
    assert refused({"gold": {"hits": "docs"}}).code == "unknown-name"


def test_a_path_is_text_and_ignore_a_list() -> None:
    assert refused({"answer": 3}).code == "bad-config"
    assert refused({"ignore": "model"}).code == "bad-config"


def test_an_option_without_a_name_is_a_usage_error() -> None:
    with pytest.raises(RagaugeError) as raised:
        FieldMaps().updated(["response"], [])
    assert raised.value.code == "usage"


def test_a_path_that_no_row_has_is_an_error(tmp_path: Path) -> None:
    name = written(tmp_path / "t.jsonl", [{"qid": "a", "response": "x"}, {"qid": "b"}])
    with pytest.raises(RagaugeError) as raised:
        load_traces(name, fields={"answer": "reponse"})
    assert raised.value.code == "field-not-found"
    assert "did you mean `response`" in str(raised.value)


def test_a_path_that_only_the_last_row_has_is_enough(tmp_path: Path) -> None:
    name = written(tmp_path / "t.jsonl", [{"qid": "a"}, {"qid": "b", "response": "x"}])
    traces = load_traces(name, fields={"answer": "response"}).traces
    assert [trace.answer and trace.answer.text for trace in traces] == [None, "x"]


def test_a_part_of_hits_that_no_hit_has_is_an_error(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"qid": "a", "docs": []}, {"qid": "b", "docs": [{"id": "x"}]}]
    name = written(tmp_path / "t.jsonl", rows)
    with pytest.raises(RagaugeError) as raised:
        load_traces(name, fields={"hits": "docs", "hits.text": "body"})
    assert raised.value.code == "field-not-found"


def test_a_part_of_a_list_that_no_row_has_is_an_error(tmp_path: Path) -> None:
    """`relevant.quote` alone does not say where `relevant` is: nothing would have been read."""
    path = tmp_path / "gold.jsonl"
    path.write_text('{"qid": "A", "sentence": "So it is."}\n', encoding="utf-8")
    with pytest.raises(RagaugeError) as raised:
        load_gold(path, fields={"gold": {"relevant.quote": "sentence"}})
    assert raised.value.code == "field-not-found"
    fields = {"gold": {"relevant": "sentence", "relevant.quote": "."}}
    (item,) = load_gold(path, fields=fields).items
    assert [anchor.quote for anchor in item.anchors] == ["So it is."]


def test_a_common_name_is_optional_in_gold(tmp_path: Path) -> None:
    """`--field qid=meta.key` is about the traces; this gold set has its ids as they are."""
    gold = written(tmp_path / "g.jsonl", [{"qid": "a", "question": "q"}])
    items = load_gold(gold, fields={"qid": "meta.key"}).items
    assert [item.qid for item in items] == ["a"]


@pytest.mark.parametrize("array", [False, True])
def test_rows_keep_their_lines(tmp_path: Path, array: bool) -> None:
    rows = ['{"k": "a"}', '{"k": 7}', '{"k": "c"}']
    text = "[\n\n" + ",\n".join(rows) + "\n]" if array else "\n\n" + "\n".join(rows) + "\n"
    path = tmp_path / "t.json"
    path.write_text(text, encoding="utf-8")
    traces = load_traces(path, fields={"qid": "k"}).traces
    assert [(trace.qid, trace.line) for trace in traces] == [("a", 3), ("7", 4), ("c", 5)]


def test_what_is_wrong_with_a_row_is_still_said(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"k": "a", "r": 5}\nnot json\n{"k": "b"', encoding="utf-8")
    with pytest.raises(RagaugeError) as raised:
        load_traces(path, fields={"qid": "k", "answer": "r"})
    problems = [(one.code, one.place and one.place.line) for one in raised.value.problems]
    assert problems == [("bad-field", 1), ("bad-json", 2), ("truncated-line", 3)]


def test_keys_that_stand_twice_are_still_an_error_in_gold(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text('{"key": "a", "relevant": ["x"], "relevant": ["y"]}\n', encoding="utf-8")
    with pytest.raises(RagaugeError) as raised:
        load_gold(path, fields={"gold": {"qid": "key"}})
    assert raised.value.code == "duplicate-key"
