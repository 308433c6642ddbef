"""What settings lead to: every server that a URL may make libpq or HTTP connect to is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragauge.config import load_config
from ragauge.errors import RagaugeError
from ragauge.trust.needs import all_needs, embedder_leads_outside, needs_of_store

ENVIRONMENT = (
    "PGHOST",
    "PGHOSTADDR",
    "PGPORT",
    "PGPASSWORD",
    "OPENAI_API_KEY",
    "RAGAUGE_EMBED_KEY",
)


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*ENVIRONMENT, "RAGAUGE_EMBED_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def written(folder: Path, text: str) -> Path:
    path = folder / "ragauge.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://db.example.com/x", ["db.example.com:5432"]),
        ("postgres://DB.example.com:6000/x", ["DB.example.com:6000"]),
        ("postgresql://user:pass@db/x", ["db:5432"]),
        ("postgresql://a:1,b:2/x", ["a:1", "b:1"]),
        ("postgresql://db/x?host=other", ["other:5432"]),
        ("postgresql://db/x?hostaddr=10.0.0.1", ["db:5432", "10.0.0.1:5432"]),
        ("postgresql:///x", ["localhost:5432"]),
        ("postgresql:///x?host=/var/run", ["localhost:5432"]),
        ("postgresql://[::1]:6000/x", ["::1:6000"]),
        ("postgresql://%65vil.com/x", ["evil.com:5432"]),
        ("sqlite:///x.db", []),
    ],
)
def test_every_server_of_a_store_is_named(tmp_path: Path, url: str, hosts: list[str]) -> None:
    pytest.importorskip("psycopg")
    config = load_config(written(tmp_path, f'\nstore = "{url}"\n'))
    needs = needs_of_store(config)
    assert [f"{need.access.host}:{need.access.port}" for need in needs] == hosts
    assert {need.place.line for need in needs} <= {2}


def test_the_environment_says_where_a_store_without_a_host_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    monkeypatch.setenv("PGHOST", "db.example.com")
    monkeypatch.setenv("PGPASSWORD", "secret")
    config = load_config(written(tmp_path, 'store = "postgresql:///x"\n'))
    (need,) = needs_of_store(config)
    assert (need.access.host, need.access.variables) == ("db.example.com", ("PGPASSWORD",))


@pytest.mark.parametrize("parameter", ["service=x", "servicefile=x.conf"])
def test_a_server_that_nobody_can_name_needs_trust(tmp_path: Path, parameter: str) -> None:
    """A service file may lie in the checkout, and say any host."""
    pytest.importorskip("psycopg")
    config = load_config(written(tmp_path, f'store = "postgresql:///x?{parameter}"\n'))
    try:
        (need,) = needs_of_store(config)
    except RagaugeError as error:  # this libpq does not know the parameter, and never connects
        assert error.code == "bad-store-url"  # noqa: PT017
        return
    assert (need.access.host, need.access.code is not None) == (None, True)


@pytest.mark.parametrize(
    ("base", "host"),
    [
        ("https://api.example.com/v1", "api.example.com:443"),
        ("http://API.example.com:8000", "api.example.com:8000"),
        ("http://allowed.com@evil.com/v1", "evil.com:80"),
        ("http://allowed.com\\\\@evil.com/v1", "evil.com:80"),
        ("http://allowed.com#@evil.com/", "allowed.com:80"),
    ],
)
def test_the_host_of_an_embedder_is_the_one_that_would_be_connected_to(
    tmp_path: Path, base: str, host: str
) -> None:
    text = f'embed = "openai:x"\n[embedders.openai]\nbase = "{base}"\n'
    (need,) = all_needs(load_config(written(tmp_path, text)))
    assert f"{need.access.host}:{need.access.port}" == host


def test_everything_is_listed_once_and_by_line(tmp_path: Path) -> None:
    text = """\
embed = "sentence_transformers:model"
target = "http://service/ask?key=${TOKEN}"
[embedders.openai]
base = "http://vectors/v1"
[embedders.minilm]
sha256 = "00"
[embedders.hashing]
"""
    needs = all_needs(load_config(written(tmp_path, text)))
    assert [(need.place.line, need.access.host) for need in needs] == [
        (1, None),
        (2, "service"),
        (4, "vectors"),
        (6, None),
    ]
    assert needs[1].access.variables == ("TOKEN",)


@pytest.mark.parametrize(
    ("name", "outside"),
    [
        ("hashing", False),
        ("minilm", False),
        ("openai:x", True),
        ("sentence_transformers:x", True),
        ("unknown", True),
    ],
)
def test_embedders_that_lead_outside_by_their_name(name: str, outside: bool) -> None:
    assert embedder_leads_outside(name) is outside
