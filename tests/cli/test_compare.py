"""`ragauge compare`, and `gate` on stored runs: what users see, and the exit codes."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from ragauge import RagaugeError, compare_runs, keep_run, opened_store
from tests.support.command import Folder

Row = dict[str, Any]

GOLD: list[Row] = [
    {
        "id": f"q{i}",
        "query": f"question {i}?",
        "expected_chunk_ids": [f"c{i}"],
        "expected_doc_ids": [f"d{i}"],
    }
    for i in (1, 2, 3)
]


def results(ranks: tuple[int | None, ...], **more: Any) -> list[Row]:
    """Query results of the kb evaluation with the expected chunk at some ranks (None: a miss)."""
    rows = []
    for number, rank in enumerate(ranks, 1):
        hits = [
            {
                "rank": place,
                "chunk_id": f"c{number}" if place == rank else f"x{number}-{place}",
                "doc_id": f"d{number}" if place == rank else "other",
            }
            for place in range(1, 6)
        ]
        rows.append(
            {"query_id": f"q{number}", "query": f"question {number}?", "hits_top_k": hits, **more}
        )
    return rows


@pytest.fixture
def runs(folder: Folder) -> Folder:
    """The two runs of the kb evaluation's own example, stored."""
    folder.write("gold.json", json.dumps(GOLD))
    folder.write("a.jsonl", results((1, 4, None)))
    folder.write("b.jsonl", results((2, 1, 1)))
    for name in ("a", "b"):
        outcome = folder.run("score", "gold.json", f"{name}.jsonl", "--run-id", name, "--store")
        assert outcome.exit_code == 0, outcome.err
    return folder


def document(folder: Folder, *arguments: str, code: int = 0) -> dict[str, Any]:
    outcome = folder.run("compare", *arguments, "--format", "json")
    assert outcome.exit_code == code, outcome.err
    found: dict[str, Any] = json.loads(outcome.out)
    return found


def test_the_example_of_the_kb_evaluation(runs: Folder) -> None:
    found = document(runs, "a", "b")
    assert found["schema"] == "ragauge.compare/2"
    assert (found["run_a"], found["run_b"]) == ("a", "b")
    hit, mrr = found["deltas"]["retrieval.hit@1"], found["deltas"]["retrieval.mrr@10"]
    assert (hit["a"], hit["b"], hit["delta"]) == (0.3333, 0.6667, 0.3333)  # 1/3 → 2/3
    # (1 + 1/4 + 0) / 3 → (1/2 + 1 + 1) / 3
    assert (mrr["a"], mrr["b"], mrr["delta"]) == (0.4167, 0.8333, 0.4167)
    assert found["aggregate_b"]["retrieval.hit@3"]["value"] == 1
    kinds = found["kinds"]["retrieval"]
    assert {kind: n for kind, n in kinds.items() if n} == {"loss": 1, "win": 2}  # fmt: skip
    kinds = [
        (each["query_id"], each["kind"], each["a_hit_rank"], each["b_hit_rank"], each["note"])
        for each in found["per_query"]
    ]
    assert kinds == [
        ("q1", "loss", 1, 2, "rank 1→2"),
        ("q2", "win", 4, 1, "rank 4→1"),
        ("q3", "win", None, 1, "miss→hit"),
    ]
    assert found["deltas"]["chunker_version_match"] == "unproven"
    assert found["deltas"]["rungs"]["exact"] == 3


def test_stored_runs_trace_files_and_scores_files_tell_the_same(runs: Folder) -> None:
    stored = document(runs, "a", "b")
    files = document(runs, "a.jsonl", "b.jsonl", "--gold", "gold.json")
    mixed = document(runs, "a", "b.jsonl", "--gold", "gold.json")
    for name in ("a", "b"):
        outcome = runs.run("score", "gold.json", f"{name}.jsonl", "--full", "-o", f"{name}.json")
        assert outcome.exit_code == 0
    saved = document(runs, "a.json", "b.json")
    for other in (files, mixed, saved):
        assert {**other["deltas"], "chunker_version_match": 0, "rungs": 0, "ids": 0} == {
            **stored["deltas"], "chunker_version_match": 0, "rungs": 0, "ids": 0,
        }  # fmt: skip
        assert other["kinds"] == stored["kinds"]
    assert files["deltas"]["chunker_version_match"] == "unproven"
    assert saved["deltas"]["chunker_version_match"] is None, "scores hold no hits"
    assert "hold no hits" in saved["notes"][0]


