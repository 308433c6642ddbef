"""Results of metrics, questions and rows, made from the sums of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

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
    MetricResult,
    PerQuestion,
    QuestionList,
    QuestionResult,
    RowResult,
    Scores,
)
from ragauge.scoring.estimates import Estimate
from ragauge.scoring.gold_table import GoldTable, unique_items
from ragauge.scoring.summary import QuestionSums
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
) -> dict[str, MetricResult]:
    """One result a metric, in the order that they were asked for."""
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


def _reason(n: int, excluded: dict[str, int]) -> str:
    return "zero-denominator" if n else why_empty(excluded)


def per_question(
    measured: QuestionSums, table: GoldTable, units: UnitCollector | None
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
    hit = np.concatenate([batch.hit for batch in batches]).tolist()
    refused = np.concatenate([batch.refused for batch in batches]).tolist()
    labels = np.concatenate([labels for _, _, labels in totals.rows]).tolist()
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


def state_counts(questions: Questions) -> dict[str, dict[str, int]]:
    """How many questions have which λ, as computed and as recorded."""
    states = {}
    for name, codes in (("computed", questions.state), ("recorded", questions.recorded)):
        counts = Counter(codes[codes >= 0].tolist())
        if counts:
            states[name] = {state: counts[i] for i, state in enumerate(LAMBDA_STATES)}
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
        )
    return replace(scores, metrics=listed, slices=slices, per_question=per_question)
