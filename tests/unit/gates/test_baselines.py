"""Several baselines: every gate on a drop against each, and the worst verdict."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ragauge.errors import RagaugeError
from ragauge.gates.baselines import GateBaseline, judge_against
from ragauge.gates.judge import judge
from ragauge.gates.parse import parse_table
from ragauge.model.profile import Profile
from ragauge.model.scores import Scores
from ragauge.model.semantic import BandCalibration, Bands
from ragauge.model.verdict import Gate, Waiver
from ragauge.registry import profile
from ragauge.scoring import score
from tests.support.command import lines_of

QUESTIONS = 20
ALL: Profile = profile("all")


def scores(tmp_path: Path, lost: int) -> Scores:
    """Twenty questions, of which the first `lost` do not find their evidence."""
    gold = [
        {"qid": f"Q{number:02}", "question": f"{number}?", "answerable": True,
         "relevant": [f"c{number}"]}
        for number in range(QUESTIONS)
    ]  # fmt: skip
    traces = [
        {"qid": f"Q{number:02}", "hits": [f"c{number}" if number >= lost else "x"],
         "ΔS": [0.2], "embed_model": "e5"}
        for number in range(QUESTIONS)
    ]  # fmt: skip
    (tmp_path / "gold.jsonl").write_bytes(lines_of(gold))
    (tmp_path / f"trace{lost}.jsonl").write_bytes(lines_of(traces))
    return score.score(
        tmp_path / "gold.jsonl", tmp_path / f"trace{lost}.jsonl", profile="all", k=[5]
    )


@pytest.fixture
def runs(tmp_path: Path) -> dict[int, Scores]:
    return {lost: scores(tmp_path, lost) for lost in (0, 1, 2)}


def gates(**table: Any) -> list[Gate]:
    named = {"retrieval.recall@5": {"max_drop": 0.06, "policy": "point"}, **table}
    return parse_table(named, ALL, [5], origin="ragauge.toml")


def test_the_worst_baseline_decides(runs: dict[int, Scores]) -> None:
    """0.90 now: 0.05 below the newest is allowed, 0.10 below the pinned one is not."""
    baselines = [
        GateBaseline(scores=runs[1], label="latest", run_id="b"),
        GateBaseline(scores=runs[0], label="pinned", run_id="a"),
    ]
    verdict = judge_against(runs[2], gates(), baselines, source_rules=False)
    assert (verdict.status, int(verdict.exit_code)) == ("fail", 1)
    assert [(result.gate.against, result.status) for result in verdict.gates] == [
        ("latest", "pass"), ("pinned", "fail"),
    ]  # fmt: skip
    assert [result.value for result in verdict.gates] == [pytest.approx(0.05), pytest.approx(0.1)]
    assert verdict.gates[1].reason is not None
    assert verdict.gates[1].reason.startswith("against a: 1.0000 in the baseline, 0.9000 now")
    assert verdict.gates[1].gate.title == "retrieval.recall@5 vs pinned"


def test_one_baseline_is_judged_as_ever(runs: dict[int, Scores]) -> None:
    alone = judge_against(runs[2], gates(), [GateBaseline(scores=runs[0])], source_rules=False)
    assert alone == judge(runs[2], gates(), baseline=runs[0], source_rules=False)
    none = judge_against(runs[2], gates(), [], source_rules=False)
    assert none == judge(runs[2], gates(), source_rules=False)
    assert int(none.exit_code) == 4


def test_gates_on_levels_are_judged_once_and_keep_their_order(runs: dict[int, Scores]) -> None:
    both = gates(**{"retrieval.hit@5": ">= 0.5"})
    baselines = [GateBaseline(scores=runs[0], label=label) for label in ("one", "two")]
    verdict = judge_against(runs[0], both, baselines, source_rules=False)
    assert [(result.gate.metric, result.gate.against) for result in verdict.gates] == [
        ("retrieval.recall@5", "one"), ("retrieval.recall@5", "two"), ("retrieval.hit@5", None),
    ]  # fmt: skip
    assert verdict.status == "pass"


def test_a_baseline_for_some_gates_is_asked_for_those_alone(runs: dict[int, Scores]) -> None:
    both = gates(**{"retrieval.mrr@5": {"max_drop": 0.06, "policy": "point"}})
    baselines = [
        GateBaseline(scores=runs[0], label="best", keys=frozenset({both[1].key}), chosen_from=3),
        GateBaseline(scores=runs[1], label="latest"),
    ]
    verdict = judge_against(runs[2], both, baselines, source_rules=False)
    assert [(result.gate.metric, result.gate.against) for result in verdict.gates] == [
        ("retrieval.recall@5", "latest"), ("retrieval.mrr@5", "best"),
        ("retrieval.mrr@5", "latest"),
    ]  # fmt: skip
    best = verdict.gates[1]
    assert best.reason is not None
    assert "for the best of 3 runs" in best.reason


def test_what_cannot_be_judged_against_one_is_not_evaluable(runs: dict[int, Scores]) -> None:
    """Of two baselines one is missing: no verdict, whatever the other says."""
    baselines = [GateBaseline(scores=runs[2], label="a"), GateBaseline(scores=None, label="b")]
    verdict = judge_against(runs[2], gates(), baselines, source_rules=False)
    assert (verdict.status, int(verdict.exit_code)) == ("not-evaluable", 4)
    assert [block.code for block in verdict.blocks] == ["no-baseline"]


def test_a_waiver_covers_a_gate_against_every_baseline(runs: dict[int, Scores]) -> None:
    waiver = Waiver(gate="retrieval.recall@5", reason="known", expires=date(2030, 1, 1))
    baselines = [GateBaseline(scores=runs[0], label=label) for label in ("one", "two")]
    verdict = judge_against(
        runs[2],
        gates(),
        baselines,
        source_rules=False,
        waivers=[waiver],
        today=date(2026, 1, 1),
    )
    assert verdict.status == "pass"
    assert all(result.waived for result in verdict.gates)
    stray = Waiver(gate="retrieval.hit@5", reason="known", expires=date(2030, 1, 1))
    with pytest.raises(RagaugeError, match="no such gate"):
        judge_against(runs[2], gates(), baselines, source_rules=False, waivers=[stray])


def test_delta_s_that_decides_nothing_leaves_it_to_gates_on_a_drop(
    runs: dict[int, Scores],
) -> None:
    """As with one baseline: `not-judged` blocks only where no other gate is left."""
    fit = BandCalibration(
        auc=0.6, evidence=9, others=9, against="hard negatives", stable=(0, 1), risk=(0, 1),
        judged=False,
    )  # fmt: skip
    bands = {"e5": Bands(calibration=fit)}
    both = gates(**{"semantic.delta_s_hits": {"zone": "stable"}})
    one, two = (GateBaseline(scores=runs[0], label=label) for label in ("one", "two"))
    for baselines in ([GateBaseline(scores=runs[0])], [one, two]):
        verdict = judge_against(runs[0], both, baselines, source_rules=False, bands=bands)
        assert (verdict.status, int(verdict.exit_code), verdict.blocks) == ("pass", 0, ())
        assert [result.status for result in verdict.unjudged] == ["not-judged"]
    alone = judge_against(runs[0], both[1:], [one, two], source_rules=False, bands=bands)
    assert (alone.status, int(alone.exit_code)) == ("not-evaluable", 4)
