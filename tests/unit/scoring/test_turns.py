"""Turns: conversations in gold and traces, and what was retrieved earlier in them."""

from __future__ import annotations

import gzip
import json
from functools import partial
from typing import Any

import pytest

import ragauge
from ragauge.files import ranges
from ragauge.model.scores_document import load_scores
from ragauge.scoring import inputs, score
from ragauge.scoring.engines import choose
from tests.support.cases import cases
from tests.support.command import Folder, Row, lines_of

ONLY = (
    "--profile", "all", "--metrics",
    "retrieval.recall@5,citation.in_context,citation.resolved,citation.hit_rate", "--format",
    "json", "--full", "--no-intervals",
)  # fmt: skip


def gold_of(*turns: int | None, qid: str = "t") -> list[Row]:
    return [
        {"qid": qid, "question": f"{turn}?", "relevant": ["a"], "answerable": True}
        | ({} if turn is None else {"turn": turn})
        for turn in turns
    ]


def row(
    turn: int | None, hits: str = "", cited: str | None = None, qid: str = "t", **more: Any
) -> Row:
    """A turn that retrieved and cited chunks of one letter each."""
    made: Row = {"qid": qid, "retrieved_ids": list(hits), **more}
    if turn is not None:
        made["turn"] = turn
    if cited is not None:
        made["answer_json"] = {"claim": "x", "citations": list(cited)}
    return made


def scored(folder: Folder, gold: list[Row], rows: list[Row], *options: str) -> dict[str, Any]:
    outcome = folder.score(rows, *ONLY, *options, gold=gold)
    assert outcome.exit_code == 0, outcome.err
    document = json.loads(outcome.out)
    assert isinstance(document, dict)
    return document


def of_turns(document: dict[str, Any], metric: str) -> list[float | None]:
    return [question["values"].get(metric) for question in document["questions"]]


# --- joining ---


def test_each_turn_meets_its_own_gold(folder: Folder) -> None:
    """Found in turn 1, not in turn 2; two questions in all."""
    document = scored(folder, gold_of(1, 2), [row(1, "a"), row(2, "b")])
    assert of_turns(document, "retrieval.recall@5") == [1.0, 0.0]
    recall = document["metrics"]["retrieval.recall@5"]
    assert (recall["value"], recall["n"], recall["records"]) == (0.5, 2, 2)
    assert (document["missing"], document["duplicates"], document["unknown"]) == (0, 0, 0)


def test_a_turn_that_gold_lacks_is_unknown(folder: Folder) -> None:
    """It is not taken for another turn; and so is a trace without a turn."""
    document = scored(folder, gold_of(1, 2), [row(1, "a"), row(2, "a"), row(3, "a"), row(None)])
    assert (document["unknown"], document["counts"]["scored"]) == (2, 2)


def test_a_turn_without_a_trace_is_missing(folder: Folder) -> None:
    """It counts as no hits, and is named with its turn."""
    document = scored(folder, gold_of(1, 2), [row(1, "a")])
    assert document["missing"] == 1
    assert of_turns(document, "retrieval.recall@5") == [1.0, 0.0]
    assert any("t turn 2" in warning for warning in document["warnings"])


def test_gold_without_turns_takes_any_turn_as_a_slot(folder: Folder) -> None:
    """The turns are averaged into the one question."""
    document = scored(folder, gold_of(None), [row(1, "a"), row(2, "b")])
    assert of_turns(document, "retrieval.recall@5") == [0.5]
    assert document["metrics"]["retrieval.recall@5"]["records"] == 2


def test_a_question_of_its_own_beside_turns(folder: Folder) -> None:
    """Other turns than those of the gold are slots of the item without one."""
    document = scored(folder, gold_of(None, 2), [row(1, "a"), row(2, "b"), row(None, "b")])
    assert of_turns(document, "retrieval.recall@5") == [0.5, 0.0]


def test_a_turn_that_stands_twice_in_gold_is_refused(folder: Folder) -> None:
    """The message names the turn; the same turn of another id is fine."""
    outcome = folder.score([row(1)], "--profile", "all", gold=gold_of(1, 2, 1))
    assert (outcome.exit_code, outcome.codes) == (3, {"duplicate-qid"})
    assert "`t` with turn 1 stands twice, first on line 1" in outcome.problems[0].message
    both = gold_of(1) + gold_of(1, qid="u")
    assert scored(folder, both, [row(1), row(1, qid="u")])["counts"]["gold"] == 2


def test_the_last_trace_of_a_turn_is_scored(folder: Folder) -> None:
    """The other is counted as a duplicate."""
    document = scored(folder, gold_of(1, 2), [row(1, "b"), row(2, "a"), row(1, "a")])
    assert (document["duplicates"], of_turns(document, "retrieval.recall@5")) == (1, [1.0, 1.0])


