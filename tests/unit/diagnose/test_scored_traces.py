"""Which traces count: the last of a slot, by question and turn, and only those of gold items."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge import registry
from ragauge.diagnose.scored_traces import (
    ProbeInput,
    QuestionKey,
    ScoredTraces,
    probed_file,
    scored_traces,
)
from ragauge.model.gold import GoldItem
from ragauge.model.trace import Hit, Trace
from ragauge.scoring import score
from ragauge.scoring.identify import EvidenceIdentifier
from ragauge.scoring.scoring_run import ScoringPlan
from tests.support.command import lines_of


def trace(name: str, qid: str | None = "A", **more: Any) -> Trace:
    """A trace that is told by the id of its only hit."""
    return Trace(qid=qid, hits=(Hit(name),), **more)


def names(found: ScoredTraces) -> dict[tuple[str, int | None], list[str]]:
    return {
        (question.qid, question.turn): [each.hits[0].id for each in group]
        for question, group in found.by_question.items()
    }


def known(*items: GoldItem, profile: str = "all") -> EvidenceIdentifier:
    plan = ScoringPlan(
        profile=registry.profile(profile), dialect=registry.dialect("native"), own=True, k=(5,),
        selected=[],
    )  # fmt: skip
    return EvidenceIdentifier(plan, items, {}, gold_name="gold")


SLOTS = [
    trace("first"), trace("again"), trace("seed", seed=1), trace("worded", paraphrase=0),
    trace("turn", turn=2), trace("other", qid="B"),
]  # fmt: skip


def test_without_a_gold_set_questions_are_what_traces_call_them() -> None:
    """Of five traces of A, two are of one slot, and one is of another turn."""
    found = scored_traces(SLOTS)
    assert names(found) == {
        ("A", None): ["again", "seed", "worded"], ("A", 2): ["turn"], ("B", None): ["other"],
    }  # fmt: skip
    assert found.left_out == {"traces replaced by a later one of the same slot": 1}
    assert found.unknown == ()


def test_with_a_gold_set_its_items_are_the_questions() -> None:
    found = scored_traces(
        SLOTS, known=known(GoldItem(qid="A"), GoldItem(qid="A", turn=2), GoldItem(qid="C"))
    )
    assert names(found) == {("A", None): ["again", "seed", "worded"], ("A", 2): ["turn"]}
    assert found.left_out == {
        "traces of no gold item": 1, "traces replaced by a later one of the same slot": 1,
        "gold items without a trace": 1,
    }  # fmt: skip
    assert found.unknown == ("B",)


def test_a_paraphrase_is_found_by_its_text() -> None:
    """With the number or with its words, it is the same slot; without a gold set it is not."""
    rows = [trace("by number", paraphrase=1), trace("by words", question="how?")]
    item = GoldItem(qid="A", paraphrases=("what?", "how?"))
    assert names(scored_traces(rows, known=known(item))) == {("A", None): ["by words"]}
    assert names(scored_traces(rows)) == {("A", None): ["by number", "by words"]}


def test_a_trace_without_an_id_is_known_by_its_question() -> None:
    rows = [trace("x", qid=None, question="how?"), trace("y", qid=None, question="why?")]
    item = GoldItem(qid="A", question="how?")
    found = scored_traces(rows, known=known(item))
    assert names(found) == {("A", None): ["x"]}
    assert found.unknown == ("why?",)
    assert names(scored_traces(rows)) == {("how?", None): ["x"], ("why?", None): ["y"]}


def test_an_error_takes_the_slot_of_what_was_there_before() -> None:
    """The last trace of a slot is the one that counts, and this one failed."""
    found = scored_traces([trace("fine"), trace("bad", error="timeout"), trace("b", qid="B")])
    assert names(found) == {("B", None): ["b"]}
    assert found.left_out["traces with an error"] == 1


@pytest.mark.parametrize(
    ("profile", "kept"),
    [("all", ["again", "seed"]), ("ship", ["seed"]), ("smoke", ["first", "again", "seed"])],
)
def test_a_profile_says_which_traces_count(profile: str, kept: list[str]) -> None:
    """`ship` takes the last of a question, `smoke` every line."""
    rows = [trace("first"), trace("again"), trace("seed", seed=1)]
    rows = [Trace(qid="A", question="how?", hits=each.hits, seed=each.seed) for each in rows]
    gold = known(GoldItem(qid="A", question="how?"), profile=profile)
    rules = registry.profile(profile).join
    assert names(scored_traces(rows, rules, known=gold)) == {("A", None): kept}
    alone = scored_traces(rows, rules)
    assert list(names(alone).values()) == [kept]


def test_other_traces_may_stand_in_their_places() -> None:
    found = scored_traces(SLOTS)
    again = found.with_traces([trace(f"{each.hits[0].id}!") for each in found.traces()])
    assert names(again)["A", None] == ["again!", "seed!", "worded!"]
    assert again.left_out == found.left_out


GOLD: list[dict[str, Any]] = [
    {"qid": "A", "question": "a?", "relevant": ["x"], "paraphrases": ["a?", "aa?"]},
    {"qid": "B", "turn": 1, "question": "b?", "relevant": ["x"]},
    {"qid": "B", "turn": 2, "question": "bb?", "relevant": ["x"]},
]
ROWS = st.lists(
    st.fixed_dictionaries(
        {"qid": st.sampled_from(["A", "B", "C"])},
        optional={
            "question": st.sampled_from(["a?", "aa?", "b?"]),
            "paraphrase": st.sampled_from([0, 1]),
            "seed": st.sampled_from([1, 2]),
            "turn": st.sampled_from([1, 2, 3]),
            "error": st.just("timeout"),
        },
    ),
    min_size=1,
    max_size=12,
)


@given(rows=ROWS)
def test_what_counts_is_what_is_scored(
    rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("scored")
    gold, traces = folder / "gold.jsonl", folder / "trace.jsonl"
    gold.write_bytes(lines_of(GOLD))
    traces.write_bytes(lines_of([{**row, "topk": ["x"], "ΔS": [0.3]} for row in rows]))
    tally = score.score(gold, traces, profile="all", metrics=["retrieval.hit@1"]).tally
    if tally.unknown == len(rows):
        return  # nothing is measured, and a probe says so
    found = _probed(traces, gold).scored
    left = found.left_out
    assert left.get("traces of no gold item", 0) == tally.unknown
    assert left.get("traces replaced by a later one of the same slot", 0) == tally.duplicates
    assert left.get("gold items without a trace", 0) == tally.missing
    assert left.get("traces with an error", 0) == tally.errored
    assert len(list(found.traces())) == len(rows) - tally.unknown - tally.duplicates - tally.errored


def _probed(traces: Path, gold: Path) -> ProbeInput:
    return probed_file(traces, gold, profile="all")


def test_questions_stand_in_an_order_of_their_own() -> None:
    rows = [trace("x", qid="B"), trace("x", turn=10), trace("x", turn=9), trace("x")]
    assert list(scored_traces(rows).by_question) == [
        QuestionKey("A"), QuestionKey("A", 9), QuestionKey("A", 10), QuestionKey("B"),
    ]  # fmt: skip
