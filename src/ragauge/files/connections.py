"""Connections to other machines: each host is announced before it is reached, with who named it.

Whoever connects calls `announce` first. Whoever knows that a file or a variable named the host
calls `name_host`; other hosts were named on the command line. The commands listen, and print it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

_USUAL_PORTS = (80, 443, 5432)
_ON_COMMAND_LINE = "named on the command line"


class _Announcements:
    """Who is told of connections, who named the hosts, and what was announced already."""

    def __init__(self, listener: Callable[[str], None] | None = None) -> None:
        self.listener = listener
        self.named: dict[str, str] = {}
        self.done: set[str] = set()
        self.lock = threading.Lock()


_current = _Announcements()


def listen(listener: Callable[[str], None] | None) -> None:
    """Begin anew: tell `listener` of every host that is connected to from now on."""
    global _current  # noqa: PLW0603
    _current = _Announcements(listener)


def name_host(host: str, by: str) -> None:
    """Remember who named a host: `named in ragauge.toml:3`."""
    _current.named[_normal(host)] = by


def named_hosts() -> dict[str, str]:
    """Who named which host, for another process that connects."""
    return dict(_current.named)


def announce(host: str, port: int | None = None) -> None:
    """Tell that a connection to a host is made now; once for each host and port."""
    log = _current
    server = f"[{host}]" if ":" in host else host
    if port is not None and port not in _USUAL_PORTS:
        server = f"{server}:{port}"
    with log.lock:
        if server in log.done:
            return
        log.done.add(server)
    if log.listener is not None:
        by = log.named.get(_normal(host), _ON_COMMAND_LINE)
        log.listener(f"connecting to {server} ({by})")


def postgres_hosts(parameters: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The servers that parameters of libpq lead to: both a name and the address that goes with it.

    Without either it is as the environment says, or else a socket of this machine.
    """
    from urllib.parse import urlsplit  # every command imports this module, and few connect

    environment = {"host": "PGHOST", "hostaddr": "PGHOSTADDR"}
    own = [parameters.get(name) for name in environment]
    texts = own if any(own) else [os.environ.get(name) for name in environment.values()]
    names = [name for text in texts for name in str(text or "").split(",") if name]
    issuer = urlsplit(str(parameters.get("oauth_issuer") or "")).hostname
    if issuer:  # it is asked for a token where the server wants one
        names.append(issuer)
    ports = str(parameters.get("port") or os.environ.get("PGPORT") or 5432).split(",")
    port = int(ports[0]) if ports[0].isdecimal() else 5432
    hosts = ["localhost" if name[:1] in "/@" else name for name in names or ["localhost"]]
    return [(host, port) for host in dict.fromkeys(hosts)]


def _normal(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()
