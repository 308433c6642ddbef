"""The fixture of the unit tests: an empty folder that is also the current one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.command import Folder


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Folder:
    """An empty current folder in which commands are run inside the test process."""
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path, capsys)
