"""Bytes that are no row: each kind of damage has its code, its line and a hint."""

from __future__ import annotations

import codecs
import gzip
import os
import tracemalloc

import pytest

from ragauge.files import ranges
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder, line_of, lines_of
from tests.support.refusals import array_of, assert_accepted, assert_refused

BOM = codecs.BOM_UTF8
FIRST, SECOND, THIRD = (line_of(row) for row in TRACES)
MALFORMED = b'{"qid": }'
DEEP = 100_000
BEYOND = {"2**63": 2**63, "-2**63 - 1": -(2**63) - 1, "10**30": 10**30}


@cases(
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
@cases("usual", [True, False], ids=["usual row", "unusual row"])
def test_what_is_not_json_is_refused(folder: Folder, line: bytes, usual: bool) -> None:
    """Also in fields that nothing reads, in rows of any shape."""
    if not usual:
        line = line.replace(b'"A1"', b'"A1", "refused": false', 1)
    assert_refused(folder.score(b"\n".join([FIRST, line, SECOND])), "bad-json", "trace.jsonl:2")


@cases(
    ("line", "hint"),
    [
        (FIRST.strip() + b",", "remove the comma at the end of the line"),
        (b'{"qid": "A1",', "write each object on one line, or the whole file as one JSON array"),
        (b'{"qid": "A1", "topk": [["p1", 0.9]]}', 'write {"id": …, "score": …}'),
        (b'{"qid": "A1", "topk": {"1": "p1"}}', "write a list, in order"),
        (b'{"qid": "A1", "topk": "p1"}', "put it in square brackets"),
    ],
)
def test_hints_say_what_to_write(folder: Folder, line: bytes, hint: str) -> None:
    outcome = folder.score(b"\n".join([SECOND, line, THIRD]))
    assert outcome.exit_code == 3
    assert f"hint: {hint}" in outcome.err


@cases("value", [b"NaN", b"Infinity", b"-Infinity"])
@cases("place", [b'"note": %s', b'"topk": [{"id": "p", "score": %s}]'])
@cases("where", ["gold", "trace"])
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


@pytest.mark.slow
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


@cases(
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


@cases(
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
@cases("where", ["gold", "trace", "array"])
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


@cases(
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


@cases("number", BEYOND.values(), ids=BEYOND.keys())
@cases(
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


@pytest.mark.slow
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


@cases(
    "line",
    [
        b'{"qid": "A1", "note": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"qid": "A1", "topk": ' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    ],
    ids=["unread field", "hits", "objects"],
)
@cases("where", ["gold", "trace"])
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


@cases("value", [b"17", b"-0.5", b'"A1"', b"null", b"true", b"[]", b'[{"q": 1}]'])
@cases("where", ["gold", "trace", "array"])
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


@cases("line", SURROGATES.values(), ids=SURROGATES.keys())
@cases("place", ["middle", "last", "last, no newline", "array", "gold"])
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


@pytest.mark.slow
@cases(
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
    assert "byte order mark" not in plain.err
    assert "CRLF" not in plain.err


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
