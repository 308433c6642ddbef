"""The self-test of gates: how often a gate would decide otherwise on systems that are the same.

A gate on a level is judged again on resamples of the run's own questions. A gate on a drop is
judged on a run and a baseline that might as well have been each other. Turns of one conversation
are drawn and exchanged together. Sums are whole numbers, so the result is the same on every
machine and for any order of the questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge import registry
from ragauge.gates.chances import chances_at
from ragauge.gates.drops import conversations_of, paired_values
from ragauge.gates.judge import Tolerance, judge
from ragauge.metrics.columns import Floats, Ints, totals
from ragauge.metrics.metric import SHARES, Better
from ragauge.model.phrases import percent
from ragauge.model.scores import PerQuestion, Scores
from ragauge.model.semantic import Bands
from ragauge.model.verdict import Gate, GateChances, GateResult, Status
from ragauge.stats import exact_sums, resampling
from ragauge.stats.error_rates import chance_against_best
from ragauge.stats.intervals import quantile
from ragauge.stats.resampling import Draws, flip, in_blocks, sum_bits, weigh, weighted_sums

# 720720 is divisible by every number up to 16, so shares of few slots or pieces are whole numbers.
_DIVISIBLE = exact_sums.UNIT >> 20
# The most that a question is drawn in a resample of many: Poisson(1) in 256ths ends at 5.
_MOST = 5
_SLACK = 1e-12  # a difference of two means may be off by its last bit
_PASS, _REVIEW, _FAIL = 0, 1, 2


class SelfTest(Struct, frozen=True, kw_only=True):
    """How often one gate would decide otherwise, as a share of the trials; None with a `reason`.

    n        the questions that it was tried on
    status   what the gate says of the run itself
    method   what a trial was
    advice   what would make a gate that decides by chance decide by the system; None for others
    """

    gate: Gate
    n: int
    flips: float | None
    status: Status
    method: str
    reason: str | None = None
    advice: str | None = None


NOISY = 0.05
"""The share of trials from which on a gate decides by chance."""


class _Sample(Struct, frozen=True):
    """Values of questions in the order of what they are, and the conversation of each."""

    values: Floats
    conversations: Ints

    @property
    def units(self) -> int:
        return int(self.conversations[-1]) + 1 if len(self.conversations) else 0

    @property
    def noun(self) -> str:
        return "question" if self.units == len(self.conversations) else "conversation"

    @property
    def most(self) -> int | None:
        """How often one unit can be drawn; None for as often as there are units."""
        return _MOST if self.units >= resampling.POISSON_FROM else None


def self_test(
    scores: Scores,
    gates: Sequence[Gate],
    *,
    baseline: Scores | None = None,
    whole_grid: bool = False,
    tolerance: Tolerance = Tolerance(),  # noqa: B008  (frozen)
    resamples: int = resampling.RESAMPLES,
    bands: Mapping[str, Bands] = {},
) -> tuple[SelfTest, ...]:
    """Try each gate on systems that are the same as the run, and count how often it flips.

    A gate on a level flips where the verdict (pass, review or fail) on a resample of the questions
    is not the verdict on the run. A gate on a drop flips where it would fail although nothing has
    changed: with a baseline, paired values are exchanged at random; without one, two
    resamples of the run are compared. Under the interval policy the bound that decides is taken
    to be as far from the value in every trial as it is in the run: what is drawn moves the value,
    while the width belongs to the number of questions and their spread. A baseline with gaps is
    tried as it is judged: not at all, or with `tolerance` without them. A baseline that is the best
    of some runs was lucky: the share is then that of a run against the best of so many equal ones.
    """
    if resamples < 1:
        raise ValueError(f"at least one resample is needed, got {resamples}")
    verdict = judge(
        scores,
        gates,
        source_rules=False,
        whole_grid=whole_grid,
        tolerance=tolerance,
        baseline=baseline,
        bands=bands,
    )
    tests = []
    for judged in verdict.gates:
        test = _test_gate(scores, judged, baseline, resamples)
        if test.flips is not None and test.flips > NOISY:
            # The numbers of the same gate under another policy, and of more questions.
            (other,) = judge(
                scores,
                [replace(judged.gate, policy="confident-fail")],
                source_rules=False,
                whole_grid=whole_grid,
                tolerance=tolerance,
                baseline=baseline,
                bands=bands,
            ).gates
            test = replace(test, advice=_advice(judged, other))
        tests.append(test)
    return tuple(tests)


def _advice(judged: GateResult, confident: GateResult) -> str:
    """What helps a gate that decides by chance, with the numbers that say so."""
    parts = []
    if judged.gate.policy != "confident-fail" and confident.chances is not None:
        fails = confident.chances.fails_unchanged
        if fails <= NOISY:
            parts.append(
                f'policy = "confident-fail" fails an unchanged system in {percent(fails)} of runs, '
                "and asks for a review of what lies between"
            )
    if (n := _enough(judged)) is not None:
        parts.append(f"n = {n} questions would do for a system like this one")
    return "; or ".join(parts) or (
        "the value is too near the threshold for any policy here: ask more questions, or move the "
        "threshold"
    )


def _enough(judged: GateResult) -> int | None:
    """The fewest questions with which a gate on a level would rarely decide otherwise."""
    if judged.gate.is_drop or judged.chances is None or judged.gate.policy != "point":
        return None
    few, enough = judged.n, 64 * judged.n
    if _flips_at(judged, enough) > NOISY:
        return None
    while enough - few > max(1, few // 50):  # two digits are enough to plan with
        middle = (few + enough) // 2
        few, enough = (few, middle) if _flips_at(judged, middle) <= NOISY else (middle, enough)
    return enough


def _flips_at(judged: GateResult, n: int) -> float:
    """How often a gate would decide otherwise with so many questions of the same kind."""
    chances = chances_at(judged, n)
    return 1.0 if chances is None else _other_than(judged.status, chances)


def _other_than(status: Status, chances: GateChances) -> float:
    fails, reviews = chances.fails_unchanged, chances.reviews_unchanged
    same = {"fail": fails, "review": reviews}.get(status, 1 - fails - reviews)
    return max(0.0, 1 - same)


def _test_gate(
    scores: Scores, judged: GateResult, baseline: Scores | None, resamples: int
) -> SelfTest:
    gate = judged.gate
    name = gate.metric
    if gate.instead is not None and not scores.cites and not gate.is_drop:
        name = gate.instead
    trouble = _trouble(scores, gate, name)
    paired = gate.is_drop and baseline is not None
    n, flips, method = judged.n, None, "not tried"
    if judged.status == "not-judged":
        return SelfTest(
            gate=gate, n=n, flips=None, status=judged.status, method=method, reason=judged.reason
        )
    if trouble is None and judged.status == "not-evaluable" and (paired or not gate.is_drop):
        trouble = judged.reason
    unkept = trouble or _taken_over_rows(scores, gate, name)
    if unkept is not None and judged.chances is not None:
        # Without the values of its questions: from n and the interval, as the report has it.
        chances, status = judged.chances, judged.status
        flips = chances.fails_unchanged if gate.is_drop else _other_than(status, chances)
        method = f"computed from n and the interval: {unkept}"
        return SelfTest(gate=gate, n=n, flips=flips, status=status, method=method)
    if trouble is None:
        assert scores.per_question is not None
        if paired:
            assert baseline is not None
            now, before = _both(scores, baseline, name, gate.part)
            n = len(now.values)
            flips, method = _exchanged(gate, judged, now, before, _share(name), resamples)
            if gate.chosen_from > 1:
                flips = chance_against_best(flips, gate.chosen_from)
                method += f"; against the best of {gate.chosen_from} equal runs"
        else:
            sample = _sample(scores.per_question, name, gate.part)
            n = len(sample.values)
            trouble = _too_few(gate, name, sample) or _taken_over_rows(scores, gate, name)
            if trouble is None and gate.is_drop:
                flips, method = _two_resamples(gate, sample, _share(name), resamples)
            elif trouble is None:
                flips, method = _resampled(gate, judged, sample, _share(name), resamples)
    return SelfTest(
        gate=gate, n=n, flips=flips, status=judged.status, method=method, reason=trouble
    )


def _trouble(scores: Scores, gate: Gate, name: str) -> str | None:
    """Why a gate cannot be tried, whatever the values are."""
    if name not in scores.metrics:
        return f"{name} is not in these scores"
    if scores.per_question is None:
        return "no values of questions in these scores: save them with --full"
    if name not in scores.per_question.metrics:
        return f"{name} is not made of values of questions"
    if gate.part is not None and scores.per_question.in_slice(gate.part) is None:
        return f"which questions are in {gate.part} is not kept in scores"
    return None


def _too_few(gate: Gate, name: str, sample: _Sample) -> str | None:
    """Why a sample cannot be drawn from; None if it can."""
    n = len(sample.values)
    if n == 0:
        return f"no question has {name}"
    if n < gate.min_n:
        return f"n = {n} is below min_n = {gate.min_n}"
    if sample.units < 2:
        return f"one {sample.noun} alone always gives its value back"
    if gate.is_drop and gate.policy != "point":
        return "no interval to judge by"
    return None


def _taken_over_rows(scores: Scores, gate: Gate, name: str) -> str | None:
    """Why values of questions do not make up the metric; None if they do.

    A profile may average over rows instead of questions: resampled questions would then be of
    another metric than the gate judges. A drop compares values of questions in any case.
    """
    values = scores.per_question
    if gate.is_drop or values is None or name not in values.metrics:
        return None
    stored = scores.metrics[name].value
    if gate.part is not None:
        dimension, _, value_of_slice = gate.part.partition("=")
        part = scores.slices.get(dimension, {}).get(value_of_slice)
        if part is None or name not in part.metrics or values.in_slice(gate.part) is None:
            return None
        stored = part.metrics[name].value
    sample = _sample(values, name, gate.part)
    if not len(sample.values):
        return None
    share = _share(name)
    value = exact_sums.mean(sample.values) if share is None else quantile(sample.values, share)
    if value is None or stored is None or abs(value - stored) > 1e-9 * max(1.0, abs(stored)):
        return f"{name} is taken over rows here, which values of questions do not make up"
    return None


def _share(name: str) -> float | None:
    return SHARES.get(registry.metrics()[name.partition("@")[0]].aggregate)


# --- questions in order ---


def _sample(of: PerQuestion, name: str, part: str | None) -> _Sample:
    """The questions that have a value, by id and turn; of a slice those in it."""
    values = of.of(name)
    inside = None if part is None else of.in_slice(part)
    if inside is not None:
        values = np.where(inside, values, np.nan)
    turns = (-1 if turn is None else turn for turn in of.turns)
    ordered = sorted(zip(of.qids, turns, range(len(of.qids)), strict=True))
    places = np.array([place for _, _, place in ordered], np.int64)
    places = places[~np.isnan(values[places])]
    return _Sample(values[places], conversations_of(of, places))


def _both(scores: Scores, baseline: Scores, name: str, part: str | None) -> tuple[_Sample, _Sample]:
    """The questions that the drop is over, by id and turn."""
    pairs = paired_values(name, scores, baseline)
    assert scores.per_question is not None
    inside = None if part is None else scores.per_question.in_slice(part)
    if inside is not None:
        pairs = pairs.only(inside[pairs.mine])
    conversations = conversations_of(scores.per_question, pairs.mine)
    return _Sample(pairs.now, conversations), _Sample(pairs.before, conversations)


def _edges(judged: GateResult, better: Better) -> tuple[list[float], str]:
    """The values between which a gate fails, asks for a review and passes, and what to say of it.

    First the one beyond which it fails, then the one from which it passes, then its review band. A
    bound that decides moves with the value.
    """
    gate = judged.gate
    band, threshold = list(gate.review or ()), gate.threshold
    if gate.policy == "point":
        return [threshold, threshold, *band], ""
    assert judged.interval is not None and judged.value is not None
    wrong_side = 0 if better == "higher" else 1
    end = judged.interval[wrong_side if gate.policy == "confident-pass" else 1 - wrong_side]
    moves = "; the bound moves with the value"
    if gate.policy == "confident-fail":
        if end is None:  # it can be as good as anything: never surely beyond the threshold
            low, high = registry.metrics()[gate.metric.partition("@")[0]].range
            end = high if better == "higher" else low
        return [threshold + judged.value - end, threshold, *band], moves
    assert end is not None, "a gate without the bound that decides is not evaluable"
    return [edge + judged.value - end for edge in (threshold, threshold, *band)], moves


# --- a gate on a level ---


def _resampled(
    gate: Gate, judged: GateResult, sample: _Sample, share: float | None, resamples: int
) -> tuple[float, str]:
    """Resample the questions and judge again."""
    limits, of_bound = _edges(judged, gate.better)
    method = f"{sample.noun}s resampled {resamples:,} times{of_bound}"
    sides: Callable[[Draws], Ints]
    if share is None:
        columns = _columns([sample.values - limit for limit in limits], sample)

        def sides(draws: Draws) -> Ints:
            sums = weighted_sums(draws, columns)
            return _sides(sums[:, :-1], sums[:, -1:])  # one unit a question for what rounding takes
    else:
        edges = np.array(limits)
        order = np.argsort(sample.values, kind="stable")

        def sides(draws: Draws) -> Ints:
            weights = np.take(draws, sample.conversations, axis=1)
            quantiles = _quantiles(weights, order, sample.values, share)
            return _sides(quantiles[:, None] - edges, np.zeros((1, 1)))

    drawn: Ints = in_blocks(
        lambda raw, rows: sides(weigh(raw, rows, sample.units)), resamples, resampling.SEED
    )
    own = sides(np.ones((1, sample.units), np.int64))
    differing = _statuses(gate, gate.better, drawn) != _statuses(gate, gate.better, own)
    return int(np.count_nonzero(differing)) / resamples, method


def _columns(differences: list[Floats], sample: _Sample) -> Floats:
    """Whole numbers, a row for each conversation, whose weighted sums are exact; and their counts.

    In 1/720720 or its halves, so that a value that is the threshold is just that; where sums are
    too large for it, in the smallest power of two that fits.
    """
    columns = np.stack(differences, axis=1)
    steps = _steps(columns, sample, most=sample.most)
    return np.concatenate(
        [
            _together(np.rint(columns * steps), sample),
            _together(np.ones((len(columns), 1)), sample),
        ],
        axis=1,
    )


def _steps(columns: Floats, sample: _Sample, *, most: int | None) -> Floats:
    """How many steps make 1 in each column, if a unit is drawn so often at most."""
    steps = []
    for bits in sum_bits(_together(np.abs(columns), sample), most=most):
        power = resampling.EXACT - bits
        fine = power - _DIVISIBLE.bit_length()
        steps.append(_DIVISIBLE * 2.0 ** min(resampling.FINEST, fine) if fine >= 0 else 2.0**power)
    return np.array(steps)


def _together(columns: Floats, sample: _Sample) -> Floats:
    """The sum of each column over each conversation."""
    return np.stack(
        [totals(sample.conversations, column, sample.units) for column in columns.T], axis=1
    )


def _sides(sums: Floats, slack: Floats) -> Ints:
    """On which side of each limit a value is: -1 below, 1 above, 0 at it."""
    sides: Ints = (sums > slack).astype(np.int64) - (sums < -slack)
    return sides


def _statuses(gate: Gate, better: Better, sides: Ints) -> Ints:
    """The verdict of each row; the columns are those of `_edges`."""
    good = sides if better == "higher" else -sides
    statuses = np.where(good[:, 1] >= 0, _PASS, np.where(good[:, 0] < 0, _FAIL, _REVIEW))
    if sides.shape[1] > 2:
        in_band = (sides[:, 2] >= 0) & (sides[:, 3] <= 0)
        if gate.policy == "confident-fail":  # what surely fails is no matter for a review
            in_band &= statuses != _FAIL
        statuses = np.where(in_band, _REVIEW, statuses)
    return statuses


def _quantiles(weights: Draws, order: Ints, values: Floats, share: float) -> Floats:
    """The quantile of each row, in which each value stands as often as its weight says."""
    ordered = values[order]
    running = np.take(weights, order, axis=1).cumsum(axis=1, dtype=np.int32)
    last = running[:, -1].astype(np.int64) - 1
    places = share * last
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, last)
    low, high = (
        ordered[np.minimum((running <= rank[:, None]).sum(axis=1), len(ordered) - 1)]
        for rank in (below, above)
    )
    quantiles: Floats = low + (high - low) * (places - below)
    return quantiles


# --- a gate on a drop ---


def _exchanged(
    gate: Gate,
    judged: GateResult,
    now: _Sample,
    before: _Sample,
    share: float | None,
    resamples: int,
) -> tuple[float, str]:
    """Exchange the two values of questions at random, as if either run had been the other.

    If nothing has changed, each pair might as well have come the other way round: this is the null
    of the permutation test behind p, asked for the share of failures instead.
    """
    sign = 1.0 if gate.better == "lower" else -1.0
    # Exchanging equal values changes nothing: only the others make different trials.
    differing = np.unique(now.conversations[now.values != before.values])
    everything = 2 ** len(differing) <= resamples
    trials = 2 ** len(differing) if everything else resamples
    method = f"{'all' if everything else f'{resamples:,} random'} exchanges of paired {now.noun}s"
    edges, of_bound = _edges(judged, "lower")
    limits = np.array(edges)
    sides: Callable[[Draws], Ints]
    n = len(now.values)
    if share is None:
        differences = sign * (now.values - before.values)
        steps = _steps(differences[:, None], now, most=1)[0]
        column = _together(np.rint(differences * steps)[:, None], now)
        total = column.sum()

        def sides(flipped: Draws) -> Ints:
            sums = total - 2 * weighted_sums(flipped, column)
            return _sides(sums - limits * steps * n, np.full((1, 1), float(n)))
    else:
        values = np.concatenate([now.values, before.values])
        order = np.argsort(values, kind="stable")

        def sides(flipped: Draws) -> Ints:
            other = np.take(flipped, now.conversations, axis=1)
            mine = 1 - other.astype(np.int8)
            new = _quantiles(np.concatenate([mine, 1 - mine], axis=1), order, values, share)
            old = _quantiles(np.concatenate([1 - mine, mine], axis=1), order, values, share)
            return _sides(sign * (new - old)[:, None] - limits, np.full((1, 1), _SLACK))

    def failed(draws: Draws) -> int:
        return int(np.count_nonzero(_statuses(gate, "lower", sides(draws)) == _FAIL))

    if everything:
        failures = sum(failed(flips) for flips in _every_choice(differing, now.units))
    else:
        failed_in_blocks: Ints = in_blocks(
            lambda raw, rows: np.array([failed(flip(raw, rows, now.units))]),
            resamples,
            resampling.SEED,
        )
        failures = int(failed_in_blocks.sum())
    return failures / trials, f"{method}{of_bound}"


def _every_choice(units: Ints, size: int) -> Iterator[Draws]:
    """All ways to exchange some of the units, a few at a time."""
    for start in range(0, 2 ** len(units), resampling.BLOCK):
        rows = np.arange(start, min(start + resampling.BLOCK, 2 ** len(units)))
        flipped = np.zeros((len(rows), size), np.uint8)
        flipped[:, units] = (rows[:, None] >> np.arange(len(units))) & 1
        yield flipped


def _two_resamples(
    gate: Gate, sample: _Sample, share: float | None, resamples: int
) -> tuple[float, str]:
    """Compare two resamples of the same questions, drawn without regard to each other."""
    sign = 1.0 if gate.better == "lower" else -1.0
    slack = _SLACK
    if share is None:
        steps = _steps(sample.values[:, None], sample, most=sample.most)[0]
        columns = _columns([sample.values], sample)
        slack = max(slack, 2 / steps)

        def value(draws: Draws) -> Floats:
            sums = weighted_sums(draws, columns)
            means: Floats = sums[:, 0] / sums[:, 1] / steps
            return means
    else:
        order = np.argsort(sample.values, kind="stable")

        def value(draws: Draws) -> Floats:
            return _quantiles(
                np.take(draws, sample.conversations, axis=1), order, sample.values, share
            )

    def drawn(seed: int) -> Floats:
        values: Floats = in_blocks(
            lambda raw, rows: value(weigh(raw, rows, sample.units)), resamples, seed
        )
        return values

    limits = np.array([gate.threshold, gate.threshold, *(gate.review or ())])
    drops = sign * (drawn(resampling.SEED + 1) - drawn(resampling.SEED))
    statuses = _statuses(gate, "lower", _sides(drops[:, None] - limits, np.full((1, 1), slack)))
    method = (
        f"two resamples of the same {sample.noun}s compared, {resamples:,} times: unpaired and "
        "therefore pessimistic"
    )
    return int(np.count_nonzero(statuses == _FAIL)) / resamples, method
