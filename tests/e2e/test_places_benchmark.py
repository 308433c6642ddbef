"""The benchmark of placing runs, and stops where the same hits give other numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.test_benchmarks import python

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("benchmarks")]


def test_hits_said_in_four_ways_give_the_same_numbers(tmp_path: Path) -> None:
    done = python(
        "places.py", "--files", "12", "--traces", "40", "--rounds", "1", "--dir", tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n| ") == 5  # the head and four ways
