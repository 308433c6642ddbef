"""The order of rows does not matter: not in gold, nor among traces of different slots."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.datasets import (
    Data,
    Row,
    data_sets,
    large_data,
    scored,
    unordered,
)
from tests.support.cases import cases
from tests.support.effort import examples


def _by_question(rows: list[Row]) -> list[Row]:
    """One trace a question, for the profile that keeps only the last of each."""
    return list({row.get("qid"): row for row in rows}.values())


@examples(40)
@given(data=data_sets(unique=True), shuffle=st.randoms(use_true_random=False))
def test_order_does_not_matter(data: Data, shuffle: random.Random) -> None:
    """Shuffled gold and shuffled traces give the same metrics, intervals, counts and labels."""
    moved = Data(
        shuffle.sample(data.gold, len(data.gold)), shuffle.sample(data.trace, len(data.trace))
    )
    assert unordered(scored(moved)) == unordered(scored(data))


@examples(25)
@given(data=data_sets(), shuffle=st.randoms(use_true_random=False))
def test_order_does_not_matter_where_every_row_counts(data: Data, shuffle: random.Random) -> None:
    """Under `smoke` that is so of any rows."""
    moved = Data(
        shuffle.sample(data.gold, len(data.gold)), shuffle.sample(data.trace, len(data.trace))
    )
    assert unordered(scored(moved, profile="smoke")) == unordered(scored(data, profile="smoke"))


@examples(25)
@given(data=data_sets(unique=True), shuffle=st.randoms(use_true_random=False))
def test_order_does_not_matter_for_one_trace_a_question(data: Data, shuffle: random.Random) -> None:
    """Under `ship` that is so with one trace a question."""
    data = Data(data.gold, _by_question(data.trace))
    moved = Data(
        shuffle.sample(data.gold, len(data.gold)), shuffle.sample(data.trace, len(data.trace))
    )
    assert unordered(scored(moved, profile="ship")) == unordered(scored(data, profile="ship"))


@cases("profile", ["all", "smoke"])
@cases("questions", [45, 1_040])
def test_order_does_not_matter_to_intervals(profile: str, questions: int) -> None:
    """To the last bit, with few questions and with many."""
    data = large_data(questions, questions)
    rng = random.Random(7)
    moved = Data(rng.sample(data.gold, len(data.gold)), rng.sample(data.trace, len(data.trace)))
    expected = unordered(scored(data, profile=profile, k=5))
    assert any(each.n >= 45 and each.interval for each in expected["metrics"].values())
    assert unordered(scored(moved, profile=profile, k=5)) == expected


def test_order_does_not_matter_to_items_of_one_id() -> None:
    """Under `smoke` the question names the item: where ids repeat, order still does not matter."""
    rng = random.Random(11)
    questions = range(40)
    gold: list[Row] = [
        {"qid": f"q{i % 3}", "q": f"Frage {i}?", "answerable": True, "gold_ids": ["p1"]}
        for i in questions
    ]
    trace: list[Row] = [
        {"q": f"Frage {i}?", "answer": "So.", "citations": rng.choice((["p1"], []))}
        for i in questions
        for _ in range(1 + i % 3)
    ]
    moved = Data(rng.sample(gold, len(gold)), rng.sample(trace, len(trace)))
    found, expected = (scored(each, profile="smoke") for each in (moved, Data(gold, trace)))
    assert found.metrics == expected.metrics
