"""The machine does not matter: hash seed, time zone, locale and folder change no byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ragauge
from tests.properties.datasets import as_lines, large_data

ENVIRONMENTS = (
    {"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8", "COLUMNS": "80"},
    {"PYTHONHASHSEED": "1", "TZ": "Asia/Kolkata", "LC_ALL": "C", "COLUMNS": "200"},
    {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE"},
)
KEPT = ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP", "TMP")


def _run(folder: Path, environment: dict[str, str], *arguments: str) -> tuple[int, bytes, bytes]:
    inherited = {name: os.environ[name] for name in KEPT if name in os.environ}
    path = str(Path(ragauge.__file__).resolve().parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "ragauge", *arguments],
        env={**inherited, "PYTHONPATH": path, **environment},
        cwd=folder,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("profile", "format_name"), [("all", "json"), ("ship", "json"), ("smoke", "md")]
)
def test_environment_does_not_matter(profile: str, format_name: str, tmp_path: Path) -> None:
    """Exit code, output, warnings and files are the same bytes everywhere."""
    data = large_data(8, 45)
    data.gold[0]["qid"] = data.trace[0]["qid"] = "ä-İ-🙂"
    outcomes = []
    for number, environment in enumerate(ENVIRONMENTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "gold.jsonl").write_bytes(as_lines(data.gold))
        (folder / "trace.jsonl").write_bytes(as_lines([*data.trace, *data.trace[:5]]))
        arguments = ["score", "gold.jsonl", "trace.jsonl", "--profile", profile, "--full"]
        arguments += ["--format", format_name, "-o", "scores.json", "-o", "scores.md"]
        code, out, err = _run(folder, environment, *arguments)
        assert code in (0, 1, 4), err.decode()
        assert len(out) > 500
        assert "ä-İ-🙂".encode() in out + (folder / "scores.json").read_bytes()
        written = [(folder / name).read_bytes() for name in ("scores.json", "scores.md")]
        outcomes.append((code, out, err, written))
    assert outcomes[1] == outcomes[0]
    assert outcomes[2] == outcomes[0]
