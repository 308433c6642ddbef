"""Options that the whole suite knows."""

from __future__ import annotations

import gc
import itertools
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.command import Folder

# What a shell or a CI service may say about colour, width and itself: processes that tests start
# would say other things than the tests expect, as pytest does where `CI` is set.
_NOT_OURS = (
    "BUILDKITE", "BUILD_NUMBER", "CI", "CI_", "CIRCLE", "COLUMNS", "FORCE_COLOR", "GITHUB_",
    "GITLAB_", "JENKINS_", "LINES", "NO_COLOR", "PYTEST_ADDOPTS", "PYTHONDONTWRITEBYTECODE",
    "PY_COLORS", "RAGAUGE_ALLOW_HOSTS", "RAGAUGE_COMMIT", "RAGAUGE_DEBUG", "SOURCE_DATE_EPOCH",
    "TEAMCITY_VERSION", "TF_BUILD",
)  # fmt: skip
_PREFIXES = tuple(name for name in _NOT_OURS if name.endswith("_"))


def pytest_configure(config: pytest.Config) -> None:
    """Make the ground even: environment, a place for what tests cache, interrupts that arrive.

    A shell that runs the suite in the background has interrupts ignored, and whoever is started
    from here would ignore them too.
    """
    # Containers often turn bytecode off. Without it pytest rewrites the asserts of 700 modules in
    # every run (10 s of CPU), and each process that a test starts compiles all that it imports.
    sys.dont_write_bytecode = False
    # Not before that line: pytest rewrites the asserts of hypothesis, too.
    from hypothesis import HealthCheck, settings

    from tests.support.effort import examples

    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    settings.register_profile(
        "steady", parent=examples(50), suppress_health_check=[HealthCheck.too_slow]
    )  # a slow machine is no fault, and nothing is left over from the last time
    settings.load_profile("steady")
    for name in [name for name in os.environ if name in _NOT_OURS or name.startswith(_PREFIXES)]:
        del os.environ[name]
    # Thousands of collected tests are looked at by every full collection, and none is ever freed:
    # with the usual thresholds that takes a fifth of the time.
    gc.set_threshold(100_000, 50, 50)
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="ragauge-tests-")
        os.environ["XDG_CACHE_HOME"] = folder.name
        os.environ["XDG_CONFIG_HOME"] = folder.name
        config.add_cleanup(folder.cleanup)


def pytest_collection_finish() -> None:
    """Take what was collected out of every later collection of garbage: it stays to the end."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite tests/golden/expected from what the commands print now",
    )


@pytest.fixture(autouse=True)
def _modules_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Modules that a test wrote and imported are not those of the next test."""
    path, last = list(sys.path), next(reversed(sys.modules))
    yield
    sys.path[:] = path
    base = str(tmp_path_factory.getbasetemp())
    # In the order of imports: what this test imported stands behind what was last before it.
    for name in list(itertools.takewhile(lambda name: name != last, reversed(sys.modules))):
        if any(place.startswith(base) for place in _places(sys.modules[name])):
            del sys.modules[name]


def _places(module: ModuleType) -> list[str]:
    """Where a module was read from; a folder without `__init__` only has paths."""
    file = getattr(module, "__file__", None)
    return [file] if file else [str(each) for each in getattr(module, "__path__", ())]


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Folder:
    """An empty current folder in which commands are run inside the test process."""
    from tests.support.command import Folder

    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path, capsys)
