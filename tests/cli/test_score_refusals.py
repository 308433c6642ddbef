"""Refusals as commands show them: what a source hides, and one rule for both sides and all time."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest

from ragauge.scoring.refusals import VERSION
from ragauge.store.runs import open_store
from tests.support.command import Folder
from tests.support.old_stores import make_store_v3

NATURAL = f"natural v{VERSION}"
GOLD = [
    {"qid": "D01", "question": "Which port?", "answerable": True, "gold_citations": ["a"],
     "gold_claim_substr": ["8080"]},
    {"qid": "D02", "question": "Who signed?", "answerable": False, "gold_citations": []},
    {"qid": "D03", "question": "Which king?", "answerable": False, "gold_citations": []},
    {"qid": "D04", "question": "How long?", "answerable": True, "gold_citations": ["b"],
     "gold_claim_substr": ["300 metres"]},
]  # fmt: skip
SAID = ("The port is 8080.", "I don't know.", "Nobody told me.", "The text does not say.")
TRACES = [
    {"qid": f"D0{n}", "retrieved_ids": ["a", "b"], "answer_json": {"claim": text, "citations": []}}
    for n, text in enumerate(SAID, 1)
]
TRACES[2]["answer_json"]["refused"] = True  # type: ignore[index]


@pytest.fixture
def files(folder: Folder) -> Folder:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    return folder


def score(files: Folder, *options: str) -> dict[str, Any]:
    outcome = files.run("score", "gold.jsonl", "trace.jsonl", "--format", "json", *options)
    document: dict[str, Any] = json.loads(outcome.out)
    return document


def test_ship_prints_what_its_source_prints_and_says_what_that_hides(files: Folder) -> None:
    """Standard output is the source's; standard error names the answers and the cure."""
    outcome = files.run(
        "score", "gold.jsonl", "trace.jsonl", "--profile", "ship", "--format", "json"
    )
    printed = json.loads(outcome.out)
    assert (printed["answered"], printed["refused"], printed["under_refusal"]) == (4, 0, 1.0)
    assert (
        "2 answers read like refusals but lack the token `not in context`, 1 carries "
        '`refused: true`: D02, D03, D04; set `refusal.rule = "natural"`'
    ) in outcome.err
    assert "1 claim under 5 characters" in outcome.err
    assert "`8080` (D01)" in outcome.err


def test_the_cure_of_the_warning_works(files: Folder) -> None:
    """With the rule that it names, the warning is gone and the refusals are there."""
    files.write("ragauge.toml", '[refusal]\nrule = "natural"\n')
    document = score(files, "--profile", "ship", "--full")
    assert document["refusal_rules"] == {NATURAL: 2, "refused flag": 1}
    assert document["options"]["refusal_rule"] == "natural"
    assert not [warning for warning in document["warnings"] if "refus" in warning]
    outcome = files.run("score", "gold.jsonl", "trace.jsonl", "--profile", "ship")
    assert f"refusals: 2 by {NATURAL}, 1 by refused flag" in " ".join(outcome.out.split())


def test_a_page_says_which_rule_found_each_refusal(files: Folder) -> None:
    """The drill-down of a question names the rule; so does the JSON of `view`."""
    files.run("score", "gold.jsonl", "trace.jsonl", "--profile", "all", "-o", "page.html")
    page = (files.path / "page.html").read_text("utf-8")
    assert NATURAL in page
    assert "refused flag" in page


def test_compare_scores_both_sides_under_one_rule(files: Folder) -> None:
    """The rule of the second run is that of both, and a note says so."""
    files.run("score", "gold.jsonl", "trace.jsonl", "--profile", "ship", "--store",
              "sqlite:///runs.db", "--run-id", "a")  # fmt: skip
    files.write("ragauge.toml", '[refusal]\nrule = "natural"\n')
    files.run("score", "gold.jsonl", "trace.jsonl", "--profile", "ship", "--store",
              "sqlite:///runs.db", "--run-id", "b")  # fmt: skip
    outcome = files.run("compare", "a", "b", "--store", "sqlite:///runs.db", "--format", "json")
    document = json.loads(outcome.out)
    assert "different options: both were scored again by those of run b" in document["notes"][0]
    values = [document[side]["refusal.under"]["value"] for side in ("aggregate_a", "aggregate_b")]
    assert values == [0.0, 0.0]


def test_rescoring_keeps_what_an_old_version_counted(folder: Folder) -> None:
    """Values of version 1 stay in the history beside those of the version of today."""
    make_store_v3("sqlite:///runs.db")
    done = folder.run("rescore", "tuesday", "--store", "sqlite:///runs.db", "--format", "json")
    assert done.exit_code == 0
    with closing(open_store("sqlite:///runs.db")) as store:
        documents = [json.loads(scoring.aggregate) for scoring in store.scorings("tuesday")]
    results = [document["metrics"]["refusal.under"] for document in documents]
    assert [(result["value"], result["version"]) for result in results] == [(0.0, 1), (0.0, 2)]
