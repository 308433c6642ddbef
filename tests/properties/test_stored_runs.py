"""A run that went into a store comes out as it was, and scores to the same numbers again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragauge.compare import align, common_gold, compare
from ragauge.model.comparison import RANKS
from ragauge.model.run import RunRecord, Store
from ragauge.model.scores import Scores
from ragauge.scoring import score
from ragauge.scoring.inputs import ScoredRun
from ragauge.store import runs as run_store
from ragauge.store.stored_scores import aggregate_document
from tests.oracles.full_cases import case
from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]
WHEN = "2026-01-01T00:00:00Z"


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def stored(
    store: Store, gold: Path, trace: Path, run_id: str, **options: Any
) -> tuple[Scores, RunRecord]:
    """Score files and store the run; what was kept, and the record."""
    kept: list[Scores] = []

    def keep(each: ScoredRun) -> None:
        run_store.store_run(store, each, run_store.RunDescription(run_id=run_id, created_at=WHEN))
        kept.append(each.scores)

    score.score(gold, trace, keep=keep, **options)
    return kept[0], run_store.find_run(store, run_id)


def same(one: Scores, other: Scores) -> None:
    """Two scores are the same in all that a document, a gate or a comparison reads."""
    assert aggregate_document(one) == aggregate_document(other)
    assert list(one.questions) == list(other.questions)
    a, b = one.per_question, other.per_question
    assert a is not None
    assert b is not None
    assert (a.metrics, list(a.qids), list(a.turns)) == (b.metrics, list(b.qids), list(b.turns))
    assert list(a.hashes) == list(b.hashes)
    assert np.array_equal(a.values, b.values, equal_nan=True)


@cases("seed", range(0, 40, 2))
def test_stored_scores_and_scores_made_again_are_those_of_the_run(
    tmp_path: Path, seed: int
) -> None:
    gold, trace = case(seed)
    with run_store.opened_store(f"sqlite:///{tmp_path / 'runs.db'}", create=True) as store:
        scores, run = stored(
            store, write(tmp_path, "gold.jsonl", gold), write(tmp_path, "trace.jsonl", trace),
            "r", profile="all", intervals=seed % 8 == 0,
        )  # fmt: skip
        same(run_store.run_scores(store, run), scores)
        same(run_store.recompute_scores(store, run), scores)
        assert run_store.rescore(store, run).number is None  # nothing changed: nothing is added
        assert len(store.scorings("r")) == 1
        each_row_has_the_values_of_its_question(store, scores)


def each_row_has_the_values_of_its_question(store: Store, scores: Scores) -> None:
    values = scores.per_question
    assert values is not None
    places = {key: i for i, key in enumerate(zip(values.qids, values.turns, strict=True))}
    known = 0
    for row in store.results("r", values=True):
        place = places.get((row.facts.query_id, row.facts.turn))
        place = places.get((row.facts.query_id, None)) if place is None else place
        if row.facts.outcome == "unknown":
            assert row.values is None
        else:
            assert row.values is not None
            assert place is not None
            assert np.array_equal(
                np.array(json.loads(row.values), np.float64), values.values[:, place],
                equal_nan=True,
            )  # fmt: skip
            known += 1
    assert known > 0


@cases("seed", range(1, 40, 3))
def test_a_run_compared_with_itself_is_all_draws_and_no_metric_moves(
    tmp_path: Path, seed: int
) -> None:
    gold, trace = case(seed)
    with run_store.opened_store(f"sqlite:///{tmp_path / 'runs.db'}", create=True) as store:
        _, run = stored(
            store, write(tmp_path, "gold.jsonl", gold), write(tmp_path, "trace.jsonl", trace),
            "r", profile="all", intervals=False,
        )  # fmt: skip
        side = common_gold.StoredRun(store, run)
        told = compare.describe_run(side)[0]
        found = compare.compare(align.align(side, side), told, told)
    assert {each.kind for each in found.per_query} <= {"draw", None}
    assert {each.delta for each in found.deltas} <= {0.0, None}
    assert {each.p for each in found.deltas} <= {1.0, None}
    assert found.match in ("exact", "none")


@cases("seed", range(0, 40, 4))
def test_two_runs_compare_the_same_from_the_store_and_scored_again(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all ids hold, stored values are used; scoring the stored traces gives the same."""
    gold, trace = case(seed)
    other = [row for place, row in enumerate(trace) if place % 5]
    with run_store.opened_store(f"sqlite:///{tmp_path / 'runs.db'}", create=True) as store:
        path = write(tmp_path, "gold.jsonl", gold)
        sides = []
        for name, rows in (("a", trace), ("b", other)):
            file = write(tmp_path, f"{name}.jsonl", rows)
            _, run = stored(store, path, file, name, profile="all", intervals=False)
            sides.append(common_gold.StoredRun(store, run))
        quick = align.align(*sides)
        monkeypatch.setattr(align, "_stored_scores", lambda _: None)
        slow = align.align(*sides)
    assert quick.counts == slow.counts
    for one, two in ((quick.a, slow.a), (quick.b, slow.b)):
        assert {name: each.value for name, each in one.metrics.items()} == {
            name: each.value for name, each in two.metrics.items()
        }
        assert one.per_question is not None
        assert two.per_question is not None
        assert set(RANKS) <= set(one.per_question.metrics)
        for name in one.per_question.metrics:
            left, right = one.per_question.of(name), two.per_question.of(name)
            assert np.array_equal(left, right, equal_nan=True), name


