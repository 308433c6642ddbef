"""The self-test of gates: how often they flip on systems that are the same."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from ragauge.gates.judge import Tolerance
from ragauge.gates.self_test import SelfTest, self_test
from ragauge.metrics.metric import Tally
from ragauge.model.scores import (
    MetricResult,
    PerQuestion,
    QuestionList,
    QuestionResult,
    Scores,
    SliceResult,
)
from ragauge.model.verdict import Gate
from ragauge.stats import resampling
from ragauge.stats.error_rates import chance_against_best
from ragauge.stats.intervals import group_sums, score_interval
from ragauge.stats.resampling import POISSON_FROM
from tests.support.cases import cases

RECALL, EMPTY = "retrieval.recall@5", "retrieval.empty"
LATENCY = "latency.total_ms"
SOME = 2_000  # trials: a share is off by 4 × √(0.25 / 2,000) = 0.045 at most
Floats = NDArray[np.float64]
COUNTS = {
    **dict.fromkeys(("gold", "traces", "scored", "answered", "answerable"), 1),
    **dict.fromkeys(
        (
            "gold_duplicates", "gold_skipped", "trace_skipped", "unknown", "duplicates", "missing",
            "missing_slots", "errored", "repeated_ids", "refused", "unanswerable",
        ),
        0,
    ),
}  # fmt: skip


def scored(
    values: Sequence[float] | Floats,
    *,
    metric: str = RECALL,
    qids: Sequence[str] | None = None,
    turns: Sequence[int | None] | None = None,
    value: float | None = None,
    interval: tuple[float, float] | None = None,
    kept: bool = True,
    better: Literal["higher", "lower"] = "higher",
    labels: dict[str, str] | None = None,
    hashes: Sequence[str] = (),
    **counts: int,
) -> Scores:
    """Scores of one metric with these values of questions, nan where there is none."""
    column = np.array(values, np.float64)
    known = column[~np.isnan(column)]
    n = len(known)
    if value is None and n:
        value = float(np.median(known)) if metric == LATENCY else math.fsum(known.tolist()) / n
    names = [f"q{place:05}" for place in range(len(column))] if qids is None else list(qids)
    per_question = PerQuestion(
        metrics=(metric,), qids=names, turns=[None] * len(names) if turns is None else turns,
        values=column[None, :], hashes=hashes,
    )  # fmt: skip
    questions = [
        QuestionResult(qid=name, label=label, gold="", trace=None, labels={label: 1})
        for name in names
        for label in ((labels or {}).get(name, "OK"),)
    ]
    result = MetricResult(
        value=value, n=n, records=n, excluded={}, interval=interval, version=1, better=better
    )
    return Scores(
        profile="all", dialect="native", k=(5,), gold_name="gold", trace_name="trace",
        tally=Tally(**(COUNTS | counts)), metrics={metric: result}, refusal_rules={},
        questions=QuestionList.of(questions), per_question=per_question if kept else None,
    )  # fmt: skip


def gate_of(threshold: float, *, metric: str = RECALL, drop: bool = False, **more: Any) -> Gate:
    better = "lower" if metric in (EMPTY, LATENCY) else "higher"
    return Gate(
        name=metric, metric=metric, better=more.pop("better", better), threshold=threshold,
        given=str(threshold), origin="test", is_drop=drop, **more,
    )  # fmt: skip


def tried(scores: Scores, gate: Gate, baseline: Scores | None = None, **more: Any) -> SelfTest:
    (found,) = self_test(scores, [gate], baseline=baseline, **{"resamples": SOME, **more})
    assert found.gate is gate
    return found


def share(scores: Scores, gate: Gate, baseline: Scores | None = None, **more: Any) -> float:
    found = tried(scores, gate, baseline, **more)
    assert found.reason is None
    assert found.flips is not None
    return found.flips


# --- a gate on a level ---


def test_far_from_the_threshold_nothing_flips() -> None:
    """A rate of 0.9 of 200 has a standard error of 0.02: 0.5 is 19 of them away."""
    scores = scored([1] * 180 + [0] * 20)
    passing, failing = self_test(scores, [gate_of(0.5), gate_of(0.99)], resamples=SOME)
    assert (passing.flips, passing.status, passing.n) == (0.0, "pass", 200)
    assert (failing.flips, failing.status) == (0.0, "fail")
    assert passing.method == "questions resampled 2,000 times"


@cases("n", [100, POISSON_FROM + 500])
@cases("metric", [RECALL, EMPTY])
def test_at_the_threshold_about_half_flips(n: int, metric: str) -> None:
    """The value is the threshold: it passes, and a resample is below it about every second time.

    A little less often, as some resamples hit the threshold again: √(1 / (2π n/4)) of them.
    """
    scores = scored([1, 0] * (n // 2), metric=metric)
    ties = math.sqrt(2 / (math.pi * n))
    assert share(scores, gate_of(0.5, metric=metric)) == pytest.approx((1 - ties) / 2, abs=0.045)
    assert tried(scores, gate_of(0.5, metric=metric)).status == "pass"


@cases("value", [0.8, 1 / 3, 0.1, 5 / 7, 0.0, 1.0, 1e7 / 3])
@cases("n", [2, 37, POISSON_FROM + 1])
def test_equal_values_never_flip(value: float, n: int) -> None:
    """Whatever is drawn, the mean is the value, also where that is the threshold itself."""
    scores = scored([value] * n)
    for threshold in (value, value + 0.1, value - 0.1):
        assert share(scores, gate_of(threshold), resamples=100) == 0.0
    assert share(scores, gate_of(0.0, drop=True), resamples=100) == 0.0
    assert share(scores, gate_of(0.0, drop=True), scores, resamples=100) == 0.0


def test_ties_are_met_exactly() -> None:
    """4/5 and 3/5 have the mean 0.7: the resamples with as many of both meet it.

    Of two questions the resamples are (2, 0), (1, 1), (1, 1) and (0, 2): one of four is below.
    """
    assert share(scored([0.8, 0.6]), gate_of(0.7), resamples=20_000) == pytest.approx(
        0.25, abs=0.02
    )


def test_brute_force_of_few_questions() -> None:
    """All 4**4 resamples of four questions, in exact thirds."""
    thirds = [0, 1, 2, 3]
    below = sum(sum(drawn) < 6 for drawn in itertools.product(thirds, repeat=4))
    found = share(scored([each / 3 for each in thirds]), gate_of(0.5), resamples=20_000)
    assert found == pytest.approx(below / 4**4, abs=4 * math.sqrt(0.25 / 20_000))


@pytest.mark.parametrize("n", [50, POISSON_FROM + 200])
def test_numpy_resamples_likewise(n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.random(n)
    threshold = float(values.mean()) - 0.5 * float(values.std()) / math.sqrt(n)
    means = values[rng.integers(0, n, (SOME, n))].mean(axis=1)
    expected = float(np.mean(means < threshold))  # about 0.31: half a standard error away
    assert share(scored(values), gate_of(threshold)) == pytest.approx(expected, abs=0.06)


def test_a_median_is_resampled_too() -> None:
    rng = np.random.default_rng(3)
    values = rng.lognormal(6, 1, 81)
    threshold = float(np.quantile(values, 0.55))
    medians = np.median(values[rng.integers(0, 81, (SOME, 81))], axis=1)
    expected = float(np.mean(medians > threshold))
    found = share(scored(values, metric=LATENCY), gate_of(threshold, metric=LATENCY))
    assert 0.05 < expected < 0.45
    assert found == pytest.approx(expected, abs=0.06)
    assert share(scored([250.0] * 9, metric=LATENCY), gate_of(250, metric=LATENCY)) == 0.0


def test_medians_are_those_of_numpy() -> None:
    """Each resample, drawn as it is defined, with numpy's own median."""
    values = np.random.default_rng(4).integers(0, 9, 20).astype(np.float64)
    weights = resampling.in_blocks(
        lambda raw, rows: resampling.weigh(raw, rows, 20), 300, resampling.SEED
    )
    for threshold in (3.0, 4.0, 4.5, 5.0):
        medians = [np.median(np.repeat(values, row)) for row in weights]
        own = np.median(values) <= threshold
        expected = np.mean([(each <= threshold) != own for each in medians])
        scores, gate = scored(values, metric=LATENCY), gate_of(threshold, metric=LATENCY)
        assert share(scores, gate, resamples=300) == expected


