"""Counting into the cells of questions, and gold items that are let go of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ragauge.scoring import score
from ragauge.scoring.sums import count_into
from tests.support.command import GOLD, TRACES


@pytest.mark.parametrize("cells", [1, 5, 1_000, 100_000])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
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
