"""Running `ragauge` as a real process, and the files that it is given."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
COMMAND = (sys.executable, "-m", "ragauge")
TIMEOUT = 60

# The gold set and the traces of seeds 003 and 004.
GOLD: list[Row] = [
    {
        "qid": "A0001",
        "question": "Does X support null keys?",
        "answerable": True,
        "gold_claim_substr": ["rejects null keys"],
        "gold_citations": ["p1#2"],
        "constraints": ["X rejects null keys."],
    },
    {
        "qid": "A0002",
        "question": "Explain Z.",
        "answerable": False,
        "gold_claim_substr": [],
        "gold_citations": [],
    },
    {
        "qid": "A0003",
        "question": "What domain is allowed?",
        "answerable": True,
        "gold_claim_substr": ["only domain example.com"],
        "gold_citations": ["pB#1"],
    },
]
TRACES: list[Row] = [
    {
        "qid": "A0001",
        "q": "Does X support null keys?",
        "retrieved_ids": ["p1#1", "p1#2", "p2#1"],
        "answer_json": {"claim": "X rejects null keys.", "citations": ["p1#2"]},
    },
    {
        "qid": "A0002",
        "q": "Explain Z.",
        "retrieved_ids": ["p1#1", "p2#1"],
        "answer_json": {"claim": "not in context", "citations": []},
    },
    {
        "qid": "A0003",
        "q": "What domain is allowed?",
        "retrieved_ids": ["pB#1", "p1#2"],
        "answer_json": {"claim": "Only domain example.com is allowed.", "citations": ["pB#1"]},
    },
]
# A0002 should be refused, and here it is answered.
WRONG: list[Row] = [
    TRACES[0],
    {**TRACES[1], "answer_json": {"claim": "Z is a city.", "citations": ["p1#1"]}},
    TRACES[2],
]
# The same in the names of seed 001: one right answer, one refusal of an answerable question, one
# right refusal, one hallucination.
QASET: list[Row] = [
    {"qid": "q1", "q": "What is X?", "answerable": True, "gold_ids": ["p1#1"],
     "gold_claim": "X is a constrained mapping."},
    {"qid": "q2", "q": "Explain Y.", "answerable": True, "gold_ids": ["p2#1"],
     "gold_claim": "Y is unrelated to X."},
    {"qid": "q3", "q": "What is Z?", "answerable": False, "gold_ids": []},
    {"qid": "q4", "q": "Summarize the external link.", "answerable": False, "gold_ids": []},
]  # fmt: skip
SMOKE_TRACES: list[Row] = [
    {"ts": 1, "q": "What is X?", "chunks": [{"id": "p1#1"}], "ok": True,
     "answer": "- X is a constrained mapping\n- citations: [p1#1]"},
    {"ts": 2, "q": "Explain Y.", "chunks": [{"id": "p2#1"}], "answer": "not in context",
     "ok": True},
    {"ts": 3, "q": "What is Z?", "chunks": [], "answer": "Not in context", "ok": True},
    {"ts": 4, "q": "Summarize the external link.", "chunks": [], "ok": True,
     "answer": "It says hello. citations: [p9#9]"},
]  # fmt: skip


def lines_of(rows: Sequence[Row]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def write(path: Path, content: bytes | str | Sequence[Row]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content if isinstance(content, bytes) else lines_of(content))
    return path


def environment(**changes: str) -> dict[str, str]:
    """The environment without what a developer's shell may say about colour and width."""
    told = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "RAGAUGE_DEBUG", "PYTHONIOENCODING")
    return {**{name: value for name, value in os.environ.items() if name not in told}, **changes}


def run(
    folder: Path,
    *arguments: str | Path,
    stdin: bytes | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, to its end."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=folder,
        env=environment(**(env or {})),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    # Names of files may hold bytes that are not UTF-8; whatever was said must be comparable.
    said = [stream.decode(errors="surrogateescape") for stream in (done.stdout, done.stderr)]
    return subprocess.CompletedProcess(done.args, done.returncode, *said)
