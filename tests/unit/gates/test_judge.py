"""Gates: reading demands, putting layers together, and judging scores by them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import ragauge
from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.gates import judge as gates
from ragauge.gates import parse
from ragauge.gates.judge import Tolerance, judge
from ragauge.gates.parse import merge, parse_items, parse_table
from ragauge.metrics.metric import Tally
from ragauge.model.scores import MetricResult, QuestionList, Scores
from ragauge.model.verdict import Gate, Verdict, Waiver
from tests.support.cases import cases

SHIP = registry.profile("ship")
SMOKE = registry.profile("smoke")
ALL = registry.profile("all")
DAY = date(2026, 11, 15)
NOTHING = Tally(
    gold=0, gold_duplicates=0, gold_skipped=0, traces=0, trace_skipped=0, unknown=0, duplicates=0,
    missing=0, missing_slots=0, errored=0, repeated_ids=0, scored=0, answered=0, refused=0,
    answerable=0, unanswerable=0,
)  # fmt: skip
RAN = msgspec.structs.replace(
    NOTHING, gold=100, traces=100, scored=100, answered=90, refused=10, answerable=80,
    unanswerable=20,
)  # fmt: skip


def measured(
    value: float | None,
    *,
    n: int = 100,
    interval: tuple[float, float] | None = None,
    default: float | None = None,
    lower: bool = False,
) -> MetricResult:
    return MetricResult(
        value=value, n=n, records=n, excluded={}, interval=interval, version=1,
        better="lower" if lower else "higher", reason=None if n else "refused", default=default,
    )  # fmt: skip


def scores_of(metrics: Mapping[str, MetricResult], *, tally: Tally = RAN) -> Scores:
    return Scores(
        profile="ship", dialect="ship", k=(5,), gold_name="gold.jsonl", trace_name="trace.jsonl",
        tally=tally, metrics=dict(metrics), refusal_rules={}, questions=QuestionList.of(()),
    )  # fmt: skip


GOOD = {
    "answer.grounded_precision": measured(0.9),
    "citation.hit_rate": measured(0.9),
    "refusal.under": measured(0.01, lower=True),
    "refusal.over": measured(0.02, lower=True),
}
PRECISION = "answer.grounded_precision"


def decided(
    metrics: Mapping[str, MetricResult],
    table: Mapping[str, Any],
    *,
    tally: Tally = RAN,
    waivers: list[Waiver] | None = None,
    today: date | None = DAY,
    tolerance: Tolerance | None = None,
    source_rules: bool = True,
) -> Verdict:
    return judge(
        scores_of(metrics, tally=tally),
        parse_table(table, SHIP, (5,), origin="test"),
        source_rules=source_rules,
        tolerance=tolerance or Tolerance(),
        waivers=waivers or (),
        today=today,
    )


# --- reading ---


def test_gates_of_a_command_line_are_read_in_order() -> None:
    """Short names, ids, the three signs, and blanks around all of them."""
    found = parse_items(
        "precision=0.80, refusal.over<=.1 ,citation.hit_rate >= 1e-1,recall@k=0.5", SHIP, (5,)
    )
    assert [(gate.name, gate.metric, gate.sign, gate.threshold, gate.given) for gate in found] == [
        ("precision", PRECISION, ">=", 0.8, "0.80"),
        ("refusal.over", "refusal.over", "<=", 0.1, ".1"),
        ("citation.hit_rate", "citation.hit_rate", ">=", 0.1, "1e-1"),
        ("recall@k", "retrieval.recall_all@5", ">=", 0.5, "0.5"),
    ]
    assert {gate.origin for gate in found} == {"--gates"}


def test_a_short_name_means_what_its_profile_says() -> None:
    """`chr` and `precision` are different metrics in different profiles."""
    found = [parse_items("chr=0.5,precision=0.5", each, (5,)) for each in (ALL, SHIP, SMOKE)]
    assert [[gate.metric for gate in gates] for gates in found] == [
        ["citation.hit_rate", "answer.precision"],
        ["citation.hit_rate", "answer.grounded_precision"],
        ["citation.hit_rate_answerable", "answer.precision"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "precision=0.9,precision=0.1",
        "precision=0.1,answer.grounded_precision>=0.9",  # the same metric by its id
        "recall@k=0.5,retrieval.recall_all@5>=0.2",
    ],
)
def test_two_items_on_one_metric_are_refused(text: str) -> None:
    """The last one would be in force, and nobody would see that the first is not."""
    with pytest.raises(RagaugeError, match="a second one on") as caught:
        parse_items(text, SHIP, (5,))
    assert caught.value.code == "bad-gate"


def test_a_cut_off_may_be_written_or_is_the_only_one_of_the_run() -> None:
    """With several cut-offs a gate must say which."""
    assert parse_items("retrieval.recall_all@3=0.5", ALL, (1, 3))[0].metric.endswith("@3")
    assert parse_items("retrieval.recall_all=0.5", ALL, (7,))[0].metric.endswith("@7")
    with pytest.raises(RagaugeError, match="recall_all") as caught:
        parse_items("retrieval.recall_all=0.5", ALL, (1, 3))
    assert caught.value.code == "bad-gate"
    assert "retrieval.recall_all@1" in caught.value.problems[0].hint


@cases(
    "text",
    [
        "",
        ",",
        "precision",
        "precision=",
        "=0.8",
        "precision=0.8,",
        "precision 0.8",
        "precision>0.8",
        "precision==0.8",
        "precision=high",
        "precision=80%",
        "precision=0,8",
        "precision=nan",
        "precision=inf",
        "precision>=-inf",
        "precision<=0.8",
        "under>=0.05",
    ],
)
def test_a_gate_that_cannot_be_read_is_refused(text: str) -> None:
    """Anything else could be a gate that never fails."""
    with pytest.raises(RagaugeError) as caught:
        parse_items(text, SHIP, (5,))
    assert caught.value.code == "bad-gate"
    assert caught.value.exit_code == 2
    assert caught.value.problems[0].hint


def test_the_wrong_direction_is_told_with_the_right_one() -> None:
    """A floor under something that should be low would pass exactly when it must not."""
    with pytest.raises(RagaugeError) as caught:
        parse_items("refusal.under>=0.05", SHIP, (5,))
    assert caught.value.problems[0].hint == "refusal.under is better when lower: use <="


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("precison", "precision"),
        ("refusal.ovr", "refusal.over"),
        ("answer.grounded_precission", "answer.grounded_precision"),
    ],
)
def test_an_unknown_metric_is_told_with_a_near_one(name: str, near: str) -> None:
    """Short names of the profile are among those that may be meant."""
    with pytest.raises(RagaugeError) as caught:
        parse_items(f"{name}=0.5", SHIP, (5,))
    assert caught.value.code == "unknown-metric"
    assert caught.value.problems[0].hint == f"did you mean `{near}`?"


@pytest.mark.parametrize("name", ["answer.precision@5", "retrieval.recall_all@0", "a.b@c"])
def test_a_cut_off_that_cannot_be_is_refused(name: str) -> None:
    """Zero, letters, or a metric that has no cut-off."""
    with pytest.raises(RagaugeError) as caught:
        parse_items(f"{name}=0.5", SHIP, (5,))
    assert caught.value.code == "unknown-metric"


def test_gates_of_a_table_take_numbers_demands_and_options() -> None:
    """All forms that `ragauge.toml` may use."""
    number, whole, demand, options = parse_table(
        {
            "precision": 0.8,
            "chr": 1,
            "under": "<= 0.05",
            "over": {"threshold": 0.1, "min_n": 30, "review": [0.1, 0.2], "policy": "interval"},
        },
        SHIP,
        (5,),
        origin="ragauge.toml",
    )
    assert (number.threshold, number.min_n, number.review, number.policy) == (0.8, 0, None, "point")
    assert whole.threshold == 1.0
    assert (demand.sign, demand.threshold, demand.given) == ("<=", 0.05, "0.05")
    assert (options.threshold, options.min_n) == (0.1, 30)
    assert (options.review, options.policy) == ((0.1, 0.2), "confident-pass")
    assert options.origin == "ragauge.toml"


@cases(
    ("value", "code"),
    [
        (True, "bad-gate"),
        (None, "bad-gate"),
        ([0.8], "bad-gate"),
        ("", "bad-gate"),
        ("high", "bad-gate"),
        (float("nan"), "bad-gate"),
        (float("inf"), "bad-gate"),
        ("> 0.8", "bad-gate"),
        ("<= 0.8", "bad-gate"),
        ({"threshold": 0.8, "review": [0.9, 0.7]}, "bad-gate"),
        ({"threshold": "<= 0.8"}, "bad-gate"),
        ({}, "bad-config"),
        ({"min_n": 3}, "bad-config"),
        ({"threshold": 0.8, "minn": 3}, "bad-config"),
        ({"threshold": 0.8, "min_n": "3"}, "bad-config"),
        ({"threshold": 0.8, "min_n": 2.5}, "bad-config"),
        ({"threshold": 0.8, "review": [0.7]}, "bad-config"),
        ({"threshold": 0.8, "review": ["a", "b"]}, "bad-config"),
        ({"threshold": 0.8, "policy": "median"}, "bad-config"),
    ],
)
def test_a_table_entry_that_cannot_be_read_is_refused(value: object, code: str) -> None:
    """Unknown keys too: a misspelt option would otherwise change nothing."""
    with pytest.raises(RagaugeError) as caught:
        parse_table({"precision": value}, SHIP, (5,), origin="ragauge.toml")
    assert caught.value.code == code
    assert caught.value.exit_code == 2
    assert caught.value.problems[0].hint


def test_the_gates_of_a_profile_carry_its_titles() -> None:
    """`smoke` calls its gates G1 to G5, with the thresholds of seed 001."""
    found = parse.profile_gates(SMOKE, (5,))
    assert [(str(gate.title).split()[0], gate.sign, gate.threshold) for gate in found] == [
        ("G1", ">=", 0.8), ("G2", "<=", 0.05), ("G3", "<=", 0.25), ("G4", ">=", 0.75),
        ("G5", ">=", 0.98),
    ]  # fmt: skip


# --- layers ---


def test_a_later_layer_replaces_by_metric_and_comes_first() -> None:
    """What is not repeated stays in force, behind what was said later."""
    profile = parse.profile_gates(SHIP, (5,))
    config = parse_table({PRECISION: 0.5, "recall@k": 0.7}, SHIP, (5,), origin="ragauge.toml")
    line = parse_items("over=0.5,precision=0.6", SHIP, (5,))
    found = merge(profile, config, line)
    assert [(gate.name, gate.threshold, gate.origin) for gate in found] == [
        ("over", 0.5, "--gates"),
        ("precision", 0.6, "--gates"),
        ("recall@k", 0.7, "ragauge.toml"),
        ("chr", 0.75, "profile ship"),
        ("under", 0.05, "profile ship"),
    ]


@pytest.mark.parametrize(
    "table",
    [
        {"stability.lambda_→": 0.5},
        {"often the same": {"metric": "stability.lambda_→", "threshold": 0.5}},
    ],
)
def test_a_gate_on_an_id_that_was_joined_replaces_no_gate_of_the_profile(
    table: dict[str, Any],
) -> None:
    """λ → had an id beside `stability.convergent`: both gates were in force, and both still are."""
    canary = registry.profile("canary")
    profile = parse.profile_gates(canary, (5,))
    found = merge(profile, parse_table(table, canary, (5,), origin="ragauge.toml"))
    convergent = [gate.threshold for gate in found if gate.metric == "stability.convergent"]
    assert convergent == [0.5, 0.95]
    again = parse_table({"stability.convergent": 0.6}, canary, (5,), origin="ragauge.toml")
    convergent = [gate.threshold for gate in merge(profile, again) if gate in again]
    assert convergent == [0.6]


def test_merging_nothing_changes_nothing() -> None:
    """Empty layers are as if they were not there."""
    profile = parse.profile_gates(SHIP, (5,))
    assert merge([], profile, []) == profile
    assert merge() == []


# --- judging ---


@cases(
    ("metric", "lower", "value", "status", "margin"),
    [
        (PRECISION, False, 0.85, "pass", 0.05),
        (PRECISION, False, 0.80, "pass", 0.0),
        (PRECISION, False, 0.79, "fail", -0.01),
        ("refusal.under", True, 0.75, "pass", 0.05),
        ("refusal.under", True, 0.80, "pass", 0.0),
        ("refusal.under", True, 0.81, "fail", -0.01),
    ],
)
def test_a_gate_compares_in_the_direction_of_its_metric(
    metric: str, lower: bool, value: float, status: str, margin: float
) -> None:
    """The threshold itself passes; the margin is positive on the good side."""
    verdict = decided({metric: measured(value, n=40, lower=lower)}, {metric: 0.8})
    (result,) = verdict.gates
    assert (result.status, result.value, result.n) == (status, value, 40)
    assert result.margin == pytest.approx(margin, abs=1e-12)
    assert verdict.exit_code == (0 if status == "pass" else 1)


def test_a_value_is_compared_before_it_is_rounded() -> None:
    """2/3 is below 0.6667, although it is printed as that."""
    assert decided({PRECISION: measured(2 / 3)}, {PRECISION: "0.6667"}).status == "fail"
    assert decided({PRECISION: measured(2 / 3)}, {PRECISION: "0.6666"}).status == "pass"


def test_min_n_makes_a_gate_not_evaluable() -> None:
    """Too few questions decide nothing, in either direction."""
    table = {PRECISION: {"threshold": 0.5, "min_n": 30}}
    few = decided({PRECISION: measured(0.9, n=29)}, table)
    assert (few.status, few.exit_code) == ("not-evaluable", 4)
    assert few.gates[0].reason == "n = 29 is below min_n = 30"
    assert few.gates[0].n == 29
    enough = decided({PRECISION: measured(0.9, n=30)}, table)
    assert (enough.status, enough.exit_code) == ("pass", 0)


@cases(
    ("value", "status"),
    [(0.69, "fail"), (0.70, "review"), (0.80, "review"), (0.85, "review"), (0.86, "pass")],
)
def test_a_value_in_the_review_band_is_for_a_person(value: float, status: str) -> None:
    """The band's borders belong to it, and it goes over pass and fail; it does not block."""
    table = {PRECISION: {"threshold": 0.8, "review": [0.70, 0.85]}}
    verdict = decided({PRECISION: measured(value)}, table)
    assert verdict.gates[0].status == status
    assert verdict.exit_code == (1 if status == "fail" else 0)


