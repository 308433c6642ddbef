"""`ragauge leaderboard`: several runs on common questions, with adjusted p-values."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from tests.cli.test_history import MRR, RECALL, RULES, gold, traces
from tests.support.command import Folder


@pytest.fixture
def runs(folder: Folder) -> Folder:
    """Three stored runs: all found, one lost, and ten lost of twenty."""
    folder.write("gold.jsonl", gold())
    for name, lost in (("all", 0), ("one", 1), ("ten", 10)):
        put(folder, name, traces(lost))
    return folder


def put(folder: Folder, name: str, rows: Any, *more: str, gold_name: str = "gold.jsonl") -> None:
    folder.write("trace.jsonl", rows)
    done = folder.run("score", gold_name, "trace.jsonl", *RULES, "--store", "--run-id", name, *more)
    assert done.exit_code == 0, done.err


def document(folder: Folder, *words: str) -> Any:
    done = folder.run("leaderboard", *words, "--format", "json")
    assert done.exit_code == 0, done.err
    return json.loads(done.out)


def test_runs_are_ranked_with_intervals_and_adjusted_p(runs: Folder) -> None:
    """Nine questions changed, all one way: p = 2/512, twice by Holm; of one change p is 1."""
    board = document(runs, "one", "ten", "all", "--metrics", RECALL)
    assert board["runs"] == ["one", "ten", "all"]
    assert board["questions"] == 20
    (row,) = board["metrics"]
    assert row["ranking"] == ["all", "one", "ten"]
    assert row["reference"] == "one"
    one, ten, all_found = row["values"]
    assert [cell["value"] for cell in (one, ten, all_found)] == [0.95, 0.5, 1.0]
    assert (one["delta"], one["p_holm"]) == (None, None)
    assert (ten["delta"], ten["p_holm"]) == (-0.45, pytest.approx(2 * 2 / 512, rel=1e-3))
    assert all_found["p_holm"] == 1.0
    assert ten["delta_interval"][1] < 0
    assert one["interval"][0] < 0.95 < one["interval"][1]


def test_against_the_best_all_pairs_are_counted(runs: Folder) -> None:
    """The best is known from the same numbers: three pairs, not two, and wider bounds."""
    first = document(runs, "all", "one", "ten", "--metrics", RECALL)["metrics"][0]
    best = document(runs, "one", "ten", "all", "--metrics", RECALL, "--against", "best")
    row = best["metrics"][0]
    assert (row["reference"], best["against"]) == ("all", "best")
    ten = next(cell for cell in row["values"] if cell["run"] == "ten")
    assert ten["p_holm"] == pytest.approx(3 * 2 / 1024, rel=1e-3)
    narrow = first["values"][2]
    assert narrow["p_holm"] == pytest.approx(2 * 2 / 1024, rel=1e-3)
    assert ten["delta_interval"][0] < narrow["delta_interval"][0]


def test_only_questions_that_all_runs_have_count(runs: Folder) -> None:
    """A run without the hard questions does not lead by that, and it is said."""
    runs.write("easy.jsonl", gold()[10:])
    put(runs, "easy", traces(10)[10:], gold_name="easy.jsonl")
    done = runs.run("leaderboard", "ten", "easy", "all", "--metrics", RECALL)
    assert "3 runs on the 10 questions that all have" in done.out
    assert "10 questions left out: not in all runs" in done.err
    board = document(runs, "ten", "easy", "all", "--metrics", RECALL)
    assert [cell["value"] for cell in board["metrics"][0]["values"]] == [1.0, 1.0, 1.0]
    changed = [{**gold()[0], "relevant": ["c1"]}, *gold()[1:]]
    runs.write("changed.jsonl", changed)
    put(runs, "changed", traces(0), gold_name="changed.jsonl")
    assert document(runs, "all", "changed")["left_out"] == {"gold-changed": 1}


def test_the_table_and_the_csv(runs: Folder) -> None:
    done = runs.run("leaderboard", "all", "one", "ten", "--metrics", f"{RECALL},retrieval.mrr")
    assert done.exit_code == 0, done.err
    assert "retrieval.recall@5, higher is better, n = 20" in done.out
    rows = [
        line.split() for line in done.out.splitlines() if line.startswith(("all", "one", "ten"))
    ]
    assert [row[0] for row in rows] == ["all", "one", "ten"] * 2
    assert rows[0][-1] == "first"
    assert rows[2][-1] == "*"
    assert max(map(len, done.out.splitlines())) <= 80
    text = runs.run("leaderboard", "all", "one", "ten", "--metrics", RECALL, "--format", "csv").out
    table = list(csv.DictReader(io.StringIO(text)))
    assert [(row["run"], row["rank"], row["value"]) for row in table] == [
        ("all", "1", "1.0000"), ("one", "2", "0.9500"), ("ten", "3", "0.5000"),
    ]  # fmt: skip
    assert table[0]["delta"] == ""


def test_metrics_are_those_of_gates_by_themselves(runs: Folder) -> None:
    runs.write("ragauge.toml", f'k = [5]\n[gates]\n"{MRR}" = {{ max_drop = 0.02 }}\n')
    assert [row["metric"] for row in document(runs, "all", "one")["metrics"]] == [MRR]


def test_run_files_and_scores_stand_beside_stored_runs(runs: Folder) -> None:
    runs.run("runs", "export", "ten", "-o", "ten.jsonl.gz")
    runs.write("trace.jsonl", traces(5))
    runs.run("score", "gold.jsonl", "trace.jsonl", *RULES, "--full", "-o", "five.json")
    board = document(runs, "all", "ten.jsonl.gz", "five.json", "--metrics", RECALL)
    assert board["runs"] == ["all", "ten", "five.json"]
    assert board["metrics"][0]["ranking"] == ["all", "five.json", "ten"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("all",), 2, "name 2 to 50 runs"),
        (("all", "all"), 2, "named twice"),
        (("all", "gone"), 2, "unknown-run"),
        (("all", "one", "--metrics", "nonsense"), 2, "unknown-metric"),
        (("all", "one", "--metrics", "latency.total_ms"), 5, ""),
    ],
)
def test_what_cannot_be_compared(
    runs: Folder, words: tuple[str, ...], code: int, said: str
) -> None:
    done = runs.run("leaderboard", *words)
    assert done.exit_code == code, done.err
    assert said in done.err


def test_other_chunks_with_chunk_ids_in_gold_are_said(runs: Folder) -> None:
    def chunked(version: str) -> list[dict[str, Any]]:
        return [
            {**row, "hits": [{"id": hit, "chunker_version": version} for hit in row["hits"]]}
            for row in traces(0)
        ]

    put(runs, "v1", chunked("v1"))
    put(runs, "v2", chunked("v2"))
    done = runs.run("leaderboard", "v1", "v2", "--metrics", RECALL)
    assert "the runs were chunked differently and the gold set names chunks" in done.err