def test_a_cut_off_that_is_no_number_is_a_usage_error(runs: Folder) -> None:
    files = ("a.jsonl", "b.jsonl", "--gold", "gold.json")
    outcome = runs.run("compare", *files, "--k", "five")
    assert (outcome.exit_code, outcome.codes) == (2, {"usage"})


def test_a_comparison_is_the_same_bytes_every_time(runs: Folder) -> None:
    first = runs.run("compare", "a", "b", "--format", "json").out
    assert runs.run("compare", "a", "b", "--format", "json").out == first
    assert runs.run("compare", "a", "b", "--format", "json", "--workers", "2").out == first


@pytest.mark.parametrize(
    ("turned", "fail_on", "code"),
    [
        (False, (), 0),
        (False, ("regression",), 0),  # one loss, no regression
        (False, ("loss",), 1),
        (True, ("regression",), 1),  # q3 goes from rank 1 to a miss
        (True, ("loss",), 1),
        (True, (), 0),
    ],
)
def test_fail_on_decides_the_exit_code(
    runs: Folder, turned: bool, fail_on: tuple[str, ...], code: int
) -> None:
    names = ("b", "a") if turned else ("a", "b")
    flags = [word for each in fail_on for word in ("--fail-on", each)]
    assert runs.run("compare", *names, *flags).exit_code == code


def test_a_drop_gate_decides_the_exit_code_and_holm_counts_gated_metrics(runs: Folder) -> None:
    runs.write(
        "ragauge.toml",
        '[gates]\n"retrieval.hit@1" = { max_drop = 0.02, min_n = 1 }\n'
        '"retrieval.mrr@10" = { max_drop = 1.0, min_n = 1 }\n'
        '"retrieval.hit@5" = { threshold = 0.1, min_n = 1 }\n',
    )
    assert document(runs, "a", "b")["verdict"]["status"] == "pass"
    found = document(runs, "b", "a", code=1)
    assert found["verdict"]["gates"][0]["value"] == 0.3333
    gated = {
        name: each
        for name, each in found["deltas"].items()
        if isinstance(each, dict) and each.get("gated")
    }
    assert set(gated) == {"retrieval.hit@1", "retrieval.mrr@10"}
    for each in gated.values():
        assert each["p_holm"] >= each["p"]
    ungated = found["deltas"]["retrieval.hit@3"]
    assert ungated["p_holm"] is None
    assert ungated["test"] == "mcnemar"


def test_regressions_come_first_in_text(runs: Folder) -> None:
    printed = runs.run("compare", "b", "a").out
    assert printed.index("retrieval regressions (1)") < printed.index("retrieval losses (1)")
    assert printed.index("retrieval losses (1)") < printed.index("retrieval wins (1)")


def test_the_report_goes_below_the_runs_folder(runs: Folder) -> None:
    outcome = runs.run("compare", "a", "b", "--write-report", "--runs-dir", "kept", "-o", "c.json")
    assert outcome.exit_code == 0
    assert (runs.path / "kept" / "b" / "report.md").read_text("utf-8").startswith("# ragauge: a")
    assert json.loads((runs.path / "c.json").read_text("utf-8"))["run_b"] == "b"


def test_missing_and_errored_questions_are_no_draws_and_stay_in_the_mean(runs: Folder) -> None:
    rows = results((None, 4, None))
    rows[0] = {"query_id": "q1", "query": "question 1?", "hits_top_k": [], "error": "timeout"}
    runs.write("c.jsonl", rows[:2])  # q1 errored, q3 missing; both are misses in a or hits
    assert runs.run("score", "gold.json", "c.jsonl", "--run-id", "c", "--store").exit_code == 0
    found = document(runs, "a", "c")
    kinds = {each["query_id"]: (each["kind"], each["note"]) for each in found["per_query"]}
    assert kinds["q1"] == ("regression", "no result in run b; hit→miss")
    assert kinds["q2"] == ("draw", None)
    assert kinds["q3"] == ("loss", "no result in run b")  # a miss before, and now not even that
    assert (found["runs"]["b"]["missing"], found["runs"]["b"]["errored"]) == (1, 1)
    hit = found["deltas"]["retrieval.hit@5"]
    assert (hit["a"], hit["b"], hit["n"]) == (0.6667, 0.3333, 3)  # 2 of 3, 1 of 3: all three count
    both = document(runs, "c", "c")
    assert {each["query_id"]: each["kind"] for each in both["per_query"]} == {
        "q1": None, "q2": "draw", "q3": None,
    }  # fmt: skip


