"""Connections are announced before they are made: once for each server, with who named it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragauge.files import connections
from tests.support.cases import cases


@pytest.fixture
def lines() -> Iterator[list[str]]:
    announced: list[str] = []
    connections.listen(announced.append)
    yield announced
    connections.listen(None)


def test_each_server_is_announced_once(lines: list[str]) -> None:
    for _ in range(3):
        connections.announce("example.com", 443)
        connections.announce("example.com", 8443)
    assert lines == [
        "connecting to example.com (named on the command line)",
        "connecting to example.com:8443 (named on the command line)",
    ]


def test_who_named_a_host_is_said(lines: list[str]) -> None:
    connections.name_host("Example.com.", "named in ragauge.toml:3")
    connections.announce("example.COM", 443)
    connections.announce("::1", 6000)
    assert lines == [
        "connecting to example.COM (named in ragauge.toml:3)",
        "connecting to [::1]:6000 (named on the command line)",
    ]


def test_the_next_command_begins_anew(lines: list[str]) -> None:
    connections.name_host("a", "named in ragauge.toml:3")
    connections.announce("a")
    connections.listen(lines.append)
    connections.announce("a")
    assert lines[1] == "connecting to a (named on the command line)"


def test_without_a_listener_nothing_is_said() -> None:
    connections.listen(None)
    connections.announce("example.com")


@cases(
    ("parameters", "hosts"),
    [
        ({"host": "a", "port": "1"}, [("a", 1)]),
        ({"host": "a,b", "hostaddr": "10.0.0.1"}, [("a", 5432), ("b", 5432), ("10.0.0.1", 5432)]),
        ({"host": "a", "oauth_issuer": "https://b/x"}, [("a", 5432), ("b", 5432)]),
        ({"host": "/run/postgresql"}, [("localhost", 5432)]),
        ({"host": "@abstract"}, [("localhost", 5432)]),
        ({}, [("localhost", 5432)]),
    ],
)
def test_all_servers_that_libpq_would_connect_to(
    parameters: dict[str, str], hosts: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT"):
        monkeypatch.delenv(name, raising=False)
    assert connections.postgres_hosts(parameters) == hosts
