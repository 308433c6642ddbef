"""Metrics with the traces that have an error at their worst and at their best."""

from __future__ import annotations

import msgspec
import pytest

import ragauge
from ragauge.gates.judge import gate
from ragauge.model.scores_document import from_document, to_document
from tests.support.cases import cases
from tests.support.command import Row

N = 10


def scored(profile: str, *failing: int) -> ragauge.Scores:
    """Ten questions, the last two to be refused, all answered rightly but for those that fail."""
    gold: list[Row] = []
    traces: list[Row] = []
    for n in range(N):
        right, refuse = f"c{n}", n >= 8
        gold.append(
            {
                "qid": f"q{n}",
                "question": f"What is number {n}?",
                "answerable": not refuse,
                "gold_claim_substr": [] if refuse else [f"value {n} here"],
                "gold_citations": [] if refuse else [right],
            }
        )
        said = {"claim": f"The value {n} here.", "citations": [right]}
        refused = {"claim": "not in context", "citations": []}
        answer: Row = {"retrieved_ids": [right], "answer_json": refused if refuse else said}
        lost: Row = {"error": "timeout"}
        traces.append({"qid": f"q{n}", **(lost if n in failing else answer)})
    return ragauge.score(gold, traces, profile=profile)


def ends(scores: ragauge.Scores, metric: str) -> list[tuple[float, int]]:
    found = scores.metrics[metric].errored
    assert found is not None
    return [(end.value, end.n) for end in found]


def test_nothing_is_kept_of_a_run_without_errors() -> None:
    scores = scored("all")
    assert all(result.errored is None for result in scores.metrics.values())


@cases(
    ("metric", "worst", "best"),
    [
        # q0 and q8 fail: of 8 with evidence one, of 2 to be refused one.
        ("retrieval.recall@5", (7 / 8, 8), (1.0, 8)),  # 7 of 8 found; counted as a miss already
        ("refusal.over", (1 / 8, 8), (0.0, 8)),  # q0 might have been refused
        ("refusal.under", (1 / 2, 2), (0.0, 2)),  # q8 might have been answered
        ("answer.precision", (7 / 9, 9), (1.0, 9)),  # both might have been answered, wrongly
        ("retrieval.empty", (2 / 10, 10), (0.0, 10)),
    ],
)
def test_each_metric_has_its_ends(
    metric: str, worst: tuple[float, int], best: tuple[float, int]
) -> None:
    """Only where the gold item could be in the population at all."""
    assert ends(scored("all", 0, 8), metric) == [pytest.approx(worst), pytest.approx(best)]


def test_under_ship_an_error_is_an_answer_and_has_other_ends() -> None:
    """Over-refusal is 0 of 8 in the source's eyes: at its worst one more was refused."""
    scores = scored("ship", 0)
    assert scores.metrics["refusal.over"].value == 0.0
    assert ends(scores, "refusal.over") == [pytest.approx((1 / 8, 8)), (0.0, 8)]
    verdict = gate(scores)
    assert (verdict.status, int(verdict.exit_code)) == ("not-evaluable", 4)
    assert {block.code for block in verdict.blocks} == {"errored-traces"}
    assert verdict.gates_pass  # as the source prints it
    assert int(gate(scores, allow_errored=0.1).exit_code) == 0
    assert int(gate(scores, allow_errored=0.05).exit_code) == 4


def test_what_the_run_counts_of_itself_has_no_ends() -> None:
    assert scored("all", 0).metrics["run.errored"].errored is None


def test_they_survive_the_file() -> None:
    scores = scored("all", 0, 8)
    document = to_document(scores, gate(scores), full=True)
    back = from_document(msgspec.json.encode(document), "scores.json")
    for name, result in scores.metrics.items():
        assert back.metrics[name].errored == result.errored