@cases(
    ("metric", "lower", "interval", "status", "margin"),
    [
        (PRECISION, False, (0.80, 0.95), "pass", 0.0),
        (PRECISION, False, (0.79, 0.95), "fail", -0.01),
        ("refusal.under", True, (0.10, 0.80), "pass", 0.0),
        ("refusal.under", True, (0.10, 0.81), "fail", -0.01),
    ],
)
def test_the_policy_interval_judges_the_bound_on_the_wrong_side(
    metric: str, lower: bool, interval: tuple[float, float], status: str, margin: float
) -> None:
    """The point is good in all cases; the bound decides, and the margin is the bound's."""
    value = 0.3 if lower else 0.9
    table = {metric: {"threshold": 0.8, "policy": "interval"}}
    verdict = decided({metric: measured(value, interval=interval, lower=lower)}, table)
    assert verdict.gates[0].status == status
    assert verdict.gates[0].value == value
    assert verdict.gates[0].margin == pytest.approx(margin, abs=1e-12)


def test_the_policy_interval_needs_an_interval() -> None:
    """Without one the gate does not fall back to the point."""
    table = {PRECISION: {"threshold": 0.5, "policy": "interval"}}
    verdict = decided({PRECISION: measured(0.9)}, table)
    assert (verdict.status, verdict.exit_code) == ("not-evaluable", 4)


