"""A run that was just scored is told as a stored one is, whatever reads its traces."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.command import GOLD, TRACES, Folder, Row

from ragauge.cli.store_options import temporary_store
from ragauge.files import ranges
from ragauge.model.drilldown import Drilldown
from ragauge.model.trace import Answer, Hit, Trace
from ragauge.report.drilldown.questions import (
    JustScored,
    details_of_run,
    details_of_scored,
    just_scored,
)
from ragauge.scoring import inputs, score
from ragauge.scoring.engines import choose, local
from ragauge.store import runs as run_store

PLACED: Row = {"id": "p1#2", "doc": "p1", "offsets": [4, 9], "text": "words", "doc_hash": "h1"}
MIXED: list[Row] = [
    {**TRACES[0], "seed": 2},
    {**TRACES[0], "seed": 1, "retrieved_ids": ["x"], "answer_json": None},  # it fares worse
    {"qid": "nobody", "retrieved_ids": ["x"]},
    {"qid": "A3", "hits": [PLACED, "pB#1"], "answer": {"text": "Only here.", "citations": ["z"]}},
    {**TRACES[1], "error": "too late"},
    {**TRACES[0], "seed": 2, "retrieved_ids": ["p1#2"]},  # in the place of the first
]
CHUNKS: list[Row] = [{"id": "z", "doc": "d", "start": 0, "end": 5, "text": "seven"}]


@contextmanager
def just_told(
    traces: Any, profile: str | None = None, dialect: str = "auto", **options: Any
) -> Iterator[tuple[JustScored, list[Drilldown]]]:
    """What a page says of the traces of a file that were just scored."""
    with ExitStack() as stack:
        with score.opened_inputs("gold.jsonl", traces, profile=profile, dialect=dialect) as opened:
            plan = score.scoring_plan(opened, intervals=False, note_rows=True)
            scored = score.score_inputs(opened, plan, **options)
            run = stack.enter_context(just_scored(scored.to_store()))
        details = details_of_scored(run, scored.scores)
        found = list(details)
        assert list(details) == found  # they may be walked again
        yield run, found


def stored(traces: Any, **options: Any) -> list[Drilldown]:
    """What is told of them where they are stored."""
    with temporary_store() as store:
        scores = run_store.keep_run(
            store, "gold.jsonl", traces, run_id="r", intervals=False, **options
        )
        with details_of_run(store, run_store.find_run(store, "r"), scores) as details:
            return list(details)


@pytest.fixture
def files(folder: Folder) -> Folder:
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", MIXED)
    folder.write("chunks.jsonl", CHUNKS)
    return folder


@pytest.mark.parametrize("profile", ["all", "ship", "smoke", "kb"])
@pytest.mark.parametrize("chunks", [None, "chunks.jsonl"])
def test_it_is_told_as_a_stored_run_is(files: Folder, profile: str, chunks: str | None) -> None:
    assert files.path.is_dir()
    expected = stored("trace.jsonl", profile=profile, dialect="native", chunks=chunks)
    with just_told("trace.jsonl", profile=profile, dialect="native", chunks=chunks) as (_, found):
        assert found == expected


def test_slots_that_fared_differently_have_their_own_labels(files: Folder) -> None:
    """A1 has two slots, and a later trace took the place of the first one of seed 2."""
    assert files.path.is_dir()
    with just_told("trace.jsonl", profile="all", dialect="native") as (_, found):
        slots = [(each.seed, each.replaced, each.trace, each.label) for each in found[0].attempts]
    assert [each[:3] for each in slots] == [("1", 0, "trace.jsonl:2"), ("2", 1, "trace.jsonl:6")]
    assert slots[0][3] != slots[1][3]
    assert slots[1][3] == "OK"


def test_what_hits_tell_of_expected_ids_and_documents_is_known(files: Folder) -> None:
    assert files.path.is_dir()
    with just_told("trace.jsonl", profile="all", dialect="native") as (aside, found):
        assert aside.evidence.expected["p1#2"].doc == "p1"
        assert aside.evidence.docs["p1"].hashes == ("h1",)
    assert found[0].expected[0].where == "bytes 4-9"


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ranges_and_workers_do_not_show(
    files: Folder, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    expected = stored("trace.jsonl", profile="all", dialect="native")
    plan, begin = ranges.plan, local.Subprocesses.__init__
    started: list[int] = []

    def counted(self: local.Subprocesses, count: int) -> None:
        started.append(count)
        begin(self, count)

    monkeypatch.setattr(choose, "RANGE_BYTES", 64)
    monkeypatch.setattr(inputs, "plan", lambda given: plan(given, range_bytes=64))
    monkeypatch.setattr(local.Subprocesses, "__init__", counted)
    assert files.path.is_dir()
    with just_told("trace.jsonl", profile="all", dialect="native", workers=workers) as (_, found):
        assert found == expected
    assert started[:1] == ([2] if workers == 2 else [])


def test_bad_lines_are_left_out_and_lines_are_counted_with_them(files: Folder) -> None:
    text = Path("trace.jsonl").read_text().splitlines()
    files.write("trace.jsonl", "\n".join(['{"qid": ', "", *text, '{"qid": "A2", "hits": 7}']))
    with just_told("trace.jsonl", "all", "native", skip_bad_lines=True) as (_, found):
        assert [each.trace for each in found[2].attempts] == ["trace.jsonl:6"]
    expected = stored("trace.jsonl", profile="all", dialect="native", on_bad_line="skip")
    assert found == expected


def test_traces_from_memory_are_told_too(files: Folder) -> None:
    assert files.path.is_dir()
    traces = [
        Trace(qid="A1", hits=(Hit("p1#2"),), answer=Answer(claim="X rejects null keys.")),
        Trace(qid="A3", hits=(Hit("q"),), line=9),
    ]
    with just_told(traces, profile="all") as (_, found):
        assert [[each.trace for each in one.attempts] for one in found] == [
            ["<traces>:1"], [], ["<traces>:9"],
        ]  # fmt: skip
        assert found == stored(traces, profile="all")


def test_a_file_that_was_unpacked_is_read_after_its_name_is_gone(
    files: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = stored("trace.jsonl", profile="all", dialect="native")
    (files.path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(files.path / "tmp"))
    Path("trace.jsonl.gz").write_bytes(gzip.compress(Path("trace.jsonl").read_bytes()))
    with just_told("trace.jsonl.gz", profile="all", dialect="native") as (_, found):
        assert not list((files.path / "tmp").iterdir())
    assert str(found).replace("trace.jsonl.gz", "trace.jsonl") == str(expected)


@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_is_told_as_its_elements_are(files: Folder, indent: int | None) -> None:
    rows = [{**row, "seed": None} if row["qid"] == "A1" else row for row in MIXED]
    files.write("trace.json", "\n " + json.dumps(rows, indent=indent) + "\n")
    with just_told("trace.json", profile="all", dialect="native") as (_, found):
        assert [len(one.attempts) for one in found] == [1, 1, 1]
    assert found == stored("trace.json", profile="all", dialect="native")


def test_one_object_is_told(files: Folder) -> None:
    files.write("trace.json", "\n\n " + json.dumps(MIXED[3], indent=2) + "\n")
    with just_told("trace.json", profile="all", dialect="native") as (_, found):
        assert [one.trace for one in found[2].attempts] == ["trace.json:3"]
    assert found == stored("trace.json", profile="all", dialect="native")


def test_scores_are_the_same_with_notes_on_rows(files: Folder) -> None:
    assert files.path.is_dir()
    plain = score.score("gold.jsonl", "trace.jsonl", profile="all", dialect="native")
    with score.opened_inputs(
        "gold.jsonl", "trace.jsonl", profile="all", dialect="native"
    ) as opened:
        scored = score.score_inputs(opened, score.scoring_plan(opened, note_rows=True))
        with just_scored(scored.to_store()):
            pass
    assert list(scored.scores.metrics) == list(plain.metrics)
    assert scored.scores.metrics == plain.metrics
    assert scored.scores.gold_hash is None
    assert scored.scores.per_question is not None
    assert not scored.scores.per_question.hashes
