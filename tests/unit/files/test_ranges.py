"""Files as rows: layouts, ranges at any size, lines, gzip, standard input, and whole writes."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import re
import sys
from pathlib import Path

import pytest

from ragauge.errors import RagaugeError
from ragauge.files import ranges
from ragauge.files.atomic_write import write_atomically
from ragauge.files.open import opened
from ragauge.files.ranges import Range, Source, plan, read_range, read_rows
from tests.support.cases import cases

BOM = codecs.BOM_UTF8
ROW = b'{"qid": "A1"}'


def write(folder: Path, data: bytes, name: str = "rows.jsonl") -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


def rows_with_lines(opened_source: Source, size: int) -> list[tuple[int, bytes]]:
    """Every row that is not blank, with its line, as the readers count them."""
    found: list[tuple[int, bytes]] = []
    line = 1
    for part in plan(opened_source, range_bytes=size):
        rows = read_rows(opened_source, part)
        if part.first_line is not None:
            line = part.first_line
        for index, data in enumerate(rows.data):
            if data.strip():
                found.append((line + rows.line(index), data.strip()))
        line += rows.newlines
    return found


# --- lines ---

LINES = {
    "plain": b'{"a": 1}\n{"b": 22}\n{"c": 333}\n',
    "no newline at the end": b'{"a": 1}\n{"b": 22}',
    "blank lines": b'\n\n{"a": 1}\n\n  \n{"b": 22}\n\n\n',
    "CRLF": b'{"a": 1}\r\n\r\n{"b": 22}\r\n',
    "CR alone is no line end": b'{"a": 1}\r{"b": 22}\n{"c": 3}',
    "one long line": b'{"a": "' + b"x" * 200 + b'"}',
    "only newlines": b"\n" * 7,
    "no bytes": b"",
    "one newline": b"\n",
    "one byte": b"x",
    "other line separators": '{"a": "x\u2028y\x85z\x0c"}\n{"b": "\x0b"}\n'.encode(),
    "long and short": b"a\n" * 5 + b"b" * 90 + b"\n" + b"c\n" * 5,
}


@cases("bom", [b"", BOM], ids=["", "BOM"])
@cases("data", LINES.values(), ids=LINES.keys())
def test_ranges_of_any_size_hold_every_line_once(tmp_path: Path, data: bytes, bom: bytes) -> None:
    """They cover the file without gap or overlap, and each begins where a line begins."""
    name = write(tmp_path, bom + data)
    expected = [
        (number, line.strip())
        for number, line in enumerate(data.split(b"\n"), start=1)
        if line.strip()
    ]
    with opened(name) as found:
        assert found.start == len(bom)
        assert found.size == len(bom + data)
        for size in range(1, len(data) + 3):
            parts = plan(found, range_bytes=size)
            assert [part.index for part in parts] == list(range(len(parts)))
            assert b"".join(read_range(found, part) for part in parts) == data
            edges = [(part.start, part.end) for part in parts]
            assert [end for _, end in edges[:-1]] == [start for start, _ in edges[1:]]
            assert all((bom + data)[end - 1 : end] == b"\n" for _, end in edges[:-1])
            assert all(start < end for start, end in edges)
            if found.layout == "lines":
                assert rows_with_lines(found, size) == expected


def test_a_range_is_no_larger_than_it_must_be(tmp_path: Path) -> None:
    """It ends with the line in which its size is reached."""
    name = write(tmp_path, b"aaa\n" * 6)
    with opened(name) as found:
        ends = {size: [part.end for part in plan(found, range_bytes=size)] for size in (1, 4, 5, 8)}
    assert ends == {
        1: [4, 8, 12, 16, 20, 24],
        4: [4, 8, 12, 16, 20, 24],
        5: [8, 16, 24],
        8: [8, 16, 24],
    }


def test_a_line_that_is_longer_than_a_step_is_found_whole(tmp_path: Path) -> None:
    """The end of a line is looked for step by step; the newline may be the first byte of one."""
    for length in (64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 200_000):
        data = b"x" * length + b"\n" + b"y\n"
        with opened(write(tmp_path, data)) as found:
            parts = plan(found, range_bytes=1)
            assert [part.end for part in parts] == [length + 1, length + 3]


def test_blank_lines_are_rows_so_that_rows_and_lines_agree(tmp_path: Path) -> None:
    """The reader passes them over; the numbers stay right."""
    with opened(write(tmp_path, b"\n\n" + ROW + b"\n")) as found:
        (part,) = plan(found)
        rows = read_rows(found, part)
    assert rows.data == [b"", b"", ROW]
    assert [rows.line(i) for i in range(3)] == [0, 1, 2]
    assert rows.newlines == 3


# --- arrays ---

ELEMENTS = [
    '{"a": 1}',
    '{\n  "b": [1,\n 2, [3]],\n  "c": {"d": "]"}\n}',
    '"a string, with [brackets] and \\" quotes, }{"',
    "[[], [\n], {}]",
    "-1.5e3",
    "null",
    '{"e": "\\\\", "f": ",", "g": "é€😀"}',
    '{"h": "\\u005d"}',
    "true",
    "{}",
]
ARRAYS = {
    "compact": ("[", ",", "]"),
    "a line each": ("[\n", ",\n", "\n]\n"),
    "comma first": ("[ ", "\n, ", " ]"),
    "blank lines": ("\n\n [\n\n", "  ,\r\n\n\t", "\n\n]\n\n"),
}


@cases("bom", [b"", BOM], ids=["", "BOM"])
@cases(("head", "between", "tail"), ARRAYS.values(), ids=ARRAYS.keys())
def test_ranges_of_an_array_hold_every_element_once_with_its_line(
    tmp_path: Path, head: str, between: str, tail: str, bom: bytes
) -> None:
    """At any size; the line is the one where the element begins."""
    text, expected = head, []
    for index, element in enumerate(ELEMENTS):
        text += between if index else ""
        expected.append((text.count("\n") + 1, json.loads(element)))
        text += element
    data = (text + tail).encode()
    assert json.loads(data) == [value for _, value in expected]
    with opened(write(tmp_path, bom + data)) as found:
        assert found.layout == "array"
        for size in range(1, len(data) + 2):
            got = rows_with_lines(found, size)
            assert [(line, json.loads(row)) for line, row in got] == expected
        parts = plan(found, range_bytes=1)
        assert len(parts) == len(ELEMENTS)
        assert [part.first_line for part in parts] == [line for line, _ in expected]
        assert len(plan(found)) == 1


@pytest.mark.parametrize("text", ["[]", "[ ]", "\n[\n\n]\n"])
def test_an_empty_array_has_no_ranges(tmp_path: Path, text: str) -> None:
    """There is nothing to read, which is not an error here."""
    with opened(write(tmp_path, text.encode())) as found:
        assert found.layout == "array"
        assert plan(found) == []


@cases(
    ("text", "code", "line"),
    [
        ("[\n{},\n{]\n", "bad-json", 3),
        ("[\n{},\n]", "bad-json", 3),
        ("[\n{}\n{}]", "bad-json", 3),
        ("[\n{}\n]\n{}", "bad-json", 4),
        ("[\n{},\n{", "truncated-line", 3),
        ("[\n{},", "truncated-line", 2),
        ("\n\n[", "truncated-line", 3),
    ],
)
def test_an_array_that_is_not_json_is_refused_with_the_line(
    tmp_path: Path, text: str, code: str, line: int
) -> None:
    """A BOM before it does not count as anything."""
    for bom in (b"", BOM):
        name = write(tmp_path, bom + text.encode())
        with opened(name) as found, pytest.raises(RagaugeError) as caught:
            plan(found)
        (problem,) = caught.value.problems
        assert (problem.code, problem.hint != "") == (code, True)
        assert problem.place is not None
        assert (problem.place.file, problem.place.line) == (name, line)


# --- single objects and layouts ---


@cases("head", ["", "\n\n", " \r\n"])
@cases("indent", [1, 2, 4])
def test_a_pretty_printed_object_is_one_row(tmp_path: Path, head: str, indent: int) -> None:
    """Its line is that of its opening bracket."""
    row = {"qid": "A1", "retrieved_ids": ["a", "b"], "answer_json": {"claim": "x"}}
    data = (head + json.dumps(row, indent=indent) + "\n").encode()
    with opened(write(tmp_path, data)) as found:
        assert found.layout == "object"
        for size in (1, 10, 10_000):
            (part,) = plan(found, range_bytes=size)
            assert part.first_line == head.count("\n") + 1
            rows = read_rows(found, part)
            assert [json.loads(data) for data in rows.data] == [row]
            assert rows.line(0) == 0


@cases(
    ("data", "layout"),
    [
        (b"", "empty"),
        (b" \n\t\r\n", "empty"),
        (BOM, "empty"),
        (ROW, "lines"),
        (ROW + b"\n" + ROW, "lines"),
        (b"\n\n" + ROW, "lines"),
        (b'{"a": [\n', "lines"),
        (b'{"a": 1},\n{"b": 2}', "lines"),
        (b'{"q": "1 2 3 4 5"}', "lines"),
        (b"q1 Q0 d1 1 0.5 tag", "run"),
        (b"17", "lines"),
        (b" [", "array"),
        (BOM + b"\n[]", "array"),
        (b'{\n"a": 1}', "object"),
        (b'{"a": 1,\n"b": 2}', "object"),
        (b'{"a": [\n1]}', "object"),
        (b'{\n"a": 1}\n{\n"b": 1}', "lines"),
    ],
)
def test_the_layout_is_told_from_the_head(tmp_path: Path, data: bytes, layout: str) -> None:
    """Lines, an array, or one object over several lines."""
    with opened(write(tmp_path, data)) as found:
        assert found.layout == layout


@cases(
    ("data", "notes"),
    [
        (ROW + b"\n", ()),
        (BOM + ROW + b"\n", ("byte order mark at the start",)),
        (ROW + b"\r\n", ("CRLF line ends",)),
        (BOM + ROW + b"\r\n", ("byte order mark at the start", "CRLF line ends")),
    ],
)
def test_oddities_of_a_file_are_noted(tmp_path: Path, data: bytes, notes: tuple[str, ...]) -> None:
    """They are accepted, and the reader is told."""
    with opened(write(tmp_path, data)) as found:
        assert found.notes == notes


@cases("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_refused(tmp_path: Path, encoding: str) -> None:
    """Before any row is looked at."""
    name = write(tmp_path, ROW.decode().encode(encoding))
    with pytest.raises(RagaugeError) as caught, opened(name):
        pass
    assert caught.value.code == "bad-encoding"


# --- gzip and standard input ---


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files, which is empty before and must be so after."""
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.mark.parametrize("data", [*LINES.values(), b"[" + ROW + b"]"])
def test_a_gzip_file_is_read_as_what_is_in_it(tmp_path: Path, spool: Path, data: bytes) -> None:
    """Whatever its name; the unpacked copy is gone afterwards."""
    name = write(tmp_path, gzip.compress(data, mtime=0), "rows")
    with opened(name) as found:
        assert found.name == name
        assert found.size == len(data)
        assert found.path != name
        if found.layout == "lines":
            assert b"".join(read_range(found, part) for part in plan(found)) == data
    assert list(spool.iterdir()) == []


