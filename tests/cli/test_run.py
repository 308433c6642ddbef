"""`ragauge run`: what is stored and judged, how runs are resumed, and what is refused."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragauge.cli.run import progress_line
from ragauge.model.payloads import thaw
from ragauge.run.ask import Progress
from ragauge.store.databases.sqlite import SqliteStore
from ragauge.targets.python import PythonTarget
from tests.support.command import GOLD, TRACES, Folder, Outcome, Row

# Answers as the traces do; `fails` names ids that raise, one a line, and `asked` lists the calls.
SYSTEM = """
import json
from pathlib import Path

TRACES = {row["qid"]: row for row in map(json.loads, Path("trace.jsonl").read_text().splitlines())}

def answer(qid, question, seed=None, turn=None, history=(), k=None, paraphrase=None):
    with open("asked", "a") as file:
        file.write(f"{qid} {paraphrase} {seed} {turn} {len(history)} {k}\\n")
    if qid in Path("fails").read_text().split():
        raise ValueError("no index")
    return TRACES.get(qid, {"hits": [qid], "answer": f"{question}!"})
"""
RUN = ("run", "--gold", "gold.jsonl", "--target", "python:system:answer", "--run-id", "one")
REPORT = ("--format", "json", "--full")
STEADY = ("--no-timing", *REPORT)


@pytest.fixture
def system(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1794733200")
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES)
    folder.write("fails", b"")
    folder.write("system.py", SYSTEM)
    return folder


def asked(folder: Folder) -> list[str]:
    """What was asked since the last look."""
    path = folder.path / "asked"
    lines = sorted(path.read_text().splitlines()) if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def stored(folder: Folder, run_id: str = "one", name: str = "ragauge.db") -> dict[str, Any]:
    """All that a store holds of a run, unpacked; names and times of the run itself apart."""
    with closing(sqlite3.connect(folder.path / name)) as database:
        run = database.execute(
            "SELECT status, aggregate_json, gold_hash, gold_key, results, evidence FROM eval_runs"
            " WHERE run_id = ?", (run_id,),
        ).fetchone()  # fmt: skip
        results = database.execute(
            "SELECT ordinal, query_id, paraphrase, seed, turn, hit_rank, carries, outcome, delta_s,"
            " latency_ms, metric_values, result_json FROM eval_query_results WHERE run_id = ?"
            " ORDER BY ordinal", (run_id,),
        ).fetchall()  # fmt: skip
        values = database.execute(
            "SELECT * FROM eval_metric_values WHERE run_id = ? ORDER BY position", (run_id,)
        ).fetchall()
    unpacked = [(*row[:-1], json.loads(thaw(row[-1]))) for row in results]
    return {"run": run, "results": unpacked, "values": values}


def status(folder: Folder, run_id: str = "one") -> str:
    return str(stored(folder, run_id)["run"][0])


def problem(outcome: Outcome) -> tuple[str, str]:
    assert outcome.problems, outcome
    return outcome.problems[0].code, outcome.problems[0].message


def test_a_run_is_scored_as_if_its_answers_were_a_file(system: Folder) -> None:
    done = system.run(*RUN, *STEADY)
    assert done.exit_code == 0, done.err
    assert done.err.startswith("stored 3 results as one in sqlite:///ragauge.db\n")
    scored = system.run("score", "gold.jsonl", "trace.jsonl", "--full", "--format", "json")
    ours, theirs = json.loads(done.out), json.loads(scored.out)
    assert ours["metrics"] == theirs["metrics"]
    assert ours["verdict"] == theirs["verdict"]
    assert ours["counts"] == theirs["counts"]


def test_a_run_is_stored_as_score_stores_it(system: Folder) -> None:
    system.run(*RUN, *STEADY)
    system.run("score", "gold.jsonl", "trace.jsonl", "--run-id", "two", "--full", "--store")
    ours, theirs = stored(system), stored(system, "two")
    facts = [(*row[:11],) for row in ours["results"]]
    assert facts == [(*row[:11],) for row in theirs["results"]]
    assert ours["run"][2:] == theirs["run"][2:]
    assert [row[2:] for row in ours["values"]] == [row[2:] for row in theirs["values"]]
    compared = system.run("compare", "one", "two", "--format", "json")
    assert json.loads(compared.out)["deltas"]["chunker_version_match"] in ("unproven", "none")


def test_a_failed_gate_fails_the_run(system: Folder) -> None:
    wrong = {**TRACES[1], "answer_json": {"claim": "Z is a city.", "citations": ["p1#1"]}}
    system.write("trace.jsonl", [TRACES[0], wrong, TRACES[2]])
    done = system.run(*RUN, "--gates", "precision=0.9")
    assert done.exit_code == 1
    assert status(system) == "complete"


def test_errors_are_recorded_and_keep_the_gates_from_passing(system: Folder) -> None:
    system.write("fails", "A3")
    done = system.run(*RUN, "--profile", "all", "--gates", "precision=0", *STEADY)
    assert done.exit_code == 4
    assert "stored 3 results as one in sqlite:///ragauge.db, 1 of them errors" in done.err
    rows = stored(system)["results"]
    assert [row[7] for row in rows] == ["ok", "ok", "errored"]
    assert rows[2][-1]["error"] == "ValueError: no index"


def test_errors_are_asked_again_and_the_run_is_as_if_there_had_been_none(system: Folder) -> None:
    system.write("fails", "A1 A3")
    system.run(*RUN, *STEADY)
    system.write("fails", "A3")
    asked(system)
    done = system.run("run", "--resume", "one", "--retry-errors", *REPORT)
    assert [line.split()[0] for line in asked(system)] == ["A1", "A3"]
    assert [row[7] for row in stored(system)["results"]] == ["ok", "ok", "errored"]
    assert done.exit_code == 4  # with the answer to A3 it may pass, and may fail
    system.write("fails", "")
    done = system.run("run", "--resume", "one", "--retry-errors", *REPORT)
    assert (done.exit_code, [line.split()[0] for line in asked(system)]) == (0, ["A3"])
    system.run(*RUN[:-1], "two", *STEADY)
    assert {**stored(system), "values": 0} == {**stored(system, "two"), "values": 0}


def test_a_retried_turn_is_followed_by_the_turns_after_it(system: Folder) -> None:
    rows: list[Row] = [
        {"qid": qid, "turn": turn, "question": f"{qid}{turn}", "relevant": [qid]}
        for qid in ("C", "D")
        for turn in (1, 2, 3)
    ]
    system.write("gold.jsonl", rows)
    system.run(*RUN, "--profile", "all", *STEADY)
    whole = stored(system)
    assert asked(system) == [f"{q} None None {t} {t - 1} 10" for q in "CD" for t in (1, 2, 3)]
    with closing(sqlite3.connect(system.path / "ragauge.db")) as database:
        sql = "UPDATE eval_query_results SET outcome = 'errored' WHERE query_id = 'D' AND turn = 2"
        database.execute(sql)
        database.commit()
    system.run("run", "--resume", "one", "--retry-errors", *REPORT)
    assert asked(system) == ["D None None 2 1 10", "D None None 3 2 10"]
    assert stored(system) == whole


def test_seeds_and_paraphrases_are_slots_of_their_own(system: Folder) -> None:
    gold: list[Row] = [
        {"qid": "P", "paraphrases": ["a", "b"], "relevant": ["P"]},
        {"qid": "Q", "question": "q", "relevant": ["Q"]},
    ]
    system.write("gold.jsonl", gold)
    done = system.run(*RUN, "--seeds", "5,6", "--k", "3", "--profile", "all", *STEADY)
    assert done.exit_code == 0, done.err
    assert asked(system) == [
        "P 0 5 None 0 3", "P 0 6 None 0 3", "P 1 5 None 0 3", "P 1 6 None 0 3",
        "Q None 5 None 0 3", "Q None 6 None 0 3",
    ]  # fmt: skip
    assert [row[:5] for row in stored(system)["results"]] == [
        (0, "P", 0, "5", None), (1, "P", 0, "6", None), (2, "P", 1, "5", None),
        (3, "P", 1, "6", None), (4, "Q", None, "5", None), (5, "Q", None, "6", None),
    ]  # fmt: skip


def test_paraphrases_are_not_asked_where_traces_are_joined_by_the_question(system: Folder) -> None:
    system.write(
        "gold.jsonl", [{"qid": "P", "q": "a", "paraphrases": ["b", "c"], "gold_ids": ["P"]}]
    )
    done = system.run(*RUN, "--profile", "smoke", *STEADY)
    assert done.exit_code == 4, done.err  # a run of one question
    assert asked(system) == ["P None None None 0 10"]
    assert [row[7] for row in stored(system)["results"]] == ["ok"]


def test_a_target_that_became_another_is_not_gone_on_with(
    system: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PythonTarget, "about", {"index_hash": "a1", "size": (1, 2)})
    system.run(*RUN, *STEADY)
    cut(system, 0)
    monkeypatch.setattr(PythonTarget, "about", {"index_hash": "b2", "size": (1, 2)})
    done = system.run("run", "--resume", "one")
    told = "the run `one` was begun with another `index_hash` of its target: a1"
    assert problem(done) == ("cannot-resume", told)
    monkeypatch.setattr(PythonTarget, "about", {"index_hash": "a1", "size": (1, 2)})
    assert system.run("run", "--resume", "one").exit_code == 0


@pytest.mark.parametrize(
    ("options", "qids"),
    [
        (("--limit", "2"), ["A1", "A2"]),
        (("--filter", "qid~[13]"), ["A1", "A3"]),
        (("--filter", "qid~[13]", "--limit", "1"), ["A1"]),
        (("--filter", "tag=hard"), ["A2"]),
    ],
)
def test_a_part_of_the_gold_set_is_asked_and_scored(
    system: Folder, options: tuple[str, ...], qids: list[str]
) -> None:
    system.write("gold.jsonl", [GOLD[0], {**GOLD[1], "tags": ["hard"]}, GOLD[2]])
    done = system.run(*RUN, *options, *STEADY)
    assert [line.split()[0] for line in asked(system)] == qids
    document = json.loads(done.out)
    assert document["counts"]["missing"] == 0
    assert f"warning: {len(qids)} of 3 gold items were asked" in done.err


@pytest.mark.parametrize(
    ("options", "turns", "told"),
    [
        (("--filter", "tag=follow"), "123", "1 earlier turn of a conversation was asked too"),
        (("--limit", "1"), "123", "2 earlier turns of conversations were asked too"),
        (("--filter", "tag=open"), "1", None),
        (("--limit", "3"), "123", None),
    ],
)
def test_turns_before_those_that_are_chosen_are_asked_too(
    system: Folder, options: tuple[str, ...], turns: str, told: str | None
) -> None:
    rows: list[Row] = [
        {"qid": "C", "turn": turn, "question": f"C{turn}", "relevant": ["C"], "tags": [tag]}
        for turn, tag in ((3, "follow"), (1, "open"), (2, "follow"))
    ]
    system.write("gold.jsonl", [*rows, {**rows[0], "qid": "D", "turn": 1, "tags": []}])
    done = system.run(*RUN, "--profile", "all", *options, *STEADY)
    assert done.exit_code == 0, done.err
    assert asked(system) == [f"C None None {turn} {int(turn) - 1} 10" for turn in turns]
    assert f"warning: {len(turns)} of 4 gold items were asked" in done.err
    assert [line for line in done.err.splitlines() if "earlier" in line] == (
        [] if told is None else [f"warning: {told}"]
    )
    again = system.run("run", "--resume", "one", "--gold", "gold.jsonl")
    assert problem(again) == ("cannot-resume", "the run `one` is complete")


def test_nothing_to_ask_is_nothing_measured(system: Folder) -> None:
    done = system.run(*RUN, "--filter", "type=none")
    assert (done.exit_code, problem(done)[0]) == (5, "nothing-measured")
    assert not (system.path / "asked").exists()


def test_more_errors_than_allowed_leave_a_run_that_can_be_resumed(system: Folder) -> None:
    gold = [{"qid": f"F{n}", "question": f"{n}?", "relevant": [f"F{n}"]} for n in range(400)]
    system.write("gold.jsonl", gold)
    system.write("fails", " ".join(f"F{n}" for n in range(400)))
    done = system.run(*RUN, "--max-errors", "3", "--concurrency", "1", *STEADY)
    assert (done.exit_code, problem(done)[0]) == (4, "too-many-errors")
    assert "ragauge run --resume one --store sqlite:///ragauge.db" in done.problems[0].hint
    assert status(system) == "incomplete"
    system.write("fails", "")
    done = system.run("run", "--resume", "one", "--retry-errors", *REPORT)
    assert done.exit_code == 0, done.err
    system.run(*RUN[:-1], "two", *STEADY)
    assert stored(system)["results"] == stored(system, "two")["results"]
    assert stored(system)["run"] == stored(system, "two")["run"]


def cut(folder: Folder, *ordinals: int) -> None:
    """Make the stored run one that was stopped before some slots were answered."""
    with closing(sqlite3.connect(folder.path / "ragauge.db")) as database:
        database.execute("DELETE FROM eval_scorings")
        database.execute("DELETE FROM eval_metric_values")
        database.execute(
            "UPDATE eval_runs SET status = 'incomplete', results = 0, aggregate_json = '{}',"
            " evidence = x''"
        )
        database.execute("UPDATE eval_query_results SET metric_values = NULL")
        for ordinal in ordinals:
            database.execute("DELETE FROM eval_query_results WHERE ordinal = ?", (ordinal,))
        database.commit()


def test_a_run_goes_on_where_it_was_stopped(system: Folder) -> None:
    done = system.run(*RUN, *STEADY)
    whole = stored(system)
    asked(system)
    cut(system, 1)
    again = system.run("run", "--resume", "one", *REPORT)
    assert (again.exit_code, again.out, again.err) == (0, done.out, done.err)
    assert [line.split()[0] for line in asked(system)] == ["A2"]
    assert stored(system) == whole


def test_a_run_whose_results_are_all_there_is_only_scored(system: Folder) -> None:
    system.run(*RUN, *STEADY)
    whole = stored(system)
    asked(system)
    cut(system)
    assert system.run("run", "--resume", "one", *REPORT).exit_code == 0
    assert asked(system) == []
    assert stored(system) == whole


def test_what_is_said_again_must_be_what_the_run_was_begun_with(system: Folder) -> None:
    system.run(*RUN, "--seeds", "1", *STEADY)
    cut(system, 0)
    system.write("other.jsonl", GOLD[:2])
    resume = ("run", "--resume", "one")
    for options, message in {
        ("--target", "python:other:answer"): "the run `one` has the target `python:system:answer`,"
        " and the target `python:other:answer` was given",
        ("--k", "3"): "the run `one` has k 10, and k 3 was given",
        ("--seeds", "2"): "the run `one` has seeds (1,), and seeds (2,) was given",
        ("--gold", "other.jsonl"): "the run `one` was begun with another gold set than other.jsonl",
        ("--option", "a=b"): "the run `one` has options {}, and options {'a': 'b'} was given",
    }.items():
        assert problem(system.run(*resume, *options)) == ("cannot-resume", message)
    same = ("--gold", "gold.jsonl", "--target", "python:system:answer", "--k", "10", "--seeds", "1")
    assert system.run(*resume, *same).exit_code == 0


def test_runs_that_cannot_be_resumed_are_refused(system: Folder) -> None:
    system.run(*RUN, *STEADY)
    system.run("score", "gold.jsonl", "trace.jsonl", "--run-id", "two", "--store")
    resume = ("run", "--resume")
    done = system.run(*resume, "one")
    assert (done.exit_code, *problem(done)) == (2, "cannot-resume", "the run `one` is complete")
    assert done.problems[0].hint == "--retry-errors asks errors again"
    done = system.run(*resume, "one", "--retry-errors")
    assert done.problems[0].hint == "it has no errors either"
    told = ("cannot-resume", "the run `two` was not made by `ragauge run`")
    assert problem(system.run(*resume, "two")) == told
    assert problem(system.run(*resume, "three"))[0] == "unknown-run"


def test_a_run_is_stored_with_its_gold_set_or_not_at_all(
    system: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped between the two, it would be resumed with nothing to ask, and be complete."""

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SqliteStore, "_insert", stopped)  # the gold set is the first many rows
    assert system.run(*RUN, *STEADY).exit_code == 130
    monkeypatch.undo()
    monkeypatch.chdir(system.path)
    gone = ("unknown-run", "there is no run `one` in sqlite:///ragauge.db")
    assert problem(system.run("run", "--resume", "one")) == gone


