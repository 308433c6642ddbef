"""Every kind of store keeps the same promises; each test runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ragauge import registry
from ragauge.errors import RagaugeError
from ragauge.files import redaction
from ragauge.model.run import (
    GoldRow,
    ResultFacts,
    ResultRow,
    RunRecord,
    Scoring,
    Store,
    ValueColumn,
)
from ragauge.store.databases import migration_steps, sqlite
from ragauge.store.databases.queries import FACTS, TABLES
from tests.support.cases import cases
from tests.support.postgres import own_schema, server_url

RUN = RunRecord(
    run_id="2026-a", suite="main", profile="ship", created_at="2026-11-15T10:00:00Z",
    commit_hash="3f2a", branch="feature/é", author="A. Nyone", dirty=True, gold_hash="hash",
    gold_key="gold-1", chunks="chunks-1",
    snapshot='{"b": 1,  "a": {"é": 2.50}}',
)  # fmt: skip
GOLD = [
    GoldRow(0, "q1", None, "h1", b"\x00one"),
    GoldRow(1, "q2", 3, "h2", b""),
    GoldRow(2, "κ", -(2**63), "h3", bytes(range(256))),
]
CHUNKS = [b"first", b"", b"\xff" * 5000]
RESULTS = [
    ResultRow(ResultFacts(0, "q1", None, None, None, 1, 7, "ok", 0.1, 12.5), b"\x78\x9c"),
    ResultRow(ResultFacts(1, "q1", 2, "s-1", 4, None, 0, "errored", None, None), b""),
    ResultRow(
        ResultFacts(2, "naïve 🙂", 2**63 - 1, "", 0, 10, 1, "unknown", 1e-300, 3), b"x" * 9000
    ),
]
SCORING = Scoring(
    number=1, created_at="2026-11-15T10:01:00Z", ragauge_version="0.2.0",
    aggregate='{"m": 0.50}', questions=b"\x01\x02", slices=b"\x78\x00\xff",
)  # fmt: skip
VALUES = [ValueColumn("recall@5", 1, b"\x00\x01"), ValueColumn("mrr", 2, b"")]
SERVER = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]  # starting it takes seconds
KINDS = ["sqlite", pytest.param("postgres", marks=SERVER)]


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store that nothing was stored in."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'runs.db'}"
        return
    with own_schema(server_url(request.config)) as own:
        yield own


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(opened(url)) as opened_store:
        yield opened_store


def opened(url: str, **options: bool) -> Store:
    return registry.stores()[url.partition(":")[0]].open(url, **options)


def migrate_to(url: str, version: int) -> None:
    from ragauge.store.databases import postgres, sqlite

    (sqlite if url.startswith("sqlite") else postgres).migrate_to(url, version)


def sql(url: str, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements behind the store's back; the rows of the last one."""
    rows: list[tuple[Any, ...]] = []
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as raw:
            for statement in statements:
                rows = raw.execute(statement).fetchall()
        return rows
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
            rows = cursor.fetchall() if cursor.description else []
    return rows


def set_version(url: str, version: int) -> None:
    is_sqlite = url.startswith("sqlite")
    sql(url, f"PRAGMA user_version = {version}" if is_sqlite else
        f"UPDATE eval_schema SET version = {version}")  # fmt: skip


def code_of(error: pytest.ExceptionInfo[RagaugeError]) -> str:
    assert error.value.problems[0].hint
    return error.value.code


def fill(store: Store, run: RunRecord = RUN) -> None:
    """Store a whole run."""
    store.begin(run)
    store.add_gold(run.gold_key, GOLD)
    if run.chunks is not None:
        store.add_chunks(run.chunks, CHUNKS)
    store.add_results(run.run_id, RESULTS)
    store.finish(run.run_id, results=3, evidence=b"\x00ev", scoring=SCORING, values=VALUES)


def test_what_was_stored_comes_back_as_it_was(store: Store) -> None:
    fill(store)
    stored = replace(
        RUN, status="complete", results=3, evidence=b"\x00ev", aggregate=SCORING.aggregate
    )
    assert store.run("2026-a") == stored
    assert store.runs() == [replace(stored, evidence=b"")]
    assert list(store.gold("gold-1")) == GOLD
    assert list(store.chunks("chunks-1")) == CHUNKS
    assert list(store.results("2026-a")) == RESULTS
    assert list(store.facts("2026-a")) == [row.facts for row in RESULTS]
    assert store.scorings("2026-a") == [SCORING]
    assert store.values("2026-a", 1) == VALUES


def test_outcomes_come_by_ordinal(store: Store) -> None:
    fill(store)
    assert list(store.outcomes("2026-a")) == [(0, "ok"), (1, "errored"), (2, "unknown")]
    assert list(store.outcomes("nobody")) == []


def test_results_are_put_in_the_place_of_others(store: Store) -> None:
    store.begin(RUN)
    store.add_results("2026-a", RESULTS)
    fresh = [
        ResultRow(RESULTS[1].facts._replace(outcome="ok"), b"new", "[1]"),
        ResultRow(RESULTS[2].facts._replace(ordinal=9), b"added"),
    ]
    store.replace_results("2026-a", fresh)
    store.replace_results("2026-a", [])
    found = list(store.results("2026-a", values=True))
    assert found == [RESULTS[0], fresh[0], RESULTS[2], fresh[1]]
    with pytest.raises(RagaugeError) as error:
        store.replace_results("nobody", fresh)
    assert code_of(error) == "unknown-run"