def test_a_gzip_file_of_several_members_is_read_to_its_end(tmp_path: Path) -> None:
    """Log rotation appends members."""
    name = write(tmp_path, gzip.compress(b"a\n", mtime=0) + gzip.compress(b"b\n", mtime=0))
    with opened(name) as found:
        assert rows_with_lines(found, 100) == [(1, b"a"), (2, b"b")]


@pytest.mark.parametrize(
    "data", [gzip.compress(ROW * 50, mtime=0)[:-9], gzip.compress(ROW, mtime=0)[:-4] + b"zzzz"]
)
def test_a_damaged_gzip_file_leaves_nothing_behind(
    tmp_path: Path, spool: Path, data: bytes
) -> None:
    """It is refused as a whole."""
    with pytest.raises(RagaugeError) as caught, opened(write(tmp_path, data)):
        pass
    assert caught.value.code == "bad-gzip"
    assert list(spool.iterdir()) == []


def test_the_copy_is_removed_when_the_reader_fails(tmp_path: Path, spool: Path) -> None:
    """Whatever happens while a file is open."""
    name = write(tmp_path, gzip.compress(ROW, mtime=0))

    def read() -> None:
        with opened(name) as found:
            paths.append(found.path)
            assert os.path.exists(found.path)
            raise ZeroDivisionError

    paths: list[str] = []
    with pytest.raises(ZeroDivisionError):
        read()
    assert not os.path.exists(paths[0])
    assert list(spool.iterdir()) == []


