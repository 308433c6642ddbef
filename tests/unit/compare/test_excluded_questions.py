"""Questions that are not compared: their traces are set aside, and change nothing for the rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from ragauge.compare import align, common_gold, compare
from ragauge.model.comparison import Comparison
from ragauge.model.run import Store
from ragauge.report.drilldown.questions import details_of_comparison
from ragauge.scoring import score
from ragauge.store import runs as run_store
from tests.oracles.full_cases import FLAVOURS, case
from tests.support.command import Folder, Row
from tests.support.stored_runs import URL, put


@pytest.fixture
def store(folder: Folder) -> Iterator[Store]:
    assert folder
    with run_store.opened_store(URL, create=True) as opened:
        yield opened


def item(qid: str, turn: int | None = None, *, question: str = "", relevant: str = "x") -> Row:
    row: Row = {"qid": qid, "question": question or f"{qid} {turn}?", "answerable": True}
    row["relevant"] = [relevant]
    return row if turn is None else {**row, "turn": turn}


def trace(qid: str, turn: int | None, topk: list[str], *cites: str, seed: int | None = None) -> Row:
    row: Row = {"qid": qid, "topk": topk, "answer_json": {"claim": "aaaa", "citations": [*cites]}}
    row |= {} if turn is None else {"turn": turn}
    return row if seed is None else {**row, "seed": seed}


TALK = [item("C1", 1), item("C1", 2)]
REWORDED = [item("C1", 1, question="other words?"), item("C1", 2)]


def values(found: Comparison, name: str) -> tuple[float | None, float | None, int]:
    (each,) = [delta for delta in found.deltas if delta.metric == name]
    return each.a, each.b, each.n


@pytest.mark.parametrize("later", [["x"], ["y", "z"]])
def test_what_an_earlier_turn_retrieved_is_context_also_where_its_item_is_left_out(
    store: Store, later: list[str]
) -> None:
    """Turn 2 of run b cites what only turn 1 retrieved, and the gold item of turn 1 was changed."""
    before = [trace("C1", 1, ["x"], "x"), trace("C1", 2, ["x"], "x")]
    after = [trace("C1", 1, ["x"], "x"), trace("C1", 2, later, "x")]
    put(store, "a", before, gold=TALK, profile="all")
    put(store, "b", after, gold=REWORDED, profile="all")
    for names in (("a", "b"), ("b", "a")):
        found = compare.compare_runs(store, *names)
        assert found.left_out == {"gold-changed": 1}
        assert found.counted == 1
        for metric in ("citation.in_context", "citation.hit_rate", "citation.resolved"):
            assert values(found, metric) == (1.0, 1.0, 1), metric


def test_a_later_turn_that_is_left_out_is_no_context(store: Store) -> None:
    """Turn 1 cites what only turn 2 retrieves: set aside or not, turn 2 comes too late."""
    rows = [trace("C1", 1, ["y"], "x"), trace("C1", 2, ["x"], "x")]
    put(store, "a", rows, gold=TALK, profile="all")
    put(store, "b", rows, gold=[item("C1", 1), item("C1", 2, question="new?")], profile="all")
    assert values(compare.compare_runs(store, "a", "b"), "citation.in_context") == (0.0, 0.0, 1)


def test_traces_of_left_out_items_are_not_unknown_and_others_still_are(store: Store) -> None:
    """Q1 is compared; Q2 was changed; Q3 is only in a; nobody has an item for Z."""
    rows = [trace(qid, None, ["x"], "x") for qid in ("Q1", "Q2", "Q3", "Z")]
    put(store, "a", rows, gold=[item("Q1"), item("Q2"), item("Q3")], profile="all")
    # Q3 has no item in b: there its trace is unknown, as that of Z
    put(store, "b", rows, gold=[item("Q1"), item("Q2", relevant="y")], profile="all")
    found = compare.compare_runs(store, "a", "b")
    assert found.left_out == {"gold-changed": 1, "only-in-a": 1}
    # a: Z of Q1 and Z; b: Q3 and Z of Q1, Q3 and Z
    one, other, n = values(found, "run.unknown")
    assert (one, n) == (1 / 2, 2)
    assert other == pytest.approx(2 / 3)


@pytest.mark.parametrize("profile", ["all", "ship", "smoke"])
def test_what_stands_twice_is_counted_only_of_what_is_compared(store: Store, profile: str) -> None:
    rows: list[Row] = [
        {**trace(qid, None, ["x"], "x"), "q": f"{qid} None?"} for qid in ("Q1", "Q2", "Q2", "Q2")
    ]
    gold_a = [item("Q1"), item("Q2")]
    gold_b = [item("Q1"), item("Q2", relevant="y")]
    for row in gold_a + gold_b:  # the name that `ship` reads, which says the same
        row["gold_citations"] = row["relevant"]
    put(store, "a", rows, gold=gold_a, profile=profile)
    put(store, "b", rows, gold=gold_b, profile=profile)
    aligned = align.align(
        *(common_gold.StoredRun(store, run_store.find_run(store, n)) for n in "ab")
    )
    for side in (aligned.a, aligned.b):
        tally = side.tally
        assert (tally.gold, tally.traces, tally.scored) == (1, 1, 1)
        assert (tally.unknown, tally.duplicates, tally.missing, tally.errored) == (0, 0, 0, 0)
        assert len(side.questions) == 1


def test_the_embedder_of_a_left_out_question_is_none_of_those_compared(store: Store) -> None:
    rows: list[Row] = [
        {**trace("Q1", None, ["x"], "x"), "delta_s": [0.2], "embed_model": "one"},
        {**trace("Q2", None, ["x"], "x"), "delta_s": [0.2], "embed_model": "two"},
    ]
    put(store, "a", rows, gold=[item("Q1"), item("Q2")], profile="all")
    put(store, "b", rows, gold=[item("Q1"), item("Q2", relevant="y")], profile="all")
    aligned = align.align(
        *(common_gold.StoredRun(store, run_store.find_run(store, n)) for n in "ab")
    )
    assert aligned.a.embedders == aligned.b.embedders == ("one",)


@pytest.mark.parametrize("profile", ["ship", "smoke"])
def test_where_turns_are_ignored_the_compared_item_of_a_question_gets_its_traces(
    store: Store, profile: str
) -> None:
    """Both turns have one question and one id; that of turn 1 was changed, by a tag."""
    gold = [item("C1", 1, question="same?"), item("C1", 2, question="same?")]
    rows: list[Row] = [{**trace("C1", None, ["x"], "x"), "q": "same?"}]
    put(store, "a", rows, gold=gold, profile=profile)
    put(store, "b", rows, gold=[{**gold[0], "tags": ["new"]}, gold[1]], profile=profile)
    aligned = align.align(
        *(common_gold.StoredRun(store, run_store.find_run(store, n)) for n in "ab")
    )
    for side in (aligned.a, aligned.b):
        assert (side.tally.gold, side.tally.scored, side.tally.missing) == (1, 1, 0)


def test_slots_that_only_left_out_questions_lack_are_not_missing(store: Store) -> None:
    """Seeds 1 and 2 for Q1, seed 1 for Q2: a slot is missing, of a question that is left out."""
    rows = [trace(qid, None, ["x"], "x", seed=seed)
            for qid, seed in (("Q1", 1), ("Q1", 2), ("Q2", 1))]  # fmt: skip
    put(store, "a", rows, gold=[item("Q1"), item("Q2")], profile="all")
    put(store, "b", rows, gold=[item("Q1"), item("Q2", relevant="y")], profile="all")
    aligned = align.align(
        *(common_gold.StoredRun(store, run_store.find_run(store, n)) for n in "ab")
    )
    assert aligned.a.tally.missing_slots == aligned.b.tally.missing_slots == 0


TURNS = FLAVOURS.index("turns")  # `ship` and `smoke` have one item for all turns


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "profile"),
    [
        (number, profile)
        for number in range(0, 32, 3)
        for profile in ("all", "ship", "smoke")
        if profile == "all" or number % len(FLAVOURS) != TURNS
    ],
)
def test_what_is_left_out_changes_no_value_of_the_rest(
    folder: Folder, store: Store, number: int, profile: str
) -> None:
    """Every second item gets another tag: the rest has the values that `score` gives."""
    gold, traces = case(number)
    changed = [{**row, "tags": ["changed"]} if place % 2 else row for place, row in enumerate(gold)]
    put(store, "a", traces, gold=gold, profile=profile)
    put(store, "b", traces, gold=changed, profile=profile)
    full = score.score(
        folder.write("full.jsonl", gold), Path("trace.jsonl"), profile=profile, intervals=False
    )
    aligned = align.align(
        *(common_gold.StoredRun(store, run_store.find_run(store, n)) for n in "ab")
    )
    assert aligned.excluded["gold-changed"] > 0
    whole = full.per_question
    assert whole is not None
    places = {key: i for i, key in enumerate(zip(whole.qids, whole.turns, strict=True))}
    for side in (aligned.a, aligned.b):
        part = side.per_question
        assert part is not None
        assert len(part.qids) == len(side.questions) == side.tally.gold
        mine = [places[key] for key in zip(part.qids, part.turns, strict=True)]
        for name in whole.metrics:
            if not name.startswith("stability."):  # λ asks whether anything was answered at all
                assert np.array_equal(part.of(name), whole.of(name)[mine], equal_nan=True), name
        assert [side.questions[i].labels for i in range(len(mine))] == [
            full.questions[i].labels for i in mine
        ]


def test_rows_of_a_turn_that_is_left_out_say_nothing_of_the_item_without_a_turn(
    store: Store,
) -> None:
    """C1 has an item of turn 1, whose hits have no spans, and one for all other turns."""
    whole = item("C1", relevant="v1-k")
    for name, words in (("v1", "one?"), ("v2", "other?")):
        placed = {"id": f"{name}-k", "doc": "d.md", "doc_hash": "h", "span": [0, 10],
                  "chunker_version": name}  # fmt: skip
        bare = {"id": f"{name}-x", "chunker_version": name}
        rows: list[Row] = [
            {"qid": "C1", "turn": 1, "topk": [bare]}, {"qid": "C1", "turn": 2, "topk": [placed]}
        ]  # fmt: skip
        put(store, name, rows, gold=[item("C1", 1, question=words), whole], profile="all")
    found = compare.compare_runs(store, "v1", "v2")
    assert [(each.turn, each.kind, each.rungs) for each in found.per_query] == [
        (None, "draw", ("doc_span",))
    ]
    assert values(found, "retrieval.hit@1") == (1.0, 1.0, 1)


def test_the_page_of_a_question_shows_no_trace_of_a_turn_that_is_left_out(store: Store) -> None:
    gold = [item("C1", 1), item("C1")]
    rows = [trace("C1", 1, ["x"], "x"), trace("C1", 2, ["y"], "x")]
    put(store, "a", rows, gold=gold, profile="all")
    put(store, "b", rows, gold=[item("C1", 1, question="other?"), item("C1")], profile="all")
    a, b = (common_gold.StoredRun(store, run_store.find_run(store, name)) for name in "ab")
    aligned = align.align(a, b, detailed=True)
    comparison = compare.compare(aligned, compare.describe_run(a)[0], compare.describe_run(b)[0])
    with details_of_comparison(a, b, aligned, comparison) as details:
        (found,) = details
    for side in (found.attempts, found.other):
        assert [[hit.id for hit in each.hits] for each in side] == [["y"]]


def test_a_changed_gold_set_is_told_once_and_is_no_cause_of_a_question(store: Store) -> None:
    put(store, "a", [trace("Q1", None, ["x"]), trace("Q2", None, ["x"])],
        gold=[item("Q1"), item("Q2")], system={"prompt": {"size": 100}})  # fmt: skip
    put(store, "b", [trace("Q1", None, ["y"]), trace("Q2", None, ["x"])],
        gold=[item("Q1"), item("Q2", relevant="y")], system={"prompt": {"size": 200}})  # fmt: skip
    found = compare.compare_runs(store, "a", "b")
    assert [each.about for each in found.causes] == ["prompt", "gold"]
    (question,) = found.per_query
    assert question.kind == "regression"
    assert question.note is not None
    assert "prompt.size 100 → 200" in question.note
    assert "gold" not in question.note


@pytest.mark.parametrize(("hashed", "told"), [(True, False), (False, True)])
def test_a_changed_gold_set_may_be_a_cause_where_nobody_knows_which_items_changed(
    folder: Folder, hashed: bool, told: bool
) -> None:
    sides = []
    for name, topk, other in (("a", ["x"], "x"), ("b", ["y"], "y")):
        gold = folder.write(f"{name}-gold.jsonl", [item("Q1"), item("Q2", relevant=other)])
        rows = [trace("Q1", None, topk, "x"), trace("Q2", None, ["x"], "x")]
        file = folder.write(f"{name}.jsonl", rows)
        scores = score.score(gold, file, hashes=hashed, profile="all", intervals=False)
        sides.append(scores)
    config = {"gold_hash": "one"}, {"gold_hash": "two"}
    found = compare.compare(
        compare.align_scores(*sides), compare.describe_run(sides[0], "a")[0],
        compare.describe_run(sides[1], "b")[0], config=config,
    )  # fmt: skip
    notes = {each.query_id: each.note for each in found.per_query}
    assert ("gold_hash one → two" in (notes["Q1"] or "")) == told
