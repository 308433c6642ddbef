"""The one door to the network: HTTP/1.1 requests on connections that stay open, one a thread.

Connections and TLS are those of the standard library's `http.client`. What goes over them is
written and read here: the library sends headers through its parser of e-mail, which takes longer
than all the rest of a short request, and its timeout begins anew with every byte.
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
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from msgspec import Struct

MOST_BYTES = 64 * 1024 * 1024
"""The largest body that is read."""

_MOST_HEADERS = 200
_LONGEST_LINE = 65_536
_KEPT = 8  # connections of one thread, to that many servers
_RESERVED = {"host", "content-length", "transfer-encoding", "connection"}


class WebError(Exception):
    """A request that came to nothing; `transient` ones are worth another try.

    The reason names the server and never what is secret: no password, no query, no header.
    """

    def __init__(self, reason: str, *, transient: bool = False, wait: float | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.transient = transient
        self.wait = wait


class Response(Struct, frozen=True):
    """What a server answered; the names of headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class _Place(Struct, frozen=True):
    """A URL that was understood."""

    tls: bool
    host: str
    port: int
    path: str
    head: bytes
    shown: str


def request(
    method: str,
    url: str,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 60.0,
    *,
    most_bytes: int = MOST_BYTES,
) -> Response:
    """Send a request and read the whole answer, within `timeout` seconds in all.

    Redirects are answers like any other. An open connection that the server has closed meanwhile
    is replaced once; nothing else is tried again here.
    """
    place = _placed(url)
    head = _head(method, place, body, headers or {})
    deadline = time.monotonic() + timeout
    while True:
        line, fresh = _line(place, deadline)
        try:
            return line.exchange(method, head, body, deadline, most_bytes)
        except _StaleError as error:
            line.close()
            if fresh:
                raise WebError(f"{place.shown} closed the connection", transient=True) from error
        except TimeoutError as error:
            line.close()
            told = f"no answer from {place.shown} within {timeout:g} s"
            raise WebError(told, transient=True) from error
        except _BrokenError as error:
            line.close()
            words = str(error) if error.cut else f"no HTTP was answered: {_printable(str(error))}"
            raise WebError(f"{place.shown}: {words}", transient=error.cut) from error
        except OSError as error:
            line.close()
            raise WebError(f"{place.shown}: {_words(error)}", transient=True) from error
        except BaseException:
            line.close()  # what is half read cannot be used again
            raise


def shown_url(url: str) -> str:
    """A URL as messages may show it: server and path, without user, password and query."""
    return _placed(url).shown


def close() -> None:
    """Close the connections of this thread."""
    for line in _lines().values():
        line.close()
    _lines().clear()


class _StaleError(Exception):
    """A connection was closed before one byte of an answer came."""


class _BrokenError(Exception):
    """What was answered is not HTTP, or not all of it came; `cut` says the latter."""

    def __init__(self, words: str, *, cut: bool = False) -> None:
        super().__init__(words)
        self.cut = cut