def test_a_gate_says_the_smallest_detectable_change_of_its_metric() -> None:
    result = replace(measured(0.5, interval=(0.4, 0.6)), detectable=0.1429)
    verdict = decided({PRECISION: result}, {PRECISION: 0.4})
    assert (verdict.gates[0].detectable, verdict.gates[0].interval) == (0.1429, (0.4, 0.6))
    assert decided({PRECISION: measured(0.5)}, {PRECISION: 0.4}).gates[0].detectable is None


def test_a_gate_on_nothing_does_not_pass() -> None:
    """0/0 without a default is not evaluable, with the reason."""
    verdict = decided({PRECISION: measured(None, n=0)}, {PRECISION: 0.0})
    (result,) = verdict.gates
    assert (result.status, result.value, result.margin, result.n) == (
        "not-evaluable",
        None,
        None,
        0,
    )
    assert result.reason == "0/0: refused"
    assert verdict.exit_code == 4


def test_a_gate_on_a_metric_that_was_not_measured_does_not_pass() -> None:
    """As when a saved file is judged by a gate on another metric."""
    verdict = decided(GOOD, {"answer.compliance": 0.5})
    assert verdict.exit_code == 4
    assert verdict.gates[0].reason == "answer.compliance is not in these scores"


def test_the_defaults_of_a_source_are_judged_and_named() -> None:
    """Under ship 0/0 counts as the source has it, and the gate's row says so."""
    verdict = decided({PRECISION: measured(None, n=0, default=1.0)}, {PRECISION: 0.8})
    (result,) = verdict.gates
    assert (result.status, result.value) == ("pass", 1.0)
    assert result.reason == "0/0 (refused): the source counts it as 1"
    assert verdict.exit_code == 0