def test_what_was_measured_can_be_set_later(store: Store) -> None:
    fill(store)
    fill(store, replace(RUN, run_id="other"))
    store.set_values("2026-a", [(2, "[0.5,null]"), (0, "[1.0,2.0]"), (77, "[3]")])
    store.set_values("2026-a", [(0, None)])
    values = [row.values for row in store.results("2026-a", values=True)]
    assert values == [None, None, "[0.5,null]"]
    assert [row.values for row in store.results("other", values=True)] == [None] * 3


def test_a_run_that_is_opened_again_has_its_results_and_no_scores(store: Store) -> None:
    fill(store)
    fill(store, replace(RUN, run_id="other"))
    store.tag("kept", "2026-a")
    store.reopen("2026-a")
    assert store.run("2026-a") == replace(RUN, tags=("kept",), results=3)
    assert store.scorings("2026-a") == []
    assert store.values("2026-a", 1) == []
    assert list(store.results("2026-a")) == RESULTS
    assert store.scorings("other") == [SCORING]
    store.finish("2026-a", results=3, evidence=b"e", scoring=SCORING, values=VALUES)
    again = store.run("2026-a")
    assert again is not None
    assert (again.status, again.evidence) == ("complete", b"e")
    with pytest.raises(RagaugeError):
        store.reopen("nobody")


def test_results_that_are_asked_again_go_when_a_run_is_opened_again(store: Store) -> None:
    fill(store)
    fill(store, replace(RUN, run_id="other"))
    store.reopen("2026-a", dropping=[2, 0, 77])
    assert list(store.results("2026-a")) == [RESULTS[1]]
    assert list(store.results("other")) == RESULTS
    again = store.run("2026-a")
    assert again is not None
    assert (again.status, again.results) == ("incomplete", 1)
    store.reopen("2026-a", dropping=[1])  # it is incomplete already
    assert list(store.results("2026-a")) == []


def test_a_run_that_is_not_complete_has_the_results_that_are_stored(store: Store) -> None:
    fill(store)
    half = replace(RUN, run_id="half", created_at="2026-11-15T11:00:00Z")
    store.begin(half)
    assert [each.results for each in store.runs()] == [3, 0]
    store.add_results("half", RESULTS[:2])
    assert [each.results for each in store.runs(suite="main")] == [3, 2]
    found = store.run("half")
    assert found is not None
    assert (found.results, found.status) == (2, "incomplete")


def test_it_is_still_there_when_the_store_is_opened_again(url: str) -> None:
    with closing(opened(url)) as store:
        fill(store)
    with closing(opened(url, create=False)) as store:
        assert list(store.results("2026-a")) == RESULTS


def test_results_come_by_ordinal_whatever_the_order_of_the_batches(store: Store) -> None:
    store.begin(RUN)
    for row in reversed(RESULTS):
        store.add_results("2026-a", [row])
    store.add_results("2026-a", [])
    assert [facts.ordinal for facts in store.facts("2026-a")] == [0, 1, 2]
    assert [row.payload for row in store.results("2026-a")] == [row.payload for row in RESULTS]


def test_what_was_measured_stands_with_each_result_and_is_found_by_metric(
    store: Store, url: str
) -> None:
    rows = [
        replace_values(RESULTS[0], "[0.5,null]"),
        replace_values(RESULTS[1], None),
        replace_values(RESULTS[2], "[1.0,0.25]"),
    ]
    store.begin(RUN)
    store.add_results("2026-a", rows)
    store.finish("2026-a", results=3, evidence=b"", scoring=SCORING, values=VALUES)
    assert list(store.results("2026-a", values=True)) == rows
    assert [row.values for row in store.results("2026-a")] == [None, None, None]
    asked = "SELECT ordinal, metric, version, value FROM eval_query_values ORDER BY 1, 2"
    assert sql(url, asked) == [
        (0, "mrr", 2, None), (0, "recall@5", 1, 0.5), (2, "mrr", 2, 0.25), (2, "recall@5", 1, 1.0),
    ]  # fmt: skip


def replace_values(row: ResultRow, values: str | None) -> ResultRow:
    return row._replace(values=values)


def test_a_run_begins_incomplete_whatever_it_says_of_itself(store: Store) -> None:
    store.begin(replace(RUN, status="complete"))
    found = store.run("2026-a")
    assert found is not None
    assert found.status == "incomplete"


def test_a_taken_id_is_refused_and_the_run_stays(store: Store) -> None:
    fill(store)
    with pytest.raises(RagaugeError) as error:
        store.begin(replace(RUN, suite="other"))
    assert code_of(error) == "run-exists"
    assert [run.suite for run in store.runs()] == ["main"]


