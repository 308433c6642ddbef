"""No silent zero and no silent one: what is not read, not matched or not measured is said first."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

import ragauge
from ragauge.files import ranges
from ragauge.model.trace import Trace
from ragauge.scoring import inputs
from ragauge.scoring.engines import choose, local
from tests.support.cases import cases
from tests.support.command import Folder, Outcome, Row

COUNT = 20

GOLD: list[Row] = [
    {
        "qid": f"Q{n}",
        "question": f"How long may the warranty of model{n:03} last?",
        "answerable": True,
        "gold_citations": [f"p{n}#1"],
        "gold_claim_substr": [f"it lasts {n} years"],
    }
    for n in range(COUNT)
]
TRACES: list[Row] = [
    {
        "qid": f"Q{n}",
        "q": f"How long may the warranty of model{n:03} last?",
        "retrieved_ids": [f"p{n}#1", "p999#9"],
        "answer_json": {"claim": f"It lasts {n} years.", "citations": [f"p{n}#1"]},
    }
    for n in range(COUNT)
]
MISSPELT_GOLD = [
    {
        "qid": row["qid"],
        "questoin": row["question"],
        "answerable": True,
        "gold_citation": row["gold_citations"],
        "gold_claims_substr": row["gold_claim_substr"],
    }
    for row in GOLD
]
MISSPELT_TRACES = [
    {
        "qid": row["qid"],
        "querry": row["q"],
        "retreived_ids": row["retrieved_ids"],
        "anwser_json": row["answer_json"],
    }
    for row in TRACES
]
OTHER_IDS = [
    {**row, "retrieved_ids": [f"chunk-{n}"], "answer_json": {"claim": "x", "citations": []}}
    for n, row in enumerate(TRACES)
]
PLACES = [
    {
        "qid": f"Q{n}",
        "question": f"How long may the warranty of model{n:03} last?",
        "relevant": [{"doc": "guide.md", "start": 10 * n, "end": 10 * n + 9}],
    }
    for n in range(COUNT)
]


def scored(folder: Folder, gold: Any = GOLD, traces: Any = TRACES, *options: str) -> Outcome:
    return folder.score(traces, *options, gold=gold)


# --- fields that are not read ---


def test_misspelt_fields_are_named_one_by_one(folder: Folder) -> None:
    outcome = scored(folder, MISSPELT_GOLD)
    assert (
        "warning: `gold_citation` is in every gold row looked at and is not read: "
        "did you mean `gold_citations`?\n"
    ) in outcome.err
    assert "did you mean `gold_claim_substr`?" in outcome.err
    assert "did you mean `question`?" in outcome.err


def test_other_fields_are_one_line(folder: Folder) -> None:
    traces = [{**row, "host": "a", "span": "b", "shard": 3} for row in TRACES]
    outcome = scored(folder, [{**row, "owner": "x"} for row in GOLD], traces)
    assert outcome.exit_code == 0
    assert outcome.err == (
        "warning: 4 other fields are not read: `ragauge validate --fields` lists them\n"
    )


def test_fields_that_the_configuration_ignores_are_not_named(folder: Folder) -> None:
    folder.write("ragauge.toml", '[fields]\nignore = ["host", "owner", "anwser"]\n')
    traces = [{**row, "host": "a", "anwser": "x"} for row in TRACES]
    outcome = scored(folder, [{**row, "owner": "x"} for row in GOLD], traces)
    assert (outcome.exit_code, outcome.err) == (0, "")


@pytest.mark.parametrize("value", ['"host"', "[1]", "{}"])
def test_what_is_to_be_ignored_is_a_list_of_names(folder: Folder, value: str) -> None:
    folder.write("ragauge.toml", f"k = [5]\n[fields]\nignore = {value}\n")
    outcome = scored(folder)
    assert (outcome.exit_code, outcome.codes) == (2, {"bad-config"})
    assert outcome.problems[0].where == "ragauge.toml:3"


def test_validate_lists_the_fields_of_both_files(folder: Folder) -> None:
    folder.write("gold.jsonl", [{**row, "owner": "x"} for row in GOLD])
    folder.write("trace.jsonl", [{**row, "retrieved_id": ["a"], "host": "y"} for row in TRACES])
    outcome = folder.run("validate", "gold.jsonl", "trace.jsonl", "--fields")
    assert outcome.exit_code == 0
    assert "`owner` in 20 of 20 gold rows looked at\n" in outcome.out
    assert "`host` in 20 of 20 trace rows looked at\n" in outcome.out
    assert "`retrieved_id` in 20 of 20 trace rows looked at\n" in outcome.out
    assert outcome.out.endswith("ok\n")
    outcome = folder.run("validate", "gold.jsonl", "trace.jsonl")
    assert "3 other fields are not read: `ragauge validate --fields` lists them\n" in outcome.out


def test_validate_says_that_all_fields_are_read(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    outcome = folder.run("validate", "gold.jsonl", "--fields")
    assert "all fields are read\n" in outcome.out


def test_reports_have_the_warnings_before_the_numbers(folder: Folder) -> None:
    outputs = [part for name in ("md", "html") for part in ("-o", f"report.{name}")]
    scored(folder, MISSPELT_GOLD, TRACES, *outputs)
    for name in ("md", "html"):
        text = (folder.path / f"report.{name}").read_text()
        assert text.index("did you mean") < text.index("over-refusal"), name


# --- nothing measured ---


def test_traces_of_which_nothing_is_read_measure_nothing(folder: Folder) -> None:
    for gold in (GOLD, MISSPELT_GOLD):
        outcome = scored(folder, gold, MISSPELT_TRACES)
        assert outcome.exit_code == 5
        assert "warning: nothing-measured: no trace has hits, an answer or an error" in outcome.err
        assert "did you mean `answer_json`?" in outcome.err


def test_validate_is_not_ok_where_nothing_is_measured(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", MISSPELT_TRACES)
    outcome = folder.run("validate", "gold.jsonl", "trace.jsonl")
    assert (outcome.exit_code, outcome.codes) == (5, {"nothing-measured"})
    assert "did you mean `retrieved_ids`?" in outcome.out
    assert "ok\n" not in outcome.out


def test_rows_with_the_old_names_of_ragas_are_read(folder: Folder) -> None:
    """Their answers are compared with the expected ones, and what cannot be measured is said."""
    gold = [{"qid": f"Q{n}", "question": f"What is {n}?", "ground_truth": "x"} for n in range(5)]
    traces = [
        {"qid": f"Q{n}", "question": f"What is {n}?", "answer": "It is so.", "contexts": ["text"]}
        for n in range(5)
    ]
    outcome = scored(folder, gold, traces, "--format", "json")
    assert outcome.exit_code == 0
    assert "trace.jsonl: read as ragas rows" in outcome.err
    assert "no gold item names evidence: whether what was retrieved and cited is right is not " in (
        outcome.err
    )
    metrics = json.loads(outcome.out)["metrics"]
    assert metrics["answer.exact_match"]["value"] == 0.0
    assert metrics["retrieval.recall@5"]["value"] is None


def test_rows_of_langfuse_do_not_make_an_empty_retrieval(folder: Folder) -> None:
    gold = [{"qid": f"Q{n}", "question": f"What is {n}?"} for n in range(5)]
    traces = [
        {
            "id": f"Q{n}",
            "name": "rag",
            "input": {"question": "x"},
            "output": {"answer": "y"},
            "metadata": {"region": "eu"},
            "timestamp": "2026-01-01T00:00:00Z",
        }
        for n in range(5)
    ]
    outcome = scored(folder, gold, traces)
    assert outcome.exit_code == 5
    assert "under a name that is read, but `input`, `metadata`" in outcome.err


def test_empty_lists_of_hits_are_a_result(folder: Folder) -> None:
    """A system that finds nothing scores 0, and that is true of it."""
    gold = [{"qid": f"Q{n}", "relevant": ["a"]} for n in range(5)]
    traces = [{"qid": f"Q{n}", "hits": []} for n in range(5)]
    outcome = scored(folder, gold, traces, "--format", "json")
    assert outcome.exit_code == 0
    metrics = json.loads(outcome.out)["metrics"]
    assert metrics["retrieval.recall@5"]["value"] == 0.0
    assert metrics["retrieval.empty"]["value"] == 1.0


def test_a_metric_that_nobody_can_have_measures_nothing(folder: Folder) -> None:
    outcome = scored(folder, GOLD, TRACES, "--profile", "all", "--metrics", "latency.total_ms")
    assert outcome.exit_code == 5
    assert "NOTHING MEASURED" in outcome.out


def test_counts_of_the_run_are_measured_where_only_they_are_asked_for(folder: Folder) -> None:
    gates = ("--profile", "all", "--metrics", "run.missing", "--gates", "run.missing<=0")
    assert scored(folder, GOLD, TRACES, *gates).exit_code == 0
    assert scored(folder, GOLD, TRACES[:9], *gates, "--allow-missing").exit_code == 1


def test_gate_says_the_same_of_a_saved_file(folder: Folder) -> None:
    for name, traces, code in (("x", MISSPELT_TRACES, 5), ("y", OTHER_IDS, 4), ("z", TRACES, 0)):
        assert scored(folder, GOLD, traces, "--full", "-o", f"{name}.json").exit_code == code
        assert folder.run("gate", f"{name}.json").exit_code == code
        assert ragauge.gate(str(folder.path / f"{name}.json")).exit_code == code


# --- ids and places that cannot match ---


@pytest.mark.parametrize("options", [(), ("--profile", "all"), ("--profile", "canary")])
def test_ids_that_never_match_are_not_evaluable(folder: Folder, options: tuple[str, ...]) -> None:
    outcome = scored(folder, GOLD, OTHER_IDS, *options)
    assert outcome.exit_code == 4
    assert "warning: ids-never-match: nothing that was retrieved or cited (such as `chunk-0`)" in (
        outcome.err
    )
    assert "in the gold set (such as `p0#1`)" in outcome.err
    assert "--chunks FILE or --corpus DIR" in outcome.err


def test_one_match_anywhere_is_enough(folder: Folder) -> None:
    """The evidence of one question among the hits of another: ids are those of the gold set."""
    traces = [dict(row) for row in OTHER_IDS]
    traces[3]["retrieved_ids"] = ["chunk-3", "p7#1"]
    outcome = scored(folder, GOLD, traces, "--profile", "all")
    assert "ids-never-match" not in outcome.err
    assert outcome.exit_code == 0
    cited = [dict(row) for row in OTHER_IDS]
    cited[3]["answer_json"] = {"claim": "x", "citations": ["p7#1"]}
    assert "ids-never-match" not in scored(folder, GOLD, cited, "--profile", "all").err


def test_two_questions_may_find_nothing(folder: Folder) -> None:
    outcome = scored(folder, GOLD[:2], OTHER_IDS[:2], "--profile", "all")
    assert (outcome.exit_code, "ids-never-match" in outcome.err) == (0, False)


def test_a_list_of_chunks_that_knows_the_hits_makes_a_zero_true(folder: Folder) -> None:
    chunks = [
        {"id": f"chunk-{n}", "doc": "a", "start": 10 * n, "end": 10 * n + 9} for n in range(9)
    ]
    chunks += [{"id": f"p{n}#1", "doc": "b", "start": 10 * n, "end": 10 * n + 9} for n in range(20)]
    folder.write("chunks.jsonl", chunks)
    outcome = scored(folder, GOLD, OTHER_IDS, "--profile", "all", "--chunks", "chunks.jsonl")
    assert (outcome.exit_code, "ids-never-match" in outcome.err) == (0, False)


def test_metrics_without_evidence_need_no_match(folder: Folder) -> None:
    outcome = scored(folder, GOLD, OTHER_IDS, "--profile", "all", "--metrics", "refusal.over")
    assert (outcome.exit_code, "ids-never-match" in outcome.err) == (0, False)


@pytest.mark.parametrize("cited", [["d#1"], None])
def test_texts_are_never_named_as_ids_are_however_few_there_are(
    folder: Folder, cited: list[str] | None
) -> None:
    gold: list[Row] = [{"qid": "Q1", "question": "Topic one?", "relevant": ["d#1"]}]
    trace: Row = {"qid": "Q1", "hits": [{"text": "A passage."}], "answer": "x", "citations": cited}
    outcome = scored(folder, gold, [trace], "--profile", "all")
    assert (outcome.exit_code, "ids-never-match" in outcome.err) == (4, True)
    # One question whose hit has an id may have missed by right.
    named: Row = {**trace, "hits": [{"id": "d#2", "text": "A passage."}]}
    assert scored(folder, gold, [named], "--profile", "all").exit_code == 0


def test_answers_without_hits_say_why_retrieval_is_zero(folder: Folder) -> None:
    answers = [{"qid": f"Q{n}", "answer": "It is five."} for n in range(COUNT)]
    said = "no trace has hits that are read, and retrieval.* is 0 for that alone"
    assert said in scored(folder, GOLD, answers, "--profile", "all").err
    only = ("--profile", "all", "--metrics", "refusal.over")
    assert said not in scored(folder, GOLD, answers, *only).err
    hits = [{**answers[0], "hits": ["c0"]}, *answers[1:]]
    assert said not in scored(folder, GOLD, hits, "--profile", "all").err


def test_hits_that_are_named_otherwise_than_citations_are_not_evaluable(folder: Folder) -> None:
    """recall 0.0000 beside citations that are all right says that ids differ, not that all miss."""
    gold = [
        {
            "qid": f"Q{n}",
            "question": f"Topic {n}?",
            "answerable": True,
            "gold_citations": [f"d#{n}"],
        }
        for n in range(4)
    ]
    cited = [
        {"qid": f"Q{n}", "retrieved_ids": [f"uuid-{n}", f"uuid-{n}b"],
         "answer_json": {"claim": "Yes.", "citations": [f"d#{n}"]}}
        for n in range(4)
    ]  # fmt: skip
    said = "what is cited is named as in the gold set, and no hit is (hits such as `uuid-0`"
    for options in (("--profile", "all"), ("--metrics", "recall@5,citation.hit_rate")):
        outcome = scored(folder, gold, cited, *options)
        assert (outcome.exit_code, said in outcome.err) == (4, True)
    # Not where retrieval is not measured, nor where it only missed: Q1 has the evidence of Q0.
    assert said not in scored(folder, gold, cited, "--metrics", "citation.hit_rate").err
    missed = [cited[0], {**cited[1], "retrieved_ids": ["d#0"]}, *cited[2:]]
    assert said not in scored(folder, gold, missed, "--profile", "all").err


def test_documents_that_never_match_are_not_evaluable(folder: Folder) -> None:
    gold = [{"qid": f"Q{n}", "relevant_docs": [f"{n}.md"]} for n in range(5)]
    traces = [{"qid": f"Q{n}", "hits": [{"id": f"c{n}", "doc": f"kb-{n}"}]} for n in range(5)]
    outcome = scored(folder, gold, traces)
    assert (outcome.exit_code, "ids-never-match" in outcome.err) == (4, True)


def test_places_in_gold_and_ids_in_traces_are_not_evaluable(folder: Folder) -> None:
    traces = [{"qid": f"Q{n}", "retrieved": [f"c{n}", "c99"], "answer": "x"} for n in range(COUNT)]
    outcome = scored(folder, PLACES, traces)
    assert outcome.exit_code == 4
    assert "warning: nothing-placed: no hit of trace.jsonl has a place" in outcome.err
    placed = [
        {"qid": f"Q{n}", "hits": [{"id": f"c{n}", "doc": "other.md", "start": 0, "end": 5}]}
        for n in range(COUNT)
    ]
    assert "nothing-placed" not in scored(folder, PLACES, placed).err


def test_a_trec_run_of_other_documents_is_not_evaluable(folder: Folder) -> None:
    folder.write("x.qrels", "".join(f"{n} 0 d{n} 1\n" for n in range(5)))
    folder.write("x.run", "".join(f"{n} Q0 other{n} 1 0.5 r\n" for n in range(5)))
    outcome = folder.run("score", "x.qrels", "x.run")
    assert (outcome.exit_code, "warning: ids-never-match: " in outcome.err) == (4, True)
    folder.write("x.run", "".join(f"{n} Q0 d{n + 1} 1 0.5 r\n" for n in range(5)))
    outcome = folder.run("score", "x.qrels", "x.run")
    assert (outcome.exit_code, "ids-never-match" in outcome.err) == (0, False)


def test_a_run_is_held_to_the_same(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(folder.path))
    folder.write("system_of_silence.py", "def ask(question):\n    return ['elsewhere']\n")
    folder.write("gold.jsonl", [{**row, "owner": "x"} for row in GOLD])
    target = ("--target", "python:system_of_silence:ask", "--store", "sqlite:///s.db")
    outcome = folder.run("run", "--gold", "gold.jsonl", *target)
    assert outcome.exit_code == 4
    assert "warning: ids-never-match: " in outcome.err
    assert "1 other field is not read" in outcome.err


def test_fields_of_answers_that_are_not_read_are_named(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(folder.path))
    folder.write(
        "system_of_slips.py",
        "def ask(qid):\n    return {'hits': ['p' + qid[1:] + '#1'], 'anwser': 'x', 'host': 'y'}\n",
    )
    folder.write("gold.jsonl", GOLD)
    target = ("--target", "python:system_of_slips:ask", "--store", "sqlite:///s.db")
    outcome = folder.run("run", "--gold", "gold.jsonl", *target, "--profile", "all")
    assert "`anwser` is in every trace row looked at and is not read" in outcome.err
    assert "1 other field is not read" in outcome.err


def test_diagnose_finds_no_causes_of_numbers_that_mean_nothing(folder: Folder) -> None:
    scored(folder, GOLD, OTHER_IDS, "--store", "--run-id", "r")
    outcome = folder.run("diagnose", "r")
    assert (outcome.exit_code, outcome.codes) == (4, {"ids-never-match"})
    assert folder.run("gate", "r").exit_code == 4


# --- other questions ---


def test_traces_of_other_questions_are_not_evaluable(folder: Folder) -> None:
    traces = [{**row, "q": TRACES[n - 1]["q"]} for n, row in enumerate(TRACES)]
    outcome = scored(folder, GOLD, traces)
    assert outcome.exit_code == 4
    assert (
        "warning: foreign-traces: 20 of 20 traces are about another question than their gold item, "
        "the first: Q0 at trace.jsonl:1; "
    ) in outcome.err
    allowed = scored(folder, GOLD, traces, "--allow-other-questions")
    assert (allowed.exit_code, "warning: foreign-traces: 20 of 20" in allowed.err) == (0, True)


def test_two_foreign_traces_are_a_note(folder: Folder) -> None:
    traces = [{**row, "q": "Reset my password"} if n in (4, 9) else row
              for n, row in enumerate(TRACES)]  # fmt: skip
    outcome = scored(folder, GOLD, traces)
    assert outcome.exit_code == 0
    assert "2 traces of 20 about another question than the gold item, the first: Q4" in outcome.err


def test_three_of_sixty_are_not_over_five_percent(folder: Folder) -> None:
    """3 / 60 = 5 %, which is not more than that; 4 / 60 is."""
    gold = [{**GOLD[0], "qid": f"R{n}", "question": f"Is the price{n:03} fair?"} for n in range(60)]
    rows = [{**TRACES[0], "qid": f"R{n}", "q": f"Is the price{n:03} fair?"} for n in range(60)]
    for foreign, code in ((3, 0), (4, 4)):
        traces = [{**row, "q": "reset password"} if n < foreign else row
                  for n, row in enumerate(rows)]  # fmt: skip
        assert scored(folder, gold, traces).exit_code == code


def test_questions_in_other_words_are_one_note(folder: Folder) -> None:
    traces = [{**row, "q": f"query: {row['q']}"} for row in TRACES]
    outcome = scored(folder, GOLD, traces)
    assert outcome.exit_code == 0
    assert outcome.err == (
        "warning: 20 traces ask in other words than the gold item (rewriting, prefixes)\n"
    )


# --- what gold does not say, and k ---


def test_gold_without_answerable_is_said(folder: Folder) -> None:
    gold = [{key: value for key, value in row.items() if key != "answerable"} for row in GOLD]
    outcome = scored(folder, gold, TRACES, "--profile", "all")
    assert "warning: no gold item has `answerable`" in outcome.err
    hits_only = [{"qid": row["qid"], "hits": row["retrieved_ids"]} for row in TRACES]
    assert "answerable" not in scored(folder, gold, hits_only, "--profile", "all").err


def test_evidence_that_most_items_lack_is_said(folder: Folder) -> None:
    bare = [{**row, "gold_citations": []} if n < 11 else row for n, row in enumerate(GOLD)]
    outcome = scored(folder, bare, TRACES, "--profile", "all")
    assert (
        "warning: 11 of 20 gold items that are to be answered name no evidence: retrieval and "
        "citations are measured on the other 9; answer.precision, citation.hit_rate, "
        "citation.hit_rate_answerable count such answers all the same\n"
    ) in outcome.err
    half = [{**row, "gold_citations": []} if n < 10 else row for n, row in enumerate(GOLD)]
    assert "name no evidence" not in scored(folder, half, TRACES, "--profile", "all").err


def test_items_to_be_refused_need_no_evidence(folder: Folder) -> None:
    gold = [{**row, "answerable": False, "gold_citations": []} if n < 15 else row
            for n, row in enumerate(GOLD)]  # fmt: skip
    assert "name no evidence" not in scored(folder, gold, TRACES, "--profile", "all").err


def test_recall_of_no_evidence_is_as_in_the_source_under_ship_alone(folder: Folder) -> None:
    """5 of 20 without evidence: 1 under ship, and no value elsewhere; the other 15 are recalled."""
    gold = [{**row, "gold_citations": []} if n < 5 else row for n, row in enumerate(GOLD)]
    outcome = scored(folder, gold)
    line = next(line for line in outcome.out.splitlines() if line.startswith("all evidence@5"))
    assert "as in the source" in " ".join(outcome.out[outcome.out.index(line) :].split())
    document = json.loads(scored(folder, gold, TRACES, "--format", "json", "--full").out)
    assert document["metrics"]["retrieval.recall_all@5"]["n"] == 20
    document = json.loads(scored(folder, gold, TRACES, "--profile", "all", "--format", "json").out)
    recalled = document["metrics"]["retrieval.recall_all@5"]
    assert (recalled["n"], recalled["excluded"]) == (15, {"no-evidence": 5})
    assert "note" not in recalled


def test_a_cutoff_beyond_all_hits_is_said_where_it_was_asked_for(folder: Folder) -> None:
    outcome = scored(folder, GOLD, TRACES, "--k", "10")
    assert (
        "warning: k = 10, but no trace has more than 2 hits: nothing is found beyond rank 2\n"
    ) in outcome.err
    assert "no trace has more than" not in scored(folder, GOLD, TRACES, "--k", "2").err
    assert "no trace has more than" not in scored(folder, GOLD, TRACES, "--profile", "all").err


# --- two runs ---


def test_a_baseline_that_means_nothing_hides_no_drop(folder: Folder) -> None:
    scored(folder, GOLD, OTHER_IDS, "--full", "-o", "live.json")
    folder.write("gates.toml", '[gates]\n"retrieval.recall_all@5" = { max_drop = 0.02 }\n')
    options = ("--gates", "gates.toml", "--baseline", "live.json")
    outcome = scored(folder, GOLD, TRACES, *options)
    assert outcome.exit_code == 4
    assert "NOT EVALUABLE: the baseline: nothing that was retrieved or cited" in " ".join(
        outcome.out.split()
    )


@pytest.mark.parametrize("traces", [OTHER_IDS, MISSPELT_TRACES, None])
def test_two_runs_that_mean_nothing_never_pass(folder: Folder, traces: list[Row] | None) -> None:
    gold = GOLD
    if traces is None:
        gold = PLACES
        traces = [{"qid": f"Q{n}", "retrieved": [f"c{n}"]} for n in range(COUNT)]
    folder.write("gold.jsonl", gold)
    for name in ("a", "b"):
        folder.write(f"{name}.jsonl", traces)
    for demand in ((), ("--fail-on", "regression"), ("--gates", "gates.toml")):
        folder.write("gates.toml", '[gates]\n"retrieval.recall_all@5" = { max_drop = 0.02 }\n')
        outcome = folder.run("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", *demand)
        assert outcome.exit_code in (4, 5), outcome.out
        assert "PASS" not in outcome.out


def test_runs_with_no_metric_in_common_are_incomparable(folder: Folder) -> None:
    scored(folder, GOLD, TRACES, "--profile", "all", "--full", "--metrics", "refusal.over",
           "-o", "a.json")  # fmt: skip
    scored(folder, GOLD, TRACES, "--profile", "all", "--full", "--metrics", "retrieval.hit@1",
           "-o", "b.json")  # fmt: skip
    outcome = folder.run("compare", "a.json", "b.json")
    assert outcome.exit_code == 4
    assert "NOT EVALUABLE: no metric has a value in both runs" in outcome.out


def test_comparisons_name_unread_fields_once(folder: Folder) -> None:
    folder.write("gold.jsonl", [{**row, "gold_citation": "x"} for row in GOLD])
    folder.write("a.jsonl", TRACES)
    folder.write("b.jsonl", [{**row, "host": "x"} for row in TRACES])
    outcome = folder.run("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl")
    assert outcome.exit_code == 0
    assert outcome.err.splitlines() == [
        "warning: a.jsonl: 1 other field is not read: `ragauge validate --fields` lists it",
        "warning: b.jsonl: 2 other fields are not read: `ragauge validate --fields` lists them",
    ]


# --- files that hold no rows, and values that are none ---


def test_a_table_in_a_file_of_json_lines_is_one_error(folder: Folder) -> None:
    table = 'qid,question,answer\nQ1,What?,"Yes, so"\nQ2,Who?,No\n'
    outcome = scored(folder, GOLD, table)
    assert (outcome.exit_code, len(outcome.problems)) == (3, 1)
    problem = outcome.problems[0]
    assert (problem.code, problem.where) == ("not-rows", "trace.jsonl:1")
    assert problem.message == (
        "`trace.jsonl` is CSV and not JSON: its columns are qid, question, answer"
    )
    assert folder.run("validate", "gold.jsonl", "trace.jsonl").codes == {"not-rows"}


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_are_known(folder: Folder, separator: str) -> None:
    outcome = scored(folder, GOLD, separator.join(("qid", "answer")) + f"\nQ1{separator}x\n")
    assert outcome.codes == {"not-rows"}


def test_bytes_of_protobuf_are_one_error(folder: Folder) -> None:
    """The head of an OTLP export: fields of lengths and texts."""
    head = b"\n\xd2\x05\n\x1b\n\x19\n\x0cservice.name\x12\t\n\x07rag-app"
    outcome = scored(folder, GOLD, head + bytes(range(200, 256)) * 20)
    assert (outcome.exit_code, len(outcome.problems)) == (3, 1)
    assert outcome.problems[0].code == "bad-spans"  # read as spans, and cut


def test_rows_in_memory_that_are_no_items_are_refused() -> None:
    for gold in ({"qid": "Q1"}, 5, None):
        with pytest.raises(ragauge.RagaugeError) as error:
            ragauge.score(gold, [])  # type: ignore[arg-type]
        assert error.value.code == "usage"
    with pytest.raises(ragauge.RagaugeError) as error:
        ragauge.score(GOLD, [{"qid": "Q1"}, 7])  # type: ignore[arg-type]
    assert "traces must be a path, or Trace values, got: list of dict" in str(error.value)
    with pytest.raises(ragauge.RagaugeError):
        ragauge.gate({"precision": 1.0})  # type: ignore[arg-type]


def test_slips_in_memory_measure_nothing_either(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", MISSPELT_TRACES)
    gold = ragauge.load_gold(folder.path / "gold.jsonl")
    traces = ragauge.load_traces(folder.path / "trace.jsonl")
    scores = ragauge.score(gold, traces, profile="all")
    assert not scores.measured
    assert any("did you mean `retrieved_ids`?" in warning for warning in scores.warnings)
    found_nothing = [Trace(qid=item.qid, extra={"host": "x"}) for item in gold.items]
    assert ragauge.score(gold, found_nothing, profile="all").measured


# --- the same for any split ---


@pytest.mark.slow
@pytest.mark.parametrize("traces", [MISSPELT_TRACES, OTHER_IDS, "foreign", "exact"])
def test_workers_and_ranges_do_not_show(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, traces: Any
) -> None:
    """The fast path by columns, row by row, on the exact path, and in two worker processes."""
    if traces == "foreign":
        traces = [{**row, "q": TRACES[n - 1]["q"]} for n, row in enumerate(TRACES)]
    elif traces == "exact":  # a field that only the exact path knows
        traces = [{**row, "q": TRACES[n - 1]["q"], "grounded": True, "host": "x"}
                  for n, row in enumerate(OTHER_IDS)]  # fmt: skip
    expected = scored(folder, GOLD, traces, "--full", "--format", "json", "--profile", "all")
    assert expected.exit_code in (4, 5)
    size = (folder.path / "trace.jsonl").stat().st_size
    started: list[int] = []
    begin = local.Subprocesses.__init__

    def counted(self: local.Subprocesses, workers: int) -> None:
        started.append(workers)
        begin(self, workers)

    monkeypatch.setattr(local.Subprocesses, "__init__", counted)
    monkeypatch.setattr(inputs, "plan", partial(ranges.plan, range_bytes=size // 7))
    monkeypatch.setattr(choose, "RANGE_BYTES", size // 7)
    options = ("--full", "--format", "json", "--profile", "all")
    assert scored(folder, GOLD, traces, *options) == expected
    assert scored(folder, GOLD, traces, *options, "--workers", "2") == expected
    assert started == [2]


# --- files by position ---


@cases(
    "files",
    [
        ("gold.jsonl", "trace.jsonl"),
        ("trace.jsonl", "--gold", "gold.jsonl"),
        ("gold.jsonl", "--trace", "trace.jsonl"),
    ],
)
@cases("command", ["score", "validate"])
def test_a_position_is_for_what_no_option_names(
    folder: Folder, command: str, files: tuple[str, ...]
) -> None:
    folder.write(
        "gold.jsonl", [{"qid": "q", "question": "?", "answerable": True, "relevant": ["a"]}]
    )
    folder.write("trace.jsonl", [{"qid": "q", "retrieved_ids": ["a"], "answer": "yes"}])
    done = folder.run(command, *files, "--profile", "all")
    assert done.exit_code == 0
    assert ("1 trace scored" if command == "score" else "trace.jsonl: 1 trace") in done.out


@pytest.mark.parametrize("command", ["score", "validate"])
def test_no_file_is_left_unread(folder: Folder, command: str) -> None:
    done = folder.run(command, "a.jsonl", "b.jsonl", "--gold", "c.jsonl")
    assert done.exit_code == 2
    assert "'b.jsonl' is one too many" in done.err


def test_traces_of_no_gold_item_are_not_ok(folder: Folder) -> None:
    folder.write(
        "gold.jsonl", [{"qid": "q", "question": "?", "answerable": True, "relevant": ["a"]}]
    )
    folder.write("trace.jsonl", [{"qid": "other", "retrieved_ids": ["a"], "answer": "yes"}])
    done = folder.run("validate", "gold.jsonl", "trace.jsonl")
    assert done.exit_code == 5
    assert "nothing-measured" in done.err
    assert "ok\n" not in done.out


def test_evidence_that_is_graded_as_not_relevant_is_refused(folder: Folder) -> None:
    """It would be found, and recall be 1.0000."""
    gold = [{"qid": "Q1", "question": "Who?", "relevant": [{"id": "c1", "grade": 0}, "c2"]}]
    outcome = scored(folder, gold, [{"qid": "Q1", "hits": ["c1"]}])
    assert (outcome.exit_code, outcome.codes) == (3, {"bad-field"})
    assert "`relevant[0].grade` is 0: what is not relevant is no evidence" in outcome.err
    gold[0]["relevant"] = [{"id": "c1", "grade": 2}, "c2"]
    assert scored(folder, gold, [{"qid": "Q1", "hits": ["c1"]}]).exit_code == 0


def test_metrics_that_count_answers_without_evidence_are_named(folder: Folder) -> None:
    """Gold without evidence and answers that cite nothing: citation.hit_rate is 1 by definition."""
    gold = [{"qid": f"Q{n}", "question": f"{n}?", "answerable": True} for n in range(4)]
    traces = [{"qid": f"Q{n}", "hits": ["c"], "answer": "Yes."} for n in range(4)]
    outcome = scored(folder, gold, traces, "--metrics", "citation.hit_rate")
    assert "is not measured; citation.hit_rate counts such answers all the same" in outcome.err


def test_answers_that_cite_nothing_are_told(folder: Folder) -> None:
    """Logs of most systems have no citations, and zeros would pass for wrong answers."""
    gold = [{"qid": f"Q{n}", "question": f"{n}?", "relevant": [f"c{n}"]} for n in range(4)]
    traces = [{"qid": f"Q{n}", "hits": [f"c{n}"], "answer": "Yes."} for n in range(4)]
    said = "no answer cites anything, and answer.precision, citation.hit_rate are 0 for that alone"
    metrics = ("--metrics", "answer.precision,citation.hit_rate,recall@5")
    assert said in scored(folder, gold, traces, *metrics).err
    assert "cites" not in scored(folder, gold, traces, "--metrics", "recall@5").err
    traces[0]["citations"] = ["c9"]
    assert "cites" not in scored(folder, gold, traces, *metrics).err


def test_places_in_documents_that_gold_never_names_are_not_evaluable(folder: Folder) -> None:
    gold = [
        {
            "qid": f"Q{n}",
            "question": f"{n}?",
            "relevant": [{"doc": "a.md", "start": n, "end": n + 9}],
        }
        for n in range(4)
    ]
    hit = {"id": "c", "doc": "b.md", "start": 0, "end": 20}
    traces = [{"qid": f"Q{n}", "hits": [hit]} for n in range(4)]
    outcome = scored(folder, gold, traces, "--metrics", "recall@5")
    assert outcome.exit_code == 4
    assert "ids-never-match: no hit or citation (such as `c`) lies in a document" in outcome.err
    # One hit in the document, wherever it lies, shows that names are the same: zeros are true.
    traces[0]["hits"] = [{**hit, "doc": "a.md", "start": 500, "end": 600}]
    outcome = scored(folder, gold, traces, "--metrics", "recall@5")
    assert (outcome.exit_code, "ids-never-match" in outcome.err) == (0, False)


# --- citations under other names ---


@pytest.mark.parametrize(("cited", "warned"), [([1], True), (["d#1"], False)])
def test_citations_that_name_nothing_are_told(
    folder: Folder, cited: list[object], warned: bool
) -> None:
    """`1` for the first hit is not read in rows of our own: every number of citations is 0."""
    numbers = range(5)
    gold = [
        {"qid": f"q{i}", "question": "?", "answerable": True, "relevant": ["d#1"]} for i in numbers
    ]
    rows = [{"qid": f"q{i}", "hits": ["d#1"], "answer": "So.", "citations": cited} for i in numbers]
    folder.write("gold.jsonl", gold)
    folder.write("trace.jsonl", rows)
    done = folder.run("score", "gold.jsonl", "trace.jsonl", "--profile", "all")
    assert ("nothing that an answer cites was retrieved" in done.err) == warned
