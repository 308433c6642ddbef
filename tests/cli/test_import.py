"""`traces import`, and exports given to `score` and `validate` as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import Folder, Row
from tests.support.spans import body, chain, protobuf, reranker, retriever

FIXTURES = Path(__file__).parents[1] / "fixtures" / "imports"
GOLD: list[Row] = [
    {"qid": "Q1", "question": "How hot?", "answerable": True, "relevant": ["b"]},
    {"qid": "Q2", "question": "How  COLD?", "answerable": True, "relevant": ["c"]},
]
SPANS = body(
    chain(1, "How hot?", "Very. [b]", attributes={"metadata": '{"qid": "Q1"}'}),
    retriever(2, ["a", "b"], "How hot?", parent=1),
    chain(1, "how cold?", "Not very.", trace=2),
    retriever(2, ["c"], "how cold?", parent=1, trace=2),
    chain(1, "Why?", "Because.", trace=3),
)


@pytest.fixture
def spans(folder: Folder) -> Folder:
    folder.write("spans.json", json.dumps(SPANS))
    folder.write("gold.jsonl", GOLD)
    return folder


def rows_in(folder: Folder, name: str = "traces.jsonl") -> list[Row]:
    return [json.loads(line) for line in (folder.path / name).read_text("utf-8").splitlines()]


def test_an_import_writes_traces_and_says_what_they_carry(spans: Folder) -> None:
    done = spans.run("traces", "import", "spans.json", "-o", "traces.jsonl", "--gold", "gold.jsonl")
    assert done.exit_code == 0
    lines = [line.split() for line in done.out.splitlines()]
    assert lines[0] == ["wrote", "traces.jsonl,", "read", "as", "OTLP", "spans"]
    table = {" ".join(words[:-3]): words[-3::2] for words in lines if "of" in words}
    assert table == {
        "with a question id": ["1", "3"],
        "with a question": ["3", "3"],
        "with an answer": ["3", "3"],
        "with citations": ["1", "3"],
        "with an error": ["0", "3"],
        "with an id": ["3", "3"],
        "with a text": ["3", "3"],
        "with a score": ["0", "3"],
        "by id": ["1", "3"],
        "by question": ["1", "3"],
        "ambiguous": ["0", "3"],
        "unmatched": ["1", "3"],
    }
    assert [row.get("qid") for row in rows_in(spans)] == ["Q1", "Q2", None]


def test_the_same_files_give_the_same_bytes(spans: Folder) -> None:
    for out in ("one.jsonl", "two.jsonl"):
        assert spans.run("traces", "import", "spans.json", "-o", out).exit_code == 0
    assert (spans.path / "one.jsonl").read_bytes() == (spans.path / "two.jsonl").read_bytes()


def test_score_reads_an_export_and_says_so(spans: Folder) -> None:
    done = spans.run("score", "gold.jsonl", "spans.json", "--k", "1", "--format", "json")
    assert "spans.json: read as OTLP spans" in done.err
    assert "joined with the gold set: 1 by id, 1 by question, 1 unmatched" in done.err
    metrics = json.loads(done.out)["metrics"]
    # Q1 has its evidence second, Q2 first: 1 of 2
    assert (metrics["retrieval.recall@1"]["value"], metrics["retrieval.recall@1"]["n"]) == (0.5, 2)


def test_imported_traces_score_as_the_export_does(spans: Folder) -> None:
    spans.run("traces", "import", "spans.json", "-o", "traces.jsonl", "--gold", "gold.jsonl")
    documents = []
    for traces in ("spans.json", "traces.jsonl"):
        done = spans.run("score", "gold.jsonl", traces, "--format", "json")
        document = json.loads(done.out)
        documents.append({name: document[name] for name in ("metrics", "profile")})
    assert documents[0] == documents[1]


def test_a_large_export_is_scored_by_workers_as_in_one_process(spans: Folder) -> None:
    outs = [
        spans.run("score", "gold.jsonl", "spans.json", "--format", "json", "--workers", count).out
        for count in ("1", "2")
    ]
    assert outs[0] == outs[1]


def test_validate_reads_an_export_and_says_so(spans: Folder) -> None:
    done = spans.run("validate", "gold.jsonl", "spans.json")
    assert done.exit_code == 0
    assert "read as OTLP spans" in done.out


def test_a_problem_names_the_file_that_the_user_gave(folder: Folder) -> None:
    export = body(chain(1, "q?", "x", startTimeUnixNano="1", endTimeUnixNano=str(10**18)))
    folder.write("spans.json", json.dumps(export))
    folder.write("gold.jsonl", GOLD)
    done = folder.run("score", "gold.jsonl", "spans.json")  # a latency of thirty years
    assert done.exit_code == 3
    assert done.problems[0].where == "spans.json:1"


def test_spans_given_as_gold_are_named_with_the_command_to_use(spans: Folder) -> None:
    done = spans.run("score", "spans.json", "gold.jsonl")
    assert done.exit_code == 2
    assert "holds OTLP spans, and no gold items" in done.err
    assert "ragauge traces import" in done.problems[0].hint


def test_no_trace_is_no_success_and_no_file(folder: Folder) -> None:
    folder.write("spans.json", json.dumps(body()))
    done = folder.run("traces", "import", "spans.json", "-o", "traces.jsonl")
    assert (done.exit_code, done.codes) == (5, {"nothing-measured"})
    assert not (folder.path / "traces.jsonl").exists()


def test_what_is_not_recognised_can_be_named(folder: Folder) -> None:
    folder.write("traces.jsonl", GOLD)
    done = folder.run("traces", "import", "traces.jsonl", "-o", "out.jsonl")
    assert done.codes == {"unknown-name"}
    assert "langsmith" in done.problems[0].hint
    done = folder.run("traces", "import", "traces.jsonl", "-o", "out.jsonl", "--from", "langsmit")
    assert "did you mean `langsmith`?" in done.problems[0].hint


def test_files_of_two_formats_are_refused(spans: Folder) -> None:
    runs = str(FIXTURES / "langsmith.jsonl")
    done = spans.run("traces", "import", "spans.json", runs, "-o", "traces.jsonl")
    assert done.exit_code == 2
    assert "import each format on its own" in done.problems[0].hint


def test_an_export_is_not_written_over(spans: Folder) -> None:
    done = spans.run("traces", "import", "spans.json", "-o", "spans.json")
    assert done.exit_code == 2


def test_the_stage_before_the_reranker_can_be_taken(folder: Folder) -> None:
    export = body(chain(1, "q?"), retriever(2, ["a", "b"], parent=1), reranker(3, ["b"], parent=1))
    folder.write("spans.json", json.dumps(export))
    for stage, ids in (("last", ["b"]), ("first", ["a", "b"])):
        folder.run("traces", "import", "spans.json", "-o", "traces.jsonl", "--stage", stage)
        (row,) = rows_in(folder)
        assert [hit["id"] for hit in row["hits"]] == ids


def test_a_damaged_export_is_bad_input(folder: Folder) -> None:
    folder.write("spans.pb", protobuf(SPANS)[:-5])
    done = folder.run("traces", "import", "spans.pb", "-o", "traces.jsonl")
    assert (done.exit_code, done.codes) == (3, {"bad-spans"})
    assert not (folder.path / "traces.jsonl").exists()


def test_what_a_reranker_changed_is_printed(folder: Folder) -> None:
    export = body(
        chain(1, "How hot?", trace=1),
        retriever(2, ["a", "b"], parent=1),
        reranker(3, ["b", "a"], parent=1),
        chain(1, "how cold?", trace=2),
        retriever(2, ["a", "d", "c"], parent=1, trace=2),
        reranker(3, ["d", "c"], parent=1, trace=2),
    )
    folder.write("spans.json", json.dumps(export))
    folder.write("gold.jsonl", GOLD)
    done = folder.run("traces", "import", "spans.json", "-o", "t.jsonl", "--gold", "gold.jsonl")
    lines = [line.split() for line in done.out.splitlines()]
    assert ["reranked", "first", "last", "change", "better", "worse", "n"] in lines
    # Q1: b from rank 2 to 1; Q2: c from rank 3 to 2.
    assert ["retrieval.recall@1", "0.0000", "0.5000", "+0.5000", "1", "0", "2"] in lines
    # 1/2 and 1/3, then 1 and 1/2
    assert ["retrieval.mrr@10", "0.4167", "0.7500", "+0.3333", "2", "0", "2"] in lines
