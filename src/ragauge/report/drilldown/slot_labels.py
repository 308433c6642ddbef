"""Slot labels: what came of each slot of a question, where its slots did not all fare alike.

A store keeps the labels of a question as counts. Which slot has which is found by scoring the run
again, without any metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack

from msgspec.structs import replace

from ragauge.files.ranges import Source
from ragauge.model.labels import LABELS
from ragauge.model.run import RunRecord, Store
from ragauge.model.scores import Scores
from ragauge.scoring.identify import EvidenceIdentifier
from ragauge.scoring.inputs import Engine, TraceFile, file_engine, stored_engine
from ragauge.scoring.scoring_run import ScoringRun
from ragauge.store.runs import begin_loading
from ragauge.store.temporary_run import TemporaryRun

_LINE = 0xFFFFFFFF


class SlotLabels:
    """Knows the labels of slots by their question and line."""

    def __init__(
        self, counts: Mapping[int, Mapping[str, int]], labels: Mapping[tuple[int, int], str]
    ) -> None:
        self._counts = counts
        self._found = labels

    def of(self, question: int, lines: Sequence[int | None]) -> Sequence[str | None]:
        """The labels of the slots of a question, given the lines of their traces.

        None for all where there is but one slot, and where what is found is not what was stored.
        """
        unknown = [None] * len(lines)
        counts = self._counts.get(question)
        if counts is None or sum(counts.values()) != len(lines) or len(lines) < 2:
            return unknown
        if len(counts) == 1:
            return list(counts) * len(lines)
        labels = [self._found.get((question, line or 0)) for line in lines]
        return labels if dict(Counter(labels)) == dict(counts) else unknown


def slot_labels(
    store: Store, run: RunRecord, recogniser: EvidenceIdentifier, scores: Scores
) -> SlotLabels:
    """The labels of the slots of a stored run, whose questions the scores have."""

    def loaded(stack: ExitStack) -> _Loaded:
        engine = stored_engine(stack, run.results, None)
        return begin_loading(stack, store, run, engine)().source, engine

    return _slot_labels(recogniser, scores, loaded)


def slot_labels_of_temporary(run: TemporaryRun, scores: Scores) -> SlotLabels:
    """The labels of the slots of a temporary run."""

    def loaded(stack: ExitStack) -> _Loaded:
        return run.source, file_engine(stack, run.source, None)

    return _slot_labels(run.recogniser, scores, loaded)


_Loaded = tuple[Source, Engine]
"""A file of stored traces, and what reads it."""


def _slot_labels(
    recogniser: EvidenceIdentifier, scores: Scores, load: Callable[[ExitStack], _Loaded]
) -> SlotLabels:
    values = scores.per_question
    named = zip(values.qids, values.turns, strict=True) if values is not None else ()
    counts: dict[int, Mapping[str, int]] = {}
    for place, (qid, turn) in enumerate(named):
        several = scores.questions.counts(place)
        number = None if several is None else recogniser.number(qid, turn)
        if several is not None and number is not None:
            counts[number] = several
    mixed = {number for number, labels in counts.items() if len(labels) > 1}
    return SlotLabels(counts, dict(_scored(recogniser, load, mixed)) if mixed else {})


def _scored(
    recogniser: EvidenceIdentifier, load: Callable[[ExitStack], _Loaded], wanted: set[int]
) -> Iterable[tuple[tuple[int, int], str]]:
    """The labels of the records of some questions, each with its question and line."""
    with ExitStack() as stack:
        source, engine = load(stack)
        plan = replace(recogniser.plan, selected=[], intervals=False, slices=False)
        again = ScoringRun(plan, recogniser.table, gold_name="", trace_name="")
        again.totals.keep_rows = True
        again.read(TraceFile(source, engine, stored=True))
        again.finish()
    for position, batch, labels in again.totals.rows:
        for question, place, label in zip(
            batch.question.tolist(), position.tolist(), labels.tolist(), strict=True
        ):
            if question in wanted:
                yield (question, place & _LINE), LABELS[label]