def test_a_run_without_a_gold_set_is_not_resumed(system: Folder) -> None:
    """As an older ragauge may have left it."""
    system.write("fails", b"A1 A2 A3")
    system.run(*RUN, "--max-errors", "0")
    with closing(sqlite3.connect(system.path / "ragauge.db")) as database:
        database.execute("DELETE FROM eval_gold_items")
        database.commit()
    done = system.run("run", "--resume", "one")
    why = "the run `one` was stopped before its gold set was stored"
    assert (done.exit_code, *problem(done)) == (2, "cannot-resume", why)
    assert status(system) == "incomplete"


def test_a_secret_of_a_target_must_be_given_again(system: Folder) -> None:
    done = system.run(
        "run", "--gold", "gold.jsonl", "--target", "http://me:geheim@127.0.0.1:9/x", "--retries",
        "0", "--run-id", "one", "--no-timing", "--option", "header.X-Api-Key=geheim",
    )  # fmt: skip
    assert done.exit_code in (0, 1, 4)
    assert "geheim" not in done.err + done.out
    with closing(sqlite3.connect(system.path / "ragauge.db")) as database:
        assert not any("geheim" in line for line in database.iterdump())
    cut(system, 0)
    done = system.run("run", "--resume", "one")
    assert problem(done) == (
        "cannot-resume", "the run `one` has a secret in its address, which is not stored",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run",), "nothing to ask: give --gold FILE"),
        (("run", "--gold", "gold.jsonl"), "nothing to ask: give --target ADDRESS"),
        ((*RUN, "--rate", "fast"), "--rate takes a number"),
        ((*RUN, "--rate", "0/s"), "--rate takes a number"),
        ((*RUN, "--option", "x"), "--option takes NAME=VALUE"),
        ((*RUN, "--option", "x=1", "--option", "x=2"), "each name once"),
        ((*RUN, "--retry-errors"), "--retry-errors goes with --resume RUN"),
        ((*RUN, "--cutoffs", "x"), "--cutoffs takes whole numbers"),
        ((*RUN, "--seeds", "x"), "seeds are whole numbers"),
        ((*RUN, "--filter", "x"), "`x` is no filter"),
        (("run", "--resume", "one", "--limit", "3"), "--limit: a run that is resumed stays as it"),
        (("run", "--resume", "one", "--profile", "all"), "--profile: a run that is resumed"),
    ],
)
def test_usage_is_checked_before_anything_is_asked(
    system: Folder, arguments: tuple[str, ...], message: str
) -> None:
    done = system.run(*arguments)
    assert (done.exit_code, problem(done)[0]) == (2, "usage")
    assert message in problem(done)[1]
    assert not (system.path / "asked").exists()


