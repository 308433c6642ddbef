"""Annotations: what was measured of a trace, and what a service has to be told of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ragauge.errors import RagaugeError
from ragauge.files.http_client import Response

IDENTIFIER = "ragauge"
"""Who annotates: a service that knows it replaces what it has instead of adding to it."""

Entry = dict[str, Any]
"""What is written as one line of a file, and sent as one part of a request."""


class Annotation(Struct, frozen=True, kw_only=True):
    """One result of one trace: a number, or a label, and why."""

    name: str
    score: float | None = None
    label: str | None = None
    explanation: str | None = None


class AnnotatedTrace(Struct, frozen=True, kw_only=True):
    """A trace of a service, and its results. `slots`: over how many traces they are a mean.

    `end` is when the trace ended, in nanoseconds, where that is known.
    """

    trace_id: str
    qid: str
    annotations: tuple[Annotation, ...]
    span_id: str | None = None
    start: int | None = None
    end: int | None = None
    slots: int = 1

    @property
    def metadata(self) -> dict[str, Any]:
        """What is noted beside each result."""
        mean = {"mean_of_traces": self.slots} if self.slots > 1 else {}
        return {"source": IDENTIFIER, "qid": self.qid, **mean}


class Taken(Struct, frozen=True):
    """What a service took of a request, and why it did not take the rest."""

    accepted: int
    rejected: int = 0
    reasons: tuple[str, ...] = ()


class Annotator(Struct, frozen=True, kw_only=True):
    """A service that shows results beside traces.

    entries        what it is told of traces, part by part
    lacks          what a trace lacks that it needs; None where it has all
    path           where requests go, below the host
    body           the request for some entries
    single_body    the request for one entry, where a server does not take a list of one
    taken          what a response says of the entries that were sent
    headers        what authorises, by the variables of the environment
    host_variables which name the host where the command line does not
    at_once        the most entries of one request
    """

    name: str
    title: str
    entries: Callable[[AnnotatedTrace], list[Entry]]
    path: str
    body: Callable[[Sequence[Entry]], Any]
    taken: Callable[[Response, int], Taken]
    headers: Callable[[Mapping[str, str]], dict[str, str]]
    host_variables: tuple[str, ...]
    lacks: Callable[[AnnotatedTrace], str | None] = lambda _trace: None
    single_body: Callable[[Entry], Any] | None = None
    at_once: int = 100


def stable_id(*parts: str) -> str:
    """An id that is the same for the same parts, as 32 hexadecimal digits."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def needed(environment: Mapping[str, str], *names: str) -> list[str]:
    """The values of variables that must be set; their values are secrets, and never shown."""
    missing = [name for name in names if not environment.get(name)]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise RagaugeError.of(
            "usage",
            f"{' and '.join(missing)} {verb} not set in the environment",
            hint="the keys of a service are read from there, never from files or options",
        )
    return [environment[name] for name in names]
