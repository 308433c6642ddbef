"""What a store holds after a kill, a full disk, a race or damage: whole runs, and honest errors."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.model.run import Store
from ragauge.store.databases import migration_steps
from tests.e2e.process import TIMEOUT, environment
from tests.support.old_stores import make_store_v3, rows_of_v3
from tests.support.postgres import own_schema, server_url

BATCH = 2000
KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.xdist_group("postgres"))]

# Run as a process of its own, with a word that says what to do. It says `ready` and waits for a
# line, so that several begin at the same moment; the code of an error is its last word.
PROGRAM = f"""
import sys
from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.model.run import GoldRow, ResultFacts, ResultRow, RunRecord, Scoring, ValueColumn

todo, url, run_id, batches = *sys.argv[1:4], int(sys.argv[4])
kind = registry.stores()[url.partition(":")[0]]

def say(word):
    print(word, flush=True)

def batch(number):
    facts = ResultFacts(0, "q", None, None, None, 1, 0, "ok", None, None)
    return [
        ResultRow(facts._replace(ordinal=i), f"{{run_id}}/{{i}}/".encode() + b"x" * 600)
        for i in range(number * {BATCH}, (number + 1) * {BATCH})
    ]

def work():
    store = kind.open(url)
    say("opened")
    if todo == "open":
        return
    if todo == "full":
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (8_000_000, 8_000_000))
    store.begin(RunRecord(
        run_id=run_id, suite="s", profile="p", created_at=run_id, commit_hash=None,
        gold_hash="h", gold_key="g", chunks="c",
    ))
    store.add_gold("g", [GoldRow(i, f"q{{i}}", None, "h", b"x" * 100) for i in range(500)])
    store.add_chunks("c", [bytes([i]) * 100 for i in range(200)])
    for number in range(batches):
        store.add_results(run_id, batch(number))
        say(number)
    scoring = Scoring(number=1, created_at="t", ragauge_version="1", aggregate='{{"m":1}}')
    values = [ValueColumn("m", 1, run_id.encode())]
    store.finish(
        run_id, results=batches * {BATCH}, evidence=b"e", scoring=scoring, values=values
    )
    store.close()

say("ready")
sys.stdin.readline()
try:
    work()
except RagaugeError as error:
    say(error.code)
    sys.exit(error.exit_code)
