"""Unchanged traffic pages nobody, and a fall is noticed: a small part of benchmarks/alert_noise.py.

Seeds are fixed, so a test fails when rules or states change and never by chance.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "alert_noise.py"


@pytest.fixture(scope="module")
def simulation() -> Any:
    """The module of the campaign; benchmarks are no package."""
    spec = importlib.util.spec_from_file_location("alert_noise", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule", ["coverage", "errors", "delta-s-p90", "kendall-tau", "lambda-flip", "latency-p95"]
)
def test_five_days_at_the_threshold_have_no_alarm(simulation: Any, rule: str) -> None:
    """The target is one in 30 days at most."""
    assert simulation.false_alarms(rule, 20.0, 3, days=5) == 0


def test_every_default_rule_is_simulated(simulation: Any) -> None:
    # These two are rates with the threshold of coverage and of citation-accuracy.
    others = {"gold-coverage", "citation-validity"}
    assert set(simulation.DEFAULTS) - set(simulation.QUALITIES) == others


@pytest.mark.slow
def test_traffic_that_is_worse_than_the_threshold_is_noticed(simulation: Any) -> None:
    """Coverage from 0.75 to 0.55, with 200 traces a minute."""
    minutes = simulation.minutes_to_notice("coverage", 200.0, 3, fall=0.2, better_by=0.05)
    assert minutes is not None
    assert minutes < 60


@pytest.mark.slow
def test_better_than_the_threshold_is_never_noticed(simulation: Any) -> None:
    """A rule that looks in the wrong direction would fire here."""
    for rule in ("coverage", "errors", "kendall-tau", "delta-s-median"):
        better = simulation.minutes_to_notice(rule, 20.0, 3, fall=-0.2, better_by=0.0, hours=6)
        assert better is None, rule
