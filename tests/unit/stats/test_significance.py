"""P-values of counts: McNemar's exact test against hand and scipy, Holm's correction."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.stats.significance import _EXACT_UP_TO, holm, mcnemar
from tests.support.cases import cases

probabilities = st.floats(0, 1)


@cases(
    ("wins", "losses", "expected"),
    [
        (0, 0, 1.0),  # nothing differs
        (1, 0, 1.0),  # 2 × 1/2
        (0, 2, 0.5),  # 2 × 1/4
        (3, 0, 0.25),  # 2 × 1/8
        (1, 1, 1.0),  # 2 × (1 + 2)/4 is more than 1
        (2, 1, 1.0),  # 2 × (1 + 3)/8
        (3, 1, 0.625),  # 2 × (1 + 4)/16 = 10/16
        (5, 1, 0.21875),  # 2 × (1 + 6)/64 = 14/64
        (2, 8, 0.109375),  # 2 × (1 + 10 + 45)/1024 = 112/1024
        (10, 0, 1 / 512),  # 2 × 1/1024
        (7, 6, 1.0),  # at most 6 of 13 is just a half
    ],
)
def test_p_values_by_hand(wins: int, losses: int, expected: float) -> None:
    assert mcnemar(wins, losses) == expected


@pytest.mark.parametrize(
    "sizes",
    [range(1, 40), (63, 64, 65, 200), pytest.param((999, 1_000, 1_001), marks=pytest.mark.slow)],
)
def test_every_split_is_the_exact_fraction(sizes: Sequence[int]) -> None:
    """The nearest float to twice the share of Pascal's row, below and above the switch."""
    for n in sizes:
        running = 0
        for few in range(n // 2 + 1):
            running += math.comb(n, few)
            if n > 900 and few % 10 and few < 450:
                continue  # one in ten, and all near the middle: the whole numbers take their time
            expected = min(1.0, float(Fraction(2 * running, 2**n)))
            exact = n <= _EXACT_UP_TO
            close = expected if exact else pytest.approx(expected, rel=1e-15)
            assert mcnemar(few, n - few) == close


@pytest.mark.slow
def test_scipy_agrees() -> None:
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # it takes a second to load

    rng = random.Random(20_261_115)
    for n in (10, 100, 1_000, 5_000, 50_000, 400_000):
        spread = int(6 * math.sqrt(n))
        for _ in range(25):
            wins = min(n, max(0, n // 2 + rng.randint(-spread, spread)))
            expected = binomtest(wins, n, 0.5).pvalue
            assert mcnemar(wins, n - wins) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("wins", "losses"), [(12_000, 11_000), (6_100, 5_900), (1_500, 20)])
def test_many_pairs_are_accurate(wins: int, losses: int) -> None:
    """Against whole numbers of any length: the last digit may differ, no more."""
    n, term, total = wins + losses, 1, 1
    for i in range(1, min(wins, losses) + 1):
        term = term * (n - i + 1) // i
        total += term
    assert mcnemar(wins, losses) == pytest.approx(total / 2 ** (n - 1), rel=1e-15, abs=0)


def test_what_is_too_small_for_a_float_is_zero() -> None:
    assert mcnemar(100_000, 0) == 0.0
    assert mcnemar(3, 500_000) == 0.0
    assert mcnemar(1_075, 0) == 5e-324  # 2 × 2**-1075 is the smallest float there is
    assert mcnemar(1_074, 0) == 1e-323  # twice that
    assert 0 < mcnemar(1_060, 2) < 1e-300


def test_hundreds_of_thousands_of_pairs() -> None:
    """The normal approximation is near: z = (1000 - 1)/√400,000 = 1.5796, p = 0.1142."""
    z = (1_000 - 1) / math.sqrt(400_000)
    assert mcnemar(200_500, 199_500) == pytest.approx(math.erfc(z / math.sqrt(2)), rel=1e-4)
    assert mcnemar(200_000, 200_000) == 1.0


def test_counts_below_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="never below 0"):
        mcnemar(-1, 3)


@given(st.integers(0, 3_000), st.integers(0, 3_000))
def test_sides_are_alike_and_distance_tells(wins: int, losses: int) -> None:
    """Symmetric, within 0 and 1, and one win more on the larger side is never less significant."""
    p = mcnemar(wins, losses)
    assert 0 <= p <= 1
    assert mcnemar(losses, wins) == p
    more, few = max(wins, losses), min(wins, losses)
    assert mcnemar(more + 1, few) <= p


@cases(
    ("ps", "expected"),
    [
        ([], []),
        ([None], [None]),
        ([0.03], [0.03]),
        ([0.01, 0.04], [0.02, 0.04]),  # 2 × 0.01, 1 × 0.04
        ([0.04, 0.01], [0.04, 0.02]),
        ([0.25, 0.375], [0.5, 0.5]),  # 1 × 0.375 is raised to 2 × 0.25
        ([0.25, None, 0.125, 0.5], [0.5, None, 0.375, 0.5]),  # 3 × 0.125, 2 × 0.25, 1 × 0.5
        ([0.5, 0.75, 0.5], [1.0, 1.0, 1.0]),  # 3 × 0.5 is cut to 1
        ([0.0, 1.0], [0.0, 1.0]),
    ],
)
def test_holm_by_hand(ps: list[float | None], expected: list[float | None]) -> None:
    assert holm(ps) == expected


@given(st.lists(st.none() | probabilities, max_size=12))
def test_holm_only_raises_and_keeps_the_order(ps: list[float | None]) -> None:
    found = holm(ps)
    assert [each is None for each in found] == [each is None for each in ps]
    pairs = sorted(
        (p, corrected)
        for p, corrected in zip(ps, found, strict=True)
        if p is not None and corrected is not None
    )
    assert all(p <= corrected <= 1 for p, corrected in pairs)
    corrected_in_order = [corrected for _, corrected in pairs]
    assert corrected_in_order == sorted(corrected_in_order)
    if pairs:
        assert pairs[0][1] == min(1.0, len(pairs) * pairs[0][0])  # the smallest as Bonferroni's


@given(st.lists(probabilities, max_size=8), st.randoms(use_true_random=False))
def test_holm_does_not_know_the_order_of_questions(ps: list[float], rng: random.Random) -> None:
    order = rng.sample(range(len(ps)), len(ps))
    found = holm(ps)
    assert holm([ps[i] for i in order]) == [found[i] for i in order]


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan])
def test_what_is_no_p_value_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, p])
