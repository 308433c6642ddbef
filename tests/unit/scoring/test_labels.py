"""Labels: one word for what came of a record, and the worst of a question."""

from __future__ import annotations

import pytest

from ragauge import load_gold, load_traces, registry, score
from ragauge.model.labels import GOOD, LABELS, MEANINGS
from tests.support.cases import cases
from tests.support.command import Folder, Row

SAYS: list[Row] = [
    {"qid": "yes", "question": "1?", "answerable": True, "gold_claim_substr": ["blue whale"],
     "gold_citations": ["g1"]},
    {"qid": "no", "question": "2?", "answerable": False},
    {"qid": "open", "question": "3?", "gold_citations": ["g1"]},
]  # fmt: skip
REFUSAL = {"claim": "not in context", "citations": []}
RIGHT = {"claim": "A blue whale.", "citations": ["g1"]}
# question, rest of the trace, label under `ship`, label under `all`
CASES: list[tuple[str, Row, str, str]] = [
    ("yes", {"retrieved_ids": ["g1"], "answer_json": RIGHT}, "OK", "OK"),
    ("yes", {"retrieved_ids": ["g1"], "answer_json": REFUSAL}, "OVER_REFUSAL", "OVER_REFUSAL"),
    # `ship` asks for the claim too; `all` counts an answer that cites evidence as right
    ("yes", {"retrieved_ids": ["g1"], "answer_json": {**RIGHT, "claim": "A fin whale."}},
     "CLAIM_MISSING", "OK"),
    ("yes", {"retrieved_ids": ["x"], "answer_json": RIGHT}, "OUT_OF_SCOPE", "OK"),
    ("yes", {"retrieved_ids": ["g1"], "answer_json": {**RIGHT, "citations": ["g1", "x"]}},
     "OUT_OF_SCOPE", "OK"),
    ("yes", {"retrieved_ids": ["g1", "x"], "answer_json": {**RIGHT, "citations": ["x"]}},
     "ANS_NO_HIT", "ANS_NO_HIT"),
    ("yes", {"retrieved_ids": ["g1"], "answer_json": {"claim": "A blue whale."}},
     "ANS_NO_HIT", "ANS_NO_HIT"),
    # without an answer: an empty one under `ship`, none at all under `all`
    ("yes", {"retrieved_ids": ["g1"]}, "ANS_NO_HIT", "NO_ANSWER"),
    ("yes", {"retrieved_ids": ["g1"], "answer_json": RIGHT, "error": "timeout"}, "OK", "ERRORED"),
    ("no", {"retrieved_ids": ["x"], "answer_json": REFUSAL}, "REFUSAL_OK", "REFUSAL_OK"),
    ("no", {"retrieved_ids": ["x"], "answer_json": RIGHT}, "HALLUCINATION", "HALLUCINATION"),
    ("no", {"retrieved_ids": ["x"]}, "HALLUCINATION", "NO_ANSWER"),
    ("no", {"answer_json": RIGHT, "error": "timeout"}, "HALLUCINATION", "ERRORED"),
    ("open", {"retrieved_ids": ["g1"], "answer_json": REFUSAL}, "UNLABELLED", "UNLABELLED"),
    # `ship` lets an unlabelled item be answered, and its claims are absent: never contained
    ("open", {"retrieved_ids": ["g1"], "answer_json": RIGHT}, "CLAIM_MISSING", "UNLABELLED"),
]  # fmt: skip


def labels(folder: Folder, traces: list[Row], profile: str) -> dict[str, str]:
    gold = folder.write("gold.jsonl", SAYS)
    trace = folder.write("trace.jsonl", traces)
    found = score(gold, trace, profile=profile, intervals=False)
    return {each.qid: each.label for each in found.questions}


@cases(("qid", "rest", "ship", "every"), CASES)
def test_the_label_says_what_came_of_a_trace(
    folder: Folder, qid: str, rest: Row, ship: str, every: str
) -> None:
    """Under a profile that follows its source, and under `all`."""
    trace = {"qid": qid, **rest}
    assert labels(folder, [trace], "ship")[qid] == ship
    assert labels(folder, [trace], "all")[qid] == every


@pytest.mark.parametrize("profile", ["ship", "all"])
def test_a_question_without_a_trace_is_missing(folder: Folder, profile: str) -> None:
    """Also under `ship`, which scores it as an empty answer."""
    found = labels(folder, [{"qid": "yes", "answer_json": REFUSAL}], profile)
    assert found == {"yes": "OVER_REFUSAL", "no": "MISSING", "open": "MISSING"}


def test_smoke_has_the_labels_of_its_source(folder: Folder) -> None:
    """OK, REFUSAL_OK, OVER_REFUSAL, HALLUCINATION and ANS_NO_HIT, one a row."""
    gold = folder.write(
        "qaset.json",
        [
            {"qid": "q1", "q": "1?", "answerable": True, "gold_ids": ["g1"]},
            {"qid": "q2", "q": "2?", "answerable": False, "gold_ids": []},
        ],
    )
    said = [
        ("1?", "x citations: [g1]"), ("1?", "x citations: [g2]"), ("1?", "Not in context"),
        ("2?", "not in context"), ("2?", "x"), ("1?", None),
    ]  # fmt: skip
    rows: list[Row] = [{"q": q, "answer": text} for q, text in said]
    trace = folder.write("trace.jsonl", rows)
    found = score(gold, trace, profile="smoke")
    assert [row.label for row in found.rows] == [
        "OK", "ANS_NO_HIT", "OVER_REFUSAL", "REFUSAL_OK", "HALLUCINATION", "ANS_NO_HIT",
    ]  # fmt: skip


def test_a_question_with_several_slots_shows_its_worst(folder: Folder) -> None:
    """And where it is: the first row that has the worst label."""
    rows: list[Row] = [
        {"qid": "yes", "seed": 1, "retrieved_ids": ["g1"], "answer_json": RIGHT},
        {"qid": "yes", "seed": 2, "answer_json": {"claim": "x", "citations": ["x"]}},
        {"qid": "yes", "seed": 3, "answer_json": REFUSAL},
        {"qid": "yes", "seed": 4, "answer_json": {"claim": "y", "citations": ["y"]}},
    ]
    gold = load_gold(folder.write("gold.jsonl", SAYS[:1]))
    for order in (rows, rows[::-1]):
        trace = folder.write("trace.jsonl", order)
        (found,) = score(gold, load_traces(trace), profile="all").questions
        assert found.label == "ANS_NO_HIT"
        assert found.labels == {"OK": 1, "OVER_REFUSAL": 1, "ANS_NO_HIT": 2}
        line = 2 if order is rows else 1
        assert found.trace == f"{trace}:{line}"


def test_labels_are_ordered_from_best_to_worst() -> None:
    """The good ones come first; every label has a meaning that `ragauge explain` prints."""
    assert LABELS[: len(GOOD)] == GOOD
    assert tuple(MEANINGS) == LABELS
    assert all(MEANINGS.values())


def test_every_profile_names_a_metric_that_says_what_is_right() -> None:
    """OK means that this metric counts the record."""
    for profile in registry.profiles().values():
        assert registry.metrics()[profile.correct].binary
