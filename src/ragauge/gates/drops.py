"""Drops: how much worse a run is than a baseline, question by question.

Values are paired: the change of each question counts, not two means beside each other. How hard a
question is moves both runs alike and cancels out, so a far smaller drop shows (decision 0013).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ragauge import registry
from ragauge.gates.lost_results import (
    Extreme,
    FilledResults,
    fill_lost,
    lift_errors,
    lost_results,
)
from ragauge.metrics.columns import Bools, Floats, Ints, totals
from ragauge.metrics.metric import SHARES, Better, Metric
from ragauge.model.phrases import count, question_name
from ragauge.model.scores import PerQuestion, Scores
from ragauge.scoring.estimates import delta_estimate
from ragauge.stats import exact_sums
from ragauge.stats.error_rates import DropNoise, drop_noise
from ragauge.stats.intervals import Interval, by_group, quantile
from ragauge.stats.paired import permutation, quantile_permutation
from ragauge.text import some

GAPS = ("missing-traces", "errored-traces", "skipped-lines")
"""The codes of what a baseline may lack."""


class Drop(Struct, frozen=True, kw_only=True):
    """The change to the worse over the questions that both runs have; None where it is undefined.

    `reason` says why it is undefined, or what the two values are; `code` is of an undefined one.
    """

    value: float | None
    n: int
    interval: Interval | None
    reason: str
    code: str | None = None
    detectable: float | None = None
    noise: DropNoise | None = None


class Gap(Struct, frozen=True):
    """Something that a baseline lacks: the code of what it makes of a drop, and a text."""

    code: str
    text: str


class PairedValues(Struct, frozen=True, kw_only=True):
    """The questions that a drop is over: their places on either side, ordered by what they are.

    `now` and `before` are their values; where the run has lost a question or a slot, the worst one
    is filled in, and `filled` counts it. `changed` counts those that are excluded as their gold
    items say different things, `lacking` those of which the baseline has no result for some slot.
    """

    mine: Ints
    theirs: Ints
    now: Floats
    before: Floats
    filled: FilledResults
    newly: int
    changed: int
    lacking: int

    def only(self, chosen: Bools) -> PairedValues:
        """The same of some of the questions; what is counted stays that of all."""
        columns = ("mine", "theirs", "now", "before")
        return replace(self, **{name: getattr(self, name)[chosen] for name in columns})


def drop_of(
    metric: str,
    better: Better,
    scores: Scores,
    baseline: Scores | None,
    *,
    max_drop: float = 0.0,
    whole_grid: bool = False,
    tolerated: Collection[str] = (),
    lost_as: Extreme = "worst",
    chosen_from: int = 1,
    part: str | None = None,
) -> Drop:
    """Compare one metric of a run with the same metric of a baseline, pairwise.

    A baseline with gaps makes every drop look small: there is none to tell, unless the codes of the
    gaps are `tolerated`. `whole_grid`: a slot that is missing is a gap as well. What is detectable
    is a drop that is surely more than `max_drop`. What the run has lost counts as the worst, or
    `lost_as` the best. Nor is there a drop to tell of less than 90 % of the questions that the
    baseline has a value of, unless `fewer-questions` is tolerated. `part` narrows it to a slice, as
    `type=table`.

    A baseline that was chosen as the best of several runs is a lucky one: interval and p hold for
    all of them at once (Bonferroni).
    """
    if baseline is None:
        return _undefined("no-baseline", "there is no baseline: give --baseline SCORES")
    trouble = incomparable(metric, scores, baseline)
    if trouble is not None:
        return _undefined("incomparable", trouble)
    assert scores.per_question is not None and baseline.per_question is not None
    shared = common_questions(scores.per_question, baseline.per_question)
    lacking = [
        gap
        for gap in baseline_gaps(baseline, shared[1].tolist(), whole_grid=whole_grid)
        if gap.code not in tolerated
    ]
    if lacking:
        return _undefined(lacking[0].code, "; ".join(gap.text for gap in lacking))
    if baseline.unmatched and "missing-traces" not in tolerated:
        verb = "is" if baseline.unmatched == 1 else "are"
        return _undefined(
            "incomparable",
            f"{count(baseline.unmatched, 'question')} {verb} left out, as nothing recognises "
            "what they expect in both runs; --allow-missing judges without them",
        )
    everywhere = _paired_values(metric, scores, baseline, *shared, lost_as=lost_as)
    pairs = _in_part(everywhere, scores.per_question, part)
    if pairs is None:
        why = "these scores do not say which questions are in a slice: score them again"
        return _undefined("incomparable", why)
    now, before, n = pairs.now, pairs.before, len(pairs.now)
    if n == 0:
        beyond = " beside those that the baseline lacks" if pairs.lacking else ""
        inside = "" if part is None else f" of {part}"
        return _undefined("incomparable", f"no question{inside} has {metric} in both runs{beyond}")
    gone = _gone(metric, baseline, pairs, part, everywhere)
    if 10 * len(gone) > len(gone) + n and "fewer-questions" not in tolerated:
        return _undefined(
            "fewer-questions",
            f"{n} of {count(n + len(gone), 'question')} of the baseline can be compared, less than "
            f"90 %; gone or changed: {some(gone)}; --allow-fewer-questions judges "
            "the rest",
        )
    definition = registry.metrics()[metric.partition("@")[0]]
    share = SHARES.get(definition.aggregate)
    new, old = _fraction(now, share), _fraction(before, share)
    sign = 1.0 if better == "lower" else -1.0
    both = f"{float(old):.4f} in the baseline, {float(new):.4f} now"
    reason = f"{both}, on {count(n, 'common question')}"
    # Turns of a conversation share its luck: they are counted and flipped as one unit, or the
    # interval would be too narrow. Sign flips assume no shape of the values; recall of a question
    # is often one of three numbers, which a t-test does not forgive.
    conversations = conversations_of(scores.per_question, pairs.mine)
    together = conversations if conversations.max() + 1 < n else None
    estimate = delta_estimate(
        definition, before, now, together, max_drop=max_drop, looks=chosen_from
    )
    if share is None:
        (p,) = permutation(sum_by_conversation(now - before, conversations))
    else:
        p = quantile_permutation(before, now, share, cluster=together)
    interval = None
    if estimate.closed is not None:
        low, high = estimate.closed
        # + 0.0 makes 0.0 of -0.0, which would be printed with its sign.
        interval = (low, high) if sign > 0 else (-high + 0.0, -low + 0.0)
        best = f", for the best of {chosen_from} runs" if chosen_from > 1 else ""
        reason += f": {interval[0]:+.4f} to {interval[1]:+.4f} worse (95 %{best})"
    if p is not None:
        p = min(1.0, p * chosen_from)
        reason += f", p\u00a0=\u00a0{p:.4f}"
    return Drop(
        value=sign * float(new - old) + 0.0,
        n=n,
        interval=interval,
        reason="; ".join([reason, *_left_out(metric, scores, baseline, pairs, gone, part)]),
        detectable=estimate.detectable,
        noise=_noise(definition, now - before, together),
    )


def _noise(metric: Metric, differences: Floats, together: Ints | None) -> DropNoise | None:
    """How questions move by chance, in shares of the metric's range; None for quantiles."""
    if metric.quantile is not None or not metric.bounded:
        return None
    differences = differences / (metric.range[1] - metric.range[0])
    if together is None:
        return drop_noise(differences)
    sums, sizes = by_group(differences, together)
    return drop_noise(sums / sizes)


