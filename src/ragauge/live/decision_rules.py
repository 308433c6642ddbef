"""Decisions about a shadow: promote, hold or roll back, each with the evidence that it rests on.

`decide` is a pure function of its evidence: which pairs, which alerts, which thresholds. The
evidence is stored with the record, so anybody can compute a decision again, to the byte. It holds
numbers and no ids: a decision stays when the traces that it rests on are deleted. What was not
measured never promotes.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.live.pairs import ANSWERED, Outcome, PairValues
from ragauge.live.settings import PromotionRule
from ragauge.stats import exact_sums
from ragauge.stats.intervals import (
    GroupSums,
    delta_interval,
    group_sums,
    quantile,
    quantile_delta_interval,
    quantile_interval,
    score_interval,
)

SCHEMA = "ragauge.decision/1"
RULES = 2
"""The version of the rules below: it grows when the same evidence may give another record."""

FEWEST_GOLD = 30
"""Questions of the gold set from which their metrics are judged too; fewer are only shown."""
MOST_UNMEASURED = 0.1
"""The share of pairs that may lack a number before it counts as not measured."""
ROLL_BACK_WINDOWS = 2
_FARTHEST = 2.0  # no ΔS is larger: 1 - cos
_CENTRE, _TAIL = 0.5, 0.95

DecisionKind = Literal["promote", "hold", "roll-back"]
CriterionStatus = Literal["pass", "fail", "not-measured", "not-judged"]


class EvidencePair(Struct, frozen=True, array_like=True):
    """One question that was asked off the user's path; `values` is None where nothing came.

    `question` counts the questions of the evidence from 0, in the order in which they were asked:
    repeats are known by it, and nobody finds the trace or the question by it.
    """

    question: int
    role: str
    state: str
    values: PairValues | None = None
    why: str | None = None


class AlertWindow(Struct, frozen=True, kw_only=True):
    """A window of live traffic, and the rules whose alerts were firing in it."""

    begins_at: str
    ends_at: str
    firing: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()


class DecisionEvidence(Struct, frozen=True, kw_only=True):
    """All that a decision depends on.

    `windows` are the one that is decided about and those before it, the oldest first. `hours` is
    the time over which the pairs were asked.
    """

    tenant: str
    app: str
    live: str
    shadow: str
    windows: tuple[AlertWindow, ...]
    pairs: tuple[EvidencePair, ...]
    hours: float
    rule: PromotionRule
    least_pairs: int
    least_hours: float
    ragauge_version: str
    config_hash: str
    left_out: int = 0
    rules: int = RULES


class Criterion(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One condition of a promotion: what was measured, over how many questions, and the limit.

    `judged` is the number that is held against the threshold: a bound of the interval.
    """

    name: str
    status: CriterionStatus
    words: str
    value: float | None = None
    baseline: float | None = None
    interval: tuple[float | None, float | None] | None = None
    judged: float | None = None
    threshold: float | None = None
    n: int = 0


class DecisionRecord(Struct, frozen=True, kw_only=True):
    """What was decided and why, as it is stored."""

    schema: str
    rules: int
    decision: DecisionKind
    reasons: tuple[str, ...]
    tenant: str
    app: str
    live: str
    shadow: str
    begins_at: str
    ends_at: str
    criteria: tuple[Criterion, ...]
    windows: tuple[AlertWindow, ...]
    pairs: dict[str, int]
    unmeasured: dict[str, int]
    rungs: dict[str, int]
    hours: float
    agreement: dict[str, Any]
    thresholds: dict[str, Any]
    ragauge_version: str
    config_hash: str
    evidence_hash: str


_encode = msgspec.json.Encoder(order="deterministic").encode


def pack_evidence(evidence: DecisionEvidence) -> bytes:
    """The evidence as it is stored."""
    return zlib.compress(_encode(evidence), 6)


class EvidenceMaker(Struct, frozen=True):
    """Which rules some evidence was packed for, and by which ragauge."""

    rules: int
    ragauge_version: str


Unpacked = TypeVar("Unpacked")


