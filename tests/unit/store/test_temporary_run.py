"""A run that is put aside is told as a stored one is, whatever reads its traces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ragauge.cli.store_options import passing_store
from ragauge.concurrency import beside
from ragauge.files import ranges
from ragauge.model.drilldown import Drilldown
from ragauge.model.trace import Answer, Hit, Trace
from ragauge.report.drilldown.questions import details_of_aside, details_of_run
from ragauge.scoring import inputs, score
from ragauge.scoring.engines import local
from ragauge.scoring.inputs import Kept
from ragauge.store import runs as run_store
from ragauge.store.temporary_run import Aside, put_aside
from tests.support.command import GOLD, TRACES, Folder, Row

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
def laid(traces: Any, **options: Any) -> Iterator[tuple[Aside, list[Drilldown]]]:
    """What is told of the traces of a file that were scored and put aside."""
    kept: list[Kept] = []
    asides = []

    def look(given: Kept) -> None:
        kept.append(given)
        asides.append(put_aside(given))
        opened.append(asides[0].__enter__())

    opened: list[Aside] = []
    scores = score.score("gold.jsonl", traces, intervals=False, look=look, **options)
    try:
        details = details_of_aside(opened[0], scores)
        found = list(details)
        assert list(details) == found  # they may be walked again
        yield opened[0], found
    finally:
        asides[0].__exit__(None, None, None)


def stored(traces: Any, **options: Any) -> list[Drilldown]:
    """What is told of them where they are stored."""
    with passing_store() as store:
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
    with laid("trace.jsonl", profile=profile, dialect="native", chunks=chunks) as (_, found):
        assert found == expected


def test_slots_that_fared_differently_have_their_own_labels(files: Folder) -> None:
    """A1 has two slots, and a later trace took the place of the first one of seed 2."""
    assert files.path.is_dir()
    with laid("trace.jsonl", profile="all", dialect="native") as (_, found):
        slots = [(each.seed, each.replaced, each.trace, each.label) for each in found[0].attempts]
    assert [each[:3] for each in slots] == [("1", 0, "trace.jsonl:2"), ("2", 1, "trace.jsonl:6")]
    assert slots[0][3] != slots[1][3]
    assert slots[1][3] == "OK"


def test_what_hits_tell_of_expected_ids_and_documents_is_known(files: Folder) -> None:
    assert files.path.is_dir()
    with laid("trace.jsonl", profile="all", dialect="native") as (aside, found):
        assert aside.evidence.expected["p1#2"].doc == "p1"
        assert aside.evidence.docs["p1"].hashes == ("h1",)
    assert found[0].expected[0].where == "bytes 4-9"


@pytest.mark.parametrize("workers", [1, 2])
def test_ranges_and_workers_do_not_show(
    files: Folder, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    expected = stored("trace.jsonl", profile="all", dialect="native")
    plan, begin = ranges.plan, local.Subprocesses.__init__
    started: list[int] = []

    def counted(self: local.Subprocesses, count: int) -> None:
        started.append(count)
        begin(self, count)

    monkeypatch.setattr(inputs, "RANGE_BYTES", 64)
    monkeypatch.setattr(inputs, "plan", lambda given: plan(given, range_bytes=64))
    monkeypatch.setattr(local.Subprocesses, "__init__", counted)
    assert files.path.is_dir()
    with laid("trace.jsonl", profile="all", dialect="native", workers=workers) as (_, found):
        assert found == expected
    assert started[:1] == ([2] if workers == 2 else [])


def test_bad_lines_are_left_out_and_lines_are_counted_with_them(files: Folder) -> None:
    text = Path("trace.jsonl").read_text().splitlines()
    files.write("trace.jsonl", "\n".join(['{"qid": ', "", *text, '{"qid": "A2", "hits": 7}']))
    with laid("trace.jsonl", profile="all", dialect="native", on_bad_line="skip") as (_, found):
        assert [each.trace for each in found[2].attempts] == ["trace.jsonl:6"]
    expected = stored("trace.jsonl", profile="all", dialect="native", on_bad_line="skip")
    assert found == expected


def test_traces_from_memory_are_put_aside_too(files: Folder) -> None:
    assert files.path.is_dir()
    traces = [
        Trace(qid="A1", hits=(Hit("p1#2"),), answer=Answer(claim="X rejects null keys.")),
        Trace(qid="A3", hits=(Hit("q"),), line=9),
    ]
    with laid(traces, profile="all") as (_, found):
        assert [[each.trace for each in one.attempts] for one in found] == [
            ["<traces>:1"], [], ["<traces>:9"],
        ]  # fmt: skip
        assert found == stored(traces, profile="all")


def test_the_file_is_gone_at_the_end(files: Folder) -> None:
    assert files.path.is_dir()
    with laid("trace.jsonl", profile="all", dialect="native") as (aside, _):
        path = Path(aside.source.path)
        assert len(path.read_bytes().splitlines()) == len(MIXED)
    assert not path.exists()


def test_scores_are_the_same_for_who_looks(files: Folder) -> None:
    assert files.path.is_dir()
    given: dict[str, Any] = {"profile": "all", "dialect": "native", "intervals": False}
    plain = score.score("gold.jsonl", "trace.jsonl", **given)
    looked = score.score("gold.jsonl", "trace.jsonl", look=lambda _: None, **given)
    assert list(looked.metrics) == list(plain.metrics)
    assert looked.metrics == plain.metrics
    assert looked.gold_hash is None
    assert looked.per_question is not None
    assert not looked.per_question.hashes


@pytest.mark.parametrize("cores", [1, 3])
def test_work_beside_comes_back_in_order(monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    monkeypatch.setattr("ragauge.concurrency.cores", lambda: cores)
    assert list(beside(str, range(100))) == [str(each) for each in range(100)]


@pytest.mark.parametrize("cores", [1, 3])
def test_work_beside_is_not_far_ahead_and_may_be_left(
    monkeypatch: pytest.MonkeyPatch, cores: int
) -> None:
    """Three threads and eight pieces each, and the next that is asked for."""
    monkeypatch.setattr("ragauge.concurrency.cores", lambda: cores)
    asked: list[int] = []

    def given() -> Iterator[int]:
        for each in range(1000):
            asked.append(each)
            yield each

    made = beside(str, given())
    assert next(made) == "0"
    assert len(asked) <= 3 * 8 + 1
    made.close()  # type: ignore[attr-defined]


def test_what_goes_wrong_beside_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragauge.concurrency.cores", lambda: 2)
    words: Sequence[str] = ["1", "2", "x", "4"]
    with pytest.raises(ValueError, match="x"):
        list(beside(int, words))
