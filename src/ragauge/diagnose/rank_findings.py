"""Ranking: all rules over a run, what most questions suffer from first.

With a baseline only what rose counts: questions that a cause is claimed of now, and was not then.
A cause that acts earlier goes before one that it accounts for, however many questions have that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from ragauge.diagnose.hit_facts import HitFacts
from ragauge.diagnose.rules import RULES, SYMPTOM, DiagnosisRule, Symptoms, delta_s_notes
from ragauge.metrics.columns import Ints
from ragauge.model.comparison import RANKS
from ragauge.model.diagnosis import Diagnosis, DiagnosisFinding, Number, Tallied, Witness
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
    "place-unknown": (),
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
    hits: HitFacts | None = None,
    before: Symptoms | None = None,
    name: str = "",
    limit: int = 10,
    notes: Sequence[str] = (),
) -> Diagnosis:
    """Say what is likely to be wrong with a run; `limit` questions are listed.

    `hits` are what its lists of hits show; `before` is the baseline.
    """
    run = Symptoms(scores, types, hits=hits, before=before)
    claims: list[_Claim] = []
    silent, steady = [], []
    for rule in RULES:
        places = rule.affected(run)
        if places is None:
            if not _could_look(rule, run):
                silent.append(rule.id)
            continue
        claim = _claim(rule, places, run)
        if before is not None and claim.rose <= 0 and not rule.blocking:
            steady.append(f"{rule.id} ({len(places) - claim.rose} → {len(places)})")
            continue
        claims.append(claim)
    findings = [_finding(claim, run, min(limit, WITNESSES)) for claim in ranked(claims)]
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
        findings=tuple(findings),
        questions=tuple(witness(run, place) for place in bad[:limit]),
        listed_of=len(bad),
        silent=tuple(silent),
        notes=(*scores.warnings, *delta_s_notes(scores), *notes),
        baseline=None if before is None else before.name,
        steady=tuple(steady),
    )


class _Claim(NamedTuple):
    """A rule that holds of some questions; `fresh` are those that it did not hold of before."""

    rule: DiagnosisRule
    places: Ints
    fresh: frozenset[int]
    recovered: int

    @property
    def rose(self) -> int:
        """By how many questions it rose; without a baseline all are new."""
        return len(self.fresh) - self.recovered


def _claim(rule: DiagnosisRule, places: Ints, run: Symptoms) -> _Claim:
    if run.before is None:
        return _Claim(rule, places, frozenset(places.tolist()), 0)
    earlier = rule.affected(run.before)
    had = frozenset(() if earlier is None else earlier.tolist())
    fresh = {place for place in places.tolist() if int(run.earlier[place]) not in had}
    now = {int(run.earlier[place]) for place in places.tolist()}
    compared = {*run.earlier.tolist()}
    recovered = sum(place in compared and place not in now for place in had)
    order = sorted(places.tolist(), key=lambda place: place not in fresh)
    return _Claim(rule, np.array(order, np.int64), frozenset(fresh), recovered)


def ranked(claims: Sequence[_Claim]) -> list[_Claim]:
    """What blocks first, then by questions; what an earlier cause accounts for comes after it."""
    left = sorted(claims, key=lambda claim: (not claim.rule.blocking, -claim.rose))
    order: list[_Claim] = []
    while left:
        # A cause never accounts for one of its own level, so that one is always free.
        free = next(claim for claim in left if not any(_accounts(one, claim) for one in left))
        order.append(free)
        left = [claim for claim in left if claim is not free]
    return order


def _accounts(cause: _Claim, symptom: _Claim) -> bool:
    """Whether most questions of one are among those of another that acts earlier."""
    if cause.rule.level >= symptom.rule.level or symptom.rule.blocking:
        return False
    if symptom.rule.level == SYMPTOM and 2 * cause.rose >= symptom.rose:
        return True  # a symptom says nothing of where: it waits for any cause of half its size
    common = len(cause.fresh & symptom.fresh)
    return 2 * common >= len(symptom.fresh) and bool(common)


def _could_look(rule: DiagnosisRule, run: Symptoms) -> bool:
    """Whether anything was recorded that a rule looks at."""
    metrics = any(run.value(need) is not None for need in rule.needs)
    return metrics or any(run.hit_mean(fact) is not None for fact in rule.facts)


def _finding(claim: _Claim, run: Symptoms, limit: int) -> DiagnosisFinding:
    rule, places = claim.rule, claim.places
    numbers = rule.shown_numbers(run, places)
    if run.before is not None:
        numbers = _beside(numbers, rule.shown_numbers(run.before, np.zeros(0, np.int64)))
    return DiagnosisFinding(
        id=rule.id,
        title=rule.title,
        affected=len(places),
        share=len(places) / run.size if run.size else 0.0,
        numbers=numbers,
        witnesses=tuple(witness(run, place) for place in places.tolist()[:limit]),
        step=rule.step if isinstance(rule.step, str) else rule.step(run, places),
        source=rule.source,
        blocking=rule.blocking,
        rose=None if run.before is None else claim.rose,
        was=None if run.before is None else len(places) - claim.rose,
    )


def _beside(now: Sequence[Number], then: Sequence[Number]) -> tuple[Number, ...]:
    """Numbers with what they were in the baseline; counts of questions have no such number."""
    earlier = {number.name: number.value for number in then if not number.whole}
    return tuple(replace(number, before=earlier.get(number.name)) for number in now)


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
