"""Secrets of a target's configuration: which values they are, and how the rest is shown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ragauge.files.redaction import REDACTED
from ragauge.run.secrets import configured_secrets, shown_options
from tests.support.cases import cases


@cases(
    ("address", "options", "secret"),
    [
        ("http://me:pass-word@h/x", {}, "pass-word"),
        ("http://h/x?api_key=abcd1234", {}, "abcd1234"),
        ("pgvector:postgresql://me:pass-word@h/db", {}, "pass-word"),
        ("command:rag --api-key abcd1234", {}, "abcd1234"),
        ("command:rag --api-key=abcd1234", {}, "abcd1234"),
        ("command:rag -p hunter2", {}, "hunter2"),
        ("command:curl -u me:hunter2 -H 'X-Own: abcd1234'", {}, "abcd1234"),
        ("http://h/x", {"header.X-Own": "abcd1234"}, "abcd1234"),
        ("http://h/x", {"header.Authorization": "Token abcd1234"}, "abcd1234"),
        ("python:a:b", {"api_key": "abcd1234"}, "abcd1234"),
        ("python:a:b", {"key": "abcd1234"}, "abcd1234"),
        ("python:a:b", {"url": "http://me:pass-word@h/"}, "pass-word"),
        ("python:a:b", {"password": 12345678}, "12345678"),
    ],
)
def test_what_is_configured_is_hidden(address: str, options: dict[str, Any], secret: str) -> None:
    assert configured_secrets(address, options).hide(f"<{secret}>") == f"<{REDACTED}>"


@cases(
    ("address", "options"),
    [
        ("http://h/x?k=abcd1234", {}),
        ("command:rag -k 5 -p 8080 --index abcd1234", {}),
        ("http://h/x", {"header.Accept": "abcd1234", "body": "abcd1234", "id": "abcd1234"}),
        ("python:a:b", {"index": "abcd1234", "api_key": None, "secret": True}),
    ],
)
def test_what_is_no_secret_stays(address: str, options: dict[str, Any]) -> None:
    text = "abcd1234 8080 True None 5"
    assert configured_secrets(address, options).hide(text) == text


def test_a_target_names_its_own_secrets() -> None:
    target = SimpleNamespace(secrets=["from-the-environment"])
    secrets = configured_secrets("python:a:b", {}, target)
    assert secrets.hide("it is from-the-environment") == f"it is {REDACTED}"


def test_options_are_shown_without_their_secrets_wherever_these_stand() -> None:
    options = {"key": "abcd1234", "url": "http://h/?x=abcd1234", "k": 5}
    assert shown_options(options) == {"key": REDACTED, "url": f"http://h/?x={REDACTED}", "k": 5}