def test_a_review_band_is_a_verdict_of_its_own() -> None:
    """The value is in the middle of the band: what leaves it on either side flips."""
    scores = scored([1, 0] * 50)  # the standard error is 0.05
    assert tried(scores, gate_of(0.5, review=(0.45, 0.55))).status == "review"
    # One standard error to either side, both ends inside: 0.55 + half a step is 1.1 of them.
    found = share(scores, gate_of(0.5, review=(0.45, 0.55)))
    assert found == pytest.approx(math.erfc(1.1 / math.sqrt(2)), abs=0.045)
    assert share(scores, gate_of(0.5, review=(0.0, 1.0))) == 0.0


def test_the_interval_moves_with_the_value() -> None:
    """A lower bound 0.1 below the value and a threshold of 0.4: as the point at 0.5."""
    scores = scored([1, 0] * 50, interval=(0.4, 0.6))
    by_bound = tried(scores, gate_of(0.4, policy="confident-pass"))
    assert by_bound.flips == share(scores, gate_of(0.5))
    assert by_bound.method.endswith("; the bound moves with the value")
    rising = scored([1, 0] * 50, interval=(0.4, 0.6), metric=EMPTY)
    assert share(rising, gate_of(0.6, metric=EMPTY, policy="confident-pass")) == share(
        rising, gate_of(0.5, metric=EMPTY)
    )


