"""Error rates of decisions: how often a threshold is met or missed by chance, at this n.

A level is a mean of n questions in 0 to 1, a drop the mean of n differences; both are decided by
the value, by the bound on the wrong side or by the bound on the good side (decision 0055). What a
number is worth is its effective number of questions, which its interval tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ragauge.stats import exact_sums
from ragauge.stats.exact_sums import UNIT
from ragauge.stats.intervals import TAIL, Z95, normal_quantile, score_bounds

Policy = Literal["point", "confident-pass", "confident-fail"]
"""What has to be on the good side of a threshold: the value, its whole interval, or any of it."""
_HALVINGS = 60
_DEVIATIONS = 9.0  # beyond which nothing is left of a binomial that is worth a digit
_MOST_MOVES = 2000  # questions that move at random, from which the normal curve does


class OutcomeChances(Struct, frozen=True):
    """How often a decision comes out how; the three are 1 together."""

    passes: float
    reviews: float
    fails: float


def questions_worth(mean: float, lower: float, upper: float) -> float:
    """The effective number of questions behind a mean in 0 to 1 with this interval."""
    width = upper - lower
    few, many = 1e-9, 1e12
    for _ in range(2 * _HALVINGS):
        middle = math.sqrt(few * many)
        low, high = score_bounds(mean, middle)
        few, many = (middle, many) if high - low > width else (few, middle)
    n = math.sqrt(few * many)
    return round(n) if abs(n - round(n)) < 1e-6 * n else n


def perfect_passes_from(threshold: float) -> int | None:
    """The fewest questions that, all right, are surely at the threshold; None where none are.

    The lower bound of n of n is n / (n + z²).
    """
    if threshold >= 1:
        return None
    return max(1, math.ceil(Z95 * Z95 * threshold / (1 - threshold) - 1e-9))


def unchanged_passes_from(max_drop: float, *, tail: float = TAIL) -> int | None:
    """The fewest questions of which none changed that surely did not drop by more; None if none."""
    if max_drop <= 0:
        return None
    return max(1, math.ceil(normal_quantile(tail) * math.sqrt(2) / max_drop - 2 - 1e-9))


# --- levels ---


def level_chances(true: float, n: float, threshold: float, policy: Policy) -> OutcomeChances:
    """How a gate `>= threshold` decides on a system of which `true` is known, by n questions.

    Exactly for whole n, as for a rate; else by the normal curve.
    """
    pass_from, fail_below = _critical(n, threshold, policy)
    fails = _chance_below(true, n, fail_below)
    passes = 1 - _chance_below(true, n, pass_from)
    return OutcomeChances(passes, max(0.0, 1 - passes - fails), fails)


def _critical(n: float, threshold: float, policy: Policy) -> tuple[float, float]:
    """The mean from which a gate passes, and the one below which it fails."""
    if policy == "point":
        return threshold, threshold
    if policy == "confident-pass":
        if score_bounds(1.0, n)[0] < threshold:
            return math.inf, math.inf
        edge = _first(lambda mean: score_bounds(mean, n)[0] >= threshold, threshold, 1.0)
        return edge, edge
    if score_bounds(0.0, n)[1] >= threshold:  # not even 0 is surely below
        return threshold, -math.inf
    return threshold, _first(lambda mean: score_bounds(mean, n)[1] >= threshold, 0.0, threshold)


def _first(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The smallest number between two of which something holds that holds of the higher one."""
    if holds(low):
        return low
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _chance_below(true: float, n: float, edge: float) -> float:
    """How often the mean of n questions is below an edge."""
    if not math.isfinite(edge):
        return 1.0 if edge > 0 else 0.0
    if n == round(n):
        return binomial_below(int(n), true, math.ceil(n * edge - 1e-9))
    spread = math.sqrt(true * (1 - true) / n)
    return _normal((edge - true) / spread) if spread > 0 else float(true < edge)


def binomial_below(n: int, share: float, count: int) -> float:
    """How often fewer than `count` of n succeed."""
    if share <= 0 or share >= 1:
        return float((n if share >= 1 else 0) < count)
    middle, spread = n * share, math.sqrt(n * share * (1 - share))
    first = max(0, math.floor(middle - _DEVIATIONS * spread) - 1)
    last = min(n, math.ceil(middle + _DEVIATIONS * spread) + 1)
    if count > last:
        return 1.0
    chance = math.fsum(_binomial(n, k, share) for k in range(first, max(first, count)))
    return min(1.0, chance)


def _binomial(n: int, k: int, share: float) -> float:
    choices = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
    return math.exp(choices + k * math.log(share) + (n - k) * math.log1p(-share))


def _normal(deviations: float) -> float:
    return math.erfc(-deviations / math.sqrt(2)) / 2


# --- drops ---


class DropNoise(Struct, frozen=True):
    """How the questions of two runs move by chance.

    `size` is how far one moves that moves at all, `churn` the share that moves, either way.
    """

    n: int
    size: float
    churn: float


