"""Traces and gold items without ids meet by the text of their question, and it is counted."""

from __future__ import annotations

import json

from ragauge import score
from tests.support.command import GOLD, TRACES, Folder, Row

# GOLD and TRACES of `command`, without the ids and the names by which a dialect is recognised.
ITEMS: list[Row] = [
    {"qid": item["qid"], "question": item["question"], "relevant": item["gold_citations"]}
    for item in GOLD
]
ROWS: list[Row] = [{"question": trace["q"], "hits": trace["retrieved_ids"]} for trace in TRACES]


def scored(folder: Folder, gold: list[Row], rows: list[Row]) -> dict[str, object]:
    folder.write("g.jsonl", gold)
    folder.write("t.jsonl", rows)
    done = folder.run("score", "g.jsonl", "t.jsonl", "--format", "json", "--full")
    return {**json.loads(done.out), "err": done.err}


def qids(document: dict[str, object]) -> set[str]:
    questions = document["questions"]
    assert isinstance(questions, list)
    return {question["qid"] for question in questions}


def test_case_blanks_and_composition_do_not_count(folder: Folder) -> None:
    rows = [{**row, "question": f"  {row['question'].upper()}\n"} for row in ROWS]
    gold = [*ITEMS, {"qid": "A4", "question": "Zählt der Tokenizer?", "relevant": ["x#1"]}]
    rows.append({"question": "Zählt  der Tokenizer?", "hits": ["x#1"]})  # ä in two parts
    document = scored(folder, gold, rows)
    assert document["joined"] == {"by_id": 0, "by_text": 4, "ambiguous": 0, "unmatched": 0}
    assert document["missing"] == 0
    assert "traces joined by id: 0, by question text: 4, unmatched: 0" in str(document["err"])


def test_an_id_is_never_replaced_by_a_text(folder: Folder) -> None:
    """A trace with an id of its own belongs to that id, or to nothing."""
    rows = [{**ROWS[0], "qid": "other"}, {**ROWS[2], "qid": "A3"}, ROWS[1]]
    document = scored(folder, ITEMS, rows)
    assert document["joined"] == {"by_id": 1, "by_text": 1, "ambiguous": 0, "unmatched": 1}


def test_gold_without_ids_has_none_that_a_trace_could_name(folder: Folder) -> None:
    """The id of a log line made every trace one of no gold item, though its question is there."""
    gold = [{name: value for name, value in item.items() if name != "qid"} for item in ITEMS]
    rows = [{**row, "id": f"evt-{number}"} for number, row in enumerate(ROWS)]
    plain, named = scored(folder, gold, ROWS), scored(folder, gold, rows)
    assert named["metrics"] == plain["metrics"]
    assert named["missing"] == 0
    assert "the gold set has no ids: traces are joined by their questions" in str(named["err"])


def test_a_question_that_gold_has_twice_is_ambiguous(folder: Folder) -> None:
    twice = [*ITEMS, {**ITEMS[0], "qid": "A9", "relevant": ["elsewhere"]}]
    document = scored(folder, twice, [*ROWS, {"question": "No such question?", "hits": []}])
    assert document["joined"] == {"by_id": 0, "by_text": 2, "ambiguous": 1, "unmatched": 1}
    assert document["unknown"] == 2
    assert document["missing"] == 2  # neither of the two has a trace


def test_ids_alone_say_nothing_of_joins(folder: Folder) -> None:
    rows = [{**row, "qid": item["qid"]} for row, item in zip(ROWS, ITEMS, strict=True)]
    document = scored(folder, ITEMS, rows)
    assert "joined" not in document
    assert "joined by" not in str(document["err"])


def test_gold_without_ids_gets_ids_of_its_questions(folder: Folder) -> None:
    gold = [{"question": item["question"], "relevant": item["relevant"]} for item in ITEMS]
    document = scored(folder, gold, ROWS)
    assert document["joined"] == {"by_id": 0, "by_text": 3, "ambiguous": 0, "unmatched": 0}
    metrics = document["metrics"]
    assert isinstance(metrics, dict)
    assert (metrics["retrieval.recall@1"]["value"], metrics["retrieval.recall@1"]["n"]) == (0.5, 2)
    # The same questions in another order and case have the same ids.
    other = [{**item, "question": item["question"].lower()} for item in reversed(gold)]
    again = scored(folder, other, ROWS)
    assert qids(again) == qids(document)
    assert len(qids(again)) == 3


def test_gold_without_an_id_and_a_question_is_refused(folder: Folder) -> None:
    folder.write("g.jsonl", [{"relevant": ["a"]}])
    folder.write("t.jsonl", ROWS)
    done = folder.run("score", "g.jsonl", "t.jsonl")
    assert (done.exit_code, done.codes) == (3, {"missing-field"})


def test_workers_count_the_same(folder: Folder) -> None:
    rows = [{**ROWS[number % 3], "seed": number} for number in range(60)]
    folder.write("g.jsonl", ITEMS)
    folder.write("t.jsonl", rows)
    one, two = (score("g.jsonl", "t.jsonl", workers=workers) for workers in (1, 2))
    assert (
        one.joined
        == two.joined
        == {
            "by_id": 0,
            "by_text": 60,
            "ambiguous": 0,
            "unmatched": 0,
        }
    )
    assert one.metrics == two.metrics


def test_a_paraphrase_in_another_case_is_its_slot(folder: Folder) -> None:
    gold = [{**ITEMS[0], "paraphrases": ["Are null keys fine?", "Null keys in X?"]}, *ITEMS[1:]]
    rows = [{**ROWS[0], "question": "null keys in x?"}, {**ROWS[0], "question": "Null keys in X?"}]
    document = scored(folder, gold, [*rows, *ROWS[1:]])
    assert document["duplicates"] == 1  # both are the second paraphrase