def test_conversations_are_drawn_as_a_whole() -> None:
    """Fifty turns that are all right and fifty that are all wrong: two units, not a hundred."""
    qids = ["a"] * 50 + ["b"] * 50
    turns = [*range(50), *range(50)]
    scores = scored([1] * 50 + [0] * 50, qids=qids, turns=turns)
    found = tried(scores, gate_of(0.4), resamples=20_000)
    # (a, a), (a, b), (b, a) pass with 1 and 1/2; (b, b) is 0.
    assert found.flips == pytest.approx(0.25, abs=0.02)
    assert found.method.startswith("conversations resampled")
    assert found.n == 100
    alone = tried(scored([1] * 50, qids=["a"] * 50, turns=range(50)), gate_of(0.4))
    assert alone.reason == "one conversation alone always gives its value back"


# --- a gate on a drop ---


def test_exchanges_by_hand() -> None:
    """Three of four questions fall by 1, 1 and 1/2: the 8 sums are ±2.5, ±1.5, ±0.5, ±0.5.

    Two of them are above 1 = 4 × 0.25.
    """
    before, now = scored([1, 1, 1, 0.3]), scored([0, 0, 0.5, 0.3])
    found = tried(now, gate_of(0.25, drop=True), before)  # 4 questions: a sum over 1
    assert (found.flips, found.n, found.status) == (2 / 8, 4, "fail")
    assert found.method == "all exchanges of paired questions"
    assert share(now, gate_of(0.375, drop=True), before) == 1 / 8  # a sum over 1.5: just 2.5
    assert share(now, gate_of(0.0, drop=True), before) == 4 / 8
    assert share(now, gate_of(1.0, drop=True), before) == 0.0


def test_one_question_may_be_exchanged() -> None:
    assert share(scored([0.0]), gate_of(0.1, drop=True), scored([1.0])) == 0.5
    assert share(scored([1.0]), gate_of(0.1, drop=True), scored([0.0])) == 0.5
    worse = share(
        scored([1.0], metric=EMPTY),
        gate_of(0.1, metric=EMPTY, drop=True),
        scored([0.0], metric=EMPTY),
    )
    assert worse == 0.5


