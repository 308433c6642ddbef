"""Demands on a drop: how much worse a run may be than a baseline, question by question."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ragauge
from ragauge.gates.drops import drop_of
from ragauge.model import scores_document
from ragauge.model.options import Options
from ragauge.model.scores import Scores
from ragauge.scoring import score
from tests.support.cases import cases
from tests.support.command import TRACES, Folder, Outcome, Row

RECALL = "retrieval.recall@5"
ITEMS = 10_000
FEWER = "--allow-fewer-questions"


def gold_of(ids: Sequence[str]) -> list[Row]:
    return [{"qid": each, "question": each, "relevant": ["a", "b", "c", "d", "e"]} for each in ids]


def hits_of(found: dict[str, int], **more: Any) -> list[Row]:
    """A trace a question, which finds so many of its five pieces of evidence."""
    return [{"qid": qid, "retrieved_ids": list("abcde"[:n]), **more} for qid, n in found.items()]


def made(folder: Folder, name: str, found: dict[str, int], *options: str) -> None:
    """Score a run under all, and save it."""
    outcome = folder.score(
        hits_of(found), "--profile", "all", "--metrics", f"{RECALL},retrieval.empty", "--full",
        "-o", name, *options, gold=gold_of(list(found)),
    )  # fmt: skip
    assert outcome.exit_code == 0


def fell(folder: Folder, most: float, *flags: str, more: str = "", metric: str = RECALL) -> Outcome:
    """Judge now.json against before.json by one gate on a drop."""
    least = "" if "min_n" in more else ", min_n = 1"  # most runs here have a handful of questions
    folder.write("gates.toml", f'"{metric}" = {{ max_drop = {most}{more}{least} }}\n')
    return folder.run(
        "gate", "now.json", "--gates", "gates.toml", "--baseline", "before.json", "--format",
        "json", *flags,
    )  # fmt: skip


def gate_of(outcome: Outcome) -> dict[str, Any]:
    (gate,) = json.loads(outcome.out)["verdict"]["gates"]
    assert isinstance(gate, dict)
    return gate


# --- how large a drop is ---


def test_a_drop_of_just_the_demand_passes(folder: Folder) -> None:
    """0.84 - 0.82 is a little more than 0.02 in floating point, and is 0.02 all the same."""
    assert 0.84 - 0.82 > 0.02
    # Ten questions: 42 of 50 pieces before, 41 of 50 now.
    before = {f"q{n}": 4 for n in range(10)} | {"q0": 5, "q1": 5}
    made(folder, "before.json", before)
    made(folder, "now.json", before | {"q0": 4})
    outcome = fell(folder, 0.02)
    gate = gate_of(outcome)
    assert (outcome.exit_code, gate["status"], gate["value"], gate["n"]) == (0, "pass", 0.02, 10)
    assert gate["reason"].startswith("0.8400 in the baseline, 0.8200 now, on 10 common questions")


@pytest.mark.slow
def test_a_little_more_than_the_demand_fails() -> None:
    """A drop of 0.0201: 201 of 10,000 questions are lost; with 200 it is 0.02."""
    ids = [f"q{n}" for n in range(ITEMS)]
    gold = [{"qid": each, "question": each, "relevant": ["a"]} for each in ids]
    statuses = []
    runs = []
    for lost in (0, 200, 201):
        rows = [
            {"qid": each, "retrieved_ids": [] if n < lost else ["a"]} for n, each in enumerate(ids)
        ]
        runs.append(_scored(gold, rows))
    for run in runs[1:]:
        verdict = ragauge.gate(run, {RECALL: {"max_drop": 0.02, "min_n": 1}}, baseline=runs[0])
        statuses.append((verdict.gates[0].status, round(verdict.gates[0].value or 0, 6)))
    assert statuses == [("pass", 0.02), ("fail", 0.0201)]


def _scored(gold: list[Row], rows: list[Row], **options: Any) -> Scores:
    from ragauge.formats.traces import RowReader
    from ragauge.model.dialect import Dialect
    from ragauge.registry import dialect

    native: Dialect = dialect("native")
    reader = RowReader(native, own=False)
    return score.score(
        [reader.gold(row, line) for line, row in enumerate(gold, 1)],
        [reader.trace(row, line) for line, row in enumerate(rows, 1)],
        profile="all", metrics=options.pop("metrics", [RECALL]), intervals=False, **options,
    )  # fmt: skip


def ends(interval: tuple[float | None, float | None] | None) -> tuple[float, float]:
    """Both ends of an interval that has them."""
    assert interval is not None
    low, high = interval
    assert low is not None
    assert high is not None
    return low, high


def test_a_baseline_that_was_chosen_from_some_has_a_wider_interval() -> None:
    """The best of ten runs was lucky: the interval holds for all ten at once."""
    ids = [f"q{number}" for number in range(40)]
    gold = [{"qid": qid, "question": qid, "relevant": ["a"]} for qid in ids]
    before, now = (
        _scored(gold, [{"qid": qid, "retrieved_ids": ["a"][: qid not in gone]} for qid in ids])
        for gone in ((), ids[:6])
    )
    one, ten = (drop_of(RECALL, "higher", now, before, chosen_from=many) for many in (1, 10))
    assert one.value == ten.value == pytest.approx(0.15)
    low, high = ends(one.interval)
    lower, higher = ends(ten.interval)
    assert lower < low < high < higher


def test_a_gain_is_a_drop_below_zero(folder: Folder) -> None:
    """It passes a demand of no drop at all."""
    made(folder, "before.json", {"q1": 1, "q2": 2})
    made(folder, "now.json", {"q1": 2, "q2": 3})
    gate = gate_of(fell(folder, 0))
    assert (gate["status"], gate["value"]) == ("pass", -0.2)


@pytest.mark.parametrize(("most", "status"), [(0.5, "pass"), (0.49, "fail")])
def test_what_is_better_when_lower_drops_by_rising(
    folder: Folder, most: float, status: str
) -> None:
    """No empty result of two before, one of two now: worse by 0.5."""
    made(folder, "before.json", {"q1": 1, "q2": 1})
    made(folder, "now.json", {"q1": 1, "q2": 0})
    gate = gate_of(fell(folder, most, metric="retrieval.empty"))
    assert (gate["status"], gate["value"]) == (status, 0.5)
    assert gate["demand"] == f"<= {most}"


def test_a_fall_of_what_is_better_when_lower_is_a_gain(folder: Folder) -> None:
    """One empty result of two before, none now."""
    made(folder, "before.json", {"q1": 0, "q2": 1})
    made(folder, "now.json", {"q1": 1, "q2": 1})
    assert gate_of(fell(folder, 0, metric="retrieval.empty"))["value"] == -0.5


def distant(values: Sequence[float]) -> tuple[list[Row], list[Row]]:
    gold = [{"qid": f"q{n}", "question": f"{n}?", "relevant": ["a"]} for n in range(len(values))]
    rows = [
        {"qid": f"q{n}", "topk": ["a"], "ΔS": [value], "answer_citations": ["a"]}
        for n, value in enumerate(values)
    ]
    return gold, rows


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("semantic.delta_s_cited", 0.1),  # the medians: 0.2 before, 0.3 now
        # p90 of 0.1, 0.2, 0.3 at 0.9 · 2 = 1.8: 0.2 + 0.8 · 0.1; of 0.1, 0.3, 0.4: 0.3 + 0.08.
        ("semantic.delta_s_cited_p90", 0.1),
    ],
)
def test_a_quantile_is_compared_as_a_quantile(metric: str, value: float) -> None:
    """Not as a mean (that rose by 0.2 / 3), and without an interval."""
    before = _scored(*distant([0.1, 0.2, 0.3]), metrics=[metric])
    now = _scored(*distant([0.1, 0.3, 0.4]), metrics=[metric])
    found = drop_of(metric, "lower", now, before)
    assert found.value == pytest.approx(value, abs=1e-12)
    assert (found.n, found.interval) == (3, None)


def test_a_quantile_has_no_interval_to_judge_by() -> None:
    """The policy interval does not fall back to the point: 4."""
    metric = "semantic.delta_s_cited"
    scores = _scored(*distant([0.1, 0.2]), metrics=[metric])
    table: dict[str, object] = {metric: {"max_drop": 0.5, "min_n": 1, "policy": "interval"}}
    assert ragauge.gate(scores, table, baseline=scores).exit_code == 4
    table = {metric: {"max_drop": 0.5, "min_n": 1}}
    assert ragauge.gate(scores, table, baseline=scores).exit_code == 0


# --- which questions are compared ---


def test_questions_of_one_run_only_are_left_out(folder: Folder) -> None:
    """On q2 and q3: 4/5 and 4/5 before, 4/5 and 3/5 now; q1 and q4 have no partner."""
    made(folder, "before.json", {"q1": 5, "q2": 4, "q3": 4})
    made(folder, "now.json", {"q2": 4, "q3": 3, "q4": 0})
    gate = gate_of(fell(folder, 0.1, FEWER))
    assert (gate["status"], gate["value"], gate["n"]) == ("pass", 0.1, 2)
    assert gate["reason"].startswith("0.8000 in the baseline, 0.7000 now, on 2 common questions")
    assert "; without a partner: 2 values" in gate["reason"]
    assert gate["reason"].endswith("; of the baseline, gone or changed: q1")


def test_a_drop_over_less_than_nine_tenths_of_the_baseline_is_none(folder: Folder) -> None:
    """18 of 20 questions are just 90 %; with 17 it is not evaluable, and names those that went."""
    before = {f"q{n:02}": 5 for n in range(20)}
    made(folder, "before.json", before)
    for left, code in ((18, 0), (17, 4)):
        made(folder, "now.json", dict(list(before.items())[:left]))
        outcome = fell(folder, 0.1)
        assert outcome.exit_code == code, left
    assert outcome.codes == {"fewer-questions"}
    assert gate_of(outcome)["reason"] == (
        "17 of 20 questions of the baseline can be compared, less than 90 %; gone or changed: q17, "
        "q18, q19; --allow-fewer-questions judges the rest"
    )
    assert fell(folder, 0.1, FEWER).exit_code == 0


def test_other_questions_under_the_same_ids_are_not_the_baselines(folder: Folder) -> None:
    """Their gold items say other things: none of them is compared."""
    found = {f"q{n}": 5 for n in range(10)}
    made(folder, "before.json", found)
    gold = [{**item, "question": f"{item['qid']} now?"} for item in gold_of(list(found))]
    kept = gold_of(["q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7"]) + gold[8:]
    options = ("--profile", "all", "--metrics", RECALL, "--full", "-o", "now.json")
    folder.score(hits_of(found), *options, gold=gold)
    assert fell(folder, 0.5).codes == {"incomparable"}
    folder.score(hits_of(found), *options, gold=kept)
    outcome = fell(folder, 0.5)
    assert (outcome.exit_code, outcome.codes) == (4, {"fewer-questions"})
    assert "8 of 10 questions" in gate_of(outcome)["reason"]


def test_a_run_that_is_whole_speaks_of_no_partner(folder: Folder) -> None:
    """Nothing is said where nothing was left out."""
    made(folder, "before.json", {"q1": 5})
    made(folder, "now.json", {"q1": 5})
    assert "partner" not in gate_of(fell(folder, 0.1))["reason"]


def test_questions_that_have_no_value_in_either_run_lack_no_partner() -> None:
    """q2 has no evidence: recall says nothing of it, before or now."""
    gold = [*gold_of(["q1"]), {"qid": "q2", "question": "?"}]
    scores = _scored(gold, hits_of({"q1": 5, "q2": 5}))
    assert "partner" not in drop_of(RECALL, "higher", scores, scores).reason


def test_a_baseline_of_another_gold_set_is_not_comparable(folder: Folder) -> None:
    """No question is in both: 4, and not a drop of 0."""
    made(folder, "before.json", {"x1": 5, "x2": 5})
    made(folder, "now.json", {"q1": 5, "q2": 5})
    outcome = fell(folder, 1)
    assert outcome.exit_code == 4
    assert outcome.codes == {"incomparable"}
    assert gate_of(outcome)["reason"] == f"no question has {RECALL} in both runs"


def test_too_few_common_questions_decide_nothing(folder: Folder) -> None:
    """min_n counts the questions that both have."""
    made(folder, "before.json", {"q1": 5, "q2": 5, "q3": 5})
    made(folder, "now.json", {"q1": 5, "q2": 5, "q4": 5})
    outcome = fell(folder, 0.5, FEWER, more=", min_n = 3")
    assert outcome.exit_code == 4
    assert gate_of(outcome)["reason"] == "n = 2 is below min_n = 3"
    assert fell(folder, 0.5, FEWER, more=", min_n = 2").exit_code == 0


def test_a_baseline_without_its_questions_is_not_comparable(folder: Folder) -> None:
    """It was saved without --full: 4, and the reason names the option."""
    folder.score(
        hits_of({"q1": 5}), "--profile", "all", "--metrics", RECALL, "-o", "before.json",
        gold=gold_of(["q1"]),
    )  # fmt: skip
    made(folder, "now.json", {"q1": 5})
    outcome = fell(folder, 1)
    assert (outcome.exit_code, outcome.codes) == (4, {"incomparable"})
    assert gate_of(outcome)["reason"] == (
        "no values of questions in the baseline: save them with --full"
    )


def test_a_metric_that_the_baseline_lacks_is_not_comparable(folder: Folder) -> None:
    """As when the baseline was scored for other metrics."""
    folder.score(
        hits_of({"q1": 5}), "--profile", "all", "--metrics", "retrieval.empty", "--full",
        "-o", "before.json", gold=gold_of(["q1"]),
    )  # fmt: skip
    made(folder, "now.json", {"q1": 5})
    outcome = fell(folder, 1)
    assert (outcome.exit_code, outcome.codes) == (4, {"incomparable"})
    assert f"{RECALL} is not in the baseline" in gate_of(outcome)["reason"]


def test_a_baseline_is_a_scores_file(folder: Folder) -> None:
    """Any other file is bad input, a missing one too."""
    made(folder, "now.json", {"q1": 5})
    folder.write("before.json", hits_of({"q1": 5}))
    assert (fell(folder, 1).exit_code, fell(folder, 1).codes) == (3, {"bad-scores"})
    (folder.path / "before.json").unlink()
    assert fell(folder, 1).codes == {"file-not-found"}


# --- what the baseline lacks ---


def lost(found: dict[str, int], **gone: str) -> list[Row]:
    """Traces of which some are missing, or errors."""
    rows = hits_of({qid: n for qid, n in found.items() if gone.get(qid) != "missing"})
    return [
        {"qid": row["qid"], "error": "down"} if gone.get(row["qid"]) == "error" else row
        for row in rows
    ]


FOUND = {"q1": 5, "q2": 5, "q3": 5, "q4": 5}


@pytest.mark.parametrize(
    ("gone", "code", "told"),
    [
        (
            {"q1": "error"}, "errored-traces",
            "1 trace of the baseline carries an error, on 1 of 4 compared questions: q1; "
            "--allow-errored judges without them",
        ),
        (
            {"q1": "missing", "q3": "missing"}, "missing-traces",
            "2 of 4 compared questions have no trace in the baseline: q1, q3; --allow-missing "
            "judges without them",
        ),
    ],
)  # fmt: skip
def test_a_baseline_that_lacks_results_hides_a_drop(
    gone: dict[str, str], code: str, told: str
) -> None:
    """q2 falls from 5/5 to 0; a zero of the baseline would make up for it.

    Allowed, the drop is over what the baseline has: 1/3 without q1, 1/2 without q1 and q3.
    """
    gold = gold_of(list(FOUND))
    before = _scored(gold, lost(FOUND, **gone))
    now = _scored(gold, hits_of(FOUND | {"q2": 0}))
    table: dict[str, object] = {RECALL: {"max_drop": 0.02, "min_n": 1}}
    verdict = ragauge.gate(now, table, baseline=before)
    (gate,) = verdict.gates
    assert (verdict.exit_code, gate.status, gate.value) == (4, "not-evaluable", None)
    assert gate.reason == told
    assert [(each.code, each.message) for each in verdict.blocks] == [(code, f"{RECALL}: {told}")]
    errors = code == "errored-traces"
    other = ragauge.gate(
        now, table, baseline=before, allow_missing=errors, allow_errored=not errors
    )
    assert other.exit_code == 4
    allowed = ragauge.gate(
        now, table, baseline=before, allow_missing=not errors, allow_errored=errors
    )
    (gate,) = allowed.gates
    kept = 4 - len(gone)
    assert (allowed.exit_code, gate.status, gate.n) == (1, "fail", kept)
    assert gate.value == pytest.approx(1 / kept)
    assert gate.reason is not None
    assert gate.reason.startswith(f"1.0000 in the baseline, {(kept - 1) / kept:.4f} now")
    noun = "question" if len(gone) == 1 else "questions"
    assert gate.reason.endswith(f"; left out, as the baseline lacks them: {len(gone)} {noun}")
    assert "partner" not in gate.reason


def test_both_kinds_of_gaps_are_told_and_must_be_allowed() -> None:
    gold = gold_of(list(FOUND))
    before = _scored(gold, lost(FOUND, q1="error", q2="missing"))
    now = _scored(gold, hits_of(FOUND))
    table: dict[str, object] = {RECALL: {"max_drop": 0.02, "min_n": 1}}
    strict = ragauge.gate(now, table, baseline=before)
    assert [each.code for each in strict.blocks] == ["missing-traces"]
    assert "no trace in the baseline: q2" in (strict.gates[0].reason or "")
    assert "carries an error, on 1 of 4 compared questions: q1" in (strict.gates[0].reason or "")
    half = ragauge.gate(now, table, baseline=before, allow_missing=True)
    assert [each.code for each in half.blocks] == ["errored-traces"]
    whole = ragauge.gate(now, table, baseline=before, allow_missing=True, allow_errored=True)
    assert (whole.exit_code, whole.gates[0].n) == (0, 2)


def test_a_baseline_of_errors_alone_is_never_judged_against() -> None:
    """Though errors are allowed: nothing is left to compare with."""
    gold = gold_of(list(FOUND))
    before = _scored(gold, lost(FOUND, **dict.fromkeys(FOUND, "error")))
    now = _scored(gold, hits_of(FOUND))
    verdict = ragauge.gate(
        now, {RECALL: {"max_drop": 0.02, "min_n": 1}}, baseline=before, allow_errored=True
    )  # fmt: skip
    assert verdict.exit_code == 4
    assert [each.code for each in verdict.blocks] == ["incomparable"]


def test_one_errored_slot_of_a_question_is_a_gap_of_it() -> None:
    """q1 has found 5/5 and an error before, which is 1/2; now it finds nothing in both slots."""
    gold = gold_of(["q1", "q2"])
    good = [row | {"seed": seed} for row in hits_of({"q1": 5, "q2": 5}) for seed in (1, 2)]
    before = _scored(gold, [{"qid": "q1", "seed": 1, "error": "down"}, *good[1:]])
    now = _scored(gold, [row | {"retrieved_ids": []} for row in good[:2]] + good[2:])
    found = drop_of(RECALL, "higher", now, before)
    assert (found.value, found.code) == (None, "errored-traces")
    assert found.reason.startswith("1 trace of the baseline carries an error, on 1 of 2 compared")
    allowed = drop_of(RECALL, "higher", now, before, tolerated=["errored-traces"])
    assert (allowed.value, allowed.n) == (0.0, 1)


def test_where_missing_is_left_out_of_values_they_are_compared_as_they_are() -> None:
    """--missing exclude: q1 was measured on the slot that it has, 5/5, and falls to 0."""
    gold = gold_of(["q1", "q2"])
    good = [row | {"seed": seed} for row in hits_of({"q1": 5, "q2": 5}) for seed in (1, 2)]
    before = _scored(
        gold, [{"qid": "q1", "seed": 1, "error": "down"}, *good[1:]], missing="exclude"
    )
    now = _scored(
        gold, [row | {"retrieved_ids": []} for row in good[:2]] + good[2:], missing="exclude"
    )
    assert drop_of(RECALL, "higher", now, before).code == "errored-traces"
    allowed = drop_of(RECALL, "higher", now, before, tolerated=["errored-traces"])
    assert (allowed.value, allowed.n) == (0.5, 2)


def test_gaps_of_questions_that_are_not_compared_are_nothing() -> None:
    """q3 and q4 are only in the baseline, and went wrong there."""
    before = _scored(gold_of(list(FOUND)), lost(FOUND, q3="error", q4="missing"))
    now = _scored(gold_of(["q1", "q2"]), hits_of({"q1": 5, "q2": 4}))
    found = drop_of(RECALL, "higher", now, before)
    assert found.value == pytest.approx(0.1)
    assert found.n == 2


def test_gaps_of_the_run_itself_count_as_they_are() -> None:
    """What this run lacks is a drop, and is blocked by the run's own counts."""
    gold = gold_of(list(FOUND))
    before, now = _scored(gold, hits_of(FOUND)), _scored(gold, lost(FOUND, q1="error"))
    found = drop_of(RECALL, "higher", now, before)
    assert (found.value, found.n) == (0.25, 4)