def test_a_target_that_cannot_be_opened_leaves_no_run(system: Folder) -> None:
    done = system.run(*RUN[:3], "--target", "python:system:nothing", "--run-id", "one")
    assert (done.exit_code, problem(done)[0]) == (2, "bad-target")
    with closing(sqlite3.connect(system.path / "ragauge.db")) as database:
        assert database.execute("SELECT count(*) FROM eval_runs").fetchone() == (0,)


def test_an_id_that_is_taken_is_refused(system: Folder) -> None:
    system.run(*RUN)
    asked(system)
    done = system.run(*RUN)
    assert problem(done)[0] == "run-exists"
    assert asked(system) == []


def test_gold_that_is_at_odds_with_itself_is_refused_before_anything_is_asked(
    system: Folder,
) -> None:
    system.write("gold.jsonl", [GOLD[0], GOLD[0]])
    done = system.run(*RUN, "--profile", "all")
    assert (done.exit_code, problem(done)[0]) == (3, "duplicate-qid")
    system.write("gold.jsonl", [{"qid": "A1", "relevant": ["x"]}])
    done = system.run(*RUN, "--profile", "all")
    assert (done.exit_code, *problem(done)) == (
        3, "missing-field", "the item has no question to ask",
    )  # fmt: skip
    assert asked(system) == []


