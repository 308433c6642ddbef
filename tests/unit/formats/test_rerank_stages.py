"""Looking for the lists of a reranker in a file, without holding the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ragauge.files.ranges import Source
from ragauge.formats import rerank_stages
from ragauge.formats.rerank_stages import mentions_field


def source(path: Path, start: int = 0) -> Source:
    return Source("x", str(path), start, path.stat().st_size, "lines", ())


@pytest.mark.parametrize("place", range(14))
def test_a_name_is_found_across_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    monkeypatch.setattr(rerank_stages, "_BLOCK", 7)
    path = tmp_path / "rows"
    path.write_bytes(b"." * place + b'"abc"' + b"." * 5)
    assert mentions_field(source(path), "abc")
    assert mentions_field(source(path, place), "abc")
    assert not mentions_field(source(path, place + 1), "abc")
    assert not mentions_field(source(path), "ab")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the highest memory is asked of POSIX")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A mapped file counts as memory once it was looked through: 430 MB of a million traces."""
    path = tmp_path / "rows"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    code = f"""
import resource
from ragauge.files.ranges import Source
from ragauge.formats.rerank_stages import mentions_field
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert not mentions_field(Source("x", {str(path)!r}, 0, 200_000_000, "lines", ()), "abc")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    grown = int(done.stdout) * (1 if sys.platform == "darwin" else 1024)
    assert grown < 20_000_000