# --- waivers ---


def waiver(expires: str, gate: str = PRECISION) -> Waiver:
    return Waiver(gate=gate, reason="pages move", expires=date.fromisoformat(expires))


BAD = {**GOOD, PRECISION: measured(0.1)}


@cases("expires", ["2026-11-15", "2026-11-16", "2030-01-01"])
@cases("name", ["precision", PRECISION])
def test_a_waiver_holds_to_its_last_day(expires: str, name: str) -> None:
    """By the gate's name or its metric's; the failure stays visible."""
    verdict = decided(BAD, {"precision": 0.8}, waivers=[waiver(expires, name)])
    assert (verdict.status, verdict.exit_code) == ("pass", 0)
    assert verdict.gates[0].status == "fail"
    assert verdict.gates[0].waived == f"waived until {expires}: pages move"
    assert verdict.gates_pass


def test_an_expired_waiver_waives_nothing() -> None:
    """And the gate's row says when it expired."""
    verdict = decided(BAD, {"precision": 0.8}, waivers=[waiver("2026-11-14")])
    assert (verdict.status, verdict.exit_code) == ("fail", 1)
    assert verdict.gates[0].waived is None
    assert verdict.gates[0].reason == "the waiver expired on 2026-11-14"
    assert not verdict.gates_pass


