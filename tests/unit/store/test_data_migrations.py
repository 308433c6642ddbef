"""Stores that an older ragauge wrote: migrated without loss, and back; on both databases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.model.scores import Scores
from ragauge.store import packed_slices
from ragauge.store import runs as run_store
from ragauge.store.databases import data_migrations, migration_steps
from ragauge.store.packed_slices import join_slices
from tests.support.old_stores import make_store_v3, rows_of_v3
from tests.support.postgres import own_schema, server_url

SERVER = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]
KINDS = ["sqlite", pytest.param("postgres", marks=SERVER)]


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store of version 3, as the code of then wrote it."""
    if request.param == "sqlite":
        made = f"sqlite:///{tmp_path / 'runs.db'}"
        make_store_v3(made)
        yield made
        return
    with own_schema(server_url(request.config)) as own:
        make_store_v3(own)
        yield own


def migrate_to(url: str, version: int) -> None:
    from ragauge.store.databases import postgres, sqlite

    (sqlite if url.startswith("sqlite") else postgres).migrate_to(url, version)


def aggregates(rows: dict[str, list[tuple[Any, ...]]]) -> list[str]:
    return [text for table in ("eval_runs", "eval_scorings") for row in rows[table]
            for text in row if isinstance(text, str) and '"metrics"' in text[:2000]
            and text.startswith('{"schema"')]  # fmt: skip


def test_an_old_store_is_migrated_without_loss_and_can_go_back(url: str) -> None:
    """Two runs, three scorings: every aggregate had slices, and none has them now."""
    before = rows_of_v3(url)
    assert len(aggregates(before)) == 5
    assert all('"slices":{"type"' in text for text in aggregates(before))
    run_store.open_store(url).close()
    after = rows_of_v3(url)
    assert [text for text in aggregates(after) if '"slices"' in text] == []
    assert [json.loads(text)["metrics"] for text in aggregates(after)] == [
        json.loads(text)["metrics"] for text in aggregates(before)
    ]
    for table in ("eval_query_results", "eval_gold_items", "eval_metric_values", "eval_tags"):
        assert after[table] == before[table]
    migrate_to(url, 3)
    assert rows_of_v3(url) == before  # byte by byte


def test_scores_of_an_old_store_are_read_with_their_slices(url: str) -> None:
    before = rows_of_v3(url)
    with run_store.opened_store(url) as store:
        for run_id in ("monday", "tuesday"):
            run = run_store.find_run(store, run_id)
            assert (run.branch, run.author, run.dirty) == (None, None, None)
            scores = run_store.run_scores(store, run)
            stored = [row for row in before["eval_scorings"] if row[0] == run_id]
            number, text = max((row[1], row[4]) for row in stored)
            saved = json.loads(text)["slices"]
            assert {
                dimension: {name: part.n for name, part in parts.items()}
                for dimension, parts in scores.slices.items()
            } == {
                dimension: {name: part["n"] for name, part in parts.items()}
                for dimension, parts in saved.items()
            }
            assert number == len(stored)
            fact = scores.slices["type"]["fact"].metrics
            assert {name: [one.value, *(one.interval or ())] for name, one in fact.items()} == {
                name: entry["unrounded"] for name, entry in saved["type"]["fact"]["metrics"].items()
            }
            assert fact
        assert [scoring.number for scoring in store.scorings("monday")] == [1, 2]
        first = store.scorings("monday")[0]
        # The first scoring has slices of its own: 6 questions, where the second has 7.
        assert json.loads(join_slices(first.aggregate, first.slices))["slices"]["type"]["fact"][
            "n"] == 6  # fmt: skip
        assert run_store.find_run(store, "nightly").run_id == "monday"


def test_an_old_run_is_rescored_and_only_versions_have_changed(url: str) -> None:
    """Slices that are packed now are the same slices; a newer formula finds the same values."""
    with run_store.opened_store(url) as store:
        run = run_store.find_run(store, "tuesday")
        before = run_store.run_scores(store, run)
        changes = run_store.rescore(store, run).changes
        assert changes
        for change in changes:  # newer versions, the same numbers
            assert change.old is not None
            assert change.new is not None
            assert change.new.version > change.old.version
            assert (change.new.value, change.new.n) == (change.old.value, change.old.n)
        after = run_store.run_scores(store, run_store.find_run(store, "tuesday"))
        assert _slice_values(after) == _slice_values(before)
        assert _slice_values(after)


def _slice_values(scores: Scores) -> list[tuple[str, str, str, float | None]]:
    return [
        (dimension, name, metric, result.value)
        for dimension, parts in scores.slices.items()
        for name, part in parts.items()
        for metric, result in part.metrics.items()
    ]


def test_a_migration_that_is_stopped_among_the_rows_leaves_the_old_store(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows_of_v3(url)
    calls = []

    def stopped(text: str) -> Any:
        calls.append(text)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return split(text)

    split = packed_slices.split_slices
    monkeypatch.setattr(data_migrations, "split_slices", stopped)
    with pytest.raises(KeyboardInterrupt):
        run_store.open_store(url)
    assert rows_of_v3(url) == before
    monkeypatch.undo()
    with run_store.opened_store(url) as store:
        assert len(store.runs()) == 2


def test_slices_that_stand_nowhere_else_stay_in_the_aggregate_of_the_run(url: str) -> None:
    """A run without scorings, as version 1 had them."""
    migrate_to(url, 1)
    with run_store.opened_store(url) as store:
        run = run_store.find_run(store, "monday")
        assert '"slices":{"type"' in run.aggregate
        assert store.scorings("monday") == []


def test_a_newer_store_is_refused_before_anything_is_touched(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows_of_v3(url)
    older = migration_steps.migrations("sqlite")[:2], migration_steps.migrations("postgres")[:2]
    by_name = dict(zip(("sqlite", "postgres"), older, strict=True))
    monkeypatch.setattr(migration_steps, "migrations", by_name.__getitem__)
    with pytest.raises(RagaugeError) as error, closing(run_store.open_store(url)):
        pass
    assert error.value.code == "newer-store"
    assert rows_of_v3(url) == before
