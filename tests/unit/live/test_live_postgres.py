"""Live traffic on PostgreSQL: two servers, lost connections, partitions."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ragauge.errors import RagaugeError
from ragauge.live.database import SteadyDatabase, open_database
from ragauge.live.delete import delete_traces
from ragauge.live.retention import RetentionPart
from ragauge.live.settings import LiveSettings, Retention, Sampling, WindowRule
from tests.support.postgres import own_schema, server_url
from tests.unit.live.live_traffic import GOLD, MINUTE, START, SpoolOfTests, traffic, worker

pytestmark = [pytest.mark.xdist_group("postgres"), pytest.mark.slow]
NAME = "ragauge-live-test"
SETTINGS = LiveSettings(sampling=Sampling(rate=1.0), window=WindowRule(samples=50))


@pytest.fixture
def store(pytestconfig: pytest.Config) -> Iterator[str]:
    with own_schema(server_url(pytestconfig)) as url:
        yield f"{url}&application_name={NAME}"


def totals(url: str) -> list[tuple[int, str]]:
    """The windows of all traffic: their samples and metrics."""
    with closing(open_database(url)) as database:
        rows = database.read(
            "SELECT samples, CAST(aggregate_json AS TEXT) FROM eval_live_windows "
            "WHERE build = '' AND index_hash = '' AND question_type = '' ORDER BY number"
        )
    return [(samples, json.dumps(json.loads(text)["metrics"])) for samples, text in rows]


def test_two_servers_that_lose_their_connections_store_each_trace_once(
    tmp_path: Path, store: str
) -> None:
    rows = traffic(120)
    spools = [SpoolOfTests(tmp_path / name) for name in ("one", "two")]
    for minute in range(6):
        for server, spool in enumerate(spools):
            half = rows[20 * minute + 10 * server :][:10]
            spool.put_rows(half, START + minute * MINUTE + server)
        spools[1].put_rows(rows[20 * minute : 20 * minute + 2], START + minute * MINUTE + 5)
    workers = [worker(spool, gold=GOLD, url=store, settings=SETTINGS) for spool in spools]
    killer = open_database(store)
    failures: list[str] = []

    def serve(place: int) -> None:
        for _ in range(40):
            try:
                workers[place].step(START + 7 * MINUTE)
            except RagaugeError as error:
                failures.append(error.code)

    threads = [threading.Thread(target=serve, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(15):
        killer.read(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE pid <> pg_backend_pid() AND application_name = '{NAME}'"
        )
        threading.Event().wait(0.05)
    for thread in threads:
        thread.join()
    for part in workers:
        with suppress(RagaugeError):  # the last death may show only now
            part.step(START + 7 * MINUTE)
        part.step(START + 7 * MINUTE)
    assert "store-unavailable" in failures
    assert set(failures) <= {"store-unavailable"}
    assert killer.read("SELECT count(*) FROM live_traces")[0][0] == 120
    assert killer.read("SELECT sum(traces) FROM live_counts WHERE outcome <> 'late'")[0][0] == 120
    assert [spool.reader.depth() for spool in spools] == [0, 0]
    # The same as one server without any trouble.
    alone = SpoolOfTests(tmp_path / "alone")
    for minute in range(6):
        for server in range(2):
            half = rows[20 * minute + 10 * server :][:10]
            alone.put_rows(half, START + minute * MINUTE + server)
    part = worker(alone, gold=GOLD, settings=SETTINGS)
    part.step(START + 7 * MINUTE)
    expected = totals(f"sqlite:///{alone.folder / 'live.db'}")
    minutes = killer.read("SELECT count(DISTINCT minute) FROM live_traces")[0][0]
    if minutes == 6:  # nothing came late, so nothing counts in another minute
        assert totals(store) == expected
    for spool in (*spools, alone):
        spool.close()
    for database in (killer, *(part.traffic.database for part in (*workers, part))):
        database.close()


def test_months_have_partitions_ahead_which_go_as_a_whole(store: str) -> None:
    database = SteadyDatabase(store)
    part = RetentionPart(database, Retention(windows=40))
    insert = (
        "INSERT INTO eval_live_minutes (tenant, app, minute, build, index_hash, question_type, "
        "samples, sample_rate, partials) VALUES ('', 'a', ?, '', '', '', 1, 1, ?)"
    )
    part.step(START)
    with database.transaction() as execute:
        execute(insert, (START // MINUTE, b""))
    names = "SELECT tableoid::regclass::text FROM eval_live_minutes"
    assert database.read(names)[0][0].endswith("eval_live_minutes_2026_08")
    part.step(START + 80 * 24 * 60 * MINUTE)
    assert database.read("SELECT count(*) FROM eval_live_minutes")[0][0] == 0
    tables = {
        row[0]
        for row in database.read(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
            "WHERE i.inhparent = 'eval_live_minutes'::regclass"
        )
    }
    assert tables >= {"eval_live_minutes_rest", "eval_live_minutes_2026_12"}
    assert "eval_live_minutes_2026_08" not in tables
    database.close()


def test_deletion_and_retention_speak_this_dialect_too(tmp_path: Path, store: str) -> None:
    spool = SpoolOfTests(tmp_path / "spool")
    part = worker(spool, url=store, settings=SETTINGS)
    spool.put_rows([{"trace_id": name, "question": "a?", "hits": []} for name in "xyz"], START)
    part.step(START + 1)
    deleted = delete_traces(part.traffic.database, spool.reader, trace_ids=["x"], now=START)
    assert deleted.traces == 1
    RetentionPart(part.traffic.database, Retention(bodies=1, traces=1)).step(
        START + 3 * 24 * 60 * MINUTE
    )
    assert part.traffic.database.read("SELECT count(*) FROM live_traces")[0][0] == 0
    part.traffic.database.close()
    spool.close()


def test_names_that_postgres_does_not_take_hold_up_nothing(tmp_path: Path, store: str) -> None:
    """Texts have no NUL there, and the parts of a key at most some 2,700 bytes."""
    draw = random.Random(1)
    spool = SpoolOfTests(tmp_path)
    names = ("app", "build", "index_hash", "type")
    long = {name: "".join(map(chr, draw.choices(range(0x20000, 0x2A000), k=300))) for name in names}
    nul = dict.fromkeys(names, "a\0b")
    texts = {"question": "q\0", "hits": ["a\0"], "answer": "x\0", "user_key": "u\0"}
    spool.put_rows([{**texts, **nul, "trace_id": "t\0"}, {**texts, **long}], START)
    part = worker(spool, url=store, settings=SETTINGS)
    with closing(part.traffic.database):
        part.step(START + MINUTE)
        part.step(START + 10 * MINUTE)
        rows = part.traffic.database.read("SELECT app, state FROM live_traces ORDER BY app")
        minutes = part.traffic.database.read("SELECT count(*) FROM eval_live_minutes")
    spool.close()
    # 119 characters of 4 bytes and an ellipsis of 3: 479 bytes.
    assert [tuple(row) for row in rows] == [
        ("a\ufffdb", "scored"),
        (long["app"][:119] + "…", "scored"),
    ]
    assert minutes == [(2,)]
    assert part.traffic.spool.depth() == 0
