"""The line of a bad row is right however the file is written, cut into ranges or read."""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Callable

import pytest

from tests.support.cases import cases
from tests.support.command import TRACES, Folder, line_of
from tests.support.refusals import array_of, assert_refused, small_ranges

BOM = codecs.BOM_UTF8
FIRST, SECOND, THIRD = (line_of(row) for row in TRACES)
MALFORMED = b'{"qid": }'


Placing = tuple[Callable[[bytes], bytes], int]
PLACINGS: dict[str, Placing] = {
    "the first line": (lambda bad: bad + b"\n" + FIRST + b"\n", 1),
    "the middle": (lambda bad: b"\n".join([FIRST, bad, SECOND, THIRD, b""]), 2),
    "behind blank lines": (lambda bad: b"\n \n" + FIRST + b"\n\n\t\n\n" + bad + b"\n" + SECOND, 7),
    "CRLF": (lambda bad: b"\r\n".join([FIRST, SECOND, bad, THIRD, b""]), 3),
    "CRLF and blank lines": (lambda bad: b"\r\n".join([FIRST, b"", b"", bad, THIRD, b""]), 4),
    "behind a BOM": (lambda bad: BOM + bad + b"\n" + FIRST, 1),
    "BOM and CRLF": (lambda bad: BOM + b"\r\n".join([FIRST, bad, THIRD]), 2),
    "the last line without a newline": (lambda bad: b"\n".join([FIRST, SECOND, bad]), 3),
}
ARRAY_PLACINGS: dict[str, Placing] = {
    "an array on one line": (lambda bad: b"[" + b",".join([FIRST, bad, SECOND]) + b"]", 1),
    "an array over several lines": (lambda bad: array_of(FIRST, bad, SECOND), 3),
    "an array behind blank lines and a BOM": (
        lambda bad: BOM + b"\r\n\r\n" + array_of(FIRST, SECOND, bad),
        6,
    ),
    "an array of objects over several lines": (
        lambda bad: array_of(json.dumps(TRACES[0], indent=1).encode(), bad, SECOND),
        2 + json.dumps(TRACES[0], indent=1).count("\n") + 1,
    ),
}
EVERYWHERE = {**PLACINGS, **ARRAY_PLACINGS}
KINDS = {
    "bad-json": MALFORMED,
    "bad-field": b'{"qid": "A1", "seed": 1.5}',
    "bad-encoding": b'{"qid": "A1", "note": "\xff"}',
    "not-a-row": b"17",
}


@cases("packed", [False, True], ids=["plain", "gzip"])
@cases("placing", EVERYWHERE)
@cases("code", KINDS)
def test_a_bad_trace_is_found_on_its_line(
    folder: Folder, code: str, placing: str, packed: bool
) -> None:
    """The line is that of the file, with blank lines, CRLF, a BOM, gzip, or in an array."""
    write, line = EVERYWHERE[placing]
    data = write(KINDS[code])
    name = "trace.jsonl.gz" if packed else "trace.jsonl"
    outcome = folder.score(gzip.compress(data) if packed else data, trace_name=name)
    assert_refused(outcome, code, f"{name}:{line}")
    assert len(outcome.problems) == 1


@cases("placing", EVERYWHERE)
def test_a_bad_gold_row_is_found_on_its_line(folder: Folder, placing: str) -> None:
    """The gold file is read by the same rules (the rows around are traces, which have ids too)."""
    write, line = EVERYWHERE[placing]
    outcome = folder.score(gold=write(MALFORMED))
    assert_refused(outcome, "bad-json", f"gold.jsonl:{line}")


def test_the_line_of_malformed_json_in_an_array_is_that_of_the_bad_byte(folder: Folder) -> None:
    """Inside an object over several lines the byte's own line is more use than the first."""
    data = b'[\n{"qid": "A1",\n "seed": 1,\n "turn": }\n]'
    assert_refused(folder.score(data), "bad-json", "trace.jsonl:4")


@cases("size", [1, 40, 150, 1000, 10**6])
@cases("where", ["gold", "trace"])
def test_the_line_is_right_in_any_byte_range(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, size: int, where: str
) -> None:
    """Lines are counted through all ranges before, blank ones included."""
    small_ranges(monkeypatch, size)
    rows = [line_of({**TRACES[0], "seed": i}) + b"\n" * (1 + i % 3) for i in range(30)]
    before = b"".join(rows[:20])
    data = before + MALFORMED + b"\n" + b"".join(rows[20:])
    line = before.count(b"\n") + 1
    outcome = folder.score(gold=data) if where == "gold" else folder.score(data)
    assert_refused(outcome, "bad-json", f"{where}.jsonl:{line}")


@pytest.mark.parametrize("size", [1, 150, 10**6])
def test_the_line_is_right_in_any_range_of_an_array(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """An element that is no row is found on the line where it begins."""
    small_ranges(monkeypatch, size)
    elements = [json.dumps({**TRACES[0], "seed": i}, indent=1).encode() for i in range(20)]
    line = 2 + sum(each.count(b"\n") + 1 for each in elements[:12])
    outcome = folder.score(array_of(*elements[:12], b"null", *elements[12:]))
    assert_refused(outcome, "not-a-row", f"trace.jsonl:{line}")


@pytest.mark.slow
def test_the_line_is_right_in_worker_processes(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers know only lines within a range; the place that is printed is that of the file."""
    small_ranges(monkeypatch, 500)
    rows = [line_of({**TRACES[0], "seed": i}) for i in range(40)]
    rows[33] = MALFORMED
    assert_refused(folder.score(b"\n".join(rows), "--workers", "2"), "bad-json", "trace.jsonl:34")
