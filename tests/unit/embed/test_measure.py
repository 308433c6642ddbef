"""ΔS is 1 - cos: hand-computed values, and what holds for any vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.embed.measure import Direction, delta_s, direction
from tests.support.cases import cases


def vector(*values: float) -> Direction:
    found = direction(np.array(values, np.float32))
    assert found is not None
    return found


@cases(
    ("one", "other", "expected"),
    [
        ((1, 0), (1, 0), 0.0),
        ((1, 0), (0, 1), 1.0),
        ((1, 0), (-1, 0), 2.0),
        ((1, 0), (0.6, 0.8), 0.4),  # cos is 0.6
        ((3, 4), (4, 3), 0.04),  # 1 - 24 / 25: lengths do not matter
        ((2, 0, 0), (1, 1, 0), 1 - 1 / math.sqrt(2)),
    ],
)
def test_delta_s_is_one_minus_the_cosine(
    one: tuple[float, ...], other: tuple[float, ...], expected: float
) -> None:
    assert delta_s(vector(*one), vector(*other)) == pytest.approx(expected, abs=1e-7)


def test_a_vector_of_zeros_has_no_direction() -> None:
    assert direction(np.zeros(3, np.float32)) is None
    assert delta_s(None, vector(1, 0)) is None
    assert delta_s(vector(1, 0), None) is None


numbers = st.floats(-4, 4, width=32).filter(lambda each: abs(each) > 1e-3)
vectors = st.lists(numbers, min_size=8, max_size=8)


@given(vectors, vectors)
def test_delta_s_is_symmetric_and_from_0_to_2(one: list[float], other: list[float]) -> None:
    here, there = vector(*one), vector(*other)
    found = delta_s(here, there)
    assert found is not None
    assert 0 <= found <= 2
    assert found == delta_s(there, here)


@given(vectors)
def test_a_vector_is_at_no_distance_from_itself(values: list[float]) -> None:
    assert delta_s(vector(*values), vector(*values)) == 0.0


@given(vectors, vectors)
def test_the_distance_is_that_of_exact_arithmetic(one: list[float], other: list[float]) -> None:
    """Against sums that are rounded once, at the end."""
    dot = math.fsum(a * b for a, b in zip(one, other, strict=True))
    lengths = math.sqrt(math.fsum(a * a for a in one)) * math.sqrt(math.fsum(b * b for b in other))
    assert delta_s(vector(*one), vector(*other)) == pytest.approx(1 - dot / lengths, abs=1e-12)