def _unpack(payload: bytes, kind: type[Unpacked]) -> Unpacked:
    try:
        return msgspec.json.decode(zlib.decompress(payload), type=kind)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"the evidence of a decision cannot be read: {error}"
        hint = "restore the store from a backup: a decision without evidence proves nothing"
        raise RagaugeError.of("bad-store", message, hint=hint) from error


def evidence_maker(payload: bytes) -> EvidenceMaker:
    """What made some evidence; other versions may have packed it otherwise."""
    return _unpack(payload, EvidenceMaker)


def unpack_evidence(payload: bytes) -> DecisionEvidence:
    """The evidence of a stored decision, of these rules."""
    return _unpack(payload, DecisionEvidence)


def record_bytes(record: DecisionRecord) -> bytes:
    """The record as it is stored, printed and hashed."""
    return _encode(record)


def decide(evidence: DecisionEvidence) -> DecisionRecord:
    """Decide by the evidence alone."""
    sample = PairSample(evidence)
    criteria = tuple(criterion(sample) for criterion in CRITERIA)
    decision, reasons = _judge(evidence, sample, criteria)
    window = evidence.windows[-1]
    return DecisionRecord(
        schema=SCHEMA,
        rules=evidence.rules,
        decision=decision,
        reasons=reasons,
        tenant=evidence.tenant,
        app=evidence.app,
        live=evidence.live,
        shadow=evidence.shadow,
        begins_at=window.begins_at,
        ends_at=window.ends_at,
        criteria=criteria,
        windows=evidence.windows,
        pairs=sample.counts(),
        unmeasured=dict(sorted(sample.unmeasured.items())),
        rungs=dict(sorted(sample.rungs.items())),
        hours=sample.hours,
        agreement=_agreement(sample),
        thresholds={
            **msgspec.to_builtins(evidence.rule),
            "least_pairs": evidence.least_pairs,
            "least_hours": evidence.least_hours,
        },
        ragauge_version=evidence.ragauge_version,
        config_hash=evidence.config_hash,
        evidence_hash=sha256(_encode(evidence)).hexdigest(),
    )


def _judge(
    evidence: DecisionEvidence, sample: PairSample, criteria: Sequence[Criterion]
) -> tuple[DecisionKind, tuple[str, ...]]:
    newest = evidence.windows[-1]
    alerted = [window for window in evidence.windows[-ROLL_BACK_WINDOWS:] if window.firing]
    if newest.drift:
        return "roll-back", (f"the index drifted: {', '.join(newest.drift)}",)
    if len(alerted) == ROLL_BACK_WINDOWS:
        rules = sorted({rule for window in alerted for rule in window.firing})
        return "roll-back", (
            f"alerts in {ROLL_BACK_WINDOWS} consecutive windows: {', '.join(rules)}",
        )
    reasons = []
    if not evidence.shadow:
        reasons.append("no shadow is configured")
    if newest.firing:
        reasons.append(f"an alert is firing: {', '.join(newest.firing)}")
    if sample.judged < evidence.least_pairs:
        reasons.append(f"{sample.judged} pairs, of {evidence.least_pairs} that are needed")
    if sample.hours < evidence.least_hours:
        reasons.append(
            f"pairs of {sample.hours:.1f} hours, of {evidence.least_hours:g} that are needed"
        )
    reasons += [criterion.words for criterion in criteria if criterion.status == "not-measured"]
    reasons += [criterion.words for criterion in criteria if criterion.status == "fail"]
    return ("hold", tuple(reasons)) if reasons else ("promote", ("every condition holds",))


