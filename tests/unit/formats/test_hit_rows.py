"""A table with a row for each hit is read as one trace a question, or refused with its lines."""

from __future__ import annotations

from pathlib import Path

import pytest

import ragauge
from ragauge.errors import RagaugeError

GOLD = [
    {"qid": f"q{i}", "question": f"q {i}?", "answerable": True, "relevant": [f"d#{i}"]}
    for i in (1, 2, 3)
]
HEAD = "qid,question,rank,chunk_id,score,answer"


def table(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "hits.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def hits_of(path: Path) -> dict[str | None, list[str]]:
    loaded = ragauge.load_traces(path)
    return {trace.qid: [hit.id for hit in trace.hits] for trace in loaded.traces}


def test_rows_of_one_question_are_its_hits_by_rank(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        HEAD,
        "q1,q 1?,2,d#1,0.9,So.",
        "q2,q 2?,1,d#2,0.5,So.",
        "q1,q 1?,1,x#1,0.1,So.",
        "q3,q 3?,1,y#1,0.5,So.",
    )
    assert hits_of(path) == {"q1": ["x#1", "d#1"], "q2": ["d#2"], "q3": ["y#1"]}
    scores = ragauge.score(GOLD, path, k=(1, 2))
    assert scores.metrics["retrieval.hit@1"].value == pytest.approx(1 / 3)  # of q2 alone
    assert scores.metrics["retrieval.hit@2"].value == pytest.approx(2 / 3)
    assert any("4 rows of 3 questions" in text for text in scores.warnings)
    assert not any("replaced" in text for text in scores.warnings)


def test_without_ranks_hits_stand_by_score_else_as_rows_do(tmp_path: Path) -> None:
    by_score = table(tmp_path, "qid,chunk_id,score", "q1,a,0.1", "q1,b,0.7", "q1,c,0.3")
    assert hits_of(by_score) == {"q1": ["b", "c", "a"]}
    as_they_stand = table(tmp_path, "qid,chunk_id", "q1,b", "q1,a")
    assert hits_of(as_they_stand) == {"q1": ["b", "a"]}


def test_rows_are_joined_by_their_question_too(tmp_path: Path) -> None:
    path = table(tmp_path, "question,hits", "q 1?,x#1", "Q  1?,d#1")
    (trace,) = ragauge.load_traces(path).traces
    assert [hit.id for hit in trace.hits] == ["x#1", "d#1"]


def test_an_answer_of_its_own_is_a_trace_of_its_own(tmp_path: Path) -> None:
    """Asked again: the last one counts, as in any file, and that is said."""
    path = table(tmp_path, "qid,hits,answer", "q1,x#1,No.", "q1,d#1,Yes.", "q2,d#2,Yes.")
    scores = ragauge.score(GOLD[:2], path)
    assert scores.metrics["retrieval.hit@1"].value == 1.0
    assert any("replaced" in text for text in scores.warnings)


def test_lists_of_hits_are_left_alone(tmp_path: Path) -> None:
    path = table(tmp_path, "qid,hits", "q1,a|b", "q1,c", "q2,d")
    assert [len(trace.hits) for trace in ragauge.load_traces(path).traces] == [2, 1, 1]


@pytest.mark.parametrize(
    ("lines", "said", "line"),
    [
        (("q1,,1,a,,x", "q1,,2,b,,x", "q2,,1,c,,x", "q2,,2,d,,y"), "lines 4, 5", 4),
        (("q1,,1,a,,x", "q1,,2,b,,x", "q2,,1,c,,x", "q2,,2,c,,x"), "lines 4, 5", 4),
        (("q1,,1,a,,x", "q1,,2,b,,x", "q1,,2,c,,x"), "lines 3, 4", 3),
    ],
    ids=["answers differ", "a hit twice", "a rank twice"],
)
def test_what_is_ambiguous_is_refused_with_its_lines(
    tmp_path: Path, lines: tuple[str, ...], said: str, line: int
) -> None:
    path = table(tmp_path, HEAD, *lines)
    with pytest.raises(RagaugeError) as caught:
        ragauge.load_traces(path)
    problem = caught.value.problems[0]
    assert said in problem.message
    assert problem.place is not None
    assert problem.place.line == line
