"""`ragauge view` as a real process, with a browser of one's own that notes what it opens."""

from __future__ import annotations

import re
import stat
import sys
from pathlib import Path

import pytest

from tests.e2e.process import GOLD, TRACES, WRONG, run, write

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere a browser opens whatever BROWSER says"
)
NO_SCREEN = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "TERM": ""}  # nothing else can be opened


def note_taking_browser(folder: Path, *, code: int = 0) -> str:
    """A program that notes its arguments, talks, and ends."""
    program = write(
        folder / "browser",
        f'#!/bin/sh\necho "$@" >> "{folder / "opened.txt"}"\necho opening\nexit {code}\n',
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return f"{program} %s"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    write(tmp_path / "gold.jsonl", GOLD)
    for name, traces in (("before", WRONG), ("after", TRACES)):
        write(tmp_path / f"{name}.jsonl", traces)
        done = run(tmp_path, "score", "gold.jsonl", f"{name}.jsonl", "--run-id", name, "--store")
        assert done.returncode in (0, 1), done.stderr
    return tmp_path


def test_the_browser_is_given_the_page_and_its_talk_is_no_output(runs: Path) -> None:
    told = {"BROWSER": note_taking_browser(runs), "XDG_CACHE_HOME": str(runs / "caches")}
    done = run(runs, "view", "before", env=told)
    page = Path(done.stdout.removesuffix("\n"))
    assert done.returncode == 0
    assert page.parent == runs / "caches" / "ragauge" / "pages"
    assert re.fullmatch(r"before-[0-9a-f]{8}\.html", page.name)
    assert (runs / "opened.txt").read_text("utf-8") == f"{page.as_uri()}\n"
    assert "opening" in done.stderr
    text = page.read_text("utf-8")
    assert text.startswith("<!")
    assert "A0002" in text


def test_a_browser_that_fails_is_said_and_the_page_is_there(runs: Path) -> None:
    told = {**NO_SCREEN, "BROWSER": note_taking_browser(runs, code=1)}
    done = run(runs, "view", "after", "--against", "before", "-o", "both.html", env=told)
    assert (done.returncode, done.stdout) == (0, "both.html\n")
    assert "no browser could be opened" in done.stderr
    assert (runs / "both.html").read_text("utf-8").startswith("<!")


def test_a_page_does_not_depend_on_chance(runs: Path) -> None:
    """The same run twice, with other hash seeds: the same bytes."""
    for seed in ("1", "2"):
        for arguments in (("view", "after"), ("view", "after", "--against", "before")):
            name = f"{len(arguments)}-{seed}.html"
            done = run(
                runs, *arguments, "--no-open", "-o", name, env={"PYTHONHASHSEED": seed}
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
    for count in (2, 4):
        one, other = ((runs / f"{count}-{seed}.html").read_bytes() for seed in ("1", "2"))
        assert one == other
