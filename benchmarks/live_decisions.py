"""Owns the simulation of shadow decisions: how often is a worse shadow promoted, and an equal one?

Traffic with a known truth is drawn pair by pair and decided about again and again while it grows,
as the worker does: a shadow that is looked at four times has four chances to be promoted by luck.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ragauge.live.decision_rules import (
    AlertWindow,
    DecisionEvidence,
    DecisionRecord,
    EvidencePair,
    decide,
)
from ragauge.live.pairs import TOP, Outcome, PairValues, SideValues
from ragauge.live.settings import PromotionRule

LOOKS = (200, 500, 1_000, 2_000)
RUNS = 200
_WINDOW = AlertWindow(begins_at="2026-01-01T00:00:00Z", ends_at="2026-01-02T00:00:00Z")


class ShadowTruth(NamedTuple):
    """What a simulated shadow is like. Losses are in shares: 0.05 is five points.

    noise     the chance that approximate search misses one of the five hits, on either side
    recall    the chance that the shadow lacks a hit for good
    coverage  how much rarer its answers are validly cited than live's
    invalid   how much more of its citations are not among its hits
    delta_s   how much larger its ΔS is
    flips     how much more often the outcome of a question changes
    failed    the share of questions that it does not answer
    selves    the share of questions that both systems are asked once more
    """

    name: str
    noise: float = 0.03
    recall: float = 0.0
    coverage: float = 0.0
    invalid: float = 0.0
    delta_s: float = 0.0
    flips: float = 0.0
    failed: float = 0.0
    selves: float = 0.1


class SimulatedRuns(NamedTuple):
    """How many runs promoted the shadow at some look, and how many at the last one."""

    truth: ShadowTruth
    runs: int
    ever: int
    last: int
    held_by: dict[str, int]


TRUTHS = (
    ShadowTruth("equal, exact search", noise=0.0),
    ShadowTruth("equal, ANN noise 3 %"),
    ShadowTruth("equal, ANN noise 10 %", noise=0.10),
    ShadowTruth("equal, ANN noise 10 %, `self_rate` 0.3", noise=0.10, selves=0.3),
    ShadowTruth("recall 5 points worse", recall=0.05),
    ShadowTruth("recall 3 points worse", recall=0.03),
    ShadowTruth("recall 2 points worse", recall=0.02),
    ShadowTruth("coverage 5 points worse", coverage=0.05),
    ShadowTruth("citations 5 points worse", invalid=0.05),
    ShadowTruth("ΔS larger by 0.10", delta_s=0.10),
    ShadowTruth("flips 2 points more often", flips=0.02),
    ShadowTruth("flips 5 points more often", flips=0.05),
    ShadowTruth("flips 10 points more often", flips=0.10),
    ShadowTruth("5 % without an answer", failed=0.05),
)

BASE_COVERAGE = 0.93
BASE_VALID = 0.99
BASE_FLIPS = 0.01
BASE_DELTA_S = 0.33


def draw_pairs(truth: ShadowTruth, pairs: int, seed: int) -> list[EvidencePair]:
    """Pairs of a shadow with a known truth, each of another question."""
    random = np.random.default_rng(seed)
    drawn: list[EvidencePair] = []
    truths = _outcomes(random, pairs, BASE_COVERAGE, BASE_VALID)
    # What is hard for live is hard for the shadow: it loses some of what live has, and no more.
    lost = random.random(pairs) < truth.coverage / BASE_COVERAGE
    spoilt = random.random(pairs) < truth.invalid / (BASE_COVERAGE * BASE_VALID)
    failed = random.random(pairs) < truth.failed
    hits = random.binomial(TOP, 1 - truth.noise, (2, pairs))
    hits[0] = random.binomial(hits[0], 1 - truth.recall)
    distances = random.normal(BASE_DELTA_S + truth.delta_s, 0.08, pairs).clip(0, 2)
    chosen = random.random(pairs) < truth.selves
    chances = [[BASE_FLIPS], [BASE_FLIPS], [BASE_FLIPS], [BASE_FLIPS + truth.flips]]
    flips = random.random((4, pairs)) < np.array(chances)
    for number in range(pairs):
        right: Outcome = truths[number]
        worse: Outcome = "uncited" if lost[number] else right
        worse = "invalid" if spoilt[number] and worse == "cited" else worse
        live, once_more, theirs, again = (
            _other(outcome) if flips[row, number] else outcome
            for row, outcome in enumerate((right, right, worse, worse))
        )
        distance = float(distances[number])
        values = _values(live, theirs, int(hits[0, number]), distance)
        if failed[number]:
            values = _values(live, "failed", None, distance)
        state = "errored" if failed[number] else "answered"
        drawn.append(EvidencePair(number, "shadow", state, values))
        if chosen[number] and not failed[number]:
            self_values = _values(live, once_more, int(hits[1, number]), BASE_DELTA_S)
            drawn.append(EvidencePair(number, "self", "answered", self_values))
            again_values = _values(live, again, int(hits[0, number]), distance)
            drawn.append(EvidencePair(number, "again", "answered", again_values))
    return drawn


def _outcomes(
    random: np.random.Generator, pairs: int, coverage: float, valid: float
) -> list[Outcome]:
    cited, right = random.random(pairs) < coverage, random.random(pairs) < valid
    return [
        ("cited" if good else "invalid") if cites else "uncited"
        for cites, good in zip(cited.tolist(), right.tolist(), strict=True)
    ]


def _other(outcome: Outcome) -> Outcome:
    return "uncited" if outcome == "cited" else "cited"


def _values(mine: Outcome, theirs: Outcome, found: int | None, delta_s: float) -> PairValues:
    return PairValues(
        live=SideValues(outcome=mine, delta_s=BASE_DELTA_S, ms=100.0),
        other=SideValues(outcome=theirs, delta_s=None if found is None else delta_s, ms=120.0),
        found=found,
        expected=None if found is None else TOP,
        rung=None if found is None else "exact",
        unmeasured="failed" if found is None else None,
    )


def decided(pairs: Sequence[EvidencePair]) -> DecisionRecord:
    """The decision about some pairs, with the thresholds that are built in."""
    return decide(
        DecisionEvidence(
            tenant="",
            app="simulated",
            live="live",
            shadow="shadow",
            windows=(_WINDOW, _WINDOW),
            pairs=tuple(pairs),
            hours=24.0,
            rule=PromotionRule(),
            least_pairs=200,
            least_hours=0.0,
            ragauge_version="simulated",
            config_hash="",
        )
    )


def simulate(
    truth: ShadowTruth, runs: int = RUNS, looks: Sequence[int] = LOOKS, seed: int = 1
) -> SimulatedRuns:
    """Decide at every look of every run; a run ends with its first promotion."""
    ever = last = 0
    held_by: dict[str, int] = {}
    for run in range(runs):
        pairs = draw_pairs(truth, looks[-1], seed * 100_003 + run)
        asked = [number for number, pair in enumerate(pairs) if pair.role == "shadow"]
        promoted = False
        for look in looks:
            end = asked[look] if look < len(asked) else len(pairs)
            record = decided(pairs[:end])
            promoted = promoted or record.decision == "promote"
        ever += promoted
        last += record.decision == "promote"
        for criterion in record.criteria:
            if criterion.status in ("fail", "not-measured"):
                held_by[criterion.name] = held_by.get(criterion.name, 0) + 1
    return SimulatedRuns(truth, runs, ever, last, held_by)


def heading() -> str:
    """The head of a table of Markdown."""
    columns = f"promoted at {LOOKS[-1]:,} pairs | at any of {len(LOOKS)} looks | held by"
    return f"| shadow | {columns} |\n|---|---|---|---|"


def line_of(result: SimulatedRuns) -> str:
    """The line of a table; what held is counted at the last look."""
    held = ", ".join(f"{name} {count}" for name, count in sorted(result.held_by.items()))
    return (
        f"| {result.truth.name} | {result.last} of {result.runs} | {result.ever} of "
        f"{result.runs} | {held or '–'} |"
    )


def main() -> None:
    """Print the table, a line when it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(heading(), flush=True)
    for truth in TRUTHS:
        print(line_of(simulate(truth, arguments.runs, seed=arguments.seed)), flush=True)


if __name__ == "__main__":
    main()