@pytest.mark.slow
def test_a_noisy_drop_gate_flips_often() -> None:
    """Random signs of numpy's own generator give the same share."""
    rng = np.random.default_rng(5)
    now, before = rng.random(60), rng.random(60)
    differences = before - now
    signs = rng.choice([-1.0, 1.0], (20_000, 60))
    drops = signs @ differences / 60
    for threshold in (0.0, 0.02, 0.1):
        expected = float(np.mean(drops > threshold))
        found = tried(scored(now), gate_of(threshold, drop=True), scored(before))
        assert found.flips == pytest.approx(expected, abs=0.05)
        assert found.method == "2,000 random exchanges of paired questions"
    assert share(scored(now), gate_of(0.02, drop=True), scored(before)) > 0.25


def test_the_drop_demanded_is_no_flip() -> None:
    """0.84 - 0.82 is a little more than 0.02 in floating point, and is 0.02 all the same."""
    before, now = scored([1.0] + [0.82] * 9), scored([0.8] + [0.82] * 9)
    assert share(now, gate_of(0.02, drop=True), before) == 0.0
    assert share(now, gate_of(0.0199, drop=True), before) == 0.5


@pytest.mark.slow
def test_quantiles_are_exchanged_value_by_value() -> None:
    rng = np.random.default_rng(6)
    now, before = rng.lognormal(6, 0.5, 41), rng.lognormal(6, 0.5, 41)
    flips = rng.random((4_000, 41)) < 0.5
    drops = np.median(np.where(flips, before, now), axis=1) - np.median(
        np.where(flips, now, before), axis=1
    )
    expected = float(np.mean(drops > 40))
    scores, baseline = scored(now, metric=LATENCY), scored(before, metric=LATENCY)
    assert 0.05 < expected < 0.45
    assert share(scores, gate_of(40, metric=LATENCY, drop=True), baseline) == pytest.approx(
        expected, abs=0.06
    )
    few = [scored(values[:3], metric=LATENCY) for values in (now, before)]
    brute = 0
    for signs in itertools.product((False, True), repeat=3):
        new, old = np.where(signs, before[:3], now[:3]), np.where(signs, now[:3], before[:3])
        brute += bool(np.median(new) - np.median(old) > 40)
    assert share(few[0], gate_of(40, metric=LATENCY, drop=True), few[1]) == brute / 8


def test_turns_are_exchanged_together() -> None:
    """Ten turns of one conversation fall: all or none are exchanged, and 0.5 of the trials fail."""
    qids, turns = ["a"] * 10 + ["b"], [*range(10), None]
    before = scored([1] * 10 + [0], qids=qids, turns=turns)
    now = scored([0] * 11, qids=qids, turns=turns)
    found = tried(now, gate_of(0.5, drop=True), before)
    assert (found.flips, found.method) == (0.5, "all exchanges of paired conversations")


def test_only_common_questions_are_compared() -> None:
    before = scored([1, 1, 0, math.nan], qids=["a", "b", "c", "d"])
    now = scored([0, 1, 1], qids=["a", "d", "x"])
    fewer = Tolerance(fewer_questions=True)
    found = tried(now, gate_of(0.1, drop=True), before, tolerance=fewer)
    assert (found.n, found.flips) == (1, 0.5)


def test_a_bound_on_a_drop_fails_systems_that_are_the_same() -> None:
    """The upper bound of no drop is above 0: a demand of 0 by the interval nearly always fails."""
    rng = np.random.default_rng(7)
    now, before = scored(rng.random(100)), scored(rng.random(100))
    found = share(now, gate_of(0.0, drop=True, policy="confident-pass"), before)
    assert found > 0.9
    assert found > share(now, gate_of(0.0, drop=True), before)
    assert share(now, gate_of(0.5, drop=True, policy="confident-pass"), before) == 0.0


def test_review_of_a_drop_is_no_failure() -> None:
    now, before = scored([0.0, 1.0]), scored([1.0, 1.0])
    assert share(now, gate_of(0.1, drop=True), before) == 0.5
    assert share(now, gate_of(0.1, drop=True, review=(0.1, 0.6)), before) == 0.0


