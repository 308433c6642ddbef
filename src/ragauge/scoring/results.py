"""Results of metrics, questions and rows, made from the sums of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ragauge.metrics.facts import LAMBDA_STATES
from ragauge.metrics.metric import Selected, Tally
from ragauge.metrics.questions import Questions
from ragauge.model.chunk import Chunks
from ragauge.model.comparison import RANKS
from ragauge.model.gold import GoldItem
from ragauge.model.labels import CAUSES, LABELS
from ragauge.model.options import Options
from ragauge.model.payloads import gold_hash, item_hash
from ragauge.model.profile import Profile
from ragauge.model.scores import (
    PLACE_UNKNOWN,
    BandEnd,
    MetricResult,
    PerQuestion,
    QuestionEnds,
    QuestionList,
    QuestionResult,
    RowResult,
    Scores,
    SliceResult,
)
from ragauge.model.unit_ranks import UnitRanks
from ragauge.scoring.chunk_ends import BY_SLOTS, RunEnds, questions_at
from ragauge.scoring.estimates import Estimate
from ragauge.scoring.gold_table import GoldTable, unique_items
from ragauge.scoring.summary import (
    Places,
    QuestionSums,
    Sums,
    errored_values,
    slice_results,
)
from ragauge.scoring.sums import Totals, why_empty
from ragauge.scoring.unit_ranks import UnitCollector, unit_names


def metric_results(
    selected: Sequence[Selected],
    measured: QuestionSums,
    *,
    excluded: Sequence[dict[str, int]],
    tally: Tally,
    defaults: Mapping[str, float],
    intervals: bool,
    extremes: Sequence[QuestionSums] = (),
) -> dict[str, MetricResult]:
    """One result a metric, in the order that they were asked for.

    `extremes` are the sums with errors at their worst and at their best.
    """
    results: dict[str, MetricResult] = {}
    for i, chosen in enumerate(measured.selected):
        numbers = measured.metric(i)
        n, value = numbers.count(0), numbers.value(0)
        estimate = numbers.estimate(0) if intervals and value is not None else Estimate()
        results[chosen.id] = MetricResult(
            value=value,
            n=n,
            records=numbers.record_count(0),
            excluded=excluded[i],
            interval=estimate.interval,
            interval_reason=estimate.reason,
            detectable=estimate.detectable,
            version=chosen.metric.version,
            better=chosen.metric.better,
            reason=None if value is not None else _reason(n, excluded[i]),
            default=defaults.get(chosen.metric.id),
            errored=errored_values([sums.metric(i) for sums in extremes], 0, intervals=intervals),
        )
    for chosen in selected:
        if chosen.metric.share is not None:
            top, bottom = chosen.metric.share(tally)
            results[chosen.id] = MetricResult(
                value=top / bottom if bottom else None,
                n=bottom,
                records=bottom,
                excluded={},
                interval=None,
                version=chosen.metric.version,
                better=chosen.metric.better,
                reason=None if bottom else "no-traces",
                default=defaults.get(chosen.metric.id),
            )
    return {chosen.id: results[chosen.id] for chosen in selected}


def sums_at_ends(
    measured: QuestionSums, questions: Questions, ends: RunEnds
) -> tuple[QuestionSums, QuestionSums]:
    """The sums of each metric where it is least and where it is greatest, question by question."""
    at_ends: tuple[list[Sums], list[Sums]] = [], []
    slots = [questions_at(questions, ends, high=high) for high in (False, True)]
    for chosen, sums in zip(measured.selected, measured.sums, strict=True):
        pair = [sums, sums]
        if chosen.id in ends.sums:
            pair = [sums.copy(), sums.copy()]
            for column, end in zip(pair, ends.sums[chosen.id], strict=True):
                column[ends.questions] = end
        elif chosen.metric.of_question is not None and chosen.metric.id in BY_SLOTS:
            values = [np.asarray(chosen.metric.of_question(at), np.float64) for at in slots]
            pair = [np.minimum(*values), np.maximum(*values)]
        for column, listed in zip(pair, at_ends, strict=True):
            listed.append(column)
    low, high = (replace(measured, sums=tuple(sums)) for sums in at_ends)
    return low, high


class RunResults:
    """The results of a run: numbers, or their ends where they depend on where evidence stands.

    `sums` are those of the run, or those of its least and of its greatest values. `extremes` gives
    them with errors at their worst and at their best.
    """

    def __init__(
        self,
        selected: Sequence[Selected],
        sums: Sequence[QuestionSums],
        *,
        excluded: Sequence[dict[str, int]],
        tally: Tally,
        defaults: Mapping[str, float],
        intervals: bool,
        extremes: Callable[[QuestionSums], tuple[QuestionSums, ...]],
        ends: RunEnds | None = None,
    ) -> None:
        self.selected = selected
        self.sums = sums
        self.excluded = excluded
        self.tally = tally
        self.defaults = defaults
        self.intervals = intervals
        self.extremes = [extremes(one) for one in sums]
        self.ends = ends
        self.unknown = frozenset() if ends is None else self._unknown(ends)

    def _unknown(self, ends: RunEnds) -> frozenset[str]:
        """The metrics without known ends that open questions have a value of."""
        sums = self.sums[0]
        changing = ends.questions[
            (ends.hitting[0] != ends.hitting[1]) | (ends.found[0] != ends.found[1])
        ]
        unknown = set()
        for place, chosen in enumerate(sums.selected):
            if chosen.metric.id not in ends.unknown:
                continue
            if place in sums.members:
                inside = sums.members[place][changing]
            else:
                inside = sums.records[place][ends.questions] > 0
            if inside.any():
                unknown.add(chosen.id)
        return frozenset(unknown)

    def metrics(self) -> dict[str, MetricResult]:
        """One result a metric."""
        results = [
            metric_results(
                self.selected,
                sums,
                excluded=self.excluded,
                tally=self.tally,
                defaults=self.defaults,
                intervals=self.intervals,
                extremes=extremes,
            )
            for sums, extremes in zip(self.sums, self.extremes, strict=True)
        ]
        return self._between(results)

    def slices(
        self, parts: Mapping[str, Mapping[str, Places]], *, min_n: int
    ) -> dict[str, dict[str, SliceResult]]:
        """Each metric over each part of each dimension."""
        results = [
            slice_results(sums, parts, min_n=min_n, intervals=self.intervals, extremes=extremes)
            for sums, extremes in zip(self.sums, self.extremes, strict=True)
        ]
        if len(results) == 1:
            return results[0]
        low, high = results
        return {
            dimension: {
                name: replace(
                    part,
                    metrics=self._between([part.metrics, high[dimension][name].metrics]),
                )
                for name, part in names.items()
            }
            for dimension, names in low.items()
        }

    def _between(self, results: Sequence[dict[str, MetricResult]]) -> dict[str, MetricResult]:
        if len(results) == 1:
            return results[0]
        low, high = results
        return {
            name: between_ends(result, high[name], known=name not in self.unknown)
            for name, result in low.items()
        }

    def per_question(
        self, table: GoldTable, units: UnitCollector | None, *, slices: bool
    ) -> PerQuestion:
        """The value of each metric for each question; none where it depends on the place."""
        low, *others = (per_question(sums, table, units, slices=slices) for sums in self.sums)
        if not others or self.ends is None:
            return low
        (high,) = others
        for row, name in enumerate(low.metrics):
            if name in self.unknown:
                low.values[row, self.ends.questions] = np.nan
                high.values[row, self.ends.questions] = np.nan
        is_open = low.values != high.values  # true of nan too, which stays nan
        units_at_ends = None if low.units is None else _units_at_ends(low.units, self.ends)
        return replace(
            low,
            values=np.where(is_open, np.nan, low.values),
            ends=QuestionEnds(
                low=low.values,
                high=high.values,
                questions=self.ends.questions,
                best=None if units_at_ends is None else units_at_ends[0],
                worst=None if units_at_ends is None else units_at_ends[1],
            ),
        )


def _units_at_ends(units: UnitRanks, ends: RunEnds) -> tuple[UnitRanks, UnitRanks]:
    """The ranks of what is expected, where evidence is found best and where worst."""
    findings = units.findings()
    at_ends = []
    for end in (0, 1):
        changed = list(findings)
        for question, pair in ends.units.items():
            changed[question] = pair[end]._replace(slots=findings[question].slots)
        at_ends.append(UnitRanks.of(changed))
    return at_ends[0], at_ends[1]


def between_ends(low: MetricResult, high: MetricResult, *, known: bool = True) -> MetricResult:
    """A metric that lies between two ends: no single value, and no interval, unless they agree."""
    if known and low.value == high.value:
        return low
    if low.value is None or high.value is None:
        return low
    return replace(
        low,
        value=None,
        interval=None,
        interval_reason=None,
        detectable=None,
        errored=None,
        default=None,
        reason=PLACE_UNKNOWN,
        band=(low.value, high.value) if known else None,
        ends=(_end(low), _end(high)) if known else None,
    )


def _end(result: MetricResult) -> BandEnd:
    assert result.value is not None
    return BandEnd(
        value=result.value,
        interval=result.interval,
        detectable=result.detectable,
        errored=result.errored,
    )


def _reason(n: int, excluded: dict[str, int]) -> str:
    return "zero-denominator" if n else why_empty(excluded)


def per_question(
    measured: QuestionSums, table: GoldTable, units: UnitCollector | None, *, slices: bool
) -> PerQuestion:
    """The value of each metric for each question; a sum and a ratio of sums have none.

    Its denominator may be 0 for a question and still count in the sum, so single quotients would
    not add up to the value that is reported.
    """
    places = [
        i
        for i, chosen in enumerate(measured.selected)
        if chosen.metric.aggregate not in ("ratio", "sum")
    ]
    values = np.full((len(places), len(table.qids)), np.nan)
    for row, place in enumerate(places):
        numbers = measured.metric(place)
        bottoms = numbers.bottoms[0]
        defined = numbers.inside[0] & (bottoms > 0)
        np.divide(numbers.tops[0], bottoms, out=values[row], where=defined)
    return PerQuestion(
        metrics=tuple(measured.selected[i].id for i in places),
        qids=table.qids,
        turns=table.turns,
        values=values,
        units=None if units is None else units.unit_ranks(),
        slices=table.slices if slices else {},
    )


def question_results(
    totals: Totals, table: GoldTable, *, gold: str, trace: str, first: Mapping[int, int]
) -> QuestionList:
    """The worst label of each question, and where to look; `first` has each range's first line."""
    labels, places = totals.worst_labels()
    several = (totals.labels.sum(axis=0) > 1).tolist()
    cause_counts = totals.cause_counts()
    names = [None, *CAUSES]
    # The cause of most slots; of equally many the one that comes first when an answer is made.
    most = np.where(cause_counts.any(axis=0), cause_counts.argmax(axis=0) + 1, 0)
    causes = [names[place] for place in most.tolist()]

    def counts(code: int) -> dict[str, int] | None:
        if not several[code]:
            return None
        return {LABELS[i]: n for i, n in enumerate(totals.labels[:, code].tolist()) if n}

    def make(code: int) -> QuestionResult:
        label, position = labels[code], int(places[code])
        line = first.get(position >> 32, 0) + (position & 0xFFFFFFFF)
        return QuestionResult(
            qid=table.qids[code],
            label=label,
            gold=at(gold, table.lines[code]),
            trace=None if label == "MISSING" else at(trace, line),
            labels=counts(code) or {label: 1},
            turn=table.turns[code],
            cause=causes[code],
            causes={
                name: n for name, n in zip(CAUSES, cause_counts[:, code].tolist(), strict=True) if n
            }
            if causes[code] is not None
            else {},
        )

    return QuestionList(labels, make, counts, causes=causes)


