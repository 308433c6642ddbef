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
from ragauge.model.aggregate import Scores

HERE = Path(__file__).parent
FEWEST = 5
CLOSE = 1e-12
METRICS = list(registry.metrics())
AT_K = [metric.id for metric in registry.metrics().values() if metric.at_k]


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


def _score(vector: Vector, k: int) -> Scores:
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, rows in (("gold.jsonl", vector.gold), ("trace.jsonl", vector.trace)):
            path = Path(folder, name)
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
            paths.append(path)
        return score(*paths, profile=vector.profile, k=k, metrics=["*"], intervals=False)


@cache
def _scores(number: int) -> Scores:
    return _score(VECTORS[number], VECTORS[number].k or 5)


def _values(number: int) -> dict[str, float | None]:
    """The values of all metrics on the rows of a vector, by ids without cut-off."""
    metrics = _scores(number).metrics
    return {name.partition("@")[0]: result.value for name, result in metrics.items()}


def _of(metric: str) -> list[int]:
    return [number for number, vector in enumerate(VECTORS) if vector.metric == metric]


def _differ(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is not other
    return abs(one - other) > CLOSE


@pytest.mark.parametrize("number", NAMED)
def test_value(number: int) -> None:
    """Value, n, records and what was left out are those of the arithmetic in `why`."""
    vector = VECTORS[number]
    result = _scores(number).metrics[vector.reported]
    assert not _differ(result.value, vector.value), f"{result.value}, not {vector.value}"
    assert (result.n, result.records) == (vector.n, vector.records)
    if vector.excluded is not None:
        assert result.excluded == vector.excluded
    assert (result.reason is None) == (result.value is not None)


@pytest.mark.parametrize("number", NAMED)
def test_vector_is_well_formed(number: int) -> None:
    """A vector names a metric, has a cut-off just where the metric has one, and says why."""
    vector = VECTORS[number]
    metric = registry.metrics()[vector.metric]
    assert (vector.k is not None) == metric.at_k
    assert vector.profile in registry.profiles()
    assert vector.why.endswith(".")


def test_vectors_stand_in_the_file_of_their_family() -> None:
    """A metric's vectors are found where its id says."""
    for family, vectors in FILES.items():
        assert {vector.metric.partition(".")[0] for vector in vectors} == {family}


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_has_vectors(metric: str) -> None:
    """A metric has at least five vectors, and not all of them are 0, 1 or 0/0."""
    values = [VECTORS[number].value for number in _of(metric)]
    assert len(values) >= FEWEST
    assert any(value is not None and 0 < value < 1 for value in values)


@pytest.mark.parametrize("metric", METRICS)
def test_vectors_tell_a_metric_from_its_family(metric: str) -> None:
    """On the rows of one vector at least, no sibling has the value of the metric."""
    family = metric.partition(".")[0] + "."
    siblings = [each for each in METRICS if each.startswith(family) and each != metric]
    telling = [
        number
        for number in _of(metric)
        if (value := VECTORS[number].value) is not None
        and all(_differ(value, _values(number)[each]) for each in siblings)
    ]
    assert telling


@pytest.mark.parametrize("metric", METRICS)
def test_vectors_tell_a_metric_from_every_other(metric: str) -> None:
    """No other metric that has values on the vectors of this one has the same on all of them."""
    alike = []
    for other in METRICS:
        pairs = [(VECTORS[number].value, _values(number)[other]) for number in _of(metric)]
        both = [pair for pair in pairs if None not in pair]
        if other != metric and both and not any(_differ(*pair) for pair in both):
            alike.append(other)
    assert not alike


@pytest.mark.parametrize("metric", AT_K)
def test_vectors_tell_cut_offs_apart(metric: str) -> None:
    """A metric with a cut-off has a vector whose value another cut-off would change, both ways."""
    for step in (-1, 1):
        changed = False
        for number in _of(metric):
            vector = VECTORS[number]
            if vector.k is not None and vector.k + step > 0:
                other = _score(vector, vector.k + step).metrics[f"{metric}@{vector.k + step}"]
                changed = changed or _differ(other.value, vector.value)
        assert changed, step
