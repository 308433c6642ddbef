"""What two runs say of questions whose evidence stands somewhere in a chunk: bands, not numbers.

Each answer is computed at every possible place of the evidence, at the same place in both runs.
What is equal at all places is reported like any other number; the rest lies between two ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge.metrics.columns import Floats
from ragauge.metrics.metric import Selected
from ragauge.model.comparison import Delta
from ragauge.model.scores import MetricResult, Scores
from ragauge.scoring.chunk_records import (
    ChunkRecords,
    MetricBand,
    QuestionOutcomes,
    metric_bands,
    question_outcomes,
)

PLACE_UNKNOWN = "place-unknown"
"""Why there is no number: gold names chunks, and the number depends on where in them."""

NARROWEST = 1e-9
"""Ends that are nearer to each other are one number."""

_BY_PLACE = (
    *("retrieval.precision", "retrieval.precision_at_cutoff", "retrieval.r_precision"),
    *("retrieval.bpref", "retrieval.judged", "retrieval.unjudged", "retrieval.negative_above"),
    *("retrieval.span_iou", "retrieval.span_precision", "retrieval.span_recall"),
    *("citation.hit_rate", "citation.hit_rate_answerable", "citation.accuracy"),
    *("citation.precision", "citation.recall", "answer.coverage"),
    *("answer.grounded_precision", "answer.precision"),
)
"""Metrics that depend on the place of the evidence by more than its rank: they have no band."""


class PlaceFindings(Struct, frozen=True, kw_only=True):
    """The questions whose evidence stands somewhere in a chunk, and what is known of them.

    outcomes   of each such question, by its place among those of either run
    bands      of each metric that is a function of ranks: its ends for each of them
    a, b       the records that they come from
    """

    outcomes: tuple[QuestionOutcomes, ...]
    bands: dict[str, MetricBand]
    a: ChunkRecords
    b: ChunkRecords

    @property
    def questions(self) -> list[int]:
        """The places of the questions."""
        return [one.question for one in self.outcomes]

    @property
    def wide(self) -> int:
        """How many questions have too many outcomes to be computed one by one."""
        return sum(one.wide for one in self.outcomes)

    @property
    def unplaced(self) -> int:
        """Of how many chunks nothing is known but that gold names them."""
        return sum(one.unplaced for one in self.outcomes)

    def is_unknown(self, metric: str) -> bool:
        """Whether nothing can be said of a metric, as it depends on more than ranks."""
        return metric.partition("@")[0] in _BY_PLACE

    def is_open(self, metric: str) -> bool:
        """Whether a metric, or its difference, depends on the place of the evidence."""
        band = self.bands.get(metric)
        return band is not None and any(_differ(*ends) for ends in (band.a, band.b, _deltas(band)))


def _differ(low: Floats, high: Floats) -> bool:
    return bool((high - low > NARROWEST).any())


def _deltas(band: MetricBand) -> tuple[Floats, Floats]:
    return band.low[1] - band.low[0], band.high[1] - band.high[0]


def place_findings(a: Scores, b: Scores, selected: Sequence[Selected]) -> PlaceFindings | None:
    """What two runs say at every place; None where no evidence stands somewhere in a chunk."""
    one, other = a.chunk_records, b.chunk_records
    if not isinstance(one, ChunkRecords) or not isinstance(other, ChunkRecords):
        return None
    questions = sorted(one.records.keys() & other.records.keys())
    questions = [number for number in questions if one.records[number] and other.records[number]]
    if not questions:
        return None
    outcomes = tuple(question_outcomes(one, other, question) for question in questions)
    return PlaceFindings(
        outcomes=outcomes, bands=metric_bands(one, other, outcomes, selected), a=one, b=other
    )


def scores_at(scores: Scores, findings: PlaceFindings, values: dict[str, Floats]) -> Scores:
    """Scores whose questions have the values of one end, where their places are unknown."""
    own = scores.per_question
    assert own is not None
    table = own.values.copy()
    for metric, of_questions in values.items():
        if metric in own.metrics:
            row = own.metrics.index(metric)
            table[row, findings.questions] = of_questions
    return replace(scores, per_question=replace(own, values=table), chunk_records=None)


class RunEnds(Struct, frozen=True):
    """Both runs where the difference of each metric is least, or where it is greatest."""

    a: Scores
    b: Scores


def ends_of(a: Scores, b: Scores, findings: PlaceFindings) -> tuple[RunEnds, RunEnds]:
    """Both runs at the low and at the high end of every difference."""
    ends = []
    for end in ("low", "high"):
        pairs = {metric: getattr(band, end) for metric, band in findings.bands.items()}
        ends.append(
            RunEnds(
                scores_at(a, findings, {metric: pair[0] for metric, pair in pairs.items()}),
                scores_at(b, findings, {metric: pair[1] for metric, pair in pairs.items()}),
            )
        )
    return ends[0], ends[1]


def run_band(
    scores: Scores, findings: PlaceFindings, metric: str, side: str
) -> tuple[float, float] | None:
    """The ends of the mean of a metric in one run; None where it has no value."""
    own = scores.per_question
    assert own is not None
    if metric not in own.metrics or metric not in findings.bands:
        return None
    means = []
    for values in getattr(findings.bands[metric], side):
        all_values = own.of(metric).copy()
        all_values[findings.questions] = values
        defined = all_values[~np.isnan(all_values)]
        if not len(defined):
            return None
        means.append(float(np.mean(defined)))
    return means[0], means[1]


def band_deltas(
    plain: Sequence[Delta], low: Sequence[Delta], high: Sequence[Delta], of: BandContext
) -> tuple[Delta, ...]:
    """The difference of each metric: a number where all places agree, else its two ends.

    `plain` are the differences without regard to places, `low` and `high` those of the ends.
    """
    lows, highs = ({delta.metric: delta for delta in deltas} for deltas in (low, high))
    return tuple(_band_delta(delta, lows[delta.metric], highs[delta.metric], of) for delta in plain)


class BandContext(Struct, frozen=True):
    """The findings, and the runs as they were scored."""

    findings: PlaceFindings
    a: Scores
    b: Scores


def _band_delta(plain: Delta, low: Delta, high: Delta, of: BandContext) -> Delta:
    findings, metric = of.findings, plain.metric
    if findings.is_unknown(metric) and plain.n:
        return replace(
            plain,
            a=None,
            b=None,
            delta=None,
            interval=None,
            p=None,
            test=None,
            detectable=None,
            reason=f"{PLACE_UNKNOWN}: gold names chunks, and it depends on where in them",
        )
    if metric not in findings.bands or low.delta is None or high.delta is None:
        return plain
    a_band, b_band = (
        run_band(scores, findings, metric, side) for scores, side in ((of.a, "a"), (of.b, "b"))
    )
    if a_band is None or b_band is None:
        return plain
    known_a, known_b = (band[1] - band[0] <= NARROWEST for band in (a_band, b_band))
    first, second = low.a if known_a else None, low.b if known_b else None
    bands = {
        "a": first,
        "b": second,
        "a_band": None if known_a else a_band,
        "b_band": None if known_b else b_band,
    }
    if high.delta - low.delta <= NARROWEST:
        return replace(low, **bands)
    signs = low.delta > 0 and high.delta > 0, low.delta < 0 and high.delta < 0
    ps = [end.p for end in (low, high) if end.p is not None]
    interval = None
    if low.interval is not None and high.interval is not None:
        interval = low.interval[0], high.interval[1]
    ends = _deltas(findings.bands[metric])
    reason = f"{PLACE_UNKNOWN}: gold names chunks"
    return replace(
        low,
        **bands,
        delta=None,
        interval=None,
        band=(low.delta, high.delta),
        band_interval=interval,
        p=max(ps) if any(signs) and len(ps) == 2 else None,
        test=low.test if any(signs) and len(ps) == 2 else None,
        detectable=None,
        reason=reason if low.reason is None else f"{reason}; {low.reason}",
        open=int(np.count_nonzero(ends[1] - ends[0] > NARROWEST)),
    )


def with_bands(
    metrics: Mapping[str, MetricResult], scores: Scores, findings: PlaceFindings, side: str
) -> dict[str, MetricResult]:
    """The metrics of one run: no value where it depends on places that gold does not say."""
    results = dict(metrics)
    for name, result in metrics.items():
        band = run_band(scores, findings, name, side)
        unknown = replace(result, value=None, interval=None, reason=PLACE_UNKNOWN, band=band)
        if (findings.is_unknown(name) and result.n) or (
            band is not None and band[1] - band[0] > NARROWEST
        ):
            results[name] = unknown
        elif band is not None and result.value is not None:
            results[name] = replace(result, value=band[0])
    return results