def test_a_waiver_of_another_gate_waives_nothing() -> None:
    """Each gate is waived by its own name."""
    table = {"precision": 0.8, "chr": 0.8}
    verdict = decided(BAD, table, waivers=[waiver("2030-01-01", "chr")])
    assert verdict.exit_code == 1


def test_a_waiver_of_no_gate_is_refused() -> None:
    """It is misspelt, or its gate is gone; either way somebody is mistaken."""
    with pytest.raises(RagaugeError) as caught:
        decided(GOOD, {"precision": 0.8}, waivers=[waiver("2030-01-01", "precison")])
    assert (caught.value.code, caught.value.exit_code) == ("bad-config", 2)
    assert "precision" in caught.value.problems[0].hint


def test_an_expired_waiver_does_not_hide_a_valid_one() -> None:
    """A renewed waiver is often written below the old one."""
    both = [waiver("2020-01-01"), waiver("2030-01-01")]
    for waivers in (both, both[::-1]):
        assert decided(BAD, {"precision": 0.8}, waivers=waivers).exit_code == 0


def test_a_waiver_does_not_touch_a_gate_that_passes() -> None:
    """Nothing is said of it then."""
    verdict = decided(GOOD, {"precision": 0.8}, waivers=[waiver("2030-01-01")])
    assert verdict.gates[0].waived is None