@cases("turn", ["one", 1.5, True, [1]])
def test_a_turn_is_a_whole_number(folder: Folder, turn: object) -> None:
    """In gold and in traces."""
    bad_gold = folder.score([row(1)], *ONLY, gold=[{**gold_of(1)[0], "turn": turn}])
    assert (bad_gold.exit_code, bad_gold.codes) == (3, {"bad-field"})
    bad_trace = folder.score([{**row(1), "turn": turn}], *ONLY, gold=gold_of(1))
    assert (bad_trace.exit_code, bad_trace.codes) == (3, {"bad-field"})


# --- earlier turns are in context ---


@cases(
    ("rows", "expected"),
    [
        # Turn 2 cites what turn 1 retrieved.
        ([row(1, "a", "a"), row(2, "b", "a")], [1.0, 1.0]),
        # And both at once.
        ([row(1, "a", "a"), row(2, "b", "ab")], [1.0, 1.0]),
        # What a later turn retrieves was not there yet.
        ([row(1, "a", "b"), row(2, "b", "b")], [0.0, 1.0]),
        # Nobody retrieved x.
        ([row(1, "a", "a"), row(2, "b", "ax")], [1.0, 0.0]),
        # The order of the file says nothing.
        ([row(2, "b", "a"), row(1, "a", "a")], [1.0, 1.0]),
        # Turn 1 has no answer; its hits are in context all the same.
        ([row(1, "a"), row(2, "b", "a")], [None, 1.0]),
        # An errored turn retrieved nothing.
        ([row(1, "a", "a", error="timeout"), row(2, "b", "a")], [None, 0.0]),
        # The trace of turn 1 that is scored is the last.
        ([row(1, "a", "a"), row(1, "c", "c"), row(2, "b", "a")], [1.0, 0.0]),
        # Another conversation's hits.
        ([row(1, "c", "c"), row(1, "a", "a", qid="u"), row(2, "b", "a")], [1.0, 0.0]),
        # The same seed, and another one.
        ([row(1, "a", "a", seed=1), row(2, "b", "a", seed=1)], [1.0, 1.0]),
        ([row(1, "a", "a", seed=1), row(2, "b", "a", seed=2)], [1.0, 0.0]),
        ([row(1, "a", "a", seed=1), row(1, "c", "c", seed=2), row(2, "b", "a", seed=1),
          row(2, "b", "a", seed=2)], [1.0, 0.5]),
        # The same wording, and another one.
        ([row(1, "a", "a", paraphrase=0), row(2, "b", "a", paraphrase=1)], [1.0, 0.0]),
    ],
)  # fmt: skip
def test_what_earlier_turns_retrieved_is_in_context(
    folder: Folder, rows: list[Row], expected: list[float | None]
) -> None:
    """Earlier turns of the same conversation, seed and wording; nothing else."""
    document = scored(folder, [*gold_of(1, 2), *gold_of(1, qid="u")], rows)
    assert of_turns(document, "citation.in_context")[:2] == expected


def test_a_citation_of_an_earlier_hit_is_in_scope(folder: Folder) -> None:
    """Turn 2 cites the evidence that turn 1 retrieved: a hit; without turn 1 it is none."""
    document = scored(folder, gold_of(1, 2), [row(1, "a", "a"), row(2, "b", "a")])
    assert of_turns(document, "citation.hit_rate") == [1.0, 1.0]
    document = scored(folder, gold_of(1, 2), [row(1, "c", "c"), row(2, "b", "a")])
    assert of_turns(document, "citation.hit_rate") == [0.0, 0.0]


def test_three_turns_reach_back_over_one(folder: Folder) -> None:
    """Turn 3 cites turn 1's; gaps in the numbers do not matter."""
    rows = [row(1, "a", "a"), row(5, "b", "b"), row(9, "c", "ab")]
    document = scored(folder, gold_of(1, 5, 9), rows)
    assert of_turns(document, "citation.in_context") == [1.0, 1.0, 1.0]


def test_turns_need_no_gold_of_their_own(folder: Folder) -> None:
    """Turns of one gold item are one conversation too."""
    document = scored(folder, gold_of(None), [row(1, "a", "a"), row(2, "b", "a")])
    assert of_turns(document, "citation.in_context") == [1.0]
    document = scored(folder, gold_of(None), [row(1, "a", "b"), row(2, "b", "b")])
    assert of_turns(document, "citation.in_context") == [0.5]