def test_turns_of_a_baseline_are_gaps_one_by_one() -> None:
    gold = [row | {"turn": turn} for row in gold_of(["c"]) for turn in (1, 2)]
    rows = [row | {"turn": turn} for row in hits_of({"c": 5}) for turn in (1, 2)]
    found = drop_of(RECALL, "higher", _scored(gold, rows), _scored(gold, rows[:1]))
    assert found.reason.startswith(
        "1 of 2 compared questions has no trace in the baseline: c turn 2;"
    )


@pytest.mark.parametrize(("whole", "code"), [(True, "missing-traces"), (False, None)])
def test_a_slot_of_the_baseline_is_a_gap_where_the_grid_must_be_whole(
    whole: bool, code: str | None
) -> None:
    """q1 has one seed of two."""
    gold = gold_of(["q1", "q2"])
    rows = [row | {"seed": seed} for row in hits_of({"q1": 5, "q2": 5}) for seed in (1, 2)]
    now, before = _scored(gold, rows), _scored(gold, rows[1:])
    found = drop_of(RECALL, "higher", now, before, whole_grid=whole)
    assert found.code == code
    if whole:
        assert found.reason == (
            "1 slot of the baseline has no trace; fewest traces: q1; --allow-missing judges all "
            "the same"
        )
    allowed = drop_of(RECALL, "higher", now, before, whole_grid=whole, tolerated=["missing-traces"])
    assert (allowed.value, allowed.n) == (0.0, 2)