def test_suite_tags_snapshot_and_commit_are_kept(system: Folder) -> None:
    system.write("sys.json", '{"chunker": "v2"}')
    system.run(
        *RUN, "--suite", "nightly", "--tag", "new", "--snapshot", "sys.json", "--commit", "abc"
    )
    (run,) = json.loads(system.run("runs", "list", "--format", "json").out)["runs"]
    assert (run["suite"], run["tags"], run["commit_hash"]) == ("nightly", ["new"], "abc")
    shown = system.run("runs", "show", "new").out
    assert "chunker: v2" in shown
    assert "target.address: python:system:answer" in shown


def test_the_store_does_not_depend_on_how_many_are_asked_at_once(system: Folder) -> None:
    gold = [{"qid": f"N{n}", "question": f"{n}?", "relevant": [f"N{n}"]} for n in range(60)]
    system.write("gold.jsonl", gold)
    for number, concurrency in enumerate(("1", "16")):
        options = ("--concurrency", concurrency, "--rate", "100000/m", "--profile", "all")
        done = system.run(*RUN[:-1], f"run{number}", *options, *STEADY)
        assert done.exit_code == 0, done.err
    one, other = stored(system, "run0"), stored(system, "run1")
    assert one["results"] == other["results"]
    assert one["run"] == other["run"]


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (Progress(2000), "0/2,000  0.0/s  0 errors"),
        (
            Progress(2000, done=500, errors=1, hits=3, labelled=4, seconds=5.0),
            "500/2,000  100.0/s  0:15 left  1 error  75.0% found",
        ),
        (
            Progress(10, done=5, seconds=1.0, stopped="interrupted"),
            "5/10  5.0/s  ending  0 errors",
        ),
    ],
)
def test_progress_is_told_in_one_line(progress: Progress, line: str) -> None:
    assert progress_line(progress) == line