say("done")
"""


class Process:
    """One process that runs PROGRAM."""

    def __init__(self, todo: str, url: str, run_id: str = "run", batches: int = 3) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, todo, url, run_id, str(batches)],
            env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.hears() == "ready"

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def hears(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ends_with(self) -> str:
        """Wait for its end; the last word that it said."""
        said, errors = self._process.communicate(timeout=TIMEOUT)
        assert "Traceback" not in errors, errors
        return said.split()[-1]

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.communicate(timeout=TIMEOUT)
        assert self._process.returncode == -signal.SIGKILL


def together(processes: list[Process]) -> list[str]:
    """Let processes go at the same moment; their last words."""
    for process in processes:
        process.go()
    return [process.ends_with() for process in processes]


def write(url: str, run_id: str, *, batches: int = 3) -> None:
    assert together([Process("write", url, run_id, batches)]) == ["done"]


def opened(url: str) -> Store:
    return registry.stores()[url.partition(":")[0]].open(url, create=False)


def check_whole(url: str, run_id: str, *, batches: int = 3) -> None:
    """The run is complete, and every row, value and item of it is there and is its own."""
    with closing(opened(url)) as store:
        run = store.run(run_id)
        assert run is not None
        assert (run.status, run.results, run.evidence) == ("complete", batches * BATCH, b"e")
        rows = list(store.results(run_id))
        assert [row.facts.ordinal for row in rows] == list(range(batches * BATCH))
        assert all(
            row.payload.startswith(f"{run_id}/{ordinal}/".encode())
            for ordinal, row in enumerate(rows)
        )
        assert [value.payload for value in store.values(run_id, 1)] == [run_id.encode()]
        assert [row.ordinal for row in store.gold("g")] == list(range(500))
        assert [block[0] for block in store.chunks("c")] == list(range(200))


def check_sound(url: str) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as raw:
            assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert raw.execute("PRAGMA foreign_key_check").fetchall() == []


def refused(url: str) -> str:
    """The code with which opening or reading is refused."""

    def read() -> None:
        with closing(opened(url)) as store:
            for run in store.runs():
                list(store.results(run.run_id))

    with pytest.raises(RagaugeError) as error:
        read()
    assert error.value.problems[0].hint
    return error.value.code


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'runs.db'}"
        return
    with own_schema(server_url(request.config)) as own:
        yield own


@pytest.mark.parametrize("acknowledged", [0, 2, 5])
def test_a_killed_writer_leaves_its_run_incomplete_and_all_others_whole(
    url: str, acknowledged: int
) -> None:
    """No batch is there by half, and none that was acknowledged is lost."""
    write(url, "2025")
    writer = Process("write", url, "2026", batches=1000)
    writer.go()
    while writer.hears() != str(acknowledged):
        pass
    writer.kill()
    check_sound(url)
    with closing(opened(url)) as store:
        run = store.run("2026")
        assert run is not None
        assert run.status == "incomplete"
        assert run.aggregate == "{}"
        assert store.scorings("2026") == []
        stored = [facts.ordinal for facts in store.facts("2026")]
    assert stored == list(range(len(stored)))
    assert len(stored) % BATCH == 0
    assert len(stored) >= (acknowledged + 1) * BATCH
    check_whole(url, "2025")
    write(url, "2027")
    check_whole(url, "2027")
    with closing(opened(url)) as store:
        store.delete("2026")
        assert [run.run_id for run in store.runs()] == ["2025", "2027"]
    check_sound(url)


def test_two_writers_at_once_both_store_their_runs(url: str) -> None:
    """Into a place where nothing was before: both make the tables, and add the same gold set."""
    processes = [Process("write", url, name, batches=6) for name in ("a", "b")]
    assert together(processes) == ["done", "done"]
    check_sound(url)
    for name in ("a", "b"):
        check_whole(url, name, batches=6)


def test_one_of_many_that_take_the_same_id_gets_it(url: str) -> None:
    said = together([Process("write", url, "same") for _ in range(4)])
    assert sorted(said) == ["done", "run-exists", "run-exists", "run-exists"]
    check_whole(url, "same")


def test_an_old_store_that_many_open_at_once_is_migrated_once(url: str, tmp_path: Path) -> None:
    from ragauge.store.databases import postgres, sqlite

    write(url, "2025")
    (sqlite if url.startswith("sqlite") else postgres).migrate_to(url, 1)
    assert together([Process("open", url) for _ in range(4)]) == ["done"] * 4
    with closing(opened(url)) as store:
        assert [run.run_id for run in store.runs()] == ["2025"]
        assert sum(1 for _ in store.facts("2025")) == 3 * BATCH
    kept = sorted(path.name for path in tmp_path.iterdir())
    if url.startswith("sqlite"):
        newest = migration_steps.newest("sqlite")
        assert kept == ["runs.db", "runs.db.v1.bak", f"runs.db.v{newest}.bak"]


MIGRATION = """
import sys, time
from ragauge.store import runs
from ragauge.store.databases import data_migrations

calls = []

def slow(text):
    calls.append(text)
    if len(calls) == 3:
        print("moving", flush=True)
        time.sleep(600)
    return split(text)

