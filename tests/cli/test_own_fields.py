"""Rows with field names of the user's own, in every command that reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragauge import score
from ragauge.formats.field_map import field_maps
from tests.support.command import GOLD, TRACES, Folder, Row, lines_of

# The gold set and the traces of `command`, under names that nothing reads.
OWN_GOLD: list[Row] = [
    {
        "key": item["qid"],
        "prompt": item["question"],
        "answerable": item["answerable"],
        "expected": {"phrases": item["gold_claim_substr"]},
        "evidence": [{"chunk": chunk} for chunk in item["gold_citations"]],
    }
    for item in GOLD
]
OWN_TRACES: list[Row] = [
    {
        "id": f"log-{number}",
        "meta": {"key": trace["qid"]},
        "response": trace["answer_json"]["claim"],
        "sources": [{"uid": chunk, "body": "..."} for chunk in trace["retrieved_ids"]],
        "cited": [{"uid": chunk} for chunk in trace["answer_json"]["citations"]],
    }
    for number, trace in enumerate(TRACES)
]
CONFIG = """
[fields]
ignore = ["model"]

[fields.gold]
qid = "key"
question = "prompt"
claims = "expected.phrases"
relevant = "evidence[].chunk"

[fields.traces]
qid = "meta.key"
answer = "response"
hits = "sources[].uid"
citations = "cited[].uid"
"""
OPTIONS = (
    *("--gold-field", "qid=key", "--gold-field", "question=prompt"),
    *("--gold-field", "claims=expected.phrases", "--gold-field", "relevant=evidence[].chunk"),
    *("--field", "qid=meta.key", "--field", "answer=response"),
    *("--field", "hits=sources[].uid", "--field", "citations=cited[].uid"),
)


def values(outcome_out: str) -> dict[str, Any]:
    metrics = json.loads(outcome_out)["metrics"]
    return {name: (one["value"], one["n"]) for name, one in metrics.items()}


@pytest.fixture
def own(folder: Folder) -> Folder:
    folder.write("gold.jsonl", OWN_GOLD)
    folder.write("trace.jsonl", OWN_TRACES)
    return folder


def expected(folder: Folder) -> dict[str, Any]:
    """What the same files give under names that are read."""
    folder.write("known-gold.jsonl", GOLD)
    folder.write("known-trace.jsonl", TRACES)
    done = folder.run(
        *("score", "known-gold.jsonl", "known-trace.jsonl"),
        *("--profile", "all", "--format", "json", "--full"),
    )
    return values(done.out)


def test_options_give_the_numbers_of_known_names(own: Folder) -> None:
    line = ("score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--format", "json", "--full")
    done = own.run(*line, *OPTIONS)
    assert done.exit_code == 0
    assert values(done.out) == expected(own)
    assert values(done.out)["retrieval.recall@1"] == (0.5, 2)  # p1#2 is second, pB#1 first
    assert values(done.out)["citation.hit_rate"] == (1.0, 2)


def test_the_configuration_does_too_and_options_win(own: Folder) -> None:
    known = expected(own)
    own.write("ragauge.toml", CONFIG)
    line = ("score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--format", "json", "--full")
    assert values(own.run(*line).out) == known
    without = values(own.run(*line, "--field", "citations=").out)
    assert without["citation.hit_rate"][1] == 2
    assert without["citation.precision"] == (None, 0)  # nothing is cited any more


def test_workers_and_the_store_see_our_names(own: Folder) -> None:
    """The same scores from worker processes, and from the stored run without any map."""
    fields = field_maps(
        {
            "gold": {"qid": "key", "claims": "expected.phrases", "relevant": "evidence[].chunk"},
            "traces": {"qid": "meta.key", "answer": "response", "hits": "sources[].uid"},
        }
    )
    one, two = (
        score("gold.jsonl", "trace.jsonl", fields=fields, workers=workers) for workers in (1, 2)
    )
    assert one.metrics == two.metrics
    own.write("ragauge.toml", CONFIG)
    line = ("score", "gold.jsonl", "trace.jsonl", "--profile", "all", "--store", "sqlite:///s.db")
    first = own.run(*line, "--run-id", "one", "--format", "json", "--full")
    assert first.exit_code == 0
    (own.path / "ragauge.toml").unlink()
    again = own.run("rescore", "one", "--store", "sqlite:///s.db")
    assert (again.exit_code, again.out) == (0, "one: unchanged\n")


@pytest.mark.usefixtures("own")
def test_a_dictionary_in_python() -> None:
    gold = {"qid": "key", "relevant": "evidence[].chunk"}
    fields = {"gold": gold, "qid": "meta.key", "hits": "sources[].uid"}
    scores = score("gold.jsonl", "trace.jsonl", fields=fields)
    assert scores.metrics["retrieval.recall@3"].value == 1.0


def test_validate_reads_them_too(own: Folder) -> None:
    done = own.run("validate", "gold.jsonl", "trace.jsonl", *OPTIONS)
    assert (done.exit_code, done.out.splitlines()[-1]) == (0, "ok")
    assert "3 gold items" in done.out
    assert "3 traces" in done.out
    bare = own.run("validate", "gold.jsonl", "trace.jsonl")
    assert bare.exit_code == 3


def test_compare_takes_them_for_both_trace_files(own: Folder) -> None:
    own.write("other.jsonl", [*OWN_TRACES[:2], {**OWN_TRACES[2], "sources": []}])
    line = ("compare", "trace.jsonl", "other.jsonl", "--gold", "gold.jsonl", "--profile", "all")
    done = own.run(*line, *OPTIONS, "--format", "json")
    assert done.exit_code == 0, done.err
    document = json.loads(done.out)
    before, after = (
        document[side]["retrieval.recall@3"] for side in ("aggregate_a", "aggregate_b")
    )
    assert (before["value"], after["value"], after["n"]) == (1.0, 0.5, 2)  # A3 lost its evidence


def test_run_reads_a_gold_set_with_other_names(own: Folder) -> None:
    own.write("bot.py", "def ask(question, **_):\n    return {'hits': ['p1#2'], 'answer': 'x'}\n")
    done = own.run(
        *("run", "--gold", "gold.jsonl", "--target", "python:bot:ask", "--store", "sqlite:///r.db"),
        *("--gold-field", "qid=key", "--gold-field", "question=prompt"),
        *("--gold-field", "relevant=evidence[].chunk", "--format", "json", "--full"),
    )
    assert done.exit_code == 0, done.err
    assert values(done.out)["retrieval.recall@1"] == (0.5, 2)  # p1#2 is the evidence of A1 alone


def test_mistakes_name_the_option_or_the_line(own: Folder) -> None:
    slip = own.run("score", "gold.jsonl", "trace.jsonl", "--field", "answer=reponse")
    assert (slip.exit_code, slip.codes) == (2, {"field-not-found"})
    assert "did you mean `response`" in slip.err
    name = own.run("score", "gold.jsonl", "trace.jsonl", "--field", "anwser=response")
    assert (name.exit_code, name.codes) == (2, {"unknown-name"})
    own.write("ragauge.toml", '[fields.traces]\nanwser = "response"\n')
    line = own.run("score", "gold.jsonl", "trace.jsonl")
    assert (line.exit_code, line.problems[0].where) == (2, "ragauge.toml:2")


def test_messages_name_the_line_of_the_users_file(own: Folder) -> None:
    own.write("trace.jsonl", lines_of(OWN_TRACES[:1]) + b'{"meta": {"key": "A2"}, "response": 5}\n')
    done = own.run("score", "gold.jsonl", "trace.jsonl", *OPTIONS)
    assert done.exit_code == 3
    assert [problem.where for problem in done.problems] == ["trace.jsonl:2"]


def test_they_are_written_under_our_names(own: Folder) -> None:
    """`gold import` and `traces import` make files that need no map, to be edited and kept."""
    own.write("ragauge.toml", CONFIG)
    assert own.run("gold", "import", "gold.jsonl", "-o", "g.jsonl").exit_code == 0
    done = own.run("traces", "import", "trace.jsonl", "-o", "t.jsonl")
    assert "read as rows with your own field names" in done.out
    (own.path / "ragauge.toml").unlink()
    scored = own.run(
        "score", "g.jsonl", "t.jsonl", "--profile", "all", "--format", "json", "--full"
    )
    assert values(scored.out) == expected(own)


def test_tables_are_imported_without_a_map(folder: Folder) -> None:
    folder.write("gold.csv", "qid,question,relevant\na,What?,x|y\n")
    done = folder.run("gold", "import", "gold.csv", "-o", "g.jsonl")
    assert done.exit_code == 0, done.err
    row = json.loads((folder.path / "g.jsonl").read_text("utf-8"))
    assert row["relevant"] == ["x", "y"]


def test_tools_for_gold_read_them_too(own: Folder) -> None:
    own.write("ragauge.toml", CONFIG)
    assert own.run("gold", "stats", "gold.jsonl").exit_code == 0
    assert own.run("gold", "freeze", "gold.jsonl").exit_code == 0
    assert own.run("gold", "verify", "gold.jsonl").exit_code == 0
    lint = own.run("gold", "lint", "gold.jsonl")
    assert "missing-field" not in lint.err