def test_an_answer_that_was_right_and_is_not_there_any_more_counts_as_wrong(
    folder: Folder,
) -> None:
    gold = [{**item, "must_contain": ["blue"]} for item in GOLD]
    folder.write("gold.json", json.dumps(gold))
    answer = {"answer": {"answer": "It is blue.", "grounded": True, "citations": []}}
    folder.write("a.jsonl", results((1, 1, 1), **answer))
    rows = results((1, 1, 1), **answer)
    rows[2] = {"query_id": "q3", "hits_top_k": [], "error": "out of memory"}
    folder.write("b.jsonl", rows)
    for name in ("a", "b"):
        folder.run("score", "gold.json", f"{name}.jsonl", "--run-id", name, "--store")
    found = document(folder, "a", "b")
    delta = found["deltas"]["answer.groundedness"]
    assert (delta["a"], delta["b"], delta["n"]) == (1, 0.6667, 3)
    assert "counted as the worst" in delta["reason"]
    assert found["kinds"]["answer"]["regression"] == 1


def test_different_gold_sets_compare_on_common_unchanged_items(runs: Folder) -> None:
    changed = [GOLD[0], {**GOLD[1], "expected_chunk_ids": ["c9"]}, {**GOLD[2], "id": "q4"}]
    runs.write("other.json", json.dumps(changed))
    assert runs.run("score", "other.json", "b.jsonl", "--run-id", "c", "--store").exit_code == 0
    found = document(runs, "a", "c")
    assert found["left_out"] == {"gold-changed": 1, "only-in-a": 1, "only-in-b": 1}
    assert [each["query_id"] for each in found["per_query"]] == ["q1"]
    assert found["counted"] == 1
    runs.write("none.json", json.dumps([{**item, "query": "else?"} for item in GOLD]))
    runs.run("score", "none.json", "b.jsonl", "--run-id", "d", "--store")
    outcome = runs.run("compare", "a", "d")
    assert (outcome.exit_code, outcome.problems[0].code) == (4, "nothing-in-common")


def test_runs_scored_by_different_rules_are_scored_again_by_those_of_b(runs: Folder) -> None:
    runs.run("score", "gold.json", "b.jsonl", "--run-id", "wide", "--store", "--k", "2")
    found = document(runs, "a", "wide")
    assert "scored by different k" in found["notes"][0]
    assert found["deltas"]["retrieval.hit@2"]["a"] == 0.3333
    assert found["deltas"]["retrieval.hit@1"]["b"] == 0.6667  # also what only run a was asked for


def test_strict_chunker_version_refuses(runs: Folder) -> None:
    for name, version in (("v1", "md-1"), ("v2", "md-2")):
        rows = results((1, 2, 3))
        for row in rows:
            for hit in row["hits_top_k"]:
                hit["chunker_version"] = version
        runs.write(f"{name}.jsonl", rows)
        runs.run("score", "gold.json", f"{name}.jsonl", "--run-id", name, "--store")
    found = document(runs, "v1", "v2")
    assert found["deltas"]["chunker_version_match"] == "fallback_doc"
    assert found["causes"][0]["about"] == "chunker"
    assert found["kinds"]["retrieval"]["undecided"] == 3
    # The source's kind stays, and is not certain: the document may hide a loss.
    assert {(each["kind"], each["certain"]) for each in found["per_query"]} == {("draw", False)}
    outcome = runs.run("compare", "v1", "v2", "--strict-chunker-version")
    assert (outcome.exit_code, outcome.problems[0].code) == (4, "chunker-mismatch")
    outcome = runs.run("compare", "a", "b", "--strict-chunker-version")
    assert (outcome.exit_code, outcome.problems[0].code) == (4, "chunker-mismatch")  # bare ids