def _left_out(
    metric: str,
    scores: Scores,
    baseline: Scores,
    pairs: PairedValues,
    gone: Sequence[str],
    part: str | None,
) -> Iterator[str]:
    """What a drop is not over, and what was filled in."""
    assert scores.per_question is not None and baseline.per_question is not None
    valued = _defined(scores.per_question, metric) + _defined(baseline.per_question, metric)
    unpaired = valued + pairs.newly - 2 * (len(pairs.now) + pairs.lacking)
    if unpaired and part is None:
        yield f"without a partner: {count(unpaired, 'value')}"
    if pairs.filled.note is not None:
        yield pairs.filled.note
    if pairs.lacking:
        yield f"left out, as the baseline lacks them: {count(pairs.lacking, 'question')}"
    if baseline.unmatched:
        yield f"left out, as nothing recognises them: {count(baseline.unmatched, 'question')}"
    if gone:
        yield f"of the baseline, gone or changed: {some(gone)}"
    if pairs.changed:
        yield f"left out, as their gold changed: {count(pairs.changed, 'question')}"
    if scores.embedders != baseline.embedders and scores.embedders and baseline.embedders:
        yield "the embedders of the two runs differ"


def _gone(
    metric: str,
    baseline: Scores,
    pairs: PairedValues,
    part: str | None,
    everywhere: PairedValues,
) -> list[str]:
    """The questions that have a value in the baseline, or had one, and are not compared.

    Of a slice those in it, as far as the baseline says which they are. Where it does not, as a run
    that was aligned, those are in other slices that can be compared `everywhere`.
    """
    values = baseline.per_question
    assert values is not None
    valued = ~np.isnan(values.of(metric)) & ~_lacking(baseline)
    inside = None if part is None else values.in_slice(part)
    if inside is not None:
        valued &= inside
    elif part is not None:
        valued[everywhere.theirs] = False
    valued[pairs.theirs] = False
    places = np.flatnonzero(valued).tolist()
    names = [question_name(values.qids[place], values.turns[place]) for place in places]
    return [*names, *baseline.gone]


