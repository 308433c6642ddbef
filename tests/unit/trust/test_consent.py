"""Hosts as people write them, and tests that embed: consent holds inside pytest too."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragauge.errors import RagaugeError
from ragauge.testing import MarkerSettings, Scorer
from ragauge.trust.consent import parse_host
from tests.support.cases import cases
from tests.support.command import GOLD, lines_of
from tests.support.web_servers import http, serving


@cases(
    ("text", "host"),
    [
        ("Example.COM", ("example.com", None)),
        (" example.com ", ("example.com", None)),
        ("example.com.", ("example.com", None)),
        ("example.com:8080", ("example.com", 8080)),
        ("bücher.example", ("xn--bcher-kva.example", None)),
        ("::1", ("::1", None)),
        ("[::1]", ("::1", None)),
        ("[::1]:80", ("::1", 80)),
        ("", None),
        ("http://example.com", None),
        ("example.com/x", None),
        ("user@example.com", None),
        ("a,b", None),
        ("example.com:http", None),
    ],
)
def test_hosts_are_read_as_they_are_written(text: str, host: tuple[str, int | None] | None) -> None:
    assert parse_host(text) == host


def test_a_test_sends_nothing_that_only_the_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vectors(_: object) -> bytes:
        return http({"data": [{"index": 0, "embedding": [1.0, 0.0]}]})

    row = {"qid": "A1", "question": "?", "topk": [{"id": "p1#2", "text": "text"}]}
    (tmp_path / "gold.jsonl").write_bytes(lines_of(GOLD[:1]))
    (tmp_path / "trace.jsonl").write_bytes(lines_of([row]))
    with serving(vectors) as server:
        text = (
            f'embed = "openai:x"\nembed_cache = "none"\n[embedders.openai]\nbase = "{server.url}"\n'
        )
        (tmp_path / "ragauge.toml").write_text(text)
        settings = MarkerSettings(
            gold=str(tmp_path / "gold.jsonl"), trace=str(tmp_path / "trace.jsonl"), profile="all"
        )
        with pytest.raises(RagaugeError) as caught:
            Scorer(tmp_path).scored(settings)
        assert caught.value.code == "host-not-allowed"
        assert str(caught.value.problems[0].place) == f"{tmp_path / 'ragauge.toml'}:4"
        assert server.connections == 0
        monkeypatch.setenv("RAGAUGE_ALLOW_HOSTS", "127.0.0.1")
        Scorer(tmp_path).scored(settings)
        assert server.connections == 1
