"""Rows of ragas, deepeval, promptfoo, RAGChecker and LegalBench-RAG, as traces and as gold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ragauge import load_gold, load_traces, score
from ragauge.errors import RagaugeError
from ragauge.formats.imports.coverage import Coverage
from ragauge.formats.imports.foreign_format import ImportOptions
from ragauge.formats.imports.import_files import import_files
from ragauge.formats.imports.row_parts import WEAK_CLAIMS
from ragauge.text import question_id
from tests.support.cases import cases

EXPORTS = Path(__file__).parents[3] / "fixtures" / "test_frameworks"
SAMPLES = Path(__file__).parents[5] / "shared" / "samples" / "imports"
LONG = "How long is a session valid?"
GOLD = [
    {"qid": "B1", "question": LONG, "relevant": ["session.md#2"], "answerable": True},
    {"qid": "B2", "question": "Who founded the company?", "relevant": [], "answerable": False},
    {
        "qid": "B3",
        "question": "Wie groß darf ein Anhang sein?",
        "relevant": ["anhänge.md#1"],
        "answerable": True,
    },
]

Row = dict[str, Any]


def imported(folder: Path, source: Path, side: Any, **options: Any) -> tuple[list[Row], Coverage]:
    out = folder / "out.jsonl"
    coverage = import_files([str(source)], str(out), side, options=ImportOptions(**options))
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()], coverage


def saved(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def without(row: Mapping[str, Any], *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


# --- ragas ---


@pytest.mark.parametrize("name", ["ids.jsonl", "ids.csv"])
def test_ragas_rows_are_traces(tmp_path: Path, name: str) -> None:
    """Lists in the CSV are as Python prints them; both files hold the same."""
    rows, coverage = imported(tmp_path, EXPORTS / "ragas" / name, "traces")
    assert coverage.format == "ragas rows"
    first = without(rows[0], "imported_from")
    assert first == {
        "question": LONG,
        "hits": [
            {"id": "session.md#2", "text": "A session is valid for 30 minutes after the last "
             "request."},
            {"id": "session.md#1", "text": "Signing in opens a session. Signing out ends it."},
        ],
        "answer": "A session is valid for 30 minutes. [session.md#2]",
        "citations": ["session.md#2"],
    }  # fmt: skip
    assert (coverage.rows, coverage.hits, coverage.hit_ids, coverage.hit_scores) == (3, 6, 6, 0)


@pytest.mark.parametrize("name", ["ids.jsonl", "ids.csv"])
def test_ragas_rows_are_gold_too(tmp_path: Path, name: str) -> None:
    rows, coverage = imported(tmp_path, EXPORTS / "ragas" / name, "gold")
    assert without(rows[0], "imported_from") == {
        "qid": question_id(LONG),
        "question": LONG,
        "relevant": ["session.md#2"],
        "answerable": True,
        "reference_answers": ["30 minutes after the last request"],
        "claims_any": ["30 minutes after the last request"],
    }
    # The token of a refusal expects one; an empty list of ids is no evidence.
    assert without(rows[1], "imported_from", "qid") == {
        "question": "Who founded the company?",
        "relevant": [],
        "answerable": False,
    }
    assert coverage.notes[WEAK_CLAIMS] == 2


def test_one_ragas_file_is_scored_as_both(tmp_path: Path) -> None:
    """Both passages that are expected stand first; joined by text, as there are no ids."""
    name = EXPORTS / "ragas" / "ids.csv"
    scores = score(name, name)
    assert (scores.metrics["retrieval.recall@1"].value, scores.metrics["retrieval.recall@1"].n) == (
        1.0,
        2,
    )
    assert any("read as ragas rows" in warning for warning in scores.warnings)
    gold = lines(tmp_path / "gold.jsonl", GOLD)
    joined = score(gold, name)
    assert joined.metrics["citation.hit_rate"].value == 1.0
    assert joined.metrics["refusal.under"].value == 0.0
    assert any("3 by question" in warning for warning in joined.warnings)


def test_contexts_without_ids_are_quotes(tmp_path: Path) -> None:
    rows, _ = imported(tmp_path, EXPORTS / "ragas" / "texts.jsonl", "gold")
    assert rows[0]["relevant"] == [
        {"quote": "A session is valid for 30 minutes after the last request."}
    ]
    assert "relevant" not in rows[1]
    traces, coverage = imported(tmp_path, EXPORTS / "ragas" / "texts.jsonl", "traces")
    assert traces[0]["hits"][1] == {"text": "Signing in opens a session. Signing out ends it."}
    assert (coverage.hit_ids, coverage.hit_texts) == (0, 6)


def test_a_list_of_messages_is_a_conversation(tmp_path: Path) -> None:
    source = EXPORTS / "ragas" / "turns.jsonl"
    traces, _ = imported(tmp_path, source, "traces")
    assert [(row["turn"], row["question"], row["answer"]) for row in traces] == [
        (0, LONG, "30 minutes."),
        (1, "And after the last request?", "That is when the 30 minutes begin."),
    ]
    items, _ = imported(tmp_path, source, "gold")
    assert [row["turn"] for row in items] == [0, 1]
    assert {row["qid"] for row in items} == {row["qid"] for row in traces}
    assert "reference_answers" not in items[0]
    assert items[1]["reference_answers"] == ["30 minutes after the last request"]
    assert len(load_gold(source).items) == 2


def test_the_old_names_of_ragas(tmp_path: Path) -> None:
    rows = [
        {
            "qid": "B1",
            "question": LONG,
            "contexts": ["A session is valid for 30 minutes after the last request."],
            "answer": "30 minutes.",
            "ground_truths": ["30 minutes", "half an hour"],
        }
    ]
    source = lines(tmp_path / "old.jsonl", rows)
    (trace,), coverage = imported(tmp_path, source, "traces")
    assert coverage.format == "ragas rows"
    assert (trace["qid"], trace["answer"], len(trace["hits"])) == ("B1", "30 minutes.", 1)
    (item,), _ = imported(tmp_path, source, "gold")
    assert item["reference_answers"] == ["30 minutes", "half an hour"]


def test_rows_of_our_own_are_not_taken_for_ragas(tmp_path: Path) -> None:
    """`ground_truth` beside our own evidence is one more field of a gold set."""
    rows = [{"qid": "a", "question": "q?", "relevant": ["x"], "ground_truth": "y"}]
    items = load_gold(lines(tmp_path / "g.jsonl", rows))
    assert items.notes == ()
    assert items.items[0].relevant == ("x",)


def test_ids_and_texts_that_do_not_go_together(tmp_path: Path) -> None:
    rows = [{"user_input": "q", "retrieved_contexts": ["a"], "retrieved_context_ids": ["1", "2"]}]
    (trace,), coverage = imported(tmp_path, lines(tmp_path / "r.jsonl", rows), "traces")
    assert trace["hits"] == [{"id": "1"}, {"id": "2"}]
    assert sum(coverage.notes.values()) == 1


@cases(
    ("contexts", "are_ids"),
    [
        (["faq.md#1", "intro"], True),
        (["c1"], True),
        (["Paris"], False),
        (["c1", "Refunds take 14 days."], False),
        (["退款需要14天"], False),
    ],
)
def test_contexts_that_are_ids(tmp_path: Path, contexts: list[str], are_ids: bool) -> None:
    """Some log ids where ragas has texts: taken for texts, nothing would ever match."""
    rows = [{"user_input": "q", "retrieved_contexts": contexts, "response": "x"}]
    (trace,), coverage = imported(tmp_path, lines(tmp_path / "r.jsonl", rows), "traces")
    assert trace["hits"] == [{"id" if are_ids else "text": text} for text in contexts]
    assert sum(coverage.notes.values()) == are_ids


# --- deepeval ---


@pytest.mark.parametrize("name", ["goldens.json", "goldens.jsonl", "goldens.csv"])
def test_goldens_of_deepeval_are_gold(tmp_path: Path, name: str) -> None:
    rows, coverage = imported(tmp_path, EXPORTS / "deepeval" / name, "gold")
    assert coverage.format == "deepeval test cases"
    assert without(rows[0], "imported_from") == {
        "qid": "B1",
        "question": LONG,
        "relevant": [{"quote": "A session is valid for 30 minutes after the last request."}],
        "relevant_docs": ["session.md"],
        "answerable": True,
        "reference_answers": ["30 minutes after the last request"],
        "claims_any": ["30 minutes after the last request"],
    }
    # No context and no expected output: that may be a golden that nobody has filled in yet.
    assert without(rows[1], "imported_from") == {
        "qid": "B2",
        "question": "Who founded the company?",
    }
    refused, _ = imported(tmp_path, EXPORTS / "deepeval" / name, "gold", empty_context="refuse")
    assert refused[1]["answerable"] is False
    assert refused[0] == rows[0]


@pytest.mark.parametrize("name", ["test-run.json", "latest-test-run.json"])
def test_a_test_run_of_deepeval_is_traces(tmp_path: Path, name: str) -> None:
    rows, coverage = imported(tmp_path, EXPORTS / "deepeval" / name, "traces")
    assert (coverage.rows, coverage.qids, coverage.hits, coverage.hit_ids) == (3, 3, 6, 0)
    assert without(rows[2], "imported_from") == {
        "qid": "B3",
        "question": "Wie groß darf ein Anhang sein?",
        "hits": [
            {"text": "Ein Anhang darf höchstens 25 MB groß sein."},
            {"text": "Invoices are sent on the first day of the month."},
        ],
        "answer": "Höchstens 25 MB. [anhänge.md#1]",
        "citations": ["anhänge.md#1"],
        "latency_ms": 250.0,  # deepeval counts seconds
    }


def test_goldens_hold_no_traces(tmp_path: Path) -> None:
    with pytest.raises(RagaugeError) as raised:
        imported(tmp_path, EXPORTS / "deepeval" / "goldens.json", "traces")
    assert raised.value.code == "nothing-measured"


# --- promptfoo ---


@pytest.mark.parametrize("name", ["results.json", "results.jsonl"])
def test_results_of_promptfoo_are_traces(tmp_path: Path, name: str) -> None:
    rows, coverage = imported(tmp_path, EXPORTS / "promptfoo" / name, "traces")
    by_qid = {row["qid"]: row for row in rows}
    assert sorted(by_qid) == ["B1", "B2", "B3", "B4"]
    assert [hit["id"] for hit in by_qid["B1"]["hits"]] == ["session.md#2", "session.md#1"]
    assert by_qid["B1"]["citations"] == ["session.md#2"]
    # An assertion that fails is no error of the system; a call that fails is, by its first line.
    assert "error" not in by_qid["B3"]
    assert by_qid["B4"]["error"] == "RuntimeError: the index is down"
    assert (coverage.errors, coverage.answers, coverage.hit_scores) == (1, 3, 6)
    gold = lines(tmp_path / "gold.jsonl", GOLD)
    scores = score(gold, EXPORTS / "promptfoo" / name)
    assert scores.metrics["retrieval.mrr@10"].value == 1.0
    assert scores.metrics["citation.hit_rate"].value == 1.0


@pytest.mark.parametrize("name", ["promptfooconfig.yaml", "results.json", "two-providers.json"])
def test_test_cases_of_promptfoo_are_gold(tmp_path: Path, name: str) -> None:
    """Results have a test case for every provider: each is one gold item."""
    rows, coverage = imported(tmp_path, EXPORTS / "promptfoo" / name, "gold")
    by_qid = {row["qid"]: row for row in rows}
    assert len(rows) == 4
    assert without(by_qid["B1"], "imported_from") == {
        "qid": "B1",
        "question": LONG,
        "relevant": ["session.md#2"],
        "claims_any": ["30 minutes"],
        "must_contain": ["session"],
        "forbidden": ["As an AI"],
        "answerable": True,
    }
    assert by_qid["B2"]["answerable"] is False
    assert "answerable" not in by_qid["B4"]
    assert any("`latency`" in note for note in coverage.notes)


def test_several_providers_are_several_runs(tmp_path: Path) -> None:
    source = EXPORTS / "promptfoo" / "two-providers.json"
    with pytest.raises(RagaugeError) as raised:
        score(lines(tmp_path / "gold.jsonl", GOLD), source)
    assert "holds 2 runs: `shop`, `shop-k1`" in str(raised.value)
    assert "--run" in str(raised.value)
    one, _ = imported(tmp_path, source, "traces", run="shop")
    other, _ = imported(tmp_path, source, "traces", run="shop-k1")
    assert [len(row.get("hits", ())) for row in one] == [2, 2, 2, 0]
    assert [len(row.get("hits", ())) for row in other] == [1, 1, 1, 0]
    with pytest.raises(RagaugeError, match="no run `shop-k2`"):
        imported(tmp_path, source, "traces", run="shop-k2")


def test_the_table_of_promptfoo_names_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RagaugeError) as raised:
        score(lines(tmp_path / "gold.jsonl", GOLD), EXPORTS / "promptfoo" / "results.csv")
    assert "promptfoo eval -o results.json" in str(raised.value)


def test_a_question_under_another_name_is_asked_for(tmp_path: Path) -> None:
    tests = [{"vars": {"topic": "keys", "ask": "Null?"}, "assert": []}]
    source = saved(tmp_path / "config.json", {"prompts": ["{{ask}}"], "tests": tests})
    with pytest.raises(RagaugeError, match="which variable"):
        imported(tmp_path, source, "gold")
    (item,), _ = imported(tmp_path, source, "gold", question="ask")
    assert item["question"] == "Null?"


def test_test_cases_in_another_file_are_named(tmp_path: Path) -> None:
    source = saved(tmp_path / "config.json", {"prompts": ["x"], "tests": "file://tests.yaml"})
    with pytest.raises(RagaugeError, match=r"file://tests\.yaml"):
        imported(tmp_path, source, "gold")


# --- RAGChecker and LegalBench-RAG ---

CHECKED = {
    "results": [
        {
            "query_id": "000",
            "query": LONG,
            "gt_answer": "30 minutes",
            "response": "Half an hour.",
            "retrieved_context": [
                {"doc_id": "d1", "text": "A session is valid for 30 minutes."},
                {"doc_id": None, "text": "Signing out ends it."},
            ],
        }
    ]
}
SNIPPET = {"file_path": "cuad/a.txt", "span": [4, 21], "answer": "governed by Texas"}
RETRIEVED = {"file_path": "cuad/a.txt", "span": [0, 30], "score": 0.5}


def test_ragchecker(tmp_path: Path) -> None:
    source = saved(tmp_path / "checking_inputs.json", CHECKED)
    (trace,), coverage = imported(tmp_path, source, "traces")
    assert coverage.format == "RAGChecker results"
    assert without(trace, "imported_from") == {
        "qid": "000",
        "question": LONG,
        "hits": [
            {"id": "d1", "doc": "d1", "text": "A session is valid for 30 minutes."},
            {"text": "Signing out ends it."},
        ],
        "answer": "Half an hour.",
    }
    (item,), _ = imported(tmp_path, source, "gold")
    assert (item["qid"], item["reference_answers"]) == ("000", ["30 minutes"])


def test_legalbench_rag(tmp_path: Path) -> None:
    tests = [{"query": "Which law governs?", "snippets": [SNIPPET], "tags": ["cuad"]}]
    benchmark = saved(tmp_path / "cuad.json", {"tests": tests})
    (item,), coverage = imported(tmp_path, benchmark, "gold")
    assert coverage.format == "LegalBench-RAG snippets"
    assert item["relevant"] == [
        {
            "doc": "cuad/a.txt",
            "start": 4,
            "end": 21,
            "unit": "char",
            "quote": "governed by Texas",
        }
    ]
    assert item["tags"] == ["cuad"]
    results = {"qa_result_list": [{"qa_gt": tests[0], "retrieved_snippets": [RETRIEVED]}]}
    source = saved(tmp_path / "results.json", results)
    (trace,) = load_traces(source).traces
    assert [(span.start, span.end, span.unit) for span in trace.hits[0].spans] == [(0, 30, "char")]
    # The benchmark is the gold set, and its results the traces: 17 of 17 characters are covered.
    assert score(benchmark, source).metrics["retrieval.span_recall@1"].value == 1.0


def test_a_snippet_without_a_place_is_still_a_rank(tmp_path: Path) -> None:
    truth = {"query": "Which law governs?", "snippets": [SNIPPET]}
    odd = [{"file_path": "cuad/b.txt", "span": [1]}, "text", RETRIEVED]
    results = {"qa_result_list": [{"qa_gt": truth, "retrieved_snippets": odd}]}
    (trace,), coverage = imported(tmp_path, saved(tmp_path / "results.json", results), "traces")
    assert [hit.get("doc") for hit in trace["hits"]] == ["cuad/b.txt", None, "cuad/a.txt"]
    assert coverage.sentences()[0].startswith("2 snippets without a file and a span")


# --- files of other people, where they are at hand ---


@pytest.mark.skipif(not SAMPLES.exists(), reason="the samples are not part of the project")
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        # traces, ids, questions, answers, errors, hits, their ids, texts and scores
        ("ragas/single.jsonl", (4, 0, 4, 4, 0, 12, 12, 12, 0)),
        ("ragas/single.csv", (4, 0, 4, 4, 0, 12, 12, 12, 0)),
        ("deepeval/with_cases.json", (4, 4, 4, 4, 0, 12, 0, 12, 0)),
        ("promptfoo/results.json", (5, 5, 5, 4, 1, 12, 12, 12, 12)),
    ],
)
def test_what_was_measured_in_files_of_others(
    tmp_path: Path, name: str, counts: tuple[int, ...]
) -> None:
    _, one = imported(tmp_path, SAMPLES / name, "traces")
    assert counts == (
        *(one.rows, one.qids, one.questions, one.answers, one.errors),
        *(one.hits, one.hit_ids, one.hit_texts, one.hit_scores),
    )
    if one.hit_ids:
        scores = score(SAMPLES / "gold.jsonl", SAMPLES / name)
        metrics = {
            name: (scores.metrics[name].value, scores.metrics[name].n)
            for name in ("retrieval.recall@1", "citation.hit_rate", "refusal.under")
        }
        assert metrics == {
            "retrieval.recall@1": (1.0, 3),
            "citation.hit_rate": (1.0, 3),
            "refusal.under": (0.0, 1),
        }


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    source = EXPORTS / "promptfoo" / "results.json"
    outs = []
    for name in ("a.jsonl", "b.jsonl"):
        import_files([str(source)], str(tmp_path / name), "traces")
        outs.append((tmp_path / name).read_bytes())
    assert outs[0] == outs[1]
