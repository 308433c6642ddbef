"""Commands inside the test process: rows in files, arguments in, what was said out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ragauge.cli import main

Row = dict[str, Any]
Content = bytes | str | Sequence[Row]

# Three questions: two with an answer, one without; and traces in which all is right.
GOLD: list[Row] = [
    {
        "qid": "A1",
        "question": "Does X support null keys?",
        "answerable": True,
        "gold_claim_substr": ["rejects null keys"],
        "gold_citations": ["p1#2"],
    },
    {
        "qid": "A2",
        "question": "Explain Z.",
        "answerable": False,
        "gold_claim_substr": [],
        "gold_citations": [],
    },
    {
        "qid": "A3",
        "question": "What domain is allowed?",
        "answerable": True,
        "gold_claim_substr": ["only domain example.com"],
        "gold_citations": ["pB#1"],
    },
]
TRACES: list[Row] = [
    {
        "qid": "A1",
        "q": "Does X support null keys?",
        "retrieved_ids": ["p1#1", "p1#2", "p2#1"],
        "answer_json": {"claim": "X rejects null keys.", "citations": ["p1#2"]},
    },
    {
        "qid": "A2",
        "q": "Explain Z.",
        "retrieved_ids": ["p1#1", "p2#1"],
        "answer_json": {"claim": "not in context", "citations": []},
    },
    {
        "qid": "A3",
        "q": "What domain is allowed?",
        "retrieved_ids": ["pB#1", "p1#2"],
        "answer_json": {"claim": "Only domain example.com is allowed.", "citations": ["pB#1"]},
    },
]

_PROBLEM = re.compile(
    r"^error\[(?P<code>[a-z-]+)\]: (?P<message>.+)\n"
    r"(?:  --> (?P<where>.+?)(?:  \((?P<about>.+)\))?\n)?"
    r"  hint: (?P<hint>.+)$",
    re.MULTILINE,
)


class Reported(NamedTuple):
    """One problem as it is printed: `where` is file:line, `about` the item and the dialect."""

    code: str
    message: str
    where: str | None
    about: str | None
    hint: str


@dataclass(frozen=True)
class Outcome:
    """What came of a command."""

    exit_code: int
    out: str
    err: str

    @property
    def problems(self) -> list[Reported]:
        return [Reported(**match.groupdict()) for match in _PROBLEM.finditer(self.err)]

    @property
    def codes(self) -> set[str]:
        """The codes on stderr, and those in the document if JSON was printed."""
        found = {problem.code for problem in self.problems}
        if self.out.startswith("{"):
            found |= set(_codes_in(json.loads(self.out)))
        return found


def _codes_in(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("code"), str):
            yield value["code"]
        for each in value.values():
            yield from _codes_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _codes_in(each)


def line_of(row: object) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()


def lines_of(rows: Sequence[object]) -> bytes:
    return b"".join(line_of(row) + b"\n" for row in rows)


class Folder:
    """The current folder of a test, in which files are written and commands run."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = path
        self._capsys = capsys

    def at(self, path: Path) -> Folder:
        """Another folder, of which the test has to make its current one."""
        return Folder(path, self._capsys)

    def write(self, name: str, content: Content) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = content.encode()
        path.write_bytes(content if isinstance(content, bytes) else lines_of(content))
        return path

    def run(self, *arguments: str) -> Outcome:
        self._capsys.readouterr()
        exit_code = main.run(list(arguments))
        said = self._capsys.readouterr()
        return Outcome(exit_code, said.out, said.err)

    def score(
        self,
        trace: Content | None = None,
        *options: str,
        gold: Content | None = None,
        trace_name: str = "trace.jsonl",
        gold_name: str = "gold.jsonl",
    ) -> Outcome:
        """Write gold and traces (all right unless given), and score them."""
        self.write(gold_name, GOLD if gold is None else gold)
        self.write(trace_name, TRACES if trace is None else trace)
        return self.run("score", gold_name, trace_name, *options)
