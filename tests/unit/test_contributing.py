"""CONTRIBUTING.md leads to files that are there, and DESIGN.md names every package."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.cases import cases

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "ragauge"
REQUESTS = [
    (request, re.findall(r"`([^`]+)`", places))
    for request, places in re.findall(
        r"^\| (.+?) \| (`.+`) \|$",
        (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## I want to change X")[2],
        re.MULTILINE,
    )
]


def test_a_newcomer_finds_the_ordinary_requests() -> None:
    assert len(REQUESTS) >= 25


@cases(("wish", "places"), REQUESTS)
def test_every_request_leads_to_files_that_are_there(wish: str, places: list[str]) -> None:
    gone = [place for place in places if not (SOURCE / place).exists()]
    assert not gone, f"{wish}: {', '.join(gone)} is not there any more"


def test_the_design_draws_every_package() -> None:
    design = (ROOT / "DESIGN.md").read_text("utf-8")
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    missing = [name for name in sorted(packages) if f"{name}/" not in design]
    assert not missing, f"DESIGN.md does not draw {', '.join(missing)}"
