"""Ranking: all rules over a run, what most questions suffer from first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ragauge.diagnose.rules import RULES, DiagnosisRule, Symptoms, delta_s_notes
from ragauge.metrics.columns import Ints
from ragauge.model.comparison import RANKS
from ragauge.model.diagnosis import Diagnosis, DiagnosisFinding, Tallied, Witness
from ragauge.model.labels import CAUSES, GOOD, LABELS
from ragauge.model.scores import Scores

BEHIND: Mapping[str, tuple[str, ...]] = {
    "retrieval-miss": ("retrieval.hit@50",),
    "near-miss-section": ("retrieval.anchor_hit@5", "citation.anchor_distance"),
    "negative-preferred": ("retrieval.negative@5", "retrieval.negative_above"),
    "ranked-too-low": ("retrieval.hit@5",),
    "retrieved-not-cited": ("retrieval.hit@5", "citation.recall"),
    "cited-wrong-offsets": ("citation.accuracy", "answer.coverage"),
    "out-of-scope-citation": ("citation.in_context", "citation.precision"),
    "claim-missing": ("citation.recall", "answer.claim_containment"),
}
"""The metrics of a question that a cause is about, beside the rank of its evidence."""

NEEDS = tuple(
    dict.fromkeys(
        (
            *(name for rule in RULES for name in rule.needs),
            *(name for names in BEHIND.values() for name in names),
        )
    )
)
"""What must be measured for a diagnosis, beside the ranks that every stored run keeps."""

WITNESSES = 5


def diagnose(
    scores: Scores,
    *,
    types: Mapping[str, Ints] | None = None,
    name: str = "",
    limit: int = 10,
    notes: Sequence[str] = (),
) -> Diagnosis:
    """Say what is likely to be wrong with a run; `limit` questions are listed."""
    run = Symptoms(scores, types)
    ranked: list[tuple[tuple[bool, int, int], DiagnosisFinding]] = []
    silent = []
    for place, rule in enumerate(RULES):
        places = rule.affected(run)
        if places is None:
            if all(run.value(need) is None for need in rule.needs):
                silent.append(rule.id)
            continue
        finding = _finding(rule, places, run, min(limit, WITNESSES))
        ranked.append(((not rule.blocking, -finding.affected, place), finding))
    ranked.sort(key=lambda entry: entry[0])
    bad = bad_places(scores)
    questions = scores.questions
    label_counts = (
        questions.counts(place) or {label: 1} for place, label in enumerate(questions.labels)
    )
    cause_counts = (
        questions[place].causes for place, cause in enumerate(questions.causes) if cause is not None
    )
    return Diagnosis(
        name=name or scores.trace_name,
        profile=scores.profile,
        gold_name=scores.gold_name,
        trace_name=scores.trace_name,
        counted=len(scores.questions),
        records=scores.tally.scored,
        labels=_tallied(LABELS, questions.labels, label_counts),
        causes=_tallied(CAUSES, questions.causes, cause_counts),
        findings=tuple(finding for _, finding in ranked),
        questions=tuple(witness(run, place) for place in bad[:limit]),
        listed_of=len(bad),
        silent=tuple(silent),
        notes=(*scores.warnings, *delta_s_notes(scores), *notes),
    )


def _finding(rule: DiagnosisRule, places: Ints, run: Symptoms, limit: int) -> DiagnosisFinding:
    return DiagnosisFinding(
        id=rule.id,
        title=rule.title,
        affected=len(places),
        share=len(places) / run.size if run.size else 0.0,
        numbers=rule.shown_numbers(run, places),
        witnesses=tuple(witness(run, place) for place in places.tolist()[:limit]),
        step=rule.step if isinstance(rule.step, str) else rule.step(run, places),
        source=rule.source,
        blocking=rule.blocking,
    )


def witness(run: Symptoms, place: int) -> Witness:
    """A question with what stands behind its label."""
    question = run.scores.questions[place]
    numbers = {}
    rank = next((n for n in RANKS if not np.isnan(run.of(n)[place])), None)
    if rank is not None:
        numbers["reciprocal_rank"] = float(run.of(rank)[place])
    for name in BEHIND.get(question.cause or "", ()):
        value = float(run.of(name)[place])
        if not np.isnan(value):
            numbers[name] = value
    return Witness(
        qid=question.qid,
        turn=question.turn,
        label=question.label,
        cause=question.cause,
        where=question.trace or question.gold,
        numbers=numbers,
    )


def bad_places(scores: Scores) -> list[int]:
    """The questions that need attention: worst labels first, then earliest causes, in gold order.

    Where nothing was answered, a question without an answer needs it only for its cause.
    """
    fine = set(GOOD)
    if not scores.tally.answered and not scores.tally.refused:
        fine |= {"NO_ANSWER", "UNLABELLED"}
    labels, causes = scores.questions.labels, scores.questions.causes
    order = list(CAUSES)
    bad = [i for i, label in enumerate(labels) if label not in fine or causes[i] is not None]
    return sorted(
        bad,
        key=lambda i: (
            -LABELS.index(labels[i]),
            len(order) if (cause := causes[i]) is None else order.index(cause),
            i,
        ),
    )


def _tallied(
    names: Iterable[str],
    of_questions: Sequence[str | None],
    of_records: Iterable[Mapping[str, int]],
) -> tuple[Tallied, ...]:
    """How many questions and records have each of these labels, or causes."""
    questions = Counter(of_questions)
    records: Counter[str] = Counter()
    for counts in of_records:
        records.update(counts)
    return tuple(
        Tallied(name=name, questions=questions[name], records=records[name])
        for name in names
        if records[name]
    )
