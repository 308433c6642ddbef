"""Tokens and cost: read under every name, averaged over questions, and added up over the run."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ragauge import load_traces, score
from ragauge.errors import RagaugeError
from ragauge.files import ranges
from ragauge.model.scores import Scores
from ragauge.model.trace import Usage
from ragauge.scoring import inputs
from ragauge.scoring.engines import choose
from tests.conformance.runs import write
from tests.support.cases import cases
from tests.support.command import Folder

Row = dict[str, Any]


def scored(folder: Path, traces: list[Row], *, questions: int = 10, **options: Any) -> Scores:
    gold = [{"qid": f"q{n}", "relevant": ["p1"]} for n in range(questions)]
    files = write(folder / "gold.jsonl", gold), write(folder / "trace.jsonl", traces)
    return score(*files, profile="all", metrics=["cost.*"], **options)


@cases(
    ("row", "usage"),
    [
        ({"tokens": 12, "cost": 0.5}, Usage(tokens=12, cost=0.5)),
        ({"total_tokens": 12}, Usage(tokens=12)),
        ({"usage": {"prompt_tokens": 9, "completion_tokens": 3}}, Usage(tokens=12)),
        ({"usage": {"prompt_tokens": 9, "total_tokens": 15}}, Usage(tokens=15)),
        ({"usage": {"input_tokens": 9, "output_tokens": 3}}, Usage(tokens=12)),
        ({"token_usage": {"total": 12, "prompt": 9, "completion": 3}}, Usage(tokens=12)),
        ({"total_cost": 0.5}, Usage(cost=0.5)),
        ({"cost": {"input": 0.25, "output": 0.5}}, Usage(cost=0.75)),
        ({"tokens": 12, "usage": {"total_tokens": 12}}, Usage(tokens=12)),
        ({"usage": {"model": "m"}, "cost": None}, None),
        ({"tokens": 0}, Usage(tokens=0)),
    ],
)
def test_what_apis_give_is_read(tmp_path: Path, row: Row, usage: Usage | None) -> None:
    traces = write(tmp_path / "trace.jsonl", [{"qid": "q1", "hits": ["p1"], **row}])
    assert load_traces(traces).traces[0].usage == usage


@cases(
    "row",
    [{"tokens": -1}, {"tokens": "12"}, {"cost": 1e7}, {"cost": True}, {"tokens": 1, "usage": 2}],
)
def test_what_is_no_amount_is_an_error(tmp_path: Path, row: Row) -> None:
    with pytest.raises(RagaugeError):
        scored(tmp_path, [{"qid": "q1", "hits": ["p1"], **row}])


@pytest.mark.slow
def test_all_paths_add_up_to_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By columns, row by row, on the exact path and in workers: 0 + 1 + … + 9 each time."""
    shapes: list[Row] = [
        {"retrieved_ids": ["p1"], "answer_json": {"claim": "x", "citations": []}},
        {"topk": [{"id": "p1", "doc": "d", "offsets": [0, 9]}], "answer": "x"},
        {"hits": ["p1"], "answer": "x", "refused": False},
    ]
    for shape in shapes:
        rows = [{"qid": f"q{n}", **shape, "tokens": n, "cost": n / 8} for n in range(10)]
        scores = scored(tmp_path, rows)
        assert scores.metrics["cost.tokens_total"].value == 45.0
        assert scores.metrics["cost.tokens"].value == 4.5
        assert scores.metrics["cost.total"].value == 5.625
        assert scores.metrics["cost.mean"].value == 0.5625
    many = [
        {"qid": f"q{n % 10}", "seed": n // 10, **shapes[n % 3], "tokens": n, "cost": 0.1}
        for n in range(300)
    ]
    alone = scored(tmp_path, many, workers=1)
    # 0 + 1 + … + 299, and 300 times a tenth
    assert alone.metrics["cost.tokens_total"].value == 44850.0
    assert alone.metrics["cost.total"].value == pytest.approx(30.0, abs=1e-9)
    monkeypatch.setattr(inputs, "plan", partial(ranges.plan, range_bytes=2_000))
    monkeypatch.setattr(choose, "RANGE_BYTES", 2_000)
    assert scored(tmp_path, many, workers=2).metrics == alone.metrics


def test_a_sum_has_no_interval_and_a_mean_has_one(tmp_path: Path) -> None:
    """Of a mean without an upper end, 100 questions make one."""
    rows = [{"qid": f"q{n}", "hits": [], "tokens": n} for n in range(100)]
    scores = scored(tmp_path, rows, questions=100)
    assert scores.metrics["cost.tokens_total"].interval is None
    assert scores.metrics["cost.tokens"].interval is not None
    few = scored(tmp_path, rows[:10]).metrics["cost.tokens"]
    assert (few.interval, few.interval_reason) == (None, "unbounded mean, n < 100")


def test_a_sum_may_be_gated_and_compared(folder: Folder) -> None:
    gold = [{"qid": f"q{n}", "relevant": ["p1"]} for n in range(10)]
    rows = [{"qid": f"q{n}", "hits": ["p1"], "cost": 0.5} for n in range(10)]
    options = ("--profile", "all", "--metrics", "cost.*")
    passed = folder.score(rows, *options, "--gates", "cost.total<=5", gold=gold)
    assert passed.exit_code == 0, passed.err
    failed = folder.score(rows, *options, "--gates", "cost.total<=4.9", gold=gold)
    assert failed.exit_code == 1
    dearer = [{**row, "cost": 0.75} for row in rows]
    folder.write("dearer.jsonl", dearer)
    compared = folder.run(
        "compare", "trace.jsonl", "dearer.jsonl", "--gold", "gold.jsonl", "--profile", "all"
    )
    assert "cost.total" in compared.out