def _in_part(pairs: PairedValues, values: PerQuestion, part: str | None) -> PairedValues | None:
    """The questions of a slice; None where it is not known which they are."""
    if part is None:
        return pairs
    inside = values.in_slice(part)
    return None if inside is None else pairs.only(inside[pairs.mine])


def paired_values(metric: str, scores: Scores, baseline: Scores) -> PairedValues:
    """The questions with a value of a metric in both runs that the baseline has results for.

    Where the baseline has none, or an error, its zeros would hide a drop: such questions are
    excluded, while those of the run itself count as the worst.
    """
    assert scores.per_question is not None and baseline.per_question is not None
    shared = common_questions(scores.per_question, baseline.per_question)
    return _paired_values(metric, scores, baseline, *shared)


def _paired_values(
    metric: str,
    scores: Scores,
    baseline: Scores,
    mine: Ints,
    theirs: Ints,
    changed: int,
    *,
    lost_as: Extreme = "worst",
) -> PairedValues:
    assert scores.per_question is not None and baseline.per_question is not None
    now, before = scores.per_question.of(metric)[mine], baseline.per_question.of(metric)[theirs]
    valued = ~np.isnan(now)
    lost = lost_results(scores, mine, beside=baseline, there=theirs)
    definition = registry.metrics()[metric.partition("@")[0]]
    if lost_as == "best":
        lift_errors(definition, now, lost)
    filled = fill_lost(definition, (before, now), (None, lost), lost_as)
    both = ~np.isnan(now) & ~np.isnan(before)
    lacking = both & _lacking(baseline)[theirs]
    compared = both & ~lacking
    return PairedValues(
        mine=mine[compared],
        theirs=theirs[compared],
        now=now[compared],
        before=before[compared],
        filled=filled,
        newly=int(np.count_nonzero(both & ~valued)),
        changed=changed,
        lacking=int(np.count_nonzero(lacking)),
    )


def _lacking(baseline: Scores) -> Bools:
    """Which questions have a slot whose lack counts in values, as a zero or a worst value."""
    labels = baseline.questions.labels
    if baseline.options.missing == "exclude":  # values are of what is there
        return np.zeros(len(labels), np.bool_)
    return np.array([label in ("MISSING", "ERRORED") for label in labels], np.bool_)


def baseline_gaps(baseline: Scores, places: Sequence[int], *, whole_grid: bool) -> list[Gap]:
    """What a baseline lacks of the questions that are compared, which are at those places in it.

    A question without a trace, a trace with an error, a line that could not be read and, with
    `whole_grid`, a slot without a trace. Slots and lines are known for the baseline as a whole.
    """
    labels, tally = baseline.questions.labels, baseline.tally
    of_all = f"of {count(len(places), 'compared question')}"
    gaps = []
    missing = [place for place in places if labels[place] == "MISSING"]
    if missing:
        verb = "has" if len(missing) == 1 else "have"
        names = _names(baseline, missing)
        text = f"{len(missing)} {of_all} {verb} no trace in the baseline: {names}"
        gaps.append(Gap("missing-traces", f"{text}; --allow-missing judges without them"))
    if whole_grid and tally.missing_slots:
        verb = "has" if tally.missing_slots == 1 else "have"
        text = f"{count(tally.missing_slots, 'slot')} of the baseline {verb} no trace"
        fewest = _fewest(baseline, [place for place in places if labels[place] != "MISSING"])
        text += f"; fewest traces: {_names(baseline, fewest)}" if fewest else ""
        gaps.append(Gap("missing-traces", f"{text}; --allow-missing judges all the same"))
    gaps += _errors(baseline, places, of_all)
    if tally.trace_skipped:
        verb = "was" if tally.trace_skipped == 1 else "were"
        text = f"{count(tally.trace_skipped, 'bad line')} of the baseline {verb} skipped"
        gaps.append(Gap("skipped-lines", f"{text}; --allow-skipped judges without them"))
    return gaps


def _errors(baseline: Scores, places: Sequence[int], of_all: str) -> list[Gap]:
    """The errors of a baseline; a profile that follows its source does not say on which questions.

    There an error counts as an answer, and stays one where it is tolerated.
    """
    labels = baseline.questions.labels
    if baseline.tally.errored and "ERRORED" not in labels:
        verb = "carries" if baseline.tally.errored == 1 else "carry"
        text = f"{count(baseline.tally.errored, 'trace')} of the baseline {verb} an error"
        return [Gap("errored-traces", f"{text}; --allow-errored judges all the same")]
    wrong = [place for place in places if labels[place] == "ERRORED"]
    if not wrong:
        return []
    traces = sum((baseline.questions.counts(place) or {}).get("ERRORED", 1) for place in wrong)
    verb = "carries" if traces == 1 else "carry"
    text = (
        f"{count(traces, 'trace')} of the baseline {verb} an error, on {len(wrong)} {of_all}: "
        f"{_names(baseline, wrong)}; --allow-errored judges without them"
    )
    return [Gap("errored-traces", text)]


