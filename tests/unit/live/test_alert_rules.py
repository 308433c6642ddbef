"""The default rules, and what a window says of a rule."""

from __future__ import annotations

import math
from typing import Any

import pytest

from ragauge.config import load_config
from ragauge.errors import RagaugeError
from ragauge.live.alert_rules import (
    DEFAULTS,
    BaselineLevel,
    Measurement,
    read_window,
    reference_of,
    rules_of,
)
from ragauge.live.settings import AlertRule, Alerts, live_settings
from tests.support.cases import cases

FLOOR = AlertRule(metric="m", below=0.7)
CEILING = AlertRule(metric="m", above=0.1)
RISE = AlertRule(metric="m", rise=0.3)


def outcome(
    rule: AlertRule, value: float | None, bounds: Any, n: int = 200, reference: Any = None
) -> str:
    return read_window(rule, Measurement(value, n, bounds), reference).outcome


def test_the_defaults_are_those_of_the_source_pages() -> None:
    """background: coverage .70 and accuracy .95 for 5 min, ΔS .60/.45 for 3, tau .6 for 5."""
    told = {
        name: (rule.metric, rule.below, rule.above, rule.rise, rule.for_minutes)
        for name, rule in DEFAULTS.items()
    }
    assert told["coverage"] == ("live.coverage", 0.70, None, None, 5)
    assert told["citation-validity"] == ("live.citation_validity", 0.95, None, None, 5)
    assert told["gold-coverage"] == ("answer.coverage", 0.70, None, None, 5)
    assert told["citation-accuracy"] == ("citation.accuracy", 0.95, None, None, 5)
    assert told["delta-s-p90"] == ("live.delta_s_p90", None, 0.60, None, 3)
    assert told["delta-s-median"] == ("live.delta_s_median", None, 0.45, None, 3)
    assert told["lambda-flip"] == ("live.lambda_flip", None, 0.10, None, 5)
    assert told["kendall-tau"] == ("live.kendall_tau", 0.60, None, None, 5)
    assert told["latency-p95"] == ("live.latency_p95", None, None, 0.30, 10)
    assert told["empty-results"] == ("live.empty", None, 0.01, None, 5)
    assert told["errors"] == ("live.error", None, 0.01, None, 5)


@cases(
    ("value", "bounds", "expected"),
    [
        (0.60, (0.53, 0.67), "breach"),
        (0.65, (0.58, 0.71), "unclear"),  # the upper bound is not below the floor
        (0.70, (0.63, 0.76), "good"),  # at the floor is not below it
        (0.99, (0.97, 1.0), "good"),  # quality may be as high as it likes
    ],
)
def test_a_floor(value: float, bounds: tuple[float, float], expected: str) -> None:
    assert outcome(FLOOR, value, bounds) == expected


@cases(
    ("value", "bounds", "expected"),
    [
        (0.20, (0.15, 0.26), "breach"),
        (0.14, (0.10, 0.20), "breach"),  # the pages say ≥
        (0.12, (0.08, 0.17), "unclear"),
        (0.09, (0.06, 0.14), "good"),
        (0.00, (0.00, 0.02), "good"),  # an error rate may be as low as it likes
    ],
)
def test_a_ceiling(value: float, bounds: tuple[float, float], expected: str) -> None:
    assert outcome(CEILING, value, bounds) == expected


def test_a_rise_is_over_what_the_reference_may_be_at_most() -> None:
    """Median 100, at most 110: 130 is the threshold, and 143 what the bound must reach."""
    reference = BaselineLevel(100.0, 110.0, 20)
    assert outcome(RISE, 160.0, (144.0, 180.0), reference=reference) == "breach"
    assert outcome(RISE, 160.0, (142.0, 180.0), reference=reference) == "unclear"
    assert outcome(RISE, 129.0, (120.0, 140.0), reference=reference) == "good"
    assert outcome(RISE, 500.0, (400.0, 600.0)) == "too-little"  # there is no reference


def test_too_few_values_judge_nothing() -> None:
    assert outcome(FLOOR, 0.0, (0.0, 0.1), n=29) == "too-little"
    assert outcome(FLOOR, 0.0, (0.0, 0.1), n=30) == "breach"
    assert outcome(FLOOR, None, None) == "too-little"
    assert outcome(FLOOR, 0.5, None) == "too-little"  # no interval: nothing says that it is sure
    assert outcome(FLOOR, 0.5, (0.4, None)) == "too-little"
    assert outcome(FLOOR, 0.9, (0.8, None)) == "good"


def test_the_point_policy_looks_at_the_value_only() -> None:
    rule = AlertRule(metric="m", below=0.7, policy="point")
    assert outcome(rule, 0.69, (0.6, 0.8)) == "breach"
    assert outcome(rule, 0.69, None) == "breach"
    assert outcome(rule, 0.70, None) == "good"


def test_z_counts_standard_errors_beyond_the_threshold() -> None:
    """0.60 with an upper bound 0.65 has a standard error of 0.05/1.96; 0.70 is 3.92 away."""
    reading = read_window(FLOOR, Measurement(0.60, 200, (0.54, 0.65)))
    assert math.isclose(reading.z, 2 * 1.959963984540054)
    # Above the floor the other bound counts: 0.05 over 0.10/1.96.
    reading = read_window(FLOOR, Measurement(0.75, 200, (0.65, 0.80)))
    assert math.isclose(reading.z, -0.5 * 1.959963984540054)


def test_a_reference_needs_six_windows() -> None:
    assert reference_of([100.0] * 5) is None
    # 2.5 % of samples of 6 have all values below the median: the largest bounds it.
    assert reference_of([90.0, 100.0, 110.0, 120.0, 95.0, 105.0]) == BaselineLevel(102.5, 120.0, 6)
    assert reference_of([0.0] * 6) is None  # 30 % more than nothing is nothing


def test_rules_of_the_user_stand_over_the_defaults() -> None:
    own = AlertRule(metric="retrieval.recall@5", below=0.8)
    rules = rules_of(Alerts(rules={"coverage": own}, off=("errors", "index-drift")))
    assert rules["coverage"] == own
    assert "errors" not in rules
    assert "kendall-tau" in rules
    assert rules_of(Alerts(defaults=False)) == {}
    with pytest.raises(RagaugeError, match="there is no alert rule `erors`") as caught:
        rules_of(Alerts(off=("erors",)))
    assert "did you mean `errors`?" in str(caught.value)


@cases("rule", ["below = 0.5\nabove = 0.6", "", 'below = 0.5\nby = "type"', "rise = 0.0"])
def test_a_rule_that_means_nothing_is_refused_with_its_line(tmp_path: Any, rule: str) -> None:
    file = tmp_path / "ragauge.toml"
    file.write_text(f'[live.alerts.rules.mine]\nmetric = "m"\n{rule}\n')
    with pytest.raises(RagaugeError) as caught:
        live_settings(load_config(file))
    assert "ragauge.toml:" in str(caught.value)
    assert caught.value.problems[0].code == "bad-config"
