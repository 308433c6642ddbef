"""A value that is a fraction is compared as one: nothing fails by a rounding."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import ragauge
from ragauge import registry
from ragauge.gates.judge import judge
from ragauge.gates.parse import parse_table
from ragauge.stats import exact_sums
from tests.support.cases import cases
from tests.support.command import Row

ALL = registry.profile("all")
TRIES = 10_000


def decimal_text(value: Fraction) -> str | None:
    """A fraction as a decimal, where it has an end of at most six digits."""
    if 10**6 % value.denominator:
        return None
    return str(Decimal(value.numerator * (10**6 // value.denominator)) / 10**6)


def random_values(draw: random.Random, *, most: int) -> list[Fraction]:
    """Values of questions as recall, precision or reciprocal rank have them, with some slots."""
    pieces = draw.choice((1, 2, 3, 5, 7, 10, 16, 17, 20, 25, 50))
    slots = draw.choice((1, 1, 1, 2, 3, 6))
    kind = draw.choice(("share", "rank", "mixed"))

    def value() -> Fraction:
        if kind == "rank" or (kind == "mixed" and draw.random() < 0.5):
            return Fraction(1, draw.randint(1, pieces))
        return Fraction(draw.randint(0, pieces), pieces)

    return [
        sum((value() for _ in range(slots)), Fraction()) / slots
        for _ in range(draw.randint(1, most))
    ]


def test_the_mean_of_fractions_is_the_double_next_to_it() -> None:
    """Against Python's own fractions, which round once."""
    draw = random.Random(16)
    for _ in range(1000):
        values = random_values(draw, most=12)
        true = sum(values, Fraction()) / len(values)
        assert exact_sums.mean(np.array(values, np.float64)) == float(true), values


def test_a_value_that_was_rounded_to_steps_is_still_the_fraction() -> None:
    """1/17 is no whole number of steps: what is summed is off by up to half a step."""
    steps = exact_sums.to_units(np.array([10 / 17] * 8 + [11 / 17] * 2)) / exact_sums.UNIT
    assert steps[0] != 10 / 17
    assert exact_sums.mean(steps) == 0.6  # 8 × 10/17 + 2 × 11/17 = 102/17 = 6, over 10


def scored(hits: list[int], pieces: int, *, slots: int = 1) -> ragauge.Scores:
    """A run in which question i finds that many of its pieces of evidence in the top `pieces`."""
    ids = [f"c{number}" for number in range(pieces)]
    gold: list[Row] = [
        {"qid": f"q{place}", "question": f"Question {place}?", "relevant": ids}
        for place in range(len(hits) // slots)
    ]
    traces: list[Row] = [
        {
            "qid": f"q{place // slots}",
            "seed": place % slots,
            "retrieved_ids": ids[:found] + [f"x{number}" for number in range(pieces - found)],
        }
        for place, found in enumerate(hits)
    ]
    return ragauge.score(gold, traces, profile="all", k=[pieces], metrics=["retrieval.*"])


@cases(
    ("hits", "pieces", "threshold"),
    [
        ([7, 7, 7], 10, "0.70"),  # doubles: (0.7 + 0.7 + 0.7) / 3 = 0.6999999999999998
        ([1] * 10, 10, "0.1"),
        ([6, 7, 8, 7, 7, 7, 7], 10, "0.7"),
        ([10] * 8 + [11] * 2, 17, "0.6"),  # 102 of 170
        ([1, 2, 3, 4, 5, 6], 25, "0.14"),  # 21 of 150
    ],
)
def test_a_run_that_has_just_the_threshold_passes(
    hits: list[int], pieces: int, threshold: str
) -> None:
    scores = scored(hits, pieces)
    for name in ("precision", "recall"):
        table = {f"retrieval.{name}@{pieces}": {"threshold": f">= {threshold}", "min_n": 1}}
        verdict = judge(
            scores, parse_table(table, ALL, scores.k, origin="test"), source_rules=False
        )
        assert verdict.status == "pass", verdict.gates
        assert verdict.gates[0].margin == 0


def test_slots_of_a_question_are_averaged_as_fractions() -> None:
    """Six slots of seven pieces: 4, 4, 4, 5, 5, 5 of 7 and 6, 6, 6, 2, 5, 2 make 54 of 84."""
    scores = scored([4, 4, 4, 5, 5, 5, 6, 6, 6, 2, 5, 2], 7, slots=6)
    assert scores.metrics["retrieval.recall@7"].value == float(Fraction(54, 84))


@pytest.mark.slow
def test_no_exact_threshold_fails_by_rounding() -> None:
    """10,000 random gates on levels and on drops whose threshold is just what the run has."""
    draw = random.Random(55)
    levels = drops = 0
    while levels + drops < TRIES:
        values = random_values(draw, most=8)
        mean = sum(values, Fraction()) / len(values)
        text = decimal_text(mean)
        if text is not None:
            levels += 1
            value = exact_sums.mean(np.array(values, np.float64))
            assert value is not None
            assert value == float(text), values
        before = [draw.choice(values) for _ in values]
        drop = sum(before, Fraction()) / len(before) - mean
        text = decimal_text(drop)
        if text is not None:
            drops += 1
            sides = [
                exact_sums.fraction_total(np.array(side, np.float64)) / len(side)
                for side in (before, values)
            ]
            assert float(sides[0] - sides[1]) == float(text), (before, values)
    assert min(levels, drops) > 1000
