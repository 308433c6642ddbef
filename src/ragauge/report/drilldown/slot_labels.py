"""Slot labels: what came of each slot of a question, where its slots did not all fare alike.

Scores have the labels of a question as counts. Which slot has which is known of a run that was just
scored; a stored one is scored again for it, without any metric.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from msgspec.structs import replace

from ragauge.model.run import RunRecord, Store
from ragauge.model.scores import Scores
from ragauge.scoring.engines.choose import stored_engine
from ragauge.scoring.identify import EvidenceIdentifier
from ragauge.scoring.inputs import TraceFile
from ragauge.scoring.scoring_run import ScoringRun
from ragauge.store.runs import begin_loading


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
    recogniser: EvidenceIdentifier,
    scores: Scores,
    labels_of: Callable[[set[int]], Mapping[tuple[int, int], str]],
) -> SlotLabels:
    """The labels of the slots of a run; `labels_of` knows those of questions, by their lines."""
    values = scores.per_question
    named = zip(values.qids, values.turns, strict=True) if values is not None else ()
    counts: dict[int, Mapping[str, int]] = {}
    for place, (qid, turn) in enumerate(named):
        several = scores.questions.counts(place)
        number = None if several is None else recogniser.number(qid, turn)
        if several is not None and number is not None:
            counts[number] = several
    mixed = {number for number, labels in counts.items() if len(labels) > 1}
    return SlotLabels(counts, labels_of(mixed) if mixed else {})


def stored_labels(
    store: Store, run: RunRecord, recogniser: EvidenceIdentifier
) -> Callable[[set[int]], Mapping[tuple[int, int], str]]:
    """Finds the labels of the slots of a stored run, by scoring it without any metric."""

    def labels_of(questions: set[int]) -> Mapping[tuple[int, int], str]:
        plan = replace(recogniser.plan, selected=[], intervals=False, slices=False)
        again = ScoringRun(plan, recogniser.table, gold_name="", trace_name="")
        again.totals.keep_labels = True
        with ExitStack() as stack:
            engine = stored_engine(stack, run.results, None)
            source = begin_loading(stack, store, run, engine)().source
            again.read(TraceFile(source, engine, stored=True))
            again.finish()
        return again.record_labels().of(questions)

    return labels_of
