"""Faults that are planted for the tests of the campaign itself; a worker imports them by name."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.fuzz.case import Case, Finding


def dislike_nul(case: Case, _: Path) -> list[Finding]:
    """A reader that fails at a NUL byte in a gold file, whatever else is there."""
    if b"\x00" in case.files.get("gold.jsonl", b""):
        return [Finding("bug", "reader.py:1", "a NUL byte")]
    return []


def never_end(_: Case, __: Path) -> list[Finding]:
    while True:
        pass


def crash(case: Case, _: Path) -> list[Finding]:
    if case.arguments == ("crash",):
        os.kill(os.getpid(), signal.SIGSEGV)
    return []