class _Raw(io.RawIOBase):
    """The bytes of a socket, up to a deadline that a slow server cannot move."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.deadline = 0.0
        self.received = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.sock.settimeout(_left(self.deadline))
        count = self.sock.recv_into(buffer)
        self.received += count
        return count


class _Line:
    """An open connection to a server; one answer after another is read from it."""

    def __init__(self, place: _Place, deadline: float) -> None:
        kind = http.client.HTTPSConnection if place.tls else http.client.HTTPConnection
        self.shown = place.shown
        self.connection = kind(place.host, place.port, timeout=_left(deadline))
        try:
            self.connection.connect()
        except TimeoutError as error:
            self.close()
            told = f"{place.shown} could not be reached in time"
            raise WebError(told, transient=True) from error
        except ssl.SSLError as error:
            self.close()
            raise WebError(f"{place.shown}: TLS failed: {error.reason}") from error
        except OSError as error:
            self.close()
            told = f"{place.shown} cannot be reached: {_words(error)}"
            raise WebError(told, transient=not isinstance(error, socket.gaierror)) from error
        self.sock = self.connection.sock
        self.raw = _Raw(self.sock)
        self.file = io.BufferedReader(self.raw, 16_384)
        self.taken = 0

    def exchange(
        self, method: str, head: bytes, body: bytes | None, deadline: float, most: int
    ) -> Response:
        """Send a request and read the answer to its end."""
        before = self.raw.received
        self.raw.deadline = deadline
        try:
            self.sock.settimeout(_left(deadline))
            self.sock.sendall(head + body if body else head)
            status, version, headers = self._begin()
            while status // 100 == 1:  # what comes before the answer itself
                status, version, headers = self._begin()
        except ConnectionError as error:
            if self.raw.received > before:
                raise
            raise _StaleError from error
        kept = headers.get("connection", "").lower()
        stays = "close" not in kept if version == "HTTP/1.1" else "keep-alive" in kept
        coding = headers.get("transfer-encoding", "identity").lower()
        length = headers.get("content-length")
        if method == "HEAD" or status in (204, 304):
            data = b""
        elif coding == "chunked":
            data = self._chunked(most)
        elif coding != "identity":
            raise _BrokenError(f"the coding {coding!r} is not known")
        elif length is None:
            data, stays = self._to_the_end(most), False
        elif length.isascii() and length.isdecimal():
            data = self._exactly(int(length), most)
        else:
            raise _BrokenError(f"its length is {length!r}")
        if not stays or self.taken != self.raw.received:  # more than the answer has come
            self.close()
        return Response(status, headers, data)

    def _begin(self) -> tuple[int, str, dict[str, str]]:
        """Status, version and headers."""
        line = self.file.readline(_LONGEST_LINE)
        self.taken += len(line)
        if not line:
            raise ConnectionResetError
        version, _, rest = line.decode("latin-1").partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
            raise _BrokenError(f"the answer begins with {line[:40]!r}")
        headers: dict[str, str] = {}
        for _ in range(_MOST_HEADERS):
            line = self._text_line()
            if line in (b"\r\n", b"\n"):
                return int(rest[:3]), version, headers
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon:
                raise _BrokenError("a header has no colon")
            name, value = name.strip().lower(), value.strip()
            if name == "content-length" and headers.get(name, value) != value:
                raise _BrokenError("it has two lengths")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        raise _BrokenError(f"it has more than {_MOST_HEADERS} headers")

    def _text_line(self) -> bytes:
        line = self.file.readline(_LONGEST_LINE)
        self.taken += len(line)
        if not line.endswith(b"\n"):
            cut = len(line) < _LONGEST_LINE
            raise _BrokenError("a line has no end", cut=cut)
        return line

    def _exactly(self, length: int, most: int) -> bytes:
        if length > most:
            raise self._too_large(most)
        data = self.file.read(length)
        self.taken += len(data)
        if len(data) < length:
            raise _BrokenError("the answer was cut off", cut=True)
        return data

    def _chunked(self, most: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while True:
            text = self._text_line().partition(b";")[0].strip()
            try:
                length = int(text, 16)
            except ValueError as error:
                raise _BrokenError(f"a chunk has the length {text[:20]!r}") from error
            if length == 0:
                break
            size += length
            if length < 0 or size > most:
                raise self._too_large(most)
            parts.append(self._exactly(length, most))
            self._text_line()
        while self._text_line() not in (b"\r\n", b"\n"):
            pass  # headers behind the body
        return b"".join(parts)

    def _to_the_end(self, most: int) -> bytes:
        data = self.file.read(most + 1)
        if len(data) > most:
            raise self._too_large(most)
        return data

    def _too_large(self, most: int) -> WebError:
        return WebError(f"{self.shown}: the answer is larger than {most:,} bytes")

    @property
    def closed(self) -> bool:
        """Whether it cannot be used any more."""
        return self.connection.sock is None

    def close(self) -> None:
        """Close it, if it ever was open."""
        with suppress(OSError, AttributeError):
            self.connection.close()

    def __del__(self) -> None:
        self.close()  # the thread that it belonged to has ended


_OWN = threading.local()


def _lines() -> dict[tuple[bool, str, int], _Line]:
    found = getattr(_OWN, "lines", None)
    if found is None:
        found = _OWN.lines = {}
    return cast("dict[tuple[bool, str, int], _Line]", found)


def _line(place: _Place, deadline: float) -> tuple[_Line, bool]:
    """The connection of this thread to a server, and whether it was opened only now."""
    lines = _lines()
    key = (place.tls, place.host, place.port)
    line = lines.get(key)
    if line is not None and not line.closed:
        return line, False
    if line is None and len(lines) >= _KEPT:
        lines.pop(next(iter(lines))).close()
    lines[key] = _Line(place, deadline)
    return lines[key], True


_PLACES: dict[str, _Place] = {}


def _placed(url: str) -> _Place:
    """Take a URL apart; the last ones are remembered."""
    found = _PLACES.get(url)
    if found is None:
        if len(_PLACES) > 100:
            _PLACES.clear()
        found = _PLACES[url] = _parsed(url)
    return found


def _parsed(url: str) -> _Place:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise WebError("the URL cannot be read: its host or port is odd") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise WebError("the URL cannot be read: it takes http:// or https:// and a host")
    tls = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    if not path.isascii() or any(each <= " " or each == "\x7f" for each in path):
        raise WebError("the URL cannot be read: a character in it must be written as %XX")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    server = host if port is None else f"{host}:{port}"
    lines = [f"Host: {server.encode('idna').decode() if not server.isascii() else server}"]
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        lines.append(f"Authorization: Basic {base64.b64encode(pair.encode()).decode()}")
    return _Place(
        tls=tls,
        host=parts.hostname,
        port=port or (443 if tls else 80),
        path=path,
        head="".join(f"{line}\r\n" for line in lines).encode("latin-1"),
        shown=f"{parts.scheme}://{server}{parts.path}",
    )


def _head(method: str, place: _Place, body: bytes | None, headers: Mapping[str, str]) -> bytes:
    lines = []
    names = set()
    for name, value in headers.items():
        odd = not name.isascii() or any(each in "\r\n\0" for each in name + value)
        if odd or ":" in name or " " in name or not name or name.lower() in _RESERVED:
            raise WebError(f"the header `{_printable(name)}` cannot be sent")
        names.add(name.lower())
        lines.append(f"{name}: {value}\r\n")
    if "accept-encoding" not in names:
        lines.append("Accept-Encoding: identity\r\n")
    if body is not None or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body or b'')}\r\n")
    try:
        told = "".join(lines).encode("latin-1")
    except UnicodeEncodeError as error:
        raise WebError("a header holds a character that cannot be sent") from error
    own = place.head
    if "authorization" in names:
        own = own.partition(b"Authorization:")[0]
    return f"{method} {place.path} HTTP/1.1\r\n".encode() + own + told + b"\r\n"


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _words(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _printable(text: str) -> str:
    shown = "".join(each if each.isprintable() else "?" for each in text)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
