"""The policies of gates: by the value, by what is surely good enough, by what is surely too bad."""

from __future__ import annotations

import json
from typing import Any

import pytest

import ragauge
from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.gates.judge import judge
from ragauge.gates.parse import parse_items, parse_table
from ragauge.model.phrases import verdict_headline
from ragauge.model.verdict import Verdict
from ragauge.stats.error_rates import Policy
from tests.support.cases import cases
from tests.support.command import Folder, Row

ALL = registry.profile("all")
HIT = "retrieval.hit@5"
EMPTY = "retrieval.empty"


def rows(right: int, n: int, *, empty: int = 0) -> tuple[list[Row], list[Row]]:
    """Questions of which the first `right` find their evidence, and the last have no hits."""
    gold: list[Row] = [
        {"qid": f"q{place:03}", "question": f"What is {place}?", "relevant": ["a"]}
        for place in range(n)
    ]
    traces: list[Row] = [
        {
            "qid": f"q{place:03}",
            "retrieved_ids": [] if place >= n - empty else ["a" if place < right else "b"],
        }
        for place in range(n)
    ]
    return gold, traces


def scored(right: int, n: int, *, empty: int = 0) -> ragauge.Scores:
    metrics = [HIT, EMPTY, "run.duplicate"]
    return ragauge.score(*rows(right, n, empty=empty), profile="all", metrics=metrics, hashes=True)


def decided(
    scores: ragauge.Scores,
    table: dict[str, Any],
    baseline: ragauge.Scores | None = None,
    **more: Any,
) -> Verdict:
    gates = parse_table(table, ALL, scores.k, origin="test")
    return judge(scores, gates, source_rules=False, baseline=baseline, **more)


@cases(
    ("right", "point", "sure_pass", "sure_fail"),
    [
        # 95 % intervals of n = 200: 190 (0.910422, 0.974392), 182 to 0.9424, 176 to 0.9184
        (190, "pass", "pass", "pass"),  # 0.95, at least 0.9104
        (182, "pass", "fail", "pass"),  # 0.91, at least 0.8624
        (176, "fail", "fail", "review"),  # 0.88, at most 0.9184
        (160, "fail", "fail", "fail"),  # 0.80, at most 0.8496
    ],
)
def test_a_threshold_by_each_policy(right: int, point: str, sure_pass: str, sure_fail: str) -> None:
    """At >= 0.90 with 200 questions."""
    scores = scored(right, 200)
    policies = {
        "point": point,
        "confident-pass": sure_pass,
        "interval": sure_pass,  # its old name
        "confident-fail": sure_fail,
    }
    for policy, status in policies.items():
        verdict = decided(scores, {HIT: {"threshold": ">= 0.90", "policy": policy}})
        assert verdict.status == status, policy


@cases(
    ("empty", "sure_pass", "sure_fail"),
    [(2, "pass", "pass"), (15, "fail", "review"), (40, "fail", "fail"), (8, "fail", "pass")],
)
def test_what_is_better_when_lower_is_judged_by_the_other_bound(
    empty: int, sure_pass: str, sure_fail: str
) -> None:
    """At <= 0.05 with 200 questions: 2 are at most 0.0357, 15 at least 0.046, 40 at least 0.15."""
    scores = scored(200, 200, empty=empty)
    for policy, status in (("confident-pass", sure_pass), ("confident-fail", sure_fail)):
        verdict = decided(scores, {EMPTY: {"threshold": "<= 0.05", "policy": policy}})
        assert verdict.status == status, policy


@cases(
    ("lost", "point", "sure_pass", "sure_fail"),
    [
        # Paired intervals of intervals.md, 200 questions: none lost ±0.013722, 10 lost
        # (-0.082416, -0.016594).
        (0, "pass", "pass", "pass"),
        (1, "pass", "fail", "pass"),
        (8, "fail", "fail", "review"),
        (20, "fail", "fail", "fail"),
    ],
)
def test_a_drop_by_each_policy(lost: int, point: str, sure_pass: str, sure_fail: str) -> None:
    """max_drop = 0.02; what is paired is the change of each question."""
    before, now = scored(200, 200), scored(200 - lost, 200)
    policies = {"point": point, "confident-pass": sure_pass, "confident-fail": sure_fail}
    for policy, status in policies.items():
        verdict = decided(now, {HIT: {"max_drop": 0.02, "policy": policy}}, before)
        assert verdict.status == status, (policy, verdict.gates)


def test_the_paired_interval_decides_at_its_own_bound() -> None:
    """10 of 200 lost: (0.016594, 0.082416) worse; the lower bound decides by confident-fail."""
    before, now = scored(200, 200), scored(190, 200)
    statuses = [
        decided(now, {HIT: {"max_drop": most, "policy": "confident-fail"}}, before).status
        for most in (0.0165, 0.0166)
    ]
    assert statuses == ["fail", "review"]
    statuses = [
        decided(now, {HIT: {"max_drop": most, "policy": "confident-pass"}}, before).status
        for most in (0.0824, 0.0825)
    ]
    assert statuses == ["fail", "pass"]


def test_review_says_so_and_fails_where_it_is_asked_to() -> None:
    """Exit 0 with the word REVIEW, never PASS; with fail_on_review exit 1."""
    scores = scored(176, 200)
    table = {HIT: {"threshold": ">= 0.90", "policy": "confident-fail"}}
    verdict = decided(scores, table)
    assert (int(verdict.exit_code), verdict.gates[0].status) == (0, "review")
    assert verdict_headline(verdict) == "REVIEW: retrieval.hit@5"
    strict = decided(scores, table, fail_on_review=True)
    assert (int(strict.exit_code), strict.status) == (1, "review")
    assert verdict_headline(strict) == "REVIEW (fails by --fail-on-review): retrieval.hit@5"