def test_lines_of_the_baseline_that_were_skipped_are_a_gap(folder: Folder) -> None:
    rows = [*hits_of({"q1": 5}), {"qid": 7.5, "retrieved_ids": "?"}]
    folder.score(
        rows, "--profile", "all", "--metrics", RECALL, "--full", "-o", "before.json",
        "--on-bad-line", "skip", gold=gold_of(["q1"]),
    )  # fmt: skip
    made(folder, "now.json", {"q1": 5})
    outcome = fell(folder, 1)
    assert (outcome.exit_code, outcome.codes) == (4, {"skipped-lines"})
    assert gate_of(outcome)["reason"] == (
        "1 bad line of the baseline was skipped; --allow-skipped judges without them"
    )
    allowed = folder.run(
        "gate", "now.json", "--gates", "gates.toml", "--baseline", "before.json", "--allow-skipped"
    )  # fmt: skip
    assert allowed.exit_code == 0


def test_errors_that_a_profile_counts_as_answers_are_gaps_of_a_baseline(folder: Folder) -> None:
    """Under ship an error is an empty answer: below a precision of 0 of 2 nothing can fall."""
    metric = "answer.grounded_precision"
    good, refusal, other = TRACES
    broken = [{"qid": row["qid"], "error": "down"} for row in (good, other)]
    folder.score([*broken, refusal], "--profile", "ship", "--full", "-o", "before.json")
    folder.write("gates.toml", f'"{metric}" = {{ max_drop = 0.02, min_n = 1 }}\n')
    demand = (
        "--profile", "ship", "--gates", "gates.toml", "--baseline", "before.json", "--format",
        "json", "--full",
    )  # fmt: skip
    outcome = folder.score(TRACES, *demand)
    assert (outcome.exit_code, outcome.codes) == (4, {"errored-traces"})
    told = "2 traces of the baseline carry an error; --allow-errored judges all the same"
    assert told in outcome.out
    assert folder.score(TRACES, *demand, "--allow-errored").exit_code == 0


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "code"), [((), 4), (("--allow-errored",), 1)])
def test_comparisons_and_stored_runs_are_judged_alike(
    folder: Folder, flags: tuple[str, ...], code: int
) -> None:
    """Files of scores, trace files and stored runs; with the errors left out q2 is lost."""
    folder.write("gates.toml", f'"{RECALL}" = {{ max_drop = 0.02, min_n = 1 }}\n')
    gold = gold_of(list(FOUND))
    for name, rows in (
        ("before", lost(FOUND, q1="error")), ("now", hits_of(FOUND | {"q2": 0}))
    ):  # fmt: skip
        folder.write(f"{name}.jsonl", rows)
        folder.score(
            rows, "--profile", "all", "--full", "-o", f"{name}.json", "--run-id", name,
            "--store", "sqlite:///runs.db", gold=gold,
        )  # fmt: skip
    store, gates = ("--store", "sqlite:///runs.db"), ("--gates", "gates.toml")
    files = ("--gold", "gold.jsonl", "--profile", "all")
    for command in (
        ("compare", "before.json", "now.json"),
        ("compare", "before.jsonl", "now.jsonl", *files),
        ("compare", "before", "now", *store),
        ("gate", "now", "--baseline", "before", *store),
        ("gate", "now.json", "--baseline", "before.json"),
    ):
        outcome = folder.run(*command, *gates, *flags)
        assert outcome.exit_code == code, command
        told = "1 trace of the baseline carries an error" in " ".join(outcome.out.split())
        assert told == (code == 4), command


