"""Web servers for tests: real sockets in threads, which answer what a test says, also nonsense."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Request:
    """What a server was sent; `number` counts all requests from 0."""

    number: int
    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Request], bytes | None]
"""The bytes to send, or None to close the connection without a word."""


def http(body: object, status: str = "200 OK", **headers: str) -> bytes:
    """An answer as a server sends it."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(data)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


@dataclass
class Server:
    """A server on this machine, what it was sent, and how many connections were opened."""

    answer: Answer
    listening: socket.socket
    tls: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    open: set[socket.socket] = field(default_factory=set)

    @property
    def url(self) -> str:
        scheme = "http" if self.tls is None else "https"
        return f"{scheme}://127.0.0.1:{self.listening.getsockname()[1]}"

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listening.accept()
                with self.lock:
                    self.connections += 1
                    self.open.add(connection)
                threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, plain: socket.socket) -> None:
        connection = plain
        if self.tls is not None:
            try:
                connection = self.tls.wrap_socket(plain, server_side=True)
            except OSError:  # the other side does not trust us
                plain.close()
                return
        with suppress(OSError, ValueError), connection, connection.makefile("rb") as stream:
            while line := stream.readline():
                headers = {}
                while (header := stream.readline().strip()) != b"":
                    name, _, value = header.decode().partition(":")
                    headers[name.lower()] = value.strip()
                body = stream.read(int(headers.get("content-length", 0)))
                with self.lock:
                    request = Request(len(self.requests), line.decode().strip(), headers, body)
                    self.requests.append(request)
                answer = self.answer(request)
                if answer is None:
                    break
                connection.sendall(answer)
                if b"\r\nContent-Length" not in answer and b"chunked" not in answer:
                    break
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        with self.lock:
            self.open.discard(plain)
        connection.close()


@contextmanager
def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server that answers as the function says, until the end."""
    server = Server(answer, socket.create_server(("127.0.0.1", 0)), tls)
    threading.Thread(target=server.accept, daemon=True).start()
    try:
        yield server
    finally:
        server.ended.set()
        server.listening.shutdown(socket.SHUT_RDWR)
        server.listening.close()
        with server.lock:
            for connection in server.open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