def test_configured_gold_and_store_are_used(system: Folder) -> None:
    Path("ragauge.toml").write_text('gold = "gold.jsonl"\nstore = "sqlite:///own.db"\n')
    done = system.run("run", "--target", "python:system:answer", "--run-id", "one")
    assert done.exit_code == 0, done.err
    assert stored(system, "one", "own.db")["run"][0] == "complete"


TEXTS: list[Row] = [
    {"qid": "A1", "hits": [{"id": "p1#1", "text": "X is a mapping."}, {"id": "p9#9"}]},
    {"qid": "A2", "hits": [{"id": "p2#1", "text": "What is X?"}]},
    {"qid": "A3", "hits": []},
]


def test_distances_are_measured_before_answers_are_stored(system: Folder) -> None:
    """A hit without a text has no ΔS; what is resumed is measured as the run was begun."""
    system.write("trace.jsonl", TEXTS)
    system.write("fails", b"A2")
    embed = ("--embed", "hashing", "--embed-cache", "none")
    system.run(*RUN, *STEADY, "--profile", "all", *embed, "--retries", "0")
    first = stored(system)["results"]
    assert [row["hits"][0].get("delta_s") for *_, row in first[:1]] != [None]
    assert "delta_s" not in first[0][-1]["hits"][1]
    assert first[0][-1]["embedder"].startswith("lexical")
    system.write("fails", b"")
    found = system.run("run", "--resume", "one", "--retry-errors", *REPORT)
    assert found.exit_code in (0, 4), found.err
    again = stored(system)["results"]
    assert again[0] == first[0]
    assert again[1][-1]["hits"][0]["delta_s"] is not None
    refused = system.run("run", "--resume", "one", "--embed", "minilm")
    assert (refused.exit_code, "cannot-resume" in refused.err) == (2, True)


