"""Every registered metric keeps the contract of a metric, on every kind of run."""

from __future__ import annotations

import importlib
import math
import pkgutil
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import Struct
from numpy.typing import NDArray

import ragauge.metrics
from ragauge import registry
from ragauge.metrics.batch import Batch
from ragauge.metrics.facts import LAMBDA_STATES
from ragauge.metrics.metric import SHARES, Metric
from ragauge.metrics.questions import Questions
from ragauge.model.scores import MetricResult
from ragauge.scoring.join import batch_of
from tests.conformance.runs import ORDINARY_GOLD, ORDINARY_TRACE, random_rows, scored
from tests.support.cases import cases

# All in one process: the runs that the tests look at take seconds to make.
pytestmark = pytest.mark.xdist_group("metrics contract")
METRICS = list(registry.metrics().values())
PROFILES = list(registry.profiles())
CUT_OFFS = (1, 2, 5)
EXAMPLE_K = 5
RANDOM_RUNS = 20
CLOSE = 1e-12
NEVER_FALLING = (
    "retrieval.recall", "retrieval.recall_all", "retrieval.hit", "retrieval.mrr", "retrieval.map",
    "retrieval.recall_doc", "retrieval.hit_doc", "retrieval.mrr_doc", "retrieval.group_recall",
    "retrieval.anchor_hit", "retrieval.span_recall",
)  # fmt: skip
"""Metrics that a longer list can only raise."""

Floats = NDArray[np.float64]

each_metric = cases("metric", METRICS, ids=lambda metric: metric.id)
each_profile = cases("profile", PROFILES)