def test_gold_and_chunks_that_are_there_stay_as_they_are(store: Store) -> None:
    def never() -> Iterator[Any]:
        raise AssertionError("nothing has to be read")
        yield

    fill(store)
    store.add_gold("gold-1", never())
    store.add_chunks("chunks-1", never())
    assert list(store.gold("gold-1")) == GOLD


def test_gold_that_fails_half_way_leaves_nothing(store: Store) -> None:
    """The error comes through as it is, and the store is usable after it."""

    def broken() -> Iterator[GoldRow]:
        yield GOLD[0]
        raise OSError("the gold file vanished")

    with pytest.raises(OSError, match="vanished"):
        store.add_gold("gold-1", broken())
    assert list(store.gold("gold-1")) == []
    store.add_gold("gold-1", GOLD)
    assert list(store.gold("gold-1")) == GOLD


@pytest.mark.parametrize("part", ["gold", "chunks"])
def test_a_run_begins_with_all_that_it_asks_or_not_at_all(store: Store, part: str) -> None:
    """A run without its gold set would be resumed as one that has nothing to ask."""

    def stopped() -> Iterator[Any]:
        yield (GOLD if part == "gold" else CHUNKS)[0]
        raise KeyboardInterrupt

    rows: dict[str, Any] = {"gold": GOLD, "chunks": CHUNKS, part: stopped()}
    with pytest.raises(KeyboardInterrupt):
        store.begin(RUN, **rows)
    assert store.runs() == []
    assert (list(store.gold("gold-1")), list(store.chunks("chunks-1"))) == ([], [])
    store.begin(RUN, gold=GOLD, chunks=CHUNKS)
    assert (list(store.gold("gold-1")), list(store.chunks("chunks-1"))) == (GOLD, CHUNKS)


def test_a_batch_is_stored_whole_or_not_at_all(store: Store) -> None:
    store.begin(RUN)
    store.add_results("2026-a", RESULTS[1:2])
    with pytest.raises(RagaugeError) as error:
        store.add_results("2026-a", [RESULTS[0], RESULTS[1]])  # the second ordinal is taken
    assert code_of(error) == "store-unavailable"
    assert [facts.ordinal for facts in store.facts("2026-a")] == [1]


def test_a_run_is_held_by_one_at_a_time(store: Store, url: str) -> None:
    """Whatever its name is; other runs are held beside it, and an error lets go."""
    store.begin(RUN)
    with closing(opened(url)) as other:
        for run_id in ("2026-a", "a/b\\..\n'κ"):
            with store.hold(run_id):
                with pytest.raises(RagaugeError) as error, other.hold(run_id):
                    pass
                assert code_of(error) == "run-held"
                with other.hold("2026-b"):
                    store.add_results("2026-a", [])
            with pytest.raises(ZeroDivisionError), other.hold(run_id):
                raise ZeroDivisionError
            with store.hold(run_id):
                pass


def test_what_fails_in_finish_leaves_the_run_incomplete(store: Store) -> None:
    def broken() -> Iterator[ValueColumn]:
        yield VALUES[0]
        raise ValueError("no second column")

    store.begin(RUN)
    with pytest.raises(ValueError, match="second column"):
        store.finish("2026-a", results=3, evidence=b"x", scoring=SCORING, values=broken())
    assert store.run("2026-a") == RUN
    assert store.scorings("2026-a") == []


def test_a_further_scoring_stands_beside_the_first(store: Store) -> None:
    fill(store)
    second = replace(SCORING, number=2, aggregate='{"m": 0.75}', ragauge_version="0.3.0")
    store.add_scoring("2026-a", second, VALUES[::-1])
    assert store.scorings("2026-a") == [SCORING, second]
    assert store.values("2026-a", 1) == VALUES
    assert store.values("2026-a", 2) == VALUES[::-1]
    run = store.run("2026-a")
    assert run is not None
    assert run.aggregate == '{"m": 0.75}'


def test_one_number_is_one_scoring(store: Store) -> None:
    """Two processes that score at the same time do not mix their values."""
    fill(store)
    with pytest.raises(RagaugeError) as error:
        store.add_scoring("2026-a", replace(SCORING, aggregate='{"m": 0}'), [])
    assert code_of(error) == "store-unavailable"
    run = store.run("2026-a")
    assert run is not None
    assert run.aggregate == SCORING.aggregate
    assert store.values("2026-a", 1) == VALUES


def test_values_of_named_metrics_only(store: Store) -> None:
    fill(store)
    assert store.values("2026-a", 1, ["mrr", "unheard of"]) == VALUES[1:]
    assert store.values("2026-a", 1, ["mrr", "recall@5"]) == VALUES
    assert store.values("2026-a", 1, []) == []
    assert store.values("2026-a", 9) == []


def test_runs_are_sorted_by_time_and_then_by_code_point(store: Store) -> None:
    """Not as a language would sort them: `Z` comes before `a`, and `é` after `z`."""
    late = "2026-12-01"
    named = [("z", late), ("é", late), ("Z", late), ("a", late), ("later", "2027"), ("b", "2025")]
    for run_id, created_at in named:
        suite = "other" if run_id in "Zz" else "main"
        store.begin(replace(RUN, run_id=run_id, created_at=created_at, suite=suite))
    assert [run.run_id for run in store.runs()] == ["b", "Z", "a", "z", "é", "later"]
    assert [run.run_id for run in store.runs(suite="other")] == ["Z", "z"]
    assert store.runs(suite="unheard of") == []