@pytest.mark.parametrize("n", [60, POISSON_FROM + 100])
def test_without_a_baseline_two_resamples_are_compared(n: int) -> None:
    rng = np.random.default_rng(n)
    values = rng.random(n)
    gap = 0.5 * float(values.std()) / math.sqrt(n)
    first, second = (values[rng.integers(0, n, (SOME, n))].mean(axis=1) for _ in range(2))
    expected = float(np.mean(first - second > gap))  # half of √2 standard errors: about 0.36
    found = tried(scored(values), gate_of(gap, drop=True))
    assert found.flips == pytest.approx(expected, abs=0.06)
    assert found.status == "not-evaluable"
    assert "unpaired and therefore pessimistic" in found.method
    lower = scored(values, metric=EMPTY)
    assert share(lower, gate_of(gap, metric=EMPTY, drop=True)) == pytest.approx(expected, abs=0.06)
    assert share(scored(values), gate_of(1.0, drop=True)) == 0.0


def test_without_a_baseline_quantiles_too() -> None:
    values = np.random.default_rng(8).lognormal(6, 0.5, 40)
    scores = scored(values, metric=LATENCY)
    assert 0.3 < share(scores, gate_of(0, metric=LATENCY, drop=True)) <= 0.5
    assert share(scores, gate_of(1e6, metric=LATENCY, drop=True)) == 0.0


# --- what cannot be tried ---


@cases(
    ("scores", "gate", "reason"),
    [
        (scored([1, 0]), gate_of(0.5, part="type=table"), "in type=table is not kept"),
        (scored([1, 0], kept=False), gate_of(0.5), "save them with --full"),
        (scored([1, 0]), gate_of(0.5, metric="refusal.f1"), "refusal.f1 is not in these scores"),
        (scored([1.0]), gate_of(0.5), "one question alone"),
        (scored([1.0]), gate_of(0.5, drop=True), "one question alone"),
        (scored([math.nan, math.nan]), gate_of(0.5), "0/0"),
        (scored([math.nan, math.nan]), gate_of(0.5, drop=True), "no question has"),
        (scored([1, 0]), gate_of(0.5, min_n=3), "n = 2 is below min_n = 3"),
        (scored([1, 0]), gate_of(0.5, min_n=3, drop=True), "n = 2 is below min_n = 3"),
        (scored([1, 0]), gate_of(0.5, policy="confident-pass"), "no interval to judge by"),
        (
            scored([1, 0]),
            gate_of(0.5, policy="confident-pass", drop=True),
            "no interval to judge by",
        ),
        (scored([1, 0], value=0.9), gate_of(0.5), "taken over rows"),
    ],
)
def test_what_cannot_be_tried_says_why(scores: Scores, gate: Gate, reason: str) -> None:
    found = tried(scores, gate)
    assert found.flips is None
    assert found.method == "not tried"
    assert found.reason is not None
    assert reason in found.reason


def test_a_metric_without_values_of_questions() -> None:
    scores = scored([1, 0], metric="refusal.f1")
    assert scores.per_question is not None
    other = scored([1, 0])
    mixed = Scores(
        profile="all", dialect="native", k=(5,), gold_name="", trace_name="", tally=scores.tally,
        metrics=scores.metrics, refusal_rules={}, questions=scores.questions,
        per_question=other.per_question,
    )  # fmt: skip
    found = tried(mixed, gate_of(0.4, metric="refusal.f1"))
    assert (found.flips, found.status) == (None, "pass")
    assert found.reason == "refusal.f1 is not made of values of questions"


def test_runs_that_cannot_be_compared() -> None:
    found = tried(scored([1, 0]), gate_of(0.1, drop=True), scored([1, 0], qids=["x", "y"]))
    assert (found.flips, found.status) == (None, "not-evaluable")
    assert found.reason == "no question has retrieval.recall@5 in both runs"


