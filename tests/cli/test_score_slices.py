"""Slices: the same metrics over the parts of a gold set, in every report, and under gates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragauge.model import scores_document
from ragauge.model.options import Options
from ragauge.scoring import score
from tests.support.cases import cases
from tests.support.command import Folder, Outcome, Row

RECALL = "retrieval.recall@5"
ONLY = ("--profile", "all", "--metrics", RECALL)


def asked(items: list[Row], found: str = "") -> tuple[list[Row], list[Row]]:
    """Gold of some items, and traces that find the evidence where `found` has a +."""
    gold, rows = [], []
    for number, item in enumerate(items):
        qid = f"q{number}"
        gold.append({"qid": qid, "question": f"{number}?", "relevant": ["e"], **item})
        evidence = gold[-1]["relevant"]
        plus = number >= len(found) or found[number] == "+"
        hits = [each if isinstance(each, str) else each["id"] for each in evidence]
        rows.append({"qid": qid, "retrieved_ids": hits if plus else ["x"]})
    return gold, rows


def sliced(folder: Folder, items: list[Row], found: str = "", *options: str) -> dict[str, Any]:
    """The slices of the JSON report."""
    gold, rows = asked(items, found)
    outcome = folder.score(rows, *ONLY, "--format", "json", *options, gold=gold)
    assert outcome.exit_code == 0
    slices = json.loads(outcome.out)["slices"]
    assert isinstance(slices, dict)
    return slices


def sizes(slices: dict[str, Any], dimension: str) -> dict[str, int]:
    return {name: part["n"] for name, part in slices.get(dimension, {}).items()}


# --- dimensions ---


@cases(
    ("dimension", "items", "parts"),
    [
        ("type", [{"type": "table"}, {"type": "code"}, {"type": "table"}], {"code": 1, "table": 2}),
        (
            "type",
            [{"relevant": [f"S.4.2.{letter}.Bk011"]} for letter in "pctfx"],
            {"caption": 1, "code": 1, "figure": 1, "prose": 1, "table": 1},
        ),
        ("type", [{"relevant": ["guide.md#S.4.2.t.Bk011a"]}], {"table": 1}),
        # The field wins over the letter.
        ("type", [{"type": "mine", "relevant": ["S.4.2.t.Bk011"]}], {"mine": 1}),
        ("type", [{"relevant": ["opaque"]}, {"type": "code"}], {"code": 1}),
        ("tag", [{"tags": ["a", "b"]}, {"tags": ["b"]}, {"tags": []}], {"a": 1, "b": 2}),
        ("tag", [{"tags": ["a", "a"]}], {"a": 1}),
        ("section", [{"anchor_section": "S.4.2"}, {"anchor_section": "S.4.10"}],
         {"S.4.10": 1, "S.4.2": 1}),
        ("section", [{"relevant": ["S.4.2.p.Bk011", "S.5.p.Bk012"]}], {"S.4.2": 1, "S.5": 1}),
        # The section that is named wins over those of the ids.
        ("section", [{"anchor_section": "S.1", "relevant": ["S.4.2.p.Bk011"]}], {"S.1": 1}),
        ("document", [{"relevant_docs": ["a.md", "b.md"]}, {"relevant_docs": ["a.md"]}],
         {"a.md": 2, "b.md": 1}),
        ("document", [{"relevant": ["p1#2", "p2#1"]}], {"p1": 1, "p2": 1}),
        ("document", [{"relevant": [{"id": "x", "doc": "c.md", "start": 0, "end": 9}]}],
         {"c.md": 1}),
        ("document", [{"anchor_section": "guide.md#S.4.2"}], {"guide.md": 1}),
        ("language", [{"lang": "en"}, {"lang": "ko"}, {"lang": "en"}, {}], {"en": 2, "ko": 1}),
        ("difficulty", [{"difficulty": "hard"}, {"difficulty": "easy"}], {"easy": 1, "hard": 1}),
    ],
)  # fmt: skip
def test_what_questions_are_told_apart_by(
    folder: Folder, dimension: str, items: list[Row], parts: dict[str, int]
) -> None:
    """Each part with its number of questions, in the order of their names."""
    found = sizes(sliced(folder, items), dimension)
    assert found == parts
    assert list(found) == sorted(parts)


def test_a_section_may_stand_beside_the_evidence(folder: Folder) -> None:
    """As the document of the same entry does."""
    place = {"id": "x", "doc": "c.md", "section": "S.7", "start": 0, "end": 9}
    assert sizes(sliced(folder, [{"relevant": [place]}]), "section") == {"S.7": 1}


def test_the_type_may_come_from_the_list_of_chunks(folder: Folder) -> None:
    """The list's word goes before the letter of the id."""
    folder.write("chunks.jsonl", [
        {"id": "opaque", "doc": "d.md", "start": 0, "end": 9, "type": "code"},
        {"id": "S.1.p.Bk001", "doc": "d.md", "start": 9, "end": 20, "type": "figure"},
        {"id": "S.1.p.Bk002", "doc": "d.md", "start": 20, "end": 30},
    ])  # fmt: skip
    items: list[Row] = [
        {"relevant": ["opaque"]}, {"relevant": ["S.1.p.Bk001"]}, {"relevant": ["S.1.p.Bk002"]}
    ]  # fmt: skip
    slices = sliced(folder, items, "", "--chunks", "chunks.jsonl")
    assert sizes(slices, "type") == {"code": 1, "figure": 1, "prose": 1}
    assert sizes(slices, "document") == {"d.md": 3}


