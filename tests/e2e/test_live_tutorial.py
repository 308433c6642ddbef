"""The page "from zero to monitored in ten minutes", run word for word by a fast clock."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.fast_clock import fast_environment
from tests.unit.test_docs import blocks_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tutorial" / "live.md"
PATIENCE = 240.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="the page is for a POSIX shell"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl"),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Terminals:
    """The folder of the page, with the programs that it calls, and what runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "page"
        self.folder.mkdir()
        programs = folder / "programs"
        programs.mkdir()
        for name, module in (("python", ""), ("ragauge", "-m ragauge ")):
            path = programs / name
            path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module}"$@"\n', "utf-8")
            path.chmod(0o755)
        path_of_all = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**fast_environment(folder / "clock"), "PATH": path_of_all}
        self.running: list[subprocess.Popen[bytes]] = []

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, "utf-8")

    def start(self, name: str, script: str) -> None:
        """Run a block in a terminal of its own."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                ["sh", "-c", script], cwd=self.folder, env=self.environment, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        self.running.append(process)
        if name == "server":
            self.wait_for(name, "listening on")

    def wait_for(self, name: str, words: str) -> None:
        end = time.monotonic() + 60
        while words not in self.log(name):
            assert time.monotonic() < end, self.log(name)
            time.sleep(0.1)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text("utf-8", "replace")

    def run(self, script: str) -> str:
        """Run a block, and give what it prints."""
        try:
            result = subprocess.run(
                ["sh", "-ec", script], cwd=self.folder, env=self.environment, text=True,
                capture_output=True, timeout=PATIENCE, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            pytest.fail(f"{script}\n{self.log('server')[-4000:]}\n{self.log('toy')[-2000:]}")
        assert result.returncode == 0, result.stderr + self.log("server")[-4000:]
        return result.stdout

    def end(self) -> None:
        for process in reversed(self.running):
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)


@contextmanager
def terminals(folder: Path) -> Iterator[Terminals]:
    opened = Terminals(folder)
    try:
        yield opened
    finally:
        opened.end()


def test_a_toy_gets_worse_is_noticed_and_is_rolled_back(tmp_path: Path) -> None:
    port = free_port()
    lines = PAGE.read_text("utf-8").replace("127.0.0.1:4319", f"127.0.0.1:{port}").split("\n")
    printed = ""
    with terminals(tmp_path) as opened:
        for block in blocks_of(lines):
            text = "".join(f"{line}\n" for line in lines[block.start : block.end])
            if block.options.get("title") == "ragauge.toml":
                text = f"[live]\nport = {port}\n\n{text}"
            if "title" in block.options:
                opened.write(block.options["title"], text)
            elif "terminal" in block.options:
                opened.start(block.options["terminal"], text)
            elif block.language == "sh":
                printed = opened.run(text)
            elif block.language == "text":  # what the block above prints; … stands for anything
                assert re.fullmatch(re.escape(text).replace("…", ".*"), printed)
        assert (opened.folder / "build.txt").read_text("utf-8") == "v1\n"
    assert "Traceback" not in opened.log("server") + opened.log("toy")
