"""Alert rules: the thresholds of the source pages as defaults, and what a window says of a rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.live.settings import HINT, AlertRule, Alerts
from ragauge.stats.intervals import Z95, quantile, quantile_interval

INDEX_DRIFT = "index-drift"
UNKNOWN_IDS = "unknown-ids"
DOCUMENT_DRIFT = "document-drift"
DOCUMENT_PSI = "live.document_psi"

DEFAULTS: dict[str, AlertRule] = {
    # The share of answers with valid citations (C/live_monitoring_rag), and with gold the share
    # that cites the evidence or its section (seed 000).
    "coverage": AlertRule(metric="live.coverage", below=0.70, for_minutes=5),
    "gold-coverage": AlertRule(metric="answer.coverage", below=0.70, for_minutes=5),
    # Citation accuracy of traffic without gold is validity; the page has one number for both.
    "citation-validity": AlertRule(metric="live.citation_validity", below=0.95, for_minutes=5),
    "citation-accuracy": AlertRule(metric="citation.accuracy", below=0.95, for_minutes=5),
    "delta-s-p90": AlertRule(metric="live.delta_s_p90", above=0.60, for_minutes=3),
    "delta-s-median": AlertRule(metric="live.delta_s_median", above=0.45, for_minutes=3),
    # No page says for how long.
    "lambda-flip": AlertRule(metric="live.lambda_flip", above=0.10, for_minutes=5),
    "kendall-tau": AlertRule(metric="live.kendall_tau", below=0.60, for_minutes=5),
    "latency-p95": AlertRule(metric="live.latency_p95", rise=0.30, for_minutes=10),
    # Empty retrieval above 1 % (ops/deployment_checklist), errors above 1 % (D/*).
    "empty-results": AlertRule(metric="live.empty", above=0.01, for_minutes=5),
    "errors": AlertRule(metric="live.error", above=0.01, for_minutes=5),
    # Ids that the manifest does not know: an index of other documents. No page has a number.
    UNKNOWN_IDS: AlertRule(metric="live.unknown_ids", above=0.01, for_minutes=5),
    # 0.25 is what credit scoring calls a major shift of a population.
    DOCUMENT_DRIFT: AlertRule(metric=DOCUMENT_PSI, above=0.25, for_minutes=5),
}
"""Rules by name, with the thresholds of the pages that docs/how-to/live-alerts.md lists."""

REFERENCE_DAYS = 7
MOST_REFERENCES = 288  # a day of windows of 5 minutes
FEWEST_REFERENCES = 6  # the largest of 6 values bounds their median from above: 1/64 < 2.5 %
LARGEST_Z = 20.0


class Measurement(Struct, frozen=True):
    """A metric of a window, as the aggregate has it."""

    value: float | None = None
    n: int = 0
    interval: tuple[float | None, float | None] | None = None


class BaselineLevel(Struct, frozen=True):
    """What earlier windows say of a metric: their median, and the upper bound of it."""

    value: float
    upper: float
    windows: int


class Reading(Struct, frozen=True, kw_only=True):
    """What one window says of one rule.

    `breach`: beyond the threshold, by the bound of the interval where the rule asks for it.
    `unclear`: the value is, its bound is not: noise can explain it. `too-little`: nothing to judge
    by. `z` says by how many standard errors the value is beyond the threshold; negative if it is
    not.
    """

    outcome: Literal["breach", "unclear", "good", "too-little"]
    measured: Measurement
    threshold: float | None
    z: float = 0.0


def rules_of(alerts: Alerts) -> dict[str, AlertRule]:
    """The rules in force by name: the defaults, those of the user over them, less what is off."""
    rules = dict(DEFAULTS) if alerts.defaults else {}
    rules.update(alerts.rules)
    for name in alerts.off:
        if name not in rules and name != INDEX_DRIFT:
            known = [*rules, INDEX_DRIFT]
            error = registry.unknown_name("alert rule", name, known)
            message = f"[live.alerts] off: {error.problems[0].message}"
            raise RagaugeError.of("bad-config", message, hint=error.problems[0].hint or HINT)
        rules.pop(name, None)
    return rules


def check_rules(alerts: Alerts) -> None:
    """Refuse a rule on what no window measures: it would never fire."""
    profile = registry.profiles()["live"]
    known = [chosen.id for chosen in registry.select(profile.metrics, profile.k)]
    for name, rule in rules_of(alerts).items():
        if rule.metric not in (*known, DOCUMENT_PSI):
            error = registry.unknown_name("metric of live windows", rule.metric, known)
            message = f"[live.alerts.rules] {name}: {error.problems[0].message}"
            raise RagaugeError.of("bad-config", message, hint=error.problems[0].hint or HINT)


def reference_of(values: Sequence[float]) -> BaselineLevel | None:
    """The reference that earlier windows give; None for fewer than bound their median."""
    if len(values) < FEWEST_REFERENCES:
        return None
    numbers = np.array(values)
    middle, (_, upper) = quantile(numbers, 0.5), quantile_interval(numbers, 0.5)
    if middle is None or upper is None or middle <= 0:
        return None
    return BaselineLevel(middle, upper, len(values))


def read_window(
    rule: AlertRule, measured: Measurement | None, reference: BaselineLevel | None = None
) -> Reading:
    """Judge what a window measured by a rule."""
    measured = measured or Measurement()
    limit = edge = rule.below if rule.below is not None else rule.above
    if rule.rise is not None:
        # A value must be beyond what the reference may be, and is good again below what it is.
        limit = None if reference is None else reference.value * (1 + rule.rise)
        edge = None if reference is None else reference.upper * (1 + rule.rise)
    value = measured.value
    bounds = measured.interval or (None, None)
    if value is None or measured.n < rule.least or limit is None or edge is None:
        return Reading(outcome="too-little", measured=measured, threshold=limit)
    # As if every rule had a ceiling: `near` is the bound that must be beyond it.
    sign = -1 if rule.below is not None else 1
    near, far = bounds if sign > 0 else bounds[::-1]
    is_bad = value < limit if sign < 0 else value >= limit
    if rule.policy == "point":
        outcome: Literal["breach", "good"] = "breach" if is_bad else "good"
        return Reading(outcome=outcome, measured=measured, threshold=limit)
    if is_bad and near is None:
        return Reading(outcome="too-little", measured=measured, threshold=limit)
    beyond = sign * (value - edge)
    bound = near if beyond > 0 or far is None else far
    half = 0.0 if bound is None else abs(value - bound)
    z = min(LARGEST_Z, max(-LARGEST_Z, Z95 * beyond / half)) if half else 0.0
    if not is_bad:
        return Reading(outcome="good", measured=measured, threshold=limit, z=z)
    assert near is not None
    crosses = near < edge if sign < 0 else near >= edge
    return Reading(
        outcome="breach" if crosses else "unclear", measured=measured, threshold=limit, z=z
    )
