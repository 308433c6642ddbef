"""`ragauge compare`: the kinds of questions with several pieces of evidence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.command import Folder

QUESTIONS = range(30)
GOLD = [
    {
        "qid": f"Q{i:02}",
        "question": f"question number {i}?",
        "answerable": True,
        "gold_citations": [f"d{i}#1", f"d{i}#2"],
    }
    for i in QUESTIONS
]


def rows(*kept: str) -> list[dict[str, Any]]:
    """Hits of which those named are evidence, and the others are not."""
    return [
        {"qid": f"Q{i:02}", "retrieved_ids": [f"d{i}#{name}" for name in kept]} for i in QUESTIONS
    ]


@pytest.fixture
def runs(folder: Folder) -> Folder:
    """Two pieces of evidence each; b lost the second everywhere, c only has other hits between."""
    folder.write("gold.jsonl", GOLD)
    folder.write("a.jsonl", rows("1", "2", "9"))
    folder.write("b.jsonl", rows("1", "8", "9"))
    folder.write("c.jsonl", rows("1", "8", "2"))
    return folder


def compared(folder: Folder, *arguments: str) -> dict[str, Any]:
    """What `compare` prints as JSON."""
    outcome = folder.run("compare", *arguments, "--gold", "gold.jsonl", "--format", "json")
    found: dict[str, Any] = json.loads(outcome.out)
    return found


FAIL_ON = ("--fail-on", "regression", "--fail-on", "loss")


def saved(folder: Folder, name: str) -> str:
    outcome = folder.run("score", "gold.jsonl", f"{name}.jsonl", "--full", "-o", f"{name}.json")
    assert outcome.exit_code in (0, 1), outcome.err
    return f"{name}.json"


def stored(folder: Folder, name: str) -> str:
    arguments = ("gold.jsonl", f"{name}.jsonl", "--store", "--run-id", name)
    assert folder.run("score", *arguments).exit_code in (0, 1)
    return name


@pytest.mark.parametrize("how", ["traces", "scores", "stored", "mixed"])
def test_one_of_two_pieces_lost_everywhere_is_thirty_regressions(runs: Folder, how: str) -> None:
    """The first piece is still at rank 1: recall_all fell from 1 to 0, and hit and mrr did not."""
    if how == "traces":
        names: tuple[str, ...] = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl")
    elif how == "mixed":
        names = (stored(runs, "a"), saved(runs, "b"))
    else:
        names = tuple(
            saved(runs, name) if how == "scores" else stored(runs, name) for name in ("a", "b")
        )
    outcome = runs.run("compare", *names, "--fail-on", "regression", "--format", "json")
    assert outcome.exit_code == 1, outcome.err
    found = json.loads(outcome.out)
    kinds = {"regression": 30, "mixed": 0, "undecided": 0, "loss": 0, "win": 0, "draw": 0}
    assert found["kinds"]["retrieval"] == kinds
    question = found["per_query"][7]
    assert question["lost"] == ["d7#2"]
    assert (question["units"], question["a_units"], question["b_units"]) == (2, 2.0, 1.0)
    assert (question["a_hit_rank"], question["b_hit_rank"]) == (1, 1)
    assert question["note"].startswith("2→1 of 2 found within 10; lost d7#2")


def test_a_piece_further_down_is_a_loss(runs: Folder) -> None:
    """1 + 1/2 becomes 1 + 1/3, and the first evidence did not move."""
    names = ("a.jsonl", "c.jsonl", "--gold", "gold.jsonl", "--format", "json")
    found = json.loads(runs.run("compare", *names, "--fail-on", "regression").out)
    assert found["kinds"]["retrieval"]["loss"] == 30
    assert found["exit_code"] == 0
    assert runs.run("compare", *names, *FAIL_ON).exit_code == 1


def test_the_cut_off_is_that_of_the_gate(runs: Folder) -> None:
    """With a gate on recall@2 the piece at rank 3 is lost."""
    runs.write("ragauge.toml", '[gates]\n"retrieval.recall@2" = { max_drop = 0.9 }\n')
    names = ("a.jsonl", "c.jsonl", "--gold", "gold.jsonl", "--format", "json")
    found = json.loads(runs.run("compare", *names).out)
    assert found["k"] == 2
    assert found["kinds"]["retrieval"]["regression"] == 30


def test_files_of_scores_without_all_ranks_cannot_prove_that_nothing_was_lost(
    runs: Folder,
) -> None:
    """Those of older versions have the first evidence only: --fail-on is not evaluable on them."""
    names = [saved(runs, name) for name in ("a", "b")]
    for name in names:
        document = json.loads((runs.path / name).read_text("utf-8"))
        for question in document["questions"]:
            del question["units"]
        (runs.path / name).write_text(json.dumps(document), "utf-8")
    outcome = runs.run("compare", *names, "--fail-on", "regression")
    assert (outcome.exit_code, outcome.codes) == (4, {"incomparable"})
    quiet = runs.run("compare", *names)
    assert quiet.exit_code == 0
    assert "other pieces may be lost" in " ".join(quiet.out.split())


def test_groups_are_found_by_any_member(folder: Folder) -> None:
    """Another member of a group is as good: the group was not lost; the second group was."""
    folder.write(
        "gold.jsonl",
        [{"qid": "g", "question": "who and when?", "groups": [["x#1", "x#2"], ["y#1"]]}],
    )
    folder.write("a.jsonl", [{"qid": "g", "topk": ["x#1", "y#1"]}])
    folder.write("b.jsonl", [{"qid": "g", "topk": ["x#2", "z#1"]}])
    outcome = folder.run(
        "compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--format", "json"
    )
    (question,) = json.loads(outcome.out)["per_query"]
    assert question["kind"] == "regression"
    assert question["lost"] == ["y#1"]


def test_a_mean_over_slots(folder: Folder) -> None:
    """Two paraphrases: the piece was found in both, and is found in one."""
    folder.write(
        "gold.jsonl",
        [{"qid": "p", "question": "which port?", "paraphrases": ["which port?", "what port?"],
          "relevant": ["x#1", "y#1"]}],
    )  # fmt: skip
    both = [{"qid": "p", "paraphrase": slot, "topk": ["x#1", "y#1"]} for slot in (0, 1)]
    folder.write("a.jsonl", both)
    folder.write("b.jsonl", [both[0], {**both[1], "topk": ["x#1", "z#1"]}])
    outcome = folder.run(
        "compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--format", "json"
    )
    (question,) = json.loads(outcome.out)["per_query"]
    assert (question["kind"], question["lost"]) == ("regression", ["y#1"])
    assert (question["a_units"], question["b_units"]) == (2.0, 1.5)
