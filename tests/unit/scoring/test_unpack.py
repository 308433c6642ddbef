"""Stored runs are read back by workers or in this process, and what goes wrong is told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ragauge.compare import align, common_gold
from ragauge.compare import align as align_module
from ragauge.errors import RagaugeError
from ragauge.model.run import Store
from ragauge.scoring.engines import choose
from ragauge.scoring.engines.choose import Engine
from ragauge.scoring.engines.local import InProcess, Subprocesses
from ragauge.scoring.tasks.task import RangeTask
from ragauge.scoring.tasks.unpack import WHOLE_RUN, Unpack, unpack_run
from ragauge.store import runs as run_store
from tests.support.stored_runs import URL, change, put

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def store() -> Iterator[Store]:
    with run_store.opened_store(URL, create=True) as opened:
        for name in ("a", "b", "c"):
            put(opened, name)
        yield opened


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_runs_are_unpacked_by_any_number_of_workers(
    store: Store, tmp_path: Path, workers: int
) -> None:
    """Three runs for two workers: the third waits for its turn."""
    with ExitStack() as stack:
        engine: Engine = InProcess()
        if workers > 1:
            engine = stack.enter_context(Subprocesses(workers))
        waiting = [
            engine.map(RangeTask(Unpack(store.url, name, str(tmp_path / name))), WHOLE_RUN)
            for name in "abc"
        ]
        found = [next(results) for results in waiting]
    assert [each.problem_count for each in found] == [0, 0, 0]
    assert not any(each.failure for each in found)
    assert lines(tmp_path / "a") == lines(tmp_path / "b") == lines(tmp_path / "c")
    assert len(lines(tmp_path / "a")) == sum(1 for _ in store.payloads("a"))


def test_a_row_that_cannot_be_unpacked_is_named_and_the_others_are_there(
    store: Store, tmp_path: Path
) -> None:
    change("UPDATE eval_query_results SET result_json = x'00' WHERE run_id = 'a' AND ordinal = 1")
    found = unpack_run(store.url, "a", str(tmp_path / "a"))
    assert found.problem_count == len(found.problems) == 1
    whole = unpack_run(store.url, "b", str(tmp_path / "b"))
    assert whole.problem_count == 0
    assert lines(tmp_path / "a") == [
        line for place, line in enumerate(lines(tmp_path / "b")) if place != 1
    ]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_store_that_is_gone_is_an_error_of_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(store, "url", "sqlite:///gone.db")
    monkeypatch.setattr(choose, "_worker_count", lambda *_: workers)
    with pytest.raises(RagaugeError) as error:
        run_store.recompute_scores(store, run_store.find_run(store, "a"))
    assert error.value.code == "store-unavailable"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_two_runs_are_scored_again_side_by_side(
    store: Store, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """Another overlap asks for both sides again; they share the workers."""
    monkeypatch.setattr(choose, "_worker_count", lambda *_: workers)
    runs = [common_gold.StoredRun(store, run_store.find_run(store, name)) for name in ("a", "b")]
    aligned = align.align(*runs, overlap="single")
    assert aligned.a.per_question is not None
    assert aligned.b.per_question is not None
    assert {name: each.value for name, each in aligned.a.metrics.items()} == {
        name: each.value for name, each in aligned.b.metrics.items()
    }
    alone = run_store.recompute_scores(store, runs[0].record)
    for name, each in aligned.a.metrics.items():
        assert each.value == alone.metrics[name].value


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("failing", [1, 2])
def test_a_failure_on_one_side_does_not_leave_the_other_waiting(
    store: Store, monkeypatch: pytest.MonkeyPatch, workers: int, failing: int
) -> None:
    monkeypatch.setattr(choose, "_worker_count", lambda *_: workers)
    runs = [common_gold.StoredRun(store, run_store.find_run(store, name)) for name in ("a", "b")]
    calls: list[int] = []

    def begun(self: Any, place: int, *rest: Any) -> Any:
        calls.append(place)
        if len(calls) == failing:
            raise KeyboardInterrupt
        return scored(self, place, *rest)

    scored = align_module.RunRescorer.score
    monkeypatch.setattr(align_module.RunRescorer, "score", begun)
    with pytest.raises(KeyboardInterrupt):
        align.align(*runs, overlap="single")
    assert len(calls) == failing