# --- what must be equal ---


def test_values_of_another_version_are_not_comparable() -> None:
    """A changed formula has a new version, and says so."""
    scores = _scored(gold_of(["q1"]), hits_of({"q1": 5}))
    old = msgspec.structs.replace(scores.metrics[RECALL], version=99)
    before = msgspec.structs.replace(scores, metrics={**scores.metrics, RECALL: old})
    found = drop_of(RECALL, "higher", scores, before)
    assert (found.value, found.code) == (None, "incomparable")
    assert found.reason == f"{RECALL} is version 2 here and 99 in the baseline"


def test_runs_with_and_without_a_list_of_chunks_are_not_comparable(folder: Folder) -> None:
    """The list gives evidence a place: the same trace scores 1 with it and 0 without."""
    gold = [{"qid": "q1", "question": "?", "relevant": ["old"]}]
    rows = [{"qid": "q1", "topk": [{"id": "new", "doc": "d", "offsets": [0, 9]}]}]
    folder.write("chunks.jsonl", [{"id": "old", "doc": "d", "start": 0, "end": 9}])
    options = ("--profile", "all", "--metrics", RECALL, "--full")
    folder.score(rows, *options, "--chunks", "chunks.jsonl", "-o", "before.json", gold=gold)
    folder.score(rows, *options, "-o", "now.json", gold=gold)
    assert fell(folder, 0.02).exit_code == 4


