"""Ranking: all rules over a run, what most questions suffer from first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from ragauge.diagnose import answers, citations, completeness, delta_s, retrieval, stability
from ragauge.diagnose.rules import DiagnosisRule, RuleHit, Symptoms
from ragauge.metrics.columns import Ints
from ragauge.model.comparison import RANKS
from ragauge.model.diagnosis import Diagnosis, DiagnosisFinding, Tallied, Witness
from ragauge.model.labels import CAUSES, GOOD, LABELS
from ragauge.model.scores import Scores

FAMILIES = (completeness, retrieval, delta_s, citations, answers, stability)
"""In the order in which an answer is made, which decides between equals."""

RULES: tuple[DiagnosisRule, ...] = tuple(rule for family in FAMILIES for rule in family.RULES)

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
        hit = rule.find(run)
        if hit is None:
            if all(run.value(need) is None for need in rule.needs):
                silent.append(rule.id)
            continue
        finding = _finding(rule, hit, run, min(limit, WITNESSES))
        ranked.append(((not rule.blocking, -finding.affected, place), finding))
    ranked.sort(key=lambda entry: entry[0])
    bad = bad_places(scores)
    return Diagnosis(
        name=name or scores.trace_name,
        profile=scores.profile,
        gold_name=scores.gold_name,
        trace_name=scores.trace_name,
        counted=len(scores.questions),
        records=scores.tally.scored,
        labels=_labels(scores),
        causes=_causes(scores),
        findings=tuple(finding for _, finding in ranked),
        questions=tuple(witness(run, place) for place in bad[:limit]),
        listed_of=len(bad),
        silent=tuple(silent),
        notes=(*scores.warnings, *delta_s.notes(scores), *notes),
    )


def _finding(rule: DiagnosisRule, hit: RuleHit, run: Symptoms, limit: int) -> DiagnosisFinding:
    places = hit.places.tolist()
    return DiagnosisFinding(
        id=rule.id,
        title=rule.title,
        affected=len(places),
        share=len(places) / run.size if run.size else 0.0,
        numbers=hit.numbers,
        witnesses=tuple(witness(run, place) for place in places[:limit]),
        step=hit.step,
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


def _labels(scores: Scores) -> tuple[Tallied, ...]:
    questions = Counter(scores.questions.labels)
    records: Counter[str] = Counter()
    for place, label in enumerate(scores.questions.labels):
        records.update(scores.questions.counts(place) or {label: 1})
    return tuple(
        Tallied(name=label, questions=questions[label], records=records[label])
        for label in LABELS
        if records[label]
    )


def _causes(scores: Scores) -> tuple[Tallied, ...]:
    questions = Counter(scores.questions.causes)
    records: Counter[str] = Counter()
    for place, cause in enumerate(scores.questions.causes):
        if cause is not None:
            records.update(scores.questions[place].causes)
    return tuple(
        Tallied(name=cause, questions=questions[cause], records=records[cause])
        for cause in CAUSES
        if records[cause]
    )
