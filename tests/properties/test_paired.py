"""Comparisons of two runs, against brute force and plain numpy.

Resamples and random signs belong to the places of the questions: another order may give another
bound or p-value, as another seed may, so callers sort by id. Where all signs are tried, order
does not matter, and that is tested.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from ragauge.stats import resampling
from ragauge.stats.exact_sums import UNIT
from ragauge.stats.paired import PERMUTATIONS, _in_steps, permutation
from ragauge.stats.resampling import POISSON_FROM, SEED
from tests.support.cases import cases

Floats = NDArray[np.float64]
SOME = 150  # repeats: two whole blocks of 64 and a part of one


def column(*values: float) -> Floats:
    return np.array(values, np.float64)[:, None]


def brute_force(differences: list[Fraction]) -> float:
    """Try all signs of all differences, zeros too, with exact arithmetic."""
    found = abs(sum(differences, Fraction()))
    sums = [
        abs(sum((sign * each for sign, each in zip(signs, differences, strict=True)), Fraction()))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(each >= found for each in sums) / len(sums)


def plain_signs(n: int, permutations: int, seed: int = SEED) -> list[list[int]]:
    """The random signs by their definition, one permutation at a time: bits, highest first."""
    rows = []
    for number in range(permutations):
        index, within = divmod(number, 64)
        raw = np.random.SFC64(np.random.SeedSequence([seed, index]))
        words = raw.random_raw(-(-(within + 1) * n // 64)).tolist()
        stream = b"".join(word.to_bytes(8, "little") for word in words)
        bits = "".join(f"{byte:08b}" for byte in stream)[within * n : (within + 1) * n]
        rows.append([1 - 2 * int(bit) for bit in bits])
    return rows


def plain_permutation(wholes: list[int], permutations: int, seed: int = SEED) -> float:
    """The p-value of random signs, in Python's integers."""
    found = abs(sum(wholes))
    hits = 0
    for signs in plain_signs(len(wholes), permutations, seed):
        hits += abs(sum(sign * each for sign, each in zip(signs, wholes, strict=True))) >= found
    return (1 + hits) / (1 + permutations)


