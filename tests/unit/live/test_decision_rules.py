"""The rules of a decision: what promotes, what holds, what rolls back, and the same bytes again."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ragauge.live.decision_rules import (
    AlertWindow,
    Criterion,
    DecisionEvidence,
    DecisionRecord,
    EvidencePair,
    decide,
    pack_evidence,
    record_bytes,
    unpack_evidence,
)
from ragauge.live.pairs import PairValues, SideValues
from ragauge.live.settings import PromotionRule
from tests.support.cases import cases

QUIET = AlertWindow(begins_at="2026-09-21T13:00:00Z", ends_at="2026-09-21T13:05:00Z")
NEXT = AlertWindow(begins_at="2026-09-21T13:05:00Z", ends_at="2026-09-21T13:10:00Z")


def pair(
    number: int,
    role: str = "shadow",
    *,
    live: str = "cited",
    other: str = "cited",
    found: int | None = 5,
    delta_s: float | None = 0.3,
    question: int | None = None,
    rung: str | None = "exact",
    **more: Any,
) -> EvidencePair:
    values = PairValues(
        live=SideValues(outcome=live, ms=100.0),  # type: ignore[arg-type]
        other=SideValues(outcome=other, delta_s=delta_s, ms=110.0),  # type: ignore[arg-type]
        found=None if other == "failed" else found,
        expected=None if other == "failed" or found is None else 5,
        rung=None if other == "failed" else rung,  # type: ignore[arg-type]
        unmeasured="failed" if other == "failed" else None,
        **more,
    )
    state = "errored" if other == "failed" else "answered"
    return EvidencePair(number if question is None else question, role, state, values)


def good_pairs(n: int = 600) -> list[EvidencePair]:
    """Shadow as good as live, over 30 hours at 600; every third question is asked once more."""
    pairs = []
    for number in range(n):
        pairs.append(pair(number))
        if number % 3 == 0:
            pairs += [pair(number, "again"), pair(number, "self")]
    return pairs


def evidence(
    pairs: Sequence[EvidencePair] | None = None,
    windows: Sequence[AlertWindow] = (QUIET, NEXT),
    **more: Any,
) -> DecisionEvidence:
    values = {
        "tenant": "", "app": "shop", "live": "i1", "shadow": "http://shadow#1",
        "windows": tuple(windows), "pairs": tuple(good_pairs() if pairs is None else pairs),
        "hours": 30.0,
        "rule": PromotionRule(), "least_pairs": 200, "least_hours": 24.0,
        "ragauge_version": "1.2.3", "config_hash": "c0ffee", **more,
    }  # fmt: skip
    return DecisionEvidence(**values)


def changed(
    pairs: Sequence[EvidencePair], where: Callable[[int, EvidencePair], bool], **values: Any
) -> list[EvidencePair]:
    """The pairs, with another shadow side or other values where a condition holds."""
    outcome = values.pop("outcome", None)
    side = {name: values.pop(name) for name in ("delta_s", "index") if name in values}
    result = []
    for number, one in enumerate(pairs):
        assert one.values is not None
        if where(number, one):
            other = replace(one.values.other, **side)
            if outcome is not None:
                other = replace(other, outcome=outcome)
            result.append(replace(one, values=replace(one.values, other=other, **values)))
        else:
            result.append(one)
    return result


def criterion(record: DecisionRecord, name: str) -> Criterion:
    return next(one for one in record.criteria if one.name == name)


def is_shadow(_: int, one: EvidencePair) -> bool:
    return one.role == "shadow"


def test_a_shadow_that_is_as_good_is_promoted() -> None:
    record = decide(evidence())
    assert (record.decision, record.reasons) == ("promote", ("every condition holds",))
    assert [one.status for one in record.criteria[:6]] == ["pass"] * 6
    assert [one.status for one in record.criteria[6:]] == ["not-judged"] * 2
    assert record.pairs["shadow-answered"] == 600
    assert record.hours == 30.0
    recall = criterion(record, "recall-proxy")
    assert (recall.value, recall.baseline, recall.n) == (1.0, 1.0, 200)


def test_too_few_pairs_or_hours_hold() -> None:
    record = decide(evidence(least_pairs=601))
    assert record.decision == "hold"
    assert record.reasons == ("600 pairs, of 601 that are needed",)
    record = decide(evidence(least_hours=30.0, hours=29.9))
    assert record.decision == "hold"
    assert record.reasons == ("pairs of 29.9 hours, of 30 that are needed",)


def test_no_pairs_hold_with_every_reason() -> None:
    record = decide(evidence([]))
    assert record.decision == "hold"
    assert record.reasons[0] == "0 pairs, of 200 that are needed"
    names = {one.name for one in record.criteria if one.status == "not-measured"}
    assert names == {
        "coverage", "citation-accuracy", "delta-s", "recall-proxy", "flip-rate", "failed",
    }  # fmt: skip


@cases(
    ("name", "spoil"),
    [
        # one in 20: 30 of 600 answers without a citation, the lower bound is far below -0.02
        (
            "coverage",
            lambda pairs: changed(
                pairs, lambda n, one: is_shadow(n, one) and n % 20 == 0, outcome="uncited"
            ),
        ),
        (
            "citation-accuracy",
            lambda pairs: changed(
                pairs, lambda n, one: is_shadow(n, one) and n % 12 == 0, outcome="invalid"
            ),
        ),
        ("delta-s", lambda pairs: changed(pairs, is_shadow, delta_s=0.41)),
        (
            "recall-proxy",
            lambda pairs: changed(pairs, lambda n, one: is_shadow(n, one) and n % 4 == 0, found=3),
        ),
        (
            "flip-rate",
            lambda pairs: changed(
                pairs, lambda n, one: one.role == "again" and n % 10 == 1, outcome="refused"
            ),
        ),
        (
            "failed",
            lambda pairs: changed(
                pairs,
                lambda n, one: is_shadow(n, one) and n % 50 == 0,
                outcome="failed",
                found=None,
                expected=None,
                rung=None,
                unmeasured="failed",
            ),
        ),
    ],
)
def test_each_condition_alone_can_hold(
    name: str, spoil: Callable[[list[EvidencePair]], list[EvidencePair]]
) -> None:
    record = decide(evidence(spoil(good_pairs())))
    assert record.decision == "hold"
    assert criterion(record, name).status == "fail"
    assert criterion(record, name).words in record.reasons


def test_thresholds_are_met_at_their_own_value() -> None:
    """The median of ΔS and its bound are 0.4 where all are: not above it."""
    at = changed(good_pairs(), is_shadow, delta_s=0.4)
    assert decide(evidence(at)).decision == "promote"
    above = changed(good_pairs(), is_shadow, delta_s=0.4000001)
    assert decide(evidence(above)).decision == "hold"


def test_noise_of_the_search_is_no_loss() -> None:
    """Live finds 4.5 of 5 of its own hits again; the shadow finds as many. Without that baseline
    0.9 would read as a tenth lost."""
    noisy = changed(good_pairs(3000), lambda n, _: n % 2 == 0, found=4)
    record = decide(evidence(noisy))
    recall = criterion(record, "recall-proxy")
    assert recall.status == "pass"
    assert recall.value == pytest.approx(0.9, abs=0.01)
    assert record.decision == "promote"


def test_without_live_asked_again_there_is_no_baseline() -> None:
    alone = [one for one in good_pairs() if one.role == "shadow"]
    record = decide(evidence(alone))
    assert record.decision == "hold"
    assert criterion(record, "recall-proxy").status == "not-measured"
    assert criterion(record, "flip-rate").status == "not-measured"


@pytest.mark.parametrize(
    ("questions", "live", "shadow", "status"),
    [
        (200, 4, 4, "pass"),  # equal rates: the letter of the source
        (200, 4, 5, "fail"),  # one more than live
        (200, 5, 4, "pass"),
        (30, 0, 0, "fail"),  # 0 of 30: the upper bound is 0.114, and 0.10 would page
        (40, 0, 0, "pass"),  # 0 of 40: 0.088
    ],
)
def test_the_flip_rate_is_at_most_that_of_live(
    questions: int, live: int, shadow: int, status: str
) -> None:
    pairs = [pair(number) for number in range(questions)]
    pairs += [
        pair(n, "again", other="refused" if n < shadow else "cited") for n in range(questions)
    ]
    pairs += [pair(n, "self", other="refused" if n < live else "cited") for n in range(questions)]
    flips = criterion(decide(evidence(pairs)), "flip-rate")
    assert flips.status == status
    assert (flips.value, flips.baseline) == (shadow / questions, live / questions)


def test_repeats_of_a_question_in_the_traffic_count_as_repeats() -> None:
    pairs = [pair(number, question=number % 300) for number in range(600)]
    pairs += [pair(number, "self", question=number % 300) for number in range(0, 300, 2)]
    flips = criterion(decide(evidence(pairs)), "flip-rate")
    assert (flips.status, flips.n) == ("pass", 300)


def test_a_question_weighs_once_however_often_it_is_asked() -> None:
    """A question that 400 people ask is one question: 201, of which that one is lost."""
    pairs = [pair(number) for number in range(200)]
    pairs += [pair(1000 + n, other="uncited", question=999) for n in range(400)]
    coverage = criterion(decide(evidence(pairs)), "coverage")
    assert coverage.n == 201
    assert coverage.value == pytest.approx(200 / 201)


def test_what_the_shadow_failed_to_answer_counts_as_the_worst() -> None:
    pairs = [pair(n, other="failed" if n < 6 else "cited") for n in range(600)]
    pairs += [pair(n, "self") for n in range(600)]
    record = decide(evidence(pairs))
    # 594 of 600 in coverage, accuracy and recall alike; failed asks are exactly 1 %
    assert criterion(record, "coverage").value == 0.99
    assert criterion(record, "citation-accuracy").value == 0.99
    assert criterion(record, "recall-proxy").value == pytest.approx(0.99)
    assert criterion(record, "failed").value == 0.01
    assert criterion(record, "failed").status == "pass"
    assert criterion(record, "delta-s").interval is not None
    assert record.unmeasured == {"failed": 6}


def test_live_that_fails_to_answer_again_does_not_lower_the_baseline() -> None:
    pairs = [one for one in good_pairs() if one.role != "self"]
    pairs += [pair(n, "self", other="failed" if n % 2 else "cited") for n in range(0, 600, 3)]
    recall = criterion(decide(evidence(pairs)), "recall-proxy")
    assert (recall.baseline, recall.n) == (1.0, 100)


def test_questions_that_an_open_breaker_kept_back_count_as_failed() -> None:
    skipped = [EvidencePair(900 + n, "shadow", "skipped", None, "circuit-open") for n in range(7)]
    record = decide(evidence([*good_pairs(), *skipped]))
    failed = criterion(record, "failed")
    assert (failed.status, failed.n) == ("fail", 607)
    assert failed.value == 7 / 607
    other = [replace(one, why="conversation") for one in skipped]
    assert decide(evidence([*good_pairs(), *other])).decision == "promote"
    assert decide(evidence([*good_pairs(), *other])).unmeasured == {"conversation": 7}


def test_hits_that_only_share_documents_prove_nothing() -> None:
    weak = changed(good_pairs(), lambda n, _: n % 5 == 0, rung="document")
    record = decide(evidence(weak))
    assert criterion(record, "recall-proxy").status == "not-measured"
    assert record.decision == "hold"
    few = changed(good_pairs(), lambda n, _: n % 50 == 0, rung="document")
    assert criterion(decide(evidence(few)), "recall-proxy").status == "pass"


def test_delta_s_that_most_answers_lack_is_not_measured() -> None:
    without = changed(good_pairs(), lambda n, _: n % 5 == 0, delta_s=None)
    record = decide(evidence(without))
    assert criterion(record, "delta-s").status == "not-measured"
    assert record.decision == "hold"


def test_an_index_alone_is_judged_without_answers_if_the_user_says_so() -> None:
    index = [
        pair(n, role, live="cited", other="hits")
        for n in range(600)
        for role in (("shadow", "again", "self") if n % 3 == 0 else ("shadow",))
    ]
    # live, asked again, answers as before
    index = [
        replace(one, values=replace(one.values, other=one.values.live))
        if one.role == "self" and one.values is not None
        else one
        for one in index
    ]
    record = decide(evidence(index))
    assert record.decision == "hold"
    assert criterion(record, "coverage").status == "not-measured"
    alone = PromotionRule(index_only=True)
    record = decide(evidence(index, rule=alone))
    assert criterion(record, "coverage").status == "not-judged"
    assert record.decision == "promote"
    # but answers that are there must not go unjudged
    assert decide(evidence(good_pairs(), rule=alone)).decision == "hold"


def test_gold_questions_are_judged_from_thirty_on() -> None:
    def with_gold(n: int, live: float, shadow: float) -> list[EvidencePair]:
        gold = {"answer.coverage": (live, shadow), "citation.accuracy": (live, shadow)}
        return changed(good_pairs(), lambda number, one: one.role == "shadow" and number < n,
                       gold=gold)  # fmt: skip

    few = decide(evidence(with_gold(48, 1.0, 0.0)))  # 48 // 5 * 3 = 28 pairs of the shadow
    assert criterion(few, "gold-coverage").n == 28
    assert few.decision == "promote"
    worse = decide(evidence(with_gold(300, 1.0, 0.0)))
    assert worse.decision == "hold"
    assert criterion(worse, "gold-coverage").status == "fail"
    assert criterion(worse, "gold-citation-accuracy").status == "fail"
    same = decide(evidence(with_gold(600, 1.0, 1.0)))
    assert criterion(same, "gold-coverage").status == "pass"
    assert criterion(same, "gold-citation-accuracy").status == "pass"


def test_two_alert_windows_in_a_row_roll_back_and_one_holds() -> None:
    alerted = replace(NEXT, firing=("coverage",))
    record = decide(evidence(windows=[QUIET, alerted]))
    assert (record.decision, record.reasons) == ("hold", ("an alert is firing: coverage",))
    both = [replace(QUIET, firing=("errors",)), alerted]
    record = decide(evidence(windows=both))
    assert record.decision == "roll-back"
    assert record.reasons == ("alerts in 2 consecutive windows: coverage, errors",)
    over = [replace(QUIET, firing=("errors",)), NEXT]
    assert decide(evidence(windows=over)).decision == "promote"


def test_index_drift_rolls_back_at_once() -> None:
    drift = replace(NEXT, firing=("index-drift",), drift=("index-drift",))
    record = decide(evidence(windows=[drift]))
    assert (record.decision, record.reasons[0]) == ("roll-back", "the index drifted: index-drift")


def test_the_same_evidence_gives_the_same_bytes() -> None:
    packed = pack_evidence(evidence())
    assert record_bytes(decide(unpack_evidence(packed))) == record_bytes(decide(evidence()))
    assert pack_evidence(unpack_evidence(packed)) == packed


def test_the_order_of_pairs_changes_no_number() -> None:
    pairs = changed(good_pairs(), lambda n, _: n % 7 == 0, found=3, delta_s=0.37)
    shuffled = list(pairs)
    random.Random(4).shuffle(shuffled)
    one, other = decide(evidence(pairs)), decide(evidence(shuffled))
    assert one.criteria == other.criteria
    assert one.agreement == other.agreement


def test_the_record_says_what_it_rests_on() -> None:
    record = msgspec.json.decode(record_bytes(decide(evidence())))
    assert record["schema"] == "ragauge.decision/1"
    assert record["ragauge_version"] == "1.2.3"
    assert record["config_hash"] == "c0ffee"
    assert record["thresholds"]["recall_margin"] == 0.02
    assert record["thresholds"]["least_pairs"] == 200
    assert record["rungs"] == {"exact": 600}
    cites = record["agreement"]["cite_first"]
    assert (cites["value"], cites["n"], cites["interval"][1]) == (1.0, 600, 1.0)
    assert record["agreement"]["kendall_tau"] == {"value": None, "n": 0, "interval": None}
    assert record["agreement"]["shadow_latency_ms"] == {"p50": 110.0, "p95": 110.0, "n": 600}
    assert len(record["evidence_hash"]) == 64
    for one in record["criteria"][:5]:
        assert one["interval"][0] is None or one["interval"][0] <= one["interval"][1]


@pytest.mark.parametrize("payload", [b"", b"no zlib", pack_evidence(evidence([]))[:-9]])
def test_damaged_evidence_is_an_error(payload: bytes) -> None:
    from ragauge.errors import RagaugeError

    with pytest.raises(RagaugeError, match="cannot be read"):
        unpack_evidence(payload)