def row_results(totals: Totals, table: GoldTable) -> tuple[RowResult, ...]:
    """The scored rows in file order, for profiles that score every row."""
    if not totals.keep_rows or not totals.rows:
        return ()
    position = np.concatenate([row[0] for row in totals.rows])
    # Records came last to first; rows of a JSON array may share a line.
    order = (len(position) - 1 - np.argsort(position[::-1], kind="stable")).tolist()
    batches = [batch for _, batch, _ in totals.rows]
    question = np.concatenate([batch.question for batch in batches]).tolist()
    answered = np.concatenate([batch.answered for batch in batches]).tolist()
    hit = np.concatenate([labelled.hit for _, _, labelled in totals.rows]).tolist()
    refused = np.concatenate([batch.refused for batch in batches]).tolist()
    labels = np.concatenate([labelled.labels for _, _, labelled in totals.rows]).tolist()
    return tuple(
        RowResult(
            qid=table.qids[question[i]],
            answered=answered[i],
            hit=hit[i],
            refused=refused[i],
            label=LABELS[labels[i]],
        )
        for i in order
    )


def state_counts(questions: Questions, ends: RunEnds | None) -> dict[str, dict[str, int]]:
    """How many questions have which λ, as computed and as recorded.

    `open` are those of which it depends on the place of the evidence.
    """
    is_open = np.zeros(len(questions.state), np.bool_)
    computed = questions.state
    if ends is not None:
        computed, high = (questions_at(questions, ends, high=end).state for end in (False, True))
        is_open = computed != high
    states = {}
    for name, codes, unknown in (
        ("computed", computed[~is_open], int(np.count_nonzero(is_open))),
        ("recorded", questions.recorded, 0),
    ):
        counts = Counter(codes[codes >= 0].tolist())
        if counts or unknown:
            states[name] = {state: counts[i] for i, state in enumerate(LAMBDA_STATES)}
            states[name] |= {"open": unknown} if unknown else {}
    return states