def test_a_waived_gate_does_not_waive_the_others() -> None:
    """The verdict is the worst of what is left."""
    bad = {**BAD, "refusal.over": measured(0.9, lower=True)}
    verdict = decided(bad, {"precision": 0.8, "over": 0.1}, waivers=[waiver("2030-01-01")])
    assert (verdict.status, verdict.exit_code) == ("fail", 1)


# --- the run's verdict ---


def test_the_verdict_is_the_worst_of_all_gates() -> None:
    """pass, review, fail, not-evaluable, in that order of badness."""
    table: dict[str, Any] = {"chr": 0.5}
    assert decided(GOOD, table).status == "pass"
    table["over"] = {"threshold": 0.5, "review": [0.0, 0.1]}
    assert decided(GOOD, table).status == "review"
    table["precision"] = 0.99
    assert decided(GOOD, table).status == "fail"
    table["under"] = {"threshold": 0.5, "min_n": 1000}
    verdict = decided(GOOD, table)
    assert verdict.status == "not-evaluable"
    assert [result.status for result in verdict.gates] == [
        "pass", "review", "fail", "not-evaluable",
    ]  # fmt: skip
    assert verdict.exit_code == 4


def test_without_gates_nothing_is_decided() -> None:
    """Exit code 0, also with missing traces, which only gates care about."""
    tally = msgspec.structs.replace(RAN, missing=3)
    verdict = decided(GOOD, {}, tally=tally)
    assert (verdict.status, verdict.exit_code, verdict.blocks) == ("pass", 0, ())


BLOCKS = [
    ("missing", {"missing": 3}, "missing-traces", "3 of 100 gold items have no trace"),
    ("missing", {"missing": 1}, "missing-traces", "1 of 100 gold items has no trace"),
    ("skipped", {"gold_skipped": 2, "trace_skipped": 3}, "skipped-lines", "5 bad lines were"),
    ("skipped", {"trace_skipped": 1}, "skipped-lines", "1 bad line was skipped"),
    ("empty", {"answered": 0, "answerable": 0}, "nothing-answered", "nothing was answered"),
]


@cases(("allowed", "counts", "code", "message"), BLOCKS)
def test_a_run_that_cannot_be_judged_fails_closed(
    allowed: str, counts: dict[str, int], code: str, message: str
) -> None:
    """Exit code 4 although every gate passes, unless it is allowed by name."""
    tally = msgspec.structs.replace(RAN, **counts)
    verdict = decided(GOOD, {"precision": 0.8}, tally=tally)
    assert (verdict.status, verdict.exit_code) == ("not-evaluable", 4)
    assert [block.code for block in verdict.blocks] == [code]
    assert verdict.blocks[0].message.startswith(message)
    assert verdict.gates_pass
    lenient = decided(GOOD, {"precision": 0.8}, tally=tally, tolerance=Tolerance(**{allowed: True}))
    assert (lenient.status, lenient.exit_code, lenient.blocks) == ("pass", 0, ())
    others = {"missing": True, "errored": True, "skipped": True, "empty": True, allowed: False}
    strict = decided(GOOD, {"precision": 0.8}, tally=tally, tolerance=Tolerance(**others))
    assert strict.exit_code == 4


def test_scores_that_do_not_say_what_errors_could_do_are_not_judged() -> None:
    """As in a file of an older version."""
    tally = msgspec.structs.replace(RAN, errored=2)
    table = {"precision": 0.8}
    verdict = decided(GOOD, table, tally=tally, source_rules=False)
    assert [block.code for block in verdict.blocks] == ["errored-traces"]
    assert verdict.exit_code == 4
    lenient = decided(
        GOOD, table, tally=tally, source_rules=False, tolerance=Tolerance(errored=True)
    )
    assert lenient.exit_code == 0


