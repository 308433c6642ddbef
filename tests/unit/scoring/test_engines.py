"""Every engine does every kind of work, and gives the same results in the order of the ranges."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ragauge import registry
from ragauge.files.open import opened
from ragauge.files.ranges import Range, plan
from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.scoring.engines.choose import Engine
from ragauge.scoring.engines.local import InProcess, Subprocesses
from ragauge.scoring.gold_table import gold_table
from ragauge.scoring.row_index import row_index
from ragauge.scoring.scoring_run import ScoringPlan, job_of
from ragauge.scoring.tasks.job import Job
from ragauge.scoring.tasks.pack import SerialiseRows
from ragauge.scoring.tasks.task import FindIds, RangeTask, Reduce, Work

QIDS = tuple(f"q{number}" for number in range(40))


@pytest.fixture(
    params=[
        pytest.param(InProcess, id="in-process"),
        pytest.param(lambda: Subprocesses(2), id="subprocesses", marks=pytest.mark.slow),
    ]
)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with ExitStack() as stack:
        made = request.param()
        yield stack.enter_context(made) if hasattr(made, "__enter__") else made


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    path = tmp_path / "trace.jsonl"
    rows = [{"qid": qid, "retrieved_ids": [f"a{qid}", "b"]} for qid in QIDS]
    path.write_bytes(b"\n".join(map(msgspec.json.encode, rows)) + b"\n")
    profile = registry.profile("all")
    items = [GoldItem(qid=qid, relevant=(f"a{qid}",)) for qid in QIDS]
    table = gold_table(items, profile, Options(), name="gold")
    with opened(path) as source:
        yield job_of(
            ScoringPlan(
                profile=profile, dialect=registry.dialect("native"), own=True, k=(5,), selected=[]
            ),
            table,
            source,
        )


def parts(job: Job) -> list[Range]:
    """Ranges of a few rows, with their first lines: every row takes one line."""
    with open(job.source.path, "rb") as file:
        data = file.read()
    return [
        replace(part, first_line=1 + data[: part.start].count(b"\n"))
        for part in plan(job.source, range_bytes=150)
    ]


def done(engine: Engine, work: Work[Any], job: Job, ranges: Sequence[Range]) -> list[Any]:
    return list(engine.map(RangeTask(work, job), ranges))


def test_results_come_in_the_order_of_the_ranges(engine: Engine, job: Job) -> None:
    ranges = parts(job)
    assert len(ranges) > 8  # more than two workers have ahead of who takes the results
    found = done(engine, Reduce(), job, ranges[::-1])
    assert [partial.range_index for partial in found] == [part.index for part in ranges[::-1]]
    assert sum(partial.traces for partial in found) == len(QIDS)


def test_one_engine_does_different_work_on_one_job(engine: Engine, job: Job) -> None:
    """As a run does: reduce, look for ids, then rows for a store."""
    ranges = parts(job)
    done(engine, Reduce(), job, ranges[::-1])
    ids = done(engine, FindIds(frozenset({"aq0", "aq39", "b", "c"})), job, ranges)
    assert (ids[0], ids[-1]) == (["aq0", "b"], ["aq39", "b"])
    rows = [row for part in done(engine, SerialiseRows(QIDS), job, ranges) for row in part.rows]
    assert [facts.query_id for facts, _, _ in rows] == list(QIDS)


def test_rows_are_noted_where_a_page_asks_for_them(engine: Engine, job: Job) -> None:
    data = Path(job.source.path).read_bytes()
    assert all(partial.noted is None for partial in done(engine, Reduce(), job, parts(job)[::-1]))
    partials = done(engine, Reduce(), replace(job, note_rows=True), parts(job)[::-1])
    index = row_index([(0, partial.noted) for partial in partials])
    assert index.question.tolist() == list(range(len(QIDS)))
    begin, size = index.begin[-1], index.size[-1]
    assert data[begin : begin + size] == data.splitlines()[-1]


def test_reducing_again_begins_anew(engine: Engine, job: Job) -> None:
    """Under `keep = last` a reducer passes over questions that it met; a new one has met none."""
    job = replace(job, rules=replace(job.rules, keep="last"))
    ranges = parts(job)[::-1]
    first, second = (done(engine, Reduce(), job, ranges) for _ in range(2))
    assert [partial.columns for partial in first] == [partial.columns for partial in second]
    assert any(partial.columns.numbers["question"] for partial in second)


def test_another_job_replaces_the_first(engine: Engine, job: Job) -> None:
    ranges = parts(job)
    done(engine, Reduce(), job, ranges[::-1])
    only = gold_table([GoldItem(qid="q1")], registry.profile("all"), Options(), name="gold")
    fewer = replace(job, keys=only.keys)
    found = done(engine, Reduce(), fewer, ranges[::-1])
    assert sum(partial.unknown for partial in found) == len(QIDS) - 1


@pytest.mark.slow
def test_a_worker_imports_no_numpy() -> None:
    """It starts in a third of the time without."""
    code = "import ragauge.scoring.engines.worker_process, sys; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
