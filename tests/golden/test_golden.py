"""What the commands print for the bundled example, byte by byte.

`make golden` (pytest tests/golden --update-golden) rewrites the files; review reads the diff.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

EXPECTED = Path(__file__).parent / "expected"
BAD_LINE = b'{"qid": "D17", "retrieved_ids": ["pickup#2"], "answer_json": {"claim": "Yes.",}}\n'
SCORE = ("score", "gold.jsonl", "trace.jsonl")
# name of the golden file: stream, exit code, command
OUTPUTS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "score-table.txt": ("stdout", 1, SCORE),
    "score-table-all.txt": ("stdout", 0, (*SCORE, "--profile", "all")),
    "score-md.md": ("stdout", 1, (*SCORE, "--format", "md")),
    "score-all.json": ("stdout", 0, (*SCORE, "--profile", "all", "--format", "json")),
    "score-ship.json": ("stdout", 1, (*SCORE, "--profile", "ship", "--format", "json")),
    "score-ship-full.json": (
        "stdout", 1, (*SCORE, "--profile", "ship", "--format", "json", "--full"),
    ),
    "score-ship-talk.txt": ("stderr", 1, (*SCORE, "--profile", "ship", "--format", "json")),
    "score-smoke.md": ("stdout", 1, (*SCORE, "--profile", "smoke", "--format", "md")),
    "score-junit.xml": ("stdout", 1, (*SCORE, "--format", "junit")),
    "score-github.txt": ("stdout", 1, (*SCORE, "--format", "github")),
    "score-gitlab.json": ("stdout", 1, (*SCORE, "--format", "gitlab")),
    "score-summary.md": ("stdout", 1, (*SCORE, "--format", "summary")),
    "score-comment.md": ("stdout", 1, (*SCORE, "--format", "comment")),
    "score-badge.svg": ("stdout", 1, (*SCORE, "--format", "badge")),
    "demo.txt": ("stdout", 0, ("demo",)),
    "metrics.txt": ("stdout", 0, ("metrics",)),
    "metrics-one.txt": ("stdout", 0, ("metrics", "answer.grounded_precision")),
    "explain.txt": ("stdout", 0, ("explain",)),
    "explain-code.txt": ("stdout", 0, ("explain", "field-conflict")),
    "validate.txt": ("stdout", 0, ("validate", "gold.jsonl", "trace.jsonl")),
    "validate-findings.txt": ("stdout", 0, ("validate", "gold.jsonl", "partial.jsonl")),
    "error-bad-line.txt": ("stderr", 3, ("score", "gold.jsonl", "bad.jsonl")),
    "error-not-found.txt": ("stderr", 2, ("score", "gold.jsonl", "trace.json")),
    "error-bad-gate.txt": ("stderr", 2, (*SCORE, "--gates", "under>=0.05")),
}  # fmt: skip


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A folder with the bundled example, a part of it, and one bad line."""
    bundled = {
        name: (files("ragauge.cli.demo_data") / name).read_bytes()
        for name in ("gold.jsonl", "trace.jsonl")
    }
    for name, data in bundled.items():
        (tmp_path / name).write_bytes(data)
    rows = bundled["trace.jsonl"].splitlines(keepends=True)
    (tmp_path / "bad.jsonl").write_bytes(b"".join([*rows[:4], BAD_LINE, *rows[4:]]))
    odd = rows[0].replace(b'"D01"', b'"X01"')
    (tmp_path / "partial.jsonl").write_bytes(b"".join([*rows[:9], odd, *rows[8:12]]))
    return tmp_path


def printed(folder: Path, stream: str, arguments: tuple[str, ...]) -> tuple[bytes, int]:
    """Run a command as outside a terminal, and return one of its streams."""
    told = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING")
    done = subprocess.run(
        [sys.executable, "-m", "ragauge", *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in told},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return (done.stdout if stream == "stdout" else done.stderr), done.returncode


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_output_is_the_golden_one(
    example: Path, name: str, request: pytest.FixtureRequest
) -> None:
    """Every changed byte is a change for users: read it, then `make golden`."""
    stream, exit_code, arguments = OUTPUTS[name]
    found, code = printed(example, stream, arguments)
    assert code == exit_code, found.decode()
    golden = EXPECTED / name
    if request.config.getoption("--update-golden"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_bytes(found)
    assert golden.exists(), "no golden output yet: run `make golden`"
    assert found.decode() == golden.read_bytes().decode()


def test_every_golden_file_belongs_to_a_command(request: pytest.FixtureRequest) -> None:
    """A file that nothing compares would rot."""
    if request.config.getoption("--update-golden"):
        for path in EXPECTED.iterdir():
            if path.name not in OUTPUTS:
                path.unlink()
        return
    assert {path.name for path in EXPECTED.iterdir()} == set(OUTPUTS)


def test_golden_outputs_name_no_machine() -> None:
    """No absolute path, no home, no temporary folder."""
    for path in EXPECTED.iterdir():
        text = path.read_text("utf-8")
        for mark in ("/tmp", "/home", "/work", "/root", str(Path.home()), "\x1b"):
            assert mark not in text, f"{path.name} holds {mark!r}"