def test_a_dimension_that_nobody_speaks_of_is_left_out(folder: Folder) -> None:
    """No empty tables."""
    assert sliced(folder, [{"lang": "en"}]).keys() == {"language"}
    assert sliced(folder, [{}]) == {}


# --- values ---

# Seven of type a, of which five are found; six of type b, of which three are; two of c.
ITEMS: list[Row] = [{"type": kind} for kind in "aaaaaaabbbbbbcc"]
FOUND = "+++++--+++---++"


def test_a_part_has_the_values_of_its_questions(folder: Folder) -> None:
    """a: 5 of 7, b: 3 of 6; c has two questions, fewer than five: its n and no value."""
    slices = sliced(folder, ITEMS, FOUND)["type"]
    assert sizes({"type": slices}, "type") == {"a": 7, "b": 6, "c": 2}
    a, b = slices["a"]["metrics"][RECALL], slices["b"]["metrics"][RECALL]
    assert (a["value"], a["n"], a["unrounded"][0]) == (0.7143, 7, 5 / 7)
    assert (b["value"], b["n"]) == (0.5, 6)
    assert slices["c"]["metrics"] == {}
    assert a["interval"] is not None
    assert a["interval"][0] < 0.7143 < a["interval"][1]


@cases(("least", "shown"), [("2", "abc"), ("3", "ab"), ("6", "ab"), ("7", "a"), ("8", "")])
def test_the_least_n_may_be_chosen(folder: Folder, least: str, shown: str) -> None:
    """--min-n counts the limit itself as enough, and is recorded."""
    slices = sliced(folder, ITEMS, FOUND, "--min-n", least)["type"]
    assert "".join(name for name in slices if slices[name]["metrics"]) == shown


def test_the_least_n_may_stand_in_the_configuration(folder: Folder) -> None:
    """The command line wins over it."""
    folder.write("ragauge.toml", "min_n = 2\n")
    assert sliced(folder, ITEMS, FOUND)["type"]["c"]["metrics"][RECALL]["value"] == 1.0
    assert sliced(folder, ITEMS, FOUND, "--min-n", "3")["type"]["c"]["metrics"] == {}


def test_a_question_counts_in_every_part_that_it_is_in(folder: Folder) -> None:
    """Evidence of prose and code: 2 of 3 found among prose, 1 of 2 among code."""
    items: list[Row] = [
        {"relevant": ["S.1.p.Bk001", "S.1.c.Bk002"]},
        {"relevant": ["S.1.p.Bk001", "S.1.c.Bk002"]},
        {"relevant": ["S.1.p.Bk003", "S.1.p.Bk004"]},
    ]
    slices = sliced(folder, items, "+-+", "--min-n", "2")["type"]
    assert {name: (part["n"], part["metrics"][RECALL]["value"]) for name, part in slices.items()} \
        == {"code": (2, 0.5), "prose": (3, 0.6667)}  # fmt: skip


def test_a_metric_needs_its_own_questions_in_a_part(folder: Folder) -> None:
    """Six questions of one type, four with evidence: too few for recall, enough for empty."""
    gold, rows = asked([{"type": "a"}] * 6)
    for item in gold[:2]:
        item["relevant"] = []
    outcome = folder.score(
        rows, "--profile", "all", "--metrics", f"{RECALL},retrieval.empty", "--format", "json",
        gold=gold,
    )  # fmt: skip
    part = json.loads(outcome.out)["slices"]["type"]["a"]
    assert part["n"] == 6
    assert part["metrics"].keys() == {"retrieval.empty"}


def test_no_intervals_means_none_in_slices(folder: Folder) -> None:
    """--no-intervals saves the time there too."""
    slices = sliced(folder, ITEMS, FOUND, "--no-intervals")["type"]
    assert slices["a"]["metrics"][RECALL]["interval"] is None