def test_a_run_in_which_nothing_was_answered_does_not_pass(system: Folder) -> None:
    system.write("fails", b"A1 A2 A3")
    found = system.run(*RUN, *STEADY, "--profile", "all", "--retries", "0")
    assert (found.exit_code, "every question ended in an error" in found.err) == (4, True)
    allowed = system.run("run", *RUN[1:-1], "two", *STEADY, "--profile", "all", "--allow-errored")
    assert allowed.exit_code == 0


def test_a_run_ends_soon_after_too_many_errors(system: Folder) -> None:
    names = [f"Q{n}" for n in range(600)]
    rows = [{"qid": name, "question": "?", "answerable": True} for name in names]
    system.write("gold.jsonl", rows)
    system.write("fails", " ".join(names).encode())
    found = system.run(
        *RUN, *STEADY, "--profile", "all", "--max-errors", "3", "--concurrency", "1", "--retries",
        "0",
    )  # fmt: skip
    assert found.exit_code == 4
    assert len(stored(system)["results"]) <= 6


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("{'p1#1', 'p2#1'}", "a set has no place"),
        ("[b'p1#1']", "a bytes has no place"),
        ("[object()]", "a object has no place"),
        ("{'hits': [{'id': 'p1#1', 'score': float('nan')}]}", "nan is no number"),
    ],
)
def test_what_would_be_stored_as_something_else_is_an_error(
    system: Folder, answer: str, words: str
) -> None:
    system.write("system.py", f"def answer(question):\n    return {answer}\n")
    system.run(*RUN, *STEADY, "--profile", "all", "--retries", "0")
    errors = [row[-1].get("error", "") for row in stored(system)["results"]]
    assert len(errors) == 3
    assert all(words in each for each in errors)