@cases(
    ("metric", "changed", "comparable"),
    [
        (RECALL, {"relevance_level": 2}, False),
        (RECALL, {"min_n": 2}, True),
        (RECALL, {"citation_mode": "overlap"}, True),
        (RECALL, {"citation_window": 5}, True),
        (RECALL, {"ignore_case": True}, True),
        ("citation.accuracy", {"citation_mode": "overlap"}, False),
        ("citation.accuracy", {"citation_window": 5}, False),
        ("citation.accuracy", {"min_n": 2}, True),
        ("citation.accuracy", {"ignore_case": True}, True),
        ("answer.groundedness", {"ignore_case": True}, False),
        ("answer.groundedness", {"citation_mode": "overlap"}, True),
        ("answer.groundedness", {"relevance_level": 2}, True),
        ("answer.coverage", {"relevance_level": 2}, False),
    ],
)
def test_only_options_that_matter_must_be_equal(
    metric: str, changed: dict[str, Any], comparable: bool
) -> None:
    """A reading that changes the metric makes two runs incomparable; any other does not."""
    gold: list[Row] = [{
        "qid": "q1", "question": "?", "answerable": True, "must_contain": ["x"],
        "relevant": [{"id": "a", "doc": "d", "start": 0, "end": 9}],
    }]  # fmt: skip
    rows: list[Row] = [{
        "qid": "q1", "retrieved_ids": ["a"],
        "answer_json": {"claim": "x", "citations": [{"id": "a", "doc": "d", "offsets": [0, 9]}]},
    }]  # fmt: skip
    now = _scored(gold, rows, metrics=[metric])
    before = _scored(gold, rows, metrics=[metric], options=Options(**changed))
    found = drop_of(metric, "higher", now, before)
    if comparable:
        assert (found.value, found.code) == (0.0, None)
    else:
        assert (found.value, found.code) == (None, "incomparable")
        assert found.reason == f"the two runs were scored with a different {next(iter(changed))}"