class Seen(Struct, frozen=True):
    """What runs really made: batches of records, and the questions of each run."""

    batches: list[Batch]
    questions: list[Questions]

    def of(self, metric: Metric) -> list[Batch] | list[Questions]:
        """What a metric and its population are asked of."""
        return self.batches if metric.of_question is None else self.questions


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """Batches and questions of runs of every profile."""
    folder = tmp_path_factory.mktemp("runs")
    found = Seen([], [])

    def keep_batch(*arguments: Any, **options: Any) -> Batch:
        found.batches.append(batch_of(*arguments, **options))
        return found.batches[-1]

    def keep_questions(**columns: Any) -> Questions:
        found.questions.append(Questions(**columns))
        return found.questions[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragauge.scoring.scoring_run.batch_of", keep_batch)
        patch.setattr("ragauge.scoring.sums.Questions", keep_questions)
        for seed in range(RANDOM_RUNS):
            for profile in PROFILES:
                scored(folder, *random_rows(seed), profile=profile, k=5, intervals=False)
    assert sum(batch.size for batch in found.batches) > 10 * RANDOM_RUNS
    assert len(found.questions) == RANDOM_RUNS * len(PROFILES)
    return found


def _cuts(metric: Metric) -> tuple[int, ...]:
    """The cut-offs to try; 0 is all hits for a metric that may be cut."""
    return (0, *CUT_OFFS) if metric.may_cut else CUT_OFFS


def _values(metric: Metric, of: Batch | Questions, k: int) -> list[Floats]:
    """What a metric gives for each record or question: one number, or the two of a ratio."""
    given: tuple[Any, ...] = ()
    if isinstance(of, Questions):
        assert metric.of_question is not None
        given = (metric.of_question(of),)
    elif metric.ratio is not None:
        given = metric.ratio(of, k)
    elif metric.value is not None:
        given = (metric.value(of, k),)
    return [np.asarray(each, np.float64) for each in given]


def _retrieval(name: str, batch: Batch, k: int) -> Floats:
    return _values(registry.metrics()[f"retrieval.{name}"], batch, k)[0]


def _null_fits(name: str, result: MetricResult) -> bool:
    """Null is for an empty population; a ratio may also have a denominator of 0."""
    if result.value is None and result.n > 0:
        return registry.metrics()[name.partition("@")[0]].ratio is not None
    return (result.value is None) == (result.n == 0)


@each_metric
def test_id_is_family_and_name(metric: Metric) -> None:
    """An id is `family.name` in lower case, perhaps with a sign of λ; it holds no cut-off."""
    sign = "|".join(map(re.escape, LAMBDA_STATES))
    assert re.fullmatch(rf"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*(?:{sign})?", metric.id)


def test_family_is_the_module() -> None:
    """A metric is found in a module that its family names, and the registry has them all.

    A family that is too much for one file goes on in `family_more`.
    """
    found: list[str] = []
    for module in pkgutil.iter_modules(ragauge.metrics.__path__):
        metrics = getattr(importlib.import_module(f"ragauge.metrics.{module.name}"), "METRICS", ())
        if not metrics:  # what the families share
            continue
        (family,) = {metric.id.partition(".")[0] for metric in metrics}
        assert module.name == family or module.name.startswith(f"{family}_")
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
def test_is_measured_in_one_way(metric: Metric) -> None:
    """Exactly one function says what is measured, and the other fields fit it."""
    ways = (metric.value, metric.ratio, metric.of_question, metric.share)
    assert sum(way is not None for way in ways) == 1
    assert not (metric.at_k and metric.may_cut)
    if metric.at_k or metric.may_cut or metric.quantile is not None or metric.undefined is not None:
        assert metric.value is not None
    assert not (metric.binary and (metric.quantile or metric.ratio or metric.sums))
    assert not metric.sums or metric.value is not None
    assert metric.aggregate in ("mean", "ratio", "share", "sum", *SHARES)


@each_metric
def test_range_is_an_interval(metric: Metric) -> None:
    """A range has two ends; what is 0 or 1 has that one, and larger values have a coarser unit."""
    low, high = metric.range
    assert low < high
    assert not metric.binary or metric.range == (0.0, 1.0)
    # Sums are kept for each question: those of a thousand slots must fit 64 bits.
    assert max(-low, high) * metric.unit * 1000 < 2**63


@each_metric
def test_example_gives_the_stated_value(metric: Metric, tmp_path: Path) -> None:
    """The worked example, put into files and scored, gives its value.

    Values are summed in a fixed small unit, so the last bits may be other ones.
    """
    example = metric.example
    rows = example.trace if isinstance(example.trace, list) else [example.trace]
    name = f"{metric.id}@{EXAMPLE_K}" if metric.at_k else metric.id
    scores = scored(tmp_path, [example.gold], rows, profile="all", k=EXAMPLE_K, metrics=[name])
    assert list(scores.metrics) == [name]
    value = scores.metrics[name].value
    if example.value is None or value is None:
        assert value is example.value
    else:
        assert math.isclose(value, example.value, rel_tol=0, abs_tol=CLOSE)
    assert example.arithmetic.strip()


@each_metric
def test_values_are_a_vector_in_range(metric: Metric, seen: Seen) -> None:
    """One value for each record or question, in the metric's range inside the population.

    A value may be nan only where the metric says why; 0 or 1 where it is binary. The two numbers
    of a ratio are such that whatever is divided lies in the range.
    """
    if metric.share is not None:
        return
    low, high = metric.range
    counted = 0
    for each in seen.of(metric):
        inside, _ = metric.over.members(each)
        for k in _cuts(metric):
            values = _values(metric, each, k)
            assert all(value.shape == (each.size,) for value in values)
            member = values[0][inside]
            defined = ~np.isnan(member)
            assert metric.undefined is not None or defined.all()
            bottom = values[1][inside] if metric.ratio is not None else np.ones(len(member))
            assert np.all(bottom >= 0)
            assert np.all(member[defined] >= low * bottom[defined])
            assert np.all(member[defined] <= high * bottom[defined])
            if metric.binary:
                assert np.all((member == 0) | (member == 1))
            counted += int(defined.sum())
    assert counted > 0


@each_metric
def test_value_is_pure(metric: Metric, seen: Seen) -> None:
    """Asking twice gives the same: a metric keeps nothing and changes nothing."""
    if metric.share is not None:
        return
    for each in seen.of(metric)[:20]:
        once = [value.copy() for value in _values(metric, each, 2)]
        again = _values(metric, each, 2)
        assert all(map(lambda a, b: np.array_equal(a, b, equal_nan=True), once, again))


@each_metric
def test_population_covers_every_record(metric: Metric, seen: Seen) -> None:
    """A record or question is inside, or left out for one reason, and the reasons are stated."""
    stated = {requirement.reason for requirement in metric.over.requires}
    for each in seen.of(metric):
        inside, excluded = metric.over.members(each)
        assert inside.shape == (each.size,)
        assert inside.dtype == np.bool_
        assert int(inside.sum()) + sum(excluded.values()) == each.size
        assert excluded.keys() <= stated


@cases("name", NEVER_FALLING)
def test_a_longer_list_never_lowers(name: str, seen: Seen) -> None:
    """What asks for evidence in the top k can only rise with k, for every record."""
    metric = registry.metrics()[name]
    for batch in seen.batches:
        inside, _ = metric.over.members(batch)
        values = [_values(metric, batch, k)[0][inside] for k in (1, 2, 3, 4, 5, 6, 7, 10)]
        assert all(np.all(more >= less - CLOSE) for less, more in pairwise(values))


@pytest.mark.parametrize("k", CUT_OFFS)
def test_retrieval_metrics_stand_in_order(k: int, seen: Seen) -> None:
    """Any evidence is at least a share of it, and that at least all of it, for every record.

    Rank metrics are bounded by those that ignore the rank, and precision over k by precision over
    what came back.
    """
    labelled = registry.metrics()["retrieval.recall"].over
    for batch in seen.batches:
        inside, _ = labelled.members(batch)
        names = ("hit", "recall", "recall_all", "mrr", "map", "precision", "precision_at_cutoff")
        value = {name: _retrieval(name, batch, k)[inside] for name in names}
        for higher, lower in (
            ("hit", "recall"),
            ("recall", "recall_all"),
            ("hit", "mrr"),
            ("recall", "map"),
            ("precision", "precision_at_cutoff"),
        ):
            assert np.all(value[higher] >= value[lower] - CLOSE), (higher, lower)
        assert np.all(value["precision"] <= 1)


@pytest.mark.parametrize("k", CUT_OFFS)
def test_overlap_is_the_least_of_the_span_metrics(k: int, seen: Seen) -> None:
    """What is in both, over what is in either, is at most the share of each side."""
    labelled = registry.metrics()["retrieval.span_iou"].over
    for batch in seen.batches:
        inside, _ = labelled.members(batch)
        iou = _retrieval("span_iou", batch, k)[inside]
        assert np.all(iou <= _retrieval("span_recall", batch, k)[inside] + CLOSE)
        precision = _retrieval("span_precision", batch, k)[inside]
        assert np.all((iou <= precision + CLOSE) | np.isnan(precision))


STATE_METRICS = {
    "→": "convergent",
    "←": "lambda_divergent",
    "<>": "lambda_recursive",
    "×": "lambda_chaotic",
}


def test_a_question_has_one_state(seen: Seen) -> None:
    """Where there is a λ it is one of the four, flips are the rest, and each occurs somewhere."""
    metrics = registry.metrics()
    over = metrics["stability.convergent"].over
    count = np.zeros(len(LAMBDA_STATES))
    for each in seen.questions:
        inside, _ = over.members(each)
        of = {name: _values(metrics[f"stability.{name}"], each, 0)[0][inside]
              for name in (*STATE_METRICS.values(), "flip_rate")}  # fmt: skip
        states = np.array([of[STATE_METRICS[state]] for state in LAMBDA_STATES])
        assert np.all(states.sum(axis=0) == 1)
        assert np.array_equal(of["flip_rate"], 1 - of["convergent"])
        count += states.sum(axis=1)
    assert np.all(count > 0)


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
    for name, result in scores.metrics.items():
        assert (result.value is None) == bool(result.reason)
        assert _null_fits(name, result), name


@each_profile
@cases("seed", range(0, RANDOM_RUNS, 4))
def test_left_out_and_counted_add_up(profile: str, seed: int, tmp_path: Path) -> None:
    """Every record is counted or left out by name, whatever the metric; n never exceeds records.

    Metrics of whole questions count and leave out questions.
    """
    scores = scored(tmp_path, *random_rows(seed), profile=profile, k=5)
    tally = scores.tally
    total = tally.scored + (tally.missing if profile != "smoke" else 0)
    for name, result in scores.metrics.items():
        metric = registry.metrics()[name.partition("@")[0]]
        if metric.share is not None:
            assert result.records == tally.traces
            continue
        if metric.of_question is not None:
            assert result.n + sum(result.excluded.values()) == tally.gold, name
            assert result.records <= tally.scored
        else:
            assert result.records + sum(result.excluded.values()) == total, name
        assert all(count > 0 for count in result.excluded.values())
        assert result.n <= min(result.records, tally.gold)
        assert _null_fits(name, result), name
        low, high = metric.range
        assert result.value is None or low <= result.value <= high
        if result.interval is not None:
            bounds = [bound for bound in (low, *result.interval, high) if bound is not None]
            assert bounds == sorted(bounds), name
        # A number of numpy's cannot be written as JSON.
        numbers = [result.value, *(result.interval or ())]
        assert {type(number) for number in numbers} <= {float, type(None)}


def test_an_ordinary_run_measures_every_family(tmp_path: Path) -> None:
    """The run that reports are held against has a value in each family, so it can show them."""
    scores = scored(tmp_path, ORDINARY_GOLD, ORDINARY_TRACE, profile="all", k=5)
    valued = {name.partition(".")[0] for name, each in scores.metrics.items() if each.value}
    listed = [name for name, metric in registry.metrics().items() if not metric.only_named]
    assert valued == {name.partition(".")[0] for name in listed}
