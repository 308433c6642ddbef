"""The spool: what `put` said is on disk is there, in order, once, and goes when it is deleted."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import wait
from pathlib import Path

import msgspec
import pytest

from ragauge.errors import RagaugeError
from ragauge.formats.imports.span import TraceSpan
from ragauge.live import spool as spool_module
from ragauge.live.settings import LiveSettings
from ragauge.live.spool import (
    Spool,
    SpoolReader,
    SpoolUnavailableError,
    decode_spans,
    encode_spans,
    spool_folder,
)
from tests.support.cases import cases

LARGE = 2**30


def put(spool: Spool, number: int, *, tenant: str = "", received: int = 0) -> bool:
    body = b"body %d" % number
    return spool.put(tenant, b"key %d" % number, "rows", received, body, 1.0).result(10)


def test_bodies_come_back_in_order_and_go_when_they_are_deleted(tmp_path: Path) -> None:
    spool, reader = Spool(tmp_path, most_bytes=LARGE), SpoolReader(tmp_path)
    for number in range(5):
        assert put(spool, number, received=100 + number)
    bodies = reader.batch(0, 3)
    assert [body.body for body in bodies] == [b"body 0", b"body 1", b"body 2"]
    assert (bodies[0].tenant, bodies[0].key, bodies[0].kind, bodies[0].rate) == (
        "", b"key 0", "rows", 1.0
    )  # fmt: skip
    assert [body.body for body in reader.batch(bodies[-1].number)] == [b"body 3", b"body 4"]
    reader.delete([body.number for body in bodies])
    state = reader.state()
    assert (state.bodies, state.oldest) == (2, 103)
    reader.delete([body.number for body in reader.batch()])
    assert reader.state().oldest is None
    put(spool, 7)
    assert reader.batch()[0].number > bodies[-1].number  # a number is never used again
    spool.close()
    reader.close()


def test_a_key_counts_once_for_each_tenant_also_after_its_body_is_gone(tmp_path: Path) -> None:
    spool, reader = Spool(tmp_path, most_bytes=LARGE), SpoolReader(tmp_path)
    assert put(spool, 1)
    assert not put(spool, 1)
    assert put(spool, 1, tenant="other")
    reader.delete([body.number for body in reader.batch()])
    assert not put(spool, 1)
    assert reader.depth() == 0
    spool.close()
    reader.close()


def test_old_keys_are_forgotten_in_quiet_moments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path, most_bytes=LARGE)
    monkeypatch.setattr("ragauge.live.spool.time.time", lambda: 10_000.0)  # 10,000,000 ms
    put(spool, 1, received=10_000_000 - 15 * 60_000 - 1)
    put(spool, 2, received=10_000_000 - 15 * 60_000)
    spool._tidy()
    assert put(spool, 1)
    assert not put(spool, 2)
    spool.close()


def test_many_threads_are_written_in_few_commits(tmp_path: Path) -> None:
    spool = Spool(tmp_path, most_bytes=LARGE)
    commits = []
    commit = spool._commit
    gate = threading.Event()

    def counted(group: list[object]) -> list[bool]:
        gate.wait(10)
        commits.append(len(group))
        return commit(group)  # type: ignore[arg-type]

    spool._commit = counted  # type: ignore[method-assign,assignment]
    futures = [spool.put("", b"%d" % n, "rows", 0, b"x" * 10, 1.0) for n in range(300)]
    assert spool.waiting_bytes == 3000
    gate.set()
    wait(futures, 10)
    assert sum(commits) == 300
    assert len(commits) <= 3  # the first, then all that came meanwhile
    assert spool.waiting_bytes == 0
    spool.close()


def test_a_body_twice_in_one_group_is_stored_once(tmp_path: Path) -> None:
    spool, reader = Spool(tmp_path, most_bytes=LARGE), SpoolReader(tmp_path)
    put(spool, 0)
    commit, gate = spool._commit, threading.Event()

    def late(group: list[object]) -> list[bool]:
        gate.wait(10)
        return commit(group)  # type: ignore[arg-type]

    spool._commit = late  # type: ignore[method-assign,assignment]
    numbers = [0, *range(300), 7, 299]  # more than one statement takes
    tenants = ["", *[""] * 300, "", "other"]
    futures = [
        spool.put(tenant, b"key %d" % number, "rows", 0, b"%d" % number, 1.0)
        for tenant, number in zip(tenants, numbers, strict=True)
    ]
    gate.set()
    stored = [future.result(10) for future in futures]
    assert stored == [False, False, *[True] * 299, False, True]
    assert [int(body.body) for body in reader.batch(1, 1000)] == [*range(1, 300), 299]
    spool.close()
    reader.close()


def test_a_failed_commit_is_told_to_all_and_the_next_goes_on(tmp_path: Path) -> None:
    spool = Spool(tmp_path, most_bytes=LARGE)
    reader = sqlite3.connect(tmp_path / "spool.db")
    reader.execute("DROP TABLE bodies")
    with pytest.raises(SpoolUnavailableError):
        put(spool, 1)
    assert spool.last_error is not None
    reader.executescript(spool_module._SCHEMA)
    assert put(spool, 1)  # its key was rolled back with it
    assert spool.last_error is None
    assert spool.waiting_bytes == 0
    spool.close()
    reader.close()


def test_who_has_gone_does_not_stop_the_writer(tmp_path: Path) -> None:
    spool = Spool(tmp_path, most_bytes=LARGE)
    commit, gate = spool._commit, threading.Event()

    def slow(group: list[object]) -> list[bool]:
        gate.wait(10)
        return commit(group)  # type: ignore[arg-type]

    spool._commit = slow  # type: ignore[method-assign,assignment]
    first = spool.put("", b"1", "rows", 0, b"1", 1.0)
    second = spool.put("", b"2", "rows", 0, b"2", 1.0)
    second.cancel()
    gate.set()
    assert first.result(10)
    assert put(spool, 3)
    reader = SpoolReader(tmp_path)
    assert reader.depth() == 3
    reader.close()
    spool.close()


def test_what_was_put_is_written_before_the_spool_closes(tmp_path: Path) -> None:
    spool = Spool(tmp_path, most_bytes=LARGE)
    futures = [spool.put("", b"%d" % n, "rows", 0, b"x", 1.0) for n in range(100)]
    spool.close()
    assert all(future.result(0) for future in futures)


def test_only_the_owner_reads_the_spool(tmp_path: Path) -> None:
    folder = tmp_path / "spool"
    spool = Spool(folder, most_bytes=LARGE)
    put(spool, 1)
    assert folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    spool.close()


def test_a_folder_that_cannot_be_made_is_an_error_to_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RagaugeError, match="cannot be made"):
        Spool(tmp_path / "file" / "spool", most_bytes=LARGE)


@cases(
    ("live", "url", "folder"),
    [
        ({}, "sqlite:///some/live.db", "some/live.db.spool"),
        ({}, "sqlite:////var/live.db", "/var/live.db.spool"),
        ({}, "postgresql://host/name", "ragauge-live.spool"),
        ({"spool": "/var/spool/ragauge"}, "sqlite:///live.db", "/var/spool/ragauge"),
    ],
)
def test_the_spool_lies_beside_the_store(live: dict[str, str], url: str, folder: str) -> None:
    assert spool_folder(msgspec.convert(live, LiveSettings), url) == Path(folder)


def test_spans_come_back_as_they_were() -> None:
    resource = {"service.name": "shop", "list": [1, 2.5, None, {"a": True}]}
    spans = [
        TraceSpan("t1", "s1", None, "a", 0, 2**64 - 1, {"x": float("inf"), "y": "ü"}, "broke", 3,
                  resource),
        TraceSpan("t1", "s2", "s1", "b", 1, 2, {}, None, 0, resource),
        TraceSpan("t2", "s3", None, "c", 1, 2, {"n": -5}),
    ]  # fmt: skip
    assert decode_spans(encode_spans(spans)) == spans


def test_a_number_that_does_not_fit_becomes_text_and_a_time_the_last_one() -> None:
    span = TraceSpan("t", "s", None, "a", 5, 10**30, {"n": 10**30, "in": [10**30]})
    (stored,) = decode_spans(encode_spans([span]))
    assert (stored.start, stored.end) == (5, 2**63 - 1)
    assert stored.attributes == {"n": str(10**30), "in": [str(10**30)]}