@cases(
    ("differences", "expected"),
    [
        ([1], 1.0),  # 1 and -1 are as far from 0
        ([1, 1, 1], 2 / 8),  # only all 1 and all -1; one side alone would be 1/8
        ([-1, -1, -1], 2 / 8),
        ([1, 1, 1, -1], 10 / 16),  # ±4 twice, ±2 eight times: the ties count
        ([1, -1], 1.0),  # the sum is 0
        ([0.25, 0.5, 1], 2 / 8),
        ([1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 2 / 8),  # zeros have no sign
        ([1, 1 / 3, 1 / 3, -1 / 3], 8 / 16),  # 4/3 again in three ways, 2 in one, and mirrored
        ([1 / 3, 1 / 3, 1 / 3, -1], 1.0),  # three thirds are 1
        ([0.3, 0.3, -0.1], 4 / 8),  # ±0.7 and ±0.5; the other four are ±0.1
        ([0, 0, 0], 1.0),
        ([0], 1.0),
    ],
)
def test_p_values_by_hand(differences: list[float], expected: float) -> None:
    assert permutation(column(*differences)) == [expected]


@cases("seed", range(60))
def test_all_signs_are_tried_exactly(seed: int) -> None:
    """Scores in halves to sixteenths: the p-value of exact fractions, in any order, either way."""
    rng = random.Random(seed)
    fractions = []
    for _ in range(rng.randrange(1, 9)):
        a, b = (rng.randrange(1, 17) for _ in range(2))
        fractions.append(Fraction(rng.randint(0, a), a) - Fraction(rng.randint(0, b), b))
    if seed % 3 == 0:  # many ties
        fractions = [Fraction(rng.randint(-2, 2), 3) for _ in fractions]
    floats = [float(each) for each in fractions]
    expected = [brute_force(fractions)]
    assert permutation(column(*floats)) == expected
    assert permutation(column(*rng.sample(floats, len(floats)))) == expected
    assert permutation(-column(*floats)) == expected


def test_random_signs_are_drawn_as_defined() -> None:
    """The signs of a permutation depend on seed, block and place alone."""
    for n in (1, 37, 64, 300):
        expected = plain_signs(n, SOME, 5)
        for repeats in (SOME, 65, 3):
            found = resampling.in_blocks(partial(resampling.flip, n=n), repeats, 5)
            assert (1 - 2 * found.astype(np.int64)).tolist() == expected[:repeats]


@cases("n", [9, 40, 301])
@cases("largest", [1, 3, 10_000_000])
def test_random_signs_are_counted_exactly(n: int, largest: int) -> None:
    """Ties and all, as Python's integers count them; thirds have the p of their numerators."""
    rng = random.Random(n)
    wholes = [rng.randint(-largest, largest) or 1 for _ in range(n)]
    expected = plain_permutation(wholes, SOME)
    assert permutation(column(*wholes), permutations=SOME) == [expected]
    if largest == 3:
        assert permutation(column(*wholes) / 3, permutations=SOME) == [expected]


@cases("n", [1, 30, 5_000])
@cases("size", [1e-300, 1e-3, 1.0, 2.0, 1e7, 2.0**53, 1e300])
def test_every_sum_of_differences_is_exact(n: int, size: float) -> None:
    """If all differences had one sign, their steps would add up to less than 2**53, but not much.

    Steps of scores are those of `exact.UNIT`, or its 2nd, 4th, ... part where questions are many.
    """
    differences = np.random.default_rng(n).uniform(-size, size, (n, 1))
    differences[0] = size
    steps = _in_steps(differences)
    assert (steps == np.rint(steps)).all()
    total = sum(int(abs(value)) for value in steps[:, 0].tolist())
    assert total < 2**53
    assert steps[0, 0] == UNIT * size or 8 * total > 2**53 or size < 1
    if size <= 2:
        assert (steps[0, 0] / size / 720_720).is_integer() or size < 1


def test_the_found_signs_count_as_one_permutation() -> None:
    """Sixty equal differences: random signs never reach the sum, and p is not 0 but 1 / 10,001."""
    assert permutation(np.ones((60, 1))) == [1 / (1 + PERMUTATIONS)]
    assert permutation(np.ones((60, 1)), permutations=99) == [1 / 100]


@cases("size", [1.0, 1 / 3, 0.1, -(2.0**30), 1e-4])
def test_ties_count(size: float) -> None:
    """The sum of 20 ups and 20 downs is 0, and every sum is at least as far from it."""
    differences = column(*[size, -size] * 20)
    assert permutation(differences) == [1.0]
    # With one up more the sum is ±1: an odd number of ±1 never comes nearer to 0.
    assert permutation(np.vstack([differences, [[size]]])) == [1.0]


def test_the_switch_to_random_signs() -> None:
    """All signs are tried while they are no more than the permutations asked for."""
    three = column(1, 1, 1)
    assert permutation(three, permutations=8) == [2 / 8]
    random_p = [permutation(three, permutations=7, seed=seed)[0] for seed in range(20)]
    assert random_p == [plain_permutation([1, 1, 1], 7, seed) for seed in range(20)]
    assert len(set(random_p)) > 1


def test_random_signs_come_near_all_signs() -> None:
    """14 differences have 16,384 signs: 10,000 random ones give p within 4 standard errors."""
    rng = np.random.default_rng(8)
    differences = rng.normal(0.25, 1, (14, 6))
    for every, drawn in zip(
        permutation(differences, permutations=2**14), permutation(differences), strict=True
    ):
        assert every is not None
        assert (every * 2**14).is_integer()
        assert drawn == pytest.approx(every, abs=4 * math.sqrt(0.25 / PERMUTATIONS))


@pytest.mark.parametrize("n", [30, POISSON_FROM + 203])
def test_populations_and_company(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is outside does not matter, nor do other metrics, nor threads, nor chunks."""
    rng = np.random.default_rng(n)
    differences = rng.integers(-2, 4, (n, 5)) / 3
    inside = rng.random((n, 5)) < [1.0, 0.5, 0.1, 0.0, 1.0]
    differences[:, 4] = 0.0
    expected = permutation(np.where(inside, differences, 0.0), inside=inside, permutations=500)
    assert [p is None for p in expected] == [False, False, False, True, False]
    assert expected[4] == 1.0
    outside = np.where(inside, differences, math.nan)
    assert permutation(outside, inside=inside, permutations=500) == expected
    alone = [
        permutation(outside[:, [i]], inside=inside[:, [i]], permutations=500)[0] for i in range(5)
    ]
    assert alone == expected
    for threads, cells in ((1, 1), (3, 1 << 40)):
        monkeypatch.setattr(resampling, "THREADS", threads)
        monkeypatch.setattr(resampling, "_PRODUCTS", cells)
        turned = np.asfortranarray(outside)
        assert permutation(turned, inside=inside, permutations=500) == expected


def test_nothing_to_compare() -> None:
    none = np.zeros((0, 2))
    assert permutation(none) == [None, None]
    assert permutation(none, inside=none.astype(np.bool_)) == [None, None]
    with pytest.raises(ValueError, match="finite"):
        permutation(column(1, math.nan))


def test_p_values_of_no_difference_are_uniform() -> None:
    """Of 1,000 comparisons without a difference about 5 % have p ≤ 0.05, half have p ≤ 0.5.

    The standard errors are √(0.05 × 0.95 / 1000) = 0.007 and √(0.25 / 1000) = 0.016.
    """
    rng = np.random.default_rng(20_261_115)
    found = permutation(rng.normal(0, 1, (50, 1_000)), permutations=2_000)
    values = np.array(found, np.float64)
    assert np.mean(values <= 0.05) == pytest.approx(0.05, abs=0.02)
    assert np.mean(values <= 0.5) == pytest.approx(0.5, abs=0.05)
    shifted = permutation(rng.normal(1, 1, (50, 100)), permutations=2_000)
    assert np.mean(np.array(shifted, np.float64) <= 0.01) > 0.98
