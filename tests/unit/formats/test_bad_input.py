"""Bad input: every kind is refused with its code, its place and a hint, and nothing is printed."""

from __future__ import annotations

import codecs
import gzip
import json
import os
import sqlite3
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from ragauge import registry
from ragauge.codes import CODES
from ragauge.errors import MAX_REPORTED
from ragauge.files import ranges
from ragauge.scoring import inputs, score
from ragauge.store import runs as run_store
from tests.support.command import GOLD, TRACES, Content, Folder, Outcome, Row, line_of, lines_of

BOM = codecs.BOM_UTF8
FIRST, SECOND, THIRD = (line_of(row) for row in TRACES)
MALFORMED = b'{"qid": }'
DEEP = 100_000
BEYOND = {"2**63": 2**63, "-2**63 - 1": -(2**63) - 1, "10**30": 10**30}


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
    monkeypatch.setattr(inputs, "RANGE_BYTES", size)


def array_of(*elements: bytes) -> bytes:
    """A JSON array with each element on a line of its own; the first one is on line 2."""
    return b"[\n" + b",\n".join(elements) + b"\n]\n"


# --- where: the line is right however the file is written ---

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


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("placing", EVERYWHERE)
@pytest.mark.parametrize("code", KINDS)
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


@pytest.mark.parametrize("placing", EVERYWHERE)
def test_a_bad_gold_row_is_found_on_its_line(folder: Folder, placing: str) -> None:
    """The gold file is read by the same rules (the rows around are traces, which have ids too)."""
    write, line = EVERYWHERE[placing]
    outcome = folder.score(gold=write(MALFORMED))
    assert_refused(outcome, "bad-json", f"gold.jsonl:{line}")


def test_the_line_of_malformed_json_in_an_array_is_that_of_the_bad_byte(folder: Folder) -> None:
    """Inside an object over several lines the byte's own line is more use than the first."""
    data = b'[\n{"qid": "A1",\n "seed": 1,\n "turn": }\n]'
    assert_refused(folder.score(data), "bad-json", "trace.jsonl:4")


@pytest.mark.parametrize("size", [1, 40, 150, 1000, 10**6])
@pytest.mark.parametrize("where", ["gold", "trace"])
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