class PairSample:
    """The pairs of some evidence, sorted by what they are good for.

    A question is the unit: what was measured of its repeats is averaged first. A question that the
    shadow failed to answer counts as the worst; one that live failed to answer again says nothing
    of the shadow, and is left out of the baseline.
    """

    def __init__(self, evidence: DecisionEvidence) -> None:
        self.rule = evidence.rule
        self.states: Counter[str] = Counter()
        self.unmeasured: Counter[str] = Counter()
        self.rungs: Counter[str] = Counter()
        self.left_out = evidence.left_out
        self.shadow: list[EvidencePair] = []
        self.selves: list[EvidencePair] = []
        self.again: list[EvidencePair] = []
        self.refused_to_ask = 0  # the circuit breaker was open: the shadow is to blame
        for pair in evidence.pairs:
            self.states[f"{pair.role}-{pair.state}"] += 1
            if pair.state == "skipped":
                self.unmeasured[pair.why or "skipped"] += 1
                self.refused_to_ask += pair.role == "shadow" and pair.why == "circuit-open"
            elif pair.values is not None:
                sides = {"shadow": self.shadow, "self": self.selves, "again": self.again}
                sides[pair.role].append(pair)
        self.hours = evidence.hours
        for pair in self.shadow:
            assert pair.values is not None
            if pair.values.unmeasured is not None:
                self.unmeasured[pair.values.unmeasured] += 1
            elif pair.values.rung is not None:
                self.rungs[pair.values.rung] += 1

    @property
    def judged(self) -> int:
        """Pairs that the shadow was asked for, whatever came of it."""
        return len(self.shadow)

    @property
    def failed(self) -> int:
        """How many of them have no answer."""
        return sum(_of(pair).other.outcome == "failed" for pair in self.shadow)

    def counts(self) -> dict[str, int]:
        """How many pairs of each role came to what, and how many were left out of the sample."""
        questions = len({pair.question for pair in self.shadow})
        return {
            **dict(sorted(self.states.items())),
            "questions": questions,
            "left-out": self.left_out,
        }


def _of(pair: EvidencePair) -> PairValues:
    assert pair.values is not None
    return pair.values


def _by_question(entries: Iterable[tuple[int, float]]) -> dict[int, float]:
    """The mean over the repeats of each question, in the order of the keys."""
    values: dict[int, list[float]] = {}
    for question, value in entries:
        values.setdefault(question, []).append(value)
    return {key: _mean_of(values[key]) for key in sorted(values)}


def _mean_of(values: Sequence[float]) -> float:
    """The mean of some values; most questions are asked once, and an exact sum takes its time."""
    if len(values) == 1:
        return values[0]
    mean = exact_sums.mean(np.array(values, np.float64))
    assert mean is not None
    return mean