def test_a_corrupt_row_is_counted_and_listed_and_not_the_end(runs: Folder) -> None:
    with sqlite3.connect(runs.path / "ragauge.db") as database:
        database.execute(
            "UPDATE eval_query_results SET result_json = x'00ff' WHERE run_id = 'b' AND ordinal = 1"
        )
    outcome = runs.run("rescore", "b")
    assert outcome.exit_code == 0, outcome.err
    runs.write("least.toml", '"hit@1" = { threshold = 0.1, min_n = 1 }\n')
    shown = runs.run("gate", "b", "--gates", "least.toml")
    assert shown.exit_code == 4
    assert "skipped-lines" in shown.out + shown.err or "1 bad line" in shown.out + shown.err
    runs.write("other.json", json.dumps(GOLD[:2]))
    runs.run("score", "other.json", "a.jsonl", "--run-id", "few", "--store")
    found = document(runs, "few", "b")
    assert "1 result of run b could not be read" in found["notes"]
    kinds = {each["query_id"]: each["kind"] for each in found["per_query"]}
    assert kinds["q2"] == "regression"  # no result that can be read is a miss, not a draw


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (("compare", "a", "nothing"), 2, "unknown-run"),
        (("compare", "a", "no-such.jsonl", "--gold", "gold.json"), 2, "file-not-found"),
        (("compare", "a", "./no-such", "--gold", "gold.json"), 2, "file-not-found"),
        (("compare", "a", "b", "--format", "nothing"), 2, "unknown-name"),
        (("compare", "a", "b", "-o", "x.pdf"), 2, "usage"),
        (("compare", "a", "b", "--store", "mysql://x/y"), 2, "bad-store-url"),
        (("compare", "a", "b", "--store", "sqlite:///none.db"), 2, "store-unavailable"),
        (("compare", "a.jsonl", "b.jsonl"), 3, "bad-scores"),
        (("gate", "nothing"), 2, "unknown-run"),
        (("score", "gold.json", "a.jsonl", "--store", "--run-id", "a"), 2, "run-exists"),
        (("score", "gold.json", "--store", "a.jsonl"), 2, "usage"),
        (("score", "gold.json", "a.jsonl", "--run-id", "z"), 2, "usage"),
        (("score", "gold.json", "a.jsonl", "--store", "--tag", "latest"), 2, "usage"),
        (("score", "gold.json", "a.jsonl", "--snapshot", "no.json", "--store"), 2,
         "file-not-found"),
    ],
)  # fmt: skip
def test_wrong_names_are_clear_errors(
    runs: Folder, arguments: tuple[str, ...], code: int, error: str
) -> None:
    outcome = runs.run(*arguments)
    assert (outcome.exit_code, outcome.problems[0].code) == (code, error), outcome.err


def test_gates_judge_stored_runs_against_stored_baselines(runs: Folder) -> None:
    assert runs.run("baseline", "set", "a").exit_code == 0
    gates = "g.toml"
    runs.write(gates, '[gates]\n"retrieval.hit@1" = { max_drop = 0.02, min_n = 1 }\n')
    assert runs.run("gate", "b", "--gates", gates, "--baseline", "baseline").exit_code == 0
    outcome = runs.run("gate", "a", "--gates", gates, "--baseline", "b")
    assert outcome.exit_code == 1
    assert "0.6667 in the baseline, 0.3333 now" in " ".join(outcome.out.split())
    missing = runs.run("gate", "a", "--gates", gates)
    assert missing.exit_code == 4  # a drop without a baseline is not evaluable
    stored = runs.run(
        "score", "gold.json", "a.jsonl", "--gates", gates, "--baseline", "b", "--store"
    )
    assert stored.exit_code == 1