# --- reports ---


def test_tables_show_slices(folder: Folder) -> None:
    """The part, its n and its value, or a dash."""
    gold, rows = asked(ITEMS, FOUND)
    lines = [line.split() for line in folder.score(rows, *ONLY, gold=gold).out.splitlines()]
    assert ["type", "n", "recall@5"] in lines
    assert ["a", "7", "0.7143"] in lines
    assert ["b", "6", "0.5000"] in lines
    assert ["c", "2", "-"] in lines


def test_markdown_shows_slices(folder: Folder) -> None:
    """One heading and one table for each dimension; a bar in a name does not break it."""
    items: list[Row] = [{"type": "a|b", "lang": "en"}] * 5
    gold, rows = asked(items)
    text = folder.score(rows, *ONLY, "--format", "md", gold=gold).out
    assert "## By type\n\n| type | n | `retrieval.recall@5` |\n| --- | --- | --- |\n" in text
    assert "| a\\|b | 5 | 1.0000 |" in text
    assert "## By language" in text


def test_tables_leave_small_documents_out(folder: Folder) -> None:
    """Documents of few questions are in the JSON only; large ones are shown."""
    gold, rows = asked([{"relevant_docs": [f"{n}.md"]} for n in range(6)])
    assert "0.md" not in folder.score(rows, *ONLY, gold=gold).out
    gold, rows = asked([{"relevant_docs": ["all.md", f"{n}.md"]} for n in range(6)])
    assert "all.md" in folder.score(rows, *ONLY, gold=gold).out


@pytest.mark.parametrize(("name", "most"), [("table", 8), ("md", 20)])
def test_many_parts_are_cut_short_unless_all_are_asked_for(
    folder: Folder, name: str, most: int
) -> None:
    """The rest is counted; --full shows it."""
    gold, rows = asked([{"tags": [f"tag{n:02}"]} for n in range(most + 2)])
    short = folder.score(rows, *ONLY, "--format", name, gold=gold).out
    assert f"tag{most - 1:02}" in short
    assert f"tag{most:02}" not in short
    assert "... and 2 more" in short
    full = folder.score(rows, *ONLY, "--format", name, "--full", gold=gold).out
    assert f"tag{most + 1:02}" in full


# --- gates ---


def gated(folder: Folder, demand: str, *options: str) -> tuple[Outcome, dict[str, Any]]:
    folder.write("gates.toml", f'"{RECALL}" = {demand}\n')
    gold, rows = asked(ITEMS, FOUND)
    outcome = folder.score(
        rows, *ONLY, "--gates", "gates.toml", "--format", "json", *options, gold=gold
    )
    (gate,) = json.loads(outcome.out)["verdict"]["gates"]
    return outcome, gate


@cases(
    ("demand", "exit_code", "status", "value", "n"),
    [
        ('{ threshold = 0.7, slice = "type=a" }', 0, "pass", 0.7143, 7),
        ('{ threshold = 0.5, slice = "type=b" }', 0, "pass", 0.5, 6),
        ('{ threshold = 0.7, slice = "type=b" }', 1, "fail", 0.5, 6),
        ('{ threshold = 0.1, slice = "type=c" }', 4, "not-evaluable", None, 2),
        ('{ threshold = 0.1, slice = "type=z" }', 4, "not-evaluable", None, 0),
        ('{ threshold = 0.1, slice = "colour=red" }', 4, "not-evaluable", None, 0),
        ('{ threshold = 0.1, slice = "type=b", min_n = 7 }', 4, "not-evaluable", None, 6),
        ('{ threshold = 0.1, slice = "type=b", review = [0.4, 0.6] }', 0, "review", 0.5, 6),
        ('{ threshold = 0.4, slice = "type=b", policy = "interval" }', 1, "fail", 0.5, 6),
    ],
)
def test_a_gate_may_be_on_a_part(
    folder: Folder, demand: str, exit_code: int, status: str, value: float | None, n: int
) -> None:
    """Too few questions, and parts that are not there, decide nothing: 4, never 0."""
    outcome, gate = gated(folder, demand)
    assert outcome.exit_code == exit_code
    assert (gate["status"], gate["value"], gate["n"]) == (status, value, n)
    assert gate["slice"] in demand
    if exit_code == 4:
        assert "too-few" in outcome.codes


def test_a_part_without_a_value_says_why(folder: Folder) -> None:
    """Six questions, none with evidence: that is 0/0, and not too few."""
    gold, rows = asked([{"type": "a", "relevant": []}] * 6 + [{}])
    folder.write("gates.toml", f'"{RECALL}" = {{ threshold = 0.1, slice = "type=a" }}\n')
    outcome = folder.score(rows, *ONLY, "--gates", "gates.toml", "--format", "json", gold=gold)
    assert outcome.exit_code == 4
    (gate,) = json.loads(outcome.out)["verdict"]["gates"]
    assert "too few" not in gate["reason"]