def test_a_tag_names_one_run_and_moves(store: Store) -> None:
    store.begin(RUN)
    store.begin(replace(RUN, run_id="2026-b"))
    for tag in ("z", "baseline", "B"):
        store.tag(tag, "2026-a")
    assert [run.tags for run in store.runs()] == [("B", "baseline", "z"), ()]
    store.tag("baseline", "2026-b")
    assert [run.tags for run in store.runs()] == [("B", "z"), ("baseline",)]
    store.untag("baseline")
    store.untag("unheard of")
    run = store.run("2026-b")
    assert run is not None
    assert run.tags == ()


def test_a_deleted_run_takes_with_it_what_no_other_needs(store: Store, url: str) -> None:
    fill(store)
    fill(store, replace(RUN, run_id="2026-b"))
    store.begin(replace(RUN, run_id="2026-c", gold_key="gold-2", chunks=None))
    store.add_gold("gold-2", GOLD[:1])
    store.tag("old", "2026-a")
    store.delete("2026-a")
    assert [run.run_id for run in store.runs()] == ["2026-b", "2026-c"]
    assert list(store.gold("gold-1")) == GOLD
    assert list(store.results("2026-b")) == RESULTS
    assert store.values("2026-b", 1) == VALUES
    store.delete("2026-b")
    assert list(store.gold("gold-2")) == GOLD[:1]
    store.delete("2026-c")
    for table in ("eval_runs", "eval_query_results", "eval_gold_items", "eval_chunks",
                  "eval_tags", "eval_scorings", "eval_metric_values"):  # fmt: skip
        assert sql(url, f"SELECT count(*) FROM {table}") == [(0,)], table


def test_an_unknown_run_is_said_to_be_unknown(store: Store) -> None:
    assert store.run("x") is None
    for read in (store.results, store.facts, store.scorings, store.gold, store.chunks):
        assert list(read("x")) == []
    calls: tuple[Callable[[], None], ...] = (
        lambda: store.add_results("x", RESULTS),
        lambda: store.finish("x", results=0, evidence=b"", scoring=SCORING, values=[]),
        lambda: store.add_scoring("x", SCORING, []),
        lambda: store.tag("t", "x"),
        lambda: store.delete("x"),
    )
    for call in calls:
        with pytest.raises(RagaugeError, match="`x`") as error:
            call()
        assert code_of(error) == "unknown-run"


def many(start: int, end: int) -> list[ResultRow]:
    facts = ResultFacts(0, "q", None, None, None, None, 0, "ok", None, None)
    return [ResultRow(facts._replace(ordinal=i), b"x" * 600) for i in range(start, end)]


def test_a_half_read_stream_sees_one_state_and_stands_in_nobodys_way(
    store: Store, url: str
) -> None:
    """The same store and another one write, read and delete meanwhile."""
    store.begin(RUN)
    store.add_results("2026-a", many(0, 5000))
    stream = store.results("2026-a")
    facts = store.facts("2026-a")
    seen = [next(stream).facts.ordinal for _ in range(10)]
    next(facts)
    with closing(opened(url)) as other:
        other.begin(replace(RUN, run_id="2026-b"))
        other.add_results("2026-a", many(5000, 6000))
        store.add_results("2026-b", RESULTS)  # after a write that the stream does not see
        assert sum(1 for _ in other.results("2026-a")) == 6000
        store.add_gold("copied", other.gold("gold-1"))
        other.delete("2026-a")
    assert store.run("2026-a") is None
    seen += [row.facts.ordinal for row in stream]
    assert seen == list(range(5000))
    del facts  # one that is never read to its end


def test_a_store_that_must_be_there_is_not_made(url: str, tmp_path: Path) -> None:
    with pytest.raises(RagaugeError, match="nothing has been stored") as error:
        opened(url, create=False)
    assert code_of(error) == "store-unavailable"
    assert "ragauge score ... --store" in error.value.problems[0].hint
    assert list(tmp_path.iterdir()) == []


def version_of(url: str) -> int:
    is_sqlite = url.startswith("sqlite")
    ((found,),) = sql(url, "PRAGMA user_version" if is_sqlite else "SELECT * FROM eval_schema")
    return int(found)


OLD_RUN = (
    "run_id, suite, profile, created_at, commit_hash, CAST(config_snapshot_json AS TEXT),"
    " CAST(aggregate_json AS TEXT), gold_hash, gold_key, chunks, status, schema_version, results,"
    " evidence"
)


