"""Small files that unpack to 10 GB: little of them gets to the disk, and none of it stays."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.process import GOLD, environment, write

pytestmark = pytest.mark.slow
MIB = 1024 * 1024
LIMIT = 64 * MIB
PARTS, PART = 100, 100 * MIB  # 100 parts of 100 MiB, each packed for itself

# Whatever happens, the last line on stderr is how many bytes were written by system calls.
WATCHED = """
import sys
from pathlib import Path
from ragauge.cli.main import run
code = run(sys.argv[1:])
count = Path("/proc/self/io").read_text().split("wchar: ")[1].split()[0]
print(count, file=sys.stderr)
sys.exit(code)
"""


def zstd(data: bytes) -> bytes:
    return bytes(pytest.importorskip("zstandard").ZstdCompressor().compress(data))


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, 6, mtime=0)


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts written bytes in /proc")
@pytest.mark.parametrize("pack", [gzipped, zstd])
@pytest.mark.parametrize("text", [b"\0", b'{"qid": "A0001"}\n'], ids=["one line", "many lines"])
def test_a_bomb_writes_no_more_than_its_limit(tmp_path: Path, pack: object, text: bytes) -> None:
    """Without a line end it stops at 64 MiB by itself; with lines the limit is lowered to that."""
    assert callable(pack)
    bomb = pack(text * (PART // len(text))) * PARTS
    assert len(bomb) < 50 * MIB  # of 10 GB
    write(tmp_path / "gold.jsonl", GOLD)
    write(tmp_path / "trace.jsonl.gz", bomb)
    spool = tmp_path / "spool"
    spool.mkdir()
    limits = {"RAGAUGE_UNPACK_LIMIT": "64M", "RAGAUGE_UNPACK_RATIO": "1"} if text != b"\0" else {}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, "score", "gold.jsonl", "trace.jsonl.gz"],
        cwd=tmp_path,
        env=environment(TMPDIR=str(spool), **limits),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    *said, written = done.stderr.splitlines()
    assert done.returncode == 3, done.stderr
    code = "unpacks-too-large" if limits else "line-too-long"
    assert said[0].startswith(f"error[{code}]: "), done.stderr
    assert int(written) < LIMIT + 2 * MIB
    assert list(spool.iterdir()) == []
