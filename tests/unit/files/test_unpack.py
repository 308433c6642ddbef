"""How much of a packed file is unpacked: small files that stand for very much are refused."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ragauge import score
from ragauge.errors import Problem, RagaugeError
from ragauge.files import unpack
from ragauge.files.open import opened
from ragauge.files.ranges import MAX_LINE
from ragauge.files.unpack import CopyLimits, bounded
from tests.support.command import GOLD, TRACES, Folder, lines_of

MIB = 1024 * 1024
ROWS = b'{"qid": "A1", "topk": ["p1"]}\n' * 40_000  # 1.2 MB that pack to a few kilobytes


@pytest.fixture(autouse=True)
def spool(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The folder for temporary files; whatever was refused, nothing of it is left."""
    folder = tmp_path_factory.mktemp("spool")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def zstd(data: bytes) -> bytes:
    return bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(data))


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def refusal(path: Path | str) -> Problem:
    with pytest.raises(RagaugeError) as caught, opened(path):
        pass
    (problem,) = caught.value.problems
    assert problem.hint
    return problem


# --- the size, and how much it is of the packed file ---


@pytest.mark.parametrize("pack", [gzipped, zstd])
def test_a_file_that_unpacks_to_far_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Any
) -> None:
    """Both must hold: more than the limit, and more than so many times the packed size."""
    packed = pack(ROWS)
    (tmp_path / "t.jsonl").write_bytes(packed)
    ratio = len(ROWS) // len(packed)
    monkeypatch.setenv("RAGAUGE_UNPACK_LIMIT", "1M")
    monkeypatch.setenv("RAGAUGE_UNPACK_RATIO", str(ratio // 2))
    problem = refusal(tmp_path / "t.jsonl")
    assert problem.code == "unpacks-too-large"
    assert "RAGAUGE_UNPACK_LIMIT" in problem.hint
    monkeypatch.setenv("RAGAUGE_UNPACK_RATIO", str(ratio + 1))
    with opened(tmp_path / "t.jsonl") as source:  # large, but not for what it is
        assert source.size == len(ROWS)
    monkeypatch.setenv("RAGAUGE_UNPACK_RATIO", "2")
    monkeypatch.setenv("RAGAUGE_UNPACK_LIMIT", "2 MB")
    with opened(tmp_path / "t.jsonl") as source:  # much for what it is, but not large
        assert source.size == len(ROWS)


def test_a_packed_file_in_standard_input_is_measured_by_its_own_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is copied as it is first, which is no unpacking."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzipped(ROWS))))
    monkeypatch.setenv("RAGAUGE_UNPACK_LIMIT", "1K")
    monkeypatch.setenv("RAGAUGE_UNPACK_RATIO", "10")
    assert refusal("-").code == "unpacks-too-large"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ROWS)))
    with opened("-") as source:
        assert source.size == len(ROWS)


@pytest.mark.slow
def test_a_parquet_file_that_names_one_text_many_times_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text is written once in the file, and once a row when it is read."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    text = "x" * MIB
    table = pa.table({"qid": [f"A{n}" for n in range(64)], "answer": [text] * 64})
    pq.write_table(table, tmp_path / "t.parquet", dictionary_pagesize_limit=16 * MIB)
    monkeypatch.setenv("RAGAUGE_UNPACK_LIMIT", "8M")
    problem = refusal(tmp_path / "t.parquet")
    assert problem.code == "unpacks-too-large"


class Watched(NamedTuple):
    """Chunks that count how many of them were taken."""

    chunks: Iterator[bytes]
    taken: list[int]


def watched(chunk: bytes, count: int) -> Watched:
    taken: list[int] = []

    def chunks() -> Iterator[bytes]:
        for _ in range(count):
            taken.append(len(chunk))
            yield chunk

    return Watched(chunks(), taken)


def take(chunks: Iterator[bytes], folder: Path, limits: CopyLimits, packed: int | None) -> int:
    """How many bytes would have been written before the refusal."""
    sizes: list[int] = []
    copied = bounded(chunks, "t", packed=packed, folder=str(folder), limits=limits)
    with pytest.raises(RagaugeError):
        sizes.extend(map(len, copied))
    return sum(sizes)


def test_no_more_is_written_than_the_limit(spool: Path) -> None:
    """The chunk that would be too much is not written, and no further one is unpacked."""
    row = b"x" * 1023 + b"\n"
    source = watched(row * 64, 10_000)
    assert take(source.chunks, spool, CopyLimits(size=MIB, ratio=10), 1024) == MIB
    assert sum(source.taken) == MIB + 64 * 1024


# --- lines ---


@pytest.mark.parametrize("packed", [1, None], ids=["unpacked", "from a pipe"])
def test_it_stops_as_soon_as_no_line_ends(spool: Path, packed: int | None) -> None:
    """Long before any other limit; blanks are no line either."""
    for byte in (b"\0", b" ", b"x"):
        source = watched(byte * MIB, 10_000)
        assert take(source.chunks, spool, CopyLimits(), packed) == MAX_LINE
        assert len(source.taken) == MAX_LINE // MIB + 1