def dump(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the tables of version 1."""
    tables = ("eval_runs", "eval_query_results", "eval_gold_items", "eval_chunks", "eval_tags")
    columns = {"eval_query_results": f"run_id, {FACTS}, result_json", "eval_runs": OLD_RUN}
    return {
        table: sorted(sql(url, f"SELECT {columns.get(table, '*')} FROM {table}"), key=repr)
        for table in tables
    }


def test_rows_survive_the_way_back_and_the_way_up_again(url: str) -> None:
    with closing(opened(url)) as store:
        fill(store)
        store.tag("kept", "2026-a")
        run = store.run("2026-a")
    assert run is not None
    assert version_of(url) == migration_steps.newest(url.partition(":")[0].removesuffix("ql")) == 6
    before = dump(url)
    migrate_to(url, 1)
    assert version_of(url) == 1
    assert dump(url) == before
    with pytest.raises(Exception, match="eval_scorings"):
        sql(url, "SELECT * FROM eval_scorings")
    with closing(opened(url, create=False)) as store:  # opening leads it up
        assert version_of(url) == 6
        assert store.run("2026-a") == replace(run, branch=None, author=None, dirty=None)
        assert list(store.results("2026-a")) == RESULTS
        assert store.scorings("2026-a") == []
        store.add_scoring("2026-a", SCORING, VALUES)
        assert store.values("2026-a", 1) == VALUES
    assert dump(url) == before


def test_a_migration_that_fails_half_way_changes_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(opened(url)) as store:
        fill(store)
    migrate_to(url, 1)
    before = dump(url)

    def broken(*asked: Any) -> list[Any]:
        return [*steps(*asked), "DROP TABLE eval_tags", "DROP TABLE unheard_of"]

    steps = migration_steps.steps
    monkeypatch.setattr(migration_steps, "steps", broken)
    with pytest.raises(RagaugeError, match="unheard_of"):
        opened(url)
    assert version_of(url) == 1
    assert dump(url) == before
    monkeypatch.undo()
    with closing(opened(url)) as store:
        assert store.scorings("2026-a") == []


def test_the_way_back_to_nothing(url: str) -> None:
    """Version 0 is a place where nothing was ever stored."""
    with closing(opened(url)) as store:
        fill(store)
    migrate_to(url, 0)
    with pytest.raises(RagaugeError, match="nothing has been stored"):
        opened(url, create=False)
    with closing(opened(url)) as store:
        assert store.runs() == []


@pytest.mark.parametrize("version", [-1, 7])
def test_a_version_that_is_not_known_cannot_be_gone_to(url: str, version: int) -> None:
    opened(url).close()
    with pytest.raises(RagaugeError, match=f"no version {version}"):
        migrate_to(url, version)
    assert version_of(url) == 6


def test_a_newer_store_is_refused_and_left_alone(url: str) -> None:
    with closing(opened(url)) as store:
        fill(store)
    set_version(url, 7)
    before = dump(url)
    for create in (True, False):
        with pytest.raises(RagaugeError, match="version 7") as error:
            opened(url, create=create)
        assert code_of(error) == "newer-store"
    with pytest.raises(RagaugeError) as error:
        migrate_to(url, 1)
    assert code_of(error) == "newer-store"
    assert version_of(url) == 7
    assert dump(url) == before


def test_tables_of_someone_else_are_refused_and_left_alone(url: str) -> None:
    sql(url, "CREATE TABLE eval_runs (id INTEGER)", "INSERT INTO eval_runs VALUES (7)")
    with pytest.raises(RagaugeError) as error:
        opened(url)
    assert code_of(error) == "bad-store"
    assert sql(url, "SELECT * FROM eval_runs") == [(7,)]


def test_a_store_without_one_of_its_tables_is_damaged(url: str) -> None:
    opened(url).close()
    sql(url, "DROP VIEW eval_query_values", "DROP TABLE eval_query_results")
    with closing(opened(url)) as store:
        store.begin(RUN)
        with pytest.raises(RagaugeError, match="eval_query_results") as error:
            list(store.results("2026-a"))
        assert code_of(error) == "bad-store"


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_migrations_are_numbered_and_each_can_be_undone(database: str) -> None:
    found = migration_steps.migrations(database)
    assert [(each.number, each.name) for each in found] == [
        (1, "runs"), (2, "scorings"), (3, "values"), (4, "decisions"), (5, "live"),
        (6, "live_hours"),
    ]  # fmt: skip
    for each in found:
        made = {things(step, "CREATE") for step in each.up} - {None}
        assert made
        assert made == {things(step, "DROP") for step in each.down} - {None}


def things(step: object, verb: str) -> tuple[str, str] | None:
    """What a statement makes or drops: `("TABLE", "eval_runs")`, or a column."""
    if not isinstance(step, str):
        return None  # it moves rows
    words = step.replace(",", " ").replace("(", " ").split()
    if words[0] == verb and words[1] in ("TABLE", "VIEW", "FUNCTION"):
        return words[1], words[2]
    if words[0] == "ALTER" and words[4] == "COLUMN" and words[3] == verb.replace("CREATE", "ADD"):
        return words[2], words[5]
    return None


def test_statements_are_cut_at_the_end_of_lines() -> None:
    text = "-- one; two\nCREATE a (\n  x TEXT DEFAULT ';' -- no\n);  \n\nDROP b;"
    assert migration_steps.statements(text) == (
        "CREATE a (\n  x TEXT DEFAULT ';' -- no\n)",
        "DROP b",
    )


@cases(
    ("url", "shown"),
    [
        ("sqlite:///runs.db", "sqlite:///runs.db"),
        ("postgresql://h:5432/db", "postgresql://h:5432/db"),
        ("postgresql://u@h/db", "postgresql://u@h/db"),
        ("postgresql://u:secret@h:1/db", "postgresql://u@h:1/db"),
        ("postgresql://u:sec@ret@h/db", "postgresql://u@h/db"),
        ("postgresql://u:sec/ret@h/db", "postgresql://u@h/db"),
        ("postgresql://u:sec?ret@h/db", "postgresql://u@h/db"),
        ("postgresql://u:@h/db", "postgresql://u@h/db"),
        ("postgresql://h/db?password=secret", "postgresql://h/db"),
        ("postgresql://h/db?a=1&password=secret&b=2", "postgresql://h/db?a=1&b=2"),
        ("postgresql://h/db?p%61ssword=secret&b=2", "postgresql://h/db?b=2"),
        ("postgresql://h/db?sslpassword=secret", "postgresql://h/db"),
        ("postgresql://[::1]:5432/db?user=a@b", "postgresql://[::1]:5432/db?user=a@b"),
        ("postgresql://h1:1,h2:2/db?user=a@b", "postgresql://h1:1,h2:2/db?user=a@b"),
        ("postgresql:u:secret@h", "postgresql:..."),
    ],
)
def test_no_message_shows_a_password(url: str, shown: str) -> None:
    assert redaction.without_password(url) == shown


def columns_of(url: str, table: str) -> list[str]:
    if url.startswith("sqlite"):
        return [row[1] for row in sql(url, f"PRAGMA table_info({table})")]
    asked = "SELECT attname FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND attrelid ="
    return [row[0] for row in sql(url, f"{asked} '{table}'::regclass ORDER BY attnum")]


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_both_databases_have_the_same_tables(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    with own_schema(server_url(request.config)) as postgres:
        file = f"sqlite:///{tmp_path / 'runs.db'}"
        for url in (postgres, file):
            opened(url).close()
        for table in TABLES:
            assert columns_of(file, table) == columns_of(postgres, table), table
        listed = sql(file, "SELECT name FROM sqlite_master WHERE type = 'table'")
        assert {name for (name,) in listed} == set(TABLES)


DECISION = (
    "INSERT INTO eval_decisions (created_at, app, live, shadow, begins_at, ends_at, decision,"
    " ragauge_version, config_hash, record_json, record_hash, evidence) VALUES"
    " ('2026', 'chat', 'a', 'b', {window}, '{decision}', '1', 'c', '{{}}', 'h', {evidence})"
)


def decide(url: str, decision: str = "hold", window: str | None = None) -> None:
    times = "NULL, NULL" if window is None else f"'{window}', '{window}.5'"
    evidence = "x''" if url.startswith("sqlite") else "''"
    sql(url, DECISION.format(decision=decision, window=times, evidence=evidence))


def test_decisions_are_added_and_never_changed(store: Store, url: str) -> None:
    """They outlive the runs that they are about; a window is decided once."""
    fill(store)
    decide(url, "promote")
    decide(url, "roll-back")
    decide(url, "hold", "2026-01")
    with pytest.raises(Exception, match=r"UNIQUE|unique"):
        decide(url, "promote", "2026-01")
    with pytest.raises(Exception, match=r"CHECK|check"):
        decide(url, "perhaps")
    for change in ("UPDATE eval_decisions SET decision = 'hold'", "DELETE FROM eval_decisions"):
        with pytest.raises(Exception, match="never"):
            sql(url, change)
    store.delete("2026-a")
    found = sql(url, "SELECT decision, tenant FROM eval_decisions ORDER BY number")
    assert found == [("promote", ""), ("roll-back", ""), ("hold", "")]


def test_live_traffic_has_a_row_for_each_minute_and_each_window(store: Store, url: str) -> None:
    assert store.runs() == []
    some = "x'01'" if url.startswith("sqlite") else "'\\x01'"
    minute = (
        "INSERT INTO eval_live_minutes VALUES ('', 'chat', {}, 'b1', 'i1', 'fact', 3, 0.01, {})"
    )
    window = (
        "INSERT INTO eval_live_windows (app, build, index_hash, question_type, begins_at, ends_at,"
        " state, samples, sample_rate, ragauge_version, aggregate_json) VALUES"
        " ('chat', 'b1', 'i1', '', '{}', '2027', '{}', 200, 0.01, '1', '{{}}')"
    )
    for number in (29_000_000, 29_000_001):
        sql(url, minute.format(number, some))
    with pytest.raises(Exception, match=r"UNIQUE|unique"):
        sql(url, minute.format(29_000_000, some))
    sql(url, window.format("2026-01", "closed"), window.format("2026-02", "too-little-traffic"))
    for begins, state in (("2026-01", "closed"), ("2026-03", "green")):
        with pytest.raises(Exception, match=r"(?i)unique|check"):
            sql(url, window.format(begins, state))
    assert sql(url, "SELECT sum(samples) FROM eval_live_minutes") == [(6,)]
    assert [row[0] for row in sql(url, "SELECT begins_at FROM eval_live_windows")] == [
        "2026-01", "2026-02",
    ]  # fmt: skip


def test_a_run_says_what_is_kept_of_it(store: Store, url: str) -> None:
    fill(store)
    assert sql(url, "SELECT kept FROM eval_runs") == [("traces",)]
    sql(url, "UPDATE eval_runs SET kept = 'hits'")
    with pytest.raises(Exception, match=r"(?i)check"):
        sql(url, "UPDATE eval_runs SET kept = 'nothing'")


def test_the_space_of_deleted_runs_is_reused_and_returned(store: Store, url: str) -> None:
    def large(run_id: str) -> None:
        store.begin(replace(RUN, run_id=run_id))
        store.add_results(run_id, many(0, 2000))
        store.finish(run_id, results=2000, evidence=b"", scoring=SCORING, values=VALUES)

    fill(store)
    large("first")
    sizes = []
    for number in range(4):
        store.delete("first" if number == 0 else f"run-{number - 1}")
        store.reuse_deleted()
        large(f"run-{number}")
        sizes.append(store_size(store, url))
    assert max(sizes) < 1.3 * sizes[0]  # without it each run adds its own size
    store.delete("run-3")
    before, after = store.compact()
    assert after < before / 2
    assert list(store.results("2026-a")) == RESULTS


def store_size(store: Store, url: str) -> int:
    if url.startswith("sqlite"):
        pages, size = sql(url, "PRAGMA page_count")[0][0], sql(url, "PRAGMA page_size")[0][0]
        return int(pages * size)
    assert store.runs()
    return int(sql(url, "SELECT pg_total_relation_size('eval_query_results')")[0][0])


# SQLite alone


@cases(
    "url",
    ["sqlite:", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite://runs.db",
     "sqlite:runs.db", "sqlite:///runs.db?mode=ro", "sqlite:///a\0b"],
)  # fmt: skip
def test_a_url_without_a_file_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RagaugeError) as error:
        opened(url)
    assert code_of(error) == "bad-store-url"
    assert list(tmp_path.iterdir()) == []


def test_paths_are_relative_or_absolute_and_taken_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store stays where it was opened, also if the current folder changes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    with closing(opened("sqlite:///sub/a b%20#é.db")) as store:
        monkeypatch.chdir(tmp_path / "sub")
        store.begin(RUN)
        store.add_results(RUN.run_id, RESULTS)
        assert list(store.results(RUN.run_id)) == RESULTS
    assert [path.name for path in (tmp_path / "sub").iterdir()] == ["a b%20#é.db"]
    with closing(opened(f"sqlite:///{tmp_path}/sub/a b%20#é.db", create=False)) as store:
        assert store.name == f"sqlite:///{tmp_path}/sub/a b%20#é.db"
        assert len(store.runs()) == 1


def test_a_missing_folder_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(RagaugeError, match="no folder") as error:
        opened(f"sqlite:///{tmp_path}/missing/runs.db")
    assert code_of(error) == "store-unavailable"
    with pytest.raises(RagaugeError) as error:
        opened(f"sqlite:///{tmp_path}")
    assert code_of(error) == "store-unavailable"


@cases("version", [0, 1, 2, 7])
def test_a_database_of_another_program_is_refused(tmp_path: Path, version: int) -> None:
    url = f"sqlite:///{tmp_path}/other.db"
    sql(url, "CREATE TABLE birds (name TEXT)", f"PRAGMA user_version = {version}")
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(RagaugeError, match="not those of ragauge") as error:
        opened(url)
    assert code_of(error) == "bad-store"
    assert (tmp_path / "other.db").read_bytes() == before


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "runs.db").touch()
    with closing(opened(f"sqlite:///{tmp_path}/runs.db")) as store:
        fill(store)
        assert sql(store.name, "PRAGMA journal_mode") == [("wal",)]


def test_a_closed_store_is_one_file(tmp_path: Path) -> None:
    with closing(opened(f"sqlite:///{tmp_path}/runs.db")) as store:
        fill(store)
    assert [path.name for path in tmp_path.iterdir()] == ["runs.db"]


def test_copies_of_older_forms_are_never_overwritten(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    with closing(opened(url)) as store:
        fill(store)
    (tmp_path / "runs.db.v6.bak").write_text("mine")
    for _ in range(2):
        migrate_to(url, 1)
        opened(url).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "runs.db", "runs.db.v1.2.bak", "runs.db.v1.bak", "runs.db.v6.2.bak", "runs.db.v6.3.bak",
        "runs.db.v6.bak",
    ]  # fmt: skip
    assert (tmp_path / "runs.db.v6.bak").read_text() == "mine"
    with closing(opened(f"sqlite:///{tmp_path}/runs.db.v6.2.bak")) as store:
        assert store.scorings("2026-a") == [SCORING]


# PostgreSQL alone


@pytest.mark.slow
def test_psycopg_is_imported_for_a_postgres_url_only(tmp_path: Path) -> None:
    script = (
        "import sys; from ragauge import registry; "
        f"registry.stores()['sqlite'].open('sqlite:///{tmp_path}/a.db').close(); "
        "sys.exit('psycopg' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_missing_driver_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(RagaugeError) as error:
        opened(f"{scheme}://h/db")
    assert code_of(error) == "missing-extra"
    assert error.value.problems[0].hint == "pip install 'ragauge[postgres]'"


@cases(
    ("url", "code"),
    [
        ("postgresql://u:geheim@/db?host=/nowhere", "store-unavailable"),
        ("postgresql://u@/db?host=/nowhere&password=geheim", "store-unavailable"),
        ("postgresql://u:geheim/x@h/db", "bad-store-url"),
        ("postgresql://u:geheim?x@%2Fnowhere/db", "store-unavailable"),
        ("postgresql://u:x@geheim@h/db", "bad-store-url"),
        ("postgresql://u:1/geheim@h/db", "bad-store-url"),
        ("postgresql://h/db?geheim", "bad-store-url"),
        ("postgresql://u:geheim%zz@h/db", "bad-store-url"),
    ],
)
def test_a_server_that_does_not_answer_is_said_without_the_password(url: str, code: str) -> None:
    with pytest.raises(RagaugeError) as error:
        opened(url)
    assert code_of(error) == code
    assert "geheim" not in str(error.value).replace("db?geheim", "")


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_what_the_server_refuses_is_said_in_its_words(request: pytest.FixtureRequest) -> None:
    """Text with a NUL, rights that are missing, a database that is not there."""
    server = server_url(request.config)
    with own_schema(server) as url, closing(opened(url)) as store:
        with pytest.raises(RagaugeError, match="NUL") as error:
            store.begin(replace(RUN, suite="a\0b"))
        assert code_of(error) == "store-unavailable"
        assert store.runs() == []
        option = "options=-cdefault_transaction_read_only%3Don%20"
        with (
            closing(opened(url.replace("options=", option))) as read_only,
            pytest.raises(RagaugeError, match="is read-only") as error,
        ):
            read_only.begin(RUN)
        assert code_of(error) == "store-unavailable"
    if "/postgres?" in server:
        with pytest.raises(RagaugeError, match="does not exist") as error:
            opened(server.replace("/postgres?", "/nowhere?"))
        assert code_of(error) == "store-unavailable"


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_tables_of_others_may_stand_beside_ours(request: pytest.FixtureRequest) -> None:
    """A database is shared, unlike a file."""
    with own_schema(server_url(request.config)) as url:
        sql(url, "CREATE TABLE birds (name TEXT)")
        with closing(opened(url)) as store:
            fill(store)
        migrate_to(url, 0)
        assert sql(url, "SELECT * FROM birds") == []


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_a_user_who_may_only_read_reads(request: pytest.FixtureRequest) -> None:
    """And is told whom to ask where the tables are of an older version."""
    with own_schema(server_url(request.config)) as url:
        with closing(opened(url)) as store:
            fill(store)
        schema = sql(url, "SELECT current_schema()")[0][0]
        reader = f"reader_{schema}"
        sql(
            url,
            f"CREATE ROLE {reader} LOGIN",
            f"GRANT USAGE ON SCHEMA {schema} TO {reader}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {reader}",
        )
        try:
            theirs = url.replace("ragauge@", f"{reader}@")
            with closing(opened(theirs, create=False)) as store:
                assert [run.run_id for run in store.runs()] == ["2026-a"]
                assert list(store.results("2026-a")) == RESULTS
                with pytest.raises(RagaugeError, match="permission denied") as error:
                    store.tag("t", "2026-a")
                assert code_of(error) == "store-unavailable"
            migrate_to(url, 3)
            with pytest.raises(RagaugeError, match="version 3") as error:
                opened(theirs, create=False)
            assert "owner" in error.value.problems[0].hint
            option = "options=-cdefault_transaction_read_only%3Don%20"
            with pytest.raises(RagaugeError, match="version 3"):
                opened(url.replace("options=", option), create=False)
            assert version_of(url) == 3
        finally:
            sql(url, f"DROP OWNED BY {reader}", f"DROP ROLE {reader}")


@pytest.mark.slow
@pytest.mark.xdist_group("postgres")
def test_minutes_of_live_traffic_can_be_kept_by_month(request: pytest.FixtureRequest) -> None:
    """A partition that is made ahead takes its rows, and can be dropped with them."""
    with own_schema(server_url(request.config)) as url:
        opened(url).close()
        row = "INSERT INTO eval_live_minutes VALUES ('', 'a', {}, 'b', 'i', '', 1, 1.0, '')"
        sql(
            url,
            "CREATE TABLE eval_live_minutes_1 PARTITION OF eval_live_minutes"
            " FOR VALUES FROM (100) TO (200)",
            row.format(150),
            row.format(250),
        )
        assert sql(url, "SELECT minute FROM eval_live_minutes_1") == [(150,)]
        sql(url, "DROP TABLE eval_live_minutes_1")
        assert sql(url, "SELECT minute FROM eval_live_minutes") == [(250,)]


def test_views_and_triggers_of_a_store_call_nothing_that_is_not_harmless(tmp_path: Path) -> None:
    """A store may come from anybody, and SQLite trusts what a file defines unless it is told."""
    opened = sqlite.open_store(f"sqlite:///{tmp_path / 'runs.db'}")
    assert isinstance(opened, sqlite.SqliteStore)
    assert opened._connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
    opened.close()
