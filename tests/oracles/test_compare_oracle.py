"""Comparisons of random pairs of runs agree with an independent reading of the specification."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import pytest

from ragauge.compare import compare as compare_module
from ragauge.errors import RagaugeError
from ragauge.model.comparison import Comparison
from ragauge.model.run import Store
from ragauge.scoring import score
from ragauge.scoring.inputs import ScoredRun
from ragauge.store import runs as run_store
from tests.oracles.compare_cases import SCENARIOS, case, listed
from tests.oracles.compare_oracle import RUNGS, Compared, compare, holm
from tests.support.effort import seeds

Row = dict[str, Any]
Overlap = Literal["cumulative", "single"]

OVERLAPS: tuple[Overlap, ...] = ("cumulative", "single")
KS = (1, 3, 5, 10)
GATED = ("retrieval.hit@1", "retrieval.hit@5", "retrieval.mrr@10", "retrieval.recall@3")
CASES = 300
PER_STORE = 15
WHEN = "2026-01-01T00:00:00Z"


def keep(
    store: Store, folder: Path, gold: Path, name: str, rows: list[Row], listed: list[Row]
) -> None:
    trace = folder / f"{name}.jsonl"
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def kept(each: ScoredRun) -> None:
        run_store.store_run(store, each, run_store.RunDescription(run_id=name, created_at=WHEN))

    chunks = folder / f"{name}-chunks.jsonl" if listed else None
    if chunks is not None:
        chunks.write_text("".join(json.dumps(row) + "\n" for row in listed), "utf-8")
    score.score(
        gold, trace, keep=kept, profile="all", k=KS, intervals=False, dialect="native",
        chunks=chunks,
    )  # fmt: skip


def told(
    store: Store, folder: Path, name: str, gold: list[Row], a: list[Row], b: list[Row],
    overlaps: tuple[Overlap, ...], lists: tuple[list[Row], list[Row]] = ([], []),
) -> list[Comparison]:  # fmt: skip
    """Store two runs and compare them, once for each way to count an overlap."""
    path = folder / f"{name}-gold.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in gold), "utf-8")
    keep(store, folder, path, f"{name}-a", a, lists[0])
    keep(store, folder, path, f"{name}-b", b, lists[1])
    return [
        compare_module.compare_runs(store, f"{name}-a", f"{name}-b", overlap=each, gated=GATED)
        for each in overlaps
    ]


def differences(found: Comparison, wanted: Compared) -> list[str]:
    """All that the two say differently."""
    wrong: list[str] = []

    def check(what: str, one: object, other: object) -> None:
        if one != other:
            wrong.append(f"{what}: {one}, not {other}")

    questions = {each.query_id: each for each in found.per_query}
    check("questions", sorted(questions), sorted(wanted.questions))
    for qid, each in wanted.questions.items():
        question = questions[qid]
        check(f"{qid} rungs", question.rungs, each.rungs)
        check(f"{qid} kind", question.kind, each.kind)
        for side, rank, ranks, value, reciprocal in (
            ("a", question.a_hit_rank, each.ranks_a, question.a_reciprocal, each.reciprocal_a),
            ("b", question.b_hit_rank, each.ranks_b, question.b_reciprocal, each.reciprocal_b),
        ):
            check(f"{qid} rank in {side}", rank, ranks[0] if len(ranks) == 1 else None)
            if value is None or reciprocal is None:
                check(f"{qid} reciprocal in {side}", value, reciprocal)
            elif value != pytest.approx(float(reciprocal), abs=1e-9):
                check(f"{qid} reciprocal in {side}", value, float(reciprocal))
    check("rungs", {name: n for name, n in found.rungs.items() if n}, wanted.rungs)
    check("match", found.match, wanted.match)
    check("kinds", {name: n for name, n in found.kinds.items() if n}, wanted.kinds)

    deltas = {each.metric: each for each in found.deltas}
    for name, metric in wanted.metrics.items():
        delta = deltas[name]
        check(f"{name} n", delta.n, metric.n)
        for what, got, right in (
            ("a", delta.a, metric.a), ("b", delta.b, metric.b), ("delta", delta.delta, metric.delta)
        ):  # fmt: skip
            if got is None or right is None:
                check(f"{name} {what}", got, right)
            elif got != pytest.approx(float(right), abs=1e-9):
                check(f"{name} {what}", got, float(right))
        if metric.n:
            check(f"{name} test", delta.test, "permutation" if metric.p is None else "mcnemar")
        if metric.p is not None and delta.p != pytest.approx(float(metric.p), abs=1e-12):
            check(f"{name} p", delta.p, float(metric.p))
    corrected = holm({name: p for name in GATED if (p := deltas[name].p) is not None})
    for delta in found.deltas:
        p = corrected.get(delta.metric)
        if p is None or delta.p_holm != pytest.approx(p, abs=1e-12):
            check(f"{delta.metric} p_holm", delta.p_holm, p)
    return wrong


@pytest.mark.parametrize("first", seeds(90, step=PER_STORE))
def test_comparisons_are_those_of_the_oracle(tmp_path: Path, first: int) -> None:
    wrong: dict[str, list[str]] = {}
    with run_store.opened_store(f"sqlite:///{tmp_path / 'runs.db'}", create=True) as store:
        for seed in range(first, first + PER_STORE):
            scenario, gold, a, b = case(seed)
            overlaps: tuple[Overlap, ...] = OVERLAPS if seed % 3 == 0 else OVERLAPS[:1]
            if set(compare(gold, a, b, ks=KS).rungs) == {"none"}:
                with pytest.raises(RagaugeError, match="nothing that is expected is recognised"):
                    told(store, tmp_path, str(seed), gold, a, b, overlaps)
                continue
            made = told(store, tmp_path, str(seed), gold, a, b, overlaps)
            for overlap, found in zip(overlaps, made, strict=True):
                right = compare(gold, a, b, ks=KS, overlap=overlap)
                if each := differences(found, right):
                    wrong[f"{seed}, {scenario}, {overlap}"] = each
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


@pytest.mark.parametrize("first", seeds(45, step=PER_STORE))
def test_comparisons_with_lists_are_those_of_the_oracle(tmp_path: Path, first: int) -> None:
    wrong: dict[str, list[str]] = {}
    with run_store.opened_store(f"sqlite:///{tmp_path / 'runs.db'}", create=True) as store:
        for seed in range(first, first + PER_STORE):
            scenario, gold, a, b, lists = listed(seed)
            right = compare(gold, a, b, ks=KS, lists=lists)
            if set(right.rungs) == {"none"}:
                continue  # refused, as without lists
            (found,) = told(store, tmp_path, str(seed), gold, a, b, OVERLAPS[:1], lists)
            if each := differences(found, right):
                wrong[f"{seed}, {scenario}"] = each
    assert not wrong, json.dumps(wrong, indent=1, ensure_ascii=False)


def test_the_cases_are_worth_comparing() -> None:
    """Every scenario, rung and kind is there many times, on each kind of evidence."""
    rungs: Counter[str] = Counter()
    kinds: Counter[str | None] = Counter()
    scenarios: Counter[str] = Counter()
    for seed in range(CASES):
        scenario, gold, a, b = case(seed)
        scenarios[scenario] += 1
        found = compare(gold, a, b, ks=KS)
        rungs.update(found.rungs)
        kinds.update(each.kind for each in found.questions.values())
    assert set(scenarios) == set(SCENARIOS)
    assert min(rungs[rung] for rung in RUNGS) >= 20, rungs
    assert min(kinds[kind] for kind in ("regression", "loss", "win", "draw", None)) >= 50, kinds