@pytest.mark.parametrize(("errored", "traces", "share"), [(29, 100, 0.29), (123, 300, 0.41)])
def test_errors_up_to_the_very_share_are_let_pass(errored: int, traces: int, share: float) -> None:
    """0.29 · 100 is 28.999999999999996 in doubles."""
    for more, passes in ((0, True), (1, False)):
        tally = msgspec.structs.replace(RAN, errored=errored + more, traces=traces)
        scores = scores_of(GOOD, tally=tally)
        assert Tolerance(errored=share).lets_errors_pass(scores) is passes


def test_what_cannot_be_judged_goes_over_what_fails() -> None:
    """4 before 1: a failed gate of a partial run is not yet a finding."""
    tally = msgspec.structs.replace(RAN, missing=1)
    assert decided(BAD, {"precision": 0.8}, tally=tally).exit_code == 4


@pytest.mark.parametrize(
    "tally",
    [
        NOTHING,
        msgspec.structs.replace(NOTHING, gold=3, missing=3),
        msgspec.structs.replace(NOTHING, traces=3, unknown=3),
        msgspec.structs.replace(NOTHING, gold=3, traces=3, missing=3, unknown=3, trace_skipped=1),
    ],
    ids=["no files", "no traces", "no gold", "no id in both"],
)
@pytest.mark.parametrize("table", [{}, {"precision": 0.0}], ids=["no gates", "gates"])
def test_nothing_measured_goes_over_everything(tally: Tally, table: dict[str, float]) -> None:
    """5 before 4, with and without gates, and no --allow option helps: never 0 on an empty run."""
    tolerance = Tolerance(missing=True, errored=True, skipped=True, empty=True)
    metrics = {PRECISION: measured(None, n=0, default=1.0)}
    verdict = decided(metrics, table, tally=tally, tolerance=tolerance)
    assert verdict.exit_code == 5
    assert [block.code for block in verdict.blocks] == ["nothing-measured"]


# --- the API ---


def test_gates_of_the_api_go_on_top_of_the_profile() -> None:
    """Text and tables are layers; Gate values are taken alone."""
    scores = scores_of(GOOD)
    assert [result.gate.name for result in ragauge.gate(scores).gates] == list(SHIP.gates)
    text = ragauge.gate(scores, "precision=0.95")
    assert (text.exit_code, text.gates[0].gate.threshold, len(text.gates)) == (1, 0.95, 4)
    table = ragauge.gate(scores, {"precision": {"threshold": 0.95, "review": [0.85, 0.95]}})
    assert (table.status, table.exit_code, len(table.gates)) == ("review", 0, 4)
    alone = ragauge.gate(scores, parse_items("chr=0.95", SHIP, (5,)))
    assert (alone.exit_code, len(alone.gates)) == (1, 1)
    assert ragauge.gate(scores, []).gates == ()


def test_the_api_passes_its_tolerances_and_waivers_on() -> None:
    """Each argument does what its command-line option does."""
    partial = scores_of(BAD, tally=msgspec.structs.replace(RAN, missing=1, trace_skipped=1))
    assert ragauge.gate(partial).exit_code == 4
    assert ragauge.gate(partial, allow_missing=True).exit_code == 4
    assert ragauge.gate(partial, allow_missing=True, allow_skipped=True).exit_code == 1
    waived = ragauge.gate(
        partial, allow_missing=True, allow_skipped=True, waivers=[waiver("2030-01-01")], today=DAY
    )
    assert waived.exit_code == 0


def test_judging_is_pure() -> None:
    """The same scores and gates give the same verdict, and neither is changed."""
    scores = scores_of(GOOD)
    demanded: list[Gate] = parse.profile_gates(SHIP, (5,))
    before = (msgspec.json.encode(scores.metrics), msgspec.json.encode(demanded))
    first = judge(scores, demanded, source_rules=True)
    assert first == judge(scores, demanded, source_rules=True)
    assert (msgspec.json.encode(scores.metrics), msgspec.json.encode(demanded)) == before
    assert gates.Tolerance() == Tolerance()
