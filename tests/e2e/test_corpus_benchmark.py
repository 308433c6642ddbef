"""The benchmark of corpora runs, and stops where an edit is not found; no test says how fast."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.test_benchmarks import python

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("benchmarks")]


def test_every_edit_is_found_in_a_small_corpus(tmp_path: Path) -> None:
    """60 files have six edits, one of each way."""
    done = python("corpus.py", "--files", "60", "--rounds", "1", "--dir", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sentence changed 1, subtitle inserted 1, line break removed 1" in done.stdout
    assert "edit 1, split 1, merge 2, move " in done.stdout
    assert done.stdout.count("not at this size") == 2
    assert (tmp_path / "map.jsonl").read_bytes().startswith(b'{"schema":"ragauge.migration/1"')
