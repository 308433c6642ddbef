"""Consent: a host or code that `ragauge.toml` names is used only where the user said so.

The user says so with `--allow-host HOST`, with RAGAUGE_ALLOW_HOSTS, or with `ragauge trust`. What
the user names on the command line or in the environment needs no consent. This machine is a host
like any other: services that listen on it trust whoever reaches them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from ragauge.config import Config
from ragauge.errors import Problem, RagaugeError
from ragauge.files.connections import name_host
from ragauge.model.access import Access
from ragauge.trust.needs import Need
from ragauge.trust.trusted_files import find_trusted, network_hash

VARIABLE = "RAGAUGE_ALLOW_HOSTS"
_HOST = re.compile(r"(?P<host>\[[0-9a-fA-F:.%\w]+\]|[^\s/:@\[\]?#,]+)(?::(?P<port>\d{1,5}))?")


def parse_host(text: str) -> tuple[str, int | None] | None:
    """A host as the user writes it, with or without a port; None for anything else.

    An IPv6 address stands in brackets where a port follows it.
    """
    text = text.strip()
    if text.count(":") > 1 and not text.startswith("["):
        text = f"[{text}]"
    match = _HOST.fullmatch(text)
    if match is None:
        return None
    return _normal(match["host"]), int(match["port"]) if match["port"] else None


def require(config: Config, needs: Sequence[Need], *, allowed_hosts: Iterable[str] = ()) -> None:
    """Refuse needs that nobody consented to; the others are announced as named by the file."""
    hosts = {
        host
        for text in (*allowed_hosts, *os.environ.get(VARIABLE, "").split(","))
        if (host := parse_host(text)) is not None
    }
    lacking = [need for need in needs if not _is_allowed(need.access, hosts)]
    if lacking:
        trusted = find_trusted(config)
        if trusted is None or trusted.sha256 != network_hash(config):
            changed = trusted is not None
            raise RagaugeError(_problem(need, config, changed=changed) for need in lacking)
    for need in needs:
        if need.access.host is not None:
            name_host(need.access.host, f"named in {need.place}")


def _is_allowed(access: Access, hosts: set[tuple[str, int | None]]) -> bool:
    if access.host is None:
        return False  # code: a host says nothing of it
    host = _normal(access.host)
    return (host, None) in hosts or (host, access.port) in hosts


def _normal(host: str) -> str:
    host = host.strip("[]").rstrip(".").lower()
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        return host


def _problem(need: Need, config: Config, *, changed: bool) -> Problem:
    access = need.access
    since = "; the file was trusted before and has changed since" if changed else ""
    trusting = f"`ragauge trust {config.origin}`"
    if access.host is None:
        return Problem(
            "not-trusted",
            f"the file names {access.code}, which would run or connect{since}",
            f"read what it names, then trust it with {trusting}",
            need.place,
        )
    sent = f", with the value of {' or '.join(access.variables)}" if access.variables else ""
    return Problem(
        "host-not-allowed",
        f"the file names the host `{access.host}`, which would be connected to{sent}{since}",
        f"if you want that: --allow-host {access.host}, {VARIABLE}={access.host}, or {trusting}",
        need.place,
    )


def describe(access: Access) -> str:
    """What somebody trusts, in words: `connects to HOST, with the value of KEY`."""
    if access.host is None:
        return f"uses {access.code}"
    port = "" if access.port is None else f":{access.port}"
    sent = f", with the value of {' or '.join(access.variables)}" if access.variables else ""
    return f"connects to {access.host}{port}{sent}"
