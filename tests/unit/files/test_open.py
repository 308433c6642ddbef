"""Files that cannot be read as a whole: encodings, gzip, empty, missing, a folder."""

from __future__ import annotations

import codecs
import gzip
import os
import sys

import pytest

from ragauge.codes import CODES
from tests.support.cases import cases
from tests.support.command import GOLD, TRACES, Folder, lines_of
from tests.support.refusals import assert_refused

BOM = codecs.BOM_UTF8


@cases("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
@cases("where", ["gold", "trace"])
def test_other_encodings_are_refused(folder: Folder, encoding: str, where: str) -> None:
    """With a byte order mark and without; the hint says how to convert."""
    if where == "gold":
        outcome = folder.score(gold=lines_of(GOLD).decode().encode(encoding))
    else:
        outcome = folder.score(lines_of(TRACES).decode().encode(encoding))
    assert_refused(outcome, "bad-encoding", f"{where}.jsonl:1", hint="UTF-8")


PACKED = gzip.compress(lines_of(TRACES * 20), mtime=0)


@cases(
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
@cases("where", ["gold", "trace"])
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


@cases(
    "data",
    [b"", b"\n", b" \r\n\t\n\n", BOM, b"[]", b" [ \n ]\n", gzip.compress(b"", mtime=0)],
    ids=["no bytes", "newline", "blanks", "BOM", "empty array", "blank array", "gzip"],
)
@cases("where", ["gold", "trace", "both"])
@cases("profile", ["ship", "smoke", "all"])
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
