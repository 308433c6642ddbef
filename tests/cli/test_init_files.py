"""`init FILE...` looks at the user's own files, and writes down what their fields look like."""

from __future__ import annotations

import json

import pytest

from ragauge import score
from ragauge.config import load_config
from tests.support.command import Folder, Row

CASES = (
    "Case,Prompt,Evidence,Topic\n"
    "A1,Does X support null keys?,p1#2,keys\n"
    "A2,Explain Z.,,other\n"
    "A3,What domain is allowed?,pB#1,mail\n"
)
# Under names that nothing reads; the ids of the log and of its documents are no ids of gold.
LOG: list[Row] = [
    {
        "id": f"log-{number}",
        "meta": {"case": case},
        "req": {"body": question},
        "completion": answer,
        "docs": [
            {"id": f"u-{chunk}", "metadata": {"chunk": chunk}, "page_content": f"About {chunk}."}
            for chunk in chunks
        ],
        "model": "m",
    }
    for number, (case, question, answer, chunks) in enumerate(
        [
            ("A1", "Does X support null keys?", "X rejects null keys.", ["p1#1", "p1#2"]),
            ("A2", "Explain Z.", "not in context", ["p1#1"]),
            ("A3", "What domain is allowed?", "example.com", ["pB#1", "p1#2"]),
        ]
    )
]


@pytest.fixture
def own(folder: Folder) -> Folder:
    folder.write("cases.csv", CASES)
    folder.write("log.jsonl", LOG)
    return folder


def test_the_mapping_is_proposed_with_examples_and_written_down(own: Folder) -> None:
    done = own.run("init", "cases.csv", "log.jsonl")
    assert done.exit_code == 0
    lines = {line.split("<-")[0].strip(): line for line in done.out.splitlines() if "<-" in line}
    assert '"p1#1"' in lines["hits.id"]  # an example, so that a person can check it
    config = load_config(own.path / "ragauge.toml")
    assert config.fields["gold"] == {
        "question": "Prompt",
        "qid": "Case",
        "relevant": "Evidence",
        "ignore": ["Topic"],
    }
    assert config.fields["traces"] == {
        "question": "req.body",
        "qid": "meta.case",
        "hits": "docs",
        "hits.id": "metadata.chunk",  # not `id`: these are what the gold set names
        "hits.text": "page_content",
        "answer": "completion",
        "ignore": ["model"],
    }
    scores = score("cases.csv", "log.jsonl", fields=config.fields)
    # p1#2 is second for A1, pB#1 first for A3.
    assert (scores.metrics["retrieval.recall@1"].value, scores.metrics["retrieval.recall@1"].n) == (
        0.5,
        2,
    )
    again = own.run("score", "--profile", "all", "--format", "json", "--full")
    assert json.loads(again.out)["metrics"]["retrieval.mrr@10"]["value"] == 0.75


def test_a_dry_run_prints_and_writes_nothing(own: Folder) -> None:
    done = own.run("init", "cases.csv", "log.jsonl", "--dry-run")
    assert done.exit_code == 0
    assert "[fields.traces]" in done.out
    assert not (own.path / "ragauge.toml").exists()


def test_an_existing_file_is_kept(own: Folder) -> None:
    before = '# ours\ngold = "cases.csv"\ntrace = "log.jsonl"\n\n[gates]\n"recall@1" = ">= 0.4"\n'
    own.write("ragauge.toml", before)
    assert own.run("init", "cases.csv", "log.jsonl").exit_code == 0
    text = (own.path / "ragauge.toml").read_text("utf-8")
    assert text.startswith(before)
    assert load_config(own.path / "ragauge.toml").gates == {"recall@1": ">= 0.4"}
    twice = own.run("init", "cases.csv", "log.jsonl")
    assert (twice.exit_code, twice.codes) == (2, {"file-exists"})
    assert (own.path / "ragauge.toml").read_text("utf-8") == text


def test_ids_that_gold_does_not_know_are_left_to_the_questions(own: Folder) -> None:
    """The log has ids of its own and no key of a case; its questions are those of the gold set."""
    own.write("log.jsonl", [{**row, "meta": None} for row in LOG])
    assert own.run("init", "cases.csv", "log.jsonl").exit_code == 0
    config = load_config(own.path / "ragauge.toml")
    assert config.fields["traces"]["qid"] == ""
    done = own.run("score", "--profile", "all", "--format", "json", "--full")
    document = json.loads(done.out)
    assert document["joined"] == {"by_id": 0, "by_text": 3, "ambiguous": 0, "unmatched": 0}


