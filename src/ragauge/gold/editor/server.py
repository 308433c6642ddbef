"""The server of the form: on this machine only, for one browser, and it connects nowhere.

It listens on 127.0.0.1. The link that is printed works once and leaves a cookie; requests without
it, for another host name or from another origin are refused, so that no other page in the same
browser can read or write the file.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import msgspec

from ragauge.errors import RagaugeError
from ragauge.files.fields import FieldError
from ragauge.gold.editor.form import ChangedOnDiskError, GoldEditor, SaveRequest

ADDRESS = "127.0.0.1"
LARGEST_REQUEST = 64 * 1024 * 1024
_JSON = "application/json; charset=utf-8"
_STATIC = {
    "/": ("page.html", "text/html; charset=utf-8"),
    "/form.js": ("form.js", "text/javascript; charset=utf-8"),
    "/form.css": ("form.css", "text/css; charset=utf-8"),
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class FormServer(ThreadingHTTPServer):
    """Serves the form for one gold file."""

    daemon_threads = True

    def __init__(self, editor: GoldEditor, port: int = 0) -> None:
        self.editor = editor
        self.token: str | None = secrets.token_urlsafe(24)
        self.cookie = secrets.token_urlsafe(24)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            message = f"port {port} cannot be used: {error.strerror or error}"
            hint = "leave --port away, and a free one is taken"
            raise RagaugeError.of("usage", message, hint=hint) from error

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over a browser that went away; say what else went wrong."""
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """The link that works once."""
        return f"http://{ADDRESS}:{self.server_port}/?token={self.token}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which it may be asked."""
        return f"{ADDRESS}:{self.server_port}", f"localhost:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FormServer
    server_version = "ragauge"
    sys_version = ""
    timeout = 60

    def do_GET(self) -> None:
        """Answer with the page, its parts, or what it asks for."""
        asked = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(asked.query).items()}
        if not self._is_our_host() or self._was_let_in(query.get("token")):
            return
        if not self._has_cookie():
            self._refuse()
            return
        if asked.path in _STATIC:
            name, kind = _STATIC[asked.path]
            self._send(200, files("ragauge.gold.editor").joinpath(name).read_bytes(), kind)
        elif asked.path == "/favicon.ico":
            self._send(204, b"", _STATIC["/"][1])
        elif asked.path in self._ANSWERS:
            try:
                self._json(200, self._ANSWERS[asked.path](self.server.editor, query))
            except (FieldError, RagaugeError) as error:
                self._say(404, str(error))
        else:
            self._say(404, "there is no such page")

    def do_POST(self) -> None:
        """Save."""
        if not self._is_our_host():
            return
        # A page of another origin can send a form here with the cookie; it cannot forge `Origin`.
        if self.headers.get("Origin") not in [f"http://{host}" for host in self.server.hosts]:
            self._say(403, "the request came from another page")
            return
        if not self._has_cookie():
            self._refuse()
            return
        if self.path != "/save":
            self._say(404, "there is no such page")
            return
        try:
            size = int(self.headers.get("Content-Length", ""))
        except ValueError:
            size = -1
        if not 0 <= size <= LARGEST_REQUEST:
            self._say(413, "the request has no length, or is too large")
            return
        try:
            saving = msgspec.json.decode(self.rfile.read(size), type=SaveRequest)
            self._json(200, self.server.editor.save(saving))
        except msgspec.DecodeError as error:
            self._say(400, f"the request cannot be read: {error}")
        except RagaugeError as error:
            listed = (f"{one.place}: {one.message} ({one.hint})" for one in error.problems)
            self._say(400, "; ".join(listed))
        except ChangedOnDiskError:
            changed = "the file has changed on disk since it was read; nothing was saved."
            self._say(409, f"{changed} Copy what you need, and load the page again.")

    def _is_our_host(self) -> bool:
        """A name that leads here from elsewhere is not ours: it is how other pages would ask."""
        if self.headers.get("Host") in self.server.hosts:
            return True
        self._say(403, "this host name is not served")
        return False

    def _was_let_in(self, token: str | None) -> bool:
        """Take the token of the link: it works once, leaves a cookie and goes from the address."""
        server = self.server
        if token is None or server.token is None:
            return False
        if not secrets.compare_digest(token.encode(), server.token.encode()):
            return False
        server.token = None
        self.send_response(303)
        self.send_header(
            "Set-Cookie", f"{self._cookie_name}={server.cookie}; Path=/; HttpOnly; SameSite=Strict"
        )
        self.send_header("Location", "/")
        self._end(0)
        return True

    @property
    def _cookie_name(self) -> str:
        return f"ragauge-{self.server.server_port}"  # cookies do not tell ports apart

    def _has_cookie(self) -> bool:
        for part in self.headers.get("Cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self._cookie_name:
                return secrets.compare_digest(value.encode(), self.server.cookie.encode())
        return False

    def _refuse(self) -> None:
        self._say(403, "open the link that `ragauge gold edit` printed; it works once")

    def _say(self, status: int, message: str) -> None:
        self._json(status, {"message": message})

    def _json(self, status: int, value: Any) -> None:
        self._send(status, msgspec.json.encode(value), _JSON)

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self._end(len(body))
        self.wfile.write(body)

    def _end(self, size: int) -> None:
        self.send_header("Content-Length", str(size))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing: the terminal is for what the user must know."""

    _ANSWERS: ClassVar[dict[str, Callable[[GoldEditor, dict[str, str]], Any]]] = {
        "/items": lambda editor, _: editor.file(),
        "/document": lambda editor, query: editor.document(query.get("doc", "")),
    }
