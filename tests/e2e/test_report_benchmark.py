"""The benchmark of pages runs, and stops where a page changes what is printed; not how fast."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.test_benchmarks import python, table

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("benchmarks")]


def test_every_kind_of_run_becomes_a_page(tmp_path: Path) -> None:
    done = python("report.py", "--reported", "100", "--rounds", "1", "--dir", tmp_path)
    assert done.returncode == 0, done.stderr
    rows = table(done.stdout, "questions")
    kinds = ("plain", "placed", "told")
    what = ("`score`", "`score -o report.html`", "`view` of a stored run")
    assert [tuple(row[1:3]) for row in rows] == [
        *((kind, each) for kind in kinds for each in what),
        ("other chunks", "`compare`"),
        ("other chunks", "`compare -o report.html`"),
    ]
    # Pages of three kinds twice and of a comparison; those of single runs have a time too.
    assert done.stdout.count("not at this size") == 7 + 6
    for name in ("plain-view", "told-score", "compare"):
        assert (tmp_path / f"{name}.html").read_bytes().startswith(b"<!")
