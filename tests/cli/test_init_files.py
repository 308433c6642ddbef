"""`init FILE...` looks at the user's own files, and writes down what their fields look like."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

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
        "tags": "Topic",
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


# --- logs as people have them: every one gives the same recall, worked out by hand ---

QUESTIONS = {
    "Q1": ("How long does a refund take?", ["bill-3"], ["bill-3", "lim-1"]),
    "Q2": ("How large may an upload be?", ["lim-1"], ["x-1", "lim-1"]),
    "Q3": ("How long must a password be?", ["sec-1", "sec-2"], ["sec-1", "x-2", "sec-2"]),
    "Q4": ("When does a session end?", ["sec-7"], ["x-4"]),
}
# recall@1: 1, 0, 1/2, 0 -> 0.375; recall@5: 1, 1, 1, 0 -> 0.75.
TEXTS = {
    "bill-3": "Refunds are paid back within 14 days after the request has been made.",
    "lim-1": "A single upload may be at most 250 MB; larger files have to be split.",
    "sec-1": "Passwords must have at least 12 characters, of which one is a digit.",
    "sec-2": "Passwords are stored with argon2id, and they are never written to a log.",
    "sec-7": "A session ends after 30 minutes in which nothing was done by its user.",
} | {f"x-{n}": f"This unrelated passage number {n} is about something else." for n in range(5)}
ANSWERS = ["It takes 14 days.", "At most 250 MB.", "Twelve characters or more.", "After an hour."]


def cells(*rows: Sequence[object]) -> str:
    return "".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows)


def rows_of(make: Callable[[str, str, list[str], str], object]) -> list[Any]:
    items = zip(QUESTIONS.items(), ANSWERS, strict=True)
    return [make(qid, question, hits, answer) for (qid, (question, _, hits)), answer in items]


def gold_cells(*header: str, separator: str, qid: bool = False, quotes: bool = False) -> str:
    rows: list[list[str]] = [[*header]]
    for name, (question, evidence, _) in QUESTIONS.items():
        named = [TEXTS[one] for one in evidence] if quotes else evidence
        rows.append([*([name] if qid else []), question, separator.join(named)])
    return cells(*rows)


NESTED = rows_of(
    lambda qid, question, hits, answer: {
        "ts": "2026-11-01T10:00:00Z",
        "request": {"userQuery": question, "testCaseId": qid},
        "pipeline": {"retriever": {"topChunks": [{"chunkId": one, "sim": 0.5} for one in hits]}},
        "result": {"botAnswer": answer},
    }
)
EVENTS = rows_of(
    lambda qid, question, hits, answer: {
        "id": f"evt-{qid}",
        "payload": json.dumps(
            {"question": question, "retrieved_docs": hits, "response": {"text": answer}}
        ),
    }
)
CHATS = rows_of(
    lambda _, question, hits, answer: {
        "conversation_id": "c",
        "messages": [
            {"role": "user", "content": question},
            {"role": "assistant", "content": answer},
        ],
        "retrieval": {"chunks": [{"id": one, "text": TEXTS[one]} for one in hits]},
    }
)
COLUMNS = cells(
    ["prompt", "context_1", "context_2", "context_3", "output"],
    *rows_of(
        lambda _, question, hits, answer: [
            question,
            *(TEXTS[one] for one in hits),
            *[""] * (3 - len(hits)),
            answer,
        ]
    ),
)
WRAPPED = {
    "meta": {"model": "m"},
    "results": rows_of(
        lambda qid, q, hits, a: {"q": q, "qid": qid, "retrieved": hits, "answer": a}
    ),
}
BY_ID = {qid: {"question": q, "docs": hits} for qid, (q, _, hits) in QUESTIONS.items()}
GERMAN = [
    {"typ": "kopf", "modell": "m"},
    *rows_of(lambda _, q, hits, answer: {"frage": q, "kontext": hits, "antwort": answer}),
]
HIT_ROWS = [["query_id", "query", "rank", "passage_id"]] + [
    [qid, question, str(rank), one]
    for qid, (question, _, hits) in QUESTIONS.items()
    for rank, one in enumerate(hits, start=1)
]
JUDGEMENTS = [["query_id", "passage_id", "relevance"]] + [
    [qid, one, "1"] for qid, (_, evidence, _) in QUESTIONS.items() for one in evidence
]

BY_COMMA = gold_cells("ID", "Question", "Relevant chunks", separator=", ", qid=True)
BY_BAR = gold_cells("question", "chunk_ids", separator="|")
QUOTED = gold_cells("prompt", "expected_context", separator="|", quotes=True)


@pytest.mark.parametrize(
    ("gold", "traces"),
    [
        (BY_COMMA, ("log.jsonl", NESTED)),
        (BY_BAR, ("log.jsonl", EVENTS)),
        (BY_BAR, ("log.jsonl", CHATS)),
        (BY_COMMA, ("log.json", json.dumps(WRAPPED, indent=2))),
        (BY_COMMA, ("log.json", json.dumps(BY_ID))),
        (gold_cells("frage", "beleg", separator=";"), ("log.jsonl", GERMAN)),
        (cells(*JUDGEMENTS), ("log.csv", cells(*HIT_ROWS))),
    ],
    ids=["nested", "json in text", "messages", "wrapped", "by id", "german", "rows of hits"],
)
def test_a_log_as_people_have_it(folder: Folder, gold: str, traces: tuple[str, Any]) -> None:
    folder.write("cases.csv", gold)
    name, rows = traces
    folder.write(name, rows)
    assert folder.run("init", "cases.csv", name).exit_code == 0
    done = folder.run("score", "--profile", "all", "--format", "json", "--full")
    assert done.exit_code == 0
    metrics = json.loads(done.out)["metrics"]
    assert (metrics["retrieval.recall@1"]["value"], metrics["retrieval.recall@1"]["n"]) == (
        0.375,
        4,
    )
    assert metrics["retrieval.recall@5"]["value"] == 0.75


def test_a_column_for_each_hit(folder: Folder) -> None:
    folder.write("cases.csv", QUOTED)
    folder.write("log.csv", COLUMNS)
    assert folder.run("init", "cases.csv", "log.csv").exit_code == 0
    fields = load_config(folder.path / "ragauge.toml").fields
    assert (fields["traces"]["hits"], fields["traces"]["hits.text"]) == ("context_*", ".")
    assert (fields["gold"]["relevant"], fields["gold"]["relevant.quote"]) == (
        "expected_context",
        ".",
    )
    scores = score("cases.csv", "log.csv", fields=fields, profile="all", k=(1, 5))
    assert scores.metrics["retrieval.recall@1"].value == 0.375
    assert scores.metrics["retrieval.recall@5"].value == 0.75


def test_documents_with_folders_before_their_names(folder: Folder) -> None:
    """Without the documents names are not guessed, and the way out is said."""
    folder.write("cases.csv", cells(["Question", "Source document"], *(
        [question, f"{evidence[0]}.md"] for question, evidence, _ in QUESTIONS.values()
    )))  # fmt: skip
    log = rows_of(
        lambda _, question, hits, answer: {
            "Question": question.upper(),
            "Sources": [f"C:\\docs\\{one}.md" for one in hits],
            "Answer": answer,
        }
    )
    folder.write("log.jsonl", log)
    assert folder.run("init", "cases.csv", "log.jsonl").exit_code == 0
    fields = load_config(folder.path / "ragauge.toml").fields
    assert fields["gold"]["relevant_docs"] == "Source document"
    assert fields["traces"]["hits.doc"] == "."
    done = folder.run("score", "--profile", "all")
    assert (done.exit_code, "names end alike: hits have `C:\\docs\\" in done.err) == (4, True)
    for name, text in TEXTS.items():
        folder.write(f"docs/{name}.md", text)
    done = folder.run("score", "--corpus", "docs")
    assert "first `ragauge corpus build docs -o corpus`" in done.err
    assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
    done = folder.run("score", "--corpus", "corpus", "--format", "json", "--full")
    # The first document of the evidence: found first for Q1 and Q3, second for Q2.
    assert json.loads(done.out)["metrics"]["retrieval.recall_doc@1"]["value"] == 0.5
    assert json.loads(done.out)["metrics"]["retrieval.recall_doc@5"]["value"] == 0.75


def test_a_number_that_both_files_have_is_no_id(folder: Folder) -> None:
    folder.write("cases.csv", BY_BAR)
    head: list[Row] = [
        {"version": 2},
        *rows_of(lambda _, q, hits, said: {"asked": q, "docs": hits, "said": said}),
    ]
    folder.write("log.jsonl", head)
    folder.run("init", "cases.csv", "log.jsonl")
    assert "qid" not in load_config(folder.path / "ragauge.toml").fields["traces"]