def test_without_turns_there_is_no_earlier(folder: Folder) -> None:
    """Slots of other seeds are no conversation."""
    rows = [row(None, "a", "a", seed=1), row(None, "b", "a", seed=2)]
    assert of_turns(scored(folder, gold_of(None), rows), "citation.in_context") == [0.5]


def test_only_the_metric_that_asks_for_it_is_needed(folder: Folder) -> None:
    """The same without citation.resolved among the metrics."""
    outcome = folder.score(
        [row(1, "a", "a"), row(2, "b", "a")], "--profile", "all", "--metrics",
        "citation.in_context", "--full", "--format", "json", gold=gold_of(1, 2),
    )  # fmt: skip
    assert of_turns(json.loads(outcome.out), "citation.in_context") == [1.0, 1.0]


MANY = [
    row(turn, "abcdefgh"[turn], "abcdefgh"[max(0, turn - back)], qid=f"t{talk}")
    for turn in range(8)
    for talk, back in enumerate((1, 3, 7))
]
MANY_GOLD = [item for talk in range(3) for item in gold_of(*range(8), qid=f"t{talk}")]


@cases("range_bytes", [1, 150, 400, 1_000_000])
@cases("packed", [False, True])
def test_ranges_and_packing_do_not_matter(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, range_bytes: int, packed: bool
) -> None:
    """Turns that stand in different parts of the file, last first, and gzipped too."""
    plan = partial(ranges.plan, range_bytes=range_bytes)
    for module in (inputs, ranges):
        monkeypatch.setattr(module, "plan", plan)
    monkeypatch.setattr(choose, "RANGE_BYTES", range_bytes)
    data = lines_of(MANY[::-1])
    folder.write("gold.jsonl", MANY_GOLD)
    name = "trace.jsonl.gz" if packed else "trace.jsonl"
    folder.write(name, gzip.compress(data, mtime=0) if packed else data)
    outcome = folder.run("score", "gold.jsonl", name, *ONLY, "--workers", "1")
    document = json.loads(outcome.out)
    assert of_turns(document, "citation.in_context") == [1.0] * 24
    # With one seed more, whose turns start at 4, what seven turns ago retrieved is not there.
    late = [{**each, "seed": 1} for each in MANY if each["turn"] >= 4]
    folder.write(name, gzip.compress(lines_of(late), mtime=0) if packed else lines_of(late))
    outcome = folder.run("score", "gold.jsonl", name, *ONLY, "--workers", "1")
    found = of_turns(json.loads(outcome.out), "citation.in_context")
    assert found[4:8] == [0.0, 1.0, 1.0, 1.0]  # back 1: turn 4 cites turn 3's
    assert found[12:16] == [0.0, 0.0, 0.0, 1.0]  # back 3
    assert found[20:24] == [0.0, 0.0, 0.0, 0.0]  # back 7


def test_traces_from_memory_know_earlier_turns(folder: Folder) -> None:
    """The API with sets instead of files."""
    folder.write("gold.jsonl", gold_of(1, 2))
    folder.write("trace.jsonl", [row(1, "a", "a"), row(2, "b", "a")])
    scores = score.score(
        ragauge.load_gold("gold.jsonl"),
        ragauge.load_traces("trace.jsonl"),
        profile="all",
        metrics=["citation.in_context"],
        intervals=False,
    )
    assert scores.metrics["citation.in_context"].value == 1.0


# --- places in earlier turns ---

PLACE: Row = {"doc": "d.md", "start": 0, "end": 50}


def by_place(turn: int, hits: list[Any], *cited: Any) -> Row:
    return {"qid": "t", "turn": turn, "topk": hits,
            "answer_json": {"claim": "x", "citations": list(cited)}}  # fmt: skip


def test_a_cited_place_may_be_of_an_earlier_hit(folder: Folder) -> None:
    """Bytes 0 to 50 are inside turn 1's hit; turn 2's own hit is elsewhere."""
    near: Row = {"id": "c0", "doc": "d.md", "offsets": [0, 100]}
    far: Row = {"id": "c9", "doc": "d.md", "offsets": [900, 999]}
    rows = [by_place(1, [near], "c0"), by_place(2, [far], PLACE)]
    assert of_turns(scored(folder, gold_of(1, 2), rows), "citation.in_context") == [1.0, 1.0]
    rows = [by_place(1, [far], "c9"), by_place(2, [far], PLACE)]
    assert of_turns(scored(folder, gold_of(1, 2), rows), "citation.in_context") == [1.0, 0.0]


NEAR: Row = {"id": "d.md#S.1.p.Bk001", "offsets": [0, 100]}


