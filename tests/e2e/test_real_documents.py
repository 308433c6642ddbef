"""Parsers fail on no real document: PDFs of many producers, and changed documents of every kind."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.e2e.process import environment
from tests.e2e.test_benchmarks import BENCHMARKS

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("documents")]

UNREACHABLE = 75
TIMEOUT = 600  # the first time 27 MB are fetched


def test_parsers_fail_on_no_real_document_and_on_no_changed_one() -> None:
    """`make slow-documents` does the same with a hundred times as many changes."""
    done = subprocess.run(
        [sys.executable, "documents.py", "--small", "--mutations", "5"],
        cwd=BENCHMARKS, env=environment(), encoding="utf-8", capture_output=True, timeout=TIMEOUT,
        check=False,
    )  # fmt: skip
    if done.returncode == UNREACHABLE:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    figures = re.search(r"^(\d+) PDFs of (\d+) producers; parsers failed on 0$", done.stdout, re.M)
    assert figures is not None, done.stdout
    assert int(figures[1]) >= 100
    assert int(figures[2]) >= 30