def test_a_baseline_under_other_chunks_is_no_drop(runs: Folder) -> None:
    """Drop gates on stored runs climb the same ladder as a comparison."""
    gold = [
        {"qid": f"q{i}", "question": f"question {i}?", "relevant": [f"old-{i}"]} for i in (1, 2)
    ]
    runs.write("gold.jsonl", gold)
    for name, size in (("old", 200), ("new", 100)):
        rows = []
        for i in (1, 2):
            hits = [
                {
                    "id": f"{name}-{i if size == 200 else 10 * i + part}",
                    "doc": f"d{i}",
                    "offsets": [part * size, (part + 1) * size],
                    "chunker_version": name,
                }
                for part in range(200 // size)
            ]
            rows.append({"qid": f"q{i}", "topk": hits})
        runs.write(f"{name}.jsonl", rows)
        runs.run("score", "gold.jsonl", f"{name}.jsonl", "--run-id", name, "--store")
    gates = "g.toml"
    runs.write(gates, '[gates]\n"retrieval.hit@5" = { max_drop = 0.0, min_n = 1 }\n')
    outcome = runs.run("gate", "new", "--gates", gates, "--baseline", "old")
    assert outcome.exit_code == 0, outcome.out
    runs.write("least.toml", '"hit@5" = { threshold = 1.0, min_n = 1 }\n')
    plain = runs.run("gate", "new", "--gates", "least.toml")
    assert plain.exit_code == 1  # by ids alone nothing is found any more


def test_the_self_test_says_how_often_a_gate_flips(runs: Folder) -> None:
    hit_gate = '"hit@1" = { threshold = 0.5, min_n = 1 }\n'
    runs.write("hit.toml", hit_gate)
    runs.write("both.toml", f"{hit_gate}mrr = {{ threshold = 0.0, min_n = 1 }}\n")
    outcome = runs.run("gate", "b", "--gates", "both.toml", "--self-test", "--format", "json")
    assert outcome.exit_code == 0
    hit, mrr = json.loads(outcome.out)["gates"]
    # 2 of 3 hit; a resample is below one half with at most one hit: 1/27 + 3·(2/3)(1/9) = 7/27
    assert hit["flips"] == pytest.approx(7 / 27, abs=0.02)
    assert mrr["flips"] == 0
    assert "decides by chance" in runs.run("gate", "b", "--gates", "hit.toml", "--self-test").out


def test_secrets_do_not_reach_the_store(runs: Folder) -> None:
    runs.write(
        "system.json",
        json.dumps(
            {
                "llm": {"api_key": "sk-verysecretvalue1234567890", "model_id": "m1"},
                "index": "postgresql://me:hunter2@host/db",
            }
        ),
    )
    outcome = runs.run(
        "score", "gold.json", "a.jsonl", "--store", "--run-id", "s", "--snapshot", "system.json"
    )
    assert outcome.exit_code == 0
    whole = b"".join(each.read_bytes() for each in Path(runs.path).glob("ragauge.db*"))
    assert b"verysecret" not in whole
    assert b"hunter2" not in whole
    assert b"m1" in whole


def test_the_same_from_python(runs: Folder) -> None:
    with opened_store("sqlite:///ragauge.db") as store:
        found = compare_runs(store, "a", "b")
        assert found.kinds == {
            "regression": 0,
            "mixed": 0,
            "undecided": 0,
            "loss": 1,
            "win": 2,
            "draw": 0,
        }
        keep_run(store, "gold.json", "b.jsonl", run_id="c", system={"api_key": "sk-1234567890abc"})
        changed = compare_runs(store, "b", "c")
        assert {each.kind for each in changed.per_query} == {"draw"}
        runs.write("none.jsonl", [{"query_id": "q9", "hits_top_k": []}])
        with pytest.raises(RagaugeError) as error:
            keep_run(store, "gold.json", "none.jsonl", run_id="d")
        assert error.value.code == "nothing-measured"
        assert store.run("d") is None


def test_a_changed_gold_set_is_among_the_causes(runs: Folder) -> None:
    runs.write("other.json", json.dumps([GOLD[0], {**GOLD[1], "query": "else?"}, GOLD[2]]))
    runs.run("score", "other.json", "b.jsonl", "--run-id", "c", "--store")
    assert "gold" in {each["about"] for each in document(runs, "a", "c")["causes"]}


# A ship run: the evidence falls from rank 1 to rank 2.
SHIP_GOLD: list[Row] = [
    {"qid": f"Q{n}", "question": "?", "answerable": True, "gold_claim_substr": ["within"],
     "gold_citations": [f"p#{n}"]}
    for n in range(3)
]  # fmt: skip


def ship_traces(*, worse: bool) -> list[Row]:
    return [
        {"qid": f"Q{n}", "retrieved_ids": ["x", f"p#{n}"] if worse else [f"p#{n}", "x"],
         "answer_json": {"claim": "within a day", "citations": [f"p#{n}"]}}
        for n in range(3)
    ]  # fmt: skip


def test_files_of_scores_tell_questions_apart_by_rank(folder: Folder) -> None:
    """Also under a profile that measures no rank; what is printed beside does not change."""
    folder.write("gold.jsonl", SHIP_GOLD)
    for name, worse in (("a", False), ("b", True)):
        folder.write(f"{name}.jsonl", ship_traces(worse=worse))
        folder.run("score", "gold.jsonl", f"{name}.jsonl", "--full", "-o", f"{name}.json")
    outcome = folder.run("compare", "a.json", "b.json", "--fail-on", "loss", "--format", "json")
    assert outcome.exit_code == 1
    found = json.loads(outcome.out)
    assert found["kinds"]["retrieval"]["loss"] == 3
    assert [(each["a_hit_rank"], each["b_hit_rank"]) for each in found["per_query"]] == [(1, 2)] * 3
    saved = json.loads((folder.path / "b.json").read_text())
    assert [each["reciprocal"] for each in saved["questions"]] == [0.5] * 3
    assert not any("999999999" in name for name in saved["metrics"])
    assert not any("999999999" in name for name in saved["questions"][0]["values"])


def test_files_without_ranks_are_not_let_through(folder: Folder) -> None:
    """Saved by an earlier version: a demand on questions cannot be judged, and says so."""
    folder.write("gold.jsonl", SHIP_GOLD)
    for name, worse in (("a", False), ("b", True)):
        folder.write(f"{name}.jsonl", ship_traces(worse=worse))
        folder.run("score", "gold.jsonl", f"{name}.jsonl", "--full", "-o", f"{name}.json")
        saved = json.loads((folder.path / f"{name}.json").read_text())
        for each in saved["questions"]:
            del each["reciprocal"]
        folder.write(f"{name}.json", json.dumps(saved))
    refused = folder.run("compare", "a.json", "b.json", "--fail-on", "loss")
    assert refused.exit_code == 4
    assert "error[incomparable]: --fail-on cannot be judged" in refused.err
    told = folder.run("compare", "a.json", "b.json")
    assert told.exit_code == 0
    assert "retrieval: not compared question by question" in told.out


def test_a_question_of_several_slots_has_no_one_rank(folder: Folder) -> None:
    """Both seeds hit at rank 1 or 2: that is a mean, and no miss."""
    folder.write("gold.jsonl", [{"qid": "Q", "question": "?", "relevant": ["x"]}])
    for name, second in (("a", ["x"]), ("b", ["y", "x"])):
        rows = [{"qid": "Q", "seed": 1, "hits": ["x"]}, {"qid": "Q", "seed": 2, "hits": second}]
        folder.write(f"{name}.jsonl", rows)
    files = ("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--profile", "all", "--full")
    told = folder.run(*files).out
    # 1 and 1 are 1.0 in the mean; 1 and 1/2 are 0.75
    assert "RR 1.0000" in told
    assert "RR 0.7500" in told
    assert " miss " not in told


def test_an_answer_that_never_came_has_no_time(folder: Folder) -> None:
    """A question without a result is the worst in all that has a worst; a time has none."""
    folder.write(
        "gold.jsonl", [{"qid": f"Q{n}", "question": "?", "relevant": ["x"]} for n in range(3)]
    )
    rows = [{"qid": f"Q{n}", "hits": ["x"], "latency_ms": 100.0 + n} for n in range(3)]
    folder.write("a.jsonl", [*rows[:2], {"qid": "Q2", "error": "timeout"}])
    folder.write("b.jsonl", rows)
    files = ("a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--profile", "all")
    found = document(folder, *files)
    delta = found["deltas"]["latency.total_ms"]
    assert (delta["a"], delta["b"], delta["n"]) == (100.5, 100.5, 2)
    assert found["deltas"]["retrieval.hit@1"]["a"] == pytest.approx(2 / 3, abs=1e-4)


@pytest.mark.parametrize("profile", ["ship", "smoke", "all"])
def test_scores_are_no_traces_where_the_project_names_its_gold(
    folder: Folder, profile: str
) -> None:
    """The names that are a profile's own stand before the schema in its scores."""
    for name in ("a", "b"):
        options = ("--profile", profile, "--full", "-o", f"{name}.json")
        assert folder.score(None, *options).exit_code == 0
    folder.write("ragauge.toml", 'gold = "gold.jsonl"\n')
    outcome = folder.run("compare", "a.json", "b.json")
    assert outcome.exit_code == 0, outcome.err
