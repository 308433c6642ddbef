"""The long campaigns start, say when and at which commit, and each has a target in the Makefile."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import environment

ROOT = Path(__file__).parents[2]
TIMEOUT = 300

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("benchmarks")]


def campaign(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "campaign.py"), *arguments],
        env=environment(), encoding="utf-8", capture_output=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_campaign_has_a_target() -> None:
    names = re.search(r"\{([a-z,]+)\}", campaign("--help"))
    assert names is not None
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(
        r"^slow-([a-z]+):.*\n\t\$\(RUN\) benchmarks/campaign.py \1(?: --write .*)?$", makefile, re.M
    )
    assert sorted(targets) == sorted(names[1].split(","))
    assert all(f" slow-{name}" in makefile.partition("\nslow: ")[2] for name in targets[1:])


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("live", "0 traces lost, stored twice or in part, or answers other than 200 and 429"),
        ("scale", "0 files with two results"),
        ("stats", "alarm, there are a quarter as many comparisons."),
    ],
)
def test_figures_have_a_date_and_a_commit(name: str, last: str) -> None:
    text = campaign(name, "--effort", "0.001")
    head = rf"Made by `make slow-{name}` on \d{{4}}-\d\d-\d\d, commit [\w.-]+( and changes)?\.\n"
    assert re.match(head, text), text
    assert text.endswith(f"{last}\n")
    assert "|--" in text
