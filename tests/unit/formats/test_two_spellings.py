"""Two spellings of one field in a row: refused where they disagree, or the own one wins."""

from __future__ import annotations

from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder, Row
from tests.support.refusals import assert_accepted, assert_refused

TRACE_CONFLICTS: list[tuple[Row, str, str]] = [
    ({"qid": "A1", "id": "A2"}, "qid", "id"),
    ({"q_id": "A1", "query_id": "A2"}, "q_id", "query_id"),
    ({"qid": "A1", "q": "x", "question": "y"}, "q", "question"),
    ({"qid": "A1", "question": "x", "query": "y"}, "question", "query"),
    ({"qid": "A1", "topk": ["a"], "retrieved_ids": ["b"]}, "topk", "retrieved_ids"),
    ({"qid": "A1", "retrieved_ids": ["a", "b"], "chunks": ["b", "a"]}, "retrieved_ids", "chunks"),
    ({"qid": "A1", "items": [], "hits_top_k": ["a"]}, "items", "hits_top_k"),
    ({"qid": "A1", "topk": ["a"], "retrieval": {"topk": ["b"]}}, "topk", "retrieval.topk"),
    (
        {"qid": "A1", "retrieval": {"topk": ["a"], "chunks": ["b"]}},
        "retrieval.topk",
        "retrieval.chunks",
    ),
    ({"qid": "A1", "topk": [{"id": "a", "chunk_id": "b"}]}, "topk[0].id", "topk[0].chunk_id"),
    ({"qid": "A1", "chunks": [{"id": "a", "block_id": "b"}]}, "chunks[0].id", "chunks[0].block_id"),
    (
        {"qid": "A1", "topk": [{"id": "a", "doc": "x", "doc_id": "y"}]},
        "topk[0].doc",
        "topk[0].doc_id",
    ),
    ({"qid": "A1", "answer": "x", "answer_text": "y"}, "answer", "answer_text"),
    (
        {"qid": "A1", "answer_json": {"claim": "x"}, "answer": {"claim": "y"}},
        "answer_json",
        "answer",
    ),
    (
        {"qid": "A1", "citations": ["a"], "answer_citations": ["b"]},
        "citations",
        "answer_citations",
    ),
    (
        {"qid": "A1", "answer_citations": [], "cited_chunks": ["b"]},
        "answer_citations",
        "cited_chunks",
    ),
    (
        {"qid": "A1", "answer_json": {"citations": ["a"]}, "citations": ["b"]},
        "answer_json.citations",
        "citations",
    ),
    (
        {"qid": "A1", "answer_json": {"claim": "x", "refused": True}, "refused": False},
        "answer_json.refused",
        "refused",
    ),
    (
        {"qid": "A1", "answer_json": {"claim": "x", "grounded": True}, "grounded": False},
        "answer_json.grounded",
        "grounded",
    ),
]
GOLD_CONFLICTS: list[tuple[Row, str, str]] = [
    ({"qid": "A4", "id": "A5"}, "qid", "id"),
    ({"qid": "A4", "question": "x", "q": "y"}, "question", "q"),
    ({"qid": "A4", "q": "x", "query": "y"}, "q", "query"),
    ({"qid": "A4", "relevant": ["a"], "gold_ids": ["b"]}, "relevant", "gold_ids"),
    ({"qid": "A4", "gold_citations": ["a"], "gold_ids": []}, "gold_ids", "gold_citations"),
    (
        {"qid": "A4", "gold_claim": "x", "gold_claim_substr": ["y"]},
        "gold_claim_substr",
        "gold_claim",
    ),
]


@cases(("row", "one", "other"), TRACE_CONFLICTS)
def test_two_spellings_that_disagree_are_refused(
    folder: Folder, row: Row, one: str, other: str
) -> None:
    """Nobody can tell which was meant; both are named."""
    outcome = folder.score([TRACES[0], row, TRACES[2]], "--profile", "all")
    assert_refused(outcome, "field-conflict", "trace.jsonl:2", message=f"`{one}`")
    assert f"`{other}`" in outcome.problems[0].message


@cases(("row", "one", "other"), GOLD_CONFLICTS)
def test_two_gold_spellings_that_disagree_are_refused(
    folder: Folder, row: Row, one: str, other: str
) -> None:
    """The same for gold items."""
    outcome = folder.score(None, "--profile", "all", gold=[*GOLD, row])
    assert_refused(outcome, "field-conflict", "gold.jsonl:4", message=f"`{one}` and `{other}`")


def test_two_spellings_that_agree_are_one_field(folder: Folder) -> None:
    """Equal values are no conflict, in traces and in gold."""
    traces = [
        {
            **row,
            "id": row["qid"],
            "question": row["q"],
            "topk": row["retrieved_ids"],
            "retrieval": {"items": row["retrieved_ids"]},
            "answer": row["answer_json"],
            "citations": row["answer_json"]["citations"],
        }
        for row in TRACES
    ]
    gold = [
        {**row, "id": row["qid"], "q": row["question"], "relevant": row["gold_citations"]}
        for row in GOLD
    ]
    folder.write("g.toml", '"answer.grounded_precision" = { threshold = 1, min_n = 2 }\n')
    outcome = folder.score(traces, "--profile", "all", "--gates", "g.toml", gold=gold)
    assert_accepted(outcome)


def test_the_own_spelling_wins_under_ship(folder: Folder) -> None:
    """All numbers are those of the own names; the others are as if they were not there."""
    traces = [
        {
            **row,
            "id": "B7",
            "question": "Something else?",
            "topk": ["zz"],
            "chunks": [{"id": "zz"}],
            "answer": "Something else. citations: [zz]",
            "answer_text": "Something else again.",
            "citations": ["zz"],
        }
        for row in TRACES
    ]
    gold = [
        {**row, "id": "B7", "q": "Else?", "gold_ids": ["zz"], "gold_claim": "else"} for row in GOLD
    ]
    options = ("--profile", "ship", "--format", "json")
    plain = folder.score(None, *options)
    decorated = folder.score(traces, *options, gold=gold)
    assert (decorated.exit_code, decorated.out) == (plain.exit_code, plain.out)
    assert decorated.exit_code == 0


def test_the_own_spelling_wins_under_smoke(folder: Folder) -> None:
    """The same with the names of seed 001."""
    gold: list[Row] = [
        {"qid": "q1", "q": "What is X?", "answerable": True, "gold_ids": ["p1#1"]},
        {"qid": "q2", "q": "What is Z?", "answerable": False, "gold_ids": []},
    ]
    traces: list[Row] = [
        {"q": "What is X?", "chunks": [{"id": "p1#1"}], "answer": "A map. citations: [p1#1]"},
        {"q": "What is Z?", "chunks": [], "answer": "not in context"},
    ]
    options = ("--profile", "smoke", "--format", "md")
    plain = folder.score(traces, *options, gold=gold)
    decorated = folder.score(
        [
            {**row, "question": "Else?", "topk": ["zz"], "answer_json": {"claim": "Else."},
             "answer_text": "Else."}
            for row in traces
        ],
        *options,
        gold=[{**row, "question": "Else?", "gold_citations": ["zz"]} for row in gold],
    )  # fmt: skip
    assert (decorated.exit_code, decorated.out) == (plain.exit_code, plain.out)
    assert plain.exit_code == 0
