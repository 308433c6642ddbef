"""Runs inside tests: settings, layers of gates, waivers, baselines, and what is scored again."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest

from ragauge.errors import RagaugeError
from ragauge.model.scores import Scores
from ragauge.scoring import score as pipeline
from ragauge.testing import JudgedRun, MarkerSettings, Scorer, located, read_settings
from tests.support.command import GOLD, TRACES, Folder
from tests.support.stored_runs import WRONG


class StoppedError(Exception):
    """A test was ended."""


def stop(text: str) -> NoReturn:
    raise StoppedError(text)


class Judge:
    """Runs in a folder, and what they recorded."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.scorer = Scorer(folder.path)
        self.recorded: list[tuple[str, object]] = []
        folder.write("gold.jsonl", GOLD)
        folder.write("right.jsonl", TRACES)
        folder.write("wrong.jsonl", WRONG)

    def run(self, trace: str = "wrong.jsonl", **given: Any) -> JudgedRun:
        settings = read_settings(
            {"gold": "gold.jsonl", "trace": trace, **given}, [self.folder.path]
        )
        record = lambda *signal: self.recorded.append(signal)  # noqa: E731
        return JudgedRun(self.scorer, settings, record=record, stop=stop)


@pytest.fixture
def judge(folder: Folder) -> Judge:
    return Judge(folder)


def test_a_file_is_taken_from_the_first_folder_that_has_it(tmp_path: Path) -> None:
    here, root = tmp_path / "tests", tmp_path
    here.mkdir()
    (root / "a").touch()
    assert located("a", [here, root]) == str(root / "a")
    (here / "a").touch()
    assert located("a", [here, root]) == str(here / "a")
    assert located("gone", [here, root]) == str(here / "gone")
    assert located(str(root / "a"), [here, root]) == str(root / "a")


def test_settings_take_paths_lists_and_text(tmp_path: Path) -> None:
    found = read_settings(
        {"gold": Path("g"), "k": [1, 5], "metrics": "answer.*,refusal.*", "signals": "precision",
         "config": "none"},
        [tmp_path],
    )  # fmt: skip
    assert found == MarkerSettings(
        gold=str(tmp_path / "g"), k=(1, 5), metrics=("answer.*", "refusal.*"), signals="precision",
        config="none",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"goldd": "g"}, "unknown-name"), ({"k": "five"}, "usage"), ({"gold": 7}, "usage"),
        ({"missing": "ignore"}, "usage"), ({"intervals": "no"}, "usage"),
        ({"invariants": [7]}, "usage"), ({"gates": "gone.toml"}, "file-not-found"),
    ],
)  # fmt: skip
def test_bad_settings_are_errors(tmp_path: Path, given: dict[str, Any], code: str) -> None:
    with pytest.raises(RagaugeError) as caught:
        read_settings(given, [tmp_path])
    assert caught.value.code == code


def test_gates_are_layers_of_profile_configuration_and_test(judge: Judge) -> None:
    """`under` is 1/1 and precision 2/3; a later layer replaces the demand on the same metric."""
    assert {each.gate.name for each in judge.run().verdict.gates} == {
        "precision", "chr", "under", "over"
    }  # fmt: skip
    judge.folder.write("ragauge.toml", '[gates]\nunder = "1"\nprecision = "0.6"\nchr = "0.7"\n')
    assert judge.run(signals="under").verdict.status == "fail"  # chr is 2/3
    judge.run(gates="chr=0.6").assert_gates()
    judge.run(gates={"chr": "0.6"}).assert_gates()
    judge.folder.write("gates.toml", 'chr = "0.6"\n')
    judge.run(gates="gates.toml").assert_gates()
    with pytest.raises(AssertionError, match="under"):
        judge.run(gates="chr=0.6", config="none").assert_gates()


def test_waivers_hold_for_gates_and_not_for_invariants(judge: Judge) -> None:
    judge.folder.write(
        "ragauge.toml",
        '[gates]\nprecision = "0.6"\nchr = "0.6"\n'
        '[[waivers]]\ngate = "under"\nreason = "known"\nexpires = 2999-01-31\n',
    )
    run = judge.run()
    run.assert_gates()
    with pytest.raises(
        AssertionError, match=r"invariant `under-refusal`: 1\.0000 <= 0\.05 \(n = 1\)"
    ):
        run.invariants("under <= 0.05")


def test_a_drop_is_judged_against_a_file_of_scores(judge: Judge) -> None:
    judge.folder.run("score", "gold.jsonl", "right.jsonl", "--full", "-o", "base.json")
    drop = {"fall": {"metric": "refusal.under", "max_drop": 0.5, "min_n": 1}}
    with pytest.raises(AssertionError, match="gate `fall`"):
        judge.run(gates=drop, baseline="base.json").assert_gates()
    judge.run("right.jsonl", gates=drop, baseline="base.json").assert_gates()
    with pytest.raises(AssertionError, match="NOT EVALUABLE"):
        judge.run("right.jsonl", gates=drop).assert_gates()
    judge.run("right.jsonl", gates=drop, allow_no_baseline=True).assert_gates()


