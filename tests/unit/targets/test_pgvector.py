"""The adapter of pgvector, against a real server with the extension `vector`."""

from __future__ import annotations

import shutil
import tempfile
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ragauge.model.target import TargetError, TargetQuestion
from ragauge.spans import Span
from tests.support.corpora import made
from tests.support.postgres import own_schema, server_url
from tests.support.target_calls import (
    LEXICAL,
    RED,
    asked,
    assert_finds_last,
    names,
    opened,
    refusal,
    stored,
)

psycopg = pytest.importorskip("psycopg", reason="the extra `pgvector` is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]

LACKING = "the PostgreSQL here has no extension `vector`: install pgvector or the package pgserver"


def _has_vectors(url: str) -> bool:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        ).fetchone()
        return found is not None


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that knows vectors: the one of the other tests, or the packaged one."""
    url = server_url(request.config)
    if _has_vectors(url):
        yield url
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pgserver.postgres_server import get_server
    except ImportError:
        pytest.skip(LACKING)
    folder = tempfile.mkdtemp(prefix="ragauge-pg-")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            packaged = get_server(folder)
        yield str(packaged.get_uri())
        packaged.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return made(tmp_path)


@pytest.fixture
def database(server: str, corpus: Path) -> Iterator[str]:
    """A schema with the chunks in a table, as columns and as a JSON object."""
    with own_schema(server) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA pg_catalog")
            connection.execute(
                "CREATE TABLE chunks (chunk_id text, source text, section text, type text, "
                'start int, "end" int, text text, embedding vector(2048))'
            )
            connection.execute(
                "CREATE TABLE documents (id uuid DEFAULT gen_random_uuid(), content text, "
                "metadata jsonb, embedding vector)"
            )
            connection.execute("CREATE TABLE plain (id int)")
            connection.execute("CREATE TABLE twice (id int, a vector(3), b vector(3))")
            for name, vector, text, more in stored(corpus):
                connection.execute(
                    "INSERT INTO chunks VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
                    [name, more["source"], more["section"], more["type"], more["start"],
                     more["end"], text, str(vector)],
                )  # fmt: skip
                held = {**more, "chunk_id": name}
                connection.execute(
                    "INSERT INTO documents (content, metadata, embedding) VALUES (%s, %s, %s)",
                    [text, psycopg.types.json.Jsonb(held), str(vector)],
                )
        yield f"pgvector:{url}"


def test_the_nearest_rows_are_found(database: str, corpus: Path) -> None:
    target = opened(f"{database}&table=chunks", k=5, **LEXICAL)
    trace = asked(target)
    assert_finds_last(trace)
    assert trace.hits[0].score == pytest.approx(1.0, abs=1e-5)
    assert trace.index["embed_model"] == "lexical-hash-v1"
    exact = asked(opened(f"vector:{corpus}", k=5, **LEXICAL))
    assert names(trace.hits) == names(exact.hits)
    assert [hit.score for hit in trace.hits] == pytest.approx(
        [hit.score for hit in exact.hits], abs=1e-5
    )
    target.close()


@pytest.mark.parametrize(("metric", "score"), [("cosine", 1.0), ("l2", 0.0), ("ip", 1.0)])
def test_what_is_nearer_scores_higher_under_any_metric(
    database: str, metric: str, score: float
) -> None:
    target = opened(f"{database}&table=chunks&metric={metric}", **LEXICAL)
    trace = asked(target)
    assert_finds_last(trace)
    assert trace.hits[0].score == pytest.approx(score, abs=1e-3)
    target.close()


def test_fields_may_stand_in_a_column_of_json(database: str) -> None:
    """The column `id` is a random UUID; `chunk_id` in the metadata is the chunk's own."""
    target = opened(f"{database}&table=documents", **LEXICAL)
    assert_finds_last(asked(target))
    target.close()


def test_columns_can_be_named(database: str) -> None:
    address = f"{database}&table=chunks&id=text&section=type&doc=source"
    target = opened(address, **LEXICAL)
    first = asked(target).hits[0]
    assert (first.id, first.section, first.spans) == (RED, "prose", (Span(73, 88),))
    target.close()


def test_threads_ask_on_their_own_connections(database: str) -> None:
    target: Any = opened(f"{database}&table=chunks", **LEXICAL)
    questions = [
        TargetQuestion(qid=str(n), text=("Äpfel", "make", "plain b")[n % 3]) for n in range(12)
    ]
    alone = [target.ask(each) for each in questions]
    together = threading.Barrier(3)

    def ask(question: TargetQuestion) -> Any:
        if int(question.qid) < 3:
            together.wait(30)
        return target.ask(question)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(ask, questions)) == alone
    assert len(target.open) == 4
    target.close()


def test_nothing_can_be_written(database: str) -> None:
    target: Any = opened(f"{database}&table=chunks", **LEXICAL)
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        target._connection().execute("DELETE FROM chunks")
    target.close()


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "needs `table`"),
        ("&table=chunk", "has no table `chunk`"),
        ("&table=plain", "`plain` has the vectors none"),
        ("&table=twice", "`twice` has the vectors a, b"),
        ("&table=twice&vector=a", "have 3 numbers, those of lexical-hash-v1 2048"),
        ("&table=chunks&metric=far", "`metric` is `far`"),
        ("&table=chunks%22%3B--", "has no table"),
    ],
)
def test_a_table_that_can_never_be_asked_is_refused(
    database: str, query: str, message: str
) -> None:
    (problem,) = refusal(f"{database}{query}", **LEXICAL).problems
    assert problem.code == "bad-target"
    assert message in problem.message


def test_a_server_that_is_not_there_is_refused_without_its_password() -> None:
    url = "postgresql://me:hunter2@127.0.0.1:9/db?table=chunks&connect_timeout=2"
    (problem,) = refusal(f"pgvector:{url}", **LEXICAL).problems
    assert problem.code == "bad-target"
    assert "127.0.0.1" in problem.message
    assert "hunter2" not in problem.message + problem.hint


def test_what_fails_later_is_the_error_of_a_question(database: str) -> None:
    target: Any = opened(f"{database}&table=documents", **LEXICAL)
    with psycopg.connect(database.removeprefix("pgvector:"), autocommit=True) as connection:
        connection.execute("DROP TABLE documents")
    with pytest.raises(TargetError) as raised:
        asked(target)
    assert raised.value.reason == 'relation "documents" does not exist'
    assert not raised.value.transient
    target.close()


def test_a_lost_connection_is_made_again(database: str) -> None:
    target: Any = opened(f"{database}&table=chunks", **LEXICAL)
    target.open[0].close()
    assert_finds_last(asked(target))
    target.close()
