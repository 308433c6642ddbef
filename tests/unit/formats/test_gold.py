"""Gold items need an id of their own, and a question where traces are joined by it."""

from __future__ import annotations

import json

from tests.support.cases import cases
from tests.support.command import GOLD, Folder, Row
from tests.support.refusals import assert_refused


@cases(
    ("row", "code", "message"),
    [
        ({"question": "What?"}, "missing-field", "no id"),
        ({"qid": None, "question": "What?"}, "missing-field", "no id"),
        ({"qid": "", "question": "What?"}, "bad-field", "`qid` must be a non-empty id"),
        ({"q_id": "", "question": "What?"}, "bad-field", "`q_id` must be a non-empty id"),
    ],
)
def test_a_gold_item_needs_an_id(folder: Folder, row: Row, code: str, message: str) -> None:
    """Without one its result could not be named."""
    for profile in ("all", "ship", "smoke"):
        outcome = folder.score(None, "--profile", profile, gold=[*GOLD, row])
        assert_refused(outcome, code, "gold.jsonl:4", message=message)


def test_a_gold_item_needs_a_question_where_traces_are_joined_by_it(folder: Folder) -> None:
    """Under `smoke` an item without a question can never be met."""
    outcome = folder.score(None, "--profile", "smoke", gold=[*GOLD, {"qid": "A4"}])
    assert_refused(outcome, "missing-field", "gold.jsonl:4", message="question")


def test_two_gold_items_with_one_id_are_refused_under_all(folder: Folder) -> None:
    """Each further one is named, with the line of the first."""
    gold = [*GOLD, GOLD[1], {**GOLD[0], "answerable": False}]
    outcome = folder.score(None, "--profile", "all", gold=gold)
    assert_refused(outcome, "duplicate-qid", "gold.jsonl:4", message="first on line 2")
    assert [each.where for each in outcome.problems] == ["gold.jsonl:4", "gold.jsonl:5"]


def test_of_two_gold_items_with_one_id_the_last_wins_under_ship(folder: Folder) -> None:
    """As in the source; the report counts it."""
    first = {**GOLD[0], "answerable": False}
    outcome = folder.score(None, "--profile", "ship", "--format", "json", gold=[first, *GOLD])
    assert json.loads(outcome.out)["answerable"] == 2  # A1 counts as its last row says
    assert "1 gold item replaced by a later one with the same id" in outcome.err
    assert outcome.exit_code == 0
    outcome = folder.score(None, "--profile", "ship", "--format", "json", gold=[*GOLD, first])
    assert json.loads(outcome.out)["under_refusal"] == 0.5  # A1 is answered, and now must not be


def test_of_two_gold_items_with_one_question_the_last_wins_under_smoke(folder: Folder) -> None:
    """There the question is what joins."""
    gold = [{**GOLD[0], "qid": "B1"}, *GOLD]
    outcome = folder.score(None, "--profile", "smoke", "--format", "md", gold=gold)
    assert "| A1 |" in outcome.out
    assert "| B1 |" not in outcome.out
    assert "1 gold item replaced by a later one with the same question" in outcome.err
