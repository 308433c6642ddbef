"""The browser that all tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.chromium import CHROMIUM


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    sync = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not there: pip install playwright"
    )
    with sync.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