def test_the_line_is_right_in_worker_processes(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers know only lines within a range; the place that is printed is that of the file."""
    small_ranges(monkeypatch, 500)
    rows = [line_of({**TRACES[0], "seed": i}) for i in range(40)]
    rows[33] = MALFORMED
    assert_refused(folder.score(b"\n".join(rows), "--workers", "2"), "bad-json", "trace.jsonl:34")


# --- what: each kind of damage has its code ---


@pytest.mark.parametrize(
    "line",
    [
        b'{"qid": "A1",}',
        b"{'qid': 'A1'}",
        b'{"qid": "A1"} {"qid": "A2"}',
        b'{"qid": "A1", "note": "a\tb"}',
        b'{"qid": "A1", "note": "\\x41"}',
        b'{"qid": "A1", "turn": 01}',
        b'{"qid" "A1"}',
        b"qid: A1",
    ],
)
@pytest.mark.parametrize("usual", [True, False], ids=["usual row", "unusual row"])
def test_what_is_not_json_is_refused(folder: Folder, line: bytes, usual: bool) -> None:
    """Also in fields that nothing reads, in rows of any shape."""
    if not usual:
        line = line.replace(b'"A1"', b'"A1", "refused": false', 1)
    assert_refused(folder.score(b"\n".join([FIRST, line, SECOND])), "bad-json", "trace.jsonl:2")


@pytest.mark.parametrize("value", [b"NaN", b"Infinity", b"-Infinity"])
@pytest.mark.parametrize("place", [b'"note": %s', b'"topk": [{"id": "p", "score": %s}]'])
@pytest.mark.parametrize("where", ["gold", "trace"])
def test_nan_and_infinity_are_not_json(
    folder: Folder, value: bytes, place: bytes, where: str
) -> None:
    """Whether the field is read or not; the hint says what to write."""
    data = b'{"qid": "A1", %s}\n' % (place % value)
    outcome = folder.score(gold=data) if where == "gold" else folder.score(FIRST + b"\n" + data)
    line = 1 if where == "gold" else 2
    assert_refused(outcome, "bad-json", f"{where}.jsonl:{line}", hint="write null")


CUT = (
    '{"qid": "A3", "n": [-1.25e-7, true, null], "s": "caf\\u00e9 \\ud83d\\ude00 \\n é€😀", '
    '"o": {"k": []}}'
).encode()


@pytest.mark.parametrize("where", ["gold", "trace"])
def test_a_cut_last_line_is_truncated_wherever_it_was_cut(folder: Folder, where: str) -> None:
    """Also inside a number, an escape, or a character of several bytes: the writer was stopped."""
    whole = lines_of(GOLD if where == "gold" else TRACES)
    told: dict[bytes, str] = {}
    for cut in range(1, len(CUT)):
        data = whole + CUT[:cut]
        outcome = folder.score(gold=data) if where == "gold" else folder.score(data)
        assert_refused(outcome, outcome.problems[0].code, f"{where}.jsonl:4")
        if outcome.problems[0].code != "truncated-line":
            told[CUT[:cut]] = outcome.problems[0].code
    assert told == {}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (gzip.compress(lines_of(TRACES) + SECOND[:30], mtime=0), 4),
        (lines_of(TRACES).replace(b"\n", b"\r\n") + SECOND[:30], 4),
        (BOM + SECOND[:30], 1),
        (b"[\n" + FIRST + b",\n" + SECOND[:30], 3),
        (b"[\n" + FIRST, 2),
    ],
    ids=["gzip", "CRLF", "one line", "array", "unclosed array"],
)
def test_a_cut_file_is_truncated_in_any_form(folder: Folder, data: bytes, line: int) -> None:
    """Packed, with CRLF, and as an array."""
    outcome = folder.score(data)
    assert_refused(outcome, "truncated-line", f"trace.jsonl:{line}")


def test_a_whole_last_line_needs_no_newline(folder: Folder) -> None:
    """Only a line that is not complete is truncated."""
    assert_accepted(folder.score(b"\n".join([FIRST, SECOND, THIRD])))


def test_a_cut_line_in_the_middle_is_not_truncated_but_malformed(folder: Folder) -> None:
    """Something was written behind it, so the writer was not stopped there."""
    data = b"\n".join([FIRST, SECOND[:30], THIRD, b""])
    assert_refused(folder.score(data), "bad-json", "trace.jsonl:2")


@pytest.mark.parametrize(
    "line",
    [
        b'{"qid": "A\xff"}',
        b'{"qid": "A1", "note": "caf\xe9"}',
        b'{"qid": "A1", "note": {"deep": ["\xc0\xaf"]}}',
        b'{"qid": "A1", "no\xffte": 1}',
        b'{"qid": "A1", "note": "\xed\xa0\x80"}',
        b'{"qid": "A1", "answer_json": {"claim": "x\x80", "citations": []}}',
        b'{"qid": "A1", "answer_json": {"claim": "x", "note": "\xf5\x80\x80\x80"}}',
    ],
    ids=[
        "id",
        "unread field",
        "overlong form, nested",
        "key",
        "encoded surrogate",
        "claim",
        "unread field of the answer",
    ],
)
@pytest.mark.parametrize("where", ["gold", "trace", "array"])
def test_bytes_that_are_not_utf8_are_refused(folder: Folder, line: bytes, where: str) -> None:
    """Wherever they stand: dropped bytes would go unnoticed in fields that nothing reads."""
    if where == "gold":
        assert_refused(folder.score(gold=line + b"\n"), "bad-encoding", "gold.jsonl:1")
        return
    data = array_of(FIRST, line, SECOND) if where == "array" else b"\n".join([FIRST, line, SECOND])
    number = 3 if where == "array" else 2
    assert_refused(folder.score(data), "bad-encoding", f"trace.jsonl:{number}")


def test_bad_bytes_far_down_among_usual_rows_are_found(folder: Folder) -> None:
    """Rows are checked many at a time; the one that is bad is still named."""
    rows = [line_of({**TRACES[i % 3], "note": "größe"}) for i in range(2000)]
    rows[1700] = rows[1700].replace("ö".encode(), b"\xf6")
    assert_refused(folder.score(b"\n".join(rows)), "bad-encoding", "trace.jsonl:1701")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"\n".join([FIRST, b'{"qid": "A2", "note": "a\0b"}', THIRD]), 2),
        (b"\n".join([FIRST, b'{"qid": "A2", "answer_json": {"claim": "\0"}}', THIRD]), 2),
        (lines_of(TRACES) + bytes(5000), 4),
        (lines_of(TRACES) + bytes(5000) + b"\n" + FIRST, 4),
        (array_of(FIRST, b'{"qid": "A2", "note": "\0"}'), 3),
    ],
    ids=["unread field", "claim", "tail", "hole", "array"],
)
def test_nul_bytes_are_refused(folder: Folder, data: bytes, line: int) -> None:
    """The tail of NUL bytes that a crashed machine leaves is damage, not blank space."""
    assert_refused(folder.score(data), "nul-byte", f"trace.jsonl:{line}")


def test_an_escaped_nul_is_text(folder: Folder) -> None:
    """`\\u0000` in a string is valid JSON; only the raw byte is damage."""
    assert_accepted(folder.score([{**TRACES[0], "note": "a\0b"}, *TRACES[1:]]))


@pytest.mark.parametrize("number", BEYOND.values(), ids=BEYOND.keys())
@pytest.mark.parametrize(
    ("row", "path"),
    [
        ('{"qid": "A1", "seed": %d}', "seed"),
        ('{"qid": "A1", "paraphrase": %d}', "paraphrase"),
        ('{"qid": "A1", "turn": %d}', "turn"),
        ('{"qid": %d}', "qid"),
        ('{"qid": "A1", "retrieved_ids": ["a", %d]}', "retrieved_ids[1]"),
        ('{"qid": "A1", "topk": [{"id": %d}]}', "topk[0].id"),
        ('{"qid": "A1", "topk": ["a", {"id": "p", "score": %d}]}', "topk[1].score"),
        ('{"qid": "A1", "chunks": [{"id": "p", "score": %d}]}', "chunks[0].score"),
        ('{"qid": "A1", "answer_json": {"citations": [%d]}}', "answer_json.citations[0]"),
    ],
)
def test_whole_numbers_beyond_64_bits_are_refused(
    folder: Folder, row: str, path: str, number: int
) -> None:
    """Wherever a number or an id is read, with the path to it."""
    outcome = folder.score(b"\n".join([FIRST, (row % number).encode(), THIRD]))
    assert_refused(outcome, "bad-field", "trace.jsonl:2", message=f"`{path}` must be ")


@pytest.mark.parametrize("field", ["seed", "paraphrase", "turn"])
def test_a_number_of_thousands_of_digits_is_refused_where_it_is_read(
    folder: Folder, field: str
) -> None:
    """No limit of the language shows through as a traceback."""
    row = b'{"qid": "A1", "%s": %s}' % (field.encode(), b"9" * 5000)
    outcome = folder.score(b"\n".join([FIRST, row, THIRD]))
    assert outcome.problems[0].code in ("bad-field", "bad-json")
    assert_refused(outcome, outcome.problems[0].code, "trace.jsonl:2")


@pytest.mark.parametrize("number", [2**63 - 1, -(2**63)])
def test_numbers_of_64_bits_are_accepted(folder: Folder, number: int) -> None:
    """The border itself belongs to the numbers that can be read."""
    assert_accepted(folder.score([{**TRACES[0], "seed": number}, *TRACES[1:]]))


def with_unread(number: str) -> tuple[bytes, bytes]:
    """A usual row and an unusual one with this number in a field that nothing reads."""
    usual = FIRST.replace(b"{", b'{"note": %s, ' % number.encode(), 1)
    return usual, usual.replace(b"{", b'{"refused": false, ', 1)


@pytest.mark.parametrize("digits", [20, 30, 5000])
def test_a_whole_number_that_nothing_reads_may_be_of_any_size(folder: Folder, digits: int) -> None:
    """It is valid JSON and means nothing here, in usual rows and in unusual ones."""
    for row in with_unread("9" * digits):
        assert_accepted(folder.score(b"\n".join([row, SECOND, THIRD])))


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1e-400"])
def test_what_an_unread_field_holds_does_not_depend_on_the_row_around_it(
    folder: Folder, number: str
) -> None:
    """A float beyond the doubles is accepted or refused, but in all rows alike."""
    usual, unusual = (folder.score(b"\n".join([row, SECOND, THIRD])) for row in with_unread(number))
    assert (usual.exit_code, usual.codes) == (unusual.exit_code, unusual.codes)


@pytest.mark.parametrize("data", ["gold", "trace", "last trace"])
def test_a_line_beyond_the_limit_is_refused(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, data: str
) -> None:
    """It is skipped to its end without being held, and the lines behind it keep their numbers."""
    monkeypatch.setattr(ranges, "MAX_LINE", 400)
    long = line_of({"qid": "A1", "note": "x" * 400})
    if data == "gold":
        outcome = folder.score(gold=lines_of(GOLD) + long + b"\n" + MALFORMED + b"\n")
        assert_refused(outcome, "line-too-long", "gold.jsonl:4")
        assert [problem.where for problem in outcome.problems] == ["gold.jsonl:4", "gold.jsonl:5"]
    elif data == "trace":
        outcome = folder.score(b"\n".join([FIRST, long, SECOND, long, MALFORMED, THIRD]))
        assert_refused(outcome, "line-too-long", "trace.jsonl:2")
        found = [(problem.code, problem.where) for problem in outcome.problems]
        assert found[1:] == [("line-too-long", "trace.jsonl:4"), ("bad-json", "trace.jsonl:5")]
    else:
        assert_refused(
            folder.score(b"\n".join([FIRST, SECOND, long])), "line-too-long", "trace.jsonl:3"
        )


@pytest.mark.parametrize("end", [b"\n", b""], ids=["newline", "no newline"])
def test_a_line_of_exactly_the_limit_is_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, end: bytes
) -> None:
    """One byte more is too long."""
    monkeypatch.setattr(ranges, "MAX_LINE", len(THIRD))
    data = lines_of(TRACES * 3) + THIRD
    assert_accepted(folder.score(data + end))
    monkeypatch.setattr(ranges, "MAX_LINE", len(THIRD) - 1)
    outcome = folder.score(data + end)
    assert outcome.exit_code == 3
    assert outcome.problems[-1][:3] == (
        "line-too-long", outcome.problems[-1].message, "trace.jsonl:10",
    )  # fmt: skip


def test_a_line_of_more_than_64_mib_is_refused(folder: Folder) -> None:
    """The real limit, on a file with a hole (its zeros are never looked at)."""
    folder.write("gold.jsonl", GOLD)
    path = folder.write("trace.jsonl", FIRST + b'\n{"qid": "A2", "note": "')
    with path.open("r+b") as file:
        file.seek(64 * 2**20, os.SEEK_END)
        file.write(b'"}\n' + MALFORMED + b"\n")
    outcome = folder.run("score", "gold.jsonl", "trace.jsonl")
    assert_refused(outcome, "line-too-long", "trace.jsonl:2", message="64 MiB")
    assert outcome.problems[1].where == "trace.jsonl:3"


@pytest.mark.parametrize(
    "line",
    [
        b'{"qid": "A1", "note": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"qid": "A1", "topk": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    ],
    ids=["unread field", "hits", "objects"],
)
@pytest.mark.parametrize("where", ["gold", "trace"])
def test_deep_nesting_is_refused(folder: Folder, line: bytes, where: str) -> None:
    """A hundred thousand levels end in a message, not in a stack overflow."""
    if where == "gold":
        outcome = folder.score(gold=lines_of(GOLD) + line)
    else:
        outcome = folder.score(lines_of(TRACES) + line)
    assert_refused(outcome, "too-deep", f"{where}.jsonl:4")


def test_deep_nesting_in_an_array_is_found_on_its_line(folder: Folder) -> None:
    """The place is that of the element, not of the file's first line."""
    deep = b'{"qid": "A2", "note": ' + b"[" * DEEP + b"]" * DEEP + b"}"
    assert_refused(folder.score(array_of(FIRST, deep)), "too-deep", "trace.jsonl:3")


@pytest.mark.parametrize("value", [b"17", b"-0.5", b'"A1"', b"null", b"true", b"[]", b'[{"q": 1}]'])
@pytest.mark.parametrize("where", ["gold", "trace", "array"])
def test_a_row_that_is_no_object_is_refused(folder: Folder, value: bytes, where: str) -> None:
    """Every line and every element must be an object."""
    if where == "gold":
        outcome = folder.score(gold=lines_of(GOLD) + value)
        assert_refused(outcome, "not-a-row", "gold.jsonl:4", message=value.decode())
    elif where == "array":
        outcome = folder.score(array_of(FIRST, value, SECOND))
        assert_refused(outcome, "not-a-row", "trace.jsonl:3", message=value.decode())
    else:
        outcome = folder.score(b"\n".join([FIRST, value, SECOND]))
        assert_refused(outcome, "not-a-row", "trace.jsonl:2", message=value.decode())


SURROGATES = {
    "half a pair": rb'{"qid": "A1", "note": "\ud83d"}',
    "half a pair before text": rb'{"qid": "A1", "note": "\ud83d and so on"}',
    "the wrong half": rb'{"qid": "A1", "note": "\ude00"}',
    "two first halves": rb'{"qid": "A1", "note": "\ud83d\ud83d"}',
    "in a key": rb'{"qid": "A1", "\ud83d": 1}',
    "in the id": rb'{"qid": "A\ud83d"}',
    "in the claim": rb'{"qid": "A1", "answer_json": {"claim": "\ud83d", "citations": []}}',
}


@pytest.mark.parametrize("line", SURROGATES.values(), ids=SURROGATES.keys())
@pytest.mark.parametrize("place", ["middle", "last", "last, no newline", "array", "gold"])
def test_half_a_surrogate_pair_is_refused(folder: Folder, line: bytes, place: str) -> None:
    """It is no character; and the line is complete, so nobody was stopped while writing it."""
    if place == "gold":
        outcome = folder.score(gold=lines_of(GOLD) + line + b"\n")
        assert_refused(outcome, "bad-json", "gold.jsonl:4")
    elif place == "array":
        assert_refused(folder.score(array_of(FIRST, line)), "bad-json", "trace.jsonl:3")
    else:
        rows = [FIRST, line, SECOND] if place == "middle" else [FIRST, line]
        data = b"\n".join(rows) + (b"" if place == "last, no newline" else b"\n")
        assert_refused(folder.score(data), "bad-json", "trace.jsonl:2")


def test_a_whole_surrogate_pair_is_one_character(folder: Folder) -> None:
    """Escapes in pairs are how JSON writes characters beyond the first plane."""
    data = lines_of(TRACES).replace(b"X rejects", rb"\ud83d\ude00 rejects")
    assert_accepted(folder.score(data))


@pytest.mark.parametrize(
    "data",
    [
        FIRST + b'\n{"qid": "A2", "note": "' + b"x" * 2**20,
        FIRST + b'\n{"qid": "A2", "note": "' + b"x" * 2**20 + b'", "answer',
        FIRST + b'\n{"qid": "A2", "note": "' + b"x" * 2**20 + rb'\ud83d"}',
        b"[" + FIRST + b',\n{"note": "' + b"x" * 2**20 + b'", "deep": ' + b"[" * DEEP + b"\n",
    ],
    ids=["cut in a string", "cut behind a string", "half a pair", "deep array"],
)
def test_a_long_row_is_refused_in_little_memory(folder: Folder, data: bytes) -> None:
    """Rows may have 64 MiB: to say what is wrong with one must not take a hundred times that."""
    tracemalloc.start()
    try:
        outcome = folder.score(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (outcome.exit_code, outcome.out) == (3, "")
    assert outcome.problems[0].where == "trace.jsonl:2"
    assert peak < 16 * len(data)


# --- wrong types ---

WRONG_TRACE: list[tuple[Row, str]] = [
    ({"qid": 1.5}, "qid"),
    ({"qid": True}, "qid"),
    ({"qid": ["A1"]}, "qid"),
    ({"id": {}}, "id"),
    ({"q_id": 0.0}, "q_id"),
    ({"query_id": []}, "query_id"),
    ({"q": 5}, "q"),
    ({"question": ["x"]}, "question"),
    ({"query": {}}, "query"),
    ({"paraphrase": "1"}, "paraphrase"),
    ({"paraphrase": 1.0}, "paraphrase"),
    ({"seed": 1.5}, "seed"),
    ({"seed": True}, "seed"),
    ({"seed": [1]}, "seed"),
    ({"turn": "1"}, "turn"),
    ({"turn": {}}, "turn"),
    ({"topk": 5}, "topk"),
    ({"topk": "p1"}, "topk"),
    ({"topk": {"id": "p1"}}, "topk"),
    ({"topk": ["p1", None]}, "topk[1]"),
    ({"topk": [1.5]}, "topk[0]"),
    ({"topk": [True]}, "topk[0]"),
    ({"topk": [["p1"]]}, "topk[0]"),
    ({"topk": [{"doc": "p1"}]}, "topk[0]"),
    ({"topk": [{"id": []}]}, "topk[0].id"),
    ({"topk": ["a", {"chunk_id": 1.5}]}, "topk[1].chunk_id"),
    ({"topk": [{"snippet_id": True}]}, "topk[0].snippet_id"),
    ({"topk": [{"block_id": {}}]}, "topk[0].block_id"),
    ({"topk": [{"id": "a", "doc": 1.5}]}, "topk[0].doc"),
    ({"topk": [{"id": "a", "doc_id": []}]}, "topk[0].doc_id"),
    ({"topk": [{"id": "a", "doc_path": False}]}, "topk[0].doc_path"),
    ({"topk": [{"id": "a", "section": {}}]}, "topk[0].section"),
    ({"topk": [{"id": "a", "section_id": 4.2}]}, "topk[0].section_id"),
    ({"topk": ["a", "b", "c", {"id": "d", "score": "0.83"}]}, "topk[3].score"),
    ({"topk": [{"id": "a", "score": True}]}, "topk[0].score"),
    ({"topk": [{"id": "a", "type": 5}]}, "topk[0].type"),
    ({"topk": [{"id": "a", "text": ["x"]}]}, "topk[0].text"),
    ({"retrieved_ids": "p1"}, "retrieved_ids"),
    ({"retrieved_ids": ["p1", 1.5]}, "retrieved_ids[1]"),
    ({"retrieved_ids": [None]}, "retrieved_ids[0]"),
    ({"chunks": 5}, "chunks"),
    ({"chunks": [{"id": "a", "score": "0.83"}]}, "chunks[0].score"),
    ({"chunks": [{"id": "a", "text": 5}]}, "chunks[0].text"),
    ({"items": {}}, "items"),
    ({"retrieved": 1}, "retrieved"),
    ({"hits_top_k": "a"}, "hits_top_k"),
    ({"retrieval": 5}, "retrieval"),
    ({"retrieval": "p1"}, "retrieval"),
    ({"retrieval": {"topk": 5}}, "retrieval.topk"),
    ({"retrieval": {"chunks": [{"id": "a"}, {"id": []}]}}, "retrieval.chunks[1].id"),
    ({"answer": 5}, "answer"),
    ({"answer": ["x"]}, "answer"),
    ({"answer": False}, "answer"),
    ({"answer": {"text": 5}}, "answer.text"),
    ({"answer": {"claim": ["x"]}}, "answer.claim"),
    ({"answer_json": "x"}, "answer_json"),
    ({"answer_json": ["x"]}, "answer_json"),
    ({"answer_json": 5}, "answer_json"),
    ({"answer_json": {"claim": 5}}, "answer_json.claim"),
    ({"answer_json": {"text": {}}}, "answer_json.text"),
    ({"answer_json": {"citations": [1.5]}}, "answer_json.citations[0]"),
    ({"answer_json": {"citations": ["a", {"id": None}]}}, "answer_json.citations[1]"),
    ({"answer_json": {"citations": [{"id": []}]}}, "answer_json.citations[0].id"),
    ({"answer_json": {"refused": "no"}}, "answer_json.refused"),
    ({"answer_json": {"grounded": 0}}, "answer_json.grounded"),
    ({"answer_json": {"constraints_echo": "x"}}, "answer_json.constraints_echo"),
    ({"answer_json": {"constraints_echo": [5]}}, "answer_json.constraints_echo[0]"),
    ({"answer_text": 5}, "answer_text"),
    ({"citations": [None]}, "citations[0]"),
    ({"citations": ["a", {"doc": "x"}]}, "citations[1]"),
    ({"answer_citations": [True]}, "answer_citations[0]"),
    ({"cited_chunks": [["a"]]}, "cited_chunks[0]"),
    ({"answer": "x", "refused": "no"}, "refused"),
    ({"answer": "x", "grounded": 1}, "grounded"),
    ({"answer": "x", "constraints_echo": 5}, "constraints_echo"),
    ({"answer": "x", "constraints_echo": [True]}, "constraints_echo[0]"),
]
WRONG_GOLD: list[tuple[Row, str]] = [
    ({"qid": 1.5}, "qid"),
    ({"id": True}, "id"),
    ({"q_id": []}, "q_id"),
    ({"query_id": {}}, "query_id"),
    ({"question": 5}, "question"),
    ({"q": ["x"]}, "q"),
    ({"query": False}, "query"),
    ({"paraphrases": "x"}, "paraphrases"),
    ({"paraphrases": ["x", 5]}, "paraphrases[1]"),
    ({"answerable": "yes"}, "answerable"),
    ({"answerable": 1}, "answerable"),
    ({"relevant": "p1"}, "relevant"),
    ({"relevant": ["p1", 1.5]}, "relevant[1]"),
    ({"gold_ids": {}}, "gold_ids"),
    ({"gold_ids": [None]}, "gold_ids[0]"),
    ({"gold_citations": "p1#1"}, "gold_citations"),
    ({"gold_citations": [True]}, "gold_citations[0]"),
    ({"expected_chunk_ids": 5}, "expected_chunk_ids"),
    ({"gold_claim_substr": "x"}, "gold_claim_substr"),
    ({"gold_claim_substr": ["x", 5]}, "gold_claim_substr[1]"),
    ({"gold_claim": 5}, "gold_claim"),
    ({"gold_claim": [5]}, "gold_claim[0]"),
    ({"claims_any": "x"}, "claims_any"),
    ({"constraints": "x"}, "constraints"),
    ({"constraints": [5]}, "constraints[0]"),
    ({"type": 5}, "type"),
    ({"tags": "x"}, "tags"),
    ({"tags": [5]}, "tags[0]"),
    ({"group": []}, "group"),
    ({"difficulty": 3}, "difficulty"),
    ({"lang": False}, "lang"),
]
ANSWERED = {"answer_json": {"claim": "X rejects null keys."}}


def with_id(fields: Row) -> Row:
    """The fields in a row that has an id, unless the id is the field in question."""
    return fields if fields.keys() & {"id", "q_id", "query_id"} else {"qid": "A1", **fields}


def is_about_the_answer(fields: Row) -> bool:
    return bool(fields.keys() & {"answer", "answer_json", "answer_text"}) or "cit" in str(fields)


@pytest.mark.parametrize(("fields", "path"), WRONG_TRACE)
def test_a_trace_field_of_the_wrong_type_is_refused_with_its_path(
    folder: Folder, fields: Row, path: str
) -> None:
    """The message names the path inside the object, and shows what was found."""
    outcome = folder.score([TRACES[0], with_id(fields), TRACES[2]], "--profile", "all")
    assert_refused(outcome, "bad-field", "trace.jsonl:2", message=f"`{path}` must be ")
    assert ", got " in outcome.problems[0].message


@pytest.mark.parametrize(
    ("fields", "path"),
    [each for each in WRONG_TRACE if not is_about_the_answer(each[0])],
)
def test_a_wrong_type_is_refused_in_the_usual_row_too(
    folder: Folder, fields: Row, path: str
) -> None:
    """Rows of the usual shape take a faster way, which must not be a more lenient one."""
    outcome = folder.score([{**with_id(fields), **ANSWERED}] * 2, "--profile", "all")
    assert_refused(outcome, "bad-field", "trace.jsonl:1", message=f"`{path}` must be ")


@pytest.mark.parametrize(("fields", "path"), WRONG_GOLD)
def test_a_gold_field_of_the_wrong_type_is_refused_with_its_path(
    folder: Folder, fields: Row, path: str
) -> None:
    """The same for gold items."""
    outcome = folder.score(None, "--profile", "all", gold=[*GOLD, with_id(fields)])
    assert_refused(outcome, "bad-field", "gold.jsonl:4", message=f"`{path}` must be ")


def test_the_message_of_a_wrong_type_in_full(folder: Folder) -> None:
    """Three lines: what, where with item and dialect, and how to mend it."""
    row = {"qid": "Q-0137", "topk": ["a", "b", "c", {"id": "d", "score": "0.83"}]}
    outcome = folder.score([TRACES[0], row], "--profile", "all")
    assert outcome.err == (
        'error[bad-field]: `topk[3].score` must be a number, got "0.83"\n'
        "  --> trace.jsonl:2  (qid Q-0137, dialect native)\n"
        "  hint: write the number without quotes\n"
    )


def test_null_is_the_same_as_an_absent_field(folder: Folder) -> None:
    """In every field of a trace and a gold item, but for the gold item's id."""
    names = {name for fields, _ in WRONG_TRACE for name in fields} - {"qid"}
    traces = [{**dict.fromkeys(names), **row} for row in TRACES]
    names = {name for fields, _ in WRONG_GOLD for name in fields} - {"qid"}
    gold = [{**dict.fromkeys(names), **row} for row in GOLD]
    assert_accepted(folder.score(traces, "--gates", "precision=1", gold=gold))


# --- ids ---


@pytest.mark.parametrize(
    ("row", "code", "message"),
    [
        ({"question": "What?"}, "missing-field", "no id"),
        ({"qid": None, "question": "What?"}, "missing-field", "no id"),
        ({"qid": "", "question": "What?"}, "bad-field", "`qid` must be a non-empty id"),
        ({"q_id": "", "question": "What?"}, "bad-field", "`q_id` must be a non-empty id"),
    ],
)
def test_a_gold_item_needs_an_id(folder: Folder, row: Row, code: str, message: str) -> None:
    """Without one its result could not be named."""
    for profile in ("all", "ship", "smoke"):
        outcome = folder.score(None, "--profile", profile, gold=[*GOLD, row])
        assert_refused(outcome, code, "gold.jsonl:4", message=message)


def test_a_gold_item_needs_a_question_where_traces_are_joined_by_it(folder: Folder) -> None:
    """Under `smoke` an item without a question can never be met."""
    outcome = folder.score(None, "--profile", "smoke", gold=[*GOLD, {"qid": "A4"}])
    assert_refused(outcome, "missing-field", "gold.jsonl:4", message="question")


def test_two_gold_items_with_one_id_are_refused_under_all(folder: Folder) -> None:
    """Each further one is named, with the line of the first."""
    gold = [*GOLD, GOLD[1], {**GOLD[0], "answerable": False}]
    outcome = folder.score(None, "--profile", "all", gold=gold)
    assert_refused(outcome, "duplicate-qid", "gold.jsonl:4", message="first on line 2")
    assert [each.where for each in outcome.problems] == ["gold.jsonl:4", "gold.jsonl:5"]


def test_of_two_gold_items_with_one_id_the_last_wins_under_ship(folder: Folder) -> None:
    """As in the source; the report counts it."""
    first = {**GOLD[0], "answerable": False}
    outcome = folder.score(None, "--profile", "ship", "--format", "json", gold=[first, *GOLD])
    assert json.loads(outcome.out)["answerable"] == 2  # A1 counts as its last row says
    assert "1 gold item replaced by a later one with the same id" in outcome.err
    assert outcome.exit_code == 0
    outcome = folder.score(None, "--profile", "ship", "--format", "json", gold=[*GOLD, first])
    assert json.loads(outcome.out)["under_refusal"] == 0.5  # A1 is answered, and now must not be


def test_of_two_gold_items_with_one_question_the_last_wins_under_smoke(folder: Folder) -> None:
    """There the question is what joins."""
    gold = [{**GOLD[0], "qid": "B1"}, *GOLD]
    outcome = folder.score(None, "--profile", "smoke", "--format", "md", gold=gold)
    assert "| A1 |" in outcome.out
    assert "| B1 |" not in outcome.out
    assert "1 gold item replaced by a later one with the same question" in outcome.err


# --- two spellings of one field ---

TRACE_CONFLICTS: list[tuple[Row, str, str]] = [
    ({"qid": "A1", "id": "A2"}, "qid", "id"),
    ({"q_id": "A1", "query_id": "A2"}, "q_id", "query_id"),
    ({"qid": "A1", "q": "x", "question": "y"}, "q", "question"),
    ({"qid": "A1", "question": "x", "query": "y"}, "question", "query"),
    ({"qid": "A1", "topk": ["a"], "retrieved_ids": ["b"]}, "topk", "retrieved_ids"),
    ({"qid": "A1", "retrieved_ids": ["a", "b"], "chunks": ["b", "a"]}, "retrieved_ids", "chunks"),
    ({"qid": "A1", "items": [], "hits_top_k": ["a"]}, "items", "hits_top_k"),
    ({"qid": "A1", "topk": ["a"], "retrieval": {"topk": ["b"]}}, "topk", "retrieval.topk"),
    (
        {"qid": "A1", "retrieval": {"topk": ["a"], "chunks": ["b"]}},
        "retrieval.topk",
        "retrieval.chunks",
    ),
    ({"qid": "A1", "topk": [{"id": "a", "chunk_id": "b"}]}, "topk[0].id", "topk[0].chunk_id"),
    ({"qid": "A1", "chunks": [{"id": "a", "block_id": "b"}]}, "chunks[0].id", "chunks[0].block_id"),
    (
        {"qid": "A1", "topk": [{"id": "a", "doc": "x", "doc_id": "y"}]},
        "topk[0].doc",
        "topk[0].doc_id",
    ),
    ({"qid": "A1", "answer": "x", "answer_text": "y"}, "answer", "answer_text"),
    (
        {"qid": "A1", "answer_json": {"claim": "x"}, "answer": {"claim": "y"}},
        "answer_json",
        "answer",
    ),
    (
        {"qid": "A1", "citations": ["a"], "answer_citations": ["b"]},
        "citations",
        "answer_citations",
    ),
    (
        {"qid": "A1", "answer_citations": [], "cited_chunks": ["b"]},
        "answer_citations",
        "cited_chunks",
    ),
    (
        {"qid": "A1", "answer_json": {"citations": ["a"]}, "citations": ["b"]},
        "answer_json.citations",
        "citations",
    ),
    (
        {"qid": "A1", "answer_json": {"claim": "x", "refused": True}, "refused": False},
        "answer_json.refused",
        "refused",
    ),
    (
        {"qid": "A1", "answer_json": {"claim": "x", "grounded": True}, "grounded": False},
        "answer_json.grounded",
        "grounded",
    ),
]
GOLD_CONFLICTS: list[tuple[Row, str, str]] = [
    ({"qid": "A4", "id": "A5"}, "qid", "id"),
    ({"qid": "A4", "question": "x", "q": "y"}, "question", "q"),
    ({"qid": "A4", "q": "x", "query": "y"}, "q", "query"),
    ({"qid": "A4", "relevant": ["a"], "gold_ids": ["b"]}, "relevant", "gold_ids"),
    ({"qid": "A4", "gold_citations": ["a"], "gold_ids": []}, "gold_ids", "gold_citations"),
    (
        {"qid": "A4", "gold_claim": "x", "gold_claim_substr": ["y"]},
        "gold_claim_substr",
        "gold_claim",
    ),
]


@pytest.mark.parametrize(("row", "one", "other"), TRACE_CONFLICTS)
def test_two_spellings_that_disagree_are_refused(
    folder: Folder, row: Row, one: str, other: str
) -> None:
    """Nobody can tell which was meant; both are named."""
    outcome = folder.score([TRACES[0], row, TRACES[2]], "--profile", "all")
    assert_refused(outcome, "field-conflict", "trace.jsonl:2", message=f"`{one}`")
    assert f"`{other}`" in outcome.problems[0].message


@pytest.mark.parametrize(("row", "one", "other"), GOLD_CONFLICTS)
def test_two_gold_spellings_that_disagree_are_refused(
    folder: Folder, row: Row, one: str, other: str
) -> None:
    """The same for gold items."""
    outcome = folder.score(None, "--profile", "all", gold=[*GOLD, row])
    assert_refused(outcome, "field-conflict", "gold.jsonl:4", message=f"`{one}` and `{other}`")


def test_two_spellings_that_agree_are_one_field(folder: Folder) -> None:
    """Equal values are no conflict, in traces and in gold."""
    traces = [
        {
            **row,
            "id": row["qid"],
            "question": row["q"],
            "topk": row["retrieved_ids"],
            "retrieval": {"items": row["retrieved_ids"]},
            "answer": row["answer_json"],
            "citations": row["answer_json"]["citations"],
        }
        for row in TRACES
    ]
    gold = [
        {**row, "id": row["qid"], "q": row["question"], "relevant": row["gold_citations"]}
        for row in GOLD
    ]
    outcome = folder.score(
        traces, "--profile", "all", "--gates", "answer.grounded_precision=1", gold=gold
    )
    assert_accepted(outcome)


def test_the_own_spelling_wins_under_ship(folder: Folder) -> None:
    """All numbers are those of the own names; the others are as if they were not there."""
    traces = [
        {
            **row,
            "id": "B7",
            "question": "Something else?",
            "topk": ["zz"],
            "chunks": [{"id": "zz"}],
            "answer": "Something else. citations: [zz]",
            "answer_text": "Something else again.",
            "citations": ["zz"],
        }
        for row in TRACES
    ]
    gold = [
        {**row, "id": "B7", "q": "Else?", "gold_ids": ["zz"], "gold_claim": "else"} for row in GOLD
    ]
    options = ("--profile", "ship", "--format", "json")
    plain = folder.score(None, *options)
    decorated = folder.score(traces, *options, gold=gold)
    assert (decorated.exit_code, decorated.out) == (plain.exit_code, plain.out)
    assert decorated.exit_code == 0


def test_the_own_spelling_wins_under_smoke(folder: Folder) -> None:
    """The same with the names of seed 001."""
    gold: list[Row] = [
        {"qid": "q1", "q": "What is X?", "answerable": True, "gold_ids": ["p1#1"]},
        {"qid": "q2", "q": "What is Z?", "answerable": False, "gold_ids": []},
    ]
    traces: list[Row] = [
        {"q": "What is X?", "chunks": [{"id": "p1#1"}], "answer": "A map. citations: [p1#1]"},
        {"q": "What is Z?", "chunks": [], "answer": "not in context"},
    ]
    options = ("--profile", "smoke", "--format", "md")
    plain = folder.score(traces, *options, gold=gold)
    decorated = folder.score(
        [
            {**row, "question": "Else?", "topk": ["zz"], "answer_json": {"claim": "Else."},
             "answer_text": "Else."}
            for row in traces
        ],
        *options,
        gold=[{**row, "question": "Else?", "gold_citations": ["zz"]} for row in gold],
    )  # fmt: skip
    assert (decorated.exit_code, decorated.out) == (plain.exit_code, plain.out)
    assert plain.exit_code == 0


# --- whole files ---


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
@pytest.mark.parametrize("where", ["gold", "trace"])
def test_other_encodings_are_refused(folder: Folder, encoding: str, where: str) -> None:
    """With a byte order mark and without; the hint says how to convert."""
    if where == "gold":
        outcome = folder.score(gold=lines_of(GOLD).decode().encode(encoding))
    else:
        outcome = folder.score(lines_of(TRACES).decode().encode(encoding))
    assert_refused(outcome, "bad-encoding", f"{where}.jsonl:1", hint="UTF-8")


PACKED = gzip.compress(lines_of(TRACES * 20), mtime=0)


@pytest.mark.parametrize(
    "data",
    [
        PACKED[:2],
        PACKED[:20],
        PACKED[: len(PACKED) // 2],
        PACKED[:-4],
        PACKED[:60] + bytes([PACKED[60] ^ 0xFF]) + PACKED[61:],
        PACKED[:-8] + bytes(8),
        PACKED + b"and more",
    ],
    ids=["magic only", "header", "half", "no checksum", "flipped bits", "wrong checksum", "tail"],
)
@pytest.mark.parametrize("where", ["gold", "trace"])
def test_a_damaged_gzip_file_is_refused(
    folder: Folder, data: bytes, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when rows could be read before the damage; what was unpacked is removed again."""
    spool = folder.path / "spool"
    spool.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spool))
    if where == "gold":
        outcome = folder.score(gold=data, gold_name="gold.jsonl.gz")
    else:
        outcome = folder.score(data, trace_name="trace.jsonl.gz")
    assert_refused(outcome, "bad-gzip", f"{where}.jsonl.gz")
    assert list(spool.iterdir()) == []


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b" \r\n\t\n\n", BOM, b"[]", b" [ \n ]\n", gzip.compress(b"", mtime=0)],
    ids=["no bytes", "newline", "blanks", "BOM", "empty array", "blank array", "gzip"],
)
@pytest.mark.parametrize("where", ["gold", "trace", "both"])
@pytest.mark.parametrize("profile", ["ship", "smoke", "all"])
def test_an_empty_file_measures_nothing(
    folder: Folder, data: bytes, where: str, profile: str
) -> None:
    """Exit code 5 in every case, and the report says so."""
    gold = data if where in ("gold", "both") else None
    trace = data if where in ("trace", "both") else None
    outcome = folder.score(trace, "--profile", profile, gold=gold)
    assert outcome.exit_code == CODES["nothing-measured"].exit == 5
    assert "there is no gold item or no trace" in " ".join(outcome.out.split())


def test_a_missing_file_is_named_with_a_near_one(folder: Folder) -> None:
    """A wrong path is a matter of usage, not of data: exit code 2."""
    folder.write("gold.jsonl", GOLD)
    folder.write("traces.jsonl", TRACES)
    outcome = folder.run("score", "gold.jsonl", "trace.jsonl")
    assert (outcome.exit_code, outcome.out) == (2, "")
    (problem,) = outcome.problems
    assert (problem.code, problem.hint) == ("file-not-found", "did you mean `traces.jsonl`?")
    assert "`trace.jsonl`" in problem.message


@pytest.mark.parametrize("name", ["elsewhere/trace.jsonl", "t" * 300, "gold.jsonl/trace.jsonl"])
def test_a_path_that_cannot_be_is_not_found(folder: Folder, name: str) -> None:
    """No folder of that name, a name that is too long, a file where a folder should be."""
    folder.write("gold.jsonl", GOLD)
    outcome = folder.run("score", "gold.jsonl", name)
    assert (outcome.exit_code, outcome.out) == (2, "")
    (problem,) = outcome.problems
    assert problem.code in ("file-not-found", "file-unreadable")
    assert problem.hint


def test_a_folder_is_no_file(folder: Folder) -> None:
    """It is named as such, wherever a file is expected."""
    folder.write("gold.jsonl", GOLD)
    folder.write("runs/trace.jsonl", TRACES)
    for arguments in (("score", "gold.jsonl", "runs"), ("validate", "runs"), ("gate", "runs")):
        outcome = folder.run(*arguments)
        assert (outcome.exit_code, outcome.out) == (2, "")
        assert outcome.problems[0].code == "file-unreadable"
        assert "`runs` is a folder" in outcome.problems[0].message
        assert outcome.problems[0].hint


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_named(folder: Folder) -> None:
    """With what the system says of it."""
    folder.write("gold.jsonl", GOLD)
    folder.write("trace.jsonl", TRACES).chmod(0)
    outcome = folder.run("score", "gold.jsonl", "trace.jsonl")
    assert (outcome.exit_code, outcome.out) == (2, "")
    (problem,) = outcome.problems
    assert problem.code == "file-unreadable"
    assert "Permission denied" in problem.message


# --- many problems at once ---


def many_problems() -> tuple[bytes, list[str]]:
    """A file of 300 lines, 75 of them bad in different ways; and the places of the bad ones."""
    bad = [MALFORMED, b'{"qid": "A1", "seed": 1.5}', b"17", b'{"qid": "A1", "note": "\xff"}']
    lines = [bad[(i // 4) % 4] if i % 4 == 3 else line_of(TRACES[i % 3]) for i in range(300)]
    return b"\n".join(lines) + b"\n", [f"trace.jsonl:{i + 1}" for i in range(3, 300, 4)]


@pytest.mark.parametrize("size", [1, 100, 1000, 7000, 10**6])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_first_twenty_problems_are_shown_and_all_are_counted(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, size: int, workers: str
) -> None:
    """By line, the same whatever the ranges and the number of workers."""
    small_ranges(monkeypatch, size)
    data, places = many_problems()
    outcome = folder.score(data, "--workers", workers)
    assert [problem.where for problem in outcome.problems] == places[:MAX_REPORTED]
    codes = ["bad-json", "bad-field", "not-a-row", "bad-encoding"]
    assert [problem.code for problem in outcome.problems] == codes * 5
    assert all(problem.hint for problem in outcome.problems)
    assert outcome.err.endswith(f"\n... and {len(places) - MAX_REPORTED} more problems\n")
    assert (outcome.exit_code, outcome.out) == (3, "")


def test_twenty_problems_are_shown_without_a_rest(folder: Folder) -> None:
    """Nothing is said of more when there are no more."""
    outcome = folder.score(b"\n".join([MALFORMED] * MAX_REPORTED))
    assert len(outcome.problems) == MAX_REPORTED
    assert "more problems" not in outcome.err


@pytest.mark.parametrize("size", [1, 200, 10**6])
def test_problems_of_the_gold_file_are_cut_to_twenty_too(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """The gold file stops the run before any trace is read."""
    small_ranges(monkeypatch, size)
    outcome = folder.score(MALFORMED, gold=lines_of(GOLD) + (MALFORMED + b"\n\n") * 33)
    assert [problem.where for problem in outcome.problems] == [
        f"gold.jsonl:{4 + 2 * i}" for i in range(MAX_REPORTED)
    ]
    assert outcome.err.endswith("\n... and 13 more problems\n")
    assert (outcome.exit_code, outcome.out) == (3, "")


def test_duplicate_ids_are_cut_to_twenty_too(folder: Folder) -> None:
    """They are found later than other problems, and reported alike."""
    gold = [{"qid": f"A{i}", "question": f"{i}?"} for i in range(30)] * 2
    outcome = folder.score(None, "--profile", "all", gold=gold)
    assert [problem.where for problem in outcome.problems] == [
        f"gold.jsonl:{31 + i}" for i in range(MAX_REPORTED)
    ]
    assert outcome.err.endswith("\n... and 10 more problems\n")


def test_validate_shows_items_that_clash_beside_all_other_problems(folder: Folder) -> None:
    folder.write("gold.jsonl", [*GOLD, GOLD[0], {"qid": "A9", "question": 3}])
    folder.write("trace.jsonl", [{"qid": "A1", "retrieved_ids": "p1#2"}])
    outcome = folder.run("validate", "gold.jsonl", "trace.jsonl", "--profile", "all")
    assert outcome.exit_code == 3
    told = [line for line in outcome.err.splitlines() if line.startswith(("error", "  -->"))]
    assert [line.split("]")[0] for line in told[::2]] == [
        "error[duplicate-qid", "error[bad-field", "error[bad-field",
    ]  # fmt: skip
    assert [line.split()[1] for line in told[1::2]] == [
        "gold.jsonl:4", "gold.jsonl:5", "trace.jsonl:1",
    ]  # fmt: skip


def test_validate_shows_the_problems_of_both_files(folder: Folder) -> None:
    """Up to twenty a file, with what is left counted, and exit code 3."""
    data, places = many_problems()
    folder.write("trace.jsonl", data)
    folder.write("gold.jsonl", lines_of(GOLD) + MALFORMED)
    outcome = folder.run("validate", "gold.jsonl", "trace.jsonl")
    assert outcome.exit_code == 3
    found = [problem.where for problem in outcome.problems]
    assert found == ["gold.jsonl:4", *places[:MAX_REPORTED]]
    assert f"... and {len(places) - MAX_REPORTED} more problems in trace.jsonl" in outcome.err


# --- skipping ---


@pytest.mark.parametrize("size", [1, 10**6])
def test_skipped_lines_are_counted_listed_and_gated(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """A run that skipped lines is not evaluable, although every gate passes."""
    small_ranges(monkeypatch, size)
    data = b"\n".join([FIRST, MALFORMED, SECOND, b'{"qid": "A1", "seed": []}', THIRD])
    options = ("--on-bad-line=skip", "--full", "--format", "json")
    outcome = folder.score(data, *options, gold=lines_of(GOLD) + b"17\n")
    assert outcome.exit_code == CODES["skipped-lines"].exit == 4
    document = json.loads(outcome.out)
    assert document["skipped"] == 3
    assert (document["counts"]["gold_skipped"], document["counts"]["trace_skipped"]) == (1, 2)
    places = [each.split(" ")[0] for each in document["skipped_lines"]]
    assert places == ["gold.jsonl:4", "trace.jsonl:2", "trace.jsonl:4"]
    assert [block["code"] for block in document["verdict"]["blocks"]] == ["skipped-lines"]
    assert {gate["status"] for gate in document["verdict"]["gates"]} == {"pass"}
    assert document["precision"] == 1.0  # what could be read is scored
    for place in places:
        assert f"skipped: {place}" in outcome.err


def test_skipped_lines_may_be_allowed(folder: Folder) -> None:
    """Then the gates decide, and the lines are still listed."""
    data = b"\n".join([FIRST, MALFORMED, SECOND, THIRD])
    outcome = folder.score(data, "--on-bad-line=skip", "--allow-skipped")
    assert outcome.exit_code == 0
    assert "1 bad line skipped" in outcome.err
    assert "skipped: trace.jsonl:2" in outcome.err


def test_all_skipped_lines_are_counted_when_not_all_are_listed(folder: Folder) -> None:
    """The first twenty are listed."""
    data, places = many_problems()
    options = ("--on-bad-line=skip", "--allow-skipped", "--full", "--format", "json")
    outcome = folder.score(data, *options)
    document = json.loads(outcome.out)
    assert document["skipped"] == len(places)
    listed = [each.split(" ")[0] for each in document["skipped_lines"]]
    assert listed[:MAX_REPORTED] == places[:MAX_REPORTED]
    assert f"{len(places)} bad lines skipped" in outcome.err


def test_an_array_that_is_not_json_cannot_be_skipped_in_part(folder: Folder) -> None:
    """Where one element ends and the next begins is unknown then."""
    outcome = folder.score(array_of(FIRST, MALFORMED, SECOND), "--on-bad-line=skip")
    assert_refused(outcome, "bad-json", "trace.jsonl:3")


# --- what is odd, but accepted ---


def test_crlf_and_a_byte_order_mark_are_accepted_and_noted(folder: Folder) -> None:
    """On stderr for either file; the numbers do not change."""
    plain = folder.score(None, "--format", "json")
    gold = BOM + lines_of(GOLD)
    trace = BOM + lines_of(TRACES).replace(b"\n", b"\r\n")
    outcome = folder.score(trace, "--format", "json", gold=gold)
    assert (outcome.exit_code, outcome.out) == (0, plain.out)
    assert "warning: gold.jsonl: byte order mark at the start\n" in outcome.err
    assert "warning: trace.jsonl: byte order mark at the start\n" in outcome.err
    assert "warning: trace.jsonl: CRLF line ends\n" in outcome.err
    assert "gold.jsonl: CRLF" not in outcome.err
    assert "warning" not in plain.err


def test_crlf_far_down_in_a_file_is_noted_too(folder: Folder) -> None:
    """A file that two systems wrote to has both kinds of line ends."""
    trace = lines_of(TRACES * 300) + lines_of(TRACES).replace(b"\n", b"\r\n")
    outcome = folder.score(trace)
    assert outcome.exit_code == 0
    assert "warning: trace.jsonl: CRLF line ends\n" in outcome.err


def test_a_second_byte_order_mark_is_refused(folder: Folder) -> None:
    """One at the start is accepted; what follows must be a row."""
    assert_refused(folder.score(BOM * 2 + FIRST), "bad-json", "trace.jsonl:1")
    assert_refused(folder.score(FIRST + b"\n" + BOM + SECOND), "bad-json", "trace.jsonl:2")


@pytest.mark.parametrize("unusual", [b"", b'"refused": null, "grounded": null, "error": "", '])
def test_of_duplicate_keys_the_last_wins(folder: Folder, unusual: bytes) -> None:
    """At the top and inside, in rows of any shape."""
    row = (
        b'{"qid": "A3", "qid": "A1", "retrieved_ids": ["zz"], "retrieved_ids": ["p1#2"], %s'
        b'"answer_json": {"claim": "not in context"}, "answer_json": {"claim": "No.", '
        b'"claim": "X rejects null keys.", "citations": ["zz"], "citations": ["p1#2"]}}'
    ) % unusual
    gold = lines_of(GOLD).replace(
        b'"answerable": false', b'"answerable": true, "answerable": false'
    )
    outcome = folder.score(b"\n".join([row, SECOND, THIRD]), gold=gold)
    assert_accepted(outcome)


# --- every code is raised or reported ---

Recipe = Callable[[Folder, pytest.MonkeyPatch], Outcome]
FULL = ("--full", "--format", "json")


def _unreadable(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    return folder.run("score", ".", ".")


def _exists(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.run("init")
    return folder.run("init")


def _bad_config(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("ragauge.toml", "golld = 'eval/gold.jsonl'\n")
    return folder.score()


def _unmapped(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("a/a.txt", "A paragraph that will be gone.\n")
    folder.write("b/b.txt", "Nothing of the kind.\n")
    for name in "ab":
        folder.run("corpus", "build", name, "-o", f"corpus-{name}")
    folder.run("corpus", "diff", "corpus-a", "corpus-b", "-o", "map.jsonl")
    return folder.run("corpus", "redirect", "map.jsonl", "a.txt#S.0.p.Bk001")


def _bad_scores(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("scores.json", '{"precision": 1.0}')
    return folder.run("gate", "scores.json")


def _bad_lock(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("gold.jsonl", GOLD)
    folder.write("gold.lock", '{"schema": "else"}')
    return folder.run("gold", "verify", "gold.jsonl")


def _too_long(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setattr(ranges, "MAX_LINE", 100)
    return folder.score()


def _too_few(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("gates.toml", "precision = { threshold = 0.5, min_n = 30 }\n")
    return folder.score(None, "--gates", "gates.toml", *FULL)


def _bug(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    def broken(*_: object, **__: object) -> object:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(score, "score", broken)
    return folder.score()


def _bad_plugin(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    broken = EntryPoint("broken", "no_such_package:METRICS", "ragauge.metrics")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [broken])
    registry.metrics.cache_clear()
    try:
        return folder.score()
    finally:
        monkeypatch.undo()
        registry.metrics.cache_clear()


def _missing_extra(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    monkeypatch.setitem(sys.modules, "yaml", None)
    return folder.score(gold="- qid: A1\n", gold_name="gold.yaml")


def scored(
    *options: str, trace: Content | None = None, gold: Content | None = None, **names: str
) -> Recipe:
    return lambda folder, _: folder.score(trace, *options, gold=gold, **names)


ERRORED: list[Row] = [{**TRACES[0], "error": "timeout"}, *TRACES[1:]]
PLACE = {"doc": "a.md", "start": 0, "end": 9}
CANARY = ("--profile", "canary", "--gates", "recall_drop=0.02,delta_s_median=0.4")
DISTANT = [
    {"qid": "A1", "seed": 1, "topk": ["p1"], "ΔS": [0.2], "embed_model": "one"},
    {"qid": "A1", "seed": 2, "topk": ["p1"], "ΔS": [0.2], "embed_model": "other"},
]


def _incomparable(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    live = scored("--profile", "all", "-o", "live.json", trace=TRACES[:1], gold=GOLD[:1])
    live(folder, monkeypatch)
    again = scored(*CANARY, *FULL, "--baseline", "live.json", trace=DISTANT[:1], gold=GOLD[:1])
    return again(folder, monkeypatch)


def _stored(folder: Folder, *names: str) -> None:
    for name in names:
        assert folder.score(None, "--run-id", name, "--store").exit_code == 0


def on_store(*arguments: str, changed: str | None = None, written: bytes | None = None) -> Recipe:
    """Run a command on a store of one run `one`, changed by SQL or overwritten."""

    def recipe(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
        _stored(folder, "one")
        path = folder.path / "ragauge.db"
        if changed is not None:
            with closing(sqlite3.connect(path)) as database:
                database.execute(changed)
                database.commit()
        if written is not None:
            path.write_bytes(written)
        return folder.run(*arguments)

    return recipe


def _held(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    _stored(folder, "one")
    with run_store.opened_store("sqlite:///ragauge.db") as store, store.hold("one"):
        return folder.run("run", "--resume", "one")


def _bad_export(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    _stored(folder, "one")
    folder.write("run.jsonl", '{"schema": "else"}')
    return folder.run("runs", "import", "run.jsonl")


def _bad_document(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("docs/a.ipynb", "no notebook")
    return folder.run("corpus", "build", "docs", "-o", "out")


def _bad_corpus(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("out/manifest.json", '{"schema": "ragauge.corpus/1"}')
    return folder.run("corpus", "chunk", "out", "-o", "chunks.jsonl")


def _chunked(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    for version in ("v1", "v2"):
        hits = [{"id": "p1#2", "chunker_version": version}]
        folder.score([{"qid": "A1", "topk": hits}], "--run-id", version, "--store", gold=GOLD[:1])
    return folder.run("compare", "v1", "v2", "--strict-chunker-version")


def _nothing_common(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.score(TRACES[:1], "--run-id", "one", "--store", gold=GOLD[:1])
    folder.score(TRACES[2:], "--run-id", "other", "--store", gold=GOLD[2:])
    return folder.run("compare", "one", "other")


def pinned(*evidence: object) -> Recipe:
    """Pin evidence to a corpus of one document."""

    def recipe(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
        folder.write("docs/a.md", "# A\n\nSo it is. So it was.\n")
        assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
        folder.write("gold.jsonl", [{"qid": "A1", "relevant": list(evidence)}])
        return folder.run("gold", "pin", "gold.jsonl", "--corpus", "corpus", "-o", "new.jsonl")

    return recipe


def looked_up(evidence: object) -> Recipe:
    """Validate evidence against a corpus; what was read is shown as well, and is not the point."""

    def recipe(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
        folder.write("docs/a.md", "# A\n\nSo it is. So it was.\n")
        assert folder.run("corpus", "build", "docs", "-o", "corpus").exit_code == 0
        folder.write("gold.jsonl", [{"qid": "A1", "relevant": [evidence]}])
        done = folder.run("validate", "gold.jsonl", "--corpus", "corpus")
        assert "gold.jsonl: 1 gold item" in done.out
        return replace(done, out="")

    return recipe


def _bad_target(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("gold.jsonl", GOLD)
    return folder.run("run", "--gold", "gold.jsonl", "--target", "ftp://host")


def _failing_target(folder: Folder, _: pytest.MonkeyPatch) -> Outcome:
    folder.write("gold.jsonl", [{"qid": f"A{n}", "question": "?"} for n in range(300)])
    return folder.run(
        "run", "--gold", "gold.jsonl", "--target", "python:json:loads", "--max-errors", "0",
        "--concurrency", "1",
    )  # fmt: skip


def _bad_model(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Other weights; where onnxruntime is not installed it is never asked for anything."""
    monkeypatch.setitem(sys.modules, "onnxruntime", ModuleType("onnxruntime"))
    folder.write("model.onnx", b"other weights")
    folder.write("ragauge.toml", '[embedders.minilm]\npath = "model.onnx"\n')
    return folder.score(TRACES, "--embed", "minilm", "--embed-cache", "none")


def _embedder_failed(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Nothing listens at the address; it is not worth waiting for."""
    monkeypatch.setattr("ragauge.embed.embedders.openai.time.sleep", lambda _: None)
    monkeypatch.setenv("RAGAUGE_EMBED_BASE", "http://127.0.0.1:1/v1")
    hits = [{"id": "p1#2", "text": "X rejects null keys."}]
    row = {"qid": "A1", "question": "Does X support null keys?", "topk": hits}
    return folder.score([row], "--embed", "openai:any", "--embed-cache", "none", gold=GOLD[:1])


LEXICAL = [{"qid": "A1", "question": "null keys?", "topk": [{"id": "p1#2", "text": "null keys"}]}]
LEXICAL_GATE = (
    "--profile", "all", "--embed", "hashing", "--embed-cache", "none",
    "--gates", "semantic.delta_s_hits<=2",
)  # fmt: skip


RECIPES: dict[str, Recipe] = {
    "bad-model": _bad_model,
    "embedder-failed": _embedder_failed,
    "lexical-embedder": scored(*LEXICAL_GATE, *FULL, trace=LEXICAL, gold=GOLD[:1]),
    "bad-target": _bad_target,
    "cannot-resume": on_store("run", "--resume", "one"),
    "run-held": _held,
    "too-many-errors": _failing_target,
    "unresolved": looked_up("a.md#S.1.p.Bk002"),
    "quote-moved": looked_up({"doc": "a.md", "start": 5, "end": 14, "quote": "So it was."}),
    "quote-not-found": pinned({"doc": "a.md", "quote": "never said"}),
    "quote-ambiguous": pinned({"doc": "a.md", "quote": "So it"}),
    "draft-item": scored(gold=[{"qid": "A1", "question": "", "draft": True}]),
    "bad-store-url": lambda folder, _: folder.run("runs", "list", "--store", "mysql://host/x"),
    "store-unavailable": lambda folder, _: folder.run("runs", "list"),
    "run-exists": on_store("score", "gold.jsonl", "trace.jsonl", "--run-id", "one", "--store"),
    "unknown-run": on_store("compare", "one", "two"),
    "bad-store": on_store("runs", "list", written=b"no database " * 100),
    "newer-store": on_store("runs", "list", changed="PRAGMA user_version = 99"),
    "bad-export": _bad_export,
    "incomplete-run": on_store("gate", "one", changed="UPDATE eval_runs SET status = 'incomplete'"),
    "chunker-mismatch": _chunked,
    "nothing-in-common": _nothing_common,
    "usage": scored("--k", "five"),
    "file-not-found": lambda folder, _: folder.run("score", "gold.jsonl", "trace.jsonl"),
    "file-unreadable": _unreadable,
    "bad-config": _bad_config,
    "bad-gate": scored("--gates", "precision=nan"),
    "unknown-metric": scored("--metrics", "answer.precission"),
    "unknown-name": scored("--profile", "shipp"),
    "file-exists": _exists,
    "bad-plugin": _bad_plugin,
    "missing-extra": _missing_extra,
    "bad-json": scored(trace=MALFORMED + b"\n" + FIRST),
    "truncated-line": scored(trace=FIRST[:40]),
    "bad-encoding": scored(trace=b'{"qid": "\xff"}'),
    "nul-byte": scored(trace=FIRST + b"\n\0"),
    "line-too-long": _too_long,
    "too-deep": scored(trace=b"[" * DEEP),
    "not-a-row": scored(trace=b"17"),
    "bad-field": scored(trace=[{"qid": "A1", "turn": "x"}]),
    "missing-field": scored(gold=[{"question": "What?"}]),
    "field-conflict": scored("--profile", "all", trace=[{"qid": "A1", "id": "A2"}]),
    "duplicate-qid": scored("--profile", "all", gold=GOLD * 2),
    "mixed-units": scored(
        gold=[{"qid": "A1", "relevant": [PLACE, {**PLACE, "unit": "char"}]}], trace=TRACES[:1]
    ),
    "quote-unpinned": scored(
        gold=[{"qid": "A1", "relevant": [{"doc": "a.md", "quote": "so"}]}], trace=TRACES[:1]
    ),
    "bad-document": _bad_document,
    "bad-corpus": _bad_corpus,
    "bad-gzip": scored(trace=PACKED[:50]),
    "bad-zstd": scored(trace=b"\x28\xb5\x2f\xfd"),
    "bad-parquet": scored(trace=b"PAR1 and no more"),
    "bad-yaml": scored(gold="- qid: [", gold_name="gold.yaml"),
    "unmapped": _unmapped,
    "bad-lock": _bad_lock,
    "bad-scores": _bad_scores,
    "missing-traces": scored(*FULL, trace=TRACES[:2]),
    "errored-traces": scored("--profile", "all", "--gates", "precision=0", *FULL, trace=ERRORED),
    "skipped-lines": scored("--on-bad-line=skip", *FULL, trace=lines_of(TRACES) + b"17"),
    "nothing-answered": scored(*FULL, trace=TRACES[1:2], gold=GOLD[1:2]),
    "undefined-metric": scored(
        "--profile", "all", "--gates", "under=0.05", *FULL, trace=TRACES[:1], gold=GOLD[:1]
    ),
    "too-few": _too_few,
    "no-baseline": scored(*CANARY, *FULL, trace=DISTANT[:1], gold=GOLD[:1]),
    "incomparable": _incomparable,
    "mixed-embedders": scored(*CANARY, *FULL, trace=DISTANT, gold=GOLD[:2]),
    "nothing-measured": scored(*FULL, trace=b""),
    "bug": _bug,
}


def test_there_is_a_recipe_for_every_code() -> None:
    """A code that nothing can raise explains nothing; a new one needs a recipe here."""
    assert set(RECIPES) == set(CODES)


@pytest.mark.parametrize("code", RECIPES)
def test_every_code_is_raised_or_reported(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """On stderr as error[code] with a hint, or in the verdict; with the exit code it stands for."""
    outcome = RECIPES[code](folder, monkeypatch)
    assert code in outcome.codes, outcome
    assert outcome.exit_code == CODES[code].exit
    assert all(problem.hint.strip() for problem in outcome.problems)
    assert "Traceback" not in outcome.err
    # What was scored is shown, whatever the verdict; what was refused has nothing to show.
    assert (outcome.out == "") == bool(outcome.problems)
    assert outcome.problems or outcome.exit_code not in (2, 3, 70)


def test_every_code_can_be_explained(folder: Folder) -> None:
    """`ragauge explain CODE` says what it means and which exit code it has."""
    for code, entry in CODES.items():
        outcome = folder.run("explain", code)
        assert outcome.exit_code == 0
        assert outcome.out.startswith(f"{code}: {entry.title}  (exit code {int(entry.exit)})\n")


def test_a_bug_says_that_it_is_one(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 70, the place in the source, and no blame on the user's files."""
    outcome = _bug(folder, monkeypatch)
    assert outcome.exit_code == 70
    assert "ZeroDivisionError: division by zero (test_bad_input.py:" in outcome.err
    assert "not in your files" in outcome.err
