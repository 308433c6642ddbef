"""Two runs of one system raise no alarm: a small part of `make slow-stats`, with a fixed seed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "equal_runs.py"
DRAWS = 40
MOST = 6
"""Of 40 comparisons with a chance of 5 % each, more than 6 come in 0.3 % of all cases."""


@pytest.fixture(scope="module")
def simulation() -> Any:
    """The module of the campaign; benchmarks are no package."""
    spec = importlib.util.spec_from_file_location("equal_runs", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a NamedTuple looks for its annotations
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("gated", [(), ("retrieval.recall@5", "retrieval.mrr@10")])
def test_headlines_claim_no_change(simulation: Any, gated: tuple[str, ...]) -> None:
    """A quarter of 40 questions is unstable; 40 metrics of the profile `all` could have moved."""
    alarm = simulation.headlines(np.random.default_rng(7), DRAWS, 40, 0.25, gated)
    assert alarm.share * DRAWS <= MOST


def test_fail_on_knows_the_noise_of_repeats(simulation: Any) -> None:
    """Without repeats every one of these comparisons has a regression."""
    alarm = simulation.failures(np.random.default_rng(8), DRAWS, 40, 0.25, 2)
    assert alarm.share * DRAWS <= MOST
    strict = simulation.failures(np.random.default_rng(8), 5, 40, 0.25, 1)
    assert strict.share == 1


def test_fail_on_still_sees_what_is_lost(simulation: Any) -> None:
    """Four stable questions of 40 lose everything, beside ten unstable ones."""
    lost = range(36, 40)
    alarm = simulation.failures(np.random.default_rng(9), 10, 40, 0.25, 3, lost)
    assert alarm.share >= 0.9
    stable = simulation.failures(np.random.default_rng(9), 5, 40, 0.0, 2, [39])
    assert stable.share == 1
