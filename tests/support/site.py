"""The documentation site, built once for the tests that look at it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-site" / "bin" / "python"

# One worker for all of them, so that the site is built once.
needs_site = [
    pytest.mark.slow,
    pytest.mark.xdist_group("site"),
    pytest.mark.skipif(not PYTHON.exists(), reason="Sphinx is not there: make site"),
]

_built: dict[str, Path] = {}


def built(factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, made from the pages as they are now; warnings are errors."""
    if "site" not in _built:
        folder = factory.mktemp("site") / "html"
        done = subprocess.run(
            [PYTHON, ROOT / "scripts" / "website.py", "-o", folder],
            cwd=ROOT,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        _built["site"] = folder
    return _built["site"]
