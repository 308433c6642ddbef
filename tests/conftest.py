"""Options that the whole suite knows."""

from __future__ import annotations

import os
import signal
import tempfile

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Make a place for what tests cache, such as vectors, and see to it that interrupts arrive.

    A shell that runs the suite in the background has interrupts ignored, and whoever is started
    from here would ignore them too.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="ragauge-tests-")
        os.environ["XDG_CACHE_HOME"] = folder.name
        config.add_cleanup(folder.cleanup)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite tests/golden/expected from what the commands print now",
    )
