"""A store in a file: read where nothing may be written, and given back to the disk."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from ragauge.errors import RagaugeError
from ragauge.model.run import ResultFacts, ResultRow, RunRecord, Scoring
from ragauge.store.databases import sqlite
from tests.support.old_stores import make_store_v3
from tests.support.read_only import another_user, open_folder, read_only

RUN = RunRecord(
    run_id="one", suite="s", profile="p", created_at="2026", commit_hash=None, gold_hash="h",
    gold_key="g",
)  # fmt: skip
SCORING = Scoring(number=1, created_at="t", ragauge_version="1", aggregate="{}")
LAST = ".last"


def results(count: int) -> list[ResultRow]:
    facts = ResultFacts(0, "q", None, None, None, None, 0, "ok", None, None)
    return [ResultRow(facts._replace(ordinal=i), os.urandom(600)) for i in range(count)]


def store_run(file: Path, run_id: str = "one", count: int = 20) -> None:
    with closing(sqlite.open_store(f"sqlite:///{file}")) as store:
        store.begin(replace(RUN, run_id=run_id))
        store.add_results(run_id, results(count))
        store.finish(run_id, results=count, evidence=b"", scoring=SCORING, values=[])


def read_run(file: Path, run_id: str = "one") -> int:
    """The number of results that can be read of a run; the list of runs is read too."""
    with closing(sqlite.open_store(f"sqlite:///{file}", create=False)) as store:
        assert run_id in [run.run_id for run in store.runs()]
        return sum(1 for _ in store.results(run_id))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def file() -> Iterator[Path]:
    """A store with one run of 20 results, closed, where other users can reach it."""
    with open_folder() as folder:
        store_run(folder / "runs.db")
        yield folder / "runs.db"


def killed_writer(file: Path) -> None:
    """Leave behind what a killed writer would: a second run that is only in the log."""
    copies = [Path(f"{file}{end}") for end in ("", "-wal")]
    store = sqlite.open_store(f"sqlite:///{file}")
    assert isinstance(store, sqlite.SqliteStore)
    store._connection.execute("PRAGMA wal_autocheckpoint = 0")
    store.begin(replace(RUN, run_id="two"))
    store.add_results("two", results(5))
    for copy in copies:
        shutil.copy(copy, f"{copy}{LAST}")
    store.close()
    for copy in copies:
        os.replace(f"{copy}{LAST}", copy)


@pytest.mark.parametrize("files", [True, False])
def test_a_store_in_a_folder_without_the_right_to_write_is_read(file: Path, files: bool) -> None:
    """Also if the file itself may be written: SQLite would make files beside it."""
    content = file.read_bytes()
    with read_only(file.parent, files=files):
        assert read_run(file) == 20
        assert names(file.parent) == ["runs.db"]
    assert file.read_bytes() == content


def test_a_file_without_the_right_to_write_is_read_and_nothing_is_made_beside_it(
    file: Path,
) -> None:
    file.parent.chmod(0o777)
    file.chmod(0o444)
    with another_user():
        assert read_run(file) == 20
        with closing(sqlite.open_store(f"sqlite:///{file}", create=False)):
            assert names(file.parent) == ["runs.db"]


def test_what_a_killed_writer_left_in_the_log_is_read_too(file: Path) -> None:
    killed_writer(file)
    assert names(file.parent) == ["runs.db", "runs.db-wal"]
    contents = {path: path.read_bytes() for path in file.parent.iterdir()}
    with read_only(file.parent):
        assert read_run(file, "two") == 5
        assert read_run(file, "one") == 20
    assert {path: path.read_bytes() for path in file.parent.iterdir()} == contents


def test_a_log_that_cannot_be_copied_is_said(file: Path) -> None:
    """Reading without it would show a store as it was once."""
    killed_writer(file)
    Path(f"{file}-wal").chmod(0o000)
    with read_only(file.parent, files=False), pytest.raises(RagaugeError) as error:
        read_run(file)
    assert error.value.code == "store-unavailable"
    assert "beside it" in str(error.value)


def test_an_empty_log_is_no_log(file: Path) -> None:
    Path(f"{file}-wal").touch()
    with read_only(file.parent):
        assert read_run(file) == 20


def test_a_store_is_read_while_its_owner_writes(file: Path) -> None:
    """Both files of the owner are there: what is in the log is seen, and what comes later."""
    writer = sqlite.open_store(f"sqlite:///{file}")
    writer.begin(replace(RUN, run_id="two"))
    writer.add_results("two", results(5))
    with read_only(file.parent):
        reader = sqlite.open_store(f"sqlite:///{file}", create=False)
        assert sum(1 for _ in reader.results("two")) == 5
    writer.tag("seen", "two")
    assert [run.tags for run in reader.runs()] == [(), ("seen",)]
    reader.close()
    writer.close()


def test_a_file_that_is_written_to_while_it_is_read_is_not_trusted(file: Path) -> None:
    with read_only(file.parent):
        reader = sqlite.open_store(f"sqlite:///{file}", create=False)
        assert len(reader.runs()) == 1
    store_run(file, "two")
    with closing(reader), pytest.raises(RagaugeError, match="wrote to it") as error:
        list(reader.results("one"))
    assert error.value.code == "store-unavailable"


def test_writing_to_a_store_that_is_read_only_is_refused(file: Path) -> None:
    killed_writer(file)  # so that there is a copy, which must not be written to either
    with read_only(file.parent):
        with closing(sqlite.open_store(f"sqlite:///{file}", create=False)) as store:
            for write in (
                lambda: store.tag("t", "one"),
                lambda: store.delete("one"),
                store.compact,
            ):
                with pytest.raises(RagaugeError, match="is read-only") as error:
                    write()
                assert error.value.code == "store-unavailable"
        with pytest.raises(RagaugeError, match="is read-only") as error:
            sqlite.open_store(f"sqlite:///{file}")
        assert error.value.problems[0].hint == sqlite.RIGHTS


def test_an_older_store_that_is_read_only_says_what_to_do() -> None:
    with open_folder() as folder:
        file = folder / "old.db"
        make_store_v3(f"sqlite:///{file}")
        content = file.read_bytes()
        with read_only(folder), pytest.raises(RagaugeError, match="version 3") as error:
            read_run(file)
        assert error.value.code == "store-unavailable"
        assert "copy it" in error.value.problems[0].hint
        assert file.read_bytes() == content
        assert names(folder) == ["old.db"]


def test_a_file_of_someone_else_is_refused_where_it_cannot_be_written() -> None:
    with open_folder() as folder:
        for name, content in (("text.db", b"no database\n" * 100), ("empty.db", b"")):
            (folder / name).write_bytes(content)
        with read_only(folder):
            for name, code in (("text.db", "bad-store"), ("empty.db", "store-unavailable")):
                with pytest.raises(RagaugeError) as error:
                    sqlite.open_store(f"sqlite:///{folder / name}", create=False)
                assert error.value.code == code


# --- the space of deleted runs


def pragma(file: Path, name: str) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def test_the_space_of_a_deleted_run_is_used_by_the_next(file: Path) -> None:
    store_run(file, "large", 3000)
    size = file.stat().st_size
    for number in range(3):
        with closing(sqlite.open_store(f"sqlite:///{file}")) as store:
            store.delete("large")
            store.reuse_deleted()
        store_run(file, "large", 3000)
        assert file.stat().st_size <= size + 10 * sqlite.PAGE, number


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [4096, 16])
def test_a_store_is_compacted_in_place(
    file: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """The file is as small as before the run that was deleted, but for a few pages."""
    monkeypatch.setattr(sqlite, "PAGES_AT_ONCE", at_once)
    small = file.stat().st_size
    store_run(file, "large", 3000)
    large = file.stat().st_size
    assert large > 5 * small
    with closing(sqlite.open_store(f"sqlite:///{file}")) as store:
        store.delete("large")
        before, after = store.compact()
        assert file.stat().st_size == after  # at once, not when it is closed
    assert (before, file.stat().st_size) == (large, after)
    assert after <= small + 5 * sqlite.PAGE
    assert pragma(file, "freelist_count") == 0
    assert read_run(file) == 20


def test_an_older_file_is_compacted_too_and_better_the_next_time(file: Path) -> None:
    """A file that was made without room for it: once as a whole, from then on in place."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")
    assert pragma(file, "auto_vacuum") == 0
    store_run(file, "large", 3000)
    with closing(sqlite.open_store(f"sqlite:///{file}")) as store:
        store.delete("large")
        before, after = store.compact()
    assert after < before / 5
    assert pragma(file, "auto_vacuum") == sqlite.INCREMENTAL
    assert read_run(file) == 20


@pytest.mark.slow
def test_a_store_is_compacted_beside_a_reader(file: Path) -> None:
    """A stream that is half read sees its rows to the end."""
    store_run(file, "large", 3000)
    with closing(sqlite.open_store(f"sqlite:///{file}")) as store:
        store.delete("large")
        stream = store.results("one")
        next(stream)
        connection = store._connection  # type: ignore[attr-defined]
        connection.execute("PRAGMA busy_timeout = 20")
        before, after = store.compact()
        assert after <= before
        assert sum(1 for _ in stream) == 19


def test_a_file_with_a_damaged_text_is_no_store(file: Path) -> None:
    """A byte that was changed on the disk may be in the name of a table, or in a text."""
    content = file.read_bytes()
    for damaged in (
        content.replace(b"eval_query_results", b"eval_query_resul\x83s"),
        content.replace(b"TEXT", b"TE\x83T"),
    ):
        assert damaged != content
        file.write_bytes(damaged)
        with pytest.raises(RagaugeError) as caught:
            read_run(file)
        assert caught.value.code in ("bad-store", "store-unavailable")
