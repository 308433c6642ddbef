"""The target `http://...`: a service that is sent a question and answers with JSON."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import msgspec

from ragauge.errors import RagaugeError
from ragauge.files import http_client
from ragauge.files.redaction import REDACTED
from ragauge.model.target import TargetError, TargetKind, TargetOptions, TargetQuestion
from ragauge.targets.shared.address import (
    QUESTION_FIELDS,
    question_fields,
    refused,
    send,
    shown_url,
)

MAPPED = ("hits", "answer", "citations", "error")
IN_HITS = ("id", "doc", "score", "text", "section", "type")
"""What a JMESPath option picks out of an answer, and out of each of its hits."""

_PLAIN = ("body", "method", *MAPPED, *IN_HITS)
_HOLE = re.compile(r"\{(" + "|".join(QUESTION_FIELDS) + r")\}")
_SECRET = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_SHOWN = 200
_LONG_ENOUGH = 6  # characters of a secret that cannot stand in an answer by chance


class HttpTarget:
    """Sends a request for each question, on connections that stay open."""

    def __init__(self, address: str, options: TargetOptions) -> None:
        self.k = options.k
        self.timeout = options.timeout
        self.settings = {name: str(value) for name, value in options.settings.items()}
        unknown = [n for n in self.settings if n not in _PLAIN and not n.startswith("header.")]
        if unknown:
            raise refused(
                f"a service takes no option `{unknown[0]}`",
                f"known: {', '.join(_PLAIN)}, header.NAME",
            )
        self.url = f"{options.scheme or 'http'}:{address}"
        self.filled = _HOLE.search(self.url) is not None
        body = self.settings.get("body")
        fallback = "GET" if self.filled and body is None else "POST"
        self.method = self.settings.get("method", fallback).upper()
        self.template = body
        if body is not None:
            _check_template(body)
        self.headers = {"Accept": "application/json"}
        if self.method != "GET":
            self.headers["Content-Type"] = "application/json"
        self.secrets: list[str] = []
        for name, value in self.settings.items():
            if name.startswith("header."):
                self.headers[name.removeprefix("header.")] = self._with_secrets(value)
        self.secret_url = self._with_secrets(self.url)
        without_holes = _HOLE.sub("x", self.secret_url)
        self.shown = shown_url(without_holes, "write http://HOST:PORT/PATH")
        self.pick = _picker(self.settings)

    @property
    def about(self) -> Mapping[str, Any]:
        """The method; address and options say the rest."""
        return {"method": self.method}

    def ask(self, question: TargetQuestion) -> Any:
        """Send one question."""
        values = question_fields(question, self.k)
        url = self.secret_url
        if self.filled:
            url = _HOLE.sub(lambda hole: _in_url(values[hole[1]]), url)
        body = None
        if self.template is not None:
            body = _HOLE.sub(
                lambda hole: msgspec.json.encode(values[hole[1]]).decode(), self.template
            ).encode()
        elif self.method != "GET":
            body = msgspec.json.encode(values)
        response = send(self.method, url, body, self.headers, self.timeout)
        if not 200 <= response.status < 300:
            raise self._refusal(response)
        text = response.body
        for secret in self.secrets:  # a service may repeat what it was sent
            if len(secret) >= _LONG_ENOUGH:
                text = text.replace(secret.encode(), REDACTED.encode())
        try:
            answered = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise TargetError(f"{self.shown} answered no JSON: {self._begins(response)}") from error
        return answered if self.pick is None else self.pick(answered)

    def _refusal(self, response: http_client.Response) -> TargetError:
        status = response.status
        if 300 <= status < 400:
            location = response.headers.get("location", "nowhere").partition("?")[0]
            return TargetError(f"{self.shown} answered {status}, to {location}: write that address")
        start = self._begins(response)
        return TargetError(
            f"{self.shown} answered {status}{f': {start}' if start else ''}",
            transient=status in _PASSING,
            wait=_wait(response.headers.get("retry-after"), response.headers.get("date")),
        )

    def _with_secrets(self, text: str) -> str:
        """Put what the environment holds in place of `${NAME}`."""

        def value(match: re.Match[str]) -> str:
            secret = os.environ.get(match[1])
            if secret is None:
                raise refused(
                    f"the environment has no `{match[1]}`, which the target asks for",
                    f"set it first: export {match[1]}=...",
                )
            self.secrets += [secret] if secret else []
            return secret

        return _SECRET.sub(value, text)

    def _begins(self, response: http_client.Response) -> str:
        """How an answer begins; a service may repeat what it was sent, and secrets with it."""
        text = response.body.decode("utf-8", errors="replace").strip()
        for secret in self.secrets:
            text = text.replace(secret, REDACTED)
        return text[:_SHOWN]

    def close(self) -> None:
        """Close what this thread has open; connections of others close with their threads."""
        http_client.close()


def _check_template(template: str) -> None:
    filled = _HOLE.sub("null", template)
    try:
        msgspec.json.decode(filled)
    except (ValueError, RecursionError) as error:
        raise refused(
            f"the body is no JSON: {error}",
            'holes stand without quotes, as in {"q": {question}, "n": {k}}; '
            f"known: {', '.join(QUESTION_FIELDS)}",
        ) from error


def _in_url(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return quote(text, safe="")


def _wait(after: str | None, date: str | None) -> float | None:
    """The seconds of a Retry-After, which is a number or a time."""
    if after is None:
        return None
    if after.isascii() and after.isdecimal():
        return float(after)
    try:  # our clock may be wrong; only the difference of two times of the server counts
        until = parsedate_to_datetime(after) - parsedate_to_datetime(date or "")
    except (TypeError, ValueError):
        return None
    return max(0.0, until.total_seconds())


def _picker(settings: Mapping[str, str]) -> Callable[[Any], Any] | None:
    """What picks a row out of an answer, if there are paths to pick by."""
    paths = {name: text for name, text in settings.items() if name in (*MAPPED, *IN_HITS)}
    if not paths:
        return None
    try:
        import jmespath
    except ImportError as error:
        raise RagaugeError.of(
            "missing-extra",
            "picking by JMESPath needs the package `jmespath`",
            hint="pip install 'ragauge[http]'",
        ) from error
    compiled = {}
    for name, text in paths.items():
        try:
            compiled[name] = jmespath.compile(text)
        except jmespath.exceptions.JMESPathError as error:
            message = str(error).partition("\n")[0]
            raise refused(
                f"`{name}={text}` is no JMESPath: {message}", "see jmespath.org"
            ) from error
    inside = {name: compiled.pop(name) for name in IN_HITS if name in compiled}
    if inside and "hits" not in compiled:
        raise refused("there are paths into hits, and none to them", "add --option hits=PATH")

    def pick(answered: Any) -> Any:
        try:
            row = {name: path.search(answered) for name, path in compiled.items()}
            hits = row.get("hits")
            if "hits" in compiled and not isinstance(hits, list):
                raise TargetError(f"`hits={paths['hits']}` finds no list in the answer")
            if inside:
                row["hits"] = [
                    {name: path.search(hit) for name, path in inside.items()} for hit in hits or []
                ]
        except jmespath.exceptions.JMESPathError as error:
            raise TargetError(f"the paths do not fit the answer: {error}") from error
        return row

    return pick


TARGET = TargetKind(
    name="http",
    title="a web service: http://HOST/PATH",
    schemes=("http", "https"),
    open=HttpTarget,
)
