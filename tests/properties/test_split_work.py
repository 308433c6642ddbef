"""How the work is cut, and how the rows are written down, changes nothing."""

from __future__ import annotations

import itertools
import json
import random
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge import score
from ragauge.files import ranges
from ragauge.scoring import inputs
from ragauge.scoring import score as pipeline
from ragauge.scoring.engines import choose
from ragauge.scoring.scoring_run import ScoringPlan
from ragauge.scoring.tasks import reduce
from tests.properties.datasets import (
    LAYOUTS,
    Data,
    Row,
    as_lines,
    data_sets,
    essence,
    large_data,
    scored,
)
from tests.support.cases import cases
from tests.support.effort import examples

PROFILES = ("all", "ship", "smoke")
profiles = st.sampled_from(PROFILES)


def _cut(patch: pytest.MonkeyPatch, range_bytes: int) -> None:
    """Cut files into ranges of about this many bytes."""
    plan = partial(ranges.plan, range_bytes=range_bytes)
    patch.setattr(inputs, "plan", plan)
    patch.setattr(ranges, "plan", plan)
    patch.setattr(choose, "RANGE_BYTES", range_bytes)


@examples(30)
@given(
    data=data_sets(),
    profile=profiles,
    layout=st.sampled_from(tuple(LAYOUTS)),
    range_bytes=st.integers(1, 700),
)
def test_ranges_do_not_matter(data: Data, profile: str, layout: str, range_bytes: int) -> None:
    """Any size of ranges gives the same scores, lines included."""
    expected = essence(scored(data, profile=profile))
    with pytest.MonkeyPatch.context() as patch:
        _cut(patch, range_bytes)
        assert essence(scored(data, profile=profile, layout=layout)) == expected


@examples(25)
@given(data=data_sets(), profile=profiles, chunk=st.integers(1, 6))
def test_chunks_do_not_matter(data: Data, profile: str, chunk: int) -> None:
    """Any number of rows that are decoded together gives the same scores."""
    expected = essence(scored(data, profile=profile))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduce, "_CHUNK", chunk)
        assert essence(scored(data, profile=profile)) == expected


@examples(25)
@given(data=data_sets(), profile=profiles, batch=st.integers(1, 6), range_bytes=st.integers(1, 500))
def test_batches_do_not_matter(data: Data, profile: str, batch: int, range_bytes: int) -> None:
    """Any number of records that are added up together gives the same scores."""
    expected = essence(scored(data, profile=profile))
    with pytest.MonkeyPatch.context() as patch:
        _cut(patch, range_bytes)
        patch.setattr(pipeline, "ScoringPlan", partial(ScoringPlan, batch_records=batch))
        assert essence(scored(data, profile=profile)) == expected


def test_batches_do_not_matter_to_what_is_printed_first() -> None:
    """The rules that decided refusals are listed in one order, whichever was met first."""
    gold: list[Row] = [{"qid": "q0", "answerable": True}]
    said: list[Row] = [{"answer": "not in context"}, {"refused": True}, {"grounded": False}]
    found = set()
    for order in itertools.permutations(said):
        trace = [{"qid": "q0", "seed": seed, **row} for seed, row in enumerate(order)]
        for batch in (1, 100):
            with pytest.MonkeyPatch.context() as patch:
                _cut(patch, 1)
                patch.setattr(pipeline, "ScoringPlan", partial(ScoringPlan, batch_records=batch))
                found.add(tuple(scored(Data(gold, trace)).refusal_rules.items()))
    assert len(found) == 1
    assert len(found.pop()) == 3


@cases("layout", LAYOUTS)
@cases("profile", PROFILES)
def test_layouts_do_not_matter(layout: str, profile: str) -> None:
    """Lines, an array, gzip, CRLF and a byte order mark are the same rows."""
    data = large_data(3, 40)
    plain = scored(data, profile=profile, k=2)
    assert essence(scored(data, profile=profile, k=2, layout=layout)) == essence(plain)


@cases("profile", PROFILES)
@cases("layout", ["lines", "array", "gzip"])
def test_workers_do_not_matter(profile: str, layout: str) -> None:
    """One process or two give the same scores."""
    data = large_data(5, 60)
    random.Random(5).shuffle(data.trace)
    data.trace.extend(data.trace[::3])
    expected = essence(scored(data, profile=profile, k=3, workers=1))
    with pytest.MonkeyPatch.context() as patch:
        _cut(patch, 2_000)
        found = scored(data, profile=profile, k=3, workers=2, layout=layout)
    assert essence(found) == expected


def test_two_workers_are_really_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would say nothing if the file were too small for a second process."""
    from ragauge.scoring.engines import local

    started: list[int] = []
    begin = local.Subprocesses.__init__

    def counted(self: local.Subprocesses, workers: int) -> None:
        started.append(workers)
        begin(self, workers)

    monkeypatch.setattr(local.Subprocesses, "__init__", counted)
    _cut(monkeypatch, 2_000)
    scored(large_data(5, 60), workers=2)
    assert started == [2]


@pytest.mark.parametrize("range_bytes", [1, 300, 1 << 20])
def test_rows_over_many_lines_are_named_by_their_first(range_bytes: int, tmp_path: Path) -> None:
    """In a printed array a row is where its bracket opens, however the file is cut."""
    data = large_data(4, 12)
    last = {row["qid"]: {**row, "error": None} for row in data.trace}
    text = "\n\n" + json.dumps(list(last.values()), indent=2)
    opened = [number for number, line in enumerate(text.split("\n"), 1) if line == "  {"]
    gold, trace = tmp_path / "gold", tmp_path / "trace"
    gold.write_bytes(as_lines(data.gold))
    trace.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        _cut(patch, range_bytes)
        scores = score(gold, trace, profile="all", intervals=False)
    found = {each.qid: each.trace for each in scores.questions if each.trace is not None}
    assert found == {qid: f"{trace}:{line}" for qid, line in zip(last, opened, strict=True)}


@pytest.mark.parametrize("range_bytes", [1, 1_000, 1 << 20])
def test_bad_lines_keep_their_numbers(range_bytes: int) -> None:
    """Skipped lines are counted and named by line, however the file is cut."""
    data = large_data(9, 30)
    data.trace[4] = {"qid": 4.5}
    data.trace[11] = {"qid": "q1", "retrieved_ids": "p1"}
    with pytest.MonkeyPatch.context() as patch:
        _cut(patch, range_bytes)
        scores = scored(data, on_bad_line="skip", intervals=False)
    assert scores.tally.trace_skipped == 2
    places = [int(line.partition("trace:")[2].split()[0]) for line in scores.skipped]
    assert places == [5, 12]
