"""The target `http://...`: a service that is sent a question and answers with JSON.

The answer may be one object, lines of them, or a stream of server-sent events.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

import msgspec

from ragauge.errors import RagaugeError
from ragauge.files import http_client
from ragauge.files.redaction import SecretValues, is_secret_header
from ragauge.model.access import Access
from ragauge.model.target import TargetError, TargetKind, TargetOptions, TargetQuestion
from ragauge.targets.shared.address import (
    QUESTION_FIELDS,
    TOO_MANY_REQUESTS,
    question_fields,
    refused,
    retry_after,
    send,
    shown_url,
)
from ragauge.targets.shared.foreign_answer import decoded_answer

MAPPED = ("hits", "answer", "citations", "error")
IN_HITS = ("id", "doc", "score", "text", "section", "type")
"""What a JMESPath option picks out of an answer, and out of each of its hits."""

_PLAIN = ("body", "method", *MAPPED, *IN_HITS)
_HOLE = re.compile(r"\{(" + "|".join(QUESTION_FIELDS) + r")\}")
_SECRET = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_SHOWN = 200


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
        self.headers = {"Accept": "application/json, application/x-ndjson, text/event-stream"}
        if self.method != "GET":
            self.headers["Content-Type"] = "application/json"
        self.secrets: list[str] = []
        for name, value in self.settings.items():
            if name.startswith("header."):
                header = name.removeprefix("header.")
                self.headers[header] = sent = self._with_secrets(value)
                if is_secret_header(header):
                    self.secrets.append(sent)
        self.secret_url = self._with_secrets(self.url)
        password = re.search(r"://([^/?#:@]*):([^/?#]*)@", self.secret_url)
        if password is not None:  # the client sends both in base64
            self.secrets += [unquote(password[2]), unquote(f"{password[1]}:{password[2]}")]
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
        try:
            answered = decoded_answer(response.body, response.headers.get("content-type", ""))
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
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
            wait=retry_after(response),
            busy=status == TOO_MANY_REQUESTS,
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
        # Before it is cut: half a secret would stay.
        return SecretValues(self.secrets).hide(text)[:_SHOWN]

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


def _reaches(address: str) -> Sequence[Access]:
    """The host of the service, and the variables that the address asks for."""
    try:
        host, port = http_client.host_and_port(address)
    except http_client.WebError as error:
        raise refused(error.reason, "write https://HOST/PATH") from error
    return (Access(host=host, port=port, variables=tuple(_SECRET.findall(address))),)


TARGET = TargetKind(
    name="http",
    title="a web service: http://HOST/PATH",
    schemes=("http", "https"),
    open=HttpTarget,
    reaches=_reaches,
)
