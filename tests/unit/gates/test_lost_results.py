"""Questions and slots without a result: the same value in deltas and drops, and always told."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from ragauge import registry
from ragauge.gates.lost_results import FilledResults, LostResults, fill_worst
from ragauge.model.comparison import Delta
from ragauge.report.comparison import sentences
from tests.support.cases import cases
from tests.support.command import Folder, Outcome

Row = dict[str, Any]
TEN = [
    {"qid": f"Q{i}", "question": f"what {i}?", "answerable": True, "relevant": ["x"]}
    for i in range(10)
]
ONE = [{"qid": "Q1", "question": "a?", "answerable": True, "relevant": ["x"]}]
SIX = [
    {"qid": f"Q{i}", "question": f"what {i}?", "answerable": True, "relevant": [f"A{i}"]}
    for i in range(1, 7)
]


def answered(qid: str, hit: str = "x", **more: Any) -> Row:
    return {"qid": qid, "topk": [hit], "answer_json": {"claim": "c", "citations": [hit]}, **more}


def compared(folder: Folder, *more: str, code: int = 0, k: str = "1") -> dict[str, Any]:
    outcome = folder.run(
        "compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--profile", "all", "--k", k,
        "--format", "json", *more,
    )  # fmt: skip
    assert outcome.exit_code == code, outcome.err or outcome.out[-2000:]
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def said(outcome: Outcome) -> str:
    return " ".join(outcome.out.split())


# --- whole questions ---


@pytest.fixture(params=["errored", "missing"])
def lossy(request: pytest.FixtureRequest, folder: Folder) -> tuple[Folder, str]:
    """Run b lost three of ten questions that run a answers rightly."""
    folder.write("gold.jsonl", TEN)
    rows = [answered(f"Q{i}") for i in range(10)]
    folder.write("a.jsonl", rows)
    errors = [{"qid": f"Q{i}", "error": "timeout"} for i in range(3)]
    folder.write("b.jsonl", (errors if request.param == "errored" else []) + rows[3:])
    return folder, f"--allow-{request.param}"


@pytest.mark.parametrize(
    "metric", ["answer.precision", "refusal.over", "retrieval.precision@1", "retrieval.hit@1"]
)
def test_a_drop_gate_and_the_table_tell_the_same(lossy: tuple[Folder, str], metric: str) -> None:
    folder, allowed = lossy
    folder.write("g.toml", f'[gates]\n"{metric}" = {{ max_drop = 0.02, min_n = 1 }}\n')
    found = compared(folder, "--gates", "g.toml", allowed, code=1)
    (gate,) = found["verdict"]["gates"]
    assert gate["value"] == abs(found["deltas"][metric]["delta"]) == 0.3  # 10 of 10, then 7
    assert (gate["n"], gate["status"]) == (10, "fail")


def test_a_stored_run_is_gated_by_the_same_drop(lossy: tuple[Folder, str]) -> None:
    folder, allowed = lossy
    folder.write("g.toml", '[gates]\n"answer.precision" = { max_drop = 0.02, min_n = 1 }\n')
    for name in ("a", "b"):
        folder.run("score", "gold.jsonl", f"{name}.jsonl", "--profile", "all", "--store",
                   "--run-id", name)  # fmt: skip
    found = folder.run("gate", "b", "--baseline", "a", "--gates", "g.toml", allowed)
    assert found.exit_code == 1
    assert "3 questions without a result counted as the worst" in said(found)


def test_a_run_that_lost_questions_cannot_pass_by_excluding_what_the_user_did_not_exclude(
    lossy: tuple[Folder, str],
) -> None:
    folder, _ = lossy
    delta = compared(folder)["deltas"]["answer.precision"]
    assert (delta["n"], delta["reason"]) == (
        10, "3 questions without a result counted as the worst",
    )  # fmt: skip


# --- metrics without a worst value ---


@cases(
    ("metric", "worst"),
    [
        ("answer.precision", 0.0), ("refusal.over", 1.0), ("stability.rank_tau", -1.0),
        ("citation.anchor_distance", None), ("latency.total_ms", None),
        ("semantic.delta_s_cited_p90", None),
    ],
)  # fmt: skip
def test_distances_and_times_have_no_worst_value(metric: str, worst: float | None) -> None:
    assert registry.metrics()[metric].worst == worst


def lost(
    absent: list[bool], there: list[int], errored: list[int], missing: list[int]
) -> LostResults:
    return LostResults(np.array(absent), np.array(there), np.array(errored), np.array(missing))


@cases(
    ("metric", "values", "filled"),
    [
        # absent → 0; 2 slots there, 1 errored → 2/3; 1 there, 1 missing → 1/2; as it is; no value
        ("answer.precision", [0.0, 2 / 3, 0.5, 1.0, np.nan], FilledResults(questions=1, slots=2)),
        # the error is in the mean as a miss already
        ("retrieval.hit", [0.0, 1.0, 0.5, 1.0, np.nan], FilledResults(questions=1, slots=1)),
        # what is lost cannot agree with anything
        ("stability.convergent", [0.0, 1.0, 0.0, 1.0, np.nan], FilledResults(questions=1, slots=1)),
        ("citation.anchor_distance", [np.nan, 1.0, 1.0, 1.0, np.nan],
         FilledResults(left_out=1, left_slots=2)),
        ("run.errored", [1.0, 1.0, 1.0, 1.0, np.nan], FilledResults(questions=1)),
    ],
)  # fmt: skip
def test_the_worst_is_filled_in_for_questions_and_slots(
    metric: str, values: list[float], filled: FilledResults
) -> None:
    mine = np.array([np.nan, 1.0, 1.0, 1.0, np.nan])
    beside = np.array([1.0, 1.0, 1.0, 1.0, np.nan])
    gone = lost([True, False, False, False, False], [0, 2, 1, 2, 2], [1, 1, 0, 0, 0],
                [0, 0, 1, 0, 0])  # fmt: skip
    assert fill_worst(registry.metrics()[metric], (beside, mine), (None, gone)) == filled
    assert mine == pytest.approx(values, nan_ok=True)


def test_what_the_user_excludes_is_not_filled_in() -> None:
    mine, beside = np.array([np.nan, 1.0]), np.array([1.0, 1.0])
    absent, answered = np.array([True, False]), np.array([0, 2])
    gone = LostResults(absent, answered, np.array([1, 0]), np.array([0, 0]), counted=False)
    metric = registry.metrics()["answer.precision"]
    assert fill_worst(metric, (beside, mine), (None, gone)) == FilledResults(left_out=1)
    assert np.isnan(mine[0])


@pytest.fixture
def distant(folder: Folder) -> Folder:
    """Q1 and Q2 cite the anchor section of the gold item; run a has an error for Q0."""
    gold = [{**row, "anchor_section": "S.1"} for row in TEN[:3]]
    folder.write("gold.jsonl", gold)
    cited = [{"id": "x", "section": "S.1.2"}]
    rows = [
        {"qid": f"Q{i}", "topk": ["x"], "answer_json": {"claim": "c", "citations": cited}}
        for i in range(3)
    ]
    folder.write("a.jsonl", [{"qid": "Q0", "error": "down"}, *rows[1:]])
    folder.write("b.jsonl", rows)
    return folder


def test_a_distance_is_only_compared_where_both_have_one(distant: Folder) -> None:
    delta = compared(distant)["deltas"]["citation.anchor_distance"]
    assert (delta["a"], delta["b"], delta["n"]) == (1.0, 1.0, 2)
    assert delta["reason"] == "1 question without a result left out: no value to count them as"


@pytest.mark.parametrize("name", ["table", "md", "comment", "summary", "html", "junit"])
def test_every_report_says_what_was_filled_in_and_left_out(distant: Folder, name: str) -> None:
    outcome = distant.run(
        "compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--profile", "all", "--k", "1",
        "-o", f"{name}:out.x",
    )  # fmt: skip
    assert outcome.exit_code == 0, outcome.err
    text = " ".join((distant.path / "out.x").read_text("utf-8").split())
    assert "1 question without a result counted as the worst" in text
    assert "1 question without a result left out: no value to count them as" in text
    if name != "junit":
        assert "†" in text


def test_lines_of_losses_name_their_metrics_once() -> None:
    def delta(metric: str, reason: str, *, lost: bool) -> Delta:
        return Delta(metric=metric, better="higher", a=1.0, b=0.5, delta=-0.5, n=2, reason=reason,
                     lost=lost)  # fmt: skip

    found = sentences.reason_lines([
        delta("one", "gone", lost=True), delta("two", "else", lost=False),
        delta("three", "gone", lost=True),
    ])  # fmt: skip
    assert found == ["† one, three: gone", "two: else"]


# --- slots ---


@pytest.fixture
def slots(folder: Folder) -> Folder:
    """Run a hits with its first seed and misses with its second."""
    folder.write("gold.jsonl", ONE)
    folder.write("a.jsonl", [answered("Q1", seed=1), answered("Q1", "y", seed=2)])
    return folder


@pytest.mark.parametrize(
    "more", [[{"qid": "Q1", "seed": 2, "error": "timeout"}], []], ids=["errored", "missing"]
)
def test_a_slot_that_was_lost_is_no_gain(slots: Folder, more: list[Row]) -> None:
    slots.write("b.jsonl", [answered("Q1", seed=1), *more])
    found = compared(slots)
    for name in ("answer.precision", "answer.coverage", "citation.hit_rate", "citation.recall",
                 "retrieval.hit@1", "retrieval.precision@1"):  # fmt: skip
        assert (found["deltas"][name]["a"], found["deltas"][name]["b"]) == (0.5, 0.5), name
    (question,) = found["per_query"]
    assert question["kind"] == question["answer"]["kind"] == "loss"
    assert (question["b_reciprocal"], question["b_hit_rank"]) == (0.5, None)
    assert "1 of 2 slots without a result in run b" in question["note"]
    told = "run b has no result for 1 slot of 1 question: counted as the worst there"
    assert told in found["notes"]


def test_a_baseline_with_fewer_slots_hides_no_drop(slots: Folder) -> None:
    """Run a has one slot, run b two. The table takes a half from run a, a gate does not."""
    slots.write("b.jsonl", (slots.path / "a.jsonl").read_text("utf-8"))
    slots.write("a.jsonl", [answered("Q1", seed=1)])
    slots.write("g.toml", '[gates]\n"answer.precision" = { max_drop = 0.02, min_n = 1 }\n')
    found = compared(slots, "--gates", "g.toml", code=1)
    delta = found["deltas"]["answer.precision"]
    assert (delta["a"], delta["b"]) == (0.5, 0.5)
    assert delta["reason"] == "1 slot without a result counted as the worst"
    assert found["verdict"]["gates"][0]["value"] == 0.5
    told = "run a has no result for 1 slot of 1 question: counted as the worst there"
    assert told in found["notes"]


def test_equal_losses_are_a_draw(slots: Folder) -> None:
    rows = [answered("Q1", seed=1), {"qid": "Q1", "seed": 2, "error": "timeout"}]
    slots.write("a.jsonl", rows)
    slots.write("b.jsonl", rows)
    found = compared(slots)
    assert found["per_query"][0]["kind"] == "draw"
    assert found["deltas"]["answer.precision"]["delta"] == 0.0


# --- what nothing recognises ---


def cut(letter: str, version: str, *, known: int) -> list[Row]:
    """Six questions, each with a chunk of its own; the first so many say their document."""
    return [
        {
            "qid": f"Q{i}",
            "topk": [{"id": f"{letter}{i}", "chunker_version": version}
                     | ({"doc": "d"} if i <= known else {})],
        }
        for i in range(1, 7)
    ]  # fmt: skip


@pytest.fixture
def recut(folder: Folder) -> Folder:
    folder.write("gold.jsonl", SIX)
    folder.write("a.jsonl", cut("A", "v1", known=3))
    folder.write("b.jsonl", cut("B", "v2", known=3))
    folder.write("g.toml", '[gates]\n"retrieval.hit@1" = { max_drop = 0.02, min_n = 1 }\n')
    return folder


def test_runs_in_which_nothing_is_recognised_cannot_be_compared(recut: Folder) -> None:
    recut.write("a.jsonl", cut("A", "v1", known=0))
    recut.write("b.jsonl", cut("B", "v2", known=0))
    outcome = recut.run("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl")
    assert outcome.exit_code == 4
    assert "nothing that is expected is recognised in both" in outcome.err


def test_what_nothing_recognises_is_open(recut: Folder) -> None:
    """Of the chunks of three questions only ids are known: a found them, b may have lost them."""
    found = compared(recut)
    assert (found["counted"], found["left_out"]) == (6, {})
    assert found["deltas"]["undecided"]["unplaced"] == 3
    kinds = [(each["kind"], each["regression"]) for each in found["per_query"]]
    assert kinds[3:] == [("undecided", "open")] * 3
    assert found["deltas"]["run.unknown"]["b"] == 0.0


@pytest.mark.parametrize(
    ("demand", "words"),
    [
        (("--gates", "g.toml"), "gold pin --narrow"),
        (("--fail-on", "regression"), "6 questions are open (place-unknown)"),
    ],
)
def test_what_nothing_recognises_makes_a_demand_not_evaluable(
    recut: Folder, demand: tuple[str, ...], words: str
) -> None:
    """Leave to judge without what is missing does not let it pass: nothing is missing."""
    files = ("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl")
    for allowed in ((), ("--allow-missing",)):
        outcome = recut.run(*files, *demand, *allowed)
        assert outcome.exit_code == 4
        assert "NOT EVALUABLE" in outcome.out
        assert words in said(outcome)


def test_what_nothing_recognises_is_passed_only_where_that_is_asked_for(recut: Folder) -> None:
    compared(recut, "--fail-on", "regression", "--accept-open", code=0)


def test_a_baseline_that_nothing_is_recognised_in_is_not_evaluable(recut: Folder) -> None:
    for name in ("a", "b"):
        recut.run("score", "gold.jsonl", f"{name}.jsonl", "--store", "--run-id", name)
    for allowed in ((), ("--allow-missing",)):
        judged = recut.run("gate", "b", "--baseline", "a", "--gates", "g.toml", *allowed)
        assert judged.exit_code == 4


def test_regressions_decide_whatever_was_left_out(recut: Folder) -> None:
    rows = cut("B", "v2", known=3)
    rows[0]["topk"][0]["doc"] = "elsewhere"
    recut.write("b.jsonl", rows)
    compared(recut, "--fail-on", "regression", code=1)


# --- gates that are not on a drop, and files that say less ---


def test_a_gate_that_is_not_judged_is_not_marked_and_does_not_pass(folder: Folder) -> None:
    folder.write("gold.jsonl", TEN)
    for name in ("a.jsonl", "b.jsonl"):
        folder.write(name, [answered(f"Q{i}") for i in range(10)])
    folder.write("g.toml", '[gates]\n"retrieval.hit@1" = { threshold = 0.99, min_n = 1 }\n')
    named = ("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl")
    inline = folder.run(*named, "--gates", "retrieval.hit@1>=0.99")
    assert inline.exit_code == 2
    assert "retrieval.hit@1" in inline.err
    filed = folder.run(*named, "--gates", "g.toml")
    assert filed.exit_code == 0
    assert "not judged here, as they are not on a drop: retrieval.hit@1" in filed.err
    assert "*" not in filed.out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["md", "comment", "summary"])
def test_no_p_value_is_called_corrected_that_is_not(lossy: tuple[Folder, str], name: str) -> None:
    folder, allowed = lossy
    folder.write("g.toml", '[gates]\n"answer.precision" = { max_drop = 0.5, min_n = 1 }\n')
    named = ("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--profile", "all",
             "-o", f"{name}:out.x")  # fmt: skip
    folder.run(*named)
    text = (folder.path / "out.x").read_text("utf-8")
    assert "p (Holm) is corrected over the metrics of the profile" in text
    folder.run(*named, "--gates", "g.toml", allowed)
    lines = (folder.path / "out.x").read_text("utf-8").splitlines()
    head = next(line for line in lines if line.startswith("| metric |")).split(" | ")
    place = head.index("p (Holm)")
    for line in lines:
        cells = line.split(" | ")
        if line.startswith("| `") and len(cells) == len(head):
            assert (cells[place] != "-") == ("(gated)" in line), line


def test_files_of_scores_say_that_nothing_is_known_of_their_hits(folder: Folder) -> None:
    folder.write("gold.jsonl", TEN)
    folder.write("a.jsonl", [answered(f"Q{i}") for i in range(10)])
    scoring = ("score", "gold.jsonl", "a.jsonl", "--profile", "all")
    folder.run(*scoring, "--full", "-o", "s.json", "--store", "--run-id", "a")
    files = folder.run("compare", "s.json", "s.json")
    assert "chunker_version_match: not known" in files.out
    assert "no expected items" not in files.out
    mixed = folder.run("compare", "s.json", "a", "--format", "json")
    assert json.loads(mixed.out)["causes"] == []


def test_swapped_files_are_refused(folder: Folder) -> None:
    folder.write("gold.jsonl", TEN)
    folder.write("a.jsonl", [{"qid": f"Q{i}", "topk": ["x"]} for i in range(10)])
    outcome = folder.run("compare", "gold.jsonl", "a.jsonl", "--gold", "a.jsonl")
    assert outcome.exit_code == 2
    assert "like a gold set" in outcome.err
