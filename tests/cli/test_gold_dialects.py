"""Tools that add to a gold set never change its dialect, nor profile, gates and exit code."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
import yaml

from ragauge.files.yaml_writer import list_text
from tests.support.cases import cases
from tests.support.command import Folder, Row, lines_of
from tests.support.umlaut_corpus import BLOCK, HOST, PORT, make_corpus


class Family(NamedTuple):
    """A gold set and traces as their source writes them; the name of the id and the question."""

    gold: list[Row]
    traces: list[Row]
    qid: str = "qid"
    question: str = "question"


def ship(qid: str, block: str) -> Row:
    answer = {"claim": "The port is 8080.", "citations": [block]}
    return {"q_id": qid, "q": f"Which {qid}?", "retrieved_ids": [block], "answer_json": answer}


def smoke(qid: str, block: str) -> Row:
    answer = f"The port is 8080. citations: [{block}]"
    return {"q": f"Which {qid}?", "chunks": [{"id": block}], "answer": answer, "ok": True}


def canary(qid: str, block: str) -> Row:
    hits = [{"id": block, "ΔS": 0.3}]
    return {"qid": qid, "topk": hits, "λ_state": "→", "answer_citations": [block]}


def kb(qid: str, block: str) -> Row:
    hit = {"chunk_id": block, "doc_id": "guide.md"}
    return {"query_id": qid, "query": f"Which {qid}?", "hits_top_k": [hit], "elapsed_ms": 7}


def native(qid: str, block: str) -> Row:
    return {"qid": qid, "hits": [{"id": block}], "answer": {"text": "8080", "citations": [block]}}


TRACE_OF = {"ship": ship, "smoke": smoke, "canary": canary, "kb": kb, "native": native}
WRITTEN_BY_PEOPLE = {"gold_claim_substr", "gold_claim", "paraphrases"}
BLOCKS = {f"A{number}": [BLOCK, PORT, HOST][number % 3] for number in range(6)}


def family(name: str) -> Family:
    gold: list[Row] = []
    for qid, block in BLOCKS.items():
        asked = f"Which {qid}?"
        rows: dict[str, Row] = (
            {
                "ship": {"qid": qid, "question": asked, "answerable": True,
                         "gold_citations": [block], "gold_claim_substr": ["port is"]},
                "smoke": {"qid": qid, "q": asked, "answerable": True, "gold_ids": [block],
                          "gold_claim": "The port is 8080"},
                "canary": {"qid": qid, "paraphrases": [asked, f"{qid}?", f"What {qid}?"],
                           "relevant": [block], "anchor_section": "guide.md#S.1"},
                # One mark only, which one mark of another dialect would have outweighed.
                "kb": {"id": qid, "query": asked, "expected_chunk_ids": [block]},
                "native": {"qid": qid, "question": asked, "answerable": True, "relevant": [block]},
            }
        )  # fmt: skip
        gold.append(rows[name])
    traces = [TRACE_OF[name](qid, block) for qid, block in BLOCKS.items()]
    qid, question = {"kb": ("id", "query"), "smoke": ("qid", "q")}.get(name, ("qid", "question"))
    return Family(gold, traces, qid, question)


class Score(NamedTuple):
    profile: str
    dialect: str
    exit_code: int
    gates: list[Any]
    metrics: dict[str, Any]


def score(folder: Folder, gold: str) -> Score:
    done = folder.run("score", gold, "trace.jsonl", "--full", "-o", "json:scores.json")
    scores = json.loads((folder.path / "scores.json").read_text("utf-8"))
    stats = json.loads(folder.run("gold", "stats", gold, "--format", "json").out)
    metrics = {name: entry["value"] for name, entry in scores["metrics"].items()}
    gates = [(gate["metric"], gate["status"]) for gate in scores["verdict"]["gates"]]
    return Score(scores["profile"], stats["dialect"], done.exit_code, gates, metrics)


def write_gold(folder: Folder, name: str, rows: list[Row]) -> None:
    as_yaml = name.endswith(".yaml")
    folder.write(name, list_text(rows) if as_yaml else lines_of(rows))


@cases("file", ["gold.jsonl", "gold.yaml"])
@cases("name", TRACE_OF)
def test_negatives_leave_dialect_profile_metrics_and_exit_code(
    folder: Folder, name: str, file: str
) -> None:
    make_corpus(folder)
    gold, traces, _, _ = family(name)
    write_gold(folder, file, gold)
    folder.write("trace.jsonl", traces)
    before = score(folder, file)
    assert before.dialect == name
    assert before.profile == ("all" if name == "native" else name)
    done = folder.run("gold", "negatives", file, "--corpus", "corpus", "-n", "2", "-o", file)
    assert done.exit_code == 0, done.err
    assert (folder.path / file).read_text("utf-8").count("negatives") == len(gold)
    after = score(folder, file)
    assert after[:4] == before[:4]
    assert after.metrics.keys() == before.metrics.keys()
    # Metrics on negatives and on what is judged have something to be taken over now, and no other
    # has another value.
    other = {name for name in before.metrics if after.metrics[name] != before.metrics[name]}
    assert all(any(part in name for part in ("negative", "judged", "bpref")) for name in other)


@cases("file", ["gold.jsonl", "gold.yaml"])
@cases("name", TRACE_OF)
def test_drafts_leave_dialect_profile_metrics_and_exit_code(
    folder: Folder, name: str, file: str
) -> None:
    """A person writes the questions, and puts the drafts before the items of the set."""
    make_corpus(folder)
    gold, traces, qid, question = family(name)
    write_gold(folder, file, gold)
    folder.write("trace.jsonl", traces)
    before = score(folder, file)
    done = folder.run("gold", "new", "--corpus", "corpus", "--like", file, "-o", "draft.yaml",
                      "-n", "3")  # fmt: skip
    assert done.exit_code == 0, done.err
    drafts: list[Row] = yaml.safe_load((folder.path / "draft.yaml").read_text("utf-8"))
    assert len(drafts) == 3
    for row in drafts:
        del row["draft"]
        row[question] = f"Which {row[qid]}?"
        row |= {field: gold[0][field] for field in WRITTEN_BY_PEOPLE & gold[0].keys()}
        evidence = next(value[0] for value in row.values() if isinstance(value, list) and value
                        and isinstance(value[0], dict))  # fmt: skip
        traces.append(TRACE_OF[name](row[qid], evidence["id"]))
    write_gold(folder, file, [*drafts, *gold])
    folder.write("trace.jsonl", traces)
    after = score(folder, file)
    # Under `canary` the accuracy of citations can be judged now: drafts say where evidence lies.
    assert after[:3] == before[:3]
    assert [metric for metric, _ in after.gates] == [metric for metric, _ in before.gates]
    assert after.metrics.keys() == before.metrics.keys()


def test_drafts_by_themselves_have_no_dialect_but_the_one_that_was_asked_for(
    folder: Folder,
) -> None:
    make_corpus(folder)
    for name in TRACE_OF:
        options = ["--dialect", name] if name != "native" else []
        done = folder.run("gold", "new", "--corpus", "corpus", "-o", f"{name}.jsonl", *options)
        assert done.exit_code == 0, done.err
        validated = folder.run("validate", f"{name}.jsonl")
        assert f"dialect {name}" in validated.out


def test_drafts_take_no_id_of_the_set(folder: Folder) -> None:
    make_corpus(folder)
    run = ("gold", "new", "--corpus", "corpus", "-n", "4")
    assert folder.run(*run, "-o", "one.jsonl").exit_code == 0
    assert folder.run(*run, "-o", "two.jsonl", "--like", "one.jsonl").exit_code == 0
    ids = [
        json.loads(line)["qid"]
        for name in ("one.jsonl", "two.jsonl")
        for line in (folder.path / name).read_text("utf-8").splitlines()
    ]
    assert len(set(ids)) == 8


@pytest.mark.parametrize("name", ["kb", "smoke", "ship"])
def test_paraphrases_and_a_section_make_no_canary_of_other_gold(folder: Folder, name: str) -> None:
    make_corpus(folder)
    gold, traces, _, _ = family(name)
    folder.write("trace.jsonl", traces)
    folder.write("gold.jsonl", gold)
    before = score(folder, "gold.jsonl")
    gold[0] |= {"paraphrases": ["What?"], "anchor_section": "guide.md#S.1", "negatives": [HOST]}
    folder.write("gold.jsonl", gold)
    assert score(folder, "gold.jsonl")[:4] == before[:4]
