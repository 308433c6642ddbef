"""A real Chromium: where it is, and what is said where it is not."""

from __future__ import annotations

import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)

WITHOUT_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None, reason="there is no Chromium: apt-get install chromium"
)
NEEDS_CHROMIUM = [pytest.mark.slow, pytest.mark.xdist_group("browser"), WITHOUT_CHROMIUM]
"""The marks of every test that opens a browser."""
