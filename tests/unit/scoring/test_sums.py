"""Counting into the cells of questions, gold items that are let go of, and parts of questions."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ragauge.model.gold import GoldItem
from ragauge.model.options import Options
from ragauge.model.trace import Hit, Timing, Trace
from ragauge.scoring import score, summary
from ragauge.scoring.sums import count_into
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES


@cases("cells", [1, 5, 1_000, 100_000])
@cases("kind", [np.int32, np.int64])
def test_cells_are_counted_whether_few_or_many_are_named(
    cells: int, kind: type[np.int32 | np.int64]
) -> None:
    """Few of many cells are counted one by one, and many of few all together."""
    named = np.random.default_rng(1).integers(0, cells, 300)
    counts = np.ones((1, cells), kind)
    count_into(counts, named)
    assert counts.dtype == kind
    assert (counts[0] == 1 + np.bincount(named, minlength=cells)).all()


def test_items_that_were_let_go_of_are_read_again_for_a_store(tmp_path: Path) -> None:
    """After the table nothing holds the items of a file; a store still gets them all."""
    gold, traces = tmp_path / "gold.jsonl", tmp_path / "trace.jsonl"
    for path, rows in ((gold, GOLD), (traces, TRACES)):
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    with score.opened_inputs(gold, traces) as opened:
        scored = score.score_inputs(opened, score.scoring_plan(opened))
        assert scored._gold.loaded.items == []
        with_hashes = score.score_inputs(opened, score.scoring_plan(opened), hashes=True)
        kept = with_hashes.to_store().items
        assert kept
        assert scored.to_store().items == kept


@pytest.mark.parametrize("together", [1, 3, 1 << 14])
def test_parts_have_the_same_numbers_however_many_are_measured_together(
    monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """A part with many questions is measured metric by metric, small ones in one go."""
    items = [
        GoldItem(
            qid=f"q{number}",
            relevant=(f"guide{number % 4}#1",),
            tags=("even", "all") if number % 2 == 0 else ("all",),
        )
        for number in range(12)
    ]
    traces = [
        Trace(
            qid=item.qid,
            hits=(Hit("x"), Hit(item.relevant[0] if number % 3 else "y")),
            timing=Timing(total=10.0 * number),
        )
        for number, item in enumerate(items)
    ]
    options = Options(min_n=3)
    expected = score.score(items, traces, profile="all", options=options)
    monkeypatch.setattr(summary, "_TOGETHER", together)
    found = score.score(items, traces, profile="all", options=options)
    assert found.slices == expected.slices
    assert found.slices["document"].keys() == {f"guide{number}" for number in range(4)}
    # guide1 has questions 1, 5 and 9, of which 9 lacks its evidence; guide0 lacks 0.
    recall = {name: part.value("retrieval.recall@5") for name, part in found.slices["tag"].items()}
    assert recall == {"all": 8 / 12, "even": 4 / 6}
    assert found.slices["document"]["guide1"].value("retrieval.recall@5") == pytest.approx(2 / 3)
