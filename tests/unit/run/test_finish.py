"""Storing what arrives: the same facts as for a file, and no answer that cannot be stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragauge.model.chunk import Chunk
from ragauge.model.gold import GoldItem
from ragauge.model.run import ResultRow, RunRecord, Store
from ragauge.model.trace import Hit, Trace
from ragauge.run import finish, run
from ragauge.run.finish import ResultWriter
from ragauge.run.run import Asked, RunInput, ScoringRequest
from ragauge.scoring.chunk_facts import FactsCollector
from ragauge.scoring.scoring_run import InputFacts
from ragauge.spans import Span

RUN = RunRecord(
    run_id="one", suite="", profile="all", created_at="", commit_hash=None, gold_hash="",
    gold_key="",
)  # fmt: skip
CHUNKS = {"c1": Chunk("a.md", (Span(0, 5),)), "c2": Chunk("b.md", ())}
HITS = st.builds(
    Hit,
    id=st.sampled_from(["c1", "c2", "opaque", "p1#2", "doc.md#S.1.p.Bk001"]),
    doc=st.sampled_from([None, "x.md"]),
    text=st.sampled_from([None, "text"]),
    spans=st.sampled_from([(), (Span(1, 2),)]),
)


@given(st.lists(HITS, max_size=4), st.booleans())
def test_what_hits_carry_is_what_a_file_would_tell(hits: list[Hit], listed: bool) -> None:
    chunks = CHUNKS if listed else {}
    trace = Trace(qid="Q", hits=tuple(hits))
    quick = finish._HitFacts(set(), chunks).add(trace)
    assert quick == FactsCollector(set(), chunks).add(trace)


class Shelf:
    """The only method of a store that a keeper needs."""

    def __init__(self) -> None:
        self.rows: list[ResultRow] = []

    def add_results(self, _run_id: str, rows: Sequence[ResultRow]) -> None:
        self.rows += rows

    replace_results = add_results


@pytest.fixture
def material(tmp_path: Any) -> RunInput:
    path = tmp_path / "gold.jsonl"
    path.write_text(
        '{"qid": "A", "question": "a?", "relevant": ["x"]}\n{"qid": "B", "question": "b?"}\n'
    )
    return run.read_run_input(
        path, Asked(address="python:a:b", k=10), ScoringRequest(profile="all")
    )


def test_results_are_counted_and_numbered_by_their_slots(material: RunInput) -> None:
    shelf = Shelf()
    keeper = ResultWriter(cast("Store", shelf), RUN, material.job(), replacing=False)
    kept = keeper.write([
        Trace(qid="B", hits=(Hit("y"),), line=2),
        Trace(qid="A", hits=(Hit("y"), Hit("x")), line=1),
        Trace(qid="A", error="no", seed=1, line=3),
    ])  # fmt: skip
    # A is labelled and was asked twice, found once; B has no evidence to find
    assert (kept.results, kept.errors, kept.hits, kept.labelled) == (3, 1, 1, 2)
    assert [row.facts.ordinal for row in shelf.rows] == [1, 0, 2]
    assert [row.facts.hit_rank for row in shelf.rows] == [None, 2, None]


def test_an_answer_that_cannot_be_stored_is_an_error_and_the_others_stay(
    material: RunInput,
) -> None:
    shelf = Shelf()
    keeper = ResultWriter(cast("Store", shelf), RUN, material.job(), replacing=True)
    odd = Trace(qid="B", hits=(Hit("x"),), extra={"value": object()}, line=2)
    kept = keeper.write([Trace(qid="A", hits=(Hit("x"),), line=1), odd])
    assert (kept.results, kept.errors) == (2, 1)
    assert [row.facts.outcome for row in shelf.rows] == ["ok", "errored"]


def test_a_gold_hash_is_that_of_the_scores(material: RunInput) -> None:
    items = [GoldItem(qid="B", question="b?"), GoldItem(qid="A", question="a?", relevant=("x",))]
    other = RunInput(
        items=items, chunks={}, plan=material.plan, inputs=InputFacts(gold_name="", trace_name="")
    )
    assert other.gold_hash == material.gold_hash  # neither order nor lines play a part
