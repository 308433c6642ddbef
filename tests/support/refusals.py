"""What is said of input that is refused or accepted, and files cut into small ranges."""

from __future__ import annotations

import pytest

from ragauge.codes import CODES
from ragauge.files import ranges
from ragauge.scoring.engines import choose
from tests.support.command import Outcome


def assert_refused(
    outcome: Outcome, code: str, where: str, *, message: str = "", hint: str = ""
) -> None:
    """The first problem has this code and place, the command exits with 3 and prints nothing."""
    assert outcome.problems, outcome
    first = outcome.problems[0]
    assert (first.code, first.where) == (code, where), outcome.err
    assert message in first.message
    assert first.hint.strip()
    assert hint in first.hint
    assert outcome.exit_code == CODES[code].exit == 3
    assert outcome.out == ""


def assert_accepted(outcome: Outcome) -> None:
    assert (outcome.exit_code, outcome.problems) == (0, []), outcome.err


def small_ranges(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Cut files into ranges of about this many bytes, as large files are."""
    assert ranges.plan.__kwdefaults__ is not None
    monkeypatch.setitem(ranges.plan.__kwdefaults__, "range_bytes", size)
    monkeypatch.setattr(choose, "RANGE_BYTES", size)


def array_of(*elements: bytes) -> bytes:
    """A JSON array with each element on a line of its own; the first one is on line 2."""
    return b"[\n" + b",\n".join(elements) + b"\n]\n"
