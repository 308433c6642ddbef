"""The recipes of the docs, on exports that the tools' own types wrote (`fixtures/recipes`)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from ragauge import load_gold, score
from tests.support.cases import cases
from tests.support.command import Row

ROOT = Path(__file__).parents[3]
EXPORTS = ROOT / "tests" / "fixtures" / "recipes"
PAGE = (ROOT / "docs" / "how-to" / "field-recipes.md").read_text("utf-8")
RECIPES = {
    name: tomllib.loads(text)["fields"]
    for name, text in re.findall(r"```toml title=(\w+)\.toml\n(.*?)```", PAGE, re.DOTALL)
}
GOLD: list[Row] = [
    {"qid": "Q1", "question": "How long does a refund take?", "relevant": ["refunds#2"]},
    {"qid": "Q2", "question": "Which plan has audit logs?", "relevant": ["plans#4"]},
]


def test_every_recipe_has_an_export() -> None:
    assert sorted(RECIPES) == sorted(path.stem for path in EXPORTS.glob("*.jsonl"))


@cases(
    ("name", "recall"),
    [
        ("opik", {1: 0.5, 5: 0.5}),  # the second call failed
        ("weave", {1: 0.5, 5: 0.5}),
        ("braintrust", {1: 0.5, 5: 1.0}),  # plans#4 is the second source
        ("haystack", {1: 0.5, 5: 1.0}),  # BM25 puts plans#1 first
    ],
)
def test_a_recipe_reads_what_the_tool_writes(name: str, recall: dict[int, float]) -> None:
    export = EXPORTS / f"{name}.jsonl"
    gold = export if name == "braintrust" else GOLD
    scored = score(
        gold,
        export,
        profile="all",
        metrics=["retrieval.recall", "run.errored"],
        k=[1, 5],
        fields=RECIPES[name],
    )
    values = {k: scored.metrics[f"retrieval.recall@{k}"].value for k in (1, 5)}
    assert values == recall
    assert scored.tally.scored + scored.tally.errored >= 2
    assert scored.tally.errored == (1 if name in ("opik", "weave") else 0)
    assert not any("did you mean" in warning for warning in scored.warnings)


def test_results_of_ragchecker_are_gold_and_traces() -> None:
    source = EXPORTS / "ragchecker.json"
    gold: list[Row] = [GOLD[0], {**GOLD[1], "relevant": [{"quote": "Enterprise has audit logs."}]}]
    scored = score(gold, source, profile="all", metrics=["retrieval.recall@1"])
    assert scored.metrics["retrieval.recall@1"].value == 1.0
    assert [item.references for item in load_gold(source).items] == [("14 days",), ("Enterprise",)]