def test_hits_that_are_texts(own: Folder) -> None:
    rows = [{**row, "docs": [doc["page_content"] for doc in row["docs"]]} for row in LOG]
    own.write("log.jsonl", [{**row, "docs": [f"{text} It is long enough." for text in row["docs"]]}
                            for row in rows])  # fmt: skip
    assert own.run("init", "cases.csv", "log.jsonl").exit_code == 0
    fields = load_config(own.path / "ragauge.toml").fields["traces"]
    assert (fields["hits"], fields["hits.text"]) == ("docs", ".")


def test_sentences_are_quotes_though_one_of_them_is_a_whole_hit(folder: Folder) -> None:
    """Compared as ids the first is not found: its hit says more than the sentence."""
    folder.write(
        "cases.csv",
        "Prompt,Sentence\n"
        "How long does a refund take?,Refunds arrive within 14 days.\n"
        "Which plan has audit logs?,Audit logs come with the Enterprise plan.\n",
    )
    texts = {
        "How long does a refund take?": ["Refunds arrive within 14 days. They go to the card."],
        "Which plan has audit logs?": ["Other.", "Audit logs come with the Enterprise plan."],
    }
    log: list[Row] = [
        {"asked": question, "docs": [{"src": "/srv/a.md", "body": text} for text in listed]}
        for question, listed in texts.items()
    ]
    folder.write("log.jsonl", log)
    assert folder.run("init", "cases.csv", "log.jsonl").exit_code == 0
    config = load_config(folder.path / "ragauge.toml")
    assert config.fields["gold"]["relevant.quote"] == "."
    assert config.fields["traces"]["hits.text"] == "body"
    scores = score("cases.csv", "log.jsonl", fields=config.fields, profile="all", k=(1, 2))
    assert scores.metrics["retrieval.recall@1"].value == 0.5
    assert scores.metrics["retrieval.recall@2"].value == 1.0


def test_names_that_are_read_need_no_mapping(folder: Folder) -> None:
    folder.write("g.jsonl", [{"qid": "a", "question": "What is it?", "relevant": ["x"]}])
    folder.write("t.jsonl", [{"qid": "a", "hits": ["x"], "answer": "It."}])
    done = folder.run("init", "g.jsonl", "t.jsonl")
    assert "read as it is" in done.out
    assert load_config(folder.path / "ragauge.toml").fields == {}
    assert folder.run("score").exit_code == 0


def test_files_of_other_tools_are_named(folder: Folder) -> None:
    rows = [{"user_input": "q?", "response": "a", "retrieved_contexts": ["t"]}]
    folder.write("ragas.jsonl", rows)
    done = folder.run("init", "ragas.jsonl")
    assert (done.exit_code, "read as ragas rows" in done.out) == (0, True)


def test_a_file_with_nothing_in_it_that_we_know(folder: Folder) -> None:
    folder.write("other.jsonl", [{"alpha": 1, "beta": [2]}])
    done = folder.run("init", "other.jsonl")
    assert (done.exit_code, done.codes) == (2, {"field-not-found"})
    assert "`alpha`" in done.err
    missing = folder.run("init", "nowhere.jsonl")
    assert missing.codes == {"file-not-found"}


def test_folders_and_files_do_not_go_together(own: Folder) -> None:
    (own.path / "sub").mkdir()
    assert own.run("init", "sub", "cases.csv").exit_code == 2
    assert own.run("init", "sub", "--dry-run").exit_code == 2


@pytest.mark.parametrize("name", ["bot_reply", "llmResponse", "Final Answer"])
def test_an_answer_is_known_by_the_last_word_of_its_name(folder: Folder, name: str) -> None:
    folder.write("gold.jsonl", [{"qid": "a", "question": "why?", "relevant": ["d#1"]}])
    rows: list[Row] = [
        {"user_query": "why?", "expected_answer": "Rain it is.", name: "It is the rain."}
    ]
    folder.write("log.jsonl", rows)
    folder.run("init", "gold.jsonl", "log.jsonl")
    answer = load_config(folder.path / "ragauge.toml").fields["traces"]["answer"]
    assert answer.strip('"') == name


def test_where_no_trace_meets_gold_init_is_named(folder: Folder) -> None:
    folder.write("gold.jsonl", [{"qid": "a", "question": "why?", "relevant": ["d#1"]}])
    folder.write("log.jsonl", [{"user_query": "why?", "sources": ["d#1"]}])
    done = folder.run("score", "gold.jsonl", "log.jsonl")
    assert done.exit_code == 5
    assert "`ragauge init GOLD TRACES`" in done.err
    folder.run("init", "gold.jsonl", "log.jsonl")
    assert folder.run("score").exit_code == 0
