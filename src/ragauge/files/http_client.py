"""The one door to the network: HTTP/1.1 requests on connections that stay open, one a thread.

Connections and TLS are those of the standard library's `http.client`. Requests and responses are
written and read here: the library sends headers through its parser of e-mail, which takes longer
than all the rest of a short request, and its timeout starts again with every byte. Decision 0034
has the figures, also for urllib3, which is built on the same library.
"""

from __future__ import annotations

import base64
import http.client
import io
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from ragauge.files.connections import announce

MOST_BYTES = 64 * 1024 * 1024
"""The largest body that is read."""

_MOST_HEADERS = 200
_LONGEST_LINE = 65_536
_MOST_CONNECTIONS = 8  # of one thread, each to another server
_RESERVED = {"host", "content-length", "transfer-encoding", "connection"}


class WebError(Exception):
    """A request without a usable response; `transient` ones are worth another try.

    The reason names the server and never what is secret: no password, no query, no header.
    """

    def __init__(self, reason: str, *, transient: bool = False, wait: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.transient = transient
        self.wait = wait


class Response(Struct, frozen=True):
    """The response of a server; the names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class _ParsedUrl(Struct, frozen=True):
    """A URL taken apart; `safe` is what messages may show, `headers` are those that it implies."""

    tls: bool
    host: str
    port: int
    path: str
    headers: bytes
    safe: str


def request(
    method: str,
    url: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    *,
    most_bytes: int = MOST_BYTES,
) -> Response:
    """Send a request and read the whole response, within `timeout` seconds in all.

    Redirects are responses like any other. An open connection that the server has closed meanwhile
    is replaced once; nothing else is tried again here.
    """
    target = _parsed(url)
    head = _request_head(method, target, body, headers or {})
    deadline = time.monotonic() + timeout
    while True:
        connection, is_new = _connection_to(target, deadline)
        try:
            return connection.exchange(method, head, body, deadline, most_bytes)
        except _StaleError as error:
            connection.close()
            if is_new:
                raise WebError(f"{target.safe} closed the connection", transient=True) from error
        except BaseException as error:
            connection.close()  # what is half read cannot be used again
            if (web_error := _as_web_error(error, target, timeout)) is None:
                raise
            raise web_error from error


def _as_web_error(error: BaseException, target: _ParsedUrl, timeout: float) -> WebError | None:
    """The fault of a server or of the way to it, in words; None for errors of another kind."""
    if isinstance(error, TimeoutError):
        return WebError(f"no answer from {target.safe} within {timeout:g} s", transient=True)
    if isinstance(error, _BadResponseError):
        reason = str(error) if error.cut else f"no HTTP was answered: {_printable(str(error))}"
        return WebError(f"{target.safe}: {reason}", transient=error.cut)
    if isinstance(error, OSError):
        return WebError(f"{target.safe}: {_reason(error)}", transient=True)
    return None


def shown_url(url: str) -> str:
    """A URL as messages may show it: server and path, without user, password and query."""
    return _parsed(url).safe


def host_and_port(url: str) -> tuple[str, int]:
    """The host that a request to the URL would connect to, and the port."""
    target = _parsed(url)
    return target.host, target.port


def close() -> None:
    """Close the connections of this thread."""
    for connection in _connections().values():
        connection.close()
    _connections().clear()


class _StaleError(Exception):
    """A connection was closed before one byte of a response came."""


class _BadResponseError(Exception):
    """A response that is not HTTP, or of which not all came; `cut` says the latter."""

    def __init__(self, reason: str, *, cut: bool = False) -> None:
        super().__init__(reason)
        self.cut = cut


class _SocketReader(io.RawIOBase):
    """The bytes of a socket, up to a deadline that a slow server cannot move."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.deadline = 0.0
        self.received = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.sock.settimeout(_seconds_left(self.deadline))
        count = self.sock.recv_into(buffer)
        self.received += count
        return count


class _Connection:
    """An open connection to a server; one response after another is read from it."""

    def __init__(self, target: _ParsedUrl, deadline: float) -> None:
        kind = http.client.HTTPSConnection if target.tls else http.client.HTTPConnection
        self.safe_url = target.safe
        announce(target.host, target.port)
        self.connection = kind(target.host, target.port, timeout=_seconds_left(deadline))
        try:
            self.connection.connect()
        except OSError as error:
            self.close()
            raise _unreachable(target, error) from error
        self.sock = self.connection.sock
        self.raw = _SocketReader(self.sock)
        self.file = io.BufferedReader(self.raw, 16_384)
        self.consumed = 0

    def exchange(
        self, method: str, head: bytes, body: bytes | None, deadline: float, most: int
    ) -> Response:
        """Send a request and read the response to its end."""
        received_before = self.raw.received
        self.raw.deadline = deadline
        try:
            self.sock.settimeout(_seconds_left(deadline))
            self.sock.sendall(head + body if body else head)
            status, version, headers = self._status_and_headers()
            while status // 100 == 1:  # interim responses such as `100 Continue`
                status, version, headers = self._status_and_headers()
        except ConnectionError as error:
            if self.raw.received > received_before:
                raise
            raise _StaleError from error
        option = headers.get("connection", "").lower()
        stays_open = "close" not in option if version == "HTTP/1.1" else "keep-alive" in option
        coding = headers.get("transfer-encoding", "identity").lower()
        length = headers.get("content-length")
        if method == "HEAD" or status in (204, 304):
            data = b""
        elif coding == "chunked":
            data = self._chunked(most)
        elif coding != "identity":
            raise _BadResponseError(f"the coding {coding!r} is not known")
        elif length is None:
            data, stays_open = self.file.read(most + 1), False
            if len(data) > most:
                raise self._too_large(most)
        elif length.isascii() and length.isdecimal():
            data = self._exactly(int(length), most)
        else:
            raise _BadResponseError(f"its length is {length!r}")
        # Bytes behind the response would be taken for the beginning of the next one.
        if not stays_open or self.consumed != self.raw.received:
            self.close()
        return Response(status, headers, data)

    def _status_and_headers(self) -> tuple[int, str, dict[str, str]]:
        """Status, version and headers."""
        line = self.file.readline(_LONGEST_LINE)
        self.consumed += len(line)
        if not line:
            raise ConnectionResetError
        version, _, rest = line.decode("latin-1").partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
            raise _BadResponseError(f"the answer begins with {line[:40]!r}")
        headers: dict[str, str] = {}
        for _ in range(_MOST_HEADERS):
            line = self._text_line()
            if line in (b"\r\n", b"\n"):
                return int(rest[:3]), version, headers
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon:
                raise _BadResponseError("a header has no colon")
            name, value = name.strip().lower(), value.strip()
            if name == "content-length" and headers.get(name, value) != value:
                raise _BadResponseError("it has two lengths")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        raise _BadResponseError(f"it has more than {_MOST_HEADERS} headers")

    def _text_line(self) -> bytes:
        line = self.file.readline(_LONGEST_LINE)
        self.consumed += len(line)
        if not line.endswith(b"\n"):
            cut = len(line) < _LONGEST_LINE
            raise _BadResponseError("a line has no end", cut=cut)
        return line

    def _exactly(self, length: int, most: int) -> bytes:
        if length > most:
            raise self._too_large(most)
        data = self.file.read(length)
        self.consumed += len(data)
        if len(data) < length:
            raise _BadResponseError("the answer was cut off", cut=True)
        return data

    def _chunked(self, most: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            text = self._text_line().partition(b";")[0].strip()
            try:
                length = int(text, 16)
            except ValueError as error:
                raise _BadResponseError(f"a chunk has the length {text[:20]!r}") from error
            if length == 0:
                break
            size += length
            if length < 0 or size > most:
                raise self._too_large(most)
            parts.append(self._exactly(length, most))
            self._text_line()
        while self._text_line() not in (b"\r\n", b"\n"):
            pass  # trailers: headers behind the body
        return b"".join(parts)

    def _too_large(self, most: int) -> WebError:
        return WebError(f"{self.safe_url}: the answer is larger than {most:,} bytes")

    def close(self) -> None:
        """Close it, if it ever was open."""
        with suppress(OSError, AttributeError):
            self.connection.close()

    def __del__(self) -> None:
        self.close()  # the thread that it belonged to has ended


def _unreachable(target: _ParsedUrl, error: OSError) -> WebError:
    if isinstance(error, TimeoutError):
        return WebError(f"{target.safe} could not be reached in time", transient=True)
    if isinstance(error, ssl.SSLError):
        return WebError(f"{target.safe}: TLS failed: {error.reason}")
    # A name that is not known now will not be known in a second.
    transient = not isinstance(error, socket.gaierror)
    return WebError(f"{target.safe} cannot be reached: {_reason(error)}", transient=transient)


_OWN = threading.local()


def _connections() -> dict[tuple[bool, str, int], _Connection]:
    """The open connections of this thread, by TLS, host and port."""
    if not hasattr(_OWN, "connections"):
        _OWN.connections = {}
    return cast("dict[tuple[bool, str, int], _Connection]", _OWN.connections)


def _connection_to(target: _ParsedUrl, deadline: float) -> tuple[_Connection, bool]:
    """The connection of this thread to a server, and whether it was opened only now."""
    connections = _connections()
    key = (target.tls, target.host, target.port)
    connection = connections.get(key)
    if connection is not None and connection.connection.sock is not None:
        return connection, False
    if connection is None and len(connections) >= _MOST_CONNECTIONS:
        connections.pop(next(iter(connections))).close()
    connections[key] = _Connection(target, deadline)
    return connections[key], True


@lru_cache(100)
def _parsed(url: str) -> _ParsedUrl:
    """Take a URL apart; the last ones are remembered, since a run asks few of them often."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise WebError("the URL cannot be read: its host or port is odd") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WebError("the URL cannot be read: it takes http:// or https:// and a host")
    tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.isascii() or any(char <= " " or char == "\x7f" for char in path):
        raise WebError("the URL cannot be read: a character in it must be written as %XX")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    server = host if port is None else f"{host}:{port}"
    lines = [f"Host: {server.encode('idna').decode() if not server.isascii() else server}"]
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines.append(f"Authorization: Basic {base64.b64encode(pair.encode()).decode()}")
    return _ParsedUrl(
        tls=tls,
        host=parts.hostname,
        port=port or (443 if tls else 80),
        path=path,
        headers="".join(f"{line}\r\n" for line in lines).encode("latin-1"),
        safe=f"{parts.scheme}://{server}{parts.path}",
    )


def _request_head(
    method: str, target: _ParsedUrl, body: bytes | None, headers: Mapping[str, str]
) -> bytes:
    lines = []
    names = set()
    for name, value in headers.items():
        odd = not name.isascii() or any(char in "\r\n\0" for char in name + value)
        if odd or ":" in name or " " in name or not name or name.lower() in _RESERVED:
            raise WebError(f"the header `{_printable(name)}` cannot be sent")
        names.add(name.lower())
        lines.append(f"{name}: {value}\r\n")
    if "accept-encoding" not in names:
        lines.append("Accept-Encoding: identity\r\n")
    if body is not None or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body or b'')}\r\n")
    try:
        encoded = "".join(lines).encode("latin-1")
    except UnicodeEncodeError as error:
        raise WebError("a header holds a character that cannot be sent") from error
    implied = target.headers
    if "authorization" in names:  # a header that was asked for wins over the user in the URL
        implied = implied.partition(b"Authorization:")[0]
    return f"{method} {target.path} HTTP/1.1\r\n".encode() + implied + encoded + b"\r\n"


def _seconds_left(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _printable(text: str) -> str:
    clean = "".join(char if char.isprintable() else "?" for char in text)
    return clean if len(clean) <= 80 else f"{clean[:77]}..."