def test_the_id_of_a_hit_of_the_same_turn_names_its_document(folder: Folder) -> None:
    """The first look takes the document from the id."""
    rows = [by_place(1, [NEAR], PLACE)]
    assert of_turns(scored(folder, gold_of(1), rows), "citation.in_context") == [1.0]


def test_the_id_of_an_earlier_hit_names_its_document(folder: Folder) -> None:
    """As it does within a turn."""
    rows = [by_place(1, [NEAR], NEAR["id"]), by_place(2, [], PLACE)]
    assert of_turns(scored(folder, gold_of(1, 2), rows), "citation.in_context") == [1.0, 1.0]


def test_an_earlier_citation_does_not_undo_a_cited_place(folder: Folder) -> None:
    """Turn 2 cites a place of its own hit, and by id a hit of turn 1: both are in context."""
    rows = [by_place(1, ["x"], "x"), by_place(2, [NEAR], PLACE, "x")]
    assert of_turns(scored(folder, gold_of(1, 2), rows), "citation.in_context") == [1.0, 1.0]


def test_an_earlier_hit_may_have_its_place_from_the_list_of_chunks(folder: Folder) -> None:
    """Turn 2 cites bytes of c0, which turn 1 retrieved and the list places."""
    folder.write("chunks.jsonl", [{"id": "c0", "doc": "d.md", "start": 0, "end": 100}])
    rows = [by_place(1, ["c0"], PLACE), by_place(2, [], PLACE)]
    document = scored(folder, gold_of(1, 2), rows, "--chunks", "chunks.jsonl")
    assert of_turns(document, "citation.in_context") == [1.0, 1.0]


# --- reports ---


def test_each_turn_is_a_row_of_the_json(folder: Folder) -> None:
    """With its id, its turn, its label and its values."""
    document = scored(folder, gold_of(1, 2), [row(1, "a", "a"), row(2, "b", "b")])
    assert [
        (question["qid"], question["turn"], question["gold"], question["trace"])
        for question in document["questions"]
    ] == [
        ("t", 1, "gold.jsonl:1", "trace.jsonl:1"),
        ("t", 2, "gold.jsonl:2", "trace.jsonl:2"),
    ]
    assert of_turns(document, "citation.hit_rate") == [1.0, 0.0]


@pytest.mark.parametrize("name", ["table", "md"])
def test_tables_name_the_turn(folder: Folder, name: str) -> None:
    """The turn that went wrong, and not the one that did not."""
    outcome = folder.score(
        [row(1, "a", "a"), row(2, "b", "b")], "--profile", "all", "--format", name,
        gold=gold_of(1, 2),
    )  # fmt: skip
    assert "t turn 2" in outcome.out
    assert "t turn 1" not in outcome.out


def test_saved_turns_are_read_back(folder: Folder) -> None:
    """With their turns, so that another run can be compared turn by turn."""
    folder.score([row(1, "a"), row(2, "b")], *ONLY, "-o", "scores.json", gold=gold_of(1, 2))
    values = load_scores("scores.json").per_question
    assert values is not None
    assert (list(values.qids), list(values.turns)) == (["t", "t"], [1, 2])
    assert values.of("retrieval.recall@5").tolist() == [1.0, 0.0]


INTERVALS = ("--profile", "all", "--metrics", "retrieval.recall@5", "--format", "json")


def interval_of(folder: Folder, gold: list[Row], rows: list[Row]) -> Any:
    outcome = folder.score(rows, *INTERVALS, gold=gold)
    return json.loads(outcome.out)["metrics"]["retrieval.recall@5"]["interval"]


def test_the_turns_of_a_conversation_count_together(folder: Folder) -> None:
    """Four turns found and four not: two conversations, each of one kind, are two and not eight."""
    turns = range(1, 5)
    gold = [item for qid in "tu" for item in gold_of(*turns, qid=qid)]
    whole = [row(turn, "a" if qid == "t" else "b", qid=qid) for qid in "tu" for turn in turns]
    assert interval_of(folder, gold, whole) == [0.0945, 0.9055]  # Wilson's of 1 in 2
    # Each conversation is half right: worth 2 / ((0 + 1) / (2 / 4 + 1)) = 3.
    halves = [row(turn, "ab"[turn % 2], qid=qid) for qid in "tu" for turn in turns]
    assert interval_of(folder, gold, halves) == [0.1253, 0.8747]


def test_one_conversation_says_very_little(folder: Folder) -> None:
    """As one question does: Wilson's of 0 in 1, and of 1 in 2 with the weight of 1.25."""
    assert interval_of(folder, gold_of(None), [row(None, "b")]) == [0.0, 0.7935]
    assert interval_of(folder, gold_of(1, 2), [row(1, "a"), row(2, "b")]) == [0.0657, 0.9343]
