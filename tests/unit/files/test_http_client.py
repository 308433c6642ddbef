"""The HTTP client against real servers, good ones and bad ones."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from ragauge.files import http_client
from ragauge.files.http_client import WebError, request
from tests.support.web_servers import Request, http, serving


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    http_client.close()


def fails(url: str, *, timeout: float = 5.0, most_bytes: int = 1000) -> WebError:
    with pytest.raises(WebError) as caught:
        request("POST", url, b"{}", timeout=timeout, most_bytes=most_bytes)
    return caught.value


def test_a_connection_stays_open_for_the_next_request() -> None:
    with serving(lambda asked: http({"number": asked.number})) as server:
        found = [request("POST", f"{server.url}/ask?q=a%20b", b"hello") for _ in range(5)]
        assert [each.body for each in found] == [b'{"number": %d}' % n for n in range(5)]
        assert server.connections == 1
        assert server.requests[0].line == "POST /ask?q=a%20b HTTP/1.1"
        assert server.requests[0].body == b"hello"
        assert server.requests[0].headers["host"] == server.url.removeprefix("http://")


def test_headers_are_sent_and_read() -> None:
    with serving(lambda _: http({}, "418 Teapot", Retry_After="7", X_A="1")) as server:
        found = request("GET", server.url, headers={"Authorization": "Bearer t"})
        assert (found.status, found.headers["retry-after"], found.headers["x-a"]) == (418, "7", "1")
        assert server.requests[0].headers["authorization"] == "Bearer t"
        assert server.requests[0].line == "GET / HTTP/1.1"


def test_user_and_password_of_a_url_become_a_header_and_are_never_shown() -> None:
    with serving(lambda _: None) as server:
        url = server.url.replace("http://", "http://me:s%40fe@") + "/a?token=geheim"
        error = fails(url)
        assert server.requests[0].headers["authorization"] == "Basic bWU6c0BmZQ=="  # me:s@fe
        assert error.reason == f"{server.url}/a closed the connection"
        assert error.transient


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
         b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: 1\r\n\r\n", b"abcde"),
        (b"HTTP/1.0 200 OK\r\n\r\nto the end", b"to the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 200\nContent-Length: 2\n\nok", b"ok"),
    ],
)  # fmt: skip
def test_bodies_are_read_however_they_end(answer: bytes, body: bytes) -> None:
    with serving(lambda _: answer) as server:
        for _ in range(2):
            assert request("POST", server.url, b"{}").body == body


@pytest.mark.parametrize(
    ("answer", "reason", "transient"),
    [
        (b"\x16\x03\x01 nonsense\r\n\r\n", "no HTTP was answered: the answer begins with", False),
        (b"HTTP/1.1 abc\r\n\r\n", "the answer begins with", False),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "a header has no colon", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n", "its length is 'ten'", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "two lengths",
         False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "the coding 'gzip'", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "a chunk has", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", "larger than 1,000 bytes", False),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001, "larger than 1,000 bytes", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3E9\r\n", "larger than", False),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300 + b"\r\n", "more than 200 headers", False),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", "a line has no end", False),
    ],
)  # fmt: skip
def test_nonsense_is_an_error_with_its_reason(answer: bytes, reason: str, transient: bool) -> None:
    with serving(lambda _: answer) as server:
        error = fails(server.url)
        assert reason in error.reason
        assert error.transient is transient
        assert server.url in error.reason


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\nshort"],
)
def test_an_answer_that_is_cut_off_may_come_whole_the_next_time(answer: bytes) -> None:
    def cut(_: Request) -> bytes | None:
        server.open.copy().pop().sendall(answer)
        return None

    with serving(cut) as server:
        assert fails(server.url).transient


def test_a_server_that_says_nothing_is_waited_for_no_longer_than_told() -> None:
    def hang(_: Request) -> bytes | None:
        server.ended.wait(600)
        return None

    with serving(hang) as server:
        error = fails(server.url, timeout=0.1)
        assert error.reason == f"no answer from {server.url} within 0.1 s"
        assert error.transient


def test_a_server_that_drips_cannot_move_the_deadline() -> None:
    def drip(_: Request) -> bytes | None:
        connection = server.open.copy().pop()
        while not server.ended.wait(0.02):
            connection.sendall(b"H")
        return None

    with serving(drip) as server:
        assert "within 0.2 s" in fails(server.url, timeout=0.2).reason


def test_a_connection_that_was_closed_meanwhile_is_replaced() -> None:
    with serving(lambda asked: http({"n": asked.number})) as server:
        assert request("POST", server.url, b"{}").status == 200
        server.open.copy().pop().shutdown(socket.SHUT_RDWR)
        time.sleep(0.05)
        assert request("POST", server.url, b"{}").body == b'{"n": 1}'
        assert server.connections == 2


def test_more_bytes_than_an_answer_has_are_no_next_answer() -> None:
    with serving(lambda asked: http({"n": asked.number}) + b"HTTP/1.1 200 OK\r\n") as server:
        assert [request("GET", server.url).body for _ in range(3)] == [
            b'{"n": 0}', b'{"n": 1}', b'{"n": 2}',
        ]  # fmt: skip


def test_a_server_that_is_not_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/x?key=secret"
    error = fails(url)
    assert "cannot be reached: connection refused" in error.reason
    assert "secret" not in error.reason
    assert error.transient


@pytest.mark.parametrize(
    "url", ["ftp://host/x", "http://", "http://host:99999/", "http://host/a b", "http://h/ä"]
)
def test_urls_that_cannot_be_asked_are_refused(url: str) -> None:
    error = fails(url)
    assert error.reason.startswith("the URL cannot be read")
    assert not error.transient


@pytest.mark.parametrize(
    "headers",
    [{"X": "a\r\nEvil: 1"}, {"Host": "x"}, {"A b": "x"}, {"": "x"}, {"Content-Length": "3"}],
)
def test_headers_that_would_break_a_request_are_refused(headers: dict[str, str]) -> None:
    with serving(lambda _: http({})) as server:
        with pytest.raises(WebError, match="cannot be sent"):
            request("GET", server.url, headers=headers)
        assert server.requests == []