def test_a_baseline_with_gaps_is_tried_as_it_is_judged() -> None:
    """Not at all, or on the two questions that it has results for: 1/4 of the exchanges fail."""
    before = scored([1, 1, 0], labels={"q00002": "ERRORED"}, errored=1)
    now, gate = scored([0, 1, 1]), gate_of(0.02, drop=True)
    found = tried(now, gate, before)
    assert (found.flips, found.status) == (None, "not-evaluable")
    assert found.reason is not None
    assert found.reason.startswith("1 trace of the baseline carries an error")
    allowed = tried(now, gate, before, tolerance=Tolerance(errored=True))
    # The change of q00000 stays or turns round, that of q00001 is 0: a fall in 2 of 4.
    assert (allowed.flips, allowed.n, allowed.status) == (0.5, 2, "fail")


def test_a_grid_that_must_be_whole_is_asked_of_the_baseline() -> None:
    before, now, gate = scored([1, 1], missing_slots=1), scored([1, 1]), gate_of(0.02, drop=True)
    assert tried(now, gate, before).status == "pass"
    assert tried(now, gate, before, whole_grid=True).status == "not-evaluable"


def test_questions_whose_gold_changed_are_not_exchanged() -> None:
    """As in the drop itself: the change of q00000 is left out, and nothing else changed."""
    now, before = scored([0, 1], hashes=["b", "c"]), scored([1, 1], hashes=["a", "c"])
    fewer = Tolerance(fewer_questions=True)
    found = tried(now, gate_of(0.02, drop=True), before, tolerance=fewer)
    assert (found.flips, found.n, found.status) == (0.0, 1, "pass")


def test_at_least_one_resample() -> None:
    with pytest.raises(ValueError, match="at least one"):
        self_test(scored([1, 0]), [gate_of(0.5)], resamples=0)
    assert self_test(scored([1, 0]), []) == ()


# --- determinism ---


