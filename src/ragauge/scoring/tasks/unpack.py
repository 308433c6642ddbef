"""The task of reading a stored run: its traces as a file of JSON lines, which scoring reads."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import IO

from msgspec import Struct

from ragauge import registry
from ragauge.errors import MAX_REPORTED, Problem, RagaugeError
from ragauge.files.ranges import Range
from ragauge.model.payloads import UNREADABLE, thaw, unreadable
from ragauge.model.run import Store
from ragauge.scoring.tasks.task import Work, Worker

_AT_ONCE = 1 << 16
"""Bytes that are written together."""


class Unpacked(Struct, frozen=True, kw_only=True):
    """The outcome: the first rows that cannot be read, and how many there are in all.

    `failure` says why nothing could be read: another process cannot raise it here.
    """

    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    failure: tuple[Problem, ...] = ()


def unpack(store: Store, run_id: str, stream: IO[bytes]) -> Unpacked:
    """Write the traces of a run to a stream, a line each; those that cannot be read are named."""
    problems: list[Problem] = []
    count = waiting = 0
    lines: list[bytes] = []
    for ordinal, payload in store.payloads(run_id):
        try:
            data = thaw(payload)
            if b"\n" in data:
                raise ValueError("it is not one row")
        except (*UNREADABLE, ValueError) as error:
            count += 1
            if len(problems) < MAX_REPORTED:
                problems.append(unreadable(run_id, error, ordinal=ordinal))
            continue
        lines.append(data)
        waiting += len(data)
        if waiting > _AT_ONCE:
            stream.write(b"\n".join(lines) + b"\n")
            lines, waiting = [], 0
    if lines:
        stream.write(b"\n".join(lines) + b"\n")
    stream.flush()
    return Unpacked(problems=tuple(problems), problem_count=count)


class Unpack(Work[Unpacked], frozen=True):
    """A stored run to write to a file: the URL of its store, its id, and the path of the file.

    The run is one range, `WHOLE_RUN`. Whoever does this opens the store anew, since a connection
    cannot go to another process.
    """

    result = Unpacked
    url: str
    run_id: str
    path: str

    def begin(self, worker: Worker) -> Callable[[Range], Unpacked]:  # noqa: ARG002
        """No reducer is needed: rows are copied as they are."""
        return lambda _: unpack_run(self.url, self.run_id, self.path)


WHOLE_RUN = (Range(0, 0, 0, 0),)


def unpack_run(url: str, run_id: str, path: str) -> Unpacked:
    """Unpack a run with a connection of one's own."""
    try:
        kind = registry.stores()[url.partition("://")[0]]
        with closing(kind.open(url, create=False)) as store, open(path, "wb") as file:
            return unpack(store, run_id, file)
    except RagaugeError as error:
        return Unpacked(failure=error.problems)