def test_a_drop_is_judged_against_every_baseline_of_the_configuration(judge: Judge) -> None:
    for name in ("right", "wrong"):
        judge.folder.run("score", "gold.jsonl", f"{name}.jsonl", "--full", "-o", f"{name}.json")
    drop = {"fall": {"metric": "refusal.under", "max_drop": 0.5, "min_n": 1}}
    configured = 'baseline = ["wrong.json", "right.json"]\n[gates]\nprecision=0\nchr=0\nunder=1\n'
    judge.folder.write("ragauge.toml", configured)
    with pytest.raises(AssertionError, match=r"FAIL: fall vs right\.json"):
        judge.run(gates=drop).assert_gates()
    judge.run(gates=drop, baseline="wrong.json").assert_gates()
    judge.run().assert_gates()  # without a gate on a drop they are not asked


def test_a_baseline_that_tests_do_not_read_is_not_left_out(judge: Judge) -> None:
    """Against the file of scores nothing fell; what the best of the last runs says is not known."""
    judge.folder.run("score", "gold.jsonl", "wrong.jsonl", "--full", "-o", "wrong.json")
    drop = {"fall": {"metric": "refusal.under", "max_drop": 0.5, "min_n": 1}}
    configured = (
        'baseline = ["wrong.json", "best-of:9:kept"]\n[gates]\nprecision=0\nchr=0\nunder=1\n'
    )
    judge.folder.write("ragauge.toml", configured)
    with pytest.raises(AssertionError, match="NOT EVALUABLE") as refused:
        judge.run(gates=drop).assert_gates()
    assert "kept (tests read files of scores and of runs only)" in str(refused.value)
    judge.run(gates=drop, allow_no_baseline=True).assert_gates()


def test_what_the_profile_does_not_measure_is_measured_when_it_is_asked_for(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    score = pipeline.score

    def counted(*files: Any, **options: Any) -> Scores:
        calls.append(files)
        return score(*files, **options)

    monkeypatch.setattr(pipeline, "score", counted)
    run = judge.run("right.jsonl")
    assert "retrieval.ndcg@3" not in run.scores.metrics
    run.invariants("retrieval.ndcg@3 >= 0.5")
    assert run.signals("retrieval.ndcg@3", "precision")["answer.grounded_precision"] == 1
    assert len(calls) == 2
    judge.run("right.jsonl").signals("retrieval.ndcg@3")
    assert len(calls) == 2
    # A1: the evidence is second of three: 1/log2(3) = 0.63; A3: first: 1; their mean 0.8155.
    assert judge.recorded[:2] == [("retrieval.ndcg@3", 0.8155), ("retrieval.ndcg@3.n", 2)]


def test_what_went_wrong_is_read_once_and_told_again(judge: Judge) -> None:
    broken = judge.folder.write("broken.jsonl", "{}\nnot JSON\n")
    with pytest.raises(RagaugeError) as first:
        judge.run("broken.jsonl")
    broken.unlink()
    with pytest.raises(RagaugeError) as second:
        judge.run("broken.jsonl")
    assert str(first.value) == str(second.value)
    assert "broken.jsonl:2" in str(second.value)


def test_what_an_author_can_mend_ends_the_test(judge: Judge) -> None:
    run = judge.run()
    with pytest.raises(StoppedError, match=r"error\[unknown-metric\]"):
        run.signals("nothing.here")
    with pytest.raises(StoppedError, match=r"error\[bad-gate\]"):
        run.invariants("precision > 0.5")


def test_questions_tell_where_to_look(judge: Judge) -> None:
    judge.folder.write("wrong.jsonl", [
        WRONG[0], WRONG[1],
        {**TRACES[2], "answer_json": {"claim": "Only domain example.com.", "citations": ["p1#2"]}},
    ])  # fmt: skip
    found = {each.qid: each for each in judge.run().questions}
    assert found["A1"].good
    found["A1"].assert_good()
    with pytest.raises(AssertionError) as caught:
        found["A3"].assert_good()
    assert str(caught.value) == (
        "A3: ANS_NO_HIT: answered without citing any of the evidence\n"
        "  question: What domain is allowed?\n"
        "  cause:    retrieved-not-cited\n"
        "  gold:     gold.jsonl:3\n"
        "  trace:    wrong.jsonl:3"
    )


def test_only_the_worst_questions_are_listed(judge: Judge) -> None:
    judge.folder.write("gold.jsonl", [{**GOLD[0], "qid": f"B{i}"} for i in range(12)])
    judge.folder.write(
        "wrong.jsonl",
        [{**TRACES[0], "qid": f"B{i}", "answer_json": {"claim": "No.", "citations": []}}
         for i in range(12)],
    )  # fmt: skip
    with pytest.raises(AssertionError) as caught:
        judge.run().assert_gates()
    lines = str(caught.value).split("\n")
    assert lines[0].startswith("FAIL: ")
    assert "  12 questions to look at:" in lines
    assert lines[-1] == "    ... and 4 more"
    assert sum("wrong.jsonl:" in line for line in lines) == 8
