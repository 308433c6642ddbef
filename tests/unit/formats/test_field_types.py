"""Fields of the wrong type, in gold rows and in trace rows, are named by their path."""

from __future__ import annotations

from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder, Row
from tests.support.refusals import assert_accepted, assert_refused

WRONG_TRACE: list[tuple[Row, str]] = [
    ({"qid": 1.5}, "qid"),
    ({"qid": True}, "qid"),
    ({"qid": ["A1"]}, "qid"),
    ({"id": {}}, "id"),
    ({"q_id": 0.0}, "q_id"),
    ({"query_id": []}, "query_id"),
    ({"q": 5}, "q"),
    ({"question": ["x"]}, "question"),
    ({"query": {}}, "query"),
    ({"paraphrase": "1"}, "paraphrase"),
    ({"paraphrase": 1.0}, "paraphrase"),
    ({"seed": 1.5}, "seed"),
    ({"seed": True}, "seed"),
    ({"seed": [1]}, "seed"),
    ({"turn": "1"}, "turn"),
    ({"turn": {}}, "turn"),
    ({"topk": 5}, "topk"),
    ({"topk": "p1"}, "topk"),
    ({"topk": {"id": "p1"}}, "topk"),
    ({"topk": ["p1", None]}, "topk[1]"),
    ({"topk": [1.5]}, "topk[0]"),
    ({"topk": [True]}, "topk[0]"),
    ({"topk": [["p1"]]}, "topk[0]"),
    ({"topk": [{"section": "S.1"}]}, "topk[0]"),
    ({"topk": [{"id": []}]}, "topk[0].id"),
    ({"topk": ["a", {"chunk_id": 1.5}]}, "topk[1].chunk_id"),
    ({"topk": [{"snippet_id": True}]}, "topk[0].snippet_id"),
    ({"topk": [{"block_id": {}}]}, "topk[0].block_id"),
    ({"topk": [{"id": "a", "doc": 1.5}]}, "topk[0].doc"),
    ({"topk": [{"id": "a", "doc_id": []}]}, "topk[0].doc_id"),
    ({"topk": [{"id": "a", "doc_path": False}]}, "topk[0].doc_path"),
    ({"topk": [{"id": "a", "section": {}}]}, "topk[0].section"),
    ({"topk": [{"id": "a", "section_id": 4.2}]}, "topk[0].section_id"),
    ({"topk": ["a", "b", "c", {"id": "d", "score": "0.83"}]}, "topk[3].score"),
    ({"topk": [{"id": "a", "score": True}]}, "topk[0].score"),
    ({"topk": [{"id": "a", "type": 5}]}, "topk[0].type"),
    ({"topk": [{"id": "a", "text": ["x"]}]}, "topk[0].text"),
    ({"retrieved_ids": "p1"}, "retrieved_ids"),
    ({"retrieved_ids": ["p1", 1.5]}, "retrieved_ids[1]"),
    ({"retrieved_ids": [None]}, "retrieved_ids[0]"),
    ({"chunks": 5}, "chunks"),
    ({"chunks": [{"id": "a", "score": "0.83"}]}, "chunks[0].score"),
    ({"chunks": [{"id": "a", "text": 5}]}, "chunks[0].text"),
    ({"items": {}}, "items"),
    ({"retrieved": 1}, "retrieved"),
    ({"hits_top_k": "a"}, "hits_top_k"),
    ({"retrieval": 5}, "retrieval"),
    ({"retrieval": "p1"}, "retrieval"),
    ({"retrieval": {"topk": 5}}, "retrieval.topk"),
    ({"retrieval": {"chunks": [{"id": "a"}, {"id": []}]}}, "retrieval.chunks[1].id"),
    ({"answer": 5}, "answer"),
    ({"answer": ["x"]}, "answer"),
    ({"answer": False}, "answer"),
    ({"answer": {"text": 5}}, "answer.text"),
    ({"answer": {"claim": ["x"]}}, "answer.claim"),
    ({"answer_json": "x"}, "answer_json"),
    ({"answer_json": ["x"]}, "answer_json"),
    ({"answer_json": 5}, "answer_json"),
    ({"answer_json": {"claim": 5}}, "answer_json.claim"),
    ({"answer_json": {"text": {}}}, "answer_json.text"),
    ({"answer_json": {"citations": [1.5]}}, "answer_json.citations[0]"),
    ({"answer_json": {"citations": ["a", {"id": None}]}}, "answer_json.citations[1]"),
    ({"answer_json": {"citations": [{"id": []}]}}, "answer_json.citations[0].id"),
    ({"answer_json": {"refused": "no"}}, "answer_json.refused"),
    ({"answer_json": {"grounded": 0}}, "answer_json.grounded"),
    ({"answer_json": {"constraints_echo": "x"}}, "answer_json.constraints_echo"),
    ({"answer_json": {"constraints_echo": [5]}}, "answer_json.constraints_echo[0]"),
    ({"answer_text": 5}, "answer_text"),
    ({"citations": [None]}, "citations[0]"),
    ({"citations": ["a", {"doc": "x"}]}, "citations[1]"),
    ({"answer_citations": [True]}, "answer_citations[0]"),
    ({"cited_chunks": [["a"]]}, "cited_chunks[0]"),
    ({"answer": "x", "refused": "no"}, "refused"),
    ({"answer": "x", "grounded": 1}, "grounded"),
    ({"answer": "x", "constraints_echo": 5}, "constraints_echo"),
    ({"answer": "x", "constraints_echo": [True]}, "constraints_echo[0]"),
]
WRONG_GOLD: list[tuple[Row, str]] = [
    ({"qid": 1.5}, "qid"),
    ({"id": True}, "id"),
    ({"q_id": []}, "q_id"),
    ({"query_id": {}}, "query_id"),
    ({"question": 5}, "question"),
    ({"q": ["x"]}, "q"),
    ({"query": False}, "query"),
    ({"paraphrases": "x"}, "paraphrases"),
    ({"paraphrases": ["x", 5]}, "paraphrases[1]"),
    ({"answerable": "yes"}, "answerable"),
    ({"answerable": 1}, "answerable"),
    ({"relevant": "p1"}, "relevant"),
    ({"relevant": ["p1", 1.5]}, "relevant[1]"),
    ({"gold_ids": {}}, "gold_ids"),
    ({"gold_ids": [None]}, "gold_ids[0]"),
    ({"gold_citations": "p1#1"}, "gold_citations"),
    ({"gold_citations": [True]}, "gold_citations[0]"),
    ({"expected_chunk_ids": 5}, "expected_chunk_ids"),
    ({"gold_claim_substr": "x"}, "gold_claim_substr"),
    ({"gold_claim_substr": ["x", 5]}, "gold_claim_substr[1]"),
    ({"gold_claim": 5}, "gold_claim"),
    ({"gold_claim": [5]}, "gold_claim[0]"),
    ({"claims_any": "x"}, "claims_any"),
    ({"constraints": "x"}, "constraints"),
    ({"constraints": [5]}, "constraints[0]"),
    ({"type": 5}, "type"),
    ({"tags": "x"}, "tags"),
    ({"tags": [5]}, "tags[0]"),
    ({"group": []}, "group"),
    ({"difficulty": 3}, "difficulty"),
    ({"lang": False}, "lang"),
]
ANSWERED = {"answer_json": {"claim": "X rejects null keys."}}