def at(name: str, line: int | None) -> str:
    """A place in a file."""
    return name if line is None else f"{name}:{line}"


def with_hashes(
    scores: Scores, items: Sequence[GoldItem], profile: Profile, chunks: Chunks
) -> Scores:
    """Scores with hashes of what the gold set and its items say, and the names of units."""
    values = scores.per_question
    assert values is not None
    unique: Sequence[GoldItem] = unique_items(items, profile, scores.gold_name)
    if [item.qid for item in unique] != list(values.qids):  # judgements have an order of their own
        by_qid = {item.qid: item for item in unique}
        unique = [by_qid[qid] for qid in values.qids]
    hashes = [item_hash(item) for item in unique]
    whole = gold_hash(zip(values.qids, values.turns, hashes, strict=True))
    values = with_unit_names(replace(values, hashes=hashes), unique, chunks, scores.options)
    return replace(scores, gold_hash=whole, per_question=values)


def with_unit_names(
    values: PerQuestion, items: Sequence[GoldItem], chunks: Chunks, options: Options
) -> PerQuestion:
    """Values of questions whose expected units have names; the items are those of the questions."""
    if values.units is None:
        return values
    names = [unit_names(item, chunks, options) for item in items]
    return replace(values, units=replace(values.units, names=names))


def with_reciprocals(scores: Scores) -> Scores:
    """Scores with the reciprocal rank of each question, if the metrics of `RANKS` were measured."""
    values = scores.per_question
    assert values is not None
    return replace(scores, per_question=replace(values, reciprocals=reciprocals(values)))