split = data_migrations.split_slices
data_migrations.split_slices = slow
runs.open_store(sys.argv[1])
"""


def test_a_migration_that_is_killed_leaves_the_old_store_usable(url: str) -> None:
    """Killed among the rows that it moves: nothing has moved, and the next one does it all."""
    make_store_v3(url)
    before = rows_of_v3(url)
    process = subprocess.Popen(
        [sys.executable, "-c", MIGRATION, url], env=environment(), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"moving\n"
    process.kill()
    process.communicate(timeout=TIMEOUT)
    assert rows_of_v3(url) == before
    check_sound(url)
    with closing(opened(url)) as store:
        assert [run.run_id for run in store.runs()] == ["monday", "tuesday"]
        assert all(scoring.slices for scoring in store.scorings("monday"))


# SQLite alone


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with one run, closed."""
    path = tmp_path / "runs.db"
    write(f"sqlite:///{path}", "2025")
    return path


OPENERS = """
import os, sys, time
from ragauge.store.databases import sqlite

failed = 0
for number in range(40):
    url = f"sqlite:///{sys.argv[1]}/{number}.db"
    start = time.time() + 0.02
    children = []
    for _ in range(6):
        child = os.fork()
        if not child:
            while time.time() < start:
                pass
            try:
                sqlite.open_store(url).close()
            except BaseException as error:
                print(error, flush=True)
                os._exit(1)
            os._exit(0)
        children.append(child)
    failed += sum(os.waitpid(child, 0)[1] != 0 for child in children)
sys.exit(failed)
"""