def drop_noise(differences: NDArray[np.float64]) -> DropNoise:
    """The noise of differences in -1 to 1, one a question or conversation.

    One question that was not seen to move is added: where none did, the next one may.
    """
    n = len(differences)
    units = np.rint(differences * UNIT).astype(np.int64)
    squares = exact_sums.sum_of_products(units, units) / (UNIT * UNIT)
    moved = exact_sums.total(np.abs(units)) / UNIT
    trend = abs(exact_sums.total(units)) / UNIT
    size = squares / moved if moved else 1.0
    against = max(0.0, squares - size * trend) / (size * size)
    return DropNoise(n, size, min(1.0, (against + 1) / (n + 1)))


def drop_chances(
    noise: DropNoise, true: float, max_drop: float, policy: Policy, *, chosen_from: int = 1
) -> OutcomeChances:
    """How a gate on a drop decides where the true drop is known, and questions move as they did.

    Questions get better and worse at random, as many as the noise says, and the drop comes on top.
    A baseline that is the best of some equal runs lets a gate fail more often, by its own luck.
    """
    z = normal_quantile(TAIL / chosen_from)
    against_one = _drop_chances(noise, true, max_drop, policy, z)
    if chosen_from == 1:
        return against_one
    fails = chance_against_best(against_one.fails, chosen_from)
    passes = 1 - chance_against_best(1 - against_one.passes, chosen_from)
    return OutcomeChances(passes, max(0.0, 1 - passes - fails), fails)


def chance_against_best(chance: float, runs: int) -> float:
    """How often a difference from the best of some equal runs is beyond an edge.

    `chance` is how often one is from any of them. All differences share the run that is judged: two
    of them have a correlation of ½, as differences of independent runs have. Under the normal
    curve, with z what the judged run had of luck, the others stay inside in Φ(√2·t + z)^runs.
    """
    if runs == 1 or chance < 1e-15 or chance >= 1:
        return chance
    edge = math.sqrt(2) * normal_quantile(chance)
    steps = [step / 40 for step in range(-40 * 8, 40 * 8 + 1)]
    weights = [math.exp(-z * z / 2) for z in steps]
    # 1 - Φ^runs, so that small chances keep their digits.
    beyond = (-math.expm1(runs * math.log1p(-min(_normal(-edge - z), 1 - 1e-16))) for z in steps)
    products = (weight * share for weight, share in zip(weights, beyond, strict=True))
    return min(1.0, math.fsum(products) / math.fsum(weights))


def _drop_chances(
    noise: DropNoise, true: float, max_drop: float, policy: Policy, z: float
) -> OutcomeChances:
    n = noise.n
    better = noise.churn / 2
    worse = min(1.0 - better, better + true / noise.size)
    if n * noise.churn > _MOST_MOVES or n * worse > _MOST_MOVES:
        return _normal_drops(noise, true, max_drop, policy, z)
    down, up = _counts(n, worse), _counts(n, better)
    chances = np.outer(down[1], up[1])
    sums = noise.size * (down[0][:, None] - up[0][None, :])
    squares = noise.size**2 * (down[0][:, None] + up[0][None, :])
    centre = sums / (n + 2)
    half = z * np.sqrt(np.maximum(0.0, (squares + 2) / (n + 2) - centre**2) / (n + 2))
    value = sums / n
    beyond = value > max_drop + 1e-12
    if policy == "confident-pass":
        fails = centre + half > max_drop
        passes = ~fails
    elif policy == "confident-fail":
        fails = beyond & (centre - half > max_drop)
        passes = ~beyond
    else:
        fails, passes = beyond, ~beyond
    total = float(chances.sum())
    failing, passing = float(chances[fails].sum()) / total, float(chances[passes].sum()) / total
    return OutcomeChances(passing, max(0.0, 1 - passing - failing), failing)


def normal_chances(
    true: float, spread: float, threshold: float, policy: Policy, *, z: float = Z95
) -> OutcomeChances:
    """How a gate `>= threshold` decides on a number without ends that is known to this spread."""
    if spread <= 0:
        return OutcomeChances(float(true >= threshold), 0.0, float(true < threshold))
    half = z * spread
    below, surely_above, surely_below = (
        _normal((edge - true) / spread) for edge in (threshold, threshold + half, threshold - half)
    )
    if policy == "confident-pass":
        return OutcomeChances(1 - surely_above, 0.0, surely_above)
    if policy == "confident-fail":
        return OutcomeChances(1 - below, below - surely_below, surely_below)
    return OutcomeChances(1 - below, 0.0, below)


def _counts(n: int, share: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The likely numbers of questions of a share, and how likely each is."""
    middle, spread = n * share, math.sqrt(n * share * (1 - share))
    first = max(0, math.floor(middle - _DEVIATIONS * spread) - 1)
    last = min(n, math.ceil(middle + _DEVIATIONS * spread) + 12)
    counts = range(first, last + 1)
    if share <= 0 or share >= 1:
        chances = [float(k == round(middle)) for k in counts]
    else:
        chances = [_binomial(n, k, share) for k in counts]
    return np.array(counts, np.float64), np.array(chances)


def _normal_drops(
    noise: DropNoise, true: float, max_drop: float, policy: Policy, z: float
) -> OutcomeChances:
    spread = math.sqrt((noise.churn * noise.size**2 + noise.size * true) / noise.n)
    return normal_chances(-true, spread, -max_drop, policy, z=z)
