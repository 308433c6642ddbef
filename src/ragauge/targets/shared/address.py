"""Addresses of targets: the place behind the scheme, its settings, and what is sent to it.

An address is `PLACE?name=value&name=value`; `--option` adds to it. A name that a
target does not know is refused, because a misspelt setting would otherwise change nothing.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl

from ragauge.errors import RagaugeError
from ragauge.files import http_client
from ragauge.model.target import TargetError, TargetOptions, TargetQuestion

OF_EMBEDDER = "embedder."
"""The prefix of settings that go to the embedder, which gets them without it."""

QUESTION_FIELDS = ("question", "qid", "paraphrase", "seed", "turn", "history", "k")
"""What is said of a question to functions, programs and services."""


def refused(message: str, hint: str) -> RagaugeError:
    """Build the error of an address that can never work."""
    return RagaugeError.of("bad-target", message, hint=hint)


class TargetSettings:
    """The settings of one target, from its address and from the options, as they were written."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.given = dict(values)

    def text(self, name: str, fallback: str | None = None) -> str | None:
        """A setting as text; None where there is none."""
        value = self.given.get(name)
        return fallback if value is None or value == "" else str(value)

    def needed(self, name: str, example: str) -> str:
        """A setting that must be there."""
        value = self.text(name)
        if value is None:
            raise refused(f"the target needs `{name}`", f"for example {example}")
        return value

    def number(self, name: str, fallback: float, least: float, most: float) -> float:
        """A number between two bounds."""
        text = self.text(name)
        if text is None:
            return float(fallback)
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise refused(
                f"`{name}` must be a number from {least:g} to {most:g}, got `{text}`",
                f"leave it out for {fallback:g}",
            )
        return value

    def one_of(self, name: str, choices: Iterable[str]) -> str | None:
        """One of some words; None where the setting is not there."""
        value, names = self.text(name), list(choices)
        if value is not None and value not in names:
            raise refused(f"`{name}` is `{value}`", f"it can be {', '.join(names)}")
        return value

    def below(self, prefix: str) -> dict[str, Any]:
        """The settings whose names begin so, without that beginning."""
        return {
            name.removeprefix(prefix): value
            for name, value in self.given.items()
            if name.startswith(prefix)
        }


def split_address(
    address: str, options: TargetOptions, known_names: Iterable[str], *, keep_unknown: bool = False
) -> tuple[str, TargetSettings]:
    """The place of an address, and its settings; `keep_unknown` leaves others in the place.

    A setting may stand in the address or in the options, not in both with different values.
    """
    allowed = set(known_names)
    place, mark, query = address.partition("?")
    values: dict[str, Any] = {}
    unknown_parts: list[str] = []
    for part in query.split("&") if mark else ():
        pair = parse_qsl(part, keep_blank_values=True)
        name, value = pair[0] if pair else ("", "")
        if _is_known(name, allowed):
            _add(values, name, value)
        elif keep_unknown:  # the URL of a database has parameters of its own
            unknown_parts.append(part)
        elif part:
            raise _unknown(name or part, allowed)
    for name, value in options.settings.items():
        if not _is_known(name, allowed):
            raise _unknown(name, allowed)
        _add(values, name, value)
    if unknown_parts:
        place += "?" + "&".join(unknown_parts)
    return place, TargetSettings(values)


def _is_known(name: str, names: set[str]) -> bool:
    if name.startswith(OF_EMBEDDER):
        return OF_EMBEDDER in names and name != OF_EMBEDDER
    return name in names


def _add(values: dict[str, Any], name: str, value: Any) -> None:
    if name in values and str(values[name]) != str(value):
        raise refused(
            f"`{name}` is given twice, with different values",
            "write it in the address or as an option",
        )
    values[name] = value


def _unknown(name: str, names: set[str]) -> RagaugeError:
    listed = ", ".join(f"{known}NAME" if known == OF_EMBEDDER else known for known in sorted(names))
    return refused(f"the target takes no `{name}`", f"known: {listed}" if names else "leave it out")


def question_fields(question: TargetQuestion, k: int) -> dict[str, Any]:
    """The values of `QUESTION_FIELDS`."""
    own = {name: getattr(question, name) for name in QUESTION_FIELDS[1:-1]}
    return {"question": question.text, **own, "k": k}


def send(
    method: str, url: str, body: bytes | None, headers: Mapping[str, str], timeout: float
) -> http_client.Response:
    """Send a request; what goes wrong on the way is the error of one question."""
    try:
        return http_client.request(method, url, body, headers, timeout)
    except http_client.WebError as error:
        raise TargetError(error.reason, transient=error.transient, wait=error.wait) from error


TOO_MANY_REQUESTS = 429
"""The status of a service that is busy, also where it does not say until when."""


def retry_after(response: http_client.Response) -> float | None:
    """The seconds that a service asks us to wait by `Retry-After`, which is a number or a time."""
    after = response.headers.get("retry-after")
    if after is None:
        return None
    if after.isascii() and after.isdecimal():
        return float(after)
    try:
        until = parsedate_to_datetime(after).timestamp()
        # Our clock may be wrong; the difference of two times of the server is right.
        date = response.headers.get("date")
        now = time.time() if date is None else parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, until - now)


def shown_url(url: str, hint: str) -> str:
    """A URL without its secrets; one that cannot be asked is refused."""
    try:
        return http_client.shown_url(url)
    except http_client.WebError as error:
        raise refused(error.reason, hint) from error


def library(name: str, extra: str, *, package: str | None = None) -> Any:
    """Import a library that comes with an extra."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        missing = package or name.partition(".")[0].replace("_", "-")
        raise RagaugeError.of(
            "missing-extra",
            f"the target `{extra}` needs a package that is not installed: {missing}",
            hint=f"pip install 'ragauge[{extra}]'",
        ) from error
