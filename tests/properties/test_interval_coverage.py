"""Intervals hold the truth in at least 93 % of runs: a small part of `make slow-stats`.

The drawn cells have a fixed seed, so they fail when the intervals change and never by chance.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

RUNS = 1_000
FILE = Path(__file__).parents[2] / "benchmarks" / "interval_coverage.py"


@pytest.fixture(scope="module")
def simulation() -> Any:
    """The module of the campaign; benchmarks are no package."""
    spec = importlib.util.spec_from_file_location("interval_coverage", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a NamedTuple looks for its annotations
    spec.loader.exec_module(module)
    return module


def too_low(simulation: Any, cells: Any) -> list[Any]:
    listed = list(cells)
    assert listed, "nothing was simulated"
    return [cell for cell in listed if cell.coverage < simulation.least(cell)]


def test_rates(simulation: Any) -> None:
    assert too_low(simulation, simulation.rates()) == []


def test_rates_have_the_published_coverage_and_width(simulation: Any) -> None:
    """Two cells of the table that the method was chosen by."""
    (five,) = simulation.rates((5,), (0.5,))
    (hundred,) = simulation.rates((100,), (0.98,))
    assert (round(five.coverage, 4), round(five.width, 3)) == (0.9375, 0.638)
    assert (round(hundred.coverage, 3), round(hundred.width, 3)) == (0.985, 0.064)


def test_quantiles(simulation: Any) -> None:
    assert too_low(simulation, simulation.quantiles()) == []


@pytest.mark.parametrize("family", ["recall", "6 slots, correlation 0.5"])
def test_means(simulation: Any, family: str) -> None:
    cells = simulation.means(RUNS, [family], sizes=(5, 30, 200), truths=(0.5, 0.9, 0.99))
    assert too_low(simulation, cells) == []


def test_conversations(simulation: Any) -> None:
    cells = simulation.conversations(RUNS, (0.5,), sizes=(5, 30), truths=(0.5, 0.9, 0.99))
    assert too_low(simulation, cells) == []


def test_differences(simulation: Any) -> None:
    assert too_low(simulation, simulation.differences(RUNS, sizes=(30, 200))) == []


def test_an_interval_that_is_too_narrow_is_found(
    simulation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plain normal interval, which has no width at 1, covers far too little near it."""

    def normal(sums: Any) -> tuple[float, float]:
        half = 1.96 * (sums.mean * (1 - sums.mean) / sums.n) ** 0.5
        return sums.mean - half, sums.mean + half

    monkeypatch.setattr(simulation, "score_interval", normal)
    assert too_low(simulation, simulation.rates((30,), (0.95, 0.99)))