@pytest.mark.slow
@pytest.mark.parametrize("n", [40, POISSON_FROM + 40])
def test_the_order_of_questions_is_nothing(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor are threads, nor how many questions are summed at a time."""
    rng = random.Random(n)
    qids = [f"q{place // 2}" for place in range(n)]
    turns = [place % 2 if place % 3 else None for place in range(n)]
    now, before = ([rng.random() for _ in range(n)] for _ in range(2))
    now[3] = math.nan
    gates = [
        gate_of(0.5), gate_of(0.49, review=(0.48, 0.5)), gate_of(0.01, drop=True),
    ]  # fmt: skip

    def run(order: list[int], other: list[int]) -> list[float | None]:
        scores, baseline = (
            scored(
                [values[i] for i in places], qids=[qids[i] for i in places],
                turns=[turns[i] for i in places],
            )
            for values, places in ((now, order), (before, other))
        )  # fmt: skip
        found = self_test(scores, gates, baseline=baseline, resamples=300)
        found += self_test(scores, gates, resamples=300)
        return [each.flips for each in found]

    straight = list(range(n))
    expected = run(straight, straight)
    assert None not in expected
    assert len(set(expected)) >= 3
    assert run(rng.sample(straight, n), rng.sample(straight, n)) == expected
    monkeypatch.setattr(resampling, "THREADS", 1)
    monkeypatch.setattr(resampling, "_PRODUCTS", 1)
    assert run(straight[::-1], straight) == expected


# --- all gates, and advice that follows from the numbers ---


def rated(right: int, n: int, **more: Any) -> Scores:
    """A rate with the interval that belongs to it."""
    values = np.array([1.0] * right + [0.0] * (n - right))
    return scored(values, interval=score_interval(group_sums(values)), **more)


def test_a_slice_is_computed_from_its_interval() -> None:
    """Which questions are in it is not kept; n and the interval are, and say the same."""
    whole = rated(45, 50)
    in_part = replace(whole, slices={"type": {"table": SliceResult(n=50, metrics=whole.metrics)}})
    drawn = tried(whole, gate_of(0.85))
    computed = tried(in_part, gate_of(0.85, part="type=table"))
    assert computed.method.startswith("computed from n and the interval")
    assert drawn.flips is not None
    assert computed.flips == pytest.approx(drawn.flips, abs=0.07)


def test_a_slice_is_tried_on_its_own_questions() -> None:
    """20 tables that change places with the baseline, and 20 texts that never move."""
    moving, still = [1.0, 0.0] * 10, [1.0] * 20
    tables = {"type": {"table": list(range(20)), "text": list(range(20, 40))}}
    now, before = (
        replace(scores, per_question=replace(scores.per_question, slices=tables))
        for scores in (scored(moving + still), scored(moving[::-1] + still))
        if scores.per_question is not None
    )
    alone_now, alone_before = scored(moving), scored(moving[::-1])
    alone = tried(alone_now, gate_of(0.05, drop=True), alone_before)
    table, text = (
        tried(now, gate_of(0.05, drop=True, part=f"type={name}"), before)
        for name in ("table", "text")
    )
    assert (table.n, table.flips, table.method) == (20, alone.flips, alone.method)
    assert (text.n, text.flips) == (20, 0.0)
    without = tried(now, gate_of(0.05, drop=True, part="type=table"))
    assert without.flips == tried(alone_now, gate_of(0.05, drop=True)).flips


def test_the_best_of_some_runs_lets_a_gate_flip_more_often() -> None:
    now, before = scored([1.0, 0.0] * 20), scored([0.0, 1.0] * 20)
    one = tried(now, gate_of(0.05, drop=True), before)
    best = tried(now, gate_of(0.05, drop=True, chosen_from=5), before)
    assert one.flips is not None
    assert best.flips == pytest.approx(chance_against_best(one.flips, 5))
    assert best.method == f"{one.method}; against the best of 5 equal runs"


def test_advice_names_a_policy_that_its_numbers_support() -> None:
    """0.90 at >= 0.88 and n = 50: by the point a third of the runs fail, surely too bad are few."""
    test = tried(rated(45, 50), gate_of(0.88))
    assert test.flips is not None
    assert test.flips > 0.2
    assert test.advice is not None
    assert 'policy = "confident-fail" fails an unchanged system in' in test.advice
    confident = tried(rated(45, 50), gate_of(0.88, policy="confident-fail"))
    assert confident.status == "pass"
    assert "questions would do" in test.advice
    n = int(test.advice.rpartition("n = ")[2].split()[0])
    enough = tried(rated(round(0.9 * n), n), gate_of(0.88))
    assert enough.flips is not None
    assert enough.flips < 0.08


def test_advice_never_names_a_policy_that_would_not_help() -> None:
    """The old advice was the interval, which fails unchanged systems more often than the point."""
    for policy in ("point", "confident-pass"):
        test = tried(rated(45, 50), gate_of(0.88, policy=policy))
        assert "confident-pass" not in (test.advice or "")
        assert "interval" not in (test.advice or "")
    far = tried(rated(45, 50), gate_of(0.5))
    assert (far.flips, far.advice) == (0.0, None)


def test_confident_fail_flips_between_pass_and_review() -> None:
    """0.88 at >= 0.90 and n = 200 is review; resampled, it passes or fails only sometimes."""
    test = tried(rated(176, 200), gate_of(0.9, policy="confident-fail"))
    assert test.status == "review"
    assert test.flips is not None
    assert 0.1 < test.flips < 0.45


def test_a_drop_by_confident_fail_rarely_fails_identical_systems() -> None:
    """Ten questions of 200 flipped each way: A/A, as far as anybody can tell."""
    before = scored([1.0] * 180 + [1.0] * 10 + [0.0] * 10)
    now = scored([1.0] * 180 + [0.0] * 10 + [1.0] * 10)
    by_point = share(now, gate_of(0.02, drop=True), before)
    surely = share(now, gate_of(0.0, drop=True, policy="confident-fail"), before)
    assert by_point > 0.05
    assert surely < 0.05
    advice = tried(now, gate_of(0.02, drop=True), before).advice
    assert advice is not None
    assert "confident-fail" in advice