def with_id(fields: Row) -> Row:
    """The fields in a row that has an id, unless the id is the field in question."""
    return fields if fields.keys() & {"id", "q_id", "query_id"} else {"qid": "A1", **fields}


def is_about_the_answer(fields: Row) -> bool:
    return bool(fields.keys() & {"answer", "answer_json", "answer_text"}) or "cit" in str(fields)


@cases(("fields", "path"), WRONG_TRACE)
def test_a_trace_field_of_the_wrong_type_is_refused_with_its_path(
    folder: Folder, fields: Row, path: str
) -> None:
    """The message names the path inside the object, and shows what was found."""
    outcome = folder.score([TRACES[0], with_id(fields), TRACES[2]], "--profile", "all")
    assert_refused(outcome, "bad-field", "trace.jsonl:2", message=f"`{path}` must be ")
    assert ", got " in outcome.problems[0].message


@cases(
    ("fields", "path"),
    [each for each in WRONG_TRACE if not is_about_the_answer(each[0])],
)
def test_a_wrong_type_is_refused_in_the_usual_row_too(
    folder: Folder, fields: Row, path: str
) -> None:
    """Rows of the usual shape take a faster way, which must not be a more lenient one."""
    outcome = folder.score([{**with_id(fields), **ANSWERED}] * 2, "--profile", "all")
    assert_refused(outcome, "bad-field", "trace.jsonl:1", message=f"`{path}` must be ")


@cases(("fields", "path"), WRONG_GOLD)
def test_a_gold_field_of_the_wrong_type_is_refused_with_its_path(
    folder: Folder, fields: Row, path: str
) -> None:
    """The same for gold items."""
    outcome = folder.score(None, "--profile", "all", gold=[*GOLD, with_id(fields)])
    assert_refused(outcome, "bad-field", "gold.jsonl:4", message=f"`{path}` must be ")


def test_the_message_of_a_wrong_type_in_full(folder: Folder) -> None:
    """Three lines: what, where with item and dialect, and how to fix it."""
    row = {"qid": "Q-0137", "topk": ["a", "b", "c", {"id": "d", "score": "0.83"}]}
    outcome = folder.score([TRACES[0], row], "--profile", "all")
    assert outcome.err == (
        'error[bad-field]: `topk[3].score` must be a number, got "0.83"\n'
        "  --> trace.jsonl:2  (qid Q-0137, dialect native)\n"
        "  hint: write the number without quotes\n"
    )


def test_null_is_the_same_as_an_absent_field(folder: Folder) -> None:
    """In every field of a trace and a gold item, but for the gold item's id."""
    names = {name for fields, _ in WRONG_TRACE for name in fields} - {"qid"}
    traces = [{**dict.fromkeys(names), **row} for row in TRACES]
    names = {name for fields, _ in WRONG_GOLD for name in fields} - {"qid"}
    gold = [{**dict.fromkeys(names), **row} for row in GOLD]
    assert_accepted(folder.score(traces, "--gates", "precision=1", gold=gold))
