"""Simulated shadows whose truth is known: a worse one is not promoted, an equal one is.

A small part of `benchmarks/live_decisions.py`, with fixed seeds: it fails when the rules change and
never by chance.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "live_decisions.py"


@pytest.fixture(scope="module")
def simulation() -> Any:
    """The module of the benchmark; benchmarks are no package."""
    spec = importlib.util.spec_from_file_location("live_decisions", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a NamedTuple looks for its annotations
    spec.loader.exec_module(module)
    return module


def truth_of(simulation: Any, name: str) -> Any:
    return next(truth for truth in simulation.TRUTHS if truth.name == name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "recall 5 points worse",
        "coverage 5 points worse",
        "citations 5 points worse",
        "flips 10 points more often",
    ],
)
def test_a_worse_shadow_is_not_promoted(simulation: Any, name: str) -> None:
    result = simulation.simulate(truth_of(simulation, name), runs=4, looks=(300, 1500))
    assert result.ever == 0


@pytest.mark.slow
def test_an_equal_shadow_is_promoted_in_spite_of_noise(simulation: Any) -> None:
    equal = truth_of(simulation, "equal, ANN noise 3 %")
    assert simulation.simulate(equal, runs=5, looks=(2000,)).last >= 3


def test_the_truth_that_is_drawn_is_the_truth_that_is_named(simulation: Any) -> None:
    """Five points are five points, but for chance (n = 4,000)."""

    def values(**truth: float) -> dict[str, tuple[float, float]]:
        pairs = simulation.draw_pairs(simulation.ShadowTruth("drawn", **truth), 4000, 3)
        return {one.name: (one.value, one.baseline) for one in simulation.decided(pairs).criteria}

    worse, equal = values(recall=0.05, coverage=0.05), values()
    # of 0.97 that search finds, 0.05 is lost
    for name, loss in (("recall-proxy", 0.05 * 0.97), ("coverage", 0.05)):
        assert worse[name][1] - worse[name][0] == pytest.approx(loss, abs=0.012)
        assert equal[name][0] == pytest.approx(equal[name][1], abs=0.012)


def test_a_line_of_the_table_says_who_held(simulation: Any) -> None:
    result = simulation.simulate(truth_of(simulation, "ΔS larger by 0.10"), runs=1, looks=(300,))
    line = simulation.line_of(result)
    assert line.startswith("| ΔS larger by 0.10 | 0 of 1 | 0 of 1 | ")
    assert "delta-s 1" in line