def reciprocals(values: PerQuestion) -> NDArray[np.float64]:
    """The reciprocal rank of each question: by evidence, or else by document; nan for neither."""
    ranks = np.full(len(values.qids), np.nan)
    if values.reciprocals is not None:
        ranks = values.reciprocals
    for name in (*RANKS, *_cut_ranks(values.metrics)):
        if name in values.metrics:
            ranks = np.where(np.isnan(ranks), values.of(name), ranks)
    return ranks


def has_ranks(values: PerQuestion) -> bool:
    """Whether reciprocal ranks are known, of any kind."""
    rank_metrics = {*RANKS, *_cut_ranks(values.metrics)}
    return values.reciprocals is not None or not rank_metrics.isdisjoint(values.metrics)


def _cut_ranks(metrics: Sequence[str]) -> list[str]:
    """What scores that were saved before have instead: reciprocal ranks with a cut-off."""
    cut = [name for name in metrics if name.startswith(("retrieval.mrr@", "retrieval.mrr_doc@"))]
    return sorted(cut, key=lambda name: (name.partition("@")[0], -int(name.partition("@")[2])))


def without_metrics(scores: Scores, names: Sequence[str], *, values: bool = False) -> Scores:
    """Scores that do not speak of some metrics; with `values`, not for single questions either."""
    listed = {name: result for name, result in scores.metrics.items() if name not in names}
    slices = {
        dimension: {
            name: replace(
                part, metrics={key: result for key, result in part.metrics.items() if key in listed}
            )
            for name, part in parts.items()
        }
        for dimension, parts in scores.slices.items()
    }
    per_question = scores.per_question
    if values and per_question is not None:
        places = [place for place, name in enumerate(per_question.metrics) if name in listed]
        per_question = replace(
            per_question,
            metrics=tuple(per_question.metrics[place] for place in places),
            values=per_question.values[places],
            ends=None
            if per_question.ends is None
            else replace(
                per_question.ends,
                low=per_question.ends.low[places],
                high=per_question.ends.high[places],
            ),
        )
    return replace(scores, metrics=listed, slices=slices, per_question=per_question)