def test_the_line_without_an_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its number, like any other line that is too long."""
    monkeypatch.setattr(unpack, "MAX_LINE", 100_000)
    (tmp_path / "t.jsonl.gz").write_bytes(gzipped(b"{}\n{}\n" + b"x" * 200_000))
    problem = refusal(tmp_path / "t.jsonl.gz")
    assert problem.code == "line-too-long"
    assert str(problem.place) == f"{tmp_path / 't.jsonl.gz'}:3"


@pytest.mark.parametrize("begin", [b"[", b" \n [", b"\xef\xbb\xbf["])
def test_an_array_needs_no_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begin: bytes
) -> None:
    """A JSON array may be one line, however long; so may what is packed or is Parquet."""
    monkeypatch.setattr(unpack, "MAX_LINE", 1000)
    data = begin + b'{"qid": "A1"},' * 500 + b"{}]"
    (tmp_path / "t.json").write_bytes(gzipped(data))
    with opened(tmp_path / "t.json") as source:
        assert (source.layout, source.size) == ("array", len(data))


# --- the disk ---


def test_some_space_stays_free(tmp_path: Path, spool: Path) -> None:
    """A copy of more than 64 MiB goes no further than the reserve; a small one is always tried."""
    free = shutil.disk_usage(spool).free
    source = watched(b"x" * (MIB - 1) + b"\n", 1000)
    limits = CopyLimits(reserve=free + 1024 * MIB)
    assert 64 * MIB <= take(source.chunks, spool, limits, None) <= 80 * MIB
    (tmp_path / "t.jsonl.gz").write_bytes(gzipped(ROWS))
    with opened(tmp_path / "t.jsonl.gz") as one:
        assert one.size == len(ROWS)


def test_too_little_space_names_the_folder(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the machine that refuses, not the file: exit code 2."""
    monkeypatch.setattr(unpack, "_ALWAYS_TRIED", 0)
    monkeypatch.setattr(unpack, "_LOOK_EVERY", 0)
    monkeypatch.setenv("RAGAUGE_DISK_RESERVE", "9000T")
    outcome = folder.score(gzipped(lines_of(TRACES)), trace_name="trace.jsonl.gz")
    assert outcome.exit_code == 2
    (problem,) = outcome.problems
    assert problem.code == "file-unreadable"
    assert "less than 9.216e+06 GiB would be left in" in problem.message
    assert "TMPDIR" in problem.hint
    assert "RAGAUGE_DISK_RESERVE" in problem.hint


# --- settings ---


@pytest.mark.parametrize(
    ("text", "size"),
    [("500", 500), ("4K", 4096), ("3 mb", 3 * MIB), ("8GiB", 8 << 30), ("1T", 1 << 40)],
)
def test_limits_are_set_in_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str, size: int
) -> None:
    """Letters are powers of 1024, as in `df -h`."""
    monkeypatch.setenv("RAGAUGE_UNPACK_LIMIT", text)
    assert CopyLimits.from_environment() == CopyLimits(size=size)
    monkeypatch.setenv("RAGAUGE_UNPACK_LIMIT", "")
    assert CopyLimits.from_environment() == CopyLimits()
    assert CopyLimits() == CopyLimits(size=2 << 30, ratio=500, reserve=1 << 30)


@pytest.mark.parametrize("text", ["much", "-1", "1.5G", "9" * 40])
def test_a_limit_that_is_none_is_refused(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """With its name, before anything is unpacked."""
    monkeypatch.setenv("RAGAUGE_DISK_RESERVE", text)
    outcome = folder.score(gold=gzipped(lines_of(GOLD)), gold_name="gold.jsonl.gz")
    assert outcome.exit_code == 2
    assert "`RAGAUGE_DISK_RESERVE`" in outcome.problems[0].message


# --- workers ---


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gzip", "stdin"])
def test_workers_read_a_copy_that_has_no_name(
    tmp_path: Path, spool: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """They open it anew in ranges, and find what one process finds in the plain file."""
    rows = [{**row, "seed": seed} for seed in range(6000) for row in TRACES]
    (tmp_path / "gold.jsonl").write_bytes(lines_of(GOLD))
    (tmp_path / "t.jsonl").write_bytes(lines_of(rows))
    plain = score(tmp_path / "gold.jsonl", tmp_path / "t.jsonl", profile="all", workers=1)
    assert os.path.getsize(tmp_path / "t.jsonl") > 2 * MIB  # of ranges of 1 MiB
    (tmp_path / "t.jsonl").write_bytes(gzipped(lines_of(rows)))
    name: Path | str = tmp_path / "t.jsonl"
    if kind == "stdin":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines_of(rows))))
        name = "-"
    copied = score(tmp_path / "gold.jsonl", name, profile="all", workers=2)
    assert list(spool.iterdir()) == []
    assert copied.tally == plain.tally
    assert copied.metrics == plain.metrics
