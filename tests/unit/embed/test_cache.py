"""The cache of vectors: what comes out is what went in, whatever happened to the file."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ragauge.embed.cache import IN_MEMORY, Cached, VectorCache, default_path, key_of
from ragauge.embed.measure import Measurer, open_measurer
from ragauge.errors import RagaugeError
from ragauge.model.embedder import Vectors
from tests.support.cases import cases
from tests.support.literal_embedder import Plane, plane_only

ONE = Cached(np.array([0.1, -2.5, 3e-30], np.float32), False)


@given(arrays(np.float32, 5, elements=st.floats(width=32, allow_nan=False)), st.booleans())
def test_a_vector_comes_back_bit_by_bit(vector: Vectors, truncated: bool) -> None:
    with VectorCache(IN_MEMORY) as cache:
        cache.add({b"k": Cached(vector, truncated)})
        found = cache.find([b"k", b"other"])
    assert list(found) == [b"k"]
    assert found[b"k"].vector.tobytes() == vector.tobytes()
    assert found[b"k"].truncated is truncated


def test_embedders_roles_and_texts_have_keys_of_their_own() -> None:
    keys = {
        key_of(embedder, role, text)
        for embedder in ("a", "ab")
        for role in ("query", "document")
        for text in ("x", "bx", "")
    }
    assert len(keys) == 12


def test_vectors_outlive_the_process(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "vectors.db"
    with VectorCache(path) as cache:
        cache.add({b"k": ONE})
    with VectorCache(path) as cache:
        assert cache.find([b"k"])[b"k"].vector.tobytes() == ONE.vector.tobytes()
        assert cache.notes == []


def test_the_default_lies_in_the_folder_for_caches(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_path() == tmp_path / "ragauge" / "vectors.db"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the rule: such a value is to be ignored
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_path() == tmp_path / "home" / ".cache" / "ragauge" / "vectors.db"


def test_a_damaged_row_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bit that was flipped shows in the checksum; the text is embedded again, and told."""
    plane = plane_only(monkeypatch)
    path = tmp_path / "vectors.db"
    with open_measurer("plane", cache=path) as measurer:
        assert measurer.distance("1 0", "0.6 0.8") == pytest.approx(0.4)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE vectors SET vector = zeroblob(8)")
    plane.asked.clear()
    with open_measurer("plane", cache=path) as measurer:
        assert measurer.distance("1 0", "0.6 0.8") == pytest.approx(0.4)
        assert measurer.notes() == ["2 vectors of the cache were damaged and made anew"]
    assert sorted(plane.asked) == [("0.6 0.8", "document"), ("1 0", "query")]
    plane.asked.clear()
    with open_measurer("plane", cache=path) as measurer:  # and now it is whole
        assert measurer.distance("1 0", "0.6 0.8") == pytest.approx(0.4)
        assert (measurer.notes(), plane.asked) == ([], [])


@pytest.mark.parametrize(
    "content", [b"no database at all, but some text " * 9, b"SQLite format 3\0"]
)
def test_beside_a_damaged_file_another_is_begun(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "vectors.db"
    path.write_bytes(content + bytes(2000))
    for _ in range(2):
        with VectorCache(path) as cache:
            cache.add({b"k": ONE})
            assert cache.find([b"k"])[b"k"].vector.tobytes() == ONE.vector.tobytes()
            assert cache.path == f"{path}.1"
            assert "is damaged" in cache.notes[0]
    assert path.read_bytes().startswith(content)


def test_after_many_damaged_files_nothing_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "vectors.2024"
    for number in range(10):
        name = f"{path}.{number}" if number else str(path)
        Path(name).write_bytes(b"no database at all " * 99)
    with VectorCache(path) as cache:
        cache.add({b"k": ONE})
        assert list(cache.find([b"k"])) == [b"k"]
        assert len(cache.notes) == 11
        assert "vectors are not kept" in cache.notes[-1]


def test_damage_that_shows_while_reading_is_survived(tmp_path: Path) -> None:
    """Pages in the middle of the file are overwritten; nothing wrong comes out."""
    path = tmp_path / "vectors.db"
    keys = [bytes([number]) * 16 for number in range(200)]
    made = {key: Cached(np.full(256, 1 + key[0], np.float32), False) for key in keys}
    with VectorCache(path) as cache:
        cache.add(made)
    data = bytearray(path.read_bytes())
    data[8192 : len(data) // 2] = b"\xee" * (len(data) // 2 - 8192)
    path.write_bytes(data)
    with VectorCache(path) as cache:
        for key, found in cache.find(keys).items():
            assert found.vector.tobytes() == made[key].vector.tobytes()
        assert cache.damaged or cache.notes
        cache.add(made)
        assert len(cache.find(keys)) == len(keys)


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "ragauge.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE eval_runs (run_id TEXT)")
    before = path.read_bytes()
    with pytest.raises(RagaugeError, match="a database of something else"):
        VectorCache(path)
    assert path.read_bytes() == before


def test_where_nothing_can_be_written_vectors_are_not_kept(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    with VectorCache(blocked / "vectors.db") as cache:
        cache.add({b"k": ONE})
        assert list(cache.find([b"k"])) == [b"k"]
        assert "vectors are not kept" in cache.notes[0]


_WRITER = """
import sys
import numpy as np
from ragauge.embed.cache import Cached, VectorCache
with VectorCache(sys.argv[1]) as cache:
    for number in range(40):
        key = number.to_bytes(16, "little")
        assert cache.notes == [], cache.notes
        cache.add({key: Cached(np.full(64, number, np.float32), False)})
        assert cache.find([key])[key].vector[0] == number
"""


@pytest.mark.slow
def test_several_processes_may_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "vectors.db"
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    said = [writer.communicate()[1] for writer in writers]
    assert said == [b""] * 4
    assert [writer.returncode for writer in writers] == [0] * 4
    with VectorCache(path) as cache:
        assert len(cache.find([number.to_bytes(16, "little") for number in range(40)])) == 40


def test_no_text_is_embedded_twice_and_batches_are_kept_as_they_are_made(tmp_path: Path) -> None:
    """A run that breaks off leaves its batches in the cache; the next one goes on from there."""
    path = tmp_path / "vectors.db"
    texts = [f"1 {number}" for number in range(300)]  # a batch is 256

    class Breaking(Plane):
        def embed(self, texts, role):  # type: ignore[no-untyped-def]
            if self.asked:
                raise KeyboardInterrupt
            return super().embed(texts, role)

    broken = Breaking()
    with VectorCache(path) as cache, pytest.raises(KeyboardInterrupt):
        Measurer(broken, cache).prepare([*texts, *texts], "document")
    assert len(broken.asked) == 256
    again = Plane()
    with VectorCache(path) as cache:
        measurer = Measurer(again, cache)
        measurer.prepare([*texts, *texts], "document")
        measurer.prepare(texts, "document")
        assert (measurer.made, measurer.found) == (44, 256)
    assert len(again.asked) == 44


@cases("text", ["", " ", "\n\t", None])
def test_empty_text_has_no_distance(text: str | None) -> None:
    plane = Plane()
    with VectorCache(IN_MEMORY) as cache:
        measurer = Measurer(plane, cache)
        assert measurer.distance(text, "1 0") is None
        assert measurer.distance("1 0", text) is None
        assert measurer.between("1 0", text) is None
    assert all(said == "1 0" for said, _ in plane.asked)
