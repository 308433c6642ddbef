"""Traces with the lists before and after a reranker: each can be scored, and the change is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragauge import load_traces, score
from ragauge.errors import RagaugeError
from ragauge.model.scores import StageDelta
from tests.support.command import Folder, Row

GOLD: list[Row] = [
    {"qid": "Q1", "question": "How hot is it?", "relevant": ["b", "x"]},
    {"qid": "Q2", "question": "How cold is it?", "relevant": ["c"]},
    {"qid": "Q3", "question": "How dry is it?", "relevant": ["d"]},
]
FIRST = {"Q1": ["a", "b"], "Q2": ["a", "d", "c"]}
LAST = {"Q1": ["b", "a"], "Q2": ["d", "a"]}
TRACES: list[Row] = [
    *({"qid": qid, "hits": LAST[qid], "hits_before_rerank": FIRST[qid]} for qid in ("Q1", "Q2")),
    {"qid": "Q3", "hits": ["d"]},
]
OWN = [{"qid": trace["qid"], "hits": FIRST.get(trace["qid"], ["d"])} for trace in TRACES]


def lines(path: Path, rows: Sequence[Row]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


@pytest.fixture
def gold(tmp_path: Path) -> Path:
    return lines(tmp_path / "gold.jsonl", GOLD)


def values(scored: Any) -> dict[str, tuple[float | None, int]]:
    return {name: (one.value, one.n) for name, one in scored.metrics.items()}


def test_the_last_list_counts_and_the_change_is_told(gold: Path, tmp_path: Path) -> None:
    scored = score(gold, lines(tmp_path / "t.jsonl", TRACES), metrics=["retrieval.*"], k=[1, 3])
    # Q1: 1 of 2 at rank 1; Q2: c is lost; Q3: 1 of 1.
    assert scored.metrics["retrieval.recall@3"].value == pytest.approx((1 / 2 + 0 + 1) / 3)
    deltas = {delta.metric: delta for delta in scored.stages}
    # Over Q1 and Q2 alone: Q3 had no reranker. First list: Q1 1/2, Q2 1/1; last: Q1 1/2, Q2 0.
    assert deltas["retrieval.recall@3"] == StageDelta(
        metric="retrieval.recall@3", first=3 / 4, last=1 / 4, n=2, better=0, worse=1
    )
    # Q1: rank 2, then 1; Q2: rank 3, then none: (1/2 + 1/3) / 2 and (1 + 0) / 2.
    mrr = deltas["retrieval.mrr@10"]
    assert mrr.first == pytest.approx(5 / 12)
    assert mrr.last == 1 / 2
    assert (mrr.n, mrr.better, mrr.worse) == (2, 1, 1)
    assert scored.stage == "last"


def test_the_first_list_gives_the_numbers_of_traces_that_have_no_other(
    gold: Path, tmp_path: Path
) -> None:
    traces = lines(tmp_path / "t.jsonl", TRACES)
    first = score(gold, traces, metrics=["retrieval.*"], stage="first")
    alone = score(gold, lines(tmp_path / "own.jsonl", OWN), metrics=["retrieval.*"])
    assert values(first) == values(alone)
    assert (first.stage, alone.stages) == ("first", ())
    assert first.stages == score(gold, traces, metrics=["retrieval.*"]).stages


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["first", "last"])
def test_files_workers_rows_and_values_in_memory_agree(
    gold: Path, tmp_path: Path, stage: Any
) -> None:
    # Two ranges and more: else there is nothing to share between workers.
    long = [{**trace, "note": "x" * 700_000} for trace in TRACES]
    traces = lines(tmp_path / "t.jsonl", long)
    alone = score(gold, traces, profile="all", stage=stage, workers=1)
    together = score(gold, traces, profile="all", stage=stage, workers=2)
    rows = score(GOLD, TRACES, profile="all", stage=stage)
    loaded = score(gold, load_traces(traces), profile="all", stage=stage)
    # A field that is read twice under other names sends a row to the exact path.
    exact = [{**trace, "delta_s": None, "retrieval": {"k": 3}} for trace in TRACES]
    slow = score(gold, lines(tmp_path / "exact.jsonl", exact), profile="all", stage=stage)
    for other in (together, rows, loaded, slow):
        assert values(other) == values(alone)
        assert other.stages == alone.stages


@pytest.mark.parametrize("name", ["topk", "retrieved_ids", "retrieval"])
def test_the_first_list_takes_the_place_of_the_hits_whatever_they_are_called(
    gold: Path, tmp_path: Path, name: str
) -> None:
    renamed = [{**trace} for trace in TRACES]
    for trace in renamed:
        hits = trace.pop("hits")
        trace[name] = {"hits": hits} if name == "retrieval" else hits
    scored = score(gold, lines(tmp_path / "t.jsonl", renamed), profile="all", stage="first")
    plain = score(gold, lines(tmp_path / "own.jsonl", OWN), profile="all")
    assert values(scored)["retrieval.recall@5"] == values(plain)["retrieval.recall@5"]


def test_traces_without_a_first_list_have_no_first_stage(gold: Path, tmp_path: Path) -> None:
    traces = lines(tmp_path / "t.jsonl", [{**row, "hits_before_rerank": None} for row in OWN])
    for given in (traces, load_traces(traces), OWN):
        with pytest.raises(RagaugeError, match="no trace has a list of hits before a reranker"):
            score(gold, given, stage="first")
    assert score(gold, traces, profile="all").stages == ()


def test_an_empty_first_list_is_a_list(gold: Path, tmp_path: Path) -> None:
    rows = [{"qid": "Q2", "hits": [], "hits_before_rerank": []}]
    scored = score(gold, lines(tmp_path / "t.jsonl", rows), profile="all", stage="first")
    assert {(delta.first, delta.last, delta.n) for delta in scored.stages} == {(0, 0, 1)}


def test_the_list_may_be_called_as_the_user_likes(gold: Path, tmp_path: Path) -> None:
    rows = [
        {
            "qid": qid,
            "hits": LAST[qid],
            "debug": {"candidates": [{"uid": chunk} for chunk in FIRST[qid]]},
        }
        for qid in FIRST
    ]
    fields = {"hits_before_rerank": "debug.candidates[].uid"}
    scored = score(
        gold, lines(tmp_path / "t.jsonl", rows), profile="all", fields=fields, stage="first"
    )
    first = {delta.metric: delta.first for delta in scored.stages}
    assert first["retrieval.mrr@10"] == pytest.approx(5 / 12)


@pytest.mark.slow
def test_commands_take_the_stage(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("t.jsonl", TRACES)
    folder.write("own.jsonl", OWN)
    files = ("score", "gold.jsonl", "t.jsonl", "--profile", "all", "--k", "3")
    shown = folder.run(*files)
    assert ["recall@3", "0.7500", "0.2500", "-0.5000", "0", "1", "2"] in [
        line.split()[-7:] for line in shown.out.replace("retrieval.", "").splitlines()
    ]
    first = folder.run(*files, "--stage", "first")
    assert "3 traces scored on the hits before the reranker" in first.out
    page = folder.run(*files, "--format", "md").out
    assert "## Reranked" in page
    assert "| -0.5000 | 0 | 1 | 2 |" in page
    for name, heading in (("comment", "#### Reranked"), ("summary", "### Reranked")):
        text = folder.run(*files, "--format", name).out
        assert "| -0.5000 | 0 | 1 | 2 |" in text.partition(f"\n{heading}\n")[2], name
    folder.run(*files, "-o", "page.html")
    html = (folder.path / "page.html").read_text("utf-8")
    assert '<td class="number">-0.5000</td>' in html.partition('id="reranked"')[2]
    saved = json.loads(folder.run(*files, "--stage", "first", "--format", "json").out)
    assert saved["stage"] == "first"
    assert saved["stages"][0].keys() == {"metric", "first", "last", "n", "better", "worse"}
    same = folder.run(
        *("compare", "own.jsonl", "t.jsonl", "--gold", "gold.jsonl", "--profile", "all"),
        *("--stage", "first", "--fail-on", "loss"),
    )
    assert (same.exit_code, same.codes) == (3, {"missing-field"})  # own.jsonl has one list
    folder.write("both.jsonl", [{**row, "hits_before_rerank": row["hits"]} for row in OWN])
    for stage, code in (("first", 0), ("last", 1)):
        done = folder.run(
            *("compare", "both.jsonl", "t.jsonl", "--gold", "gold.jsonl", "--profile", "all"),
            *("--stage", stage, "--fail-on", "loss"),
        )
        assert done.exit_code == code, done.out
    folder.run(*files[:3], "--profile", "all", "--full", "-o", "scores.json")
    for other in ("scores.json", "stored"):
        folder.run("score", *files[1:3], "--store", "sqlite:///r.db", "--run-id", "stored")
        done = folder.run(
            *("compare", "t.jsonl", other, "--gold", "gold.jsonl", "--stage", "first"),
            *("--store", "sqlite:///r.db"),
        )
        assert done.exit_code == 2, done.out
        assert f"--stage first: {other} is no trace file" in done.err


def test_a_run_stores_the_stage_that_it_is_asked_for(folder: Folder) -> None:
    folder.write("gold.jsonl", GOLD)
    folder.write("t.jsonl", TRACES)
    folder.write(
        "system.py",
        "import json\n"
        "from pathlib import Path\n"
        "rows = map(json.loads, Path('t.jsonl').read_text().splitlines())\n"
        "TRACES = {row['qid']: row for row in rows}\n"
        "def answer(qid, question):\n"
        "    return TRACES[qid]\n"
        "def plain(qid, question):\n"
        "    return {'hits': TRACES[qid]['hits']}\n",
    )
    run = ("run", "--gold", "gold.jsonl", "--profile", "all", "--format", "json")
    scored = ("score", "gold.jsonl", "t.jsonl", "--profile", "all", "--format", "json")
    for stage in ("last", "first"):
        target = ("--target", "python:system:answer", "--stage", stage, "--run-id", stage)
        stored = json.loads(folder.run(*run, *target).out)
        of_file = json.loads(folder.run(*scored, "--stage", stage).out)
        assert stored["stages"] == of_file["stages"]
        assert stored.get("stage", "last") == of_file.get("stage", "last") == stage
        for metric in ("retrieval.recall@5", "retrieval.mrr@10"):
            assert stored["metrics"][metric]["value"] == of_file["metrics"][metric]["value"]
    done = folder.run(*run, "--target", "python:system:plain", "--stage", "first")
    assert "no answer has `hits_before_rerank`" in done.err


@pytest.mark.slow
def test_a_shadow_is_judged_on_the_stage_that_is_asked_for(folder: Folder) -> None:
    """Files and targets alike: the reranker lost the evidence of Q2, the list before it has it."""
    folder.write("gold.jsonl", GOLD)
    folder.write("t.jsonl", TRACES)
    folder.write("live.jsonl", [{**row, "hits_before_rerank": row["hits"]} for row in OWN])
    folder.write(
        "system.py",
        "import json\n"
        "from pathlib import Path\n"
        "rows = map(json.loads, Path('t.jsonl').read_text().splitlines())\n"
        "TRACES = {row['qid']: row for row in rows}\n"
        "def answer(qid, question):\n"
        "    return TRACES[qid]\n",
    )
    shadow = ("shadow", "--live", "live.jsonl", "--gold", "gold.jsonl", "--profile", "all")
    folder.write("gates.toml", '[gates]\n"retrieval.recall@5" = {max_drop = 0.1}\n')
    gates = ("--gates", "gates.toml", "--index-only", "--format", "json")
    for name in ("t.jsonl", "python:system:answer"):
        for stage, delta in (("last", -1 / 3), ("first", 0)):
            done = folder.run(*shadow, "--shadow", name, *gates, "--stage", stage)
            report = json.loads(done.out)
            changed = report["deltas"]["retrieval.recall@5"]["delta"]
            assert changed == pytest.approx(delta, abs=1e-4), (name, stage)
    stored = ("--store", "sqlite:///r.db")
    folder.run("score", "gold.jsonl", "t.jsonl", *stored, "--run-id", "kept")
    done = folder.run(*shadow, "--shadow", "kept", *stored, "--stage", "first")
    assert done.exit_code == 2
    assert "--stage first: not for a run" in done.err