def _array(values: Mapping[int, float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(list(values.values()), np.float64)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _not_measured(name: str, words: str, **more: Any) -> Criterion:
    return Criterion(name=name, status="not-measured", words=words, **more)


def _not_judged(name: str, words: str, **more: Any) -> Criterion:
    return Criterion(name=name, status="not-judged", words=words, **more)


def _at_least(name: str, title: str, judged: float, threshold: float, **more: Any) -> Criterion:
    holds = judged >= threshold
    sign = "≥" if holds else "<"
    words = f"{title}: lower bound {judged:.4f} {sign} {threshold:.4f} (n = {more['n']})"
    status: CriterionStatus = "pass" if holds else "fail"
    return Criterion(
        name=name, status=status, words=words, judged=judged, threshold=threshold, **more
    )


def _at_most(name: str, title: str, judged: float, threshold: float, **more: Any) -> Criterion:
    holds = judged <= threshold
    sign = "≤" if holds else ">"
    words = f"{title}: upper bound {judged:.4f} {sign} {threshold:.4f} (n = {more['n']})"
    status: CriterionStatus = "pass" if holds else "fail"
    return Criterion(
        name=name, status=status, words=words, judged=judged, threshold=threshold, **more
    )


def _answers_expected(sample: PairSample, name: str, title: str) -> Criterion | None:
    """Where answers are judged, None; otherwise why they are not, or why they should be."""
    outcomes = {_of(pair).other.outcome for pair in sample.shadow}
    answers = outcomes & {*ANSWERED, "refused"}
    if sample.rule.index_only:
        if answers:
            words = f"{title}: `index_only` is set, and the shadow has answers that go unjudged"
            return _not_measured(name, words)
        return _not_judged(name, f"{title}: not judged, the shadow is an index alone")
    if not answers:
        words = f"{title} was not measured: the shadow gave no answer (`index_only` judges without)"
        return _not_measured(name, words)
    return None


def _coverage(sample: PairSample) -> Criterion:
    """Coverage is not worse: validly cited answers, where live answered, shadow less live."""
    name, title = "coverage", "coverage against live"
    if (instead := _answers_expected(sample, name, title)) is not None:
        return instead
    answered = [pair for pair in sample.shadow if _of(pair).live.outcome in ANSWERED]
    if not answered:
        return _not_measured(name, f"{title} was not measured: live answered none of these")

    def share(outcome: Outcome) -> float:
        return float(outcome == "cited")

    mine = _by_question((pair.question, share(_of(pair).live.outcome)) for pair in answered)
    theirs = _by_question((pair.question, share(_of(pair).other.outcome)) for pair in answered)
    return _no_drop(name, title, mine, theirs, sample.rule.coverage_margin)


def _no_drop(
    name: str, title: str, mine: Mapping[int, float], theirs: Mapping[int, float], margin: float
) -> Criterion:
    """A paired difference, shadow less live, that is not below the margin."""
    deltas = {key: theirs[key] - mine[key] for key in mine}
    interval = delta_interval(group_sums(_array(deltas)))
    return _at_least(
        name,
        title,
        interval[0],
        -margin,
        value=exact_sums.mean(_array(theirs)),
        baseline=exact_sums.mean(_array(mine)),
        interval=interval,
        n=len(deltas),
    )


def _citation_accuracy(sample: PairSample) -> Criterion:
    """Citations of the shadow are valid: all among what it retrieved."""
    name, title = "citation-accuracy", "citation accuracy"
    if (instead := _answers_expected(sample, name, title)) is not None:
        return instead
    outcomes = [(pair.question, _of(pair).other.outcome) for pair in sample.shadow]
    values = _by_question(
        (question, float(outcome == "cited"))
        for question, outcome in outcomes
        if outcome in ("cited", "invalid", "failed")
    )
    if not any(outcome in ("cited", "invalid") for _, outcome in outcomes):
        return _not_measured(name, f"{title} was not measured: the shadow cites nothing")
    sums = group_sums(_array(values))
    interval = score_interval(sums)
    return _at_least(
        name,
        title,
        interval[0],
        sample.rule.citation_accuracy,
        value=sums.mean,
        interval=interval,
        n=len(values),
    )


def _delta_s(sample: PairSample) -> Criterion:
    """The median of ΔS is small enough."""
    name, title = "delta-s", "median ΔS"
    entries = []
    lacking = 0
    for pair in sample.shadow:
        side = _of(pair).other
        if side.outcome == "failed":
            entries.append((pair.question, _FARTHEST))
        elif side.delta_s is not None:
            entries.append((pair.question, side.delta_s))
        elif side.outcome in ("cited", "invalid", "hits"):
            lacking += 1
    measured = sum(value < _FARTHEST for _, value in entries)
    if not measured or _share(lacking, lacking + measured) > MOST_UNMEASURED:
        words = f"{title} was not measured: {measured} of {lacking + measured} answers have a ΔS"
        return _not_measured(name, words, n=measured)
    values = _by_question(entries)
    array = _array(values)
    interval = quantile_interval(array, _CENTRE)
    if interval[1] is None:
        words = f"{title} was not measured: {len(values)} questions cannot bound it"
        return _not_measured(name, words, n=len(values))
    return _at_most(
        name,
        title,
        interval[1],
        sample.rule.delta_s,
        value=quantile(array, _CENTRE),
        interval=interval,
        n=len(values),
    )


def _recall(sample: PairSample) -> Criterion:
    """The recall proxy is unchanged: live's top 5 is covered as well as live itself covers it."""
    name, title = "recall-proxy", "recall proxy against live's agreement with itself"
    if not sample.shadow:
        return _not_measured(name, f"{title} was not measured: there are no pairs")
    unusable = [
        pair
        for pair in sample.shadow
        if _of(pair).unmeasured == "no-common-ground" or _of(pair).rung == "document"
    ]
    if _share(len(unusable), sample.judged) > MOST_UNMEASURED:
        words = (
            f"{title} was not measured: hits of {len(unusable)} of {sample.judged} pairs have no "
            "places, texts or common ids"
        )
        return _not_measured(name, words)
    shadow = _by_question(_covered(sample.shadow))
    baseline = _by_question(_covered(sample.selves, failed=False))
    if not shadow:
        return _not_measured(name, f"{title} was not measured: live retrieved nothing")
    if not baseline:
        words = f"{title} was not measured: live was never asked again (`live`, `self_rate`)"
        return _not_measured(name, words)
    theirs, mine = group_sums(_array(shadow)), group_sums(_array(baseline))
    interval = quantile_delta_interval(
        mine.mean, theirs.mean, score_interval(mine), score_interval(theirs)
    )
    assert interval is not None  # neither side of a score interval is open
    return _at_least(
        name,
        title,
        interval[0],
        -sample.rule.recall_margin,
        value=theirs.mean,
        baseline=mine.mean,
        interval=interval,
        n=min(len(shadow), len(baseline)),
    )


def _covered(pairs: Sequence[EvidencePair], *, failed: bool = True) -> list[tuple[int, float]]:
    """The share of live's top 5 that each pair covers; a failed question covers nothing."""
    entries = []
    for pair in pairs:
        values = _of(pair)
        if values.other.outcome == "failed":
            if failed and values.live.outcome != "empty":
                entries.append((pair.question, 0.0))
        elif values.found is not None and values.expected and values.rung != "document":
            entries.append((pair.question, values.found / values.expected))
    return entries


def _flips(sample: PairSample) -> Criterion:
    """The outcomes of repeated questions change no more often than those of live, and rarely.

    No bound shows that two equal rates differ by nothing, so the values are compared. What few
    questions cannot show is kept out by the other limit, that of the alert `lambda-flip`.
    """
    name, title = "flip-rate", "λ flip rate against live"
    mine: dict[int, list[Outcome]] = {}
    theirs: dict[int, list[Outcome]] = {}
    for pair in sample.shadow:
        mine.setdefault(pair.question, []).append(_of(pair).live.outcome)
        theirs.setdefault(pair.question, []).append(_of(pair).other.outcome)
    for pair in sample.selves:
        if _of(pair).other.outcome != "failed":
            mine.setdefault(pair.question, []).append(_of(pair).other.outcome)
    for pair in sample.again:
        theirs.setdefault(pair.question, []).append(_of(pair).other.outcome)
    repeated = sorted(key for key in mine if len(mine[key]) > 1 and len(theirs.get(key, ())) > 1)
    if not repeated:
        words = f"{title} was not measured: no question was asked twice (`live`, `self_rate`)"
        return _not_measured(name, words)
    before = group_sums(_array({key: float(len(set(mine[key])) > 1) for key in repeated}))
    after = group_sums(_array({key: float(len(set(theirs[key])) > 1) for key in repeated}))
    interval = score_interval(after)
    upper, limit = interval[1], sample.rule.flip_rate
    is_higher = after.mean > before.mean
    n = len(repeated)
    compared = f"{title}: {after.mean:.4f} {'>' if is_higher else '≤'} {before.mean:.4f}"
    bounded = f"upper bound {upper:.4f} {'<' if upper < limit else '≥'} {limit:.4f}"
    words = compared if is_higher else f"{compared}, {bounded}"
    return Criterion(
        name=name,
        status="fail" if is_higher or upper >= limit else "pass",
        words=f"{words} (n = {n})",
        value=after.mean,
        baseline=before.mean,
        interval=interval,
        judged=after.mean if is_higher else upper,
        threshold=before.mean if is_higher else limit,
        n=n,
    )


def _failures(sample: PairSample) -> Criterion:
    """Few enough questions went without an answer."""
    name, title = "failed", "questions without an answer"
    asked = sample.judged + sample.refused_to_ask
    if not asked:
        return _not_measured(name, f"{title}: none was asked")
    failed = sample.failed + sample.refused_to_ask
    share = failed / asked
    limit = sample.rule.failed
    holds = share <= limit
    sign = "≤" if holds else ">"
    return Criterion(
        name=name,
        status="pass" if holds else "fail",
        words=f"{title}: {failed} of {asked}, {share:.4f} {sign} {limit:.4f}",
        value=share,
        judged=share,
        threshold=limit,
        n=asked,
    )


def _gold(metric: str, *, name: str, title: str, level: bool) -> Callable[[PairSample], Criterion]:
    """A criterion over the questions that are in the gold set; few of them decide nothing."""

    def criterion(sample: PairSample) -> Criterion:
        mine, theirs = [], []
        for pair in sample.shadow:
            live, shadow = _of(pair).gold.get(metric, (None, None))
            if live is None and not level:
                continue
            failed = _of(pair).other.outcome == "failed" and metric in _of(pair).gold
            value = 0.0 if failed else shadow
            if value is None:
                continue
            mine.append((pair.question, live or 0.0))
            theirs.append((pair.question, value))
        before, after = _by_question(mine), _by_question(theirs)
        if len(after) < FEWEST_GOLD:
            words = f"{title}: not judged, {len(after)} questions of the gold set were mirrored"
            return _not_judged(name, words, n=len(after))
        if not level:
            return _no_drop(name, title, before, after, sample.rule.coverage_margin)
        sums = group_sums(_array(after))
        interval = score_interval(sums)
        threshold = sample.rule.citation_accuracy
        return _at_least(
            name, title, interval[0], threshold, value=sums.mean, interval=interval, n=len(after)
        )

    return criterion


CRITERIA: tuple[Callable[[PairSample], Criterion], ...] = (
    _coverage,
    _citation_accuracy,
    _delta_s,
    _recall,
    _flips,
    _failures,
    _gold(
        "answer.coverage", name="gold-coverage", title="coverage of gold against live", level=False
    ),
    _gold(
        "citation.accuracy",
        name="gold-citation-accuracy",
        title="citation accuracy by gold",
        level=True,
    ),
)


def _agreement(sample: PairSample) -> dict[str, Any]:
    """What else is worth seeing, over questions: nothing of it decides."""
    shadow, selves = sample.shadow, sample.selves
    values = [_of(pair) for pair in shadow]
    return {
        "cite_first": _mean(shadow, _cites, score_interval),
        "kendall_tau": _mean(shadow, lambda entry: entry.tau, delta_interval),
        "self_kendall_tau": _mean(selves, lambda entry: entry.tau, delta_interval),
        "same_citations": _mean(shadow, _same_citations, score_interval),
        "self_same_citations": _mean(selves, _same_citations, score_interval),
        "live_latency_ms": _latency([entry.live.ms for entry in values]),
        "shadow_latency_ms": _latency([entry.other.ms for entry in values]),
    }


def _cites(entry: PairValues) -> float | None:
    outcome = entry.other.outcome
    return float(outcome in ("cited", "invalid")) if outcome in ANSWERED else None


def _same_citations(entry: PairValues) -> float | None:
    return None if entry.same_citations is None else float(entry.same_citations)


def _mean(
    pairs: Iterable[EvidencePair],
    value_of: Callable[[PairValues], float | None],
    interval_of: Callable[[GroupSums], tuple[float, float]],
) -> dict[str, Any]:
    """The mean over questions with its interval."""
    measured = ((pair.question, value_of(_of(pair))) for pair in pairs)
    values = _by_question((key, value) for key, value in measured if value is not None)
    if not values:
        return {"value": None, "n": 0, "interval": None}
    sums = group_sums(_array(values))
    return {"value": sums.mean, "n": len(values), "interval": list(interval_of(sums))}


def _latency(values: Iterable[float | None]) -> dict[str, Any]:
    numbers = np.array([value for value in values if value is not None], np.float64)
    return {"p50": quantile(numbers, _CENTRE), "p95": quantile(numbers, _TAIL), "n": len(numbers)}