def test_a_secret_option_is_not_in_an_error(system: Folder) -> None:
    code = "def answer(question, api_key):\n    raise ValueError(f'refused: {api_key}')\n"
    system.write("system.py", code)
    system.run(*RUN, *STEADY, "--profile", "all", "--option", "api_key=PYKEY123", "--retries", "0")
    assert "PYKEY123" not in json.dumps(stored(system)["results"])


@pytest.mark.parametrize("name", ["latest", "baseline"])
def test_a_run_cannot_have_a_name_with_a_meaning_of_its_own(system: Folder, name: str) -> None:
    found = system.run(*RUN[:-1], name, *STEADY, "--profile", "all")
    assert (found.exit_code, "cannot be the id of a run" in found.err) == (2, True)


def test_a_time_limit_is_a_number(system: Folder) -> None:
    assert system.run(*RUN, "--timeout", "nan").exit_code == 2


def test_questions_with_and_without_paraphrases_miss_nothing(system: Folder) -> None:
    system.write("gold.jsonl", [
        {"qid": "A1", "question": "one?", "relevant": ["p1#1"]},
        {"qid": "A2", "paraphrases": ["two?", "two, please?", "two!"], "relevant": ["p2#1"]},
    ])  # fmt: skip
    found = system.run(*RUN, *STEADY, "--profile", "all", "--seeds", "1,2")
    assert "without a trace" not in found.out + found.err
    assert len(stored(system)["results"]) == 8


