"""Tests that share a costly set-up run in one worker; a release of pytest broke that silently."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import os
import pathlib
import pytest

SET_UPS = pathlib.Path(__file__).with_name("set_ups")

@pytest.fixture(scope="session")
def costly():
    with SET_UPS.open("a") as file:
        file.write(f"{os.getpid()}\\n")

@pytest.mark.xdist_group("costly")
@pytest.mark.parametrize("number", range(12))
def test_uses_it(costly, number):
    pass
"""


@pytest.mark.slow
def test_a_group_makes_its_set_up_once(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE)
    # No file of settings: neither ours nor one above the temporary folder.
    command = [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", "."]
    command += ["-n", "2", "--dist", "loadgroup", "test_suite.py"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert len((tmp_path / "set_ups").read_text().splitlines()) == 1
