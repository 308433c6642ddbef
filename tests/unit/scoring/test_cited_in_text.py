"""`[1]` in an answer cites the first hit, where the row has no list of citations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ragauge
from tests.support.cases import cases

GOLD = [
    {"qid": f"q{i}", "question": "?", "answerable": True, "relevant": [f"d#{i}"]} for i in range(4)
]


def rows(*answers: str, **more: Any) -> list[dict[str, Any]]:
    """Traces whose evidence is the second of two hits."""
    return [
        {"qid": f"q{i}", "hits": ["x#1", f"d#{i}"], "answer": answer, **more}
        for i, answer in enumerate(answers)
    ]


ANSWERS = ("So it is [2].", "So [1, 2].", "So 【2†source】.", "So, and no more.")


@cases("kind", ["ids", "texts", "places", "nested"])
def test_numbers_in_the_text_cite_hits(kind: str) -> None:
    traces = rows(*ANSWERS)
    for row in traces:
        if kind == "texts":
            row["hits"] = [{"id": hit, "text": f"text of {hit}"} for hit in row["hits"]]
        elif kind == "places":
            row["hits"] = [{"id": hit, "score": 1.0, "doc": "d"} for hit in row["hits"]]
        elif kind == "nested":
            row["retrieval"] = {"hits": row.pop("hits")}
    scores = ragauge.score(GOLD, traces)
    # Three of four answers cite their evidence; the second cites one more hit: (1 + 1/2 + 1) / 3.
    assert scores.metrics["citation.hit_rate"].value == 0.75
    assert scores.metrics["citation.precision"].value == pytest.approx(2.5 / 3)
    (said,) = [text for text in scores.warnings if "written in the text" in text]
    assert said.startswith("read 4 citations written in the text of 3 answers, as numbers")


def test_a_list_comes_before_the_text() -> None:
    scores = ragauge.score(GOLD, rows(*ANSWERS, citations=[]))
    assert scores.metrics["citation.hit_rate"].value == 0.0
    assert not any("written in the text" in text for text in scores.warnings)


def test_brackets_that_name_no_hit_are_no_citation() -> None:
    """Still said: no answer cites anything."""
    scores = ragauge.score(GOLD, rows("a [link](x)", "see [9]", "[sic]", "x[0]"))
    assert scores.metrics["citation.precision"].n == 0
    assert any("no answer cites anything" in text for text in scores.warnings)


@cases("profile", ["ship", "smoke"])
@cases("dialect", ["auto", "native"])
def test_a_profile_of_a_source_reads_lists_alone(profile: str, dialect: str) -> None:
    traces = rows(*ANSWERS)
    scores = ragauge.score(GOLD, traces, profile=profile, dialect=dialect)
    assert not scores.cites
    assert not any("written in the text" in text for text in scores.warnings)


def test_every_way_to_read_a_trace_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows(*ANSWERS)), encoding="utf-8")
    loaded = ragauge.load_traces(path)
    answers = [trace.answer for trace in loaded.traces]
    assert [answer and answer.citations for answer in answers] == [
        ("d#0",),
        ("x#1", "d#1"),
        ("d#2",),
        None,
    ]
    by_rows = ragauge.score(GOLD, rows(*ANSWERS)).metrics["citation.hit_rate"]
    gold = ragauge.load_gold(GOLD)
    assert ragauge.score(GOLD, path).metrics["citation.hit_rate"] == by_rows
    assert ragauge.score(gold, loaded).metrics["citation.hit_rate"] == by_rows
    assert not ragauge.score(gold, loaded, profile="ship").cites