def test_the_bands_of_the_embedder_count_the_zones(system: Folder) -> None:
    """As `score` does: ΔS of 0.62 is stable for this embedder, and far for the documents."""
    system.write("ragauge.toml", '[bands."mine"]\nstable = 0.7\ntarget = 0.75\nrisk = 0.85\n')
    system.write("trace.jsonl", [{**row, "delta_s": 0.62, "embed_model": "mine"} for row in TRACES])
    done = system.run(*RUN, "--profile", "all", *STEADY)
    scored = system.run("score", "gold.jsonl", "trace.jsonl", "--profile", "all", *REPORT)
    zones = json.loads(scored.out)["delta_s"]["zones"]
    assert zones["stable"] > 0
    assert json.loads(done.out)["delta_s"]["zones"] == zones


def test_reasons_of_errors_are_counted_wherever_errors_are(system: Folder) -> None:
    """In the console, the report, the saved scores and the diagnosis."""
    system.write("fails", "A1 A3")
    done = system.run(*RUN, "--no-timing", "--full", "-o", "scores.json")
    why = "2 × ValueError: no index"
    first, *_ = done.err.splitlines()
    assert first == f"stored 3 results as one in sqlite:///ragauge.db, 2 of them errors: {why}"
    assert f"warning: 2 traces with an error: {why}" in done.err
    saved = json.loads((system.path / "scores.json").read_text())
    assert saved["errors"] == {"ValueError: no index": 2}
    found = system.run("diagnose", "one", "--format", "json")
    assert f"2 traces with an error: {why}" in json.loads(found.out)["notes"]
    found = system.run("diagnose", "one", "--profile", "all", "--format", "json")
    errored = [row for row in json.loads(found.out)["findings"] if row["id"] == "errored-traces"]
    assert errored[0]["step"].startswith(f"2 errors: {why}. ")
    assert [row["reading"] for row in errored[0]["numbers"][1:]] == ["ValueError: no index"]


def test_a_run_in_which_everything_fails_alike_is_stopped(system: Folder) -> None:
    """A service that is down should not be asked ten thousand questions."""
    names = [f"Q{n}" for n in range(600)]
    system.write("gold.jsonl", [{"qid": n, "question": "?", "answerable": True} for n in names])
    system.write("fails", " ".join(names))
    done = system.run(*RUN, "--profile", "all")
    assert (done.exit_code, problem(done)[0]) == (4, "too-many-errors")
    message = problem(done)[1]
    assert message.startswith("all of the first 2")
    assert " results are errors: 2" in message
    assert " × ValueError: no index; " in message
    assert done.problems[0].hint.endswith("--keep-going asks all questions")
    assert 20 <= len(stored(system)["results"]) < 100
    done = system.run("run", "--resume", "one", "--keep-going")
    assert done.exit_code == 4
    assert "every question ended in an error: 600 × ValueError: no index" in done.err
    assert len(stored(system)["results"]) == 600


def test_a_secret_option_that_a_function_repeats_is_not_stored(system: Folder) -> None:
    code = "def answer(question, key):\n    return {'hits': [key], 'answer': f'by {key}'}\n"
    system.write("system.py", code)
    command = (*RUN, *STEADY, "--profile", "all", "--option", "key=PYKEY123")
    done = system.run(*command)
    words = "warning: 3 answers repeated a secret of the target, stored as [redacted]\n"
    assert words in done.err
    kept = stored(system)["results"]
    assert {row[-1]["answer"]["text"] for row in kept} == {"by [redacted]"}
    with closing(sqlite3.connect(system.path / "ragauge.db")) as database:
        assert not any("PYKEY123" in line for line in database.iterdump())
    cut(system, 1)
    refused = system.run("run", "--resume", "one")
    why = "the run `one` has a secret in its options, which is not stored"
    assert problem(refused) == ("cannot-resume", why)
    other = system.run("run", "--resume", "one", "--option", "other=PYKEY123")
    assert problem(other)[0] == "cannot-resume"
    system.run("run", "--resume", "one", "--option", "key=PYKEY123", *REPORT)
    assert stored(system)["results"] == kept