def _fewest(baseline: Scores, places: Sequence[int]) -> list[int]:
    """The questions with the fewest slots, where not all have as many."""
    counts = {
        place: sum((baseline.questions.counts(place) or {"": 1}).values()) for place in places
    }
    least = min(counts.values(), default=0)
    if least == max(counts.values(), default=0):
        return []
    return [place for place, n in counts.items() if n == least]


def _names(baseline: Scores, places: Sequence[int]) -> str:
    values = baseline.per_question
    assert values is not None
    return some([question_name(values.qids[place], values.turns[place]) for place in places])


def _defined(values: PerQuestion, metric: str) -> int:
    return int(np.count_nonzero(~np.isnan(values.of(metric))))


def conversations_of(values: PerQuestion, places: Ints) -> Ints:
    """The conversation of each question: turns of one id are drawn and flipped together."""
    return numbered(np.array([values.qids[place] for place in places.tolist()], np.str_))


def numbered(names: NDArray[Any]) -> Ints:
    """The place of each name among the different ones."""
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def sum_by_conversation(column: Floats, conversations: Ints) -> Floats:
    """The sum of a column over each conversation, as a column."""
    return totals(conversations, column, int(conversations.max()) + 1)[:, None]


def _fraction(values: Floats, share: float | None) -> Fraction:
    """The value of one run as the fraction that it is, so that differences are exact, too."""
    if share is None:
        return exact_sums.fraction_total(values) / len(values)
    value = quantile(values, share)
    assert value is not None
    return exact_sums.as_fraction(value)


def _undefined(code: str, reason: str) -> Drop:
    return Drop(value=None, n=0, interval=None, reason=reason, code=code)


def incomparable(metric: str, scores: Scores, baseline: Scores) -> str | None:
    """Why a metric of two runs cannot be compared; None if it can."""
    for run, name in ((scores, "these scores"), (baseline, "the baseline")):
        if run.per_question is None:
            return f"no values of questions in {name}: save them with --full"
        if metric not in run.per_question.metrics:
            return f"{metric} is not in {name}, or is not made of values of questions"
    versions = scores.metrics[metric].version, baseline.metrics[metric].version
    if versions[0] != versions[1]:
        return f"{metric} is version {versions[0]} here and {versions[1]} in the baseline"
    if metric.startswith("semantic.") and (
        scores.embedders != baseline.embedders or len(scores.embedders) > 1
    ):
        return "ΔS of different embedders is never compared"
    family, base = metric.partition(".")[0], metric.partition("@")[0]
    differing = [
        name
        for name in (*_ALWAYS, *_OPTIONS_OF.get(base, _OPTIONS_OF.get(family, ())))
        if getattr(scores.options, name) != getattr(baseline.options, name)
    ]
    if differing:
        return f"the two runs were scored with a different {' and '.join(differing)}"
    return None


_ALWAYS = ("missing", "chunks", "refusal_rule", "refusal_patterns", "refusal_languages")
_OPTIONS_OF = {
    "retrieval": ("relevance_level", "overlap"),
    "answer": ("relevance_level",),
    "citation": ("relevance_level",),
    "stability": ("relevance_level",),
    "citation.accuracy": ("citation_mode", "citation_window", "relevance_level"),
    "answer.groundedness": ("ignore_case",),
    "answer.groundedness_labelled": ("ignore_case",),
}
"""The options that change a metric."""


def common_questions(one: PerQuestion, other: PerQuestion) -> tuple[Ints, Ints, int]:
    """The places of the questions that both have, ordered by what they are.

    Questions whose gold items say different things are excluded and counted. The order makes what
    is drawn for a question the same, however the files of the two runs are sorted.
    """
    theirs = {key: place for place, key in enumerate(zip(other.qids, other.turns, strict=True))}
    shared = sorted(
        (qid, -1 if turn is None else turn, place, theirs[qid, turn])
        for place, (qid, turn) in enumerate(zip(one.qids, one.turns, strict=True))
        if (qid, turn) in theirs
    )
    unchanged = [places for _, _, *places in shared]
    if one.hashes and other.hashes:
        unchanged = [[a, b] for a, b in unchanged if one.hashes[a] == other.hashes[b]]
    return (
        np.array([place for place, _ in unchanged], np.int64),
        np.array([place for _, place in unchanged], np.int64),
        len(shared) - len(unchanged),
    )