@pytest.mark.parametrize("data", [ROW + b"\n" + ROW + b"\n", b"", b"[" + ROW + b"]"])
def test_a_dash_is_standard_input(
    monkeypatch: pytest.MonkeyPatch, spool: Path, data: bytes
) -> None:
    """It is spooled, so that it can be read in ranges, and called <stdin>."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    with opened("-") as found:
        assert found.name == "<stdin>"
        assert Path(found.path).read_bytes() == data
    assert list(spool.iterdir()) == []


# --- files that are not there ---


def test_a_missing_file_is_told_with_near_names(tmp_path: Path) -> None:
    """Up to two, with the folder as it was written."""
    for name in ("trace-1.jsonl", "trace-2.jsonl", "trace-3.jsonl", "other"):
        write(tmp_path, ROW, name)
    with pytest.raises(RagaugeError) as caught, opened(tmp_path / "trace.jsonl"):
        pass
    hint = caught.value.problems[0].hint
    assert caught.value.code == "file-not-found"
    assert len(re.findall(r"`[^`]+`", hint)) == 2
    assert str(tmp_path / "trace-") in hint
    assert "other" not in hint


def test_a_path_object_is_as_good_as_text(tmp_path: Path) -> None:
    """The name is the path as text."""
    write(tmp_path, ROW)
    with opened(tmp_path / "rows.jsonl") as found:
        assert found.name == str(tmp_path / "rows.jsonl")


# --- writing ---


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_text_is_written_as_it_is(tmp_path: Path) -> None:
    """UTF-8, no translation of line ends, folders made on the way, permissions of a new file."""
    target = tmp_path / "deep" / "er" / "report.md"
    write_atomically(target, "→ one\ntwo\r\n")
    assert target.read_bytes() == "→ one\ntwo\r\n".encode()
    assert left(target.parent) == ["report.md"]
    plain = tmp_path / "plain"
    plain.touch()
    assert target.stat().st_mode == plain.stat().st_mode


def test_an_old_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """Nothing of a longer old text is left."""
    target = tmp_path / "report.md"
    write_atomically(target, "a long old text\n")
    write_atomically(str(target), "new\n")
    assert target.read_text("utf-8") == "new\n"
    assert left(tmp_path) == ["report.md"]


@pytest.mark.parametrize("failing", ["os.replace", "os.chmod"])
def test_a_failed_write_keeps_the_old_file_and_leaves_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    """Whole or not there: also when the disk refuses at the last step."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    target = tmp_path / "report.md"
    target.write_text("old\n", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(failing, refuse)
        with pytest.raises(RagaugeError) as caught:
            write_atomically(target, "new\n")
    assert caught.value.code == "file-unreadable"
    assert "No space left on device" in caught.value.problems[0].message
    assert target.read_text("utf-8") == "old\n"
    assert left(tmp_path) == ["report.md"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_write_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Not only errors of the system can stop a write."""

    def stop(*_: object) -> None:
        raise error

    target = tmp_path / "report.md"
    target.write_text("old\n", encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", stop)
        with pytest.raises(error):
            write_atomically(target, "new\n")
    assert target.read_text("utf-8") == "old\n"
    assert left(tmp_path) == ["report.md"]


def test_a_text_that_cannot_be_encoded_leaves_no_temporary_file(tmp_path: Path) -> None:
    """A file name that is not UTF-8 can put half a surrogate pair into a report."""
    target = tmp_path / "report.md"
    with pytest.raises((RagaugeError, UnicodeEncodeError)):
        write_atomically(target, "gold\udcff.jsonl\n")
    assert left(tmp_path) == []


def test_a_folder_cannot_be_written_over(tmp_path: Path) -> None:
    """The folder stays, and nothing is left beside it."""
    target = tmp_path / "report.md"
    target.mkdir()
    with pytest.raises(RagaugeError) as caught:
        write_atomically(target, "new\n")
    assert caught.value.code == "file-unreadable"
    assert left(tmp_path) == ["report.md"]
    assert left(target) == []


def test_the_default_range_is_used_where_none_is_given(tmp_path: Path) -> None:
    """A file below it is one range."""
    data = (b"x" * 99 + b"\n") * (ranges.RANGE_BYTES // 100 + 5)
    with opened(write(tmp_path, data)) as found:
        first, second = plan(found)
        assert first == Range(0, 0, first.end)
        assert ranges.RANGE_BYTES <= first.end < ranges.RANGE_BYTES + 100
        assert second.end == len(data)