@cases("seed", range(2, 40, 4))
def test_a_comparison_turned_round_has_opposite_deltas_and_kinds(tmp_path: Path, seed: int) -> None:
    gold, trace = case(seed)
    other = list(reversed(trace))[: max(1, len(trace) * 3 // 4)]
    with run_store.opened_store(f"sqlite:///{tmp_path / 'runs.db'}", create=True) as store:
        path = write(tmp_path, "gold.jsonl", gold)
        sides = []
        for name, rows in (("a", trace), ("b", other)):
            file = write(tmp_path, f"{name}.jsonl", rows)
            _, run = stored(store, path, file, name, profile="all", intervals=False)
            sides.append(common_gold.StoredRun(store, run))
        a, b = sides
        told = [compare.describe_run(each)[0] for each in sides]
        there = compare.compare(align.align(a, b), told[0], told[1])
        back = compare.compare(align.align(b, a), told[1], told[0])
    assert there.rungs == back.rungs
    turned = {each.metric: each for each in back.deltas}
    for each in there.deltas:
        again = turned[each.metric]
        assert (each.a, each.b, each.n, each.p) == (again.b, again.a, again.n, again.p)
        if each.delta is not None:
            assert again.delta == pytest.approx(-each.delta, abs=1e-15)
    kinds = {(each.query_id, each.turn): each for each in back.per_query}
    for found in there.per_query:
        other_kind = kinds[found.query_id, found.turn].kind
        assert other_kind in TURNED[found.kind], found.query_id


TURNED: dict[str | None, tuple[str | None, ...]] = {
    None: (None,),
    "draw": ("draw",),
    "win": ("loss", "regression"),
    "loss": ("win",),
    "mixed": ("mixed", "regression"),  # one lost and one gained, or two gained
    "regression": ("win", "mixed"),
}
"""What a kind may be when the two runs change places."""


@pytest.mark.parametrize(
    ("gold", "trace", "profile"),
    [
        ("src/ragauge/cli/demo_data/gold.jsonl", "src/ragauge/cli/demo_data/trace.jsonl", "ship"),
        ("examples/canary/gold.jsonl", "examples/canary/live.jsonl", "canary"),
        ("src/ragauge/cli/demo_data/gold.jsonl", "src/ragauge/cli/demo_data/trace.jsonl", "smoke"),
    ],
)
def test_profiles_that_follow_a_source_are_scored_again_alike(
    tmp_path: Path, gold: str, trace: str, profile: str
) -> None:
    with run_store.opened_store(f"sqlite:///{tmp_path / 'runs.db'}", create=True) as store:
        scores, run = stored(store, ROOT / gold, ROOT / trace, "r", profile=profile)
        same(run_store.recompute_scores(store, run), scores)


def test_workers_and_ranges_do_not_change_what_is_stored(tmp_path: Path) -> None:
    gold, trace = case(4)
    rows = [{**row, "padding": "x" * 40_000} for row in trace for _ in range(3)]
    path = write(tmp_path, "gold.jsonl", gold)
    file = write(tmp_path, "trace.jsonl", rows)
    assert file.stat().st_size > 1 << 20  # more than one range
    found = []
    for workers in (1, 2):
        with run_store.opened_store(
            f"sqlite:///{tmp_path / f'{workers}.db'}", create=True
        ) as store:
            _, run = stored(store, path, file, "r", profile="all", workers=workers)
            found.append((run, list(store.results("r", values=True))))
    assert found[0] == found[1]
    assert [row.facts.ordinal for row in found[0][1]] == list(range(len(rows)))