def test_a_sure_failure_is_no_matter_for_review() -> None:
    """A review band catches what policy and threshold would pass, not what is surely too bad."""
    scores = scored(160, 200)
    options = {"threshold": ">= 0.90", "review": [0.7, 0.9]}
    assert decided(scores, {HIT: {**options, "policy": "confident-fail"}}).status == "fail"
    assert decided(scores, {HIT: {**options, "policy": "point"}}).status == "review"


@pytest.mark.parametrize("policy", ["confident-pass", "confident-fail"])
def test_without_an_interval_nothing_is_sure(policy: Policy) -> None:
    """What a run counts of itself has none."""
    verdict = decided(scored(200, 200), {"run.duplicate": {"threshold": 0.0, "policy": policy}})
    assert (verdict.status, verdict.gates[0].reason) == ("not-evaluable", "no interval to judge by")


@cases("policy", ["confident", "confident_pass", "intervals", "Point", "", 1, ["point"]])
def test_any_other_policy_is_refused(policy: object) -> None:
    with pytest.raises(RagaugeError) as caught:
        parse_table({HIT: {"threshold": 0.9, "policy": policy}}, ALL, (5,), origin="test")
    assert caught.value.code == "bad-config"
    assert "confident-fail" in caught.value.problems[0].hint


# --- thresholds that no value is beyond ---


@cases(
    ("item", "hint"),
    [
        ("retrieval.recall@5>=1.01", "is in 0 to 1"),
        ("retrieval.recall@5>=80", "write 0.8 for 80 %"),
        ("retrieval.recall@5>=-0.1", "is in 0 to 1"),
        ("refusal.under<=5", "write 0.05 for 5 %"),
        ("semantic.delta_s_cited<=2.5", "is in 0 to 2"),
        ("stability.rank_tau>=-1.5", "is in -1 to 1"),
    ],
)
def test_a_threshold_outside_of_the_range_is_refused(item: str, hint: str) -> None:
    with pytest.raises(RagaugeError) as caught:
        parse_items(item, ALL, (5,))
    assert caught.value.code == "bad-gate"
    assert hint in caught.value.problems[0].hint


@cases(
    "options",
    [
        {"max_drop": 2},
        {"max_drop": -1.5},
        {"threshold": 0.8, "review": [0.7, 80]},
        {"threshold": 0.8, "review": [-1, 0.9]},
        {"max_drop": 0.1, "review": [0.1, 10]},
    ],
)
def test_a_drop_or_a_band_outside_of_the_range_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(RagaugeError, match="outside the range"):
        parse_table({HIT: options}, ALL, (5,), origin="test")


def test_the_ends_of_a_range_are_thresholds() -> None:
    table = {HIT: 1, EMPTY: 0, "retrieval.recall@5": {"max_drop": 1}}
    assert len(parse_table(table, ALL, (5,), origin="test")) == 3


# --- on the command line ---


def test_require_gates_refuses_to_decide_nothing(folder: Folder) -> None:
    gold, traces = rows(10, 10)
    plain = ("--profile", "all", "--metrics", HIT)
    assert folder.score(traces, *plain, "--full", "-o", "a.json", gold=gold).exit_code == 0
    required = folder.score(traces, *plain, "--require-gates", gold=gold)
    assert required.exit_code == 2
    assert "--require-gates: the profile all has no gates" in required.err
    gated = folder.score(traces, *plain, "--require-gates", "--gates", f"{HIT}>=0.9", gold=gold)
    assert gated.exit_code == 0
    compared = folder.run("compare", "a.json", "a.json", "--require-gates")
    assert (compared.exit_code, "no gate is on a drop" in compared.err) == (2, True)
    folder.write("level.toml", f'"{HIT}" = 0.9\n')
    levels = folder.run("compare", "a.json", "a.json", "--require-gates", "--gates", "level.toml")
    assert levels.exit_code == 2
    folder.write("drop.toml", f'"{HIT}" = {{ max_drop = 0.5 }}\n')
    drops = folder.run("compare", "a.json", "a.json", "--require-gates", "--gates", "drop.toml")
    assert drops.exit_code == 0


def test_review_on_the_command_line(folder: Folder) -> None:
    """The last line says REVIEW in every command that judges; --fail-on-review exits 1."""
    gold, traces = rows(176, 200)
    folder.write("gates.toml", f'"{HIT}" = {{ threshold = 0.9, policy = "confident-fail" }}\n')
    options = ("--profile", "all", "--metrics", HIT, "--gates", "gates.toml")
    outcome = folder.score(traces, *options, "--full", "-o", "a.json", gold=gold)
    assert outcome.exit_code == 0
    assert outcome.out.splitlines()[-1] == "REVIEW: retrieval.hit@5"
    strict = folder.score(traces, *options, "--fail-on-review", gold=gold)
    assert strict.exit_code == 1
    assert strict.out.splitlines()[-1] == "REVIEW (fails by --fail-on-review): retrieval.hit@5"
    judged = ("gate", "a.json", "--gates", "gates.toml")
    assert folder.run(*judged).exit_code == 0
    assert folder.run(*judged, "--fail-on-review").exit_code == 1
    document = json.loads(folder.run(*judged, "--format", "json").out)
    (gate,) = document["verdict"]["gates"]
    assert (gate["status"], gate["policy"]) == ("review", "confident-fail")
