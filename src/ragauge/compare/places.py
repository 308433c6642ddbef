"""What two runs say of questions whose evidence stands somewhere in a chunk: bands, not numbers.

Each answer is computed at every possible place of the evidence, at the same place in both runs.
What is equal at all places is reported like any other number; the rest lies between two ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ragauge.compare.metric_deltas import QuestionPairs
from ragauge.compare.question_changes import UnitChange, change_of_units, in_order_of
from ragauge.metrics.columns import Floats
from ragauge.metrics.metric import Selected
from ragauge.model.comparison import (
    KINDS,
    RANKS,
    WORSE,
    Delta,
    GuessedDelta,
    Kind,
    PlaceCounts,
    QueryComparison,
    Regression,
    rank_text,
)
from ragauge.model.scores import (
    PLACE_UNKNOWN,
    BandEnd,
    MetricResult,
    PlaceEnds,
    SampledEstimate,
    Scores,
)
from ragauge.model.unit_ranks import UnitFindings
from ragauge.scoring.chunk_ends import BY_PLACE, WITHOUT_BAND, is_unplaced, question_ends
from ragauge.scoring.chunk_records import (
    BY_RANKS,
    ChunkRecords,
    MetricBand,
    QuestionOutcomes,
    metric_bands,
    question_outcomes,
    unit_ranks_of,
    units_of,
)

NARROWEST = 1e-9
"""Ends that are nearer to each other are one number."""


class PlaceFindings(Struct, frozen=True, kw_only=True):
    """The questions whose evidence stands somewhere in a chunk, and what is known of them.

    outcomes   of each such question, by its place among those of either run
    bands      of each metric: its ends for each of them
    a, b       the records that they come from
    without    the metrics that depend on the place, and have no band
    """

    outcomes: tuple[QuestionOutcomes, ...]
    bands: dict[str, MetricBand]
    a: ChunkRecords
    b: ChunkRecords
    without: frozenset[str] = frozenset()

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
        """Whether nothing can be said of a metric, as it depends on more than is known."""
        return metric.partition("@")[0] in self.without

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
    # Where both runs find a chunk by its id, the place does not matter.
    questions = sorted(one.by_place.keys() | other.by_place.keys())
    questions = [number for number in questions if one.records[number] and other.records[number]]
    if not questions:
        return None
    outcomes = tuple(question_outcomes(one, other, question) for question in questions)
    bands = metric_bands(one, other, outcomes, selected)
    without = BY_PLACE
    if not any(is_unplaced(run, questions) for run in (one, other)):
        least = a.options.least_evidence
        ends = [question_ends(run, questions, selected, least=least) for run in (one, other)]
        bands |= {metric: _separate_band(*(side[metric] for side in ends)) for metric in ends[0]}
        without = WITHOUT_BAND
    return PlaceFindings(outcomes=outcomes, bands=bands, a=one, b=other, without=without)


def _separate_band(a: tuple[Floats, Floats], b: tuple[Floats, Floats]) -> MetricBand:
    """The band of a metric that is known of either run by itself."""
    return MetricBand(a, b, (a[1], b[0]), (a[0], b[1]))


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


class PlacedRuns(NamedTuple):
    """Both runs, without what depends on unknown places, and what is known of these."""

    a: Scores
    b: Scores
    places: PlaceFindings | None
    notes: tuple[str, ...] = ()


def placed_runs(a: Scores, b: Scores, selected: Sequence[Selected]) -> PlacedRuns:
    """Both runs without the values that depend on unknown places, and with their ends."""
    findings = place_findings(a, b, selected)
    if findings is None:
        return PlacedRuns(a, b, None)
    names = a.per_question.metrics if a.per_question is not None else ()
    unknown = frozenset(name for name in names if findings.is_unknown(name))
    open_questions = {}
    for metric, band in findings.bands.items():
        least, most = _deltas(band)
        open_questions[metric] = int(np.count_nonzero(most - least > NARROWEST))
    placed = []
    for number, (scores, side) in enumerate(((a, "a"), (b, "b"))):
        low, high = (
            scores_at(
                scores,
                findings,
                {metric: getattr(band, end)[number] for metric, band in findings.bands.items()},
            )
            for end in ("low", "high")
        )
        known = {
            metric: np.where(ends[1] - ends[0] > NARROWEST, np.nan, ends[0])
            for metric, band in findings.bands.items()
            if metric not in RANKS
            for ends in [getattr(band, side)]
        }
        known |= {metric: np.full(len(findings.outcomes), np.nan) for metric in unknown}
        placed.append(
            replace(
                scores_at(scores, findings, known),
                metrics=with_bands(scores.metrics, scores, findings, side),
                ends=PlaceEnds(low=low, high=high, unknown=unknown, open=open_questions),
            )
        )
    return PlacedRuns(placed[0], placed[1], findings)


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
    """The findings, and the runs at their low ends, which have a value for every question.

    `estimates` are those of a random sample of pins.
    """

    findings: PlaceFindings
    a: Scores
    b: Scores
    estimates: Mapping[str, SampledEstimate] = {}


def _band_delta(plain: Delta, low: Delta, high: Delta, of: BandContext) -> Delta:
    findings, metric = of.findings, plain.metric
    if findings.is_unknown(metric) and low.n:
        return _unknown_delta(plain)
    if metric not in findings.bands or low.delta is None or high.delta is None:
        return plain
    a_band, b_band = (
        run_band(scores, findings, metric, side) for scores, side in ((of.a, "a"), (of.b, "b"))
    )
    if a_band is None or b_band is None:
        return plain
    ends = _deltas(findings.bands[metric])
    return replace(
        _delta_between(low, high, a_band, b_band),
        estimate=of.estimates.get(metric) if high.delta - low.delta > NARROWEST else None,
        open=int(np.count_nonzero(ends[1] - ends[0] > NARROWEST)),
    )


def separate_deltas(
    plain: Sequence[Delta], low: Sequence[Delta], high: Sequence[Delta], ends: PlaceEnds
) -> tuple[Delta, ...]:
    """The same of two runs that were scored apart: the ends of either are all that is known."""
    lows, highs = ({delta.metric: delta for delta in deltas} for deltas in (low, high))
    deltas = []
    for delta in plain:
        least, most = lows[delta.metric], highs[delta.metric]
        if delta.metric in ends.unknown and least.n:
            deltas.append(_unknown_delta(delta))
        elif ends.open.get(delta.metric) and None not in (least.delta, most.delta):
            # Where the difference is least, b is least and a greatest.
            assert least.a is not None and least.b is not None
            assert most.a is not None and most.b is not None
            between = _delta_between(least, most, (most.a, least.a), (least.b, most.b))
            deltas.append(replace(between, open=ends.open[delta.metric]))
        else:
            deltas.append(delta)
    return tuple(deltas)


def with_guesses(deltas: Sequence[Delta], guessed: Sequence[Delta]) -> tuple[Delta, ...]:
    """The differences that are open, with what they were at guessed places."""
    by_metric = {delta.metric: delta for delta in guessed}
    return tuple(replace(delta, guess=_guess(delta, by_metric[delta.metric])) for delta in deltas)


def _guess(delta: Delta, guessed: Delta) -> GuessedDelta | None:
    if delta.band is None or delta.metric.partition("@")[0] not in BY_RANKS:
        return None
    if guessed.a is None or guessed.b is None or guessed.delta is None:
        return None
    return GuessedDelta(guessed.a, guessed.b, guessed.delta)


def _delta_between(
    low: Delta, high: Delta, a_band: tuple[float, float], b_band: tuple[float, float]
) -> Delta:
    """The difference of a metric between its ends, or one number where these are one."""
    assert low.delta is not None and high.delta is not None
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
    )


def _unknown_delta(plain: Delta) -> Delta:
    """The difference of a metric of which nothing can be said."""
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


def with_bands(
    metrics: Mapping[str, MetricResult], scores: Scores, findings: PlaceFindings, side: str
) -> dict[str, MetricResult]:
    """The metrics of one run: no value where it depends on places that gold does not say."""
    results = dict(metrics)
    for name, result in metrics.items():
        band = run_band(scores, findings, name, side)
        unknown = replace(
            result,
            value=None,
            interval=None,
            reason=PLACE_UNKNOWN,
            band=band,
            ends=None if band is None else (BandEnd(value=band[0]), BandEnd(value=band[1])),
        )
        if (findings.is_unknown(name) and result.n) or (
            band is not None and band[1] - band[0] > NARROWEST
        ):
            results[name] = unknown
        elif band is not None and result.value is not None:
            results[name] = replace(result, value=band[0])
    return results


# --- questions ---


class ChangeContext(Struct, frozen=True, kw_only=True):
    """By what questions are judged: the cut-off, the tolerance for many units, and the runs.

    `by_source`: the kind of the profile's source stays, and is only marked as not certain.
    """

    k: int
    tolerance: float
    pairs: QuestionPairs
    names: Sequence[tuple[str, ...]]
    by_source: bool = False


def with_places(
    changes: Sequence[QueryComparison], findings: PlaceFindings, of: ChangeContext
) -> tuple[QueryComparison, ...]:
    """The changes of questions, those with an unknown place as all its places have it.

    `changes` stand in the order of the pairs.
    """
    by_question = {one.question: one for one in findings.outcomes}
    # Most questions share their outcomes: each pair of ranks is judged once.
    judged = cache(partial(change_of_units, k=of.k, tolerance=of.tolerance))
    placed = []
    for number, (change, question) in enumerate(zip(changes, of.pairs.mine.tolist(), strict=True)):
        outcomes = by_question.get(question)
        is_open = any(question in run.open_answers for run in (findings.a, findings.b))
        answer = change.answer
        if is_open and answer is not None and answer.kind is not None:
            answer = replace(answer, kind="undecided")
        if outcomes is not None and change.kind is not None:
            placed_change = _placed_change(change, outcomes, number, findings, of, judged)
            placed.append(replace(placed_change, answer=answer))
        else:
            placed.append(replace(change, answer=answer))
    return tuple(placed)


def separate_changes(
    changes: Sequence[QueryComparison], a: Scores, b: Scores, of: ChangeContext, correct: str
) -> tuple[QueryComparison, ...]:
    """The same of two runs that were scored apart, by the best and the worst of either.

    `correct` is the metric that says whether an answer is right.
    """
    judged = cache(partial(change_of_units, k=of.k, tolerance=of.tolerance))
    sides = [_FileSide(scores, correct) for scores in (a, b)]
    names_a, names_b = (side.names for side in sides)
    placed = []
    for number, (change, mine, theirs) in enumerate(
        zip(changes, of.pairs.mine.tolist(), of.pairs.theirs.tolist(), strict=True)
    ):
        at = mine, theirs
        answer = change.answer
        answers = [place in side.open_answers for side, place in zip(sides, at, strict=True)]
        if any(answers) and answer is not None and answer.kind is not None:
            answer = replace(answer, kind="undecided")
        is_open = any(place in side.questions for side, place in zip(sides, at, strict=True))
        if is_open and change.kind is not None:
            one, other = (side.findings(place) for side, place in zip(sides, at, strict=True))
            if names_a and names_b:
                other = [in_order_of(names_a[mine], names_b[theirs], each) for each in other]
            outcomes = [(each, beside) for each in one for beside in other]
            placed_change = _change_over(change, outcomes, number, mine, of, judged)
            placed.append(replace(placed_change, answer=answer))
        else:
            placed.append(replace(change, answer=answer))
    return tuple(placed)


class _FileSide:
    """One run of which only scores are known: what its questions expect, at best and at worst."""

    def __init__(self, scores: Scores, correct: str) -> None:
        values = scores.per_question
        assert values is not None
        ends = values.ends
        units = values.units
        self.names = () if units is None else units.names
        self.sure = [] if units is None else units.findings()
        self.questions = frozenset(() if ends is None else ends.questions.tolist())
        at_ends = () if ends is None else (ends.best, ends.worst)
        self.at_ends = [one.findings() for one in at_ends if one is not None]
        self.open_answers: frozenset[int] = frozenset()
        if ends is not None and correct in values.metrics:
            row = values.metrics.index(correct)
            self.open_answers = frozenset(np.flatnonzero(ends.low[row] < ends.high[row]).tolist())

    def findings(self, question: int) -> list[UnitFindings]:
        """What a question found: at its best and at its worst, if these differ."""
        if question not in self.questions or not self.at_ends:
            return [self.sure[question]]
        return list(dict.fromkeys(one[question] for one in self.at_ends))


def _placed_change(
    change: QueryComparison,
    outcomes: QuestionOutcomes,
    number: int,
    findings: PlaceFindings,
    of: ChangeContext,
    judged: Callable[[UnitFindings, UnitFindings], UnitChange],
) -> QueryComparison:
    question = outcomes.question
    slots = [
        len(run.records[question]) + int(side.missing[number])
        for run, side in ((findings.a, of.pairs.a), (findings.b, of.pairs.b))
    ]
    sides = []
    for slots_of_side, columns, every in (
        (slots[0], findings.a.batch.gold, outcomes.a),
        (slots[1], findings.b.batch.gold, outcomes.b),
    ):
        units = units_of(columns, question)
        sides.append([UnitFindings(slots_of_side, unit_ranks_of(units, rows)) for rows in every])
    pairs = list(zip(*sides, strict=True))
    if outcomes.wide:  # the ends of either run, which any end of the other may go with
        pairs = [(one, other) for one in sides[0] for other in sides[1]]
    found = [
        sum(count for count, *best in outcomes.places if 0 <= best[side] < of.k) for side in (0, 1)
    ]
    return replace(
        _change_over(change, pairs, number, question, of, judged),
        places=sum(entry[0] for entry in outcomes.places) or None,
        a_found=found[0],
        b_found=found[1],
    )


def _change_over(
    change: QueryComparison,
    pairs: Sequence[tuple[UnitFindings, UnitFindings]],
    number: int,
    question: int,
    of: ChangeContext,
    judged: Callable[[UnitFindings, UnitFindings], UnitChange],
) -> QueryComparison:
    """A change over all that may be true of a question: what both runs found, outcome by outcome.

    `number` is its place among the pairs, `question` that in the first run.
    """
    sides = [[one for one, _ in pairs], [other for _, other in pairs]]
    all_changes = [judged(one, other) for one, other in dict.fromkeys(pairs)]
    equal = _without_difference(of.pairs, number)
    kinds = [equal if one.kind == "draw" else one.kind for one in all_changes]
    possible = tuple(kind for kind in KINDS if kind in kinds)
    loses = [bool(one.lost) or one.kind == "regression" for one in all_changes]
    regression: Regression = "yes" if all(loses) else "open" if any(loses) else "no"
    decided = len(possible) == 1
    kind: Kind = possible[0] if decided else "undecided"
    if not decided and of.by_source and change.kind is not None:
        kind = change.kind
    lost = set(all_changes[0].lost).intersection(*(one.lost for one in all_changes))
    gained = set(all_changes[0].gained).intersection(*(one.gained for one in all_changes))
    names = of.names[question] if of.names else ()
    ranks = [_rank_band(units) for units in sides]
    return replace(
        change,
        kind=kind,
        certain=decided,
        possible=possible,
        regression=regression,
        lost=_names(lost, names),
        gained=_names(gained, names),
        **_rank_fields("a", ranks[0]),
        **_rank_fields("b", ranks[1]),
        a_units=_only({one.a for one in all_changes}),
        b_units=_only({one.b for one in all_changes}),
        note=_note(change, kind, possible, ranks, decided=decided),
    )


def _without_difference(pairs: QuestionPairs, number: int) -> Kind:
    """The kind of a question that finds the same: no result is worse than a miss."""
    absent = [bool(side.absent[number]) for side in (pairs.a, pairs.b)]
    # One question at a time: `LostResults.slots` adds up all of them whenever it is asked.
    slots = [
        0 if gone else int(side.errored[number] + side.missing[number])
        for side, gone in zip((pairs.a, pairs.b), absent, strict=True)
    ]
    for counts in (absent, slots):
        if counts[0] != counts[1]:
            return "loss" if counts[1] > counts[0] else "win"
    return "draw"


def _only(values: set[float]) -> float | None:
    return values.pop() if len(values) == 1 else None


def _names(units: set[int], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(names[unit] if unit < len(names) else f"no. {unit + 1}" for unit in sorted(units))


def _rank_band(units: Sequence[UnitFindings]) -> tuple[int | None, int | None] | None:
    """The best and the worst rank of the first evidence; None where there are several slots."""
    if any(one.slots != 1 for one in units):
        return None
    first = [min((rank for ranks in one.ranks for rank in ranks), default=None) for one in units]
    found = [rank for rank in first if rank is not None]
    return min(found, default=None), None if None in first else max(found)


def _rank_fields(side: str, band: tuple[int | None, int | None] | None) -> dict[str, Any]:
    if band is None:
        return {}
    best, worst = band
    same = best == worst
    reciprocal = (1 / best if best else 0.0) if same else None
    return {
        f"{side}_hit_rank": best if same else band,
        f"{side}_reciprocal": reciprocal,
    }


def _note(
    change: QueryComparison,
    kind: Kind,
    possible: Sequence[Kind],
    ranks: Sequence[tuple[int | None, int | None] | None],
    *,
    decided: bool,
) -> str | None:
    """The note of a question: what may be true of it, or how its rank changed."""
    parts = []
    if not decided:
        parts.append(f"place unknown: {' or '.join(possible)}")
    elif None not in ranks:
        texts = [rank_text(band) for band in ranks if band is not None]
        if texts[0] != texts[1]:
            parts.append(f"rank {texts[0]}→{texts[1]}")
    kept = (part for part in (change.note or "").split("; ") if _is_kept(part, kind))
    return "; ".join([*parts, *kept]) or None


def _is_kept(part: str, kind: Kind) -> bool:
    """Whether a part of a note holds whatever the place is."""
    if part.startswith("known differences"):
        return kind in WORSE
    return part.startswith(("matched by", "no result")) or "without a result" in part


def separate_counts(changes: Sequence[QueryComparison], a: Scores, b: Scores) -> PlaceCounts | None:
    """What two runs leave open that were scored apart; None where nothing is open."""
    values = a.per_question, b.per_question
    if all(one is None or one.ends is None for one in values):
        return None
    regressions = [change.regression for change in changes if change.regression is not None]
    return PlaceCounts(
        regression_open=regressions.count("open"),
        kind_open=sum(not change.certain for change in changes),
        unplaced=0,
        wide=0,
        least_evidence=a.options.least_evidence,
        gold_bytes=0.0,
        hit_bytes=(0.0, 0.0),
        top_bytes=(0.0, 0.0),
        sure=regressions.count("yes"),
        none=regressions.count("no"),
    )


def place_counts(
    changes: Sequence[QueryComparison], findings: PlaceFindings, *, k: int, least: int
) -> PlaceCounts:
    """What gold that names chunks leaves open, and the sizes of what is compared."""
    (hit_a, top_a), (hit_b, top_b) = findings.a.sizes(k), findings.b.sizes(k)
    sizes = findings.a.piece_sizes()
    told = [change.regression for change in changes if change.regression is not None]
    return PlaceCounts(
        regression_open=told.count("open"),
        kind_open=sum(not change.certain for change in changes),
        unplaced=findings.unplaced,
        wide=findings.wide,
        least_evidence=least,
        gold_bytes=float(np.median(sizes)) if sizes else 0.0,
        hit_bytes=(hit_a, hit_b),
        top_bytes=(top_a, top_b),
        sure=told.count("yes"),
        none=told.count("no"),
    )