# --- intervals ---


def interval_in(reason: str) -> tuple[str, str]:
    match = re.search(r": ([+-]\d\.\d{4}) to ([+-]\d\.\d{4}) worse \(95 %\), p\s=\s", reason)
    assert match is not None
    return match[1], match[2]


def test_the_same_change_everywhere_has_a_width(folder: Folder) -> None:
    """Every question lost one of five pieces; p = 2 / 2^6.

    -1.2 / 8 = -0.15, and 1.96 √((0.24 + 2) / 8 - 0.15²) / √8 = 0.3516: six that agree are few.
    """
    made(folder, "before.json", {f"q{n}": 4 for n in range(6)})
    made(folder, "now.json", {f"q{n}": 3 for n in range(6)})
    gate = gate_of(fell(folder, 0.2))
    assert gate["interval"] == [-0.2016, 0.5016]
    assert interval_in(gate["reason"]) == ("-0.2016", "+0.5016")
    assert gate["reason"].endswith("p\u00a0=\u00a00.0312")  # 1/32


def test_the_policy_interval_judges_the_upper_bound(folder: Folder) -> None:
    """One of ten questions was lost: 0.1 by the point, more by the bound, which decides."""
    before = {f"q{n}": 5 for n in range(10)}
    made(folder, "before.json", before)
    made(folder, "now.json", before | {"q0": 0})
    point = fell(folder, 0.1)
    assert (point.exit_code, gate_of(point)["value"]) == (0, 0.1)
    bound = fell(folder, 0.1, more=', policy = "interval"')
    gate = gate_of(bound)
    assert (bound.exit_code, gate["status"], gate["value"]) == (1, "fail", 0.1)
    low, high = gate["interval"]
    assert low < 0.1 < high
    assert f"judged by the upper bound {high:.4f}" in gate["reason"]
    assert fell(folder, high + 0.0001, more=', policy = "interval"').exit_code == 0


