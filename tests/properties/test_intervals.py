"""Exact sums against fractions, and a printed interval around its printed value."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.stats.exact_sums import UNIT, mean, to_units
from tests.properties.datasets import Data, Row, scored
from tests.support.cases import cases
from tests.support.effort import examples


def test_a_value_lies_in_its_printed_interval() -> None:
    """With three seeds a question and one hit in three, 0.3333 is between its bounds."""
    gold: list[Row] = []
    trace: list[Row] = []
    for number in range(40):
        gold.append({"qid": f"q{number}", "answerable": True, "relevant": ["p1"]})
        hits = [["p1"], ["p2"], []]
        trace += [{"qid": f"q{number}", "seed": i, "hits": hits[i]} for i in range(3)]
    result = scored(Data(gold, trace), k=5).metrics["retrieval.recall_all@5"]
    assert result.value is not None
    assert result.interval is not None
    low, high = (round(bound, 4) for bound in result.interval if bound is not None)
    assert low <= round(result.value, 4) <= high


@cases("denominator", range(1, 17))
def test_units_are_exact_for_small_denominators(denominator: int) -> None:
    """A fraction with a denominator up to 16 is a whole number of units, with nothing lost."""
    values = np.arange(denominator + 1, dtype=np.float64) / denominator
    for numerator, units in enumerate(to_units(values).tolist()):
        assert Fraction(units, UNIT) == Fraction(numerator, denominator)


@examples(30)
@given(st.lists(st.floats(0, 1), max_size=30), st.randoms(use_true_random=False))
def test_mean_does_not_depend_on_order(values: list[float], shuffle: random.Random) -> None:
    """The mean is the rounded exact sum over the count, in any order; None for nothing."""
    moved = shuffle.sample(values, len(values))
    found = mean(np.array(values, np.float64))
    assert found == mean(np.array(moved, np.float64))
    if not values:
        assert found is None
    else:
        exact = sum(map(Fraction, values), Fraction()) / len(values)
        assert found == pytest.approx(float(exact), rel=1e-15, abs=1e-300)


@examples(30)
@given(st.lists(st.floats(0, 1), max_size=30))
def test_units_round_to_the_nearest(values: list[float]) -> None:
    """No value is off by more than half a unit."""
    for value, units in zip(values, to_units(np.array(values, np.float64)).tolist(), strict=True):
        # The product is rounded once more before it is rounded to a whole number.
        assert abs(Fraction(value) * UNIT - units) <= Fraction(1, 2) + Fraction(1, 2**12)