def test_a_part_whose_name_has_an_equals_sign(folder: Folder) -> None:
    """The first = ends the dimension."""
    gold, rows = asked([{"tags": ["a=b"]}] * 5)
    folder.write("gates.toml", f'"{RECALL}" = {{ threshold = 1, slice = "tag=a=b" }}\n')
    assert folder.score(rows, *ONLY, "--gates", "gates.toml", gold=gold).exit_code == 0


def test_a_slice_without_a_dimension_is_refused(folder: Folder) -> None:
    """`slice = "table"` names no part."""
    folder.write("gates.toml", f'"{RECALL}" = {{ threshold = 0.7, slice = "a" }}\n')
    outcome = folder.score(None, "--gates", "gates.toml")
    assert (outcome.exit_code, outcome.codes) == (2, {"bad-gate"})


def test_gates_on_the_whole_and_on_parts_stand_side_by_side(folder: Folder) -> None:
    """Ten of fifteen found in all; two parts of the same metric are two demands."""
    gold, rows = asked(ITEMS, FOUND)
    folder.write(
        "gates.toml",
        f'"{RECALL}" = 0.6\n'
        f'a = {{ metric = "{RECALL}", threshold = 0.7, slice = "type=a" }}\n'
        f'b = {{ metric = "{RECALL}", threshold = 0.7, slice = "type=b" }}\n',
    )
    outcome = folder.score(rows, *ONLY, "--gates", "gates.toml", "--format", "json", gold=gold)
    gates = json.loads(outcome.out)["verdict"]["gates"]
    assert [(gate["value"], gate["status"]) for gate in gates] == [
        (0.6667, "pass"), (0.7143, "pass"), (0.5, "fail"),
    ]  # fmt: skip


@cases("full", [True, False])
@cases(
    "demand",
    [
        # Not rounded: 5/7 is less than 0.71429, and would not be once rounded to 0.7143.
        '{ threshold = 0.7142857, slice = "type=a" }',
        '{ threshold = 0.71429, slice = "type=a" }',
        '{ threshold = 0.1, slice = "type=c" }',
        '{ threshold = 0.1, slice = "type=z" }',
        '{ threshold = 0.1, slice = "type=b", policy = "interval" }',
    ],
)
def test_saved_slices_are_judged_as_they_were(folder: Folder, demand: str, full: bool) -> None:
    """Save, load and judge again: the same gate, to the last digit.

    --full adds the values of questions, by which those are named that made it fail.
    """
    options = ("-o", "scores.json", *(["--full"] if full else []))
    first, gate = gated(folder, demand, *options)
    again = folder.run("gate", "scores.json", "--gates", "gates.toml", "--format", "json")
    assert again.exit_code == first.exit_code
    damage = gate["damage"] if full else []
    assert json.loads(again.out)["verdict"]["gates"] == [{**gate, "damage": damage}]
    assert json.loads(again.out)["slices"] == json.loads(first.out)["slices"]


def test_slices_are_read_back_as_they_were(folder: Folder) -> None:
    """n of every part, and of every metric its value and interval, not rounded."""
    gold, rows = asked(ITEMS, FOUND)
    folder.score(rows, *ONLY, "-o", "scores.json", gold=gold)
    measured = score.score("gold.jsonl", "trace.jsonl", profile="all", metrics=[RECALL])
    loaded = scores_document.load_scores("scores.json")
    assert loaded.slices.keys() == measured.slices.keys() == {"type"}
    for name, part in measured.slices["type"].items():
        other = loaded.slices["type"][name]
        assert (other.n, other.value(RECALL)) == (part.n, part.value(RECALL))
        if part.value(RECALL) is not None:
            assert other.metrics[RECALL].interval == part.metrics[RECALL].interval


def test_a_part_counts_questions_and_records(folder: Folder) -> None:
    """Two questions with three seeds each: n is 2, and 6 records are behind it."""
    gold = [{"qid": qid, "question": qid, "relevant": ["e"], "type": "code"} for qid in ("a", "b")]
    rows = [{"qid": qid, "seed": seed, "retrieved_ids": ["e"]} for qid in "ab" for seed in range(3)]
    paths = folder.write("gold.jsonl", gold), folder.write("trace.jsonl", rows)
    found = score.score(*paths, profile="all", metrics=[RECALL], options=Options(min_n=1))
    part = found.slices["type"]["code"].metrics[RECALL]
    assert (part.value, part.n, part.records) == (1.0, 2, 6)
