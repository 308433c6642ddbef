"""A format of another tool, as a component: how its files are recognised, and what they become.

A module of this folder that exports `FORMAT` is one. Its rows have our own names, as
`field_spellings` lists them: `qid`, `question`, `hits` (of `id`, `doc`, `score`, `text`), `answer`,
`citations`, `error`, `latency_ms`, `perf`; fields that nothing reads may stand beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, BinaryIO, Literal

import msgspec
from msgspec import Struct

from ragauge.files.json_faults import STRING
from ragauge.files.open import UnpackedFile
from ragauge.formats.imports.coverage import Coverage

HEAD = 64 * 1024
"""So many bytes at the head of a file tell its format."""

Row = dict[str, Any]
Side = Literal["gold", "traces"]

_TOKEN = re.compile(STRING + rb"|[{}\[\],:\"]|[^\s{}\[\],:\"]+", re.DOTALL)


class ForeignFile:
    """A file that may be another tool's: its first bytes, and what they hold as far as they go.

    Packed files are unpacked before, and YAML and Parquet are JSON Lines by then (`converted`).
    """

    def __init__(self, file: UnpackedFile) -> None:
        self.name = file.name
        self.path = file.path
        self.converted = file.converted
        with self.open() as stream:
            self.head = stream.read(HEAD)

    def open(self) -> BinaryIO:
        """The bytes from the start; a byte order mark is passed over by `json_head` alone."""
        return open(self.path, "rb")

    @cached_property
    def json_head(self) -> Any:
        """The first JSON value of the file, up to where the head is cut; None if it is no JSON.

        Of JSON Lines that is the first row, of an array all elements that fit. A value that is cut
        has the members that are complete: enough to see what it is.
        """
        head = self.head.removeprefix(b"\xef\xbb\xbf").lstrip()
        return _decode_head(head) if head[:1] in (b"{", b"[") else None

    @cached_property
    def first_row(self) -> Row:
        """The first object: of the file, or of the array that the file is; else an empty one."""
        value = self.json_head
        if isinstance(value, list):
            value = value[0] if value else None
        return value if isinstance(value, dict) else {}

    @property
    def is_array(self) -> bool:
        """Whether the file is one JSON array."""
        return isinstance(self.json_head, list)


class ImportOptions(Struct, frozen=True, kw_only=True):
    """How ambiguous traces are read.

    `retrieval`: of several retrievals in one trace the last, the first, all as one list, or each
    as a trace of its own. `stage`: where a reranker follows, the list after it or before it.
    `question`: the name that the question has, in formats where users choose it. `run`: of several
    systems in one file the one to read. `empty_context`: whether a test case without context and
    without an expected answer is to be refused, or says nothing of it.
    """

    retrieval: Literal["last", "first", "union", "each"] = "last"
    stage: Literal["last", "first"] = "last"
    question: str | None = None
    run: str | None = None
    empty_context: Literal["unlabelled", "refuse"] = "unlabelled"


_DEEPEST = 256

ReadRows = Callable[[Sequence[ForeignFile], ImportOptions, Coverage], Iterator[Row]]
"""Yields rows of our own in an order that the files alone decide; counts what it passes over."""


class ForeignFormat(Struct, frozen=True, kw_only=True):
    """A format of another tool.

    name         what `--from` takes
    title        as in "read as LangSmith runs"
    source       the tool and version whose files were looked at
    recognise    whether a file is of this format; at most one format says so of a file
    read_traces  the traces in files; None where they hold none
    read_gold    the gold items in files; None where they hold none
    """

    name: str
    title: str
    source: str
    recognise: Callable[[ForeignFile], bool]
    read_traces: ReadRows | None = None
    read_gold: ReadRows | None = None

    def reader(self, side: Side) -> ReadRows | None:
        """What reads one side of these files."""
        return self.read_gold if side == "gold" else self.read_traces


def _decode_head(head: bytes) -> Any:
    """The value that a text begins with, its open brackets closed where the text was cut."""
    closers: list[bytes] = []
    safe = 0  # up to here the text is whole values, if the brackets that are open were closed
    safe_closers: list[bytes] = []
    pending_key = False
    for match in _TOKEN.finditer(head):
        token = match.group()
        if token == b'"':  # of a text that the head cuts
            break
        if token in (b"{", b"["):
            closers.append(b"}" if token == b"{" else b"]")
            if len(closers) > _DEEPEST:  # no export is, and to copy all that are open takes time
                return None
            pending_key = token == b"{"
            safe, safe_closers = match.end(), closers[:]
        elif token in (b"}", b"]"):
            if not closers or closers.pop() != token:
                return None
            pending_key = False
            safe, safe_closers = match.end(), closers[:]
            if not closers:
                break
        elif token == b",":
            pending_key = bool(closers) and closers[-1] == b"}"
        elif token == b":":
            pending_key = False
        elif not pending_key and match.end() < len(head):
            safe, safe_closers = match.end(), closers[:]
    try:
        return msgspec.json.decode(head[:safe] + b"".join(reversed(safe_closers)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