def test_turns_of_one_conversation_are_drawn_together() -> None:
    """Two conversations of eight turns, one of which got worse: the interval is as of two units."""
    turns = range(8)
    talks = [("t1", turn) for turn in turns] + [("t2", turn) for turn in turns]
    gold = [{"qid": q, "turn": t, "question": "?", "relevant": ["a"]} for q, t in talks]
    lone = [{"qid": f"{q}-{t}", "question": "?", "relevant": ["a"]} for q, t in talks]

    def runs(worse: bool) -> tuple[Scores, Scores]:
        hits = [[] if worse and q == "t2" else ["a"] for q, _ in talks]
        return (
            _scored(gold, [{"qid": q, "turn": t, "retrieved_ids": h}
                           for (q, t), h in zip(talks, hits, strict=True)]),
            _scored(lone, [{"qid": f"{q}-{t}", "retrieved_ids": h}
                           for (q, t), h in zip(talks, hits, strict=True)]),
        )  # fmt: skip

    (talked_before, lone_before), (talked, alone) = runs(worse=False), runs(worse=True)
    together = drop_of(RECALL, "higher", talked, talked_before)
    apart = drop_of(RECALL, "higher", alone, lone_before)
    assert (together.value, together.n) == (apart.value, apart.n) == (0.5, 16)
    # Sums 0 and -8, two added groups of 8: -8 / 32 = -0.25, and 1.96 √(40 + 136) / 32 = 0.8126.
    assert together.interval == pytest.approx((-0.5626, 1.0), abs=5e-5)
    # -8 / 18 = -0.4444, and 1.96 √(10 / 18 - 0.4444²) / √18 = 0.2764
    assert apart.interval == pytest.approx((0.1680, 0.7209), abs=5e-5)
    # One unit differs: of two choices of signs both are as far from 0. Eight: 2 of 256.
    assert together.reason.endswith("p\u00a0=\u00a01.0000")
    assert apart.reason.endswith("p\u00a0=\u00a00.0078")


