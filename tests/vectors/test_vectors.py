"""Every metric gives the values that were computed by hand from its definition."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from ragauge import registry, score
from ragauge.model.scores import Scores
from tests.support.cases import cases

# All in one process: what was scored for one test, others ask about again.
pytestmark = pytest.mark.xdist_group("vectors")
HERE = Path(__file__).parent
FEWEST = 5
CLOSE = 1e-12
METRICS = list(registry.metrics())
CUT = [metric.id for metric in registry.metrics().values() if metric.at_k or metric.may_cut]
NAMED_ONLY = [metric.id for metric in registry.metrics().values() if metric.only_named]
MAY_CUT = [metric.id for metric in registry.metrics().values() if metric.may_cut]


class Vector(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a vector file: rows in, value out, and the arithmetic in words."""

    metric: str
    k: int | None
    profile: str
    gold: list[dict[str, Any]]
    trace: list[dict[str, Any]]
    value: float | None
    n: int
    records: int
    why: str
    excluded: dict[str, int] | None = None

    @property
    def reported(self) -> str:
        """The id under which a run reports the metric."""
        return self.metric if self.k is None else f"{self.metric}@{self.k}"


def _read(path: Path) -> list[Vector]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [msgspec.json.decode(line, type=Vector) for line in lines]


FILES = {path.stem: _read(path) for path in sorted(HERE.glob("*.jsonl"))}
VECTORS = [vector for vectors in FILES.values() for vector in vectors]
NAMED = [
    pytest.param(number, id=f"{family}.jsonl:{line}")
    for number, (family, line) in enumerate(
        (family, line) for family, vectors in FILES.items() for line in range(1, len(vectors) + 1)
    )
]


def _score(vector: Vector, k: int, *names: str) -> Scores:
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, rows in (("gold.jsonl", vector.gold), ("trace.jsonl", vector.trace)):
            path = Path(folder, name)
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
            paths.append(path)
        # With a cut-off also where a metric is not always cut.
        names += (vector.metric if vector.k is None else f"{vector.metric}@{k}",)
        return score(*paths, profile=vector.profile, k=k, metrics=names, intervals=False)


@cache
def _scores(number: int) -> Scores:
    """The scores of all metrics."""
    return _score(VECTORS[number], VECTORS[number].k or 5, "*", *NAMED_ONLY)


@cache
def _values(number: int) -> dict[str, float | None]:
    """The values of all metrics on the rows of a vector, by ids without cut-off.

    A metric that may be cut is given uncut: its cut value beside it is no metric of its own.
    """
    metrics = _scores(number).metrics
    names = {name.partition("@")[0]: name for name in metrics if name not in METRICS}
    names |= {name: name for name in metrics if name in METRICS}
    return {base: metrics[name].value for base, name in names.items()}


def _of(metric: str) -> list[int]:
    return [number for number, vector in enumerate(VECTORS) if vector.metric == metric]


def _others(metric: str) -> list[str]:
    """Every other metric that is not the same number by definition.

    Those of live traffic are those of a run where no trace was kept by a rule of its own.
    """
    live = [] if metric in NAMED_ONLY else NAMED_ONLY
    return [each for each in METRICS if each != metric and each not in live]


def _differ(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) > CLOSE


@cases("number", NAMED)
def test_value(number: int) -> None:
    """Value, n, records and what was left out are those of the arithmetic in `why`."""
    _check(VECTORS[number], _score(VECTORS[number], VECTORS[number].k or 5))


@pytest.mark.slow
@cases("number", NAMED)
def test_value_beside_all_other_metrics(number: int) -> None:
    """A metric gives what it gives alone."""
    _check(VECTORS[number], _scores(number))


def _check(vector: Vector, scores: Scores) -> None:
    result = scores.metrics[vector.reported]
    assert not _differ(result.value, vector.value), f"{result.value}, not {vector.value}"
    assert (result.n, result.records) == (vector.n, vector.records)
    if vector.excluded is not None:
        assert result.excluded == vector.excluded
    assert (result.reason is None) == (result.value is not None)


@cases("family", FILES)
def test_vectors_are_well_formed(family: str) -> None:
    """A vector names a metric, has a cut-off where the metric has or takes one, and says why."""
    for vector in FILES[family]:
        metric = registry.metrics()[vector.metric]
        assert metric.may_cut or (vector.k is not None) == metric.at_k, vector
        assert vector.profile in registry.profiles(), vector
        assert vector.why.endswith("."), vector


def test_vectors_stand_in_the_file_of_their_family() -> None:
    """A metric's vectors are found where its id says."""
    for family, vectors in FILES.items():
        assert {vector.metric.partition(".")[0] for vector in vectors} == {family}


def test_every_metric_has_vectors() -> None:
    """A metric has at least five vectors, and not all of them are 0, 1 or 0/0.

    Times, distances and correlations lie outside 0 to 1, so a value only has to be something else.
    """
    for metric in METRICS:
        values = [VECTORS[number].value for number in _of(metric)]
        assert len(values) >= FEWEST, metric
        assert any(value not in (None, 0, 1) for value in values), metric


@pytest.mark.slow
@cases("metric", METRICS)
def test_vectors_tell_a_metric_from_its_family(metric: str) -> None:
    """On the rows of one vector at least, no sibling has the value of the metric.

    Two quantiles of the same values are siblings too: they agree where there is one question, so
    such a metric needs a vector with several. Complements (a rate and the rate of the rest) differ
    in value wherever it is not a half. Pairs that are one number by definition are left out.
    """
    family = metric.partition(".")[0] + "."
    siblings = [each for each in _others(metric) if each.startswith(family)]
    telling = [
        number
        for number in _of(metric)
        if VECTORS[number].k is None or metric not in MAY_CUT
        if (value := VECTORS[number].value) is not None
        and all(_differ(value, _values(number)[each]) for each in siblings)
    ]
    assert telling


@pytest.mark.slow
@cases("metric", METRICS)
def test_vectors_tell_a_metric_from_every_other(metric: str) -> None:
    """No other metric that has values on the vectors of this one has the same on all of them."""
    alike = []
    for other in _others(metric):
        pairs = [(VECTORS[number].value, _values(number)[other]) for number in _of(metric)]
        both = [pair for pair in pairs if None not in pair]
        if both and not any(_differ(*pair) for pair in both):
            alike.append(other)
    assert not alike


@cases("metric", CUT)
def test_vectors_tell_cut_offs_apart(metric: str) -> None:
    """A metric with a cut-off has a vector whose value another cut-off would change, both ways.

    For a metric that may be cut these are its vectors with a cut-off.
    """
    vectors = [VECTORS[number] for number in _of(metric)]
    for step in (-1, 1):
        cut = [(vector, vector.k + step) for vector in vectors if vector.k is not None]
        assert any(
            _differ(_score(vector, k).metrics[f"{metric}@{k}"].value, vector.value)
            for vector, k in cut
            if k > 0
        ), step


@pytest.mark.slow
@pytest.mark.parametrize("metric", MAY_CUT)
def test_vectors_tell_cut_from_uncut(metric: str) -> None:
    """A metric that may be cut has vectors of both kinds, and a cut value that is not the uncut."""
    numbers = _of(metric)
    assert any(VECTORS[number].k is None for number in numbers)
    cut = [number for number in numbers if VECTORS[number].k is not None]
    assert any(_differ(VECTORS[number].value, _values(number)[metric]) for number in cut)