@pytest.mark.slow
def test_a_new_file_can_be_opened_by_many_at_the_same_moment(tmp_path: Path) -> None:
    """A file whose tables are just being made is never taken for a file of someone else."""
    done = subprocess.run(
        [sys.executable, "-c", OPENERS, tmp_path],
        capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(list(tmp_path.glob("*.db"))) == 40  # the last of two to close may leave its log


def test_a_full_disk_is_said_and_harms_no_other_run(file: Path) -> None:
    url = f"sqlite:///{file}"
    assert together([Process("full", url, "2026", batches=1000)]) == ["store-unavailable"]
    check_sound(url)
    check_whole(url, "2025")
    with closing(opened(url)) as store:
        run = store.run("2026")
        assert run is not None
        assert run.status == "incomplete"
        assert sum(1 for _ in store.facts("2026")) % BATCH == 0
    write(url, "2027")  # there is room again
    check_whole(url, "2027")


def test_a_disk_that_is_full_while_migrating_leaves_the_old_form(file: Path) -> None:
    """No half of a copy stays behind, and nothing is migrated that has no copy."""
    from ragauge.store.databases import sqlite

    url = f"sqlite:///{file}"
    sqlite.migrate_to(url, 1)
    file.with_name(f"runs.db.v{migration_steps.newest('sqlite')}.bak").unlink()
    content = file.read_bytes()
    script = (
        "import resource, sys\n"
        "from ragauge.errors import *; from ragauge.store.databases import sqlite\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)\n"
        "try: sqlite.open_store(sys.argv[1])\n"
        "except RagaugeError as error: sys.exit(error.code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, url, str(len(content) // 2)],
        capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    assert (done.stderr.strip(), done.returncode) == ("store-unavailable", 1)
    assert [path.name for path in file.parent.iterdir()] == ["runs.db"]
    assert file.read_bytes() == content
    with closing(opened(url)) as store:  # there is room again
        assert sum(1 for _ in store.facts("2025")) == 3 * BATCH


def damage_nothing_but_text(content: bytes) -> bytes:
    return b'{"qid": "q1"}\n' * (len(content) // 14)


def damage_half(content: bytes) -> bytes:
    return content[: len(content) // 2]


def damage_stub(content: bytes) -> bytes:
    return content[:100]


def damage_inside(content: bytes) -> bytes:
    """Pages in the middle are overwritten, the first ones are as they were."""
    third = len(content) // 3 // 8192 * 8192
    return content[:third] + b"\xa5" * third + content[2 * third :]


@pytest.mark.parametrize(
    "damage", [damage_nothing_but_text, damage_half, damage_stub, damage_inside]
)
def test_a_damaged_file_is_a_bad_store_and_stays_as_it_is(
    file: Path, damage: Callable[[bytes], bytes]
) -> None:
    content = damage(file.read_bytes())
    file.write_bytes(content)
    assert refused(f"sqlite:///{file}") == "bad-store"
    assert file.read_bytes() == content


def test_a_newer_file_is_refused_byte_for_byte(file: Path) -> None:
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("PRAGMA user_version = 99")
    content = file.read_bytes()
    assert refused(f"sqlite:///{file}") == "newer-store"
    assert together([Process("write", f"sqlite:///{file}", "2026")]) == ["newer-store"]
    assert file.read_bytes() == content
    assert [path.name for path in file.parent.iterdir()] == ["runs.db"]


def test_an_older_file_is_migrated_and_its_copy_can_be_restored(tmp_path: Path) -> None:
    """The old file is made by hand from the first migration alone."""
    file = tmp_path / "old.db"
    with closing(sqlite3.connect(file)) as raw:
        for statement in migration_steps.migrations("sqlite")[0].up:
            assert isinstance(statement, str)
            raw.execute(statement)
        raw.execute(
            "INSERT INTO eval_runs VALUES ('r', 's', 'p', '2025', NULL, '{}', '{\"m\":1}', 'h',"
            " 'g', NULL, 'complete', 1, 2, x'00')"
        )
        raw.executemany(
            "INSERT INTO eval_query_results VALUES ('r', ?, 'q', NULL, NULL, NULL, 1, 0, 'ok',"
            " 0.5, NULL, ?)",
            [(0, b"one"), (1, b"two")],
        )
        raw.execute("INSERT INTO eval_tags VALUES ('baseline', 'r')")
        raw.execute("PRAGMA user_version = 1")
        raw.commit()
        before = list(raw.iterdump())
    assert together([Process("write", f"sqlite:///{file}", "2026")]) == ["done"]
    with closing(opened(f"sqlite:///{file}")) as store:
        assert [(run.run_id, run.tags) for run in store.runs()] == [("r", ("baseline",)),
                                                                    ("2026", ())]  # fmt: skip
        assert [row.payload for row in store.results("r")] == [b"one", b"two"]
    copy = tmp_path / "old.db.v1.bak"
    with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro&immutable=1", uri=True)) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (1,)
        assert list(raw.iterdump()) == before
    os.replace(copy, file)  # restored
    with closing(opened(f"sqlite:///{file}")) as store:
        assert [row.payload for row in store.results("r")] == [b"one", b"two"]


def test_a_lock_that_is_held_for_too_long_is_said(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragauge.store.databases import sqlite

    monkeypatch.setattr(sqlite, "PATIENCE", 0.05)
    with closing(opened(f"sqlite:///{file}")) as store, closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(RagaugeError, match="locked") as error:
            store.tag("baseline", "2025")
        assert error.value.code == "store-unavailable"
        assert [run.tags for run in store.runs()] == [()]  # reading goes on
        other.rollback()
        store.tag("baseline", "2025")


# PostgreSQL alone


@pytest.mark.xdist_group("postgres")
def test_a_lock_or_a_lost_connection_is_said_by_the_server(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    from ragauge.store.databases import postgres

    with own_schema(server_url(request.config)) as url:
        write(url, "2025")
        monkeypatch.setattr(postgres, "PATIENCE", "50ms")
        with closing(opened(url)) as store, psycopg.connect(url) as other:
            other.execute("SELECT * FROM eval_runs FOR UPDATE")
            with pytest.raises(RagaugeError, match="lock timeout") as error:
                store.delete("2025")
            assert error.value.code == "store-unavailable"
            other.rollback()
            assert isinstance(store, postgres.PostgresStore)
            backend = store._connection.info.backend_pid
            other.execute("SELECT pg_terminate_backend(%s)", (backend,))
            with pytest.raises(RagaugeError, match="terminat") as error:
                store.tag("baseline", "2025")
            assert error.value.code == "store-unavailable"
        check_whole(url, "2025")