def test_a_turn_is_compared_with_the_same_turn() -> None:
    """Turn 1 of both runs; turn 2 and turn 3 have no partner."""
    gold = [{"qid": "t", "turn": t, "question": "?", "relevant": ["a"]} for t in (1, 2, 3)]
    before = _scored(gold[:2], [{"qid": "t", "turn": 1, "retrieved_ids": ["a"]},
                                {"qid": "t", "turn": 2, "retrieved_ids": ["a"]}])  # fmt: skip
    now = _scored([gold[0], gold[2]], [{"qid": "t", "turn": 1, "retrieved_ids": ["a"]},
                                       {"qid": "t", "turn": 3, "retrieved_ids": []}])  # fmt: skip
    found = drop_of(RECALL, "higher", now, before, tolerated=["fewer-questions"])
    assert (found.value, found.n) == (0.0, 1)
    assert "; without a partner: 2 values" in found.reason


def test_one_question_that_stayed_shows_nothing() -> None:
    """The drop may be up to 1.96 √(2/3) / √3 = 0.924: a bound of 0.02 is not met."""
    scores = _scored(gold_of(["q1"]), hits_of({"q1": 5}))
    table: dict[str, object] = {RECALL: {"max_drop": 0.02, "min_n": 1, "policy": "interval"}}
    assert ragauge.gate(scores, table, baseline=scores).exit_code == 1


# --- where drops are judged ---


def test_saved_scores_are_judged_as_they_were_measured(folder: Folder) -> None:
    """`score --baseline` and `gate --baseline` give the same gate, to the last digit."""
    before = {f"q{n}": n % 6 for n in range(12)}
    now = {f"q{n}": (n * 5) % 6 for n in range(12)}
    made(folder, "before.json", before)
    folder.write("ragauge.toml", f'[gates]\n"{RECALL}" = {{ max_drop = 0.05, min_n = 1 }}\n')
    first = folder.score(
        hits_of(now), "--profile", "all", "--metrics", RECALL, "--full", "-o", "now.json",
        "--baseline", "before.json", "--format", "json", gold=gold_of(list(now)),
    )  # fmt: skip
    again = folder.run("gate", "now.json", "--baseline", "before.json", "--format", "json")
    assert (first.exit_code, gate_of(first)) == (again.exit_code, gate_of(again))
    assert gate_of(first)["value"] is not None


def test_the_baseline_may_stand_in_the_configuration(folder: Folder) -> None:
    """Beside the file; an option wins over it."""
    made(folder, "before.json", {"q1": 5})
    made(folder, "other.json", {"q1": 1})
    made(folder, "now.json", {"q1": 1})
    folder.write(
        "ragauge.toml",
        f'baseline = "before.json"\n[gates]\n"{RECALL}" = {{ max_drop = 0.1, min_n = 1 }}\n',
    )
    assert folder.run("gate", "now.json").exit_code == 1  # 1.0 before, 0.2 now
    assert folder.run("gate", "now.json", "--baseline", "other.json").exit_code == 0


def test_the_api_takes_a_baseline_as_a_path_or_as_scores(folder: Folder) -> None:
    """Both give the same verdict."""
    made(folder, "before.json", {"q1": 5})
    made(folder, "now.json", {"q1": 1})
    table: dict[str, object] = {RECALL: {"max_drop": 0.1, "min_n": 1}}
    by_path = ragauge.gate(Path("now.json"), table, baseline=Path("before.json"))
    by_scores = ragauge.gate("now.json", table, baseline=scores_document.load_scores("before.json"))
    assert by_path == by_scores
    assert by_path.exit_code == 1
    assert ragauge.gate("now.json", table).exit_code == 4
    assert ragauge.gate("now.json", table, allow_no_baseline=True).exit_code == 0


@pytest.mark.slow
def test_a_threshold_and_a_drop_on_one_metric_stand_side_by_side(folder: Folder) -> None:
    """They are two demands; neither replaces the other."""
    made(folder, "before.json", {"q1": 5})
    made(folder, "now.json", {"q1": 4})
    folder.write(
        "gates.toml",
        f'"{RECALL}" = {{ threshold = 0.8, min_n = 1 }}\n'
        f'fall = {{ metric = "{RECALL}", max_drop = 0.1, min_n = 1 }}\n',
    )
    outcome = folder.run(
        "gate", "now.json", "--gates", "gates.toml", "--baseline", "before.json", "--format",
        "json",
    )  # fmt: skip
    gates = json.loads(outcome.out)["verdict"]["gates"]
    assert [(gate["name"], gate["status"], gate["value"]) for gate in gates] == [
        (RECALL, "pass", 0.8),
        ("fall", "fail", 0.2),
    ]


def test_a_drop_on_a_slice_that_is_not_there_is_not_evaluable(folder: Folder) -> None:
    """No question is in it: that is not a drop of 0."""
    made(folder, "now.json", {"q1": 5})
    made(folder, "before.json", {"q1": 5})
    outcome = fell(folder, 0.1, more=', slice = "type=code"')
    assert outcome.exit_code == 4, outcome.out
