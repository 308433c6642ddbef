"""`make demo` from a fresh clone: a small environment of its own, and the failing gate."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .process import environment

ROOT = Path(__file__).resolve().parents[2]
MOST_MEGABYTES = 160

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment(),
        encoding="utf-8",
        capture_output=True,
        timeout=600,
        check=False,
    )


def test_the_demo_needs_a_small_environment(tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("there is no make")
    # Any version of one package: whether it is found says if there is an index at all.
    pip = [sys.executable, "-m", "pip", "--retries", "1", "--timeout", "15", "install"]
    if run([*pip, "--dry-run", "--ignore-installed", "--no-deps", "click"]).returncode != 0:
        pytest.skip("no package index can be reached")
    folder = tmp_path / "venv"
    done = run(["make", "demo", f"DEMO_VENV={folder}", f"PYTHON={sys.executable}"])
    assert done.returncode == 0, done.stderr
    assert "\nFAIL: under-refusal\n" in done.stdout
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    assert megabytes < MOST_MEGABYTES
    # What only tests need is not there.
    packages = {path.name for path in folder.glob("lib/python*/site-packages/*")}
    assert {"numpy", "click", "rich"} <= packages
    assert packages.isdisjoint({"pytest", "mypy", "ruff", "pyarrow", "scipy", "playwright"})
