"""Temporary files: without a name where that is possible, and gone at the end in any case."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragauge.files import temporary_file as module
from ragauge.files.temporary_file import temporary_file

HAS_PROC = Path("/proc/self/fd").exists()


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.skipif(not HAS_PROC, reason="needs /proc")
def test_a_temporary_file_has_no_name_in_its_folder(spool: Path) -> None:
    """So there is nothing that a killed process could leave."""
    with temporary_file() as (file, path):
        file.write(b"some bytes")
        file.flush()
        assert list(spool.iterdir()) == []
        assert os.fstat(file.fileno()).st_dev == spool.stat().st_dev  # it is in that folder
        with open(path, "rb") as again:
            assert again.read() == b"some bytes"
        assert file.tell() == 10  # reading it has its own place in the file
    assert not os.path.exists(path)


def test_another_process_can_read_and_write_it(spool: Path) -> None:
    """As workers do, which are given its path."""
    with temporary_file() as (file, path):
        file.write(b"from here")
        file.flush()
        code = (
            "import sys; p = sys.argv[1]; print(open(p).read()); open(p, 'w').write('from there')"
        )
        done = subprocess.run(
            [sys.executable, "-I", "-c", code, path], capture_output=True, text=True, check=True
        )
        assert done.stdout == "from here\n"
        assert Path(path).read_bytes() == b"from there"
    assert list(spool.iterdir()) == []


def test_without_proc_the_file_has_a_name_until_the_end(
    spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it was removed meanwhile, and if the reader fails."""
    monkeypatch.setattr(module, "_is_same", lambda *_: False)
    with temporary_file() as (file, path):
        file.write(b"x")
        file.flush()
        assert [entry.name for entry in spool.iterdir()] == [Path(path).name]
        assert Path(path).read_bytes() == b"x"
    assert list(spool.iterdir()) == []
    with temporary_file() as (_, path):
        os.unlink(path)
    with pytest.raises(ZeroDivisionError), temporary_file():
        raise ZeroDivisionError
    assert list(spool.iterdir()) == []
