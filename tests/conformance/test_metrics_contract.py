"""Every registered metric keeps the contract of a metric, on every kind of run."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ragauge.metrics
from ragauge import registry
from ragauge.join import batch_of
from ragauge.model.batch import Batch
from ragauge.model.metric import Metric
from tests.conformance.runs import ORDINARY_GOLD, ORDINARY_TRACE, random_rows, scored

METRICS = list(registry.metrics().values())
PROFILES = list(registry.profiles())
CUT_OFFS = (1, 2, 5)
EXAMPLE_K = 5
RANDOM_RUNS = 40

each_metric = pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.id)
each_profile = pytest.mark.parametrize("profile", PROFILES)


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> list[Batch]:
    """Batches of records as runs of every profile really make them."""
    folder = tmp_path_factory.mktemp("batches")
    found: list[Batch] = []

    def keep(*arguments: Any, **options: Any) -> Batch:
        found.append(batch_of(*arguments, **options))
        return found[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragauge.scoring.batch_of", keep)
        for seed in range(RANDOM_RUNS):
            for profile in PROFILES:
                scored(folder, *random_rows(seed), profile=profile, k=5, intervals=False)
    assert sum(batch.size for batch in found) > 10 * RANDOM_RUNS
    return found


@each_metric
def test_id_is_family_and_name(metric: Metric) -> None:
    """An id is `family.name` in lower case; the cut-off is not part of it."""
    assert re.fullmatch(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*", metric.id)


def test_family_is_the_module() -> None:
    """A metric is found in the module that its family names, and the registry has them all."""
    found: list[str] = []
    for module in pkgutil.iter_modules(ragauge.metrics.__path__):
        metrics = importlib.import_module(f"ragauge.metrics.{module.name}").METRICS
        assert {metric.id.partition(".")[0] for metric in metrics} == {module.name}
        found += [metric.id for metric in metrics]
    assert len(found) == len(set(found))
    assert set(found) <= set(registry.metrics())
    assert list(registry.metrics()) == sorted(registry.metrics())


@each_metric
def test_says_what_it_is(metric: Metric) -> None:
    """Title, formula, source and population are stated, and so is which way is better."""
    stated = (metric.title, metric.formula, metric.source, metric.over.name, metric.over.meaning)
    assert all(text.strip() for text in stated)
    assert all(requirement.reason for requirement in metric.over.requires)
    assert metric.better in ("higher", "lower")
    assert metric.version >= 1


@each_metric
def test_has_a_value_or_a_share(metric: Metric) -> None:
    """A metric gives a value for each record, or is one count over another, never both."""
    assert (metric.value is None) != (metric.share is None)
    assert not (metric.share is not None and metric.at_k)


@each_metric
def test_example_gives_the_stated_value(metric: Metric, tmp_path: Path) -> None:
    """The worked example, put into files and scored, gives its value to the last bit."""
    example = metric.example
    name = f"{metric.id}@{EXAMPLE_K}" if metric.at_k else metric.id
    scores = scored(
        tmp_path, [example.gold], [example.trace], profile="all", k=EXAMPLE_K, metrics=[name]
    )
    assert list(scores.metrics) == [name]
    assert scores.metrics[name].value == example.value
    assert example.arithmetic.strip()


@each_metric
def test_values_are_a_vector_in_range(metric: Metric, batches: list[Batch]) -> None:
    """One value for each record, from 0 to 1 inside the population; 0 or 1 where it is binary."""
    if metric.value is None:
        return
    inside_any = 0
    for batch in batches:
        inside, _ = metric.over.members(batch)
        for k in CUT_OFFS:
            values = np.asarray(metric.value(batch, k))
            assert values.shape == (batch.size,)
            member = values[inside].astype(np.float64)
            assert np.all((member >= 0) & (member <= 1))  # false for nan too
            if metric.binary:
                assert np.all((member == 0) | (member == 1))
        inside_any += int(inside.sum())
    assert inside_any > 0


@each_metric
def test_value_is_pure(metric: Metric, batches: list[Batch]) -> None:
    """Asking twice gives the same: a metric keeps nothing and changes nothing."""
    if metric.value is None:
        return
    for batch in batches[:20]:
        once = np.array(metric.value(batch, 2), copy=True)
        assert np.array_equal(once, metric.value(batch, 2))


@each_metric
def test_population_covers_every_record(metric: Metric, batches: list[Batch]) -> None:
    """A record is in the population or left out for one reason, and the reasons are stated."""
    stated = {requirement.reason for requirement in metric.over.requires}
    for batch in batches:
        inside, excluded = metric.over.members(batch)
        assert inside.shape == (batch.size,)
        assert inside.dtype == np.bool_
        assert int(inside.sum()) + sum(excluded.values()) == batch.size
        assert excluded.keys() <= stated


@each_profile
@each_metric
def test_an_empty_run_is_null_with_a_reason(metric: Metric, profile: str, tmp_path: Path) -> None:
    """No gold and no traces: every value is null, says why, and nothing is raised."""
    scores = scored(tmp_path, [], [], profile=profile, k=5, metrics=[metric.id])
    (result,) = scores.metrics.values()
    assert result.value is None
    assert result.reason
    assert result.interval is None
    assert (result.n, result.records) == (0, 0)


@each_profile
def test_traces_without_gold_are_unknown(profile: str, tmp_path: Path) -> None:
    """An empty gold set makes every trace unknown and nothing else."""
    scores = scored(tmp_path, [], ORDINARY_TRACE, profile=profile, k=5)
    assert scores.tally.unknown == scores.tally.traces == len(ORDINARY_TRACE)
    values = {name: result.value for name, result in scores.metrics.items()}
    assert values.pop("run.unknown") == 1.0
    assert values.pop("run.duplicate") == 0.0
    assert set(values.values()) == {None}


@each_profile
def test_gold_without_traces_is_scored(profile: str, tmp_path: Path) -> None:
    """No trace at all is a run in which all is missing; whatever is null says why."""
    scores = scored(tmp_path, ORDINARY_GOLD, [], profile=profile, k=5)
    assert scores.tally.missing == len(ORDINARY_GOLD)
    for result in scores.metrics.values():
        assert (result.value is None) == bool(result.reason)
        assert (result.value is None) == (result.n == 0)


@each_profile
@pytest.mark.parametrize("seed", range(0, RANDOM_RUNS, 4))
def test_left_out_and_counted_add_up(profile: str, seed: int, tmp_path: Path) -> None:
    """Every record is counted or left out by name, whatever the metric; n never exceeds records."""
    scores = scored(tmp_path, *random_rows(seed), profile=profile, k=5)
    tally = scores.tally
    total = tally.scored + (tally.missing if profile != "smoke" else 0)
    for name, result in scores.metrics.items():
        if registry.metrics()[name.partition("@")[0]].share is not None:
            assert result.records == tally.traces
            continue
        assert result.records + sum(result.excluded.values()) == total, name
        assert all(count > 0 for count in result.excluded.values())
        assert result.n <= min(result.records, tally.gold)
        assert (result.value is None) == (result.n == 0)
        if result.interval is not None:
            low, high = result.interval
            assert 0 <= low <= high <= 1
        # A number of numpy's cannot be written as JSON.
        numbers = [result.value, *(result.interval or ())]
        assert {type(number) for number in numbers} <= {float, type(None)}


def test_an_ordinary_run_measures_every_family(tmp_path: Path) -> None:
    """The run that reports are held against has a value in each family, so it can show them."""
    scores = scored(tmp_path, ORDINARY_GOLD, ORDINARY_TRACE, profile="all", k=5)
    valued = {name.partition(".")[0] for name, each in scores.metrics.items() if each.value}
    assert {"answer", "citation", "refusal", "retrieval", "run"} <= valued
