"""A baseline of other chunks: `score` judges a drop as `gate` does, on common ground."""

from __future__ import annotations

import pytest

from tests.support.command import Folder, Row

GOLD: list[Row] = [
    {"qid": "Q1", "question": "When?", "answerable": True, "relevant": ["A2"]},
]
GATES = '[gates]\n"retrieval.hit@1" = { max_drop = 0.02, min_n = 1 }\n'
RULES = ("--profile", "all", "--k", "1", "--dialect", "native")
PASSES = "1.0000 in the baseline, 1.0000 now"


def trace(id: str, start: int, end: int, version: str) -> list[Row]:
    hit = {"id": id, "doc": "h.md", "offsets": [start, end], "doc_hash": "h1"}
    return [{"qid": "Q1", "hits": [{**hit, "chunker_version": version}]}]


@pytest.fixture
def runs(folder: Folder) -> Folder:
    folder.write("gold.jsonl", GOLD)
    folder.write("old.jsonl", trace("A2", 100, 200, "v1"))
    folder.write("finer.jsonl", trace("B2", 90, 210, "v2"))
    folder.write("elsewhere.jsonl", trace("B7", 300, 400, "v2"))
    folder.write("gates.toml", GATES)
    stored = folder.run("score", "gold.jsonl", "old.jsonl", *RULES, "--store", "--run-id", "live")
    assert stored.exit_code == 0, stored.err
    return folder


@pytest.mark.parametrize(("name", "code"), [("finer", 0), ("elsewhere", 1)])
def test_score_and_gate_say_the_same_of_other_chunks(runs: Folder, name: str, code: int) -> None:
    judged = ("--baseline", "live", "--gates", "gates.toml")
    scored = runs.run(
        "score", "gold.jsonl", f"{name}.jsonl", *RULES, "--store", "--run-id", name, *judged
    )
    gated = runs.run("gate", name, *judged)
    assert (scored.exit_code, gated.exit_code) == (code, code), scored.out + gated.out
    assert (PASSES in scored.out, PASSES in gated.out) == (code == 0, code == 0)


@pytest.mark.parametrize(("name", "code"), [("finer", 0), ("elsewhere", 1)])
def test_a_run_that_is_not_stored_is_judged_alike(runs: Folder, name: str, code: int) -> None:
    judged = ("--baseline", "live", "--gates", "gates.toml")
    scored = runs.run("score", "gold.jsonl", f"{name}.jsonl", *RULES, *judged)
    assert scored.exit_code == code, scored.out + scored.err
    assert (PASSES in scored.out) is (code == 0)
    assert "live" in runs.run("runs", "list").out
    assert runs.run("runs", "show", "run").exit_code != 0  # nothing was left in the store
